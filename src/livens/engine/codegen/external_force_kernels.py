"""Kernels of steps with an external force at the midpoint: evaluate the force, then call the kernel of the step.

The kernel has the inputs (h, t, parameters, force, Jacobian of the force); the time loop only has (h, t, parameters).
Every call evaluates the force at the query point of the unknowns.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from livens.engine.codegen.jit import NativeCode, compile_uncached
from livens.engine.codegen.step_kernels import compile_function_kernel
from livens.models.external_force import DIFFERENCE_INCREMENT, ExternalForce
from livens.schemes.core.step_equations import MidpointForceSlot

#: Kernels that read the Jacobian of the force; `residual` and `update_state` read the force only.
_NEEDS_JACOBIAN = ("newton", "inv_roundoff")
_LOOPS = ("copy", "clear", "column", "reset", "row")


class ExternalForceKernels:
    """Kernels of one step with an external force at the midpoint; owns the code that calls the force."""

    def __init__(self, slot: MidpointForceSlot, n_inputs: int) -> None:
        self._slot, self._n_inputs = slot, n_inputs
        self._query = compile_function_kernel(slot.query, "query")
        self._codes: dict[int, NativeCode] = {}

    def with_force(self, kernels: Mapping[str, int]) -> dict[str, int]:
        """Return the addresses of kernels that evaluate the force before each of these kernels."""
        return {name: self._address(name, kernels[name]) for name in (*_NEEDS_JACOBIAN, "residual", "update_state")}

    def _address(self, name: str, inner: int) -> int:
        if inner not in self._codes:
            self._codes[inner] = compile_uncached(self._ir(inner, name in _NEEDS_JACOBIAN), "with_force")
        return self._codes[inner].address

    def _ir(self, inner: int, needs_jacobian: bool) -> str:
        n, nc, force = self._slot.n, self._n_inputs, self._slot.force
        body = [
            f"%query = alloca double, i64 {2 * n + 1}",
            f"%full = alloca double, i64 {nc + n + 2 * n * n}",
            f"%shifted = alloca double, i64 {n}",
            *(f"%{name}.counter = alloca i64" for name in _LOOPS),
            f"%v = getelementptr double, ptr %query, i64 {n}",
            f"%t = getelementptr double, ptr %query, i64 {2 * n}",
            "%k = getelementptr double, ptr %c, i64 2",
            f"%force = getelementptr double, ptr %full, i64 {nc}",
            f"%jacobian = getelementptr double, ptr %full, i64 {nc + n}",
            *_loop("copy", nc, [*_load("value", "%c", "%copy.i"), *_store("%value", "to", "%full", "%copy.i")]),
            *_loop("clear", n + 2 * n * n, _store("0.0", "cleared", "%force", "%clear.i")),
            f"call void inttoptr (i64 {self._query.address} to ptr)(ptr %x, ptr %z, ptr %c, ptr %query, ptr %query)",
            *_call(force.address, "%force", force.counts[:1]),
        ]
        if needs_jacobian and force.jacobian_address:
            body += _call(force.jacobian_address, "%jacobian", force.counts[1:])
        elif needs_jacobian:
            body += _loop("column", 2 * n if force.depends_on_velocity else n, _difference_column(n, force))
        body.append(f"call void inttoptr (i64 {inner} to ptr)(ptr %x, ptr %z, ptr %full, ptr %r, ptr %out)")
        lines = "\n".join(line if line.endswith(":") else f"  {line}" for line in body)
        return (
            "declare double @llvm.fabs.f64(double)\n"
            "define void @with_force(ptr %x, ptr %z, ptr %c, ptr %r, ptr %out) {\n"
            f"entry:\n{lines}\n  ret void\n}}"
        )


def _difference_column(n: int, force: ExternalForce) -> list[str]:
    """Return the forward differences by coordinate or velocity ``%column.i``."""
    return [
        *_load("old", "%query", "%column.i"),
        "%size = call double @llvm.fabs.f64(double %old)",
        "%is_large = fcmp ogt double %size, 1.0",
        "%scale = select i1 %is_large, double %size, double 1.0",
        f"%increment = fmul double %scale, {DIFFERENCE_INCREMENT!r}",
        "%new = fadd double %old, %increment",
        "%exact_increment = fsub double %new, %old",
        *_store("%new", "moved", "%query", "%column.i"),
        *_loop("reset", n, _store("0.0", "at_reset", "%shifted", "%reset.i")),
        *_call(force.address, "%shifted", force.counts[:1]),
        *_store("%old", "back", "%query", "%column.i"),
        *_loop(
            "row",
            n,
            [
                *_load("there", "%shifted", "%row.i"),
                *_load("here", "%force", "%row.i"),
                "%difference = fsub double %there, %here",
                "%quotient = fdiv double %difference, %exact_increment",
                f"%row_start = mul i64 %row.i, {2 * n}",
                "%position = add i64 %row_start, %column.i",
                *_store("%quotient", "entry_pointer", "%jacobian", "%position"),
            ],
        ),
    ]


def _call(address: int, out: str, count: np.ndarray) -> list[str]:
    """Return the call of a force or of its Jacobian, and the increment of the number of its evaluations."""
    counter = f"ptr inttoptr (i64 {count.ctypes.data} to ptr)"
    return [
        f"call void inttoptr (i64 {address} to ptr)(ptr %query, ptr %v, ptr %t, ptr %k, ptr {out})",
        f"{out}.count = load i64, {counter}",
        f"{out}.next_count = add i64 {out}.count, 1",
        f"store i64 {out}.next_count, {counter}",
    ]


def _loop(name: str, count: int, body: list[str]) -> list[str]:
    """Return a loop over ``%name.i`` from 0 to a positive count; its counter is allocated before."""
    return [
        f"store i64 0, ptr %{name}.counter",
        f"br label %{name}.loop",
        f"{name}.loop:",
        f"%{name}.i = load i64, ptr %{name}.counter",
        *body,
        f"%{name}.next = add i64 %{name}.i, 1",
        f"store i64 %{name}.next, ptr %{name}.counter",
        f"%{name}.more = icmp slt i64 %{name}.next, {count}",
        f"br i1 %{name}.more, label %{name}.loop, label %{name}.end",
        f"{name}.end:",
    ]


def _load(name: str, base: str, index: str) -> list[str]:
    return [
        f"%{name}.pointer = getelementptr double, ptr {base}, i64 {index}",
        f"%{name} = load double, ptr %{name}.pointer",
    ]


def _store(value: str, name: str, base: str, index: str) -> list[str]:
    return [f"%{name} = getelementptr double, ptr {base}, i64 {index}", f"store double {value}, ptr %{name}"]
