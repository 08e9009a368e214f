"""Spherical roller bearing: two rows of barrel rollers between a spherical race and an inner ring.

See Modin 2009, 4.3, case 2.

A roller is divided into slices. The rim of a slice touches the race at the point of greatest distance from the centre
of curvature: the centre of the sphere, or the nearest point of the circle of section centres of the inner race. Each
slice is a line contact after Palmgren, with Hunt-Crossley damping and regularised Coulomb friction; unequal slice loads
cause skew and tilt of a roller.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.expressions.tracing import ModelFunction
from livens.multibody.contacts.dissipation import friction_potential, hunt_crossley_force, hunt_crossley_potential
from livens.multibody.contacts.normal_laws.power import power_energy, power_force
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


#: Palmgren's line contact of steel, ``Q = 8.06e4 l^(8/9) depth^(10/9)`` in newtons and millimetres.
_PALMGREN, _EXPONENT = 8.06e4, 10 / 9
#: Lower bound of the penetration depth in m, for regular derivatives.
_MIN_PENETRATION = 1e-30


@dataclass(frozen=True)
class RollerBearing:
    """Spherical roller bearing of the size of type 22205, in SI units: x is its axis, gravity acts along -z."""

    rollers: int = 9  # in each of two rows
    slices: int = 8
    diameter: float = 7e-3
    length: float = 6.5e-3
    sphere: float = 22.5e-3
    profile: float = 0.98 * 22.5e-3
    angle: float = np.radians(14.0)
    clearance: float = 15e-6
    density: float = 7800.0
    inner_mass: float = 0.08
    inner_moment: float = 1.6e-5
    outer_mass: float = 0.10
    speed: float = 1e4 * np.pi / 30
    radial: float = -1000.0
    gravity: float = 9.81
    damping: float = 0.25
    friction: float = 0.05
    creep: float = 0.1
    penalty_frequency: float = 1e6

    def __post_init__(self) -> None:
        max_rollers = int(0.98 * 2 * np.pi * self.pitch / self.diameter)
        if not 3 <= self.rollers <= max_rollers:
            raise InputError(f"{self.rollers} rollers do not fit in a row: there must be between 3 and {max_rollers}")
        if not 0 <= self.clearance <= 1e-4:
            raise InputError(f"the clearance must be between 0 and 1e-4 m, got {self.clearance:g}")
        if self.slices < 1:
            raise InputError(f"option 'slices' must be at least 1, got {self.slices}")

    @property
    def pitch(self) -> float:
        """Distance of the roller centres from the axis."""
        return (self.sphere - self.diameter / 2) * float(np.cos(self.angle))

    @property
    def mass(self) -> float:
        return float(np.pi / 4 * self.diameter**2 * self.length * self.density)

    @property
    def moments(self) -> tuple[float, float]:
        """Axial and transverse moments of inertia of a roller."""
        return self.mass * self.diameter**2 / 8, self.mass * (self.diameter**2 / 16 + self.length**2 / 12)

    @property
    def slice_profile(self) -> tuple[tuple[float, float], ...]:
        """Axial positions and radii of the slices of a roller."""
        y = self.length * ((np.arange(self.slices) + 0.5) / self.slices - 0.5)
        radii = self.diameter / 2 - (self.profile - np.sqrt(self.profile**2 - y**2))
        return tuple(zip(y.tolist(), radii.tolist(), strict=True))

    @property
    def stiffness(self) -> float:
        """Palmgren stiffness of one slice, in N/m^(10/9)."""
        return float(_PALMGREN * (1e3 * self.length) ** (8 / 9) * 1e3**_EXPONENT / self.slices)

    @property
    def inner_groove(self) -> float:
        """Radius of the section of the inner race."""
        return self.sphere

    @property
    def inner_circle(self) -> tuple[float, float]:
        """Centre of the section of the inner race: distances from the axis and from the middle plane."""
        centre_distance = self.sphere - self.diameter / 2 + self.inner_groove - self.diameter / 2
        return centre_distance * float(np.cos(self.angle)) - self.clearance / 2, centre_distance * float(
            np.sin(self.angle)
        )

    @property
    def orbit_rate(self) -> float:
        """Orbit rate of the rollers in pure rolling."""
        return self.speed * (self.sphere - self.diameter) / (2 * self.sphere - self.diameter)

    @property
    def spin_rate(self) -> float:
        """Spin rate of the rollers about their axes in pure rolling, relative to the orbiting frame."""
        return -2 * self.orbit_rate * self.sphere * float(np.cos(self.angle)) / self.diameter

    def penalty(self, inertia: float) -> tuple[float, float]:
        """Return stiffness and critical damping of a penalty spring for a mass or moment of inertia."""
        omega = 2 * np.pi * self.penalty_frequency
        return inertia * omega**2, 2 * inertia * omega

    def frame(self, azimuth: float, side: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return unit vectors: from the bearing centre to the contact, along the roller axis, and tangential."""
        c, s = np.cos(azimuth), np.sin(azimuth)
        out, around = np.array([0.0, c, s]), np.array([0.0, -s, c])
        axis = np.array([1.0, 0.0, 0.0])
        sine, cosine = side * np.sin(self.angle), np.cos(self.angle)
        return sine * axis + cosine * out, cosine * axis - sine * out, around

    @property
    def azimuths(self) -> np.ndarray:
        return 2 * np.pi * np.arange(self.rollers) / self.rollers


