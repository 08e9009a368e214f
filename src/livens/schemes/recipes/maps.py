"""Schemes that take the state of a model as a whole to the next one, in coordinates and momenta."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import casadi as ca

from livens.expressions.graph.divisions import one_division
from livens.expressions.layout import Layout
from livens.models.hamiltonian.model import Hamiltonian
from livens.models.summed import dynamics
from livens.schemes.base import Scheme
from livens.schemes.step import ErrorEstimate, FlatEquations, StepEquations


@dataclass
class Step:
    """What a scheme says of one step: parts of the state at its end, and equations for its unknowns."""

    new: Mapping[str, Any]  # q, p and what the scheme adds to the state, by name
    rows: Sequence[Any] = ()  # as many as there are unknowns; none if the step is explicit
    supplied: Any = 0.0  # work of forces in this step
    dissipated: Any = 0.0
    error: ErrorEstimate | None = None  # if the scheme estimates its own


class Phase:
    """A Hamiltonian as a scheme sees it: energies and their derivatives, callable anywhere, with the parameters in."""

    def __init__(self, model: Hamiltonian, k: Any) -> None:
        self.model, self.k, self.n = model, k, model.n
        self._functions: dict[str, ca.Function] = {}

    def _call(self, name: str, expression: Any, symbols: Sequence[Any], arguments: Sequence[Any]) -> Any:
        if name not in self._functions:
            made = ca.Function(name, [*symbols, self.model.k], [ca.densify(expression())])
            self._functions[name] = one_division(made)
        return self._functions[name](*arguments, self.k)

    def H(self, q: Any, p: Any, t: Any) -> Any:
        m = self.model
        return self._call("H", lambda: m.H, [m.q, m.p, m.t], [q, p, t])

    def H_q(self, q: Any, p: Any, t: Any) -> Any:
        m = self.model
        return self._call("H_q", lambda: ca.gradient(m.H, m.q), [m.q, m.p, m.t], [q, p, t])

    def H_p(self, q: Any, p: Any, t: Any) -> Any:
        m = self.model
        return self._call("H_p", lambda: m.velocity, [m.q, m.p, m.t], [q, p, t])

    def T(self, p: Any) -> Any:
        m = self.model
        return self._call("T", lambda: m.T, [m.p], [p])

    def T_p(self, p: Any) -> Any:
        m = self.model
        return self._call("T_p", lambda: ca.gradient(m.T, m.p), [m.p], [p])

    def V(self, q: Any, t: Any) -> Any:
        m = self.model
        return self._call("V", lambda: m.V, [m.q, m.t], [q, t])

    def V_q(self, q: Any, t: Any) -> Any:
        m = self.model
        potential: Any = m.V
        return self._call("V_q", lambda: ca.gradient(potential, m.q), [m.q, m.t], [q, t])

    def F(self, q: Any, v: Any, t: Any) -> Any:
        """Forces that have no potential."""
        m = self.model
        return self._call("F", lambda: m.F, [m.q, m.v, m.t], [q, v, t])

    def force(self, q: Any, v: Any, t: Any) -> Any:
        """All forces of a separable Hamiltonian: ``-V' + F``."""
        return self.F(q, v, t) - self.V_q(q, t)

    def work(self, q: Any, p: Any, v: Any, t: Any) -> tuple[Any, Any]:
        """The power that forces and moving potentials supply, and the power that friction takes.

        Only a system says what is friction; of other models everything counts as supplied.
        """
        m = self.model
        friction = ca.SX(0)
        if m.source is not None:
            d = dynamics(m.source)  # a Hamiltonian of a system is written in its symbols
            friction = ca.dot(ca.gradient(d.R, d.v), d.v)
        power = ca.vertcat(ca.dot(m.F, m.v) + ca.gradient(m.H, m.t) + friction, friction)
        both = self._call("work", lambda: power, [m.q, m.p, m.v, m.t], [q, p, v, t])
        return both[0], both[1]

    def any(self, name: str, expression: Any, q: Any, p: Any, t: Any) -> Any:
        """Any expression of the model's symbols; the same name must mean the same expression."""
        m = self.model
        return self._call(name, lambda: expression, [m.q, m.p, m.t], [q, p, t])


