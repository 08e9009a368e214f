"""Step-size control, as users ask for it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from livens.engine.loop import Control
from livens.errors import InputError
from livens.expressions.numbers import number
from livens.schemes.base import Scheme


@dataclass(frozen=True)
class StepControl:
    """How the size of steps follows the motion; to be given to `livens.simulate` as `control`.

    The first step is h. A step that fails (Newton's method does not converge, or the estimated error is too large) is
    repeated with a size `decrease` times as large, down to `smallest`; after `patience` steps without failure, steps
    grow by up to `increase`, up to `largest` (S002 sect. 7.1). With a `tolerance`, the error of every step is estimated
    by a formula embedded in the scheme, and kept below ``tolerance * (floor + |x|)``: the sizes then follow the
    estimate. Without one only failures count, and steps do not get longer than h unless `largest` says so. A run ends
    after `most_steps`, with what it has; 0 means as many as it takes.

    >>> import livens as lv
    >>> control = lv.StepControl(largest=0.1, tolerance=1e-8)
    >>> pendulum = lv.FirstOrder("angle rate", rhs=lambda x: [x[1], -lv.math.sin(x[0])])
    >>> run = lv.simulate(pendulum, x0=[1.0, 0.0], scheme="gauss-3", h=1e-3, t_end=1.0, control=control)
    >>> bool(run.step_size.max() > 1e-3), float(run.t[-1])
    (True, 1.0)
    """

    smallest: float = 1e-12
    largest: float = math.inf
    decrease: float = 0.5
    increase: float = 2.0
    patience: int = 3
    tolerance: float = 0.0
    floor: float = 1e-3
    most_steps: int = 0

    def __post_init__(self) -> None:
        for name in ("smallest", "decrease", "increase", "tolerance", "floor"):
            number(f"{name} of the step-size control", getattr(self, name), text=False)
        if not isinstance(self.largest, float) or not self.largest > 0:  # which may be infinite
            number("largest of the step-size control", self.largest, text=False)
        for name in ("patience", "most_steps"):
            if not isinstance(getattr(self, name), (int, np.integer)):
                given = number(f"{name} of the step-size control", getattr(self, name), text=False)
                if given != int(given):
                    raise InputError(f"{name} of the step-size control must be a whole number, got {given!r}")
        rules = {
            "smallest": (self.smallest > 0, "greater than 0"),
            "largest": (self.largest >= self.smallest, "at least as large as smallest"),
            "decrease": (0 < self.decrease < 1, "between 0 and 1"),
            "increase": (1 <= self.increase < math.inf, "at least 1"),
            "patience": (self.patience >= 1, "at least 1"),
            "tolerance": (0 <= self.tolerance < math.inf, "at least 0"),
            "floor": (0 < self.floor < math.inf, "greater than 0"),
            "most_steps": (self.most_steps >= 0 and self.most_steps == int(self.most_steps), "a whole number"),
        }
        for name, (holds, words) in rules.items():
            if not holds:
                raise InputError(f"{name} of the step-size control must be {words}, got {getattr(self, name)!r}")

    def check(self, scheme: Scheme, tier: str) -> None:
        """Whether a run can be controlled like this."""
        if scheme.fictive:
            raise InputError(f"scheme '{scheme.name}' chooses its steps itself; it takes no step-size control")
        if tier == "reference":
            raise InputError("step-size control needs the fused tier, or the assembled one")
        if self.tolerance and not scheme.estimate_order:
            raise InputError(f"scheme '{scheme.name}' does not estimate its error; leave tolerance out of the control")
        if not scheme.implicit:
            raise InputError(f"scheme '{scheme.name}' has nothing to solve, so no step of it fails")

    def of(self, scheme: Scheme, h: float) -> Control:
        """As the engine takes it, for a run whose first step is h."""
        largest = h if math.isinf(self.largest) and not self.tolerance else self.largest
        return Control(
            float(self.smallest),
            float(largest),
            float(self.decrease),
            float(self.increase),
            int(self.patience),
            float(self.tolerance * self.floor),
            float(self.tolerance),
            int(scheme.estimate_order),
        )
