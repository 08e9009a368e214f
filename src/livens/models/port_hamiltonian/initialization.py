"""Consistent initial values of port-Hamiltonian systems of index 1: check and projection."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.expressions.graph.roundoff import UNIT_ROUNDOFF, roundoff_bound
from livens.models.initialization.gauss_newton import gauss_newton, inconsistent_values_error
from livens.models.linalg import EXACT_RTOL, equilibration, left_null_space
from livens.types import FloatArray
from livens.validation import check_array, check_vector

if TYPE_CHECKING:
    from livens.models.port_hamiltonian.model import PortHamiltonian

#: Relative tolerance of algebraic residuals, with respect to the magnitude of their terms.
TOLERANCE = 1e-10
#: Relative round-off of a projected state, with respect to its largest entry.
_SOLUTION_ROUNDOFF = 64 * UNIT_ROUNDOFF


def check_initial_state(
    model: PortHamiltonian, x0: FloatArray, t0: float = 0.0, k: np.ndarray | None = None, *, project: bool = False
) -> np.ndarray:
    """Check initial values: ``w^T [(J - R) z + (B - P) u - r] = 0`` must hold for all w with ``w^T E = 0``.

    Parameters
    ----------
    model : PortHamiltonian
        The model.
    x0 : array_like of shape (n,)
        Initial state.
    t0 : float, default 0.0
        Initial time, in seconds.
    k : ndarray of shape (parameter_count,), optional
        Parameter vector. Default: the parameters of the model.
    project : bool, default False
        Return a consistent state nearby instead of raising an error. Algebraic states are moved first; differential
        states only if necessary, as for a velocity that violates a constraint.

    Returns
    -------
    ndarray of shape (n,)
        Consistent state.

    Raises
    ------
    InputError
        If the state is inconsistent and `project` is False, or the equations cannot be evaluated.

    Examples
    --------
    >>> from livens.models.port_hamiltonian import check_initial_state, examples
    >>> circuit, x0 = examples.circuit()
    >>> check_initial_state(circuit, [1.0, 4.0, 0.0, 0.0, 0.0])
    Traceback (most recent call last):
    ...
    livens.errors.InputError: inconsistent initial values: algebraic equation 3 (row of 'I_G') is violated by -3; \
a consistent start nearby is (I = 1, V_1 = 4, V_2 = 0, I_G = -1, I_R = 0); pass project=True to start there
    >>> check_initial_state(circuit, [1.0, 4.0, 0.0, 0.0, 0.0], project=True)
    array([ 1.,  4.,  0., -1.,  0.])
    """
    if not hasattr(model, "parameter_vector") or not hasattr(model, "states"):
        raise InputError(f"model must be a port-Hamiltonian model, got {model!r}")
    values = model.parameter_vector() if k is None else check_array("k", k)
    state = check_vector("x0", x0, model.states)
    model.check(state, t0, values)
    linearize = functools.partial(_linearization_function(model), t=t0, k=values)
    linearization = linearize(state)
    if linearization is None:
        raise InputError("the equations cannot be evaluated at x0: the result is not finite")
    violation = _worst_violation(model, linearization)
    if violation is None:
        return state
    projected = _project(model, linearize, state)
    if project and projected is not None:
        return projected
    problem = f"inconsistent initial values: {violation[0]} is violated by {violation[1]:.3g}"
    raise inconsistent_values_error(problem, model.states, projected)


def projection_derivatives(
    model: PortHamiltonian, x: np.ndarray, t: float, k: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the derivatives of the projected initial state with respect to x0 and k, at a consistent state."""
    n, linearization = model.n, _linearization_function(model)(x, t, k)
    assert linearization is not None  # checked before
    left_kernel = left_null_space(linearization.E, scale_columns=True)
    if not len(left_kernel):
        return np.eye(n), np.zeros((n, k.size))
    d = model.descriptor
    scaled_rows, columns = equilibration(linearization.E)
    xdot = (
        columns
        * np.linalg.lstsq(
            scaled_rows[:, None] * linearization.E * columns, scaled_rows * linearization.f, rcond=EXACT_RTOL
        )[0]
    )
    df_dk = np.array(ca.Function("f", [d.x, d.xdot, d.t, d.k], [-ca.jacobian(d.residual, d.k)])(x, xdot, t, k))
    kernel = left_null_space(linearization.E.T, scale_columns=True).T
    is_solvable = np.linalg.matrix_rank(left_kernel @ linearization.jacobian @ kernel) == len(left_kernel)
    directions = kernel if is_solvable else np.eye(n)
    inverse = directions @ _pseudo_inverse(left_kernel, linearization.jacobian, directions) @ left_kernel
    return np.eye(n) - inverse @ linearization.jacobian, -inverse @ df_dk


