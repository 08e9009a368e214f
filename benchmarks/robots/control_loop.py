"""Processor time of a step in a user-written loop: compiled run, single steps, single steps with new inputs.

python benchmarks/robots/control_loop.py
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import livens as lv

#: Number of repetitions; the best one counts.
REPETITIONS = 5


def cart_and_pole() -> tuple[lv.Multibody, float]:
    """Return a cart on a rail with a pole, driven by an input, and the step size in seconds."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    cart = mb.box("cart", size=[0.4, 0.2, 0.2], at=[0, 0, 0], mass=1.0)
    rail = mb.prismatic("rail", mb.ground, cart, at=[0, 0, 0], axis="x")
    pole = mb.rod("pole", a=[0, 0, 0], b=[0, 0, 1], mass=0.1)
    hinge = mb.revolute("hinge", cart, pole, at=[0, 0, 0], axis="y")
    mb.motor(rail, force=mb.input("push"))
    mb.initial(hinge, angle=0.05)
    return mb, 0.01


def arm_of_six_joints() -> tuple[lv.Multibody, float]:
    """Return an arm of six rods with a driven hinge at each, and the step size in seconds."""
    mb, last, position = lv.Multibody(gravity=[0, 0, -9.81]), None, np.zeros(3)
    for i in range(6):
        end = position + [0.3, 0, 0]
        rod = mb.rod(f"rod{i}", a=position, b=end, mass=1.0)
        axis = "zyyxyx"[i]
        joint = mb.revolute(f"joint{i}", last or mb.ground, rod, at=position, axis=axis)
        mb.motor(joint, torque=mb.input(f"torque{i}"))
        last, position = rod, end
    return mb, 0.001


def microseconds(action: Any, n_steps: int) -> float:
    """Return the processor time per step in microseconds."""
    started = time.process_time()
    action()
    return (time.process_time() - started) / n_steps * 1e6


def main() -> None:
    print(f"{'model':20} {'tier':10} {'run':>8} {'step':>8} {'inputs':>8}  us per step")
    for name, (mb, h) in dict(cart_and_pole=cart_and_pole(), arm=arm_of_six_joints()).items():
        step, n_steps = lv.prepare(mb.problem(name, h=h, t_end=1000 * h)), 1000
        inputs = dict.fromkeys(mb.system.inputs, 0.1)

        def loop(values: dict[str, float] | None, step: Any = step, n_steps: int = n_steps) -> None:
            state = step.start()
            for _ in range(n_steps):
                state = step.step(state, inputs=values)

        tier = step.run().info.tier
        times = [
            (
                microseconds(step.run, n_steps),
                microseconds(lambda: loop(None), n_steps),  # called at once
                microseconds(lambda: loop(inputs), n_steps),  # called at once
            )
            for _ in range(REPETITIONS)
        ]
        best = np.min(times, axis=0)
        print(f"{name:20} {tier:10} {best[0]:8.1f} {best[1]:8.1f} {best[2]:8.1f}")


if __name__ == "__main__":
    main()
