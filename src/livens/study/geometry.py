"""How far one step is from being symplectic and from being reversible, at a state.

The step is differentiated exactly: from ``r(x; z) = 0`` follows ``dx/dz = -(dr/dx)^-1 dr/dz`` for the unknowns x of a
step from the state z, with derivatives by CasADi.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np
import scipy.linalg as sl

from livens import schemes
from livens.dynamics import dynamics
from livens.engine.equations import StepEquations
from livens.engine.reference import ReferenceStepper
from livens.errors import InputError, IntegrationError
from livens.initial import initial_state
from livens.model import InitialState
from livens.schemes.base import Scheme
from livens.system import System
from livens.task import number, positive


def symplecticity_defect(
    system: System,
    scheme: str | Scheme,
    q: Any,
    v: Any,
    h: float,
    *,
    t: float = 0.0,
    parameters: Mapping[str, Any] | None = None,
) -> float:
    """``|DPsi^T J DPsi - J|`` (spectral norm) for the map ``Psi: (q, p) -> (q1, p1)`` of one step.

    The step starts from q and ``p = dT/dv(q, v)``. A scheme that carries v along beside p starts from the v that
    belongs to (q, p), so the mass matrix must be regular. With constraints the form is taken on the tangent space of
    the phase space the motion lives in: all (dq, dp) with ``G dq = 0`` and ``d(G(q) v(q, p)) = 0``, written in an
    orthonormal basis N, and the defect is ``|N^T (DPsi^T J DPsi - J) N|``. The end of the step need not lie in that
    phase space. Zero to round-off means symplectic at this state.
    """
    step = _Step(system, scheme, q, v, h, t, parameters)
    if not system.regular_mass:
        raise InputError("symplecticity is not defined: the mass matrix is singular, (q, p) does not determine v")
    n, d = system.n, dynamics(system)
    M = ca.jacobian(d.fibre_derivative, d.v)
    numbers = d.function(ca.horzcat(M, ca.jacobian(d.fibre_derivative, d.q)))
    state = step.start
    mass, turning = np.split(np.array(numbers(state["q"], state["v"], state["p"], state.t, step.k)), 2, axis=1)
    # v(q, p) from p = dT/dv(q, v)
    v_by_q, v_by_p = -np.linalg.solve(mass, turning), np.linalg.inv(mass)
    lift = np.block([[np.eye(n), np.zeros((n, n))], [v_by_q, v_by_p], [np.zeros((n, n)), np.eye(n)]])
    whole = step.derivative()[:, : 3 * n] @ lift
    D = np.vstack([whole[:n], whole[2 * n : 3 * n]])
    J = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
    gap = D.T @ J @ D - J
    if system.m:
        N = _tangents(system, step, v_by_q, v_by_p)
        gap = N.T @ gap @ N
    return float(np.linalg.norm(gap, 2)) if gap.size else 0.0


def reversibility_defect(
    system: System,
    scheme: str | Scheme,
    q: Any,
    v: Any,
    h: float,
    *,
    parameters: Mapping[str, Any] | None = None,
) -> float:
    """How far one gets from the start by a step, turning back (v and p change sign), a step, and turning back again.

    The largest change of q, v and p, each relative to its size or to what the step moved it by, whichever is larger.
    Zero to round-off for a symmetric scheme on a reversible system, if the state is one that the scheme itself can
    reach; systems that depend on time have no such test.
    """
    if not system.autonomous:
        raise InputError("reversibility is tested for systems that do not depend on time")
    step = _Step(system, scheme, q, v, h, 0.0, parameters)
    n = system.n
    there = step.end.copy()
    there[n : 3 * n] *= -1.0
    x = step.x.copy()
    x[: n * len(getattr(step.scheme, "unknowns", ()))] *= -1.0
    back = step.onwards(there, x)
    back[n : 3 * n] *= -1.0
    worst = 0.0
    for i in range(3):
        part = slice(i * n, (i + 1) * n)
        begun, moved = step.z[part], step.end[part] - step.z[part]
        size = max(float(np.linalg.norm(begun)), float(np.linalg.norm(moved))) or 1.0
        worst = max(worst, float(np.linalg.norm(back[part] - begun)) / size)
    return worst


class _Step:
    """One step from consistent values, solved to round-off with full pivoting."""

    def __init__(
        self, system: System, scheme: str | Scheme, q: Any, v: Any, h: float, t: float,
        parameters: Mapping[str, Any] | None,
    ) -> None:  # fmt: skip
        self.scheme = schemes.get(scheme)
        schemes.require(self.scheme, system)
        self.k = system.parameter_vector(parameters or {})
        self.start: InitialState = initial_state(system, q, v, self.k, t0=number("t", t), redundant="remove")
        self.equations: StepEquations = self.scheme.equations(system, self.start.dropped)
        self._c = np.concatenate([[positive("h", h), self.start.t], self.k])
        self._stepper = ReferenceStepper(self.equations)
        self.z = self._state()
        guess = self.equations.guess_function(self.z, self._c).full().ravel()
        self.x = self._solved(guess, self.z)
        self.end = self.equations.end_function(self.x, self.z, self._c).full().ravel()

    def _state(self) -> np.ndarray:
        """As the equations lay it out."""
        return self.equations.layout.vector(self.start.values)

    def _solved(self, guess: np.ndarray, z: np.ndarray) -> np.ndarray:
        x, _, trouble, _, _ = self._stepper.solve(guess, z, self._c)
        if trouble is not None:
            raise IntegrationError(f"the step cannot be solved: {trouble.reason} ({trouble.equation})")
        return x

    def onwards(self, z: np.ndarray, guess: np.ndarray) -> np.ndarray:
        """A step from another state."""
        x = self._solved(guess, z)
        return np.asarray(self.equations.end_function(x, z, self._c).full().ravel())

    def derivative(self) -> np.ndarray:
        """Of the end of the step by its beginning."""
        e = self.equations
        parts = ca.Function(
            "derivatives", e.arguments,
            [ca.jacobian(e.residual, e.x), ca.jacobian(e.residual, e.z), ca.jacobian(e.end, e.x),
             ca.jacobian(e.end, e.z)],
        )  # fmt: skip
        r_x, r_z, end_x, end_z = (np.array(part) for part in parts(self.x, self.z, self._c))
        return np.asarray(end_z - end_x @ np.linalg.solve(r_x, r_z))


def _tangents(system: System, step: _Step, v_by_q: np.ndarray, v_by_p: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the directions (dq, dp) that keep the constraints and the hidden ones."""
    d, state = dynamics(system), step.start
    hidden = d.velocity_constraint
    numbers = d.function(ca.vertcat(d.G, ca.jacobian(hidden, d.q), ca.jacobian(hidden, d.v)))
    G, by_q, by_v = np.split(np.array(numbers(state["q"], state["v"], state["p"], state.t, step.k)), 3)
    level = np.hstack([G, np.zeros_like(G)])
    rate = np.hstack([by_q + by_v @ v_by_q, by_v @ v_by_p])
    return np.asarray(sl.null_space(np.vstack([level, rate])))
