"""Structure-preserving transformations of port-Hamiltonian systems, and their block form (Symank 2025, 4.2.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import ModelError, explain_call_errors
from livens.expressions.name_parsing import Names, parse_names
from livens.expressions.parameters import ParameterNamespace
from livens.expressions.probe import Probe
from livens.expressions.tracing import FunctionTracer
from livens.models.linalg import EXACT_RTOL, numerical_rank
from livens.models.port_hamiltonian.model import PortHamiltonian
from livens.models.port_hamiltonian.structure import PHStructure
from livens.types import Expr, ModelFunction


@explain_call_errors
def transform(
    model: PortHamiltonian, states: Names, x_of: ModelFunction | object, rows: ModelFunction | object = None
) -> PortHamiltonian:
    """Return the system in other state variables w, ``x = phi(w, t)``, with its equations multiplied by ``U^T``.

    The structure is kept (Symank 2025, 4.2.2): ``E~ = U^T E Dphi``, ``r~ = U^T (r + E dphi/dt)``, ``z~ = U^-1 z``,
    ``J~ = U^T J U``, ``R~ = U^T R U``, ``B~ = U^T B``, ``P~ = U^T P``; H, inputs and outputs are those of the system.

    Parameters
    ----------
    model : PortHamiltonian
        System to transform.
    states : str, sequence of str or int
        Names of the new variables, as many as there are states.
    x_of : callable or array_like
        Function of ``x t k`` that returns the old state from the new one, called x; or a constant matrix.
    rows : callable or array_like, optional
        Regular matrix U, constant or a function of ``x t k`` with the new state x. Default: the identity.

    Returns
    -------
    PortHamiltonian
        The equivalent system.

    Raises
    ------
    ModelError
        If the number of variables differs, or a transformation is singular.

    Examples
    --------
    >>> import livens as lv
    >>> polar = lv.PortHamiltonian("q p", H=lambda x: x[1] ** 2 / 2 - lv.math.cos(x[0]), J=[[0, 1], [-1, 0]])
    >>> scaled = lv.port_hamiltonian.transform(polar, "a b", x_of=[[2.0, 0.0], [0.0, 0.5]])
    >>> run = lv.simulate(scaled, x0=[0.5, 0.0], scheme="gauss-2", h=0.1, t_end=1.0)
    >>> other = lv.simulate(polar, x0=[1.0, 0.0], scheme="gauss-2", h=0.1, t_end=1.0)
    >>> bool(abs(2 * run.x[-1, 0] - other.x[-1, 0]) < 1e-14)
    True
    """
    names, n, s = parse_names("states", states, "w"), model.n, model.structure
    if len(names) != n:
        raise ModelError(f"the system has {n} states, got {len(names)} new variables")
    w, t, k = ca.SX.sym("w", n), ca.SX.sym("t"), s.k
    trace = FunctionTracer({"x": w, "t": t, "k": ParameterNamespace(model.model_parameters.unpack_symbols(k))})
    is_function = callable(x_of)
    x = ca.densify(trace("x_of", x_of, (n,), "xtk")) if is_function else trace("x_of", x_of, (n, n)) @ w
    U = ca.SX.eye(n) if rows is None else trace("rows", rows, (n, n), "xtk")
    jacobian = ca.jacobian(x, w)
    for role, matrix in (("x_of", jacobian), ("rows", U)):
        determinant = Probe([w, t, k], seed=15, fixed={2: model.parameter_vector()}).evaluate_once(ca.det(matrix))
        if determinant is None or abs(float(determinant.item())) < 1e-14:
            raise ModelError(f"the transformation by {role} is singular at random states")

    def inserted(expression: Any) -> Any:
        return ca.Function("f", [s.x, s.t, s.k], [expression])(x, t, k)

    E = inserted(s.E)
    mechanics = s.mechanics.substitute(ca.vertcat(s.x, s.t), ca.vertcat(x, t)) if s.mechanics is not None else None
    structure = PHStructure(
        w,
        t,
        k,
        H=inserted(s.H),
        z=ca.solve(U, inserted(s.z)),
        E=ca.sparsify(U.T @ E @ jacobian),
        r=U.T @ (inserted(s.r) + E @ ca.jacobian(x, t)),
        J=ca.sparsify(U.T @ inserted(s.J) @ U),
        R=ca.sparsify(U.T @ inserted(s.R) @ U),
        B=U.T @ inserted(s.B),
        P=U.T @ inserted(s.P),
        S=inserted(s.S),
        N=inserted(s.N),
        inputs=tuple(None if law is None else inserted(law) for law in s.inputs),
        mechanics=mechanics,
    )
    return PortHamiltonian.from_structure(structure, names, model.ports, model.parameter_table)


@explain_call_errors
def block_form(model: PortHamiltonian) -> tuple[PortHamiltonian, np.ndarray]:
    """Return a linear system with ``E = diag(E_11, 0)`` and a Hamiltonian of the differential states only.

    For constant E and ``z = Q x`` (Symank 2025, thm. 4.3): orthogonal matrices from the singular value decomposition of
    E separate differential from algebraic states; a shift of the algebraic states by ``-Q_22^-1 Q_21`` times the
    differential ones makes Q block diagonal. The states are named ``d0, d1, ...`` and ``a0, a1, ...``.

    Parameters
    ----------
    model : PortHamiltonian
        System with constant E and an effort that is linear in x with constant coefficients.

    Returns
    -------
    PortHamiltonian
        The equivalent system.
    ndarray of shape (n, n)
        Matrix V of the states, ``x = V w``.

    Raises
    ------
    ModelError
        If E or Q is not constant, the efforts are not linear, or Q_22 is singular.

    Examples
    --------
    >>> import livens as lv
    >>> circuit, x0 = lv.port_hamiltonian.examples.circuit()
    >>> block, V = lv.port_hamiltonian.block_form(circuit)
    >>> block.states
    ('d0', 'd1', 'd2', 'a0', 'a1')
    """
    E, Q = _constant(model, "E", model.structure.E), _effort_matrix(model)
    left, sizes, right = np.linalg.svd(E)
    rank = numerical_rank(sizes, EXACT_RTOL)
    U, V = left, right.T
    Q_tilde = U.T @ Q @ V
    if rank < model.n:
        corner = Q_tilde[rank:, rank:]
        if numerical_rank(np.linalg.svd(corner, compute_uv=False), EXACT_RTOL) < len(corner):
            raise ModelError(
                "the efforts of the algebraic equations do not determine the algebraic states (Q_22 is singular): "
                "the index may be larger than one"
            )
        shift = np.eye(model.n)
        shift[rank:, :rank] = -np.linalg.solve(corner, Q_tilde[rank:, :rank])
        V = V @ shift
    names = [*(f"d{i}" for i in range(rank)), *(f"a{i}" for i in range(model.n - rank))]
    return _without_round_off(transform(model, names, V, U), rank), V


def _effort_matrix(model: PortHamiltonian) -> np.ndarray:
    """Return Q of ``z = Q x``."""
    s = model.structure
    offset = ca.SX(ca.substitute(s.z, s.x, ca.SX.zeros(model.n)))
    if not ca.sparsify(ca.simplify(offset)).is_zero():
        raise ModelError("the efforts are not linear in the states: they do not vanish at x = 0")
    return _constant(model, "Q = dz/dx", ca.jacobian(s.z, s.x))


def _constant(model: PortHamiltonian, role: str, matrix: Expr) -> np.ndarray:
    """Return the value of a constant matrix with the parameters of the model."""
    s = model.structure
    if ca.depends_on(matrix, ca.vertcat(s.x, s.t)):
        raise ModelError(f"{role} depends on the state or on time: the block form needs a linear system")
    return np.array(ca.Function("matrix", [s.k], [ca.densify(matrix)])(model.parameter_vector()))


def _without_round_off(model: PortHamiltonian, rank: int) -> PortHamiltonian:
    """Return the block form with exact zeros in E, z and H: they are zero up to the rounding of the transformation."""
    s = model.structure
    E = ca.SX.zeros(model.n, model.n)
    E[:rank, :rank] = s.E[:rank, :rank]
    algebraic_zero = ca.SX(s.x)
    algebraic_zero[rank:] = 0
    differential_zero = ca.SX(s.x)
    differential_zero[:rank] = 0
    z = ca.vertcat(ca.substitute(s.z[:rank], s.x, algebraic_zero), ca.substitute(s.z[rank:], s.x, differential_zero))
    structure = replace(s, E=ca.sparsify(E), z=z, H=ca.substitute(s.H, s.x, algebraic_zero))
    return PortHamiltonian.from_structure(structure, model.states, model.ports, model.parameter_table)
