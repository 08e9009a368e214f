"""Changes of a source: an operator, a comparison, a number, a condition; and where they can be made."""

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
#: What is only said, or only for readers and type checkers, cannot be proved by a test.
_NOT_THERE = (ast.Raise, ast.Assert, ast.JoinedStr, ast.AnnAssign, ast.Import, ast.ImportFrom)


@dataclass(frozen=True)
class Change:
    """Text of a file that is replaced once; `source` is the whole file afterwards.

    `line` and `function` say where, `key` the same without the number of the line, which moves: it is what the change
    is remembered by.
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
        return f"{self.path}:{self.line}: {_words(self.before)} -> {_words(self.after)}"


def _words(text: str) -> str:
    return " ".join(text.split())


def changed(node: ast.AST) -> ast.AST | None:
    """The same expression, wrong; its parts are those of the right one."""
    other = copy.copy(node)
    match other:
        case ast.BinOp(left=ast.Constant(value=0), op=ast.Mult()):
            return None  # zeros of the kind of something, and divided by it they are the same
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
    """Expressions that can be changed, with the function they are in, as Python calls it."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, _NOT_THERE):
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
    """What keeps programmers from mistakes, such as `frozen=True` and `strict=True`, and where any number will do.

    That is so for seeds, and for the size of a shape that follows from the others: to NumPy it is any negative number.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield from node.decorator_list
        elif isinstance(node, ast.keyword) and node.arg == "strict":
            yield node.value
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("default_rng"):
            yield from node.args
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".reshape"):
            yield from (size for size in node.args if ast.unparse(size) == "-1")


class Source:
    """A file of which one place at a time can be changed."""

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
                counts[key] += 1  # the same text may be again in a line, and the same line in a function
                self.sites.append((key if counts[key] == 1 else f"{key} | {counts[key]}", node, function))

    def _texts(self, node: ast.expr) -> tuple[str, str, slice]:
        """What is there, what is put there instead, and where that is."""
        first = self._starts[node.lineno - 1] + node.col_offset
        last = self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        other = changed(node)
        assert other is not None
        return self._data[first:last].decode(), f"({ast.unparse(other)})", slice(first, last)

    def _key(self, node: ast.expr, function: str) -> str:
        before, after, _ = self._texts(node)
        line = self._lines[node.lineno - 1].strip()
        return f"{self.path}: {_words(before)} -> {_words(after)} | {function} | {line}"

    def changes(self) -> Iterator[Change]:
        """Those of which a program is left."""
        for key, node, function in self.sites:
            before, after, place = self._texts(node)
            source = (self._data[: place.start] + after.encode() + self._data[place.stop :]).decode()
            with contextlib.suppress(SyntaxError):
                ast.parse(source)
                yield Change(self.path, node.lineno, function, before, after, source, key)


def possible(path: str, text: str) -> list[Change]:
    """All changes of a file, in the order of its lines."""
    return list(Source(path, text).changes())


def chosen(path: str, text: str, count: int) -> list[Change]:
    """Some of them, drawn by what they change: where the file is changed elsewhere, they stay the same."""
    source = Source(path, text)
    source.sites.sort(key=lambda site: hashlib.sha256(site[0].encode()).digest())
    return list(itertools.islice(source.changes(), count))


def written(path: str, text: str, before: str, after: str) -> Change:
    """A change that somebody thought of."""
    if text.count(before) != 1:
        raise ValueError(f"{path} has {before!r} {text.count(before)} times, not once")
    place = text.index(before)
    line = text[:place].count("\n") + 1
    return Change(
        path, line, _function_at(text, line), before, after, text.replace(before, after),
        f"{path}: {_words(before)} -> {_words(after)}",
    )  # fmt: skip


def _function_at(text: str, line: int) -> str:
    """The function that a line is in, as Python calls it."""
    found = ""

    def look(node: ast.AST, within: str) -> None:
        nonlocal found
        for child in ast.iter_child_nodes(node):
            inner = within
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                name = f"{within}{child.name}"
                inside = child.lineno <= line <= (child.end_lineno or child.lineno)
                if inside and not isinstance(child, ast.ClassDef):
                    found = name
                inner = f"{name}." if isinstance(child, ast.ClassDef) else f"{name}.<locals>."
            look(child, inner)

    look(ast.parse(text), "")
    return found
