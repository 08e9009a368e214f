"""Rank decisions: numerical rank, null spaces and dependent rows of matrices with known rank."""

import numpy as np
import pytest

from livens.models import linalg


def matrix(rows, columns, rank, seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((rows, rank)) @ rng.standard_normal((rank, columns))


@pytest.mark.parametrize("find", [linalg.null_space, linalg.null_space_qr])
@pytest.mark.parametrize(("rows", "columns", "rank"), [(3, 5, 3), (5, 5, 2), (7, 4, 3), (4, 4, 4), (0, 3, 0)])
def test_null_spaces_are_orthonormal_and_complete(find, rows, columns, rank):
    A = matrix(rows, columns, rank, seed=rows)
    N = find(A)
    assert N.shape == (columns, columns - rank)
    np.testing.assert_allclose(N.T @ N, np.eye(columns - rank), atol=1e-14)
    np.testing.assert_allclose(A @ N, 0.0, atol=1e-13)


@pytest.mark.parametrize("scale_columns", [False, True])
def test_left_null_spaces_do_not_depend_on_the_units_of_rows(scale_columns):
    A = matrix(5, 4, 3, seed=2)
    A[1] = 0.0
    units = np.array([1e-9, 1.0, 1e6, 1.0, 1e12])
    N = linalg.left_null_space(units[:, None] * A, scale_columns)
    assert len(N) == 5 - np.linalg.matrix_rank(A)
    np.testing.assert_allclose(N @ (units[:, None] * A), 0.0, atol=1e-9)
    assert np.allclose(np.abs(N).max(axis=1), 1.0) and N[0].tolist() == [0.0, 1.0, 0.0, 0.0, 0.0]


def test_columns_of_small_masses_keep_their_rank():
    E = np.diag([1.0, 1e-15, 0.0])
    assert len(linalg.left_null_space(E, scale_columns=True)) == 1
    assert linalg.numerical_rank(np.array([1.0, 1e-15, 0.0]), linalg.EXACT_RTOL) == 1


def test_dependent_rows_are_a_minimal_set():
    A = matrix(4, 6, 4, seed=5)
    A = np.vstack([A, 1e5 * (A[0] + A[2]), np.zeros(6)])
    removed = linalg.dependent_rows(A)
    assert len(removed) == 2 and 5 in removed
    assert np.linalg.matrix_rank(np.delete(A, removed, axis=0)) == 4
    assert linalg.dependent_rows(np.full((2, 2), np.nan)) == () == linalg.dependent_rows(np.zeros((0, 3)))


def test_the_pseudo_inverse_is_that_of_the_given_size():
    A = matrix(4, 4, 2, seed=9)
    pinv, left = linalg.pinv_and_left_null_space(A, float(np.abs(A).max()))
    np.testing.assert_allclose(pinv, np.linalg.pinv(A, rcond=1e-11), atol=1e-12)
    np.testing.assert_allclose(left.T @ A, 0.0, atol=1e-13)
