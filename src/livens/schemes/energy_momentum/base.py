"""Base class of energy-momentum schemes with a discrete gradient."""

from __future__ import annotations

from livens.schemes import gradients
from livens.schemes.discretization.element_scheme import ElementScheme
from livens.schemes.gradients import DiscreteGradient, Equivariant, Gonzalez


class EnergyMomentum(ElementScheme):
    """Energy-momentum scheme with a discrete gradient, given as object or name; by default Gonzalez' discrete gradient.

    Energies that are functions of invariants use the equivariant form of the discrete gradient. Order and symmetry of
    the scheme are at most those of the discrete gradient. A discrete gradient other than Gonzalez' is part of the name.
    """

    def __init__(self, gradient: DiscreteGradient | str | None = None) -> None:
        discrete_gradient = Gonzalez() if gradient is None else gradients.get(gradient)
        self.gradient = (
            discrete_gradient if isinstance(discrete_gradient, Equivariant) else Equivariant(discrete_gradient)
        )
        if self.gradient.inner != Gonzalez():
            self._append_gradient_name()

    def _append_gradient_name(self) -> None:
        inner = self.gradient.inner
        self.name = f"{self.name}:{inner.name}"
        self.order = min(self.order, inner.order)
        self.symmetric = self.symmetric and inner.symmetric
        if not self.symmetric:
            self.error_order, self.estimates_error_by_doubling = 0, False
        self.summary = f"{self.summary}; discrete gradient: {inner.summary}"
        self.source = f"{self.source}; {inner.source}"

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and isinstance(other, EnergyMomentum) and self.gradient == other.gradient

    def __hash__(self) -> int:
        return super().__hash__()
