"""Time-transformed splitting in a doubled phase space, for scaling functions of the coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from livens.models.hamiltonian.model import Hamiltonian
from livens.schemes.discretization.phase_space_map import HamiltonianFunctions, MapResult
from livens.schemes.discretization.time_transformation import CONSERVATIVE, SEPARABLE, TimeTransformedMap
from livens.types import Expr


class SundmanDoubled(TimeTransformedMap):
    """SYMP(q): two copies of the motion, each with the scaling of the other (Modin 2009, paper III, 2.2).

    The energy of both is ``K = G(q1) (H(q0, p0) - H0) + G(q0) (H(q1, p1) - H0)``. In the first part q1 is constant, in
    the second q0; each is split into kinetic and potential energy with exact flows::

        q0 += eps g T'(p0),  p1 -= eps g' T(p0)             g = G(q1), g' = grad G(q1)
        p0 -= eps g V'(q0),  p1 -= eps g' (V(q0) - H0)

    The copies have equal initial values and remain within O(eps) of each other; the result is their mean. Time advances
    with the mean of G of both. Explicit, and symplectic in the doubled phase space. A run stores both copies, `q_0`,
    `p_0`, `q_1` and `p_1`: their differences are the first integrals of 2.3, zero for the exact motion.
    """

    name, order, symplectic, symmetric = "sundman-doubled", 2, True, False
    conserves = ()
    summary, source = "two copies of the motion, symplectic together, explicit", "Modin 2009, paper III, 2.2"
    when_to_use = "You study the doubling of phase space."
    when_to_avoid = "The motion is chaotic or an eccentric Kepler orbit: the two copies separate."
    requires = (SEPARABLE, CONSERVATIVE)
    scaling_arguments = "q"
    evaluations_per_step = 2
    odd_under_reversal = ("p_0", "p_1")

    def extra_state(self, model: Hamiltonian) -> dict[str, int]:
        n = model.n
        return {**super().extra_state(model), "q_0": n, "p_0": n, "q_1": n, "p_1": n}

    def initial_scheme_state(
        self, model: Any, values: Mapping[str, object], k: Any, t: float, h: float
    ) -> dict[str, Any]:
        q, p = values["q"], values["p"]
        return {**super().initial_scheme_state(model, values, k, t, h), "q_0": q, "p_0": p, "q_1": q, "p_1": p}

    def step(
        self, phase: HamiltonianFunctions, old: SimpleNamespace, x: SimpleNamespace, h: Expr, t: Expr
    ) -> MapResult:
        copies = SimpleNamespace(q=old.q_0, p=old.p_0), SimpleNamespace(q=old.q_1, p=old.p_1)
        time = old.t
        for active, frozen in (copies, copies[::-1]):
            g, g_q = self.g(phase, frozen.q, frozen.p), self.g_q(phase, frozen.q, frozen.p)
            for half in (True, False):
                active.q = active.q + h / 2 * g * phase.T_p(active.p)
                frozen.p = frozen.p - h / 2 * g_q * phase.T(active.p)
                if half:
                    potential = phase.V(active.q, 0) - old.start_energy
                    active.p = active.p - h * g * phase.V_q(active.q, 0)
                    frozen.p = frozen.p - h * g_q * potential
            time = time + h / 2 * g
        copy_0, copy_1 = copies
        return MapResult(
            {
                "q": (copy_0.q + copy_1.q) / 2,
                "p": (copy_0.p + copy_1.p) / 2,
                "t": time,
                "q_0": copy_0.q,
                "p_0": copy_0.p,
                "q_1": copy_1.q,
                "p_1": copy_1.p,
            }
        )
