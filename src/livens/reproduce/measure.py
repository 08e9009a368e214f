"""Claim constructors from measured numbers, cached runs and round-off limits."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from livens import problems
from livens.plot.curves import round_off
from livens.reproduce.core import Claim
from livens.results.result import Result
from livens.run.simulate import simulate

#: Bound of round-off in an observable, in units of its single rounding error; used in claims and as the upper end of
#: the grey bands of the figures.
ROUNDOFF_FACTOR = 1000
#: Tolerance of measured convergence orders.
_ORDER_MARGIN = 0.1


@functools.lru_cache(maxsize=64)
def run(name: str, scheme: str, h: float, t_end: float, options: tuple[tuple[str, Any], ...] = ()) -> Result:
    """Return a run of a built-in problem; figures with the same run share it."""
    return simulate(problems.load(name, **dict(options)), scheme=scheme, h=h, t_end=t_end, progress=False)


def roundoff_limit(result: Result, name: str) -> float:
    """Return the largest change of an observable that counts as round-off."""
    return ROUNDOFF_FACTOR * round_off(result, name)


def largest_increment(result: Result, name: str, after: float = -np.inf) -> float:
    """Return the largest change of an observable per step, for steps that begin at `after` or later."""
    values = result.observe(name)[result.t >= after]
    return float(np.abs(np.diff(values, axis=0)).max())


def claim_below(text: str, value: float, upper: float, unit: str = "") -> Claim:
    """Return the claim that a value is at most `upper`."""
    return Claim(text, f"{value:.1e}{_unit(unit)}, at most {upper:.1e}", bool(value <= upper))


def claim_above(text: str, value: float, lower: float, unit: str = "") -> Claim:
    """Return the claim that a value is at least `lower`, for example that a quantity is not conserved."""
    return Claim(text, f"{value:.1e}{_unit(unit)}, at least {lower:.1e}", bool(value >= lower))


def claim_between(text: str, value: float, lower: float, upper: float, unit: str = "") -> Claim:
    """Return the claim that a value is between `lower` and `upper`."""
    return Claim(text, f"{value:.3g}{_unit(unit)}, from {lower:.3g} to {upper:.3g}", bool(lower <= value <= upper))


def claim_constant(text: str, result: Result, name: str, unit: str = "") -> Claim:
    """Return the claim that an observable changes by round-off only in each step."""
    return claim_below(text, largest_increment(result, name), roundoff_limit(result, name), unit)


def claim_constraints_hold(text: str, result: Result, columns: Sequence[int] | None = None) -> Claim:
    """Return the claim that constraints hold to round-off."""
    values = np.abs(result.observe("constraint"))
    chosen = values if columns is None else values[:, list(columns)]
    return claim_below(text, float(chosen.max()), roundoff_limit(result, "constraint"))


def convergence_order(h: Sequence[float], errors: Sequence[float]) -> float:
    """Return the convergence order of errors by least squares in logarithms."""
    if len(h) < 4:
        raise ValueError("an order is measured over at least four steps")
    return float(np.polyfit(np.log(h), np.log(errors), 1)[0])


def claim_order(text: str, expected: int, h: Sequence[float], errors: Sequence[float]) -> Claim:
    """Return the claim that errors have an expected convergence order."""
    order = convergence_order(h, errors)
    measured = f"{order:.3f} over {len(h)} steps from {max(h):g} to {min(h):g} s, {expected} ± {_ORDER_MARGIN}"
    return Claim(text, measured, abs(order - expected) <= _ORDER_MARGIN)


def claim_no_trend(text: str, t: np.ndarray, values: np.ndarray, unit: str) -> Claim:
    """Return the claim that the linear trend over the run is at most a fifth of the range of the values."""
    change = float(np.polyfit(t - t[0], values, 1)[0] * (t[-1] - t[0]))
    amplitude = float(np.ptp(values))
    measured = f"{change:+.1e} {unit} linear trend over the run, at most a fifth of the range {amplitude:.1e}"
    return Claim(text, measured, abs(change) <= amplitude / 5)


def claim_ranked(text: str, values: dict[str, float]) -> Claim:
    """Return the claim that the values are in increasing order."""
    ordered = list(values.values())
    measured = " < ".join(f"{name} {value:.2e}" for name, value in values.items())
    return Claim(text, measured, all(a < b for a, b in itertools.pairwise(ordered)))


def _unit(unit: str) -> str:
    return f" {unit}" if unit else ""
