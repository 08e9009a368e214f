"""Linearisation about an equilibrium: eigenvalues, modes and state space of unconstrained and constrained models."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
import scipy.linalg

from livens.analysis.state_space import InputsAndOutputs, to_control
from livens.errors import InputError, explain_call_errors
from livens.models.base import Model
from livens.models.descriptor import DescriptorModel
from livens.models.equations_of_motion import equations_of_motion
from livens.models.external_force import require_force_expressions
from livens.models.hamiltonian.model import Hamiltonian
from livens.models.problem import Problem
from livens.models.system import System
from livens.types import ArrayLike, FloatArray, ModelFunction
from livens.validation import check_number, check_vector

if TYPE_CHECKING:
    import control

#: Tolerance of the force residual at an equilibrium, relative to the largest force terms in the balance.
_EQUILIBRIUM_TOLERANCE = 1e-8
#: Rank tolerance: singular values below this fraction of the largest are zero.
_RANK_TOLERANCE = 1e-10
#: Round-off bound of a modal stiffness in units of the machine epsilon times the norm of the stiffness matrix.
_ROUND_OFF_FACTOR = 100


@dataclass(frozen=True)
class Linearisation:
    """Linear system ``E w' = A w + B u``, ``y = C w + D u`` about an equilibrium, with its eigenvalues and modes.

    The state w of a `System` contains the displacements and velocities along the free directions (`basis`). That of a
    `Hamiltonian` contains the deviations of q and p, that of a first-order model those of its states. Inputs u and
    outputs y are deviations from their values at the equilibrium.

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
    B : ndarray of shape (n_states, n_inputs)
        Input matrix; no columns without `inputs`.
    C : ndarray of shape (n_outputs, n_states)
        Output matrix; no rows without `outputs`.
    D : ndarray of shape (n_outputs, n_inputs)
        Feedthrough matrix.
    inputs, outputs : tuple of str
        Labels of the inputs and outputs.
    """

    coordinates: tuple[str, ...]
    equilibrium: np.ndarray
    multipliers: np.ndarray
    eigenvalues: np.ndarray
    modes: np.ndarray
    E: np.ndarray
    A: np.ndarray
    basis: np.ndarray
    B: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    C: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    D: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()

    def to_control(self) -> control.StateSpace:
        """Return the linear system as a `control.StateSpace` of the package python-control.

        Returns
        -------
        control.StateSpace
            State space with the labels of inputs and outputs (dots become underscores). Variables without inertia
            are eliminated.

        Raises
        ------
        MissingExtraError
            If python-control is not installed.
        InputError
            If variables without inertia cannot be eliminated.

        Examples
        --------
        >>> import livens as lv
        >>> mass = lv.System(
        ...     "x",
        ...     kinetic=lambda v: v[0] ** 2,
        ...     potential=lambda q: q[0] ** 2,
        ...     forces=lambda k: [k.u],
        ...     parameters=dict(u=0.0),
        ... )
        >>> about = lv.linearise(mass, q0=[0.0], inputs=["u"], outputs=["x"])
        >>> about.B.ravel(), about.C.ravel()
        (array([0., 1.]), array([1., 0.]))
        """
        return to_control(self)

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
        oscillating = np.flatnonzero(self.eigenvalues.imag > 0)
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or not 0 <= number < oscillating.size:
            raise InputError(f"modes are numbered from 0 to {oscillating.size - 1}, got {number!r}")
        shape = self.modes[:, oscillating[number]]
        return np.asarray((shape / shape[np.argmax(np.abs(shape))]).real)

    def __str__(self) -> str:
        lines = [f"equilibrium that is {'stable' if self.stable else 'not stable'} to first order"]
        for i, (frequency, ratio) in enumerate(zip(self.frequencies, self.damping_ratios, strict=True)):
            lines.append(f"  oscillation {i}: {frequency:.6g} Hz, damping ratio {ratio:.3g}")
        for value in self.eigenvalues[self.eigenvalues.imag == 0]:
            lines.append(f"  exponent {value.real:.6g} per second")
        return "\n".join(lines)


@explain_call_errors
def linearise(
    model: Model | Problem,
    q0: ArrayLike | None = None,
    *,
    x0: ArrayLike | None = None,
    parameters: Mapping[str, object] | None = None,
    t: float = 0.0,
    find: bool = True,
    inputs: Sequence[str] = (),
    outputs: Sequence[str | ModelFunction] = (),
) -> Linearisation:
    """Linearise a model about an equilibrium and return its eigenvalues, modes and state space.

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
    inputs : sequence of str, default ()
        Names of parameters that are inputs u, such as ``["motor.torque"]``. Entries of an array are inputs each.
    outputs : sequence of str or callable, default ()
        Outputs y: names of coordinates, of outputs of a mechanism (``"hinge.angle"``) or of observables, or functions
        of the state, written like observables.

    Returns
    -------
    Linearisation
        Equilibrium, eigenvalues, modes and matrices.

    Raises
    ------
    InputError
        If no equilibrium is found, if the constraints depend on time or on an input, if an input or output is unknown,
        or if the model has no linearisation.

    Examples
    --------

    >>> import livens as lv
    >>> pendulum = lv.problems.load("simple-pendulum")
    >>> about = lv.linearise(pendulum, q0=[0.1, -1.0])
    >>> about.equilibrium.round(6), about.frequencies.round(6)  # sqrt(g/l)/(2 pi)
    (array([ 0., -1.]), array([0.498488]))
    """
    problem = model if isinstance(model, Problem) else None
    model = problem.model if problem is not None else model
    if not isinstance(model, Model):
        raise InputError(f"linearise needs a model, such as a System, or a Problem, got {model!r}")
    if parameters is not None and not isinstance(parameters, Mapping):
        raise InputError(f"parameters must map names to values, got {parameters!r}")
    require_force_expressions(model, "linearise")
    problem_parameters = dict(problem.parameters) if problem is not None else {}
    k = model.parameter_vector({**problem_parameters, **(parameters or {})})
    initial_values = problem.start_values if problem is not None else {}
    time = check_number("t", t)
    ports = InputsAndOutputs(model, inputs, outputs)
    if isinstance(model, System):
        return _linearise_system(model, _initial_vector(model, "q0", q0, initial_values), k, time, find, ports)
    if isinstance(model, Hamiltonian):
        return _linearise_hamiltonian(model, _initial_vector(model, "q0", q0, initial_values), k, time, find, ports)
    if isinstance(model, DescriptorModel):
        return _linearise_descriptor(model, _initial_vector(model, "x0", x0, initial_values), k, time, find, ports)
    raise InputError(f"a {model.type_label} cannot be linearised: write it as a System")


def _initial_vector(
    model: Model, name: str, value: ArrayLike | None, initial_values: Mapping[str, FloatArray]
) -> np.ndarray:
    return check_vector(name, initial_values.get(name) if value is None else value, model.coordinates, "coordinate")


def _linearise_system(
    system: System, q: np.ndarray, k: np.ndarray, t: float, find: bool, ports: InputsAndOutputs
) -> Linearisation:
    d, n, m = equations_of_motion(system), system.n, system.m
    lam = ca.SX.sym("lam", m)
    zero_velocity = ca.SX.zeros(n)
    momentum = d.fibre_derivative
    force = ca.gradient(d.T - d.V, d.q) - ca.gradient(d.R, d.v) + d.F - ca.jtimes(momentum, d.q, d.v)
    if m:
        force = force - d.G.T @ lam
    if ca.depends_on(d.g, d.t) if m else False:
        raise InputError("time-dependent constraints have no equilibrium to linearise about")
    residual, jacobians = ca.substitute(
        [force, ca.horzcat(ca.jacobian(force, d.q), ca.jacobian(force, d.v), ca.jacobian(momentum, d.v))],
        [d.v],
        [zero_velocity],
    )
    # the largest terms of the force balance are the scale of its residual
    force_terms = [ca.gradient(d.V, d.q), d.F, ca.gradient(d.T, d.q)]
    sizes = sum((ca.fabs(ca.substitute(term, d.v, zero_velocity)) for term in force_terms), ca.SX.zeros(n))
    balance = ca.vertcat(residual, d.g)
    unknown = ca.vertcat(d.q, lam)
    evaluate = ca.Function("balance", [unknown, d.t, d.k], [ca.densify(balance), ca.jacobian(balance, unknown), sizes])
    G_at = ca.Function("G", [d.q, d.t, d.k], [ca.densify(d.G)])
    x = np.concatenate([q, np.zeros(m)])
    if m:  # least-squares multipliers at the initial guess
        G = np.array(G_at(q, t, k))
        x[n:] = np.linalg.pinv(G.T, rcond=_RANK_TOLERANCE) @ np.array(evaluate(x, t, k)[0]).ravel()[:n]
    x = _find_equilibrium(evaluate, x, t, k, find, system.constraint_names)
    G = np.array(G_at(x[:n], t, k)) if m else np.zeros((0, n))
    matrices = np.array(ca.Function("slopes", [unknown, d.t, d.k], [ca.densify(jacobians)])(x, t, k))
    K, C, M = -matrices[:, :n], -matrices[:, n : 2 * n], matrices[:, 2 * n :]
    free = scipy.linalg.null_space(G, rcond=_RANK_TOLERANCE) if m else np.eye(n)
    linearisation = _solve_eigenproblem(
        system.coordinates, x[:n], x[n:], *_first_order_matrices(K, C, M, free), free, len(free.T)
    )
    matrices_of_ports = ports.matrices_of_system(d, x[:n], lam, x[n:], force, t, k, free)
    eigenvalues = _remove_round_off(linearisation, K, C, M)
    return dataclasses.replace(linearisation, eigenvalues=eigenvalues, **matrices_of_ports)


def _first_order_matrices(
    K: np.ndarray, C: np.ndarray, M: np.ndarray, free: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return E and A of displacements and velocities along the free directions."""
    K, C, M = (free.T @ part @ free for part in (K, C, M))
    zero, identity = np.zeros_like(K), np.eye(len(K))
    return np.block([[identity, zero], [zero, M]]), np.block([[zero, identity], [-K, -C]])


