"""Stoermer-Verlet scheme (velocity Verlet)."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from livens.models.hamiltonian.model import Hamiltonian
from livens.schemes.core.scheme import Requirement
from livens.schemes.discretization.phase_space_map import HamiltonianFunctions, MapResult, MapScheme, as_hamiltonian
from livens.types import Expr, FloatArray

SEPARABLE = Requirement("separable", "an energy T(p) + V(q)")


class StormerVerlet(MapScheme):
    """Stoermer-Verlet scheme: half kick, drift, half kick (Modin 2009, 2.6.4).

    ``p_m = p0 + h/2 f(q0, t0)``, ``q1 = q0 + h T'(p_m)``, ``p1 = p_m + h/2 f(q1, t1)`` with ``f = -V' + F``. The force
    at t + h is cached in the state for the next step, so that a step evaluates the force once.
    """

    name, order, symplectic, symmetric = "stormer-verlet", 2, True, True
    conserves = ("momentum_maps",)
    summary, source = "kick, drift, kick: explicit, symplectic", "Modin 2009, 2.6.4"
    when_to_use = "Separable Hamiltonians, one force evaluation per step; base of compositions."
    when_to_avoid = (
        "Forces are stiff or depend on velocities: use `implicit-midpoint` or `semi-explicit:<alpha>,<beta>`."
    )
    requires = (SEPARABLE,)
    requires_velocity_independent_forces = True

    def extra_state(self, model: Hamiltonian) -> dict[str, int]:
        return {"force": model.n}

    def initial_scheme_state(
        self, model: Any, values: Mapping[str, FloatArray], k: FloatArray, t: float, h: float
    ) -> dict[str, Any]:
        force = HamiltonianFunctions(as_hamiltonian(model), k).force(values["q"], values["v"], t)
        return {"force": np.array(ca.DM(force)).ravel()}

    def symbolic_scheme_state(self, model: Any, q: Expr, p: Expr, k: Expr, t: float, h: float) -> dict[str, Any]:
        phase = HamiltonianFunctions(as_hamiltonian(model), k)
        return {"force": phase.force(q, phase.T_p(p), t)}

    def step(
        self, phase: HamiltonianFunctions, old: SimpleNamespace, x: SimpleNamespace, h: Expr, t: Expr
    ) -> MapResult:
        p_m = old.p + h / 2 * old.force
        v = phase.T_p(p_m)
        q = old.q + h * v
        force = phase.force(q, v, t + h)
        # the work of each kick is that of its force along the drift
        work_0, work_1 = phase.work(old.q, p_m, v, t), phase.work(q, p_m, v, t + h)
        return MapResult(
            {"q": q, "p": p_m + h / 2 * force, "force": force},
            supplied=h / 2 * (work_0[0] + work_1[0]),
            dissipated=h / 2 * (work_0[1] + work_1[1]),
        )
