"""Tracing of functions written for numbers: NumPy, SciPy and `math` calls, branches, interpolants.

`trace_numpy` calls a Python function with symbols and returns its value as expressions. The function itself is not
changed: a copy of it has the same code, and its global names refer to functions that also accept symbols
(`function_copies`). Every path through branches on symbols is traced, and the paths are joined by ``if_else``
(`branches`).
"""

from livens.expressions.numpy_tracing.branches import TracingError
from livens.expressions.numpy_tracing.trace import TracedValue, trace_numpy

__all__ = ["TracedValue", "TracingError", "trace_numpy"]
