"""Gauss-Newton iteration to consistent values, and the error that proposes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from livens.errors import InputError

#: Largest number of iterations, and largest number of values in a message.
_MAX_ITERATIONS, _MAX_NAMED = 50, 12


def gauss_newton(
    step: Callable[[np.ndarray], np.ndarray | None], x: np.ndarray, rtol: float = 1e-15, floor: float = 1.0
) -> tuple[np.ndarray, bool]:
    """Iterate ``x - step(x)`` until steps are at round-off; return the last x, and True if the iteration converged.

    `step` returns the correction, or None where the equations cannot be evaluated. The iteration has converged with a
    step below `rtol` times ``floor + max |x|``.
    """
    for _ in range(_MAX_ITERATIONS):
        correction = step(x)
        if correction is None:
            return x, False
        x = x - correction
        if np.abs(correction).max(initial=0.0) <= rtol * (floor + np.abs(x).max(initial=0.0)):
            return x, True
    return x, False


def inconsistent_values_error(problem: str, names: Sequence[str], nearby: np.ndarray | None) -> InputError:
    """Return the error for inconsistent initial values; it proposes consistent values nearby if there are any."""
    if nearby is None:
        return InputError(f"{problem}, and no consistent start was found nearby")
    shown = ", ".join(f"{name} = {value:.9g}" for name, value in list(zip(names, nearby, strict=True))[:_MAX_NAMED])
    shown += ", ..." if len(names) > _MAX_NAMED else ""
    return InputError(f"{problem}; a consistent start nearby is ({shown}); pass project=True to start there")
