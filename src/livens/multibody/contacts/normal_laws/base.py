"""Base class of normal force laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import casadi as ca

from livens import math as m
from livens.models.smoothed_steps import positive_ramp, smoothed_step_function

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace
    from livens.multibody.contacts.shapes import CollisionShape


class NormalLaw:
    """Normal force law: energy as a function of the penetration depth, which is never negative.

    Laws are values: contacts with equal laws share their code. Parameters of a law are parameters of its contact and
    are passed as `k`, so that they can be changed for a run.
    """

    def parameters(self, name: str, shape_a: CollisionShape, shape_b: CollisionShape) -> dict[str, Any]:
        """Return the parameters of the law, which may depend on the shapes.

        Parameters
        ----------
        name : str
            Name of the contact, for messages.
        shape_a, shape_b : CollisionShape
            Shapes in contact.

        Returns
        -------
        dict of str to float
            Parameters by name.
        """
        raise NotImplementedError

    def energy(self, depth: Any, k: ParameterNamespace) -> Any:
        """Return the energy stored at a penetration depth.

        Parameters
        ----------
        depth : expression
            Penetration depth in m.
        k : Namespace
            Parameters of the law.

        Returns
        -------
        expression
            Energy in J.
        """
        raise NotImplementedError

    def force(self, depth: Any, k: ParameterNamespace) -> Any:
        """Return the normal force, the derivative of the energy by the depth.

        Parameters
        ----------
        depth : expression
            Penetration depth in m.
        k : Namespace
            Parameters of the law.

        Returns
        -------
        expression
            Force in N.
        """
        raise NotImplementedError

    def tangent_stiffness(self, depth: Any, k: ParameterNamespace) -> Any:
        """Return the tangent stiffness, the derivative of the normal force by the depth.

        Parameters
        ----------
        depth : expression
            Penetration depth in m.
        k : Namespace
            Parameters of the law.

        Returns
        -------
        expression
            Stiffness in N/m.
        """
        symbol = ca.SX.sym("depth")
        gradient = ca.gradient(m.to_casadi(self.force(m.Scalar(symbol), k)), symbol)
        return m.Scalar(ca.substitute(gradient, symbol, m.to_casadi(depth)))

    def smoothed_stiffness(self, gap: Any, k: ParameterNamespace, smooth: float) -> Any:
        """Return the tangent stiffness at a gap, smoothed over a length around first contact.

        This is the first term of Modin 2009, paper II, eq. 28: ``V'' D'^2`` with the smoothed depth D. It is
        nonnegative; the complete second derivative of the smoothed energy is negative just outside of the contact.

        Parameters
        ----------
        gap : expression
            Gap in m, negative in penetration.
        k : Namespace
            Parameters of the law.
        smooth : float
            Smoothing length in m.

        Returns
        -------
        expression
            Stiffness in N/m.
        """
        return self.tangent_stiffness(positive_ramp(-gap, smooth), k) * smoothed_step_function(-gap, smooth) ** 2

    def collision_frequency(self, values: Mapping[str, Any], mass: float, speed: float) -> float:
        """Return the angular frequency omega such that a collision lasts ``pi/omega``.

        Parameters
        ----------
        values : mapping of str to float
            Parameters of the law.
        mass : float
            Reduced mass in kg.
        speed : float
            Approach velocity in m/s.

        Returns
        -------
        float
            Angular frequency in rad/s.
        """
        raise NotImplementedError
