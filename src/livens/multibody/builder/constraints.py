"""Builder methods for distance constraints, points on curves and surfaces, rolling, and knife edges."""

from __future__ import annotations

from typing import Any

from livens.errors import InputError
from livens.models.element import Element
from livens.multibody import point_constraints
from livens.multibody.body import Body, PointLike, parse_direction, parse_point
from livens.multibody.body_constraint import BodyConstraint
from livens.multibody.builder.base import ModelBase
from livens.multibody.rolling import KnifeEdge, Rolling
from livens.multibody.surface_constraints import PointOnImplicitSurface
from livens.types import ArrayLike, ModelFunction
from livens.validation import check_positive


class ConstraintMethods(ModelBase):
    """Methods of `livens.Multibody` that add constraints of points and rolling contacts."""

    def distance(self, name: str, point_a: Any, point_b: Any, *, length: float | None = None) -> Element:
        """Add a distance constraint (massless rigid link) between two points.

        The result is ``name.tension`` in N, positive in tension.

        Parameters
        ----------
        name : str
            Name of the link.
        point_a, point_b : Marker, Body or array_like
            Points: of a body (a body stands for its centre of mass), or fixed in space. At least one belongs to a body.
        length : float, optional
            Distance in m. By default that of the reference configuration.

        Returns
        -------
        Element
            Constraint element.
        """
        ends = self._attachments(name, point_a, point_b)
        link = point_constraints.rigid_link(*ends, self._reference_length(point_a, point_b, length))
        self._distance_constraints.append(self._add_force_element(name, link, "distance", point_a, point_b))
        return link

    def point_on_surface(
        self,
        name: str,
        body_a: Body,
        body_b: Body,
        *,
        surface: ModelFunction,
        at: PointLike | None = None,
        origin: PointLike | None = None,
    ) -> BodyConstraint:
        """Add a point-on-surface constraint with an implicit surface ``surface(x) = 0``.

        Parameters
        ----------
        name : str
            Name of the constraint. Results: ``name.force``, ``name.torque``, ``name.violation``.
        body_a, body_b : Body
            Body that carries the surface (or the ground), and body of the point.
        surface : callable
            Function of the position x in the axes of the first body, relative to `origin`; returns one expression.
        at : array_like or Marker, optional
            Point of the second body, in m; by default its centre.
        origin : array_like or Marker, optional
            Origin of x in the reference configuration, in m; by default the centre of the first body.

        Returns
        -------
        BodyConstraint
            The constraint.

        Raises
        ------
        InputError
            If the second body is the ground, or the function does not return one expression.
        """
        return self._implicit_constraint("surface", name, body_a, body_b, surface, at, origin, 1)

    def point_on_curve(
        self,
        name: str,
        body_a: Body,
        body_b: Body,
        *,
        curve: ModelFunction,
        at: PointLike | None = None,
        origin: PointLike | None = None,
    ) -> BodyConstraint:
        """Add a point-on-curve constraint with an implicit curve ``curve(x) = 0``.

        Parameters
        ----------
        name : str
            Name of the constraint. Results: ``name.force``, ``name.torque``, ``name.violation``.
        body_a, body_b : Body
            Body that carries the curve (or the ground), and body of the point.
        curve : callable
            Function of the position x in the axes of the first body, relative to `origin`; returns two expressions
            (one in the plane). A parabola is ``lambda x: [x[2] - x[0]**2, x[1]]``.
        at : array_like or Marker, optional
            Point of the second body, in m; by default its centre.
        origin : array_like or Marker, optional
            Origin of x in the reference configuration, in m; by default the centre of the first body.

        Returns
        -------
        BodyConstraint
            The constraint.

        Raises
        ------
        InputError
            If the second body is the ground, or the function returns a wrong number of expressions.
        """
        return self._implicit_constraint("curve", name, body_a, body_b, curve, at, origin, self.dimension - 1)

    def _implicit_constraint(
        self,
        type_name: str,
        name: str,
        body_a: Body,
        body_b: Body,
        function: Any,
        at: PointLike | None,
        origin: PointLike | None,
        count: int,
    ) -> BodyConstraint:
        self._claim_name(name)
        self._check_body_pair(name, body_a, body_b)
        if body_b.element is None:
            raise InputError(f"{name}: the point on a {type_name} must belong to a body")
        position = body_b.reference_position if at is None else parse_point(f"{name}: at", at, self.dimension)
        origin_position = (
            body_a.reference_position if origin is None else parse_point(f"{name}: origin", origin, self.dimension)
        )
        constraint = PointOnImplicitSurface(
            name, type_name, body_a, body_b, at=position, origin=origin_position, function=function, count=count
        )
        self.connections[name] = constraint
        return constraint

    def rolling(
        self,
        name: str,
        body_a: Body,
        body_b: Body,
        *,
        radius: float,
        axis: ArrayLike | None = None,
        at: PointLike = (0.0, 0.0, 0.0),
        normal: ArrayLike = "z",
    ) -> BodyConstraint:
        """Add rolling without slip of a ball or a thin disc on a plane of the ground (nonholonomic).

        Parameters
        ----------
        name : str
            Name of the constraint. Results: ``name.force``, ``name.torque``, ``name.violation``.
        body_a, body_b : Body
            The ground, and the rolling body, which has an orientation.
        radius : float
            Radius in m.
        axis : {"x", "y", "z"} or array_like of shape (3,), optional
            Axis of a thin disc in global coordinates. Without it the body rolls as a ball.
        at : array_like of shape (3,) or Marker, default (0, 0, 0)
            Point of the plane, in m.
        normal : {"x", "y", "z"} or array_like of shape (3,), default "z"
            Normal of the plane; it points to the side of the body.

        Returns
        -------
        BodyConstraint
            The constraint.

        Raises
        ------
        InputError
            If the model is planar, the first body is not the ground, or the body is on the wrong side of the plane.
        """
        self._require_spatial_on_ground(name, "rolling", body_a, body_b)
        size = check_positive(f"{name}: the radius", radius)
        disc_axis = None if axis is None else parse_direction(f"{name}: axis", axis)
        plane_point, plane_normal = parse_point(f"{name}: at", at, 3), parse_direction(f"{name}: normal", normal)
        if plane_normal @ (body_b.reference_position - plane_point) <= 0:
            raise InputError(f"{name}: the centre of '{body_b.name}' is not on the side that the normal points to")
        constraint = Rolling(
            name, body_a, body_b, radius=size, at=plane_point, normal=plane_normal, disc_axis=disc_axis
        )
        self.connections[name] = constraint
        return constraint

    def knife_edge(
        self, name: str, body_a: Body, body_b: Body, *, lateral: ArrayLike, at: PointLike | None = None
    ) -> BodyConstraint:
        """Add a knife-edge constraint: a point has no velocity along a body-fixed direction (skate, steered wheel).

        Parameters
        ----------
        name : str
            Name of the constraint. Results: ``name.force``, ``name.torque``.
        body_a, body_b : Body
            The ground, and the constrained body.
        lateral : {"x", "y", "z"} or array_like of shape (3,)
            Lateral direction in global coordinates of the reference configuration, fixed in the body.
        at : array_like of shape (3,) or Marker, optional
            Point of the body, in m; by default its centre.

        Returns
        -------
        BodyConstraint
            The constraint.
        """
        self._require_spatial_on_ground(name, "a knife edge", body_a, body_b)
        position = body_b.reference_position if at is None else parse_point(f"{name}: at", at, 3)
        constraint = KnifeEdge(name, body_a, body_b, at=position, lateral=parse_direction(f"{name}: across", lateral))
        self.connections[name] = constraint
        return constraint

    def _require_spatial_on_ground(self, name: str, constraint_name: str, body_a: Body, body_b: Body) -> None:
        self._claim_name(name)
        self._check_body_pair(name, body_a, body_b)
        if self.dimension != 3 or body_a is not self.ground or not body_b.has_orientation or body_b.element is None:
            raise InputError(
                f"{name}: {constraint_name} needs the ground and a body with an orientation, in a spatial model"
            )
