"""Load the robot files of other packages: how many of those that Pinocchio and MuJoCo simulate does livens load?

    python benchmarks/robots/corpus.py [--only PATTERN] [--compare] [--out FILE]

Files are read from the installed packages `example-robot-data`, `gymnasium`, `dm_control`, `robosuite`, `brax`,
`pybullet` and `rtb-data`, as far as they are there. A URDF counts if Pinocchio reads it and its mass matrix is regular;
an MJCF counts if MuJoCo compiles it and it has degrees of freedom. A file loads if livens reads it with all that
changes the motion; `inertia="balance"` is used for inertia tensors that no body can have. "lenient" counts files that
load with `strict=False` as well, which ignores some content and lists it in `import_warnings`.
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
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

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
MAX_COMPARED_BODIES = 16


def site_packages() -> Path:
    """Return the folder of installed packages."""
    spec = importlib.util.find_spec("numpy")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parents[1]


def files() -> Iterator[tuple[str, Path]]:
    """Iterate over the URDF and XML files of all packages."""
    for package, folder in PACKAGES.items():
        for path in sorted((site_packages() / folder).rglob("*")):
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


def accelerations(mb: lv.Multibody) -> dict[str, np.ndarray]:
    """Return the accelerations of the link frames at the initial state, without damping and friction of joints."""
    from livens.models.equations_of_motion import equations_of_motion

    system, (q, v) = mb.system, mb.initial_state
    removed = {name: 0.0 for name in system.parameters if name.endswith((".viscosity", ".level", ".static"))}
    k, view = system.parameter_vector(removed), equations_of_motion(system)
    matrix, rhs = (np.asarray(view.evaluator(part)(q, v, 0.0, k)[0]) for part in view.kkt_system)
    a = np.linalg.lstsq(matrix, rhs.ravel(), rcond=None)[0]
    index = {name: i for i, name in enumerate(system.coordinates)}
    frames = {}
    for name, body in mb.bodies.items():
        part = a[[index[str(c)] for c in body.coordinates]]
        if "origin" in body.markers and part.size == 12:
            frames[name] = part[:3] + body.markers["origin"].local_position @ part[3:].reshape(3, 3)
    return frames


def compare(path: Path, mb: lv.Multibody, rng: np.random.Generator) -> float | str:
    """Return the largest relative difference of accelerations at random joint rates, or why there is none."""
    if mb.couplings and any(not name.endswith(" armature") for name in mb.couplings):
        return "couplings"
    if len(mb.bodies) > MAX_COMPARED_BODIES:
        return "large"
    scalar = {name: joint for name, joint in mb.joints.items() if not name.endswith(" bearing")}
    if not all(joint.joint_type.angle or joint.joint_type.slide for joint in scalar.values()):
        return "joints without a single coordinate"
    rates = {name: float(rate) for name, rate in zip(scalar, rng.normal(size=len(scalar)), strict=True)}
    for name, joint in scalar.items():
        target: dict[str, Any] = {"rate" if joint.joint_type.angle else "velocity": rates[name]}
        mb.initial(joint, **target)
    reference = _pinocchio(path, rates) if path.suffix == ".urdf" else _mujoco(path, rates)
    if isinstance(reference, str):
        return reference
    ours = accelerations(mb)
    common = [name for name in ours if name in reference]
    scale = max([1.0, *(float(np.abs(reference[name]).max()) for name in common)])  # in m/s^2
    return max((float(np.abs(ours[name] - reference[name]).max()) / scale for name in common), default=0.0)


def _pinocchio(path: Path, rates: dict[str, float]) -> dict[str, np.ndarray] | str:
    import pinocchio as pin

    model = pin.buildModelFromUrdf(str(path))
    data, q, v = model.createData(), pin.neutral(model), np.zeros(model.nv)
    if any(joint.nv != 1 for joint in list(model.joints)[1:]) or model.nv != len(rates):
        return "joints without a single coordinate"
    if not all(model.existJointName(name) for name in rates):
        return "renamed joints"
    for name, rate in rates.items():
        v[model.joints[model.getJointId(name)].idx_v] = rate
    model.armature[:] = 0.0
    a = pin.aba(model, data, q, v, np.zeros(model.nv))
    pin.forwardKinematics(model, data, q, v, a)
    return {
        frame.name: np.array(
            pin.getFrameClassicalAcceleration(model, data, i, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED).linear
        )
        for i, frame in enumerate(model.frames)
        if frame.type == pin.FrameType.BODY
    }


def _mujoco(path: Path, rates: dict[str, float]) -> dict[str, np.ndarray] | str:
    import mujoco

    model = mujoco.MjModel.from_xml_path(str(path))
    if model.nv != len(rates) or model.neq or model.ntendon:
        return "free joints, equalities or tendons"
    bits = mujoco.mjtDisableBit
    model.opt.disableflags |= bits.mjDSBL_CONSTRAINT
    model.dof_damping[:] = 0.0
    data = mujoco.MjData(model)
    for name, rate in rates.items():
        joint = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, name)
        if joint < 0:
            return "unnamed joints"
        data.qvel[model.jnt_dofadr[joint]] = rate
    mujoco.mj_forward(model, data)
    mujoco.mj_rnePostConstraint(model, data)
    found, out = {}, np.zeros(6)
    for i in range(1, model.nbody):
        mujoco.mj_objectAcceleration(model, data, mujoco.mjtObj.mjOBJ_XBODY, i, out, 0)
        found[model.body(i).name] = out[3:] + model.opt.gravity
    return found


def _expired(*_: Any) -> None:
    raise TimeoutError(f"more than {TIME_LIMIT} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="regular expression of paths")
    parser.add_argument("--compare", action="store_true", help="compare accelerations as well")
    parser.add_argument("--out", default="", help="file for one JSON line per model")
    options = parser.parse_args()
    counts: dict[tuple[str, str], list[int]] = collections.defaultdict(lambda: [0, 0, 0])
    reasons: collections.Counter[str] = collections.Counter()
    examples: dict[str, str] = {}
    signal.signal(signal.SIGVTALRM, _expired)
    lines, differences = [], dict[str, float]()
    for package, path in files():
        if not re.search(options.only, str(path)):
            continue
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
            if options.compare:
                difference = compare(path, mb, np.random.default_rng(1))
        except (lv.LivensError, TimeoutError) as problem:
            error = str(problem)
            with contextlib.suppress(lv.LivensError, TimeoutError):
                load(path, strict=False)
                count[2] += 1
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        lines.append(
            json.dumps(
                dict(
                    package=package,
                    path=str(path),
                    error=error,
                    difference=difference,
                    seconds=time.process_time() - started,
                )
            )
        )
        if isinstance(difference, float):
            differences[str(path.relative_to(site_packages()))] = difference
        if error:
            reason = re.sub(r"'[^']*'", "'..'", re.sub(r"[-+0-9.e]+", "#", error.partition(": ")[2]))[:110]
            reasons[f"{path.suffix[1:]} {reason}"] += 1
            examples.setdefault(f"{path.suffix[1:]} {reason}", str(path.relative_to(site_packages())))
    if options.out:
        Path(options.out).write_text("\n".join(lines) + "\n")
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
    for reason, number in reasons.most_common():
        print(f"{number:4} {reason} | {examples[reason]}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
