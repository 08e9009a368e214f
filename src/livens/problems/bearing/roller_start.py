"""Initial equilibrium of a roller bearing: force balance of each roller along its line of contact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from livens.problems.bearing.rollers import _EXPONENT, RollerBearing
from livens.problems.bearing.start import solved

#: Bracket in m around the contact without load, and number of bisections, for the position of a roller.
_FAR, _HALVINGS = 2e-4, 64


@dataclass(frozen=True)
class RollerSeat:
    """Static equilibrium: outward offset and both loads of each roller, and position (y, z) of the inner ring."""

    pressed: np.ndarray
    outer: np.ndarray
    inner: np.ndarray
    ring: np.ndarray


def roller_seat(b: RollerBearing) -> RollerSeat:
    """Solve the static equilibrium under a radial load; both rows are equal.

    A radial displacement of the ring also shifts its races along the rollers. The resulting tilt of the rollers is not
    part of this equilibrium.
    """
    y, radii = np.array(b.discs).T
    sine, cosine = np.sin(b.angle), np.cos(b.angle)
    centre = b.sphere - b.diameter / 2
    circle, shift = b.inner_circle
    # centre of the inner section in the frame of a roller: along the line of contact, and along the roller axis
    section = np.array([circle * cosine + shift * sine, shift * cosine - circle * sine])
    away = b.mass * b.pitch * b.orbit**2 * cosine
    c, s = np.cos(b.azimuths), np.sin(b.azimuths)

    def loads(pressed: np.ndarray, across: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the loads on each roller: outer race (inwards), inner race (along contact, along roller axis)."""
        reach = np.hypot(centre + pressed[:, None] + radii, y)
        push = b.stiffness * np.maximum(reach - b.sphere, 0.0) ** _EXPONENT
        outer = (push * (centre + pressed[:, None] + radii) / reach).sum(axis=1)
        # the displacement of the ring at this azimuth acts along the contact and against the axis of the roller
        off = centre + pressed[:, None] - section[0] - (across * cosine)[:, None] + 0 * y
        along = y - section[1] + (across * sine)[:, None]
        rim = np.abs(off) + radii
        reach = np.hypot(rim, along)
        push = b.stiffness * np.maximum(reach - b.inner_groove, 0.0) ** _EXPONENT / reach
        return outer, np.stack([(push * rim).sum(axis=1), -(push * along).sum(axis=1)])

    def balanced(across: np.ndarray) -> np.ndarray:
        """Return the offset of each roller in equilibrium, by bisection: the net force decreases with the offset."""
        low, high = np.full(b.rollers, -_FAR), np.full(b.rollers, _FAR)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            outer, inner = loads(middle, across)
            more = inner[0] + away > outer
            low, high = np.where(more, middle, low), np.where(more, high, middle)
        return (low + high) / 2

    def unbalanced(ring: np.ndarray) -> np.ndarray:
        across = ring[0] * c + ring[1] * s
        _, inner = loads(balanced(across), across)
        radial = inner[0] * cosine - inner[1] * sine  # on the roller, outwards
        return np.array([-2 * (radial * c).sum(), b.radial - 2 * (radial * s).sum()])

    # with few rollers the ring moves between them and not along the load: several initial guesses
    guesses = [
        (b.clearance / 2 + far) / np.cos(aside) * np.array([np.sin(aside), np.cos(aside) * np.sign(b.radial)])
        for aside in (0.0, 0.3, -0.3, 0.6, -0.6)
        for far in (8e-6, 3e-6, 2e-5)
    ]
    ring = solved(unbalanced, guesses, "radial")
    across = ring[0] * c + ring[1] * s
    pressed = balanced(across)
    outer, inner = loads(pressed, across)
    return RollerSeat(pressed, outer, inner[0], ring)
