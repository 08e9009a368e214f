"""Inputs of a model: parameters that are set from outside during a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from livens.expressions.parameters import ParameterEntry

if TYPE_CHECKING:
    from livens.models.base import Model


class InputEntry(NamedTuple):
    """Entries of an input in the parameter vector: its value, its slope in a step, and the time of the value.

    Without slope the input is constant in a step (zero-order hold only).
    """

    value: ParameterEntry
    rate: ParameterEntry | None = None
    time: ParameterEntry | None = None


def input_entry(model: Model, name: str) -> InputEntry:
    """Return the entry of an input, or of any parameter of the model, by its name."""
    return model.inputs[name] if name in model.inputs else InputEntry(model.parameter_table.lookup(name))
