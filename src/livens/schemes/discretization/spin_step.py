"""Step equations of spin systems: nodal equations of every spin plus the sum of the fields of all energies.

The field of a spin is ``dH/ds_i``. A scheme evaluates the fields at stages of the step, and its equations are affine in
them. Every energy is then a batch of kernels on a few spins, and the cost of a step is linear in their number.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens.expressions.state_layout import Layout
from livens.models.base import sha256_of
from livens.schemes.core.scheme import Scheme
from livens.schemes.core.step_equations import StepEquations, StepGraph, array_sha256
from livens.schemes.discretization.assembly_plan import AssemblyPlan, ElementBatch, KernelSymbols, make_batch
from livens.types import Expr

if TYPE_CHECKING:
    from livens.models.element_groups import ElementGroup
    from livens.models.poisson.spins import Spins


class SpinScheme(Scheme):
    """Base class of schemes for `Spins`: unknowns, stages and equations of one spin."""

    group = "Poisson and Lie-Poisson systems"
    formulations = ("spins",)
    symplectic, symmetric = True, True
    conserves: tuple[str, ...] = ("casimirs", "linear_invariants")
    #: Number of unknowns of one spin.
    n_unknowns: int = 3
    #: Number of stages at which the fields are evaluated.
    n_stages: int = 1

    def stages(self, spin: Expr, x: Expr, h: Expr) -> Sequence[Expr]:
        """Return the spin at the stages, from its value at t and its unknowns."""
        raise NotImplementedError

    def nodal_residual(self, spin: Expr, x: Expr, h: Expr) -> Expr:
        """Return the part of the residual of one spin without fields."""
        raise NotImplementedError

    def field_residual(self, spin: Expr, x: Expr, h: Expr, fields: Sequence[Expr]) -> Expr:
        """Return the part of the residual of one spin that is linear in the fields at the stages."""
        raise NotImplementedError

    def final_spin(self, spin: Expr, x: Expr, h: Expr) -> Expr:
        """Return the spin at t + h."""
        raise NotImplementedError

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> StepEquations:
        return SpinEquations(model, self)


class SpinEquations(StepEquations):
    """Step equations of a spin scheme; unknowns and equations are numbered spin by spin."""

    def __init__(self, model: Spins, scheme: SpinScheme) -> None:
        self.model, self.scheme, self.layout = model, scheme, model.layout
        self.unknowns = Layout(stage=model.count * scheme.n_unknowns)

    @property
    def n_assembled_unknowns(self) -> int:
        return self.unknowns.size

    @functools.cached_property
    def equation_labels(self) -> tuple[str, ...]:
        count = self.scheme.n_unknowns
        return tuple(f"equation {i + 1} of spin {spin}" for spin in self.model.spins for i in range(count))

    @functools.cached_property
    def nodal_function(self) -> ca.Function:
        """Nodal residual and final spin of ``(x, spin, h)``."""
        x, spin, h = ca.SX.sym("x", self.scheme.n_unknowns), ca.SX.sym("s", 3), ca.SX.sym("h")
        residual = ca.densify(self.scheme.nodal_residual(spin, x, h))
        return ca.Function("spin", [x, spin, h], [residual, ca.densify(self.scheme.final_spin(spin, x, h))])

    def field_function(self, group: ElementGroup) -> ca.Function:
        """Return the residual contributions of one energy of ``(x, spins, h, k)``, spin by spin."""
        scheme, model = self.scheme, group.element_type
        count, width = model.n // 3, scheme.n_unknowns
        x, spins, h = ca.SX.sym("x", count * width), ca.SX.sym("s", model.n), ca.SX.sym("h")
        gradient = ca.Function("field", [model.q, model.k], [ca.densify(ca.gradient(model.V, model.q))])
        spin_unknowns = [(spins[3 * i : 3 * i + 3], x[width * i : width * (i + 1)]) for i in range(count)]
        stages = [scheme.stages(spin, unknown, h) for spin, unknown in spin_unknowns]
        fields = [gradient(ca.vertcat(*(stage[j] for stage in stages)), model.k) for j in range(scheme.n_stages)]
        residual = [
            scheme.field_residual(spin, unknown, h, [field[3 * i : 3 * i + 3] for field in fields])
            for i, (spin, unknown) in enumerate(spin_unknowns)
        ]
        return ca.Function("energy", [x, spins, h, model.k], [ca.densify(ca.vertcat(*residual))])

    @functools.cached_property
    def field_functions(self) -> tuple[ca.Function, ...]:
        """Residual contributions of all energies."""
        return tuple(self.field_function(group) for group in self.model.element_groups)

    @functools.cached_property
    def fingerprint(self) -> str:
        if not self.model.uses_sparse_path:
            return self.to_single_graph().fingerprint
        parts: list[Any] = [self.nodal_function.serialize(), self.layout.sizes]
        for group, function in zip(self.model.element_groups, self.field_functions, strict=True):
            parts += [function.serialize(), array_sha256(group.coordinates), array_sha256(group.parameters)]
        return sha256_of(["spins", self.scheme.name, parts])

    # -- as one graph -------------------------------------------------------------------------------------------------
    def to_single_graph(self) -> StepGraph:
        return self._graph

    @functools.cached_property
    def _graph(self) -> StepGraph:
        model, width = self.model, self.scheme.n_unknowns
        x, z = ca.SX.sym("x", self.unknowns.size), ca.SX.sym("z", self.layout.size)
        c = ca.SX.sym("c", 2 + model.parameter_count)
        h, k = c[0], c[2:]
        residuals, final_state = [], []
        for i in range(model.count):
            residual, spin = self.nodal_function(x[width * i : width * (i + 1)], z[3 * i : 3 * i + 3], h)
            residuals += ca.vertsplit(residual)
            final_state.append(spin)
        for group, function in zip(model.element_groups, self.field_functions, strict=True):
            for dofs, parameters in zip(group.coordinates, group.parameters, strict=True):
                unknowns = _unknown_dofs(dofs[None], width)[0].tolist()
                terms = function(x[unknowns], z[dofs.tolist()], h, k[parameters.tolist()])
                for a, row in enumerate(unknowns):
                    residuals[row] += terms[a]
        return StepGraph.from_residual(
            x,
            z,
            c,
            residual=ca.densify(ca.vertcat(*residuals)),
            final_state=ca.densify(ca.vertcat(*final_state, z[3 * model.count :])),
            initial_guess=ca.SX.zeros(self.unknowns.size),
            block_sizes=(self.unknowns.size,),
            equation_labels=self.equation_labels,
            layout=self.layout,
            named_values={"stage": x},
        )

    # -- as batches ---------------------------------------------------------------------------------------------------
    def assembly_plan(self) -> AssemblyPlan:
        batches = [self._nodal_batch(), *(self._energy_batch(i) for i in range(len(self.field_functions)))]
        return AssemblyPlan(
            layout=self.layout,
            unknowns=self.unknowns,
            batches=(*batches, self._energy_balance_batch()),
            block_sizes=(self.unknowns.size,),
            equation_labels=lambda: self.equation_labels,
            is_multiplier=np.zeros(self.unknowns.size, dtype=bool),
            body_index=np.repeat(np.arange(self.model.count), self.scheme.n_unknowns),
            initial_guess=lambda z, c, residual: np.zeros(self.unknowns.size),
        )

    def _nodal_batch(self) -> ElementBatch:
        width, dofs = self.scheme.n_unknowns, np.arange(3 * self.model.count).reshape(-1, 3)
        local = KernelSymbols.create(width, 3)
        residual, spin = self.nodal_function(local.x, local.z, local.h)
        tables = {"x": _unknown_dofs(dofs, width), "z": dofs}
        return make_batch("spins", local, residual, tables, final_state=[(spin, dofs)])

    def _energy_batch(self, i: int) -> ElementBatch:
        group, function = self.model.element_groups[i], self.field_functions[i]
        unknowns = _unknown_dofs(group.coordinates, self.scheme.n_unknowns)
        local = KernelSymbols.create(unknowns.shape[1], group.coordinates.shape[1], 0, group.parameters.shape[1])
        residual = function(local.x, local.z, local.h, local.k)
        return make_batch(
            f"energy {i}", local, residual, {"x": unknowns, "z": group.coordinates, "k": group.parameters}
        )

    def _energy_balance_batch(self) -> ElementBatch:
        from livens.schemes.discretization.element_batches import energy_balance_batch  # only large models need it

        return energy_balance_batch(self.layout)


def _unknown_dofs(coordinates: np.ndarray, width: int) -> np.ndarray:
    """Return the unknowns of the spins of each row of coordinates, three per spin."""
    spins = coordinates[:, ::3] // 3
    return (spins[:, :, None] * width + np.arange(width)).reshape(len(coordinates), -1)
