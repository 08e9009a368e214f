"""Taylor series of any order, which choose their own steps."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection
from typing import Any

import casadi as ca

from livens.errors import InputError, ModelError
from livens.schemes.base import Scheme
from livens.schemes.recipes.maps import Phase, phase_of
from livens.schemes.series import SeriesEquations, best_order

#: The order that suits the last digit of a double best.
USUAL = 20
#: Coefficients of higher orders overflow or vanish before they help.
_LOWEST, _HIGHEST = 2, 60


class Taylor(Scheme):
    """``x(t + h) = sum x_k h^k`` up to some order, with all coefficients from the equations themselves.

    The coefficients of sums, products, powers and functions follow from those of their operands, order by order. Their
    last two tell the radius of convergence, and steps are ``1/e^2`` of it: with order N, what is left out is then about
    ``e^(-2(N-1))`` of the state (Jorba and Zou, 2005). If h is given, steps have this size instead. States and time are
    sums of two numbers each, so that rounding errors of many steps grow as slowly as they can (Brouwer's law).

    `taylor` has order 20, that of the last digit; with ``control=StepControl(tolerance=...)`` it takes the order that
    suits the tolerance. `taylor:<order>` keeps its order.
    """

    name = "taylor"
    order: int = USUAL
    group = "Taylor series"
    summary = "Taylor series of order 20 that chooses its steps: to the last digit"
    source = "Jorba and Zou (2005)"
    forms = ("elements", "phase space", "descriptor")
    implicit = False
    own_steps = True
    tolerance = math.exp(-2.0 * (USUAL - 1))

    def for_tolerance(self, tolerance: float) -> Scheme:
        if not 0 < tolerance < 1:
            return self
        order = min(max(best_order(tolerance), _LOWEST), _HIGHEST)
        return self if order == self.order else TaylorOfOrder(order)

    def missing(self, model: Any) -> list[str]:
        if "elements" in model.forms and "phase space" not in model.forms:
            return ["a system without constraints, with a regular mass matrix and an energy quadratic in v"]
        found = super().missing(model)
        if not found and "descriptor" in model.forms and not _explicit(model):
            return ["equations from which all rates follow, without algebraic variables"]
        if not found:
            try:
                _equations(model, self.order).field  # noqa: B018  # it is kept
            except ModelError as error:
                return [f"functions that are smooth, without {error}"]
        return found

    def equations(self, model: Any, dropped: Collection[int] = ()) -> SeriesEquations:
        return _equations(model, self.order)


class TaylorOfOrder(Taylor):
    """A Taylor series of a given order."""

    family = "taylor:<order>"
    examples = ((4,), (8,))

    def __init__(self, order: int) -> None:
        if not _LOWEST <= order <= _HIGHEST:
            raise InputError(f"the order of a Taylor series must be between {_LOWEST} and {_HIGHEST}, got {order}")
        self.order, self.tolerance = order, math.exp(-2.0 * (order - 1))
        self.name = f"taylor:{order}"
        self.summary = f"Taylor series of order {order} that chooses its steps"

    def for_tolerance(self, tolerance: float) -> Scheme:
        return self


def _explicit(model: Any) -> bool:
    """Whether rates follow from the state, and linearly."""
    d = model.descriptor
    return bool(model.regular_flow) and not ca.depends_on(ca.jacobian(d.residual, d.xdot), d.xdot)


@functools.lru_cache(maxsize=64)
def _equations(model: Any, order: int) -> SeriesEquations:
    return _of_descriptor(model, order) if "descriptor" in model.forms else _of_phase_space(model, order)


def _of_phase_space(model: Any, order: int) -> SeriesEquations:
    """Rates of q and p, and of the work of forces where there are such."""
    m, layout = phase_of(model), model.layout
    variables, rates, parts = [m.q, m.p], [m.velocity, m.momentum_rate], ["q", "p"]
    if not m.conservative:
        supplied, dissipated = Phase(m, m.k).work(m.q, m.p, m.velocity, m.t)
        variables.append(ca.SX.sym("work", 2))
        rates.append(ca.vertcat(supplied, dissipated))
        parts += ["supplied_energy", "dissipated_energy"]
    function = ca.Function("rates", [ca.vertcat(*variables), m.t, m.k], [ca.densify(ca.vertcat(*rates))])
    velocities = {i: layout["v"].start + i for i in range(m.n)}
    return SeriesEquations(function, order, layout, _columns(layout, parts), velocities, 2 * m.n)


def _of_descriptor(model: Any, order: int) -> SeriesEquations:
    d, layout = model.descriptor, model.layout
    x, field = d.x, model.field
    variables, rates, parts = [x], [field], ["x"]
    if d.stored is not None:
        work = ca.vertcat(ca.SX(d.supplied), ca.SX(d.dissipated))
        variables.append(ca.SX.sym("work", 2))
        rates.append(ca.substitute(work, d.xdot, field))
        parts += ["supplied_energy", "dissipated_energy"]
    function = ca.Function("rates", [ca.vertcat(*variables), d.t, d.k], [ca.densify(ca.vertcat(*rates))])
    return SeriesEquations(function, order, layout, _columns(layout, parts), {}, int(x.numel()))


def _columns(layout: Any, parts: list[str]) -> tuple[int, ...]:
    return tuple(i for part in parts for i in range(layout[part].start, layout[part].stop))