class MapScheme(Scheme):
    """A scheme for Hamiltonians, and for Systems that can be written as one (no constraints, a regular mass matrix).

    Subclasses say what `step` does with q, p and what they `add` to the state (such as time ``t`` in schemes with a
    fictive one). Those with something to solve name their `unknowns` and a first `guess` of them.
    """

    group = "Splitting and variational schemes, without constraints"
    forms: tuple[str, ...] = ("phase space",)
    implicit = False
    #: Whether the step needs forces that do not depend on velocities.
    at_rest: bool = False

    def add(self, model: Hamiltonian) -> dict[str, int]:
        """Names and sizes of what the scheme adds to the state."""
        return {}

    def unknowns(self, model: Hamiltonian) -> dict[str, int]:
        """Names and sizes of what has to be solved for."""
        return {}

    def guess(self, phase: Phase, old: Any, h: Any, t: Any) -> Mapping[str, Any]:
        """The unknowns to start Newton's method from."""
        return {}

    def step(self, phase: Phase, old: Any, x: Any, h: Any, t: Any) -> Step:
        """One step of size h from the state `old`, with parts by name, at time t (in fictive time: tau)."""
        raise NotImplementedError

    def explicit(self, model: Any) -> bool:
        """Whether nothing has to be solved for this model."""
        return not self.unknowns(phase_of(model))

    def missing(self, model: Any) -> list[str]:
        if "elements" in model.forms:
            if "phase space" not in model.forms:
                return ["a system without constraints, with a regular mass matrix and an energy quadratic in v"]
            model = phase_of(model)  # which has the black box too, if there is one
        missing = super().missing(model)
        if not missing and self.at_rest and ca.depends_on(model.F, model.v):
            return ["forces that do not depend on velocities"]
        return missing

    def equations(self, model: Any, dropped: Collection[int] = ()) -> StepEquations:
        phase_model = phase_of(model)
        layout = model.layout.with_(**self.add(phase_model))

        errors: list[ErrorEstimate | None] = []

        def write(old: Any, x: Any, h: Any, t: Any, k: Any) -> Written:
            phase = Phase(phase_model, k)
            said = self.step(phase, old, x, h, t)
            errors.append(said.error)
            new = {**vars(old), **said.new}
            new["v"] = phase.H_p(new["q"], new["p"], new["t"] if "t" in layout else t + h)
            new["supplied_energy"] += said.supplied
            new["dissipated_energy"] += said.dissipated
            return new, said.rows, self.guess(phase, old, h, t)

        made = map_equations(layout, Layout(**self.unknowns(phase_model)), model.parameter_count, write)
        return made if errors[0] is None else dataclasses.replace(made, error=errors[0])


#: The state at the end of a step by name, rows, and a guess of the unknowns by name.
Written = tuple[Mapping[str, Any], Sequence[Any], Mapping[str, Any]]


def map_equations(
    layout: Layout, unknowns: Layout, parameter_count: int, write: Callable[[Any, Any, Any, Any, Any], Written]
) -> FlatEquations:
    """A step as the engine takes it. Where nothing is to be solved it has no unknowns and no residual.

    `write` is given the old state and the unknowns, by name, and h, t, k.
    """
    x, z = ca.SX.sym("x", unknowns.size), ca.SX.sym("z", layout.size)
    c = ca.SX.sym("c", 2 + parameter_count)
    new, equations, guess = write(_parts(z, layout), _parts(x, unknowns), c[0], c[1], c[2:])
    residual = ca.densify(ca.vertcat(*equations)) if equations else ca.SX(0, 1)
    return FlatEquations.of(
        x,
        z,
        c,
        residual=residual,
        end=ca.densify(ca.vertcat(*(new[name] for name in layout.sizes))),
        guess=ca.densify(ca.vertcat(*(guess[name] for name in unknowns.sizes))) if unknowns.size else ca.SX(0, 1),
        kinds=tuple(unknowns.sizes.values()),
        layout=layout,
        row_names=tuple(f"equation for {name}[{i}]" for name, size in unknowns.sizes.items() for i in range(size)),
    )


def digits(number: float) -> str:
    """A number as it stands in the name of a scheme: short, and read back as the same.

    >>> digits(0.5), digits(1.0), digits(1 / 3)
    ('0.5', '1', '0.3333333333333333')
    """
    return short if float(short := f"{number:g}") == number else repr(number)


@functools.lru_cache(maxsize=64)
def phase_of(model: Any) -> Hamiltonian:
    """A model in Hamilton's form."""
    return Hamiltonian.of(model) if "elements" in model.forms else model


def _parts(vector: Any, layout: Layout) -> SimpleNamespace:
    # an empty slice of a 1x1 matrix has one row and no column, which would count as a row
    return SimpleNamespace(
        **{name: vector[layout[name]] if size else ca.SX(0, 1) for name, size in layout.sizes.items()}
    )
