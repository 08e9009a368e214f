"""Points of a motion as expressions, and quantities at these points: coordinates, named outputs, user functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError, suggestion
from livens.expressions.parameters import ParameterNamespace
from livens.expressions.tracing import FunctionTracer
from livens.models.base import Model
from livens.models.system import System
from livens.transcription.bounds import parse_bounds
from livens.transcription.nlp_blocks import INFINITE_BOUND
from livens.types import ModelFunction

#: Parts of the state that functions may depend on, by their names as arguments and in the layout of the state.
STATE_ARGUMENTS = {"q": "q", "v": "v", "p": "p", "lam": "multipliers", "x": "x", "y": "y"}


@dataclass(frozen=True, eq=False)
class MotionPoint:
    """Point of a motion: parts of the state by argument name, time, parameter vector and inputs, as expressions."""

    state: Mapping[str, ca.SX]
    t: ca.SX
    k: ca.SX
    u: ca.SX

    @classmethod
    def of_symbols(cls, model: Model, n_parameters: int, n_inputs: int) -> MotionPoint:
        """Return a point of symbols, to find out what a function depends on."""
        layout = model.layout
        state = {name: ca.SX.sym(name, layout.sizes[part]) for name, part in STATE_ARGUMENTS.items() if part in layout}
        return cls(state, ca.SX.sym("t"), ca.SX.sym("k", n_parameters), ca.SX.sym("u", n_inputs))

    @property
    def symbols(self) -> list[ca.SX]:
        return [*self.state.values(), self.t, self.k, self.u]


@dataclass(frozen=True, eq=False)
class Condition:
    """Named condition ``lower <= rows <= upper`` at a point of a motion."""

    name: str
    rows: ca.SX
    lower: np.ndarray
    upper: np.ndarray


def quantity(model: Model, what: str | ModelFunction, point: MotionPoint) -> tuple[ca.SX, bool]:
    """Return a quantity at a point as a column, and whether it is an angle.

    Parameters
    ----------
    model : Model
        Model of the motion.
    what : str or callable
        Name of a coordinate (also ``v_x`` and ``p_x``), output or observable, or a function of ``q v p t u k``.
    point : MotionPoint
        Point of the motion.
    """
    if callable(what):
        return _user_function(model, what, point), False
    outputs = model.quantities if isinstance(model, System) else {}
    state = point.state
    if what in outputs:
        output = outputs[what]
        expression = output.expression(state["q"], state["v"], state["lam"], point.t, point.k)
        return ca.vec(ca.SX(expression)), bool(output.is_angle)
    parts = {"": state["q"], "v_": state["v"], "p_": state["p"]} if "q" in state else {"": state["x"]}
    names = list(model.coordinates)
    for prefix, values in parts.items():
        if isinstance(what, str) and what.startswith(prefix) and what[len(prefix) :] in names:
            return values[names.index(what[len(prefix) :])], False
    if what in model.algebraic_names:
        return state["y"][list(model.algebraic_names).index(what)], False
    if what in model.view.observable_names:
        view = model.view
        function = ca.Function("observable", [*view.symbols.values(), view.t, view.k], [view.observable(what)])
        return ca.vec(function(*(state[name] for name in view.symbols), point.t, point.k)), False
    known = [*outputs, *(f"{prefix}{name}" for prefix in parts for name in names), *model.view.observable_names]
    raise InputError(f"unknown quantity '{what}'{suggestion(str(what), known)}")


def _user_function(model: Model, function: ModelFunction, point: MotionPoint) -> ca.SX:
    shared = model.model_parameters
    named = ParameterNamespace(shared.unpack_symbols(point.k[: shared.size]))
    tracer = FunctionTracer({**point.state, "t": point.t, "u": point.u, "k": named})
    value = tracer.trace("a function of the motion", function)
    try:
        return ca.SX(m.to_casadi(m.array(value).ravel()))
    except (TypeError, ValueError, AttributeError, NotImplementedError):
        raise InputError(f"a function of the motion must return numbers, got {value!r}") from None


def named_conditions(model: Model, argument: str, requested: Mapping[str, Any], point: MotionPoint) -> list[Condition]:
    """Return conditions by name: names with numbers or pairs, or with ``(function, low, high)``."""
    conditions = []
    for name, value in requested.items():
        what = f"'{name}' in {argument}"
        if isinstance(value, tuple) and len(value) == 3 and callable(value[0]):
            rows, is_angle = quantity(model, value[0], point)
            bounds: object = (value[1], value[2])
        else:
            rows, is_angle = quantity(model, name, point)
            bounds = value
            if name.endswith(".rotation") and np.shape(value) == (3, 3):
                rows, bounds = _rotation_difference(rows, np.asarray(value, dtype=float)), 0.0
        lower, upper = parse_bounds(what, bounds, int(rows.numel()))
        if is_angle:
            rows, lower, upper = _wrapped_angle(what, rows, lower, upper)
        active = np.flatnonzero((lower > -INFINITE_BOUND) | (upper < INFINITE_BOUND))
        if active.size:
            conditions.append(Condition(name, rows[active.tolist()], lower[active], upper[active]))
    return conditions


def _rotation_difference(rows: ca.SX, target: np.ndarray) -> ca.SX:
    """Return half the axial vector of ``target^T R``: three equations, as R is a rotation already."""
    relative = ca.DM(target).T @ ca.reshape(rows, 3, 3).T
    axial = ca.vertcat(
        relative[2, 1] - relative[1, 2], relative[0, 2] - relative[2, 0], relative[1, 0] - relative[0, 1]
    )
    return axial / 2


def _wrapped_angle(
    what: str, rows: ca.SX, lower: np.ndarray, upper: np.ndarray
) -> tuple[ca.SX, np.ndarray, np.ndarray]:
    """Return an angle relative to the middle of its bounds, wrapped to half a turn."""
    unbounded_below, unbounded_above = lower <= -INFINITE_BOUND, upper >= INFINITE_BOUND
    if np.any(unbounded_below != unbounded_above):
        raise InputError(f"{what} is an angle, which is known up to full turns: give both bounds")
    if np.any(~unbounded_below & (upper - lower >= 2 * np.pi)):
        raise InputError(f"{what} is an angle, which is known up to full turns: bounds must be closer than 2 pi")
    middle = np.where(unbounded_below, 0.0, (lower + upper) / 2)
    difference = rows - ca.DM(middle)
    return ca.atan2(ca.sin(difference), ca.cos(difference)), lower - middle, upper - middle
