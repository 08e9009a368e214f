"""Translation of expressions: arithmetic, comparisons, calls and intrinsics."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from livens.engine.emit import literal
from livens.engine.lowering import words
from livens.engine.lowering.function import Lowered
from livens.engine.lowering.kinds import BOOL, FLOAT, INT, NOTHING, Kind, kinds_of
from livens.engine.lowering.lines import Lines, Value
from livens.engine.native import has_symbol, target_is_x86

_INT_OPERATIONS = {
    ast.Add: "add nsw",
    ast.Sub: "sub nsw",
    ast.Mult: "mul nsw",
    ast.FloorDiv: "sdiv",
    ast.Mod: "srem",
    ast.BitAnd: "and",
}
_FLOAT_OPERATIONS = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
_RELATIONS = {
    ast.Lt: ("slt", "olt"),
    ast.LtE: ("sle", "ole"),
    ast.Gt: ("sgt", "ogt"),
    ast.GtE: ("sge", "oge"),
    ast.Eq: ("eq", "oeq"),
    ast.NotEq: ("ne", "une"),
}


class Expressions(Lines):
    """Translator of expressions; `_translate` returns the value of a node."""

    def _of(self, node: ast.expr) -> Value:
        handler: Callable[[Any], Value] | None = getattr(self, f"_value_{type(node).__name__.lower()}", None)
        if handler is None:
            raise self._error(node, f"{type(node).__name__} cannot be lowered")
        return handler(node)

    def _constant(self, value: Any, node: ast.AST) -> Value:
        if isinstance(value, bool):
            return ("true" if value else "false"), BOOL
        if isinstance(value, int):
            return str(value), INT
        if isinstance(value, float):
            return literal(value), FLOAT
        raise self._error(node, f"{value!r} is not a number")

    def _value_constant(self, node: ast.Constant) -> Value:
        return self._constant(node.value, node)

    def _named(self, name: str, node: ast.AST) -> Value:
        if name in self._locals:
            place, kind = self._locals[name]
            return self._value(f"load {kind.llvm}, ptr {place}"), kind
        if name not in self._globals:
            raise self._error(node, f"unknown name '{name}'")
        return self._constant(self._globals[name], node)

    def _value_name(self, node: ast.Name) -> Value:
        return self._named(node.id, node)

    def _value_attribute(self, node: ast.Attribute) -> Value:
        if isinstance(node.value, ast.Name) and node.value.id not in self._locals:  # a constant of a module
            return self._constant(getattr(self._globals[node.value.id], node.attr), node)
        record, kind = self._of(node.value)
        if kind.record is None:
            raise self._error(node, f"the value is not a struct and has no field '{node.attr}'")
        field = kinds_of(kind.record)[node.attr]
        place = self._value(f"getelementptr inbounds i64, ptr {record}, i64 {kind.record.place(node.attr)}")
        if field is BOOL:
            found = self._value(f"load i64, ptr {place}, align 8, !invariant.load !0")
            return self._value(f"icmp ne i64 {found}, 0"), BOOL
        return self._value(f"load {field.llvm}, ptr {place}, align 8, !invariant.load !0"), field

    def _place(self, node: ast.Subscript) -> tuple[str, str]:
        array, kind = self._of(node.value)
        if not kind.element:
            raise self._error(node, "the value is not an array")
        index = self._as(self._of(node.slice), INT)
        return self._value(f"getelementptr inbounds {kind.element}, ptr {array}, i64 {index}"), kind.element

    def _value_subscript(self, node: ast.Subscript) -> Value:
        return self._load(*self._place(node))

    def _value_binop(self, node: ast.BinOp) -> Value:
        if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant) and node.right.value == 2:
            value = self._of(node.left)
            return self._operated(node, ast.Mult(), value, value)
        if isinstance(node.op, ast.Pow):
            base, power = (self._as(self._of(part), FLOAT) for part in (node.left, node.right))
            return self._value(f"call double @llvm.pow.f64(double {base}, double {power})"), FLOAT
        return self._operated(node, node.op, self._of(node.left), self._of(node.right))

    def _operated(self, node: ast.AST, operator: ast.operator, left: Value, right: Value) -> Value:
        if left[1].element and isinstance(operator, ast.Add):
            offset = self._as(right, INT)
            return self._value(f"getelementptr inbounds {left[1].element}, ptr {left[0]}, i64 {offset}"), left[1]
        whole = left[1] is not FLOAT and right[1] is not FLOAT and not isinstance(operator, ast.Div)
        table = _INT_OPERATIONS if whole else _FLOAT_OPERATIONS
        if type(operator) not in table:
            raise self._error(node, f"{type(operator).__name__} cannot be lowered")
        kind = INT if whole else FLOAT
        flags = "" if whole else self._flags
        a, b = self._as(left, kind), self._as(right, kind)
        return self._value(f"{table[type(operator)]}{flags} {kind.llvm} {a}, {b}"), kind

    def _value_unaryop(self, node: ast.UnaryOp) -> Value:
        value = self._of(node.operand)
        if isinstance(node.op, ast.Not):
            return self._value(f"xor i1 {self._truth(value)}, true"), BOOL
        if not isinstance(node.op, ast.USub):
            raise self._error(node, "cannot be lowered")
        if value[1] is FLOAT:
            return self._value(f"fneg double {value[0]}"), FLOAT
        if value[0].isdigit():
            return f"-{value[0]}", INT
        return self._value(f"sub nsw i64 0, {self._as(value, INT)}"), INT

    def _value_compare(self, node: ast.Compare) -> Value:
        if len(node.ops) > 1:
            parts = [node.left, *node.comparators]
            pairs = zip(parts, node.ops, parts[1:], strict=False)
            return self._of(ast.BoolOp(ast.And(), [ast.Compare(a, [op], [b]) for a, op, b in pairs]))
        left, right = self._of(node.left), self._of(node.comparators[0])
        whole = left[1] is not FLOAT and right[1] is not FLOAT
        kind = INT if whole else FLOAT
        relation = _RELATIONS[type(node.ops[0])][0 if whole else 1]
        a, b = self._as(left, kind), self._as(right, kind)
        return self._value(f"{'icmp' if whole else 'fcmp'} {relation} {kind.llvm} {a}, {b}"), BOOL

    def _value_boolop(self, node: ast.BoolOp) -> Value:
        found = self._room(BOOL, "found")
        (after,) = self._labels("known")
        for i, part in enumerate(node.values):
            truth = self._truth(self._of(part))
            self._lines.append(f"store i1 {truth}, ptr {found}")
            if i == len(node.values) - 1:
                break
            (onward,) = self._labels("next")
            if isinstance(node.op, ast.And):
                self._branch(truth, onward, after)
            else:
                self._branch(truth, after, onward)
            self._begin(onward)
        self._begin(after)
        return self._value(f"load i1, ptr {found}"), BOOL

    def _value_ifexp(self, node: ast.IfExp) -> Value:
        yes, no, after = self._labels("yes", "no", "after")
        self._branch(self._truth(self._of(node.test)), yes, no)
        self._begin(yes)
        one = self._of(node.body)
        found = self._room(one[1])
        self._lines.append(f"store {one[1].llvm} {one[0]}, ptr {found}")
        self._go(after)
        self._begin(no)
        self._lines.append(f"store {one[1].llvm} {self._as(self._of(node.orelse), one[1])}, ptr {found}")
        self._go(after)
        self._begin(after)
        return self._value(f"load {one[1].llvm}, ptr {found}"), one[1]

    # -- calls --------------------------------------------------------------------------------------------------------
    def _value_call(self, node: ast.Call) -> Value:
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        values = [self._of(argument) for argument in node.args]
        target = self._globals.get(name)
        if isinstance(target, Lowered):
            return self._call(target, values, node)
        if target in words.WORDS:
            found: Value = getattr(self, f"_word_{target.__name__}")(*values)
            return found
        if name in ("min", "max"):
            return self._extreme(name, *values)
        if name == "abs":
            return self._value(f"call double @llvm.fabs.f64(double {self._as(values[0], FLOAT)})"), FLOAT
        if name == "float":
            return self._as(values[0], FLOAT), FLOAT
        if name == "int" and values[0][1] is FLOAT:
            return self._value(f"fptosi double {values[0][0]} to i64"), INT
        if name == "int":
            return self._as(values[0], INT), INT
        raise self._error(node, f"'{name}' cannot be called")

    def _call(self, target: Lowered, values: list[Value], node: ast.AST) -> Value:
        self.called.append(target)
        kinds = [kind for name, kind in target.kinds.items() if name != "return"]
        if len(kinds) != len(values):
            raise self._error(node, f"{target.name} takes {len(kinds)} arguments")
        given = []
        for value, kind in zip(values, kinds, strict=True):
            one = self._as(value, kind)
            given.append(f"i8 {self._value(f'zext i1 {one} to i8')}" if kind is BOOL else f"{kind.llvm} {one}")
        result = target.kinds.get("return", NOTHING)
        text = f'call {"zeroext i1" if result is BOOL else result.llvm} @"{target.name}"({", ".join(given)})'
        if result is NOTHING:
            self._lines.append(text)
            return "", NOTHING
        return self._value(text), result

    def _extreme(self, name: str, a: Value, b: Value) -> Value:
        if a[1] is INT and b[1] is INT:
            return self._value(f"call i64 @llvm.s{name}.i64(i64 {a[0]}, i64 {b[0]})"), INT
        one, other = self._as(a, FLOAT), self._as(b, FLOAT)
        better = self._value(f"fcmp {'olt' if name == 'min' else 'ogt'} double {other}, {one}")
        return self._value(f"select i1 {better}, double {other}, double {one}"), FLOAT

    # -- intrinsics ---------------------------------------------------------------------------------------------------
    def _word_call(self, function: Value, *values: Value) -> Value:
        given = ", ".join(f"ptr {self._pointer(value)}" for value in values)
        self._lines.append(f"call void {self._pointer(function)}({given})")
        return "", NOTHING

    def _word_address(self, value: Value) -> Value:
        return self._value(f"ptrtoint ptr {value[0]} to i64"), INT

    def _word_doubles_at(self, value: Value) -> Value:
        return self._pointer(value), Kind("ptr", "double")

    def _word_bits(self, value: Value) -> Value:
        return self._value(f"bitcast double {value[0]} to i64"), INT

    def _word_number(self, value: Value) -> Value:
        return self._value(f"bitcast i64 {value[0]} to double"), FLOAT

    def _word_square_root(self, value: Value) -> Value:
        return self._value(f"call double @llvm.sqrt.f64(double {self._as(value, FLOAT)})"), FLOAT

    def _word_publish(self, array: Value, index: Value, value: Value) -> Value:
        place = self._value(f"getelementptr inbounds i64, ptr {array[0]}, i64 {index[0]}")
        self._lines.append(f"store atomic i64 {self._as(value, INT)}, ptr {place} release, align 8")
        return "", NOTHING

    def _word_published(self, array: Value, index: Value) -> Value:
        place = self._value(f"getelementptr inbounds i64, ptr {array[0]}, i64 {index[0]}")
        return self._value(f"load atomic i64, ptr {place} acquire, align 8"), INT

    def _word_give_way(self) -> Value:
        if has_symbol("sched_yield"):
            self._value("call i32 @sched_yield()")
        return "", NOTHING

    def _word_pause(self) -> Value:
        if target_is_x86():
            self._lines.append("call void @llvm.x86.sse2.pause()")
        return "", NOTHING
