"""Whether something is true of an expression in general, found out at random states.

That a difference of two expressions is zero, or that a matrix is regular, cannot be read off a graph, but a state that
is chosen at random shows it with certainty for all practical purposes. Every use has a seed of its own, so that one and
the same model gets the same answer every time. A state where nothing can be evaluated (the result is NaN or infinite)
proves nothing: others are drawn instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

#: Random numbers are drawn from here unless said otherwise: of size one, and positive, so that roots are defined.
LOW, HIGH = 0.5, 1.5
#: How many states are to be evaluated, and how many are tried to find them.
ENOUGH, TRIED = 5, 20


class Probe:
    """Draws values of `symbols` at random. Those with a value in `given`, by their place, keep it, as parameters do.

    >>> x = ca.SX.sym("x", 2)
    >>> Probe([x], seed=1).vanishes(ca.sin(x[0]) ** 2 + ca.cos(x[0]) ** 2 - 1)
    True
    >>> Probe([x], seed=1).vanishes(x[0] - x[1])
    False
    >>> Probe([x], seed=1).vanishes(ca.sqrt(x[0] - 2)) is None
    True
    """

    def __init__(
        self, symbols: Sequence[Any], seed: int, given: Mapping[int, Any] | None = None, low: float = LOW
    ) -> None:
        self._symbols, self._seed, self._given, self._low = list(symbols), seed, dict(given or {}), low

    def states(self, tried: int = TRIED) -> Iterator[list[Any]]:
        """A number of states, always the same: one entry for each symbol."""
        random = np.random.default_rng(self._seed)
        for _ in range(tried):
            drawn = [random.uniform(self._low, HIGH, symbol.shape) for symbol in self._symbols]
            yield [self._given.get(i, value) for i, value in enumerate(drawn)]

    def values(self, *expressions: Any, enough: int = ENOUGH) -> Iterator[list[np.ndarray]]:
        """The expressions at, at most, this many states where all of them are finite."""
        function = ca.Function("probe", self._symbols, [ca.densify(ca.SX(e)) for e in expressions])
        found = 0
        for state in self.states():
            numbers = [np.array(value) for value in function.call([ca.DM(x) for x in state])]
            if all(np.all(np.isfinite(value)) for value in numbers):
                yield numbers
                found += 1
            if found == enough:
                return

    def first(self, expression: Any) -> np.ndarray | None:
        """The expression at a generic state; nothing if it is finite at none of those tried."""
        return next((value for (value,) in self.values(expression, enough=1)), None)

    def vanishing(self, change: Any, size: Any = 1.0, tolerance: float = 1e-12) -> np.ndarray | None:
        """Which entries of `change` are at most `tolerance` times `size`; nothing if no state can be evaluated."""
        size = ca.SX(size)
        if size.numel() == 1:
            size = ca.repmat(size, *change.shape)
        seen = [np.abs(gap) <= tolerance * scale for gap, scale in self.values(change, size)]
        return np.all(seen, axis=0) if seen else None

    def vanishes(self, change: Any, size: Any = 1.0, tolerance: float = 1e-12) -> bool | None:
        """Whether `change` is zero at all states, to `tolerance` times `size`; None if no state can be evaluated.

        Who claims that it is zero asks for ``is True``, who refuses a model because it is not asks for ``is False``.
        """
        entries = self.vanishing(change, size, tolerance)
        return None if entries is None else bool(entries.all())
