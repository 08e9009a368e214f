"""Runge-Kutta methods, each defined by its Butcher tableau."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from livens import tableaus
from livens.errors import InputError, explain_call_errors
from livens.schemes.core.scheme import Scheme
from livens.schemes.core.step_equations import StepEquations
from livens.schemes.discretization.dae_runge_kutta import dae_runge_kutta
from livens.schemes.discretization.element_step import ElementEquations
from livens.schemes.discretization.livens_runge_kutta import (
    ConstrainedLivensRK,
    PartitionedLivensRK,
    has_constant_momentum_map,
)
from livens.schemes.discretization.partitioned_rk import partitioned_hamiltonian_stages
from livens.schemes.discretization.radau_error_estimate import error_order
from livens.schemes.discretization.stage_elimination import StageElimination
from livens.schemes.tableaus import PartitionedTableau, Tableau
from livens.validation import check_array


class RungeKutta(Scheme):
    """Runge-Kutta method ``X_i = x0 + h sum_j a_ij X'_j``, ``x1 = x0 + h sum_i b_i X'_i``.

    The equations of motion hold at every stage. On a Hamiltonian, x are its coordinates and momenta
    (`discretization.partitioned_rk`); so they are on a mechanical system, in Livens form
    (`discretization.livens_runge_kutta`). There a stiffly accurate method enforces the constraints at all stages; the
    other methods are for systems without constraints.
    """

    group = "Runge-Kutta methods"
    formulations: tuple[str, ...] = ("elements", "phase space", "descriptor")
    tableau: Tableau
    make: ClassVar[Callable[[int], Tableau]]
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ((2,), (3,))

    def __init__(self, s: int) -> None:
        self._set_tableau(type(self).make(s), type(self).family.replace("<s>", str(s)))

    def _set_tableau(self, tableau: Tableau, name: str) -> None:
        """Set the name, and the traits that follow from the tableau."""
        self.tableau, self.name = tableau, name
        self.order, self.symplectic, self.symmetric = (
            self.tableau.order,
            self.tableau.symplectic,
            self.tableau.symmetric,
        )
        self.error_order = error_order(self.tableau)
        self.conserves = ("quadratic_invariants", "momentum_maps") if self.symplectic else ()
        if self.for_constraints:
            self.conserves = (*self.conserves, "constraint")

    @property
    def for_constraints(self) -> bool:
        """True if the constraints can be enforced at all stages: stiffly accurate, with a regular matrix A."""
        return self.tableau.stiffly_accurate and self.regular

    @property
    def regular(self) -> bool:
        """True if the matrix A of the tableau is regular, so that stage derivatives follow from stages."""
        return bool(np.linalg.matrix_rank(self.tableau.A) == self.tableau.s)

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> StepEquations:
        if "phase space" in model.formulations and "elements" not in model.formulations:
            pair = PartitionedTableau(self.name, self.tableau, self.tableau)
            return partitioned_hamiltonian_stages(model, pair, self.error_order)
        if "elements" not in model.formulations:
            return dae_runge_kutta(model.without_constraints(removed_constraints), self.tableau)
        T = self.tableau
        elimination = StageElimination(T.A, T.A, T.b, T.c, has_constant_momentum_map(model))
        stage_scheme = (ConstrainedLivensRK if model.m else PartitionedLivensRK)(elimination)
        # with constraints at all stages, a first stage at q0 is less accurate
        stage_scheme.error_order = self.error_order - int(bool(model.m) and T.s > T.C)
        return ElementEquations(model, stage_scheme, tuple(removed_constraints))

    def unmet_requirements(self, model: Any) -> list[str]:
        unmet = super().unmet_requirements(model)
        if unmet:
            return unmet
        if "descriptor" in model.formulations:
            if not model.is_ode and model.pencil.is_singular:
                index = "is not known" if model.index is None else f"of {model.index} is that along time only"
                unmet.append(
                    "a regular matrix pencil (E, F): at a fixed time the equations have no unique solution, and their "
                    f"index {index}; differentiate algebraic equations, and insert them into the others"
                )
            if (model.index or 0) > 2 and not self.tableau.stiffly_accurate:
                unmet.append(
                    "equations of an index below 3 (it would be unstable on these; radau-iia-3 is not, or formulate "
                    "them with hidden constraints)"
                )
            return unmet if self.regular or model.is_ode else ["an explicit ODE x' = f(t, x)"]
        if "elements" not in model.formulations:
            return []
        if model.m and not self.for_constraints:
            unmet.append("a system without constraints")
        if not model.regular_mass and not (self.tableau.stiffly_accurate and self.regular):
            if not self.regular:
                unmet.append("a regular mass matrix")
            elif not has_constant_momentum_map(model):
                unmet.append("a mass matrix that is regular or constant")
        return unmet


class TableauMethod(RungeKutta):
    """Runge-Kutta method of a user-defined Butcher tableau, see `runge_kutta`."""

    summary, source = "a user-defined Runge-Kutta method", "user-defined"
    formulations = ("phase space", "descriptor")

    def __init__(self, tableau: Tableau) -> None:
        self._set_tableau(tableau, tableau.name)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TableauMethod)
            and self.name == other.name
            and all(np.array_equal(getattr(self.tableau, x), getattr(other.tableau, x)) for x in ("A", "b", "c"))
        )

    def __hash__(self) -> int:
        return hash((self.name, self.tableau.A.tobytes(), self.tableau.b.tobytes()))

    def unmet_requirements(self, model: Any) -> list[str]:
        unmet = super().unmet_requirements(model)
        if not unmet and "descriptor" not in model.formulations and not self.tableau.has_distinct_nodes:
            return ["distinct nodes, or a model in descriptor form (FirstOrder)"]
        return unmet


@explain_call_errors
def runge_kutta(A: ArrayLike, b: ArrayLike, c: ArrayLike | None = None, *, name: str = "user-tableau") -> TableauMethod:
    """Return the Runge-Kutta method of a Butcher tableau as a scheme.

    The traits follow from the coefficients: order by the conditions of rooted trees, symplecticity, symmetry.

    Parameters
    ----------
    A : array_like of shape (s, s)
        Runge-Kutta matrix. A strictly lower triangular matrix is an explicit method, for ODEs.
    b : array_like of shape (s,)
        Weights.
    c : array_like of shape (s,), optional
        Nodes. Default: the row sums of A.
    name : str, default "user-tableau"
        Name of the scheme in results and reports.

    Returns
    -------
    Scheme
        Scheme for models in descriptor form and Hamiltonians.

    Raises
    ------
    InputError
        If the shapes do not match, a coefficient is not finite, or the weights do not sum to 1.

    Examples
    --------
    >>> import livens as lv
    >>> kutta = lv.schemes.runge_kutta(
    ...     A=[[0, 0, 0, 0], [1 / 3, 0, 0, 0], [-1 / 3, 1, 0, 0], [1, -1, 1, 0]],
    ...     b=[1 / 8, 3 / 8, 3 / 8, 1 / 8],
    ...     name="kutta-3/8",
    ... )
    >>> kutta.order, kutta.symplectic
    (4, False)
    >>> decay = lv.FirstOrder("x", rhs=lambda x: [-x[0]])
    >>> float(lv.simulate(decay, x0=[1.0], scheme=kutta, h=0.1, t_end=1.0).x[-1, 0].round(6))
    0.36788
    """
    if not isinstance(name, str) or not name:
        raise InputError(f"name must be a text of at least one character, got {name!r}")
    matrix = check_array("A", A, description="an array of numbers")
    weights = check_array("b", b, description="an array of numbers")
    nodes = matrix.sum(axis=-1) if c is None else check_array("c", c, description="an array of numbers")
    tableau = Tableau(name, nodes, matrix, weights)
    if tableau.order < 1:
        raise InputError(
            f"the weights b of '{name}' sum to {tableau.b.sum():.6g}; they must sum to 1 for a method of order 1"
        )
    return TableauMethod(tableau)


class Gauss(RungeKutta):
    """Gauss-Legendre collocation: maximum order, conserves quadratic invariants (Symank 2025, 5.2)."""

    family, make = "gauss-<s>", tableaus.gauss
    member_aliases: ClassVar[Mapping[str, tuple[Any, ...]]] = {"GLC": (3,)}
    examples = ((1,), (2,), (3,))
    summary, source = "collocation at Gauss nodes", "Symank 2025, sect. 5.2"
    when_to_use = "Smooth problems without constraints, order 2s; ODEs with quadratic invariants."
    when_to_avoid = "The problem is stiff or has algebraic variables: use `radau-iia-<s>`."


class RadauIA(RungeKutta):
    """Radau IA method, with a node at the beginning of the step."""

    family, make = "radau-ia-<s>", tableaus.radau_ia
    summary, source = "at Radau nodes with the beginning of the step", "Symank 2025, sect. 5.2"
    when_to_use = "You compare the two Radau families on ordinary differential equations."
    when_to_avoid = "The problem has constraints: use `radau-iia-<s>`."


class RadauIIA(RungeKutta):
    """Radau IIA collocation method, with a node at the end of the step: stiffly accurate."""

    family, make = "radau-iia-<s>", tableaus.radau_iia
    summary, source = "collocation at Radau nodes, stiffly accurate", "Symank 2025, sect. 5.2"
    when_to_use = "Stiff problems and DAEs of any index, with step-size control."
    when_to_avoid = "Energy has to be conserved over long times: the method dissipates."


class LobattoIIIA(RungeKutta):
    """Lobatto IIIA collocation method."""

    family, make = "lobatto-iiia-<s>", tableaus.lobatto_iiia
    summary, source = "collocation at Lobatto nodes", "Symank 2025, sect. 6.2"
    when_to_use = "Smooth boundary-like problems, symmetric collocation with both ends of the step."
    when_to_avoid = "The problem has constraints: use the pair `lobatto-iiia-iiib-<s>`."


class LobattoIIIB(RungeKutta):
    """Lobatto IIIB method, conjugate to Lobatto IIIA."""

    family, make = "lobatto-iiib-<s>", tableaus.lobatto_iiib
    summary, source = "conjugate to Lobatto IIIA", "Symank 2025, sect. 6.2"
    when_to_use = "You study the partner method of Lobatto IIIA."
    when_to_avoid = "You want one method for all variables: use `gauss-<s>`."

    def __init__(self, s: int) -> None:
        super().__init__(s)
        if s == 2:  # both stages coincide: it is the midpoint rule, although its coefficients are not symplectic
            self.symplectic, self.conserves = True, ("quadratic_invariants", "momentum_maps")


class LobattoIIIC(RungeKutta):
    """Lobatto IIIC method: stiffly accurate, R(inf) = 0."""

    family, make = "lobatto-iiic-<s>", tableaus.lobatto_iiic
    member_aliases: ClassVar[Mapping[str, tuple[Any, ...]]] = {"LIIIC": (3,)}
    summary, source = "Lobatto nodes, stiffly accurate", "Symank 2025, sect. 5.2"
    when_to_use = "Very stiff problems, stiffly accurate at both ends of the step."
    when_to_avoid = "Energy has to be conserved over long times."


class LobattoIIID(RungeKutta):
    """Lobatto IIID method, the average of Lobatto IIIC and its conjugate: symplectic and symmetric."""

    family, make = "lobatto-iiid-<s>", tableaus.lobatto_iiid
    summary, source = "Lobatto nodes, symplectic", "Symank 2025, sect. 5.2"
    when_to_use = "Symplectic methods with nodes at both ends of the step."
    when_to_avoid = "You want the highest order per stage: use `gauss-<s>`."


class LobattoIIIE(RungeKutta):
    """Lobatto IIIE method, the average of Lobatto IIIA and IIIB: symplectic and symmetric."""

    family, make = "lobatto-iiie-<s>", tableaus.lobatto_iiie
    summary, source = "Lobatto nodes, between IIIA and IIIB, symplectic", "Symank 2025, sect. 6.2"
    when_to_use = "Symplectic methods with nodes at both ends of the step."
    when_to_avoid = "You want the highest order per stage: use `gauss-<s>`."
