"""Time-transformed Gauss collocation with fixed-point iteration of all stages."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import casadi as ca

from livens import tableaus
from livens.errors import InputError
from livens.expressions.graph.merge_powers import merge_powers
from livens.schemes.discretization.fixed_point_stages import FixedPointStages
from livens.schemes.discretization.phase_space_map import as_hamiltonian
from livens.schemes.discretization.time_transformation import TimeTransformedMap
from livens.types import Expr

#: Maximum number of stages; fixed-point iteration gains nothing with more.
_MAX_STAGES = 16


class SundmanGauss(TimeTransformedMap):
    """Gauss method with s stages on ``K = g (H - H0)``, the motion of H in fictive time ``dt = g dtau``::

        q' = g dH/dp + (H - H0) dg/dp,    p' = -g dH/dq - (H - H0) dg/dq,    t' = g

    H0 is the initial energy and the scaling g any function of the state, for Kepler's problem preferably the distance.
    The map of (q, p) is symplectic and symmetric, of order 2s, and conserves quadratic invariants that g conserves,
    such as the angular momentum.

    The stage derivatives are solved by fixed-point iteration, with all stages evaluated in SIMD lanes, until changes
    are at round-off. The initial guess is the extrapolated polynomial of the previous step. States and time use
    compensated (double-double) sums. If the iteration does not converge, as for steps of more than about a radian,
    Newton's method is used.
    """

    family = "sundman-gauss-<s>"
    examples = ((2,), (4,), (8,))
    symplectic, symmetric, implicit = True, True, True
    conserves: tuple[str, ...] = ("momentum_maps",)
    source = "Hairer, Lubich, Wanner VIII.2 (time transformations), VIII.6 (fixed-point iteration)"
    when_to_use = "Many digits with adaptive steps, for any H(q, p) and any scaling."
    when_to_avoid = "Order 2 suffices: `sundman` costs a fraction."

    def __init__(self, s: int) -> None:
        if not 1 <= s <= _MAX_STAGES:
            raise InputError(f"sundman-gauss takes 1 to {_MAX_STAGES} stages, got {s}")
        self.tableau = tableaus.gauss(s)
        self.name, self.order, self.evaluations_per_step = f"sundman-gauss-{s}", 2 * s, s
        self.summary = f"Gauss collocation with {s} stage{'s' if s > 1 else ''} in a fictive time, symplectic"

    def evaluation_counts(self, steps: int, corrections: int) -> tuple[int, int]:
        """Return the counts: every iteration evaluates forces at all stages; no Jacobian is evaluated."""
        return corrections * self.evaluations_per_step, 0

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> FixedPointStages:
        m = as_hamiltonian(model)
        scaling: Expr = self.checked_scaling(m).expression(m)
        H0, energy = ca.SX.sym("H0"), ca.substitute(m.H, m.t, 0)
        K = scaling * (energy - H0)
        derivatives = ca.vertcat(ca.gradient(K, m.p), -ca.gradient(K, m.q), scaling)
        # the energy is a constant variable
        variables = ca.vertcat(m.q, m.p, H0, ca.SX.sym("t"))
        ordered_derivatives = ca.vertcat(derivatives[: 2 * m.n], H0, derivatives[2 * m.n])
        simplified = merge_powers(ca.Function("rates", [variables, m.t, m.k], [ca.densify(ordered_derivatives)]))
        y = ca.SX.sym("y", 2 * m.n)
        output = simplified(ca.vertcat(y, H0, 0), 0, m.k)
        function = ca.Function("rates", [y, H0, m.k], [ca.vertcat(output[: 2 * m.n], output[2 * m.n + 1])])
        velocity = ca.substitute(ca.densify(m.velocity), m.t, 0)
        return FixedPointStages(
            function,
            ca.Function("velocity", [ca.vertcat(m.q, m.p), m.k], [velocity]),
            self.tableau,
            model.layout.extended(**self.extra_state(m)),
            tuple(m.coordinates),
        )
