"""Interconnection of two port-Hamiltonian systems by linear relations between their ports (S002 4.2.4)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError, ModelError
from livens.expressions.parameters import Parameters, ParameterTable
from livens.models.port_hamiltonian.model import PortHamiltonian
from livens.models.port_hamiltonian.relations import ZERO, Relations, read_relations
from livens.models.port_hamiltonian.structure import Mechanics, Structure, random_points


def interconnect(a: PortHamiltonian, b: PortHamiltonian, M: Any, N: Any) -> PortHamiltonian:
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
    return related(side_by_side(a, b), M, N)


def related(both: Both, M: Any, N: Any) -> PortHamiltonian:
    """Return the interconnected system of parallel systems, by ``M y + N u = 0`` for their open ports."""
    relations = read_relations(M, N, both.ports, [i for i, law in enumerate(both.structure.laws) if law is None])
    _check_loops(both, relations)
    relations.check_power()
    relations, solvable = _split(both.structure, relations)
    F, ports = relations.free_inputs()
    return _joined(both, relations, solvable, F, ports)


@dataclass(frozen=True, eq=False)
class Both:
    """Parallel (uncoupled) composition of two systems."""

    structure: Structure
    states: tuple[str, ...]
    ports: tuple[str, ...]
    parameters: ParameterTable


def side_by_side(a: PortHamiltonian, b: PortHamiltonian) -> Both:
    """Return the uncoupled composition of two systems."""
    values = _merged(a.shared.values, b.shared.values)
    parameters = Parameters(dict(zip(values, [*a.shared.values.values(), *b.shared.values.values()], strict=True)))
    if len(parameters.values) < len(a.shared.values) + len(b.shared.values):
        raise InputError("the parameter names of the two systems are ambiguous; rename one")
    x, t, k = ca.SX.sym("x", a.n + b.n), ca.SX.sym("t"), ca.SX.sym("k", parameters.size)
    parts, laws = [], []
    mechanics: Mechanics | None = None
    for model, xi, ki in ((a, x[: a.n], k[: a.shared.size]), (b, x[a.n :], k[a.shared.size :])):
        s = model.structure
        parts.append(ca.Function("parts", [s.x, s.t, s.k], s.matrices())(xi, t, ki))
        at, here = ca.vertcat(s.x, s.t, s.k), ca.vertcat(xi, t, ki)
        laws += [None if law is None else ca.substitute(law, at, here) for law in s.laws]
        if s.mechanics is not None:
            mechanics = s.mechanics.at(at, here) if mechanics is None else mechanics.beside(s.mechanics.at(at, here))
    (Ha, za, Ea, ra, *first), (Hb, zb, Eb, rb, *second) = parts
    J, R, B, P, S, N = (ca.diagcat(m, n) for m, n in zip(first, second, strict=True))
    z, E, r = ca.vertcat(za, zb), ca.diagcat(Ea, Eb), ca.vertcat(ra, rb)
    structure = Structure(x, t, k, Ha + Hb, z, E, r, J, R, B, P, S, N, tuple(laws), mechanics)
    own, other = a.parameter_table.further, b.parameter_table.further
    entries = [*own.values(), *(entry.shifted(a.shared.size) for entry in other.values())]
    table = ParameterTable(parameters, further=dict(zip(_merged(own, other), entries, strict=True)))
    return Both(structure, _merged(a.states, b.states), _merged(a.ports, b.ports), table)


def _merged(first: Iterable[str], second: Iterable[str]) -> tuple[str, ...]:
    first, second = list(first), list(second)
    shared = set(first) & set(second)
    return tuple(
        f"{prefix}_{name}" if name in shared else name
        for prefix, names in (("a", first), ("b", second))
        for name in names
    )


def _check_loops(both: Both, relations: Relations) -> None:
    """Raise ModelError for an algebraic loop that exists at all random states."""
    s = both.structure
    at = ca.Function("at", [s.x, s.t, s.k], [s.S - s.N, (s.B + s.P).T])
    found = []
    for x, t in random_points(s):
        through, read = (np.array(value) for value in at(x, t, both.parameters.vector()))
        if np.all(np.isfinite(through)) and np.all(np.isfinite(read)):
            found.append(_loop(relations, through, read))
    if found and all(found):
        raise ModelError(f"algebraic loop: {found[0]}")


def _loop(relations: Relations, through: np.ndarray, read: np.ndarray) -> str:
    """Return a message if a combination of the relations does not determine its lam, otherwise an empty string.

    A combination w without lam is a constraint on the states, with the force lam: a rigid coupling. This must hold
    generically, not by cancellation of feedthroughs, and the combination must restrict the states.
    """
    own, systems = relations.N @ relations.M.T, relations.M @ through @ relations.M.T
    free, generic = (_left_null(own + c * systems, own, systems) for c in (1.0, 0.5**0.5))
    if free.shape[1] > generic.shape[1]:
        beyond = np.linalg.svd(free - generic @ (generic.T @ free))[0][:, 0]
        return (
            f"at the ports {relations.combination(beyond)} the feedthrough of the systems cancels that of the "
            "interconnection, so these inputs and outputs depend on each other and are not determined"
        )
    silent = _left_null(free.T @ relations.M @ read, np.abs(free.T) @ np.abs(relations.M) @ np.abs(read))
    if silent.shape[1]:
        return (
            f"the relation between the ports {relations.combination(free @ silent[:, 0])} does not restrict the "
            "states, so it leaves the inputs undetermined"
        )
    return ""


def _left_null(matrix: np.ndarray, *terms: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the left null space as columns, up to the roundoff of the terms of the matrix."""
    left, values, _ = np.linalg.svd(matrix)
    size = max((np.abs(term).max(initial=0.0) for term in terms), default=0.0)
    return np.asarray(left[:, int((values > ZERO * size).sum()) :])


