"""Event detection: sign changes of event functions, and their localisation within steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens.engine.codegen.step_kernels import compile_function_kernel
from livens.engine.compiled_step import CompiledStep
from livens.engine.newton import time_loop
from livens.engine.observables.kernel_table import ObservableKernel
from livens.engine.stepper import IntegratorState, StepChunk, step_inputs
from livens.errors import InputError
from livens.models import observable
from livens.results.dense_output import dense_output_function, hermite_interpolant
from livens.results.record import EventRecord
from livens.run.events.event import GAP_TOLERANCE, Event, ModelEvent, event_names, may_accumulate
from livens.types import Expr, FloatArray, IndexTable

if TYPE_CHECKING:
    from livens.engine.codegen.jit import NativeCode
    from livens.engine.taylor.stepper import TaylorInterpolant
    from livens.expressions.state_layout import Layout


#: Sample points within a step: dense for schemes with dense output (high-order polynomials), coarse for cubics.
_DENSE_SAMPLES, _COARSE_SAMPLES = np.arange(1, 8) / 8, np.arange(1, 4) / 4
#: Largest number of bisections of the interval before the first sample, to detect a recrossing soon after an action.
_MAX_BISECTIONS = 30
#: A minimum of |g| between samples is computed if the parabola through three samples comes closer to zero than this
#: fraction of their variation.
_TANGENCY_RATIO = 0.5
#: A minimum of |g| at the end of a step is ignored if it exceeds this multiple of the variation of its neighbours.
_EDGE_RATIO = 10.0


def _unused_function() -> None:
    """Placeholder function of guards, whose expressions are known."""


class EventDetector:
    """Detector of zero crossings of event functions, at the ends of steps and at samples of the dense output."""

    name = "events"

    def __init__(self, events: Sequence[Event], compiled: CompiledStep, k: np.ndarray, tier: str = "fused") -> None:
        self._names = [*event_names(events), *compiled.model.guards]
        model = compiled.model
        self.events, self.k, self._layout = list(events), k, compiled.layout
        self._view = model.view
        columns = []
        for i, event in enumerate(self.events):
            if isinstance(event, ModelEvent):
                columns.append(ca.SX(event.expression(model.view)))
                continue
            column, shape = observable.trace_observable(model, event.function)
            if shape != ():
                raise InputError(f"the function of event {event.name or i} must return one number")
            columns.append(column)
        self._n_sampled = len(columns)
        #: Guards of the model: expressions that must not cross zero.
        self.guards = tuple(model.guards)
        columns += [ca.SX(guard) for guard in model.guards.values()]
        self.events += [Event(_unused_function, name=name, terminal=True) for name in model.guards]
        column = ca.densify(ca.vertcat(*columns))
        self._table, self._function = ObservableKernel(model, column), model.view.function(column)
        self._step_interpolant = _StepInterpolant(compiled, tier)
        self._samples = _COARSE_SAMPLES if self._step_interpolant.evaluate is None else _DENSE_SAMPLES
        self._taylor_output = compiled.taylor_interpolant
        self._sample_code = (
            self._sample_kernel(column[: self._n_sampled]) if self._n_sampled and self._taylor_output is None else None
        )
        self._values_before: np.ndarray | None = None
        self._just_acted: list[int] = []  # events whose actions happened last
        self._displaced: list[int] = []  # those whose function left its zero by the action
        #: Index of the first step in which an event function is NaN, and the name of the event.
        self.undefined: tuple[int, str] | None = None

    # -- state between chunks -----------------------------------------------------------------------------------------
    def start_from(self, state: IntegratorState) -> None:
        """Set the state from which events are detected."""
        self._values_before = self._table(np.array([state.t]), state.z[None, :], self.k)[0]

    def values(self, state: IntegratorState) -> np.ndarray:
        """Return the event functions of a state, with the parameters of the detector."""
        return self._table(np.array([state.t]), state.z[None, :], self.k)[0]

    def restart_at(
        self, state: IntegratorState, names: Sequence[str], before_actions: np.ndarray | None = None
    ) -> None:
        """Restart from the zeros of these events, which must not be detected again there.

        `before_actions` are the event functions before the actions: zero up to the local error of the step.
        """
        self.start_from(state)
        self._just_acted = [
            i for i, name in enumerate(self._names) if name in names and self.events[i].action is not None
        ]
        assert self._values_before is not None
        jumps = np.zeros(len(self._names)) if before_actions is None else self._values_before - before_actions
        offsets = np.inf if before_actions is None else np.abs(before_actions)
        self._displaced = np.flatnonzero(np.abs(jumps) > offsets).tolist()
        self._values_before[[i for i, name in enumerate(self._names) if name in names]] = 0.0
        # an impact elsewhere may reopen closed contacts for a short time
        closed = [
            i
            for i, event in enumerate(self.events)
            if may_accumulate(event) and abs(self._values_before[i]) <= GAP_TOLERANCE
        ]
        self._values_before[closed] = 0.0
        self._just_acted = sorted({*self._just_acted, *closed})

    def checkpoint(self) -> dict[str, FloatArray | IndexTable] | dict[str, FloatArray]:
        values_before = np.zeros(0) if self._values_before is None else self._values_before.copy()
        indices = {"acted": self._just_acted, "displaced": self._displaced if self._just_acted else []}
        return {"before": values_before, **{name: np.array(stored) for name, stored in indices.items() if stored}}

    def restore(self, stored: dict[str, Any], names: Sequence[str]) -> None:
        """Restore stored values of events with these names; other events are detected from the current state on."""
        stored_values = dict(zip([*names, *self.guards], np.ravel(stored["before"]).tolist(), strict=False))
        if self._values_before is not None:
            for i, name in enumerate(self._names):
                self._values_before[i] = stored_values.get(name, self._values_before[i])
        just_acted, displaced = (
            [[*names, *self.guards][int(i)] for i in np.ravel(stored.get(key, ()))] for key in ("acted", "displaced")
        )
        self._just_acted = [i for i, name in enumerate(self._names) if name in just_acted]
        self._displaced = [i for i, name in enumerate(self._names) if name in displaced]

    def event(self, name: str) -> Event:
        """Return the event with this name."""
        return self.events[self._names.index(name)]

    # -- detection ----------------------------------------------------------------------------------------------------
    def detect(self, steps: StepChunk) -> list[tuple[int, EventRecord]]:
        """Return the events in these steps with their step indices, sorted by time and then by event order."""
        assert self._values_before is not None
        self.undefined = None
        if not steps.n_steps:
            return []
        state_before = steps.initial
        end_values = np.vstack([self._values_before, self._table(steps.t_end, steps.end_states, self.k)])
        times, Z = np.concatenate([[state_before.t], steps.t_end]), np.vstack([state_before.z, steps.end_states])
        sample_values = self._sample_steps(times, Z, steps)
        self.undefined = self._first_nan(end_values[:, : self._n_sampled], sample_values)
        just_acted, self._just_acted = self._just_acted, []
        occurrences = []
        for i, event in enumerate(self.events):
            g, theta = end_values[:, i], np.array([0.0, 1.0])
            if i < self._n_sampled:
                g, theta = (
                    np.vstack([end_values[:-1, i], sample_values[:, :, i].T, end_values[1:, i]]).T,
                    _grid(self._samples),
                )
            else:
                g = np.vstack([g[:-1], g[1:]]).T
            crossings = self._sign_changes(i, g, theta, times, Z, steps)
            if i in just_acted and i < self._n_sampled:
                crossings += self._early_recrossing(i, g[0], theta[1], times, Z, steps)
            for s, low, high, values in crossings:
                if event.direction and event.direction * (values[1] - values[0]) < 0:
                    continue
                state = self._interpolant(times[s : s + 2], Z[s : s + 2], steps.unknowns[s])
                root = self._localize(i, times[s : s + 2], state, (low, high), values)
                t_event = float(times[s] + root * (times[s + 1] - times[s])) if root < 1.0 else float(times[s + 1])
                parts = {name: value.tolist() for name, value in state(root).items()}
                occurrences.append((s, i, EventRecord(self._names[i], t_event, parts)))
        n_valid = steps.n_steps if self.undefined is None else self.undefined[0]
        self._values_before = end_values[n_valid]
        occurrences.sort(key=lambda item: (item[2].t, item[1]))
        return [(s, occurrence) for s, _, occurrence in occurrences if s < n_valid]

    def _first_nan(self, end_values: np.ndarray, sample_values: np.ndarray) -> tuple[int, str] | None:
        """Return the first step in which an event function is NaN, and the name of the event."""
        is_nan = np.isnan(end_values[:-1]) | np.isnan(end_values[1:]) | np.isnan(sample_values).any(axis=1)
        if not is_nan.any():
            return None
        step = int(np.argmax(is_nan.any(axis=1)))
        return step, self._names[int(np.argmax(is_nan[step]))]

    def _early_recrossing(
        self, i: int, g: np.ndarray, theta_first: float, times: np.ndarray, Z: np.ndarray, steps: StepChunk
    ) -> list[tuple[int, float, float, tuple[float, float]]]:
        """Return a recrossing before the first sample, for an event whose action led away from its zero briefly.

        If the action changed nothing, the function crosses zero only by the local error of the step before it; events
        of contacts change modes and occur again. The signs at both ends of the interval differ.
        """
        direction = self.events[i].direction
        if not direction * g[1] > 0:
            return []
        value, high, value_high = (
            self._event_function(i, times[:2], self._interpolant(times[:2], Z[:2], steps.unknowns[0])),
            theta_first,
            float(g[1]),
        )
        returns = i in self._displaced or isinstance(self.events[i], ModelEvent)
        bound = 0.0 if returns else min(0.0, direction * value(0.0))
        low = high
        for _ in range(_MAX_BISECTIONS):
            low /= 2
            value_low = value(low)
            if direction * value_low < bound:
                return [(0, low, high, (value_low, value_high))]
            if direction * value_low > 0:
                high, value_high = low, value_low
        return []

    def _sign_changes(
        self, i: int, g: np.ndarray, theta: np.ndarray, times: np.ndarray, Z: np.ndarray, steps: StepChunk
    ) -> list[tuple[int, float, float, tuple[float, float]]]:
        """Return (step, from, to, values) of every sign change, including those between samples."""
        crossings = []
        a, b = g[:, :-1], g[:, 1:]
        for s, j in zip(*np.nonzero(((a < 0) & (b >= 0)) | ((a > 0) & (b <= 0))), strict=True):
            crossings.append((int(s), float(theta[j]), float(theta[j + 1]), (float(g[s, j]), float(g[s, j + 1]))))
        if len(theta) > 2:
            for s, first, last in _near_tangencies(g):
                state = self._interpolant(times[s : s + 2], Z[s : s + 2], steps.unknowns[s])
                value = self._event_function(i, times[s : s + 2], state)
                low, high = float(theta[first]), float(theta[last])
                sign = float(np.sign(g[s, last]))
                theta_min = _bounded_minimum(value, sign, low, high)
                value_min = value(theta_min)
                if sign * value_min < 0:
                    crossings.append((s, low, theta_min, (float(g[s, first]), value_min)))
                    crossings.append((s, theta_min, high, (value_min, float(g[s, last]))))
        return crossings

    def _sample_kernel(self, column: Expr) -> NativeCode:
        """Compile the event functions at all samples of a step: functions of (x, z, c), step size and final state."""
        end_inputs = ca.SX.sym("more", 1 + self._layout.size)
        names, view = list(self._view.symbols), self._view
        function = ca.Function("events", [*view.symbols.values(), view.t, view.k], [column])
        rows, (x, z, c) = [], self._step_interpolant.symbols
        for theta in self._samples.tolist():
            parts = _cubic(
                z, end_inputs[1:], end_inputs[0], theta, self._layout, names
            ) | self._step_interpolant.expressions(theta)
            rows.append(function(*(parts[name] for name in names), c[1] + theta * end_inputs[0], c[2:]))
        all_rows = ca.densify(ca.vertcat(*rows))
        return compile_function_kernel(ca.Function("sample", [x, z, c, end_inputs], [all_rows]), "sample", opt_level=1)

    def _sample_steps(self, times: np.ndarray, Z: np.ndarray, steps: StepChunk) -> np.ndarray:
        """Return the event functions at the samples within every step, shape (n_steps, n_samples, n_events)."""
        count = len(times) - 1
        if self._taylor_output is not None and self._n_sampled:
            return self._sample_taylor(self._taylor_output, times, Z)
        out = np.empty((count, len(self._samples) * self._n_sampled))
        if self._sample_code is not None:
            sizes = np.diff(times)
            end_inputs, c = (
                np.ascontiguousarray(np.hstack([sizes[:, None], Z[1:]])),
                step_inputs(0.0, 0.0, self.k),
            )
            X = np.ascontiguousarray(steps.unknowns)
            time_loop.tabulate_steps(self._sample_code.address, X, Z[:-1], end_inputs, c, times[:-1].copy(), sizes, out)
        return out.reshape(count, len(self._samples), self._n_sampled)

    def _sample_taylor(self, taylor_output: TaylorInterpolant, times: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return the samples by Taylor series, whose coefficients are recomputed."""
        sizes, series = np.diff(times), taylor_output.coefficients(Z[:-1], times[:-1], self.k)
        samples = [
            self._table(
                times[:-1] + theta * sizes,
                taylor_output.evaluate(Z[:-1], series, times[:-1], theta * sizes, self.k),
                self.k,
            )
            for theta in self._samples.tolist()
        ]
        return np.stack(samples, axis=1)[:, :, : self._n_sampled]

    # -- within one step ----------------------------------------------------------------------------------------------
    def _event_function(
        self, i: int, t: np.ndarray, state: Callable[[float], dict[str, np.ndarray]]
    ) -> Callable[[float], float]:
        """Return the function of event i on a step, as a function of theta in [0, 1]."""

        def value(theta: float) -> float:
            return float(self._function(*state(theta).values(), t[0] + theta * (t[1] - t[0]), self.k)[i])

        return value

    def _localize(
        self,
        i: int,
        t: np.ndarray,
        state: Callable[[float], dict[str, np.ndarray]],
        bracket: tuple[float, float],
        g: tuple[float, float],
    ) -> float:
        """Return the localised event, as a fraction of the step, by Brent's method in a bracket with values g."""
        from scipy.optimize import brentq  # slow import, not needed without events

        function, bracket_values = self._event_function(i, t, state), dict(zip(bracket, g, strict=True))
        if g[1] == 0:
            return bracket[1]
        return float(
            brentq(
                lambda x: bracket_values[x] if x in bracket_values else function(x), *bracket, xtol=1e-15, rtol=1e-14
            )
        )

    def _interpolant(self, t: np.ndarray, Z: np.ndarray, x: np.ndarray) -> Callable[[float], dict[str, np.ndarray]]:
        """Return the interpolant of a step: dense output of the scheme, or a cubic through both ends."""
        names, h = list(self._view.symbols), t[1] - t[0]
        end_values = {name: Z[:, self._layout[name]] for name in names}
        derivatives = {"q": end_values["v"]} if "v" in end_values else {}
        cubic = {
            name: hermite_interpolant(np.array([0.0, h]), end_values[name], derivatives.get(name)) for name in names
        }
        inputs = step_inputs(h, t[0], self.k)

        def state(theta: float) -> dict[str, np.ndarray]:
            parts = {name: np.ravel(cubic[name](np.array([theta * h]))) for name in names}
            if self._step_interpolant.evaluate is not None:
                parts |= self._step_interpolant.evaluate(x, Z[0], inputs, theta)
            return parts

        return state


