"""Where a roller bearing starts: under its load, each roller balanced along the line through both of its contacts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from livens.problems.bearing.rollers import _EXPONENT, RollerBearing
from livens.problems.bearing.start import solved

#: Rollers are looked for within this way of where they just touch, halved so many times.
_FAR, _HALVINGS = 2e-4, 64


@dataclass(frozen=True)
class RollerSeat:
    """How far each roller is pressed outwards, both of its loads, and where the inner ring is (y, z)."""

    pressed: np.ndarray
    outer: np.ndarray
    inner: np.ndarray
    ring: np.ndarray


def roller_seat(b: RollerBearing) -> RollerSeat:
    """Both rows are alike. A ring that is pushed across also shifts its races along the rollers, which then tilt a
    little as soon as they may."""
    y, radii = np.array(b.discs).T
    sine, cosine = np.sin(b.angle), np.cos(b.angle)
    centre = b.sphere - b.diameter / 2
    circle, shift = b.inner_circle
    # the centre of the inner section in the frame of a roller: along the contact, and along its axis
    section = np.array([circle * cosine + shift * sine, shift * cosine - circle * sine])
    away = b.mass * b.pitch * b.orbit**2 * cosine
    c, s = np.cos(b.azimuths), np.sin(b.azimuths)

    def loads(pressed: np.ndarray, across: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """On each roller along the contact: that of the sphere (inwards), that of the inner race (both parts of it)."""
        reach = np.hypot(centre + pressed[:, None] + radii, y)
        push = b.stiffness * np.maximum(reach - b.sphere, 0.0) ** _EXPONENT
        outer = (push * (centre + pressed[:, None] + radii) / reach).sum(axis=1)
        # the ring has moved outwards at this azimuth, that is along the contact and against the axis of the roller
        off = centre + pressed[:, None] - section[0] - (across * cosine)[:, None] + 0 * y
        along = y - section[1] + (across * sine)[:, None]
        rim = np.abs(off) + radii
        reach = np.hypot(rim, along)
        push = b.stiffness * np.maximum(reach - b.inner_groove, 0.0) ** _EXPONENT / reach
        return outer, np.stack([(push * rim).sum(axis=1), -(push * along).sum(axis=1)])

    def balanced(across: np.ndarray) -> np.ndarray:
        """Where each roller is in balance: what is left over falls with how far it is pressed outwards."""
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

    # few rollers let the ring go where there is room, not where it is pushed
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
