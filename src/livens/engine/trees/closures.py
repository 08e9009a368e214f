"""Closures in the tree tier: constraints and forces between bodies that are not connected by a tree joint.

The wrench of a closure depends on its multipliers and on the motion of its bodies. Its derivative by the motion of the
same body belongs to the tree. All other derivatives are of low rank: with columns B, for the multipliers and for
wrench entries that depend on other bodies, and rows E, of the same entries and of the constraints, the correction is

    x = x_0 - T^-1 B s,    (M + E T^-1 B) s = E x_0 + (0, g),    x_0 = -T^-1 r

with the factors of the tree T, and M the identity for wrench entries and zero for constraints.
"""

from __future__ import annotations

from livens.engine.lowering.function import lowered
from livens.engine.lowering.intrinsics import call_kernel, load_quad, make_quad, store_quad
from livens.engine.lowering.types import F64Array, I64Array
from livens.engine.trees.elimination import correct_body, load_body
from livens.engine.trees.records import (
    A11,
    ALPHA,
    C1,
    C2,
    C_BODIES,
    C_BODY,
    C_COLUMN,
    C_COLUMNS,
    C_CONSTRAINTS,
    C_COUPLED,
    C_ENTRY,
    C_INPUTS,
    C_MOTION,
    C_MULTIPLIERS,
    C_OUTPUTS,
    C_PATH,
    C_PATH_LENGTH,
    C_POSE,
    C_POSITIONS,
    C_RESIDUALS,
    C_ROWS,
    C_STEP,
    C_UNKNOWN,
    C_VELOCITIES,
    C_WORK,
    CLOSURE_INTS,
    DELTA,
    EPS,
    NU,
    PHI,
    RL,
    RP,
    STRIDE,
    UPS,
    WRENCH_AND_BLOCKS,
    R,
    TreeArrays,
)
from livens.engine.trees.vectors import add_to, dot


@lowered
def begin_closures(t: TreeArrays, h: float, time: float) -> None:
    """Set step size and time of all closures."""
    for j in range(t.n_closures):
        c = t.closure_inputs + t.closures[j * CLOSURE_INTS + C_INPUTS]
        c[0], c[1] = h, time


@lowered
def _gather(t: TreeArrays, closure: I64Array, translation: int, rotation: int) -> None:
    """Copy motions, the vectors at two places of the records, and poses of the bodies of a closure."""
    for i in range(closure[C_BODIES]):
        b = t.records + t.closure_bodies[closure[C_BODY] + i] * STRIDE
        x, z = t.closure_data + (closure[C_MOTION] + 8 * i), t.closure_data + (closure[C_POSE] + 16 * i)
        store_quad(x, 0, load_quad(b, translation))
        store_quad(x, 4, load_quad(b, rotation))
        store_quad(z, 0, load_quad(b, PHI))
        for j in range(3):
            store_quad(z, 4 + 4 * j, load_quad(b, R + 4 * j))


@lowered
def _evaluate(t: TreeArrays, closure: I64Array, kernel: int) -> F64Array:
    """Call a kernel of a closure; return its outputs."""
    data = t.closure_data
    out = data + closure[C_OUTPUTS]
    c = t.closure_inputs + closure[C_INPUTS]
    call_kernel(kernel, data + closure[C_MOTION], data + closure[C_POSE], c, out, out)
    return out


@lowered
def load_multipliers(t: TreeArrays, x: F64Array) -> None:
    """Set the multipliers of closures from the unknowns of a step."""
    for j in range(t.n_closures):
        closure = t.closures + j * CLOSURE_INTS
        lam = t.closure_data + (closure[C_MOTION] + 8 * closure[C_BODIES])
        for i in range(closure[C_MULTIPLIERS]):
            lam[i] = x[closure[C_UNKNOWN] + i]


@lowered
def store_multipliers(t: TreeArrays, x: F64Array) -> None:
    """Store the multipliers of closures among the unknowns of a step."""
    for j in range(t.n_closures):
        closure = t.closures + j * CLOSURE_INTS
        lam = t.closure_data + (closure[C_MOTION] + 8 * closure[C_BODIES])
        for i in range(closure[C_MULTIPLIERS]):
            x[closure[C_UNKNOWN] + i] = lam[i]


