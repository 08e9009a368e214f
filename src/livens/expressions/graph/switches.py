"""Switching functions of an expression graph: arguments of comparisons, minima, absolute values and floors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens.expressions.graph.interpreter import interpret, operate

#: Samples of the time interval in which sign changes of switching functions are located, and bisections of each.
_SAMPLES, _BISECTIONS = 20_001, 60
#: Comparisons and other binary operations that switch where their arguments are equal.
_DIFFERENCE = frozenset("LT LE EQ NE FMIN FMAX".split())
#: Operations that switch at the zeros of their argument.
_ZERO = frozenset("FABS SIGN".split())
#: Operations that switch at integers of their argument, or of the quotient of their arguments.
_INTEGER = frozenset("FLOOR CEIL FMOD REMAINDER".split())


def switching_functions(symbols: Sequence[Any], expression: Any) -> list[Any]:
    """Return the switching functions of an expression, at whose sign changes it may be not smooth.

    Parameters
    ----------
    symbols : sequence of casadi.SX
        Symbols of the expression.
    expression : casadi.SX
        Expression.

    Returns
    -------
    list of casadi.SX
        Scalar expressions in the same symbols.

    Examples
    --------
    >>> t = ca.SX.sym("t")
    >>> switching_functions([t], ca.if_else(t < 2, 5, 0) + ca.fabs(t - 1))
    [SX((t-2)), SX((t-1))]
    """
    switching: list[Any] = []

    def apply(name: str, a: Any, b: Any = None) -> Any:
        if name in _DIFFERENCE:
            switching.append(a - b)
        elif name in _ZERO:
            switching.append(a)
        elif name in _INTEGER:
            switching.append(ca.sin(ca.pi * (a if b is None else a / b)))
        return operate(name, a) if b is None else operate(name, a, b)

    function = ca.Function("f", list(symbols), [ca.densify(expression)])
    interpret(function, [[s.nz[j] for j in range(s.nnz())] for s in symbols], ca.SX, apply)
    return switching


def sign_changes(function: ca.Function, begin: float, end: float) -> np.ndarray:
    """Return the times between `begin` and `end` at which a function of time changes its sign.

    Parameters
    ----------
    function : casadi.Function
        Function of the time, with one output.
    begin, end : float
        Interval in seconds. It is sampled at 20,001 times; two sign changes between neighbours are not found.

    Returns
    -------
    ndarray
        Times in ascending order, in seconds, exact to round-off.
    """
    times = np.linspace(begin, end, _SAMPLES)
    positive = np.array(function(times[None, :])).ravel() > 0
    left = np.flatnonzero(positive[1:] != positive[:-1])
    low, high, was_positive = times[left], times[left + 1], positive[left]
    for _ in range(_BISECTIONS if len(left) else 0):
        middle = (low + high) / 2
        same = (np.array(function(middle[None, :])).ravel() > 0) == was_positive
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return high
