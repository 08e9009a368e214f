"""Linear normal force law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from livens.errors import explain_call_errors
from livens.multibody.contacts.normal_laws.power import PowerLaw
from livens.validation import check_positive

if TYPE_CHECKING:
    from livens.multibody.contacts.shapes import CollisionShape


@explain_call_errors
@dataclass(frozen=True)
class Linear(PowerLaw):
    """Linear law: the normal force is ``stiffness depth``.

    Parameters
    ----------
    stiffness : float
        Stiffness in N/m.
    """

    stiffness: float
    exponent = 1.0

    def __post_init__(self) -> None:
        check_positive("the stiffness of a contact", self.stiffness, allow_strings=False)

    def parameters(self, name: str, shape_a: CollisionShape, shape_b: CollisionShape) -> dict[str, Any]:
        """Return the stiffness as parameter."""
        return dict(stiffness=float(self.stiffness))
