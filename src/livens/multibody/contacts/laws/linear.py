"""A contact as stiff at every depth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from livens.expressions.numbers import positive
from livens.multibody.contacts.laws.power import Power

if TYPE_CHECKING:
    from livens.multibody.contacts.shape import Shape


@dataclass(frozen=True)
class Linear(Power):
    """The force is ``stiffness depth``."""

    stiffness: float
    exponent = 1.0

    def __post_init__(self) -> None:
        positive("the stiffness of a contact", self.stiffness, text=False)

    def parameters(self, name: str, first: Shape, second: Shape) -> dict[str, Any]:
        return dict(stiffness=float(self.stiffness))
