"""Joints between two bodies: constraint element and joint coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from livens import math as m
from livens.models.element import Element
from livens.multibody import joint_forces, visuals
from livens.multibody.body import Body
from livens.multibody.body_constraint import BodyConstraint, snap_to_axes
from livens.multibody.couplings import screw
from livens.multibody.joint_types import JointFrame, JointType, cos_sin_angle, joint_constraints, split_pair
from livens.types import ScalarLike, Vector


class Joint(BodyConstraint):
    """Joint between two bodies; `lead` is the displacement of a screw per turn, in metres."""

    def __init__(
        self,
        name: str,
        type_name: str,
        joint_type: JointType,
        body_a: Body,
        body_b: Body,
        positions: tuple[Any, Any],
        axes: np.ndarray,
        lead: float | None = None,
    ) -> None:
        super().__init__(name, type_name, joint_type, body_a, body_b)
        local_positions = snap_to_axes(body_a.to_local(positions[0])), snap_to_axes(body_b.to_local(positions[1]))
        frames = snap_to_axes(body_a.in_body_axes(axes)), snap_to_axes(body_b.in_body_axes(axes))
        self.parameters = dict(X=local_positions[0], Y=local_positions[1], A=frames[0], B=frames[1])
        sides = (
            JointFrame.from_values(self.a, local_positions[0], frames[0]),
            JointFrame.from_values(self.b, local_positions[1], frames[1]),
        )
        uses_axes_a = bool(joint_type.orthogonal_axes) or len(joint_type.locked_translations) < self.a.dimension
        parameters = sides[0].parameters(local_positions[0], frames[0], "XA", uses_axes_a)
        parameters |= sides[1].parameters(local_positions[1], frames[1], "YB", bool(joint_type.orthogonal_axes))
        names, velocity_functions = joint_type.names, dict[str, Any]()
        if lead is not None:  # screw: translation coupled to rotation
            parameters = self.parameters | parameters | dict(pitch=lead / (2 * np.pi))
            names, velocity_functions = (*names, "screw"), dict(velocity_constraints=screw(self.a, self.b))
        self.element = Element(
            self.coordinates,
            constraints=joint_constraints(*sides, joint_type),
            parameters=parameters,
            name=name,
            constraint_names=names,
            visual=visuals.joint_visual(self.a, self.b, local_positions),
            **velocity_functions,
        )
        self.element.joint = self

    def force_element(
        self, name: str, parameters: dict[str, Any], extra_coordinates: Sequence[Any] = (), **functions: Any
    ) -> Element:
        """Return a force element on the coordinates of both bodies, with the joint geometry as parameters.

        Joint axes that are body axes, and local positions of zero, are constants: products by zero and one are not
        evaluated.

        Parameters
        ----------
        name : str
            Name of the element.
        parameters : dict of str to number
            Further parameters.
        extra_coordinates : sequence of str, optional
            Further coordinates, after those of the bodies.
        **functions : callable
            Functions of the element, such as `potential` and `forces`; see `livens.Element`.

        Returns
        -------
        Element
            Force element.
        """
        constants = {key: value for key, value in self.parameters.items() if np.isin(value, (-1.0, 0.0, 1.0)).all()}
        element_parameters = {key: value for key, value in self.parameters.items() if key not in constants} | parameters
        element = Element(
            (*self.coordinates, *extra_coordinates),
            parameters=element_parameters,
            constants=constants,
            name=name,
            **functions,
        )
        element.joint = self
        return element

    # -- joint coordinates, functions of the coordinates of both bodies -----------------------------------------------
    def angle(self, q: Vector) -> Any:
        """Return the joint angle relative to the reference configuration.

        Parameters
        ----------
        q : array
            Coordinates of the first body, then of the second.

        Returns
        -------
        symbol or float
            Angle in (-pi, pi], in rad.
        """
        cosine, sine = cos_sin_angle(self.a, self.b, q, self.parameters["A"], self.parameters["B"])
        return m.atan2(sine, cosine)

    def angle_rate(self, q: Vector, v: Vector) -> ScalarLike:
        """Return the rate of the joint angle.

        Parameters
        ----------
        q : array
            Coordinates of the first body, then of the second.
        v : array
            Velocities of the coordinates.

        Returns
        -------
        symbol or float
            Rate in rad/s.
        """
        return joint_forces.angle_rate(self.a, self.b, q, v, self.parameters["A"], self.parameters["B"])

    def displacement(self, q: Vector) -> ScalarLike:
        """Return the joint displacement along the axis of the first body, from the reference configuration.

        Parameters
        ----------
        q : array
            Coordinates of the first body, then of the second.

        Returns
        -------
        symbol or float
            Displacement in m.
        """
        qa, qb = split_pair(self.a, q)
        gap = self.b.point(qb, self.parameters["Y"]) - self.a.point(qa, self.parameters["X"])
        return m.dot(self.a.vector(qa, self.axis), gap)

    def displacement_rate(self, q: Vector, v: Vector) -> ScalarLike:
        """Return the rate of the displacement, for a point that stays on the joint axis.

        Parameters
        ----------
        q : array
            Coordinates of the first body, then of the second.
        v : array
            Velocities of the coordinates.

        Returns
        -------
        symbol or float
            Velocity in m/s.
        """
        (qa, qb), (va, vb) = split_pair(self.a, q), split_pair(self.a, v)
        gap = self.b.point(qb, self.parameters["Y"]) - self.a.point(qa, self.parameters["X"])
        rate = self.b.velocity(qb, vb, self.parameters["Y"]) - self.a.velocity(qa, va, self.parameters["X"])
        rotation_rate = 0.0 if not len(qa) else m.dot(self.a.vector(va, self.axis), gap)
        return m.dot(self.a.vector(qa, self.axis), rate) + rotation_rate

    @property
    def axis(self) -> np.ndarray:
        """Direction of sliding, in the axes of the first body."""
        return np.asarray(self.parameters["A"][:, 2 if self.a.dimension == 3 else 0])
