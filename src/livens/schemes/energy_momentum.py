"""What energy-momentum schemes have in common: the discrete gradient that they are given."""

from __future__ import annotations

from livens.schemes import gradients
from livens.schemes.gradients import DiscreteGradient, Equivariant, Gonzalez
from livens.schemes.recipes.elements import ElementScheme


class EnergyMomentum(ElementScheme):
    """A scheme that takes a discrete gradient, an object or its name: Gonzalez' if nothing is said.

    Energies that are given through invariants always take the equivariant form of it. Order and symmetry of the scheme
    are at most those of the gradient. Another gradient than Gonzalez' is part of the scheme's name.
    """

    def __init__(self, gradient: DiscreteGradient | str | None = None) -> None:
        given = Gonzalez() if gradient is None else gradients.get(gradient)
        self.gradient = given if isinstance(given, Equivariant) else Equivariant(given)
        if self.gradient.inner != Gonzalez():
            self._say_which()

    def _say_which(self) -> None:
        inner = self.gradient.inner
        self.name = f"{self.name}:{inner.name}"
        self.order = min(self.order, inner.order)
        self.symmetric = self.symmetric and inner.symmetric
        self.summary = f"{self.summary}; discrete gradient: {inner.summary}"
        self.source = f"{self.source}; {inner.source}"

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and isinstance(other, EnergyMomentum) and self.gradient == other.gradient

    def __hash__(self) -> int:
        return super().__hash__()
