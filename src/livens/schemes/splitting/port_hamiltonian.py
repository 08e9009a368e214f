"""J-R splitting of port-Hamiltonian systems into a lossless part and a dissipative part with the ports."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import casadi as ca

from livens.expressions.state_layout import Layout
from livens.models.port_hamiltonian.model import PortHamiltonian
from livens.models.port_hamiltonian.structure import PHStructure
from livens.schemes.core.scheme import Scheme
from livens.schemes.core.step_equations import StepEquations
from livens.schemes.discretization.phase_space_map import map_step_graph
from livens.schemes.energy_momentum.discrete_gradient_pair import discrete_effort_terms
from livens.types import Expr


class JRSplitting(Scheme):
    """Strang splitting of ``E x' = (J - R) z + (B - P) u`` into ``E x' = J z`` and ``E x' = -R z + (B - P) u``.

    Half a step of the lossless part, a step of the dissipative part with the ports, half a step of the lossless part,
    each by the discrete gradient pair. The lossless part keeps H to round-off for every Hamiltonian, the other one
    changes it by supplied minus dissipated energy: the balance is exact. Of order 2 and symmetric.
    """

    name = "j-r-splitting"
    group = "Splitting and variational schemes, without constraints"
    formulations = ("port-hamiltonian",)
    order, symplectic, symmetric = 2, False, True
    conserves = ("hamiltonian",)
    evaluations_per_step = 3
    summary = "lossless and dissipative part of a port-Hamiltonian system, each with an exact energy balance"
    source = "Strang 1968; Kinon, Morandin and Schulze 2025 for the parts"
    when_to_use = "The losses or the input are to be separated from the lossless motion."
    when_to_avoid = "E is singular, or one implicit equation per step suffices: use `discrete-gradient-pair`."

    def unmet_requirements(self, model: Any) -> list[str]:
        unmet = super().unmet_requirements(model)
        if not unmet and not model.is_ode:
            return ["a regular matrix E"]
        if not unmet and ca.sparsify(model.structure.r).nnz():
            return ["a Hamiltonian that does not depend on time"]
        return unmet

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> StepEquations:
        s: PHStructure = model.structure
        n = model.n
        lossless = dataclasses.replace(s, R=ca.SX(n, n), B=0 * s.B, P=0 * s.P, S=0 * s.S, N=0 * s.N)
        lossy = dataclasses.replace(s, J=ca.SX(n, n))
        terms = [discrete_effort_terms(_part(model, part)) for part in (lossless, lossy, lossless)]

        def build_step(old: SimpleNamespace, x: SimpleNamespace, h: Expr, t: Expr, k: Expr) -> Any:
            state, residuals, supplied, dissipated = old.x, [], old.supplied_energy, old.dissipated_energy
            for part, rate, fraction, start in zip(
                terms, (x.rate1, x.rate2, x.rate3), (0.5, 1.0, 0.5), (0.0, 0.0, 0.5), strict=True
            ):
                size = fraction * h
                residual, power, loss = part(state, state + size / 2 * rate, rate, t + start * h, size, k)
                residuals.append(residual)
                state = state + size * rate
                supplied, dissipated = supplied + size * power, dissipated + size * loss
            new = {"x": state, "supplied_energy": supplied, "dissipated_energy": dissipated}
            return new, residuals, {f"rate{i + 1}": ca.SX.zeros(n) for i in range(3)}

        return map_step_graph(model.layout, Layout(rate1=n, rate2=n, rate3=n), model.parameter_count, build_step)


def _part(model: PortHamiltonian, structure: PHStructure) -> PortHamiltonian:
    """Return a part of the system, whose structure conditions follow from those of the system."""
    part = PortHamiltonian.__new__(PortHamiltonian)
    part.structure, part.coordinates, part.ports = structure, model.coordinates, model.ports
    part.model_parameters, part.parameter_table = model.model_parameters, model.parameter_table
    part.n, part.m = model.n, model.m
    return part
