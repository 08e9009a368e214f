"""Observed order of convergence: log-log regression with confidence interval, excluding the round-off floor."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from livens.errors import InputError, explain_call_errors

#: Relative error above which points are not at the floor, even if the error does not decrease: the steps are too large.
_FLOOR_LEVEL = 1e-4
#: Ratio of local to established order below which points are at the floor.
_STAGNATION_RATIO = 0.75
#: Factor to the floor within which a point is excluded if its order is lower by the fraction `_ORDER_REDUCTION`.
_MARGIN = 5.0
_ORDER_REDUCTION = 0.05


@dataclass(frozen=True)
class Fit:
    """Fit ``error = constant h^order``.

    Parameters
    ----------
    order : float
        Fitted order; NaN with fewer than two points.
    uncertainty : float
        Half-width of the 95 % confidence interval; infinite with two points.
    constant : float
        Error constant.
    used : tuple of bool
        True for the points of the fit.
    floor : tuple of bool
        True for the points at the round-off floor.
    """

    order: float
    uncertainty: float
    constant: float
    used: tuple[bool, ...]
    floor: tuple[bool, ...]

    def __str__(self) -> str:
        if not math.isfinite(self.order):
            return "no order (too few points)"
        return f"{self.order:.3f}" + (f" ± {self.uncertainty:.3f}" if math.isfinite(self.uncertainty) else "")


@explain_call_errors
def fit_order(h: Sequence[float], errors: Sequence[float], *, scale: float = 1.0, floor: float = 0.0) -> Fit:
    """Fit the order of convergence to errors at several step sizes.

    Points at the round-off floor are excluded: those from which the errors decrease with less than three quarters of
    the established order, or which lie below five times a known `floor`. Errors that are not finite (failed runs) are
    excluded too.

    Parameters
    ----------
    h : sequence of float
        Step sizes.
    errors : sequence of float
        Errors at these step sizes.
    scale : float, default 1.0
        Magnitude of the solution.
    floor : float, default 0.0
        Known error floor: the uncertainty of the reference solution.

    Returns
    -------
    Fit
        Order, confidence interval and classification of the points.

    Raises
    ------
    InputError
        If the lists differ in length, or if a step size is not positive.

    Examples
    --------

    >>> fit = fit_order([0.1, 0.05, 0.025, 0.0125], [1e-2, 2.5e-3, 6.25e-4, 1.5625e-4])
    >>> print(fit)
    2.000 ± 0.000
    """
    try:
        steps, values = np.asarray(h, dtype=float), np.asarray(errors, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"step sizes and errors must be two lists of numbers, got {h!r} and {errors!r}"[:500]
        ) from None
    if steps.ndim != 1 or steps.shape != values.shape:
        raise InputError("step sizes and errors must be two lists of the same length")
    if not (np.all(np.isfinite(steps)) and np.all(steps > 0)):
        raise InputError("step sizes must be positive numbers")
    finite = np.isfinite(values) & (values >= 0)
    floor_level = max(_MARGIN * floor, 4 * np.finfo(float).eps * scale)
    at_floor = finite & (values <= floor_level)
    coarse_first = [i for i in np.argsort(-steps) if finite[i]]
    for i in _floor_points(steps[coarse_first], values[coarse_first], at_floor[coarse_first], scale):
        at_floor[coarse_first[i]] = True
    used = finite & ~at_floor
    order, uncertainty, constant = _fit_line(steps[used], values[used])
    return Fit(order, uncertainty, constant, tuple(map(bool, used)), tuple(map(bool, at_floor)))


def local_orders(h: Sequence[float], errors: Sequence[float]) -> list[float]:
    """Return the orders between successive steps, ``log(e1/e2)/log(h1/h2)``; NaN where undefined."""
    orders = []
    for (h1, e1), (h2, e2) in itertools.pairwise(zip(h, errors, strict=True)):
        valid = math.isfinite(e1) and math.isfinite(e2) and e1 > 0 and e2 > 0 and h1 != h2
        orders.append(math.log(e1 / e2) / math.log(h1 / h2) if valid else math.nan)
    return orders


def _floor_points(h: np.ndarray, e: np.ndarray, known: np.ndarray, scale: float) -> list[int]:
    """Return the indices of the points at the floor; points are sorted by decreasing step size."""
    first_at_floor = len(h)
    orders: list[float] = []
    for i in range(1, len(h)):
        if known[i] or e[i] == 0:
            first_at_floor = min(first_at_floor, i)
            break
        order = math.log(e[i - 1] / e[i]) / math.log(h[i - 1] / h[i]) if h[i] < h[i - 1] else math.inf
        established = float(np.median(orders)) if orders else 0.0
        if (
            len(orders) >= 2
            and established > 0.5
            and order < _STAGNATION_RATIO * established
            and e[i] < _FLOOR_LEVEL * scale
        ):
            first_at_floor = i
            break
        orders.append(order)
    if first_at_floor == len(h):
        return []
    level = float(e[first_at_floor:].max())
    # points close to the floor with a reduced order are partly floor
    while first_at_floor > 2 and e[first_at_floor - 1] < _MARGIN * level:
        earlier = float(np.median(orders[: first_at_floor - 2]))
        if orders[first_at_floor - 2] > (1 - _ORDER_REDUCTION) * earlier:
            break
        first_at_floor -= 1
    return list(range(first_at_floor, len(h)))


def _fit_line(h: np.ndarray, e: np.ndarray) -> tuple[float, float, float]:
    if len(h) < 2 or np.ptp(h) == 0:
        return math.nan, math.inf, math.nan
    x, y = np.log(h), np.log(e)
    centred = x - x.mean()
    spread = float(centred @ centred)
    order = float(centred @ y) / spread
    constant = float(np.exp(y.mean() - order * x.mean()))
    if len(h) == 2:
        return order, math.inf, constant
    residual = y - y.mean() - order * centred
    error = math.sqrt(float(residual @ residual) / (len(h) - 2) / spread)
    return order, float(stdtrit(len(h) - 2, 0.975)) * error, constant
