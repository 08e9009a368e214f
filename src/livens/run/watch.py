"""Event detection: sign changes of event functions, and their localisation within steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens.engine import loop
from livens.engine.compiled import CompiledStep
from livens.engine.kernels import simple_kernel
from livens.engine.series.stepper import Between
from livens.engine.steps import Carry, Steps
from livens.engine.table import Table
from livens.errors import InputError
from livens.models import observable
from livens.results.dense import inside_function, polynomial
from livens.results.record import Occurrence
from livens.run.events import CLOSED, Event, Impact, names_of, settling

#: Sample points within a step: dense for schemes with dense output (high-order polynomials), coarse for cubics.
_OFTEN, _SELDOM = np.arange(1, 8) / 8, np.arange(1, 4) / 4
#: Largest number of bisections of the interval before the first sample, to detect a recrossing soon after an action.
_HALVINGS = 30
#: A minimum of |g| between samples is computed if the parabola through three samples comes closer to zero than this
#: fraction of their variation.
_CLOSE = 0.5
#: A minimum of |g| at the end of a step is ignored if it exceeds this multiple of the variation of its neighbours.
_FAR = 10.0


def _never_called() -> None:
    """Placeholder function of guards, whose expressions are known."""


class Watch:
    """Detector of zero crossings of event functions, at the ends of steps and at samples of the dense output."""

    name = "events"

    def __init__(self, events: Sequence[Event], compiled: CompiledStep, k: np.ndarray, tier: str = "fused") -> None:
        self._names = [*names_of(events), *compiled.model.guards]
        model = compiled.model
        self.events, self.k, self._layout = list(events), k, compiled.layout
        self._view = model.view
        columns = []
        for i, event in enumerate(self.events):
            if isinstance(event, Impact):
                columns.append(ca.SX(event.expression(model.view)))
                continue
            column, shape = observable.read(model, event.function)
            if shape != ():
                raise InputError(f"the function of event {event.name or i} must return one number")
            columns.append(column)
        self._sampled = len(columns)
        #: Guards of the model: expressions that must not cross zero.
        self.guards = tuple(model.guards)
        columns += [ca.SX(guard) for guard in model.guards.values()]
        self.events += [Event(_never_called, name=name, terminal=True) for name in model.guards]
        column = ca.densify(ca.vertcat(*columns))
        self._table, self._function = Table(model, column), model.view.function(column)
        self._inside = _Inside(compiled, tier)
        self._samples = _SELDOM if self._inside.at is None else _OFTEN
        self._polynomials = compiled.between
        self._within = self._sampling(column[: self._sampled]) if self._sampled and self._polynomials is None else None
        self._before: np.ndarray | None = None
        self._acted: list[int] = []  # events whose actions happened last
        #: Index of the first step in which an event function is NaN, and the name of the event.
        self.lost: tuple[int, str] | None = None

    # -- state between chunks -----------------------------------------------------------------------------------------
    def begin(self, carry: Carry) -> None:
        """Set the state from which events are detected."""
        self._before = self._table(np.array([carry.t]), carry.z[None, :], self.k)[0]

    def stopped_at(self, carry: Carry, names: Sequence[str]) -> None:
        """Restart from the zeros of these events, which must not be detected again there."""
        self.begin(carry)
        self._acted = [i for i, name in enumerate(self._names) if name in names and self.events[i].action is not None]
        assert self._before is not None
        self._before[[i for i, name in enumerate(self._names) if name in names]] = 0.0
        # an impact elsewhere may reopen closed contacts for a short time
        closed = [i for i, event in enumerate(self.events) if settling(event) and abs(self._before[i]) <= CLOSED]
        self._before[closed] = 0.0
        self._acted = sorted({*self._acted, *closed})

    def state(self) -> dict[str, Any]:
        before = np.zeros(0) if self._before is None else self._before.copy()
        return {"before": before, **({"acted": np.array(self._acted)} if self._acted else {})}

    def restore(self, stored: dict[str, Any], names: Sequence[str]) -> None:
        """Restore stored values of events with these names; other events are detected from the current state on."""
        known = dict(zip([*names, *self.guards], np.ravel(stored["before"]).tolist(), strict=False))
        if self._before is not None:
            for i, name in enumerate(self._names):
                self._before[i] = known.get(name, self._before[i])
        acted = [[*names, *self.guards][int(i)] for i in np.ravel(stored.get("acted", ()))]
        self._acted = [i for i, name in enumerate(self._names) if name in acted]

    def event(self, name: str) -> Event:
        """Return the event with this name."""
        return self.events[self._names.index(name)]

    # -- detection ----------------------------------------------------------------------------------------------------
    def found(self, steps: Steps) -> list[tuple[int, Occurrence]]:
        """Return the events in these steps with their step indices, sorted by time and then by event order."""
        assert self._before is not None
        self.lost = None
        if not steps.taken:
            return []
        before = steps.before
        ends = np.vstack([self._before, self._table(steps.t, steps.Z, self.k)])
        times, Z = np.concatenate([[before.t], steps.t]), np.vstack([before.z, steps.Z])
        inner = self._inner(times, Z, steps)
        self.lost = self._not_numbers(ends[:, : self._sampled], inner)
        acted, self._acted = self._acted, []
        found = []
        for i, event in enumerate(self.events):
            g, theta = ends[:, i], np.array([0.0, 1.0])
            if i < self._sampled:
                g, theta = np.vstack([ends[:-1, i], inner[:, :, i].T, ends[1:, i]]).T, _grid(self._samples)
            else:
                g = np.vstack([g[:-1], g[1:]]).T
            crossings = self._crossings(i, g, theta, times, Z, steps)
            if i in acted and i < self._sampled:
                crossings += self._soon(i, g[0], theta[1], times, Z, steps)
            for s, low, high, values in crossings:
                if event.direction and event.direction * (values[1] - values[0]) < 0:
                    continue
                state = self._between(times[s : s + 2], Z[s : s + 2], steps.X[s])
                root = self._root(i, times[s : s + 2], state, (low, high), values)
                when = float(times[s] + root * (times[s + 1] - times[s])) if root < 1.0 else float(times[s + 1])
                parts = {name: value.tolist() for name, value in state(root).items()}
                found.append((s, i, Occurrence(self._names[i], when, parts)))
        good = steps.taken if self.lost is None else self.lost[0]
        self._before = ends[good]
        found.sort(key=lambda item: (item[2].t, item[1]))
        return [(s, occurrence) for s, _, occurrence in found if s < good]

    def _not_numbers(self, ends: np.ndarray, inner: np.ndarray) -> tuple[int, str] | None:
        """Return the first step in which an event function is NaN, and the name of the event."""
        bad = np.isnan(ends[:-1]) | np.isnan(ends[1:]) | np.isnan(inner).any(axis=1)
        if not bad.any():
            return None
        step = int(np.argmax(bad.any(axis=1)))
        return step, self._names[int(np.argmax(bad[step]))]

    def _soon(
        self, i: int, g: np.ndarray, first: float, times: np.ndarray, Z: np.ndarray, steps: Steps
    ) -> list[tuple[int, float, float, tuple[float, float]]]:
        """Return a recrossing before the first sample, for an event whose action led away from its zero briefly."""
        direction = self.events[i].direction
        if not direction * g[1] > 0:
            return []
        value, high, beyond = self._along(i, times[:2], self._between(times[:2], Z[:2], steps.X[0])), first, float(g[1])
        for _ in range(_HALVINGS):
            low = high / 2
            there = value(low)
            if direction * there < 0:
                return [(0, low, high, (there, beyond))]
            high, beyond = low, there
        return []

    def _crossings(
        self, i: int, g: np.ndarray, theta: np.ndarray, times: np.ndarray, Z: np.ndarray, steps: Steps
    ) -> list[tuple[int, float, float, tuple[float, float]]]:
        """Return (step, from, to, values) of every sign change, including those between samples."""
        found = []
        a, b = g[:, :-1], g[:, 1:]
        for s, j in zip(*np.nonzero(((a < 0) & (b >= 0)) | ((a > 0) & (b <= 0))), strict=True):
            found.append((int(s), float(theta[j]), float(theta[j + 1]), (float(g[s, j]), float(g[s, j + 1]))))
        if len(theta) > 2:
            for s, j in _dips(g):
                state = self._between(times[s : s + 2], Z[s : s + 2], steps.X[s])
                value = self._along(i, times[s : s + 2], state)
                low, high = theta[j - 1], theta[min(j + 1, len(theta) - 1)]
                sign = float(np.sign(g[s, j]))
                lowest = _minimum(value, sign, low, high)
                there = value(lowest)
                if sign * there < 0:
                    found.append((s, float(low), lowest, (float(g[s, j - 1]), there)))
                    found.append((s, lowest, float(high), (there, float(g[s, min(j + 1, len(theta) - 1)]))))
        return found

    def _sampling(self, column: Any) -> Any:
        """Compile the event functions at all samples of a step: functions of (x, z, c), step size and final state."""
        more = ca.SX.sym("more", 1 + self._layout.size)
        names, view = list(self._view.symbols), self._view
        function = ca.Function("events", [*view.symbols.values(), view.t, view.k], [column])
        rows, (x, z, c) = [], self._inside.symbols
        for theta in self._samples.tolist():
            parts = _cubic(z, more[1:], more[0], theta, self._layout, names) | self._inside.expressions(theta)
            rows.append(function(*(parts[name] for name in names), c[1] + theta * more[0], c[2:]))
        all_rows = ca.densify(ca.vertcat(*rows))
        return simple_kernel(ca.Function("sample", [x, z, c, more], [all_rows]), "sample", effort=1)

    def _inner(self, times: np.ndarray, Z: np.ndarray, steps: Steps) -> np.ndarray:
        """Return the event functions at the samples within every step, shape (n_steps, n_samples, n_events)."""
        count = len(times) - 1
        if self._polynomials is not None and self._sampled:
            return self._inner_by_series(self._polynomials, times, Z)
        out = np.empty((count, len(self._samples) * self._sampled))
        if self._within is not None:
            sizes = np.diff(times)
            more, c = np.ascontiguousarray(np.hstack([sizes[:, None], Z[1:]])), np.concatenate([[0.0, 0.0], self.k])
            X = np.ascontiguousarray(steps.X)
            loop.tabulate_steps(self._within.address, X, Z[:-1], more, c, times[:-1].copy(), sizes, out)
        return out.reshape(count, len(self._samples), self._sampled)

    def _inner_by_series(self, between: Between, times: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Return the samples by Taylor series, whose coefficients are recomputed."""
        sizes, series = np.diff(times), between.coefficients(Z[:-1], times[:-1], self.k)
        found = [
            self._table(
                times[:-1] + theta * sizes,
                between.evaluated(Z[:-1], series, times[:-1], theta * sizes, self.k),
                self.k,
            )
            for theta in self._samples.tolist()
        ]
        return np.stack(found, axis=1)[:, :, : self._sampled]

    # -- within one step ----------------------------------------------------------------------------------------------
    def _along(
        self, i: int, t: np.ndarray, state: Callable[[float], dict[str, np.ndarray]]
    ) -> Callable[[float], float]:
        """Return the function of event i on a step, as a function of theta in [0, 1]."""

        def value(theta: float) -> float:
            return float(self._function(*state(theta).values(), t[0] + theta * (t[1] - t[0]), self.k)[i])

        return value

    def _root(
        self,
        i: int,
        t: np.ndarray,
        state: Callable[[float], dict[str, np.ndarray]],
        between: tuple[float, float],
        g: tuple[float, float],
    ) -> float:
        from scipy.optimize import brentq  # slow import, not needed without events

        along, known = self._along(i, t, state), dict(zip(between, g, strict=True))
        if g[1] == 0:
            return between[1]
        return float(brentq(lambda x: known[x] if x in known else along(x), *between, xtol=1e-15, rtol=1e-14))

    def _between(self, t: np.ndarray, Z: np.ndarray, x: np.ndarray) -> Callable[[float], dict[str, np.ndarray]]:
        """Return the interpolant of a step: dense output of the scheme, or a cubic through both ends."""
        names, h = list(self._view.symbols), t[1] - t[0]
        ends = {name: Z[:, self._layout[name]] for name in names}
        slopes = {"q": ends["v"]} if "v" in ends else {}
        cubic = {name: polynomial(np.array([0.0, h]), ends[name], slopes.get(name)) for name in names}
        here = np.concatenate([[h, t[0]], self.k])

        def state(theta: float) -> dict[str, np.ndarray]:
            parts = {name: np.ravel(cubic[name](np.array([theta * h]))) for name in names}
            if self._inside.at is not None:
                parts |= self._inside.at(x, Z[0], here, theta)
            return parts

        return state


