"""Scaling functions of semi-explicit steps of Systems, from the stiffness of expensive forces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.models.system import System
from livens.schemes.discretization.quasi_velocities import quasi_velocities
from livens.schemes.discretization.semi_explicit_step import ScalingFunction, force_split
from livens.schemes.scaling import Scaling, StiffnessEstimate
from livens.schemes.scaling.base import StepMeans
from livens.schemes.scaling.stiffness import estimate_velocity
from livens.types import Expr, FloatArray

#: Lower bound of squared displacements and stiffnesses, which prevents 0/0 at rest.
_TINY_SQUARE = 1e-300
#: Largest number of evaluations of the first scaling, and ratio below which it is repeated.
_INITIAL_ITERATIONS, _SHORTER = 40, 0.9


def scaling_function(system: System, scaling: Scaling | StiffnessEstimate, alpha: float) -> ScalingFunction:
    """Return a scaling as a function of the state of a system."""
    if isinstance(scaling, StiffnessEstimate):
        return _estimated_scaling(system, scaling.min_omega2, alpha)
    velocities = quasi_velocities(system)

    def evaluate(q: Any, u: Expr, t: Any, last_h: Any, unit: Any, k: Any) -> Expr:
        return scaling.for_system(
            system, StepMeans(q, velocities.to_qdot(q, u), t, k, unit, inverse_effective_mass(system, q, k))
        )

    return evaluate


def inverse_effective_mass(system: System, q: Expr, k: Any) -> Callable[[Expr], Expr]:
    """Return the function ``f.M^-1 f``, the inverse effective mass of a force of unit size on the coordinates q."""
    velocities = quasi_velocities(system)

    def evaluate(force: Expr) -> Expr:
        generalized = velocities.generalized_force(q, force)
        return ca.dot(
            generalized, velocities.accelerations(q, ca.SX.zeros(velocities.size), generalized, k, gyroscopic=False)
        )

    return evaluate


def _estimated_scaling(system: System, min_omega2: float, alpha: float) -> ScalingFunction:
    """Return eq. 15 of Modin 2009, paper V with the norm of the mass matrix, which makes metres and radians comparable.

    ``s = (|A(q + alpha h w, v) - A(q, v)|/(alpha h |w|) + limit)^(-1/2)`` with ``|f|^2 = f.M^-1 f``,
    ``|w|^2 = w.M w`` and w = v; at rest, w is the mean velocity ``alpha h M^-1 A/2`` of the accelerated motion.
    """
    forces, velocities = force_split(system), quasi_velocities(system)

    def evaluate(q: Any, u: Expr, t: Any, last_h: Any, unit: Any, k: Any) -> Expr:
        force_here = forces.evaluate(forces.expensive, q, u, t, k).force
        accelerations = velocities.accelerations(q, u, force_here, k, gyroscopic=False)
        mean = estimate_velocity(u, alpha * last_h / 2 * accelerations)
        force_ahead = forces.evaluate(
            forces.expensive, velocities.retract(q, alpha * last_h * mean), u, t + alpha * last_h, k
        ).force
        force_increment = force_ahead - force_here
        squared = ca.dot(force_increment, velocities.accelerations(q, 0 * u, force_increment, k, gyroscopic=False))
        v = velocities.to_qdot(q, mean)
        displacement2 = (alpha * last_h) ** 2 * ca.fmax(ca.dot(velocities.momenta(q, v, k), v), _TINY_SQUARE)
        return (ca.sqrt(squared / displacement2 + _TINY_SQUARE) + min_omega2) ** -0.5

    return evaluate


def initial_value(scale: Callable[[float], float], scaling: object, h: float) -> float:
    """Return the scaling before the first step, as a function of the size of the last step.

    An estimate begins with the longest step, which may leave the region of the stiffness, and is repeated with the
    shorter steps that it leads to.
    """
    if not isinstance(scaling, StiffnessEstimate):
        return scale(h)
    value = scaling.min_omega2**-0.5
    for _ in range(_INITIAL_ITERATIONS):
        last, value = value, scale(h * value)
        if not value < _SHORTER * last:
            break
    return min(last, value)


def initial_scaling(
    system: System,
    scale: ScalingFunction,
    scaling: object,
    values: Mapping[str, FloatArray],
    t: float,
    h: float,
    k: FloatArray,
) -> float:
    """Return the scaling before the first step; an estimate uses the evaluation point of the step that it leads to."""
    q, v, size = ca.SX.sym("q", system.n), ca.SX.sym("v", system.n), ca.SX.sym("h")
    u = quasi_velocities(system).from_qdot(q, v)
    function = ca.Function("s", [q, v, size], [scale(q, u, t, size, h, ca.DM(np.asarray(k)))])
    value = initial_value(lambda last_h: float(function(values["q"], values["v"], last_h)), scaling, h)
    if not (np.isfinite(value) and value > 0):
        raise InputError(
            f"the scaling {scaling} is {value:g} in the initial state; it must be finite and greater than 0"
        )
    return value
