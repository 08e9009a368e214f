"""Stoermer-Verlet scheme (velocity Verlet)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from livens.models.hamiltonian.model import Hamiltonian
from livens.schemes.base import Requirement
from livens.schemes.recipes.maps import MapScheme, Phase, Step, phase_of

SEPARABLE = Requirement("separable", "an energy T(p) + V(q)")


class StormerVerlet(MapScheme):
    """Stoermer-Verlet scheme: half kick, drift, half kick (S003 2.6.4).

    ``p_m = p0 + h/2 f(q0, t0)``, ``q1 = q0 + h T'(p_m)``, ``p1 = p_m + h/2 f(q1, t1)`` with ``f = -V' + F``. The force
    at t + h is cached in the state for the next step, so that a step evaluates the force once.
    """

    name, order, symplectic, symmetric = "stormer-verlet", 2, True, True
    conserves = ("momentum_maps",)
    summary, source = "kick, drift, kick: explicit, symplectic", "S003 2.6.4"
    requires = (SEPARABLE,)
    at_rest = True

    def add(self, model: Hamiltonian) -> dict[str, int]:
        return {"force": model.n}

    def memory(self, model: Any, values: Mapping[str, Any], k: Any, t: float, h: float) -> dict[str, Any]:
        force = Phase(phase_of(model), k).force(values["q"], values["v"], t)
        return {"force": np.array(ca.DM(force)).ravel()}

    def memory_expressions(self, model: Any, q: Any, p: Any, k: Any, t: float, h: float) -> dict[str, Any]:
        phase = Phase(phase_of(model), k)
        return {"force": phase.force(q, phase.T_p(p), t)}

    def step(self, phase: Phase, old: Any, x: Any, h: Any, t: Any) -> Step:
        p_m = old.p + h / 2 * old.force
        v = phase.T_p(p_m)
        q = old.q + h * v
        force = phase.force(q, v, t + h)
        # the work of each kick is that of its force along the drift
        first, last = phase.work(old.q, p_m, v, t), phase.work(q, p_m, v, t + h)
        return Step(
            {"q": q, "p": p_m + h / 2 * force, "force": force},
            supplied=h / 2 * (first[0] + last[0]),
            dissipated=h / 2 * (first[1] + last[1]),
        )
