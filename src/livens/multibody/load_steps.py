"""Equilibria under loads that grow step by step: Newton's method with the whole stiffness, forces that turn included.

Elements are looked at type by type and the matrices are sparse, so that beams of thousands of elements are no trouble.
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

_CORRECTIONS, _HALVINGS = 40, 10
#: No correction turns a body by more than this, nor moves it by more than this part of the size of the whole.
_TURN, _MOVE = 0.5, 0.25
#: Corrections this small, in radians and in sizes of the whole, are the last ones.
_SMALL = 1e-11
#: Constraints that follow from others have pivots of this size, relative to the stiffness.
_SOFT = 1e-12


class Balance:
    """Forces of a system at rest under a part of its loads, and how they change with the motions of its bodies."""

    def __init__(self, system: System, motion: Motion, t: float) -> None:
        self.system, self.motion, self.t = system, motion, t
        self.kept = np.array(motion.constraints, dtype=np.int64)
        functions = [_function(group.model) for group in system.groups]
        self._mapped = [Mapped(f, group.count) for f, group in zip(functions, system.groups, strict=True)]
        self._places = [[f.sparsity_out(i).get_triplet() for i in (1, 3)] for f in functions]
        self._gravity = "gravity" in system.parameters
        #: Where the numbers of a body stand among the motions.
        sizes = [frame.dimension + frame.turning for frame in motion.frames]
        self.first = np.concatenate([[0], np.cumsum(sizes)]).astype(int)

    def _parameters(self, part: float) -> np.ndarray:
        if not self._gravity:
            return self.system.parameter_vector()
        return self.system.parameter_vector({"gravity": part * np.asarray(self.system.parameters["gravity"])})

    def at(self, q: np.ndarray, lam: np.ndarray, part: float) -> tuple[np.ndarray, Any, np.ndarray, Any]:
        """Forces on the motions and their slopes, what constraints are open by, and their slopes."""
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
        """What takes motions to changes of coordinates, and how the moments of forces change as their arms turn."""
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
        """Positions after a motion, however far it turns."""
        new = q.copy()
        for frame, first in zip(self.motion.frames, self.first[:-1].tolist(), strict=True):
            d = frame.dimension
            new[list(frame.position)] += y[first : first + d]
            if frame.turning:
                R = _rotation(y[first + d : first + d + frame.turning])
                places = np.array(frame.directors)
                turned = q[places] @ R.T
                u, _, vh = np.linalg.svd(turned)  # orthonormal to the last digit
                new[places] = u @ vh
        return new

    def limited(self, y: np.ndarray, size: float) -> tuple[float, float]:
        """By how much a correction is shortened, and how long it is then."""
        turns = np.zeros(self.motion.size, dtype=bool)
        for frame, first in zip(self.motion.frames, self.first[:-1].tolist(), strict=True):
            turns[first + frame.dimension : first + frame.dimension + frame.turning] = True
        turn, move = np.abs(y[turns]).max(initial=0.0), np.abs(y[~turns]).max(initial=0.0) / size
        shorter = min(1.0, _TURN / max(turn, 1e-300), _MOVE / max(move, 1e-300))
        return shorter, float(shorter * max(turn, move))


def loaded_equilibrium(system: System, assembly: Assembly, steps: int, t: float) -> Equilibrium:
    """The position at rest under all loads, by way of those under parts of them."""
    balance, q, lam = Balance(system, assembly.motion, t), assembly.position, np.zeros(system.m)
    space = max(frame.dimension for frame in assembly.motion.frames)  # modes of a ring have fewer coordinates
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
                f"no equilibrium was found beyond {part:.3g} of the loads: either something can move without any "
                "resistance, or the structure gives way there; take more load_steps, or hold it"
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
        # the last digits of forces that cancel may keep corrections above round-off
        if shorter == 1.0 and (length < _SMALL or (length < 1e3 * _SMALL and length > before / 2)):
            return q, lam, correction
        before = length
    return None


def _stable(slopes: Any, G: Any) -> bool:
    """Whether the stiffness is positive for all that the constraints allow: by the signs of its pivots."""
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
    """The rotation about w by its length; in the plane, by an angle."""
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
    """Of one type: forces at rest and their slopes, constraints and their slopes; loads are taken in part."""
    lam, part = (ca.SX.sym("lam", model.m) if model.m else ca.SX(0, 1)), ca.SX.sym("part")
    force = part * model.F - ca.gradient(model.R, model.v) - ca.gradient(model.V, model.q)
    G = ca.jacobian(model.g, model.q)
    if model.m:
        force = force - G.T @ lam
    force = ca.substitute(force, model.v, ca.SX.zeros(model.n))
    outputs = [ca.densify(force), ca.jacobian(force, model.q), ca.densify(model.g), G]
    return ca.Function("balance", [model.q, lam, model.t, model.k, part], outputs)
