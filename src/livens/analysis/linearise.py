"""Linearisation about an equilibrium: eigenvalues and modes of unconstrained and constrained models."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import scipy.linalg

from livens.errors import InputError
from livens.expressions.numbers import number, vector
from livens.models.descriptor import DescriptorModel
from livens.models.hamiltonian.model import Hamiltonian
from livens.models.model import Model
from livens.models.problem import Problem
from livens.models.summed import dynamics
from livens.models.system import System

#: Tolerance of the force residual at an equilibrium, relative to the largest force terms in the balance.
_BALANCED = 1e-8
#: Rank tolerance: singular values below this fraction of the largest are zero.
_RANK = 1e-10
#: Round-off bound of a modal stiffness in units of the machine epsilon times the norm of the stiffness matrix.
_ROUNDING = 100


@dataclass(frozen=True)
class Linearisation:
    """Linear system ``E w' = A w`` about an equilibrium, with its eigenvalues and modes.

    Every eigenvalue belongs to a motion ``mode e^(eigenvalue t)`` of the coordinates (the states). Eigenvalues are
    sorted by magnitude and contain both values of complex pairs. Infinite eigenvalues, which occur with zero masses,
    are omitted.

    Parameters
    ----------
    coordinates : tuple of str
        Names of the coordinates (the states).
    equilibrium : ndarray of shape (n,)
        Coordinates (states) of the equilibrium.
    multipliers : ndarray of shape (m,)
        Lagrange multipliers at the equilibrium.
    eigenvalues : ndarray of complex
        Finite eigenvalues, in radians per second.
    modes : ndarray of shape (n, n_eigenvalues)
        Mode shapes of the coordinates, one column for each eigenvalue.
    E : ndarray
        Matrix of the derivatives.
    A : ndarray
        System matrix.
    basis : ndarray of shape (n, n_free)
        Null space of the constraint Jacobian, one column for each free direction.
    """

    coordinates: tuple[str, ...]
    equilibrium: np.ndarray
    multipliers: np.ndarray
    eigenvalues: np.ndarray
    modes: np.ndarray
    E: np.ndarray
    A: np.ndarray
    basis: np.ndarray

    @property
    def frequencies(self) -> np.ndarray:
        """Natural frequencies in hertz, one for each complex pair of eigenvalues."""
        return np.array([abs(value) / (2 * np.pi) for value in self.eigenvalues if value.imag > 0])

    @property
    def damping_ratios(self) -> np.ndarray:
        """Damping ratios of the oscillations, in the order of `frequencies`; 1 is critical damping."""
        return np.array([0.0 - value.real / abs(value) for value in self.eigenvalues if value.imag > 0])

    @property
    def stable(self) -> bool:
        """True if no eigenvalue has a positive real part beyond round-off."""
        size = np.abs(self.eigenvalues).max(initial=0.0)
        return bool(np.all(self.eigenvalues.real <= 1e-7 * size))

    def mode(self, number: int) -> np.ndarray:
        """Return a mode shape, normalised to a largest displacement of 1.

        Parameters
        ----------
        number : int
            Index of the oscillation, in the order of `frequencies`; 0 is the slowest.

        Returns
        -------
        ndarray of shape (n,)
            Displacements of the coordinates.

        Raises
        ------
        InputError
            If there is no oscillation with this index.
        """
        swinging = np.flatnonzero(self.eigenvalues.imag > 0)
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or not 0 <= number < swinging.size:
            raise InputError(f"modes are numbered from 0 to {swinging.size - 1}, got {number!r}")
        shape = self.modes[:, swinging[number]]
        return np.asarray((shape / shape[np.argmax(np.abs(shape))]).real)

    def __str__(self) -> str:
        lines = [f"equilibrium that is {'stable' if self.stable else 'not stable'} to first order"]
        for i, (frequency, ratio) in enumerate(zip(self.frequencies, self.damping_ratios, strict=True)):
            lines.append(f"  oscillation {i}: {frequency:.6g} Hz, damping ratio {ratio:.3g}")
        for value in self.eigenvalues[self.eigenvalues.imag == 0]:
            lines.append(f"  exponent {value.real:.6g} per second")
        return "\n".join(lines)


def linearise(
    model: Model | Problem,
    q0: Any = None,
    *,
    x0: Any = None,
    parameters: Mapping[str, Any] | None = None,
    t: float = 0.0,
    find: bool = True,
) -> Linearisation:
    """Linearise a model about an equilibrium and return its eigenvalues and modes.

    For constrained models the geometric stiffness of the constraint forces is included. Masses may be zero.

    Parameters
    ----------
    model : Model or Problem
        Model to linearise. A `Problem` provides its initial values as the default of `q0` or `x0`.
    q0 : array_like of shape (n,), optional
        Coordinates of the equilibrium, or an initial guess of them.
    x0 : array_like of shape (n,), optional
        States of the equilibrium of a first-order model, or an initial guess of them.
    parameters : dict of str to float, optional
        Parameter values that differ from the defaults.
    t : float, default 0.0
        Time at which a time-dependent model is linearised.
    find : bool, default True
        Search for the nearest equilibrium by Newton's method. Otherwise `q0` (`x0`) must be an equilibrium.

    Returns
    -------
    Linearisation
        Equilibrium, eigenvalues, modes and matrices.

    Raises
    ------
    InputError
        If no equilibrium is found, if the constraints depend on time, or if the model has no linearisation.

    Examples
    --------

    >>> import livens as lv
    >>> pendulum = lv.problems.load("simple-pendulum")
    >>> about = lv.linearise(pendulum, q0=[0.1, -1.0])
    >>> about.equilibrium.round(6), about.frequencies.round(6)  # sqrt(g/l)/(2 pi)
    (array([ 0., -1.]), array([0.498488]))
    """
    problem = model if isinstance(model, Problem) else None
    model = problem.system if problem is not None else model
    if not isinstance(model, Model):
        raise InputError(f"linearise needs a model, such as a System, or a Problem, got {model!r}")
    if parameters is not None and not isinstance(parameters, Mapping):
        raise InputError(f"parameters must map names to values, got {parameters!r}")
    own = dict(problem.parameters) if problem is not None else {}
    k = model.parameter_vector({**own, **(parameters or {})})
    given = problem.start_values if problem is not None else {}
    time = number("t", t)
    if isinstance(model, System):
        return _of_system(model, _start(model, "q0", q0, given), k, time, find)
    if isinstance(model, Hamiltonian):
        return _of_hamiltonian(model, _start(model, "q0", q0, given), k, time, find)
    if isinstance(model, DescriptorModel):
        return _of_descriptor(model, _start(model, "x0", x0, given), k, time, find)
    raise InputError(f"a {model.kind} cannot be linearised: write it as a System")


def _start(model: Model, name: str, value: Any, given: Mapping[str, Any]) -> np.ndarray:
    return vector(name, given.get(name) if value is None else value, model.coordinates, "coordinate")


def _of_system(system: System, q: np.ndarray, k: np.ndarray, t: float, find: bool) -> Linearisation:
    d, n, m = dynamics(system), system.n, system.m
    lam = ca.SX.sym("lam", m)
    still = ca.SX.zeros(n)
    momentum = d.fibre_derivative
    force = ca.gradient(d.T - d.V, d.q) - ca.gradient(d.R, d.v) + d.F - ca.jtimes(momentum, d.q, d.v)
    if m:
        force = force - d.G.T @ lam
    if ca.depends_on(d.g, d.t) if m else False:
        raise InputError("time-dependent constraints have no equilibrium to linearise about")
    rest, slopes = ca.substitute(
        [force, ca.horzcat(ca.jacobian(force, d.q), ca.jacobian(force, d.v), ca.jacobian(momentum, d.v))],
        [d.v],
        [still],
    )
    # the largest terms of the force balance are the scale of its residual
    terms = [ca.gradient(d.V, d.q), d.F, ca.gradient(d.T, d.q)]
    sizes = sum((ca.fabs(ca.substitute(term, d.v, still)) for term in terms), ca.SX.zeros(n))
    balance = ca.vertcat(rest, d.g)
    unknown = ca.vertcat(d.q, lam)
    at = ca.Function("balance", [unknown, d.t, d.k], [ca.densify(balance), ca.jacobian(balance, unknown), sizes])
    G_at = ca.Function("G", [d.q, d.t, d.k], [ca.densify(d.G)])
    x = np.concatenate([q, np.zeros(m)])
    if m:  # least-squares multipliers at the initial guess
        G = np.array(G_at(q, t, k))
        x[n:] = np.linalg.pinv(G.T, rcond=_RANK) @ np.array(at(x, t, k)[0]).ravel()[:n]
    x = _balanced(at, x, t, k, find, system.constraint_names)
    G = np.array(G_at(x[:n], t, k)) if m else np.zeros((0, n))
    matrices = np.array(ca.Function("slopes", [unknown, d.t, d.k], [ca.densify(slopes)])(x, t, k))
    K, C, M = -matrices[:, :n], -matrices[:, n : 2 * n], matrices[:, 2 * n :]
    free = scipy.linalg.null_space(G, rcond=_RANK) if m else np.eye(n)
    found = _solved(system.coordinates, x[:n], x[n:], *_first_order(K, C, M, free), free, len(free.T))
    return dataclasses.replace(found, eigenvalues=_without_rounding(found, K, C, M))


def _first_order(K: np.ndarray, C: np.ndarray, M: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return E and A of displacements and velocities along the free directions."""
    K, C, M = (free.T @ part @ free for part in (K, C, M))
    none, one = np.zeros_like(K), np.eye(len(K))
    return np.block([[one, none], [none, M]]), np.block([[none, one], [-K, -C]])