@lowered
def add_closures(t: TreeArrays, has_blocks: bool) -> None:
    """Add the wrenches of all closures to their bodies, and the derivatives by the motion of the same body."""
    for j in range(t.n_closures):
        closure = t.closures + j * CLOSURE_INTS
        _gather(t, closure, UPS, ALPHA)
        outputs = _evaluate(t, closure, closure[C_STEP])
        for i in range(closure[C_BODIES]):
            b = t.records + t.closure_bodies[closure[C_BODY] + i] * STRIDE
            out = outputs + WRENCH_AND_BLOCKS * i
            add_to(b, RP, load_quad(out, 0))
            add_to(b, RL, load_quad(out, 4))
            if has_blocks:
                for k in range(12):
                    add_to(b, A11 + 4 * k, load_quad(out, 8 + 4 * k))


@lowered
def _clear_loads(t: TreeArrays) -> None:
    zero = make_quad(0.0, 0.0, 0.0)
    for i in range(t.n_driven):
        b = t.records + i * STRIDE
        store_quad(b, C1, zero)
        store_quad(b, C2, zero)
        b[DELTA] = 0.0


@lowered
def _add_column(t: TreeArrays, closure: I64Array, column: int, factor: float) -> None:
    """Add a column of a closure to the loads of its bodies."""
    n_coupled, n_bodies = closure[C_COUPLED], closure[C_BODIES]
    for i in range(n_bodies):
        b = t.records + t.closure_bodies[closure[C_BODY] + i] * STRIDE
        if column < n_coupled:
            for side in range(2):
                entry = t.closure_entries[closure[C_ENTRY] + 2 * column + side] - 8 * i
                if entry >= 0 and entry < 8:
                    b[C1 + entry] += factor * (1.0 - 2.0 * side)
        else:
            start = closure[C_OUTPUTS] + closure[C_COLUMNS] + 8 * ((column - n_coupled) * n_bodies + i)
            add_to(b, C1, load_quad(t.closure_data, start) * factor)
            add_to(b, C2, load_quad(t.closure_data, start + 4) * factor)


@lowered
def _project(t: TreeArrays, out: F64Array, stride: int, sign: float) -> None:
    """Evaluate the rows of all closures, times a sign, for the variations of the bodies."""
    for j in range(t.n_closures):
        closure = t.closures + j * CLOSURE_INTS
        n_bodies = closure[C_BODIES]
        for row in range(closure[C_COUPLED] + closure[C_MULTIPLIERS]):
            total = 0.0
            for i in range(n_bodies):
                b = t.records + t.closure_bodies[closure[C_BODY] + i] * STRIDE
                start = closure[C_OUTPUTS] + closure[C_ROWS] + 8 * (row * n_bodies + i)
                total += dot(load_quad(t.closure_data, start), load_quad(b, NU))
                total += dot(load_quad(t.closure_data, start + 4), load_quad(b, EPS))
            out[stride * (closure[C_COLUMN] + row)] = sign * total


@lowered
def _solve_dense(S: F64Array, n: int, x: F64Array) -> None:
    """Solve a dense system by Gauss elimination with scaled row pivots; matrix and right-hand side are replaced."""
    for i in range(n):  # the largest entry of a row becomes one
        largest = 0.0
        for j in range(n):
            largest = max(largest, abs(S[n * i + j]))
        if largest > 0.0:
            for j in range(n):
                S[n * i + j] = S[n * i + j] / largest
            x[i] = x[i] / largest
    for k in range(n):
        pivot = k
        for i in range(k + 1, n):
            if abs(S[n * i + k]) > abs(S[n * pivot + k]):
                pivot = i
        if pivot != k:
            for j in range(n):
                entry = S[n * k + j]
                S[n * k + j] = S[n * pivot + j]
                S[n * pivot + j] = entry
            entry = x[k]
            x[k] = x[pivot]
            x[pivot] = entry
        for i in range(k + 1, n):
            factor = S[n * i + k] / S[n * k + k]
            if factor != 0.0:
                for j in range(k + 1, n):
                    S[n * i + j] -= factor * S[n * k + j]
                x[i] -= factor * x[k]
    for back in range(n):
        i = n - 1 - back
        for j in range(i + 1, n):
            x[i] -= S[n * i + j] * x[j]
        x[i] = x[i] / S[n * i + i]


