"""Scaling functions as text, such as ``speed(1.0, exponent=1/3)``: for files, scenarios and the command line."""

from __future__ import annotations

import ast
import inspect
import operator
from collections.abc import Callable, Mapping

from livens.errors import InputError, suggestion
from livens.schemes.scaling.base import Scaling
from livens.schemes.scaling.energies import inverse_lagrangian, kinetic, potential
from livens.schemes.scaling.outputs import of
from livens.schemes.scaling.stiffness import stiffness
from livens.schemes.scaling.user_defined import curvature, speed

#: Functions that return scalings, by name.
FACTORIES: Mapping[str, Callable[..., Scaling]] = {
    function.__name__: function
    for function in (speed, curvature, of, stiffness, kinetic, potential, inverse_lagrangian)
}
_BINARY: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
#: Largest length of a text.
_MAX_LENGTH = 500


def named_scaling(text: str) -> Scaling:
    """Return the scaling of a text: the call of a function of `livens.scaling` with numbers and names of results.

    Parameters
    ----------
    text : str
        Text such as ``"curvature(0.2, 1.0)"`` or ``"of('pin.force', reference=10)"``.

    Returns
    -------
    Scaling
        Scaling function.

    Raises
    ------
    InputError
        If the text is not such a call, or an argument is invalid.

    Examples
    --------
    >>> str(named_scaling("speed(1.0, exponent=1/3)"))
    'speed(1, exponent=0.333333)'
    """
    if not isinstance(text, str):
        raise InputError(f"a scaling as text is a string such as 'speed(1.0)', got {type(text).__name__}")
    try:
        call = ast.parse(text[:_MAX_LENGTH].strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        call = None
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
        raise InputError(
            f"a scaling as text is the call of a function of livens.scaling, such as speed(1.0) or "
            f"curvature(0.2, 1.0), got '{text[:60]}'; functions of the coordinates are given in Python"
        )
    name = call.func.id
    if name not in FACTORIES:
        raise InputError(f"unknown scaling '{name[:60]}'{suggestion(name[:60], tuple(FACTORIES))}")
    function = FACTORIES[name]
    positional = [_value(node, name) for node in call.args]
    named = {str(item.arg): _value(item.value, name) for item in call.keywords}
    try:
        inspect.signature(function).bind(*positional, **named)
    except TypeError:
        arguments = ", ".join(map(str, inspect.signature(function).parameters.values())).replace("'", "")
        raise InputError(f"the scaling '{text[:60]}' has wrong arguments; allowed: {name}({arguments})") from None
    return function(*positional, **named)


def _value(node: ast.expr, name: str) -> float | str | bool | None:
    """Return the value of a constant, or of a sum, product or quotient of numbers."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float, str, type(None))):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand, name)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left, right = _number(node.left, name), _number(node.right, name)
        if isinstance(node.op, ast.Div) and right == 0:
            raise InputError(f"an argument of the scaling '{name}' is divided by zero")
        return _BINARY[type(node.op)](left, right)
    raise InputError(f"the arguments of the scaling '{name}' must be numbers, or names of results in quotes")


def _number(node: ast.expr, name: str) -> float:
    value = _value(node, name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"the arguments of the scaling '{name}' must be numbers, or names of results in quotes")
    return float(value)
