"""Taylor series methods of any order with step-size selection."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens.errors import InputError, ModelError
from livens.expressions.graph.symbolic_lu import solve_symbolic
from livens.expressions.graph.taylor_graph import all_smooth
from livens.expressions.probe import Probe
from livens.schemes.core.scheme import Scheme
from livens.schemes.discretization.phase_space_map import HamiltonianFunctions, as_hamiltonian
from livens.schemes.taylor_equations import TaylorEquations, optimal_order
from livens.types import Expr

if TYPE_CHECKING:
    from livens.expressions.state_layout import Layout


#: Default order, optimal for double precision.
DEFAULT_ORDER = 20
#: Minimum and maximum order; coefficients of higher orders overflow or underflow.
_LOWEST, _HIGHEST = 2, 60


class Taylor(Scheme):
    """Taylor series method ``x(t + h) = sum x_k h^k`` up to some order.

    The coefficients of sums, products, powers and functions follow from those of their operands, order by order. The
    last two coefficients estimate the radius of convergence, and steps are ``1/e^2`` of it: with order N, the remainder
    is about ``e^(-2(N-1))`` of the state (Jorba and Zou, 2005). If h is given, steps have this size instead. States and
    time use compensated (double-double) sums, so that rounding errors grow as in Brouwer's law.

    `taylor` has order 20, optimal for double precision; with ``control=StepControl(tolerance=...)`` the order is
    optimal for the tolerance. `taylor:<order>` has a fixed order.
    """

    name = "taylor"
    order: int = DEFAULT_ORDER
    group = "Taylor series"
    summary = "Taylor series of order 20 that chooses its steps: to the last digit"
    source = "Jorba and Zou (2005)"
    when_to_use = "Smooth problems without constraints, more than six digits, dense output."
    when_to_avoid = "The problem is stiff, has constraints or contact, or costs many operations per evaluation."
    formulations = ("elements", "phase space", "descriptor")
    implicit = False
    selects_step_size = True
    tolerance = math.exp(-2.0 * (DEFAULT_ORDER - 1))

    def for_tolerance(self, tolerance: float) -> Scheme:
        if not 0 < tolerance < 1:
            return self
        order = min(max(optimal_order(tolerance), _LOWEST), _HIGHEST)
        return self if order == self.order else TaylorOfOrder(order)

    def unmet_requirements(self, model: Any) -> list[str]:
        if "elements" in model.formulations and "phase space" not in model.formulations:
            return ["a system without constraints, with a regular mass matrix and an energy quadratic in v"]
        unmet = super().unmet_requirements(model)
        if not unmet and "descriptor" in model.formulations and _explicit_ode(model) is None:
            return ["equations that determine all time derivatives, if need be by reducing their index"]
        nonsmooth = None if unmet else _nonsmooth_operation(model, self.order)
        return unmet if nonsmooth is None else [f"functions that are smooth, without {nonsmooth}"]

    def equations(self, model: Any, removed_constraints: Collection[int] = ()) -> TaylorEquations:
        return _taylor_equations(model, self.order)


class TaylorOfOrder(Taylor):
    """Taylor series method of a given order."""

    family = "taylor:<order>"
    when_to_use = "You want a fixed order of the Taylor series."
    when_to_avoid = "You want the order for full precision: use `taylor`."
    examples = ((4,), (8,))

    def __init__(self, order: int) -> None:
        if not _LOWEST <= order <= _HIGHEST:
            raise InputError(f"the order of a Taylor series must be between {_LOWEST} and {_HIGHEST}, got {order}")
        self.order, self.tolerance = order, math.exp(-2.0 * (order - 1))
        self.name = f"taylor:{order}"
        self.summary = f"Taylor series of order {order} that chooses its steps"

    def for_tolerance(self, tolerance: float) -> Scheme:
        return self


@functools.lru_cache(maxsize=64)
def _nonsmooth_operation(model: object, order: int) -> str | None:
    """Return the first operation of a model that has no Taylor series, else None."""
    equations = _taylor_equations(model, order)
    if all_smooth(equations.vector_field):
        return None
    try:
        equations.field  # noqa: B018  # cached property
    except ModelError as error:
        return str(error)
    return None


@functools.lru_cache(maxsize=64)
def _explicit_ode(model: Any) -> tuple[Expr, Expr] | None:
    """Return derivatives of the states and algebraic variables, if they are explicit by linear equations; else None.

    This is the case without algebraic variables, or with algebraic variables of index 1, such as the multipliers of
    constraints on acceleration level.
    """
    d, n = model.descriptor, len(model.coordinates)
    unknowns = _unknowns(model)
    matrix = ca.densify(ca.jacobian(d.residual, unknowns))
    if ca.depends_on(matrix, unknowns) or (model.algebraic_names and ca.depends_on(d.residual, d.xdot[n:])):
        return None
    values = Probe([d.x, d.t, d.k], seed=1, fixed={2: model.parameter_vector()}).evaluate_once(matrix)
    if values is None or np.linalg.matrix_rank(values) < len(values):
        return None
    residual_at_zero = ca.substitute(d.residual, unknowns, ca.SX.zeros(unknowns.numel()))
    solution = solve_symbolic(matrix, -residual_at_zero, values)
    return None if solution is None else (solution[:n], solution[n:] if model.algebraic_names else ca.SX(0, 1))


def _unknowns(model: Any) -> Expr:
    """Return time derivatives and algebraic variables."""
    d, n = model.descriptor, len(model.coordinates)
    return ca.vertcat(d.xdot[:n], d.x[n:]) if model.algebraic_names else d.xdot


@functools.lru_cache(maxsize=64)
def _taylor_equations(model: Any, order: int) -> TaylorEquations:
    return _from_descriptor(model, order) if "descriptor" in model.formulations else _from_hamiltonian(model, order)


def _from_hamiltonian(model: Any, order: int) -> TaylorEquations:
    """Return the Taylor equations of q and p, and of the work of forces where there are any."""
    m, layout = as_hamiltonian(model), model.layout
    variables, derivatives, names = [m.q, m.p], [m.velocity, m.momentum_rate], ["q", "p"]
    if not m.conservative:
        supplied, dissipated = HamiltonianFunctions(m, m.k).work(m.q, m.p, m.velocity, m.t)
        variables.append(ca.SX.sym("work", 2))
        derivatives.append(ca.vertcat(supplied, dissipated))
        names += ["supplied_energy", "dissipated_energy"]
    function = ca.Function("rates", [ca.vertcat(*variables), m.t, m.k], [ca.densify(ca.vertcat(*derivatives))])
    velocities = {i: layout["v"].start + i for i in range(m.n)}
    return TaylorEquations(function, order, layout, _state_indices(layout, names), velocities, 2 * m.n)


def _from_descriptor(model: Any, order: int) -> TaylorEquations:
    d, layout, n = model.descriptor, model.layout, len(model.coordinates)
    solved = _explicit_ode(model)
    assert solved is not None
    field, algebraic = solved
    variables, derivatives, names = [d.x[:n]], [field], ["x"]
    if d.stored is not None:
        work = ca.vertcat(ca.SX(d.supplied), ca.SX(d.dissipated))
        variables.append(ca.SX.sym("work", 2))
        derivatives.append(ca.substitute(work, _unknowns(model), ca.vertcat(field, algebraic)))
        names += ["supplied_energy", "dissipated_energy"]
    inputs = [ca.vertcat(*variables), d.t, d.k]
    function = ca.Function("rates", inputs, [ca.densify(ca.vertcat(*derivatives))])
    algebraic_function = ca.Function("follows", inputs, [ca.densify(algebraic)]) if algebraic.numel() else None
    return TaylorEquations(
        function,
        order,
        layout,
        _state_indices(layout, names),
        {},
        n,
        algebraic_function,
        _state_indices(layout, ["y"]) if algebraic_function is not None else (),
    )


def _state_indices(layout: Layout, names: list[str]) -> tuple[int, ...]:
    return tuple(i for name in names for i in range(layout[name].start, layout[name].stop))
