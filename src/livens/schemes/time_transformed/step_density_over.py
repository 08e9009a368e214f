"""Reversible adaptive steps of any symmetric scheme with an integrated step density."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import casadi as ca

from livens.errors import InputError
from livens.schemes.core.registry import get
from livens.schemes.core.scheme import Scheme
from livens.schemes.core.step_equations import StepGraph
from livens.schemes.discretization.phase_space_map import HamiltonianFunctions, as_hamiltonian
from livens.schemes.discretization.time_transformation import CONSERVATIVE, TimeTransformed
from livens.schemes.time_transformed.step_density import density_step
from livens.types import Expr, FloatArray


class StepDensityOver(TimeTransformed):
    """`step-density` with any symmetric base scheme in place of Stoermer-Verlet (Modin 2009, alg. 3.2.1)::

        rho += eps/2 xi(q, p);   one step of size eps/rho;   rho += eps/2 xi(q, p)

    with ``xi = {Q, H}/Q``. Step sizes are those of the density to second order; the state at its time has the order of
    the base scheme. Quantities that the base scheme conserves for every step size are conserved.
    """

    family = "step-density:<scheme>"
    examples = (("gauss-2",), ("implicit-midpoint",))
    source = "Modin 2009, sect. 3.2"
    when_to_use = "Reversible adaptive steps with a symmetric scheme of your choice."
    when_to_avoid = "The motion is not reversible: energy drifts."
    formulations = ("phase space",)
    symmetric = True

    def __init__(self, scheme: str | Scheme) -> None:
        self.base = base = get(scheme)
        if not base.symmetric:
            raise InputError(f"scheme '{base.name}' is not symmetric: adaptive steps of it are not reversible")
        if base.fictive or base.selects_step_size:
            raise InputError(f"scheme '{base.name}' selects its step sizes and cannot be combined with a step density")
        self.name, self.order = f"step-density:{base.name}", base.order
        self.conserves = base.conserves
        self.requires = (*base.requires, CONSERVATIVE)
        self.implicit, self.evaluations_per_step = base.implicit, base.evaluations_per_step
        self.summary = f"{base.name} with reversible adaptive steps"

    def unmet_requirements(self, model: Any) -> list[str]:
        if "phase space" not in model.formulations:
            return super().unmet_requirements(model)
        return list(
            dict.fromkeys(
                [*self.base.unmet_requirements(model), *([] if model.conservative else [CONSERVATIVE.description])]
            )
        )

    def initial_scheme_state(
        self, model: Any, values: Mapping[str, FloatArray], k: FloatArray, t: float, h: float
    ) -> dict[str, Any]:
        scale = self.initial_scaling(as_hamiltonian(model), k, values["q"], values["p"])
        return {**self.base.initial_scheme_state(model, values, k, t, h * scale), "t": t, "step_density": 1 / scale}

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> StepGraph:
        e, hamiltonian = self.base.equations(model, removed_constraints).to_single_graph(), as_hamiltonian(model)
        log = -ca.log(self.checked_scaling(hamiltonian).expression(hamiltonian))
        rate = hamiltonian.bracket(log, hamiltonian.H)
        layout = e.layout.extended(t=1, step_density=1)
        n = e.layout.size
        z, c = ca.SX.sym("z", layout.size), ca.SX.sym("c", e.c.numel())
        x, k, time, density = e.x, c[2:], z[n], z[n + 1]
        phase = HamiltonianFunctions(hamiltonian, k)

        def rate_at(state: Expr) -> Any:
            return phase.evaluate("rate", rate, state[e.layout["q"]], state[e.layout["p"]], 0)

        def base(size: Expr) -> tuple[Expr, Expr]:
            state = e.final_state_function(x, z[:n], ca.vertcat(size, time, k))
            return state, rate_at(state)

        size, state, after, _ = density_step(density, rate_at(z[:n]), c[0], base)
        inputs = ca.vertcat(size, time, k)
        return StepGraph.from_residual(
            x,
            z,
            c,
            residual=ca.densify(e.residual_function(x, z[:n], inputs)) if e.size else ca.SX(0, 1),
            final_state=ca.densify(ca.vertcat(state, time + size, after)),
            initial_guess=ca.densify(e.initial_guess_function(z[:n], inputs)) if e.size else ca.SX(0, 1),
            block_sizes=e.block_sizes,
            equation_labels=e.equation_labels,
            layout=layout,
        )