@lowered
def correct_closures(t: TreeArrays) -> float:
    """Solve for the corrections of closures, and add their wrenches to the loads of the bodies.

    The variations in the records are those of the tree without the corrections of closures; those with them follow by
    `load_body` and `correct_body` of all bodies.

    Return the largest displacement that a single corrected wrench causes at its closure. Near singular positions large
    corrections of multipliers compensate each other, and the correction of the motion does not show them.
    """
    n = t.n_columns
    rhs = t.schur + n * n
    _project(t, rhs, 1, 1.0)
    for j in range(t.n_closures):
        closure = t.closures + j * CLOSURE_INTS
        constraints = t.closure_data + (closure[C_OUTPUTS] + closure[C_CONSTRAINTS])
        for i in range(closure[C_MULTIPLIERS]):
            rhs[closure[C_COLUMN] + closure[C_COUPLED] + i] += constraints[i]
    _clear_loads(t)
    zero = make_quad(0.0, 0.0, 0.0)
    for j in range(t.n_closures):
        closure = t.closures + j * CLOSURE_INTS
        for column in range(closure[C_COUPLED] + closure[C_MULTIPLIERS]):
            _add_column(t, closure, column, 1.0)
            path, length = closure[C_PATH], closure[C_PATH_LENGTH]
            for k in range(length):
                load_body(t, t.closure_paths[path + length - 1 - k], 0.0)
            for k in range(t.n_active):
                correct_body(t, t.active[k], 0.0)
                b = t.records + t.active[k] * STRIDE
                store_quad(b, C1, zero)
                store_quad(b, C2, zero)
                b[DELTA] = 0.0
            number = closure[C_COLUMN] + column
            _project(t, t.schur + number, n, -1.0)
            if column < closure[C_COUPLED]:
                t.schur[n * number + number] += 1.0
    responses = rhs + n
    for i in range(n):
        responses[i] = abs(t.schur[n * i + i])
    _solve_dense(t.schur, n, rhs)
    largest = 0.0
    for j in range(t.n_closures):
        closure = t.closures + j * CLOSURE_INTS
        for column in range(closure[C_COUPLED] + closure[C_MULTIPLIERS]):
            number = closure[C_COLUMN] + column
            _add_column(t, closure, column, rhs[number])
            response = responses[number]
            if column < closure[C_COUPLED]:
                response = abs(response - 1.0)
            largest = max(largest, abs(rhs[number]) * response)
    return largest


@lowered
def apply_multipliers(t: TreeArrays, h: float, part: float) -> None:
    """Update the multipliers by a fraction of the correction."""
    rhs = t.schur + t.n_columns * t.n_columns
    for j in range(t.n_closures):
        closure = t.closures + j * CLOSURE_INTS
        lam = t.closure_data + (closure[C_MOTION] + 8 * closure[C_BODIES])
        for i in range(closure[C_MULTIPLIERS]):
            lam[i] += part * 4.0 / (h * h) * rhs[closure[C_COLUMN] + closure[C_COUPLED] + i]


@lowered
def add_closure_work(t: TreeArrays, work: F64Array) -> None:
    """Add supplied, dissipated and potential energy of all closures at the end of the step to ``work[3:6]``."""
    for j in range(t.n_closures):
        closure = t.closures + j * CLOSURE_INTS
        _gather(t, closure, UPS, ALPHA)
        out = _evaluate(t, closure, closure[C_WORK])
        for i in range(3):
            work[3 + i] += out[i]


@lowered
def closure_potential(t: TreeArrays) -> float:
    """Return the potential energy of all closures for bodies that do not move in the step."""
    potential, zero = 0.0, make_quad(0.0, 0.0, 0.0)
    for j in range(t.n_closures):
        closure = t.closures + j * CLOSURE_INTS
        _gather(t, closure, UPS, ALPHA)
        for i in range(2 * closure[C_BODIES]):
            store_quad(t.closure_data, closure[C_MOTION] + 4 * i, zero)
        t.closure_inputs[closure[C_INPUTS]] = 1e-30  # no time passes: the potential at the end is that at the start
        potential += _evaluate(t, closure, closure[C_WORK])[2]
    return potential


@lowered
def add_closure_residuals(t: TreeArrays, time: float, row: F64Array) -> None:
    """Update the largest constraint residuals ``row[2:4]`` for poses, velocities NU and angular velocities EPS."""
    for j in range(t.n_closures):
        closure = t.closures + j * CLOSURE_INTS
        _gather(t, closure, NU, EPS)
        t.closure_inputs[closure[C_INPUTS] + 1] = time
        out, n = _evaluate(t, closure, closure[C_RESIDUALS]), closure[C_POSITIONS]
        for i in range(n):
            row[2] = max(row[2], abs(out[i]))
        for i in range(closure[C_VELOCITIES]):
            row[3] = max(row[3], abs(out[n + i]))
