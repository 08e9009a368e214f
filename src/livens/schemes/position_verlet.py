"""Position Verlet scheme."""

from __future__ import annotations

from typing import Any

from livens.schemes.recipes.maps import MapScheme, Phase, Step
from livens.schemes.stormer_verlet import SEPARABLE


class PositionVerlet(MapScheme):
    """Position Verlet: half drift, kick, half drift (S003 2.6.4 with q and p exchanged).

    ``q_m = q0 + h/2 T'(p0)``, ``p1 = p0 + h f(q_m, t0 + h/2)``, ``q1 = q_m + h/2 T'(p1)`` with ``f = -V' + F``. The
    cost is that of `stormer-verlet`. For rapidly changing forces, such as gravitation, the errors of its compositions
    are often much smaller: for the outer planets with `kahan-li-8` by a factor of 20.
    """

    name, order, symplectic, symmetric = "position-verlet", 2, True, True
    aliases = ("drift-kick-drift",)
    conserves = ("momentum_maps",)
    summary, source = "drift, kick, drift: explicit, symplectic", "S003 2.6.4"
    requires = (SEPARABLE,)
    at_rest = True

    def step(self, phase: Phase, old: Any, x: Any, h: Any, t: Any) -> Step:
        before = phase.T_p(old.p)
        q_m = old.q + h / 2 * before
        p = old.p + h * phase.force(q_m, before, t + h / 2)
        after = phase.T_p(p)
        # the work of the kick is that of its force along the mean of both drifts
        supplied, dissipated = phase.work(q_m, (old.p + p) / 2, (before + after) / 2, t + h / 2)
        return Step({"q": q_m + h / 2 * after, "p": p}, supplied=h * supplied, dissipated=h * dissipated)