class _StepInterpolant:
    """Dense output of the scheme within a step, if available: as numbers, and as expressions for the fused tier.

    Samples of the assembled tier use a cubic: an expression graph of all equations would be too long.
    """

    def __init__(self, compiled: CompiledStep, tier: str) -> None:
        self.evaluate: Callable[..., dict[str, np.ndarray]] | None = None
        self._formula: tuple[ca.Function, list[str]] | None = None
        if compiled.taylor_interpolant is not None:
            self._taylor_output, self._layout = compiled.taylor_interpolant, compiled.layout
            self._series: tuple[tuple[bytes, ...], np.ndarray] = (), np.empty(0)
            self.evaluate = self._evaluate_taylor
            return
        if tier == "assembled" and compiled.base_step is None:
            sizes = 0, compiled.layout.size, 2 + compiled.model.parameter_count
            self.symbols = tuple(ca.SX.sym(name, size) for name, size in zip("xzc", sizes, strict=True))
            self.evaluate = compiled.assembly.plan.dense_output
            return
        if compiled.equations.loops_over_bodies or tier in ("assembled", "tree"):
            sizes = 0, compiled.layout.size, 2 + compiled.model.parameter_count
            self.symbols = tuple(ca.SX.sym(name, size) for name, size in zip("xzc", sizes, strict=True))
            return
        flat = compiled.flat_equations
        self.symbols = flat.x, flat.z, flat.c
        if flat.dense_output is not None:
            self._formula = dense_output_function(flat)
            self.evaluate = self._evaluate_dense_output

    def _evaluate_taylor(self, x: np.ndarray, z: np.ndarray, c: np.ndarray, theta: float) -> dict[str, np.ndarray]:
        """Evaluate the Taylor series of the step; coefficients are cached for one step."""
        key = z.tobytes(), c.tobytes()
        if self._series[0] != key:
            self._series = key, self._taylor_output.coefficients(z[None, :], c[1:2], c[2:])
        state = self._taylor_output.evaluate(z[None, :], self._series[1], c[1:2], np.array([theta * c[0]]), c[2:])[0]
        return {name: state[self._layout[name]] for name in ("q", "v", "p", "x", "y") if name in self._layout}

    def _evaluate_dense_output(
        self, x: np.ndarray, z: np.ndarray, c: np.ndarray, theta: float
    ) -> dict[str, np.ndarray]:
        assert self._formula is not None
        function, names = self._formula
        values = function(x, z, c, theta)
        values = values if isinstance(values, (list, tuple)) else [values]
        return {name: np.array(value).ravel() for name, value in zip(names, values, strict=True)}

    def expressions(self, theta: float) -> dict[str, Any]:
        """Return the parts of the state at theta within the step."""
        if self._formula is None:
            return {}
        function, names = self._formula
        return dict(zip(names, function.call([*self.symbols, ca.SX(theta)]), strict=True))


