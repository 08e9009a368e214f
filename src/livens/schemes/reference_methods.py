"""Reference methods without geometric properties, for comparison, on explicit ODEs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from types import SimpleNamespace
from typing import Any, ClassVar

import casadi as ca

from livens.expressions.state_layout import Layout
from livens.schemes.core.step_equations import StepEquations
from livens.schemes.discretization.collocation import linear_combination
from livens.schemes.discretization.phase_space_map import (
    HamiltonianFunctions,
    MapScheme,
    StepExpressions,
    as_hamiltonian,
    format_number,
    map_step_graph,
)
from livens.types import Expr


class VectorField:
    """Vector field ``y' = f(t, y)`` of a model, with supplied and dissipated power; y is (q, p), or x."""

    def __init__(self, model: Any, k: Expr) -> None:
        if "descriptor" in model.formulations:
            d = model.descriptor
            rate = ca.solve(
                ca.jacobian(d.residual, d.xdot), -ca.substitute(d.residual, d.xdot, ca.SX.zeros(d.x.numel()))
            )
            power = [ca.substitute(ca.SX(e), d.xdot, rate) for e in (d.supplied, d.dissipated)]
            t, y, symbols, self.state_parts = d.t, d.x, d.k, Layout(x=int(d.x.numel()))
        else:
            phase_model = as_hamiltonian(model)
            rate = ca.vertcat(phase_model.velocity, phase_model.momentum_rate)
            q, p, v = phase_model.q, phase_model.p, phase_model.velocity
            power = list(HamiltonianFunctions(phase_model, phase_model.k).work(q, p, v, phase_model.t))
            t, y, symbols = phase_model.t, ca.vertcat(q, p), phase_model.k
            self.state_parts = Layout(q=phase_model.n, p=phase_model.n)
        function = ca.Function("rates", [t, y, symbols], [ca.densify(rate), ca.vertcat(*power)])
        self._function, self._k = function, k

    def __call__(self, t: Expr, y: Expr) -> Expr:
        return self._function(t, y, self._k)[0]

    def power(self, t: Expr, y: Expr) -> Expr:
        """Return supplied and dissipated power."""
        return self._function(t, y, self._k)[1]


class DiagonallyImplicitRK(MapScheme):
    """Diagonally implicit Runge-Kutta method: ``k_i = f(t_i, y0 + h sum_j a_ij k_j)`` with j <= i.

    ``y1 = y0 + h sum_i b_i k_i``, ``t_i = t0 + h sum_j a_ij``. The stage derivative k_i of a stage with ``a_ii != 0``
    is an unknown, all others are explicit.
    """

    group = "Methods for comparison"
    formulations = ("phase space", "descriptor")
    symplectic = symmetric = False
    conserves = ()
    #: Runge-Kutta matrix by rows, and weights.
    A: Sequence[Sequence[float]]
    b: Sequence[float]

    @property
    def implicit_stages(self) -> list[int]:
        return [i for i, row in enumerate(self.A) if row[i]]

    def is_explicit(self, model: object) -> bool:
        return not self.implicit_stages

    def unmet_requirements(self, model: Any) -> list[str]:
        if "descriptor" not in model.formulations:
            return super().unmet_requirements(model)
        d = model.descriptor
        affine = not ca.depends_on(ca.jacobian(d.residual, d.xdot), d.xdot)
        return [] if affine and model.is_ode else ["an explicit ODE x' = f(t, x)"]

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> StepEquations:
        layout: Layout = model.layout
        state_parts = VectorField(model, ca.SX.zeros(model.parameter_count)).state_parts
        unknowns = Layout(**{f"slope_{i + 1}": state_parts.size for i in self.implicit_stages})

        def build_step(old: SimpleNamespace, x: SimpleNamespace, h: Expr, t: Expr, k: Expr) -> StepExpressions:
            f = VectorField(model, k)
            y0 = ca.vertcat(*(getattr(old, name) for name in state_parts.sizes))
            stage_derivatives: list[Any] = []
            residual, work = [], ca.SX.zeros(2)
            for i, row in enumerate(self.A):
                unknown_derivative = getattr(x, f"slope_{i + 1}", None)
                available = (
                    stage_derivatives if unknown_derivative is None else [*stage_derivatives, unknown_derivative]
                )
                y = y0 + h * linear_combination(row[: len(available)], available) if available else y0
                t_i = t + sum(row) * h
                derivative = f(t_i, y)
                residual += [] if unknown_derivative is None else [unknown_derivative - derivative]
                stage_derivatives.append(derivative if unknown_derivative is None else unknown_derivative)
                work += self.b[i] * h * f.power(t_i, y)
            y1 = y0 + h * linear_combination(self.b, stage_derivatives)
            new: dict[str, Any] = {**vars(old), **{name: y1[state_parts[name]] for name in state_parts.sizes}}
            if "supplied_energy" in layout:
                new["supplied_energy"] += work[0]
                new["dissipated_energy"] += work[1]
            if "v" in layout:
                new["v"] = HamiltonianFunctions(as_hamiltonian(model), k).H_p(new["q"], new["p"], t + h)
            return new, residual, dict.fromkeys(unknowns.sizes, f(t, y0))

        return map_step_graph(layout, unknowns, model.parameter_count, build_step)


