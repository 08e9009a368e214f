"""Time-transformed drift-kick-drift splitting; with a potential scaling the logarithmic Hamiltonian method."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from livens.models.hamiltonian.model import Hamiltonian
from livens.schemes.discretization.phase_space_map import HamiltonianFunctions, MapResult
from livens.schemes.discretization.time_transformation import TimeTransformedMap
from livens.schemes.time_transformed.sundman import Sundman
from livens.types import Expr


class SundmanDrift(Sundman):
    """Drift-kick-drift version of `sundman`::

        q += eps/2 S(p) T'(p), t += eps/2 S(p);   p -= eps U(q) V'(q);   q += eps/2 S(p) T'(p), t += eps/2 S(p)

    with ``S(p) = g(T, H0 - T)`` and ``U(q) = g(H0 - V, V)``. For ``g = -1/V``, that is ``scaling.potential(1)``, this
    is the splitting of the logarithmic Hamiltonian ``log(T - H0) - log(-V)``. Its steps stay exactly on Kepler ellipses
    for every step size; only time is of second order. This does not hold for kick-drift-kick.
    """

    name = "sundman-drift"
    aliases = ("logarithmic-hamiltonian",)
    summary = "drift, kick, drift in a fictive time: explicit, symplectic"
    source = "Modin 2009, paper III, 2.1; Mikkola and Tanikawa 1999; Preto and Tremaine 1999"
    when_to_use = "Few bodies with close encounters: exact on Kepler orbits up to a phase error."
    when_to_avoid = "The scaling is no function of the energies: use `adaptive-variational:0.5,0.5`."

    def extra_state(self, model: Hamiltonian) -> dict[str, int]:
        return TimeTransformedMap.extra_state(self, model)

    def initial_scheme_state(
        self, model: Any, values: Mapping[str, object], k: Any, t: float, h: float
    ) -> dict[str, Any]:
        return TimeTransformedMap.initial_scheme_state(self, model, values, k, t, h)

    def step(
        self, phase: HamiltonianFunctions, old: SimpleNamespace, x: SimpleNamespace, h: Expr, t: Expr
    ) -> MapResult:
        H0 = old.start_energy

        def drift(q: Expr, p: Expr) -> tuple[Expr, Expr]:
            T = phase.T(p)
            S = self._scaling_of_energies(phase)(T, H0 - T, phase.k)
            return q + h / 2 * S * phase.T_p(p), h / 2 * S

        q_m, dt_0 = drift(old.q, old.p)
        p = old.p + h * self._force(phase, q_m, H0)
        q, dt_1 = drift(q_m, p)
        time = h * self._scaling_of_q(phase, q_m, H0) if self._depends_on_T_only(phase) else dt_0 + dt_1
        return MapResult({"q": q, "p": p, "t": old.t + time})
