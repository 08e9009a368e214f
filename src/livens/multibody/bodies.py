"""Rigid bodies: elements with kinetic energy and the constraints that keep them rigid, and their points."""

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
    """A rigid body as an element of a system; its coordinates are called ``name.x`` and so on.

    Points of the body are given in its own frame, whose origin may be anywhere. `reference` is the point of that frame
    the coordinates refer to: the centre of mass, or the fixed point of a `rotation_body`. A body looks as `look` says,
    a shape or a list of shapes in the body's frame (see `livens.shapes`); else like a box or bar of its inertia.
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
        return "rotor" if self.rotor else super().more()

    def state(
        self, position: Any = None, orientation: Any = None, velocity: Any = None, omega: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and velocities of the body in a given state of motion.

        `position` and `velocity` are those of the centre of mass (a body with a fixed point has none to choose),
        `orientation` is a unit quaternion (an angle in the plane), `omega` the spatial angular velocity.

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
    """A body, or a sentence that says what was given instead."""
    if not isinstance(given, Body):
        raise InputError(f"{what} needs a body, got {given!r}")
    return given


def all_bodies(given: Any) -> Sequence[Body]:
    """A list of at least one body."""
    if not isinstance(given, (list, tuple)) or not given:
        raise InputError(f"bodies must be a list of bodies, got {given!r}")
    return [a_body("every entry of a list of bodies", one) for one in given]


def _inertia(name: str, given: Any) -> Inertia:
    if not isinstance(given, Inertia):
        raise InputError(f"the inertia of body '{name}' must be a livens.bodies.Inertia, got {given!r}")
    return given


def _turning_inertia(name: str, given: Any, point: np.ndarray | None = None) -> Inertia:
    """One that resists every rotation: quaternions turn about all axes, and about one without inertia nothing says how
    fast."""
    inertia = _inertia(name, given)
    moments = np.linalg.eigvalsh(inertia.about(inertia.centre if point is None else point))
    if moments[0] <= 1e-12 * moments[2]:
        raise ModelError(
            f"body '{name}' has no inertia about one of its axes, and nothing would say how fast it turns about it: "
            "give it a small one, or take a director_body, which needs none"
        )
    return inertia


def coordinates(bodies: Sequence[Body]) -> list[str]:
    """The coordinates of a system of bodies, one body after the other.

    >>> coordinates([particle("a", 1.0), particle("b", 1.0, dimension=2)])
    ['a.x', 'a.y', 'a.z', 'b.x', 'b.y']
    """
    return [str(name) for body in all_bodies(bodies) for name in body.coordinates]


# -- quaternions ------------------------------------------------------------------------------------------------------
# The kinetic energy goes through the convective angular velocity, which no rotation of space changes (S004 eq. 54):
# energy-momentum schemes then conserve angular momentum (87)-(92).
def _turning(w: Any, k: Any) -> Any:
    return 0.5 * m.dot(w, k.inertia @ w)


def _moving_and_turning(w: Any, k: Any) -> Any:
    return 0.5 * k.mass * m.dot(w[:3], w[:3]) + 0.5 * m.dot(w[3:], k.inertia @ w[3:])


_rotation_energy = through(lambda q, v: rot.convective_velocity(q, v), _turning)
_body_energy = through(lambda q, v: [*v[:3], *rot.convective_velocity(q[3:], v[3:])], _moving_and_turning)


def _unit(q: Any) -> Any:
    """(30)"""
    return [0.5 * (m.dot(q[-4:], q[-4:]) - 1)]


def rotation_body(name: str, inertia: Inertia, look: Any = None) -> Body:
    """A body that turns about the origin of its frame, which is fixed in the origin of space: a unit quaternion.

    The mass matrix ``4 G(q)^T J G(q)`` is singular (S004 eq. 46).

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
    """A free body: the position of its centre of mass and a unit quaternion.

    With joints, energy-momentum schemes are stable with its energy as a plain function of q and v, which is what it is.
    If its energy is `equivariant`, they conserve angular momentum of a body without joints, but with joints off the
    centre of mass velocities grow away from their constraints, whatever the step (docs/notes.md).

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
    """S001 (60), for directors that need not be principal axes."""
    rates = v[3:12].reshape(3, 3)
    turning = sum(k.euler[i, j] * m.dot(rates[i], rates[j]) for i in range(3) for j in range(3))
    return 0.5 * k.mass * m.dot(v[:3], v[:3]) + 0.5 * turning


def _orthonormal(q: Any) -> Any:
    """S001 (61)"""
    d1, d2, d3 = q[3:6], q[6:9], q[9:12]
    return [*(0.5 * (m.dot(d, d) - 1) for d in (d1, d2, d3)), m.dot(d1, d2), m.dot(d1, d3), m.dot(d2, d3)]


def director_body(name: str, inertia: Inertia, look: Any = None, rotor: bool = False) -> Body:
    """A free body: the position of its centre of mass and three directors; the mass matrix is constant (S001 5.1).

    A `rotor` spins fast about its third axis, and is symmetric about it: `lie-em` then takes most of the error in phase
    out of its spin, with an energy that differs from the true one by O(h^2) of what the spin changes.

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
            f"body '{name}' is no rotor: its inertia must be the same about all axes across its third, got {J.tolist()}"
        )


def _planar_energy(v: Any, k: Any) -> Any:
    """S001 (71): half the moment of inertia belongs to each director."""
    return 0.5 * k.mass * m.dot(v[:2], v[:2]) + 0.25 * k.moment * m.dot(v[2:6], v[2:6])


def _planar_orthonormal(q: Any) -> Any:
    """S001 (73)"""
    d1, d2 = q[2:4], q[4:6]
    return [0.5 * (m.dot(d1, d1) - 1), 0.5 * (m.dot(d2, d2) - 1), m.dot(d1, d2)]


def planar_body(name: str, mass: float, moment: float, centre: Any = (0.0, 0.0), look: Any = None) -> Body:
    """A free body in the plane: the position of its centre of mass and two directors (S001 5.2).

    `moment` is the moment of inertia about the centre of mass.

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
    """A point with mass, in space or in the plane.

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
    """A point of a body, or of space: what a joint, a spring or a force is attached to.

    A body alone stands for its centre of mass. The reference point of a body that translates moves like a particle:
    then only its position takes part, unless the `whole` body is asked for.
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
    """Two points, their levers as parameters, and a name for what is between them."""
    a, b = Point(first), Point(second)
    name = f"{what} {a.name}-{b.name}"
    if a.placement.dimension != b.placement.dimension:
        raise InputError(f"{name}: one point is in space, the other in the plane")
    if not (a.coordinates or b.coordinates):
        raise InputError(f"{name}: one of the two points must belong to a body")
    return a, b, dict(X=a.lever, Y=b.lever), name


def between(a: Placement, b: Placement, q: Any, k: Any) -> Any:
    """The vector from the second point of a pair to the first."""
    n = len(a.names)
    return a.point(q[:n], k.X) - b.point(q[n:], k.Y)
