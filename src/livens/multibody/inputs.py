"""Inputs of a multibody model: torques, forces and motions that are set from outside during a run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError, ModelError
from livens.expressions.parameters import ParameterEntry, ParameterNamespace, Parameters
from livens.expressions.tracing import call_with_symbols
from livens.models.angle_branches import AngleBranches, branch_parameters
from livens.models.element import Element
from livens.models.input_entry import InputEntry
from livens.models.system import System
from livens.multibody.joint_types import cos_sin_angle
from livens.types import ModelFunction, ScalarLike
from livens.validation import check_array

if TYPE_CHECKING:
    from livens.multibody.assembly import InitialCondition
    from livens.multibody.joint import Joint

#: Law of a force element: a function of time, joint coordinate, rate and parameters.
Law = ModelFunction
#: Accepted names of the arguments of a law in a joint.
_JOINT_ARGUMENTS: tuple[tuple[str, ...], ...] = (
    ("t",),
    ("angle", "position"),
    ("rate", "velocity", "speed"),
    ("k",),
)


@dataclass(eq=False)
class Input:
    """Input of a model, returned by `livens.Multibody.input`: a number or a vector that is held during a step.

    An input takes the place of a number or of a function of time in motors, drives, wrenches and controllers.
    """

    name: str
    value: np.ndarray
    #: Elements that use the input, with the name of their parameter.
    uses: list[tuple[Element, str]] = field(default_factory=list)

    def parameters(self, parameter: str) -> dict[str, Any]:
        """Return the parameters of an element with this input: value, rate and time of the value.

        Parameters
        ----------
        parameter : str
            Name of the parameter of the element.

        Returns
        -------
        dict of str to number
            Parameters by name.
        """
        return {
            parameter: self.value,
            f"{parameter}_rate": np.zeros_like(self.value),
            f"{parameter}_time": 0.0,
        }

    def __repr__(self) -> str:
        return f"<livens input '{self.name}'>"


class TimeLaw(NamedTuple):
    """Function of time and parameters, with the parameters that it needs and the input that it reads, if any."""

    function: Law
    parameters: dict[str, Any]
    inputs: dict[str, Input]


@functools.cache
def held_value(parameter: str) -> Law:
    """Return the value of an input at time t: constant, or linear in a step (zero- or first-order hold)."""

    def value(t: ScalarLike, k: ParameterNamespace) -> Any:
        rate, since = getattr(k, f"{parameter}_rate"), getattr(k, f"{parameter}_time")
        return getattr(k, parameter) + rate * (t - since)

    return value


def time_law(context: str, value: object, parameter: str, shape: tuple[int, ...] = ()) -> TimeLaw:
    """Return a number, a function of time or an input as a law of ``(t, k)``; `shape` is that of its value."""
    if isinstance(value, Input):
        if value.value.shape != shape:
            raise InputError(
                f"{context}: the input '{value.name}' has shape {value.value.shape}, but {shape} is needed: give "
                "mb.input a value of this shape"
            )
        return TimeLaw(held_value(parameter), value.parameters(parameter), {parameter: value})
    if callable(value):
        check_law(context, value, (("t",),), shape, ParameterNamespace({}))
        return TimeLaw(_without_parameters(value), {}, {})
    values = check_array(context, value, shape) if shape != (1,) else np.atleast_1d(check_array(context, value))
    if values.shape != shape:
        raise InputError(f"{context} must be {shape[0]} numbers, got {value!r}")
    return TimeLaw(constant_law(tuple(np.atleast_1d(values).tolist()), shape == ()), {}, {})


@functools.lru_cache(maxsize=1024)
def constant_law(values: tuple[float, ...], scalar: bool) -> Law:
    """Return a constant law; equal values share one function, so that elements share their code."""
    return lambda *_: values[0] if scalar else m.array(list(values))


@functools.lru_cache(maxsize=1024)
def _without_parameters(law: Law) -> Law:
    return lambda t, k: law(t)


# -- laws of users ----------------------------------------------------------------------------------------------------
@functools.lru_cache(maxsize=1024)
def joint_law(law: Law, has_parameters: bool) -> Law:
    """Return a law in a joint as a function of ``(t, coordinate, rate, k)``, whatever its arguments are."""
    return named_law(law, _JOINT_ARGUMENTS[: 4 if has_parameters else 3])


@functools.lru_cache(maxsize=1024)
def named_law(law: Law, allowed: tuple[tuple[str, ...], ...]) -> Law:
    """Return a law as a function of all allowed arguments, whichever of them it takes."""
    selected = _selected_arguments("the law", law, allowed)
    return lambda *arguments: law(*(arguments[i] for i in selected))


def _selected_arguments(context: str, law: Law, allowed: Sequence[tuple[str, ...]]) -> tuple[int, ...]:
    """Return the positions of the arguments that a law takes: by their names, or else in their order."""
    try:
        parameters = inspect.signature(law).parameters.values()
    except (TypeError, ValueError):
        return tuple(range(len(allowed)))
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return tuple(range(len(allowed)))
    names = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    position = {name: i for i, names_ in enumerate(allowed) for name in names_}
    if all(name in position for name in names):
        return tuple(position[name] for name in names)
    if len(names) > len(allowed):
        expected = ", ".join(names_[0] for names_ in allowed)
        raise InputError(f"{context} has {len(names)} arguments ({', '.join(names)}); it may have {expected}")
    return tuple(range(len(names)))


def check_law(
    context: str,
    law: Law,
    allowed: Sequence[tuple[str, ...]],
    shape: tuple[int, ...],
    k: ParameterNamespace,
    argument_shapes: Sequence[tuple[int, ...]] = (),
) -> frozenset[int]:
    """Evaluate a law with symbols; return the positions of the arguments that its value depends on.

    Arguments are scalars unless `argument_shapes` are given.

    Raises
    ------
    InputError
        If the law cannot be called with its arguments, or its value has another shape.
    """
    selected = _selected_arguments(context, law, allowed)
    shapes = argument_shapes or [()] * len(allowed)
    symbols = [ca.SX.sym(names[0], int(np.prod(size, dtype=int))) for names, size in zip(allowed, shapes, strict=True)]
    arguments = [
        k if names == ("k",) else m.from_casadi(s).reshape(size) if size else m.Scalar(s)
        for names, s, size in zip(allowed, symbols, shapes, strict=True)
    ]
    try:
        returned = call_with_symbols(law, *(arguments[i] for i in selected))
        value = m.array(returned)
    except ModelError as error:
        raise InputError(f"{context}: {error}") from None
    except Exception as error:  # a user function may raise anything: name the law
        raise InputError(f"{context}: {type(error).__name__}: {error}") from error
    if returned is None:
        raise InputError(f"{context} returns None: is a return missing?")
    if value.shape != shape and not (shape == (1,) and value.shape == ()):
        expected = "one number" if shape == () else f"an array of shape {shape}"
        raise InputError(f"{context} must return {expected}, got an array of shape {value.shape}")
    expression = ca.vertcat(*(m.to_casadi(item) if isinstance(item, m.Scalar) else ca.SX(item) for item in value.flat))
    return frozenset(i for i, s in enumerate(symbols) if ca.depends_on(expression, s))


def check_joint_law(context: str, law: Law, parameters: Mapping[str, object]) -> bool:
    """Check a law in a joint; return True if it depends on the joint coordinate."""
    return 1 in check_law(context, law, _JOINT_ARGUMENTS[: 4 if parameters else 3], (), symbols_of(parameters))


def symbols_of(parameters: Mapping[str, object]) -> ParameterNamespace:
    """Return parameters as symbols, for the check of a law."""
    named = Parameters(parameters)
    return ParameterNamespace(named.unpack_symbols(ca.SX.sym("k", named.size)))


# -- inputs of the system ---------------------------------------------------------------------------------------------
def register_inputs(system: System, inputs: Mapping[str, Input]) -> None:
    """Register the inputs of a model: their entries in the parameter vector, also as parameters by their names."""
    element_index = {id(element): i for i, element in enumerate(system.elements)}
    for name, declared in inputs.items():
        parts: list[list[slice]] = [[], [], []]
        for element, parameter in declared.uses:
            offset = system.element_parameters[element_index[id(element)]][system.model_parameters.size]
            for slices, suffix in zip(parts, ("", "_rate", "_time"), strict=True):
                slices.append(_parameter_slice(element.parameters, f"{parameter}{suffix}", offset))
        shape = declared.value.shape
        value, rate = (ParameterEntry(tuple(slices), shape) for slices in parts[:2])
        system.inputs[name] = InputEntry(value, rate, ParameterEntry(tuple(parts[2]), ()))
        system.parameter_table.aliases[name] = value


def register_angle_branches(system: System, uses: Sequence[tuple[Joint, Element, str]]) -> None:
    """Register the continuous angles that elements depend on: joint, element, and its parameter of the branch."""
    if not uses:
        return
    element_index = {id(element): i for i, element in enumerate(system.elements)}
    coordinate_index = {name: i for i, name in enumerate(system.coordinates)}
    starts: dict[str, list[int]] = {}
    angles: dict[str, Any] = {}
    q, k = ca.SX.sym("q", system.n), ca.SX.sym("k", system.parameter_count)
    for joint, element, parameter in uses:
        offset = system.element_parameters[element_index[id(element)]][system.model_parameters.size]
        start = _parameter_slice(element.parameters, parameter, offset).start
        starts.setdefault(joint.name, []).append(start)
        if joint.name not in angles:  # the axes are parameters: models with other axes share this expression
            known: dict[str, Any] = element.parameters.unpack_symbols(k[offset : offset + element.parameters.size])
            number = parameter.removeprefix("angle_branch")  # of the joint, in elements of several joints
            axis_a, axis_b = (np.asarray(known.get(f"{name}{number}", joint.parameters[name])) for name in "AB")
            local_q = m.from_casadi(q[[coordinate_index[str(c)] for c in joint.coordinates]])
            cosine, sine = cos_sin_angle(joint.a, joint.b, local_q, axis_a, axis_b)
            angles[joint.name] = m.to_casadi(m.atan2(sine, cosine))
    expressions = ca.vertcat(*angles.values())
    system.angle_branches = AngleBranches(tuple(angles), q, k, expressions, tuple(map(tuple, starts.values())))


def set_initial_branches(uses: Sequence[tuple[Joint, Element, str]], conditions: Sequence[InitialCondition]) -> None:
    """Set the branches of continuous angles to the initial angles of their joints."""
    targets = {id(c.component): float(c.value[0]) for c in conditions if c.quantity == "angle"}
    for joint, element, parameter in uses:
        branch = branch_parameters(targets.get(id(joint), 0.0))
        element.parameters.values[parameter] = np.array(branch)


def _parameter_slice(parameters: Parameters, name: str, offset: int) -> slice:
    """Return the slice of a parameter of an element whose parameters start at `offset`."""
    for parameter, values in parameters.values.items():
        if parameter == name:
            return slice(offset, offset + values.size)
        offset += values.size
    raise KeyError(name)
