"""Adjoint, tangent and second-order sweeps over a chunk of steps, with the kernels of `livens.engine.derivatives`."""

from __future__ import annotations

import numpy as np

from livens.engine.lowering.function import compile_unit, lowered
from livens.engine.lowering.intrinsics import call_kernel
from livens.engine.lowering.types import F64Array, I64Array


@lowered
def _copy(source: F64Array, size: int, target: F64Array) -> None:
    """Copy ``source`` to ``target``."""
    for i in range(size):
        target[i] = source[i]


@lowered
def _add(source: F64Array, size: int, target: F64Array) -> None:
    """Add ``source`` to ``target``."""
    for i in range(size):
        target[i] += source[i]


# -- adjoint ----------------------------------------------------------------------------------------------------------
@lowered
def _adjoint_sweep(
    kernel: int,
    last: int,
    step0: int,
    h: float,
    t_origin: float,
    c: F64Array,
    Z: F64Array,
    nz: int,
    X: F64Array,
    n: int,
    adjoint: F64Array,
    grad_c: F64Array,
    ng: int,
    saved: F64Array,
    observed: I64Array,
    cotangents: F64Array,
    n_remaining: I64Array,
    max_growth: float,
    time_grads: F64Array,
    dt_dh_offset: float,
    dh_scale: float,
) -> int:
    c[0] = h
    grad_c[1] = 0.0
    for s in range(last, -1, -1):
        c[1] = t_origin + (step0 + s) * h
        while n_remaining[0] > 0 and observed[n_remaining[0] - 1] == step0 + s + 1:
            n_remaining[0] -= 1
            _add(cotangents + n_remaining[0] * nz, nz, adjoint)
        if max_growth < np.inf:
            _copy(adjoint, nz, saved)
            _copy(grad_c, ng, saved + nz)
        call_kernel(kernel, X + s * n, Z + s * nz, c, adjoint, grad_c)
        if max_growth < np.inf and not grad_c[ng - 1] <= max_growth:
            _copy(saved, nz, adjoint)
            _copy(saved + nz, ng, grad_c)
            return s + 1
        time_grads[0] += grad_c[1]
        time_grads[1] += (dt_dh_offset + dh_scale * (step0 + s)) * grad_c[1]
        grad_c[1] = 0.0
    return 0


def adjoint_sweep(
    kernel: int,
    last: int,
    step0: int,
    h: float,
    t_origin: float,
    c: np.ndarray,
    Z: np.ndarray,
    X: np.ndarray,
    adjoint: np.ndarray,
    grad_c: np.ndarray,
    observed: np.ndarray,
    cotangents: np.ndarray,
    n_remaining: int,
    max_growth: float,
    time_grads: np.ndarray,
    dt_dh_offset: float,
    dh_scale: float,
) -> tuple[int, int]:
    """Sweep backward over a chunk from step `last` to step 0. Returns (remaining steps, remaining cotangents).

    ``cotangents[i]`` is the derivative by state number ``observed[i]``; the first `n_remaining` are not yet added. If a
    step requires another pivot order, its adjoint is not updated. The gradient by the times of the steps is added to
    ``time_grads[0]``, and to ``time_grads[1]`` weighted by dt/dh = ``dt_dh_offset + dh_scale * number``.
    """
    remaining, saved, sizes = (
        np.array([n_remaining], dtype=np.int64),
        np.empty(adjoint.size + grad_c.size),
        (Z.shape[1], X.shape[1]),
    )
    loop_args = (
        adjoint,
        grad_c,
        grad_c.size,
        saved,
        observed,
        cotangents,
        remaining,
        max_growth,
        time_grads,
        dt_dh_offset,
        dh_scale,
    )
    n_todo = _adjoint_sweep(kernel, last, step0, h, t_origin, c, Z, sizes[0], X, sizes[1], *loop_args)
    return n_todo, int(remaining[0])


# -- tangent ----------------------------------------------------------------------------------------------------------
@lowered
def _tangent_sweep(
    kernel: int,
    start: int,
    stop: int,
    step0: int,
    h: float,
    t_origin: float,
    c: F64Array,
    nc: int,
    Z: F64Array,
    nz: int,
    X: F64Array,
    n: int,
    tangents: F64Array,
    n_directions: int,
    tangents_next: F64Array,
    tangents_out: F64Array,
    max_growth: float,
    dc: F64Array,
    dt_dh_offset: float,
    dh_scale: float,
) -> int:
    c[0] = h
    for s in range(start, stop):
        c[1] = t_origin + (step0 + s) * h
        for j in range(n_directions):
            d_inputs, moves = tangents + (j * (nz + nc) + nz), dc + j * nc
            d_inputs[0] = dh_scale * moves[0]
            d_inputs[1] = moves[1] + (dt_dh_offset + dh_scale * (step0 + s)) * moves[0]
        call_kernel(kernel, X + s * n, Z + s * nz, c, tangents, tangents_next)
        if not tangents_next[n_directions * nz] <= max_growth:
            return s
        for j in range(n_directions):
            _copy(tangents_next + j * nz, nz, tangents + j * (nz + nc))
        _copy(tangents_next, n_directions * nz, tangents_out + s * n_directions * nz)
    return stop


