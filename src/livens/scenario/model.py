"""Systems defined by expressions: parsed, validated and converted to a `livens.System`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError, suggestion
from livens.models.system import System
from livens.scenario.evaluate import evaluate
from livens.scenario.grammar import Node, names, parse
from livens.scenario.reader import Document, Place
from livens.scenario.schema import SystemFields
from livens.scenario.show import shown
from livens.scenario.vocabulary import Vocabulary, velocity

_MAX_LABEL = 100


@dataclass(frozen=True)
class _Read:
    """Parsed expression with its syntax tree and its location."""

    text: str
    tree: Node
    place: Place


class Model:
    """Validated expressions of a system."""

    def __init__(self, fields: SystemFields, start: Mapping[str, str], document: Document) -> None:
        self._document = document
        self._vocabulary = Vocabulary()
        self._lets: dict[str, _Read] = {}
        self.coordinates = tuple(fields.coordinates)
        self._declare_coordinates()
        self.parameters = self._numbers(fields.parameters)
        self._declare_lets(fields.let)
        self._roles: dict[str, list[_Read]] = {
            role: [self._read(text, role, ("system", role))] if text is not None else []
            for role, text in (
                ("kinetic", fields.kinetic),
                ("potential", fields.potential),
                ("dissipation", fields.dissipation),
            )
        }
        self.constraint_names: list[str] | None = None
        self._roles["constraints"] = self._constraints(fields.constraints)
        self._roles["forces"] = self._forces(fields.forces)
        self._try()
        self.q0, self.v0 = self._start(start)

    @contextmanager
    def _at(self, place: Place) -> Iterator[None]:
        """Add the location in the file to all errors raised inside."""
        try:
            yield
        except InputError as error:
            raise self._document.error(place, error) from None

    # -- parsing ------------------------------------------------------------------------------------------------------
    def _read(self, text: str, role: str, place: Place) -> _Read:
        with self._at(place):
            tree = parse(text)
            self._vocabulary.check(tree, role, text)
            return _Read(text, tree, place)

    def _declare_coordinates(self) -> None:
        with self._at(("system", "coordinates")):
            if not self.coordinates:
                raise InputError("a system needs at least one coordinate")
            self._vocabulary.add_coordinates(self.coordinates)

    def _numbers(self, parameters: Mapping[str, str]) -> dict[str, float]:
        """Evaluate the parameters; expressions may use parameters defined above."""
        values: dict[str, float] = {}
        self._vocabulary.below = set(parameters)
        for name, text in parameters.items():
            read = self._read(text, "parameters", ("system", "parameters", name))
            with self._at(read.place):
                values[name] = float(evaluate(read.tree, values, text))
                self._vocabulary.add(name, "parameter")
        return values

    def _declare_lets(self, lets: Mapping[str, str]) -> None:
        self._vocabulary.below = set(lets)
        for name, text in lets.items():
            read = self._read(text, "let", ("system", "let", name))
            with self._at(read.place):
                self._vocabulary.add_let(name, read.tree)
            self._lets[name] = read

    def _constraints(self, given: Mapping[str, str] | list[str]) -> list[_Read]:
        place: Place = ("system", "constraints")
        if isinstance(given, list):
            return [self._read(text, "constraints", (*place, i)) for i, text in enumerate(given)]
        for name in given:
            if not name.isprintable() or len(name) > _MAX_LABEL:
                reason = f"the name of a constraint must be at most {_MAX_LABEL} printable characters"
                raise self._document.error((*place, name), reason)
        self.constraint_names = list(given) or None
        return [self._read(text, "constraints", (*place, name)) for name, text in given.items()]

    def _forces(self, given: Mapping[str, str] | list[str]) -> list[_Read]:
        """Parse the forces: one expression per coordinate, or none."""
        place: Place = ("system", "forces")
        if isinstance(given, list):
            if len(given) not in (0, len(self.coordinates)):
                wanted = f"{len(self.coordinates)} expressions, one for every coordinate"
                raise self._document.error(place, f"must be {wanted}, got {len(given)}")
            return [self._read(text, "forces", (*place, i)) for i, text in enumerate(given)]
        for name in given:
            if name not in self.coordinates:
                reason = f"unknown coordinate '{shown(name)}'{suggestion(name[:60], self.coordinates)}"
                raise self._document.error((*place, name), reason)
        if not given:
            return []
        return [self._read(given.get(name, "0"), "forces", (*place, name)) for name in self.coordinates]

    def _start(self, start: Mapping[str, str]) -> tuple[np.ndarray, np.ndarray]:
        velocities = [velocity(name) for name in self.coordinates]
        values: dict[str, float] = {}
        for name, text in start.items():
            if name not in self.coordinates and name not in velocities:
                known = [*self.coordinates, *velocities]
                reason = f"unknown name '{shown(name)}'{suggestion(name[:60], known)}"
                raise self._document.error(("start", name), reason)
            read = self._read(text, "start", ("start", name))
            with self._at(read.place):
                values[name] = float(evaluate(read.tree, self.parameters, text))
        for name in self.coordinates:
            if name not in values:
                raise self._document.error(("start",), f"the value of the coordinate '{name}' is missing")
        q0, v0 = [values[name] for name in self.coordinates], [values.get(name, 0.0) for name in velocities]
        return np.array(q0), np.array(v0)

    # -- values -------------------------------------------------------------------------------------------------------
    def _try(self) -> None:
        """Evaluate all expressions once, to report errors such as 1/0 or 2**5000 with their lines."""
        n = len(self.coordinates)
        q, v, t = m.symbols(ca.SX.sym("q", n)), m.symbols(ca.SX.sym("v", n)), m.Scalar(ca.SX.sym("t"))
        k = {name: m.Scalar(ca.SX.sym(name)) for name in self.parameters}
        values = self._environment(q, v, t, k)
        self._add_lets(values, self._lets)
        for reads in self._roles.values():
            for read in reads:
                with self._at(read.place):
                    evaluate(read.tree, values, read.text)

    def _environment(self, q: Any, v: Any, t: Any, k: Mapping[str, Any]) -> dict[str, Any]:
        values: dict[str, Any] = dict(k)
        for i, name in enumerate(self.coordinates):
            values[name] = q[i]
            if v is not None:
                values[velocity(name)] = v[i]
        if t is not None:
            values["t"] = t
        return values

    def _add_lets(self, values: dict[str, Any], wanted: Mapping[str, _Read]) -> None:
        for name, read in wanted.items():
            with self._at(read.place):
                values[name] = evaluate(read.tree, values, read.text)

    def _lets_for(self, reads: list[_Read]) -> dict[str, _Read]:
        """Return the named expressions that some expressions need, in order of definition."""
        needed: set[str] = {name.name for read in reads for name in names(read.tree)}
        for name, read in reversed(self._lets.items()):
            if name in needed:
                needed |= {inner.name for inner in names(read.tree)}
        return {name: read for name, read in self._lets.items() if name in needed}

    def _values(self, role: str, q: Any, v: Any, t: Any, k: Any) -> list[Any]:
        reads = self._roles[role]
        values = self._environment(q, v, t, vars(k))
        self._add_lets(values, self._lets_for(reads))
        return [evaluate(read.tree, values, read.text) for read in reads]

    def system(self) -> System:
        """Return the system defined by the expressions."""
        functions: dict[str, Any] = {
            "kinetic": lambda q, v, k: self._values("kinetic", q, v, None, k)[0],
            "potential": lambda q, t, k: self._values("potential", q, None, t, k)[0],
            "constraints": lambda q, t, k: self._values("constraints", q, None, t, k),
            "dissipation": lambda q, v, t, k: self._values("dissipation", q, v, t, k)[0],
            "forces": lambda q, v, t, k: self._values("forces", q, v, t, k),
        }
        given = {role: function for role, function in functions.items() if self._roles[role]}
        with self._at(("system",)):
            return System(self.coordinates, parameters=self.parameters, constraint_names=self.constraint_names, **given)
