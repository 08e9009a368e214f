"""Bounds of conditions and variables: numbers are equations, pairs are limits, None is no limit."""

from __future__ import annotations

import numpy as np

from livens.errors import InputError
from livens.transcription.nlp_blocks import INFINITE_BOUND


def parse_bounds(what: str, value: object, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper bounds of `size` numbers.

    Parameters
    ----------
    what : str
        Description in messages, such as "bounds of 'u' in inputs".
    value : float, array_like or tuple
        One number, or one per entry, for an equation; a tuple ``(low, high)`` for bounds. None is no bound.
    size : int
        Number of entries.
    """
    if isinstance(value, tuple):
        if len(value) != 2:
            raise InputError(f"{what}: bounds are a tuple (low, high), got {value!r}")
        low, high = _vector(what, value[0], size, -INFINITE_BOUND), _vector(what, value[1], size, INFINITE_BOUND)
    else:
        low, high = _vector(what, value, size, -INFINITE_BOUND), _vector(what, value, size, INFINITE_BOUND)
    if np.any(low > high):
        i = int(np.argmax(low > high))
        raise InputError(f"{what}: the lower bound {low[i]:g} exceeds the upper bound {high[i]:g}")
    return low, high


def _vector(what: str, value: object, size: int, missing: float) -> np.ndarray:
    """Return one bound per entry; None becomes `missing`, and infinite values the infinite bound of the solver."""
    items = np.atleast_1d(np.asarray(value, dtype=object)).ravel()
    if items.size not in (1, size):
        raise InputError(f"{what}: {size} number{'' if size == 1 else 's'} expected, got {items.size}")
    try:
        numbers = np.array([missing if item is None else float(item) for item in items])
    except (TypeError, ValueError):
        raise InputError(f"{what}: numbers expected, got {value!r}") from None
    if np.isnan(numbers).any():
        raise InputError(f"{what}: NaN is not a bound; use None for no bound")
    return np.resize(np.clip(numbers, -INFINITE_BOUND, INFINITE_BOUND), size)