def _without_rounding(found: Linearisation, K: np.ndarray, C: np.ndarray, M: np.ndarray) -> np.ndarray:
    """Return the eigenvalues, with eigenvalues below the round-off bound of the stiffness set to zero.

    A rigid-body mode has a double eigenvalue zero. Round-off splits it into a pair of the size of its square root: a
    spurious slow oscillation or instability.
    """
    values = found.eigenvalues.copy()
    rounding = _ROUNDING * np.finfo(float).eps * np.linalg.norm(found.basis.T @ K @ found.basis)
    for i, (value, shape) in enumerate(zip(values, found.modes.T, strict=True)):
        inertia, damping = (abs(shape.conj() @ part @ shape) for part in (M, C))
        if abs(value) ** 2 * inertia + abs(value) * damping <= rounding * np.linalg.norm(shape) ** 2:
            values[i] = 0.0
    return np.asarray(values)


def _of_hamiltonian(model: Hamiltonian, q: np.ndarray, k: np.ndarray, t: float, find: bool) -> Linearisation:
    n = model.n
    state, rates = ca.vertcat(model.q, model.p), ca.vertcat(model.velocity, model.momentum_rate)
    rates = ca.substitute(rates, model.v, model.velocity)
    at = ca.Function("f", [state, model.t, model.k], [ca.densify(rates), ca.jacobian(rates, state), ca.fabs(rates)])
    x = _balanced(at, np.concatenate([q, np.zeros(n)]), t, k, find, ())
    A = np.array(at(x, t, k)[1])
    return _solved(model.coordinates, x, np.zeros(0), np.eye(2 * n), A, np.eye(2 * n), n)


