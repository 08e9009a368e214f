"""Initial equilibrium of a roller bearing: force balance of each roller along its line of contact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from livens.problems.bearing.initial_state import solve_equilibrium
from livens.problems.bearing.roller.contact import _EXPONENT, RollerBearing

#: Bracket in m around the contact without load, and number of bisections, for the position of a roller.
_BRACKET, _BISECTIONS = 2e-4, 64


@dataclass(frozen=True)
class RollerEquilibrium:
    """Static equilibrium: outward offset and both loads of each roller, and position (y, z) of the inner ring."""

    offsets: np.ndarray
    outer: np.ndarray
    inner: np.ndarray
    ring_position: np.ndarray


def roller_equilibrium(b: RollerBearing) -> RollerEquilibrium:
    """Solve the static equilibrium under a radial load; both rows are equal.

    A radial displacement of the ring also shifts its races along the rollers. The resulting tilt of the rollers is not
    part of this equilibrium.
    """
    y, radii = np.array(b.slice_profile).T
    sine, cosine = np.sin(b.angle), np.cos(b.angle)
    centre = b.sphere - b.diameter / 2
    circle, shift = b.inner_circle
    # centre of the inner section in the frame of a roller: along the line of contact, and along the roller axis
    section = np.array([circle * cosine + shift * sine, shift * cosine - circle * sine])
    centrifugal_force = b.mass * b.pitch * b.orbit_rate**2 * cosine
    c, s = np.cos(b.azimuths), np.sin(b.azimuths)

    def contact_loads(offsets: np.ndarray, across: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the loads on each roller: outer race (inwards), inner race (along contact, along roller axis)."""
        distance = np.hypot(centre + offsets[:, None] + radii, y)
        push = b.stiffness * np.maximum(distance - b.sphere, 0.0) ** _EXPONENT
        outer = (push * (centre + offsets[:, None] + radii) / distance).sum(axis=1)
        # the displacement of the ring at this azimuth acts along the contact and against the axis of the roller
        off = centre + offsets[:, None] - section[0] - (across * cosine)[:, None] + 0 * y
        along = y - section[1] + (across * sine)[:, None]
        rim = np.abs(off) + radii
        distance = np.hypot(rim, along)
        push = b.stiffness * np.maximum(distance - b.inner_groove, 0.0) ** _EXPONENT / distance
        return outer, np.stack([(push * rim).sum(axis=1), -(push * along).sum(axis=1)])

    def roller_offsets(across: np.ndarray) -> np.ndarray:
        """Return the offset of each roller in equilibrium, by bisection: the net force decreases with the offset."""
        low, high = np.full(b.rollers, -_BRACKET), np.full(b.rollers, _BRACKET)
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            outer, inner = contact_loads(middle, across)
            is_pushed_outwards = inner[0] + centrifugal_force > outer
            low, high = np.where(is_pushed_outwards, middle, low), np.where(is_pushed_outwards, high, middle)
        return (low + high) / 2

    def force_residual(ring: np.ndarray) -> np.ndarray:
        across = ring[0] * c + ring[1] * s
        _, inner = contact_loads(roller_offsets(across), across)
        radial = inner[0] * cosine - inner[1] * sine  # on the roller, outwards
        return np.array([-2 * (radial * c).sum(), b.radial - 2 * (radial * s).sum()])

    # with few rollers the ring moves between them and not along the load: several initial guesses
    initial_guesses = [
        (b.clearance / 2 + ring_offset)
        / np.cos(direction_angle)
        * np.array([np.sin(direction_angle), np.cos(direction_angle) * np.sign(b.radial)])
        for direction_angle in (0.0, 0.3, -0.3, 0.6, -0.6)
        for ring_offset in (8e-6, 3e-6, 2e-5)
    ]
    ring = solve_equilibrium(force_residual, initial_guesses, "radial")
    across = ring[0] * c + ring[1] * s
    offsets = roller_offsets(across)
    outer, inner = contact_loads(offsets, across)
    return RollerEquilibrium(offsets, outer, inner[0], ring)
