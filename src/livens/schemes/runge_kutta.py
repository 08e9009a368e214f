"""Runge-Kutta methods, each a tableau and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, ClassVar

from livens import tableaus
from livens.engine.equations import StepEquations
from livens.schemes.base import Requirement, Scheme
from livens.schemes.stages import stage_equations
from livens.tableaus import Tableau

_EXPLICIT_START = Requirement("regular_flow", "x' to follow from x")


class RungeKutta(Scheme):
    """``X_i = x0 + h sum_j a_ij X'_j``, ``x1 = x0 + h sum_i b_i X'_i``, the equations fulfilled at every stage."""

    models = ("FirstOrder", "PortHamiltonian")
    tableau: Tableau
    make: ClassVar[Callable[[int], Tableau]]
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ((2,), (3,))

    def __init__(self, s: int) -> None:
        self.tableau = type(self).make(s)
        self.name = type(self).family.replace("<s>", str(s))
        self.order, self.symplectic, self.symmetric = (
            self.tableau.order, self.tableau.symplectic, self.tableau.symmetric,
        )  # fmt: skip
        self.estimate_order = s - 1
        self.conserves = ("quadratic_invariants",) if self.symplectic else ()

    def equations(self, model: Any, dropped: Collection[int] = ()) -> StepEquations:
        return stage_equations(model, self.tableau)


class Gauss(RungeKutta):
    """Collocation at Gauss' nodes: the highest order there is, and quadratic invariants exactly (S002 5.2)."""

    family, make = "gauss-<s>", tableaus.gauss
    examples = ((1,), (2,), (3,))
    summary, source = "collocation at Gauss nodes", "S002 sect. 5.2"


class RadauIIA(RungeKutta):
    """Collocation at Radau's nodes with the end of the step among them: stiffly accurate."""

    family, make = "radau-iia-<s>", tableaus.radau_iia
    summary, source = "collocation at Radau nodes, stiffly accurate", "S002 sect. 5.2"


class LobattoIIIC(RungeKutta):
    """Stiffly accurate and stable at infinity, at Lobatto's nodes."""

    family, make = "lobatto-iiic-<s>", tableaus.lobatto_iiic
    summary, source = "Lobatto nodes, stiffly accurate", "S002 sect. 5.2"


class LobattoIIIA(RungeKutta):
    """Collocation at Lobatto's nodes."""

    family, make = "lobatto-iiia-<s>", tableaus.lobatto_iiia
    summary, source = "collocation at Lobatto nodes", "S002 sect. 6.2"
    requires = (_EXPLICIT_START,)


class LobattoIIIB(RungeKutta):
    """The method conjugate to Lobatto IIIA."""

    family, make = "lobatto-iiib-<s>", tableaus.lobatto_iiib
    summary, source = "conjugate to Lobatto IIIA", "S002 sect. 6.2"
    requires = (_EXPLICIT_START,)
