"""The contract of a scaling function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.expressions.numbers import not_negative, positive, vector
from livens.models.hamiltonian.model import Hamiltonian
from livens.models.nambu import Nambu

Model = Hamiltonian | Nambu

#: What a scheme may want a scaling to be a function of, in words for messages.
WANTS = {
    "energies": "a function of the kinetic and the potential energy",
    "q": "a function of the coordinates alone",
    "state": "a function of the state",
}


class Scaling:
    """How long a step is in time for one unit of fictive time, as a function g of the state."""

    #: Whether g is a function of the energies T and V alone.
    energies = False

    def expression(self, model: Model) -> Any:
        """g, as an expression of the model's state and parameters."""
        raise NotImplementedError

    def of_energies(self, model: Hamiltonian, T: Any, V: Any) -> Any:
        """g, of any two expressions that stand for the energies (S003 paper III, eq. 11)."""
        raise InputError(f"the scaling {self} is not {WANTS['energies']}")

    def of_system(self, system: Any, q: Any, v: Any, k: Any, mobility: Any, unit: Any) -> Any:
        """g of a system that is taken element by element; `mobility` says ``f.M^-1 f`` of forces on the coordinates."""
        raise InputError(
            f"the scaling {self} is made for models in coordinates and momenta; for bodies and joints there are "
            "livens.scaling.stiffness and livens.scaling.stiffness_estimate"
        )

    def variables(self, model: Model) -> str:
        """What g depends on: "q", "p", "qp", or nothing; "x" for a Nambu system."""
        g = self._without_time(model)
        return "".join(name for name, symbol in _state(model).items() if ca.depends_on(g, symbol))

    def require(self, model: Model, wants: str, scheme: str) -> None:
        """InputError, unless g is what a scheme wants: one of "energies", "q" and "state"."""
        variables = self.variables(model)
        if (wants == "energies" and not self.energies) or (wants == "q" and variables not in ("q", "")):
            listed = " and ".join(variables) or "nothing"
            raise InputError(
                f"scheme '{scheme}' needs a scaling that is {WANTS[wants]}; the scaling {self} is one of {listed}"
            )

    def checked(self, model: Model, parameters: Mapping[str, Any] | None = None, **state: Any) -> float:
        """g in the initial state, given as ``q=..., p=...`` or ``x=...``; InputError if no step can be made of it."""
        symbols = _state(model)
        if state.keys() != symbols.keys():
            raise InputError(f"the state is given by {' and '.join(symbols)}, got {' and '.join(state) or 'nothing'}")
        numbers = [vector(name, state[name], model.coordinates) for name in symbols]
        g = ca.Function("g", [*symbols.values(), model.k], [self._without_time(model)])
        value = float(g(*numbers, model.parameter_vector(parameters)))
        if not (np.isfinite(value) and value > 0):
            raise InputError(
                f"the scaling {self} is {value:g} in the initial state; it must be finite and greater than 0"
            )
        return value

    def _without_time(self, model: Model) -> Any:
        g = self.expression(model)
        if ca.depends_on(g, model.view.t):
            raise InputError(
                f"the scaling {self} depends on time, as the energy does; it must depend on the state alone"
            )
        return g


def _state(model: Model) -> dict[str, Any]:
    """The symbols g may depend on: those that errors of the model are measured in."""
    return {name: model.view.symbols[name] for name in model.error_variables}


def limit_of(given: float, least: bool = False) -> float:
    """A lower bound for a frequency squared: not negative, or, at `least`, greater than zero."""
    return (positive if least else not_negative)("limit", given, text=False)
