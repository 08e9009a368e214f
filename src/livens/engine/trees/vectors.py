"""Lowered vector and 3x3 matrix operations on vectors of four; matrices are three columns of four entries."""

from __future__ import annotations

from livens.engine.lowering.function import lowered
from livens.engine.lowering.intrinsics import cyclic, lane, load_quad, make_quad, store_quad, sum3
from livens.engine.lowering.types import F64Array, Quad


@lowered
def cross(a: Quad, b: Quad) -> Quad:
    """Return the vector product ``a x b``."""
    return cyclic(a * cyclic(b) - cyclic(a) * b)


@lowered
def dot(a: Quad, b: Quad) -> float:
    """Return the scalar product ``a . b``."""
    return sum3(a * b)


@lowered
def mul(M: F64Array, x: Quad) -> Quad:
    """Return the product ``M x``."""
    return load_quad(M, 0) * lane(x, 0) + load_quad(M, 4) * lane(x, 1) + load_quad(M, 8) * lane(x, 2)


@lowered
def mul_transposed(M: F64Array, x: Quad) -> Quad:
    """Return the product ``M^T x``."""
    return make_quad(sum3(load_quad(M, 0) * x), sum3(load_quad(M, 4) * x), sum3(load_quad(M, 8) * x))


@lowered
def midpoint(d: Quad, a: Quad, f: float) -> Quad:
    """Return the mean of a body-fixed vector d and its image under the Cayley map of 2 a; ``f = 1/(1 + a.a)``."""
    return (d + cross(a, d) + a * dot(a, d)) * f


@lowered
def inverse_tangent(a: Quad, x: Quad) -> Quad:
    """Return ``(I - a^ + a a^T) x``: change of a for the variation x of the rotation at the end of the step."""
    return x - cross(a, x) + a * dot(a, x)


@lowered
def add_to(M: F64Array, i: int, x: Quad) -> None:
    """Add a vector to the four entries from entry i on."""
    store_quad(M, i, load_quad(M, i) + x)


@lowered
def hat_column(b1: Quad, b2: Quad, v1: float, v2: float) -> Quad:
    """Return a column of ``B v^`` from the two other columns of B and entries of v, in cyclic order."""
    return b1 * v2 - b2 * v1


@lowered
def hat_hat_column(y: Quad, p: Quad, d: float, j: int) -> Quad:
    """Return column j of ``p^ y^ = y p^T - d I`` with ``d = p . y``."""
    e = make_quad(1.0 if j == 0 else 0.0, 1.0 if j == 1 else 0.0, 1.0 if j == 2 else 0.0)
    return y * lane(p, j) - e * d


@lowered
def set_matrix(A: F64Array, c0: Quad, c1: Quad, c2: Quad) -> None:
    """Set the columns of A."""
    store_quad(A, 0, c0)
    store_quad(A, 4, c1)
    store_quad(A, 8, c2)


@lowered
def set_product(C: F64Array, A: F64Array, B: F64Array) -> None:
    """Set C to ``A B``."""
    set_matrix(C, mul(A, load_quad(B, 0)), mul(A, load_quad(B, 4)), mul(A, load_quad(B, 8)))


@lowered
def set_inertia(C: F64Array, R: F64Array, J: F64Array) -> None:
    """Set C to ``R J R^T`` for a symmetric J."""
    j0, j1, j2 = mul(R, load_quad(J, 0)), mul(R, load_quad(J, 4)), mul(R, load_quad(J, 8))
    r0, r1, r2 = load_quad(R, 0), load_quad(R, 4), load_quad(R, 8)
    for i in range(3):
        store_quad(C, 4 * i, j0 * lane(r0, i) + j1 * lane(r1, i) + j2 * lane(r2, i))


@lowered
def factor_lu(S: F64Array, n: int) -> None:
    """Factor a dense matrix of order n, stored with row stride 6, without pivoting."""
    for k in range(n):
        for i in range(k + 1, n):
            factor = S[6 * i + k] / S[6 * k + k]
            S[6 * i + k] = factor
            for j in range(k + 1, n):
                S[6 * i + j] -= factor * S[6 * k + j]


@lowered
def solve_lu(S: F64Array, n: int, x: F64Array) -> None:
    """Solve with the factors of `factor_lu`; x is replaced by the solution."""
    for i in range(n):
        for j in range(i):
            x[i] -= S[6 * i + j] * x[j]
    for k in range(n):
        i = n - 1 - k
        for j in range(i + 1, n):
            x[i] -= S[6 * i + j] * x[j]
        x[i] /= S[6 * i + i]
