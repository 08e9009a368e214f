"""Steps of robots, chains and a satellite in the tree tier beside MuJoCo, interleaved in one process; processor time.

Set ``OMP_NUM_THREADS=1``: processor time contains that of threads of numerical libraries.
Robots move smoothly from rest. The lively robot has motor torques that jump every 10 ms, and dampers.
"""

from __future__ import annotations

import importlib
import math
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

import livens as lv
from benchmarks.robots import cassie

#: Step size in seconds, steps per measurement, and rounds; more rounds for mechanisms of at most `_SMALL` bodies.
_H, _STEPS, _ROUNDS, _SMALL = 1e-3, 1000, 6, 40
#: Members of an ensemble; members in lanes do not depend on their number.
_MEMBERS = 32
#: Robots of the package `example-robot-data`: description file, and whether the base floats.
_ROBOTS = {
    "UR5": ("ur_description/urdf/ur5_robot.urdf", False),
    "Solo12": ("solo_description/robots/solo12.urdf", True),
    "G1": ("g1_description/urdf/g1_29dof_rev_1_0.urdf", True),
}
_CHAINS = (20, 100, 300)
#: Armature of the joints of the arm in kg m^2; amplitude of the torques, in N m, and damping of the lively robot.
_ARMATURE, _TORQUE, _DAMPING, _PERIOD = 0.4, 1.0, 0.1, 0.02
#: Satellite: moments of inertia, wheel inertia and rate, angular velocity of the bus, step size, and end time.
_BUS, _WHEEL, _WHEEL_RATE, _OMEGA, _WHEEL_H, _WHEEL_END = (
    (20.0, 25.0, 30.0), 0.05, 100 * math.pi, (0.02, -0.01, 0.03), 0.01, 60.0,
)  # fmt: skip
_LENGTH, _MASS, _RADIUS = 0.1, 0.1, 0.01


def robot_folder() -> Path | None:
    """Return the folder of the robot descriptions, or None if `example-robot-data` is not installed."""
    roots = [Path(entry) / "cmeel.prefix/share/example-robot-data/robots" for entry in sys.path]
    return next((root for root in roots if root.exists()), None)


def chain(n: int) -> lv.Multibody:
    """Return a chain of rods with hinges about alternating axes."""
    mb, before = lv.Multibody(gravity=[0, 0, -9.81]), None
    for i in range(n):
        rod = mb.rod(f"rod{i}", a=[_LENGTH * i, 0, 0], b=[_LENGTH * (i + 1), 0, 0], mass=_MASS, radius=_RADIUS)
        mb.revolute(f"hinge{i}", before or mb.ground, rod, at=rod.a, axis="yz"[i % 2])
        before = rod
    return mb


def robot(path: Path, floating: bool) -> tuple[lv.Multibody, dict[str, float]]:
    """Return a robot and the parameters that disable its friction and damping."""
    mb = lv.Multibody.from_urdf(path, base="floating" if floating else "fixed")
    suffixes = (" friction.level", " friction.static", " damper.viscosity")
    return mb, {name: 0.0 for name in mb.system.parameters if name.endswith(suffixes)}


def frictionless_robot(path: Path, floating: bool) -> lv.Multibody:
    """Return a robot without shapes, joint friction and joint damping, as `mujoco_model` has it."""
    text = re.sub(r"<dynamics\b[^>]*/>|<mujoco>.*?</mujoco>", "", robot_without_meshes(path), flags=re.S)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / path.name
        file.write_text(text, encoding="utf-8")
        return lv.Multibody.from_urdf(file, base="floating" if floating else "fixed")


def add_armatures(mb: lv.Multibody, model: Any) -> None:
    """Add an armature to all joints, in both codes."""
    for joint in mb.joints.values():
        if joint.joint_type.angle:
            mb.armature(joint, inertia=_ARMATURE)
    if model is not None:
        model.dof_armature[:] = _ARMATURE


def add_motors(mb: lv.Multibody, model: Any) -> Any:
    """Add motors and dampers to all joints; return the torques of MuJoCo as a function of time."""
    names = [name for name, joint in mb.joints.items() if joint.joint_type.angle]
    sizes = {name: _TORQUE * math.cos(2 * math.pi * 0.618 * i) for i, name in enumerate(names)}

    def law(t: Any, k: Any) -> Any:
        return k.size * lv.math.sign(lv.math.sin(2 * math.pi / _PERIOD * (t + 1e-6)))

    for name in names:
        parameters = dict(size=np.array(sizes[name]))
        mb.motor(mb.joints[name], torque=law, parameters=parameters, name=f"{name} lively motor")
        mb.torsion_damper(f"{name} lively damper", mb.joints[name], damping=_DAMPING)
    if model is None:
        return None
    dofs = [model.jnt_dofadr[model.joint(name).id] for name in names]
    model.dof_damping[dofs] = _DAMPING

    def torques(data: Any) -> None:
        sign = math.copysign(1.0, math.sin(2 * math.pi / _PERIOD * (data.time + 1e-6)))
        data.qfrc_applied[dofs] = [sign * sizes[name] for name in names]

    return torques


