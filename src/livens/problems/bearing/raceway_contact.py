"""Contact forces in a ball bearing: balls on races and in the pockets of the cage.

The normal force is ``Q = Q_elastic max(0, 1 + c depth')`` (Hunt and Crossley). Regularised Coulomb friction consists of
``mu Q`` against sliding and, on races, ``mu Q a`` against pivoting. The elastic part has a potential; dissipative parts
are generalised forces. Angles of balls are ignorable coordinates: only their rates enter.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from livens import math as m
from livens.expressions.tracing import ModelFunction
from livens.multibody.contacts.dissipation import friction_force, hunt_crossley_force, spinning_torque
from livens.multibody.contacts.normal_laws.hertz import hertz_energy, hertz_force
from livens.multibody.ring_modes import harmonics, mode_shapes
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


#: Lower bound of the penetration depth in m; it keeps the square root of Hertz' law and its derivative regular.
_MIN_PENETRATION = 1e-30
_AXIS = np.array([1.0, 0.0, 0.0])


class RaceContact(NamedTuple):
    """Contact kinematics of a ball: normal into the surface, penetration depth, vector from ball centre to contact."""

    normal: Any
    penetration: Any
    arm: Any


def _regularised_coulomb(Q: ScalarLike, u: Vector, sliding: Vector, mu: ScalarLike, creep: ScalarLike) -> Vector:
    """Return the regularised Coulomb friction force at a given sliding velocity on a surface with normal u."""
    return friction_force(Q, sliding - m.dot(sliding, u) * u, mu, creep)


# -- races ------------------------------------------------------------------------------------------------------------
class Race(NamedTuple):
    """Race of a ring: rotation, wave numbers of the modes, index of the first modal coordinate, and ovality.

    The angle of a rotating ring is the coordinate after its centre. The index is that in the contact
    element.
    """

    spins: bool
    waves: tuple[int, ...] = ()
    first_mode_index: int = 9
    is_oval: bool = False

    @property
    def is_round(self) -> bool:
        return not (self.waves or self.is_oval)

    @property
    def depends_on_rotation(self) -> bool:
        """True for a rotating race that is not round, so that contact kinematics depend on the rotation angle."""
        return self.spins and not self.is_round


class RaceKinematics(NamedTuple):
    """Kinematics of a ball on a race, relative to the ring."""

    offset: Any  # position relative to the centre of the ring
    rho: Any  # distance from the axis
    e_r: Any
    e_t: Any
    contact: RaceContact
    waves: list[tuple[Any, Any]]  # cos(n angle) and sin(n angle) of the angle on the ring, for each mode
    deflection_gradient: Any  # derivative of the deflection of the ring by the angle


def _race_kinematics(q: Vector, t: ScalarLike, k: ParameterNamespace, race: Race) -> RaceKinematics:
    """Return the contact kinematics of a toroidal groove; deflections displace the circle of section centres radially.

    Deflections rotate with the ring: two waves for an oval race, n waves for a mode of wave number n.
    """
    d = q[:3] - q[6:9]
    rho = m.sqrt(d[1] ** 2 + d[2] ** 2)
    c, s = d[1] / rho, d[2] / rho
    cos_angle, sin_angle = c, s  # cosine and sine of the angle on the ring
    if race.depends_on_rotation:
        rotation_angle = k.speed * t + q[9]
        cosine, sine = m.cos(rotation_angle), m.sin(rotation_angle)
        cos_angle, sin_angle = c * cosine + s * sine, s * cosine - c * sine
    angles = harmonics(cos_angle, sin_angle, race.waves)
    deflection = deflection_gradient = 0.0
    for i, (n, (cosine, sine)) in enumerate(zip(race.waves, angles, strict=True)):
        a, b = q[race.first_mode_index + 2 * i], q[race.first_mode_index + 2 * i + 1]
        deflection = deflection + a * cosine + b * sine
        deflection_gradient = deflection_gradient + n * (b * cosine - a * sine)
    if race.is_oval:
        deflection = deflection + k.oval * (cos_angle * cos_angle - sin_angle * sin_angle)
        deflection_gradient = deflection_gradient - 4 * k.oval * cos_angle * sin_angle
    radial_offset = rho - k.R - deflection
    size = m.sqrt(d[0] ** 2 + radial_offset**2)
    u = m.array([d[0], radial_offset * c, radial_offset * s]) / size
    depth = m.maximum(size + k.D / 2 - k.r, _MIN_PENETRATION)
    e_r, e_t = m.array([0.0, c, s]), m.array([0.0, -s, c])
    return RaceKinematics(
        d, rho, e_r, e_t, RaceContact(u, depth, (k.D / 2 - depth / 2) * u), angles, deflection_gradient
    )


@functools.cache
def race_energy(race: Race) -> ModelFunction:
    if race.depends_on_rotation:
        return lambda q, t, k: hertz_energy(k.K, _race_kinematics(q, t, k, race).contact.penetration)
    return lambda q, k: hertz_energy(k.K, _race_kinematics(q, 0.0, k, race).contact.penetration)


def _penetration_rate(kinematics: RaceKinematics, v: Vector, k: ParameterNamespace, race: Race) -> tuple[Any, Any, Any]:
    """Return the gradient of the penetration depth by the ball position (negative: by the ring position) and by each
    mode, and the penetration rate."""
    u = kinematics.contact.normal
    radial = m.dot(u, kinematics.e_r)
    on_ball = u if race.is_round else u - radial * kinematics.deflection_gradient / kinematics.rho * kinematics.e_t
    on_modes = [-radial * wave for wave_pair in kinematics.waves for wave in wave_pair]
    rate = m.dot(on_ball, v[:3] - v[6:9])
    for i, part in enumerate(on_modes):
        rate = rate + part * v[race.first_mode_index + i]
    if race.depends_on_rotation:  # motion of the race relative to the ball
        rate = rate + radial * kinematics.deflection_gradient * (k.speed + v[9])
    return on_ball, on_modes, rate


@functools.cache
def race_forces(race: Race) -> ModelFunction:
    """Return the dissipative forces between ball and race: damping, friction and pivoting moment."""

    def forces(q: Vector, v: Vector, t: ScalarLike, k: ParameterNamespace) -> list[ScalarLike]:
        kinematics = _race_kinematics(q, t, k, race)
        u, depth, ball_arm = kinematics.contact
        on_ball, on_modes, rate = _penetration_rate(kinematics, v, k, race)
        elastic = hertz_force(k.K, depth)
        Q = hunt_crossley_force(elastic, k.damping, rate)
        spin = k.speed + v[9] if race.spins else 0.0
        arm = kinematics.offset + ball_arm
        sliding = v[:3] + m.cross(v[3:6], ball_arm) - v[6:9]
        pivoting = m.dot(v[3:6], u)
        if race.spins:
            sliding = sliding - spin * m.array([0.0, -arm[2], arm[1]])
            pivoting = pivoting - spin * u[0]
        friction = _regularised_coulomb(Q, u, sliding, k.mu, k.creep)
        moment = spinning_torque(Q, pivoting, k.mu, k.pivot, k.pivot_creep) * u
        contact_force = friction - (Q - elastic) * on_ball
        generalised_forces = [*contact_force, *(m.cross(ball_arm, friction) + moment), *(-contact_force)]
        if race.spins:
            axial_torque = -(arm[1] * friction[2] - arm[2] * friction[1]) - moment[0]
            depends_on_rotation = race.depends_on_rotation
            generalised_forces.append(
                axial_torque - (Q - elastic) * m.dot(u, kinematics.e_r) * kinematics.deflection_gradient
                if depends_on_rotation
                else axial_torque
            )
        return [*generalised_forces, *(-(Q - elastic) * part for part in on_modes)]

    if race.depends_on_rotation:
        return forces
    return lambda q, v, k: forces(q, v, 0.0, k)


def race_normal(race: Race) -> ModelFunction:
    """Return the normal force as a function of coordinates, velocities, time and parameters."""

    def normal(q: Vector, v: Vector, t: ScalarLike, k: ParameterNamespace) -> Any:
        kinematics = _race_kinematics(q, t, k, race)
        _, _, rate = _penetration_rate(kinematics, v, k, race)
        return hunt_crossley_force(hertz_force(k.K, kinematics.contact.penetration), k.damping, rate)

    return normal


def race_point(race: Race) -> ModelFunction:
    """Return the contact point of a ball on a race as a function of coordinates, velocities, time and parameters."""
    return lambda q, v, t, k: q[:3] + _race_kinematics(q, t, k, race).contact.arm


# -- pockets ----------------------------------------------------------------------------------------------------------
#: Index of the first mode of an elastic cage, after 6 coordinates of the ball and 12 of the cage (centre, directors).
_MODES = 18


def _pocket_centre(q: Vector, k: ParameterNamespace, waves: Sequence[int]) -> tuple[Any, list[Any]]:
    """Return the position of a pocket centre relative to the cage centre, and its derivatives by the modes."""
    outwards, along = k.cosine * q[12:15] + k.sine * q[15:18], k.cosine * q[15:18] - k.sine * q[12:15]
    centre, derivatives = k.circle * outwards, []
    for i, (w, v) in enumerate(mode_shapes(k.cosine, k.sine, waves)):
        derivatives.append(w * outwards + v * along)
        centre = centre + q[_MODES + i] * derivatives[-1]
    return centre, derivatives


def _pocket_contact(q: Vector, k: ParameterNamespace, waves: Sequence[int]) -> tuple[RaceContact, list[Any]]:
    """Return the contact of a ball in a spherical pocket, and the derivatives of the pocket centre by the modes."""
    centre, mode_shapes = _pocket_centre(q, k, waves)
    e = q[:3] - q[6:9] - centre
    size = m.sqrt(m.dot(e, e) + _MIN_PENETRATION)
    depth = m.maximum(size - k.gap, 0.0)
    u = e / size
    return RaceContact(u, depth, (k.D / 2 - depth / 2) * u), mode_shapes


@functools.cache
def pocket_energy(waves: tuple[int, ...]) -> ModelFunction:
    return lambda q, k: k.pocket_stiffness / 2 * _pocket_contact(q, k, waves)[0].penetration ** 2


def _pocket_rate(q: Vector, v: Vector, k: ParameterNamespace, u: Vector, waves: Sequence[int]) -> ScalarLike:
    """Return the penetration rate of a ball in its pocket."""
    director_rates = m.array([*v[:18], *q[18:]])  # velocities of centre and directors, modes unchanged
    centre_velocity, _ = _pocket_centre(director_rates, k, waves)
    _, mode_shapes = _pocket_centre(q, k, waves)
    for i, mode_shape in enumerate(mode_shapes):
        centre_velocity = centre_velocity + v[_MODES + i] * mode_shape
    return m.dot(u, v[:3] - v[6:9] - centre_velocity)


@functools.cache
def pocket_forces(waves: tuple[int, ...]) -> ModelFunction:
    """Return damping and friction between ball and pocket; forces on directors are equivalent to the contact force."""

    def forces(q: Vector, v: Vector, k: ParameterNamespace) -> list[ScalarLike]:
        (u, depth, ball_arm), mode_shapes = _pocket_contact(q, k, waves)
        elastic = k.pocket_stiffness * depth
        Q = hunt_crossley_force(elastic, k.pocket_damping, _pocket_rate(q, v, k, u, waves))
        arm = q[:3] + ball_arm - q[6:9]
        parts = [m.dot(arm, q[9 + 3 * i : 12 + 3 * i]) for i in range(3)]
        cage_velocity = v[6:9] + sum(x * v[9 + 3 * i : 12 + 3 * i] for i, x in enumerate(parts))
        for i, mode_shape in enumerate(mode_shapes):
            cage_velocity = cage_velocity + v[_MODES + i] * mode_shape
        friction = _regularised_coulomb(Q, u, v[:3] + m.cross(v[3:6], ball_arm) - cage_velocity, k.pocket_mu, k.creep)
        contact_force = friction - (Q - elastic) * u
        on_cage = [
            *(-contact_force),
            *(-x * f for x in parts for f in contact_force),
            *(-m.dot(contact_force, mode_shape) for mode_shape in mode_shapes),
        ]
        return [*contact_force, *m.cross(ball_arm, friction), *on_cage]

    return forces


def pocket_normal(waves: tuple[int, ...]) -> ModelFunction:
    """Return the normal force between ball and pocket as a function of coordinates, velocities, time and parameters."""

    def normal(q: Vector, v: Vector, t: ScalarLike, k: ParameterNamespace) -> Any:
        (u, depth, _), _ = _pocket_contact(q, k, waves)
        rate = _pocket_rate(q, v, k, u, waves)
        return hunt_crossley_force(k.pocket_stiffness * depth, k.pocket_damping, rate)

    return normal


def pocket_point(waves: tuple[int, ...]) -> ModelFunction:
    """Return the contact point of a ball in its pocket."""
    return lambda q, v, t, k: q[:3] + _pocket_contact(q, k, waves)[0].arm
