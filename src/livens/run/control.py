"""Step-size control, as users ask for it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens.engine.series.stepper import OwnSteps
from livens.engine.step_size import Control
from livens.errors import InputError, suggestion
from livens.expressions.numbers import number
from livens.schemes.base import Scheme
from livens.schemes.step import Estimated

#: Without `smallest`, no step is shorter than this part of the time span (nor than the last digits of the time).
_SMALLEST = 1e-24
#: How steps grow without an estimate of their errors: the factor, and after how many good steps; and with one.
_WITHOUT, _PATIENCE_WITH_ESTIMATE = (2.0, 3), 1

#: What follows from the others if it is not given.
_OPTIONAL = ("smallest", "increase", "patience")

#: One number for all variables, one for each of them in their order, or some by name.
PerVariable = float | Sequence[float] | Mapping[str, float]


@dataclass(frozen=True)
class StepControl:
    """How the size of steps follows the motion; to be given to `livens.simulate` as `control`.

    With a `tolerance`, the error of every step is estimated by a formula embedded in the scheme, and kept below
    ``tolerance * |x| + absolute`` in every variable; `absolute` is ``tolerance * floor`` unless it is given. Both may
    be one number, a list with one number for each variable, or a dictionary of some by name (``inf``: no matter), where
    the others are as usual. The sizes then follow the estimate, and h, the first one, need not be given.

    Without a tolerance only failures count, and steps do not get longer than h unless `largest` says so (S002 sect.
    7.1). In both cases a step whose equations cannot be solved is repeated with a size `decrease` times as large, and
    one whose estimated error is too large with a size that the estimate suggests, down to `smallest`, or else to the
    last digits of the time. After `patience` steps without failure (1 with a tolerance, else 3) steps grow by up to
    `increase` (8 with a tolerance, 1.2 in schemes whose estimate looks back at steps before, else 2), up to `largest`.
    A run ends after `most_steps`, with what it has; 0 means as many as it takes.

    >>> import livens as lv
    >>> control = lv.StepControl(largest=0.1, tolerance=1e-8)
    >>> pendulum = lv.FirstOrder("angle rate", rhs=lambda x: [x[1], -lv.math.sin(x[0])])
    >>> run = lv.simulate(pendulum, x0=[1.0, 0.0], scheme="gauss-3", h=1e-3, t_end=1.0, control=control)
    >>> bool(run.step_size.max() > 1e-3), float(run.t[-1])
    (True, 1.0)
    >>> some = lv.StepControl(tolerance=1e-6, absolute={"rate": 1e-3})
    >>> run = lv.simulate(pendulum, x0=[1.0, 0.0], scheme="radau-iia-3", t_end=1.0, control=some)
    >>> run.statistics.steps < 20
    True
    """

    smallest: float | None = None
    largest: float = math.inf
    decrease: float = 0.5
    increase: float | None = None
    patience: int | None = None
    tolerance: PerVariable = 0.0
    floor: float = 1e-3
    most_steps: int = 0
    absolute: PerVariable | None = None

    def __post_init__(self) -> None:
        for name in ("smallest", "decrease", "increase", "floor"):
            if getattr(self, name) is not None or name not in _OPTIONAL:
                number(_words(name), getattr(self, name), text=False)
        if not isinstance(self.largest, float) or not self.largest > 0:  # which may be infinite
            number(_words("largest"), self.largest, text=False)
        for name in ("patience", "most_steps"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) and not (value is None and name in _OPTIONAL):
                given = number(_words(name), value, text=False)
                if given != int(given):
                    raise InputError(f"{_words(name)} must be a whole number, got {given!r}")
        rules = {
            "smallest": (self.smallest is None or self.smallest > 0, "greater than 0"),
            "largest": (self.largest > 0 and self.largest >= (self.smallest or 0.0), "at least as large as smallest"),
            "decrease": (0 < self.decrease < 1, "between 0 and 1"),
            "increase": (self.increase is None or 1 <= self.increase < math.inf, "at least 1"),
            "patience": (self.patience is None or self.patience >= 1, "at least 1"),
            "floor": (0 < self.floor < math.inf, "greater than 0"),
            "most_steps": (self.most_steps >= 0 and self.most_steps == int(self.most_steps), "a whole number"),
        }
        for name, (holds, words) in rules.items():
            if not holds:
                raise InputError(f"{_words(name)} must be {words}, got {getattr(self, name)!r}")
        for name in ("tolerance", "absolute"):
            object.__setattr__(self, name, _checked(name, getattr(self, name)))
        if self.absolute is not None and not self.estimates:
            raise InputError("absolute of the step-size control belongs to a tolerance: give both")

    @property
    def estimates(self) -> bool:
        """Whether the errors of steps are estimated."""
        values = self.tolerance.values() if isinstance(self.tolerance, Mapping) else np.atleast_1d(self.tolerance)
        return any(value > 0 for value in values)

    @property
    def usual_tolerance(self) -> float:
        """The one of variables that no other is given for."""
        if isinstance(self.tolerance, Mapping):
            return min(self.tolerance.values())
        return float(np.min(self.tolerance))

    def check(self, scheme: Scheme, tier: str) -> None:
        """Whether a run can be controlled like this."""
        if scheme.fictive:
            raise InputError(f"scheme '{scheme.name}' chooses its steps itself; it takes no step-size control")
        if tier == "reference":
            raise InputError("step-size control needs the fused tier, or the assembled one")
        if scheme.own_steps:
            if not self.estimates:
                raise InputError(f"scheme '{scheme.name}' chooses its steps by a tolerance; give the control one")
            return
        if self.estimates and not scheme.estimate_order:
            raise InputError(f"scheme '{scheme.name}' does not estimate its error; leave tolerance out of the control")
        if not scheme.implicit:
            raise InputError(f"scheme '{scheme.name}' has nothing to solve, so no step of it fails")

    def tolerances(self, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Absolute and relative ones of variables with these names."""
        relative = _per_variable("tolerance", self.tolerance, names, np.full(len(names), self.usual_tolerance))
        absolute = relative * self.floor
        if self.absolute is not None:
            absolute = _per_variable("absolute", self.absolute, names, absolute)
        if not np.all(absolute + relative > 0):
            raise InputError("every variable needs a tolerance or an absolute one that is greater than 0")
        return absolute, relative

    def own_steps(self, span: float) -> OwnSteps:
        """For schemes that choose their steps by themselves: by the largest of all variables."""
        relative = self.usual_tolerance
        floor = (
            self.floor if self.absolute is None or not relative else float(np.min(_numbers(self.absolute)) / relative)
        )
        smallest = _SMALLEST * span if self.smallest is None else self.smallest
        return OwnSteps(relative, max(floor, _SMALLEST), float(self.largest), float(smallest))

    def of(self, estimated: Estimated | None, h: float, span: float) -> Control:
        """As the engine takes it, for a run over this time span whose first step is h."""
        largest = h if math.isinf(self.largest) and not self.estimates else self.largest
        increase, patience = _WITHOUT if estimated is None else (estimated.growth, _PATIENCE_WITH_ESTIMATE)
        absolute = relative = powers = np.zeros(0)
        if estimated is not None:
            absolute, relative = self.tolerances(estimated.names)
            powers = np.array(estimated.powers, dtype=float)
        return Control(
            float(_SMALLEST * span if self.smallest is None else self.smallest),
            float(largest),
            float(self.decrease),
            float(increase if self.increase is None else self.increase),
            int(patience if self.patience is None else self.patience),
            absolute,
            relative,
            powers,
            1 if estimated is None else int(estimated.order),
            estimated is not None and estimated.filtered,
        )


