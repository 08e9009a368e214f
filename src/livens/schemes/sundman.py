"""Time-transformed Verlet splitting with a scaling function of the energies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from livens.models.hamiltonian.model import Hamiltonian
from livens.schemes.recipes.adaptive import CONSERVATIVE, SEPARABLE, AdaptiveMap
from livens.schemes.recipes.maps import Phase, Step, phase_of


class Sundman(AdaptiveMap):
    """SYMP(T,V): Verlet splitting with a scaling g of both energies (S003 paper III, eq. 11 and theorem 2).

    On the level set of the initial energy H0, g is a function of p, ``S(p) = g(T, H0 - T)``, and a function of q,
    ``U(q) = g(H0 - V, V)``. Each scales one part of the motion::

        p -= eps/2 U(q) V'(q);   q += eps S(p) T'(p), t += eps S(p);   p -= eps/2 U(q) V'(q)

    Explicit and symplectic. If g depends on V only, the map of (q, t, p, -H0) is symplectic too. If it depends on T
    only, this holds with ``t += eps/2 (U(q0) + U(q1))``, which is used in this case.
    """

    name, order, symplectic, symmetric = "sundman", 2, True, True
    aliases = ("SYMP",)
    conserves: tuple[str, ...] = ("momentum_maps",)
    summary, source = "kick, drift, kick in a fictive time: explicit, symplectic", "S003 paper III, 2.1"
    requires = (SEPARABLE, CONSERVATIVE)
    wants = "energies"

    def add(self, model: Hamiltonian) -> dict[str, int]:
        return {**super().add(model), "force": model.n}

    def memory(self, model: Any, values: Mapping[str, Any], k: Any, t: float, h: float) -> dict[str, Any]:
        known = super().memory(model, values, k, t, h)
        phase = Phase(phase_of(model), k)
        return {**known, "force": np.array(self._force(phase, values["q"], known["start_energy"])).ravel()}

    def _energies(self, phase: Phase) -> ca.Function:
        """Return g as a function of (T, V, k)."""
        m, T, V = phase.model, ca.SX.sym("T"), ca.SX.sym("V")
        return ca.Function("energies", [T, V, m.k], [self.scaling_for(m).of_energies(m, T, V)])

    def _U(self, phase: Phase, q: Any, H0: Any) -> Any:
        V = phase.V(q, 0)
        return self._energies(phase)(H0 - V, V, phase.k)

    def _force(self, phase: Phase, q: Any, H0: Any) -> Any:
        return -self._U(phase, q, H0) * phase.V_q(q, 0)

    def _of_T_alone(self, phase: Phase) -> bool:
        return not self._energies(phase).sparsity_jac(1, 0).nnz()

    def step(self, phase: Phase, old: Any, x: Any, h: Any, t: Any) -> Step:
        H0 = old.start_energy
        p_m = old.p + h / 2 * old.force
        T = phase.T(p_m)
        S = self._energies(phase)(T, H0 - T, phase.k)
        q = old.q + h * S * phase.T_p(p_m)
        force = self._force(phase, q, H0)
        time = h / 2 * (self._U(phase, old.q, H0) + self._U(phase, q, H0)) if self._of_T_alone(phase) else h * S
        return Step({"q": q, "p": p_m + h / 2 * force, "t": old.t + time, "force": force})
