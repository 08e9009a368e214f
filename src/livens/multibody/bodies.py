"""Rigid-body elements with kinetic energy and orthonormality constraints, and attachment points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from livens import math as m
from livens import rotations as rot
from livens.errors import InputError, ModelError
from livens.expressions.numbers import array, positive, whole_number
from livens.models.element import Element, through
from livens.models.scene import listed
from livens.models.shapes import Shape
from livens.multibody import looks
from livens.multibody.inertia import Inertia
from livens.multibody.placement import Directors, Ground, Placement, Quaternion


class Body(Element):
    """Rigid body as an element of a system; its coordinates are called ``name.x`` and so on.

    Points of the body are given in its body frame, whose origin is arbitrary. Use `director_body`, `quaternion_body`,
    `planar_body`, `fixed_point_body` or `particle` to create one.

    Parameters
    ----------
    name : str
        Name of the body and prefix of its coordinates.
    parametrisation : Parametrisation
        Kinematic parametrisation: positions of points as functions of the coordinates.
    mass : float
        Mass in kg.
    centre : array_like
        Centre of mass in the body frame, in m.
    reference : array_like
        Point of the body frame that the coordinates refer to, in m: the centre of mass, or the fixed point.
    visual : shape or list of shapes, optional
        Visual geometry in the body frame, see `livens.shapes`. By default a box or bar with the inertia of the body.
    default_visual : callable, optional
        Function of the parameters that returns the default visual geometry.
    rotor : bool, default False
        Whether the body is a fast symmetric rotor, see `director_body`.
    **functions : optional
        Energies, constraints and parameters of the `Element`.
    """

    def __init__(
        self,
        name: str,
        placement: Placement,
        mass: float,
        centre: Any,
        reference: Any,
        look: Any = None,
        usual_look: Callable[[Any], Sequence[Shape]] | None = None,
        rotor: bool = False,
        **functions: Any,
    ) -> None:
        if not isinstance(placement, Placement):
            raise InputError(f"the placement of body '{name}' must be one of livens.bodies, got {placement!r}")
        drawn = usual_look
        if look is not None:
            given = listed(look, f" of '{name}'")
            drawn = lambda k: given  # noqa: E731
        if drawn is not None:
            functions["look"] = looks.of_body(placement, np.asarray(reference, dtype=float), drawn)
        super().__init__([f"{name}.{short}" for short in placement.names], name=name, **functions)
        self.placement, self.mass, self.rotor = placement, float(mass), rotor
        self.centre, self.reference = np.asarray(centre, dtype=float), np.asarray(reference, dtype=float)

    def more(self) -> Any:
        """Return the additional content of the fingerprint.

        Returns
        -------
        object
            ``"rotor"`` for rotors, else that of the element.
        """
        return "rotor" if self.rotor else super().more()

    def state(
        self, position: Any = None, orientation: Any = None, velocity: Any = None, omega: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return coordinates and velocities of a pose and a twist.

        Parameters
        ----------
        position : array_like, optional
            Position of the centre of mass in m; zero by default. Ignored for a body with a fixed point.
        orientation : array_like of shape (4,) or float, optional
            Unit quaternion; an angle in rad in the plane. By default the identity.
        velocity : array_like, optional
            Velocity of the centre of mass in m/s; zero by default.
        omega : array_like of shape (3,) or float, optional
            Spatial angular velocity in rad/s; zero by default.

        Returns
        -------
        q : ndarray
            Coordinates of the body.
        v : ndarray
            Velocities of the body.

        Examples
        --------
        >>> top = rotation_body("top", Inertia(1.0, [1, 1, 1]))
        >>> top.state(omega=[0, 0, 2])[1].tolist()
        [0.0, 0.0, 0.0, 1.0]
        """
        d = self.placement.dimension
        still, no_turn = np.zeros(d), np.zeros(3 if d == 3 else 1)
        if orientation is None:
            R = np.eye(3)
        elif d == 3:
            R = rot.matrix(orientation)
        else:
            R = rot.matrix(rot.from_axis_angle([0, 0, 1], orientation))
        q = self.placement.coordinates(still if position is None else np.asarray(position, dtype=float), R)
        omega = no_turn if omega is None else np.asarray(omega, dtype=float)
        return q, self.placement.rates(q, still if velocity is None else np.asarray(velocity, dtype=float), omega)


def a_body(what: str, given: Any) -> Body:
    """Return `given` if it is a body element, else raise InputError."""
    if not isinstance(given, Body):
        raise InputError(f"{what} needs a body, got {given!r}")
    return given


def all_bodies(given: Any) -> Sequence[Body]:
    """Return a non-empty list of body elements, else raise InputError."""
    if not isinstance(given, (list, tuple)) or not given:
        raise InputError(f"bodies must be a list of bodies, got {given!r}")
    return [a_body("every entry of a list of bodies", one) for one in given]


