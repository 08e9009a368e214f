"""Dense fronts for nets: their kernels, their order, and what they solve."""

import ctypes

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from livens.engine.assembled.dense_analysis import analyze, pair_multipliers_with_bodies
from livens.engine.assembled.gemm_kernels import LANES, gemm, gemm_sub, trsm_lower
from livens.engine.assembled.multifrontal import factor_fronts, make_dense_fronts, solve_dense_fronts
from livens.engine.assembled.nested_dissection import landmark_dissection, level_width, nested_dissection

_POINTER = ctypes.c_void_p


def run(code, C, A, B, *sizes):
    numbers = np.array(sizes, dtype=np.int64)
    function = ctypes.CFUNCTYPE(None, *[_POINTER] * 5)(code.address)
    function(*(array.ctypes.data for array in (C, A, B, numbers)), 0)


@given(m=st.integers(1, 15), n=st.integers(1, 20), k=st.integers(1, 9), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_products_of_parts(m, n, k, seed):
    """Whatever their sizes, and nothing beside the result is changed."""
    random, stride = np.random.default_rng(seed), 40
    C, A, B = (random.normal(size=(24, stride)) for _ in range(3))
    wanted = C.copy()
    wanted[:m, :n] -= A[:m, :k] @ B[:k, :n]
    run(gemm_sub(), C, A, B, m, n, k, stride, stride)
    assert np.allclose(C, wanted, rtol=0, atol=1e-14)
    assert np.array_equal(C[m:], wanted[m:])
    assert np.array_equal(C[:m, n:], wanted[:m, n:])


def test_triangles_and_products_in_place():
    random, stride = np.random.default_rng(3), 32
    C, small = random.normal(size=(13, stride)), random.normal(size=(LANES, LANES))
    wanted = C.copy()
    wanted[:, :LANES] = C[:, :LANES] @ small
    run(gemm(), C, C, small, 13, LANES, LANES, stride, LANES)
    assert np.allclose(C, wanted, rtol=0, atol=1e-13)
    lower = np.tril(0.5 * small, -1) + np.eye(LANES)
    wanted[:LANES, :11] = np.linalg.solve(lower, C[:LANES, :11])
    run(trsm_lower(), C, C, lower, LANES, 11, LANES, stride, LANES)
    assert np.allclose(C, wanted, rtol=0, atol=1e-12)


def lattice(rows, columns):
    """Masses on a lattice, three coordinates each, and a multiplier for every bond: a matrix of a net."""
    number = np.arange(rows * columns).reshape(rows, columns)
    bonds = np.concatenate(
        [
            np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1),
            np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1),
        ]
    )
    n, m = 3 * rows * columns, len(bonds)
    random = np.random.default_rng(rows * columns)
    entries = {(i, i): 2.0 for i in range(n)}
    for k, (a, b) in enumerate(bonds.tolist()):
        for i in (*range(3 * a, 3 * a + 3), *range(3 * b, 3 * b + 3)):
            entries[i, n + k] = random.normal()
            entries[n + k, i] = random.normal(0, 0.05) + entries[i, n + k]
    places = np.array(list(entries))
    body = np.concatenate([np.arange(n) // 3, np.full(m, -1)])
    return places[:, 0], places[:, 1], np.array(list(entries.values())), np.arange(n + m) >= n, body


@pytest.mark.parametrize("shape", [(3, 3), (5, 7), (12, 12)])
def test_dense_fronts_solve_nets(shape):
    """Entries may stand in several parts, anywhere in a pool; factors serve several right-hand sides."""
    rows, columns, values, multiplier, body = lattice(*shape)
    size = multiplier.size
    matrix = sp.csr_matrix((values, (rows, columns)), shape=(size, size)).toarray()
    rows, columns = np.tile(rows, 2), np.tile(columns, 2)
    pool = np.concatenate([np.full(3, np.nan), 0.75 * values, 0.25 * values])
    plan = analyze(rows, columns, pair_multipliers_with_bodies(multiplier, body, rows, columns), multiplier)
    assert sorted(plan.permutation.tolist()) == list(range(size))
    fronts = make_dense_fronts(plan, 3 + np.arange(rows.size))
    factor_fronts(fronts, pool)
    for seed in range(2):
        r = np.random.default_rng(seed).normal(size=size)
        fronts.y[:] = r[plan.permutation]
        solve_dense_fronts(fronts)
        x = np.empty(size)
        x[plan.permutation] = fronts.y
        assert np.abs(matrix @ x - r).max() < 1e-10 * max(1.0, np.abs(x).max())


def grid(rows, columns):
    number = np.arange(rows * columns).reshape(rows, columns)
    a = np.concatenate([number[:, :-1].ravel(), number[:-1].ravel()])
    b = np.concatenate([number[:, 1:].ravel(), number[1:].ravel()])
    graph = sp.csr_matrix((np.ones(a.size), (a, b)), shape=(number.size, number.size))
    return (graph + graph.T).tocsr()


def fill(graph, order):
    """Return the number of entries of the factors for an elimination order."""
    near = {i: set(graph.indices[graph.indptr[i] : graph.indptr[i + 1]].tolist()) for i in range(graph.shape[0])}
    total = 0
    for i in order.tolist():
        there = near.pop(i)
        total += len(there)
        for j in there:
            near[j] |= there
            near[j] -= {i, j}
    return total


def test_dissection_gives_every_vertex_once_and_separates():
    """Two lattices and a vertex by itself; far less fill than row by row, and no more than by minimum degree."""
    graph = sp.block_diag([grid(16, 16), grid(5, 3), sp.csr_matrix((1, 1))]).tocsr()
    order = landmark_dissection(graph)
    assert sorted(order.tolist()) == list(range(272))
    square = grid(16, 16)
    assert fill(square, landmark_dissection(square)) < 0.6 * fill(square, np.arange(256))


def test_dissection_by_metis():
    """The other order, where pymetis is installed."""
    pytest.importorskip("pymetis")
    square = grid(16, 16)
    order = nested_dissection(square)
    assert sorted(order.tolist()) == list(range(256))
    assert fill(square, order) < 0.6 * fill(square, np.arange(256))


def test_what_is_broad():
    """Chains, trees and rings are narrow, a lattice is as broad as its shorter side."""
    tree = sp.csr_matrix((np.ones(499), (np.arange(1, 500), (np.arange(1, 500) - 1) // 3)), shape=(500, 500))
    ring = sp.csr_matrix((np.ones(60), (np.arange(60), np.roll(np.arange(60), 1))), shape=(60, 60))
    assert level_width((tree + tree.T).tocsr()) == 0
    assert level_width((ring + ring.T).tocsr()) == 2
    assert level_width(grid(2, 300)) <= 3
    assert level_width(grid(30, 30)) > 12
