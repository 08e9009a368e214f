"""User-defined observables: functions of the state, traced like model functions."""

from __future__ import annotations

from typing import Any

from livens import math as m
from livens.errors import InputError, suggestion
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


def output_expression(model: Model, output: str | ModelFunction, multipliers: object) -> Any:
    """Return an output in the symbols of `model.view`: a coordinate, a named output, an observable or a function."""
    view: Any = model.view
    if callable(output):
        return trace_observable(model, output)[0]
    if not isinstance(output, str):
        raise InputError(f"an output is a name or a function of the state, got {output!r}")
    if output in model.coordinates:
        states = view.symbols["q"] if "q" in view.symbols else view.symbols["x"]
        return states[list(model.coordinates).index(output)]
    quantities = getattr(model, "quantities", {})
    if output in quantities:
        return quantities[output].expression(view.symbols["q"], view.symbols["v"], multipliers, view.t, view.k)
    if output in view.observable_names:
        return view.observable(output)
    raise InputError(
        f"unknown output '{output}'{suggestion(output, (*model.coordinates, *quantities, *view.observable_names))}"
    )
