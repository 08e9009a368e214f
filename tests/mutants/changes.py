"""Changes of a source: an operator, a comparison, a number, a condition; and where they can be made."""

from __future__ import annotations

import ast
import copy
import itertools
import random
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
    """Text of a file that is replaced once; `line` is where, and `source` the whole file afterwards."""

    path: str
    line: int
    before: str
    after: str
    source: str

    @property
    def name(self) -> str:
        return f"{self.path}:{self.line}: {' '.join(self.before.split())} -> {' '.join(self.after.split())}"


def changed(node: ast.AST) -> ast.AST | None:
    """The same expression, wrong."""
    other = copy.deepcopy(node)
    match other:
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


def _sites(tree: ast.AST) -> Iterator[ast.expr]:
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, _NOT_THERE):
            continue
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for statement in child.body:
                yield from _sites(ast.Module([statement], []))
            continue
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant):
            continue  # a docstring
        if isinstance(child, ast.expr) and changed(child) is not None:
            yield child
        yield from _sites(child)


class Source:
    """A file of which one place at a time can be changed."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self._data = path, text.encode()
        self._starts = [0]
        for line in text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line.encode()))
        tree = ast.parse(text)
        self.sites = list(_sites(tree))
        # options of a dataclass, such as frozen=True, keep programmers from mistakes, and no run depends on them
        classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        self._beside = {id(node) for one in classes for part in one.decorator_list for node in ast.walk(part)}

    def change(self, node: ast.expr) -> Change | None:
        """The change at a site; none if no program is left, or nothing that a test can notice."""
        if id(node) in self._beside:
            return None
        first = self._starts[node.lineno - 1] + node.col_offset
        last = self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        other = changed(node)
        assert other is not None
        after = f"({ast.unparse(other)})"
        source = (self._data[:first] + after.encode() + self._data[last:]).decode()
        try:
            ast.parse(source)
        except SyntaxError:
            return None
        return Change(self.path, node.lineno, self._data[first:last].decode(), after, source)


def possible(path: str, text: str) -> list[Change]:
    """All changes of a file, in the order of its lines."""
    source = Source(path, text)
    found = [change for node in source.sites if (change := source.change(node)) is not None]
    return sorted(found, key=lambda change: (change.line, change.before))


def chosen(path: str, text: str, count: int) -> list[Change]:
    """Some of them, the same in every run as long as the file is."""
    source = Source(path, text)
    sites = random.Random(path).sample(source.sites, len(source.sites))
    made = (change for node in sites if (change := source.change(node)) is not None)
    return list(itertools.islice(made, count))


def written(path: str, text: str, before: str, after: str) -> Change:
    """A change that somebody thought of."""
    if text.count(before) != 1:
        raise ValueError(f"{path} has {before!r} {text.count(before)} times, not once")
    line = text[: text.index(before)].count("\n") + 1
    return Change(path, line, before, after, text.replace(before, after))
