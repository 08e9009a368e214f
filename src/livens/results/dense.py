"""A run between its rows: dense output.

Schemes with a formula within the step (collocation) take the step again and evaluate it. For the others a polynomial
goes through the rows around: of degree high enough for the order of the scheme, with velocities as slopes of the
coordinates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens import schemes
from livens.engine.reference import ReferenceSolver
from livens.errors import InputError, IntegrationError
from livens.expressions.variables import VARIABLES
from livens.schemes.step import FlatEquations

if TYPE_CHECKING:
    from livens.results.result import Result

#: A step that is taken again must end where it ended, up to this, relative to the size of its variables.
_SAME = 1e-8


class Moment(dict[str, np.ndarray]):
    """Variables of a run at given times, by name; also as attributes: ``run.at(0.5).q``."""

    def __getattr__(self, name: str) -> np.ndarray:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no '{name}' here, only {', '.join(self)}") from None


def at(result: Result, t: Any) -> Moment:
    """The state at any time of the run: one row if t is a number, else one row for each of the times."""
    try:
        times = np.asarray(t, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"a time is a number, or an array of numbers, got {t!r}") from None
    flat = np.atleast_1d(times).ravel()
    rows = result.t
    if flat.size and not (np.all(np.isfinite(flat)) and rows[0] <= flat.min() and flat.max() <= rows[-1]):
        raise InputError(f"the run knows the times from {rows[0]:g} to {rows[-1]:g}, not {t!r}")
    scheme = schemes.get(result.facts.scheme)
    names = [name for name in ("q", "v", "p", "x", "y") if name in result.stored]
    found: dict[str, np.ndarray] = {}
    if not scheme.fictive and result.facts.every == 1:
        equations = scheme.equations(result.system, result.facts.dropped).flatten()
        if equations.inside is not None and set(_needed(equations)) <= set(result.stored):
            found = _within_steps(result, equations, flat)
    missing = [name for name in names if name not in found]
    if missing:
        found |= through_rows(result, missing, flat, scheme.order)
    shape = times.shape
    return Moment(t=times, **{name: found[name].reshape(*shape, found[name].shape[-1]) for name in names})


def _needed(equations: FlatEquations) -> list[str]:
    return [name for name in equations.layout.sizes if name in VARIABLES]


def inside_function(equations: FlatEquations) -> tuple[ca.Function, list[str]]:
    """What the scheme's own formula gives within a step, as a function of (x, z, c, theta), and what it is of."""
    theta, parts = equations.inside
    return ca.Function("inside", [*equations.arguments, theta], list(parts.values())), list(parts)


def _within_steps(result: Result, equations: FlatEquations, times: np.ndarray) -> dict[str, np.ndarray]:
    inside, names = inside_function(equations)
    stepper, k, rows = ReferenceSolver(equations), result.parameter_vector, result.t
    found = {name: np.empty((times.size, equations.layout.sizes[name])) for name in names}
    step_of = np.clip(np.searchsorted(rows, times, side="right") - 1, 0, len(rows) - 2)
    for n in np.unique(step_of):
        x, z, c = _step_again(result, equations, stepper, int(n), k)
        for i in np.flatnonzero(step_of == n):
            theta = (times[i] - rows[n]) / (rows[n + 1] - rows[n])
            values = inside(x, z, c, theta)
            for name, value in zip(names, values if isinstance(values, (list, tuple)) else [values], strict=True):
                found[name][i] = np.array(value).ravel()
    return found


def _step_again(
    result: Result, equations: FlatEquations, stepper: ReferenceSolver, n: int, k: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    layout = equations.layout
    z, end = (layout.vector({name: getattr(result, name)[i] for name in _needed(equations)}) for i in (n, n + 1))
    c = np.concatenate([[result.t[n + 1] - result.t[n], result.t[n]], k])
    x, _, trouble, _, _ = stepper.solve(equations.guess_function(z, c).full().ravel(), z, c)
    again = equations.end_function(x, z, c).full().ravel()
    state = slice(0, layout[next(reversed([name for name in ("q", "x") if name in layout]))].stop)
    scale = 1.0 + np.abs(end[state]) + np.abs(end[state] - z[state])
    if trouble is not None or not np.all(np.abs(again[state] - end[state]) <= _SAME * scale):
        raise IntegrationError(
            f"the step from t = {result.t[n]:.9g} could not be taken again, so nothing can be said between its ends"
        )
    return x, z, c


def through_rows(result: Any, names: Sequence[str], times: np.ndarray, order: int) -> dict[str, np.ndarray]:
    """Polynomials through rows around each time: q with its slopes v, everything else by its values alone.

    `result` is a Result, or anything else that has `t`, `stored` and the variables as attributes.
    """
    rows, found = result.t, {}
    for name in names:
        values = getattr(result, name)
        slopes = result.v if name == "q" and "v" in result.stored else None
        count = min(len(rows), (order + 2) // 2 + 1 if slopes is not None else order + 2)
        out = np.empty((times.size, values.shape[1]))
        nearest = np.clip(np.searchsorted(rows, times, side="right") - 1, 0, max(len(rows) - 2, 0))
        first = np.clip(nearest - (count - 2) // 2, 0, len(rows) - count)
        for a in np.unique(first):
            here, which = slice(int(a), int(a) + count), np.flatnonzero(first == a)
            out[which] = polynomial(rows[here], values[here], None if slopes is None else slopes[here])(times[which])
        found[name] = out
    return found


def polynomial(t: np.ndarray, values: np.ndarray, slopes: np.ndarray | None = None) -> Any:
    """The polynomial through values, and with these slopes if given, as a function of time."""
    if len(t) == 1:
        return lambda times: np.repeat(values, len(np.atleast_1d(times)), axis=0)
    from scipy.interpolate import KroghInterpolator  # it takes long to import, and most runs are never asked for this

    scale = t[-1] - t[0]  # else the divided differences of many close times overflow
    tau = (t - t[0]) / scale
    if slopes is None:
        through = KroghInterpolator(tau, values)
    else:
        through = KroghInterpolator(
            np.repeat(tau, 2), np.stack([values, slopes * scale], axis=1).reshape(-1, values.shape[1])
        )
    return lambda times: through((np.asarray(times) - t[0]) / scale)
