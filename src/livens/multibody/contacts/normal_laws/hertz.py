"""Hertzian contact of two elastic bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from livens import math as m
from livens.errors import InputError, explain_call_errors
from livens.multibody.contacts.normal_laws.material import ElasticMaterial, hertz_stiffness
from livens.multibody.contacts.normal_laws.power import PowerLaw
from livens.types import ScalarLike
from livens.validation import check_positive

if TYPE_CHECKING:
    from livens.multibody.contacts.shapes import CollisionShape


def hertz_force(stiffness: ScalarLike, depth: ScalarLike) -> Any:
    """Return the force of the Hertz law for a positive depth, by a square root instead of a power."""
    return stiffness * depth * m.sqrt(depth)


def hertz_energy(stiffness: ScalarLike, depth: ScalarLike) -> Any:
    """Return the energy of the Hertz law for a positive depth, by a square root instead of a power."""
    return 0.4 * stiffness * depth * depth * m.sqrt(depth)


@explain_call_errors
@dataclass(frozen=True)
class Hertz(PowerLaw):
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
            check_positive("the stiffness of a contact", self.stiffness, allow_strings=False)
        materials = self.materials if isinstance(self.materials, tuple) else (self.materials,)
        if not all(material is None or isinstance(material, ElasticMaterial) for material in materials):
            raise InputError(f"materials must be an ElasticMaterial, or one for each body, got {self.materials!r}")

    def parameters(self, name: str, shape_a: CollisionShape, shape_b: CollisionShape) -> dict[str, Any]:
        """Return the stiffness, by default from Hertz theory.

        Raises
        ------
        InputError
            If a shape has no curvature at the contact.
        """
        if self.stiffness is not None:
            return dict(stiffness=float(self.stiffness))
        try:
            stiffness = hertz_stiffness(shape_a.curvatures(shape_b), shape_b.curvatures(shape_a), self.materials)
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
        return dict(stiffness=stiffness)
