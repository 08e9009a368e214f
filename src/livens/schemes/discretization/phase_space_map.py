"""One-step maps in coordinates and momenta (phase space)."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import casadi as ca

from livens.expressions.graph.merge_divisions import merge_divisions
from livens.expressions.state_layout import Layout
from livens.models.equations_of_motion import equations_of_motion
from livens.models.hamiltonian.model import Hamiltonian
from livens.schemes.core.scheme import Scheme
from livens.schemes.core.step_equations import ErrorEstimate, StepEquations, StepGraph
from livens.types import Expr, FloatArray, ModelFunction

if TYPE_CHECKING:
    from livens.models.system import System


@dataclass
class MapResult:
    """Result of a one-step map: parts of the final state, and the residual of the unknowns."""

    state: Mapping[str, Any]  # q, p and the additional state of the scheme, by name
    residual: Sequence[Any] = ()  # one entry per unknown; empty if the step is explicit
    supplied: Any = 0.0  # work of applied forces in this step
    dissipated: Any = 0.0  # dissipated energy in this step
    error_estimate: ErrorEstimate | None = None


class HamiltonianFunctions:
    """Energies, forces and derivatives of a Hamiltonian as functions of symbols, with bound parameters."""

    def __init__(self, model: Hamiltonian, k: Expr | FloatArray | ca.DM) -> None:
        self.model, self.k, self.n = model, k, model.n
        self._functions: dict[str, ca.Function] = {}

    def _call(self, name: str, expression: ModelFunction, symbols: Sequence[Expr], arguments: Sequence[Expr]) -> Expr:
        if name not in self._functions:
            function = ca.Function(name, [*symbols, self.model.k], [ca.densify(expression())])
            self._functions[name] = merge_divisions(function)
        return self._functions[name](*arguments, self.k)

    def H(self, q: Any, p: Any, t: Any) -> Any:
        m = self.model
        return self._call("H", lambda: m.H, [m.q, m.p, m.t], [q, p, t])

    def H_q(self, q: Any, p: Any, t: Any) -> Any:
        m = self.model
        return self._call("H_q", lambda: ca.gradient(m.H, m.q), [m.q, m.p, m.t], [q, p, t])

    def H_p(self, q: Any, p: Any, t: Any) -> Expr | ca.DM:
        m = self.model
        return self._call("H_p", lambda: m.velocity, [m.q, m.p, m.t], [q, p, t])

    def T(self, p: Expr) -> Expr:
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

    def force(self, q: object, v: object, t: object) -> Any:
        """Return the total force of a separable Hamiltonian: ``-V' + F``."""
        return self.F(q, v, t) - self.V_q(q, t)

    def work(self, q: Expr, p: Expr, v: Expr, t: Expr) -> tuple[Expr, Expr]:
        """Return the power supplied by forces and explicitly time-dependent potentials, and the dissipated power.

        Only a System distinguishes friction; for other models the total power counts as supplied.
        """
        m = self.model
        friction = ca.SX(0)
        if m.source_system is not None:
            d = equations_of_motion(m.source_system)  # a Hamiltonian of a system is written in its symbols
            friction = ca.dot(ca.gradient(d.R, d.v), d.v)
        power = ca.vertcat(ca.dot(m.F, m.v) + ca.gradient(m.H, m.t) + friction, friction)
        powers = self._call("work", lambda: power, [m.q, m.p, m.v, m.t], [q, p, v, t])
        return powers[0], powers[1]

    def evaluate(self, name: str, expression: Any, q: Any, p: Any, t: Any) -> Expr | ca.DM:
        """Evaluate an expression of the symbols of the model; a name must be used for one expression only."""
        m = self.model
        return self._call(name, lambda: expression, [m.q, m.p, m.t], [q, p, t])


