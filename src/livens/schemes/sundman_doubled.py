"""Time-transformed splitting in a doubled phase space, for scaling functions of the coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from livens.models.hamiltonian.model import Hamiltonian
from livens.schemes.recipes.adaptive import CONSERVATIVE, SEPARABLE, AdaptiveMap
from livens.schemes.recipes.maps import Phase, Step


class SundmanDoubled(AdaptiveMap):
    """SYMP(q): two copies of the motion, each with the scaling of the other (S003 paper III, 2.2).

    The energy of both is ``K = G(q1) (H(q0, p0) - H0) + G(q0) (H(q1, p1) - H0)``. In the first part q1 is constant, in
    the second q0; each is split into kinetic and potential energy with exact flows::

        q0 += eps g T'(p0),  p1 -= eps g' T(p0)             g = G(q1), g' = grad G(q1)
        p0 -= eps g V'(q0),  p1 -= eps g' (V(q0) - H0)

    The copies have equal initial values and remain within O(eps) of each other; the result is their mean. Time advances
    with the mean of G of both. Explicit, and symplectic in the doubled phase space.
    """

    name, order, symplectic, symmetric = "sundman-doubled", 2, True, False
    conserves = ()
    summary, source = "two copies of the motion, symplectic together, explicit", "S003 paper III, 2.2"
    requires = (SEPARABLE, CONSERVATIVE)
    wants = "q"
    evaluations = 2
    opposite = ("p_0", "p_1")

    def add(self, model: Hamiltonian) -> dict[str, int]:
        n = model.n
        return {**super().add(model), "q_0": n, "p_0": n, "q_1": n, "p_1": n}

    def memory(self, model: Any, values: Mapping[str, Any], k: Any, t: float, h: float) -> dict[str, Any]:
        q, p = values["q"], values["p"]
        return {**super().memory(model, values, k, t, h), "q_0": q, "p_0": p, "q_1": q, "p_1": p}

    def step(self, phase: Phase, old: Any, x: Any, h: Any, t: Any) -> Step:
        copies = SimpleNamespace(q=old.q_0, p=old.p_0), SimpleNamespace(q=old.q_1, p=old.p_1)
        time = old.t
        for moving, still in (copies, copies[::-1]):
            g, slope = self.g(phase, still.q, still.p), self.g_q(phase, still.q, still.p)
            for half in (True, False):
                moving.q = moving.q + h / 2 * g * phase.T_p(moving.p)
                still.p = still.p - h / 2 * slope * phase.T(moving.p)
                if half:
                    potential = phase.V(moving.q, 0) - old.start_energy
                    moving.p = moving.p - h * g * phase.V_q(moving.q, 0)
                    still.p = still.p - h * slope * potential
            time = time + h / 2 * g
        one, two = copies
        return Step(
            {
                "q": (one.q + two.q) / 2,
                "p": (one.p + two.p) / 2,
                "t": time,
                "q_0": one.q,
                "p_0": one.p,
                "q_1": two.q,
                "p_1": two.p,
            }
        )
