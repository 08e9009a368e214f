"""Consistent initial values of port-Hamiltonian systems of index 1: check and projection."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.expressions.graph.roundoff import UNIT, roundoff_bound
from livens.expressions.numbers import array, vector

if TYPE_CHECKING:
    from livens.models.port_hamiltonian.model import PortHamiltonian

#: Relative tolerance of algebraic residuals, with respect to the magnitude of their terms.
TOLERANCE = 1e-10

#: Relative rank tolerance of the singular values of E, with respect to the largest one.
RANK = 1e-12


def start_values(
    model: PortHamiltonian, x0: Any, t0: float = 0.0, k: np.ndarray | None = None, *, project: bool = False
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
    >>> from livens.port_hamiltonian import examples, start_values
    >>> circuit, x0 = examples.circuit()
    >>> start_values(circuit, [1.0, 4.0, 0.0, 0.0, 0.0])
    Traceback (most recent call last):
    ...
    livens.errors.InputError: inconsistent start: algebraic equation 3 (row of 'I_G') is violated by -3; a consistent \
start nearby is (I = 1, V_1 = 4, V_2 = 0, I_G = -1, I_R = 0); pass project=True to start there
    >>> start_values(circuit, [1.0, 4.0, 0.0, 0.0, 0.0], project=True)
    array([ 1.,  4.,  0., -1.,  0.])
    """
    if not hasattr(model, "parameter_vector") or not hasattr(model, "states"):
        raise InputError(f"model must be a port-Hamiltonian model, got {model!r}")
    values = model.parameter_vector() if k is None else array("k", k)
    state = vector("x0", x0, model.states)
    model.check(state, t0, values)
    at = functools.partial(_linearised(model), t=t0, k=values)
    here = at(state)
    if here is None:
        raise InputError("the equations cannot be evaluated at x0: the result is not finite")
    found = _worst(model, here)
    if found is None:
        return state
    nearest = _nearest(model, at, state)
    if project and nearest is not None:
        return nearest
    problem = f"inconsistent start: {found[0]} is violated by {found[1]:.3g}"
    if nearest is None:
        raise InputError(f"{problem}, and no consistent start was found nearby")
    shown = ", ".join(f"{name} = {value:.9g}" for name, value in zip(model.states[:12], nearest[:12], strict=True))
    more = ", ..." if model.n > 12 else ""
    raise InputError(f"{problem}; a consistent start nearby is ({shown}{more}); pass project=True to start there")


def algebraic_projection(
    model: PortHamiltonian, x: np.ndarray, t: float, k: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the derivatives of the projected initial state with respect to x0 and k, at a consistent state."""
    n, here = model.n, _linearised(model)(x, t, k)
    assert here is not None  # checked before
    rows = _null_rows(here.E)
    if not len(rows):
        return np.eye(n), np.zeros((n, k.size))
    d = model.descriptor
    scaled_rows, columns = _equilibrated(here.E)
    xdot = columns * np.linalg.lstsq(scaled_rows[:, None] * here.E * columns, scaled_rows * here.f, rcond=RANK)[0]
    by_k = np.array(ca.Function("f", [d.x, d.xdot, d.t, d.k], [-ca.jacobian(d.residual, d.k)])(x, xdot, t, k))
    within = _null_rows(here.E.T).T
    enough = np.linalg.matrix_rank(rows @ here.slope @ within) == len(rows)
    directions = within if enough else np.eye(n)
    inverse = directions @ _shortest(rows, here.slope, directions) @ rows
    return np.eye(n) - inverse @ here.slope, -inverse @ by_k


@dataclass(frozen=True)
class Linearised:
    """Linearization of ``E x' = f``: E, f, ``d(f - E x')/dx`` at the least-squares x', and the tolerance of f."""

    E: np.ndarray
    f: np.ndarray
    slope: np.ndarray
    allowed: np.ndarray


