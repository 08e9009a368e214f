"""Adjoint, tangent and second-order sweeps over a chunk of steps, with the kernels of `livens.engine.derivatives`."""

from __future__ import annotations

import numpy as np

from livens.engine.lowering.function import lowered, together
from livens.engine.lowering.kinds import Doubles, Integers
from livens.engine.lowering.words import call


@lowered
def _copy(a: Doubles, size: int, b: Doubles) -> None:
    """Copy ``source`` to ``target``."""
    for i in range(size):
        b[i] = a[i]


@lowered
def _add(a: Doubles, size: int, b: Doubles) -> None:
    """Add ``source`` to ``target``."""
    for i in range(size):
        b[i] += a[i]


# -- adjoint ----------------------------------------------------------------------------------------------------------
@lowered
def _sweep_back(
    kernel: int,
    last: int,
    first: int,
    h: float,
    origin: float,
    c: Doubles,
    Z: Doubles,
    nz: int,
    X: Doubles,
    n: int,
    a: Doubles,
    g: Doubles,
    ng: int,
    before: Doubles,
    at: Integers,
    bars: Doubles,
    left: Integers,
    limit: float,
    times: Doubles,
    offset: float,
    stretch: float,
) -> int:
    c[0] = h
    g[1] = 0.0
    for s in range(last, -1, -1):
        c[1] = origin + (first + s) * h
        while left[0] > 0 and at[left[0] - 1] == first + s + 1:
            left[0] -= 1
            _add(bars + left[0] * nz, nz, a)
        if limit < np.inf:
            _copy(a, nz, before)
            _copy(g, ng, before + nz)
        call(kernel, X + s * n, Z + s * nz, c, a, g)
        if limit < np.inf and not g[ng - 1] <= limit:
            _copy(before, nz, a)
            _copy(before + nz, ng, g)
            return s + 1
        times[0] += g[1]
        times[1] += (offset + stretch * (first + s)) * g[1]
        g[1] = 0.0
    return 0


def sweep_back(
    kernel: int,
    last: int,
    first: int,
    h: float,
    origin: float,
    c: np.ndarray,
    Z: np.ndarray,
    X: np.ndarray,
    a: np.ndarray,
    g: np.ndarray,
    at: np.ndarray,
    bars: np.ndarray,
    left: int,
    limit: float,
    times: np.ndarray,
    offset: float,
    stretch: float,
) -> tuple[int, int]:
    """Sweep backward over a chunk from step `last` to step 0. Returns (remaining steps, remaining cotangents).

    ``cotangents[i]`` is the derivative by state number ``observed[i]``; the first `n_remaining` are not yet added. If a
    step requires another pivot order, its adjoint is not updated. The gradient by the times of the steps is added to
    ``time_grads[0]``, and to ``time_grads[1]`` weighted by dt/dh = ``dt_dh_offset + dh_scale * number``.
    """
    bars_left, before, sizes = np.array([left], dtype=np.int64), np.empty(a.size + g.size), (Z.shape[1], X.shape[1])
    found = a, g, g.size, before, at, bars, bars_left, limit, times, offset, stretch
    todo = _sweep_back(kernel, last, first, h, origin, c, Z, sizes[0], X, sizes[1], *found)
    return todo, int(bars_left[0])


# -- tangent ----------------------------------------------------------------------------------------------------------
@lowered
def _sweep_forth(
    kernel: int,
    start: int,
    stop: int,
    first: int,
    h: float,
    origin: float,
    c: Doubles,
    nc: int,
    Z: Doubles,
    nz: int,
    X: Doubles,
    n: int,
    d: Doubles,
    directions: int,
    new: Doubles,
    kept: Doubles,
    limit: float,
    dc: Doubles,
    offset: float,
    stretch: float,
) -> int:
    c[0] = h
    for s in range(start, stop):
        c[1] = origin + (first + s) * h
        for j in range(directions):
            to_c, moves = d + (j * (nz + nc) + nz), dc + j * nc
            to_c[0] = stretch * moves[0]
            to_c[1] = moves[1] + (offset + stretch * (first + s)) * moves[0]
        call(kernel, X + s * n, Z + s * nz, c, d, new)
        if not new[directions * nz] <= limit:
            return s
        for j in range(directions):
            _copy(new + j * nz, nz, d + j * (nz + nc))
        _copy(new, directions * nz, kept + s * directions * nz)
    return stop


