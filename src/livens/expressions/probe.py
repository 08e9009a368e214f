"""Randomized identity tests of expressions.

Whether a difference of two expressions is identically zero, or a matrix is regular, is tested at random points. The
seed is fixed for every use, so that the same model gives the same result. Points where the expression is not finite
are replaced by further points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

#: Default range of the random values: order one, and positive, so that roots are defined.
LOW, HIGH = 0.5, 1.5
#: Number of points to evaluate, and maximum number of points to try.
ENOUGH, TRIED = 5, 20


class Probe:
    """Random evaluation points for `symbols`. `fixed` maps indices of symbols to fixed values, such as parameters.

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
        """Yield reproducible random points: one array for each symbol."""
        random = np.random.default_rng(self._seed)
        for _ in range(tried):
            drawn = [random.uniform(self._low, HIGH, symbol.shape) for symbol in self._symbols]
            yield [self._given.get(i, value) for i, value in enumerate(drawn)]

    def values(self, *expressions: Any, enough: int = ENOUGH) -> Iterator[list[np.ndarray]]:
        """Yield the values of the expressions at up to `n_samples` points where all values are finite."""
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
        """Return the expression at one random point, or None if no tried point gives finite values."""
        return next((value for (value,) in self.values(expression, enough=1)), None)

    def vanishing(self, change: Any, size: Any = 1.0, tolerance: float = 1e-12) -> np.ndarray | None:
        """Return a mask of the entries of `expression` bounded by `tolerance * scale`; None if no point is finite."""
        size = ca.SX(size)
        if size.numel() == 1:
            size = ca.repmat(size, *change.shape)
        seen = [np.abs(gap) <= tolerance * scale for gap, scale in self.values(change, size)]
        return np.all(seen, axis=0) if seen else None

    def vanishes(self, change: Any, size: Any = 1.0, tolerance: float = 1e-12) -> bool | None:
        """Return True if `expression` is zero within `tolerance * scale` at all points; None if undecided.

        Use ``is True`` to rely on the property, ``is False`` to reject a model.
        """
        entries = self.vanishing(change, size, tolerance)
        return None if entries is None else bool(entries.all())