def _of_descriptor(model: DescriptorModel, x: np.ndarray, k: np.ndarray, t: float, find: bool) -> Linearisation:
    d = model.descriptor
    still = ca.substitute(d.residual, d.xdot, ca.SX.zeros(d.x.numel()))
    slope = ca.substitute(ca.jacobian(d.residual, d.xdot), d.xdot, ca.SX.zeros(d.x.numel()))
    at = ca.Function("f", [d.x, d.t, d.k], [ca.densify(still), ca.jacobian(still, d.x), ca.fabs(still)])
    start = np.concatenate([x, np.zeros(d.x.numel() - x.size)])
    found = _balanced(at, start, t, k, find, ())
    E = np.array(ca.Function("E", [d.x, d.t, d.k], [ca.densify(slope)])(found, t, k))
    A = -np.array(ca.densify(at(found, t, k)[1]))
    names = (*model.coordinates, *model.algebraic)
    return _solved(names, found, np.zeros(0), E, A, np.eye(len(E)), len(E))


def _balanced(at: Any, x: np.ndarray, t: float, k: np.ndarray, find: bool, names: Any) -> np.ndarray:
    """Solve for the equilibrium by Newton's method with minimum-norm steps, which admit redundant constraints."""
    for _ in range(100 if find else 0):
        rest, slope = (np.array(ca.densify(part)) for part in at(x, t, k)[:2])
        if not (np.isfinite(rest).all() and np.isfinite(slope).all()):
            raise InputError("the forces are not finite near the initial guess: no equilibrium was found")
        step = np.linalg.lstsq(slope, rest.ravel(), rcond=1e-13)[0]
        # damped Newton: halve the step until the residual decreases
        tried = (x - 0.5**i * step for i in range(12))
        better = (new for new in tried if np.linalg.norm(np.array(at(new, t, k)[0])) < np.linalg.norm(rest))
        new = next(better, None)
        if new is None:
            break
        x = new
    rest, slope, sizes = (np.array(ca.densify(part)) for part in at(x, t, k))
    size = 1.0 + sizes.max(initial=0.0)
    # in stiff systems the rounding of coordinates limits the residual
    rounding = _ROUNDING * np.finfo(float).eps * (np.abs(slope) @ np.abs(x)).max(initial=0.0)
    if not np.abs(rest).max(initial=0.0) <= _BALANCED * size + rounding:
        worst = np.abs(rest).max()
        more = "none was found nearby" if find else "pass find=True to search for one nearby"
        raise InputError(f"not an equilibrium: the residual of forces and constraints is {worst:.3g}; {more}")
    return x


def _solved(
    names: Any, x: np.ndarray, lam: np.ndarray, E: np.ndarray, A: np.ndarray, free: np.ndarray, shown: int
) -> Linearisation:
    values, vectors = scipy.linalg.eig(A, E, homogeneous_eigvals=True)
    # zero masses lead to infinite eigenvalues
    scale = np.hypot(np.abs(values[0]), np.abs(values[1]))
    finite = np.abs(values[1]) > 1e-12 * np.where(scale > 0, scale, 1.0)
    eigenvalues, vectors = values[0][finite] / values[1][finite], vectors[:, finite]
    order = np.lexsort((-eigenvalues.imag, eigenvalues.real.round(12), np.abs(eigenvalues).round(9)))
    modes = free @ vectors[:shown, :] if free.shape[1] == shown else (free @ vectors)[:shown]
    return Linearisation(
        tuple(names), x[: len(names)], lam, eigenvalues[order], modes[:, order], E, A, free[: len(names)]
    )