def _grid(samples: np.ndarray) -> np.ndarray:
    return np.concatenate([[0.0], samples, [1.0]])


def _cubic(z: Expr, end: Expr, h: Expr, theta: float, layout: Layout, names: list[str]) -> dict[str, Expr]:
    """Interpolate a state: q by a cubic Hermite polynomial with the velocities, other parts linearly."""
    parts = {name: z[layout[name]] + theta * (end[layout[name]] - z[layout[name]]) for name in names}
    if "q" in parts and "v" in parts:
        q0, q1, v0, v1 = (part[layout[name]] for name in ("q", "v") for part in (z, end))
        rest = 1 - theta
        parts["q"] = (1 + 2 * theta) * rest**2 * q0 + theta**2 * (1 + 2 * rest) * q1
        parts["q"] += h * theta * rest * (rest * v0 - theta * v1)
    return parts


def _near_tangencies(g: np.ndarray) -> list[tuple[int, int, int]]:
    """Return (step, first sample, last sample) around local minima of |g|, where a function may cross zero twice.

    The signs at both samples are equal. A minimum at the end of a step belongs to the intervals on both sides.
    """
    size = np.abs(g)
    same_sign = (
        (np.sign(g[:, :-2]) == np.sign(g[:, 1:-1])) & (np.sign(g[:, 1:-1]) == np.sign(g[:, 2:])) & (g[:, 1:-1] != 0)
    )
    left, middle, right = size[:, :-2], size[:, 1:-1], size[:, 2:]
    curvature, difference = left - 2 * middle + right, right - left
    with np.errstate(all="ignore"):
        vertex = middle - difference**2 / (8 * curvature)
    variation = np.maximum(left, right) - middle
    near_zero = (
        same_sign & (middle <= left) & (middle <= right) & (variation > 0) & (vertex < _TANGENCY_RATIO * variation)
    )
    candidates = [(int(s), int(j), int(j) + 2) for s, j in zip(*np.nonzero(near_zero), strict=True)]
    # minima at the end of one step and the start of the next
    previous, following, edge = size[:-1, -2], size[1:, 1], size[:-1, -1]
    at_edge = (edge <= previous) & (edge <= following) & (np.maximum(previous, following) > edge) & (g[:-1, -1] != 0)
    at_edge &= edge < _EDGE_RATIO * (np.maximum(previous, following) - edge)  # otherwise no zero is near
    at_edge &= (np.sign(g[:-1, -2]) == np.sign(g[:-1, -1])) & (np.sign(g[1:, 1]) == np.sign(g[:-1, -1]))
    count = g.shape[1]
    for s in np.flatnonzero(at_edge):
        candidates += [(int(s), count - 2, count - 1), (int(s) + 1, 0, 1)]
    return candidates


def _bounded_minimum(function: Callable[[float], float], sign: float, low: float, high: float) -> float:
    """Return the position of the minimum of ``sign * function`` in an interval."""
    from scipy.optimize import minimize_scalar

    options = {"xatol": 1e-10}
    return float(minimize_scalar(lambda x: sign * function(x), bounds=(low, high), method="bounded", options=options).x)
