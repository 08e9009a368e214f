"""Translation of lowered functions from Python to LLVM IR.

Local variables are stack slots; LLVM promotes them to registers. A struct is an array of 64-bit slots, one per field,
and no lowered function modifies it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

from livens.engine.lowering.expressions import Expressions
from livens.engine.lowering.function import Lowered
from livens.engine.lowering.kinds import BOOL, INT, NOTHING
from livens.engine.lowering.lines import Value
from livens.engine.native import has_symbol, target_is_x86

_INTRINSICS = """declare double @llvm.fabs.f64(double)
declare double @llvm.sqrt.f64(double)
declare double @llvm.pow.f64(double, double)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
"""


def library(functions: Iterable[Lowered]) -> str:
    """Return the IR of functions and all their callees; only the functions themselves are exported."""
    entries = list(functions)
    waiting, seen, texts = list(entries), set(entries), []
    while waiting:
        writer = _Writer(waiting.pop(0))
        texts.append(writer.text(writer.function in entries))
        for found in writer.called:
            if found not in seen:
                seen.add(found)
                waiting.append(found)
    machine = "declare i32 @sched_yield()\n" if has_symbol("sched_yield") else ""
    machine += "declare void @llvm.x86.sse2.pause()\n" if target_is_x86() else ""
    attributes = "attributes #0 = { nounwind }\n!0 = !{}\n"
    return _INTRINSICS + machine + "".join(texts) + attributes


class _Writer(Expressions):
    """Translator of the statements of one function."""

    def text(self, public: bool) -> str:
        kinds, tree = self.function.kinds, self.function.tree
        self._result = kinds.get("return", NOTHING)
        arguments = []
        for argument in tree.args.args:
            kind = kinds[argument.arg]
            llvm = "i8" if kind is BOOL else kind.llvm
            arguments.append(f"{llvm} %in.{argument.arg}")
            given = f"%in.{argument.arg}"
            if kind is BOOL:
                given = self._value(f"icmp ne i8 {given}, 0")
            self._set(argument.arg, (given, kind))
        self._block(tree.body)
        if self._open:
            if self._result is not NOTHING:
                raise self._error(tree, "a path does not return a value")
            self._lines.append("ret void")
        linkage = "" if public else "internal "
        result = "zeroext i1" if self._result is BOOL else self._result.llvm
        body = "\n".join(["entry:", *self._stack, *self._lines])
        return f'define {linkage}{result} @"{self.function.name}"({", ".join(arguments)}) #0 {{\n{body}\n}}\n'

    def _block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if not self._open:
                raise self._error(statement, "unreachable statement")
            handler: Callable[[Any], None] | None = getattr(self, f"_{type(statement).__name__.lower()}", None)
            if handler is None:
                raise self._error(statement, f"{type(statement).__name__} cannot be lowered")
            handler(statement)

    def _pass(self, node: ast.Pass) -> None:
        pass

    def _expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self._of(node.value)

    def _assign(self, node: ast.Assign) -> None:
        (target,) = node.targets
        if isinstance(target, ast.Tuple):
            assert isinstance(node.value, ast.Tuple)
            values = [self._of(value) for value in node.value.elts]
            for one, value in zip(target.elts, values, strict=True):
                self._store(one, value)
        else:
            self._store(target, self._of(node.value))

    def _store(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self._set(target.id, value)
        elif isinstance(target, ast.Subscript):
            self._put(*self._place(target), value)
        else:
            raise self._error(target, "only variables and array entries can be assigned")

    def _augassign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Subscript):
            place, element = self._place(node.target)
            old = self._load(place, element)
            self._put(place, element, self._operated(node, node.op, old, self._of(node.value)))
        else:
            assert isinstance(node.target, ast.Name)
            old = self._named(node.target.id, node)
            self._set(node.target.id, self._operated(node, node.op, old, self._of(node.value)))

    def _if(self, node: ast.If) -> None:
        yes, no, after = self._labels("then", "else", "after")
        self._branch(self._truth(self._of(node.test)), yes, no if node.orelse else after)
        self._begin(yes)
        self._block(node.body)
        ends = not self._open
        self._go(after)
        if node.orelse:
            self._begin(no)
            self._block(node.orelse)
            ends = ends and not self._open
            self._go(after)
        else:
            ends = False
        if not ends:
            self._begin(after)

    def _while(self, node: ast.While) -> None:
        again, body, after = self._labels("while", "body", "after")
        self._begin(again)
        self._branch(self._truth(self._of(node.test)), body, after)
        self._begin(body)
        self._loops.append((again, after))
        self._block(node.body)
        self._loops.pop()
        self._go(again)
        self._begin(after)

    def _for(self, node: ast.For) -> None:
        assert isinstance(node.iter, ast.Call) and isinstance(node.target, ast.Name)
        bounds = [self._of(value) for value in node.iter.args]
        start, stop = (("0", INT), bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1])
        step = bounds[2][0] if len(bounds) == 3 else "1"
        relation = "sgt" if step.startswith("-") else "slt"
        counter = self._room(INT, "counter")
        again, body, onward, after = self._labels("for", "body", "onward", "after")
        self._lines.append(f"store i64 {start[0]}, ptr {counter}")
        self._begin(again)
        now = self._value(f"load i64, ptr {counter}")
        self._branch(self._value(f"icmp {relation} i64 {now}, {stop[0]}"), body, after)
        self._begin(body)
        self._set(node.target.id, (now, INT))
        self._loops.append((onward, after))
        self._block(node.body)
        self._loops.pop()
        self._begin(onward)
        last = self._value(f"load i64, ptr {counter}")
        following = self._value(f"add nsw i64 {last}, {step}")
        self._lines.append(f"store i64 {following}, ptr {counter}")
        self._go(again)
        self._begin(after)

    def _break(self, node: ast.Break) -> None:
        self._go(self._loops[-1][1])

    def _continue(self, node: ast.Continue) -> None:
        self._go(self._loops[-1][0])

    def _return(self, node: ast.Return) -> None:
        if node.value is None:
            self._lines.append("ret void")
        else:
            value = self._as(self._of(node.value), self._result)
            self._lines.append(f"ret {self._result.llvm} {value}")
        self._open = False
