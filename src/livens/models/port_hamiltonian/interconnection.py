"""Interconnection of two port-Hamiltonian systems by linear relations between their ports (Symank 2025, 4.2.4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError, ModelError, explain_call_errors
from livens.expressions.parameters import Parameters, ParameterTable
from livens.models.linalg import numerical_rank
from livens.models.port_hamiltonian.model import PortHamiltonian
from livens.models.port_hamiltonian.port_relations import ZERO_TOLERANCE, PortRelations, parse_relations
from livens.models.port_hamiltonian.structure import MechanicalConstraints, PHStructure, sample_points
from livens.types import ArrayLike, Expr


@explain_call_errors
def interconnect(a: PortHamiltonian, b: PortHamiltonian, M: object, N: ArrayLike) -> PortHamiltonian:
    """Interconnect two systems by ``M y + N u = 0`` for the outputs y and inputs u of the open ports of a, then of b.

    The relations must not create power: ``M N^T + N M^T`` is zero (lossless) or positive semidefinite (dissipative).
    All inputs that satisfy them are ``u = M^T lam + F u_e``, where ``u_e`` are the inputs that stay free and F
    completes ``M^T``, with single ports where possible. The relations become

        0 = M (B + P)^T z + [M (S - N_ab) + N] (M^T lam + F u_e),

    algebraic equations with the effort lam. The interconnected system is port-Hamiltonian with ``H = H_a + H_b``. If
    the relations can be solved for lam, lam is eliminated (feedback). If lam does not enter, it stays as a state (a
    rigid coupling, such as equal velocities: lam is the coupling force). It also stays if its matrix depends on states
    or parameters.

    Relations whose feedthrough cancels that of the systems, or that do not restrict the states, do not determine lam:
    such an algebraic loop raises an error. Names used by both systems get the prefix ``a_`` or ``b_``.

    Parameters
    ----------
    a, b : PortHamiltonian
        The systems.
    M, N : array_like of shape (n_relations, n_open_ports)
        Coefficients of the outputs and inputs.

    Returns
    -------
    PortHamiltonian
        The interconnected system.

    Raises
    ------
    InputError
        If the shape of M or N is wrong, relations are dependent, or parameter names are ambiguous.
    ModelError
        If the relations create power, or are an algebraic loop.

    Examples
    --------
    >>> import livens as lv
    >>> from livens.port_hamiltonian import interconnect
    >>> def mass(name):
    ...     return lv.PortHamiltonian([name], H=lambda x: x[0] ** 2 / 2, B=[[1]], ports=[f"force_{name}"])
    >>> interconnect(mass("p"), mass("q"), M=[[0, 1], [-1, 0]], N=[[1, 0], [0, 1]])  # u_p = -y_q, u_q = y_p
    <livens.PortHamiltonian: states p q, no ports>
    >>> interconnect(mass("p"), mass("q"), M=[[1, -1]], N=[[0, 0]])  # equal velocities, one force on both
    <livens.PortHamiltonian: states p q coupling_0, port force_p>
    """
    return apply_relations(parallel(a, b), M, N)


def apply_relations(systems: ParallelSystem, M: object, N: ArrayLike) -> PortHamiltonian:
    """Return the interconnected system of parallel systems, by ``M y + N u = 0`` for their open ports."""
    relations = parse_relations(
        M, N, systems.ports, [i for i, law in enumerate(systems.structure.inputs) if law is None]
    )
    _check_algebraic_loops(systems, relations)
    relations.check_power()
    relations, solvable = _split_solvable(systems.structure, relations)
    F, ports = relations.free_inputs()
    return _interconnected(systems, relations, solvable, F, ports)


@dataclass(frozen=True, eq=False)
class ParallelSystem:
    """Parallel (uncoupled) composition of two systems."""

    structure: PHStructure
    states: tuple[str, ...]
    ports: tuple[str, ...]
    parameters: ParameterTable


def parallel(a: PortHamiltonian, b: PortHamiltonian) -> ParallelSystem:
    """Return the uncoupled composition of two systems."""
    values = _merge_names(a.model_parameters.values, b.model_parameters.values)
    parameters = Parameters(
        dict(zip(values, [*a.model_parameters.values.values(), *b.model_parameters.values.values()], strict=True))
    )
    if len(parameters.values) < len(a.model_parameters.values) + len(b.model_parameters.values):
        raise InputError("the parameter names of the two systems are ambiguous; rename one")
    x, t, k = ca.SX.sym("x", a.n + b.n), ca.SX.sym("t"), ca.SX.sym("k", parameters.size)
    parts, inputs = [], []
    mechanics: MechanicalConstraints | None = None
    for model, xi, ki in ((a, x[: a.n], k[: a.model_parameters.size]), (b, x[a.n :], k[a.model_parameters.size :])):
        s = model.structure
        parts.append(ca.Function("parts", [s.x, s.t, s.k], s.matrices())(xi, t, ki))
        old_symbols, new_symbols = ca.vertcat(s.x, s.t, s.k), ca.vertcat(xi, t, ki)
        inputs += [None if law is None else ca.substitute(law, old_symbols, new_symbols) for law in s.inputs]
        if s.mechanics is not None:
            mechanics = (
                s.mechanics.substitute(old_symbols, new_symbols)
                if mechanics is None
                else mechanics.concatenate(s.mechanics.substitute(old_symbols, new_symbols))
            )
    (Ha, za, Ea, ra, *matrices_a), (Hb, zb, Eb, rb, *matrices_b) = parts
    J, R, B, P, S, N = (ca.diagcat(m, n) for m, n in zip(matrices_a, matrices_b, strict=True))
    z, E, r = ca.vertcat(za, zb), ca.diagcat(Ea, Eb), ca.vertcat(ra, rb)
    structure = PHStructure(x, t, k, Ha + Hb, z, E, r, J, R, B, P, S, N, tuple(inputs), mechanics)
    further_a, further_b = a.parameter_table.aliases, b.parameter_table.aliases
    entries = [*further_a.values(), *(entry.offset(a.model_parameters.size) for entry in further_b.values())]
    table = ParameterTable(parameters, aliases=dict(zip(_merge_names(further_a, further_b), entries, strict=True)))
    return ParallelSystem(structure, _merge_names(a.states, b.states), _merge_names(a.ports, b.ports), table)


def _merge_names(names_a: Iterable[str], names_b: Iterable[str]) -> tuple[str, ...]:
    names_a, names_b = list(names_a), list(names_b)
    shared = set(names_a) & set(names_b)
    return tuple(
        f"{prefix}_{name}" if name in shared else name
        for prefix, names in (("a", names_a), ("b", names_b))
        for name in names
    )


def _check_algebraic_loops(systems: ParallelSystem, relations: PortRelations) -> None:
    """Raise ModelError for an algebraic loop that exists at all random states."""
    s = systems.structure
    evaluate = ca.Function("at", [s.x, s.t, s.k], [s.S - s.N, (s.B + s.P).T])
    messages = []
    for x, t in sample_points(s):
        feedthrough, output_map = (np.array(value) for value in evaluate(x, t, systems.parameters.vector()))
        if np.all(np.isfinite(feedthrough)) and np.all(np.isfinite(output_map)):
            messages.append(_algebraic_loop(relations, feedthrough, output_map))
    if messages and all(messages):
        raise ModelError(f"algebraic loop: {messages[0]}")


def _algebraic_loop(relations: PortRelations, feedthrough: np.ndarray, output_map: np.ndarray) -> str:
    """Return a message if a combination of the relations does not determine its lam, otherwise an empty string.

    A combination w without lam is a constraint on the states, with the force lam: a rigid coupling. This must hold
    generically, not by cancellation of feedthroughs, and the combination must restrict the states.
    """
    relation_part, system_part = relations.N @ relations.M.T, relations.M @ feedthrough @ relations.M.T
    null_space, generic_null_space = (
        _left_null_space(relation_part + c * system_part, relation_part, system_part) for c in (1.0, 0.5**0.5)
    )
    if null_space.shape[1] > generic_null_space.shape[1]:
        cancelling = np.linalg.svd(null_space - generic_null_space @ (generic_null_space.T @ null_space))[0][:, 0]
        return (
            f"at the ports {relations.ports_in(cancelling)} the feedthrough of the systems cancels that of the "
            "interconnection, so these inputs and outputs depend on each other and are not determined"
        )
    unobservable = _left_null_space(
        null_space.T @ relations.M @ output_map, np.abs(null_space.T) @ np.abs(relations.M) @ np.abs(output_map)
    )
    if unobservable.shape[1]:
        return (
            f"the relation between the ports {relations.ports_in(null_space @ unobservable[:, 0])} does not restrict "
            "the states, so it leaves the inputs undetermined"
        )
    return ""


def _left_null_space(matrix: np.ndarray, *terms: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the left null space as columns, up to the roundoff of the terms of the matrix."""
    U, values, _ = np.linalg.svd(matrix)
    size = max((np.abs(term).max(initial=0.0) for term in terms), default=0.0)
    return np.asarray(U[:, numerical_rank(values, ZERO_TOLERANCE, size) :])


