"""Structure defects of one step: symplecticity, Poisson property and reversibility at a state.

The step map is differentiated exactly: from ``r(x; z) = 0`` follows ``dx/dz = -(dr/dx)^-1 dr/dz`` for the unknowns x of
a step from the state z, with derivatives by CasADi.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
import scipy.linalg as sl

from livens import schemes
from livens.engine.stepper import step_inputs
from livens.engine.steppers.reference import ReferenceSolver
from livens.errors import InputError, IntegrationError, explain_call_errors
from livens.models.base import InitialState
from livens.models.equations_of_motion import equations_of_motion
from livens.models.hamiltonian.model import Hamiltonian
from livens.models.system import System
from livens.schemes.core.scheme import Scheme
from livens.schemes.core.step_equations import StepGraph
from livens.schemes.discretization.element_scheme import ElementScheme
from livens.schemes.discretization.rigid_body_equations import BODY_ANGULAR_MOMENTA
from livens.types import ArrayLike
from livens.validation import check_number, check_positive

if TYPE_CHECKING:
    from livens.models.poisson.isospectral import IsospectralFlow
    from livens.models.poisson.model import Poisson
    from livens.schemes.scaling.user_defined import UserScaling

#: Scheme variables that a step propagates, or only reports: no functions of (q, p), held fixed in the step map.
_PROPAGATED = {"t", "step_density", "v", "discrete_energy"}
#: Formulations of models in coordinates and momenta.
_WITH_MOMENTA = {"elements", "phase space", "discrete Lagrangian"}


@explain_call_errors
def symplecticity_defect(
    system: System | Hamiltonian,
    scheme: str | Scheme,
    q: ArrayLike,
    v: ArrayLike | None = None,
    h: float | None = None,
    *,
    p: ArrayLike | None = None,
    t: float = 0.0,
    parameters: Mapping[str, object] | None = None,
    scaling: UserScaling | None = None,
) -> float:
    """Return the symplecticity defect ``|DPsi^T J DPsi - J|`` (spectral norm) of the map of one step.

    The map is ``Psi: (q, p) -> (q1, p1)``. The step starts from q and ``p = dT/dv(q, v)``, for a Hamiltonian from q and
    p. A scheme that stores v in addition to p starts from v(q, p), so the mass matrix must be regular. With constraints
    the form is restricted to the tangent space of the constrained phase space: all (dq, dp) with ``G dq = 0`` and
    ``d(G(q) v(q, p)) = 0``. In an orthonormal basis N of it the defect is ``|N^T (DPsi^T J DPsi - J) N|``. The final
    state need not lie in that phase space. A defect at round-off level means symplectic at this state.

    Variables that a scheme recomputes from (q, p) in every step, such as a force, depend on (q, p). Variables that it
    propagates, such as a step density or the initial energy, are held fixed. With a fictive time the map is that of one
    step of it, with `scaling`.

    Parameters
    ----------
    system : System or Hamiltonian
        Model.
    scheme : str or Scheme
        Integration scheme.
    q : array_like of shape (n,)
        Coordinates.
    v : array_like of shape (n,), optional
        Velocities of a system.
    h : float
        Step size.
    p : array_like of shape (n,), optional
        Momenta of a Hamiltonian.
    t : float, default 0.0
        Time.
    parameters : dict of str to float, optional
        Parameter values.
    scaling : optional
        Time scaling, as in `livens.simulate`.

    Returns
    -------
    float
        Symplecticity defect.

    Raises
    ------
    InputError
        If the state of the scheme has independent variables besides (q, p).

    Examples
    --------

    >>> import livens as lv
    >>> pendulum = lv.Hamiltonian("q", kinetic=lambda p: p[0] ** 2 / 2, potential=lambda q: -lv.math.cos(q[0]))
    >>> symplecticity_defect(pendulum, "stormer-verlet", [1.0], p=[0.5], h=0.1) < 1e-15
    True
    """
    _require_momenta(system)
    step = _Step(system, scheme, dict(q0=q, v0=v, p0=p), h, t, parameters, scaling)
    n = len(system.coordinates)
    v_by_q, v_by_p = system.velocity_derivatives(step.initial, step.k)
    D = _phase_space_derivative(step, n, v_by_q, v_by_p)
    J = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
    defect = D.T @ J @ D - J
    if system.constraint_names:
        N = _tangent_basis(system, step, v_by_q, v_by_p)
        defect = N.T @ defect @ N
    return float(np.linalg.norm(defect, 2)) if defect.size else 0.0


def _phase_space_derivative(step: _Step, n: int, v_by_q: np.ndarray, v_by_p: np.ndarray) -> np.ndarray:
    """Return the derivative of the step map of (q, p), with the derivatives of v(q, p)."""
    layout = step.equations.layout
    lift = np.zeros((layout.size, 2 * n))
    lift[layout["q"], :n] = lift[layout["p"], n:] = np.eye(n)
    lift[layout["v"]] = np.hstack([v_by_q, v_by_p])
    if step.scheme_state:
        lift = step.dependent_lift(lift)
        phase_space_rows = np.vstack([lift[layout["q"]], lift[layout["p"]]])
        if not np.allclose(phase_space_rows, np.eye(2 * n), atol=1e-12):
            raise InputError(
                f"the state of scheme '{step.scheme.name}' has independent variables besides (q, p): no map of (q, p)"
            )
    propagated = step.derivative() @ lift
    return np.vstack([propagated[layout["q"]], propagated[layout["p"]]])


def step_derivative(
    model: Any, scheme: str | Scheme, z: np.ndarray, h: float, parameters: Mapping[str, object] | None = None
) -> np.ndarray:
    """Return the Jacobian of the step map of (q, p), or of x, at a state.

    For a model with coordinates z contains q and p (for a System: v), otherwise its first half is x.
    """
    n = len(model.coordinates)
    if "q" not in model.layout:
        step = _Step(model, scheme, dict(x0=z[:n]), h, 0.0, parameters, None)
        part = step.equations.layout["x"]
        return step.derivative()[part, part]
    values = dict(q0=z[:n], v0=z[n:], p0=None) if isinstance(model, System) else dict(q0=z[:n], p0=z[n:])
    step = _Step(model, scheme, values, h, 0.0, parameters, None)
    return _phase_space_derivative(step, n, *model.velocity_derivatives(step.initial, step.k))


@explain_call_errors
def poisson_defect(
    model: Poisson | IsospectralFlow,
    scheme: str | Scheme,
    x: ArrayLike,
    h: float,
    *,
    t: float = 0.0,
    parameters: Mapping[str, object] | None = None,
) -> float:
    """Return the Poisson defect ``|DPsi J(x) DPsi^T - J(Psi(x))|`` (spectral norm) of the map of one step.

    Parameters
    ----------
    model : Poisson or IsospectralFlow
        Model with a Poisson bracket.
    scheme : str or Scheme
        Integration scheme.
    x : array_like of shape (n,)
        State.
    h : float
        Step size.
    t : float, default 0.0
        Time.
    parameters : dict of str to float, optional
        Parameter values.

    Returns
    -------
    float
        Poisson defect; at round-off level the map keeps the bracket at this state.

    Raises
    ------
    InputError
        If the model has no Poisson bracket, or the scheme cannot step it.

    Examples
    --------
    >>> import livens as lv
    >>> top = lv.Spins(1, spin_energy=lambda s: s[0] ** 2 + 2 * s[1] ** 2)
    >>> poisson_defect(top, "spherical-midpoint", [0.6, 0.0, 0.8], h=0.1) < 1e-15
    True
    >>> poisson_defect(top, "gauss-1", [0.6, 0.0, 0.8], h=0.1) > 1e-4
    True
    """
    if not hasattr(model, "structure_matrix"):
        raise InputError(f"a Poisson defect needs a model with a Poisson bracket, got {model!r}")
    step = _Step(model, scheme, dict(x0=x), h, t, parameters, None)
    part = step.equations.layout["x"]
    D = step.derivative()[part, part]
    before, after = (np.array(model.structure_matrix(z[part], step.k)) for z in (step.z, step.final_state))
    return float(np.linalg.norm(D @ before @ D.T - after, 2))


@explain_call_errors
def reversibility_defect(
    system: System | Hamiltonian,
    scheme: str | Scheme,
    q: ArrayLike,
    v: ArrayLike | None = None,
    h: float | None = None,
    *,
    p: ArrayLike | None = None,
    parameters: Mapping[str, object] | None = None,
    scaling: object = None,
) -> float:
    """Return the reversibility defect: step, reverse v and p, step, reverse v and p, compare with the initial state.

    The defect is the largest change of q, v and p, each relative to the larger of its norm and its change in the step.
    It is at round-off level for a symmetric scheme on a reversible system, if the scheme itself can reach the state.
    Time-dependent systems are not supported. For a Hamiltonian the step starts from q and p.

    Parameters
    ----------
    system : System or Hamiltonian
        Autonomous model.
    scheme : str or Scheme
        Integration scheme.
    q : array_like of shape (n,)
        Coordinates.
    v : array_like of shape (n,), optional
        Velocities of a system.
    h : float
        Step size.
    p : array_like of shape (n,), optional
        Momenta of a Hamiltonian.
    parameters : dict of str to float, optional
        Parameter values.
    scaling : optional
        Time scaling, as in `livens.simulate`.

    Returns
    -------
    float
        Reversibility defect.

    Raises
    ------
    InputError
        If the system depends on time.
    """
    if not getattr(system, "autonomous", True):
        raise InputError("reversibility is defined for autonomous systems; this system depends on time")
    _require_momenta(system)
    step = _Step(system, scheme, dict(q0=q, v0=v, p0=p), h, 0.0, parameters, scaling)
    layout = step.equations.layout
    reversed_state = step.reversed_state(step.final_state)
    initial_guess = step.x.copy()
    if isinstance(step.scheme, ElementScheme) and not getattr(system, "frames", ()):
        initial_guess[: len(system.coordinates) * len(step.scheme.unknowns)] *= -1.0
    else:
        initial_guess = step.initial_guess(reversed_state)
    returned = step.reversed_state(step.advance(reversed_state, initial_guess))
    worst = 0.0
    for part in (layout["q"], layout["v"], layout["p"]):
        initial, displacement = step.z[part], step.final_state[part] - step.z[part]
        size = max(float(np.linalg.norm(initial)), float(np.linalg.norm(displacement))) or 1.0
        worst = max(worst, float(np.linalg.norm(returned[part] - initial)) / size)
    return worst


def _require_momenta(system: object) -> None:
    """Raise InputError for models without coordinates and momenta."""
    if not _WITH_MOMENTA & {*getattr(system, "formulations", ())}:
        raise InputError(f"a step map of coordinates and momenta needs a mechanical model, got {system!r}")


class _Step:
    """One step from consistent initial values, solved to round-off with full pivoting."""

    def __init__(
        self,
        system: Any,
        scheme: str | Scheme,
        initial_values: Mapping[str, Any],
        h: float | None,
        t: float,
        parameters: Mapping[str, object] | None,
        scaling: Any,
    ) -> None:
        self.scheme, self._system = schemes.get(scheme), system
        schemes.check_compatible(self.scheme, system)
        if getattr(system, "external_force", None) is not None:
            raise InputError("an external (compiled) force has no derivatives: write the force as an expression")
        self.scheme = self.scheme if scaling is None else self.scheme.with_scaling(scaling)
        self.k = system.parameter_vector(parameters or {})
        self.initial: InitialState = system.initial_state(
            initial_values, self.k, check_number("t", t), project=False, redundant="remove"
        )
        self.equations: StepGraph = self.scheme.equations(system, self.initial.removed_constraints).to_single_graph()
        size = check_positive("h", h)
        self._c = step_inputs(size, self.initial.t, self.k)
        self._stepper = ReferenceSolver(self.equations)
        #: Additional state variables of the scheme.
        self.scheme_state = self.scheme.initial_scheme_state(system, self.initial.values, self.k, self.initial.t, size)
        self.z = self.equations.layout.pack({**self.initial.values, **self.scheme_state})
        self.x = self._solve(self.initial_guess(self.z), self.z, self._c)
        self.final_state = self.equations.final_state_function(self.x, self.z, self._c).full().ravel()

    def initial_guess(self, z: np.ndarray) -> np.ndarray:
        return np.asarray(self.equations.initial_guess_function(z, self._c).full().ravel())

    def _solve(self, initial_guess: np.ndarray, z: np.ndarray, c: np.ndarray) -> np.ndarray:
        if not self.equations.size:
            return initial_guess
        x, _, failure, _, _ = self._stepper.solve(initial_guess, z, c)
        if failure is not None:
            raise IntegrationError(f"the step cannot be solved: {failure.reason} ({failure.worst_equation})")
        return x

    def advance(self, z: np.ndarray, initial_guess: np.ndarray) -> np.ndarray:
        """Return the final state of a step from another state."""
        x = self._solve(initial_guess, z, self._c)
        return np.asarray(self.equations.final_state_function(x, z, self._c).full().ravel())

    @property
    def _zero_step_constants(self) -> np.ndarray:
        """Constants of a step of size zero, which keeps (q, p) and recomputes the dependent variables."""
        return np.concatenate([[0.0], self._c[1:]])

    def reversed_state(self, z: np.ndarray) -> np.ndarray:
        """Return the state with reversed velocities and momenta, and recomputed dependent variables."""
        z, layout = z.copy(), self.equations.layout
        z[layout["v"]] *= -1.0
        z[layout["p"]] *= -1.0
        for name in self.scheme.odd_under_reversal:
            z[layout[name]] *= -1.0
        if BODY_ANGULAR_MOMENTA in layout:  # angular momenta are reversed as well
            z[layout[BODY_ANGULAR_MOMENTA]] *= -1.0
            return z
        if not self.scheme_state:
            return z
        dependent = self._dependent_variables(z)
        if set(self.scheme_state) - set(dependent) - _PROPAGATED:
            x = self._solve(self.initial_guess(z), z, self._zero_step_constants)
            z = np.asarray(self.equations.final_state_function(x, z, self._zero_step_constants).full().ravel())
        for name, (value, _) in dependent.items():
            z[layout[name]] = value
        return z

    def _dependent_variables(self, z: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return the scheme variables that depend on (q, p) for this step size, with their Jacobians."""
        layout = self.equations.layout
        n = layout["q"].stop - layout["q"].start
        y = ca.SX.sym("y", 2 * n)
        size, t = float(self._c[0]), float(self._c[1])
        parts = self.scheme.scheme_state_of(self._system, y[:n], y[n:], t, ca.DM(self.k), size)
        point = np.concatenate([z[layout["q"]], z[layout["p"]]])
        values = {}
        for name, part in parts.items():
            value, jacobian = ca.Function("following", [y], [part, ca.jacobian(part, y)])(point)
            values[name] = np.array(value).ravel(), np.array(jacobian)
        return values

    def derivative(self) -> np.ndarray:
        """Return the Jacobian of the final state with respect to the initial state."""
        return self._derivative(self.x, self._c)

    def dependent_lift(self, lift: np.ndarray) -> np.ndarray:
        """Return `lift` with the derivatives of the dependent variables, by a step of size zero."""
        dependent, lifted = self._dependent_variables(self.z), lift.copy()
        if set(self.scheme_state) - set(dependent) - _PROPAGATED:
            lifted = (
                self._derivative(
                    self._solve(self.initial_guess(self.z), self.z, self._zero_step_constants),
                    self._zero_step_constants,
                )
                @ lift
            )
        for name, (_, jacobian) in dependent.items():
            lifted[self.equations.layout[name]] = jacobian
        return lifted

    def _derivative(self, x: np.ndarray, c: np.ndarray) -> np.ndarray:
        e = self.equations
        parts = ca.Function(
            "derivatives",
            e.arguments,
            [
                ca.jacobian(e.residual, e.x),
                ca.jacobian(e.residual, e.z),
                ca.jacobian(e.final_state, e.x),
                ca.jacobian(e.final_state, e.z),
            ],
        )
        r_x, r_z, end_x, end_z = (np.array(part) for part in parts(x, self.z, c))
        return np.asarray(end_z - end_x @ np.linalg.solve(r_x, r_z) if e.size else end_z)


def _tangent_basis(system: object, step: _Step, v_by_q: np.ndarray, v_by_p: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the directions (dq, dp) that satisfy the linearised (hidden) constraints."""
    d, state = equations_of_motion(system), step.initial
    hidden = d.velocity_constraint
    evaluate = d.function(ca.vertcat(d.G, ca.jacobian(hidden, d.q), ca.jacobian(hidden, d.v)))
    G, by_q, by_v = np.split(np.array(evaluate(state["q"], state["v"], state["p"], state.t, step.k)), 3)
    level = np.hstack([G, np.zeros_like(G)])
    rate = np.hstack([by_q + by_v @ v_by_q, by_v @ v_by_p])
    return np.asarray(sl.null_space(np.vstack([level, rate])))
