"""Hertzian contact of two elastic bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from livens.errors import InputError
from livens.expressions.numbers import positive
from livens.multibody.contacts.laws.material import Material, hertz_stiffness
from livens.multibody.contacts.laws.power import Power

if TYPE_CHECKING:
    from livens.multibody.contacts.shape import Shape


@dataclass(frozen=True)
class Hertz(Power):
    """Hertz law: the normal force is ``stiffness depth^1.5``.

    Parameters
    ----------
    stiffness : float, optional
        Stiffness in N/m^1.5; by default from the curvatures of the shapes and the materials.
    materials : ElasticMaterial or pair of ElasticMaterial, optional
        Material of both bodies, or one for each; steel by default.

    Raises
    ------
    InputError
        If the stiffness is not positive, or `materials` is not a material.
    """

    stiffness: float | None = None
    materials: Any = None
    exponent = 1.5

    def __post_init__(self) -> None:
        if self.stiffness is not None:
            positive("the stiffness of a contact", self.stiffness, text=False)
        given = self.materials if isinstance(self.materials, tuple) else (self.materials,)
        if not all(one is None or isinstance(one, Material) for one in given):
            raise InputError(f"materials must be an ElasticMaterial, or one for each body, got {self.materials!r}")

    def parameters(self, name: str, first: Shape, second: Shape) -> dict[str, Any]:
        """Return the stiffness, by default from Hertz theory.

        Parameters
        ----------
        name : str
            Name of the contact, for messages.
        shape_a, shape_b : CollisionShape
            Shapes in contact.

        Returns
        -------
        dict of str to float
            The parameter ``stiffness``.

        Raises
        ------
        InputError
            If a shape has no curvature at the contact.
        """
        if self.stiffness is not None:
            return dict(stiffness=float(self.stiffness))
        try:
            found = hertz_stiffness(first.curvatures(second), second.curvatures(first), self.materials)
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
        return dict(stiffness=found)
