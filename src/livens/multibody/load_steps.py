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
from livens.expressions.evaluate import Mapped
from livens.models.element import ElementModel
from livens.models.system import System
from livens.multibody.assembly import Assembly, Motion
from livens.multibody.statics import Equilibrium

#: Largest number of Newton iterations per load step, and of halvings of the load step.
_CORRECTIONS, _HALVINGS = 40, 10
#: Largest rotation of a body per iteration in rad, and largest translation relative to the size of the model.
_TURN, _MOVE = 0.5, 0.25
#: Convergence tolerance of corrections, in rad and relative to the size of the model.
_SMALL = 1e-11
#: Regularisation of redundant constraints, relative to the stiffness.
_SOFT = 1e-12


class Balance:
    """Static residual and tangent stiffness of a system under a load factor, in twist coordinates."""

    def __init__(self, system: System, motion: Motion, t: float) -> None:
        self.system, self.motion, self.t = system, motion, t
        self.kept = np.array(motion.constraints, dtype=np.int64)
        functions = [_function(group.model) for group in system.groups]
        self._mapped = [Mapped(f, group.count) for f, group in zip(functions, system.groups, strict=True)]
        self._places = [[f.sparsity_out(i).get_triplet() for i in (1, 3)] for f in functions]
        self._gravity = "gravity" in system.parameters
        #: First twist coordinate of each body.
        sizes = [frame.dimension + frame.turning for frame in motion.frames]
        self.first = np.concatenate([[0], np.cumsum(sizes)]).astype(int)

    def _parameters(self, part: float) -> np.ndarray:
        if not self._gravity:
            return self.system.parameter_vector()
        return self.system.parameter_vector({"gravity": part * np.asarray(self.system.parameters["gravity"])})

    def at(self, q: np.ndarray, lam: np.ndarray, part: float) -> tuple[np.ndarray, Any, np.ndarray, Any]:
        """Return generalised forces and their Jacobian, constraint residuals and their Jacobian."""
        n, m = self.system.n, self.system.m
        force, g, k = np.zeros(n), np.zeros(m), self._parameters(part)
        of_K: list[tuple[np.ndarray, ...]] = []
        of_G: list[tuple[np.ndarray, ...]] = []
        for group, mapped, places in zip(self.system.groups, self._mapped, self._places, strict=True):
            at, own = group.coordinates, group.model.m > 0
            multipliers = lam[group.constraints] if own else np.zeros((group.count, 0))
            values = mapped(q[at], multipliers, self.t, k[group.parameters], part)
            force += np.bincount(at.ravel(), values[0].ravel(), minlength=n)
            rows, columns = places[0]
            of_K.append((at[:, rows], at[:, columns], values[1]))
            if own:
                g[group.constraints] = values[2]
                rows, columns = places[1]
                of_G.append((group.constraints[:, rows], at[:, columns], values[3]))
        S, turned = self._map(q, force)
        G = _sparse(of_G, (m, n))[self.kept] @ S
        return S.T @ force, S.T @ _sparse(of_K, (n, n)) @ S + turned, g[self.kept], G

    def _map(self, q: np.ndarray, force: np.ndarray) -> tuple[Any, Any]:
        """Return the kinematic matrix, and the geometric stiffness of the rotating lever arms."""
        rows, columns, values, blocks = list[int](), list[int](), list[float](), list[np.ndarray]()
        for frame, first in zip(self.motion.frames, self.first[:-1].tolist(), strict=True):
            d = frame.dimension
            rows += frame.position
            columns += range(first, first + d)
            values += [1.0] * d
            block = np.zeros((d + frame.turning,) * 2)
            for director in frame.directors:
                x, f = q[list(director)], force[list(director)]
                if d == 3:
                    rows += [director[i] for i in (0, 0, 1, 1, 2, 2)]
                    columns += [first + 3 + i for i in (1, 2, 0, 2, 0, 1)]
                    values += [x[2], -x[1], -x[2], x[0], x[1], -x[0]]
                    block[3:, 3:] += np.outer(x, f) - (x @ f) * np.eye(3)
                else:
                    rows += director
                    columns += [first + 2] * 2
                    values += [-x[1], x[0]]
                    block[2, 2] -= x @ f
            blocks.append(block)
        shape = self.system.n, self.motion.size
        return sp.csr_array((values, (rows, columns)), shape=shape), sp.block_diag(blocks, format="csr")

    def moved(self, q: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Return the coordinates after a finite motion (exponential map)."""
        new = q.copy()
        for frame, first in zip(self.motion.frames, self.first[:-1].tolist(), strict=True):
            d = frame.dimension
            new[list(frame.position)] += y[first : first + d]
            if frame.turning:
                R = _rotation(y[first + d : first + d + frame.turning])
                places = np.array(frame.directors)
                turned = q[places] @ R.T
                u, _, vh = np.linalg.svd(turned)  # orthonormal to round-off
                new[places] = u @ vh
        return new

    def limited(self, y: np.ndarray, size: float) -> tuple[float, float]:
        """Return the step scale that limits rotations and translations, and the scaled length."""
        turns = np.zeros(self.motion.size, dtype=bool)
        for frame, first in zip(self.motion.frames, self.first[:-1].tolist(), strict=True):
            turns[first + frame.dimension : first + frame.dimension + frame.turning] = True
        turn, move = np.abs(y[turns]).max(initial=0.0), np.abs(y[~turns]).max(initial=0.0) / size
        shorter = min(1.0, _TURN / max(turn, 1e-300), _MOVE / max(move, 1e-300))
        return shorter, float(shorter * max(turn, move))


def loaded_equilibrium(system: System, assembly: Assembly, steps: int, t: float) -> Equilibrium:
    """Solve for the equilibrium under full load, by a sequence of load factors."""
    balance, q, lam = Balance(system, assembly.motion, t), assembly.position, np.zeros(system.m)
    space = max(frame.dimension for frame in assembly.motion.frames)  # modal frames have fewer coordinates
    centres = np.array([q[list(frame.position)] for frame in assembly.motion.frames if frame.dimension == space])
    size = float(np.linalg.norm(np.ptp(centres, axis=0))) or 1.0
    part, stride, halvings, total = 0.0, 1.0 / steps, 0, 0
    while part < 1.0:
        after = min(1.0, part + stride)
        after = 1.0 if 1.0 - after < 1e-9 else after
        found = _settled(balance, q, lam, after, size)
        if found is not None:
            q, lam, corrections = found
            part, total = after, total + corrections
            continue
        stride, halvings = stride / 2, halvings + 1
        if halvings > _HALVINGS:
            raise InputError(
                f"no equilibrium found beyond a load factor of {part:.3g}: the model may move without resistance, or "
                "the structure buckles there; use more load_steps, or add supports"
            )
    rest, slopes, _, G = balance.at(q, lam, 1.0)
    return Equilibrium(q, float(np.abs(rest).max(initial=0.0)), _stable(slopes, G), total)


def _settled(
    balance: Balance, q: np.ndarray, lam: np.ndarray, part: float, size: float
) -> tuple[np.ndarray, np.ndarray, int] | None:
    lam, count, before = lam.copy(), len(balance.kept), np.inf
    for correction in range(1, _CORRECTIONS + 1):
        force, slopes, g, G = balance.at(q, lam, part)
        if not (np.isfinite(force).all() and np.isfinite(slopes.data).all()):
            return None
        scale = float(np.abs(slopes.data).max(initial=1.0))
        soft = sp.diags_array(np.full(count, _SOFT / scale)) if count else None
        matrix = sp.block_array([[slopes, -G.T], [G, soft]], format="csc") if count else slopes.tocsc()
        try:
            change = spl.splu(matrix).solve(np.concatenate([-force, -g]))
        except RuntimeError:  # exactly singular
            return None
        if not np.isfinite(change).all():
            return None
        y = change[: balance.motion.size]
        shorter, length = balance.limited(y, size)
        q = balance.moved(q, shorter * y)
        lam[balance.kept] += shorter * change[balance.motion.size :]
        # round-off of cancelling forces may keep corrections above the tolerance
        if shorter == 1.0 and (length < _SMALL or (length < 1e3 * _SMALL and length > before / 2)):
            return q, lam, correction
        before = length
    return None


def _stable(slopes: Any, G: Any) -> bool:
    """Return whether the stiffness is positive definite on the constraint manifold, by the signs of its pivots."""
    stiffness = -(slopes + slopes.T) / 2
    scale = float(np.abs(stiffness.data).max(initial=1.0))
    held = (stiffness + 1e3 * scale * (G.T @ G)).tocsc() if G.shape[0] else stiffness.tocsc()
    options = dict(SymmetricMode=True, Equil=False)
    try:
        factors = spl.splu(held, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    except RuntimeError:
        return False
    return bool(np.all(factors.U.diagonal() > 0))


def _rotation(w: np.ndarray) -> np.ndarray:
    """Return the rotation matrix of a rotation vector (Rodrigues); in the plane, of an angle."""
    if len(w) == 1:
        c, s = np.cos(w[0]), np.sin(w[0])
        return np.array([[c, -s], [s, c]])
    hat = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    angle = np.linalg.norm(w)
    return np.asarray(np.eye(3) + np.sinc(angle / np.pi) * hat + np.sinc(angle / 2 / np.pi) ** 2 / 2 * hat @ hat)


def _sparse(parts: list[tuple[np.ndarray, ...]], shape: tuple[int, int]) -> Any:
    if not parts:
        return sp.csr_array(shape)
    rows, columns, values = (np.concatenate([part[i].ravel() for part in parts]) for i in range(3))
    return sp.csr_array((values, (rows, columns)), shape=shape)


def _function(model: ElementModel) -> ca.Function:
    """Return forces at rest, constraints and their Jacobians of one element type; loads scaled by the load factor."""
    lam, part = (ca.SX.sym("lam", model.m) if model.m else ca.SX(0, 1)), ca.SX.sym("part")
    force = part * model.F - ca.gradient(model.R, model.v) - ca.gradient(model.V, model.q)
    G = ca.jacobian(model.g, model.q)
    if model.m:
        force = force - G.T @ lam
    force = ca.substitute(force, model.v, ca.SX.zeros(model.n))
    outputs = [ca.densify(force), ca.jacobian(force, model.q), ca.densify(model.g), G]
    return ca.Function("balance", [model.q, lam, model.t, model.k, part], outputs)
