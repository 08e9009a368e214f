"""Data types of the symbolic analysis: contributions, fronts, front batches, and the root front."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from livens.engine.assembled.assembly import Assembly
from livens.engine.assembled.front_class import FrontClass, Signature
from livens.engine.assembled.front_plan import FrontPlan, glued, planned_fronts


@dataclass
class Source:
    """Contribution of an element or of an eliminated front: pattern, blocks and position."""

    signature: Signature
    blocks: tuple[int, ...]
    place: int  # position in the pool for elements; index of the front in its class for fronts
    of: FrontClass | None = None
    trial: int = 0  # position in the pivot sample


@dataclass
class Front:
    """Front of a class: contributions, eliminated unknowns, and boundary unknowns."""

    sources: list[int]
    own: list[int]
    boundary: list[int]


@dataclass
class Batch:
    """Fronts of one class eliminated in one level."""

    of: FrontClass
    first: int  # first block of eight fronts
    stop: int
    round: int
    in_runs: bool = False  # whether the contributions of the fronts are contiguous


@dataclass
class Core:
    """Root front: remaining matrix and right-hand side, gathered from the pool."""

    unknowns: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    positions: np.ndarray
    right: np.ndarray
    right_positions: np.ndarray
    #: Symbolic factorization by dense fronts; None if the root is solved as one dense matrix.
    plan: FrontPlan | None = None


def dense_core(assembly: Assembly) -> Core:
    """Return a root front of the whole matrix, eliminated by dense fronts."""
    rows, columns, positions = assembly.places
    pieces = assembly.pieces
    plan = planned_fronts(rows, columns, glued(pieces.multiplier, pieces.body, rows, columns), pieces.multiplier)
    none = np.zeros(0, dtype=np.int64)
    return Core(np.arange(pieces.size), rows, columns, positions, none, none, plan)
