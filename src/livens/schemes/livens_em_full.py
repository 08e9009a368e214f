"""Energy-momentum scheme with (q, v, p) as unknowns, as in the paper."""

from __future__ import annotations

from typing import Any

import casadi as ca

from livens.schemes.energy_momentum import EnergyMomentum
from livens.schemes.livens_em import LivensEM
from livens.schemes.recipes.elements import ElementEnergies, Share, State
from livens.schemes.recipes.turning import turned_on


class LivensEMFull(EnergyMomentum):
    """`livens-em` without any elimination, S004 (72): unknowns are ``(q1-q0)/h``, v1, p1 and lam.

    The trajectory is the same. The scheme shows the effect of the elimination of v1 and p1 (S004 Fig. 9).
    """

    name = "livens-em-full"
    group = "Energy-momentum and midpoint schemes"
    order = 2
    symplectic = False
    symmetric = True
    conserves = ("generalized_energy", "constraint")
    summary = "energy-momentum scheme on Livens' principle, nothing eliminated"
    source = "S004 (72)"
    unknowns = ("v_m", "v1", "p1")
    multipliers = ("lam",)
    balance = "v1"  # the momentum balance is the second equation

    def guess(self, old: State, h: Any) -> list[Any]:
        return [old.v, old.v, old.p]

    def quaternion_guess(self, old: State, h: Any) -> list[Any]:
        v_m = turned_on(old.q, old.v, h)
        return [v_m, 2 * v_m - old.v, old.p]

    def refine(self, x: Any, r: Any) -> dict[str, Any]:
        """Return the p1 of the third equation, which is linear in p1, for the guessed velocities."""
        return {"p1": x.p1 + r.p1}

    def end(self, old: State, x: Any, h: Any) -> tuple[Any, Any]:
        return old.q + h * x.v_m, x.v1

    def rows(self, old: State, x: Any, h: Any) -> list[Any]:
        return [x.v_m - (old.v + x.v1) / 2, x.p1 - old.p, -(old.p + x.p1)]

    def momentum(self, old: State, x: Any, h: Any) -> Any:
        return x.p1

    def share(self, e: ElementEnergies, old: State, new: State, x: Any, h: Any, t: Any) -> Share:
        share = LivensEM(self.gradient).share(e, old, new, x, h, t)
        twice_p_m = share.momentum
        none = ca.SX(e.n, 1)
        return Share(
            rows=[none, share.rows[0] - twice_p_m, twice_p_m],
            constraints=share.constraints,
            momentum=none,
            supplied=share.supplied,
            dissipated=share.dissipated,
        )


class LivensEMReduced(LivensEM):
    """`livens-em` with v1 and p1 eliminated, S004 (101)-(103): unknowns are ``(q1-q0)/h`` and lam.

    This is the form in which `livens-em` is solved; the name is for comparison with `livens-em-full`.
    """

    name = "livens-em-reduced"
    aliases = ("REML",)
    summary = "energy-momentum scheme on Livens' principle, v1 and p1 eliminated (REML): the same as livens-em"
    source = "S004 (101)-(103)"
