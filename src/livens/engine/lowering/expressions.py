"""Translation of expressions: arithmetic, comparisons, calls and intrinsics."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, TypeGuard

from livens.engine.codegen.ir_emitter import literal
from livens.engine.codegen.jit import has_fused_multiply_add, has_symbol, target_is_x86
from livens.engine.lowering import intrinsics
from livens.engine.lowering.function import NativeFunction
from livens.engine.lowering.function_builder import FunctionBuilder, Value
from livens.engine.lowering.types import BOOL, FLOAT, INT, QUAD, VOID, NativeType, signature_of

_INT_OPERATIONS = {
    ast.Add: "add nsw",
    ast.Sub: "sub nsw",
    ast.Mult: "mul nsw",
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


def _is_product(node: ast.expr) -> TypeGuard[ast.BinOp]:
    """Return True for a product of two expressions."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)


class ExpressionTranslator(FunctionBuilder):
    """Translator of expressions; `_translate` returns the value of a node."""

    def _translate(self, node: ast.expr) -> Value:
        handler: Callable[[Any], Value] | None = getattr(self, f"_value_{type(node).__name__.lower()}", None)
        if handler is None:
            raise self._error(node, f"{type(node).__name__} cannot be lowered")
        return handler(node)

    def _constant(self, value: object, node: ast.AST) -> Value:
        if isinstance(value, bool):
            return ("true" if value else "false"), BOOL
        if isinstance(value, int):
            return str(int(value)), INT
        if isinstance(value, float):
            return literal(value), FLOAT
        raise self._error(node, f"{value!r} is not a number")

    def _value_constant(self, node: ast.Constant) -> Value:
        return self._constant(node.value, node)

    def _load_name(self, name: str, node: ast.AST) -> Value:
        if name in self._locals:
            address, native_type = self._locals[name]
            return self._emit(f"load {native_type.llvm}, ptr {address}"), native_type
        if name not in self._globals:
            raise self._error(node, f"unknown name '{name}'")
        return self._constant(self._globals[name], node)

    def _value_name(self, node: ast.Name) -> Value:
        return self._load_name(node.id, node)

    def _value_attribute(self, node: ast.Attribute) -> Value:
        if isinstance(node.value, ast.Name) and node.value.id not in self._locals:  # a constant of a module
            return self._constant(getattr(self._globals[node.value.id], node.attr), node)
        struct, native_type = self._translate(node.value)
        if native_type.struct is None:
            raise self._error(node, f"the value is not a struct and has no field '{node.attr}'")
        field = signature_of(native_type.struct)[node.attr]
        address = self._emit(
            f"getelementptr inbounds i64, ptr {struct}, i64 {native_type.struct.field_index(node.attr)}"
        )
        if field is BOOL:
            stored = self._emit(f"load i64, ptr {address}, align 8, !invariant.load !0")
            return self._emit(f"icmp ne i64 {stored}, 0"), BOOL
        return self._emit(f"load {field.llvm}, ptr {address}, align 8, !invariant.load !0"), field

    def _entry_address(self, node: ast.Subscript) -> tuple[str, str]:
        array, native_type = self._translate(node.value)
        if not native_type.element:
            raise self._error(node, "the value is not an array")
        index = self._convert(self._translate(node.slice), INT)
        return self._emit(
            f"getelementptr inbounds {self._stored(native_type.element)}, ptr {array}, i64 {index}"
        ), native_type.element

    def _value_subscript(self, node: ast.Subscript) -> Value:
        return self._load(*self._entry_address(node))

    def _value_binop(self, node: ast.BinOp) -> Value:
        if isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant) and node.right.value == 2:
            value = self._translate(node.left)
            return self._binary(node, ast.Mult(), value, value)
        if isinstance(node.op, ast.Pow):
            base, power = (self._convert(self._translate(part), FLOAT) for part in (node.left, node.right))
            return self._emit(f"call double @llvm.pow.f64(double {base}, double {power})"), FLOAT
        fused = self._multiply_add(node)
        return fused or self._binary(node, node.op, self._translate(node.left), self._translate(node.right))

    def _binary(self, node: ast.AST, operator: ast.operator, lhs: Value, rhs: Value) -> Value:
        if lhs[1].element and isinstance(operator, ast.Add):
            offset = self._convert(rhs, INT)
            stored = self._stored(lhs[1].element)
            return self._emit(f"getelementptr inbounds {stored}, ptr {lhs[0]}, i64 {offset}"), lhs[1]
        if self._vector in (lhs[1], rhs[1]):
            a, b = self._convert(lhs, self._vector), self._convert(rhs, self._vector)
            return self._componentwise(f"{_FLOAT_OPERATIONS[type(operator)]} {{type}} {{0}}, {{1}}", a, b)
        if self._width > 1 and self._float in (lhs[1], rhs[1]):
            a, b = self._convert(lhs, self._float), self._convert(rhs, self._float)
            operation = _FLOAT_OPERATIONS[type(operator)] + self._flags
            return self._emit(f"{operation} {self._float.llvm} {a}, {b}"), self._float
        is_integer = lhs[1] is not FLOAT and rhs[1] is not FLOAT and not isinstance(operator, ast.Div)
        if is_integer and isinstance(operator, (ast.FloorDiv, ast.Mod)):
            return self._floor_division(operator, self._convert(lhs, INT), self._convert(rhs, INT)), INT
        table = _INT_OPERATIONS if is_integer else _FLOAT_OPERATIONS
        if type(operator) not in table:
            raise self._error(node, f"{type(operator).__name__} cannot be lowered")
        native_type = INT if is_integer else FLOAT
        flags = "" if is_integer else self._flags
        a, b = self._convert(lhs, native_type), self._convert(rhs, native_type)
        return self._emit(f"{table[type(operator)]}{flags} {native_type.llvm} {a}, {b}"), native_type

    def _componentwise(self, instruction: str, *vectors: str) -> Value:
        """Emit an instruction for vectors of space: one for the vector, or one for each component in lanes."""
        if self._width == 1:
            return self._emit(instruction.format(*vectors, type=QUAD.llvm)), QUAD
        components = zip(*(self._unpack(vector) for vector in vectors), strict=True)
        return self._pack([self._emit(instruction.format(*parts, type=self._float.llvm)) for parts in components]), (
            self._vector
        )

    def _multiply_add(self, node: ast.BinOp) -> Value | None:
        """Return a sum or difference of vectors of space with a product, rounded once; None for other operations.

        Products are contracted here and not by LLVM, so that lanes and single numbers have the same round-off.
        """
        is_sum = isinstance(node.op, (ast.Add, ast.Sub))
        product = next((part for part in (node.right, node.left) if is_sum and _is_product(part)), None)
        if product is None or not has_fused_multiply_add():
            return None
        factors = self._translate(product.left), self._translate(product.right)
        other = self._translate(node.left if product is node.right else node.right)
        if self._vector not in (factors[0][1], factors[1][1]):
            value = self._binary(product, product.op, *factors)
            return self._binary(node, node.op, *((other, value) if product is node.right else (value, other)))
        a, b, c = (self._convert(value, self._vector) for value in (*factors, other))
        if isinstance(node.op, ast.Sub):
            a, c = (self._negative(a), c) if product is node.right else (a, self._negative(c))
        name = f"llvm.fma.v{4 if self._width == 1 else self._width}f64"
        return self._componentwise(f"call {{type}} @{name}({{type}} {{0}}, {{type}} {{1}}, {{type}} {{2}})", a, b, c)

    def _negative(self, vector: str) -> str:
        return self._componentwise("fneg {type} {0}", vector)[0]

    def _floor_division(self, operator: ast.operator, a: str, b: str) -> str:
        """Emit ``a // b`` or ``a % b`` with the semantics of Python: the quotient is rounded down.

        The instructions of LLVM truncate, so that the remainder has the sign of `a`. If it is not zero and has another
        sign than `b`, the quotient is decreased by one and the remainder increased by `b`.
        """
        remainder = self._emit(f"srem i64 {a}, {b}")
        differs = self._emit(f"icmp slt i64 {self._emit(f'xor i64 {remainder}, {b}')}, 0")
        nonzero = self._emit(f"icmp ne i64 {remainder}, 0")
        is_corrected = self._emit(f"and i1 {differs}, {nonzero}")
        if isinstance(operator, ast.Mod):
            return self._emit(f"add i64 {remainder}, {self._emit(f'select i1 {is_corrected}, i64 {b}, i64 0')}")
        quotient = self._emit(f"sdiv i64 {a}, {b}")
        return self._emit(f"sub i64 {quotient}, {self._emit(f'zext i1 {is_corrected} to i64')}")

    def _value_unaryop(self, node: ast.UnaryOp) -> Value:
        value = self._translate(node.operand)
        if isinstance(node.op, ast.Not):
            return self._not(self._to_truth(value))
        if not isinstance(node.op, ast.USub):
            raise self._error(node, "cannot be lowered")
        if value[1] == self._vector:
            return self._negative(value[0]), self._vector
        if value[1] in (FLOAT, self._float):
            return self._emit(f"fneg {value[1].llvm} {value[0]}"), value[1]
        if value[0].isdigit():
            return f"-{value[0]}", INT
        return self._emit(f"sub nsw i64 0, {self._convert(value, INT)}"), INT

    def _value_compare(self, node: ast.Compare) -> Value:
        if len(node.ops) > 1:
            parts = [node.left, *node.comparators]
            pairs = zip(parts, node.ops, parts[1:], strict=False)
            return self._translate(ast.BoolOp(ast.And(), [ast.Compare(a, [op], [b]) for a, op, b in pairs]))
        if isinstance(node.ops[0], ast.In):
            assert isinstance(node.comparators[0], ast.Tuple)
            cases: list[ast.expr] = [ast.Compare(node.left, [ast.Eq()], [case]) for case in node.comparators[0].elts]
            return self._translate(ast.BoolOp(ast.Or(), cases))
        lhs, rhs = self._translate(node.left), self._translate(node.comparators[0])
        if self._width > 1 and self._float in (lhs[1], rhs[1]):
            a, b = self._convert(lhs, self._float), self._convert(rhs, self._float)
            relation = _RELATIONS[type(node.ops[0])][1]
            return self._emit(f"fcmp {relation} {self._float.llvm} {a}, {b}"), self._mask
        is_integer = lhs[1] is not FLOAT and rhs[1] is not FLOAT
        native_type = INT if is_integer else FLOAT
        relation = _RELATIONS[type(node.ops[0])][0 if is_integer else 1]
        a, b = self._convert(lhs, native_type), self._convert(rhs, native_type)
        return self._emit(f"{'icmp' if is_integer else 'fcmp'} {relation} {native_type.llvm} {a}, {b}"), BOOL

    def _value_boolop(self, node: ast.BoolOp) -> Value:
        """Emit `and` or `or`; further operands are computed while the result is not known in all lanes."""
        uniform, by_lane, is_mask = self._alloca(BOOL, "found"), self._alloca(self._mask, "found"), False
        (after,) = self._new_labels("known")
        for i, part in enumerate(node.values):
            truth = self._to_truth(self._translate(part))
            is_mask |= truth[1] is not BOOL
            if not is_mask:
                self._lines.append(f"store i1 {truth[0]}, ptr {uniform}")
            undecided = truth if isinstance(node.op, ast.And) else self._not(truth)
            if self._width > 1:
                mask = self._combine_masks(node.op, by_lane if i else "", truth)
                self._lines.append(f"store {self._mask.llvm} {mask[0]}, ptr {by_lane}")
                undecided = (mask if isinstance(node.op, ast.And) else self._not(mask)) if is_mask else undecided
            if i == len(node.values) - 1:
                break
            (next_label,) = self._new_labels("next")
            self._cond_branch(self._to_bool(undecided), next_label, after)
            self._start_block(next_label)
        self._start_block(after)
        if is_mask:
            return self._emit(f"load {self._mask.llvm}, ptr {by_lane}"), self._mask
        return self._emit(f"load i1, ptr {uniform}"), BOOL

    def _combine_masks(self, operator: ast.boolop, stored: str, truth: Value) -> Value:
        """Return the conjunction or disjunction of a stored mask, if there is one, and a condition."""
        llvm, operand = self._mask.llvm, truth[0]
        if truth[1] is BOOL:
            none = f"<{', '.join(['i1 false'] * self._width)}>"
            operand = self._emit(f"select i1 {operand}, {llvm} {self._all_true(self._mask)}, {llvm} {none}")
        if stored:
            known = self._emit(f"load {llvm}, ptr {stored}")
            operand = self._emit(f"{'and' if isinstance(operator, ast.And) else 'or'} {llvm} {known}, {operand}")
        return operand, self._mask

    def _value_ifexp(self, node: ast.IfExp) -> Value:
        test = self._to_truth(self._translate(node.test))
        if self._width > 1 and test[1] == self._mask:
            return self._select(test[0], self._translate(node.body), self._translate(node.orelse))
        yes, no, after = self._new_labels("yes", "no", "after")
        self._cond_branch(self._to_bool(test), yes, no)
        self._start_block(yes)
        value = self._translate(node.body)
        result = self._alloca(value[1])
        self._lines.append(f"store {value[1].llvm} {value[0]}, ptr {result}")
        self._jump(after)
        self._start_block(no)
        self._lines.append(
            f"store {value[1].llvm} {self._convert(self._translate(node.orelse), value[1])}, ptr {result}"
        )
        self._jump(after)
        self._start_block(after)
        return self._emit(f"load {value[1].llvm}, ptr {result}"), value[1]

    def _select(self, mask: str, a: Value, b: Value) -> Value:
        """Return a in the lanes of a mask, and b in the others."""
        first, second = self._convert(a, self._float), self._convert(b, self._float)
        lanes = self._float.llvm
        return self._emit(f"select {self._mask.llvm} {mask}, {lanes} {first}, {lanes} {second}"), self._float

    # -- calls --------------------------------------------------------------------------------------------------------
    def _value_call(self, node: ast.Call) -> Value:
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        values = [self._translate(argument) for argument in node.args]
        target = self._globals.get(name)
        if isinstance(target, NativeFunction):
            return self._call_lowered(target, values, node)
        if target in intrinsics.INTRINSICS:
            result: Value = getattr(self, f"_intrinsic_{target.__name__}")(*values)
            return result
        if name in ("min", "max"):
            return self._minmax(name, *values)
        if name == "abs":
            return self._unary("fabs", values[0])
        if name == "float":
            return self._convert(values[0], FLOAT), FLOAT
        if name == "int" and values[0][1] is FLOAT:
            return self._emit(f"fptosi double {values[0][0]} to i64"), INT
        if name == "int":
            return self._convert(values[0], INT), INT
        raise self._error(node, f"'{name}' cannot be called")

    def _unary(self, name: str, value: Value) -> Value:
        """Call an LLVM intrinsic of one float."""
        numbers, suffix = self._float.llvm, f"v{self._width}f64" if self._width > 1 else "f64"
        return self._emit(f"call {numbers} @llvm.{name}.{suffix}({numbers} {self._convert(value, self._float)})"), (
            self._float
        )

    def _call_lowered(self, target: NativeFunction, values: list[Value], node: ast.AST) -> Value:
        target = target.in_lanes(self._width)
        self.called.append(target)
        native_types = [self._own_type(native_type) for name, native_type in target.types.items() if name != "return"]
        if len(native_types) != len(values):
            raise self._error(node, f"{target.name} takes {len(native_types)} arguments")
        operands = []
        for value, native_type in zip(values, native_types, strict=True):
            converted = self._convert(value, native_type)
            operands.append(
                f"i8 {self._emit(f'zext i1 {converted} to i8')}"
                if native_type is BOOL
                else f"{native_type.llvm} {converted}"
            )
        result = self._own_type(target.types.get("return", VOID))
        text = f'call {"zeroext i1" if result is BOOL else result.llvm} @"{target.name}"({", ".join(operands)})'
        if result is VOID:
            self._lines.append(text)
            return "", VOID
        return self._emit(text), result

    def _own_type(self, native_type: NativeType) -> NativeType:
        """Return the type of an argument or of the result of a function in as many lanes."""
        if native_type is FLOAT:
            return self._float
        return self._vector if native_type is QUAD else native_type

    def _minmax(self, name: str, a: Value, b: Value) -> Value:
        if a[1] is INT and b[1] is INT:
            return self._emit(f"call i64 @llvm.s{name}.i64(i64 {a[0]}, i64 {b[0]})"), INT
        first_operand, second_operand = self._convert(a, self._float), self._convert(b, self._float)
        relation, numbers = "olt" if name == "min" else "ogt", self._float.llvm
        better = self._emit(f"fcmp {relation} {numbers} {second_operand}, {first_operand}")
        selected = f"{numbers} {second_operand}, {numbers} {first_operand}"
        return self._emit(f"select {self._mask.llvm} {better}, {selected}"), self._float

    # -- intrinsics ---------------------------------------------------------------------------------------------------
    def _intrinsic_call_kernel(self, function: Value, *values: Value) -> Value:
        operands = ", ".join(f"ptr {self._pointer(value)}" for value in values)
        self._lines.append(f"call void {self._pointer(function)}({operands})")
        return "", VOID

    def _intrinsic_address_of(self, value: Value) -> Value:
        return self._emit(f"ptrtoint ptr {value[0]} to i64"), INT

    def _intrinsic_f64_pointer(self, value: Value) -> Value:
        return self._pointer(value), NativeType("ptr", "double")

    def _intrinsic_float_to_bits(self, value: Value) -> Value:
        return self._emit(f"bitcast double {value[0]} to i64"), INT

    def _intrinsic_bits_to_float(self, value: Value) -> Value:
        return self._emit(f"bitcast i64 {value[0]} to double"), FLOAT

    def _intrinsic_sqrt(self, value: Value) -> Value:
        return self._unary("sqrt", value)

    def _intrinsic_atan(self, value: Value) -> Value:
        if self._width == 1:
            return self._emit(f"call double @atan(double {self._convert(value, FLOAT)})"), FLOAT
        lanes, operand = self._float.llvm, self._convert(value, self._float)
        result = operand
        for i in range(self._width):
            entry = self._emit(f"call double @atan(double {self._emit(f'extractelement {lanes} {operand}, i64 {i}')})")
            result = self._emit(f"insertelement {lanes} {result}, double {entry}, i64 {i}")
        return result, self._float

    def _intrinsic_load_quad(self, array: Value, index: Value) -> Value:
        if self._width > 1:
            return self._pack([self._load(address, "double")[0] for address in self._components(array, index)]), (
                self._vector
            )
        address = self._emit(f"getelementptr inbounds double, ptr {array[0]}, i64 {index[0]}")
        return self._emit(f"load {QUAD.llvm}, ptr {address}, align 8"), QUAD

    def _intrinsic_store_quad(self, array: Value, index: Value, vector: Value) -> Value:
        operand = self._convert(vector, self._vector)
        if self._width > 1:
            for address, component in zip(self._components(array, index), self._unpack(operand), strict=True):
                self._store_entry(address, "double", (component, self._float))
            return "", VOID
        address = self._emit(f"getelementptr inbounds double, ptr {array[0]}, i64 {index[0]}")
        self._lines.append(f"store {QUAD.llvm} {operand}, ptr {address}, align 8")
        return "", VOID

    def _components(self, array: Value, index: Value) -> list[str]:
        """Return the addresses of the components of a vector of space per lane; the fourth one is not used."""
        stored = self._stored("double")
        first = self._emit(f"getelementptr inbounds {stored}, ptr {array[0]}, i64 {index[0]}")
        return [self._emit(f"getelementptr inbounds {stored}, ptr {first}, i64 {i}") for i in range(3)]

    def _intrinsic_make_quad(self, *components: Value) -> Value:
        operands = [self._convert(component, self._float) for component in components]
        if self._width > 1:
            return self._pack(operands), self._vector
        vector = "zeroinitializer"
        for i, operand in enumerate(operands):
            vector = self._emit(f"insertelement {QUAD.llvm} {vector}, double {operand}, i64 {i}")
        return vector, QUAD

    def _intrinsic_lane(self, vector: Value, index: Value) -> Value:
        if self._width == 1:
            return self._emit(f"extractelement {QUAD.llvm} {vector[0]}, i64 {index[0]}"), FLOAT
        components = self._unpack(vector[0])
        if index[0].isdigit():
            return components[int(index[0])], self._float
        result = components[0]
        for i in (1, 2):
            is_component = self._emit(f"icmp eq i64 {index[0]}, {i}")
            lanes = self._float.llvm
            result = self._emit(f"select i1 {is_component}, {lanes} {components[i]}, {lanes} {result}")
        return result, self._float

    def _intrinsic_sum3(self, vector: Value) -> Value:
        if self._width > 1:
            x, y, z = self._unpack(vector[0])
        else:
            x, y, z = (self._emit(f"extractelement {QUAD.llvm} {vector[0]}, i64 {i}") for i in range(3))
        add = f"fadd {self._float.llvm}"
        return self._emit(f"{add} {self._emit(f'{add} {x}, {y}')}, {z}"), self._float

    def _intrinsic_cyclic(self, vector: Value) -> Value:
        if self._width > 1:
            x, y, z = self._unpack(vector[0])
            return self._pack([y, z, x]), self._vector
        mask = "<4 x i32> <i32 1, i32 2, i32 0, i32 3>"
        return self._emit(f"shufflevector {QUAD.llvm} {vector[0]}, {QUAD.llvm} {vector[0]}, {mask}"), QUAD

    def _intrinsic_store_release(self, array: Value, index: Value, value: Value) -> Value:
        address = self._emit(f"getelementptr inbounds i64, ptr {array[0]}, i64 {index[0]}")
        self._lines.append(f"store atomic i64 {self._convert(value, INT)}, ptr {address} release, align 8")
        return "", VOID

    def _intrinsic_load_acquire(self, array: Value, index: Value) -> Value:
        address = self._emit(f"getelementptr inbounds i64, ptr {array[0]}, i64 {index[0]}")
        return self._emit(f"load atomic i64, ptr {address} acquire, align 8"), INT

    def _intrinsic_yield_thread(self) -> Value:
        if has_symbol("sched_yield"):
            self._emit("call i32 @sched_yield()")
        return "", VOID

    def _intrinsic_cpu_pause(self) -> Value:
        if target_is_x86():
            self._lines.append("call void @llvm.x86.sse2.pause()")
        return "", VOID
