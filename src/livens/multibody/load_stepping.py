"""Static equilibrium by load stepping: Newton's method with the full tangent stiffness, follower forces included.

Elements are evaluated by type and matrices are sparse, for beams with thousands of elements.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl

from livens.errors import InputError
from livens.expressions.evaluate import BatchEvaluator
from livens.models.element import ElementType
from livens.models.external_force import require_force_expressions
from livens.models.system import System
from livens.multibody.assembly import Assembly
from livens.multibody.statics import Equilibrium
from livens.multibody.twist_coordinates import TwistCoordinates

#: Largest number of Newton iterations per load step, and of halvings of the load step.
_MAX_ITERATIONS, _MAX_CUTBACKS = 40, 10
#: Largest rotation of a body per iteration in rad, and largest translation relative to the size of the model.
_MAX_ROTATION, _MAX_TRANSLATION = 0.5, 0.25
#: Convergence tolerance of corrections, in rad and relative to the size of the model.
_CORRECTION_TOL = 1e-11
#: Regularisation of redundant constraints, relative to the stiffness.
_REGULARISATION = 1e-12


class StaticResidual:
    """Static residual and tangent stiffness of a system under a load factor, in twist coordinates."""

    def __init__(self, system: System, twist: TwistCoordinates, t: float) -> None:
        self.system, self.twist, self.t = system, twist, t
        self.joint_constraints = np.array(twist.joint_constraints, dtype=np.int64)
        functions = [_element_function(group.element_type) for group in system.element_groups]
        self._evaluators = [
            BatchEvaluator(f, group.count) for f, group in zip(functions, system.element_groups, strict=True)
        ]
        self._sparsity = [[f.sparsity_out(i).get_triplet() for i in (1, 3)] for f in functions]
        self._gravity = "gravity" in system.parameters

    def _parameters(self, load_factor: float) -> np.ndarray:
        if not self._gravity:
            return self.system.parameter_vector()
        return self.system.parameter_vector({"gravity": load_factor * np.asarray(self.system.parameters["gravity"])})

    def at(self, q: np.ndarray, lam: np.ndarray, load_factor: float) -> tuple[np.ndarray, Any, np.ndarray, Any]:
        """Return generalised forces and their Jacobian, constraint residuals and their Jacobian."""
        n, m = self.system.n, self.system.m
        force, g, k = np.zeros(n), np.zeros(m), self._parameters(load_factor)
        K_entries: list[tuple[np.ndarray, ...]] = []
        G_entries: list[tuple[np.ndarray, ...]] = []
        for group, mapped, sparsity in zip(self.system.element_groups, self._evaluators, self._sparsity, strict=True):
            dofs, has_constraints = group.coordinates, group.element_type.m > 0
            multipliers = lam[group.constraints] if has_constraints else np.zeros((group.count, 0))
            values = mapped(q[dofs], multipliers, self.t, k[group.parameters], load_factor)
            force += np.bincount(dofs.ravel(), values[0].ravel(), minlength=n)
            rows, columns = sparsity[0]
            K_entries.append((dofs[:, rows], dofs[:, columns], values[1]))
            if has_constraints:
                g[group.constraints] = values[2]
                rows, columns = sparsity[1]
                G_entries.append((group.constraints[:, rows], dofs[:, columns], values[3]))
        S = self.twist.sparse_kinematic_matrix(q)
        G = _sparse(G_entries, (m, n))[self.joint_constraints] @ S
        stiffness = S.T @ _sparse(K_entries, (n, n)) @ S + self.twist.geometric_stiffness(q, force)
        return S.T @ force, stiffness, g[self.joint_constraints], G

    def step_scale(self, y: np.ndarray, size: float) -> tuple[float, float]:
        """Return the step scale that limits rotations and translations, and the scaled length."""
        rotational = np.zeros(self.twist.size, dtype=bool)
        for _, _, rotation in self.twist.blocks():
            rotational[rotation] = True
        turn, move = np.abs(y[rotational]).max(initial=0.0), np.abs(y[~rotational]).max(initial=0.0) / size
        scale = min(1.0, _MAX_ROTATION / max(turn, 1e-300), _MAX_TRANSLATION / max(move, 1e-300))
        return scale, float(scale * max(turn, move))


def load_stepping(system: System, assembly: Assembly, steps: int, t: float) -> Equilibrium:
    """Solve for the equilibrium under full load, by a sequence of load factors."""
    require_force_expressions(system, "an equilibrium")
    residual, q, lam = StaticResidual(system, assembly.twist, t), assembly.position, np.zeros(system.m)
    dimension = max(frame.dimension for frame in assembly.twist.frames)  # modal frames have fewer coordinates
    centres = np.array([q[list(frame.position)] for frame in assembly.twist.frames if frame.dimension == dimension])
    size = float(np.linalg.norm(np.ptp(centres, axis=0))) or 1.0
    load_factor, load_increment, halvings, total = 0.0, 1.0 / steps, 0, 0
    while load_factor < 1.0:
        after = min(1.0, load_factor + load_increment)
        after = 1.0 if 1.0 - after < 1e-9 else after
        solution = _newton(residual, q, lam, after, size)
        if solution is not None:
            q, lam, corrections = solution
            load_factor, total = after, total + corrections
            continue
        load_increment, halvings = load_increment / 2, halvings + 1
        if halvings > _MAX_CUTBACKS:
            raise InputError(
                f"no equilibrium found beyond a load factor of {load_factor:.3g}: the model may move without "
                "resistance, or the structure buckles there; use more load_steps, or add supports"
            )
    force, jacobian, _, G = residual.at(q, lam, 1.0)
    return Equilibrium(q, float(np.abs(force).max(initial=0.0)), _stable(jacobian, G), total)


def _newton(
    residual: StaticResidual, q: np.ndarray, lam: np.ndarray, load_factor: float, size: float
) -> tuple[np.ndarray, np.ndarray, int] | None:
    lam, count, previous_length = lam.copy(), len(residual.joint_constraints), np.inf
    for correction in range(1, _MAX_ITERATIONS + 1):
        force, jacobian, g, G = residual.at(q, lam, load_factor)
        if not (np.isfinite(force).all() and np.isfinite(jacobian.data).all()):
            return None
        scale = float(np.abs(jacobian.data).max(initial=1.0))
        regularisation = sp.diags_array(np.full(count, _REGULARISATION / scale)) if count else None
        matrix = sp.block_array([[jacobian, -G.T], [G, regularisation]], format="csc") if count else jacobian.tocsc()
        try:
            change = spl.splu(matrix).solve(np.concatenate([-force, -g]))
        except RuntimeError:  # exactly singular
            return None
        if not np.isfinite(change).all():
            return None
        y = change[: residual.twist.size]
        step_factor, length = residual.step_scale(y, size)
        q = residual.twist.retract_finite(q, step_factor * y)
        lam[residual.joint_constraints] += step_factor * change[residual.twist.size :]
        # round-off of cancelling forces may keep corrections above the tolerance
        if step_factor == 1.0 and (
            length < _CORRECTION_TOL or (length < 1e3 * _CORRECTION_TOL and length > previous_length / 2)
        ):
            return q, lam, correction
        previous_length = length
    return None


def _stable(jacobian: Any, G: Any) -> bool:
    """Return whether the stiffness is positive definite on the constraint manifold, by the signs of its pivots."""
    stiffness = -(jacobian + jacobian.T) / 2
    scale = float(np.abs(stiffness.data).max(initial=1.0))
    constrained_stiffness = (stiffness + 1e3 * scale * (G.T @ G)).tocsc() if G.shape[0] else stiffness.tocsc()
    options = dict(SymmetricMode=True, Equil=False)
    try:
        factors = spl.splu(constrained_stiffness, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    except RuntimeError:
        return False
    return bool(np.all(factors.U.diagonal() > 0))


def _sparse(entries: list[tuple[np.ndarray, ...]], shape: tuple[int, int]) -> Any:
    if not entries:
        return sp.csr_array(shape)
    rows, columns, values = (np.concatenate([entry[i].ravel() for entry in entries]) for i in range(3))
    return sp.csr_array((values, (rows, columns)), shape=shape)


def _element_function(model: ElementType) -> ca.Function:
    """Return forces at rest, constraints and their Jacobians of one element type; loads scaled by the load factor."""
    lam, load_factor = (ca.SX.sym("lam", model.m) if model.m else ca.SX(0, 1)), ca.SX.sym("part")
    force = load_factor * model.F - ca.gradient(model.R, model.v) - ca.gradient(model.V, model.q)
    G = ca.jacobian(model.g, model.q)
    if model.m:
        force = force - G.T @ lam
    force = ca.substitute(force, model.v, ca.SX.zeros(model.n))
    outputs = [ca.densify(force), ca.jacobian(force, model.q), ca.densify(model.g), G]
    return ca.Function("balance", [model.q, lam, model.t, model.k, load_factor], outputs)
