"""Systems defined by expressions: parsed, validated and converted to a `livens.System`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError, suggestion
from livens.models.system import System
from livens.scenario.evaluate import evaluate
from livens.scenario.grammar import Node, names, parse
from livens.scenario.quoting import quoted
from livens.scenario.reader import Document, YamlPath
from livens.scenario.schema import SystemFields
from livens.scenario.vocabulary import Vocabulary, velocity
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


_MAX_LABEL = 100


@dataclass(frozen=True)
class _ParsedExpression:
    """Parsed expression with its syntax tree and its location."""

    text: str
    tree: Node
    path: YamlPath


class ExpressionSystem:
    """Validated expressions of a system."""

    def __init__(self, fields: SystemFields, initial: Mapping[str, str], document: Document) -> None:
        self._document = document
        self._vocabulary = Vocabulary()
        self._lets: dict[str, _ParsedExpression] = {}
        self.coordinates = tuple(fields.coordinates)
        self._declare_coordinates()
        self.parameters = self._parse_parameters(fields.parameters)
        self._declare_lets(fields.let)
        self._roles: dict[str, list[_ParsedExpression]] = {
            role: [self._parse(text, role, ("system", role))] if text is not None else []
            for role, text in (
                ("kinetic", fields.kinetic),
                ("potential", fields.potential),
                ("dissipation", fields.dissipation),
            )
        }
        self.constraint_names: list[str] | None = None
        self._roles["constraints"] = self._constraints(fields.constraints)
        self._roles["forces"] = self._forces(fields.forces)
        self._check_evaluates()
        self.q0, self.v0 = self._parse_initial_values(initial)

    @contextmanager
    def _located_errors(self, path: YamlPath) -> Iterator[None]:
        """Add the location in the file to all errors raised inside."""
        try:
            yield
        except InputError as error:
            raise self._document.error(path, error) from None

    # -- parsing ------------------------------------------------------------------------------------------------------
    def _parse(self, text: str, role: str, path: YamlPath) -> _ParsedExpression:
        with self._located_errors(path):
            tree = parse(text)
            self._vocabulary.check(tree, role, text)
            return _ParsedExpression(text, tree, path)

    def _declare_coordinates(self) -> None:
        with self._located_errors(("system", "coordinates")):
            if not self.coordinates:
                raise InputError("a system needs at least one coordinate")
            self._vocabulary.add_coordinates(self.coordinates)

    def _parse_parameters(self, parameters: Mapping[str, str]) -> dict[str, float]:
        """Evaluate the parameters; expressions may use parameters defined above."""
        values: dict[str, float] = {}
        self._vocabulary.defined_later = set(parameters)
        for name, text in parameters.items():
            parsed = self._parse(text, "parameters", ("system", "parameters", name))
            with self._located_errors(parsed.path):
                values[name] = float(evaluate(parsed.tree, values, text))
                self._vocabulary.add(name, "parameter")
        return values

    def _declare_lets(self, lets: Mapping[str, str]) -> None:
        self._vocabulary.defined_later = set(lets)
        for name, text in lets.items():
            parsed = self._parse(text, "let", ("system", "let", name))
            with self._located_errors(parsed.path):
                self._vocabulary.add_let(name, parsed.tree)
            self._lets[name] = parsed

    def _constraints(self, definitions: Mapping[str, str] | list[str]) -> list[_ParsedExpression]:
        path: YamlPath = ("system", "constraints")
        if isinstance(definitions, list):
            return [self._parse(text, "constraints", (*path, i)) for i, text in enumerate(definitions)]
        for name in definitions:
            if not name.isprintable() or len(name) > _MAX_LABEL:
                reason = f"the name of a constraint must be at most {_MAX_LABEL} printable characters"
                raise self._document.error((*path, name), reason)
        self.constraint_names = list(definitions) or None
        return [self._parse(text, "constraints", (*path, name)) for name, text in definitions.items()]

    def _forces(self, definitions: Mapping[str, str] | list[str]) -> list[_ParsedExpression]:
        """Parse the forces: one expression per coordinate, or none."""
        path: YamlPath = ("system", "forces")
        if isinstance(definitions, list):
            if len(definitions) not in (0, len(self.coordinates)):
                expected = f"{len(self.coordinates)} expressions, one for every coordinate"
                raise self._document.error(path, f"must be {expected}, got {len(definitions)}")
            return [self._parse(text, "forces", (*path, i)) for i, text in enumerate(definitions)]
        for name in definitions:
            if name not in self.coordinates:
                reason = f"unknown coordinate '{quoted(name)}'{suggestion(name[:60], self.coordinates)}"
                raise self._document.error((*path, name), reason)
        if not definitions:
            return []
        return [self._parse(definitions.get(name, "0"), "forces", (*path, name)) for name in self.coordinates]

    def _parse_initial_values(self, initial: Mapping[str, str]) -> tuple[np.ndarray, np.ndarray]:
        velocities = [velocity(name) for name in self.coordinates]
        values: dict[str, float] = {}
        for name, text in initial.items():
            if name not in self.coordinates and name not in velocities:
                known = [*self.coordinates, *velocities]
                reason = f"unknown name '{quoted(name)}'{suggestion(name[:60], known)}"
                raise self._document.error(("initial", name), reason)
            parsed = self._parse(text, "initial", ("initial", name))
            with self._located_errors(parsed.path):
                values[name] = float(evaluate(parsed.tree, self.parameters, text))
        for name in self.coordinates:
            if name not in values:
                raise self._document.error(("initial",), f"the value of the coordinate '{name}' is missing")
        q0, v0 = [values[name] for name in self.coordinates], [values.get(name, 0.0) for name in velocities]
        return np.array(q0), np.array(v0)

    # -- values -------------------------------------------------------------------------------------------------------
    def _check_evaluates(self) -> None:
        """Evaluate all expressions once, to report errors such as 1/0 or 2**5000 with their lines."""
        n = len(self.coordinates)
        q, v, t = m.from_casadi(ca.SX.sym("q", n)), m.from_casadi(ca.SX.sym("v", n)), m.Scalar(ca.SX.sym("t"))
        k = {name: m.Scalar(ca.SX.sym(name)) for name in self.parameters}
        values = self._environment(q, v, t, k)
        self._add_lets(values, self._lets)
        for expressions in self._roles.values():
            for parsed in expressions:
                with self._located_errors(parsed.path):
                    evaluate(parsed.tree, values, parsed.text)

    def _environment(
        self, q: Vector, v: Vector | None, t: ScalarLike | None, k: Mapping[str, ScalarLike]
    ) -> dict[str, ScalarLike]:
        values: dict[str, Any] = dict(k)
        for i, name in enumerate(self.coordinates):
            values[name] = q[i]
            if v is not None:
                values[velocity(name)] = v[i]
        if t is not None:
            values["t"] = t
        return values

    def _add_lets(self, values: dict[str, Any], lets: Mapping[str, _ParsedExpression]) -> None:
        for name, parsed in lets.items():
            with self._located_errors(parsed.path):
                values[name] = evaluate(parsed.tree, values, parsed.text)

    def _lets_for(self, expressions: list[_ParsedExpression]) -> dict[str, _ParsedExpression]:
        """Return the named expressions that some expressions need, in order of definition."""
        needed: set[str] = {name.name for parsed in expressions for name in names(parsed.tree)}
        for name, parsed in reversed(self._lets.items()):
            if name in needed:
                needed |= {inner.name for inner in names(parsed.tree)}
        return {name: parsed for name, parsed in self._lets.items() if name in needed}

    def _values(
        self, role: str, q: Vector, v: Vector | None, t: ScalarLike | None, k: ParameterNamespace
    ) -> list[ScalarLike]:
        expressions = self._roles[role]
        values = self._environment(q, v, t, vars(k))
        self._add_lets(values, self._lets_for(expressions))
        return [evaluate(parsed.tree, values, parsed.text) for parsed in expressions]

    def system(self) -> System:
        """Return the system defined by the expressions."""
        functions: dict[str, Any] = {
            "kinetic": lambda q, v, k: self._values("kinetic", q, v, None, k)[0],
            "potential": lambda q, t, k: self._values("potential", q, None, t, k)[0],
            "constraints": lambda q, t, k: self._values("constraints", q, None, t, k),
            "dissipation": lambda q, v, t, k: self._values("dissipation", q, v, t, k)[0],
            "forces": lambda q, v, t, k: self._values("forces", q, v, t, k),
        }
        defined = {role: function for role, function in functions.items() if self._roles[role]}
        with self._located_errors(("system",)):
            return System(
                self.coordinates, parameters=self.parameters, constraint_names=self.constraint_names, **defined
            )
