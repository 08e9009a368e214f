"""User-defined observables: functions of the state, traced like model functions."""

from __future__ import annotations

from typing import Any

from livens import math as m
from livens.errors import InputError
from livens.expressions.parameters import ParameterNamespace
from livens.expressions.tracing import FunctionTracer
from livens.models.base import Model
from livens.types import ModelFunction


def trace_observable(model: Model, function: ModelFunction) -> tuple[Any, tuple[int, ...]]:
    """Trace a user-defined observable; return its expression and the shape of its value."""
    view, shared = model.view, model.model_parameters
    reader = FunctionTracer(
        {**view.symbols, "t": view.t, "k": ParameterNamespace(shared.unpack_symbols(view.k[: shared.size]))}
    )
    value = reader.trace("the observable", function)
    try:
        if value is None:
            raise TypeError
        items = m.array(value)
        return m.to_casadi(items.ravel()), tuple(items.shape)
    except (TypeError, ValueError, AttributeError, NotImplementedError):
        raise InputError(f"the observable must return a number or an array of numbers, got {value!r}") from None
