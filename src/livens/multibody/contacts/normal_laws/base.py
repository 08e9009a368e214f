"""Base class of normal force laws."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

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