# -- contact ----------------------------------------------------------------------------------------------------------
class SliceContact(NamedTuple):
    """Contact kinematics of a slice: distance of the rim from the centre of curvature, normal into the race, and
    contact point relative to the ring."""

    distance: Any
    normal: Any
    arm: Any


def _slice_contacts(
    q: Vector, k: ParameterNamespace, slice_profile: SliceProfile, inner: bool
) -> Iterator[SliceContact]:
    x, axis = q[:3] - q[12:15], q[3:6]
    for y, radius in slice_profile:
        c = x + y * axis
        centre = m.array([0.0, 0.0, 0.0])
        if inner:
            rho = m.sqrt(c[1] ** 2 + c[2] ** 2)
            centre = m.array([k.side * k.shift, k.R * c[1] / rho, k.R * c[2] / rho])
        e = c - centre
        across = e - m.dot(e, axis) * axis
        rim = c + radius / m.sqrt(m.dot(across, across)) * across
        p = rim - centre
        distance = m.sqrt(m.dot(p, p))
        yield SliceContact(distance, p / distance, rim)


SliceProfile = tuple[tuple[float, float], ...]


@functools.cache
def roller_energy(slice_profile: SliceProfile, inner: bool) -> ModelFunction:
    def energy(q: Vector, k: ParameterNamespace) -> Any:
        return sum(
            power_energy(k.K, m.maximum(d.distance - k.r, _MIN_PENETRATION), _EXPONENT)
            for d in _slice_contacts(q, k, slice_profile, inner)
        )

    return energy


def _slice_load(distance: ScalarLike, k: ParameterNamespace) -> ScalarLike:
    return power_force(k.K, m.maximum(distance - k.r, _MIN_PENETRATION), _EXPONENT)


@functools.cache
def roller_forces(slice_profile: SliceProfile, inner: bool) -> ModelFunction:
    """Return damping and friction as the negative velocity gradient of a dissipation potential."""

    def forces(q: Vector, v: Vector, k: ParameterNamespace) -> Vector:
        total, speed = 0.0, v[15] + k.speed if inner else 0.0
        for contact in _slice_contacts(q, k, slice_profile, inner):
            load = _slice_load(contact.distance, k)
            (rate,) = m.from_casadi(ca.jtimes(m.to_casadi(contact.distance), m.to_casadi(q), m.to_casadi(v)))
            contact_arm = contact.arm - (q[:3] - q[12:15])
            parts = [m.dot(contact_arm, q[3 + 3 * i : 6 + 3 * i]) for i in range(3)]
            sliding = v[:3] + sum(x * v[3 + 3 * i : 6 + 3 * i] for i, x in enumerate(parts)) - v[12:15]
            if inner:
                sliding = sliding - speed * m.array([0.0, -contact.arm[2], contact.arm[1]])
            along = sliding - m.dot(sliding, contact.normal) * contact.normal
            friction = friction_potential(k.mu, along, k.creep)
            total = total + load * (hunt_crossley_potential(k.damping, rate) + friction)
        return m.from_casadi(ca.densify(-ca.gradient(m.to_casadi(total), m.to_casadi(v))))

    return forces


@functools.cache
def roller_normal(slice_profile: SliceProfile, inner: bool) -> ModelFunction:
    """Return the sum of the normal forces of all slices."""

    def normal(q: Vector, v: Vector, t: ScalarLike, k: ParameterNamespace) -> Any:
        total = 0.0
        for contact in _slice_contacts(q, k, slice_profile, inner):
            (rate,) = m.from_casadi(ca.jtimes(m.to_casadi(contact.distance), m.to_casadi(q), m.to_casadi(v)))
            total = total + hunt_crossley_force(_slice_load(contact.distance, k), k.damping, rate)
        return total

    return normal
