"""GEMM and TRSM micro-kernels of dense fronts, with tiles of six rows and eight columns.

Single-threaded with a fixed order of summation: results do not depend on a BLAS library or its number of threads. A
function ``void f(C, A, B, sizes, unused)`` takes addresses of parts of row-major matrices. `sizes` are 64-bit integers:
rows of C, columns of C, length of the sums, row stride of C and A, and row stride of B.
"""

from __future__ import annotations

import functools

from livens.engine.codegen.jit import NativeCode, compile_function

#: Columns of a tile, and numbers of rows of the tiles, largest first.
LANES = 8
_TILE_ROWS = (6, 3, 1)
_VECTOR = f"<{LANES} x double>"
_LANE_INDICES = ", ".join(f"i64 {lane}" for lane in range(LANES))


@functools.cache
def gemm_sub() -> NativeCode:
    """Compile ``C -= A B``. Rows of B and C are padded by seven entries, which are not changed in C."""
    return compile_function(_gemm_ir("subtract", subtract=True), "subtract")


@functools.cache
def gemm() -> NativeCode:
    """Compile ``C = A B``, where C may be A if B has eight rows and columns."""
    return compile_function(_gemm_ir("multiply", subtract=False), "multiply")


@functools.cache
def trsm_lower() -> NativeCode:
    """Compile ``C <- B^-1 C`` for eight rows of C; B is unit lower triangular with eight rows."""
    return compile_function(_trsm_ir("lower"), "lower")


def _gemm_ir(name: str, subtract: bool) -> str:
    tiles = "\n".join(_tile_loop(i, rows, subtract) for i, rows in enumerate(_TILE_ROWS))
    return f"""declare {_VECTOR} @llvm.fmuladd.v{LANES}f64({_VECTOR}, {_VECTOR}, {_VECTOR})
define void @{name}(ptr %c, ptr %a, ptr %b, ptr %sizes, ptr %unused) #0 {{
entry:
{_load_sizes("m", "n", "k", "ld", "ldb")}
%any = icmp sgt i64 %n, 0
br i1 %any, label %columns, label %done
columns:
%j = phi i64 [0, %entry], [%jnext, %columns.next]
%bj = getelementptr inbounds double, ptr %b, i64 %j
%cj = getelementptr inbounds double, ptr %c, i64 %j
%behind = sub i64 %n, %j
{_column_mask("%behind")}
br label %tiles0
{tiles}
tiles{len(_TILE_ROWS)}:
br label %columns.next
columns.next:
%jnext = add i64 %j, {LANES}
%more = icmp slt i64 %jnext, %n
br i1 %more, label %columns, label %done
done:
ret void
}}
attributes #0 = {{ nounwind "prefer-vector-width"="512" }}
"""


def _load_sizes(*names: str) -> str:
    lines = []
    for i, name in enumerate(names):
        lines.append(f"%p{name} = getelementptr inbounds i64, ptr %sizes, i64 {i}")
        lines.append(f"%{name} = load i64, ptr %p{name}, align 8")
    return "\n".join(lines)


def _column_mask(count: str) -> str:
    """Return the mask of the lanes that are columns of the result."""
    return f"""%one = insertelement <{LANES} x i64> poison, i64 {count}, i32 0
%all = shufflevector <{LANES} x i64> %one, <{LANES} x i64> poison, <{LANES} x i32> zeroinitializer
%inside = icmp slt <{LANES} x i64> <{_LANE_INDICES}>, %all"""