class ExplicitEuler(DiagonallyImplicitRK):
    name, order = "explicit-euler", 1
    summary, source = "explicit Euler: gains energy", "Modin 2009, ch. 1"
    when_to_use = "Comparison and teaching: shows how energy grows."
    when_to_avoid = "Any result matters."
    A, b = ((0.0,),), (1.0,)


class ImplicitEuler(DiagonallyImplicitRK):
    name, order, implicit = "implicit-euler", 1, True
    summary, source = "implicit Euler: loses energy", "Modin 2009, ch. 1"
    when_to_use = "Comparison and teaching: shows numerical damping."
    when_to_avoid = "Energy matters: 69 % of a pendulum's energy is lost in two periods at h = 0.1 s."
    A, b = ((1.0,),), (1.0,)


class Heun(DiagonallyImplicitRK):
    """Heun's method: explicit trapezoidal rule."""

    name, order, evaluations_per_step = "heun", 2, 2
    summary, source = "Heun: explicit, gains energy slowly", "Modin 2009, paper I"
    when_to_use = "Comparison with an explicit method of order 2."
    when_to_avoid = "Runs are long: energy grows slowly."
    A, b = ((0.0, 0.0), (1.0, 0.0)), (0.5, 0.5)


class ExplicitMidpoint(DiagonallyImplicitRK):
    name, order, evaluations_per_step = "explicit-midpoint", 2, 2
    summary, source = "explicit midpoint rule: gains energy slowly", "Modin 2009, 2.1.3"
    when_to_use = "Comparison with an explicit method of order 2."
    when_to_avoid = "Runs are long: energy grows slowly."
    A, b = ((0.0, 0.0), (0.5, 0.0)), (0.0, 1.0)


class ImplicitExtrapolation(DiagonallyImplicitRK):
    """Extrapolated implicit Euler ``2 Psi_{h/2} Psi_{h/2} - Psi_h`` with Euler steps Psi: three sequential stages."""

    name, order, implicit = "implicit-extrapolation", 2, True
    summary, source = "extrapolated implicit Euler: loses energy slowly", "Modin 2009, paper I"
    when_to_use = "Comparison with an extrapolated method of order 2."
    when_to_avoid = "Runs are long: energy is lost slowly."
    A, b = ((1.0, 0.0, 0.0), (0.0, 0.5, 0.0), (0.0, 0.5, 0.5)), (-1.0, 1.0, 1.0)


class Theta(DiagonallyImplicitRK):
    """Theta method ``y1 = y0 + h ((1-x) f(t0, y0) + x f(t1, y1))``; 0 and 1 are Euler, 1/2 the trapezoidal rule."""

    family = "theta:<x>"
    examples: ClassVar[tuple[tuple[Any, ...], ...]] = ((0.6,),)
    summary, source = "theta method; for x = 1/2 the trapezoidal rule, of order 2", "Modin 2009, paper V"
    when_to_use = "Comparison of the theta methods."
    when_to_avoid = "Energy matters, unless x = 1/2."

    def __init__(self, x: float) -> None:
        self.name, self.implicit = f"theta:{format_number(x)}", x != 0.0
        self.symmetric = x == 0.5
        self.order = 2 if self.symmetric else 1
        self.A, self.b = ((0.0, 0.0), (1 - x, x)), (1 - x, x)


class Trapezoidal(DiagonallyImplicitRK):
    name, order, symmetric, implicit = "trapezoidal", 2, True, True
    summary, source = "trapezoidal rule", "Modin 2009, paper V"
    when_to_use = "Comparison with the trapezoidal rule."
    when_to_avoid = "The system is nonlinear and symplecticity matters: use `implicit-midpoint`."
    A, b = ((0.0, 0.0), (0.5, 0.5)), (0.5, 0.5)
