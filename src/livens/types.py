"""Types of the values that models and schemes compute with: symbolic expressions, arrays, model functions.

Three representations of a number occur in the package. `Expr` is a CasADi expression, in which schemes write their
equations. `Scalar` and arrays of it (`Vector`) are the symbols that model functions receive. `FloatArray` contains
numbers. A function that accepts both symbols and numbers takes a `Vector` or a `ScalarLike`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from livens.math import Scalar

#: Symbolic scalar, column or matrix.
Expr: TypeAlias = ca.SX
#: Symbolic scalar of a model function, or a number.
ScalarLike: TypeAlias = Scalar | float
#: Array of symbols or of numbers: coordinates, velocities and points in model functions.
Vector: TypeAlias = NDArray[Any]
#: Vector or quaternion: an array, or a sequence of numbers and symbols.
VectorLike: TypeAlias = Vector | Sequence[ScalarLike]
#: Array of numbers.
FloatArray: TypeAlias = NDArray[np.float64]
#: Array of indices, such as the degrees of freedom of element instances, shape (instances, local dofs).
IndexTable: TypeAlias = NDArray[np.int64]
#: Function of a model, written by the user: its arguments are read by their names, its value may be a symbol, a number
#: or a sequence of them.
ModelFunction: TypeAlias = Callable[..., Any]

__all__ = [
    "ArrayLike",
    "Expr",
    "FloatArray",
    "IndexTable",
    "ModelFunction",
    "Scalar",
    "ScalarLike",
    "Vector",
    "VectorLike",
]