def _inertia(name: str, given: Any) -> Inertia:
    if not isinstance(given, Inertia):
        raise InputError(f"the inertia of body '{name}' must be a livens.bodies.Inertia, got {given!r}")
    return given


def _turning_inertia(name: str, given: Any, point: np.ndarray | None = None) -> Inertia:
    """Return an inertia that is regular about every axis, as the mass matrix of a quaternion body requires."""
    inertia = _inertia(name, given)
    moments = np.linalg.eigvalsh(inertia.about(inertia.centre if point is None else point))
    if moments[0] <= 1e-12 * moments[2]:
        raise ModelError(
            f"body '{name}' has no inertia about one of its axes, so its rotation about this axis is undetermined: "
            "give it a small inertia, or use a director_body, which needs none"
        )
    return inertia


def coordinates(bodies: Sequence[Body]) -> list[str]:
    """Return the coordinate names of a system of bodies, body after body.

    Parameters
    ----------
    bodies : sequence of BodyElement
        Bodies in the order of the coordinates.

    Returns
    -------
    list of str
        Names such as ``"arm.x"``.

    Examples
    --------
    >>> coordinates([particle("a", 1.0), particle("b", 1.0, dimension=2)])
    ['a.x', 'a.y', 'a.z', 'b.x', 'b.y']
    """
    return [str(name) for body in all_bodies(bodies) for name in body.coordinates]


# -- quaternions ------------------------------------------------------------------------------------------------------
# The kinetic energy is a function of the convective angular velocity, which is invariant under rotations of space
# (S004 eq. 54): energy-momentum schemes then conserve angular momentum (87)-(92).
def _turning(w: Any, k: Any) -> Any:
    return 0.5 * m.dot(w, k.inertia @ w)


def _moving_and_turning(w: Any, k: Any) -> Any:
    return 0.5 * k.mass * m.dot(w[:3], w[:3]) + 0.5 * m.dot(w[3:], k.inertia @ w[3:])


_rotation_energy = through(lambda q, v: rot.convective_velocity(q, v), _turning)
_body_energy = through(lambda q, v: [*v[:3], *rot.convective_velocity(q[3:], v[3:])], _moving_and_turning)


def _unit(q: Any) -> Any:
    """Return the unit-length constraint of the quaternion, eq. (30)."""
    return [0.5 * (m.dot(q[-4:], q[-4:]) - 1)]


def rotation_body(name: str, inertia: Inertia, look: Any = None) -> Body:
    """Return a body with a point fixed at the origin of space, parametrised by a unit quaternion.

    The fixed point is the origin of the body frame. The mass matrix ``4 G(q)^T J G(q)`` is singular (S004 eq. 46).

    Parameters
    ----------
    name : str
        Name of the body.
    inertia : Inertia
        Mass, centre of mass and inertia tensor.
    visual : shape or list of shapes, optional
        Visual geometry in the body frame.

    Returns
    -------
    BodyElement
        Body with coordinates ``name.q0`` to ``name.q3``.

    Raises
    ------
    ModelError
        If the inertia vanishes about an axis through the fixed point.

    Examples
    --------
    >>> rotation_body("top", Inertia(1.0, [1, 1, 1], centre=[0, 0, 2])).parameters.values["inertia"].tolist()
    [[5.0, 0.0, 0.0], [0.0, 5.0, 0.0], [0.0, 0.0, 1.0]]
    """
    inertia = _turning_inertia(name, inertia, np.zeros(3))
    return Body(
        name,
        Quaternion(fixed=True),
        inertia.mass,
        inertia.centre,
        np.zeros(3),
        look,
        lambda k: looks.box_of(inertia.mass, inertia.tensor, inertia.centre),
        kinetic=_rotation_energy,
        constraints=_unit,
        parameters=dict(inertia=inertia.about(np.zeros(3))),
        constraint_names=["|q| = 1"],
        quaternions=[(0, 1, 2, 3)],
    )


def _plain_energy(q: Any, v: Any, k: Any) -> Any:
    return _moving_and_turning([*v[:3], *rot.convective_velocity(q[3:], v[3:])], k)


