"""Events: where a function of the state crosses zero, and what happens there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from livens.errors import InputError

#: Gaps between bodies up to this size, in metres, are closed.
CLOSED = 1e-9
#: Positions, velocities and all parameters.
Situation = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Event:
    """A function of the state, written like an observable, whose zeros are of interest.

    `direction` is +1 for zeros it crosses upwards, -1 downwards, 0 for both. The run ends at the first zero of a
    `terminal` event. A zero at the very start does not count. Within every step the function is sampled, so that two
    zeros in one step are found as well; where it touches zero without crossing it, nothing is seen. Where it is not a
    number, nobody can tell whether it crosses zero: the run ends there as failed.

    An `action` changes the motion there, and the run goes on. It is a function of some of ``q v p x y t k`` (numbers
    now, not expressions) that returns a dictionary of what is to be different: parts of the state by name, and
    ``parameters`` by theirs. Algebraic variables and multipliers follow, and constraints answer to velocities that they
    do not allow as to a kick. The run has two rows at that time, one before and one after. Of several events at one
    time, all act, in the order they are given.

    >>> import livens as lv
    >>> ball = lv.System("z", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: 9.81 * q[0])
    >>> ground = lv.Event(lambda q: q[0], name="ground", terminal=True)
    >>> run = lv.simulate(ball, q0=[1.0], v0=[0.0], h=0.01, t_end=10.0, events=[ground])
    >>> [(event.name, round(event.t, 9)) for event in run.events], round(float(run.t[-1]), 9)
    ([('ground', 0.451523641)], 0.451523641)
    >>> bounce = lv.Event(lambda q: q[0], name="bounce", direction=-1, action=lambda v: {"v": -0.8 * v})
    >>> run = lv.simulate(ball, q0=[1.0], v0=[0.0], h=0.01, t_end=2.0, events=[bounce])
    >>> [round(event.t, 6) for event in run.events]
    [0.451524, 1.173961, 1.751912]
    """

    function: Callable[..., Any]
    name: str = ""
    direction: int = 0
    terminal: bool = False
    action: Callable[..., Mapping[str, Any]] | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"an event needs a function of the state, got {self.function!r}")
        if not isinstance(self.name, str):
            raise InputError(f"the name of an event must be a text, got {self.name!r}")
        if not isinstance(self.direction, (int, float, np.integer)) or self.direction not in (-1, 0, 1):
            raise InputError(f"direction of an event must be -1, 0 or 1, got {self.direction!r}")
        if self.action is not None and not callable(self.action):
            raise InputError(f"the action of an event must be a function of the state, got {self.action!r}")


@dataclass(frozen=True)
class Impact(Event):
    """A stop of a model as an event: a function of q and all parameters; its action sees these too, and the step."""

    def expression(self, view: Any) -> Any:
        """The function in the symbols of a model."""
        return self.function(view.symbols["q"], view.k)


@dataclass(frozen=True)
class Blow(Event):
    """An event of bodies that bounce and never land: `check` refuses positions and velocities to go on from."""

    check: Callable[[np.ndarray, np.ndarray], None] | None = None


def check_blows(events: Sequence[Event], q: np.ndarray, v: np.ndarray) -> None:
    """Refuse a state from which bodies that bounce would pass through each other."""
    for event in events:
        if isinstance(event, Blow) and event.check is not None:
            event.check(q, v)


class Afresh(Protocol):
    """What touches, slides and sticks at the start of a run, and behind an action that did not care."""

    def begun(self, start: Situation, t: float, h: float, given: Collection[str]) -> Mapping[str, Any]:
        """What is to be changed at the start of a run that is given events of these names."""
        ...

    def apart(self, k: np.ndarray) -> np.ndarray:
        """The parameters with nothing that touches: an action may lift what lies on something."""
        ...

    def settled(self, before: Situation, after: Situation, t: float, h: float) -> Mapping[str, Any]:
        """What is to be changed behind it."""
        ...


@dataclass(frozen=True)
class Touch(Impact):
    """An event of bodies that touch: a function of q, v, t and all parameters.

    Blows of those that come to rest follow one another within a step, and end by themselves: they `settle`. At the
    start, and behind the action of any other event, `afresh` finds out what touches: see `livens.run.resting`.
    """

    settles: bool = False
    afresh: Afresh | None = None

    def expression(self, view: Any) -> Any:
        return self.function(view.symbols["q"], view.symbols["v"], view.t, view.k)


def settling(event: Event) -> bool:
    """Whether it is a blow of bodies that come to rest."""
    return isinstance(event, Touch) and event.settles


def afresh(events: Sequence[Event]) -> Afresh | None:
    """Who finds out what touches, if these are events of a mechanism in which bodies land on others."""
    return next((event.afresh for event in events if isinstance(event, Touch)), None)


def stops_of(model: Any) -> tuple[Event, ...]:
    """The events that a model brings along: where its motion hits something."""
    return tuple(
        Impact(stop.function, stop.name, stop.direction, False, stop.action) for stop in getattr(model, "stops", ())
    )


def with_stops(model: Any, events: Sequence[Event] | None) -> tuple[Event, ...]:
    """The stops of a model, then the events that are given."""
    names_of(events)
    stops = stops_of(model) if getattr(model, "stops", ()) else ()
    return (*stops, *(events or ()))


def names_of(events: Sequence[Event] | None) -> tuple[str, ...]:
    """What events are called in results and files."""
    if events is None or (isinstance(events, tuple) and not events):
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