def _split_solvable(s: PHStructure, relations: PortRelations) -> tuple[PortRelations, int]:
    """Recombine the relations such that the last ones can be solved for their lam; return their number."""
    matrix = ca.SX(ca.DM(relations.M)) @ (s.S - s.N) @ ca.DM(relations.M).T + ca.DM(relations.N @ relations.M.T)
    count = relations.M.shape[0]
    if ca.depends_on(matrix, ca.vertcat(s.x, s.t, s.k)):
        return relations, 0
    values = np.array(ca.DM(ca.densify(ca.evalf(matrix)))).reshape(count, count)
    null = _left_null_space(values, values)
    if null.shape[1] in (0, count):
        return relations, count - null.shape[1]
    # no power is created, so w^T matrix = 0 implies matrix w = 0: complement and null space decouple
    complement = np.linalg.svd(null)[0][:, null.shape[1] :]
    return relations.recombined(np.hstack([null, complement])), complement.shape[1]


def _interconnected(
    systems: ParallelSystem, relations: PortRelations, solvable: int, F: np.ndarray, external: tuple[str, ...]
) -> PortHamiltonian:
    """Insert ``u = M^T lam + F u_e``, then eliminate the last `solvable` lam: two congruences of Gamma and W."""
    s = systems.structure
    n, rows = s.x.numel(), relations.M.shape[0]
    lossless, dissipative = relations.power_split()
    mixed = ca.DM(relations.N @ F)
    T = ca.diagcat(ca.DM.eye(n), ca.horzcat(ca.DM(relations.M.T), ca.DM(F)))
    skew = ca.blockcat([[-ca.DM(lossless), -mixed], [mixed.T, ca.DM(F.shape[1], F.shape[1])]])
    Gamma = _congruence(s.Gamma, T, ca.diagcat(ca.SX(n, n), skew))
    W = _congruence(s.W, T, ca.diagcat(ca.SX(n, n), ca.DM(dissipative), ca.SX(F.shape[1], F.shape[1])))
    n_multipliers = rows - solvable
    if solvable:
        T = _elimination(Gamma - W, list(range(n + n_multipliers, n + rows)))
        Gamma, W = _congruence(Gamma, T), _congruence(W, T)
    N = n + n_multipliers
    x = ca.vertcat(s.x, ca.SX.sym("coupling", n_multipliers))
    structure = PHStructure(
        x,
        s.t,
        s.k,
        H=s.H,
        z=ca.vertcat(s.z, x[n:]),
        E=ca.diagcat(s.E, ca.SX(n_multipliers, n_multipliers)),
        r=ca.vertcat(s.r, ca.SX(n_multipliers, 1)),
        J=Gamma[:N, :N],
        R=W[:N, :N],
        B=Gamma[:N, N:],
        P=W[:N, N:],
        S=W[N:, N:],
        N=Gamma[N:, N:],
        inputs=tuple(dict(zip(systems.ports, s.inputs, strict=True)).get(port) for port in external),
        mechanics=s.mechanics,
    )
    states = [*systems.states, *_fresh_names("coupling", n_multipliers, systems.states)]
    return PortHamiltonian.from_structure(structure, states, external, systems.parameters)


