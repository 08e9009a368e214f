"""Rings of ball and roller bearings, with housing, drive, energies of simple bodies and named outputs."""

from __future__ import annotations

import inspect
from typing import Any

import casadi as ca

from livens import math as m
from livens.expressions.parameters import ParameterNamespace
from livens.expressions.tracing import ModelFunction
from livens.models.element import Element
from livens.models.quantity import Quantity
from livens.models.system import System
from livens.types import Expr, ScalarLike, Vector

#: Theta weight (beta) of penalty elements within a step: see Modin 2009, 4.2 and docs/howto/bearing.md.
PENALTY_BETA = 0.8


def gravity_potential(q: Vector, k: ParameterNamespace) -> ScalarLike:
    return k.mass * k.g * q[2]


def _inner_energy(v: Vector, k: ParameterNamespace) -> ScalarLike:
    return k.mass / 2 * m.dot(v[:3], v[:3]) + k.moment / 2 * v[3] ** 2


def _load_potential(q: Vector, k: ParameterNamespace) -> ScalarLike:
    return k.mass * k.g * q[2] - k.axial_load * q[0] - k.radial_load * q[2]


def translational_energy(v: Vector, k: ParameterNamespace) -> ScalarLike:
    return k.mass / 2 * m.dot(v, v)


def _spring(q: Vector, k: ParameterNamespace) -> ScalarLike:
    return k.stiffness / 2 * m.dot(q, q)


def _damper(v: Vector, k: ParameterNamespace) -> ScalarLike:
    return k.damping / 2 * m.dot(v, v)


def spring_support(coordinates: list[str], name: str, stiffness: float, damping: float, *, beta: float) -> Element:
    """Return an element with a linear spring and damper on each coordinate."""
    return Element(
        coordinates,
        potential=_spring,
        dissipation=_damper,
        parameters=dict(stiffness=stiffness, damping=damping),
        name=name,
        beta=beta,
    )


def rings(b: Any, axial: float, inner_visual: ModelFunction, outer_visual: ModelFunction) -> list[Element]:
    """Return both rings, the housing and the drive; the angle of the inner ring is relative to the drive."""
    inner, outer = [f"inner.{c}" for c in ("x", "y", "z", "phi")], [f"outer.{c}" for c in "xyz"]
    return [
        Element(
            inner,
            kinetic=_inner_energy,
            potential=_load_potential,
            parameters=dict(mass=b.inner_mass, moment=b.inner_moment, axial_load=axial, radial_load=b.radial),
            frames=[[range(3)], [range(3, 4)]],
            name="inner",
            visual=inner_visual,
        ),
        Element(
            outer,
            kinetic=translational_energy,
            potential=gravity_potential,
            parameters=dict(mass=b.outer_mass),
            frames=[[range(3)]],
            name="outer",
            visual=outer_visual,
        ),
        spring_support(outer, "housing", *b.penalty(b.outer_mass), beta=PENALTY_BETA),
        spring_support(inner[3:], "drive", *b.penalty(b.inner_moment), beta=PENALTY_BETA),
    ]


# -- named outputs ----------------------------------------------------------------------------------------------------
def ring_quantities(system: System) -> dict[str, Quantity]:
    """Return the outputs: centre of the inner ring and torque of the drive."""
    coordinate_index = {name: i for i, name in enumerate(system.coordinates)}
    element_number = next(i for i, element in enumerate(system.elements) if element.name == "drive")
    drive, psi, inner = (
        list(system.element_parameters[element_number]),
        coordinate_index["inner.phi"],
        [coordinate_index[f"inner.{c}"] for c in "xyz"],
    )

    def torque(q: Expr, v: Expr, lam: Expr, t: Expr, k: Expr) -> Expr:
        return -k[drive[-2]] * q[psi] - k[drive[-1]] * v[psi]

    return {
        "drive.torque": Quantity("torque of the drive on the inner ring", "N m", torque),
        "inner.position": Quantity("centre of the inner ring", "m", lambda q, v, lam, t, k: q[inner], shape=(3,)),
    }


def force_on_first_body(energy: ModelFunction, forces: ModelFunction) -> ModelFunction:
    """Return the total force of an element on its first body, whose centre is the first three coordinates."""

    def force(q: Vector, v: object, t: object, k: object) -> Any:
        arguments = dict(q=q, v=v, t=t, k=k)
        potential, applied = (
            f(*(arguments[name] for name in inspect.signature(f).parameters)) for f in (energy, forces)
        )
        gradient = m.from_casadi(ca.gradient(m.to_casadi(potential), m.to_casadi(q)))
        return m.array(list(applied[:3])) - gradient[:3]

    return force


def element_function(system: System, element_number: int, function: ModelFunction) -> ModelFunction:
    """Return a function of system coordinates that evaluates a function of one element."""
    index, parameter_indices, size = (
        list(system.element_dofs[element_number]),
        list(system.element_parameters[element_number]),
        system.model_parameters.size,
    )
    element = system.elements[element_number]

    def expression(q: Any, v: Any, lam: Expr, t: Any, k: Any) -> Any:
        # symbolic arguments, so that the function may differentiate
        local_q, local_v, local_k = (
            ca.SX.sym("q", len(index)),
            ca.SX.sym("v", len(index)),
            ca.SX.sym("k", len(parameter_indices)),
        )
        local_t, values = ca.SX.sym("t"), m.from_casadi(local_k)
        named = ParameterNamespace(
            system.model_parameters.unpack(values[:size]) | element.parameters.unpack(values[size:])
        )
        value = m.to_casadi(function(m.from_casadi(local_q), m.from_casadi(local_v), m.from_casadi(local_t)[0], named))
        return ca.Function("of", [local_q, local_v, local_t, local_k], [value])(
            q[index], v[index], t, k[parameter_indices]
        )

    return expression
