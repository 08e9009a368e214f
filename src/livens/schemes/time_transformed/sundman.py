"""Time-transformed Verlet splitting with a scaling function of the energies."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from livens.models.hamiltonian.model import Hamiltonian
from livens.schemes.core.scheme import Requirement
from livens.schemes.discretization.phase_space_map import HamiltonianFunctions, MapResult, as_hamiltonian
from livens.schemes.discretization.time_transformation import CONSERVATIVE, SEPARABLE, TimeTransformedMap
from livens.types import Expr, FloatArray


class Sundman(TimeTransformedMap):
    """SYMP(T,V): Verlet splitting with a scaling g of both energies (Modin 2009, paper III, eq. 11 and theorem 2).

    On the level set of the initial energy H0, g is a function of p, ``S(p) = g(T, H0 - T)``, and a function of q,
    ``U(q) = g(H0 - V, V)``. Each scales one part of the motion::

        p -= eps/2 U(q) V'(q);   q += eps S(p) T'(p), t += eps S(p);   p -= eps/2 U(q) V'(q)

    Explicit and symplectic. If g depends on V only, the map of (q, t, p, -H0) is symplectic too. If it depends on T
    only, this holds with ``t += eps/2 (U(q0) + U(q1))``, which is used in this case.
    """

    name, order, symplectic, symmetric = "sundman", 2, True, True
    aliases = ("SYMP",)
    conserves: tuple[str, ...] = ("momentum_maps",)
    summary, source = "kick, drift, kick in a fictive time: explicit, symplectic", "Modin 2009, paper III, 2.1"
    when_to_use = "Separable Hamiltonians with close encounters: adaptive, explicit, symplectic, one force per step."
    when_to_avoid = "The scaling is no function of the energies: use `adaptive-variational:0.5,0.5`."
    requires: tuple[Requirement, ...] = (SEPARABLE, CONSERVATIVE)
    scaling_arguments = "energies"

    def extra_state(self, model: Hamiltonian) -> dict[str, int]:
        return {**super().extra_state(model), "force": model.n}

    def initial_scheme_state(self, model: Any, values: Mapping[str, Any], k: Any, t: float, h: float) -> dict[str, Any]:
        scheme_state = super().initial_scheme_state(model, values, k, t, h)
        phase = HamiltonianFunctions(as_hamiltonian(model), k)
        return {
            **scheme_state,
            "force": np.array(self._force(phase, values["q"], scheme_state["start_energy"])).ravel(),
        }

    def _scaling_of_energies(self, phase: HamiltonianFunctions) -> ca.Function:
        """Return g as a function of (T, V, k)."""
        m, T, V = phase.model, ca.SX.sym("T"), ca.SX.sym("V")
        return ca.Function("energies", [T, V, m.k], [self.checked_scaling(m).of_energies(m, T, V)])

    def _scaling_of_q(self, phase: HamiltonianFunctions, q: Expr | FloatArray, H0: Expr | float) -> Expr | ca.DM:
        V = phase.V(q, 0)
        return self._scaling_of_energies(phase)(H0 - V, V, phase.k)

    def _force(self, phase: HamiltonianFunctions, q: Expr | FloatArray, H0: Expr | float) -> Any:
        return -self._scaling_of_q(phase, q, H0) * phase.V_q(q, 0)

    def _depends_on_T_only(self, phase: HamiltonianFunctions) -> bool:
        return not self._scaling_of_energies(phase).sparsity_jac(1, 0).nnz()

    def step(
        self, phase: HamiltonianFunctions, old: SimpleNamespace, x: SimpleNamespace, h: Expr, t: Expr
    ) -> MapResult:
        H0 = old.start_energy
        p_m = old.p + h / 2 * old.force
        T = phase.T(p_m)
        S = self._scaling_of_energies(phase)(T, H0 - T, phase.k)
        q = old.q + h * S * phase.T_p(p_m)
        force = self._force(phase, q, H0)
        time = (
            h / 2 * (self._scaling_of_q(phase, old.q, H0) + self._scaling_of_q(phase, q, H0))
            if self._depends_on_T_only(phase)
            else h * S
        )
        return MapResult({"q": q, "p": p_m + h / 2 * force, "t": old.t + time, "force": force})
