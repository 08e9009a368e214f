"""Richardson error estimate from the differences of three runs with successively halved steps."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from livens.analysis.accuracy.companions import Difference
from livens.analysis.accuracy.estimate import LARGE, NOT_RESOLVED, ORDER_NOT_SEEN, RESOLVED, ROUND_OFF, UNKNOWN

#: Relative difference of two runs above which it is saturated.
_SATURATED = 0.3
#: Minimum factor by which halving the step must reduce the difference; order 1 gives 2.
_LEAST_RATIO = 1.5
#: Fraction f of the order p that must be visible: ratio >= 2^(f p). The margin admits order reduction of stiff parts.
_ORDER_SEEN = 0.7
#: Multiple of the round-off bound below which differences that do not decrease are round-off.
_NEAR_THE_FLOOR = 100.0
#: Minimum number of points for a fit of the growth law.
_POINTS = 12


@dataclass(frozen=True)
class Judged:
    """Richardson estimate of one variable.

    `factor` is the ratio of the error to the difference from the adjacent run, `ratio` the factor by which halving the
    step reduces differences.
    """

    error: float
    factor: float
    verdict: str
    ratio: float


def seen(ratio: float, order: int) -> bool:
    """Return True if the ratio of differences confirms the order."""
    return bool(ratio >= 2.0 ** (_ORDER_SEEN * order))


def judge(fine: np.ndarray | None, coarse: np.ndarray | None, order: int, place: int, floor: float) -> Judged:
    """Estimate the error of a variable from the running maxima of the finer and the coarser difference."""
    direct = coarse if place == 2 else fine
    if direct is None or not np.isfinite(direct[-1]):
        return Judged(math.nan, math.nan, UNKNOWN, math.nan)
    last = float(direct[-1])
    if fine is None or coarse is None:
        return Judged(2 * last, 2.0, NOT_RESOLVED if 2 * last >= LARGE else UNKNOWN, math.nan)
    if last <= floor:
        return Judged(floor, 1.0, ROUND_OFF, math.nan)
    ratio = _ratio(coarse, fine)
    highest = float(np.nanmax([coarse[-1], fine[-1]]))
    if ratio >= _LEAST_RATIO and _factor(ratio, order, place) * last < LARGE:
            ratio = min(ratio, float(coarse[-1] / fine[-1]))  # an early ratio must hold at the end
    if not ratio >= _LEAST_RATIO:
        near = highest <= _NEAR_THE_FLOOR * floor
        return Judged(max(highest, floor), highest / last, ROUND_OFF if near else NOT_RESOLVED, ratio)
    factor = _factor(ratio, order, place)
    error = max(factor * last, floor)
    if error >= LARGE or (place == 0 and last >= _SATURATED):
        verdict = NOT_RESOLVED
    else:
        verdict = RESOLVED if seen(ratio, order) else ORDER_NOT_SEEN
    return Judged(error, factor, verdict, ratio)


def _ratio(coarse: np.ndarray, fine: np.ndarray) -> float:
    """Return the factor by which halving the step reduces the difference, before the coarser pair is saturated."""
    known = np.flatnonzero(np.isfinite(coarse) & np.isfinite(fine))
    if not len(known):
        return math.nan
    early = known[coarse[known] < LARGE]
    last = early[-1] if len(early) >= 3 else known[-1]
    return float(coarse[last] / fine[last]) if fine[last] > 0 else math.inf


def _factor(ratio: float, order: int, place: int) -> float:
    """Return the ratio of the error of the run to its difference from the adjacent run, by a geometric series.

    A ratio above 2^order comes from a coarse run outside the asymptotic regime and is limited to 2^order.
    """
    used = min(ratio, 2.0**order)
    return 1 / (used - 1) if place == 0 else used / (used - 1)


@dataclass(frozen=True)
class Growth:
    """Growth law of the difference until saturation: a power of time, or exponential with a rate."""

    word: str = "bounded"
    power: float = 0.0
    rate: float | None = None


def growth(apart: Difference | None, floor: dict[str, float]) -> Growth:
    """Return the growth law of the variable whose difference grows fastest."""
    best = Growth()
    for name in floor if apart is not None else ():
        assert apart is not None
        curve = np.maximum.accumulate(apart.now[name])
        known = np.flatnonzero((curve > 10 * floor[name]) & (curve < _SATURATED))
        if len(known) < _POINTS:
            continue
        t = np.linspace(apart.t[known[0]], apart.t[known[-1]], 60)[1:]
        with np.errstate(all="ignore"):
            y, x = np.log(apart.largest(name, t)), t - apart.t[0]
        x, y = x[np.isfinite(y)], y[np.isfinite(y)]
        if len(x) < _POINTS:
            continue
        line, power = np.polyfit(x, y, 1), np.polyfit(np.log(x), y, 1)
        left = [float(np.sum((y - fit) ** 2)) for fit in (np.polyval(line, x), np.polyval(power, np.log(x)))]
        if line[0] * (x[-1] - x[0]) > 4.0 and left[0] < left[1]:
            return Growth("exponential", float(power[0]), float(line[0]))
        begin = int(np.searchsorted(x, x[-1] / 4))  # the initial part is not representative
        late = float((y[-1] - y[begin]) / np.log(x[-1] / x[begin])) if x[-1] > x[begin] > 0 else 0.0
        if late > best.power:
            word = "bounded" if late < 0.4 else "linear" if late < 1.5 else "quadratic"
            best = Growth(word, min(late, 2.0))
    return best
