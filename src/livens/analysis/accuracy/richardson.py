"""Richardson error estimate from the differences of three runs with successively halved steps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from livens.analysis.accuracy.estimate import (
    LARGE_ERROR,
    NOT_RESOLVED,
    ORDER_NOT_OBSERVED,
    RESOLVED,
    ROUND_OFF,
    UNKNOWN,
)
from livens.analysis.accuracy.refined_runs import RunDifference

#: Relative difference of two runs above which it is saturated.
_SATURATED = 0.3
#: Minimum factor by which halving the step must reduce the difference; order 1 gives 2.
_MIN_RATIO = 1.5
#: Fraction f of the order p that must be visible: ratio >= 2^(f p). The margin admits order reduction of stiff parts.
_ORDER_FRACTION = 0.7
#: Multiple of the round-off bound below which differences that do not decrease are round-off.
ROUND_OFF_MARGIN = 100.0
#: Minimum number of points for a fit of the growth law.
_MIN_POINTS = 12


@dataclass(frozen=True)
class RichardsonEstimate:
    """Richardson estimate of one variable.

    `factor` is the ratio of the error to the difference from the adjacent run, `ratio` the factor by which halving the
    step reduces differences.
    """

    error: float
    factor: float
    verdict: str
    ratio: float


def is_order_visible(ratio: float, order: int) -> bool:
    """Return True if the ratio of differences confirms the order."""
    return bool(ratio >= 2.0 ** (_ORDER_FRACTION * order))


def richardson_estimate(
    fine: np.ndarray | None, coarse: np.ndarray | None, order: int, level: int, round_off: float
) -> RichardsonEstimate:
    """Estimate the error of a variable from the running maxima of the finer and the coarser difference."""
    adjacent = coarse if level == 2 else fine
    if adjacent is None or not np.isfinite(adjacent[-1]):
        return RichardsonEstimate(math.nan, math.nan, UNKNOWN, math.nan)
    last = float(adjacent[-1])
    if fine is None or coarse is None:
        return RichardsonEstimate(2 * last, 2.0, NOT_RESOLVED if 2 * last >= LARGE_ERROR else UNKNOWN, math.nan)
    if last <= round_off:
        return RichardsonEstimate(round_off, 1.0, ROUND_OFF, math.nan)
    ratio = _ratio(coarse, fine)
    highest = float(np.nanmax([coarse[-1], fine[-1]]))
    if ratio >= _MIN_RATIO and _factor(ratio, order, level) * last < LARGE_ERROR:
        ratio = min(ratio, float(coarse[-1] / fine[-1]))  # an early ratio must hold at the end
    if not ratio >= _MIN_RATIO:
        near_round_off = highest <= ROUND_OFF_MARGIN * round_off
        return RichardsonEstimate(
            max(highest, round_off), highest / last, ROUND_OFF if near_round_off else NOT_RESOLVED, ratio
        )
    factor = _factor(ratio, order, level)
    error = max(factor * last, round_off)
    if error >= LARGE_ERROR or (level == 0 and last >= _SATURATED):
        verdict = NOT_RESOLVED
    else:
        verdict = RESOLVED if is_order_visible(ratio, order) else ORDER_NOT_OBSERVED
    return RichardsonEstimate(error, factor, verdict, ratio)


def _ratio(coarse: np.ndarray, fine: np.ndarray) -> float:
    """Return the factor by which halving the step reduces the difference, before the coarser pair is saturated."""
    known = np.flatnonzero(np.isfinite(coarse) & np.isfinite(fine))
    if not len(known):
        return math.nan
    early = known[coarse[known] < LARGE_ERROR]
    last = early[-1] if len(early) >= 3 else known[-1]
    return float(coarse[last] / fine[last]) if fine[last] > 0 else math.inf


def _factor(ratio: float, order: int, level: int) -> float:
    """Return the ratio of the error of the run to its difference from the adjacent run, by a geometric series.

    A ratio above 2^order comes from a coarse run outside the asymptotic regime and is limited to 2^order.
    """
    used = min(ratio, 2.0**order)
    return 1 / (used - 1) if level == 0 else used / (used - 1)


@dataclass(frozen=True)
class ErrorGrowth:
    """Growth law of the difference until saturation: a power of time, or exponential with a rate."""

    law: str = "bounded"
    power: float = 0.0
    rate: float | None = None


def error_growth(difference: RunDifference | None, round_off: dict[str, float]) -> ErrorGrowth:
    """Return the growth law of the variable whose difference grows fastest."""
    best = ErrorGrowth()
    for name in round_off if difference is not None else ():
        assert difference is not None
        curve = np.maximum.accumulate(difference.norms[name])
        known = np.flatnonzero((curve > 10 * round_off[name]) & (curve < _SATURATED))
        if len(known) < _MIN_POINTS:
            continue
        t = np.linspace(difference.t[known[0]], difference.t[known[-1]], 60)[1:]
        with np.errstate(all="ignore"):
            y, x = np.log(difference.largest(name, t)), t - difference.t[0]
        x, y = x[np.isfinite(y)], y[np.isfinite(y)]
        if len(x) < _MIN_POINTS:
            continue
        line, power = np.polyfit(x, y, 1), np.polyfit(np.log(x), y, 1)
        residuals = [float(np.sum((y - fit) ** 2)) for fit in (np.polyval(line, x), np.polyval(power, np.log(x)))]
        if line[0] * (x[-1] - x[0]) > 4.0 and residuals[0] < residuals[1]:
            return ErrorGrowth("exponential", float(power[0]), float(line[0]))
        begin = int(np.searchsorted(x, x[-1] / 4))  # the initial part is not representative
        late_power = float((y[-1] - y[begin]) / np.log(x[-1] / x[begin])) if x[-1] > x[begin] > 0 else 0.0
        if late_power > best.power:
            law = "bounded" if late_power < 0.4 else "linear" if late_power < 1.5 else "quadratic"
            best = ErrorGrowth(law, min(late_power, 2.0))
    return best