def quaternion_body(name: str, inertia: Inertia, equivariant: bool = False, look: Any = None) -> Body:
    """Return a free body parametrised by its centre of mass and a unit quaternion.

    Parameters
    ----------
    name : str
        Name of the body.
    inertia : Inertia
        Mass, centre of mass and inertia tensor.
    equivariant : bool, default False
        Whether the kinetic energy is a function of the convective angular velocity. Energy-momentum schemes then
        conserve the angular momentum of a body without constraints. With constraints off the centre of mass,
        velocities drift from their constraints for any step size (docs/notes.md); the default is stable there.
    visual : shape or list of shapes, optional
        Visual geometry in the body frame.

    Returns
    -------
    BodyElement
        Body with 7 coordinates.

    Raises
    ------
    ModelError
        If the inertia vanishes about an axis.

    Examples
    --------
    >>> quaternion_body("bar", Inertia(1.0, [1, 1, 1])).coordinates
    ('bar.x', 'bar.y', 'bar.z', 'bar.q0', 'bar.q1', 'bar.q2', 'bar.q3')
    """
    inertia = _turning_inertia(name, inertia)
    return Body(
        name,
        Quaternion(),
        inertia.mass,
        inertia.centre,
        inertia.centre,
        look,
        lambda k: looks.box_of(k.mass, k.inertia, inertia.centre),
        kinetic=_body_energy if equivariant else _plain_energy,
        constraints=_unit,
        parameters=dict(mass=inertia.mass, inertia=inertia.tensor),
        constraint_names=["|q| = 1"],
        quaternions=[(3, 4, 5, 6)],
    )


# -- directors --------------------------------------------------------------------------------------------------------
def _director_energy(v: Any, k: Any) -> Any:
    """Return the kinetic energy S001 (60), for directors that need not be principal axes."""
    rates = v[3:12].reshape(3, 3)
    turning = sum(k.euler[i, j] * m.dot(rates[i], rates[j]) for i in range(3) for j in range(3))
    return 0.5 * k.mass * m.dot(v[:3], v[:3]) + 0.5 * turning


def _orthonormal(q: Any) -> Any:
    """Return the orthonormality constraints of the directors, S001 (61)."""
    d1, d2, d3 = q[3:6], q[6:9], q[9:12]
    return [*(0.5 * (m.dot(d, d) - 1) for d in (d1, d2, d3)), m.dot(d1, d2), m.dot(d1, d3), m.dot(d2, d3)]


def director_body(name: str, inertia: Inertia, look: Any = None, rotor: bool = False) -> Body:
    """Return a free body parametrised by its centre of mass and three directors; constant mass matrix (S001 5.1).

    Parameters
    ----------
    name : str
        Name of the body.
    inertia : Inertia
        Mass, centre of mass and inertia tensor.
    visual : shape or list of shapes, optional
        Visual geometry in the body frame.
    rotor : bool, default False
        Whether the body spins fast about its third axis, about which it must be symmetric. The scheme `lie-em` then
        removes most of the phase error of the spin; its discrete energy differs from the exact one by O(h^2) times
        the changes of the spin.

    Returns
    -------
    BodyElement
        Body with 12 coordinates.

    Raises
    ------
    ModelError
        If a rotor is not symmetric about its third axis.

    Examples
    --------
    >>> len(director_body("bar", Inertia(1.0, [1, 1, 1])).coordinates)
    12
    """
    inertia = _inertia(name, inertia)
    if rotor:
        _symmetric(name, inertia)
    return Body(
        name,
        Directors(3, 3),
        inertia.mass,
        inertia.centre,
        inertia.centre,
        look,
        lambda k: looks.box_of(k.mass, np.trace(k.euler) * np.eye(3) - k.euler, inertia.centre),
        kinetic=_director_energy,
        constraints=_orthonormal,
        parameters=dict(mass=inertia.mass, euler=inertia.euler_tensor),
        constraint_names=["|d1| = 1", "|d2| = 1", "|d3| = 1", "d1.d2 = 0", "d1.d3 = 0", "d2.d3 = 0"],
        frames=[[range(3), range(3, 6), range(6, 9), range(9, 12)]],
        rotor=bool(rotor),
    )


def _symmetric(name: str, inertia: Inertia) -> None:
    J = inertia.tensor
    if np.abs(J - np.diag([J[0, 0], J[0, 0], J[2, 2]])).max() > 1e-9 * np.abs(J).max():
        raise ModelError(
            f"body '{name}' is not a rotor: its inertia must be equal about all axes normal to the third, "
            f"got {J.tolist()}"
        )


def _planar_energy(v: Any, k: Any) -> Any:
    """Return the planar kinetic energy S001 (71): half the moment of inertia belongs to each director."""
    return 0.5 * k.mass * m.dot(v[:2], v[:2]) + 0.25 * k.moment * m.dot(v[2:6], v[2:6])


def _planar_orthonormal(q: Any) -> Any:
    """Return the orthonormality constraints in the plane, S001 (73)."""
    d1, d2 = q[2:4], q[4:6]
    return [0.5 * (m.dot(d1, d1) - 1), 0.5 * (m.dot(d2, d2) - 1), m.dot(d1, d2)]


