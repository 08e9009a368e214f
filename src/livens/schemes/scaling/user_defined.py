"""User-defined scaling functions, and scaling by the phase-space speed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca

from livens import math as m
from livens.errors import InputError
from livens.expressions.parameters import ParameterNamespace
from livens.expressions.tracing import FunctionTracer, ModelFunction, argument_names
from livens.models.hamiltonian.model import Hamiltonian
from livens.schemes.scaling.base import Model, Scaling, StepMeans
from livens.schemes.scaling.energies import EnergyScaling
from livens.types import Expr
from livens.validation import check_nonnegative

#: Lower bound of squared norms, which prevents 0/0 in derivatives at zero.
_TINY_SQUARE = 1e-300


@dataclass(frozen=True)
class Speed(Scaling):
    offset: float

    def expression(self, model: Model) -> Expr:
        return 1 / (ca.sqrt(ca.sumsqr(model.vector_field)) + self.offset)

    def for_system(self, system: Any, means: StepMeans) -> Expr:
        if not self.offset:
            raise InputError(
                "the scaling speed(0) of a mechanical system is infinite at rest; give an offset, such as "
                "livens.scaling.speed(1.0)"
            )
        return 1 / (ca.sqrt(ca.sumsqr(means.v) + _TINY_SQUARE) + self.offset)

    def __str__(self) -> str:
        return f"speed({self.offset:g})"


def speed(offset: float = 0.0) -> Scaling:
    """Return the scaling function ``1/(|z'| + offset)`` (Modin 2009, paper IV, 4.1).

    Steps have about equal lengths in phase space. For mechanical systems with constraints or forces, z' are the
    velocities; those of rigid bodies include the directors, which are dimensionless.

    Parameters
    ----------
    offset : float, default 0.0
        Nonnegative offset of the phase-space speed, which limits the step size.

    Returns
    -------
    Scaling
        Scaling function.

    Examples
    --------
    >>> str(speed(0.01))
    'speed(0.01)'
    """
    return Speed(check_nonnegative("offset", offset, allow_strings=False))


@dataclass(frozen=True)
class UserScaling(Scaling):
    function: ModelFunction

    def expression(self, model: Model) -> Expr:
        return _trace(model, self.function, {name: model.view.symbols[name] for name in model.error_norm_variables})

    def for_system(self, system: Any, means: StepMeans) -> Expr:
        view = system.view
        g = ca.Function("g", [view.symbols["q"], view.symbols["v"], view.k], [self.expression(system)])
        return g(means.q, means.v, means.k)

    def __str__(self) -> str:
        return "written by the user"


@dataclass(frozen=True)
class UserEnergyScaling(EnergyScaling):
    function: ModelFunction

    def of_energies(self, model: Hamiltonian, T: Expr, V: Expr) -> Expr:
        return _trace(model, self.function, {"T": m.Scalar(ca.SX(T)), "V": m.Scalar(ca.SX(V))})

    def __str__(self) -> str:
        return "written by the user"


def _trace(model: Model, function: ModelFunction, variables: Mapping[str, object]) -> Expr:
    named = ParameterNamespace(model.model_parameters.unpack_symbols(model.view.k[: model.model_parameters.size]))
    return FunctionTracer({**variables, "k": named})("scaling", function, ())


def user_scaling(function: ModelFunction) -> Scaling:
    """Return a user-defined scaling function.

    Parameters
    ----------
    function : callable
        Function of ``q p k``, of ``q v k`` for mechanical systems with constraints or forces, of ``x k``, or of
        ``T V k``; the arguments are identified by their names.

    Returns
    -------
    Scaling
        Scaling function.

    Raises
    ------
    InputError
        If `function` is not callable, or is a function of both the energies and the state.

    Examples
    --------
    >>> import livens as lv
    >>> oscillator = lv.Hamiltonian("x", kinetic=lambda p: p[0] ** 2 / 2, potential=lambda q: q[0] ** 4)
    >>> user_scaling(lambda q: 1 / (1 + q[0] ** 2)).variables(oscillator)
    'q'
    >>> user_scaling(lambda T, V: 1 / (T + 2 * V)).energies
    True
    """
    if not callable(function):
        raise InputError(f"a scaling must be a function of q, p, v, T, V, x or k, got {function!r}")
    names = set(argument_names("scaling", function, "", "qpvTVxk"))
    if names & set("TV"):
        if not names <= set("TVk"):
            raise InputError("a scaling is a function of T and V, or of the state, not of both")
        return UserEnergyScaling(function)
    return UserScaling(function)
