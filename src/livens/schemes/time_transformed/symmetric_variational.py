"""Symmetric time-transformed variational integrators."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from livens.models.hamiltonian.model import Hamiltonian
from livens.schemes.discretization.phase_space_map import HamiltonianFunctions, MapResult, format_number
from livens.schemes.discretization.time_transformation import TimeTransformedMap
from livens.schemes.time_transformed.variational import AdaptiveVariational
from livens.types import Expr


class SymmetricAdaptiveVariational(TimeTransformedMap):
    """Mean of the discrete Lagrangians of `adaptive-variational` for (a, b) and (1-a, 1-b).

    See Modin 2009, paper II, eq. 25.

    Each of the two has an evaluation point with a momentum, (q_A, p_A) and (q_B, p_B); both have the velocity w in
    fictive time. With ``D = H - E0``::

        w  = l H_p + l_p D                                    at A, and at B
        p0 = mean of p_m + eps ((1-a) l H_q + (1-b) l_q D)    over A with (a, b) and B with (1-a, 1-b)
        p1 = mean of p_m - eps (a l H_q + b l_q D)
        q1 = q0 + eps w          t1 = t0 + eps (l_A + l_B)/2

    Symmetric and of order 2 for all a and b; the map of (q, t, p, -E0) is symplectic. For a = b = 1/2 both points
    coincide, and the scheme is ``adaptive-variational:0.5,0.5``; (1-a, 1-b) is equivalent to (a, b).
    """

    family = "adaptive-variational-sym:<alpha>,<beta>"
    examples = ((0.0, 0.0), (0.25, 0.5))
    order, symplectic, symmetric = 2, True, True
    conserves = ("momentum_maps",)
    summary, source = "symmetric variational integrator in a fictive time", "Modin 2009, paper II (25)"
    when_to_use = "You study the symmetric family of scaled variational integrators."
    when_to_avoid = "The scaling changes much within a step: use `adaptive-variational:0.5,0.5`."
    implicit = True
    evaluations_per_step = 2

    def __init__(self, alpha: float, beta: float) -> None:
        self.alpha, self.beta = alpha, beta
        self.name = f"adaptive-variational-sym:{format_number(alpha)},{format_number(beta)}"

    def keeps_momentum(self, model: object, name: str) -> bool:
        """Return whether a momentum map is kept: the scaling is invariant under its symmetry as well."""
        return self.scaling_is_invariant(model, name)

    def _one_point(self) -> AdaptiveVariational | None:
        """Return the equivalent one-point scheme for a = b = 1/2, else None."""
        if self.alpha != 0.5 or self.beta != 0.5:
            return None
        scheme = AdaptiveVariational(0.5, 0.5)
        scheme.scaling = self.scaling
        return scheme

    def unknowns(self, model: Hamiltonian) -> dict[str, int]:
        names = ("w", "p_m") if self._one_point() else ("w", "p_A", "p_B")
        return dict.fromkeys(names, model.n)

    def initial_guess(
        self, phase: HamiltonianFunctions, old: SimpleNamespace, h: Expr, t: Expr
    ) -> Mapping[str, object]:
        speed = self.g(phase, old.q, old.p) * phase.H_p(old.q, old.p, t)
        return {"w": speed, "p_m": old.p, "p_A": old.p, "p_B": old.p}

    def step(self, phase: HamiltonianFunctions, old: SimpleNamespace, x: Any, h: Any, t: Any) -> MapResult:
        one_point = self._one_point()
        if one_point is not None:
            return one_point.step(phase, old, x, h, t)
        residuals, p0_sum, p1_sum, time = [], 0, 0, 0
        for a, b, p_m in ((self.alpha, self.beta, x.p_A), (1 - self.alpha, 1 - self.beta, x.p_B)):
            q_a, q_b = old.q + a * h * x.w, old.q + b * h * x.w
            energy_defect, scale = phase.H(q_a, p_m, 0) - old.start_energy, self.g(phase, q_b, p_m)
            force, scaling_force = scale * phase.H_q(q_a, p_m, 0), energy_defect * self.g_q(phase, q_b, p_m)
            residuals.append(x.w - scale * phase.H_p(q_a, p_m, 0) - energy_defect * self.g_p(phase, q_b, p_m))
            p0_sum += (p_m + h * ((1 - a) * force + (1 - b) * scaling_force)) / 2
            p1_sum += (p_m - h * (a * force + b * scaling_force)) / 2
            time += scale / 2
        return MapResult({"q": old.q + h * x.w, "p": p1_sum, "t": old.t + h * time}, [*residuals, p0_sum - old.p])
