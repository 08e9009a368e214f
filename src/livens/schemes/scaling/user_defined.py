"""User-defined scaling functions, and scalings by the speed and the curvature of the motion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca

from livens import math as m
from livens.errors import InputError
from livens.expressions.parameters import ParameterNamespace
from livens.expressions.tracing import FunctionTracer, ModelFunction, argument_names
from livens.models.hamiltonian.model import Hamiltonian
from livens.schemes.scaling.base import Model, Scaling, StepMeans
from livens.schemes.scaling.energies import EnergyScaling
from livens.types import Expr
from livens.validation import check_nonnegative, check_positive

#: Lower bound of squared norms, which prevents 0/0 in derivatives at zero.
_TINY_SQUARE = 1e-300


@dataclass(frozen=True)
class Speed(Scaling):
    factory: ClassVar[str] = "speed"
    offset: float
    exponent: float = 1.0

    def expression(self, model: Model) -> Expr:
        return (ca.sqrt(ca.sumsqr(model.vector_field)) + self.offset) ** -self.exponent

    def for_system(self, system: object, means: StepMeans) -> Expr:
        if not self.offset:
            raise InputError(
                "the scaling speed(0) of a mechanical system is infinite at rest; give an offset, such as "
                "livens.scaling.speed(1.0)"
            )
        return (ca.sqrt(ca.sumsqr(means.v) + _TINY_SQUARE) + self.offset) ** -self.exponent

    def for_states(self, model: object, x: Expr, rate: Expr, k: Expr) -> Expr:
        if not self.offset:
            raise InputError("the scaling speed(0) is infinite at rest; give an offset, such as speed(1.0)")
        return (ca.sqrt(ca.sumsqr(rate) + _TINY_SQUARE) + self.offset) ** -self.exponent

    def __str__(self) -> str:
        return f"speed({self.offset:g}{'' if self.exponent == 1 else f', exponent={self.exponent:g}'})"


def speed(offset: float = 0.0, exponent: float = 1.0) -> Scaling:
    """Return the scaling function ``(|z'| + offset)^-exponent`` (Modin 2009, paper IV, 4.1).

    With the exponent 1, steps have about equal lengths in phase space. For mechanical systems with constraints or
    forces, z' are the velocities; those of rigid bodies include the directors, which are dimensionless.

    Parameters
    ----------
    offset : float, default 0.0
        Nonnegative offset of the phase-space speed, which limits the step size.
    exponent : float, default 1.0
        Exponent of the speed. Smaller exponents, such as 1/3, let the steps vary less.

    Returns
    -------
    Scaling
        Scaling function.

    Examples
    --------
    >>> str(speed(0.01))
    'speed(0.01)'
    """
    return Speed(
        check_nonnegative("offset", offset, allow_strings=False),
        check_positive("exponent", exponent, allow_strings=False),
    )


@dataclass(frozen=True)
class Curvature(Scaling):
    factory: ClassVar[str] = "curvature"
    min_speed: float
    min_rate: float
    exponent: float

    uses_acceleration = True

    def expression(self, model: Model) -> Expr:
        symbols = model.view.symbols
        state = ca.vertcat(*(symbols[name] for name in model.error_norm_variables))
        rate = model.vector_field
        v = rate[: model.n] if isinstance(model, Hamiltonian) else rate
        return self._of_motion(v, ca.jtimes(v, state, rate))

    def _of_motion(self, v: Expr, a: Expr) -> Expr:
        """Return g of a velocity and an acceleration."""
        rate2 = ca.sumsqr(a) / (ca.sumsqr(v) + self.min_speed**2)
        return (rate2 + self.min_rate**2) ** (-self.exponent / 2)

    def for_system(self, system: object, means: StepMeans) -> Expr:
        if means.acceleration is None:
            raise InputError(f"the scaling {self} is a function of the whole step; use it with step-density:<scheme>")
        return self._of_motion(means.v, means.acceleration)

    def __str__(self) -> str:
        return f"curvature({self.min_speed:g}, {self.min_rate:g}, exponent={self.exponent:g})"


def curvature(min_speed: float, min_rate: float, exponent: float = 2 / 3) -> Scaling:
    """Return the scaling function ``(|a|^2/(|v|^2 + min_speed^2) + min_rate^2)^(-exponent/2)`` of a mechanical system.

    The ratio of acceleration and speed is the rate at which the velocity turns and changes: the curvature of the path
    in time. The local error of a delay of the motion is about ``h^3 (|a|/|v|)^2``; it is constant with the exponent
    2/3. The acceleration is that of the equations of motion in the middle of the step.

    Parameters
    ----------
    min_speed : float
        Speed in m/s (for directors of rigid bodies: in 1/s) below which the motion is at rest.
    min_rate : float
        Lower bound of the rate in 1/s, which limits the step size.
    exponent : float, default 2/3
        Exponent of the rate.

    Returns
    -------
    Scaling
        Scaling function.

    Examples
    --------
    >>> str(curvature(0.1, 1.0, exponent=0.5))
    'curvature(0.1, 1, exponent=0.5)'
    """
    return Curvature(
        check_positive("min_speed", min_speed, allow_strings=False),
        check_positive("min_rate", min_rate, allow_strings=False),
        check_positive("exponent", exponent, allow_strings=False),
    )


@dataclass(frozen=True)
class UserScaling(Scaling):
    function: ModelFunction

    def expression(self, model: Model) -> Expr:
        return _trace(model, self.function, {name: model.view.symbols[name] for name in model.error_norm_variables})

    def for_system(self, system: Any, means: StepMeans) -> Expr:
        view = system.view
        g = ca.Function("g", [view.symbols["q"], view.symbols["v"], view.k], [self.expression(system)])
        return g(means.q, means.v, means.k)

    def for_states(self, model: Any, x: Expr, rate: Expr, k: Expr) -> Expr:
        symbol = model.view.symbols["x"]
        return ca.Function("g", [symbol, model.view.k], [_trace(model, self.function, {"x": symbol})])(x, k)

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
