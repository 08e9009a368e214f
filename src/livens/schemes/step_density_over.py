"""Reversible adaptive steps of any symmetric scheme with an integrated step density."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import casadi as ca

from livens.errors import InputError
from livens.schemes.base import Scheme
from livens.schemes.recipes.adaptive import CONSERVATIVE, Adaptive
from livens.schemes.recipes.maps import Phase, phase_of
from livens.schemes.registry import get
from livens.schemes.step import FlatEquations
from livens.schemes.step_density import with_density


class StepDensityOver(Adaptive):
    """`step-density` with any symmetric base scheme in place of Stoermer-Verlet (S003 alg. 3.2.1)::

        rho += eps/2 xi(q, p);   one step of size eps/rho;   rho += eps/2 xi(q, p)

    with ``xi = {Q, H}/Q``. Step sizes are those of the density to second order; the state at its time has the order of
    the base scheme. Quantities that the base scheme conserves for every step size are conserved.
    """

    family = "step-density:<scheme>"
    examples = (("gauss-2",), ("implicit-midpoint",))
    source = "S003 sect. 3.2"
    forms = ("phase space",)
    symmetric = True

    def __init__(self, scheme: str | Scheme) -> None:
        self.base = base = get(scheme)
        if not base.symmetric:
            raise InputError(f"scheme '{base.name}' is not symmetric: adaptive steps of it are not reversible")
        if base.fictive or base.own_steps:
            raise InputError(f"scheme '{base.name}' selects its step sizes and cannot be combined with a step density")
        self.name, self.order = f"step-density:{base.name}", base.order
        self.conserves = base.conserves
        self.requires = (*base.requires, CONSERVATIVE)
        self.implicit, self.evaluations = base.implicit, base.evaluations
        self.summary = f"{base.name} with reversible adaptive steps"

    def missing(self, model: Any) -> list[str]:
        if "phase space" not in model.forms:
            return super().missing(model)
        return list(dict.fromkeys([*self.base.missing(model), *([] if model.conservative else [CONSERVATIVE.words])]))

    def memory(self, model: Any, values: Mapping[str, Any], k: Any, t: float, h: float) -> dict[str, Any]:
        scale = self.start_scale(phase_of(model), k, values["q"], values["p"])
        return {**self.base.memory(model, values, k, t, h * scale), "t": t, "step_density": 1 / scale}

    def equations(self, model: Any, dropped: Collection[int] = ()) -> FlatEquations:
        e, hamiltonian = self.base.equations(model, dropped).flatten(), phase_of(model)
        log = -ca.log(self.scaling_for(hamiltonian).expression(hamiltonian))
        rate = hamiltonian.bracket(log, hamiltonian.H)
        layout = e.layout.with_(t=1, step_density=1)
        n = e.layout.size
        z, c = ca.SX.sym("z", layout.size), ca.SX.sym("c", e.c.numel())
        x, k, time, density = e.x, c[2:], z[n], z[n + 1]
        phase = Phase(hamiltonian, k)

        def rate_at(state: Any) -> Any:
            return phase.any("rate", rate, state[e.layout["q"]], state[e.layout["p"]], 0)

        def base(size: Any) -> tuple[Any, Any]:
            state = e.end_function(x, z[:n], ca.vertcat(size, time, k))
            return state, rate_at(state)

        size, state, after, _ = with_density(density, rate_at(z[:n]), c[0], base)
        inputs = ca.vertcat(size, time, k)
        return FlatEquations.of(
            x,
            z,
            c,
            residual=ca.densify(e.residual_function(x, z[:n], inputs)) if e.size else ca.SX(0, 1),
            end=ca.densify(ca.vertcat(state, time + size, after)),
            guess=ca.densify(e.guess_function(z[:n], inputs)) if e.size else ca.SX(0, 1),
            kinds=e.kinds,
            row_names=e.row_names,
            layout=layout,
        )
