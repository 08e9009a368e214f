"""Strang's splitting into a kinetic part that carries time and the kick of all forces."""

from __future__ import annotations

from typing import Any

from livens.schemes.recipes.maps import MapScheme, Phase, Step
from livens.schemes.stormer_verlet import SEPARABLE


class Strang(MapScheme):
    """Half a drift, a kick, half a drift; time belongs to the drift (S003 paper I).

    ``q_m = q0 + h/2 T'(p0)``, ``p1 = p0 + h f(q_m, t0 + h/2)``, ``q1 = q_m + h/2 T'(p1)`` with ``f = -V' + F``. Both
    parts are flows that are known exactly, also of systems that are driven, as in the paper: ``x' = A x + f(t)``.
    """

    name, order, symplectic, symmetric = "strang", 2, True, True
    conserves = ("momentum_maps",)
    summary, source = "drift, kick, drift, for driven systems: explicit, symplectic", "S003 paper I"
    requires = (SEPARABLE,)
    at_rest = True

    def step(self, phase: Phase, old: Any, x: Any, h: Any, t: Any) -> Step:
        q_m, t_m = old.q + h / 2 * phase.T_p(old.p), t + h / 2
        p = old.p + h * phase.force(q_m, phase.T_p(old.p), t_m)
        q = q_m + h / 2 * phase.T_p(p)
        supplied, dissipated = phase.work(q_m, p, (q - old.q) / h, t_m)
        return Step({"q": q, "p": p}, supplied=h * supplied, dissipated=h * dissipated)
