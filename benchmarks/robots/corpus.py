"""Load the robot files of other packages: how many of those that Pinocchio and MuJoCo simulate does livens load?

    python benchmarks/robots/corpus.py [--only PATTERN] [--compare] [--out FILE] [--folder FOLDER]

Files are read from the installed packages `example-robot-data`, `gymnasium`, `dm_control`, `robosuite`, `brax`,
`pybullet` and `rtb-data`, as far as they are there, and from `--folder`, into which their wheels are unpacked, as by
`pip install --no-deps --target`; it comes first. A URDF counts if Pinocchio reads it and its mass matrix is regular;
an MJCF counts if MuJoCo compiles it and it has degrees of freedom. A file loads if livens reads it with all that
changes the motion; `inertia="balance"` is used for inertia tensors that no body can have. "lenient" counts files that
load with `strict=False` as well, which ignores some content and lists it in `import_warnings`. On a busy machine, set
`OPENBLAS_NUM_THREADS=1`: processor time limits the loading of a file.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import importlib.util
import json
import re
import signal
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import scipy.linalg

import livens as lv

#: Packages, and folders of their files relative to the folder of site-packages.
PACKAGES = {
    "example-robot-data": "cmeel.prefix/share/example-robot-data/robots",
    "gymnasium": "gymnasium/envs/mujoco/assets",
    "dm_control": "dm_control",
    "robosuite": "robosuite/models/assets",
    "brax": "brax",
    "pybullet": "pybullet_data",
    "rtb-data": "rtbdata",
}
#: Processor seconds after which a file counts as not loaded.
TIME_LIMIT = 60
#: Number of bodies up to which accelerations are compared: the equations are dense here.
MAX_COMPARED_BODIES = 130


def site_packages() -> Path:
    """Return the folder of installed packages."""
    spec = importlib.util.find_spec("numpy")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parents[1]


def files(roots: Sequence[Path]) -> Iterator[tuple[str, Path]]:
    """Iterate over the URDF and XML files of all packages, each in the first folder that contains it."""
    for package, folder in PACKAGES.items():
        root = next((root for root in roots if (root / folder).is_dir()), None)
        for path in [] if root is None else sorted((root / folder).rglob("*")):
            if path.suffix in (".urdf", ".xml") and path.is_file():
                yield package, path


def reference_moves(path: Path) -> bool:
    """Return True if Pinocchio or MuJoCo can simulate a file."""
    if path.suffix == ".urdf":
        import pinocchio

        model = pinocchio.buildModelFromUrdf(str(path))
        if not model.nv:
            return False
        M = pinocchio.crba(model, model.createData(), pinocchio.neutral(model))
        M = np.triu(M) + np.triu(M, 1).T
        return bool(np.linalg.eigvalsh(M)[0] > 1e-10 * np.linalg.eigvalsh(M)[-1])
    import mujoco

    if "<mujoco" not in path.read_text(errors="replace"):
        return False
    return bool(mujoco.MjModel.from_xml_path(str(path)).nv)


def load(path: Path, strict: bool = True) -> lv.Multibody:
    """Read a file with livens."""
    read = lv.Multibody.from_urdf if path.suffix == ".urdf" else lv.Multibody.from_mjcf
    return read(path, inertia="balance", strict=strict)


def accelerations(mb: lv.Multibody, q: np.ndarray, v: np.ndarray, urdf: bool) -> dict[str, np.ndarray]:
    """Return the accelerations of the link frames, without friction of joints, and for URDF without damping."""
    from livens.models.equations_of_motion import equations_of_motion

    system = mb.system
    removed = {
        name: 0.0
        for name in system.parameters
        if re.search(r" friction.(level|static)$", name) or (urdf and name.endswith(" damper.viscosity"))
    }
    k, view = system.parameter_vector(removed), equations_of_motion(system)
    matrix, rhs = (np.asarray(view.evaluator(part)(q, v, 0.0, k)[0]) for part in view.kkt_system)
    a = _accelerations(matrix, rhs.ravel())
    index = {name: i for i, name in enumerate(system.coordinates)}
    frames = {}
    for name, body in mb.bodies.items():
        part = a[[index[str(c)] for c in body.coordinates]]
        if "origin" in body.markers and part.size == 12:
            frames[name] = part[:3] + body.markers["origin"].local_position @ part[3:].reshape(3, 3)
    return frames


def _accelerations(matrix: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """Return the solution of a symmetric system, by least squares if it is singular (redundant constraints)."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", scipy.linalg.LinAlgWarning)
        try:
            return np.asarray(scipy.linalg.solve(matrix, rhs, assume_a="sym"))
        except (scipy.linalg.LinAlgWarning, np.linalg.LinAlgError):
            return np.asarray(scipy.linalg.lstsq(matrix, rhs, lapack_driver="gelsy", cond=1e-14)[0])


