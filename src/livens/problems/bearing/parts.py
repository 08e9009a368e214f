"""Rings of ball and roller bearings, with housing, drive, energies of simple bodies and named outputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import casadi as ca

from livens import math as m
from livens.expressions.parameters import Namespace
from livens.expressions.read import ModelFunction
from livens.models.element import Element
from livens.models.quantity import Quantity
from livens.models.system import System

#: Theta weight (beta) of penalty elements within a step: see S003 4.2 and docs/bearing.md.
PENALTY = 0.8


def weight(q: Any, k: Any) -> Any:
    return k.mass * k.g * q[2]


def _inner_energy(v: Any, k: Any) -> Any:
    return k.mass / 2 * m.dot(v[:3], v[:3]) + k.moment / 2 * v[3] ** 2


def _loaded(q: Any, k: Any) -> Any:
    return k.mass * k.g * q[2] - k.axial_load * q[0] - k.radial_load * q[2]


def moving(v: Any, k: Any) -> Any:
    return k.mass / 2 * m.dot(v, v)


def _spring(q: Any, k: Any) -> Any:
    return k.stiffness / 2 * m.dot(q, q)


def _damper(v: Any, k: Any) -> Any:
    return k.damping / 2 * m.dot(v, v)


def held(coordinates: list[str], name: str, stiffness: float, damping: float, *, beta: float) -> Element:
    """Return an element with a linear spring and damper on each coordinate."""
    return Element(
        coordinates,
        potential=_spring,
        dissipation=_damper,
        parameters=dict(stiffness=stiffness, damping=damping),
        name=name,
        beta=beta,
    )


def rings(b: Any, axial: float, inner_look: ModelFunction, outer_look: ModelFunction) -> list[Element]:
    """Return both rings, the housing and the drive; the angle of the inner ring is relative to the drive."""
    inner, outer = [f"inner.{c}" for c in ("x", "y", "z", "phi")], [f"outer.{c}" for c in "xyz"]
    return [
        Element(
            inner,
            kinetic=_inner_energy,
            potential=_loaded,
            parameters=dict(mass=b.inner_mass, moment=b.inner_moment, axial_load=axial, radial_load=b.radial),
            frames=[[range(3)], [range(3, 4)]],
            name="inner",
            look=inner_look,
        ),
        Element(
            outer,
            kinetic=moving,
            potential=weight,
            parameters=dict(mass=b.outer_mass),
            frames=[[range(3)]],
            name="outer",
            look=outer_look,
        ),
        held(outer, "housing", *b.penalty(b.outer_mass), beta=PENALTY),
        held(inner[3:], "drive", *b.penalty(b.inner_moment), beta=PENALTY),
    ]


# -- named outputs ----------------------------------------------------------------------------------------------------
def ring_quantities(system: System) -> dict[str, Quantity]:
    """Return the outputs: centre of the inner ring and torque of the drive."""
    place = {name: i for i, name in enumerate(system.coordinates)}
    number = next(i for i, element in enumerate(system.elements) if element.name == "drive")
    drive, psi, inner = list(system.parameter_indices[number]), place["inner.phi"], [place[f"inner.{c}"] for c in "xyz"]

    def torque(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
        return -k[drive[-2]] * q[psi] - k[drive[-1]] * v[psi]

    return {
        "drive.torque": Quantity("torque of the drive on the inner ring", "N m", torque),
        "inner.position": Quantity("centre of the inner ring", "m", lambda q, v, lam, t, k: q[inner], shape=(3,)),
    }


def force_on_first(energy: ModelFunction, forces: ModelFunction) -> Callable[..., Any]:
    """Return the total force of an element on its first body, whose centre is the first three coordinates."""

    def force(q: Any, v: Any, t: Any, k: Any) -> Any:
        given = dict(q=q, v=v, t=t, k=k)
        stored, pushed = (f(*(given[name] for name in inspect.signature(f).parameters)) for f in (energy, forces))
        slope = m.symbols(ca.gradient(m.expression(stored), m.expression(q)))
        return m.array(list(pushed[:3])) - slope[:3]

    return force


def of_element(system: System, number: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of system coordinates that evaluates a function of one element."""
    index, where, size = list(system.indices[number]), list(system.parameter_indices[number]), system.shared.size
    element = system.elements[number]

    def expression(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
        # symbolic arguments, so that the function may differentiate
        own_q, own_v, own_k = ca.SX.sym("q", len(index)), ca.SX.sym("v", len(index)), ca.SX.sym("k", len(where))
        own_t, values = ca.SX.sym("t"), m.symbols(own_k)
        named = Namespace(system.shared.named(values[:size]) | element.parameters.named(values[size:]))
        value = m.expression(function(m.symbols(own_q), m.symbols(own_v), m.symbols(own_t)[0], named))
        return ca.Function("of", [own_q, own_v, own_t, own_k], [value])(q[index], v[index], t, k[where])

    return expression