def chain_mjcf(n: int) -> str:
    """Return the chain as MJCF."""
    across = _MASS * (3 * _RADIUS**2 + _LENGTH**2) / 12
    bodies = "".join(
        f"<body pos='{_LENGTH if i else 0} 0 0'><joint type='hinge' axis='{'0 0 1' if i % 2 else '0 1 0'}'/>"
        f"<inertial pos='{_LENGTH / 2} 0 0' mass='{_MASS}' diaginertia='{_MASS * _RADIUS**2 / 2} {across} {across}'/>"
        for i in range(n)
    )
    return f"<mujoco><worldbody>{bodies}{'</body>' * n}</worldbody></mujoco>"


def robot_without_meshes(path: Path) -> str:
    """Return a robot description without shapes, with compiler options for MuJoCo."""
    text = re.sub(r"<(visual|collision|mujoco)\b.*?</\1>", "", path.read_text(encoding="utf-8"), flags=re.S)
    text = re.sub(r"<gazebo\b.*?(</gazebo>|/>)", "", text, flags=re.S)
    options = 'discardvisual="true" fusestatic="true" balanceinertia="true" boundmass="1e-9" boundinertia="1e-12"'
    return re.sub(r"(<robot[^>]*>)", rf"\1<mujoco><compiler {options}/></mujoco>", text, count=1)


def mujoco_model(mujoco: Any, text: str, floating: bool) -> Any:
    """Return the MuJoCo model without contacts, actuation, damping, friction and armature."""
    spec = mujoco.MjSpec.from_string(text)
    if floating and not any(joint.type == mujoco.mjtJoint.mjJNT_FREE for joint in spec.joints):
        spec.worldbody.first_body().add_freejoint()
    model = spec.compile()
    for flag in ("mjDSBL_CONSTRAINT", "mjDSBL_CONTACT", "mjDSBL_ACTUATION"):
        model.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, flag))
    model.opt.timestep = _H
    model.dof_damping[:], model.dof_frictionloss[:], model.dof_armature[:] = 0, 0, 0
    return model


