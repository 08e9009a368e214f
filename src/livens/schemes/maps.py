"""Schemes that take the state of a model as a whole to the next one, in coordinates and momenta."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from livens.engine.equations import StepEquations
from livens.hamiltonian import Hamiltonian
from livens.layout import Layout
from livens.schemes.base import Scheme
from livens.system import System


@dataclass
class Step:
    """What a scheme says of one step: parts of the state at its end, and equations for its unknowns."""

    new: Mapping[str, Any]  # q, p and what the scheme adds to the state, by name
    rows: Sequence[Any] = ()  # as many as there are unknowns; none if the step is explicit
    supplied: Any = 0.0  # work of forces in this step
    dissipated: Any = 0.0
    inside: Any = None  # a function of theta: parts of the state at that part of the step
    error: Any = field(default=None)


class Phase:
    """A Hamiltonian as a scheme sees it: energies and their derivatives, callable anywhere, with the parameters in."""

    def __init__(self, model: Hamiltonian, k: Any) -> None:
        self.model, self.k, self.n = model, k, model.n
        self._functions: dict[str, ca.Function] = {}

    def _call(self, name: str, expression: Any, symbols: Sequence[Any], arguments: Sequence[Any]) -> Any:
        if name not in self._functions:
            self._functions[name] = ca.Function(name, [*symbols, self.model.k], [ca.densify(expression())])
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

    def any(self, name: str, expression: Any, q: Any, p: Any, t: Any) -> Any:
        """Any expression of the model's symbols; the same name must mean the same expression."""
        m = self.model
        return self._call(name, lambda: expression, [m.q, m.p, m.t], [q, p, t])


class MapScheme(Scheme):
    """A scheme for Hamiltonians, and for Systems that can be written as one (no constraints, a regular mass matrix).

    Subclasses say what `step` does with q, p and what they `add` to the state (such as time ``t`` in schemes with a
    fictive one). Those with something to solve name their `unknowns` and a first `guess` of them.
    """

    models = ("Hamiltonian", "System")
    implicit = False
    #: How often a step evaluates the forces; per Newton correction, where something has to be solved.
    evaluations: int = 1

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

    def missing(self, model: Any) -> list[str]:
        if isinstance(model, System):
            if model.m:
                return ["a system without constraints"]
            if not model.regular_mass:
                return ["a regular mass matrix"]
        return super().missing(phase_of(model)) if isinstance(model, System) else super().missing(model)

    def equations(self, model: Any, dropped: Collection[int] = ()) -> StepEquations:
        """The step as the engine takes it. Where nothing is to be solved it has no unknowns and no residual."""
        layout = model.layout
        phase_model = phase_of(model)
        layout = layout.with_(**self.add(phase_model))
        sizes = Layout(**self.unknowns(phase_model))
        x, z = ca.SX.sym("x", sizes.size), ca.SX.sym("z", layout.size)
        c = ca.SX.sym("c", 2 + model.parameter_count)
        h, t, k = c[0], c[1], c[2:]
        phase = Phase(phase_model, k)
        old, unknown = _parts(z, layout), _parts(x, sizes)
        said = self.step(phase, old, unknown, h, t)
        new = {name: z[layout[name]] for name in layout.sizes}
        new |= {name: ca.SX(value) for name, value in said.new.items()}
        time = new["t"] if "t" in layout else t + h
        new["v"] = phase.H_p(new["q"], new["p"], time)
        new["supplied_energy"] = old.supplied_energy + said.supplied
        new["dissipated_energy"] = old.dissipated_energy + said.dissipated
        residual = ca.densify(ca.vertcat(*said.rows)) if said.rows else ca.SX(0, 1)
        jacobian = ca.jacobian(residual, x)
        rows, columns = jacobian.sparsity().get_triplet()
        guess = self.guess(phase, old, h, t)
        return StepEquations(
            x=x, z=z, c=c, residual=residual,
            rows=np.array(rows, dtype=np.int64), columns=np.array(columns, dtype=np.int64),
            jacobian=ca.SX(jacobian.nz[:]) if rows else ca.SX(0, 1),
            end=ca.densify(ca.vertcat(*(new[name] for name in layout.sizes))),
            guess=ca.densify(ca.vertcat(*(guess[name] for name in sizes.sizes))) if sizes.size else ca.SX(0, 1),
            kinds=tuple(sizes.sizes.values()), layout=layout,
            row_names=tuple(f"equation for {name}[{i}]" for name, size in sizes.sizes.items() for i in range(size)),
        )  # fmt: skip


@functools.lru_cache(maxsize=64)
def phase_of(model: Any) -> Hamiltonian:
    """A model in Hamilton's form."""
    return Hamiltonian.of(model) if isinstance(model, System) else model


def _parts(vector: Any, layout: Layout) -> SimpleNamespace:
    # an empty slice of a 1x1 matrix has one row and no column, which would count as a row
    return SimpleNamespace(
        **{name: vector[layout[name]] if size else ca.SX(0, 1) for name, size in layout.sizes.items()}
    )
