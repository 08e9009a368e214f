"""Functions in a small part of Python -> LLVM text.

Local variables live on the stack; LLVM puts them into registers. A record is an array of 64-bit slots, one for each
field, and nothing that a function does changes it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

from livens.engine.emit import literal
from livens.engine.lowering import words
from livens.engine.lowering.function import Lowered
from livens.engine.lowering.kinds import BOOL, FLOAT, INT, NOTHING, Kind, kinds_of
from livens.engine.native import has_symbol, target_is_x86

Value = tuple[str, Kind]
_SIZES = {"double": 8, "i64": 8, "i32": 4}
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
_INTRINSICS = """declare double @llvm.fabs.f64(double)
declare double @llvm.sqrt.f64(double)
declare double @llvm.pow.f64(double, double)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
"""


def library(functions: Iterable[Lowered]) -> str:
    """The text of these functions and of all that they call; the functions themselves can be called from outside."""
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


class _Writer:
    """One function."""

    def __init__(self, function: Lowered) -> None:
        self.function = function
        self.called: list[Lowered] = []
        self._globals = function.function.__globals__
        self._flags = " reassoc contract" if function.fast else ""
        self._stack: list[str] = []
        self._lines: list[str] = []
        self._count = 0
        self._locals: dict[str, Value] = {}
        self._loops: list[tuple[str, str]] = []  # where to go on, and where to end
        self._open = True  # whether the block at hand goes on

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
                raise self._error(tree, "does not return a value everywhere")
            self._lines.append("ret void")
        linkage = "" if public else "internal "
        result = "zeroext i1" if self._result is BOOL else self._result.llvm
        body = "\n".join(["entry:", *self._stack, *self._lines])
        return f'define {linkage}{result} @"{self.function.name}"({", ".join(arguments)}) #0 {{\n{body}\n}}\n'

    def _error(self, node: ast.AST, what: str) -> TypeError:
        return TypeError(f"{self.function.name}, line {getattr(node, 'lineno', 0)}: {what}")

    # -- text ---------------------------------------------------------------------------------------------------------
    def _value(self, text: str) -> str:
        self._count += 1
        name = f"%v{self._count}"
        self._lines.append(f"{name} = {text}")
        return name

    def _room(self, kind: Kind, name: str = "room") -> str:
        self._count += 1
        place = f"%{name}.{self._count}"
        self._stack.append(f"{place} = alloca {kind.llvm}")
        return place

    def _labels(self, *names: str) -> list[str]:
        self._count += 1
        return [f"{name}{self._count}" for name in names]

    def _go(self, label: str) -> None:
        if self._open:
            self._lines.append(f"br label %{label}")
        self._open = False

    def _begin(self, label: str) -> None:
        self._go(label)
        self._lines.append(f"{label}:")
        self._open = True

    def _branch(self, condition: str, yes: str, no: str) -> None:
        self._lines.append(f"br i1 {condition}, label %{yes}, label %{no}")
        self._open = False

    # -- statements ---------------------------------------------------------------------------------------------------
    def _block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if not self._open:
                raise self._error(statement, "is never reached")
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

    # -- variables and memory -----------------------------------------------------------------------------------------
    def _set(self, name: str, value: Value) -> None:
        if name not in self._locals:
            self._locals[name] = self._room(value[1], name), value[1]
        place, kind = self._locals[name]
        self._lines.append(f"store {kind.llvm} {self._as(value, kind)}, ptr {place}")

    def _store(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self._set(target.id, value)
        elif isinstance(target, ast.Subscript):
            self._put(*self._place(target), value)
        else:
            raise self._error(target, "only variables and entries of arrays can be assigned to")

    def _place(self, node: ast.Subscript) -> tuple[str, str]:
        array, kind = self._of(node.value)
        if not kind.element:
            raise self._error(node, "is no array")
        index = self._as(self._of(node.slice), INT)
        return self._value(f"getelementptr inbounds {kind.element}, ptr {array}, i64 {index}"), kind.element

    def _load(self, place: str, element: str) -> Value:
        found = self._value(f"load {element}, ptr {place}, align {_SIZES[element]}")
        if element == "i32":
            return self._value(f"zext i32 {found} to i64"), INT
        return found, FLOAT if element == "double" else INT

    def _put(self, place: str, element: str, value: Value) -> None:
        given = self._as(value, FLOAT if element == "double" else INT)
        if element == "i32":
            given = self._value(f"trunc i64 {given} to i32")
        self._lines.append(f"store {element} {given}, ptr {place}, align {_SIZES[element]}")

    def _as(self, value: Value, kind: Kind) -> str:
        """A value converted: whole numbers are numbers as well."""
        given, own = value
        if own == kind or (own.llvm == kind.llvm == "ptr" and own.record is kind.record):
            return given
        if own is INT and kind is FLOAT:
            if given.lstrip("-").isdigit():
                return literal(float(given))
            return self._value(f"sitofp i64 {given} to double")
        if own is BOOL and kind is INT:
            return self._value(f"zext i1 {given} to i64")
        if own is BOOL and kind is FLOAT:
            return self._value(f"uitofp i1 {given} to double")
        raise TypeError(f"{self.function.name}: {own} given for {kind}")

    # -- expressions --------------------------------------------------------------------------------------------------
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
        raise self._error(node, f"{value!r} is no number")

    def _value_constant(self, node: ast.Constant) -> Value:
        return self._constant(node.value, node)

    def _named(self, name: str, node: ast.AST) -> Value:
        if name in self._locals:
            place, kind = self._locals[name]
            return self._value(f"load {kind.llvm}, ptr {place}"), kind
        if name not in self._globals:
            raise self._error(node, f"'{name}' is not known")
        return self._constant(self._globals[name], node)

    def _value_name(self, node: ast.Name) -> Value:
        return self._named(node.id, node)

    def _value_attribute(self, node: ast.Attribute) -> Value:
        if isinstance(node.value, ast.Name) and node.value.id not in self._locals:  # of a module
            return self._constant(getattr(self._globals[node.value.id], node.attr), node)
        record, kind = self._of(node.value)
        if kind.record is None:
            raise self._error(node, f"has no '{node.attr}'")
        field = kinds_of(kind.record)[node.attr]
        place = self._value(f"getelementptr inbounds i64, ptr {record}, i64 {kind.record.place(node.attr)}")
        if field is BOOL:
            found = self._value(f"load i64, ptr {place}, align 8, !invariant.load !0")
            return self._value(f"icmp ne i64 {found}, 0"), BOOL
        return self._value(f"load {field.llvm}, ptr {place}, align 8, !invariant.load !0"), field

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

    def _truth(self, value: Value) -> str:
        given, kind = value
        if kind is BOOL:
            return given
        if kind is FLOAT:
            return self._value(f"fcmp une double {given}, {literal(0.0)}")
        return self._value(f"icmp ne i64 {self._as(value, INT)}, 0")

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

    # -- words --------------------------------------------------------------------------------------------------------
    def _pointer(self, value: Value) -> str:
        return self._value(f"inttoptr i64 {value[0]} to ptr") if value[1] is INT else value[0]

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
