"""Dimensions, material and loads of a deep-groove ball bearing."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from livens.errors import InputError
from livens.multibody.contacts.normal_laws.material import ElasticMaterial, hertz_stiffness
from livens.multibody.ring_modes import RingModes


@dataclass(frozen=True)
class Bearing:
    """Deep-groove ball bearing similar to type 6205, in SI units: x is its axis, gravity acts along -z.

    Modin 2009 gives the speed, the load, nine balls, a stiffness of about 1e8 N/m and balls of about 0.01 kg (`scale`
    = 1.7 in `ball-bearing`); all other data are those of a 6205 or of steel.
    """

    balls: int = 9
    diameter: float = 7.938e-3
    pitch: float = 38.5e-3
    osculation: float = 0.52
    clearance: float = 15e-6
    modulus: float = 206e9
    poisson: float = 0.3
    density: float = 7800.0
    inner_mass: float = 0.045
    outer_mass: float = 0.060
    cage_mass: float = 0.005
    cage_width: float = 9e-3
    bore: float = 12.5e-3
    speed: float = 1e4 * np.pi / 30
    axial: float = 1000.0
    radial: float = 0.0
    gravity: float = 9.81
    damping: float = 0.25
    friction: float = 0.05
    creep: float = 0.1
    pivot_radius: float = 1e-4
    pivot_creep: float = 50.0
    pocket_clearance: float = 1e-4
    pocket_stiffness: float = 5e5
    pocket_damping: float = 0.5
    pocket_friction: float = 0.05
    penalty_frequency: float = 1e6
    #: Elastic outer ring: radius of the neutral line, section, and number of modal coordinates.
    ring_radius: float = 24e-3
    ring_width: float = 15e-3
    ring_thickness: float = 3.5e-3
    modes: int = 0
    modal_damping_ratio: float = 0.01
    #: Elastic inner ring, and elastic plastic cage, whose mass per length follows from its mass.
    inner_ring_radius: float = 14.2e-3
    inner_modes: int = 0
    cage_bending: float = 0.035
    cage_modes: int = 0
    #: Amplitude in m of the radial deviation of the inner race, with two waves.
    ovality: float = 0.0

    def __post_init__(self) -> None:
        if self.clearance < 0 or self.clearance / 2 >= self.groove_centre_distance:
            raise InputError(
                f"the clearance must be at least 0 and below {2 * self.groove_centre_distance:g} m, "
                f"where balls leave the groove; got {self.clearance:g}"
            )
        if self.balls < 3 or self.balls * self.diameter > 0.98 * np.pi * self.pitch:
            max_balls = int(0.98 * np.pi * self.pitch / self.diameter)
            raise InputError(f"{self.balls} balls do not fit: there must be between 3 and {max_balls}")
        if abs(self.ovality) > 0.1 * self.groove_centre_distance:
            raise InputError(
                f"oval must be at most {0.1 * self.groove_centre_distance:.2g} m, a tenth of the groove centre distance"
            )
        for field_name in ("modes", "inner_modes", "cage_modes"):
            count = getattr(self, field_name)
            if count % 2 or count < 0:
                raise InputError(f"{field_name} must be an even number (a cosine and a sine each), got {count}")

    # -- balls --------------------------------------------------------------------------------------------------------
    @property
    def ball_mass(self) -> float:
        return np.pi / 6 * self.diameter**3 * self.density

    @property
    def ball_moment(self) -> float:
        return self.ball_mass * self.diameter**2 / 10

    @property
    def azimuths(self) -> np.ndarray:
        """Azimuth angles of the balls, slightly unequal so that collisions with pockets are not simultaneous."""
        k = np.arange(self.balls)
        return 2 * np.pi * k / self.balls + 2e-3 * np.sin(2.4 * k)

    # -- grooves ------------------------------------------------------------------------------------------------------
    @property
    def groove_radius(self) -> float:
        """Radius of the section of both grooves."""
        return self.osculation * self.diameter

    @property
    def groove_centre_distance(self) -> float:
        """Distance between the groove centres at which a ball touches both grooves without load."""
        return 2 * self.groove_radius - self.diameter

    @property
    def outer_groove_circle(self) -> float:
        """Radius of the circle of section centres of the outer groove."""
        return (self.pitch + self.diameter + self.clearance / 2) / 2 - self.groove_radius

    @property
    def inner_groove_circle(self) -> float:
        return (self.pitch - self.diameter - self.clearance / 2) / 2 + self.groove_radius

    @property
    def free_contact_angle(self) -> float:
        """Contact angle under a vanishing axial load."""
        return float(np.arccos(1 - self.clearance / (2 * self.groove_centre_distance)))

    @functools.cached_property
    def stiffness(self) -> tuple[float, float]:
        """Hertz stiffness K of the outer and of the inner contact, in N/m^1.5."""
        ratio = self.diameter * np.cos(self.free_contact_angle) / self.pitch
        ball, material = 2 / self.diameter, ElasticMaterial(self.modulus, self.poisson)
        along = [-ball * ratio / (1 + ratio), ball * ratio / (1 - ratio)]
        outer, inner = (hertz_stiffness((ball, ball), (x, -1 / self.groove_radius), material) for x in along)
        return outer, inner

    # -- rings and cage -----------------------------------------------------------------------------------------------
    @property
    def inner_moment(self) -> float:
        """Moment of inertia about the axis, of a hollow cylinder between bore and race."""
        race = (self.pitch - self.diameter - self.clearance / 2) / 2
        return self.inner_mass * (self.bore**2 + race**2) / 2

    @property
    def cage_moments(self) -> tuple[float, float]:
        """Axial and transverse moments of inertia of the cage."""
        polar = self.cage_mass * (self.pitch / 2) ** 2
        return polar, polar / 2 + self.cage_mass * self.cage_width**2 / 12

    def penalty(self, inertia: float) -> tuple[float, float]:
        """Return stiffness and critical damping of a penalty spring for a mass or moment of inertia."""
        omega = 2 * np.pi * self.penalty_frequency
        return inertia * omega**2, 2 * inertia * omega

    @property
    def bending(self) -> float:
        """Bending stiffness EI of an elastic ring."""
        return self.modulus * self.ring_width * self.ring_thickness**3 / 12

    def ring_modes(self, which: str) -> RingModes:
        """Return the bending modes of the outer ring, the inner ring or the cage."""
        count = dict(outer=self.modes, inner=self.inner_modes, cage=self.cage_modes)[which]
        line, bending, radius = self.density * self.ring_width * self.ring_thickness, self.bending, self.ring_radius
        if which == "inner":
            radius = self.inner_ring_radius
        elif which == "cage":
            radius = self.pitch / 2
            line, bending = self.cage_mass / (2 * np.pi * radius), self.cage_bending
        return RingModes(radius, bending, line, tuple(range(2, 2 + count // 2)))

    def modal_damping(self, ring: RingModes, n: int) -> float:
        """Return the modal damping coefficient for n waves."""
        return float(2 * self.modal_damping_ratio * np.sqrt(ring.mass(n) * ring.stiffness(n)))
