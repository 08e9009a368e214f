"""Scaling functions of semi-explicit steps of Systems, from the stiffness of expensive forces."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.models.system import System
from livens.schemes.discretization.quasi_velocities import quasi_velocities
from livens.schemes.discretization.semi_explicit_step import ScalingFunction, force_split
from livens.schemes.scaling import Scaling, StiffnessEstimate

#: Lower bound of squared displacements and stiffnesses, which prevents 0/0 at rest.
_TINY_SQUARE = 1e-300


def scaling_function(system: System, scaling: Scaling | StiffnessEstimate, alpha: float) -> ScalingFunction:
    """Return a scaling as a function of the state of a system."""
    if isinstance(scaling, StiffnessEstimate):
        return _estimated_scaling(system, scaling.min_omega2, alpha)
    velocities = quasi_velocities(system)

    def evaluate(q: Any, u: Any, t: Any, last_h: Any, unit: Any, k: Any) -> Any:
        def inverse_effective_mass(force: Any) -> Any:
            """Return ``f.M^-1 f``, the inverse effective mass of a force of unit size."""
            generalized = velocities.generalized_force(q, force)
            return ca.dot(
                generalized, velocities.accelerations(q, ca.SX.zeros(velocities.size), generalized, k, gyroscopic=False)
            )

        return scaling.for_system(system, q, velocities.to_qdot(q, u), k, inverse_effective_mass, unit)

    return evaluate


def _estimated_scaling(system: System, min_omega2: float, alpha: float) -> ScalingFunction:
    """Return eq. 15 of Modin 2009, paper V with the norm of the mass matrix, which makes metres and radians comparable.

    ``s = (|A(q + alpha h v, v) - A(q, v)|/(alpha h |v|) + limit)^(-1/2)`` with ``|f|^2 = f.M^-1 f`` and
    ``|v|^2 = v.M v``.
    """
    forces, velocities = force_split(system), quasi_velocities(system)

    def evaluate(q: Any, u: Any, t: Any, last_h: Any, unit: Any, k: Any) -> Any:
        force_here = forces.evaluate(forces.expensive, q, u, t, k).force
        force_ahead = forces.evaluate(
            forces.expensive, velocities.retract(q, alpha * last_h * u), u, t + alpha * last_h, k
        ).force
        force_increment = force_ahead - force_here
        squared = ca.dot(force_increment, velocities.accelerations(q, 0 * u, force_increment, k, gyroscopic=False))
        v = velocities.to_qdot(q, u)
        displacement2 = (alpha * last_h) ** 2 * ca.fmax(ca.dot(velocities.momenta(q, v, k), v), _TINY_SQUARE)
        return (ca.sqrt(squared / displacement2 + _TINY_SQUARE) + min_omega2) ** -0.5

    return evaluate


def initial_scaling(
    system: System, scale: ScalingFunction, scaling: Any, values: Any, t: float, h: float, k: Any
) -> float:
    """Return the scaling before the first step; an estimate uses the evaluation point of the longest step."""
    last_h = h * scaling.min_omega2**-0.5 if isinstance(scaling, StiffnessEstimate) else h
    q, v = ca.SX.sym("q", system.n), ca.SX.sym("v", system.n)
    u = quasi_velocities(system).from_qdot(q, v)
    function = ca.Function("s", [q, v], [scale(q, u, t, last_h, h, ca.DM(np.asarray(k)))])
    value = float(function(values["q"], values["v"]))
    if not (np.isfinite(value) and value > 0):
        raise InputError(
            f"the scaling {scaling} is {value:g} in the initial state; it must be finite and greater than 0"
        )
    return value
