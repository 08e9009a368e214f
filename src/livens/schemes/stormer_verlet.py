"""Stoermer and Verlet's scheme."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from livens.hamiltonian import Hamiltonian
from livens.schemes.base import Requirement
from livens.schemes.maps import MapScheme, Phase, Step, phase_of


class StormerVerlet(MapScheme):
    """Half a kick, a drift, half a kick (S003 2.6.4).

    ``p_m = p0 - h/2 V'(q0)``, ``q1 = q0 + h T'(p_m)``, ``p1 = p_m - h/2 V'(q1)``. The force at the end of a step is
    that at the start of the next: it is kept in the state, so that a step evaluates it once.
    """

    name, order, symplectic, symmetric = "stormer-verlet", 2, True, True
    conserves = ("momentum_maps",)
    summary, source = "kick, drift, kick: explicit, symplectic", "S003 2.6.4"
    requires = (
        Requirement("separable", "an energy T(p) + V(q)"),
        Requirement("conservative", "forces that have a potential, and nothing that depends on time"),
    )

    def add(self, model: Hamiltonian) -> dict[str, int]:
        return {"force": model.n}

    def memory(self, model: Any, values: Mapping[str, Any], k: Any, t: float, h: float) -> dict[str, Any]:
        return {"force": np.array(-Phase(phase_of(model), k).V_q(values["q"], t)).ravel()}

    def step(self, phase: Phase, old: Any, x: Any, h: Any, t: Any) -> Step:
        p_m = old.p + h / 2 * old.force
        q = old.q + h * phase.T_p(p_m)
        force = -phase.V_q(q, t)
        return Step({"q": q, "p": p_m + h / 2 * force, "force": force})
