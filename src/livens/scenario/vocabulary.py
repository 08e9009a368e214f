"""Symbol table of the expressions of a system: names, their types and where they are allowed."""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from livens.errors import InputError, suggestion
from livens.scenario.evaluate import CONSTANTS
from livens.scenario.grammar import FUNCTIONS, Node, names
from livens.scenario.quoting import join_names, quoted
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
    "initial": ("parameter",),
}
_PLURAL = {"coordinate": "coordinates", "velocity": "velocities", "time": "the time t", "parameter": "parameters"}


def velocity(coordinate: str) -> str:
    """Return the name of the velocity of a coordinate."""
    return f"v_{coordinate}"


def check_name(name: str, name_type: str, taken: Mapping[str, str]) -> None:
    """Raise an error for names that are invalid in expressions or already defined."""
    if not name.isidentifier() or name.startswith("_") or keyword.iskeyword(name):
        raise InputError(
            f"'{quoted(name)}' cannot be the name of a {name_type}: use letters, digits and _, a letter first"
        )
    if len(name) > MAX_NAME:
        raise InputError(f"the name of a {name_type} may have at most {MAX_NAME} characters")
    if name in FUNCTIONS:
        raise InputError(f"'{name}' cannot be the name of a {name_type}: it is a function")
    if name in CONSTANTS or name == "t":
        meaning = {"t": "the time", "pi": "3.14159...", "e": "Euler's number 2.71828..."}[name]
        raise InputError(f"'{name}' cannot be the name of a {name_type}: it is {meaning}")
    if name in taken:
        raise InputError(f"'{name}' cannot be the name of a {name_type}: it is a {taken[name]} already")
    if len(taken) >= MAX_NAMES:
        raise InputError(f"a scenario may have at most {MAX_NAMES} names")


@dataclass(frozen=True)
class Use:
    """Name type that a named expression depends on, with one name of this type."""

    name_type: str
    name: str


class Vocabulary:
    """Names with their types, and named expressions (`let`) with their dependencies."""

    def __init__(self) -> None:
        self.name_types: dict[str, str] = {}
        self.uses: dict[str, dict[str, Use]] = {}
        self.defined_later: set[str] = set()  # names defined further down in the file

    def add(self, name: str, name_type: str) -> None:
        check_name(name, name_type, self.name_types)
        self.name_types[name] = name_type
        self.defined_later.discard(name)

    def add_coordinates(self, coordinates: Iterable[str]) -> None:
        for name in coordinates:
            self.add(name, "coordinate")
        for name in coordinates:
            self.add(velocity(name), "velocity")

    def add_let(self, name: str, tree: Node) -> None:
        self.add(name, "named expression")
        self.uses[name] = self._dependencies(tree)

    def _dependencies(self, tree: Node) -> dict[str, Use]:
        uses: dict[str, Use] = {}
        for node in names(tree):
            for use in self._uses_of(node.name).values():
                uses.setdefault(use.name_type, use)
        return uses

    def _uses_of(self, name: str) -> dict[str, Use]:
        if name in CONSTANTS:
            return {}
        if name in self.uses:
            return self.uses[name]
        name_type = "time" if name == "t" else self.name_types[name]
        return {name_type: Use(name_type, name)}

    def check(self, tree: Node, role: str, text: str) -> None:
        """Raise an error for unknown names, and for names that are not allowed in this field."""
        allowed = ALLOWED[role]
        for node in names(tree):
            if node.name not in self.name_types and node.name not in CONSTANTS and node.name != "t":
                if node.name in self.defined_later:
                    reason = f"'{node.name}' is not defined yet: an expression may use names defined above it only"
                    raise ExpressionError(reason, text, node.column)
                reason = f"unknown name '{node.name}'{suggestion(node.name, self._allowed_names(allowed))}"
                raise ExpressionError(reason, text, node.column)
            for use in self._uses_of(node.name).values():
                if use.name_type not in allowed:
                    via = "" if use.name == node.name else f" (through '{node.name}')"
                    description = "the time t" if use.name_type == "time" else f"the {use.name_type} '{use.name}'"
                    allowed_text = join_names([_PLURAL[name_type] for name_type in allowed])
                    raise ExpressionError(
                        f"{role} cannot use {description}{via}; it may use {allowed_text}", text, node.column
                    )

    def _allowed_names(self, allowed: tuple[str, ...]) -> list[str]:
        fitting = [n for n in self.name_types if all(use.name_type in allowed for use in self._uses_of(n).values())]
        return [*fitting, *CONSTANTS, *(["t"] if "time" in allowed else [])]
