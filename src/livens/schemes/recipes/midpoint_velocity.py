"""Base class of one-step schemes with the midpoint velocity as unknown."""

from __future__ import annotations

from typing import Any

from livens.schemes.recipes.elements import ElementScheme, State
from livens.schemes.recipes.turning import turned_on


class MidpointVelocity(ElementScheme):
    """Schemes with ``q1 - q0 = h v_m``, ``v_m = (v0 + v1)/2`` and a discrete fibre derivative for ``p_m``.

    Unknowns are v_m and lam. Positions and velocities follow from the two relations above, the momenta from
    ``p1 = 2 p_m - p0``; the equation to be solved is the momentum balance with ``p1 - p0 = 2 p_m - 2 p0``. With q1 as
    the unknown, ``v1 = 2/h (q1 - q0) - v0`` would amplify round-off by 2/h.
    """

    unknowns = ("v_m",)
    multipliers = ("lam",)
    balance = "v_m"

    def guess(self, old: State, h: Any) -> list[Any]:
        return [old.v]

    def quaternion_guess(self, old: State, h: Any) -> list[Any] | None:
        return [turned_on(old.q, old.v, h)]

    def end(self, old: State, x: Any, h: Any) -> tuple[Any, Any]:
        return old.q + h * x.v_m, 2 * x.v_m - old.v

    def rows(self, old: State, x: Any, h: Any) -> list[Any]:
        return [-2 * old.p]

    def momentum(self, old: State, x: Any, h: Any) -> Any:
        return -old.p
