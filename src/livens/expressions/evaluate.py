"""Fast numeric evaluation of CasADi expressions through function buffers."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens.types import Expr


class Evaluator:
    """Numeric evaluator of symbolic expressions. A call takes one to two microseconds.

    >>> x, k = ca.SX.sym("x", 2), ca.SX.sym("k")
    >>> evaluate = Evaluator([x, k], [k * x, ca.dot(x, x)])
    >>> [value.ravel().tolist() for value in evaluate([1.0, 2.0], 3.0)]
    [[3.0, 6.0], [5.0]]
    """

    def __init__(self, inputs: Sequence[Expr], outputs: Sequence[Expr]) -> None:
        self._bind(ca.Function("f", list(inputs), [ca.densify(ca.SX(output)) for output in outputs]))

    @classmethod
    def of_function(cls, function: ca.Function) -> Evaluator:
        """Return the evaluator of a function with dense outputs."""
        evaluator = cls.__new__(cls)
        evaluator._bind(function)
        return evaluator

    def _bind(self, function: ca.Function) -> None:
        self._function = function
        self._inputs = [np.zeros(function.numel_in(i)) for i in range(function.n_in())]
        self._outputs = [np.zeros(self._function.size_out(i)[::-1]) for i in range(self._function.n_out())]
        buffer: Any  # CasADi's type annotations describe its C++ interface
        buffer, self._call = self._function.buffer()
        self._buffer = buffer  # owns the memory of `_call`
        for i, array in enumerate(self._inputs):
            if array.size:
                buffer.set_arg(i, array.data)
        for i, array in enumerate(self._outputs):
            if array.size:
                buffer.set_res(i, array.reshape(-1).data)
        self._lock = threading.Lock()  # the buffers are shared by all calls

    def __call__(self, *values: Any) -> list[np.ndarray]:
        """Return one matrix for each output expression."""
        with self._lock:
            for array, value in zip(self._inputs, values, strict=True):
                array[:] = value
            self._call()
            return [array.copy().T for array in self._outputs]


class BatchEvaluator:
    """Batched evaluator of one function: rows of inputs in, rows of the nonzeros of the outputs out.

    >>> x, k = ca.SX.sym("x", 2), ca.SX.sym("k")
    >>> mapped = BatchEvaluator(ca.Function("f", [x, k], [k * x, ca.dot(x, x)]), 2)
    >>> [value.tolist() for value in mapped(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[10.0], [1.0]]))]
    [[[10.0, 20.0], [3.0, 4.0]], [[5.0], [25.0]]]
    """

    def __init__(self, function: ca.Function, count: int) -> None:
        self._function = function.map(count)
        self._inputs = [np.zeros((count, function.nnz_in(i))) for i in range(function.n_in())]
        self._outputs = [np.zeros((count, function.nnz_out(i))) for i in range(function.n_out())]
        buffer: Any
        buffer, self._call = self._function.buffer()
        self._buffer = buffer  # owns the memory of `_call`
        for i, array in enumerate(self._inputs):
            if array.size:
                buffer.set_arg(i, array.reshape(-1).data)
        for i, array in enumerate(self._outputs):
            if array.size:
                buffer.set_res(i, array.reshape(-1).data)
        self._lock = threading.Lock()  # the buffers are shared by all calls

    def __call__(self, *rows: Any) -> list[np.ndarray]:
        """Return one array (count, nnz) for each output; scalars and single rows are broadcast."""
        with self._lock:
            for array, value in zip(self._inputs, rows, strict=True):
                array[:] = value
            self._call()
            return [array.copy() for array in self._outputs]