class _Inside:
    """Dense output of the scheme within a step, if available: as numbers, and as expressions for the fused tier.

    Samples of the assembled tier use a cubic: an expression graph of all equations would be too long.
    """

    def __init__(self, compiled: CompiledStep, tier: str) -> None:
        self.at: Callable[..., dict[str, np.ndarray]] | None = None
        self._formula: tuple[ca.Function, list[str]] | None = None
        if compiled.between is not None:
            self._between, self._layout = compiled.between, compiled.layout
            self._series: tuple[tuple[bytes, ...], np.ndarray] = (), np.empty(0)
            self.at = self._by_series
            return
        if tier == "assembled":
            sizes = 0, compiled.layout.size, 2 + compiled.model.parameter_count
            self.symbols = tuple(ca.SX.sym(name, size) for name, size in zip("xzc", sizes, strict=True))
            self.at = compiled.assembly.pieces.inside
            return
        if compiled.crowded:
            sizes = 0, compiled.layout.size, 2 + compiled.model.parameter_count
            self.symbols = tuple(ca.SX.sym(name, size) for name, size in zip("xzc", sizes, strict=True))
            return
        flat = compiled.flat
        self.symbols = flat.x, flat.z, flat.c
        if flat.inside is not None:
            self._formula = inside_function(flat)
            self.at = self._numbers

    def _by_series(self, x: np.ndarray, z: np.ndarray, c: np.ndarray, theta: float) -> dict[str, np.ndarray]:
        """Evaluate the Taylor series of the step; coefficients are cached for one step."""
        key = z.tobytes(), c.tobytes()
        if self._series[0] != key:
            self._series = key, self._between.coefficients(z[None, :], c[1:2], c[2:])
        state = self._between.evaluated(z[None, :], self._series[1], c[1:2], np.array([theta * c[0]]), c[2:])[0]
        return {name: state[self._layout[name]] for name in ("q", "v", "p", "x", "y") if name in self._layout}

    def _numbers(self, x: np.ndarray, z: np.ndarray, c: np.ndarray, theta: float) -> dict[str, np.ndarray]:
        assert self._formula is not None
        function, own = self._formula
        values = function(x, z, c, theta)
        values = values if isinstance(values, (list, tuple)) else [values]
        return {name: np.array(value).ravel() for name, value in zip(own, values, strict=True)}

    def expressions(self, theta: float) -> dict[str, Any]:
        """Return the parts of the state at theta within the step."""
        if self._formula is None:
            return {}
        function, own = self._formula
        return dict(zip(own, function.call([*self.symbols, ca.SX(theta)]), strict=True))