def tangent_sweep(
    kernel: int,
    start: int,
    step0: int,
    h: float,
    t_origin: float,
    c: np.ndarray,
    Z: np.ndarray,
    X: np.ndarray,
    tangents: np.ndarray,
    tangents_next: np.ndarray,
    tangents_out: np.ndarray,
    max_growth: float,
    dc: np.ndarray,
    dt_dh_offset: float,
    dh_scale: float,
) -> int:
    """Sweep forward over a chunk from step `start`. Returns the completed steps; `tangents_out` receives dz after each.

    Rows of dc are (dh, dt, ...) of the whole run: a time changes by ``dt + (dt_dh_offset + dh_scale * number) dh``.
    """
    (steps, n), (n_directions, nz) = X.shape, tangents_out.shape[1:]
    loop_args = tangents, n_directions, tangents_next, tangents_out, max_growth, dc, dt_dh_offset, dh_scale
    return _tangent_sweep(kernel, start, steps, step0, h, t_origin, c, c.size, Z, nz, X, n, *loop_args)


# -- second derivatives -----------------------------------------------------------------------------------------------
@lowered
def _second_order_sweep(
    kernel: int,
    last: int,
    step0: int,
    h: float,
    t_origin: float,
    c: F64Array,
    nc: int,
    Z: F64Array,
    nz: int,
    X: F64Array,
    n: int,
    D: F64Array,
    dc: F64Array,
    adjoint: F64Array,
    d_adjoint: F64Array,
    grad_c: F64Array,
    d_grad_c: F64Array,
    observed: I64Array,
    cotangents: F64Array,
    d_cotangents: F64Array,
    n_remaining: I64Array,
    max_growth: float,
    dt_dh_offset: float,
    dh_scale: float,
    kernel_inputs: F64Array,
    out: F64Array,
) -> int:
    moves, values, tangent = kernel_inputs + 3 * nz, out + 2 * nz, out + (2 * nz + nc)
    c[0] = h
    _copy(dc, nc, moves)
    moves[0] = dh_scale * dc[0]
    for s in range(last, -1, -1):
        c[1] = t_origin + (step0 + s) * h
        while n_remaining[0] > 0 and observed[n_remaining[0] - 1] == step0 + s + 1:
            n_remaining[0] -= 1
            _add(cotangents + n_remaining[0] * nz, nz, adjoint)
            _add(d_cotangents + n_remaining[0] * nz, nz, d_adjoint)
        dt_dh = dt_dh_offset + dh_scale * (step0 + s)
        _copy(adjoint, nz, kernel_inputs)
        _copy(d_adjoint, nz, kernel_inputs + nz)
        _copy(D + s * nz, nz, kernel_inputs + 2 * nz)
        moves[1] = dc[1] + dt_dh * dc[0]
        call_kernel(kernel, X + s * n, Z + s * nz, c, kernel_inputs, out)
        if not out[2 * nz + 2 * nc] <= max_growth:
            return s + 1
        _copy(out, nz, adjoint)
        _copy(out + nz, nz, d_adjoint)
        grad_c[0] += dh_scale * values[0] + dt_dh * values[1]
        d_grad_c[0] += dh_scale * tangent[0] + dt_dh * tangent[1]
        _add(values + 1, nc - 1, grad_c + 1)
        _add(tangent + 1, nc - 1, d_grad_c + 1)
    return 0


def second_order_sweep(
    kernel: int,
    last: int,
    step0: int,
    h: float,
    t_origin: float,
    c: np.ndarray,
    Z: np.ndarray,
    X: np.ndarray,
    D: np.ndarray,
    dc: np.ndarray,
    adjoint: np.ndarray,
    d_adjoint: np.ndarray,
    grad_c: np.ndarray,
    d_grad_c: np.ndarray,
    observed: np.ndarray,
    cotangents: np.ndarray,
    d_cotangents: np.ndarray,
    n_remaining: int,
    max_growth: float,
    dt_dh_offset: float,
    dh_scale: float,
) -> tuple[int, int]:
    """Sweep backward as `adjoint_sweep`, with the tangents along the direction whose states before each step are D.

    grad_c and d_grad_c are the derivatives by c = (h, t, parameters) of the whole run, and their tangents.
    """
    n, nz, nc = X.shape[1], adjoint.size, c.size
    remaining = np.array([n_remaining], dtype=np.int64)
    loop_args = (
        D,
        dc,
        adjoint,
        d_adjoint,
        grad_c,
        d_grad_c,
        observed,
        cotangents,
        d_cotangents,
        remaining,
        max_growth,
        dt_dh_offset,
        dh_scale,
    )
    scratch = np.empty(3 * nz + nc), np.empty(2 * nz + 2 * nc + 1)
    n_todo = _second_order_sweep(kernel, last, step0, h, t_origin, c, nc, Z, nz, X, n, *loop_args, *scratch)
    return n_todo, int(remaining[0])


compile_unit(_adjoint_sweep, _tangent_sweep, _second_order_sweep)