def _split(s: Structure, relations: Relations) -> tuple[Relations, int]:
    """Recombine the relations such that the last ones can be solved for their lam; return their number."""
    matrix = ca.SX(ca.DM(relations.M)) @ (s.S - s.N) @ ca.DM(relations.M).T + ca.DM(relations.N @ relations.M.T)
    count = relations.M.shape[0]
    if ca.depends_on(matrix, ca.vertcat(s.x, s.t, s.k)):
        return relations, 0
    numbers = np.array(ca.DM(ca.densify(ca.evalf(matrix)))).reshape(count, count)
    null = _left_null(numbers, numbers)
    if null.shape[1] in (0, count):
        return relations, count - null.shape[1]
    # no power is created, so w^T matrix = 0 implies matrix w = 0: complement and null space decouple
    rest = np.linalg.svd(null)[0][:, null.shape[1] :]
    return relations.rotated(np.hstack([null, rest])), rest.shape[1]


def _joined(
    both: Both, relations: Relations, solvable: int, F: np.ndarray, external: tuple[str, ...]
) -> PortHamiltonian:
    """Insert ``u = M^T lam + F u_e``, then eliminate the last `solvable` lam: two congruences of Gamma and W."""
    s = both.structure
    n, rows = s.x.numel(), relations.M.shape[0]
    passed, lost = relations.own()
    mixed = ca.DM(relations.N @ F)
    T = ca.diagcat(ca.DM.eye(n), ca.horzcat(ca.DM(relations.M.T), ca.DM(F)))
    skew = ca.blockcat([[-ca.DM(passed), -mixed], [mixed.T, ca.DM(F.shape[1], F.shape[1])]])
    Gamma = _congruent(s.Gamma, T, ca.diagcat(ca.SX(n, n), skew))
    W = _congruent(s.W, T, ca.diagcat(ca.SX(n, n), ca.DM(lost), ca.SX(F.shape[1], F.shape[1])))
    kept = rows - solvable
    if solvable:
        T = _solution(Gamma - W, list(range(n + kept, n + rows)))
        Gamma, W = _congruent(Gamma, T), _congruent(W, T)
    N = n + kept
    x = ca.vertcat(s.x, ca.SX.sym("coupling", kept))
    structure = Structure(
        x,
        s.t,
        s.k,
        H=s.H,
        z=ca.vertcat(s.z, x[n:]),
        E=ca.diagcat(s.E, ca.SX(kept, kept)),
        r=ca.vertcat(s.r, ca.SX(kept, 1)),
        J=Gamma[:N, :N],
        R=W[:N, :N],
        B=Gamma[:N, N:],
        P=W[:N, N:],
        S=W[N:, N:],
        N=Gamma[N:, N:],
        laws=tuple(dict(zip(both.ports, s.laws, strict=True)).get(port) for port in external),
        mechanics=s.mechanics,
    )
    states = [*both.states, *_new_names("coupling", kept, both.states)]
    return PortHamiltonian.of(structure, states, external, both.parameters)


def _solution(theta: Any, goes: list[int]) -> Any:
    """Return T with ``theta T = 0`` in the eliminated rows: all efforts as functions of the remaining ones."""
    size = theta.shape[0]
    stays = [i for i in range(size) if i not in goes]
    T = ca.SX(size, len(stays))
    T[stays, :] = ca.SX.eye(len(stays))
    inverse = np.linalg.inv(np.array(ca.DM(ca.densify(ca.evalf(theta[goes, goes])))))
    T[goes, :] = -ca.sparsify(ca.DM(inverse)) @ theta[goes, stays]
    return ca.sparsify(T)


def _congruent(matrix: Any, T: Any, more: Any = 0) -> Any:
    """Return ``T^T matrix T + addend``: skew symmetry and semidefiniteness are preserved despite roundoff in T.

    Constant entries that are roundoff of their terms become zero.
    """
    value, size = T.T @ matrix @ T + more, ca.fabs(T).T @ ca.fabs(matrix) @ ca.fabs(T) + ca.fabs(more)
    out = ca.SX(*value.shape)
    for i in range(value.shape[0]):
        for j in range(value.shape[1]):
            entry, terms = value[i, j], size[i, j]
            rounding = entry.is_constant() and terms.is_constant() and abs(float(entry)) <= 1e-14 * float(terms)
            if entry.nnz() and not rounding:
                out[i, j] = entry
    return ca.sparsify(out)


def _new_names(stem: str, count: int, taken: Sequence[str]) -> list[str]:
    candidates = (f"{stem}_{i}" for i in range(count + len(taken)))
    return [name for name in candidates if name not in taken][:count]
