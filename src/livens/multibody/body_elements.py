"""Rigid-body elements with kinetic energy and orthonormality constraints, and attachment points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from livens import math as m
from livens import rotations as rot
from livens.errors import InputError, ModelError, explain_call_errors
from livens.models.element import Element, of_invariants
from livens.multibody import visuals
from livens.multibody.inertia import Inertia
from livens.multibody.parametrisation import (
    DirectorParametrisation,
    GroundParametrisation,
    Parametrisation,
    QuaternionParametrisation,
)
from livens.scene.scene import as_shapes
from livens.scene.shapes import Shape
from livens.types import ArrayLike, ScalarLike, Vector
from livens.validation import check_array, check_integer, check_positive

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


class BodyElement(Element):
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
        parametrisation: Parametrisation,
        mass: float,
        centre: ArrayLike,
        reference: ArrayLike,
        visual: Sequence[Shape] | Shape | None = None,
        default_visual: Callable[[Any], Sequence[Shape]] | None = None,
        rotor: bool = False,
        **functions: Any,
    ) -> None:
        if not isinstance(parametrisation, Parametrisation):
            raise InputError(f"the placement of body '{name}' must be one of livens.bodies, got {parametrisation!r}")
        shapes = default_visual
        if visual is not None:
            visual_shapes = as_shapes(visual, f" of '{name}'")
            shapes = lambda k: visual_shapes  # noqa: E731
        if shapes is not None:
            functions["visual"] = visuals.body_visual(parametrisation, np.asarray(reference, dtype=float), shapes)
        super().__init__([f"{name}.{short}" for short in parametrisation.names], name=name, **functions)
        self.parametrisation, self.mass, self.rotor = parametrisation, float(mass), rotor
        self.centre, self.reference = np.asarray(centre, dtype=float), np.asarray(reference, dtype=float)

    def extra_fingerprint(self) -> str | None:
        """Return the additional content of the fingerprint.

        Returns
        -------
        object
            ``"rotor"`` for rotors, else that of the element.
        """
        return "rotor" if self.rotor else super().extra_fingerprint()

    def state(
        self,
        position: ArrayLike | None = None,
        orientation: ArrayLike | None = None,
        velocity: ArrayLike | None = None,
        omega: ArrayLike | None = None,
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
        >>> top = fixed_point_body("top", Inertia(1.0, [1, 1, 1]))
        >>> top.state(omega=[0, 0, 2])[1].tolist()
        [0.0, 0.0, 0.0, 1.0]
        """
        d = self.parametrisation.dimension
        zero_velocity, zero_omega = np.zeros(d), np.zeros(3 if d == 3 else 1)
        if orientation is None:
            R = np.eye(3)
        elif d == 3:
            R = rot.to_matrix(orientation)
        else:
            R = rot.to_matrix(rot.from_axis_angle([0, 0, 1], orientation))
        q = self.parametrisation.from_pose(zero_velocity if position is None else np.asarray(position, dtype=float), R)
        omega = zero_omega if omega is None else np.asarray(omega, dtype=float)
        return q, self.parametrisation.from_twist(
            q, zero_velocity if velocity is None else np.asarray(velocity, dtype=float), omega
        )


def check_body(context: str, value: object) -> BodyElement:
    """Return `value` if it is a body element, else raise InputError."""
    if not isinstance(value, BodyElement):
        raise InputError(f"{context} needs a body, got {value!r}")
    return value


def check_bodies(values: Sequence[BodyElement]) -> Sequence[BodyElement]:
    """Return a non-empty list of body elements, else raise InputError."""
    if not isinstance(values, (list, tuple)) or not values:
        raise InputError(f"bodies must be a list of bodies, got {values!r}")
    return [check_body("every entry of a list of bodies", value) for value in values]


def _inertia(name: str, value: Inertia) -> Inertia:
    if not isinstance(value, Inertia):
        raise InputError(f"the inertia of body '{name}' must be a livens.bodies.Inertia, got {value!r}")
    return value


def _regular_inertia(name: str, value: Inertia, point: np.ndarray | None = None) -> Inertia:
    """Return an inertia that is regular about every axis, as the mass matrix of a quaternion body requires."""
    inertia = _inertia(name, value)
    moments = np.linalg.eigvalsh(inertia.about(inertia.centre if point is None else point))
    if moments[0] <= 1e-12 * moments[2]:
        raise ModelError(
            f"body '{name}' has no inertia about one of its axes, so its rotation about this axis is undetermined: "
            "give it a small inertia, or use a director_body, which needs none"
        )
    return inertia


@explain_call_errors
def coordinates(bodies: Sequence[BodyElement]) -> list[str]:
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
    return [str(name) for body in check_bodies(bodies) for name in body.coordinates]


