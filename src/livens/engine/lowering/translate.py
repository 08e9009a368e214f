"""Translation of lowered functions from Python to LLVM IR.

Local variables are stack slots; LLVM promotes them to registers. A struct is an array of 64-bit slots, one per field,
and no lowered function modifies it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

from livens.engine.codegen.jit import has_symbol, target_is_x86
from livens.engine.lowering.expressions import ExpressionTranslator
from livens.engine.lowering.function import NativeFunction
from livens.engine.lowering.function_builder import Value
from livens.engine.lowering.types import BOOL, INT, VOID

_DECLARATIONS = """declare double @llvm.fabs.f64(double)
declare double @llvm.sqrt.f64(double)
declare double @llvm.pow.f64(double, double)
declare double @atan(double)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
"""
_VECTOR_DECLARATIONS = """declare <{n} x double> @llvm.fabs.v{n}f64(<{n} x double>)
declare <{n} x double> @llvm.sqrt.v{n}f64(<{n} x double>)
declare <{n} x double> @llvm.fma.v{n}f64(<{n} x double>, <{n} x double>, <{n} x double>)
"""


def module_ir(functions: Iterable[NativeFunction]) -> str:
    """Return the IR of functions and all their callees; only the functions themselves are exported."""
    entries = list(functions)
    queue, visited, texts = list(entries), set(entries), []
    while queue:
        translator = _FunctionTranslator(queue.pop(0))
        texts.append(translator.to_ir(translator.function in entries))
        for callee in translator.called:
            if callee not in visited:
                visited.add(callee)
                queue.append(callee)
    vectors = "".join(_VECTOR_DECLARATIONS.format(n=n) for n in {4, *(function.width for function in entries)} - {1})
    machine = "declare i32 @sched_yield()\n" if has_symbol("sched_yield") else ""
    machine += "declare void @llvm.x86.sse2.pause()\n" if target_is_x86() else ""
    attributes = "attributes #0 = { nounwind }\nattributes #1 = { alwaysinline nounwind }\n"
    # without stackrealign, vectors are spilled across cache lines
    attributes += 'attributes #2 = { nounwind "stackrealign" "prefer-vector-width"="512" }\n!0 = !{}\n'
    return _DECLARATIONS + vectors + machine + "".join(texts) + attributes


class _FunctionTranslator(ExpressionTranslator):
    """Translator of the statements of one function."""

    def to_ir(self, exported: bool) -> str:
        signature, tree = self.function.types, self.function.tree
        self._result = self._own_type(signature.get("return", VOID))
        arguments = []
        for argument in tree.args.args:
            native_type = signature[argument.arg]
            if not exported:  # floats given from outside are the same in all lanes
                native_type = self._own_type(native_type)
            llvm = "i8" if native_type is BOOL else native_type.llvm
            arguments.append(f"{llvm} %in.{argument.arg}")
            operand = f"%in.{argument.arg}"
            if native_type is BOOL:
                operand = self._emit(f"icmp ne i8 {operand}, 0")
            self._store_local(argument.arg, (operand, native_type))
        self._block(tree.body)
        if self._block_open:
            if self._result is not VOID:
                raise self._error(tree, "a path does not return a value")
            self._lines.append("ret void")
        linkage = "" if exported else "internal "
        result = "zeroext i1" if self._result is BOOL else self._result.llvm
        body = "\n".join(["entry:", *self._stack, *self._lines])
        attributes = (
            "#1" if self._vector in map(self._own_type, signature.values()) else self._plain_attributes
        )  # vectors stay in registers
        head = f'define {linkage}{result} @"{self.function.name}"({", ".join(arguments)}) {attributes}'
        return f"{head} {{\n{body}\n}}\n"

    def _block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if not self._block_open:
                raise self._error(statement, "unreachable statement")
            handler: Callable[[Any], None] | None = getattr(self, f"_{type(statement).__name__.lower()}", None)
            if handler is None:
                raise self._error(statement, f"{type(statement).__name__} cannot be lowered")
            handler(statement)

    def _pass(self, node: ast.Pass) -> None:
        pass

    def _expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # a docstring
            self._translate(node.value)

    def _assign(self, node: ast.Assign) -> None:
        (target,) = node.targets
        if isinstance(target, ast.Tuple):
            assert isinstance(node.value, ast.Tuple)
            values = [self._translate(value) for value in node.value.elts]
            for element, value in zip(target.elts, values, strict=True):
                self._store(element, value)
        else:
            self._store(target, self._translate(node.value))

    def _store(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self._store_local(target.id, value)
        elif isinstance(target, ast.Subscript):
            self._store_entry(*self._entry_address(target), value)
        else:
            raise self._error(target, "only variables and array entries can be assigned")

    def _augassign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Subscript):
            address, element = self._entry_address(node.target)
            current = self._load(address, element)
            self._store_entry(address, element, self._binary(node, node.op, current, self._translate(node.value)))
        else:
            assert isinstance(node.target, ast.Name)
            current = self._load_name(node.target.id, node)
            self._store_local(node.target.id, self._binary(node, node.op, current, self._translate(node.value)))

    def _if(self, node: ast.If) -> None:
        yes, no, after = self._new_labels("then", "else", "after")
        self._cond_branch(self._to_bool(self._translate(node.test)), yes, no if node.orelse else after)
        self._start_block(yes)
        self._block(node.body)
        ends = not self._block_open
        self._jump(after)
        if node.orelse:
            self._start_block(no)
            self._block(node.orelse)
            ends = ends and not self._block_open
            self._jump(after)
        else:
            ends = False
        if not ends:
            self._start_block(after)

    def _while(self, node: ast.While) -> None:
        head, body, after = self._new_labels("while", "body", "after")
        self._start_block(head)
        self._cond_branch(self._to_bool(self._translate(node.test)), body, after)
        self._start_block(body)
        self._loop_targets.append((head, after))
        self._block(node.body)
        self._loop_targets.pop()
        self._jump(head)
        self._start_block(after)

    def _for(self, node: ast.For) -> None:
        assert isinstance(node.iter, ast.Call) and isinstance(node.target, ast.Name)
        bounds = [self._translate(value) for value in node.iter.args]
        start, stop = (("0", INT), bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1])
        step = bounds[2][0] if len(bounds) == 3 else "1"
        relation = "sgt" if step.startswith("-") else "slt"
        counter = self._alloca(INT, "counter")
        head, body, latch, after = self._new_labels("for", "body", "onward", "after")
        self._lines.append(f"store i64 {start[0]}, ptr {counter}")
        self._start_block(head)
        index = self._emit(f"load i64, ptr {counter}")
        self._cond_branch(self._emit(f"icmp {relation} i64 {index}, {stop[0]}"), body, after)
        self._start_block(body)
        self._store_local(node.target.id, (index, INT))
        self._loop_targets.append((latch, after))
        self._block(node.body)
        self._loop_targets.pop()
        self._start_block(latch)
        last = self._emit(f"load i64, ptr {counter}")
        following = self._emit(f"add nsw i64 {last}, {step}")
        self._lines.append(f"store i64 {following}, ptr {counter}")
        self._jump(head)
        self._start_block(after)

    def _break(self, node: ast.Break) -> None:
        self._jump(self._loop_targets[-1][1])

    def _continue(self, node: ast.Continue) -> None:
        self._jump(self._loop_targets[-1][0])

    def _return(self, node: ast.Return) -> None:
        if node.value is None:
            self._lines.append("ret void")
        else:
            value = self._convert(self._translate(node.value), self._result)
            self._lines.append(f"ret {self._result.llvm} {value}")
        self._block_open = False