def _tile_loop(index: int, rows: int, subtract: bool) -> str:
    """Return the loop over tiles with `rows` rows, starting at the end of the previous loop."""
    t = f"t{index}"
    previous = "0" if index == 0 else f"%i{index - 1}"
    previous_label = "%columns" if index == 0 else f"%tiles{index - 1}"
    lines = [
        f"tiles{index}:",
        f"%i{index} = phi i64 [{previous}, {previous_label}], [%{t}.i, %{t}.store]",
        f"%{t}.i = add i64 %i{index}, {rows}",
        f"%{t}.fits = icmp sle i64 %{t}.i, %m",
        f"br i1 %{t}.fits, label %{t}.begin, label %tiles{index + 1}",
        f"{t}.begin:",
        f"%{t}.o = mul i64 %i{index}, %ld",
        f"%{t}.a = getelementptr inbounds double, ptr %a, i64 %{t}.o",
        f"%{t}.c = getelementptr inbounds double, ptr %cj, i64 %{t}.o",
    ]
    for r in range(1, rows):
        for name in "ac":
            previous_row = f"%{t}.{name}" if r == 1 else f"%{t}.{name}{r - 1}"
            lines.append(f"%{t}.{name}{r} = getelementptr inbounds double, ptr {previous_row}, i64 %ld")
    a = [f"%{t}.a"] + [f"%{t}.a{r}" for r in range(1, rows)]
    c = [f"%{t}.c"] + [f"%{t}.c{r}" for r in range(1, rows)]
    lines += [f"br label %{t}.sum", f"{t}.sum:"]
    lines.append(f"%{t}.k = phi i64 [0, %{t}.begin], [%{t}.knext, %{t}.sum]")
    lines.append(f"%{t}.b = phi ptr [%bj, %{t}.begin], [%{t}.bnext, %{t}.sum]")
    for r in range(rows):
        lines.append(f"%{t}.s{r} = phi {_VECTOR} [zeroinitializer, %{t}.begin], [%{t}.n{r}, %{t}.sum]")
    lines.append(f"%{t}.bk = load {_VECTOR}, ptr %{t}.b, align 8")
    for r in range(rows):
        lines += [
            f"%{t}.p{r} = getelementptr inbounds double, ptr {a[r]}, i64 %{t}.k",
            f"%{t}.x{r} = load double, ptr %{t}.p{r}, align 8",
            f"%{t}.y{r} = insertelement {_VECTOR} poison, double %{t}.x{r}, i32 0",
            f"%{t}.z{r} = shufflevector {_VECTOR} %{t}.y{r}, {_VECTOR} poison, <{LANES} x i32> zeroinitializer",
            f"%{t}.n{r} = call {_VECTOR} @llvm.fmuladd.v{LANES}f64({_VECTOR} %{t}.z{r}, {_VECTOR} %{t}.bk, "
            f"{_VECTOR} %{t}.s{r})",
        ]
    lines += [
        f"%{t}.bnext = getelementptr inbounds double, ptr %{t}.b, i64 %ldb",
        f"%{t}.knext = add i64 %{t}.k, 1",
        f"%{t}.more = icmp slt i64 %{t}.knext, %k",
        f"br i1 %{t}.more, label %{t}.sum, label %{t}.store",
        f"{t}.store:",
    ]
    for r in range(rows):
        lines.append(f"%{t}.old{r} = load {_VECTOR}, ptr {c[r]}, align 8")
        new = f"%{t}.n{r}"
        if subtract:
            lines.append(f"%{t}.new{r} = fsub {_VECTOR} %{t}.old{r}, %{t}.n{r}")
            new = f"%{t}.new{r}"
        lines.append(f"%{t}.all{r} = select <{LANES} x i1> %inside, {_VECTOR} {new}, {_VECTOR} %{t}.old{r}")
    lines += [f"store {_VECTOR} %{t}.all{r}, ptr {c[r]}, align 8" for r in range(rows)]
    lines.append(f"br label %tiles{index}")
    return "\n".join(lines)


def _trsm_ir(name: str) -> str:
    body: list[str] = []
    for r in range(LANES):
        body.append(f"%o{r} = mul i64 %ld, {r}")
        body.append(f"%c{r} = getelementptr inbounds double, ptr %cj, i64 %o{r}")
        body.append(f"%v{r}.0 = load {_VECTOR}, ptr %c{r}, align 8")
    for r in range(1, LANES):
        for k in range(r):
            x = f"x{r}.{k}"
            body += [
                f"%p{x} = getelementptr inbounds double, ptr %b, i64 {r * LANES + k}",
                f"%{x} = load double, ptr %p{x}, align 8",
                f"%n{x} = fneg double %{x}",
                f"%y{x} = insertelement {_VECTOR} poison, double %n{x}, i32 0",
                f"%z{x} = shufflevector {_VECTOR} %y{x}, {_VECTOR} poison, <{LANES} x i32> zeroinitializer",
                f"%v{r}.{k + 1} = call {_VECTOR} @llvm.fmuladd.v{LANES}f64({_VECTOR} %z{x}, {_VECTOR} %v{k}.{k}, "
                f"{_VECTOR} %v{r}.{k})",
            ]
    for r in range(1, LANES):
        body.append(f"%w{r} = select <{LANES} x i1> %inside, {_VECTOR} %v{r}.{r}, {_VECTOR} %v{r}.0")
        body.append(f"store {_VECTOR} %w{r}, ptr %c{r}, align 8")
    return f"""declare {_VECTOR} @llvm.fmuladd.v{LANES}f64({_VECTOR}, {_VECTOR}, {_VECTOR})
define void @{name}(ptr %c, ptr %a, ptr %b, ptr %sizes, ptr %unused) #0 {{
entry:
{_load_sizes("m", "n", "k", "ld")}
%any = icmp sgt i64 %n, 0
br i1 %any, label %columns, label %done
columns:
%j = phi i64 [0, %entry], [%jnext, %columns]
%cj = getelementptr inbounds double, ptr %c, i64 %j
%behind = sub i64 %n, %j
{_column_mask("%behind")}
{chr(10).join(body)}
%jnext = add i64 %j, {LANES}
%more = icmp slt i64 %jnext, %n
br i1 %more, label %columns, label %done
done:
ret void
}}
attributes #0 = {{ nounwind "prefer-vector-width"="512" }}
"""
