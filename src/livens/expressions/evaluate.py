"""Numbers from expressions, quickly: a CasADi function called through its buffers instead of its wrappers."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np


class Evaluator:
    """Evaluates expressions of symbols at numbers. A call costs a microsecond or two, not a hundred.

    >>> x, k = ca.SX.sym("x", 2), ca.SX.sym("k")
    >>> evaluate = Evaluator([x, k], [k * x, ca.dot(x, x)])
    >>> [value.ravel().tolist() for value in evaluate([1.0, 2.0], 3.0)]
    [[3.0, 6.0], [5.0]]
    """

    def __init__(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        self._function = ca.Function("f", list(inputs), [ca.densify(ca.SX(output)) for output in outputs])
        self._given = [np.zeros(symbol.numel()) for symbol in inputs]
        self._found = [np.zeros(self._function.size_out(i)[::-1]) for i in range(self._function.n_out())]
        buffer: Any  # the annotations of CasADi are those of its C++ side
        buffer, self._run = self._function.buffer()
        self._buffer = buffer  # it owns what `_run` works on
        for i, array in enumerate(self._given):
            if array.size:
                buffer.set_arg(i, array.data)
        for i, array in enumerate(self._found):
            if array.size:
                buffer.set_res(i, array.reshape(-1).data)
        self._lock = threading.Lock()  # the arrays serve one call at a time

    def __call__(self, *values: Any) -> list[np.ndarray]:
        """One matrix for each of the outputs."""
        with self._lock:
            for array, value in zip(self._given, values, strict=True):
                array[:] = value
            self._run()
            return [array.T.copy() for array in self._found]


class Mapped:
    """Evaluates a small function at many places at once: rows of numbers in, rows of the outputs' nonzeros out.

    >>> x, k = ca.SX.sym("x", 2), ca.SX.sym("k")
    >>> mapped = Mapped(ca.Function("f", [x, k], [k * x, ca.dot(x, x)]), 2)
    >>> [value.tolist() for value in mapped(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[10.0], [1.0]]))]
    [[[10.0, 20.0], [3.0, 4.0]], [[5.0], [25.0]]]
    """

    def __init__(self, function: ca.Function, count: int) -> None:
        self._function = function.map(count)
        self._given = [np.zeros((count, function.nnz_in(i))) for i in range(function.n_in())]
        self._found = [np.zeros((count, function.nnz_out(i))) for i in range(function.n_out())]
        buffer: Any
        buffer, self._run = self._function.buffer()
        self._buffer = buffer  # it owns what `_run` works on
        for i, array in enumerate(self._given):
            if array.size:
                buffer.set_arg(i, array.reshape(-1).data)
        for i, array in enumerate(self._found):
            if array.size:
                buffer.set_res(i, array.reshape(-1).data)

    def __call__(self, *rows: Any) -> list[np.ndarray]:
        """One table for each of the outputs; what is given as a number, or as one row, is that everywhere."""
        for array, value in zip(self._given, rows, strict=True):
            array[:] = value
        self._run()
        return [array.copy() for array in self._found]