def _remove_round_off(linearisation: Linearisation, K: np.ndarray, C: np.ndarray, M: np.ndarray) -> np.ndarray:
    """Return the eigenvalues, with eigenvalues below the round-off bound of the stiffness set to zero.

    A rigid-body mode has a double eigenvalue zero. Round-off splits it into a pair of the size of its square root: a
    spurious slow oscillation or instability.
    """
    values = linearisation.eigenvalues.copy()
    rounding = _ROUND_OFF_FACTOR * np.finfo(float).eps * np.linalg.norm(linearisation.basis.T @ K @ linearisation.basis)
    for i, (value, shape) in enumerate(zip(values, linearisation.modes.T, strict=True)):
        inertia, damping = (abs(shape.conj() @ part @ shape) for part in (M, C))
        if abs(value) ** 2 * inertia + abs(value) * damping <= rounding * np.linalg.norm(shape) ** 2:
            values[i] = 0.0
    return np.asarray(values)


def _linearise_hamiltonian(
    model: Hamiltonian, q: np.ndarray, k: np.ndarray, t: float, find: bool, ports: InputsAndOutputs
) -> Linearisation:
    n = model.n
    state, rates = ca.vertcat(model.q, model.p), ca.vertcat(model.velocity, model.momentum_rate)
    rates = ca.substitute(rates, model.v, model.velocity)
    evaluate = ca.Function(
        "f", [state, model.t, model.k], [ca.densify(rates), ca.jacobian(rates, state), ca.fabs(rates)]
    )
    x = _find_equilibrium(evaluate, np.concatenate([q, np.zeros(n)]), t, k, find, ())
    A = np.array(evaluate(x, t, k)[1])
    linearisation = _solve_eigenproblem(model.coordinates, x, np.zeros(0), np.eye(2 * n), A, np.eye(2 * n), n)
    dependent = {"v": model.velocity}
    return dataclasses.replace(linearisation, **ports.matrices(state, rates, x, t, k, model.t, model.k, dependent))


