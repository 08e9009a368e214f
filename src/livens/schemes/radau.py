"""Radau IIA with variable order: the number of stages is selected step by step."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

import casadi as ca
import numpy as np

from livens import tableaus
from livens.expressions.evaluate import Evaluator
from livens.schemes.base import Scheme
from livens.schemes.recipes.filtered_estimate import filtered_estimate
from livens.schemes.recipes.stages import combined, lagrange_weights
from livens.schemes.runge_kutta import RadauIIA
from livens.schemes.step import FlatEquations
from livens.schemes.tableaus.polynomials import Interpolant

#: Minimum, maximum and initial number of stages.
FEWEST, MOST, FIRST = 2, 7, 3


class Radau(Scheme):
    """Variable-order Radau IIA with 2 to 7 stages, orders 3 to 13, as Hairer and Wanner's RADAU.

    The admissible step size of s stages follows from the error estimate, that of s - 1 stages from the same estimate of
    the polynomial of the step, and that of s + 1 stages from extrapolated errors. The number of stages with the least
    work per unit of time is selected. It is part of the state. A polynomial of few stages is also stored at the nodes
    of the maximum number of stages, so that all steps have one representation.

    Step sizes follow a tolerance, 1e-6 by default. If h is given instead, all steps have this size and 7 stages.
    """

    name = "radau"
    group = "Runge-Kutta methods"
    order = 2 * MOST - 1
    conserves = ("constraint",)
    summary = "Radau IIA with 2 to 7 stages, chosen with the steps by a tolerance"
    source = "Hairer and Wanner (1999); S002 sect. 5.2"
    forms = ("descriptor",)
    estimate_order = FIRST
    own_steps = True
    tolerance = 1e-6
    stages = tuple(range(FEWEST, MOST + 1))

    def missing(self, model: Any) -> list[str]:
        return super().missing(model) or self.member(MOST).missing(model)

    def member(self, s: int) -> RadauOfStages:
        """Return the method with s stages and the number of stages in the state."""
        return RadauOfStages(s)

    def equations(self, model: Any, dropped: Collection[int] = ()) -> FlatEquations:
        return self.member(MOST).equations(model, dropped)

    def memory(self, model: Any, values: Mapping[str, Any], k: Any, t: float, h: float) -> dict[str, Any]:
        return {"stages": [float(FIRST)]}


class RadauOfStages(RadauIIA):
    """Radau IIA with a fixed number of stages, which is part of the state."""

    def __init__(self, s: int) -> None:
        super().__init__(s)
        self.name = f"radau with {s} stages"

    def equations(self, model: Any, dropped: Collection[int] = ()) -> FlatEquations:
        plain = super().equations(model, dropped).flatten()
        return dataclasses.replace(
            plain,
            z=ca.vertcat(plain.z, ca.SX.sym("stages")),
            end=ca.vertcat(plain.end, self.tableau.s),
            layout=plain.layout.with_(stages=1),
        )


def at_nodes(s: int, other: int) -> np.ndarray:
    """Return the matrix from stage derivatives at s nodes to those of the same polynomial at the nodes of `other`."""
    through = Interpolant.through(tableaus.radau_iia(s).c)
    return np.array([through.lagrange(float(node)) for node in tableaus.radau_iia(other).c])


class FewerStages:
    """Error estimate of a hypothetical step with s - 1 stages, from the s stages of a step."""

    def __init__(self, model: Any, equations: FlatEquations, s: int) -> None:
        tableau, own, n = tableaus.radau_iia(s - 1), tableaus.radau_iia(s), equations.size // s
        x, z, c = equations.arguments
        stages = [x[i * n : (i + 1) * n] for i in range(s)]
        slopes = [combined(lagrange_weights(own.c, ca.SX(float(node))), stages) for node in tableau.c]
        error = filtered_estimate(model, tableau, slopes, z[:n], equations.end[:n], c[0], c[1], c[2:])
        assert error is not None
        self.order, self._powers = error.order, np.array(error.powers, dtype=float)
        self._evaluate = Evaluator([x, z, c], [error.errors, error.sizes, error.matrix])

    def __call__(
        self, x: np.ndarray, z: np.ndarray, c: np.ndarray, absolute: np.ndarray, relative: np.ndarray
    ) -> float:
        """Return the largest error in units of the tolerance; infinite if the estimate is not available."""
        errors, sizes, matrix = self._evaluate(x, z, c)
        try:
            found = np.linalg.solve(matrix, errors).ravel()
        except np.linalg.LinAlgError:
            return np.inf
        with np.errstate(all="ignore"):
            units = np.abs(found) * c[0] ** self._powers / (absolute + relative * sizes.ravel())
        worst = float(np.max(units, initial=0.0))
        return worst if np.isfinite(worst) else np.inf
