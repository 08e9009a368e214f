"""Reset maps of events: apply the action of an event and make the new state consistent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens.engine.compiled import CompiledStep
from livens.errors import InputError, suggestion
from livens.expressions.numbers import vector
from livens.expressions.parameters import Namespace
from livens.expressions.read import argument_names
from livens.models.model import InitialState, Model
from livens.models.system import System
from livens.run.events import Event, Impact, Touch, afresh, check_blows

#: Parts of a state that an action may read and change.
_PARTS = ("q", "v", "p", "x", "y")


@dataclass(frozen=True)
class Changed:
    """Complete state after an action, all changed parameters, and the values the action returned."""

    z: np.ndarray
    parameters: dict[str, Any]
    said: dict[str, Any]


def act(
    event: Event,
    name: str,
    model: Model,
    compiled: CompiledStep,
    t: float,
    z: np.ndarray,
    parameters: Mapping[str, Any],
    h: float,
    others: Sequence[Event] = (),
) -> Changed:
    """Return the complete, consistent state after the action of an event.

    Velocities that violate the constraints are treated as an impulsive load: the velocity is projected onto the
    constraints in the mass metric. Persistent contacts are released during the action. The contact resolver of the
    events in `others` then determines the contact modes of the new state.

    The energy change of the action is booked as supplied energy, so that the energy balance of the run stays closed.
    Unchanged parameters are taken from `model`, not from `compiled`: the step may have been compiled for a model with
    the same equations and other parameter values.
    """
    layout = compiled.layout
    values = {part: z[layout[part]] for part in _PARTS if part in layout}
    k = model.parameter_vector(parameters)
    said = _said(event, name, model, values, t, k, h)
    changes = {**parameters, **said.get("parameters", {})}
    new_k = model.parameter_vector(changes)
    moved = dict(values)
    for part in [part for part in said if part != "parameters"]:
        moved[part] = vector(
            f"{part} after event '{name}'", said[part], [f"{part}[{i}]" for i in range(values[part].size)]
        )
    start = model.start_from(moved)
    if "p" in said and "v" not in said and "v0" in start and "p0" not in start:
        raise InputError(f"the action of event '{name}' must change v, from which p follows here")
    places = None if isinstance(event, Touch) else afresh(others)
    try:
        if places is not None and said:
            free = _start(model, moved, places.apart(new_k), t).values
            settled = places.settled((values["q"], values["v"], k), (free["q"], free["v"], new_k), t, h)
            changes |= settled["parameters"]
            said["parameters"] = {**said.get("parameters", {}), **settled["parameters"]}
            new_k, moved = model.parameter_vector(changes), {**moved, "q": settled["q"], "v": settled["v"]}
        initial = _start(model, moved, new_k, t)
        if "q" in said and not isinstance(event, Touch):  # impacts change velocities only
            check_blows(others, initial.values["q"], initial.values["v"])
    except InputError as error:
        raise InputError(
            f"the state set by the action of event '{name}' at t = {t:.9g} is not admissible: {error}"
        ) from None
    memory = compiled.scheme.memory(model, initial.values, new_k, t, h)
    after = layout.vector({**initial.values, **memory})
    if "supplied_energy" in layout:
        for part in ("supplied_energy", "dissipated_energy"):
            after[layout[part]] = z[layout[part]]
        energy = model.watched_energy(compiled.scheme.conserves)
        if energy:
            gained = _energy(model, energy, layout, t, after, new_k) - _energy(model, energy, layout, t, z, k)
            after[layout["supplied_energy"]] += gained
    return Changed(after, changes, _plain(said))


def _start(model: Model, moved: Mapping[str, np.ndarray], k: np.ndarray, t: float) -> InitialState:
    """Project a state set by an action onto the constraints: positions, then velocities in the mass metric."""
    initial = model.start(model.start_from(moved), k, t, True, "remove")
    if not isinstance(model, System) or np.array_equal(initial.values["v"], moved["v"]):
        return initial
    from livens.models.kicks import kicked  # rarely needed

    q = initial.values["q"]
    return model.start({"q0": q, "v0": kicked(model, q, moved["v"], t, k)}, k, t, True, "remove")


def _said(
    event: Event, name: str, model: Model, values: dict[str, np.ndarray], t: float, k: np.ndarray, h: float
) -> dict[str, Any]:
    """Call the action and return the changes after checking their names."""
    assert event.action is not None
    shared = model.shared
    given: dict[str, Any] = {part: value.copy() for part, value in values.items()}
    given |= {"t": t, "k": Namespace(shared.named(k[: shared.size]))}
    if isinstance(event, Impact):
        given |= {"k": k.copy(), "h": h}
    names = argument_names(f"the action of event '{name}'", event.action, "", tuple(given))
    said = event.action(*(given[argument] for argument in names))
    allowed = (*values, "parameters")
    if not isinstance(said, Mapping):
        raise InputError(
            f"the action of event '{name}' must return a dictionary of the values to change, got {said!r}"
        )
    for part in said:
        if part not in allowed:
            raise InputError(
                f"the action of event '{name}' changes the unknown '{part}'{suggestion(str(part), allowed)}"
            )
    if not isinstance(said.get("parameters", {}), Mapping):
        raise InputError(f"parameters that event '{name}' changes must map names to values")
    return dict(said)


def _energy(model: Model, energy: str, layout: Any, t: float, z: np.ndarray, k: np.ndarray) -> float:
    view = model.view
    parts = [z[layout[part]] for part in view.symbols]
    return float(view.function(view.expression(energy))(*parts, t, k))


def _plain(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested lists of floats, as stored in files."""
    return {
        part: {key: np.asarray(one, dtype=float).tolist() for key, one in value.items()}
        if part == "parameters"
        else np.asarray(value, dtype=float).tolist()
        for part, value in said.items()
    }
