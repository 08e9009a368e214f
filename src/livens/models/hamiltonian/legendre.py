"""Legendre transformation between Lagrangian (Livens) and Hamiltonian form, for energies quadratic in v or p."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError, ModelError, suggestion
from livens.expressions.parameters import ParameterNamespace
from livens.expressions.probe import Probe
from livens.models.equations_of_motion import EquationsOfMotion, equations_of_motion
from livens.models.hamiltonian.model import Hamiltonian, HamiltonianTerms
from livens.models.system import System
from livens.types import Expr


def from_system(system: System, expensive: Sequence[str]) -> HamiltonianTerms:
    """Return the terms of the Hamiltonian of a system."""
    d = equations_of_motion(system)
    _check_convertible(system, d)
    # T = v.M v/2 + a.v + T_0, so v = M^-1 (p - a) and H = (p - a).v/2 - T_0 + V
    zero_velocity = ca.SX.zeros(system.n)
    M, a, T_0 = (
        ca.substitute(e, d.v, zero_velocity) for e in (ca.jacobian(d.fibre_derivative, d.v), d.fibre_derivative, d.T)
    )
    kinetic = ca.dot(d.p - a, solve_blockwise(M, d.p - a)) / 2
    (V_cheap, V_expensive), forces = _split_by_cost(system, d, expensive)
    V_cheap -= T_0
    H = kinetic + V_cheap + V_expensive
    T, V = (None, None) if ca.depends_on(kinetic, d.q) else (kinetic, V_cheap)
    return HamiltonianTerms(d.q, d.p, d.v, d.t, d.k, H, T, V, V_expensive, forces[0], forces[1], system.external_force)


def _check_convertible(system: System, d: EquationsOfMotion) -> None:
    if system.m:
        raise ModelError(
            f"Hamilton's form needs coordinates without constraints; the system has {system.m} "
            f"(the first is '{system.constraint_names[0]}')"
        )
    if ca.depends_on(ca.jacobian(d.fibre_derivative, d.v), d.v):
        raise ModelError("Hamilton's form needs a kinetic energy that is quadratic in v; write the Hamiltonian itself")
    if not system.regular_mass:
        raise ModelError("Hamilton's form needs a regular mass matrix; that of the system is singular")


def _split_by_cost(system: System, d: EquationsOfMotion, expensive: Sequence[str]) -> tuple[list[Any], list[Any]]:
    """Return (cheap, expensive) pairs of the potentials and of the other forces."""
    known = {element.name for element in system.elements if element.name}
    for name in expensive:
        if name not in known:
            raise InputError(f"no element is named '{name}'{suggestion(name, known)}")
    V, F = [ca.SX(0), ca.SX(0)], [ca.SX.zeros(system.n), ca.SX.zeros(system.n)]
    for element, model, index, parameter_indices in zip(
        system.elements, system.element_types, system.element_dofs, system.element_parameters, strict=True
    ):
        is_expensive = bool(element.name in expensive or getattr(element, "expensive", False))
        parts = ca.Function(
            "element", [model.q, model.v, model.t, model.k], [model.V, model.F - ca.gradient(model.R, model.v)]
        )
        i = list(index)
        potential, force = parts(d.q[i], d.v[i], d.t, d.k[list(parameter_indices)])
        V[is_expensive] += potential
        F[is_expensive][i] += force
    return V, F


def solve_blockwise(matrix: Expr, rhs: Expr) -> Expr:
    """Return ``matrix^-1 rhs`` by diagonal blocks: a diagonal matrix costs one division per row."""
    count, order, offsets = matrix.sparsity().scc()
    result = ca.SX.zeros(matrix.shape[0])
    for b in range(count):
        rows = list(order[offsets[b] : offsets[b + 1]])
        block = matrix[rows, rows]
        result[rows] = rhs[rows] / block if len(rows) == 1 else ca.solve(ca.densify(block), rhs[rows])
    return result


def to_system(model: Hamiltonian) -> System:
    """Return the System of a Hamiltonian: ``L = p.v - H`` with p solved from ``v = dH/dp``."""
    if not model.is_quadratic_in_p:
        raise ModelError("Livens' form needs a Hamiltonian that is quadratic in the momenta; this one is not")
    q, p, v, t, k = model.q, model.p, model.v, model.t, model.k
    # H = p.W p/2 + b.p + V
    W = ca.jacobian(model.velocity, p)
    b, V = (ca.substitute(e, p, ca.SX.zeros(model.n)) for e in (model.velocity, model.H))
    if ca.depends_on(ca.vertcat(ca.vec(ca.densify(W)), b), t):
        raise ModelError("Livens' form needs a kinetic energy that does not depend on time")
    matrix = Probe([q, k], seed=3, fixed={1: model.parameter_vector()}).evaluate_once(W)
    if matrix is None or np.linalg.matrix_rank(matrix) < model.n:
        raise ModelError("Livens' form needs velocities that determine the momenta; d2H/dp2 is singular")
    kinetic = ca.Function("T", [q, v, k], [ca.dot(v - b, solve_blockwise(W, v - b)) / 2])
    potential = ca.Function("V", [q, t, k], [V])
    forces = ca.Function("F", [q, v, t, k], [ca.densify(model.F)])
    element_values = model.parameter_vector()[model.model_parameters.size :]

    def vector(named: ParameterNamespace) -> Any:
        parts = [np.ravel(getattr(named, name)) for name in model.model_parameters.values]
        return m.to_casadi(np.concatenate([*parts, element_values])) if parts or element_values.size else ca.SX(0, 1)

    def call(f: ca.Function, *arguments: Any) -> Expr:
        *state, named = arguments
        return f(*(m.to_casadi(x) for x in state), vector(named))

    system = System(
        model.coordinates,
        kinetic=lambda q, v, k: m.Scalar(call(kinetic, q, v, k)),
        potential=lambda q, t, k: m.Scalar(call(potential, q, t, k)),
        forces=None if model.F.is_zero() else lambda q, v, t, k: m.from_casadi(call(forces, q, v, t, k)),
        parameters=model.model_parameters.values,
        visual=model._visual,
    )
    system.symmetries = dict(model.symmetries)
    return system
