"""Structure defects of one step: symplecticity and reversibility at a state.

The step map is differentiated exactly: from ``r(x; z) = 0`` follows ``dx/dz = -(dr/dx)^-1 dr/dz`` for the unknowns x of
a step from the state z, with derivatives by CasADi.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np
import scipy.linalg as sl

from livens import schemes
from livens.engine.reference import ReferenceSolver
from livens.errors import InputError, IntegrationError
from livens.expressions.numbers import number, positive
from livens.models.hamiltonian.model import Hamiltonian
from livens.models.model import InitialState
from livens.models.summed import dynamics
from livens.models.system import System
from livens.schemes.base import Scheme
from livens.schemes.recipes.elements import ElementScheme
from livens.schemes.recipes.frame_equations import SPINS
from livens.schemes.step import FlatEquations


def symplecticity_defect(
    system: System | Hamiltonian,
    scheme: str | Scheme,
    q: Any,
    v: Any = None,
    h: float | None = None,
    *,
    p: Any = None,
    t: float = 0.0,
    parameters: Mapping[str, Any] | None = None,
    scaling: Any = None,
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
    step = _Step(system, scheme, dict(q0=q, v0=v, p0=p), h, t, parameters, scaling)
    n, layout = len(system.coordinates), step.equations.layout
    v_by_q, v_by_p = system.velocity_derivatives(step.start, step.k)
    lift = np.zeros((layout.size, 2 * n))
    lift[layout["q"], :n] = lift[layout["p"], n:] = np.eye(n)
    lift[layout["v"]] = np.hstack([v_by_q, v_by_p])
    if step.memory:
        lift = step.standing(lift)
        kept = np.vstack([lift[layout["q"]], lift[layout["p"]]])
        if not np.allclose(kept, np.eye(2 * n), atol=1e-12):
            raise InputError(
                f"the state of scheme '{step.scheme.name}' has independent variables besides (q, p): no map of (q, p)"
            )
    whole = step.derivative() @ lift
    D = np.vstack([whole[layout["q"]], whole[layout["p"]]])
    J = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
    gap = D.T @ J @ D - J
    if system.constraint_names:
        N = _tangents(system, step, v_by_q, v_by_p)
        gap = N.T @ gap @ N
    return float(np.linalg.norm(gap, 2)) if gap.size else 0.0


def reversibility_defect(
    system: System | Hamiltonian,
    scheme: str | Scheme,
    q: Any,
    v: Any = None,
    h: float | None = None,
    *,
    p: Any = None,
    parameters: Mapping[str, Any] | None = None,
    scaling: Any = None,
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
    step = _Step(system, scheme, dict(q0=q, v0=v, p0=p), h, 0.0, parameters, scaling)
    layout = step.equations.layout
    there = step.turned(step.end)
    guess = step.x.copy()
    if isinstance(step.scheme, ElementScheme) and not getattr(system, "frames", ()):
        guess[: len(system.coordinates) * len(step.scheme.unknowns)] *= -1.0
    else:
        guess = step.guess(there)
    back = step.turned(step.onwards(there, guess))
    worst = 0.0
    for part in (layout["q"], layout["v"], layout["p"]):
        begun, moved = step.z[part], step.end[part] - step.z[part]
        size = max(float(np.linalg.norm(begun)), float(np.linalg.norm(moved))) or 1.0
        worst = max(worst, float(np.linalg.norm(back[part] - begun)) / size)
    return worst


class _Step:
    """One step from consistent initial values, solved to round-off with full pivoting."""

    def __init__(
        self,
        system: System | Hamiltonian,
        scheme: str | Scheme,
        given: Mapping[str, Any],
        h: float | None,
        t: float,
        parameters: Mapping[str, Any] | None,
        scaling: Any,
    ) -> None:
        self.scheme, self._system = schemes.get(scheme), system
        if not {"elements", "phase space"} & {*getattr(system, "forms", ())}:
            raise InputError(f"a step map of coordinates and momenta needs a mechanical model, got {system!r}")
        schemes.require(self.scheme, system)
        self.scheme = self.scheme if scaling is None else self.scheme.scaled(scaling)
        self.k = system.parameter_vector(parameters or {})
        self.start: InitialState = system.start(given, self.k, number("t", t), project=False, redundant="remove")
        self.equations: FlatEquations = self.scheme.equations(system, self.start.dropped).flatten()
        size = positive("h", h)
        self._c = np.concatenate([[size, self.start.t], self.k])
        self._stepper = ReferenceSolver(self.equations)
        #: Additional state variables of the scheme.
        self.memory = self.scheme.memory(system, self.start.values, self.k, self.start.t, size)
        self.z = self.equations.layout.vector({**self.start.values, **self.memory})
        self.x = self._solved(self.guess(self.z), self.z, self._c)
        self.end = self.equations.end_function(self.x, self.z, self._c).full().ravel()

    def guess(self, z: np.ndarray) -> np.ndarray:
        return np.asarray(self.equations.guess_function(z, self._c).full().ravel())

    def _solved(self, guess: np.ndarray, z: np.ndarray, c: np.ndarray) -> np.ndarray:
        if not self.equations.size:
            return guess
        x, _, trouble, _, _ = self._stepper.solve(guess, z, c)
        if trouble is not None:
            raise IntegrationError(f"the step cannot be solved: {trouble.reason} ({trouble.equation})")
        return x

    def onwards(self, z: np.ndarray, guess: np.ndarray) -> np.ndarray:
        """Return the final state of a step from another state."""
        x = self._solved(guess, z, self._c)
        return np.asarray(self.equations.end_function(x, z, self._c).full().ravel())

    @property
    def _no_step(self) -> np.ndarray:
        """Constants of a step of size zero, which keeps (q, p) and recomputes the dependent variables."""
        return np.concatenate([[0.0], self._c[1:]])

    def turned(self, z: np.ndarray) -> np.ndarray:
        """Return the state with reversed velocities and momenta, and recomputed dependent variables."""
        z, layout = z.copy(), self.equations.layout
        z[layout["v"]] *= -1.0
        z[layout["p"]] *= -1.0
        for name in self.scheme.opposite:
            z[layout[name]] *= -1.0
        if SPINS in layout:  # angular momenta are reversed as well
            z[layout[SPINS]] *= -1.0
            return z
        if not self.memory:
            return z
        following = self._following(z)
        if set(self.memory) - set(following):
            x = self._solved(self.guess(z), z, self._no_step)
            z = np.asarray(self.equations.end_function(x, z, self._no_step).full().ravel())
        for name, (value, _) in following.items():
            z[layout[name]] = value
        return z

    def _following(self, z: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return the scheme variables that depend on (q, p) for this step size, with their Jacobians."""
        layout = self.equations.layout
        n = layout["q"].stop - layout["q"].start
        y = ca.SX.sym("y", 2 * n)
        size, t = float(self._c[0]), float(self._c[1])
        parts = self.scheme.following(self._system, y[:n], y[n:], t, ca.DM(self.k), size)
        point = np.concatenate([z[layout["q"]], z[layout["p"]]])
        found = {}
        for name, part in parts.items():
            value, slope = ca.Function("following", [y], [part, ca.jacobian(part, y)])(point)
            found[name] = np.array(value).ravel(), np.array(slope)
        return found

    def derivative(self) -> np.ndarray:
        """Return the Jacobian of the final state with respect to the initial state."""
        return self._derivative(self.x, self._c)

    def standing(self, lift: np.ndarray) -> np.ndarray:
        """Return `lift` with the derivatives of the dependent variables, by a step of size zero."""
        following, still = self._following(self.z), lift.copy()
        if set(self.memory) - set(following):
            still = self._derivative(self._solved(self.guess(self.z), self.z, self._no_step), self._no_step) @ lift
        for name, (_, slope) in following.items():
            still[self.equations.layout[name]] = slope
        return still

    def _derivative(self, x: np.ndarray, c: np.ndarray) -> np.ndarray:
        e = self.equations
        parts = ca.Function(
            "derivatives",
            e.arguments,
            [
                ca.jacobian(e.residual, e.x),
                ca.jacobian(e.residual, e.z),
                ca.jacobian(e.end, e.x),
                ca.jacobian(e.end, e.z),
            ],
        )
        r_x, r_z, end_x, end_z = (np.array(part) for part in parts(x, self.z, c))
        return np.asarray(end_z - end_x @ np.linalg.solve(r_x, r_z) if e.size else end_z)


def _tangents(system: Any, step: _Step, v_by_q: np.ndarray, v_by_p: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the directions (dq, dp) that satisfy the linearised (hidden) constraints."""
    d, state = dynamics(system), step.start
    hidden = d.velocity_constraint
    numbers = d.function(ca.vertcat(d.G, ca.jacobian(hidden, d.q), ca.jacobian(hidden, d.v)))
    G, by_q, by_v = np.split(np.array(numbers(state["q"], state["v"], state["p"], state.t, step.k)), 3)
    level = np.hstack([G, np.zeros_like(G)])
    rate = np.hstack([by_q + by_v @ v_by_q, by_v @ v_by_p])
    return np.asarray(sl.null_space(np.vstack([level, rate])))
