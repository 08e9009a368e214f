"""Events: where a function of the state crosses zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.engine.compiled import CompiledStep
from livens.engine.steps import Carry, Steps
from livens.engine.table import Table
from livens.errors import InputError
from livens.models import observable
from livens.results.dense import inside_function, polynomial
from livens.results.record import Occurrence


@dataclass(frozen=True)
class Event:
    """A function of the state, written like an observable, whose zeros are of interest.

    `direction` is +1 for zeros it crosses upwards, -1 downwards, 0 for both. The run ends at the first zero of a
    `terminal` event. A zero at the very start does not count; where the function touches zero without crossing it, or
    crosses it twice within one step, nothing is seen.

    >>> import livens as lv
    >>> ball = lv.System("z", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: 9.81 * q[0])
    >>> ground = lv.Event(lambda q: q[0], name="ground", terminal=True)
    >>> run = lv.simulate(ball, q0=[1.0], v0=[0.0], h=0.01, t_end=10.0, events=[ground])
    >>> [(event.name, round(event.t, 9)) for event in run.events], round(float(run.t[-1]), 9)
    ([('ground', 0.451523641)], 0.451523641)
    """

    function: Callable[..., Any]
    name: str = ""
    direction: int = 0
    terminal: bool = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"an event needs a function of the state, got {self.function!r}")
        if not isinstance(self.name, str):
            raise InputError(f"the name of an event must be a text, got {self.name!r}")
        if not isinstance(self.direction, (int, float, np.integer)) or self.direction not in (-1, 0, 1):
            raise InputError(f"direction of an event must be -1, 0 or 1, got {self.direction!r}")


def _never_called() -> None:
    """In place of the function of a guard, whose expression is known already."""


def names_of(events: Sequence[Event] | None) -> tuple[str, ...]:
    """What events are called in results and files."""
    if events is None:
        return ()
    if not isinstance(events, Sequence) or not all(isinstance(event, Event) for event in events):
        raise InputError(f"events must be a list of lv.Event, got {events!r}")
    return tuple(event.name or f"event {i}" for i, event in enumerate(events))


def given_again(path: Any, names: Sequence[str], events: Sequence[Event] | None) -> None:
    """Whether a run that looked for events of these names may go on with those given, or with none on purpose."""
    missing = [name for name in names if name not in names_of(events)]
    if missing and (events is None or len(events)):
        raise InputError(
            f"the run in '{path}' looks for the events {', '.join(missing)}: give them again as events=[...], "
            "or events=() if nothing is to be looked for any more"
        )


class Watch:
    """Looks for events in the steps of a run."""

    name = "events"

    def __init__(self, events: Sequence[Event], compiled: CompiledStep, k: np.ndarray, tier: str = "fused") -> None:
        self._names = [*names_of(events), *compiled.model.guards]
        model = compiled.model
        self._events, self._k, self._layout = list(events), k, compiled.layout
        self._view = model.view
        columns = []
        for i, event in enumerate(self._events):
            column, shape = observable.read(model, event.function)
            if shape != ():
                raise InputError(f"the function of event {event.name or i} must return one number")
            columns.append(column)
        #: What the model itself does not allow to cross zero.
        self.guards = tuple(model.guards)
        columns += [ca.SX(guard) for guard in model.guards.values()]
        self._events += [Event(_never_called, name=name, terminal=True) for name in model.guards]
        column = ca.densify(ca.vertcat(*columns))
        self._table, self._function = Table(model, column), model.view.function(column)
        self._inside = _inside(compiled, tier)
        self._before: np.ndarray | None = None

    def begin(self, carry: Carry) -> None:
        """Remember the state from which on events are looked for."""
        self._before = self._table(np.array([carry.t]), carry.z[None, :], self._k)[0]

    def stopped_at(self, carry: Carry, names: Sequence[str]) -> None:
        """The run goes on from where these events are zero, up to round-off: they must not be found there again."""
        self.begin(carry)
        assert self._before is not None
        self._before[[i for i, name in enumerate(self._names) if name in names]] = 0.0

    def state(self) -> dict[str, Any]:
        return {"before": np.zeros(0) if self._before is None else self._before.copy()}

    def restore(self, stored: dict[str, Any], names: Sequence[str]) -> None:
        """Look on from values that belong to events of these names; others are looked for from now on."""
        known = dict(zip([*names, *self.guards], np.ravel(stored["before"]).tolist(), strict=False))
        if self._before is not None:
            for i, name in enumerate(self._names):
                self._before[i] = known.get(name, self._before[i])

    def found(self, steps: Steps) -> list[tuple[int, Occurrence, bool]]:
        """Events in these steps, in the order of time: (step it happened in, event, whether the run is to end)."""
        assert self._before is not None
        if not steps.taken:
            return []
        before = steps.before
        values = np.vstack([self._before, self._table(steps.t, steps.Z, self._k)])
        times, Z = np.concatenate([[before.t], steps.t]), np.vstack([before.z, steps.Z])
        found = []
        for i, event in enumerate(self._events):
            g = values[:, i]
            crossed = ((g[:-1] < 0) & (g[1:] >= 0) & (event.direction >= 0)) | (
                (g[:-1] > 0) & (g[1:] <= 0) & (event.direction <= 0)
            )
            for s in np.flatnonzero(crossed):
                state = self._between(times[s : s + 2], Z[s : s + 2], steps.X[s])
                theta = self._root(i, times[s : s + 2], state, g[s : s + 2])
                when = float(times[s] + theta * (times[s + 1] - times[s]))
                parts = {name: value.tolist() for name, value in state(theta).items()}
                found.append((int(s), Occurrence(self._names[i], when, parts), event.terminal))
        self._before = values[-1]
        return sorted(found, key=lambda item: item[1].t)

    def _root(self, i: int, t: np.ndarray, state: Callable[[float], dict[str, np.ndarray]], g: np.ndarray) -> float:
        from scipy.optimize import brentq  # it takes long to import, and most runs have no events

        def value(theta: float) -> float:
            if theta in (0.0, 1.0):
                return float(g[int(theta)])
            parts = state(theta)
            return float(self._function(*parts.values(), t[0] + theta * (t[1] - t[0]), self._k)[i])

        return 1.0 if g[1] == 0 else float(brentq(value, 0.0, 1.0, xtol=1e-15, rtol=1e-14))

    def _between(self, t: np.ndarray, Z: np.ndarray, x: np.ndarray) -> Callable[[float], dict[str, np.ndarray]]:
        """The parts of the state within a step: by the scheme's own formula, else by a cubic through both ends."""
        names, h = list(self._view.symbols), t[1] - t[0]
        ends = {name: Z[:, self._layout[name]] for name in names}
        slopes = {"q": ends["v"]} if "v" in ends else {}
        cubic = {name: polynomial(np.array([0.0, h]), ends[name], slopes.get(name)) for name in names}
        here = np.concatenate([[h, t[0]], self._k])

        def state(theta: float) -> dict[str, np.ndarray]:
            parts = {name: np.ravel(cubic[name](np.array([theta * h]))) for name in names}
            if self._inside is not None:
                parts |= self._inside(x, Z[0], here, theta)
            return parts

        return state


def _inside(compiled: CompiledStep, tier: str) -> Callable[..., dict[str, np.ndarray]] | None:
    """The scheme's own formula within a step, at (x, z, c, theta), if it has one."""
    if tier == "assembled":
        return compiled.assembly.pieces.inside
    if compiled.flat.inside is None:
        return None
    function, own = inside_function(compiled.flat)

    def inside(x: np.ndarray, z: np.ndarray, c: np.ndarray, theta: float) -> dict[str, np.ndarray]:
        values = function(x, z, c, theta)
        values = values if isinstance(values, (list, tuple)) else [values]
        return {name: np.array(value).ravel() for name, value in zip(own, values, strict=True)}

    return inside
