"""Dense output: the state of a run between stored rows.

For schemes with a formula within the step (collocation) the step is replayed and the formula evaluated. For other
schemes a Hermite polynomial interpolates the neighbouring rows. Its degree matches the order of the scheme, with
velocities as derivatives of the coordinates.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens import schemes
from livens.engine import loop
from livens.engine.compiled import CompiledStep, compiled_step
from livens.engine.pivots import SingularMatrixError
from livens.engine.reference import ReferenceSolver
from livens.engine.series.stepper import Between
from livens.errors import InputError, IntegrationError, suggestion
from livens.expressions.numbers import array
from livens.expressions.variables import VARIABLES
from livens.schemes.base import Scheme
from livens.schemes.radau import Radau
from livens.schemes.step import FlatEquations

if TYPE_CHECKING:
    from livens.results.result import Result

#: Relative tolerance between the final state of a replayed step and the stored state.
_SAME = 1e-8
#: Largest number of steps replayed by the Python solver; more steps use native code.
_ONE_BY_ONE = 20


class Moment(dict[str, np.ndarray]):
    """Sample of a run: variables at given times by name, also as attributes: ``run.at(0.5).q``.

    Keys are names of variables, values are arrays whose leading axes are the shape of the times.
    """

    def __getattr__(self, name: str) -> np.ndarray:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no variable '{name}' in this sample, only {', '.join(self)}") from None


def at(result: Result, t: Any) -> Moment:
    """Return the state at any time of the run: one row if t is a number, else one row per time."""
    try:
        times = np.asarray(t, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"a time is a number, or an array of numbers, got {t!r}") from None
    flat = np.atleast_1d(times).ravel()
    rows = result.t
    if flat.size and not (np.all(np.isfinite(flat)) and rows[0] <= flat.min() and flat.max() <= rows[-1]):
        raise InputError(f"the run covers the times from {rows[0]:g} to {rows[-1]:g}, got {t!r}")
    scheme = result._scheme or schemes.get(result.facts.scheme)
    names = [name for name in ("q", "v", "p", "x", "y") if name in result.stored]
    found: dict[str, np.ndarray] = {}
    if not scheme.fictive and result.facts.every == 1:
        again = Again.of(result, scheme)
        if again is not None:
            found = again.within_steps(flat)
    missing = [name for name in names if name not in found]
    if missing:
        found |= through_rows(result, missing, flat, scheme.order)
    shape = times.shape
    return Moment(t=times, **{name: found[name].reshape(*shape, found[name].shape[-1]) for name in names})


def step_values(result: Result, names: str | Sequence[str] | None, steps: Any) -> Moment:
    """Return unknowns and stage values of steps of a run, one row per step; see `Result.step_values`."""
    scheme = result._scheme or schemes.get(result.facts.scheme)
    if scheme.fictive or result.facts.every != 1 or isinstance(scheme, Radau):
        raise InputError(
            "step_values replays the steps: the run must have stored every step (every=1), with a scheme with a "
            "constant number of stages and without fictive time"
        )
    count = len(result.t) - 1
    chosen = (
        np.arange(count)
        if steps is None
        else np.atleast_1d(array("steps", steps, words="a number or a list of numbers"))
    )
    if chosen.ndim > 1 or not np.all((chosen >= 0) & (chosen < count) & (chosen == np.floor(chosen))):
        raise InputError(f"steps are numbered from 0 to {count - 1}, got {steps!r}")
    chosen = chosen.astype(int)
    return Again(result, compiled_step(result.system, scheme, tuple(result.facts.dropped))).values(chosen, names)


def inside_function(equations: FlatEquations) -> tuple[ca.Function, list[str]]:
    """Return the scheme's dense-output formula as a function of (x, z, c, theta), and the names of its outputs."""
    theta, parts = equations.inside
    return ca.Function("inside", [*equations.arguments, theta], list(parts.values())), list(parts)


