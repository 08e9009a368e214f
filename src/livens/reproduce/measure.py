"""Claims from measured numbers, and the runs and limits they are made of."""

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

#: What solving the equations of a step makes of one rounding of the state is round-off up to this many of them. The
#: grey bands of the figures end here.
ROUNDINGS = 1000
#: Measured orders are off by this at most.
_ORDER_MARGIN = 0.1


@functools.lru_cache(maxsize=64)
def run(name: str, scheme: str, h: float, t_end: float, options: tuple[tuple[str, Any], ...] = ()) -> Result:
    """A run of a ready problem; figures that show the same run share it."""
    return simulate(problems.load(name, **dict(options)), scheme=scheme, h=h, t_end=t_end, progress=False)


def limit(result: Result, name: str) -> float:
    """Up to where a change of an observable is round-off."""
    return ROUNDINGS * round_off(result, name)


def largest_increment(result: Result, name: str, after: float = -np.inf) -> float:
    """The largest change of an observable from step to step, of those that begin after a time."""
    values = result.observe(name)[result.t >= after]
    return float(np.abs(np.diff(values, axis=0)).max())


def below(text: str, value: float, most: float, unit: str = "") -> Claim:
    """A number is at most so large."""
    return Claim(text, f"{value:.1e}{_unit(unit)}, at most {most:.1e}", bool(value <= most))


def above(text: str, value: float, least: float, unit: str = "") -> Claim:
    """A number is at least so large: what theory says is not conserved must be seen not to be."""
    return Claim(text, f"{value:.1e}{_unit(unit)}, at least {least:.1e}", bool(value >= least))


def between(text: str, value: float, least: float, most: float, unit: str = "") -> Claim:
    return Claim(text, f"{value:.3g}{_unit(unit)}, from {least:.3g} to {most:.3g}", bool(least <= value <= most))


def constant(text: str, result: Result, name: str, unit: str = "") -> Claim:
    """An observable changes by round-off only, from step to step."""
    return below(text, largest_increment(result, name), limit(result, name), unit)


def constraints_hold(text: str, result: Result, columns: Sequence[int] | None = None) -> Claim:
    values = np.abs(result.observe("constraint"))
    chosen = values if columns is None else values[:, list(columns)]
    return below(text, float(chosen.max()), limit(result, "constraint"))


def slope(h: Sequence[float], errors: Sequence[float]) -> float:
    """The order of errors, by least squares in logarithms."""
    if len(h) < 4:
        raise ValueError("an order is measured over at least four steps")
    return float(np.polyfit(np.log(h), np.log(errors), 1)[0])


def of_order(text: str, expected: int, h: Sequence[float], errors: Sequence[float]) -> Claim:
    """Errors fall with this power of the step."""
    found = slope(h, errors)
    words = f"{found:.3f} over {len(h)} steps from {max(h):g} to {min(h):g} s, {expected} ± {_ORDER_MARGIN}"
    return Claim(text, words, abs(found - expected) <= _ORDER_MARGIN)


def no_trend(text: str, t: np.ndarray, values: np.ndarray, unit: str) -> Claim:
    """A straight line through the values changes little over the run, against how far they swing."""
    change = float(np.polyfit(t - t[0], values, 1)[0] * (t[-1] - t[0]))
    swing = float(np.ptp(values))
    words = f"{change:+.1e} {unit} over the run by a straight line, at most a fifth of the swing of {swing:.1e}"
    return Claim(text, words, abs(change) <= swing / 5)


def ranked(text: str, values: dict[str, float]) -> Claim:
    """Numbers are in rising order."""
    numbers = list(values.values())
    words = " < ".join(f"{name} {value:.2e}" for name, value in values.items())
    return Claim(text, words, all(a < b for a, b in itertools.pairwise(numbers)))


def _unit(unit: str) -> str:
    return f" {unit}" if unit else ""
