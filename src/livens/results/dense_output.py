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
from livens.engine.compiled_step import CompiledStep, compiled_step
from livens.engine.newton import time_loop
from livens.engine.newton.markowitz import SingularMatrixError
from livens.engine.stepper import step_inputs
from livens.engine.steppers.reference import ReferenceSolver
from livens.errors import InputError, IntegrationError, suggestion
from livens.expressions.result_variables import RESULT_VARIABLES
from livens.schemes.core.scheme import Scheme
from livens.schemes.core.step_equations import StepGraph
from livens.types import ArrayLike, ModelFunction
from livens.validation import check_array

if TYPE_CHECKING:
    from livens.engine.taylor.stepper import TaylorInterpolant
    from livens.results.result import Result
    from livens.schemes.runge_kutta.radau import Radau

#: Relative tolerance between the final state of a replayed step and the stored state.
_REPLAY_RTOL = 1e-8
#: Largest number of steps replayed by the Python solver; more steps use native code.
_NATIVE_FROM = 20
#: Number of neighbours of a step over a switch on either side, and its largest size relative to the longest of them.
_NEIGHBOURS, _SHORT_STEP = 3, 1e-4
#: Size of a step relative to its time below which the state is linear to round-off.
_LINEAR_STEP = 1e-12


class Sample(dict[str, np.ndarray]):
    """Sample of a run: variables at given times by name, also as attributes: ``run.at(0.5).q``.

    Keys are names of variables, values are arrays whose leading axes are the shape of the times.
    """

    def __getattr__(self, name: str) -> np.ndarray:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no variable '{name}' in this sample, only {', '.join(self)}") from None


def at(result: Result, t: ArrayLike) -> Sample:
    """Return the state at any time of the run: one row if t is a number, else one row per time."""
    try:
        times = np.asarray(t, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"a time is a number, or an array of numbers, got {t!r}") from None
    flat_times = np.atleast_1d(times).ravel()
    rows = result.t
    if flat_times.size and not (
        np.all(np.isfinite(flat_times)) and rows[0] <= flat_times.min() and flat_times.max() <= rows[-1]
    ):
        raise InputError(f"the run covers the times from {rows[0]:g} to {rows[-1]:g}, got {t!r}")
    scheme = result._scheme or schemes.get(result.info.scheme)
    names = [name for name in ("q", "v", "p", "x", "y") if name in result.stored]
    values: dict[str, np.ndarray] = {}
    if not scheme.fictive and result.info.every == 1:
        replay = StepReplay.create(result, scheme)
        if replay is not None:
            values = replay.evaluate(flat_times)
    missing = [name for name in names if name not in values]
    if missing:
        values |= interpolate_rows(result, missing, flat_times, scheme.order)
    shape = times.shape
    return Sample(t=times, **{name: values[name].reshape(*shape, values[name].shape[-1]) for name in names})


def step_values(result: Result, names: str | Sequence[str] | None, steps: ArrayLike | None) -> Sample:
    """Return unknowns and stage values of steps of a run, one row per step; see `Result.step_values`."""
    from livens.schemes.runge_kutta.radau import Radau

    scheme = result._scheme or schemes.get(result.info.scheme)
    if scheme.fictive or result.info.every != 1 or isinstance(scheme, Radau):
        raise InputError(
            "step_values replays the steps: the run must have stored every step (every=1), with a scheme with a "
            "constant number of stages and without fictive time"
        )
    count = len(result.t) - 1
    selected = (
        np.arange(count)
        if steps is None
        else np.atleast_1d(check_array("steps", steps, description="a number or a list of numbers"))
    )
    if selected.ndim > 1 or not np.all((selected >= 0) & (selected < count) & (selected == np.floor(selected))):
        raise InputError(f"steps are numbered from 0 to {count - 1}, got {steps!r}")
    selected = selected.astype(int)
    return StepReplay(result, compiled_step(result.system, scheme, tuple(result.info.dropped))).step_values(
        selected, names
    )


def dense_output_function(equations: StepGraph) -> tuple[ca.Function, list[str]]:
    """Return the scheme's dense-output formula as a function of (x, z, c, theta), and the names of its outputs."""
    theta, parts = equations.dense_output
    return ca.Function("inside", [*equations.arguments, theta], list(parts.values())), list(parts)


