"""Scaling functions of semi-explicit steps of Systems, from the stiffness of expensive forces."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.models.system import System
from livens.schemes.recipes.split_forces import Scale, split_forces
from livens.schemes.recipes.twists import twists
from livens.schemes.scaling import Scaling, StiffnessEstimate

#: Lower bound of squared displacements and stiffnesses, which prevents 0/0 at rest.
_TINY = 1e-300


def scale_of(system: System, scaling: Scaling | StiffnessEstimate, alpha: float) -> Scale:
    """Return a scaling as a function of the state of a system."""
    if isinstance(scaling, StiffnessEstimate):
        return _estimated(system, scaling.limit, alpha)
    bodies = twists(system)

    def scale(q: Any, u: Any, t: Any, last: Any, unit: Any, k: Any) -> Any:
        def mobility(force: Any) -> Any:
            """Return ``f.M^-1 f``, the inverse effective mass of a force of unit size."""
            own = bodies.contracted(q, force)
            return ca.dot(own, bodies.accelerations(q, ca.SX.zeros(bodies.size), own, k, gyroscopic=False))

        return scaling.of_system(system, q, bodies.lifted(q, u), k, mobility, unit)

    return scale


def _estimated(system: System, limit: float, alpha: float) -> Scale:
    """Return eq. 15 of S003 paper V with the norm of the mass matrix, which makes metres and radians comparable.

    ``s = (|A(q + alpha h v, v) - A(q, v)|/(alpha h |v|) + limit)^(-1/2)`` with ``|f|^2 = f.M^-1 f`` and
    ``|v|^2 = v.M v``.
    """
    forces, bodies = split_forces(system), twists(system)

    def scale(q: Any, u: Any, t: Any, last: Any, unit: Any, k: Any) -> Any:
        here = forces.pushed(forces.expensive, q, u, t, k).force
        there = forces.pushed(forces.expensive, bodies.moved(q, alpha * last * u), u, t + alpha * last, k).force
        change = there - here
        squared = ca.dot(change, bodies.accelerations(q, 0 * u, change, k, gyroscopic=False))
        v = bodies.lifted(q, u)
        way = (alpha * last) ** 2 * ca.fmax(ca.dot(bodies.momenta(q, v, k), v), _TINY)
        return (ca.sqrt(squared / way + _TINY) + limit) ** -0.5

    return scale


def first_scale(system: System, scale: Scale, scaling: Any, values: Any, t: float, h: float, k: Any) -> float:
    """Return the scaling before the first step; an estimate uses the evaluation point of the longest step."""
    last = h * scaling.limit**-0.5 if isinstance(scaling, StiffnessEstimate) else h
    q, v = ca.SX.sym("q", system.n), ca.SX.sym("v", system.n)
    u = twists(system).twist(q, v)
    function = ca.Function("s", [q, v], [scale(q, u, t, last, h, ca.DM(np.asarray(k)))])
    found = float(function(values["q"], values["v"]))
    if not (np.isfinite(found) and found > 0):
        raise InputError(
            f"the scaling {scaling} is {found:g} in the initial state; it must be finite and greater than 0"
        )
    return found
