"""Processor time of a new process from its start to the first step of a robot, beside MuJoCo."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from benchmarks.program import run_module

_ROUNDS = 4
#: Robot whose start is measured, in the folder of the robot descriptions.
_ROBOT = "g1_description/urdf/g1_29dof_rev_1_0.urdf"


def first_step(code: str, file: str) -> None:
    """Take the first step of the robot in a file, or of a pendulum if the file is empty."""
    if code == "MuJoCo":
        import mujoco

        spec = mujoco.MjSpec.from_file(file)
        spec.worldbody.first_body().add_freejoint()
        model = spec.compile()
        mujoco.mj_step(model, mujoco.MjData(model))
        return
    import livens as lv

    if file:
        mb = lv.Multibody.from_urdf(file, base="floating")
    else:
        mb = lv.Multibody(gravity=[0, 0, -9.81])
        rod = mb.rod("rod", a=[0, 0, 0], b=[1, 0, 0], mass=1.0, radius=0.02)
        mb.revolute("pin", mb.ground, rod, at=[0, 0, 0], axis="y")
    mb.simulate(t_end=1e-3, h=1e-3)


def start_times(file: Path | None) -> dict[str, float]:
    """Return the shortest processor times in s, interpreter and imports included: first start, later starts, MuJoCo."""
    best = dict[str, float]()
    for _ in range(_ROUNDS):
        with tempfile.TemporaryDirectory() as cache:
            for label in ("cold", "warm", *(["MuJoCo"] if file and find_spec("mujoco") else [])):
                request = json.dumps([label, str(file or "")])
                result = run_module("benchmarks.robot_starts", request, environment={"LIVENS_CACHE_DIR": cache})
                best[label] = min(best.get(label, 1e9), result["processor_s"])
    return best


def main() -> None:
    """Print the times of a pendulum and of a humanoid robot."""
    from benchmarks.robot_steps import robot_folder, robot_without_meshes

    print(f"{'s to the first step':24s}{'cold':>10s}{'warm':>10s}{'MuJoCo':>10s}")
    with tempfile.TemporaryDirectory() as work:
        files: dict[str, Path | None] = {"pendulum": None}
        folder = robot_folder()
        if folder is not None:
            robot = files["G1"] = Path(work) / "g1.urdf"
            robot.write_text(robot_without_meshes(folder / _ROBOT), encoding="utf-8")
        for name, path in files.items():
            times = start_times(path)
            columns = (times.get(label, float("nan")) for label in ("cold", "warm", "MuJoCo"))
            print(f"{name:24s}" + "".join(f"{value:10.3f}" for value in columns))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        first_step(*json.loads(sys.argv[1]))
        print(json.dumps(dict(processor_s=time.process_time())))
    else:
        main()
