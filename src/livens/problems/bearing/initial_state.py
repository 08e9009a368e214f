"""Initial state of a ball bearing: static equilibrium with rolling balls and centrifugal forces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import root

from livens.errors import InputError
from livens.problems.bearing.dimensions import Bearing


@dataclass(frozen=True)
class BearingEquilibrium:
    """Bearing equilibrium: axial and radial position and both normal forces of each ball, position of the inner ring,
    orbit rate, spin rate and angle of the spin axis of the balls."""

    x: np.ndarray
    rho: np.ndarray
    outer: np.ndarray
    inner: np.ndarray
    ring_position: np.ndarray
    cage_speed: float
    ball_spin: float
    angle: float
    contact_angles: tuple[float, float]


def _normal_force(b: Bearing, K: float, circle: float, x: float, rho: float) -> tuple[float, float, float]:
    """Return the normal force, and the axial and radial component of the unit normal into the race."""
    size = float(np.hypot(x, rho - circle))
    depth = size + b.diameter / 2 - b.groove_radius
    return K * max(depth, 0.0) ** 1.5, x / size, (rho - circle) / size


def axial_equilibrium(b: Bearing, load: float, rotating: bool = True) -> BearingEquilibrium:
    """Solve the axial equilibrium with equal balls for (x, rho, ring); without `rotating`, all speeds are zero."""
    outer, inner = b.stiffness

    def rolling(state: np.ndarray) -> tuple[float, float, float, float, float]:
        x, rho, ring = state
        _, *u_o = _normal_force(b, outer, b.outer_groove_circle, x, rho)
        _, *u_i = _normal_force(b, inner, b.inner_groove_circle, x - ring, rho)
        at_outer, at_inner = np.arctan2(u_o[0], u_o[1]), np.arctan2(-u_i[0], -u_i[1])
        mean = (at_outer + at_inner) / 2
        # rolling without slip: rho w_c = w_r radius cos(..) at the outer race; at the inner race both terms add up
        radius = b.diameter / 2
        per_orbit = rho / (radius * np.cos(mean - at_outer))
        orbit = b.speed * (rho - radius * np.cos(at_inner)) / (rho + per_orbit * radius * np.cos(mean - at_inner))
        return (
            (orbit, per_orbit * orbit, mean, at_outer, at_inner) if rotating else (0.0, 0.0, mean, at_outer, at_inner)
        )

    def force_residual(state: np.ndarray) -> np.ndarray:
        x, rho, ring = state
        Q_o, *u_o = _normal_force(b, outer, b.outer_groove_circle, x, rho)
        Q_i, *u_i = _normal_force(b, inner, b.inner_groove_circle, x - ring, rho)
        centrifugal_force = b.ball_mass * rho * rolling(state)[0] ** 2
        on_ball = Q_o * u_o[0] + Q_i * u_i[0], Q_o * u_o[1] + Q_i * u_i[1] - centrifugal_force
        return np.array([*on_ball, b.balls * Q_i * u_i[0] + load])

    initial_guesses = []
    for angle_offset in (0.05, 0.15, 0.3, 0.0, 0.5):
        angle = b.free_contact_angle + angle_offset
        centre_distance = b.groove_centre_distance + (load / b.balls / np.sin(max(angle, 0.05)) / outer) ** (2 / 3)
        middle = centre_distance * np.sin(angle), centre_distance * np.cos(angle)
        initial_guesses.append(np.array([middle[0] / 2, b.outer_groove_circle + middle[1] / 2, middle[0]]))
    solution = solve_equilibrium(force_residual, initial_guesses, "axial")
    x, rho, ring = solution
    Q_o = _normal_force(b, outer, b.outer_groove_circle, x, rho)[0]
    Q_i = _normal_force(b, inner, b.inner_groove_circle, x - ring, rho)[0]
    orbit, spin, mean, at_outer, at_inner = rolling(solution)
    ones = np.ones(b.balls)
    ring_position = np.array([ring, 0.0, 0.0])
    return BearingEquilibrium(
        x * ones, rho * ones, Q_o * ones, Q_i * ones, ring_position, orbit, spin, mean, (at_outer, at_inner)
    )


def radial_equilibrium(b: Bearing, load: float) -> BearingEquilibrium:
    """Solve the equilibrium under a radial load along z, with fixed azimuths and balls in the middle of the grooves."""
    outer, inner = b.stiffness
    orbit = b.speed / 2 * (1 - b.diameter / b.pitch)
    centrifugal_force = b.ball_mass * b.pitch / 2 * orbit**2
    c, s = np.cos(b.azimuths), np.sin(b.azimuths)

    def normal_forces(rho: np.ndarray, y: float, z: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the normal forces at both races, and the unit vectors from the ring centre to the balls."""
        across = np.array([rho * c - y, rho * s - z])
        distance = np.hypot(*across)
        deep_o = rho - b.outer_groove_circle + b.diameter / 2 - b.groove_radius
        deep_i = b.inner_groove_circle - distance + b.diameter / 2 - b.groove_radius
        return (outer * np.maximum(deep_o, 0) ** 1.5, inner * np.maximum(deep_i, 0) ** 1.5, across / distance)

    def force_residual(state: np.ndarray) -> np.ndarray:
        *rho, y, z = state
        Q_o, Q_i, direction = normal_forces(np.array(rho), y, z)
        on_balls = Q_o - centrifugal_force - Q_i * (direction[0] * c + direction[1] * s)
        return np.concatenate([on_balls, [-(Q_i * direction[0]).sum(), load - (Q_i * direction[1]).sum()]])

    contact_radius = b.outer_groove_circle - b.diameter / 2 + b.groove_radius + (centrifugal_force / outer) ** (2 / 3)
    approach = (5 * abs(load) / b.balls / outer) ** (2 / 3)
    initial_guesses = []
    for direction_angle in (
        0.0,
        0.4,
        -0.4,
        0.8,
        -0.8,
    ):  # with few balls the ring moves between them and not along the load: several initial guesses
        ring_offset = (b.clearance / 2 + 2 * approach) / np.cos(direction_angle)
        y, z = ring_offset * np.sin(direction_angle), ring_offset * np.cos(direction_angle) * np.sign(load)
        overlap = np.maximum(y * c + z * s - b.clearance / 2, 0.0)
        initial_guesses.append(np.array([*(contact_radius + overlap / 2), y, z]))
    solution = solve_equilibrium(force_residual, initial_guesses, "radial")
    *rho, y, z = solution
    Q_o, Q_i, _ = normal_forces(np.array(rho), y, z)
    spin = orbit * b.pitch / b.diameter
    return BearingEquilibrium(
        np.zeros(b.balls), np.array(rho), Q_o, Q_i, np.array([0.0, y, z]), orbit, spin, 0.0, (0.0, 0.0)
    )


def solve_equilibrium(
    force_residual: Callable[[np.ndarray], np.ndarray], initial_guesses: Sequence[np.ndarray], which: str
) -> np.ndarray:
    """Solve the force balance from several initial guesses; forces vary over nine orders of magnitude."""
    residual_norm = np.inf
    for initial_guess in initial_guesses:
        solution = np.asarray(root(force_residual, initial_guess, method="hybr", tol=1e-15, options=dict(xtol=1e-15)).x)
        residual_norm = min(residual_norm, float(np.abs(force_residual(solution)).max()))
        if residual_norm < 1e-6:
            return solution
    raise InputError(
        f"no {which} equilibrium of the bearing was found: the largest residual force is {residual_norm:.3g} N"
    )