def _linearise_descriptor(
    model: DescriptorModel, x: np.ndarray, k: np.ndarray, t: float, find: bool, ports: InputsAndOutputs
) -> Linearisation:
    d = model.descriptor
    residual = ca.substitute(d.residual, d.xdot, ca.SX.zeros(d.x.numel()))
    rate_jacobian = ca.substitute(ca.jacobian(d.residual, d.xdot), d.xdot, ca.SX.zeros(d.x.numel()))
    evaluate = ca.Function("f", [d.x, d.t, d.k], [ca.densify(residual), ca.jacobian(residual, d.x), ca.fabs(residual)])
    initial_guess = np.concatenate([x, np.zeros(d.x.numel() - x.size)])
    equilibrium = _find_equilibrium(evaluate, initial_guess, t, k, find, ())
    E = np.array(ca.Function("E", [d.x, d.t, d.k], [ca.densify(rate_jacobian)])(equilibrium, t, k))
    A = -np.array(ca.densify(evaluate(equilibrium, t, k)[1]))
    names = (*model.coordinates, *model.algebraic_names)
    linearisation = _solve_eigenproblem(names, equilibrium, np.zeros(0), E, A, np.eye(len(E)), len(E))
    return dataclasses.replace(linearisation, **ports.matrices(d.x, -residual, equilibrium, t, k, d.t, d.k, {}))