def planar_body(name: str, mass: float, moment: float, centre: Any = (0.0, 0.0), look: Any = None) -> Body:
    """Return a free body in the plane, parametrised by its centre of mass and two directors (S001 5.2).

    Parameters
    ----------
    name : str
        Name of the body.
    mass : float
        Mass in kg.
    moment : float
        Moment of inertia about the centre of mass in kg m^2.
    centre : array_like of shape (2,), default (0, 0)
        Centre of mass in the body frame, in m.
    visual : shape or list of shapes, optional
        Visual geometry in the body frame.

    Returns
    -------
    BodyElement
        Body with 6 coordinates.

    Examples
    --------
    >>> planar_body("bar", 1.0, 1 / 12).coordinates
    ('bar.x', 'bar.y', 'bar.d1x', 'bar.d1y', 'bar.d2x', 'bar.d2y')
    """
    mass, moment = positive(f"{name}: the mass", mass), positive(f"{name}: the moment", moment)
    return Body(
        name,
        Directors(2, 2),
        mass,
        centre,
        centre,
        look,
        lambda k: looks.bar_of(k.mass, k.moment, np.asarray(centre, dtype=float)),
        kinetic=_planar_energy,
        constraints=_planar_orthonormal,
        parameters=dict(mass=mass, moment=moment),
        constraint_names=["|d1| = 1", "|d2| = 1", "d1.d2 = 0"],
        frames=[[range(2), range(2, 4), range(4, 6)]],
    )


# -- particles --------------------------------------------------------------------------------------------------------
def _particle_energy(v: Any, k: Any) -> Any:
    return 0.5 * k.mass * m.dot(v, v)


def particle(name: str, mass: float, dimension: int = 3, look: Any = None) -> Body:
    """Return a particle: a point mass in space or in the plane.

    Parameters
    ----------
    name : str
        Name of the particle.
    mass : float
        Mass in kg.
    dimension : int, default 3
        Dimension of space, 1 to 3.
    visual : shape or list of shapes, optional
        Visual geometry; by default a sphere.

    Returns
    -------
    BodyElement
        Particle with `dimension` coordinates.

    Examples
    --------
    >>> particle("a", 2.0).coordinates
    ('a.x', 'a.y', 'a.z')
    """
    dimension = whole_number(f"{name}: the dimension", dimension, least=1, most=3)
    mass, origin = positive(f"{name}: the mass", mass), np.zeros(dimension)
    return Body(
        name,
        Directors(dimension, 0),
        mass,
        origin,
        origin,
        look,
        lambda k: looks.ball(dimension),
        kinetic=_particle_energy,
        parameters=dict(mass=mass),
        frames=[[range(dimension)]],
    )


# -- points -----------------------------------------------------------------------------------------------------------
class Point:
    """Attachment point of a joint, a spring or a force: fixed in a body, or fixed in space.

    A body stands for its centre of mass. The reference point of a translating body moves like a particle: only the
    coordinates of its position are used, unless `whole` is True.
    """

    def __init__(self, given: Any, whole: bool = False) -> None:
        if isinstance(given, Body):
            given = given, given.centre
        if isinstance(given, tuple) and given and isinstance(given[0], Body):
            if len(given) != 2:
                raise InputError(f"a point of '{given[0].name}' is (body, X), got {len(given)} entries")
            body, X = given
            d = body.placement.dimension
            X = array(f"a point of '{body.name}'", X, (d,))
            self.name, self.lever = body.name, X - body.reference
            self.placement: Placement = body.placement
            self.coordinates = body.coordinates
            if body.placement.translates and not whole and not self.lever.any():
                self.placement, self.coordinates = Directors(d, 0), body.coordinates[:d]
        else:
            X = array("a point", given, words="(body, X) or two or three numbers in space")
            if X.shape not in ((2,), (3,)):
                raise InputError(f"a point is (body, X) or two or three numbers in space, got {given!r}")
            self.name, self.lever = "ground", X
            self.placement, self.coordinates = Ground(len(X)), ()


def pair(first: Any, second: Any, what: str) -> tuple[Point, Point, dict[str, Any], str]:
    """Return two attachment points, their local positions as parameters X, Y, and the name of the element."""
    a, b = Point(first), Point(second)
    name = f"{what} {a.name}-{b.name}"
    if a.placement.dimension != b.placement.dimension:
        raise InputError(f"{name}: one point is in space, the other is in the plane")
    if not (a.coordinates or b.coordinates):
        raise InputError(f"{name}: one of the two points must belong to a body")
    return a, b, dict(X=a.lever, Y=b.lever), name


def between(a: Placement, b: Placement, q: Any, k: Any) -> Any:
    """Return the relative position vector from the second attachment point to the first."""
    n = len(a.names)
    return a.point(q[:n], k.X) - b.point(q[n:], k.Y)
