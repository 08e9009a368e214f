"""Position Verlet scheme."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from livens.schemes.discretization.phase_space_map import HamiltonianFunctions, MapResult, MapScheme
from livens.schemes.symplectic.stormer_verlet import SEPARABLE
from livens.types import Expr


class PositionVerlet(MapScheme):
    """Position Verlet: half drift, kick, half drift (Modin 2009, 2.6.4 with q and p exchanged).

    ``q_m = q0 + h/2 T'(p0)``, ``p1 = p0 + h f(q_m, t0 + h/2)``, ``q1 = q_m + h/2 T'(p1)`` with ``f = -V' + F``. The
    cost is that of `stormer-verlet`. For rapidly changing forces, such as gravitation, the errors of its compositions
    are often much smaller: for the outer planets with `kahan-li-8` by a factor of 20.
    """

    name, order, symplectic, symmetric = "position-verlet", 2, True, True
    aliases = ("drift-kick-drift",)
    conserves = ("momentum_maps",)
    summary, source = "drift, kick, drift: explicit, symplectic", "Modin 2009, 2.6.4"
    when_to_use = (
        "Bodies that attract each other: the drift comes first, and errors are smaller than with `stormer-verlet`."
    )
    when_to_avoid = "Forces are stiff or depend on velocities: use `implicit-midpoint`."
    requires = (SEPARABLE,)
    requires_velocity_independent_forces = True

    def step(self, phase: HamiltonianFunctions, old: Any, x: SimpleNamespace, h: Expr, t: Any) -> MapResult:
        v_0 = phase.T_p(old.p)
        q_m = old.q + h / 2 * v_0
        p = old.p + h * phase.force(q_m, v_0, t + h / 2)
        v_1 = phase.T_p(p)
        # the work of the kick is that of its force along the mean of both drifts
        supplied, dissipated = phase.work(q_m, (old.p + p) / 2, (v_0 + v_1) / 2, t + h / 2)
        return MapResult({"q": q_m + h / 2 * v_1, "p": p}, supplied=h * supplied, dissipated=h * dissipated)