def _elimination(theta: Expr, eliminated: list[int]) -> Any:
    """Return T with ``theta T = 0`` in the eliminated rows: all efforts as functions of the remaining ones."""
    size = theta.shape[0]
    remaining = [i for i in range(size) if i not in eliminated]
    T = ca.SX(size, len(remaining))
    T[remaining, :] = ca.SX.eye(len(remaining))
    inverse = np.linalg.inv(np.array(ca.DM(ca.densify(ca.evalf(theta[eliminated, eliminated])))))
    T[eliminated, :] = -ca.sparsify(ca.DM(inverse)) @ theta[eliminated, remaining]
    return ca.sparsify(T)


def _congruence(matrix: Expr, T: Expr | ca.DM, addend: Expr | int = 0) -> Expr:
    """Return ``T^T matrix T + addend``: skew symmetry and semidefiniteness are preserved despite roundoff in T.

    Constant entries that are roundoff of their terms become zero.
    """
    value, size = T.T @ matrix @ T + addend, ca.fabs(T).T @ ca.fabs(matrix) @ ca.fabs(T) + ca.fabs(addend)
    out = ca.SX(*value.shape)
    for i in range(value.shape[0]):
        for j in range(value.shape[1]):
            entry, terms = value[i, j], size[i, j]
            rounding = entry.is_constant() and terms.is_constant() and abs(float(entry)) <= 1e-14 * float(terms)
            if entry.nnz() and not rounding:
                out[i, j] = entry
    return ca.sparsify(out)


def _fresh_names(stem: str, count: int, taken: Sequence[str]) -> list[str]:
    candidates = (f"{stem}_{i}" for i in range(count + len(taken)))
    return [name for name in candidates if name not in taken][:count]