def _linearised(model: PortHamiltonian) -> Callable[..., Linearised | None]:
    d, s = model.descriptor, model.structure
    at = [d.x, d.t, d.k]
    right = ca.densify(ca.substitute(-d.residual, d.xdot, ca.SX.zeros(model.n)))
    terms = ca.fabs(s.J - s.R) @ ca.fabs(s.z) + ca.fabs(s.B - s.P) @ ca.fabs(d.u) + ca.fabs(s.r)
    bound = UNIT * roundoff_bound(ca.Function("f", at, [right]), at, [ca.SX.zeros(a.numel()) for a in at])
    first = ca.Function("first", at, [s.E, right, TOLERANCE * terms + bound])
    second = ca.Function("second", [d.x, d.xdot, d.t, d.k], [-ca.jacobian(d.residual, d.x)])

    def linearised(x: np.ndarray, t: float, k: np.ndarray) -> Linearised | None:
        E, f, allowed = (np.array(value) for value in first(x, t, k))
        if not all(np.all(np.isfinite(value)) for value in (E, f, allowed)):
            return None
        rows, columns = _equilibrated(E)
        xdot = columns * np.linalg.lstsq(rows[:, None] * E * columns, rows * f.ravel(), rcond=RANK)[0]
        # the null space of E depends on x: d(w^T f) = w^T d(f - E x')
        slope = np.array(second(x, xdot, t, k))
        return Linearised(E, f.ravel(), slope, allowed.ravel() + TOLERANCE * np.abs(slope) @ np.abs(x))

    return linearised


def _equilibrated(E: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return row and column factors that equilibrate E, so that small masses keep their rank."""
    rows, columns = np.ones(E.shape[0]), np.ones(E.shape[1])
    for _ in range(3):
        scaled = np.abs(rows[:, None] * E * columns)
        rows /= np.where(scaled.any(axis=1), scaled.max(axis=1), 1.0)
        scaled = np.abs(rows[:, None] * E * columns)
        columns /= np.where(scaled.any(axis=0), scaled.max(axis=0), 1.0)
    return rows, columns


def _null_rows(E: np.ndarray) -> np.ndarray:
    """Return a basis of the left null space of E as rows; zero rows of E contribute unit vectors."""
    zero = ~E.any(axis=1)
    rest = np.flatnonzero(~zero)
    if not rest.size:
        return np.eye(E.shape[0])
    rows, columns = _equilibrated(E)
    left, values, _ = np.linalg.svd(rows[rest, None] * E[rest] * columns)
    null = np.zeros((rest.size - int((values > RANK).sum()), E.shape[0]))
    null[:, rest] = (rows[rest, None] * left[:, rest.size - null.shape[0] :]).T
    return np.vstack([np.eye(E.shape[0])[zero], null / np.abs(null).max(axis=1, initial=0.0, keepdims=True)])


def _worst(model: PortHamiltonian, here: Linearised) -> tuple[str, float] | None:
    """Return the label and residual of the worst violated algebraic equation, or None."""
    rows = _null_rows(here.E)
    gap, allowed = rows @ here.f, np.abs(rows) @ here.allowed
    violated = np.abs(gap) > allowed
    if not violated.any():
        return None
    i = int(np.argmax(np.where(violated, np.abs(gap), 0.0)))
    of = int(np.argmax(np.abs(rows[i])))
    what = "algebraic equation" if np.count_nonzero(rows[i]) == 1 else "a combination of equations, mainly equation"
    return f"{what} {of} (row of '{model.states[of]}')", float(gap[i])


def _nearest(model: PortHamiltonian, at: Callable[[np.ndarray], Linearised | None], x: np.ndarray) -> np.ndarray | None:
    """Return a consistent state by Gauss-Newton steps in the algebraic states, then in all states; None if none."""
    for within_algebraic in (True, False):
        state, here = x, at(x)
        for _ in range(50):
            if here is None or not np.all(np.isfinite(here.slope)):
                break
            rows = _null_rows(here.E)
            directions = _null_rows(here.E.T).T if within_algebraic else np.eye(model.n)
            step = directions @ _shortest(rows, here.slope, directions) @ (rows @ here.f)
            state = state - step
            here = at(state)
            if np.abs(step).max() <= 1e-15 * np.abs(state).max():
                break
        if here is not None and _worst(model, here) is None:
            return state
    return None


def _shortest(rows: np.ndarray, slope: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Return the pseudo-inverse of ``rows jacobian directions``, with a rank tolerance relative to its terms."""
    left, values, right = np.linalg.svd(rows @ slope @ directions, full_matrices=False)
    size = (np.abs(rows) @ np.abs(slope) @ np.abs(directions)).max(initial=0.0)
    inverse = np.where(values > RANK * size, 1.0 / np.where(values > 0, values, 1.0), 0.0)
    return np.asarray((right.T * inverse) @ left.T)
