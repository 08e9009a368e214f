"""Consistent initial values of large systems with sparse matrices."""

from __future__ import annotations

import functools

import numpy as np
import scipy.sparse as sp

from livens.errors import InputError
from livens.models.element_numbers import ElementNumbers, Sums
from livens.models.model import InitialState
from livens.models.redundancy import AWAY
from livens.models.sparse_rows import SparseRows, least_squares, regular_solution
from livens.models.start import (
    check_consistent,
    check_finite,
    nearest_position,
    nearest_velocity,
    onto_constraints,
    refused,
    still_dependent,
)
from livens.models.system import System


def large_state(
    system: System, q: np.ndarray, v: np.ndarray, k: np.ndarray, t0: float, project: bool, redundant: str
) -> InitialState:
    """Return the consistent, complete initial state of a large system; see `initialization.dense.initial_state`."""
    numbers = ElementNumbers(system, t0, k)
    here = numbers.at_start(q, v)
    check_finite(here)
    if system.m:
        if project:
            q = nearest_position(numbers, q, system)
            v = nearest_velocity(numbers, q, v)
            here = numbers.at_start(q, v)
        check_consistent(system, numbers, here.g, here.g_rate, here.G, q, v)
    dropped, multipliers = completed(system, numbers, here, q, v, redundant)
    return InitialState(t0, {"q": q, "v": v, "p": here.p, "multipliers": multipliers}, dropped)


def completed(
    system: System, numbers: ElementNumbers, here: Sums, q: np.ndarray, v: np.ndarray, redundant: str
) -> tuple[tuple[int, ...], np.ndarray]:
    """Return the removed redundant constraints and the multipliers of the initial accelerations."""
    if not system.m:
        return (), np.zeros(0)
    right = np.concatenate([here.force, -here.bias])
    matrix = sp.block_array([[here.M, here.G.T], [here.G, None]], format="csc")
    if not (np.isfinite(right).all() and np.isfinite(matrix.data).all()):
        raise InputError("accelerations cannot be evaluated at q0, v0: the result is not finite")
    solution = regular_solution(matrix, right)
    if solution is not None:
        return (), solution[system.n :]
    dropped = _dropped(system, numbers, here, q, v, redundant)
    keep = np.setdiff1d(np.arange(system.n + system.m), system.n + np.array(dropped, dtype=np.int64))
    solution = np.zeros(system.n + system.m)
    solution[keep] = least_squares(matrix[keep][:, keep], right[keep], system.n)
    return dropped, solution[system.n :]


def _dropped(
    system: System, numbers: ElementNumbers, here: Sums, q: np.ndarray, v: np.ndarray, redundant: str
) -> tuple[int, ...]:
    if redundant == "auto" or system.frames:
        dropped = _redundant_away(system, numbers, here, q, v)
    else:
        found = set(dependent_rows(here.G))
        dropped = tuple(sorted(still_dependent(system, numbers, found, q, dependent_rows))) if found else ()
    if dropped and redundant == "error":
        raise refused(system, dropped)
    return dropped


def dependent_rows(G: sp.csr_matrix, first: np.ndarray | None = None) -> list[int]:
    """Return the linearly dependent rows of a sparse matrix; see `SparseConstraintJacobian.dependent_rows`."""
    return SparseRows(G).dependent(first)


def _redundant_away(
    system: System, numbers: ElementNumbers, here: Sums, q: np.ndarray, v: np.ndarray
) -> tuple[int, ...]:
    """Return the redundant constraints at an offset from a singular configuration; see `initialization.redundancy`."""
    rows = SparseRows(here.G)
    project = functools.partial(_tangent, rows)
    way = project(v)
    if np.abs(way).max() <= 1e-9:  # at rest: a random tangential direction
        way = project(np.random.default_rng(7).standard_normal(system.n))
    G = here.G
    if np.abs(way).max() > 1e-9:
        away = onto_constraints(numbers, q + AWAY * (1.0 + np.abs(q).max()) * way / np.abs(way).max())
        G = G if away is None else numbers.slopes(away)
    within = np.zeros(system.m, dtype=bool)
    within[[i for frame in system.frames for i in frame.constraints]] = True
    return tuple(dependent_rows(G, within if within.any() else None))


def _tangent(rows: SparseRows, v: np.ndarray) -> np.ndarray:
    """Return the orthogonal projection of a velocity onto ker G."""
    return v - rows.least(rows.G @ v)
