"""Symbol table of the expressions of a system: names, their types and where they are allowed."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from livens.errors import InputError, suggestion
from livens.scenario.evaluate import CONSTANTS
from livens.scenario.grammar import FUNCTIONS, Node, names
from livens.scenario.show import listed, shown
from livens.scenario.tokens import MAX_NAME, ExpressionError

MAX_NAMES = 1000

#: Name types that an expression may use, by field; as for the model functions of `livens.System`.
ALLOWED: dict[str, tuple[str, ...]] = {
    "kinetic": ("coordinate", "velocity", "parameter"),
    "potential": ("coordinate", "time", "parameter"),
    "constraints": ("coordinate", "time", "parameter"),
    "dissipation": ("coordinate", "velocity", "time", "parameter"),
    "forces": ("coordinate", "velocity", "time", "parameter"),
    "let": ("coordinate", "velocity", "time", "parameter"),
    "parameters": ("parameter",),
    "start": ("parameter",),
}
_PLURAL = {"coordinate": "coordinates", "velocity": "velocities", "time": "the time t", "parameter": "parameters"}


def velocity(coordinate: str) -> str:
    """Return the name of the velocity of a coordinate."""
    return f"v_{coordinate}"


def check_name(name: str, what: str, taken: Mapping[str, str]) -> None:
    """Raise an error for names that are invalid in expressions or already defined."""
    if not name.isidentifier() or name.startswith("_") or keyword.iskeyword(name):
        raise InputError(f"'{shown(name)}' cannot be the name of a {what}: use letters, digits and _, a letter first")
    if len(name) > MAX_NAME:
        raise InputError(f"the name of a {what} may have at most {MAX_NAME} characters")
    if name in FUNCTIONS:
        raise InputError(f"'{name}' cannot be the name of a {what}: it is a function")
    if name in CONSTANTS or name == "t":
        meaning = {"t": "the time", "pi": "3.14159...", "e": "Euler's number 2.71828..."}[name]
        raise InputError(f"'{name}' cannot be the name of a {what}: it is {meaning}")
    if name in taken:
        raise InputError(f"'{name}' cannot be the name of a {what}: it is a {taken[name]} already")
    if len(taken) >= MAX_NAMES:
        raise InputError(f"a scenario may have at most {MAX_NAMES} names")


@dataclass(frozen=True)
class Use:
    """Name type that a named expression depends on, with one name of this type."""

    kind: str
    name: str


class Vocabulary:
    """Names with their types, and named expressions (`let`) with their dependencies."""

    def __init__(self) -> None:
        self.kinds: dict[str, str] = {}
        self.uses: dict[str, dict[str, Use]] = {}
        self.below: set[str] = set()  # names defined further down in the file

    def add(self, name: str, kind: str) -> None:
        check_name(name, kind, self.kinds)
        self.kinds[name] = kind
        self.below.discard(name)

    def add_coordinates(self, coordinates: Iterable[str]) -> None:
        for name in coordinates:
            self.add(name, "coordinate")
        for name in coordinates:
            self.add(velocity(name), "velocity")

    def add_let(self, name: str, tree: Node) -> None:
        self.add(name, "named expression")
        self.uses[name] = self._used(tree)

    def _used(self, tree: Node) -> dict[str, Use]:
        found: dict[str, Use] = {}
        for node in names(tree):
            for use in self._uses_of(node.name).values():
                found.setdefault(use.kind, use)
        return found

    def _uses_of(self, name: str) -> dict[str, Use]:
        if name in CONSTANTS:
            return {}
        if name in self.uses:
            return self.uses[name]
        kind = "time" if name == "t" else self.kinds[name]
        return {kind: Use(kind, name)}

    def check(self, tree: Node, role: str, text: str) -> None:
        """Raise an error for unknown names, and for names that are not allowed in this field."""
        allowed = ALLOWED[role]
        for node in names(tree):
            if node.name not in self.kinds and node.name not in CONSTANTS and node.name != "t":
                if node.name in self.below:
                    reason = (
                        f"'{node.name}' is not defined yet: an expression may use names defined above it only"
                    )
                    raise ExpressionError(reason, text, node.column)
                reason = f"unknown name '{node.name}'{suggestion(node.name, self._known(allowed))}"
                raise ExpressionError(reason, text, node.column)
            for use in self._uses_of(node.name).values():
                if use.kind not in allowed:
                    via = "" if use.name == node.name else f" (through '{node.name}')"
                    word = "the time t" if use.kind == "time" else f"the {use.kind} '{use.name}'"
                    may = listed([_PLURAL[kind] for kind in allowed])
                    raise ExpressionError(f"{role} cannot use {word}{via}; it may use {may}", text, node.column)

    def _known(self, allowed: tuple[str, ...]) -> list[str]:
        fitting = [n for n in self.kinds if all(use.kind in allowed for use in self._uses_of(n).values())]
        return [*fitting, *CONSTANTS, *(["t"] if "time" in allowed else [])]
