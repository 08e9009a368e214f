"""Mathematical functions for models. They accept symbols, numbers and arrays.

>>> from livens import math as m
>>> float(m.sin(m.pi / 2))
1.0
>>> float(m.norm([3.0, 4.0]))
5.0

A model function receives NumPy arrays of symbols, so slices, loops, ``@``, ``np.dot``, ``np.cross``, broadcasting and
helper functions work as usual. Where a model function branches on a symbol (``if x[0] > 0:``), every path is traced,
and the paths are joined by ``m.where(condition, a, b)``.

- `scalar`: symbolic scalar, its operators, and element-wise functions
- `arrays`: linear algebra, construction of arrays, conversion from and to CasADi
- `interpolation`: interpolation of tables and splines
"""

from __future__ import annotations

from livens.math.arrays import (
    array,
    concatenate,
    cross,
    diag,
    dot,
    eye,
    from_casadi,
    norm,
    ones,
    outer,
    stack,
    sum,
    to_casadi,
    zeros,
)
from livens.math.interpolation import interp, spline, spline_2d
from livens.math.scalar import (
    Scalar,
    abs,
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    branch_decision,
    ceil,
    clip,
    conversion_to_text,
    cos,
    cosh,
    exp,
    expm1,
    floor,
    hypot,
    log,
    log1p,
    maximum,
    minimum,
    pi,
    sign,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
    where,
)

__all__ = [
    "Scalar",
    "abs",
    "acos",
    "acosh",
    "array",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "branch_decision",
    "ceil",
    "clip",
    "concatenate",
    "conversion_to_text",
    "cos",
    "cosh",
    "cross",
    "diag",
    "dot",
    "exp",
    "expm1",
    "eye",
    "floor",
    "from_casadi",
    "hypot",
    "interp",
    "log",
    "log1p",
    "maximum",
    "minimum",
    "norm",
    "ones",
    "outer",
    "pi",
    "sign",
    "sin",
    "sinh",
    "spline",
    "spline_2d",
    "sqrt",
    "stack",
    "sum",
    "tan",
    "tanh",
    "to_casadi",
    "where",
    "zeros",
]
