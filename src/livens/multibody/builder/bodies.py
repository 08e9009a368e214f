"""Builder methods for rigid bodies: rods, boxes, cylinders, rings, spheres, particles, general bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from livens.errors import InputError, ModelError
from livens.multibody import solid_inertia, visuals
from livens.multibody.body import Body, Marker, frame_from_x, frame_from_z, parse_direction, parse_point
from livens.multibody.body_elements import BodyElement, director_body, particle, planar_body
from livens.multibody.builder.base import ModelBase
from livens.multibody.inertia import Inertia
from livens.types import ArrayLike
from livens.validation import check_array, check_bool, check_nonnegative, check_positive


class BodyMethods(ModelBase):
    """Methods of `livens.Multibody` that add rigid bodies."""

    def body(
        self,
        name: str,
        *,
        mass: float,
        inertia: Any,
        centre: Marker | ArrayLike | None = None,
        position: Marker | ArrayLike | None = None,
        rotation: ArrayLike | None = None,
        points: Mapping[str, object] | None = None,
        shape: tuple[Any, ...] = (),
        rotor: bool = False,
    ) -> Body:
        """Add a rigid body with a given mass and inertia.

        Parameters
        ----------
        name : str
            Name of the body. Results: ``name.position``, ``name.velocity``, ``name.rotation``, ``name.omega``.
        mass : float
            Mass in kg.
        inertia : array_like of shape (3, 3) or (3,), or float
            Inertia about the centre of mass in body axes, in kg m^2: a tensor or its three principal values; in the
            plane one number.
        centre : array_like, optional
            Centre of mass relative to `position`, in body axes, in m. The point at `position` is then called
            ``origin``. By default `position` is the centre of mass.
        position : array_like or Marker, optional
            Reference position in m; the origin by default.
        rotation : array_like of shape (d, d), optional
            Reference orientation: rotation matrix with the body axes as columns. By default the global axes.
        points : mapping of str to array_like, optional
            Named points, given in global coordinates of the reference configuration.
        shape : tuple, optional
            Solid shape for visuals and contacts: type and sizes, such as ``("cylinder", length, radius)``.
        rotor : bool, default False
            Whether the body spins fast about its third axis, about which it must be symmetric. Its phase error is then
            reduced, see `livens.bodies.director_body`.

        Returns
        -------
        Body
            Body with its named points as attributes.

        Raises
        ------
        InputError
            If the name is in use, the inertia is not that of a rigid body, or `rotation` is not a rotation matrix.
        """
        self._claim_name(name)
        is_rotor = check_bool(f"{name}: rotor", rotor)
        if is_rotor and self.dimension == 2:
            raise InputError(f"{name}: a rotor must be a spatial body, and the model is planar")
        d = self.dimension
        at = np.zeros(d) if position is None else parse_point(f"{name}: position", position, d)
        R = np.eye(d) if rotation is None else check_array(f"{name}: rotation", rotation, (d, d))
        if np.abs(R.T @ R - np.eye(d)).max() > 1e-9 or np.linalg.det(R) < 0:
            raise InputError(f"{name}: rotation must be a rotation matrix, with orthonormal columns")
        if centre is not None:
            points = {"origin": at, **(points or {})}
            at = at + R @ check_array(f"{name}: centre", centre, (d,))
        visual = visuals.solid_visual(shape, d) if shape else None
        try:
            element: BodyElement
            if d == 2:
                moment = inertia if np.ndim(inertia) == 0 else np.ravel(inertia)[-1]
                element = planar_body(name, mass, float(moment), visual=visual)
            else:
                element = director_body(name, Inertia(mass, inertia), visual=visual, rotor=is_rotor)
        except ModelError as error:
            raise InputError(f"{name}: {error}") from None
        return self._register_body(name, element, at, R, points, shape)

    def rod(
        self, name: str, *, a: Marker | ArrayLike, b: Marker | ArrayLike, mass: float, radius: float | None = None
    ) -> Body:
        """Add a cylindrical rod between two points.

        Parameters
        ----------
        name : str
            Name of the rod; its ends are the points ``a`` and ``b``.
        a, b : array_like or Marker
            Ends in the reference configuration, in m.
        mass : float
            Mass in kg.
        radius : float, optional
            Radius in m. The default is 0.02 of the length: a thin rod would have no inertia about its axis. This
            default increases the transverse moment of inertia by a factor of 1 + 1.2e-3.

        Returns
        -------
        Body
            Rod whose first body axis points from `a` to `b`.

        Examples
        --------
        >>> import livens as lv
        >>> mb = lv.Multibody(gravity=[0, 0, -9.81])
        >>> arm = mb.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=1.0)
        """
        ends = [parse_point(f"{name}: {which}", x, self.dimension) for which, x in (("a", a), ("b", b))]
        length = check_positive(f"{name}: the length", np.linalg.norm(ends[1] - ends[0]))
        R = frame_from_x((ends[1] - ends[0]) / length)
        checked_radius = None if radius is None else check_positive(f"{name}: the radius", radius)
        moments = solid_inertia.rod_inertia(length, check_positive(f"{name}: the mass", mass), checked_radius)
        centre, named = (ends[0] + ends[1]) / 2, dict(a=ends[0], b=ends[1])
        shape = ("rod", length, checked_radius or solid_inertia.DEFAULT_SLENDERNESS * length)
        return self.body(name, mass=mass, inertia=moments, position=centre, rotation=R, points=named, shape=shape)

    def box(
        self, name: str, *, at: Marker | ArrayLike, size: ArrayLike, mass: float, rotation: ArrayLike | None = None
    ) -> Body:
        """Add a rectangular box.

        Parameters
        ----------
        name : str
            Name of the box.
        at : array_like or Marker
            Centre in the reference configuration, in m.
        size : array_like of shape (3,) or (2,)
            Edge lengths along the body axes in m; two in the plane.
        mass : float
            Mass in kg.
        rotation : array_like of shape (d, d), optional
            Rotation matrix with the body axes as columns. By default the global axes.

        Returns
        -------
        Body
            Homogeneous box.

        Raises
        ------
        InputError
            If an edge length is negative, or all are zero.
        """
        edges = check_array(f"{name}: size", size)
        if edges.shape not in ((3,), (self.dimension,)) or not np.all(edges >= 0) or not edges.any():
            raise InputError(
                f"{name}: size must be {self.dimension} non-negative numbers that are not all zero, got {size!r}"
            )
        checked_mass = check_positive(f"{name}: the mass", mass)
        moments = solid_inertia.box_inertia(np.append(edges, 0.0) if len(edges) == 2 else edges, checked_mass)
        shape = ("box", *edges.tolist())
        return self.body(name, mass=mass, inertia=moments, position=at, rotation=rotation, shape=shape)

    def plate(
        self, name: str, *, at: Marker | ArrayLike, size: ArrayLike, mass: float, rotation: ArrayLike | None = None
    ) -> Body:
        """Add a thin rectangular plate (rigid) in the plane of its first two body axes.

        Parameters
        ----------
        name : str
            Name of the plate.
        at : array_like or Marker
            Centre in the reference configuration, in m.
        size : array_like of shape (2,)
            Edge lengths along the first two body axes, in m.
        mass : float
            Mass in kg.
        rotation : array_like of shape (3, 3), optional
            Rotation matrix with the body axes as columns. By default the global axes.

        Returns
        -------
        Body
            Homogeneous plate without thickness.
        """
        return self.box(
            name, at=at, size=[*check_array(f"{name}: size", size, (2,)), 0.0], mass=mass, rotation=rotation
        )

    def cylinder(
        self,
        name: str,
        *,
        at: Marker | ArrayLike,
        axis: ArrayLike = "z",
        length: float,
        radius: float,
        mass: float,
        rotor: bool = False,
    ) -> Body:
        """Add a solid cylinder.

        Parameters
        ----------
        name : str
            Name of the cylinder.
        at : array_like or Marker
            Centre in the reference configuration, in m.
        axis : {"x", "y", "z"} or array_like of shape (3,), default "z"
            Direction of the cylinder axis, which is the third body axis.
        length : float
            Length in m; zero for a disc.
        radius : float
            Radius in m.
        mass : float
            Mass in kg.
        rotor : bool, default False
            Whether the cylinder spins fast about its axis, see `body`.

        Returns
        -------
        Body
            Homogeneous cylinder.
        """
        checked_length, checked_radius = (
            check_nonnegative(f"{name}: the length", length),
            check_positive(f"{name}: the radius", radius),
        )
        checked_mass = check_positive(f"{name}: the mass", mass)
        moments, shape = (
            solid_inertia.cylinder_inertia(checked_length, checked_radius, checked_mass),
            ("cylinder", checked_length, checked_radius),
        )
        return self._axisymmetric_body(name, at, axis, moments, mass, shape, rotor)

    def ring(
        self,
        name: str,
        *,
        at: Marker | ArrayLike,
        axis: ArrayLike = "z",
        radius: float,
        mass: float,
        tube_radius: float = 0.0,
        rotor: bool = False,
    ) -> Body:
        """Add a ring with a circular cross-section (torus).

        Parameters
        ----------
        name : str
            Name of the ring.
        at : array_like or Marker
            Centre in the reference configuration, in m.
        axis : {"x", "y", "z"} or array_like of shape (3,), default "z"
            Direction of the ring axis, which is the third body axis.
        radius : float
            Radius of the centre line in m.
        mass : float
            Mass in kg.
        tube_radius : float, default 0
            Radius of the cross-section in m.
        rotor : bool, default False
            Whether the ring spins fast about its axis, see `body`.

        Returns
        -------
        Body
            Homogeneous ring.
        """
        checked_radius, checked_tube_radius = (
            check_positive(f"{name}: the radius", radius),
            check_nonnegative(f"{name}: the tube", tube_radius),
        )
        moments = solid_inertia.ring_inertia(
            checked_radius, check_positive(f"{name}: the mass", mass), checked_tube_radius
        )
        return self._axisymmetric_body(
            name, at, axis, moments, mass, ("ring", checked_radius, checked_tube_radius), rotor
        )

    def sphere(self, name: str, *, at: Marker | ArrayLike, radius: float, mass: float) -> Body:
        """Add a solid sphere.

        Parameters
        ----------
        name : str
            Name of the sphere.
        at : array_like or Marker
            Centre in the reference configuration, in m.
        radius : float
            Radius in m.
        mass : float
            Mass in kg.

        Returns
        -------
        Body
            Homogeneous sphere.
        """
        checked_radius, checked_mass = (
            check_positive(f"{name}: the radius", radius),
            check_positive(f"{name}: the mass", mass),
        )
        moments, shape = solid_inertia.sphere_inertia(checked_radius, checked_mass), ("sphere", checked_radius)
        return self.body(name, mass=mass, inertia=moments, position=at, shape=shape)

    def particle(self, name: str, *, at: Marker | ArrayLike, mass: float) -> Body:
        """Add a particle (point mass).

        Parameters
        ----------
        name : str
            Name of the particle.
        at : array_like or Marker
            Position in the reference configuration, in m.
        mass : float
            Mass in kg.

        Returns
        -------
        Body
            Particle; it has no orientation.
        """
        self._claim_name(name)
        position = parse_point(f"{name}: at", at, self.dimension)
        element = particle(name, mass, dimension=self.dimension)
        return self._register_body(name, element, position, np.eye(self.dimension), None, ("particle",))

    def _axisymmetric_body(
        self,
        name: str,
        at: Marker | ArrayLike,
        axis: ArrayLike,
        moments: ArrayLike,
        mass: float,
        shape: tuple[str, float, float],
        rotor: bool,
    ) -> Body:
        R = frame_from_z(parse_direction(f"{name}: axis", axis)) if self.dimension == 3 else None
        return self.body(name, mass=mass, inertia=moments, position=at, rotation=R, shape=shape, rotor=rotor)

    def _register_body(
        self,
        name: str,
        element: BodyElement,
        at: np.ndarray,
        R: np.ndarray,
        points: Mapping[str, Any] | None,
        shape: Any,
    ) -> Body:
        body = self.bodies[name] = Body(name, element, at, R, shape=shape)
        for point, position in {"centre": at, **(points or {})}.items():
            body.point(point, position)
        return body