def _replace_principal_axes(path: Path, model: Any) -> None:
    """Replace moments and principal axes of inertia of a MuJoCo model by those of the tensors that livens reads.

    The axes that MuJoCo computes for meshes are exact to about 1e-8 only; the moments agree to round-off.
    """
    import mujoco

    from livens.multibody.imports.mjcf import read_mjcf

    for name, link in read_mjcf(path, strict=False).links.items():
        number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, name)
        if number >= 0 and link.mass is not None:
            moments, axes = np.linalg.eigh(link.mass.tensor)
            axes[:, 2] *= np.linalg.det(axes)
            before = np.sort(model.body_inertia[number])
            if np.abs(before - moments).max() < 1e-7 * moments.max():
                model.body_inertia[number] = moments
                mujoco.mju_mat2Quat(model.body_iquat[number], axes.ravel())


def compare(path: Path, mb: lv.Multibody, rng: np.random.Generator, exact_axes: bool = False) -> float | str:
    """Return the largest relative difference of accelerations at random joint positions and rates.

    With `exact_axes`, the reference has the principal axes of inertia of livens. Bases and ball joints of MJCF files
    are compared in motion as well. Models with closed loops are compared at rest, at the position of the file.
    """
    if len(mb.bodies) > MAX_COMPARED_BODIES:
        return "large"
    joints = {name: joint for name, joint in mb.joints.items() if not name.endswith(" bearing")}
    joints |= mb.joint_coordinates
    scalar = {name: joint for name, joint in joints.items() if joint.joint_type.angle or joint.joint_type.slide}
    followers = {joint for coupling in mb.couplings.values() for joint, _, _ in coupling.terms[1:]}
    model, at_rest = None, False
    if path.suffix != ".urdf":
        import mujoco

        model = mujoco.MjModel.from_xml_path(str(path))
        loops = {int(mujoco.mjtEq.mjEQ_CONNECT), int(mujoco.mjtEq.mjEQ_WELD)}
        at_rest = bool(loops & set(model.eq_type[model.eq_active0 == 1].tolist()))
    drives = set(mb.system.quantities)
    hung = {joint.body_b.name for joint in mb.connections.values()}
    free = [body for name, body in mb.bodies.items() if name not in hung and not name.endswith(" rotor")]
    for body in free:
        size = 0.0 if at_rest else 1.0
        mb.initial(body, velocity=size * rng.normal(size=3), omega=size * rng.normal(size=3), required=False)
    for name, joint in scalar.items():
        if joint in followers or (not at_rest and f"{name} drive" in drives):
            continue
        position = 0.0 if at_rest else 0.3 * rng.normal()
        rate = 0.0 if at_rest else rng.normal()
        with contextlib.suppress(lv.LivensError):  # a second target of a joint that another one determines
            if joint.joint_type.angle:
                mb.initial(joint, angle=position, rate=rate)
            else:
                mb.initial(joint, position=0.1 * position, velocity=rate)
    q, v = mb.initial_state
    index = {name: i for i, name in enumerate(mb.system.coordinates)}
    state: dict[str, tuple[float, float]] = {}
    for name, joint in scalar.items():
        rows = [index[str(c)] for c in joint.coordinates]
        if joint.joint_type.angle:
            state[name] = float(joint.angle(q[rows])), float(joint.angle_rate(q[rows], v[rows]))
        else:
            state[name] = float(joint.displacement(q[rows])), float(joint.displacement_rate(q[rows], v[rows]))
    if model is not None and exact_axes:
        _replace_principal_axes(path, model)
    reference = _pinocchio(path, state) if model is None else _mujoco(model, state, _link_motions(mb, q, v))
    ours = accelerations(mb, q, v, urdf=model is None)
    common = [name for name in ours if name in reference]
    if not common:
        return "no common frames"
    scale = max([1.0, *(float(np.abs(reference[name]).max()) for name in common)])  # in m/s^2
    return max(float(np.abs(ours[name] - reference[name]).max()) / scale for name in common)


