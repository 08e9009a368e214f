"""Linear normal force law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from livens.expressions.numbers import positive
from livens.multibody.contacts.laws.power import Power

if TYPE_CHECKING:
    from livens.multibody.contacts.shape import Shape


@dataclass(frozen=True)
class Linear(Power):
    """Linear law: the normal force is ``stiffness depth``.

    Parameters
    ----------
    stiffness : float
        Stiffness in N/m.
    """

    stiffness: float
    exponent = 1.0

    def __post_init__(self) -> None:
        positive("the stiffness of a contact", self.stiffness, text=False)

    def parameters(self, name: str, first: Shape, second: Shape) -> dict[str, Any]:
        """Return the stiffness as parameter.

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
        """
        return dict(stiffness=float(self.stiffness))
