"""Writes what MuJoCo says about the robots of this folder: python tests/data/robots/make_references.py

For each file, at random states: the mass matrix, bias, passive and actuator forces in joint space, where all bodies
are, and by how much equality constraints are violated. For some, the motion from a start, by integrating MuJoCo's own
accelerations (DOP853, tolerances 1e-12) with equality constraints held exactly by their Jacobian instead of MuJoCo's
soft ones. It needs MuJoCo (the extra `bench`); tests compare with what it wrote.
"""

import json
import struct
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
FILES = (
    "arm.urdf",
    "gripper.urdf",
    "drone.urdf",
    "meshes.urdf",
    "four_bar.xml",
    "walker.xml",
    "linkage.xml",
    "meshes.xml",
)
STATES, SEED = 4, 20
_HINGE, _SLIDE, _BALL, _FREE = 3, 2, 1, 0


def model_of(name):
    """MuJoCo's model of a file; contacts and limits are switched off, as they are not imported."""
    import mujoco

    text = (FOLDER / name).read_text(encoding="utf-8").replace("package://robots/", "")
    assets = {f"meshes/{path.name}": path.read_bytes() for path in (FOLDER / "meshes").iterdir()}
    assets |= {path.name: path.read_bytes() for path in (FOLDER / "meshes").iterdir()}
    spec = mujoco.MjSpec.from_string(text, assets=assets)
    spec.option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT) | int(mujoco.mjtDisableBit.mjDSBL_LIMIT)
    return spec.compile()


def random_state(model, rng):
    qpos = np.zeros(model.nq)
    for kind, at in zip(model.jnt_type, model.jnt_qposadr, strict=True):
        if kind == _HINGE:
            qpos[at] = rng.uniform(-1.5, 1.5)
        elif kind == _SLIDE:
            qpos[at] = rng.uniform(-0.3, 0.3)
        elif kind == _FREE:
            qpos[at : at + 3] = rng.uniform(-1, 1, 3)
        if kind in (_BALL, _FREE):
            at = at + 3 if kind == _FREE else at
            turn = rng.standard_normal(4)
            qpos[at : at + 4] = turn / np.linalg.norm(turn)
    return qpos, rng.uniform(-2, 2, model.nv)


def at_state(model, qpos, qvel):
    """Everything about one state."""
    import mujoco

    data = mujoco.MjData(model)
    data.qpos, data.qvel = qpos, qvel
    mujoco.mj_forward(model, data)
    mass = mass_matrix(model, data)
    rows = data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
    return dict(
        qpos=qpos,
        qvel=qvel,
        mass=mass,
        bias=data.qfrc_bias,
        passive=data.qfrc_passive + data.qfrc_actuator,
        position=data.xpos[1:],
        rotation=data.xmat[1:],
        centre=data.xipos[1:],
        equality=data.efc_pos[rows],
    )


def mass_matrix(model, data):
    """Column by column, which every version of MuJoCo has."""
    import mujoco

    columns = np.zeros((model.nv, model.nv))
    for unit, column in zip(np.eye(model.nv), columns, strict=True):
        mujoco.mj_mulM(model, data, column, unit)
    return columns.T


def reference(name):
    model, rng = model_of(name), np.random.default_rng(SEED)
    bodies = [model.body(i).name for i in range(1, model.nbody)]
    joints = [
        dict(
            name=model.joint(i).name,
            kind={_HINGE: "hinge", _SLIDE: "slide", _BALL: "ball", _FREE: "free"}[int(model.jnt_type[i])],
            body=model.body(model.jnt_bodyid[i]).name,
            parent=model.body(model.body_parentid[model.jnt_bodyid[i]]).name,
            qpos=int(model.jnt_qposadr[i]),
            ref=float(model.qpos0[model.jnt_qposadr[i]]) if model.jnt_type[i] in (_HINGE, _SLIDE) else 0.0,
        )
        for i in range(model.njnt)
    ]
    equalities = [model.eq(i).name for i in range(model.neq) if model.eq_active0[i]]
    states = [at_state(model, *random_state(model, rng)) for _ in range(STATES)]
    return dict(bodies=bodies, masses=model.body_mass[1:], joints=joints, equalities=equalities, states=states)


# -- motion -----------------------------------------------------------------------------------------------------------
def acceleration(model, data, qpos, qvel, held):
    """MuJoCo's, with equality constraints exact: M a + J^T l = f, J a = -dJ/dt v, by a difference along the motion."""
    import mujoco

    data.qpos, data.qvel = qpos, qvel
    mujoco.mj_forward(model, data)
    f = data.qfrc_passive + data.qfrc_actuator - data.qfrc_bias
    mass = mass_matrix(model, data)
    if not held:
        return np.linalg.solve(mass, f)

    def rows(along):
        moved = qpos.copy()
        mujoco.mj_integratePos(model, moved, qvel, along)
        data.qpos, data.qvel = moved, qvel
        mujoco.mj_forward(model, data)
        count = int((data.efc_type == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)).sum())
        return data.efc_J.reshape(-1, model.nv)[:count].copy(), data.efc_pos[:count].copy()

    J, gap = rows(0.0)
    step = 1e-3
    slopes = [(rows(c * step)[0] - rows(-c * step)[0]) / (2 * c * step) for c in (1, 2, 3)]
    turning = (15 * slopes[0] - 6 * slopes[1] + slopes[2]) / 10  # of sixth order
    # what integration adds to the gap is taken away again
    right = -turning @ qvel - 40 * J @ qvel - 400 * gap
    matrix = np.block([[mass, J.T], [J, np.zeros((len(J), len(J)))]])
    return np.linalg.solve(matrix, np.concatenate([f, right]))[: model.nv]


