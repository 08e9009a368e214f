"""Public step-size control of a run, and its translation into settings of the engine."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from livens.engine.newton.step_size_control import CONTROLLERS, StepSizeController
from livens.engine.taylor.stepper import TaylorStepControl
from livens.errors import InputError, explain_call_errors, suggestion
from livens.schemes.core.scheme import Scheme
from livens.schemes.core.step_equations import ErrorEstimateInfo
from livens.validation import check_choice, check_number

#: Default smallest step, relative to the time span. The resolution of the time in doubles is a further lower bound.
_MIN_STEP_FRACTION = 1e-24
#: Default growth factor and patience without an error estimate; default patience with one.
_DEFAULT_GROWTH, _PATIENCE_WITH_TOLERANCE = (2.0, 3), 1
#: Default smallest number of steps between error estimates by a double step, which cost about as much as a step.
_DOUBLING_INTERVAL = 5

#: Smallest tolerance of error estimates by a double step: the estimate of smaller errors would be round-off.
MIN_TOLERANCE = 1e-12

#: Fields that may be None; their defaults then depend on the scheme.
_OPTIONAL_FIELDS = ("smallest", "increase", "patience")

#: One value for all variables, one value per variable, or values by variable name.
PerVariable = float | Sequence[float] | Mapping[str, float]


@explain_call_errors
@dataclass(frozen=True)
class StepControl:
    """Step-size control of a run, passed to `livens.simulate` as `control`.

    With a `tolerance`, an embedded formula of the scheme estimates the local error of every step. The error is kept
    below ``tolerance * |x| + absolute`` in every variable, and `h` is the first step only (optional).

    Schemes of order 2 for mechanical systems (``livens-em``, ``lie-em``, ...) estimate the error of the coordinates by
    a double step. The sum of the local errors over the run is kept below the same bound, where ``|x|`` is the largest
    position, or 1 for directors. The error at the end of the run is then proportional to the tolerance.

    Without a `tolerance`, only steps that cannot be solved are repeated with smaller steps, and no step is larger than
    `h` unless `largest` is set (Symank 2025, sect. 7.1).

    Parameters
    ----------
    smallest : float, optional
        Smallest step size in seconds. Default: 1e-24 times the time span, or the resolution of the time.
    largest : float, default inf
        Largest step size in seconds. Without a `tolerance`, the default is `h`.
    decrease : float, default 0.5
        Factor of the step size after a step that cannot be solved, between 0 and 1.
    increase : float, optional
        Largest growth factor of the step size. Default: 8 with a `tolerance` (1.2 for multistep error estimates, 1.1
        for estimates by a double step), 2 without.
    patience : int, optional
        Number of successful steps before the step size may grow. Estimates by a double step are made at this interval,
        or at up to four times of it where the step size changes slowly (ten times for short steps); the size changes by
        a constant ratio between them. Default: 1 with a `tolerance` (5 for estimates by a double step), 3 without.
    tolerance : float, sequence of float or dict of str to float, default 0.0
        Relative tolerance of the local error: one value, one value per variable, or values by variable name.
        Variables without a value use the smallest one; ``inf`` excludes a variable. 0 disables error estimation.
    floor : float, default 1e-3
        Ratio of the default absolute tolerance to the relative one.
    most_steps : int, default 0
        Largest number of steps; the run then ends with a partial result. 0 means no limit.
    absolute : float, sequence of float or dict of str to float, optional
        Absolute tolerance, in the same forms as `tolerance`. Default: ``tolerance * floor``.
    controller : {"predictive", "H211b", "H0321"}, optional
        Controller of the step size: Gustafsson's predictive controller, or a digital filter of Soederlind (2003). The
        filters give smooth sequences of steps. Default: "H211b" for schemes of order 2 whose error is estimated by a
        double step, otherwise "predictive".

    Raises
    ------
    InputError
        If a value is out of range, or `absolute` is set without `tolerance`.

    Examples
    --------
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
    controller: str | None = None

    def __post_init__(self) -> None:
        for name in ("smallest", "decrease", "increase", "floor"):
            if getattr(self, name) is not None or name not in _OPTIONAL_FIELDS:
                check_number(_label(name), getattr(self, name), allow_strings=False)
        if not isinstance(self.largest, float) or not self.largest > 0:  # inf is allowed
            check_number(_label("largest"), self.largest, allow_strings=False)
        for name in ("patience", "most_steps"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) and not (value is None and name in _OPTIONAL_FIELDS):
                parsed = check_number(_label(name), value, allow_strings=False)
                if parsed != int(parsed):
                    raise InputError(f"{_label(name)} must be a whole number, got {parsed!r}")
        rules = {
            "smallest": (self.smallest is None or self.smallest > 0, "greater than 0"),
            "largest": (self.largest > 0 and self.largest >= (self.smallest or 0.0), "at least as large as smallest"),
            "decrease": (0 < self.decrease < 1, "between 0 and 1"),
            "increase": (self.increase is None or 1 <= self.increase < math.inf, "at least 1"),
            "patience": (self.patience is None or self.patience >= 1, "at least 1"),
            "floor": (0 < self.floor < math.inf, "greater than 0"),
            "most_steps": (self.most_steps >= 0 and self.most_steps == int(self.most_steps), "a whole number"),
        }
        for name, (holds, requirement) in rules.items():
            if not holds:
                raise InputError(f"{_label(name)} must be {requirement}, got {getattr(self, name)!r}")
        if self.controller is not None:
            check_choice(_label("controller"), self.controller, tuple(CONTROLLERS))
        for name in ("tolerance", "absolute"):
            object.__setattr__(self, name, _parse_tolerances(name, getattr(self, name)))
        if self.absolute is not None and not self.has_tolerance:
            raise InputError("absolute of the step-size control needs a tolerance; give both")

    @functools.cached_property
    def has_tolerance(self) -> bool:
        """True if the local error of the steps is estimated."""
        values = self.tolerance.values() if isinstance(self.tolerance, Mapping) else np.atleast_1d(self.tolerance)
        return any(value > 0 for value in values)

    @property
    def default_rtol(self) -> float:
        """Relative tolerance of variables without a tolerance of their own: the smallest one given."""
        if isinstance(self.tolerance, Mapping):
            return min(self.tolerance.values())
        return float(np.min(self.tolerance))

    def validate(self, scheme: Scheme, tier: str) -> None:
        """Raise an error if the scheme and tier do not support this control.

        Parameters
        ----------
        scheme : Scheme
            Scheme of the run.
        tier : str
            Tier of the engine: "fused", "assembled" or "reference".

        Raises
        ------
        InputError
            If the control has no effect on the scheme, or the scheme or tier cannot follow it.
        """
        if scheme.fictive:
            raise InputError(f"scheme '{scheme.name}' uses fixed steps in fictive time; remove control=")
        if tier == "reference":
            raise InputError("step-size control needs the fused tier or the assembled tier, not the reference tier")
        if scheme.selects_step_size:
            if not self.has_tolerance:
                raise InputError(f"scheme '{scheme.name}' chooses its steps by a tolerance; set one in the control")
            return
        if scheme.estimates_error_by_doubling and 0 < self.default_rtol < MIN_TOLERANCE:
            raise InputError(
                f"the tolerance {self.default_rtol:g} is below the round-off of the error estimate of scheme "
                f"'{scheme.name}'; use at least {MIN_TOLERANCE:g}, or a scheme of higher order"
            )
        if self.has_tolerance and not scheme.error_order:
            raise InputError(f"scheme '{scheme.name}' does not estimate its error; remove tolerance= from the control")
        if not scheme.implicit:
            raise InputError(
                f"scheme '{scheme.name}' is explicit: step-size control without a tolerance has no effect. Remove "
                "control=, or set a tolerance with a scheme that estimates its error"
            )

    def tolerances(self, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return absolute and relative tolerances per variable.

        Parameters
        ----------
        names : sequence of str
            Names of the variables.

        Returns
        -------
        tuple of ndarray
            Absolute and relative tolerances in the order of `names`, each of shape (n_variables,).

        Raises
        ------
        InputError
            If a variable has neither an absolute nor a relative tolerance greater than 0.
        """
        relative = _per_variable("tolerance", self.tolerance, names, np.full(len(names), self.default_rtol))
        absolute = relative * self.floor
        if self.absolute is not None:
            absolute = _per_variable("absolute", self.absolute, names, absolute)
        if not np.all(absolute + relative > 0):
            raise InputError("every variable needs a relative or an absolute tolerance greater than 0")
        return absolute, relative

    def taylor_control(self, span: float) -> TaylorStepControl:
        """Return the control of Taylor schemes, which use one tolerance in the maximum norm.

        Parameters
        ----------
        span : float
            Time span of the run in seconds.

        Returns
        -------
        OwnSteps
            Settings of the Taylor stepper.
        """
        relative = self.default_rtol
        floor = (
            self.floor if self.absolute is None or not relative else float(np.min(_as_list(self.absolute)) / relative)
        )
        smallest = _MIN_STEP_FRACTION * span if self.smallest is None else self.smallest
        return TaylorStepControl(relative, max(floor, _MIN_STEP_FRACTION), float(self.largest), float(smallest))

    def to_engine(self, estimated: ErrorEstimateInfo | None, h: float, span: float) -> StepSizeController:
        """Return the settings of the engine's step-size controller.

        Parameters
        ----------
        estimated : Estimated or None
            Error estimate of the scheme; None without a tolerance.
        h : float
            First step size in seconds.
        span : float
            Time span of the run in seconds.

        Returns
        -------
        Control
            Settings of the step-size controller.
        """
        is_doubling = estimated is not None and estimated.doubling_order > 0
        largest = h if math.isinf(self.largest) and not self.has_tolerance else self.largest
        increase, patience = _DEFAULT_GROWTH if estimated is None else (estimated.max_growth, _PATIENCE_WITH_TOLERANCE)
        patience = _DOUBLING_INTERVAL if is_doubling else patience
        absolute = relative = powers = np.zeros(0)
        if estimated is not None:
            absolute, relative = self.tolerances(estimated.names)
            if is_doubling:  # errors per unit of time: their sum over the run is bounded by the tolerance
                absolute, relative = absolute / span, relative / span
            powers = np.array(estimated.h_powers, dtype=float)
        return StepSizeController(
            float(_MIN_STEP_FRACTION * span if self.smallest is None else self.smallest),
            float(largest),
            float(self.decrease),
            float(increase if self.increase is None else self.increase),
            int(patience if self.patience is None else self.patience),
            absolute,
            relative,
            powers,
            1 if estimated is None else int(estimated.order),
            estimated is not None and estimated.filtered,
            estimated.doubling_order if estimated is not None else 0,
            np.array(estimated.scale_groups if estimated is not None else (), dtype=np.int64),
            np.array(CONTROLLERS[self.controller or ("H211b" if is_doubling else "predictive")]),
            float(span),
            self.default_rtol or 1.0,
        )


def step_limit_message(n_steps: int, t: float) -> str:
    """Return the message of a run that ends at its largest number of steps."""
    return f"the run reached the limit of {n_steps} steps at t = {t:.9g}"


def _as_list(setting: PerVariable) -> list[float]:
    return list(setting.values()) if isinstance(setting, Mapping) else np.atleast_1d(setting).tolist()


def _label(name: str) -> str:
    return f"{name} of the step-size control"


def _parse_tolerances(name: str, setting: float | None) -> float | None:
    """Return tolerances as floats, each at least 0 or infinite."""
    if setting is None and name == "absolute":
        return None
    if isinstance(setting, Mapping):
        return {str(key): _parse_tolerance(f"{_label(name)} for {key}", value) for key, value in setting.items()} or 0.0
    if isinstance(setting, (list, tuple)) or (isinstance(setting, np.ndarray) and setting.ndim):
        if not len(setting):
            raise InputError(f"{_label(name)} must be a number or a list of numbers, got {setting!r}")
        return tuple(_parse_tolerance(_label(name), value) for value in setting)
    return _parse_tolerance(_label(name), setting)


def _parse_tolerance(label: str, setting: object) -> float:
    value = (
        math.inf
        if isinstance(setting, float) and setting == math.inf
        else check_number(label, setting, allow_strings=False)
    )
    if not value >= 0:
        raise InputError(f"{label} must be at least 0, got {setting!r}")
    return float(value)


def _per_variable(name: str, setting: PerVariable, names: Sequence[str], default: np.ndarray) -> np.ndarray:
    if isinstance(setting, Mapping):
        tolerances = default.copy()
        for key, value in setting.items():
            if key not in names:
                raise InputError(f"{_label(name)} names the unknown variable '{key}'{suggestion(key, names)}")
            tolerances[list(names).index(key)] = value
        return tolerances
    if np.ndim(setting):
        values = np.array(setting, dtype=float)
        if values.size != len(names):
            raise InputError(f"{_label(name)} must have {len(names)} values ({', '.join(names[:8])}), got {setting!r}")
        return values
    return np.full(len(names), float(setting))  # type: ignore[arg-type]
