"""Static equilibrium by Newton's method with an energy line search."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.models.equations_of_motion import equations_of_motion
from livens.models.external_force import require_force_expressions
from livens.models.linalg import SOLVED_RTOL, null_space
from livens.models.system import System
from livens.multibody.assembly import Assembly
from livens.multibody.twist_coordinates import TwistCoordinates
from livens.types import Expr

#: Largest number of iterations, largest step (rad, m), relative force tolerance, largest number of step halvings.
_MAX_ITERATIONS, _MAX_STEP, _FORCE_TOL, _MAX_BACKTRACKING = 200, 0.3, 1e-9, 30


@dataclass(frozen=True)
class Equilibrium:
    """Static equilibrium.

    Parameters
    ----------
    position : ndarray of shape (n,)
        Coordinates of the system.
    residual : float
        Largest remaining generalised force in the directions that the joints allow.
    stable : bool
        Whether the potential energy has a minimum on the constraint manifold. For forces without a potential, the
        symmetric part of the tangent stiffness at rest decides.
    iterations : int
        Number of Newton iterations.
    """

    position: np.ndarray
    residual: float
    stable: bool
    iterations: int

    def __repr__(self) -> str:
        stability = "stable" if self.stable else "not stable"
        return (
            f"<Equilibrium: {stability}, residual {self.residual:.1e}, {self.iterations} iterations, "
            f"{len(self.position)} coordinates in .position>"
        )


class StaticEquations:
    """Static residual and tangent stiffness of a system in twist coordinates."""

    def __init__(self, system: System, twist: TwistCoordinates) -> None:
        self.system, self.twist = system, twist
        d = equations_of_motion(system)
        zero_velocity = ca.SX.zeros(system.n)
        q, y = ca.SX.sym("q", system.n), ca.SX.sym("y", twist.size)
        lam = ca.SX.sym("lam", system.m) if system.m else ca.SX(0, 1)
        force = d.F - ca.gradient(d.R, d.v) - ca.gradient(d.V, d.q)
        force_function = ca.Function("force", [d.q, d.t, d.k], [ca.substitute(force, d.v, zero_velocity), d.V, d.G])
        retracted = self._retract(q, y)
        f, V, _ = force_function(retracted, d.t, d.k)
        G = force_function(retracted, d.t, d.k)[2]
        kinematic_matrix = ca.jacobian(retracted, y)
        # the retraction is accurate to second order, so forces and their derivatives at y = 0 are exact
        balance = kinematic_matrix.T @ (f - G.T @ lam) if system.m else kinematic_matrix.T @ f
        outputs = [balance, ca.jacobian(balance, y), V]
        at_zero = [ca.densify(ca.substitute(output, y, ca.SX.zeros(twist.size))) for output in outputs]
        self._function = ca.Function("statics", [q, lam, d.t, d.k], at_zero)
        self._k = system.parameter_vector()

    def evaluate(self, q: np.ndarray, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return generalised forces, their Jacobian, and the potential energy."""
        balance, jacobian, V = self._function(q, lam, 0.0, self._k)
        return np.array(balance).ravel(), np.array(jacobian), float(V)

    def _retract(self, q: Expr, y: Expr) -> Expr:
        """Return the coordinates after a small motion, accurate to second order (retraction)."""
        new = ca.SX(q)
        for frame, translation, rotation in self.twist.blocks():
            d, w = frame.dimension, y[rotation]
            new[list(frame.position)] += y[translation]
            for director in frame.directors:
                x = q[list(director)]
                first_order = ca.cross(w, x) if d == 3 else w * ca.vertcat(-x[1], x[0])
                second_order = ca.cross(w, first_order) if d == 3 else -(w**2) * x
                new[list(director)] = x + first_order + second_order / 2
        return new


def equilibrium(system: System, assembly: Assembly) -> Equilibrium:
    """Solve for a static equilibrium by Newton's method in the null space of the constraints, with |stiffness|."""
    require_force_expressions(system, "an equilibrium")
    equations, twist = StaticEquations(system, assembly.twist), assembly.twist
    q = assembly.position
    joint_constraints = list(twist.joint_constraints)
    lam, is_conservative = np.zeros(system.m), not any(model.F.nnz() for model in system.element_types)
    for step in range(_MAX_ITERATIONS):
        constraint_jacobian = assembly.constraint_jacobian(q)
        null_basis = null_space(constraint_jacobian, SOLVED_RTOL)
        force, _, V = equations.evaluate(q, np.zeros(system.m))
        if joint_constraints:
            lam[joint_constraints] = np.linalg.lstsq(constraint_jacobian.T, force, rcond=1e-9)[0]
        balance, jacobian, _ = equations.evaluate(q, lam)
        reduced_force, stiffness = null_basis.T @ balance, -(null_basis.T @ jacobian @ null_basis)
        scale = max(1.0, float(np.abs(force).max(initial=0.0)))
        values, vectors = (
            np.linalg.eigh((stiffness + stiffness.T) / 2) if null_basis.shape[1] else (np.zeros(0), null_basis)
        )
        if np.abs(reduced_force).max(initial=0.0) <= _FORCE_TOL * scale:
            stability_tol = 1e-9 * max(1.0, float(np.abs(values).max(initial=0.0)))
            return Equilibrium(
                q, float(np.abs(reduced_force).max(initial=0.0)), bool(np.all(values > -stability_tol)), step
            )
        min_stiffness = 1e-6 * max(float(np.abs(values).max()), 1e-12)
        y = null_basis @ (vectors @ ((vectors.T @ reduced_force) / np.maximum(np.abs(values), min_stiffness)))
        y *= min(1.0, _MAX_STEP / float(np.abs(y).max()))
        q = (
            _energy_line_search(equations, assembly, q, y, V)
            if is_conservative
            else assembly.project(twist.retract(q, y))
        )
    raise InputError(
        f"no equilibrium found in {_MAX_ITERATIONS} iterations: the forces may have none, or it is far from the "
        "initial configuration; set other initial values"
    )


def _energy_line_search(
    equations: StaticEquations, assembly: Assembly, q: np.ndarray, y: np.ndarray, energy: float
) -> np.ndarray:
    """Return a step that lowers the energy, by step halving (line search)."""
    candidate, no_multipliers = q, np.zeros(equations.system.m)
    for _ in range(_MAX_BACKTRACKING):
        candidate = assembly.project(assembly.twist.retract(q, y))
        if equations.evaluate(candidate, no_multipliers)[2] <= energy:
            break
        y = y / 2
    return candidate
