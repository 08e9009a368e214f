"""Time-transformed splitting into harmonic oscillators with exact flow, and all other forces."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from livens.models.hamiltonian.model import Hamiltonian
from livens.schemes.discretization.phase_space_map import HamiltonianFunctions, MapResult, as_hamiltonian
from livens.schemes.discretization.time_transformation import TimeTransformedMap
from livens.schemes.time_transformed.sundman import Sundman
from livens.types import Expr, FloatArray


class SundmanHarmonic(Sundman):
    """SYMP for a splitting ``H = H1 + H2`` with oscillators (Modin 2009, paper III, second remark after theorem 2).

    ``H1 = T(p) + sum_i k_i q_i^2/2`` are decoupled oscillators, ``H2`` is the remaining potential energy; k_i are the
    second derivatives at q = 0. The scaling g is a function of H1, in place of T, and of H2, in place of V. Each part
    conserves its own energy, so that its scaled flow is its flow for another time::

        kick with H2 for eps/2 g(H0 - H2, H2);   oscillate with H1 for eps g(H1, H0 - H1);   kick again

    Steps need not resolve oscillators that are much faster than their coupling. Explicit, symplectic, symmetric;
    without a kick the motion is exact.
    """

    name = "sundman-harmonic"
    summary, source = "oscillators exactly, other forces as kicks, in a fictive time", "Modin 2009, paper III, 2.1"
    when_to_use = "Fast harmonic oscillators with soft couplings, in adaptive steps."
    when_to_avoid = "There is no harmonic part: use `sundman`."
    conserves = ()

    def unmet_requirements(self, model: object) -> list[str]:
        unmet = super().unmet_requirements(model)
        if unmet:
            return unmet
        phase = as_hamiltonian(model)
        if phase.inverse_mass is None or ca.sparsify(phase.inverse_mass - ca.diag(ca.diag(phase.inverse_mass))).nnz():
            return ["a mass matrix that is constant and diagonal"]
        stiffness = ca.Function("k", [phase.k], [_stiffness(phase)])(phase.parameter_vector())
        is_valid = np.isfinite(np.array(stiffness)).all() and np.array(stiffness).min() >= 0
        return [] if is_valid else ["second derivatives of the potential energy at q = 0 that are not negative"]

    def initial_scheme_state(self, model: Any, values: Mapping[str, Any], k: Any, t: float, h: float) -> dict[str, Any]:
        scheme_state = TimeTransformedMap.initial_scheme_state(self, model, values, k, t, h)
        phase = HamiltonianFunctions(as_hamiltonian(model), k)
        return {
            **scheme_state,
            "force": np.array(self._force(phase, values["q"], scheme_state["start_energy"])).ravel(),
        }

    def _perturbation(self, phase: HamiltonianFunctions, q: Any) -> tuple[Any, Any]:
        """Return the perturbation H2 and its gradient."""
        m = phase.model
        H2 = m.V - ca.dot(_stiffness(m), m.q**2) / 2
        value_and_gradient = phase.evaluate("H2", ca.vertcat(H2, ca.gradient(H2, m.q)), q, 0 * q, 0)
        return value_and_gradient[0], value_and_gradient[1:]

    def _force(self, phase: HamiltonianFunctions, q: Expr | FloatArray, H0: Expr | float) -> Any:
        energy, gradient = self._perturbation(phase, q)
        return -self._scaling_of_energies(phase)(H0 - energy, energy, phase.k) * gradient

    def step(
        self, phase: HamiltonianFunctions, old: SimpleNamespace, x: SimpleNamespace, h: Expr, t: Expr
    ) -> MapResult:
        H0, m = old.start_energy, phase.model
        k = ca.Function("k", [m.k], [_stiffness(m)])(phase.k)
        w = ca.Function("w", [m.k], [ca.densify(ca.diag(m.inverse_mass))])(phase.k)
        p = old.p + h / 2 * old.force
        H1 = phase.T(p) + ca.dot(k, old.q**2) / 2
        S = self._scaling_of_energies(phase)(H1, H0 - H1, phase.k)
        cos, sinc = _cos_sinc(k * w * (h * S) ** 2)
        q, p = cos * old.q + h * S * sinc * w * p, cos * p - h * S * sinc * k * old.q
        force = self._force(phase, q, H0)
        return MapResult({"q": q, "p": p + h / 2 * force, "t": old.t + h * S, "force": force})


def _stiffness(model: Hamiltonian) -> Any:
    """Return the second derivatives of the potential energy at q = 0 with respect to each coordinate."""
    potential: Any = model.V
    hessian_diagonal = ca.diag(ca.hessian(potential, model.q)[0])
    at_origin = ca.substitute(ca.densify(hessian_diagonal), ca.vertcat(model.q, model.t), ca.SX.zeros(model.n + 1))
    return ca.simplify(at_origin)


def _cos_sinc(x: Expr) -> tuple[Expr, Expr]:
    """Return ``cos a`` and ``sin(a)/a`` for angles a with the squares x >= 0."""
    small = x < 1e-4
    a = ca.sqrt(ca.if_else(small, 1.0, x))
    sinc = ca.if_else(small, 1 - x / 6 * (1 - x / 20 * (1 - x / 42)), ca.sin(a) / a)
    return ca.if_else(small, 1 - x / 2 * (1 - x / 12 * (1 - x / 30 * (1 - x / 56))), ca.cos(a)), sinc
