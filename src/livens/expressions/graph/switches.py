"""Switching functions of an expression graph: arguments of comparisons, minima, absolute values and floors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from livens.expressions.graph.interpreter import interpret, operate
from livens.lookup_tables import LOOKUP_OPERATION

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

    def apply(name: str, *operands: _Switched) -> _Switched:
        value = operate(name, *(operand.value for operand in operands))
        if name == LOOKUP_OPERATION:  # tables are long: their points are not located
            return _Switched(value)
        a, switches = operands[0].value, frozenset[int]().union(*(operand.switches for operand in operands))
        function = None
        if name in _DIFFERENCE:
            function = a - operands[1].value
        elif name in _ZERO:
            function = a
        elif name in _INTEGER:
            function = ca.sin(ca.pi * (a if len(operands) == 1 else a / operands[1].value))
        if function is not None:
            switches |= {len(switching)}
            switching.append(function)
        return _Switched(value, switches)

    function = ca.Function("f", list(symbols), [ca.densify(expression)])
    inputs = [[_Switched(s.nz[j]) for j in range(s.nnz())] for s in symbols]
    (outputs,) = interpret(function, inputs, lambda c: _Switched(ca.SX(c)), apply)
    return [switching[i] for i in sorted(frozenset[int]().union(*(output.switches for output in outputs)))]


class _Switched(NamedTuple):
    """Expression with the indices of the switching functions that it depends on."""

    value: Any
    switches: frozenset[int] = frozenset()


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
