"""What an order of elimination is made of: sources, fronts, batches of them, and the core that is left."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from livens.engine.assembled.assembly import Assembly
from livens.engine.assembled.front_class import FrontClass, Signature
from livens.engine.assembled.front_plan import FrontPlan, glued, planned_fronts


@dataclass
class Source:
    """An element, or a front that has been eliminated: what it offers, of which blocks, and where."""

    signature: Signature
    blocks: tuple[int, ...]
    place: int  # in the pool, of elements; number of the front among those of its class
    of: FrontClass | None = None
    trial: int = 0  # where it stands among the numbers that pivots are chosen by


@dataclass
class Front:
    """A front of a class: its sources, its own unknowns, and those of its boundary."""

    sources: list[int]
    own: list[int]
    boundary: list[int]


@dataclass
class Batch:
    """Fronts of one class that are eliminated in one round."""

    of: FrontClass
    first: int  # block of eight fronts
    stop: int
    round: int
    in_runs: bool = False  # whether the sources of these fronts stand side by side


@dataclass
class Core:
    """What is left: a matrix whose entries, and right-hand sides, are summed up of the pool."""

    unknowns: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    positions: np.ndarray
    right: np.ndarray
    right_positions: np.ndarray
    #: How it is eliminated by dense fronts, if it is not solved as one dense matrix.
    plan: FrontPlan | None = None


def dense_core(assembly: Assembly) -> Core:
    """All of the matrix, in dense fronts."""
    rows, columns, positions = assembly.places
    pieces = assembly.pieces
    plan = planned_fronts(rows, columns, glued(pieces.multiplier, pieces.body, rows, columns), pieces.multiplier)
    none = np.zeros(0, dtype=np.int64)
    return Core(np.arange(pieces.size), rows, columns, positions, none, none, plan)