class Again:
    """Replay of steps of a run, to evaluate the dense-output formula of its scheme.

    A few steps are solved by the Python solver; many steps by the native code of the run.
    """

    def __init__(self, result: Result, compiled: CompiledStep) -> None:
        self._result, self._compiled = result, compiled
        self._layout = compiled.layout
        self._needed = [name for name in self._layout.sizes if name in VARIABLES]

    @classmethod
    def of(cls, result: Result, scheme: Scheme) -> Again | None:
        """Return a replay if the scheme has a dense-output formula and the run has stored its inputs, else None."""
        compiled = compiled_step(result.system, scheme, tuple(result.facts.dropped))
        again = cls(result, compiled)
        return again if compiled.says_inside and set(again._needed) <= set(result.stored) else None

    @property
    def _equations(self) -> FlatEquations:
        return self._compiled.flat

    def by_series(self, between: Between, times: np.ndarray) -> dict[str, np.ndarray]:
        """Evaluate the Taylor polynomials of the steps."""
        rows = self._result.t
        step_of = np.clip(np.searchsorted(rows, times, side="right") - 1, 0, len(rows) - 2)
        states = np.empty((len(times), self._layout.size))
        for piece, k in self._pieces(step_of):
            needed, which = np.unique(step_of[piece], return_inverse=True)
            t = rows[needed].astype(float)
            series = between.coefficients(self._layout_rows(needed), t, k)
            after = times[piece] - t[which]
            rows_before = self._layout_rows(step_of[piece])
            states[piece] = between.evaluated(rows_before, series[which], t[which], after, k)
        return {name: states[:, self._layout[name]] for name in ("q", "v", "p", "x", "y") if name in self._layout}

    def by_stages(self, scheme: Radau, times: np.ndarray) -> dict[str, np.ndarray]:
        """Evaluate steps of the variable-order Radau method, each with its number of stages."""
        rows, found = self._result.t, dict[str, np.ndarray]()
        step_of = np.clip(np.searchsorted(rows, times, side="right") - 1, 0, len(rows) - 2)
        stages = np.ravel(self._result.stages)[step_of + 1].astype(int)
        for s in np.unique(stages):
            here = np.flatnonzero(stages == s)
            member = compiled_step(self._compiled.model, scheme.member(int(s)), self._compiled.dropped)
            for name, values in Again(self._result, member).within_steps(times[here]).items():
                found.setdefault(name, np.empty((len(times), values.shape[1])))[here] = values
        return found

    def within_steps(self, times: np.ndarray) -> dict[str, np.ndarray]:
        """Return the state parts given by the dense-output formula at the given times."""
        if self._compiled.between is not None:
            return self.by_series(self._compiled.between, times)
        if isinstance(self._compiled.scheme, Radau):
            return self.by_stages(self._compiled.scheme, times)
        rows, equations = self._result.t, self._equations
        step_of = np.clip(np.searchsorted(rows, times, side="right") - 1, 0, len(rows) - 2)
        needed, which = np.unique(step_of, return_inverse=True)
        Z, ends = (self._layout_rows(needed + i) for i in (0, 1))
        t, h = rows[needed].astype(float), (rows[needed + 1] - rows[needed]).astype(float)
        unknowns = np.zeros((len(needed), equations.size))
        for piece, k in self._pieces(needed):
            unknowns[piece] = self._unknowns(Z[piece], ends[piece], t[piece], h[piece], k)
        theta = (times - t[which]) / h[which]
        inside, names = inside_function(equations)
        found: dict[str, np.ndarray] = {}
        for piece, k in self._pieces(needed[which]):
            at_step = which[piece]
            c = np.vstack([h[at_step], t[at_step], np.repeat(k[:, None], len(at_step), axis=1)])
            values = inside.call([ca.DM(unknowns[at_step].T), ca.DM(Z[at_step].T), ca.DM(c), ca.DM(theta[piece][None])])
            for name, value in zip(names, values, strict=True):
                part = found.setdefault(name, np.empty((len(times), self._layout.sizes[name])))
                part[piece] = np.array(value).T
        return found

    def values(self, steps: np.ndarray, names: str | Sequence[str] | None) -> Moment:
        """Return stage values, multipliers and other unknowns of steps by name."""
        if self._compiled.series or not self._equations.values:
            raise InputError(
                f"scheme '{self._compiled.scheme.name}' has no stage values"
            )
        if not set(self._needed) <= set(self._result.stored):
            missing = next(name for name in self._needed if name not in self._result.stored)
            raise InputError(f"step_values replays the steps, but the run did not store '{missing}'")
        e, rows, known = self._equations, self._result.t, self._equations.values
        asked = list(known) if names is None else [names] if isinstance(names, str) else list(names)
        for name in asked:
            if name not in known:
                raise InputError(f"a step has no '{name}'{suggestion(str(name), known)}")
        moving = steps[np.diff(rows)[steps] > 0]  # two rows at the time of an event are not a step
        Z, ends = (self._layout_rows(moving + i) for i in (0, 1))
        t, h = rows[moving].astype(float), (rows[moving + 1] - rows[moving]).astype(float)
        function = ca.Function("values", e.arguments, [ca.densify(known[name]) for name in asked])
        found = {name: np.empty((len(moving), known[name].numel())) for name in asked}
        for piece, k in self._pieces(moving):
            x = self._unknowns(Z[piece], ends[piece], t[piece], h[piece], k)
            c = np.vstack([h[piece], t[piece], np.repeat(k[:, None], len(piece), axis=1)])
            for name, value in zip(asked, function.call([ca.DM(x.T), ca.DM(Z[piece].T), ca.DM(c)]), strict=True):
                found[name][piece] = np.array(value).T
        return Moment(t=t, h=h, **found)

    def _layout_rows(self, rows: np.ndarray) -> np.ndarray:
        """Return stored rows as state vectors in the layout of the engine."""
        states = np.zeros((len(rows), self._layout.size))
        for name in self._needed:
            values = np.asarray(getattr(self._result, name))[rows]
            states[:, self._layout[name]] = values if values.ndim == 2 else values[:, None]
        return states

    def _pieces(self, rows: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return (indices into `rows`, parameter vector) for every segment of constant parameters."""
        pieces = self._result.parameter_pieces
        edges = [first for first, _ in pieces] + [len(self._result.t)]
        parts = [np.flatnonzero((rows >= a) & (rows < b)) for a, b in itertools.pairwise(edges)]
        return [(part, k) for part, (_, k) in zip(parts, pieces, strict=True) if part.size]

    def _unknowns(self, Z: np.ndarray, ends: np.ndarray, t: np.ndarray, h: np.ndarray, k: np.ndarray) -> np.ndarray:
        """Solve for the unknowns of the steps from states Z; their final states must match the stored ones."""
        e, X, solved = self._equations, np.zeros((len(t), self._equations.size)), np.zeros(len(t), dtype=np.bool_)
        c = np.concatenate([[0.0, 0.0], k])
        if len(t) > _ONE_BY_ONE and e.size:
            self._natively(X, Z, c, t, h, solved)
        reference = ReferenceSolver(e) if not solved.all() else None
        for s in np.flatnonzero(~solved):
            assert reference is not None
            here = np.concatenate([[h[s], t[s]], k])
            X[s], _, trouble, _, _ = reference.solve(e.guess_function(Z[s], here).full().ravel(), Z[s], here)
            solved[s] = trouble is None
        constants = np.vstack([h, t, np.repeat(k[:, None], len(t), axis=1)])
        again = np.array(e.end_function(ca.DM(X.T), ca.DM(Z.T), ca.DM(constants))).T
        last = next(reversed([name for name in ("q", "x") if name in self._layout]))
        state = slice(0, self._layout[last].stop)
        scale = 1.0 + np.abs(ends[:, state]) + np.abs(ends[:, state] - Z[:, state])
        good = solved & np.all(np.abs(again[:, state] - ends[:, state]) <= _SAME * scale, axis=1)
        if not good.all():
            raise IntegrationError(
                f"the step from t = {t[int(np.argmin(good))]:.9g} could not be replayed: no dense output "
                "within this step"
            )
        return X

    def _natively(
        self, X: np.ndarray, Z: np.ndarray, c: np.ndarray, t: np.ndarray, h: np.ndarray, solved: np.ndarray
    ) -> None:
        """Solve steps by native code with the pivot order of the first step; some steps may stay unsolved."""
        here = np.concatenate([[h[0], t[0]], c[2:]])
        guess = self._equations.guess_function(Z[0], here).full().ravel()
        try:
            order = self._compiled.first_order(guess, Z[0], here, here)
        except SingularMatrixError:
            return
        loop.solve_steps(self._compiled.kernels(order), X, np.ascontiguousarray(Z), c, t, h, solved)


def through_rows(result: Any, names: Sequence[str], times: np.ndarray, order: int) -> dict[str, np.ndarray]:
    """Interpolate rows around each time: q by Hermite interpolation with v, other variables by their values.

    `result` is a Result, or any object with `t`, `stored` and the variables as attributes. Two rows at the same time
    mark an event; no polynomial spans an event.
    """
    rows, found = result.t, {}
    jumps = np.flatnonzero(np.diff(rows) <= 0) + 1
    first_row = np.concatenate([[0], jumps, [len(rows)]])
    nearest = np.clip(np.searchsorted(rows, times, side="right") - 1, 0, max(len(rows) - 2, 0))
    piece = np.searchsorted(jumps, nearest, side="right")
    for name in names:
        values = getattr(result, name)
        slopes = result.v if name == "q" and "v" in result.stored else None
        wanted = (order + 2) // 2 + 1 if slopes is not None else order + 2
        out = np.empty((times.size, values.shape[1]))
        for p in np.unique(piece):
            begin, end = int(first_row[p]), int(first_row[p + 1])
            count, inside = min(end - begin, wanted), np.flatnonzero(piece == p)
            first = np.clip(nearest[inside] - (count - 2) // 2, begin, end - count)
            for a in np.unique(first):
                here, which = slice(int(a), int(a) + count), inside[first == a]
                shown = None if slopes is None else slopes[here]
                out[which] = polynomial(rows[here], values[here], shown)(times[which])
        found[name] = out
    return found


def polynomial(t: np.ndarray, values: np.ndarray, slopes: np.ndarray | None = None) -> Any:
    """Return the interpolating polynomial through values, and derivatives if given, as a function of time."""
    if len(t) == 1:
        return lambda times: np.repeat(values, len(np.atleast_1d(times)), axis=0)
    from scipy.interpolate import KroghInterpolator  # slow import, rarely needed

    scale = t[-1] - t[0]  # normalised times avoid overflow of the divided differences
    tau = (t - t[0]) / scale
    if slopes is None:
        through = KroghInterpolator(tau, values)
    else:
        through = KroghInterpolator(
            np.repeat(tau, 2), np.stack([values, slopes * scale], axis=1).reshape(-1, values.shape[1])
        )
    return lambda times: through((np.asarray(times) - t[0]) / scale)
