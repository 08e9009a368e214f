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

from livens.types import Expr

#: Default range of the random values: order one, and positive, so that roots are defined.
LOW, HIGH = 0.5, 1.5
#: Number of points to evaluate, and maximum number of points to try.
N_SAMPLES, MAX_TRIALS = 5, 20


class Probe:
    """Random evaluation points for `symbols`. `fixed` maps indices of symbols to fixed values, such as parameters.

    >>> x = ca.SX.sym("x", 2)
    >>> Probe([x], seed=1).is_zero(ca.sin(x[0]) ** 2 + ca.cos(x[0]) ** 2 - 1)
    True
    >>> Probe([x], seed=1).is_zero(x[0] - x[1])
    False
    >>> Probe([x], seed=1).is_zero(ca.sqrt(x[0] - 2)) is None
    True
    """

    def __init__(
        self, symbols: Sequence[Expr], seed: int, fixed: Mapping[int, Any] | None = None, low: float = LOW
    ) -> None:
        self._symbols, self._seed, self._fixed, self._low = list(symbols), seed, dict(fixed or {}), low

    def points(self, max_trials: int = MAX_TRIALS) -> Iterator[list[Any]]:
        """Yield reproducible random points: one array for each symbol."""
        random = np.random.default_rng(self._seed)
        for _ in range(max_trials):
            samples = [random.uniform(self._low, HIGH, symbol.shape) for symbol in self._symbols]
            yield [self._fixed.get(i, value) for i, value in enumerate(samples)]

    def evaluate(self, *expressions: Any, n_samples: int = N_SAMPLES) -> Iterator[list[np.ndarray]]:
        """Yield the values of the expressions at up to `n_samples` points where all values are finite."""
        function = ca.Function("probe", self._symbols, [ca.densify(ca.SX(e)) for e in expressions])
        n_finite = 0
        for point in self.points():
            values = [np.array(value) for value in function.call([ca.DM(x) for x in point])]
            if all(np.all(np.isfinite(value)) for value in values):
                yield values
                n_finite += 1
            if n_finite == n_samples:
                return

    def evaluate_once(self, expression: Expr) -> np.ndarray | None:
        """Return the expression at one random point, or None if no tried point gives finite values."""
        return next((value for (value,) in self.evaluate(expression, n_samples=1)), None)

    def zero_entries(self, expression: Expr, scale: Expr | float = 1.0, tolerance: float = 1e-12) -> np.ndarray | None:
        """Return a mask of the entries of `expression` bounded by `tolerance * scale`; None if no point is finite."""
        scale = ca.SX(scale)
        if scale.numel() == 1:
            scale = ca.repmat(scale, *expression.shape)
        is_small = [np.abs(value) <= tolerance * magnitude for value, magnitude in self.evaluate(expression, scale)]
        return np.all(is_small, axis=0) if is_small else None

    def is_zero(self, expression: Any, scale: Any = 1.0, tolerance: float = 1e-12) -> bool | None:
        """Return True if `expression` is zero within `tolerance * scale` at all points; None if undecided.

        Use ``is True`` to rely on the property, ``is False`` to reject a model.
        """
        entries = self.zero_entries(expression, scale, tolerance)
        return None if entries is None else bool(entries.all())