def sweep_forth(
    kernel: int,
    start: int,
    first: int,
    h: float,
    origin: float,
    c: np.ndarray,
    Z: np.ndarray,
    X: np.ndarray,
    d: np.ndarray,
    new: np.ndarray,
    kept: np.ndarray,
    limit: float,
    dc: np.ndarray,
    offset: float,
    stretch: float,
) -> int:
    """Sweep forward over a chunk from step `start`. Returns the completed steps; `tangents_out` receives dz after each.

    Rows of dc are (dh, dt, ...) of the whole run: a time changes by ``dt + (dt_dh_offset + dh_scale * number) dh``.
    """
    (steps, n), (directions, nz) = X.shape, kept.shape[1:]
    found = d, directions, new, kept, limit, dc, offset, stretch
    return _sweep_forth(kernel, start, steps, first, h, origin, c, c.size, Z, nz, X, n, *found)


# -- second derivatives -----------------------------------------------------------------------------------------------
@lowered
def _sweep_second(
    kernel: int,
    last: int,
    first: int,
    h: float,
    origin: float,
    c: Doubles,
    nc: int,
    Z: Doubles,
    nz: int,
    X: Doubles,
    n: int,
    D: Doubles,
    dc: Doubles,
    a: Doubles,
    da: Doubles,
    g: Doubles,
    dg: Doubles,
    at: Integers,
    bars: Doubles,
    dbars: Doubles,
    left: Integers,
    limit: float,
    offset: float,
    stretch: float,
    given: Doubles,
    out: Doubles,
) -> int:
    moves, own, tangent = given + 3 * nz, out + 2 * nz, out + (2 * nz + nc)
    c[0] = h
    _copy(dc, nc, moves)
    moves[0] = stretch * dc[0]
    for s in range(last, -1, -1):
        c[1] = origin + (first + s) * h
        while left[0] > 0 and at[left[0] - 1] == first + s + 1:
            left[0] -= 1
            _add(bars + left[0] * nz, nz, a)
            _add(dbars + left[0] * nz, nz, da)
        speed = offset + stretch * (first + s)
        _copy(a, nz, given)
        _copy(da, nz, given + nz)
        _copy(D + s * nz, nz, given + 2 * nz)
        moves[1] = dc[1] + speed * dc[0]
        call(kernel, X + s * n, Z + s * nz, c, given, out)
        if not out[2 * nz + 2 * nc] <= limit:
            return s + 1
        _copy(out, nz, a)
        _copy(out + nz, nz, da)
        g[0] += stretch * own[0] + speed * own[1]
        dg[0] += stretch * tangent[0] + speed * tangent[1]
        _add(own + 1, nc - 1, g + 1)
        _add(tangent + 1, nc - 1, dg + 1)
    return 0


def sweep_second(
    kernel: int,
    last: int,
    first: int,
    h: float,
    origin: float,
    c: np.ndarray,
    Z: np.ndarray,
    X: np.ndarray,
    D: np.ndarray,
    dc: np.ndarray,
    a: np.ndarray,
    da: np.ndarray,
    g: np.ndarray,
    dg: np.ndarray,
    at: np.ndarray,
    bars: np.ndarray,
    dbars: np.ndarray,
    left: int,
    limit: float,
    offset: float,
    stretch: float,
) -> tuple[int, int]:
    """Sweep backward as `adjoint_sweep`, with the tangents along the direction whose states before each step are D.

    grad_c and d_grad_c are the derivatives by c = (h, t, parameters) of the whole run, and their tangents.
    """
    n, nz, nc = X.shape[1], a.size, c.size
    bars_left = np.array([left], dtype=np.int64)
    found = D, dc, a, da, g, dg, at, bars, dbars, bars_left, limit, offset, stretch
    room = np.empty(3 * nz + nc), np.empty(2 * nz + 2 * nc + 1)
    todo = _sweep_second(kernel, last, first, h, origin, c, nc, Z, nz, X, n, *found, *room)
    return todo, int(bars_left[0])


together(_sweep_back, _sweep_forth, _sweep_second)
