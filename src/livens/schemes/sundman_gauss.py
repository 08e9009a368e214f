"""Gauss' collocation in a fictive time, its stages found by sweeps over all of them at once."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import casadi as ca

from livens import tableaus
from livens.errors import InputError
from livens.expressions.graph.powers import merged_powers
from livens.schemes.recipes.adaptive import AdaptiveMap
from livens.schemes.recipes.maps import phase_of
from livens.schemes.recipes.swept_stages import SweptStages

#: With more stages than this, sweeps over them gain nothing any more.
_MOST = 16


class SundmanGauss(AdaptiveMap):
    """Gauss' method with s stages on ``K = g (H - H0)``, whose motion is that of H in a fictive time ``dt = g dtau``::

        q' = g dH/dp + (H - H0) dg/dp,    p' = -g dH/dq - (H - H0) dg/dq,    t' = g

    H0 is the energy at the start and the scaling g any function of the state, for Kepler's problem best the distance.
    The map of (q, p) is symplectic and symmetric, of order 2s, and keeps quadratic invariants that g keeps, such as the
    angular momentum.

    The slopes of the stages are found by sweeps: all of them are evaluated at the stages that the last slopes lead to,
    side by side in the lanes of vectors, until nothing but rounding changes. They begin with the polynomial of the step
    before, carried on. States and time are sums of two numbers each. Where sweeps do not converge, as in steps of more
    than a radian or so, Newton's method takes the step.
    """

    family = "sundman-gauss-<s>"
    examples = ((2,), (4,), (8,))
    symplectic, symmetric, implicit = True, True, True
    conserves: tuple[str, ...] = ("momentum_maps",)
    source = "Hairer, Lubich, Wanner VIII.2 (time transformations), VIII.6 (sweeps)"

    def __init__(self, s: int) -> None:
        if not 1 <= s <= _MOST:
            raise InputError(f"sundman-gauss takes 1 to {_MOST} stages, got {s}")
        self.tableau = tableaus.gauss(s)
        self.name, self.order, self.evaluations = f"sundman-gauss-{s}", 2 * s, s
        self.summary = f"Gauss collocation with {s} stage{'s' if s > 1 else ''} in a fictive time, symplectic"

    def counted(self, steps: int, corrections: int) -> tuple[int, int]:
        """Every sweep evaluates forces at all stages; nothing is differentiated."""
        return corrections * self.evaluations, 0

    def equations(self, model: Any, dropped: Collection[int] = ()) -> SweptStages:
        m = phase_of(model)
        scaling: Any = self.scaling_for(m).expression(m)
        H0, energy = ca.SX.sym("H0"), ca.substitute(m.H, m.t, 0)
        K = scaling * (energy - H0)
        rates = ca.vertcat(ca.gradient(K, m.p), -ca.gradient(K, m.q), scaling)
        # the energy is one of the variables here, and stays as it is
        whole = ca.vertcat(m.q, m.p, H0, ca.SX.sym("t"))
        moved = ca.vertcat(rates[: 2 * m.n], H0, rates[2 * m.n])
        simple = merged_powers(ca.Function("rates", [whole, m.t, m.k], [ca.densify(moved)]))
        y = ca.SX.sym("y", 2 * m.n)
        found = simple(ca.vertcat(y, H0, 0), 0, m.k)
        function = ca.Function("rates", [y, H0, m.k], [ca.vertcat(found[: 2 * m.n], found[2 * m.n + 1])])
        velocity = ca.substitute(ca.densify(m.velocity), m.t, 0)
        return SweptStages(
            function,
            ca.Function("velocity", [ca.vertcat(m.q, m.p), m.k], [velocity]),
            self.tableau,
            model.layout.with_(**self.add(m)),
            tuple(m.coordinates),
        )
