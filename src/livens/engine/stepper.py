"""What a tier of the engine offers: take steps, or say why not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from livens.engine.loop import PAST


@dataclass
class Carry:
    """All that a run needs to go on, bit for bit: the state, the last unknowns, correction and scales."""

    z: np.ndarray
    x: np.ndarray  # unknowns of the last steps, oldest first
    dx: np.ndarray  # the last Newton correction
    scale: np.ndarray  # reciprocal round-off bounds of the residual

    @classmethod
    def start(cls, z: np.ndarray, x: np.ndarray) -> Carry:
        """Before the first step, from a state and a guess of the unknowns."""
        return cls(z.copy(), np.tile(x, (PAST, 1)), np.zeros(x.size), np.ones(x.size))


@dataclass(frozen=True)
class Trouble:
    """Why a step was refused."""

    residual: float  # of the worst equation
    floor: float  # what round-off would allow
    equation: str
    reason: str


@dataclass
class Steps:
    """What a tier hands back: state at the end, unknowns and Newton corrections of every step taken.

    The arrays are views of buffers that the next call overwrites.
    """

    taken: int
    Z: np.ndarray
    X: np.ndarray
    iterations: np.ndarray
    carry: Carry
    trouble: Trouble | None = None
    reached: bool = False  # the next step would go beyond the limit
    t: np.ndarray | None = None  # where every step ended, if steps differ


@dataclass(frozen=True)
class Limit:
    """Steps end before an entry of the state exceeds a value."""

    entry: int = -1  # of no entry, if negative
    value: float = np.inf


@dataclass
class Statistics:
    """What a run cost."""

    repivots: int = 0
    reference_steps: int = 0
    rejected: int = 0


NO_LIMIT = Limit()


class Stepper(Protocol):
    """A tier of the engine. All tiers solve the same equations to the same floor."""

    name: str
    statistics: Statistics

    def advance(
        self, carry: Carry, steps: int, first: int, h: float, t0: float, c: np.ndarray, limit: Limit = NO_LIMIT
    ) -> Steps:
        """Take up to `steps` steps of size h, the first of number `first` since t0, within the limit."""
        ...


class Buffers:
    """Arrays for states, unknowns and Newton corrections, kept from call to call: fresh memory costs a step's time."""

    def __init__(self) -> None:
        self._held: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def filled(self, carry: Carry, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Room for `steps` steps, with their past filled in. What was there before is overwritten."""
        if self._held is None or self._held[2].size < steps:
            Z = np.empty((steps + 1, carry.z.size))
            X = np.empty((steps + PAST, carry.x.shape[1]))
            self._held = Z, X, np.zeros(steps, dtype=np.int64)
        Z, X, iterations = self._held
        Z[0], X[:PAST] = carry.z, carry.x
        return Z[: steps + 1], X[: steps + PAST], iterations[:steps]


def handed_back(
    Z: np.ndarray, X: np.ndarray, iterations: np.ndarray, dx: np.ndarray, scale: np.ndarray, taken: int,
    trouble: Trouble | None = None, reached: bool = False,
) -> Steps:  # fmt: skip
    """What a tier returns after `taken` steps."""
    carry = Carry(Z[taken].copy(), X[taken : taken + PAST].copy(), dx, scale)
    return Steps(taken, Z[1 : taken + 1], X[PAST : PAST + taken], iterations[:taken], carry, trouble, reached)
