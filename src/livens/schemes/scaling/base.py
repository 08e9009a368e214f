"""Base class of scaling functions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.models.hamiltonian.model import Hamiltonian
from livens.models.nambu import Nambu
from livens.types import Expr
from livens.validation import check_nonnegative, check_positive, check_vector

Model = Hamiltonian | Nambu

#: Descriptions of the arguments that a scheme may require of a scaling function, for messages.
SCALING_ARGUMENTS = {
    "energies": "a function of the kinetic and the potential energy",
    "q": "a function of the coordinates alone",
    "state": "a function of the state",
}


class StepMeans(NamedTuple):
    """Values of a mechanical system in the middle of a step. Reversal of time changes the sign of the velocity alone.

    Schemes that evaluate their scaling at one end of a step have no multipliers.
    """

    q: Expr  # coordinates
    v: Expr  # velocities
    t: Expr  # time
    k: Expr  # parameter vector
    unit: Expr  # step size in fictive time
    inverse_effective_mass: Callable[[Expr], Expr]  # ``f.M^-1 f`` of a force f on the coordinates
    multipliers: Expr | None = None  # Lagrange multipliers of the step
    acceleration: Expr | None = None  # acceleration in the middle of the step, for scalings that need it


class Scaling:
    """Sundman scaling function g of the state (time transformation): time step per unit of fictive time."""

    #: True if g is a function of the energies T and V only.
    energies = False
    #: True if g is a function of the acceleration.
    uses_acceleration = False
    #: Name of the function of `livens.scaling` that returns the scaling; empty for user-defined scalings.
    factory: ClassVar[str] = ""

    @property
    def call_text(self) -> str:
        """Call that returns the scaling, for `livens.schemes.scaling.named`; empty for user-defined scalings."""
        if not self.factory:
            return ""
        arguments: list[str] = (
            [item.name for item in dataclasses.fields(self)] if dataclasses.is_dataclass(self) else []
        )
        return f"{self.factory}({', '.join(f'{name}={getattr(self, name)!r}' for name in arguments)})"

    def expression(self, model: Model) -> Expr:
        """Return g as an expression of the state and the parameters of a model.

        Parameters
        ----------
        model : Hamiltonian or Nambu
            Model to integrate.

        Returns
        -------
        casadi.SX
            Scalar expression.
        """
        raise NotImplementedError

    def of_energies(self, model: Hamiltonian, T: Expr, V: Expr) -> Expr:
        """Return g of two expressions for the energies (Modin 2009, paper III, eq. 11).

        Parameters
        ----------
        model : Hamiltonian
            Model to integrate.
        T, V : casadi.SX
            Kinetic and potential energy, in joules.

        Returns
        -------
        casadi.SX
            Scalar expression.

        Raises
        ------
        InputError
            If g is not a function of the energies.
        """
        raise InputError(f"the scaling {self} is not {SCALING_ARGUMENTS['energies']}")

    def for_system(self, system: object, means: StepMeans) -> Expr:
        """Return g of a System.

        Parameters
        ----------
        system : System
            System to integrate.
        means : StepMeans
            Values of the system in the middle of a step.

        Returns
        -------
        casadi.SX
            Scalar expression.

        Raises
        ------
        InputError
            If the scaling does not support Systems, or the scheme does not support the scaling.
        """
        raise InputError(
            f"the scaling {self} is made for models in coordinates and momenta; for a mechanical system with "
            "constraints or forces write a function of the coordinates and velocities, such as scaling=lambda q, v: "
            "..., or use a scaling such as livens.scaling.stiffness"
        )

    def for_states(self, model: object, x: Expr, rate: Expr, k: Expr) -> Expr:
        """Return g of a model of first order, such as a port-Hamiltonian system.

        Parameters
        ----------
        model : DescriptorModel
            Model to integrate.
        x, rate : casadi.SX
            State and its rate in the middle of a step.
        k : casadi.SX
            Parameter vector.

        Returns
        -------
        casadi.SX
            Scalar expression.

        Raises
        ------
        InputError
            If the scaling does not support models of first order.
        """
        raise InputError(
            f"the scaling {self} is not made for models of first order; write a function of the state, such as "
            "scaling=lambda x: ..., or use livens.scaling.speed(offset)"
        )

    def variables(self, model: Model) -> str:
        """Return the variables that g depends on.

        Parameters
        ----------
        model : Hamiltonian or Nambu
            Model to integrate.

        Returns
        -------
        str
            "q", "p", "qp" or ""; "x" for a Nambu system.
        """
        g = self._time_independent(model)
        return "".join(name for name, symbol in _state(model).items() if ca.depends_on(g, symbol))

    def require(self, model: Model, arguments: str, scheme: str) -> None:
        """Raise an error unless g depends only on the arguments that a scheme supports.

        Parameters
        ----------
        model : Hamiltonian or Nambu
            Model to integrate.
        arguments : {"energies", "q", "state"}
            Arguments of g that the scheme supports.
        scheme : str
            Name of the scheme, for the message.

        Raises
        ------
        InputError
            If g depends on other variables.
        """
        variables = self.variables(model)
        if (arguments == "energies" and not self.energies) or (arguments == "q" and variables not in ("q", "")):
            listed = " and ".join(variables) or "nothing"
            raise InputError(
                f"scheme '{scheme}' needs a scaling that is {SCALING_ARGUMENTS[arguments]}; "
                f"the scaling {self} is one of {listed}"
            )

    def evaluate_checked(self, model: Model, parameters: Mapping[str, object] | None = None, **state: object) -> float:
        """Return g in the initial state, after checking that it is finite and positive.

        Parameters
        ----------
        model : Hamiltonian or Nambu
            Model to integrate.
        parameters : mapping of str to float, optional
            Parameter values that differ from those of the model.
        **state : array_like of shape (n,)
            Initial state: ``q=..., p=...`` or ``x=...``.

        Returns
        -------
        float
            Value of g.

        Raises
        ------
        InputError
            If g is not finite and positive, or the state has other names.
        """
        symbols = _state(model)
        if state.keys() != symbols.keys():
            raise InputError(f"the state is given by {' and '.join(symbols)}, got {' and '.join(state) or 'nothing'}")
        values = [check_vector(name, state[name], model.coordinates) for name in symbols]
        g = ca.Function("g", [*symbols.values(), model.k], [self._time_independent(model)])
        value = float(g(*values, model.parameter_vector(parameters)))
        if not (np.isfinite(value) and value > 0):
            raise InputError(
                f"the scaling {self} is {value:g} in the initial state; it must be finite and greater than 0"
            )
        return value

    def _time_independent(self, model: Model) -> Expr:
        g = self.expression(model)
        if ca.depends_on(g, model.view.t):
            raise InputError(
                f"the scaling {self} depends on time, as the energy does; it must depend on the state alone"
            )
        return g


def _state(model: Model) -> dict[str, Expr]:
    """Return the symbols that g may depend on: the error variables of the model."""
    return {name: model.view.symbols[name] for name in model.error_norm_variables}


def check_limit(value: float, strictly_positive: bool = False) -> float:
    """Return a valid lower bound of a squared frequency: nonnegative, or positive with `strictly_positive`."""
    return (check_positive if strictly_positive else check_nonnegative)("min_omega2", value, allow_strings=False)