def measure(mb: lv.Multibody, mujoco: Any, model: Any, torques: Any = None, n_steps: int = _STEPS) -> dict[str, float]:
    """Return the shortest times per step in microseconds of all codes, measured in turns; `torques` drive MuJoCo."""
    q, v = mb.initial_state
    step, best = lv.prepare(mb.system, "lie-em", h=_H), dict[str, float]()

    def run_time(count: int) -> float:
        start = time.process_time()
        step.run(q, v, t_end=count * _H, every=10**6)
        return time.process_time() - start

    def record(name: str, seconds: float) -> None:
        best[name] = min(best.get(name, 1e9), seconds / n_steps * 1e6)

    run_time(2)
    for _ in range(4 * _ROUNDS if len(mb.bodies) <= _SMALL else _ROUNDS):
        record("start", run_time(n_steps // 5))
        record("run", run_time(n_steps + n_steps // 5))
        for name, integrator in (("Euler", 0), ("RK4", 1)) if model is not None else ():
            model.opt.integrator = integrator
            data = mujoco.MjData(model)
            mujoco.mj_step(model, data)
            n_calls, elapsed = (1, 0.0) if torques is None else (n_steps // 10, 0.0)
            for _ in range(n_calls):
                if torques is not None:
                    torques(data)
                start = time.process_time()
                mujoco.mj_step(model, data, nstep=n_steps // n_calls)
                elapsed += time.process_time() - start
            record(name, elapsed)
    return best | dict(tree=best["run"] - best["start"])  # without the start of a run


def member_step_time(mb: lv.Multibody) -> float:
    """Return the shortest time per step of a member of an ensemble in lanes in microseconds, without the starts."""
    q, v = mb.initial_state
    speeds, best = np.tile(v, (_MEMBERS, 1)), dict[int, float]()
    for _ in range(_ROUNDS):
        for n_steps in (_STEPS // 5, 2 * _STEPS + _STEPS // 5):
            start = time.process_time()
            lv.ensemble(mb.system, q, speeds, h=_H, t_end=n_steps * _H, every=10**6, tier="tree", progress=False)
            best[n_steps] = min(best.get(n_steps, 1e9), time.process_time() - start)
    return (max(best.values()) - min(best.values())) / (2 * _STEPS * _MEMBERS) * 1e6


def satellite() -> tuple[float, float, float]:
    """Return the errors of the bus rate of a satellite with a wheel, of order two and four, and the time per step."""
    mb = lv.Multibody(gravity=None)
    bus = mb.body("bus", mass=100.0, inertia=list(_BUS))
    mb.initial(bus, omega=list(_OMEGA), velocity=[0, 0, 0])
    mb.wheel("wheel", bus, "z", _WHEEL, rate=_WHEEL_RATE)
    J, momentum = np.array(_BUS), np.array([0.0, 0.0, _WHEEL * (_WHEEL_RATE + _OMEGA[2])])

    def derivative(t: float, omega: np.ndarray) -> np.ndarray:
        # the inertia about the axis of the wheel is that of bus and wheel without the wheel
        return np.asarray(-np.cross(omega, J * omega + momentum) / J)

    exact = solve_ivp(derivative, (0, _WHEEL_END), _OMEGA, method="DOP853", rtol=1e-13, atol=1e-15, dense_output=True)
    errors, best = [], math.inf
    for scheme in ("lie-em", "suzuki-4:lie-em"):
        run = mb.simulate(t_end=_WHEEL_END, h=_WHEEL_H, scheme=scheme)
        rates = np.einsum("tij,ti->tj", run["bus.rotation"], run["bus.omega"])
        errors.append(float(np.abs(rates - exact.sol(run.t).T).max()))
    step, (q, v) = lv.prepare(mb.system, "lie-em", h=_WHEEL_H), mb.initial_state
    for _ in range(_ROUNDS):
        marks = [time.process_time()]
        for n_steps in (_STEPS, 11 * _STEPS):
            step.run(q, v, t_end=n_steps * _WHEEL_H, every=10**6)
            marks.append(time.process_time())
        best = min(best, (marks[2] - 2 * marks[1] + marks[0]) / (10 * _STEPS) * 1e6)
    return errors[0], errors[1], best


def cassie_times(mujoco: Any, folder: Path) -> dict[str, float]:
    """Return the times per step of Cassie, held by springs and dampers; MuJoCo steps the exported model."""
    mb, model = cassie.cassie(*cassie.read_file(folder / cassie.FILE), held=True), None
    if mujoco is not None:
        with tempfile.TemporaryDirectory() as work:
            file = Path(work) / "cassie.xml"
            mb.to_mjcf(file)
            model = mujoco.MjModel.from_xml_path(str(file))
        model.opt.timestep = _H
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    return measure(mb, mujoco, model, n_steps=4 * _STEPS)  # a run starts in 0.1 s


def times_of_steps() -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the name of each robot and chain, and its times per step in microseconds."""
    try:
        mujoco = importlib.import_module("mujoco")
    except ImportError:
        mujoco = None
    folder = robot_folder()
    cases: list[tuple[str, lv.Multibody, str, bool]] = []
    for robot_name, (file, floating) in (_ROBOTS if folder is not None else {}).items():
        assert folder is not None
        path = folder / file
        labels = {"UR5": ["UR5", "UR5, armature"], "G1": ["G1", "G1, lively"]}.get(robot_name, [robot_name])
        cases += [(name, frictionless_robot(path, floating), robot_without_meshes(path), floating) for name in labels]
    cases += [(f"chain of {n} hinges", chain(n), chain_mjcf(n), False) for n in _CHAINS]
    for name, mb, text, floating in cases:
        model, torques = None if mujoco is None else mujoco_model(mujoco, text, floating), None
        if "armature" in name:
            add_armatures(mb, model)
        elif "lively" in name:
            torques = add_motors(mb, model)
        times = measure(mb, mujoco, model, torques)
        yield name, times | (dict(lanes=member_step_time(mb)) if len(mb.bodies) <= _SMALL else {})
    if folder is not None and (folder / cassie.FILE).exists():
        yield "Cassie, four loops", cassie_times(mujoco, folder)


def main() -> None:
    """Print the times per step of robots and chains, alone and as members of ensembles, and errors of the satellite."""
    print(f"{'us per step, h = 1e-3':24s}{'tree':>10s}{'lanes':>10s}{'Euler':>10s}{'RK4':>10s}")
    for name, times in times_of_steps():
        columns = (times.get(code, float("nan")) for code in ("tree", "lanes", "Euler", "RK4"))
        print(f"{name:24s}" + "".join(f"{column:10.2f}" for column in columns))
    second, fourth, time_of_step = satellite()
    print(f"satellite with a wheel at 3000 rpm, h = {_WHEEL_H:g}: error of the bus rate {second:.1e} rad/s,")
    print(f"suzuki-4:lie-em {fourth:.1e} rad/s; {time_of_step:.2f} us per step of lie-em")


if __name__ == "__main__":
    main()
