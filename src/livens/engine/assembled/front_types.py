"""Data types of the symbolic analysis: contributions, fronts, front batches, and the root front."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from livens.engine.assembled.assembly import Assembly
from livens.engine.assembled.dense_analysis import SymbolicFactorization, analyze, pair_multipliers_with_bodies
from livens.engine.assembled.front_class import ContributionPattern, FrontClass


@dataclass
class Contribution:
    """Contribution of an element or of an eliminated front: pattern, blocks and position."""

    pattern: ContributionPattern
    blocks: tuple[int, ...]
    pool_index: int  # position in the pool for elements; index of the front in its class for fronts
    front_class: FrontClass | None = None
    sample_index: int = 0  # position in the pivot sample


@dataclass
class Front:
    """Front of a class: contributions, eliminated unknowns, and boundary unknowns."""

    contributions: list[int]
    pivots: list[int]
    boundary: list[int]


@dataclass
class FrontBatch:
    """Fronts of one class eliminated in one level."""

    front_class: FrontClass
    first_block: int  # first block of eight fronts
    stop_block: int
    level: int
    is_contiguous: bool = False  # whether the contributions of the fronts are contiguous


@dataclass
class RootFront:
    """Root front: remaining matrix and right-hand side, gathered from the pool."""

    unknowns: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    positions: np.ndarray
    rhs_rows: np.ndarray
    rhs_positions: np.ndarray
    #: Symbolic factorization by dense fronts; None if the root is solved as one dense matrix.
    plan: SymbolicFactorization | None = None


def dense_root(assembly: Assembly) -> RootFront:
    """Return a root front of the whole matrix, eliminated by dense fronts."""
    rows, columns, positions = assembly.jacobian_triplets
    plan = assembly.plan
    factorization = analyze(
        rows,
        columns,
        pair_multipliers_with_bodies(plan.is_multiplier, plan.body_index, rows, columns),
        plan.is_multiplier,
    )
    empty = np.zeros(0, dtype=np.int64)
    return RootFront(np.arange(plan.size), rows, columns, positions, empty, empty, factorization)