def _numbers(given: PerVariable) -> list[float]:
    return list(given.values()) if isinstance(given, Mapping) else np.atleast_1d(given).tolist()


def _words(name: str) -> str:
    return f"{name} of the step-size control"


def _checked(name: str, given: Any) -> Any:
    """Tolerances as numbers: each at least zero, or infinite."""
    if given is None and name == "absolute":
        return None
    if isinstance(given, Mapping):
        return {str(key): _tolerance(f"{_words(name)} for {key}", value) for key, value in given.items()} or 0.0
    if isinstance(given, (list, tuple)) or (isinstance(given, np.ndarray) and given.ndim):
        if not len(given):
            raise InputError(f"{_words(name)} must be a number or a list of numbers, got {given!r}")
        return tuple(_tolerance(_words(name), value) for value in given)
    return _tolerance(_words(name), given)


def _tolerance(words: str, given: Any) -> float:
    value = math.inf if isinstance(given, float) and given == math.inf else number(words, given, text=False)
    if not value >= 0:
        raise InputError(f"{words} must be at least 0, got {given!r}")
    return float(value)


def _per_variable(name: str, given: PerVariable, names: Sequence[str], usual: np.ndarray) -> np.ndarray:
    if isinstance(given, Mapping):
        found = usual.copy()
        for key, value in given.items():
            if key not in names:
                raise InputError(f"{_words(name)} names the unknown variable '{key}'{suggestion(key, names)}")
            found[list(names).index(key)] = value
        return found
    if np.ndim(given):
        values = np.array(given, dtype=float)
        if values.size != len(names):
            raise InputError(f"{_words(name)} must have {len(names)} numbers ({', '.join(names[:8])}), got {given!r}")
        return values
    return np.full(len(names), float(given))  # type: ignore[arg-type]