class StepReplay:
    """Replay of steps of a run, to evaluate the dense-output formula of its scheme.

    A few steps are solved by the Python solver; many steps by the native code of the run.
    """

    def __init__(self, result: Result, compiled: CompiledStep) -> None:
        self._result, self._compiled = result, compiled
        self._layout = compiled.layout
        self._required = [name for name in self._layout.sizes if name in RESULT_VARIABLES]

    @classmethod
    def create(cls, result: Result, scheme: Scheme) -> StepReplay | None:
        """Return a replay if the scheme has a dense-output formula and the run has stored its inputs, else None."""
        compiled = compiled_step(result.system, scheme, tuple(result.info.dropped))
        replay = cls(result, compiled)
        return replay if compiled.has_dense_output and set(replay._required) <= set(result.stored) else None

    @property
    def _equations(self) -> StepGraph:
        return self._compiled.flat_equations

    def _evaluate_taylor(self, dense_output: TaylorInterpolant, times: np.ndarray) -> dict[str, np.ndarray]:
        """Evaluate the Taylor polynomials of the steps."""
        rows = self._result.t
        step_of = np.clip(np.searchsorted(rows, times, side="right") - 1, 0, len(rows) - 2)
        states = np.empty((len(times), self._layout.size))
        for segment, k in self._parameter_segments(step_of):
            steps, step_index = np.unique(step_of[segment], return_inverse=True)
            t = rows[steps].astype(float)
            series = dense_output.coefficients(self._states_at(steps), t, k)
            dt = times[segment] - t[step_index]
            rows_before = self._states_at(step_of[segment])
            states[segment] = dense_output.evaluate(rows_before, series[step_index], t[step_index], dt, k)
        return {name: states[:, self._layout[name]] for name in ("q", "v", "p", "x", "y") if name in self._layout}

    def _evaluate_radau(self, scheme: Radau, times: np.ndarray) -> dict[str, np.ndarray]:
        """Evaluate steps of the variable-order Radau method, each with its number of stages."""
        rows, values_by_name = self._result.t, dict[str, np.ndarray]()
        step_of = np.clip(np.searchsorted(rows, times, side="right") - 1, 0, len(rows) - 2)
        stages = np.ravel(self._result.stages)[step_of + 1].astype(int)
        for s in np.unique(stages):
            indices = np.flatnonzero(stages == s)
            method = compiled_step(self._compiled.model, scheme.with_stages(int(s)), self._compiled.removed_constraints)
            for name, values in StepReplay(self._result, method).evaluate(times[indices]).items():
                values_by_name.setdefault(name, np.empty((len(times), values.shape[1])))[indices] = values
        return values_by_name

    def evaluate(self, times: np.ndarray) -> dict[str, np.ndarray]:
        """Return the state parts given by the dense-output formula at the given times.

        On steps of round-off size over a switch they are linear: an implicit step over it may have no solution.
        """
        rows = self._result.t
        h = np.diff(rows)
        is_over = (h > 0) & (h < _LINEAR_STEP * np.abs(rows[1:]))
        step_of = np.clip(np.searchsorted(rows, times, side="right") - 1, 0, len(rows) - 2)
        within = np.flatnonzero(is_over[step_of])
        if not within.size:
            return self._evaluate_steps(times)
        outside = np.flatnonzero(~is_over[step_of])
        if not outside.size:
            return {}
        smooth, first = self._evaluate_steps(times[outside]), step_of[within]
        theta = ((times[within] - rows[first]) / h[first])[:, None]
        result = {}
        for name, inside in smooth.items():
            values = np.asarray(getattr(self._result, name))
            result[name] = np.empty((len(times), values.shape[1]))
            result[name][within] = (1 - theta) * values[first] + theta * values[first + 1]
            result[name][outside] = inside
        return result

    def _evaluate_steps(self, times: np.ndarray) -> dict[str, np.ndarray]:
        """Return the state parts given by the dense-output formula within the replayed steps."""
        if self._compiled.taylor_interpolant is not None:
            return self._evaluate_taylor(self._compiled.taylor_interpolant, times)
        from livens.schemes.runge_kutta.radau import Radau

        if isinstance(self._compiled.scheme, Radau):
            return self._evaluate_radau(self._compiled.scheme, times)
        rows, equations = self._result.t, self._equations
        step_of = np.clip(np.searchsorted(rows, times, side="right") - 1, 0, len(rows) - 2)
        steps, step_index = np.unique(step_of, return_inverse=True)
        Z, final_states = (self._states_at(steps + i) for i in (0, 1))
        t, h = rows[steps].astype(float), (rows[steps + 1] - rows[steps]).astype(float)
        unknowns = np.zeros((len(steps), equations.size))
        for segment, k in self._parameter_segments(steps):
            unknowns[segment] = self._resolve_unknowns(Z[segment], final_states[segment], t[segment], h[segment], k)
        theta = (times - t[step_index]) / h[step_index]
        formula, names = dense_output_function(equations)
        result: dict[str, np.ndarray] = {}
        for segment, k in self._parameter_segments(steps[step_index]):
            at_step = step_index[segment]
            c = np.vstack([h[at_step], t[at_step], np.repeat(k[:, None], len(at_step), axis=1)])
            values = formula.call(
                [ca.DM(unknowns[at_step].T), ca.DM(Z[at_step].T), ca.DM(c), ca.DM(theta[segment][None])]
            )
            for name, value in zip(names, values, strict=True):
                part = result.setdefault(name, np.empty((len(times), self._layout.sizes[name])))
                part[segment] = np.array(value).T
        return result

    def step_values(self, steps: np.ndarray, names: str | Sequence[str] | None) -> Sample:
        """Return stage values, multipliers and other unknowns of steps by name."""
        if self._compiled.uses_taylor_series or not self._equations.named_values:
            raise InputError(f"scheme '{self._compiled.scheme.name}' has no stage values")
        if not set(self._required) <= set(self._result.stored):
            missing = next(name for name in self._required if name not in self._result.stored)
            raise InputError(f"step_values replays the steps, but the run did not store '{missing}'")
        e, rows, unknowns = self._equations, self._result.t, self._equations.named_values
        requested = list(unknowns) if names is None else [names] if isinstance(names, str) else list(names)
        for name in requested:
            if name not in unknowns:
                raise InputError(f"a step has no '{name}'{suggestion(str(name), unknowns)}")
        proper_steps = steps[np.diff(rows)[steps] > 0]  # two rows at the time of an event are not a step
        Z, final_states = (self._states_at(proper_steps + i) for i in (0, 1))
        t, h = rows[proper_steps].astype(float), (rows[proper_steps + 1] - rows[proper_steps]).astype(float)
        function = ca.Function("values", e.arguments, [ca.densify(unknowns[name]) for name in requested])
        result = {name: np.empty((len(proper_steps), unknowns[name].numel())) for name in requested}
        for segment, k in self._parameter_segments(proper_steps):
            x = self._resolve_unknowns(Z[segment], final_states[segment], t[segment], h[segment], k)
            c = np.vstack([h[segment], t[segment], np.repeat(k[:, None], len(segment), axis=1)])
            for name, value in zip(requested, function.call([ca.DM(x.T), ca.DM(Z[segment].T), ca.DM(c)]), strict=True):
                result[name][segment] = np.array(value).T
        return Sample(t=t, h=h, **result)

    def _states_at(self, rows: np.ndarray) -> np.ndarray:
        """Return stored rows as state vectors in the layout of the engine."""
        states = np.zeros((len(rows), self._layout.size))
        for name in self._required:
            values = np.asarray(getattr(self._result, name))[rows]
            states[:, self._layout[name]] = values if values.ndim == 2 else values[:, None]
        return states

    def _parameter_segments(self, rows: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return (indices into `rows`, parameter vector) for every segment of constant parameters."""
        segments = self._result.parameter_segments
        edges = [first_row for first_row, _ in segments] + [len(self._result.t)]
        selections = [np.flatnonzero((rows >= a) & (rows < b)) for a, b in itertools.pairwise(edges)]
        return [(selection, k) for selection, (_, k) in zip(selections, segments, strict=True) if selection.size]

    def _resolve_unknowns(
        self, Z: np.ndarray, final_states: np.ndarray, t: np.ndarray, h: np.ndarray, k: np.ndarray
    ) -> np.ndarray:
        """Solve for the unknowns of the steps from states Z; their final states must match the stored ones."""
        e, X, solved = self._equations, np.zeros((len(t), self._equations.size)), np.zeros(len(t), dtype=np.bool_)
        c = step_inputs(0.0, 0.0, k)
        if len(t) > _NATIVE_FROM and e.size:
            self._resolve_native(X, Z, c, t, h, solved)
        reference = ReferenceSolver(e) if not solved.all() else None
        for s in np.flatnonzero(~solved):
            assert reference is not None
            inputs = np.concatenate([[h[s], t[s]], k])
            X[s], _, failure, _, _ = reference.solve(
                e.initial_guess_function(Z[s], inputs).full().ravel(), Z[s], inputs
            )
            solved[s] = failure is None
        inputs_by_step = np.vstack([h, t, np.repeat(k[:, None], len(t), axis=1)])
        replayed = np.array(e.final_state_function(ca.DM(X.T), ca.DM(Z.T), ca.DM(inputs_by_step))).T
        last_part = next(reversed([name for name in ("q", "x") if name in self._layout]))
        state_slice = slice(0, self._layout[last_part].stop)
        scale = 1.0 + np.abs(final_states[:, state_slice]) + np.abs(final_states[:, state_slice] - Z[:, state_slice])
        is_reproduced = solved & np.all(
            np.abs(replayed[:, state_slice] - final_states[:, state_slice]) <= _REPLAY_RTOL * scale, axis=1
        )
        if not is_reproduced.all():
            raise IntegrationError(
                f"the step from t = {t[int(np.argmin(is_reproduced))]:.9g} could not be replayed: no dense output "
                "within this step"
            )
        return X

    def _resolve_native(
        self, X: np.ndarray, Z: np.ndarray, c: np.ndarray, t: np.ndarray, h: np.ndarray, solved: np.ndarray
    ) -> None:
        """Solve steps by native code with the pivot order of the first step; some steps may stay unsolved."""
        inputs = np.concatenate([[h[0], t[0]], c[2:]])
        initial_guess = self._equations.initial_guess_function(Z[0], inputs).full().ravel()
        try:
            pivot_order = self._compiled.initial_pivot_order(initial_guess, Z[0], inputs, inputs)
        except SingularMatrixError:
            return
        time_loop.resolve_steps(self._compiled.kernels(pivot_order), X, np.ascontiguousarray(Z), c, t, h, solved)


def steps_over_switches(t: np.ndarray) -> np.ndarray:
    """Return whether each step between these times is a step over a located switch.

    Such steps are much shorter than one of the three steps before and one of the three after them.

    Examples
    --------
    >>> steps_over_switches(np.array([0.0, 0.1, 0.2, 0.2 + 1e-9, 0.3, 0.4]))
    array([False, False,  True, False, False])
    """
    h = np.diff(t)
    if len(h) < 2:
        return np.zeros(len(h), dtype=bool)
    padded = np.concatenate([np.zeros(_NEIGHBOURS), h, np.zeros(_NEIGHBOURS)])
    largest = np.lib.stride_tricks.sliding_window_view(padded, _NEIGHBOURS).max(axis=1)
    before, after = largest[: len(h)], largest[_NEIGHBOURS + 1 :]
    before[0] = after[-1] = np.inf  # steps that do not exist
    return np.asarray(h < _SHORT_STEP * np.minimum(before, after))


def interpolate_rows(result: Any, names: Sequence[str], times: np.ndarray, order: int) -> dict[str, np.ndarray]:
    """Interpolate rows around each time: q by Hermite interpolation with v, other variables by their values.

    `result` is a Result, or any object with `t`, `stored` and the variables as attributes. Two rows at the same time
    mark an event, and a step much shorter than its neighbours a located switch; no polynomial spans either of them.
    """
    rows, interpolated = result.t, {}
    jumps = np.flatnonzero((np.diff(rows) <= 0) | steps_over_switches(rows)) + 1
    first_row = np.concatenate([[0], jumps, [len(rows)]])
    nearest = np.clip(np.searchsorted(rows, times, side="right") - 1, 0, max(len(rows) - 2, 0))
    segment = np.searchsorted(jumps, nearest, side="right")
    for name in names:
        values = getattr(result, name)
        derivatives = result.v if name == "q" and "v" in result.stored else None
        n_nodes = (order + 2) // 2 + 1 if derivatives is not None else order + 2
        out = np.empty((times.size, values.shape[1]))
        for p in np.unique(segment):
            segment_start, segment_stop = int(first_row[p]), int(first_row[p + 1])
            count, in_segment = min(segment_stop - segment_start, n_nodes), np.flatnonzero(segment == p)
            first_node = np.clip(nearest[in_segment] - (count - 2) // 2, segment_start, segment_stop - count)
            for a in np.unique(first_node):
                nodes, selected = slice(int(a), int(a) + count), in_segment[first_node == a]
                node_derivatives = None if derivatives is None else derivatives[nodes]
                out[selected] = hermite_interpolant(rows[nodes], values[nodes], node_derivatives)(times[selected])
        interpolated[name] = out
    return interpolated


def hermite_interpolant(t: np.ndarray, values: np.ndarray, derivatives: np.ndarray | None = None) -> ModelFunction:
    """Return the interpolating polynomial through values, and derivatives if given, as a function of time."""
    if len(t) == 1:
        return lambda times: np.repeat(values, len(np.atleast_1d(times)), axis=0)
    from scipy.interpolate import KroghInterpolator  # slow import, rarely needed

    scale = t[-1] - t[0]  # normalised times avoid overflow of the divided differences
    tau = (t - t[0]) / scale
    if derivatives is None:
        interpolant = KroghInterpolator(tau, values)
    else:
        interpolant = KroghInterpolator(
            np.repeat(tau, 2), np.stack([values, derivatives * scale], axis=1).reshape(-1, values.shape[1])
        )
    return lambda times: interpolant((np.asarray(times) - t[0]) / scale)