def _link_motions(mb: lv.Multibody, q: np.ndarray, v: np.ndarray) -> dict[str, tuple[np.ndarray, ...]]:
    """Return position, rotation, velocity and angular velocity of the frames of links, in space."""
    index = {name: i for i, name in enumerate(mb.system.coordinates)}
    motions: dict[str, tuple[np.ndarray, ...]] = {}
    for body in mb.bodies.values():
        part = [index[str(c)] for c in body.coordinates]
        if len(part) != 12:
            continue
        (x, D), (x_dot, D_dot) = ((z[part[:3]], z[part[3:]].reshape(3, 3).T) for z in (q, v))
        spin = D_dot @ D.T
        omega = np.array([spin[2, 1], spin[0, 2], spin[1, 0]])
        for name, marker in body.markers.items():
            X = marker.local_position
            motions[body.name if name == "origin" else name] = x + D @ X, D @ marker.axes, x_dot + D_dot @ X, omega
    return motions


def _solve(M: np.ndarray, force: np.ndarray, J: np.ndarray) -> np.ndarray:
    """Return the accelerations of ``M a = force`` under the constraints ``J a = 0``."""
    n = len(force)
    matrix = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
    a = scipy.linalg.lstsq(matrix, np.concatenate([force, np.zeros(len(J))]), lapack_driver="gelsy", cond=1e-14)[0]
    return np.asarray(a[:n])


def _pinocchio(path: Path, state: dict[str, tuple[float, float]]) -> dict[str, np.ndarray]:
    import pinocchio as pin

    model = pin.buildModelFromUrdf(str(path))
    data, q, v = model.createData(), pin.neutral(model), np.zeros(model.nv)
    entry: dict[str, int] = {}
    dotted = {name.replace(".", "_"): name for name in model.names}  # names have no dots in livens
    for name, (position, rate) in state.items():
        name = dotted.get(name, name)
        name = name.removesuffix(" joint") if not model.existJointName(name) else name
        if not model.existJointName(name):
            continue
        joint = model.joints[model.getJointId(name)]
        if joint.nv == 1:
            entry[name], v[joint.idx_v] = joint.idx_v, rate
            q[joint.idx_q : joint.idx_q + joint.nq] = (
                position if joint.nq == 1 else [np.cos(position), np.sin(position)]
            )
    rows = []
    for node in ElementTree.fromstring(path.read_bytes().lstrip()).iter("joint"):
        mimic = node.find("mimic")
        if mimic is not None and node.get("name") in entry and mimic.get("joint") in entry:
            row = np.zeros(model.nv)
            row[entry[node.get("name", "")]] = 1.0
            row[entry[mimic.get("joint", "")]] -= float(mimic.get("multiplier", "1"))
            rows.append(row)
    M = pin.crba(model, data, q)
    M = np.triu(M) + np.triu(M, 1).T - np.diag(model.armature)
    a = _solve(M, -pin.nle(model, data, q, v), np.array(rows).reshape(len(rows), model.nv))
    pin.forwardKinematics(model, data, q, v, a)
    return {
        frame.name.replace(".", "_"): np.array(
            pin.getFrameClassicalAcceleration(model, data, i, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED).linear
        )
        for i, frame in enumerate(model.frames)
        if frame.type == pin.FrameType.BODY
    }