def _find_equilibrium(
    evaluate: ca.Function, x: np.ndarray, t: float, k: np.ndarray, find: bool, names: object
) -> np.ndarray:
    """Solve for the equilibrium by Newton's method with minimum-norm steps, which admit redundant constraints."""
    for _ in range(100 if find else 0):
        residual, jacobian = (np.array(ca.densify(part)) for part in evaluate(x, t, k)[:2])
        if not (np.isfinite(residual).all() and np.isfinite(jacobian).all()):
            raise InputError("the forces are not finite near the initial guess: no equilibrium was found")
        step = np.linalg.lstsq(jacobian, residual.ravel(), rcond=1e-13)[0]
        # damped Newton: halve the step until the residual decreases
        candidates = (x - 0.5**i * step for i in range(12))
        improving = (
            new for new in candidates if np.linalg.norm(np.array(evaluate(new, t, k)[0])) < np.linalg.norm(residual)
        )
        new = next(improving, None)
        if new is None:
            break
        x = new
    residual, jacobian, sizes = (np.array(ca.densify(part)) for part in evaluate(x, t, k))
    size = 1.0 + sizes.max(initial=0.0)
    # in stiff systems the rounding of coordinates limits the residual
    rounding = _ROUND_OFF_FACTOR * np.finfo(float).eps * (np.abs(jacobian) @ np.abs(x)).max(initial=0.0)
    if not np.abs(residual).max(initial=0.0) <= _EQUILIBRIUM_TOLERANCE * size + rounding:
        worst = np.abs(residual).max()
        advice = "none was found nearby" if find else "pass find=True to search for one nearby"
        raise InputError(f"not an equilibrium: the residual of forces and constraints is {worst:.3g}; {advice}")
    return x


def _solve_eigenproblem(
    names: Any, x: np.ndarray, lam: np.ndarray, E: np.ndarray, A: np.ndarray, free: np.ndarray, n_shown: int
) -> Linearisation:
    values, vectors = scipy.linalg.eig(A, E, homogeneous_eigvals=True)
    # zero masses lead to infinite eigenvalues
    scale = np.hypot(np.abs(values[0]), np.abs(values[1]))
    finite = np.abs(values[1]) > 1e-12 * np.where(scale > 0, scale, 1.0)
    eigenvalues, vectors = values[0][finite] / values[1][finite], vectors[:, finite]
    order = np.lexsort((-eigenvalues.imag, eigenvalues.real.round(12), np.abs(eigenvalues).round(9)))
    modes = free @ vectors[:n_shown, :] if free.shape[1] == n_shown else (free @ vectors)[:n_shown]
    return Linearisation(
        tuple(names), x[: len(names)], lam, eigenvalues[order], modes[:, order], E, A, free[: len(names)]
    )
