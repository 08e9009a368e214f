"""Interpreter of the instruction list of a CasADi function for any algebra."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import casadi as ca

from livens.lookup_tables import LOOKUP_OPERATION, operate_lookup, registered_tables

Value = TypeVar("Value")

#: Instruction codes by CasADi name: ``OPS["ADD"] == ca.OP_ADD``.
OPS: dict[str, int] = {name[3:]: getattr(ca, name) for name in dir(ca) if name.startswith("OP_")}
NAMES: dict[int, str] = {code: name for name, code in OPS.items()}
#: Binary operators; all other arithmetic instructions are unary.
BINARY = frozenset(
    "ADD SUB MUL DIV POW CONSTPOW LT LE EQ NE AND OR FMOD COPYSIGN IF_ELSE_ZERO FMIN FMAX ATAN2 HYPOT REMAINDER".split()
) | {LOOKUP_OPERATION}

#: Number of arguments of a look-up: index, and number of the table.
_LOOKUP_ARGUMENTS = 2


def operate(name: str, *operands: Any) -> Any:
    """Return the CasADi expression of one operation by its name."""
    if name == LOOKUP_OPERATION:
        return operate_lookup(*operands)
    return ca.SX.unary(OPS[name], *operands) if len(operands) == 1 else ca.SX.binary(OPS[name], *operands)


def interpret(
    function: ca.Function,
    inputs: Sequence[Sequence[Value]],
    constant: Callable[[float], Value],
    apply: Callable[..., Value],
) -> list[list[Value]]:
    """Evaluate `function` in another algebra.

    ``inputs[i][j]`` is the value of the j-th nonzero of input i, ``constant(c)`` lifts a number, ``apply(name, a)``
    or ``apply(name, a, b)`` performs one instruction. Returns the nonzeros of every output.
    """
    work: dict[int, Value] = {}
    outputs: list[list[Value]] = [[constant(0.0)] * function.nnz_out(i) for i in range(function.n_out())]
    for k in range(function.n_instructions()):
        code, i, o = function.instruction_id(k), function.instruction_input(k), function.instruction_output(k)
        if code == ca.OP_INPUT:
            work[o[0]] = inputs[i[0]][i[1]]
        elif code == ca.OP_OUTPUT:
            outputs[o[0]][o[1]] = work[i[0]]
        elif code == ca.OP_CONST:
            work[o[0]] = constant(function.instruction_constant(k))
        elif code == ca.OP_CALL and len(i) > _LOOKUP_ARGUMENTS:  # derivative of a look-up
            work.update({j: constant(0.0) for j in o})
        else:
            name = NAMES[code]
            operands = i[:2] if name in BINARY else i[:1]
            work[o[0]] = apply(name, *(work[j] for j in operands))
    return outputs


def common_subexpressions(expressions: Any) -> Any:
    """Eliminate common subexpressions of an expression or a list of expressions.

    Expressions with look-ups are returned unchanged: CasADi compares the arrays of all pairs of calls.
    """
    if registered_tables():
        outputs = expressions if isinstance(expressions, list) else [expressions]
        symbols = ca.symvar(ca.veccat(*outputs))
        function = ca.Function("f", symbols, outputs)
        if any(function.instruction_id(i) == ca.OP_CALL for i in range(function.n_instructions())):
            return expressions
    return ca.cse(expressions)