@dataclass(frozen=True)
class Linearization:
    """Linearization of ``E x' = f``: E, f, ``d(f - E x')/dx`` at the least-squares x', and the tolerance of f."""

    E: np.ndarray
    f: np.ndarray
    jacobian: np.ndarray
    tolerance: np.ndarray


def _linearization_function(model: PortHamiltonian) -> Callable[..., Linearization | None]:
    d, s = model.descriptor, model.structure
    arguments = [d.x, d.t, d.k]
    rhs = ca.densify(ca.substitute(-d.residual, d.xdot, ca.SX.zeros(model.n)))
    terms = ca.fabs(s.J - s.R) @ ca.fabs(s.z) + ca.fabs(s.B - s.P) @ ca.fabs(d.u) + ca.fabs(s.r)
    bound = UNIT_ROUNDOFF * roundoff_bound(
        ca.Function("f", arguments, [rhs]), arguments, [ca.SX.zeros(a.numel()) for a in arguments]
    )
    terms_function = ca.Function("first", arguments, [s.E, rhs, TOLERANCE * terms + bound])
    jacobian_function = ca.Function("second", [d.x, d.xdot, d.t, d.k], [-ca.jacobian(d.residual, d.x)])

    def linearize(x: np.ndarray, t: float, k: np.ndarray) -> Linearization | None:
        E, f, tolerance = (np.array(value) for value in terms_function(x, t, k))
        if not all(np.all(np.isfinite(value)) for value in (E, f, tolerance)):
            return None
        rows, columns = equilibration(E)
        xdot = columns * np.linalg.lstsq(rows[:, None] * E * columns, rows * f.ravel(), rcond=EXACT_RTOL)[0]
        # the null space of E depends on x: d(w^T f) = w^T d(f - E x')
        jacobian = np.array(jacobian_function(x, xdot, t, k))
        return Linearization(E, f.ravel(), jacobian, tolerance.ravel() + TOLERANCE * np.abs(jacobian) @ np.abs(x))

    return linearize


def _worst_violation(model: PortHamiltonian, linearization: Linearization) -> tuple[str, float] | None:
    """Return the label and residual of the worst violated algebraic equation, or None."""
    left_kernel = left_null_space(linearization.E, scale_columns=True)
    residual, tolerance = left_kernel @ linearization.f, np.abs(left_kernel) @ linearization.tolerance
    violated = np.abs(residual) > tolerance
    if not violated.any():
        return None
    i = int(np.argmax(np.where(violated, np.abs(residual), 0.0)))
    equation = int(np.argmax(np.abs(left_kernel[i])))
    label = (
        "algebraic equation" if np.count_nonzero(left_kernel[i]) == 1 else "a combination of equations, mainly equation"
    )
    return f"{label} {equation} (row of '{model.states[equation]}')", float(residual[i])


def _project(
    model: PortHamiltonian, linearize: Callable[[np.ndarray], Linearization | None], x: np.ndarray
) -> np.ndarray | None:
    """Return a consistent state by Gauss-Newton steps in the algebraic states, then in all states; None if none."""
    for algebraic_only in (True, False):

        def step(state: np.ndarray, algebraic_only: bool = algebraic_only) -> np.ndarray | None:
            linearization = linearize(state)
            if linearization is None or not np.all(np.isfinite(linearization.jacobian)):
                return None
            left_kernel = left_null_space(linearization.E, scale_columns=True)
            directions = left_null_space(linearization.E.T, scale_columns=True).T if algebraic_only else np.eye(model.n)
            inverse = _pseudo_inverse(left_kernel, linearization.jacobian, directions)
            return np.asarray(directions @ inverse @ (left_kernel @ linearization.f))

        state, _ = gauss_newton(step, x, floor=0.0)
        linearization = linearize(state)
        if linearization is None:
            continue
        # the solution has round-off relative to its largest entry, also where all terms of an equation are zero
        roundoff = _SOLUTION_ROUNDOFF * np.abs(state).max(initial=0.0) * np.abs(linearization.jacobian).sum(axis=1)
        accepted = dataclasses.replace(linearization, tolerance=linearization.tolerance + roundoff)
        if _worst_violation(model, accepted) is None:
            return state
    return None


def _pseudo_inverse(rows: np.ndarray, jacobian: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Return the pseudo-inverse of ``rows jacobian directions``, with a rank tolerance relative to its terms."""
    U, values, Vt = np.linalg.svd(rows @ jacobian @ directions, full_matrices=False)
    size = (np.abs(rows) @ np.abs(jacobian) @ np.abs(directions)).max(initial=0.0)
    inverse = np.where(values > EXACT_RTOL * size, 1.0 / np.where(values > 0, values, 1.0), 0.0)
    return np.asarray((Vt.T * inverse) @ U.T)
