"""What every law of contact has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from livens.multibody.contacts.shape import Shape


class Law:
    """The energy of a depth. Laws are values: contacts with equal ones share their code.

    Numbers of a law are parameters of its contact and come back to it in `k`, so that they can be changed for a run.
    The depth is never negative.
    """

    def parameters(self, name: str, first: Shape, second: Shape) -> dict[str, Any]:
        """The numbers of the law, which may depend on the shapes that touch."""
        raise NotImplementedError

    def energy(self, depth: Any, k: Any) -> Any:
        """What is stored at a depth."""
        raise NotImplementedError

    def force(self, depth: Any, k: Any) -> Any:
        """The slope of the energy."""
        raise NotImplementedError

    def frequency(self, values: Mapping[str, Any], mass: float, speed: float) -> float:
        """The rate (in radians per second) of the half swing that a blow of a mass with a speed is."""
        raise NotImplementedError
