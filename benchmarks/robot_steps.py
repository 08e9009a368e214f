"""Steps of robots and chains in the tree tier beside MuJoCo, interleaved in one process; processor time."""

from __future__ import annotations

import importlib
import re
import sys
import time
from pathlib import Path
from typing import Any

import livens as lv

#: Step size in seconds, steps per measurement, and rounds.
_H, _STEPS, _ROUNDS = 1e-3, 1000, 6
#: Robots of the package `example-robot-data`: description file, and whether the base floats.
_ROBOTS = {
    "UR5": ("ur_description/urdf/ur5_robot.urdf", False),
    "Solo12": ("solo_description/robots/solo12.urdf", True),
    "G1": ("g1_description/urdf/g1_29dof_rev_1_0.urdf", True),
}
_CHAINS = (20, 100, 300)
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


def measure(mb: lv.Multibody, parameters: dict[str, float], mujoco: Any, model: Any) -> dict[str, float]:
    """Return the shortest times per step in microseconds of all codes, measured in turns."""
    q, v = mb.initial_state
    step, best = lv.prepare(mb.system, "lie-em", h=_H, parameters=parameters), dict[str, float]()

    def run_time(n_steps: int) -> float:
        start = time.process_time()
        step.run(q, v, t_end=n_steps * _H, every=10**6)
        return time.process_time() - start

    def record(name: str, seconds: float) -> None:
        best[name] = min(best.get(name, 1e9), seconds / _STEPS * 1e6)

    run_time(2)
    for _ in range(_ROUNDS):
        record("start", run_time(_STEPS // 5))
        record("run", run_time(_STEPS + _STEPS // 5))
        for name, integrator in (("Euler", 0), ("RK4", 1)) if model is not None else ():
            model.opt.integrator = integrator
            data = mujoco.MjData(model)
            mujoco.mj_step(model, data)
            start = time.process_time()
            mujoco.mj_step(model, data, nstep=_STEPS)
            record(name, time.process_time() - start)
    return best | dict(tree=best["run"] - best["start"])  # without the start of a run


def main() -> None:
    """Print the times per step of all robots and chains."""
    try:
        mujoco = importlib.import_module("mujoco")
    except ImportError:
        mujoco = None
    folder = robot_folder()
    cases: list[tuple[str, lv.Multibody, dict[str, float], str, bool]] = []
    for name, (file, floating) in (_ROBOTS if folder is not None else {}).items():
        assert folder is not None
        cases.append((name, *robot(folder / file, floating), robot_without_meshes(folder / file), floating))
    cases += [(f"chain of {n} hinges", chain(n), {}, chain_mjcf(n), False) for n in _CHAINS]
    print(f"{'us per step, h = 1e-3':24s}{'tree':>10s}{'Euler':>10s}{'RK4':>10s}")
    for name, mb, parameters, text, floating in cases:
        model = None if mujoco is None else mujoco_model(mujoco, text, floating)
        times = measure(mb, parameters, mujoco, model)
        print(f"{name:24s}" + "".join(f"{times.get(code, float('nan')):10.2f}" for code in ("tree", "Euler", "RK4")))


if __name__ == "__main__":
    main()
