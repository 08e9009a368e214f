"""Events: zero crossings of functions of the state, with optional reset maps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from livens.errors import InputError, explain_call_errors
from livens.types import ModelFunction

#: Gap tolerance in metres: contacts with a smaller absolute gap are closed.
GAP_TOLERANCE = 1e-9
#: Positions, velocities and the complete parameter vector.
StateAndParameters = tuple[np.ndarray, np.ndarray, np.ndarray]


@explain_call_errors
@dataclass(frozen=True)
class Event:
    """Zero crossing of a function of the state, detected during a simulation.

    Parameters
    ----------
    function : callable
        Function of any of ``q, v, p, x, y, t, k`` (by argument name), written like an observable. The event occurs
        where its value crosses zero.
    name : str, optional
        Name in `Result.events`. Default: "event 0", "event 1", ...
    direction : {-1, 0, 1}, default 0
        Detect only decreasing (-1) or increasing (+1) crossings; 0 detects both.
    terminal : bool or int, default False
        End the run at the event, or at its n-th occurrence.
    action : callable, optional
        Function of the same arguments (as numbers) that returns the values to change, for example ``{"v": -0.8 * v}``
        or ``{"parameters": {"power": 0.0}}``. The run then continues.

    Raises
    ------
    InputError
        If `function` or `action` is not callable, `direction` is not -1, 0 or 1, or `terminal` is negative.

    Notes
    -----
    The function is sampled within every step, so two crossings in one step are detected. A function that touches zero
    without crossing it is not detected, nor is a zero at the initial state. The run fails if the function returns NaN.

    Algebraic variables and multipliers are recomputed after an action. If the action sets velocities that violate
    constraints, the constraints respond with reaction impulses. The result has two rows at the time of the event,
    before and after. Simultaneous events act in the given order.

    Examples
    --------
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

    function: ModelFunction
    name: str = ""
    direction: int = 0
    terminal: bool | int = False
    action: Callable[..., Mapping[str, Any]] | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"an event needs a function of the state, got {self.function!r}")
        if not isinstance(self.name, str):
            raise InputError(f"the name of an event must be a string, got {self.name!r}")
        if not isinstance(self.direction, (int, float, np.integer)) or self.direction not in (-1, 0, 1):
            raise InputError(f"direction of an event must be -1, 0 or 1, got {self.direction!r}")
        if not isinstance(self.terminal, (bool, int, np.integer, np.bool_)) or self.terminal < 0:
            raise InputError(f"terminal of an event must be True, False or a number of events, got {self.terminal!r}")
        if self.action is not None and not callable(self.action):
            raise InputError(f"the action of an event must be a function of the state, got {self.action!r}")


@dataclass(frozen=True)
class ModelEvent(Event):
    """Guarded event of a model: a function of q and all parameters; the action also receives the step size.

    Impacts before a contact closes accumulate within a step (Zeno behaviour) if `may_accumulate` is True.
    """

    may_accumulate: bool = False
    #: Type of the event in messages.
    label: str = ""

    def expression(self, view: Any) -> Any:
        """Return the event function in the symbols of a model."""
        return self.function(view.symbols["q"], view.k)


class ContactResolver(Protocol):
    """Re-initialisation of the contact modes at the start of a run and after actions of other events."""

    def initialise(self, initial: StateAndParameters, t: float, h: float) -> Mapping[str, Any]:
        """Return the changes at the start of a run."""
        ...

    def all_open(self, k: np.ndarray) -> np.ndarray:
        """Return the parameters with all contacts open: an action may lift a body off."""
        ...

    def resolve(self, before: StateAndParameters, after: StateAndParameters, t: float, h: float) -> Mapping[str, Any]:
        """Return the changes after an action, given the states before and after."""
        ...


@dataclass(frozen=True)
class ContactEvent(ModelEvent):
    """Event of a rigid contact: a function of q, v, t and all parameters.

    At the start of a run and after actions of other events, `resolver` determines the contact modes, see
    `livens.run.contact.contact_dynamics`.
    """

    resolver: ContactResolver | None = None

    def expression(self, view: Any) -> Any:
        return self.function(view.symbols["q"], view.symbols["v"], view.t, view.k)


def may_accumulate(event: Event) -> bool:
    """Return True if occurrences of the event may accumulate (Zeno behaviour) before the contact closes."""
    return isinstance(event, ModelEvent) and event.may_accumulate


def contact_resolver(events: Sequence[Event]) -> ContactResolver | None:
    """Return the contact resolver of the first contact event, or None."""
    return next((event.resolver for event in events if isinstance(event, ContactEvent)), None)


def model_events(model: object) -> tuple[ModelEvent, ...]:
    """Return the guarded events of a model: joint stops and rigid contacts."""
    return tuple(
        ModelEvent(event.guard, event.name, event.direction, False, event.action, event.may_accumulate, event.label)
        if event.resolver is None
        else ContactEvent(
            event.guard,
            event.name,
            event.direction,
            False,
            event.action,
            event.may_accumulate,
            event.label,
            event.resolver,
        )
        for event in getattr(model, "model_events", ())
    )


def all_events(model: object, events: Sequence[Event] | None) -> tuple[Event, ...]:
    """Return the guarded events of a model, followed by the given events."""
    event_names(events)
    stops = model_events(model) if getattr(model, "model_events", ()) else ()
    return (*stops, *(events or ()))


def event_names(events: Sequence[Event] | None) -> tuple[str, ...]:
    """Return the names of events in results and files."""
    if events is None or (isinstance(events, tuple) and not events):
        return ()
    if not isinstance(events, Sequence) or not all(isinstance(event, Event) for event in events):
        raise InputError(f"events must be a list of lv.Event, got {events!r}")
    return tuple(event.name or f"event {i}" for i, event in enumerate(events))


def require_same_events(path: object, names: Sequence[str], events: Sequence[Event] | None) -> None:
    """Raise an error if events of a stored run are missing on resume; `events=()` removes them deliberately."""
    missing = [name for name in names if name not in event_names(events)]
    if missing and (events is None or len(events)):
        raise InputError(
            f"the run in '{path}' has the events {', '.join(missing)}: pass them again as events=[...], "
            "or events=() to continue without events"
        )
