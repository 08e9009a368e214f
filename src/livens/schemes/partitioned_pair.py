"""Partitioned Runge-Kutta methods from two tableaus."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

import numpy as np

from livens.errors import InputError
from livens.schemes.base import Scheme
from livens.schemes.recipes.partition_stages import pair_estimate_order, partition_stages
from livens.schemes.recipes.phase_stages import phase_stages
from livens.schemes.registry import get
from livens.schemes.runge_kutta import RungeKutta
from livens.schemes.step import StepEquations
from livens.schemes.tableaus import Pair


class Partitioned(Scheme):
    """Partitioned Runge-Kutta method (S002 def. 6.1): one method for ``x' = f(x, y)``, another for ``y' = g(x, y)``.

    On a `livens.Hamiltonian` the first is for coordinates, the second for momenta. A `livens.FirstOrder` declares its
    states of the second part as `second`. Both methods must have the same nodes and weights; the order follows from the
    conditions that both satisfy. With coefficients that satisfy (6.5) the pair is symplectic.
    """

    family = "partitioned:<method>,<other>"
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = (
        ("lobatto-iiib-2", "lobatto-iiia-2"),
        ("lobatto-iiib-3", "lobatto-iiic-3"),
    )
    group = "Runge-Kutta methods"
    forms = ("phase space", "partitioned")
    summary, source = "one Runge-Kutta method on one part of the states, one on the other", "S002 def. 6.1"

    def __init__(self, first: str, second: str) -> None:
        methods = [get(name) for name in (first, second)]
        for method in methods:
            if not isinstance(method, RungeKutta):
                raise InputError(f"scheme '{method.name}' is not a Runge-Kutta method of one tableau, such as gauss-2")
        x, y = (method.tableau for method in methods)  # type: ignore[attr-defined]
        self.name = f"partitioned:{methods[0].name},{methods[1].name}"
        self.pair = Pair(self.name, x, y)
        if not (np.allclose(x.c, y.c, rtol=0, atol=1e-14) and np.allclose(x.b, y.b, rtol=0, atol=1e-14)):
            raise InputError(f"'{first}' and '{second}' do not have the same nodes and weights and form no pair")
        self.order = Pair(self.name, x, type(y)(y.name, x.c, y.A, x.b)).order
        self.symplectic, self.symmetric = self.pair.symplectic, self.pair.symmetric
        self.estimate_order = pair_estimate_order(self.pair)
        self.conserves = ("momentum_maps",) if self.symplectic else ()

    def missing(self, model: Any) -> list[str]:
        found = super().missing(model) or "elements" in model.forms
        words = "a Hamiltonian (`Hamiltonian.of` makes one of a System), or a FirstOrder with states that are `second`"
        return [words] if found else []

    def equations(self, model: Any, dropped: Collection[int] = ()) -> StepEquations:
        if "phase space" in model.forms:
            return phase_stages(model, self.pair.first, self.pair.second, self.estimate_order)
        return partition_stages(model, self.pair, self.estimate_order)
