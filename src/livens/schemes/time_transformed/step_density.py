"""Reversible adaptive steps with an integrated step density."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import SimpleNamespace
from typing import Any, TypeVar

import casadi as ca
import numpy as np

from livens.models.hamiltonian.model import Hamiltonian
from livens.schemes.core.step_equations import StepEquations
from livens.schemes.discretization.phase_space_map import HamiltonianFunctions, MapResult, MapScheme, as_hamiltonian
from livens.schemes.discretization.time_transformation import CONSERVATIVE, SEPARABLE, TimeTransformed
from livens.types import Expr

#: Symbol or number, and any kind of state.
Number = TypeVar("Number", Expr, float)
State = TypeVar("State")


def density_step(
    density: Number, rate: Number, h: Number, base: Callable[[Number], tuple[State, Number]], power: float = -1.0
) -> tuple[Number, State, Number, Number]:
    """Return a step of a base scheme, with half a step of the density before and after it (Modin 2009, alg. 3.2.1).

    `rate` is that of the density before the step; `base` maps the time step to the state after the step and the rate
    there. The time step is h times a `power` of the density. Returns time step, state, density and rate.
    """
    middle = density + h / 2 * rate
    size = h / middle if power == -1.0 else h * middle**power
    state, rate = base(size)
    return size, state, middle + h / 2 * rate, rate


class StepDensity(TimeTransformed, MapScheme):
    """SYMM: Stoermer-Verlet steps ``eps/rho``, where rho follows a step density Q (Modin 2009, alg. 3.2.1)::

        rho += eps/2 xi(q, p);   h = eps/rho, one step of size h, t += h;   rho += eps/2 xi(q, p)

    with ``xi = {Q, H}/Q``, so that ``log(Q/rho)`` is constant along the motion. Q is the reciprocal of the scaling and
    the initial value of rho. Explicit and reversible, but not symplectic: for irreversible motions the energy drifts.
    """

    name, order, symplectic, symmetric = "step-density", 2, False, True
    aliases = ("SYMM",)
    conserves = ("momentum_maps",)
    summary, source = "Verlet with reversible adaptive steps: explicit", "Modin 2009, alg. 3.2.1"
    when_to_use = "Reversible motions with adaptive, explicit steps."
    when_to_avoid = "The motion is not reversible: energy drifts. Use `sundman` or `adaptive-variational:0.5,0.5`."
    requires = (SEPARABLE, CONSERVATIVE)

    def extra_state(self, model: Hamiltonian) -> dict[str, int]:
        return {"t": 1, "step_density": 1, "rate": 1, "force": model.n}

    def initial_scheme_state(
        self, model: Any, values: Mapping[str, object], k: Any, t: float, h: float
    ) -> dict[str, Any]:
        phase = HamiltonianFunctions(as_hamiltonian(model), k)
        q, p = values["q"], values["p"]
        scale = self.initial_scaling(phase.model, k, q, p)
        force = np.array(-phase.V_q(q, 0)).ravel()
        return {
            "t": t,
            "step_density": 1 / scale,
            "rate": float(self._log_density_rate(phase, q, p, force)),
            "force": force,
        }

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> StepEquations:
        self.checked_scaling(as_hamiltonian(model))
        return super().equations(model, removed_constraints)

    def _log_density_rate(self, phase: HamiltonianFunctions, q: Any, p: Any, force: Any) -> Expr | ca.DM:
        """Return ``xi = {Q, H}/Q``, the time derivative of log Q."""
        m = phase.model
        log = -ca.log(self.checked_scaling(m).expression(m))
        dlog_dq, dlog_dp = (
            phase.evaluate(f"log_{name}", ca.gradient(log, x), q, p, 0) for name, x in (("q", m.q), ("p", m.p))
        )
        return ca.dot(dlog_dq, phase.T_p(p)) + ca.dot(dlog_dp, force)

    def step(
        self, phase: HamiltonianFunctions, old: SimpleNamespace, x: SimpleNamespace, h: Expr, t: Expr
    ) -> MapResult:
        def verlet(size: Expr) -> tuple[Any, Any]:
            p_m = old.p + size / 2 * old.force
            q = old.q + size * phase.T_p(p_m)
            force = -phase.V_q(q, 0)
            p = p_m + size / 2 * force
            return {"q": q, "p": p, "force": force}, self._log_density_rate(phase, q, p, force)

        size, state, density, rate = density_step(old.step_density, old.rate, h, verlet)
        return MapResult({**state, "t": old.t + size, "step_density": density, "rate": rate})