class MapScheme(Scheme):
    """One-step map for Hamiltonians, and for Systems without constraints and with a regular mass matrix.

    Subclasses implement `step` for q, p and the `extra_state` of the scheme (such as time ``t`` in time-transformed
    schemes). Implicit schemes declare their `unknowns` and an `initial_guess`.
    """

    group = "Splitting and variational schemes, without constraints"
    formulations: tuple[str, ...] = ("phase space",)
    implicit = False
    #: The step requires forces that do not depend on velocities.
    requires_velocity_independent_forces: bool = False

    def extra_state(self, model: Hamiltonian) -> dict[str, int]:
        """Return names and sizes of the additional state of the scheme."""
        return {}

    def unknowns(self, model: Hamiltonian) -> dict[str, int]:
        """Return names and sizes of the unknowns."""
        return {}

    def initial_guess(
        self, phase: HamiltonianFunctions, old: SimpleNamespace, h: Expr, t: Expr
    ) -> Mapping[str, object]:
        """Return the initial guess of Newton's method."""
        return {}

    def step(
        self, phase: HamiltonianFunctions, old: SimpleNamespace, x: SimpleNamespace, h: Expr, t: Expr
    ) -> MapResult:
        """Return one step of size h from the state `old` (parts by name) at time t (in fictive time: tau)."""
        raise NotImplementedError

    def is_explicit(self, model: System) -> bool:
        """Return True if the step is explicit for this model."""
        return not self.unknowns(as_hamiltonian(model))

    def unmet_requirements(self, model: Any) -> list[str]:
        if "elements" in model.formulations:
            if "phase space" not in model.formulations:
                return ["a system without constraints, with a regular mass matrix and an energy quadratic in v"]
            model = as_hamiltonian(model)  # keeps the external force
        unmet = super().unmet_requirements(model)
        if not unmet and self.requires_velocity_independent_forces and ca.depends_on(model.F, model.v):
            return ["forces that do not depend on velocities"]
        return unmet

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> StepEquations:
        phase_model = as_hamiltonian(model)
        layout = model.layout.extended(**self.extra_state(phase_model))

        errors: list[ErrorEstimate | None] = []

        def build_step(old: SimpleNamespace, x: SimpleNamespace, h: Expr, t: Expr, k: Expr) -> StepExpressions:
            phase = HamiltonianFunctions(phase_model, k)
            result = self.step(phase, old, x, h, t)
            errors.append(result.error_estimate)
            new = {**vars(old), **result.state}
            new["v"] = phase.H_p(new["q"], new["p"], new["t"] if "t" in layout else t + h)
            new["supplied_energy"] += result.supplied
            new["dissipated_energy"] += result.dissipated
            return new, result.residual, self.initial_guess(phase, old, h, t)

        graph = map_step_graph(layout, Layout(**self.unknowns(phase_model)), model.parameter_count, build_step)
        return graph if errors[0] is None else dataclasses.replace(graph, error_estimate=errors[0])


#: Final state by name, residual, and initial guess of the unknowns by name.
StepExpressions = tuple[Mapping[str, Any], Sequence[Expr], Mapping[str, Any]]


def map_step_graph(
    layout: Layout,
    unknowns: Layout,
    parameter_count: int,
    build_step: Callable[[Any, Any, Any, Any, Any], StepExpressions],
) -> StepGraph:
    """Build the step graph of a one-step map; an explicit map has no unknowns and no residual.

    `build_step` has the arguments old state and unknowns (by name), h, t, k.
    """
    x, z = ca.SX.sym("x", unknowns.size), ca.SX.sym("z", layout.size)
    c = ca.SX.sym("c", 2 + parameter_count)
    new, equations, initial_guess = build_step(_unpack(z, layout), _unpack(x, unknowns), c[0], c[1], c[2:])
    residual = ca.densify(ca.vertcat(*equations)) if equations else ca.SX(0, 1)
    return StepGraph.from_residual(
        x,
        z,
        c,
        residual=residual,
        final_state=ca.densify(ca.vertcat(*(new[name] for name in layout.sizes))),
        initial_guess=ca.densify(ca.vertcat(*(initial_guess[name] for name in unknowns.sizes)))
        if unknowns.size
        else ca.SX(0, 1),
        block_sizes=tuple(unknowns.sizes.values()),
        layout=layout,
        equation_labels=tuple(
            f"equation for {name}[{i}]" for name, size in unknowns.sizes.items() for i in range(size)
        ),
    )


def format_number(value: float) -> str:
    """Return the shortest text of a number for the name of a scheme that parses to the same number.

    >>> format_number(0.5), format_number(1.0), format_number(1 / 3)
    ('0.5', '1', '0.3333333333333333')
    """
    return short if float(short := f"{value:g}") == value else repr(value)


@functools.lru_cache(maxsize=64)
def as_hamiltonian(model: Any) -> Hamiltonian:
    """Return the model in Hamiltonian form."""
    return Hamiltonian.from_system(model) if "elements" in model.formulations else model


def _unpack(vector: Expr, layout: Layout) -> SimpleNamespace:
    # an empty slice of a 1x1 SX has shape (1, 0) and would count as a row
    return SimpleNamespace(
        **{name: vector[layout[name]] if size else ca.SX(0, 1) for name, size in layout.sizes.items()}
    )