def _grid(samples: np.ndarray) -> np.ndarray:
    return np.concatenate([[0.0], samples, [1.0]])


def _cubic(z: Any, end: Any, h: Any, theta: float, layout: Any, names: list[str]) -> dict[str, Any]:
    """Interpolate a state: q by a cubic Hermite polynomial with the velocities, other parts linearly."""
    parts = {name: z[layout[name]] + theta * (end[layout[name]] - z[layout[name]]) for name in names}
    if "q" in parts and "v" in parts:
        q0, q1, v0, v1 = (part[layout[name]] for name in ("q", "v") for part in (z, end))
        rest = 1 - theta
        parts["q"] = (1 + 2 * theta) * rest**2 * q0 + theta**2 * (1 + 2 * rest) * q1
        parts["q"] += h * theta * rest * (rest * v0 - theta * v1)
    return parts


def _dips(g: np.ndarray) -> list[tuple[int, int]]:
    """Return (step, sample) of local minima of |g| next to which a function may cross zero twice.

    A minimum at the end of a step belongs to the intervals on both sides.
    """
    size = np.abs(g)
    same = (np.sign(g[:, :-2]) == np.sign(g[:, 1:-1])) & (np.sign(g[:, 1:-1]) == np.sign(g[:, 2:])) & (g[:, 1:-1] != 0)
    left, here, right = size[:, :-2], size[:, 1:-1], size[:, 2:]
    bend, slope = left - 2 * here + right, right - left
    with np.errstate(all="ignore"):
        lowest = here - slope**2 / (8 * bend)
    differ = np.maximum(left, right) - here
    low = same & (here <= left) & (here <= right) & (differ > 0) & (lowest < _CLOSE * differ)
    found = [(int(s), int(j) + 1) for s, j in zip(*np.nonzero(low), strict=True)]
    # minima at the end of one step and the start of the next
    last, first, edge = size[:-1, -2], size[1:, 1], size[:-1, -1]
    around = (edge <= last) & (edge <= first) & (np.maximum(last, first) > edge) & (g[:-1, -1] != 0)
    around &= edge < _FAR * (np.maximum(last, first) - edge)  # otherwise no zero is near
    around &= (np.sign(g[:-1, -2]) == np.sign(g[:-1, -1])) & (np.sign(g[1:, 1]) == np.sign(g[:-1, -1]))
    count = g.shape[1]
    for s in np.flatnonzero(around):
        found += [(int(s), count - 1), (int(s) + 1, 1)]
    return found


def _minimum(function: Callable[[float], float], sign: float, low: float, high: float) -> float:
    """Return the position of the minimum of ``sign * function`` in an interval."""
    from scipy.optimize import minimize_scalar

    fine = {"xatol": 1e-10}
    return float(minimize_scalar(lambda x: sign * function(x), bounds=(low, high), method="bounded", options=fine).x)