def _mujoco(
    model: Any, state: dict[str, tuple[float, float]], motions: dict[str, tuple[np.ndarray, ...]]
) -> dict[str, np.ndarray]:
    import mujoco

    bits = mujoco.mjtDisableBit
    model.opt.disableflags |= bits.mjDSBL_CONTACT | bits.mjDSBL_LIMIT | bits.mjDSBL_FRICTIONLOSS
    data = mujoco.MjData(model)
    several: list[tuple[int, int, int, int]] = []
    for joint in range(model.njnt):
        body = model.body(model.jnt_bodyid[joint])
        number = joint - int(body.jntadr[0])
        name = model.joint(joint).name or f"{body.name}_joint" + (f"_{number + 1}" if number else "")
        renamed = (name, f"{name} joint", f"{name} joint 2")  # names of bodies and composite joints come first
        name = next((candidate for candidate in renamed if candidate in state), name)
        at, dof, kind = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint]), int(model.jnt_type[joint])
        if kind < int(mujoco.mjtJoint.mjJNT_SLIDE):
            several.append((kind, int(body.id), at, dof))
        elif name in state:
            data.qpos[at] += state[name][0]
            data.qvel[dof] = state[name][1]
    for kind, number, at, dof in several:
        name = model.body(number).name or f"body {number}"
        if name not in motions:
            continue
        position, rotation, velocity, omega = motions[name]
        parent_rotation, parent_omega = np.eye(3), np.zeros(3)
        if kind == int(mujoco.mjtJoint.mjJNT_FREE):
            data.qpos[at : at + 3], data.qvel[dof : dof + 3] = position, velocity
            at, dof = at + 3, dof + 3
        else:
            parent = model.body(model.body_parentid[number]).name
            turned, quaternion = np.zeros(9), model.body_quat[number]
            mujoco.mju_quat2Mat(turned, quaternion)
            parent_rotation = turned.reshape(3, 3)
            if parent in motions:
                parent_rotation, parent_omega = motions[parent][1] @ parent_rotation, motions[parent][3]
        relative = np.zeros(4)
        mujoco.mju_mat2Quat(relative, (parent_rotation.T @ rotation).ravel())
        data.qpos[at : at + 4], data.qvel[dof : dof + 3] = relative, rotation.T @ (omega - parent_omega)
    mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    J = np.zeros((data.nefc, model.nv))
    if data.nefc:
        J = np.array(data.efc_J).reshape(data.nefc, -1)
        if J.shape[1] != model.nv:
            model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
            mujoco.mj_forward(model, data)
            J = np.array(data.efc_J).reshape(data.nefc, model.nv)
    data.qacc[:] = _solve(M, data.qfrc_smooth, J)
    mujoco.mj_rnePostConstraint(model, data)
    found, out = {}, np.zeros(6)
    weightless = model.opt.disableflags & int(bits.mjDSBL_GRAVITY)
    for i in range(1, model.nbody):
        mujoco.mj_objectAcceleration(model, data, mujoco.mjtObj.mjOBJ_XBODY, i, out, 0)
        found[model.body(i).name or f"body {i}"] = out[3:] + (0.0 if weightless else model.opt.gravity)
    return found


