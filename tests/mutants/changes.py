"""Mutants of a source file: a changed operator, comparison, number or condition, and the places of changes."""

from __future__ import annotations

import ast
import contextlib
import copy
import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
#: Statements without influence on results: messages, assertions and declarations of types.
_WITHOUT_EFFECT = (ast.Raise, ast.Assert, ast.JoinedStr, ast.AnnAssign, ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Change:
    """Replacement of one text in a file; `source` is the changed file.

    `line` and `function` are the place. `key` identifies the change without the number of the line, which may move.
    """

    path: str
    line: int
    function: str
    before: str
    after: str
    source: str
    key: str

    @property
    def name(self) -> str:
        return f"{self.path}:{self.line}: {_single_line(self.before)} -> {_single_line(self.after)}"


def _single_line(text: str) -> str:
    return " ".join(text.split())


def changed(node: ast.AST) -> ast.AST | None:
    """Return a changed copy of an expression, with the same parts; None if there is no change of its type."""
    other = copy.copy(node)
    match other:
        case ast.BinOp(left=ast.Constant(value=0), op=ast.Mult()):
            return None  # 0 * x creates zeros; 0 / x is equal
        case ast.BinOp() if type(other.op) in _OPERATORS:
            other.op = _OPERATORS[type(other.op)]()
        case ast.Compare() if len(other.ops) == 1 and type(other.ops[0]) in _COMPARISONS:
            other.ops = [_COMPARISONS[type(other.ops[0])]()]
        case ast.BoolOp():
            other.op = ast.Or() if isinstance(other.op, ast.And) else ast.And()
        case ast.UnaryOp(op=ast.USub() | ast.Not()):
            return other.operand
        case ast.Constant(value=bool()):
            other.value = not other.value
        case ast.Constant(value=int()):
            other.value += 1
        case ast.Constant(value=float()):
            other.value = other.value * 2 if other.value else 1.0
        case _:
            return None
    return other


def _sites(tree: ast.AST, within: str = "") -> Iterator[tuple[ast.expr, str]]:
    """Yield the expressions that can be changed, with the qualified name of their function."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, _WITHOUT_EFFECT):
            continue
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for statement in child.body:
                yield from _sites(ast.Module([statement], []), f"{within}{child.name}.<locals>.")
            continue
        if isinstance(child, ast.ClassDef):
            yield from _sites(child, f"{within}{child.name}.")
            continue
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue  # a docstring
        if isinstance(child, ast.expr) and changed(child) is not None:
            yield child, within.rpartition(".<locals>.")[0]
        yield from _sites(child, within)


def _guards(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield expressions without effect: `frozen=True`, `strict=True`, lines of warnings, seeds, size -1 of a shape."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield from node.decorator_list
        elif isinstance(node, ast.keyword) and node.arg in ("strict", "stacklevel"):
            yield node.value
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("default_rng"):
            yield from node.args
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".reshape"):
            yield from (size for size in node.args if ast.unparse(size) == "-1")


class Source:
    """Source file of which one place at a time is changed."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self._data = path, text.encode()
        self._lines, self._starts = text.splitlines(), [0]
        for line in text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line.encode()))
        tree = ast.parse(text)
        self._beside = {id(node) for part in _guards(tree) for node in ast.walk(part)}
        counts: Counter[str] = Counter()
        self.sites: list[tuple[str, ast.expr, str]] = []  # keys, expressions, and the functions they are in
        for node, function in sorted(_sites(tree), key=lambda site: (site[0].lineno, site[0].col_offset)):
            if id(node) not in self._beside:
                key = self._key(node, function)
                counts[key] += 1  # texts may be repeated in a line, and lines in a function
                self.sites.append((key if counts[key] == 1 else f"{key} | {counts[key]}", node, function))

    def _texts(self, node: ast.expr) -> tuple[str, str, slice]:
        """Return the text of an expression, its replacement and its place in the file."""
        first = self._starts[node.lineno - 1] + node.col_offset
        last = self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        other = changed(node)
        assert other is not None
        return self._data[first:last].decode(), f"({ast.unparse(other)})", slice(first, last)

    def _key(self, node: ast.expr, function: str) -> str:
        before, after, _ = self._texts(node)
        line = self._lines[node.lineno - 1].strip()
        return f"{self.path}: {_single_line(before)} -> {_single_line(after)} | {function} | {line}"

    def changes(self) -> Iterator[Change]:
        """Yield the changes that are valid Python."""
        for key, node, function in self.sites:
            before, after, place = self._texts(node)
            source = (self._data[: place.start] + after.encode() + self._data[place.stop :]).decode()
            with contextlib.suppress(SyntaxError):
                ast.parse(source)
                yield Change(self.path, node.lineno, function, before, after, source, key)


def all_changes_of(path: str, text: str) -> list[Change]:
    """Return all changes of a file, in the order of its lines."""
    return list(Source(path, text).changes())


def select_by_hash(path: str, text: str, count: int) -> list[Change]:
    """Return `count` changes in the order of hashes of their keys, which edits elsewhere in the file do not change."""
    source = Source(path, text)
    source.sites.sort(key=lambda site: hashlib.sha256(site[0].encode()).digest())
    return list(itertools.islice(source.changes(), count))


def handwritten_change(path: str, text: str, before: str, after: str) -> Change:
    """Return a change that is written by hand."""
    if text.count(before) != 1:
        raise ValueError(f"{path} has {before!r} {text.count(before)} times, not once")
    place = text.index(before)
    line = text[:place].count("\n") + 1
    return Change(
        path, line, _function_at(text, line), before, after, text.replace(before, after),
        f"{path}: {_single_line(before)} -> {_single_line(after)}",
    )  # fmt: skip


def _function_at(text: str, line: int) -> str:
    """Return the qualified name of the function that contains a line."""
    name_at_line = ""

    def visit(node: ast.AST, within: str) -> None:
        nonlocal name_at_line
        for child in ast.iter_child_nodes(node):
            inner = within
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                name = f"{within}{child.name}"
                inside = child.lineno <= line <= (child.end_lineno or child.lineno)
                if inside and not isinstance(child, ast.ClassDef):
                    name_at_line = name
                inner = f"{name}." if isinstance(child, ast.ClassDef) else f"{name}.<locals>."
            visit(child, inner)

    visit(ast.parse(text), "")
    return name_at_line
