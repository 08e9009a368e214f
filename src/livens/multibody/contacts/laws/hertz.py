"""The contact of two elastic bodies that are round where they touch."""

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
    """The force is ``stiffness depth^1.5``, with the stiffness of the shapes and materials unless it is given.

    `materials` is one for both bodies, or a pair; steel, if nothing is said.
    """

    stiffness: float | None = None
    materials: Any = None
    exponent = 1.5

    def __post_init__(self) -> None:
        if self.stiffness is not None:
            positive("the stiffness of a contact", self.stiffness, text=False)
        given = self.materials if isinstance(self.materials, tuple) else (self.materials,)
        if not all(one is None or isinstance(one, Material) for one in given):
            raise InputError(f"materials must be a Material, or one for each body, got {self.materials!r}")

    def parameters(self, name: str, first: Shape, second: Shape) -> dict[str, Any]:
        if self.stiffness is not None:
            return dict(stiffness=float(self.stiffness))
        try:
            found = hertz_stiffness(first.curvatures(second), second.curvatures(first), self.materials)
        except InputError as error:
            raise InputError(f"{name}: {error}") from None
        return dict(stiffness=found)
