"""Instruction scheduling of emitted IR: each instruction at its first use, which keeps live ranges short."""

from __future__ import annotations

import re
from collections.abc import Sequence

_REGISTER = re.compile(r"%\d+")


def schedule(lines: Sequence[str | tuple[str, str]]) -> list[str]:
    """Return lines of LLVM IR in the order of execution.

    Without anchors, which are pairs ``("anchor", value)``, this is the order of emission. With anchors, an instruction
    is placed before the first store or anchor that depends on it; unused instructions are removed.
    """
    if not any(isinstance(line, tuple) for line in lines):
        return [line for line in lines if isinstance(line, str)]
    text = {line.partition(" = ")[0]: line for line in lines if isinstance(line, str)}
    operands = {name: _REGISTER.findall(line.partition(" = ")[2]) for name, line in text.items()}
    done: set[str] = set()
    out: list[str] = []

    def emit_with_operands(name: str) -> None:
        stack = [(name, 0)]
        while stack:
            register, i = stack.pop()
            if register in done:
                continue
            if i < len(operands[register]):
                stack += [(register, i + 1), (operands[register][i], 0)]
            else:
                done.add(register)
                out.append(text[register])

    for line in lines:
        if isinstance(line, tuple):
            emit_with_operands(line[1])
        elif " = " not in line:
            for name in _REGISTER.findall(line):
                emit_with_operands(name)
            out.append(line)
    _check_loads(out, text)
    # numbered registers must be in order; named registers need not
    return [_REGISTER.sub(lambda match: f"%v{match.group()[1:]}", line) for line in out]


def _check_loads(out: Sequence[str], text: dict[str, str]) -> None:
    """Assert that no load of an old value was moved after a store to its address."""
    stored: set[str] = set()
    for line in out:
        if "ptr %" not in line or "getelementptr" in line:
            continue
        address = text[_REGISTER.findall(line)[-1]].split(" = ")[1]
        if line.startswith("store"):
            stored.add(address)
        elif not line.endswith("; again"):
            assert address not in stored, line