# -- quaternions ------------------------------------------------------------------------------------------------------
# The kinetic energy is a function of the convective angular velocity, which is invariant under rotations of space
# (Kinon and Betsch 2024, eq. 54): energy-momentum schemes then conserve angular momentum (87)-(92).
def _rotational_energy(w: Vector, k: ParameterNamespace) -> ScalarLike:
    return 0.5 * m.dot(w, k.inertia @ w)


def _rigid_body_energy(w: Sequence[ScalarLike] | Vector, k: ParameterNamespace) -> ScalarLike:
    return 0.5 * k.mass * m.dot(w[:3], w[:3]) + 0.5 * m.dot(w[3:], k.inertia @ w[3:])


_fixed_point_energy = of_invariants(lambda q, v: rot.convective_velocity(q, v), _rotational_energy)
_equivariant_energy = of_invariants(lambda q, v: [*v[:3], *rot.convective_velocity(q[3:], v[3:])], _rigid_body_energy)


def _unit(q: Vector) -> list[ScalarLike]:
    """Return the unit-length constraint of the quaternion, eq. (30)."""
    return [0.5 * (m.dot(q[-4:], q[-4:]) - 1)]


@explain_call_errors
def fixed_point_body(name: str, inertia: Inertia, visual: Shape | None = None) -> BodyElement:
    """Return a body with a point fixed at the origin of space, parametrised by a unit quaternion.

    The fixed point is the origin of the body frame. The mass matrix ``4 G(q)^T J G(q)`` is singular (Kinon and Betsch
    2024, eq. 46).

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
    >>> fixed_point_body("top", Inertia(1.0, [1, 1, 1], centre=[0, 0, 2])).parameters.values["inertia"].tolist()
    [[5.0, 0.0, 0.0], [0.0, 5.0, 0.0], [0.0, 0.0, 1.0]]
    """
    inertia = _regular_inertia(name, inertia, np.zeros(3))
    return BodyElement(
        name,
        QuaternionParametrisation(fixed=True),
        inertia.mass,
        inertia.centre,
        np.zeros(3),
        visual,
        lambda k: visuals.inertia_box(inertia.mass, inertia.tensor, inertia.centre),
        kinetic=_fixed_point_energy,
        constraints=_unit,
        parameters=dict(inertia=inertia.about(np.zeros(3))),
        constraint_names=["|q| = 1"],
        quaternions=[(0, 1, 2, 3)],
    )


def _plain_energy(q: Vector, v: Vector, k: ParameterNamespace) -> ScalarLike:
    return _rigid_body_energy([*v[:3], *rot.convective_velocity(q[3:], v[3:])], k)


@explain_call_errors
def quaternion_body(
    name: str, inertia: Inertia, equivariant: bool = False, visual: Sequence[Shape] | None = None
) -> BodyElement:
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
        velocities drift from their constraints for any step size (docs/theory/known-limits.md);
        the default is stable there.
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
    inertia = _regular_inertia(name, inertia)
    return BodyElement(
        name,
        QuaternionParametrisation(),
        inertia.mass,
        inertia.centre,
        inertia.centre,
        visual,
        lambda k: visuals.inertia_box(k.mass, k.inertia, inertia.centre),
        kinetic=_equivariant_energy if equivariant else _plain_energy,
        constraints=_unit,
        parameters=dict(mass=inertia.mass, inertia=inertia.tensor),
        constraint_names=["|q| = 1"],
        quaternions=[(3, 4, 5, 6)],
    )


# -- directors --------------------------------------------------------------------------------------------------------
def _director_energy(v: Vector, k: ParameterNamespace) -> ScalarLike:
    """Return the kinetic energy Kinon et al. 2023, (60), for directors that need not be principal axes."""
    rates = v[3:12].reshape(3, 3)
    rotational = sum(k.euler[i, j] * m.dot(rates[i], rates[j]) for i in range(3) for j in range(3))
    return 0.5 * k.mass * m.dot(v[:3], v[:3]) + 0.5 * rotational


def _orthonormal(q: Vector) -> list[ScalarLike]:
    """Return the orthonormality constraints of the directors, Kinon et al. 2023, (61)."""
    d1, d2, d3 = q[3:6], q[6:9], q[9:12]
    return [*(0.5 * (m.dot(d, d) - 1) for d in (d1, d2, d3)), m.dot(d1, d2), m.dot(d1, d3), m.dot(d2, d3)]


