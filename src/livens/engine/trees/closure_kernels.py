"""Kernels of closures: wrenches on several bodies, constraints, and their derivatives by the variations of bodies."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from livens.engine.codegen.jit import NativeCode
from livens.engine.codegen.step_kernels import compile_function_kernel
from livens.engine.trees.force_kernels import BodyMotion, padded
from livens.models.element import ElementType
from livens.schemes.discretization.rigid_body_kernels import RigidBodyElementKernel, RigidBodyScheme


@dataclass(frozen=True)
class ClosureKernels:
    """Kernels of one element type on several bodies."""

    step: NativeCode
    work: NativeCode
    residuals: NativeCode
    #: Entries, eight per body, of the wrenches that depend on the motion of other bodies, each with the entry of the
    #: other body that is opposite, or -1.
    coupled: tuple[tuple[int, int], ...]
    n_outputs: int
    #: Numbers of constraint residuals, redundant constraints included, on position and on velocity level.
    n_position_residuals: int
    n_velocity_residuals: int


@functools.lru_cache(maxsize=256)
def closure_kernels(
    scheme: RigidBodyScheme, model: ElementType, local_dofs: tuple[tuple[int, ...], ...], rows: tuple[int, ...]
) -> ClosureKernels:
    """Return the kernels of an element type; `local_dofs` are the indices of each body's coordinates, -1 if unused.

    Arguments of the step are ``ups`` and ``alpha`` of each body and the multipliers, then centres and rotation
    matrices. The first outputs are the wrench of each body and its own 6x6 block, then the constraints `rows`. The
    derivatives of all wrenches by the multipliers times 4/h^2 follow, and those of coupled entries and of constraints.
    """
    n_bodies, m = len(local_dofs), len(rows)
    x, z, c = ca.SX.sym("x", 8 * n_bodies + m), ca.SX.sym("z", 16 * n_bodies), ca.SX.sym("c", 2 + model.k.numel())
    h, t, k, lam = c[0], c[1], c[2:], x[8 * n_bodies :]
    bodies = [BodyMotion(x[8 * i : 8 * i + 8], z[16 * i : 16 * i + 16], h) for i in range(n_bodies)]

    def collected(vectors: list[ca.SX]) -> ca.SX:
        """Return the element's vector of coordinates from those of its bodies."""
        entries: list[ca.SX] = [ca.SX(0)] * model.n
        for local_indices, vector in zip(local_dofs, vectors, strict=True):
            for i, local_index in enumerate(local_indices):
                if local_index >= 0:
                    entries[local_index] = vector[i]
        return ca.vertcat(*entries)

    all_lam = ca.SX.zeros(model.m)
    for i, row in enumerate(rows):
        all_lam[row] = lam[i]
    q, rates = collected([body.q for body in bodies]), collected([body.rates for body in bodies])
    residual, constraints, work = RigidBodyElementKernel(scheme, model, False).contribution(rates, all_lam, q, h, t, k)
    constraints = _select(constraints, rows)
    wrenches = []
    for local_indices, body in zip(local_dofs, bodies, strict=True):
        on_body = ca.vertcat(
            *(residual[local_index] if local_index >= 0 else ca.SX(0) for local_index in local_indices)
        )
        wrenches.append(ca.vertcat(*body.wrench(on_body)))
    wrench = ca.vertcat(*wrenches)
    by_motion = ca.horzcat(*(body.by_variation(ca.vertcat(wrench, constraints)) for body in bodies))
    pattern = np.array(ca.DM(ca.sparsify(by_motion).sparsity(), 1.0))[: 6 * n_bodies]
    out: list[ca.SX] = []
    for i in range(n_bodies):
        pattern[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = 0.0
    is_coupled = np.asarray(pattern.any(axis=1))
    opposite = _opposite_entries(wrench, x, z, c) if n_bodies == 2 else np.zeros(6, dtype=bool)
    pairs = [(i, i + 6) for i in range(6) if n_bodies == 2 and opposite[i] and is_coupled[[i, i + 6]].any()]
    in_pairs = {i for pair in pairs for i in pair}
    coupled = pairs + [(int(i), -1) for i in np.flatnonzero(is_coupled) if i not in in_pairs]
    own_blocks, couplings = (
        ca.SX(by_motion),
        ca.SX(by_motion[[i for i, _ in coupled], :]) if coupled else ca.SX(0, 6 * n_bodies),
    )
    for i in in_pairs:  # the whole derivative belongs to the row
        own_blocks[i, :] = 0
    for j, (i, partner) in enumerate(coupled):  # the own block belongs to the tree
        if partner < 0:
            couplings[j, 6 * (i // 6) : 6 * (i // 6) + 6] = 0
    for i in range(n_bodies):
        force, torque = wrench[6 * i : 6 * i + 3], wrench[6 * i + 3 : 6 * i + 6]
        block_6x6 = own_blocks[6 * i : 6 * i + 6, 6 * i : 6 * i + 6]
        blocks = [padded(block_6x6[a : a + 3, b : b + 3]) for a in (0, 3) for b in (0, 3)]
        out += [padded(force), padded(torque), *blocks]
    by_lam = ca.jacobian(wrench, lam) * (4 / h**2)
    rows_of_bodies = ca.vertcat(couplings, by_motion[6 * n_bodies :, :]).T
    size = _whole_quads(m)
    out += [constraints, ca.SX.zeros(size - m)]
    out += [padded(ca.reshape(column, 3, 2 * n_bodies)) for column in ca.horzsplit(by_lam)] if m else []
    n_rows = len(coupled) + m
    out += [padded(ca.reshape(row, 3, 2 * n_bodies)) for row in ca.horzsplit(rows_of_bodies)] if n_rows else []
    outputs = ca.densify(ca.vertcat(*out))
    q_end = q + h * rates
    potential = ca.substitute(model.V, ca.vertcat(model.q, model.t, model.k), ca.vertcat(q_end, t + h, k))
    works = ca.densify(ca.vertcat(work, potential))
    # residuals of a state: x has velocity and angular velocity of each body
    velocities = collected([body.velocities for body in bodies])
    symbols, values = ca.vertcat(model.q, model.v, model.t, model.k), ca.vertcat(q, velocities, t, k)
    n_position = model.n_position_constraints
    g = model.g[:n_position] if n_position else ca.SX(0, 1)
    at_velocity = ca.jtimes(g, model.q, model.v) + ca.jacobian(g, model.t) if n_position else ca.SX(0, 1)
    if model.velocity_constraints is not None:
        at_velocity = ca.vertcat(at_velocity, model.velocity_constraints.a)
    residuals = ca.substitute(ca.vertcat(g, at_velocity), symbols, values)
    return ClosureKernels(
        compile_function_kernel(ca.Function("closure", [x, z, c], [outputs]), "closure"),
        compile_function_kernel(ca.Function("work", [x, z, c], [works]), "work"),
        compile_function_kernel(
            ca.Function("residuals", [x, z, c], [ca.densify(ca.vertcat(residuals, 0))]), "residuals"
        ),
        tuple((_padded_entry(i), _padded_entry(partner)) for i, partner in coupled),
        int(outputs.numel()),
        n_position,
        int(at_velocity.numel()),
    )


def _select(column: ca.SX, rows: Sequence[int]) -> ca.SX:
    """Return some rows of a column; an empty list of indices would select a zero."""
    return ca.vertcat(*(column[row] for row in rows)) if rows else ca.SX(0, 1)


def _whole_quads(n: int) -> int:
    """Return the smallest multiple of four that is not less than n."""
    return -(-n // 4) * 4


def _padded_entry(i: int) -> int:
    """Return the place of a wrench entry, six per body, in wrenches of eight entries; -1 stays."""
    return i if i < 0 else 8 * (i // 6) + i % 6 + (i % 6) // 3


def _opposite_entries(wrench: ca.SX, x: ca.SX, z: ca.SX, c: ca.SX) -> np.ndarray:
    """Return True for the entries of the wrenches on two bodies that are opposite for all motions."""
    sums, sizes = wrench[:6] + wrench[6:], ca.fabs(wrench[:6])
    function, rng = ca.Function("opposite", [x, z, c], [sums, sizes]), np.random.default_rng(2)
    is_opposite = np.ones(6, dtype=bool)
    for _ in range(3):
        total, size = (np.array(y).ravel() for y in function(*(rng.uniform(0.2, 1.0, y.numel()) for y in (x, z, c))))
        is_opposite &= (np.abs(total) <= 1e-12 * size) & (size > 0)  # False for NaN, and for bodies without contact
    return is_opposite
