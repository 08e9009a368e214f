"""Partitioned Runge-Kutta methods from two tableaus."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

from livens.errors import InputError
from livens.schemes.core.registry import get
from livens.schemes.core.scheme import Scheme
from livens.schemes.core.step_equations import StepEquations
from livens.schemes.discretization.partitioned_rk import (
    pair_error_order,
    partitioned_first_order_stages,
    partitioned_hamiltonian_stages,
)
from livens.schemes.runge_kutta.families import RungeKutta
from livens.schemes.tableaus import PartitionedTableau


class Partitioned(Scheme):
    """Partitioned Runge-Kutta method (Symank 2025, 6.1): one method for ``x' = f(x, y)``, another for ``y' = g(x, y)``.

    On a `livens.Hamiltonian` the first is for coordinates, the second for momenta. A `livens.FirstOrder` declares its
    states of the second part as `partition`. Both methods have the same number of stages. With common nodes and weights
    the order follows from the conditions that both satisfy, otherwise from bicoloured rooted trees, up to 8. Time is
    taken at the nodes of the first method. With coefficients that satisfy (6.5) the pair is symplectic.
    """

    family = "partitioned:<method>,<other>"
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = (
        ("lobatto-iiib-2", "lobatto-iiia-2"),
        ("lobatto-iiib-3", "lobatto-iiic-3"),
    )
    group = "Runge-Kutta methods"
    formulations = ("phase space", "partitioned")
    summary, source = "one Runge-Kutta method on one part of the states, one on the other", "Symank 2025, def. 6.1"
    when_to_use = "You combine two Runge-Kutta methods for a system in two parts."
    when_to_avoid = "You want a tested pair: use `lobatto-iiia-iiib-<s>`."

    def __init__(self, method_q: str, method_p: str) -> None:
        methods = [get(name) for name in (method_q, method_p)]
        for method in methods:
            if not isinstance(method, RungeKutta):
                raise InputError(f"scheme '{method.name}' is not a Runge-Kutta method of one tableau, such as gauss-2")
        x, y = (method.tableau for method in methods)  # type: ignore[attr-defined]
        self.name = f"partitioned:{methods[0].name},{methods[1].name}"
        self.pair = PartitionedTableau(self.name, x, y)
        self.order = self.pair.order
        self.symplectic, self.symmetric = self.pair.symplectic, self.pair.symmetric
        self.error_order = pair_error_order(self.pair)
        self.conserves = ("momentum_maps",) if self.symplectic else ()

    def unmet_requirements(self, model: Any) -> list[str]:
        unmet = super().unmet_requirements(model) or "elements" in model.formulations
        description = "a Hamiltonian (`Hamiltonian.from_system` converts a System), or a FirstOrder with a `partition`"
        return [description] if unmet else []

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> StepEquations:
        if "phase space" in model.formulations:
            return partitioned_hamiltonian_stages(model, self.pair, self.error_order)
        return partitioned_first_order_stages(model, self.pair, self.error_order)