@explain_call_errors
def director_body(
    name: str, inertia: Inertia, visual: Sequence[Shape] | Shape | None = None, rotor: bool = False
) -> BodyElement:
    """Return a free body parametrised by its centre of mass and three directors; constant mass matrix.

    See Kinon et al. 2023, 5.1.

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
    return BodyElement(
        name,
        DirectorParametrisation(3, 3),
        inertia.mass,
        inertia.centre,
        inertia.centre,
        visual,
        lambda k: visuals.inertia_box(k.mass, np.trace(k.euler) * np.eye(3) - k.euler, inertia.centre),
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


def _planar_energy(v: Vector, k: ParameterNamespace) -> ScalarLike:
    """Return the planar kinetic energy Kinon et al. 2023, (71): half the moment of inertia belongs to each director."""
    return 0.5 * k.mass * m.dot(v[:2], v[:2]) + 0.25 * k.moment * m.dot(v[2:6], v[2:6])


def _planar_orthonormal(q: Vector) -> list[ScalarLike]:
    """Return the orthonormality constraints in the plane, Kinon et al. 2023, (73)."""
    d1, d2 = q[2:4], q[4:6]
    return [0.5 * (m.dot(d1, d1) - 1), 0.5 * (m.dot(d2, d2) - 1), m.dot(d1, d2)]


@explain_call_errors
def planar_body(
    name: str, mass: float, moment: float, centre: ArrayLike = (0.0, 0.0), visual: Sequence[Shape] | None = None
) -> BodyElement:
    """Return a free body in the plane, parametrised by its centre of mass and two directors (Kinon et al. 2023, 5.2).

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
    mass, moment = check_positive(f"{name}: the mass", mass), check_positive(f"{name}: the moment", moment)
    return BodyElement(
        name,
        DirectorParametrisation(2, 2),
        mass,
        centre,
        centre,
        visual,
        lambda k: visuals.inertia_bar(k.mass, k.moment, np.asarray(centre, dtype=float)),
        kinetic=_planar_energy,
        constraints=_planar_orthonormal,
        parameters=dict(mass=mass, moment=moment),
        constraint_names=["|d1| = 1", "|d2| = 1", "d1.d2 = 0"],
        frames=[[range(2), range(2, 4), range(4, 6)]],
    )


# -- particles --------------------------------------------------------------------------------------------------------
def _particle_energy(v: Vector, k: ParameterNamespace) -> ScalarLike:
    return 0.5 * k.mass * m.dot(v, v)


@explain_call_errors
def particle(name: str, mass: float, dimension: int = 3, visual: Any = None) -> BodyElement:
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
    dimension = check_integer(f"{name}: the dimension", dimension, minimum=1, maximum=3)
    mass, origin = check_positive(f"{name}: the mass", mass), np.zeros(dimension)
    return BodyElement(
        name,
        DirectorParametrisation(dimension, 0),
        mass,
        origin,
        origin,
        visual,
        lambda k: visuals.particle_visual(dimension),
        kinetic=_particle_energy,
        parameters=dict(mass=mass),
        frames=[[range(dimension)]],
    )


# -- points -----------------------------------------------------------------------------------------------------------
class AttachmentPoint:
    """Attachment point of a joint, a spring or a force: fixed in a body, or fixed in space.

    A body stands for its centre of mass. The reference point of a translating body moves like a particle: only the
    coordinates of its position are used, unless `whole` is True.
    """

    def __init__(self, value: Any, with_orientation: bool = False) -> None:
        if isinstance(value, BodyElement):
            value = value, value.centre
        if isinstance(value, tuple) and value and isinstance(value[0], BodyElement):
            if len(value) != 2:
                raise InputError(f"a point of '{value[0].name}' is (body, X), got {len(value)} entries")
            body, X = value
            d = body.parametrisation.dimension
            X = check_array(f"a point of '{body.name}'", X, (d,))
            self.name, self.local_position = body.name, X - body.reference
            self.parametrisation: Parametrisation = body.parametrisation
            self.coordinates = body.coordinates
            if body.parametrisation.has_translation and not with_orientation and not self.local_position.any():
                self.parametrisation, self.coordinates = DirectorParametrisation(d, 0), body.coordinates[:d]
        else:
            X = check_array("a point", value, description="(body, X) or two or three numbers in space")
            if X.shape not in ((2,), (3,)):
                raise InputError(f"a point is (body, X) or two or three numbers in space, got {value!r}")
            self.name, self.local_position = "ground", X
            self.parametrisation, self.coordinates = GroundParametrisation(len(X)), ()


def attachment_pair(
    point_a: object, point_b: object, element_type: str
) -> tuple[AttachmentPoint, AttachmentPoint, dict[str, Any], str]:
    """Return two attachment points, their local positions as parameters X, Y, and the name of the element."""
    a, b = AttachmentPoint(point_a), AttachmentPoint(point_b)
    name = f"{element_type} {a.name}-{b.name}"
    if a.parametrisation.dimension != b.parametrisation.dimension:
        raise InputError(f"{name}: one point is in space, the other is in the plane")
    if not (a.coordinates or b.coordinates):
        raise InputError(f"{name}: one of the two points must belong to a body")
    return a, b, dict(X=a.local_position, Y=b.local_position), name


def relative_position(a: Parametrisation, b: Parametrisation, q: Vector, k: ParameterNamespace) -> Vector:
    """Return the relative position vector from the second attachment point to the first."""
    n = len(a.names)
    return a.point(q[:n], k.X) - b.point(q[n:], k.Y)
