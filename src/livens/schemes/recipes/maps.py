"""One-step maps in coordinates and momenta (phase space)."""

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
    """Result of a one-step map: parts of the final state, and the residual of the unknowns."""

    new: Mapping[str, Any]  # q, p and the additional state of the scheme, by name
    rows: Sequence[Any] = ()  # one entry per unknown; empty if the step is explicit
    supplied: Any = 0.0  # work of applied forces in this step
    dissipated: Any = 0.0  # dissipated energy in this step
    error: ErrorEstimate | None = None


class Phase:
    """Energies, forces and derivatives of a Hamiltonian as functions of symbols, with bound parameters."""

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
        """Return the non-conservative forces."""
        m = self.model
        return self._call("F", lambda: m.F, [m.q, m.v, m.t], [q, v, t])

    def force(self, q: Any, v: Any, t: Any) -> Any:
        """Return the total force of a separable Hamiltonian: ``-V' + F``."""
        return self.F(q, v, t) - self.V_q(q, t)

    def work(self, q: Any, p: Any, v: Any, t: Any) -> tuple[Any, Any]:
        """Return the power supplied by forces and explicitly time-dependent potentials, and the dissipated power.

        Only a System distinguishes friction; for other models the total power counts as supplied.
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
        """Evaluate an expression of the symbols of the model; a name must be used for one expression only."""
        m = self.model
        return self._call(name, lambda: expression, [m.q, m.p, m.t], [q, p, t])


class MapScheme(Scheme):
    """One-step map for Hamiltonians, and for Systems without constraints and with a regular mass matrix.

    Subclasses implement `step` for q, p and the `extra_state` of the scheme (such as time ``t`` in time-transformed
    schemes). Implicit schemes declare their `unknowns` and an `initial_guess`.
    """

    group = "Splitting and variational schemes, without constraints"
    forms: tuple[str, ...] = ("phase space",)
    implicit = False
    #: The step requires forces that do not depend on velocities.
    at_rest: bool = False

    def add(self, model: Hamiltonian) -> dict[str, int]:
        """Return names and sizes of the additional state of the scheme."""
        return {}

    def unknowns(self, model: Hamiltonian) -> dict[str, int]:
        """Return names and sizes of the unknowns."""
        return {}

    def guess(self, phase: Phase, old: Any, h: Any, t: Any) -> Mapping[str, Any]:
        """Return the initial guess of Newton's method."""
        return {}

    def step(self, phase: Phase, old: Any, x: Any, h: Any, t: Any) -> Step:
        """Return one step of size h from the state `old` (parts by name) at time t (in fictive time: tau)."""
        raise NotImplementedError

    def explicit(self, model: Any) -> bool:
        """Return True if the step is explicit for this model."""
        return not self.unknowns(phase_of(model))

    def missing(self, model: Any) -> list[str]:
        if "elements" in model.forms:
            if "phase space" not in model.forms:
                return ["a system without constraints, with a regular mass matrix and an energy quadratic in v"]
            model = phase_of(model)  # keeps the external force
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


#: Final state by name, residual, and initial guess of the unknowns by name.
Written = tuple[Mapping[str, Any], Sequence[Any], Mapping[str, Any]]


def map_equations(
    layout: Layout, unknowns: Layout, parameter_count: int, write: Callable[[Any, Any, Any, Any, Any], Written]
) -> FlatEquations:
    """Build the step graph of a one-step map; an explicit map has no unknowns and no residual.

    `build_step` has the arguments old state and unknowns (by name), h, t, k.
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
    """Return the shortest text of a number for the name of a scheme that parses to the same number.

    >>> digits(0.5), digits(1.0), digits(1 / 3)
    ('0.5', '1', '0.3333333333333333')
    """
    return short if float(short := f"{number:g}") == number else repr(number)


@functools.lru_cache(maxsize=64)
def phase_of(model: Any) -> Hamiltonian:
    """Return the model in Hamiltonian form."""
    return Hamiltonian.of(model) if "elements" in model.forms else model


def _parts(vector: Any, layout: Layout) -> SimpleNamespace:
    # an empty slice of a 1x1 SX has shape (1, 0) and would count as a row
    return SimpleNamespace(
        **{name: vector[layout[name]] if size else ca.SX(0, 1) for name, size in layout.sizes.items()}
    )