def _expired(*_: Any) -> None:
    raise TimeoutError(f"more than {TIME_LIMIT} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="regular expression of paths")
    parser.add_argument("--compare", action="store_true", help="compare accelerations as well")
    parser.add_argument("--out", default="", help="file for one JSON line per model")
    parser.add_argument("--folder", type=Path, help="folder of unpacked wheels")
    options = parser.parse_args()
    counts: dict[tuple[str, str], list[int]] = collections.defaultdict(lambda: [0, 0, 0])
    reasons: collections.Counter[str] = collections.Counter()
    examples: dict[str, str] = {}
    signal.signal(signal.SIGVTALRM, _expired)
    differences, named = dict[str, float](), list[str]()
    inexact_axes: dict[str, float] = {}
    uncompared: dict[str, list[str]] = collections.defaultdict(list)
    if options.out:
        Path(options.out).write_text("")
    roots = [*([options.folder.resolve()] if options.folder else []), site_packages()]
    for package, path in files(roots):
        if not re.search(options.only, str(path)):
            continue
        label = next(str(path.relative_to(root)) for root in roots if path.is_relative_to(root))
        try:
            if not reference_moves(path):
                continue
        except Exception:  # the reference cannot simulate the file: it does not count
            continue
        count = counts[package, path.suffix[1:]]
        count[0] += 1
        signal.setitimer(signal.ITIMER_VIRTUAL, TIME_LIMIT)
        started, error = time.process_time(), ""
        difference: float | str = ""
        try:
            mb = load(path)
            count[1] += 1
            count[2] += 1
        except (lv.LivensError, TimeoutError) as problem:
            error = str(problem)
            with contextlib.suppress(lv.LivensError, TimeoutError):
                load(path, strict=False)
                count[2] += 1
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        if options.compare and not error:
            signal.setitimer(signal.ITIMER_VIRTUAL, TIME_LIMIT)
            try:
                difference = compare(path, mb, np.random.default_rng(1))
                if isinstance(difference, float) and difference >= 1e-9 and path.suffix == ".xml":
                    exact = compare(path, load(path), np.random.default_rng(1), exact_axes=True)
                    has_note = any("principal axes" in note for note in mb.import_warnings)
                    if isinstance(exact, float) and exact < 1e-9 and has_note:
                        inexact_axes[label] = difference
                        difference = exact
            except (lv.LivensError, TimeoutError) as problem:
                difference = f"not compared: {problem}"
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        seconds = time.process_time() - started
        line = dict(package=package, path=str(path), error=error, difference=difference, seconds=seconds)
        if options.out:
            with Path(options.out).open("a") as out:
                out.write(json.dumps(line) + "\n")
        notes = " ".join(mb.import_warnings) if not error else ""
        balanced = "mean moments" in notes or "legacy method" in notes
        if isinstance(difference, float) and difference >= 1e-9 and balanced:
            named.append(label)
        elif isinstance(difference, float):
            differences[label] = difference
        elif difference:
            uncompared[f"{difference[:90]}"].append(label)
        if error:
            reason = re.sub(r"'[^']*'", "'..'", re.sub(r"[-+0-9.e]+", "#", error.partition(": ")[2]))[:110]
            reasons[f"{path.suffix[1:]} {reason}"] += 1
            examples.setdefault(f"{path.suffix[1:]} {reason}", label)
    for (package, kind), (movable, loaded, lenient) in sorted(counts.items()):
        print(f"{package:20} {kind:5} {loaded:4} of {movable:4}, lenient {lenient}")
    for kind in ("urdf", "xml"):
        movable, loaded, lenient = np.sum(
            [[0, 0, 0], *(c for (_, suffix), c in counts.items() if suffix == kind)], axis=0
        )
        print(
            f"{'all':20} {kind:5} {loaded:4} of {movable:4} ({100 * loaded / max(movable, 1):.0f} %), lenient {lenient}"
        )
    if differences:
        values = np.array(sorted(differences.values()))
        print(
            f"accelerations of {values.size} models: median {np.median(values):.0e}, {(values < 1e-9).sum()} below 1e-9"
        )
        for name, value in sorted(differences.items(), key=lambda item: -item[1])[: int((values >= 1e-9).sum())]:
            print(f"     {value:.1e} {name}")
    print(f"different, as notes of the models say (inertia tensors, mesh masses): {len(named)}: {', '.join(named)}")
    for label, value in inexact_axes.items():
        print(f"{value:.1e} by the principal axes of MuJoCo, as a note of the model says; 1e-9 without: {label}")
    for reason, labels in uncompared.items():
        print(f"not compared ({reason}): {len(labels)}: {', '.join(labels)}")
    for reason, number in reasons.most_common():
        print(f"{number:4} {reason} | {examples[reason]}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
