"""Radau IIA with variable order: the number of stages is selected step by step."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

import casadi as ca
import numpy as np

from livens import tableaus
from livens.expressions.evaluate import Evaluator
from livens.schemes.core.scheme import Scheme
from livens.schemes.core.step_equations import StepGraph
from livens.schemes.discretization.collocation import lagrange_basis, linear_combination
from livens.schemes.discretization.radau_error_estimate import radau_error_estimate
from livens.schemes.runge_kutta.families import RadauIIA
from livens.schemes.tableaus.interpolation import Interpolant
from livens.types import FloatArray

#: Minimum, maximum and initial number of stages.
MIN_STAGES, MAX_STAGES, INITIAL_STAGES = 2, 7, 3


class Radau(Scheme):
    """Variable-order Radau IIA with 2 to 7 stages, orders 3 to 13, as Hairer and Wanner's RADAU.

    The admissible step size of s stages follows from the error estimate. That of s - 1 stages follows from the same
    estimate of the polynomial of the step, and that of s + 1 stages from extrapolated errors. The number of stages with
    the least work per unit of time is selected. It is part of the state. A polynomial of few stages is also stored at
    the nodes of the maximum number of stages, so that all steps have one representation.

    Step sizes follow a tolerance, 1e-6 by default. If h is given instead, all steps have this size and 7 stages.
    """

    name = "radau"
    group = "Runge-Kutta methods"
    order = 2 * MAX_STAGES - 1
    conserves = ("constraint",)
    summary = "Radau IIA with 2 to 7 stages, chosen with the steps by a tolerance"
    source = "Hairer and Wanner (1999); Symank 2025, sect. 5.2"
    when_to_use = "Stiff problems and DAEs with tight tolerances: order and step size are both selected."
    when_to_avoid = "The step size is prescribed: use `radau-iia-<s>`."
    formulations = ("descriptor",)
    error_order = INITIAL_STAGES
    selects_step_size = True
    tolerance = 1e-6
    stages = tuple(range(MIN_STAGES, MAX_STAGES + 1))

    def unmet_requirements(self, model: object) -> list[str]:
        return super().unmet_requirements(model) or self.with_stages(MAX_STAGES).unmet_requirements(model)

    def with_stages(self, s: int) -> FixedStageRadau:
        """Return the method with s stages and the number of stages in the state."""
        return FixedStageRadau(s)

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> StepGraph:
        return self.with_stages(MAX_STAGES).equations(model, removed_constraints)

    def initial_scheme_state(
        self, model: Any, values: Mapping[str, FloatArray], k: FloatArray, t: float, h: float
    ) -> dict[str, Any]:
        return {"stages": [float(INITIAL_STAGES)]}


class FixedStageRadau(RadauIIA):
    """Radau IIA with a fixed number of stages, which is part of the state."""

    def __init__(self, s: int) -> None:
        super().__init__(s)
        self.name = f"radau with {s} stages"

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> StepGraph:
        graph = super().equations(model, removed_constraints).to_single_graph()
        return dataclasses.replace(
            graph,
            z=ca.vertcat(graph.z, ca.SX.sym("stages")),
            final_state=ca.vertcat(graph.final_state, self.tableau.s),
            layout=graph.layout.extended(stages=1),
        )


def resampling_matrix(s: int, n_target: int) -> np.ndarray:
    """Return the matrix from stage derivatives at s nodes to those of the same polynomial at `n_target` nodes."""
    interpolant = Interpolant.through(tableaus.radau_iia(s).c)
    return np.array([interpolant.lagrange(float(node)) for node in tableaus.radau_iia(n_target).c])


class LowerOrderErrorEstimate:
    """Error estimate of a hypothetical step with s - 1 stages, from the s stages of a step."""

    def __init__(self, model: Any, equations: StepGraph, s: int) -> None:
        tableau, full_tableau, n = tableaus.radau_iia(s - 1), tableaus.radau_iia(s), equations.size // s
        x, z, c = equations.arguments
        stages = [x[i * n : (i + 1) * n] for i in range(s)]
        stage_derivatives = [
            linear_combination(lagrange_basis(full_tableau.c, ca.SX(float(node))), stages) for node in tableau.c
        ]
        error = radau_error_estimate(
            model, tableau, stage_derivatives, z[:n], equations.final_state[:n], c[0], c[1], c[2:]
        )
        assert error is not None
        self.order, self._powers = error.order, np.array(error.h_powers, dtype=float)
        self._evaluate = Evaluator([x, z, c], [error.errors, error.scales, error.matrix])

    def __call__(
        self, x: np.ndarray, z: np.ndarray, c: np.ndarray, absolute: np.ndarray, relative: np.ndarray
    ) -> float:
        """Return the largest error in units of the tolerance; infinite if the estimate is not available."""
        errors, sizes, matrix = self._evaluate(x, z, c)
        try:
            solution = np.linalg.solve(matrix, errors).ravel()
        except np.linalg.LinAlgError:
            return np.inf
        with np.errstate(all="ignore"):
            units = np.abs(solution) * c[0] ** self._powers / (absolute + relative * sizes.ravel())
        worst = float(np.max(units, initial=0.0))
        return worst if np.isfinite(worst) else np.inf
