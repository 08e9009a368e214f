"""Reset maps of events: apply the action of an event and make the new state consistent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.engine.compiled_step import CompiledStep
from livens.errors import InputError, suggestion
from livens.expressions.parameters import ParameterNamespace
from livens.expressions.tracing import argument_names
from livens.models.base import InitialState, Model
from livens.models.system import System
from livens.run.events.event import ContactEvent, Event, ModelEvent, contact_resolver
from livens.validation import check_vector

if TYPE_CHECKING:
    from livens.expressions.state_layout import Layout


#: Parts of a state that an action may read and change.
_STATE_PARTS = ("q", "v", "p", "x", "y")


@dataclass(frozen=True)
class ActionResult:
    """Complete state after an action, all changed parameters, and the values the action returned."""

    z: np.ndarray
    parameters: dict[str, Any]
    returned: dict[str, Any]


def apply_action(
    event: Event,
    name: str,
    model: Model,
    compiled: CompiledStep,
    t: float,
    z: np.ndarray,
    parameters: Mapping[str, object],
    h: float,
    others: Sequence[Event] = (),
    held: np.ndarray | None = None,
) -> ActionResult:
    """Return the complete, consistent state after the action of an event.

    Velocities that violate the constraints are treated as an impulsive load: the velocity is projected onto the
    constraints in the mass metric. Persistent contacts are released during the action. The contact resolver of the
    events in `others` then determines the contact modes of the new state.

    The energy loss of an impact is dissipated energy; the energy change of any other action is supplied energy. The
    energy balance of the run stays closed.
    `held` is the current parameter vector of the run, with inputs and branches of angles; by default that of
    `parameters`. Unchanged parameters are taken from `model`, not from `compiled`: the step may have been compiled for
    a model with the same equations and other parameter values.
    """
    layout = compiled.layout
    values = {part: z[layout[part]] for part in _STATE_PARTS if part in layout}
    stored = model.parameter_vector(parameters)
    k = stored if held is None else held

    def changed_vector(changes: Mapping[str, Any]) -> np.ndarray:
        """Return the parameter vector after changes; inputs and branches of angles keep their held values."""
        after = model.parameter_vector(changes)
        return np.where(after != stored, after, k)

    returned = _call_action(event, name, model, values, t, k, h)
    changes = {**parameters, **returned.get("parameters", {})}
    new_k = changed_vector(changes)
    new_values = dict(values)
    for part in [part for part in returned if part != "parameters"]:
        new_values[part] = check_vector(
            f"{part} after event '{name}'", returned[part], [f"{part}[{i}]" for i in range(values[part].size)]
        )
    initial_values = model.initial_values_from(new_values)
    if "p" in returned and "v" not in returned and "v0" in initial_values and "p0" not in initial_values:
        raise InputError(f"the action of event '{name}' must change v, from which p follows here")
    resolver = None if isinstance(event, ContactEvent) else contact_resolver(others)
    try:
        if resolver is not None and returned:
            released = _make_consistent(model, new_values, resolver.all_open(new_k), t).values
            # the same projection of the state before: its numerical drift is no velocity that the action sets
            before = _make_consistent(model, values, resolver.all_open(k), t).values
            resolved = resolver.resolve((before["q"], before["v"], k), (released["q"], released["v"], new_k), t, h)
            changes |= resolved["parameters"]
            returned["parameters"] = {**returned.get("parameters", {}), **resolved["parameters"]}
            new_k, new_values = changed_vector(changes), {**new_values, "q": resolved["q"], "v": resolved["v"]}
        initial = _make_consistent(model, new_values, new_k, t)
    except InputError as error:
        raise InputError(
            f"the state set by the action of event '{name}' at t = {t:.9g} is not admissible: {error}"
        ) from None
    scheme_state = compiled.scheme.initial_scheme_state(model, initial.values, new_k, t, h)
    after = layout.pack({**initial.values, **scheme_state})
    if "supplied_energy" in layout:
        for part in ("supplied_energy", "dissipated_energy"):
            after[layout[part]] = z[layout[part]]
        energy = model.monitored_energy(compiled.scheme.conserves)
        if energy:
            energy_change = _energy(model, energy, layout, t, after, new_k) - _energy(model, energy, layout, t, z, k)
            if isinstance(event, ModelEvent):  # impacts dissipate
                after[layout["dissipated_energy"]] -= energy_change
            else:
                after[layout["supplied_energy"]] += energy_change
    return ActionResult(after, changes, _as_plain_data(returned))


def _make_consistent(model: Model, new_values: Mapping[str, np.ndarray], k: np.ndarray, t: float) -> InitialState:
    """Project a state set by an action onto the constraints: positions, then velocities in the mass metric."""
    initial = model.initial_state(model.initial_values_from(new_values), k, t, True, "remove")
    if not isinstance(model, System) or np.array_equal(initial.values["v"], new_values["v"]):
        return initial
    from livens.models.initialization.velocity_projection import project_velocity_in_mass_metric  # rarely needed

    q = initial.values["q"]
    return model.initial_state(
        {"q0": q, "v0": project_velocity_in_mass_metric(model, q, new_values["v"], t, k)}, k, t, True, "remove"
    )


def _call_action(
    event: Event, name: str, model: Model, values: dict[str, np.ndarray], t: float, k: np.ndarray, h: float
) -> dict[str, Any]:
    """Call the action and return the changes after checking their names."""
    assert event.action is not None
    shared = model.model_parameters
    arguments: dict[str, Any] = {part: value.copy() for part, value in values.items()}
    arguments |= {"t": t, "k": ParameterNamespace(shared.unpack(k[: shared.size]))}
    if isinstance(event, ModelEvent):
        arguments |= {"k": k.copy(), "h": h}
    names = argument_names(f"the action of event '{name}'", event.action, "", tuple(arguments))
    returned = event.action(*(arguments[argument] for argument in names))
    allowed = (*values, "parameters")
    if not isinstance(returned, Mapping):
        raise InputError(
            f"the action of event '{name}' must return a dictionary of the values to change, got {returned!r}"
        )
    for part in returned:
        if part not in allowed:
            raise InputError(
                f"the action of event '{name}' changes the unknown '{part}'{suggestion(str(part), allowed)}"
            )
    if not isinstance(returned.get("parameters", {}), Mapping):
        raise InputError(f"parameters that event '{name}' changes must map names to values")
    return dict(returned)


def _energy(model: Model, energy: str, layout: Layout, t: float, z: np.ndarray, k: np.ndarray) -> float:
    view = model.view
    parts = [z[layout[part]] for part in view.symbols]
    return float(view.function(view.observable(energy))(*parts, t, k))


def _as_plain_data(returned: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested lists of floats, as stored in files."""
    return {
        part: {key: np.asarray(number, dtype=float).tolist() for key, number in value.items()}
        if part == "parameters"
        else np.asarray(value, dtype=float).tolist()
        for part, value in returned.items()
    }
