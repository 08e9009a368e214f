"""Runge-Kutta methods, each a tableau and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, ClassVar

import numpy as np

from livens import tableaus
from livens.schemes.base import Scheme
from livens.schemes.recipes.element_equations import ElementEquations
from livens.schemes.recipes.filtered_estimate import estimate_order
from livens.schemes.recipes.partitioned import PartitionedStages, StagesOnConstraints, constant_momentum_map
from livens.schemes.recipes.phase_stages import phase_stages
from livens.schemes.recipes.relations import Relations
from livens.schemes.recipes.stages import stage_equations
from livens.schemes.step import StepEquations
from livens.schemes.tableaus import Tableau


class RungeKutta(Scheme):
    """``X_i = x0 + h sum_j a_ij X'_j``, ``x1 = x0 + h sum_i b_i X'_i``, the equations fulfilled at every stage.

    On a Hamiltonian x are its coordinates and momenta (`recipes.phase_stages`); so they are on a mechanical system, in
    Livens form (`recipes.partitioned`). There a method whose last stage is the end of the step puts all stages on the
    constraints; the others are for systems without.
    """

    group = "Runge-Kutta methods"
    forms = ("elements", "phase space", "descriptor")
    tableau: Tableau
    make: ClassVar[Callable[[int], Tableau]]
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ((2,), (3,))

    def __init__(self, s: int) -> None:
        self.tableau = type(self).make(s)
        self.name = type(self).family.replace("<s>", str(s))
        self.order, self.symplectic, self.symmetric = (
            self.tableau.order,
            self.tableau.symplectic,
            self.tableau.symmetric,
        )
        self.estimate_order = estimate_order(self.tableau)
        self.conserves = ("quadratic_invariants", "momentum_maps") if self.symplectic else ()
        if self.for_constraints:
            self.conserves = (*self.conserves, "constraint")

    @property
    def for_constraints(self) -> bool:
        """Whether it can keep all stages on constraints: the last one is the end, and no row is empty."""
        return self.tableau.stiffly_accurate and self.regular

    @property
    def regular(self) -> bool:
        """The matrix A of the tableau is regular, so that stages follow from slopes and slopes from stages."""
        return bool(np.linalg.matrix_rank(self.tableau.A) == self.tableau.s)

    def equations(self, model: Any, dropped: Collection[int] = ()) -> StepEquations:
        if "phase space" in model.forms and "elements" not in model.forms:
            return phase_stages(model, self.tableau, self.tableau, self.estimate_order)
        if "elements" not in model.forms:
            return stage_equations(model.without(dropped), self.tableau)
        T = self.tableau
        relations = Relations(T.A, T.A, T.b, T.c, constant_momentum_map(model))
        recipe = (StagesOnConstraints if model.m else PartitionedStages)(relations)
        # where stages are on constraints, a first one that stands for q0 is less accurate
        recipe.estimate_order = self.estimate_order - int(bool(model.m) and T.s > T.C)
        return ElementEquations(model, recipe, tuple(dropped))

    def missing(self, model: Any) -> list[str]:
        found = super().missing(model)
        if found:
            return found
        if "descriptor" in model.forms:
            if model.index > 2 and not self.tableau.stiffly_accurate:
                found.append(
                    "equations of an index below 3 (it would be unstable on these; radau-iia-3 is not, or formulate "
                    "them with hidden constraints)"
                )
            return found if self.regular or model.regular_flow else ["x' to follow from x"]
        if "elements" not in model.forms:
            return []
        if model.m and not self.for_constraints:
            found.append("a system without constraints")
        if not model.regular_mass and not (self.tableau.stiffly_accurate and self.regular):
            if not self.regular:
                found.append("mass on every coordinate, as nothing else gives its stages their velocities")
            elif not constant_momentum_map(model):
                found.append("a mass matrix that is regular or constant, to know the velocities at the end of a step")
        return found


class Gauss(RungeKutta):
    """Collocation at Gauss' nodes: the highest order there is, and quadratic invariants exactly (S002 5.2)."""

    family, make = "gauss-<s>", tableaus.gauss
    examples = ((1,), (2,), (3,))
    summary, source = "collocation at Gauss nodes", "S002 sect. 5.2"


class RadauIA(RungeKutta):
    """At Radau's nodes with the beginning of the step among them."""

    family, make = "radau-ia-<s>", tableaus.radau_ia
    summary, source = "at Radau nodes with the beginning of the step", "S002 sect. 5.2"


class RadauIIA(RungeKutta):
    """Collocation at Radau's nodes with the end of the step among them: stiffly accurate."""

    family, make = "radau-iia-<s>", tableaus.radau_iia
    summary, source = "collocation at Radau nodes, stiffly accurate", "S002 sect. 5.2"


class LobattoIIIA(RungeKutta):
    """Collocation at Lobatto's nodes."""

    family, make = "lobatto-iiia-<s>", tableaus.lobatto_iiia
    summary, source = "collocation at Lobatto nodes", "S002 sect. 6.2"


class LobattoIIIB(RungeKutta):
    """The method conjugate to Lobatto IIIA."""

    family, make = "lobatto-iiib-<s>", tableaus.lobatto_iiib
    summary, source = "conjugate to Lobatto IIIA", "S002 sect. 6.2"

    def __init__(self, s: int) -> None:
        super().__init__(s)
        if s == 2:  # both stages are the same, and the method is the midpoint rule, which its coefficients do not show
            self.symplectic, self.conserves = True, ("quadratic_invariants", "momentum_maps")


class LobattoIIIC(RungeKutta):
    """Stiffly accurate and stable at infinity, at Lobatto's nodes."""

    family, make = "lobatto-iiic-<s>", tableaus.lobatto_iiic
    summary, source = "Lobatto nodes, stiffly accurate", "S002 sect. 5.2"


class LobattoIIID(RungeKutta):
    """The average of Lobatto IIIC and its conjugate: symplectic and symmetric."""

    family, make = "lobatto-iiid-<s>", tableaus.lobatto_iiid
    summary, source = "Lobatto nodes, symplectic", "S002 sect. 5.2"


class LobattoIIIE(RungeKutta):
    """The average of Lobatto IIIA and IIIB: symplectic and symmetric."""

    family, make = "lobatto-iiie-<s>", tableaus.lobatto_iiie
    summary, source = "Lobatto nodes, between IIIA and IIIB, symplectic", "S002 sect. 6.2"