def motion(name, qvel, times, held, qpos=None):
    """Coordinates of joints, and centres of bodies, at some times, by default from the reference pose."""
    import mujoco
    from scipy.integrate import solve_ivp

    model = model_of(name)
    data = mujoco.MjData(model)
    nq = model.nq

    def rate(t, y):
        qpos, v = y[:nq].copy(), y[nq:]
        # the rate of the position, by the map from velocities
        moved = qpos.copy()
        for kind, at, dof in zip(model.jnt_type, model.jnt_qposadr, model.jnt_dofadr, strict=True):
            if kind in (_HINGE, _SLIDE):
                moved[at] = v[dof]
            else:
                if kind == _FREE:
                    moved[at : at + 3] = v[dof : dof + 3]
                    at, dof = at + 3, dof + 3
                turn = np.zeros(4)
                mujoco.mju_mulQuat(turn, qpos[at : at + 4], np.append(0.0, v[dof : dof + 3]))  # in the body's axes
                moved[at : at + 4] = turn / 2
        return np.concatenate([moved, acceleration(model, data, qpos, v, held)])

    begin = np.concatenate([model.qpos0 if qpos is None else qpos, qvel])
    found = solve_ivp(rate, (0, times[-1]), begin, "DOP853", t_eval=times, rtol=1e-12, atol=1e-12)
    rows = []
    for y in found.y.T:
        data.qpos, data.qvel = y[:nq], y[nq:]
        mujoco.mj_forward(model, data)
        rows.append(dict(qpos=y[:nq], qvel=y[nq:], centre=data.xipos[1:].copy()))
    return dict(times=times, start=list(qvel), rows=rows)


def four_bar_start():
    """Velocities that the closed loop allows: the crank turns with 2 rad/s."""
    import mujoco

    model = model_of("four_bar.xml")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    J = data.efc_J.reshape(-1, model.nv)[:3]
    mass = mass_matrix(model, data)
    # of least kinetic energy, as livens starts
    rows = np.vstack([J, np.eye(1, model.nv)])
    root = np.linalg.inv(np.linalg.cholesky(mass)).T
    return root @ np.linalg.lstsq(rows @ root, np.array([0, 0, 0, 2.0]), rcond=None)[0]


# -- meshes -----------------------------------------------------------------------------------------------------------
def write_meshes():
    """Coordinates are halves and quarters: MuJoCo keeps them in single precision."""
    points = np.array([[x, y, z] for x in (0, 0.5) for y in (0, 0.25) for z in (0, 0.25)])
    points[7] = [0.5, 0.25, 0.125]
    points[6], points[5] = [0.5, 0.25, 0.0], [0.5, 0.0, 0.125]
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = [(a, b, c) for a, b, c, _ in quads] + [(a, c, d) for a, _, c, d in quads]
    raw = bytes(80) + struct.pack("<I", len(faces))
    for face in faces:
        raw += struct.pack("<12fH", 0, 0, 0, *points[list(face)].ravel(), 0)
    (FOLDER / "meshes" / "wedge.stl").write_bytes(raw)
    outline = np.array([[0, 0], [1, 0], [1, 0.25], [0.25, 0.25], [0.25, 1], [0, 1]])  # an L, which is not convex
    lines = ["# an L of unit size", *(f"v {x} {y} {z}" for z in (0, 0.5) for x, y in outline)]
    lines += [f"f {i + 1} {(i + 1) % 6 + 1} {(i + 1) % 6 + 7} {i + 7}" for i in range(6)]
    lines += ["f 4 3 2 1", "f 6 5 4 1", "f 7 8 9 10", "f 7 10 11 12"]
    (FOLDER / "meshes" / "hook.obj").write_text("\n".join(lines) + "\n", encoding="utf-8")


def plain(value):
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return np.asarray(value).tolist() if isinstance(value, np.ndarray) else value


def main():
    import mujoco

    write_meshes()
    found = {"origin": f"MuJoCo {mujoco.__version__}, by make_references.py"}
    found |= {name: reference(name) for name in FILES}
    times = [0.0, 0.125, 0.25]
    found["arm.urdf"]["motion"] = motion("arm.urdf", np.array([1.0, -0.5, 2.0, 1.5]), times, held=False)
    found["walker.xml"]["motion"] = motion("walker.xml", np.zeros(12), times, held=False)
    found["gripper.urdf"]["motion"] = motion(  # the wheel starts where it belongs
        "gripper.urdf", np.array([0.5, 1, 0.1, 0.1, -2]), times, held=True, qpos=np.array([0, 0, 0, 0, 0.4])
    )
    found["four_bar.xml"]["motion"] = motion("four_bar.xml", four_bar_start(), times, held=True)
    (FOLDER / "references.json").write_text(json.dumps(plain(found)), encoding="utf-8")


if __name__ == "__main__":
    main()
