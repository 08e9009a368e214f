"""User-defined normal force law."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca

from livens import math as m
from livens.errors import InputError, explain_call_errors
from livens.expressions.parameters import ParameterNamespace
from livens.multibody.contacts.normal_laws.base import NormalLaw
from livens.types import ModelFunction, ScalarLike
from livens.validation import check_number, check_positive

if TYPE_CHECKING:
    from livens.multibody.contacts.shapes import CollisionShape

#: Number of depths at which a law is checked.
_SAMPLES = 40


@explain_call_errors
@dataclass(frozen=True)
class CustomLaw(NormalLaw):
    """User-defined law: energy as a function of the penetration depth; its derivative is the normal force.

    Parameters
    ----------
    energy : callable
        Function ``energy(depth)``, or with parameters ``energy(depth, k)``, in J. It must be zero at depth zero, with a
        positive derivative.
    parameters : mapping of str to float, optional
        Parameters of the function.
    max_depth : float, default 1e-3
        Largest depth in m at which the function is checked.

    Raises
    ------
    InputError
        If the energy is not zero at depth zero, or does not increase.

    Examples
    --------
    >>> law = CustomLaw(lambda depth, k: k.c * depth**3 / 3, parameters=dict(c=5.0))
    >>> float(law.force(0.2, ParameterNamespace(dict(c=5.0))))
    0.2
    """

    function: ModelFunction
    parameters_: tuple[tuple[str, float], ...] = ()
    max_depth: float = 1e-3

    def __init__(
        self, energy: ModelFunction, parameters: Mapping[str, float] | None = None, max_depth: float = 1e-3
    ) -> None:
        if not callable(energy):
            raise InputError(f"the energy of a contact must be a function of the depth, got {energy!r}")
        if parameters is not None and not isinstance(parameters, Mapping):
            raise InputError(f"the parameters of a law must map names to numbers, got {parameters!r}")
        values = tuple((str(name), check_number(f"parameter '{name}'", x)) for name, x in (parameters or {}).items())
        object.__setattr__(self, "function", energy)
        object.__setattr__(self, "parameters_", values)
        object.__setattr__(self, "max_depth", check_positive("max_depth", max_depth, allow_strings=False))
        self._check()

    def _check(self) -> None:
        k = ParameterNamespace(dict(self.parameters_))
        try:
            at_zero, at_end = (float(self.energy(x, k)) for x in (0.0, self.max_depth))
            forces = [float(self.force(self.max_depth * i / _SAMPLES, k)) for i in range(1, _SAMPLES + 1)]
        except InputError:
            raise
        except Exception as error:  # any exception of the user's function
            raise InputError(f"the energy of a contact: {type(error).__name__}: {error}") from error
        if not abs(at_zero) <= 1e-12 * abs(at_end):
            raise InputError(f"the energy of a contact must be zero at depth zero, got {at_zero:g}")
        if not all(math.isfinite(force) and force > 0 for force in forces):
            raise InputError("the energy of a contact must increase with the depth: its derivative is the normal force")

    def parameters(self, name: str, shape_a: CollisionShape, shape_b: CollisionShape) -> dict[str, Any]:
        """Return the parameters of the function."""
        return dict(self.parameters_)

    def energy(self, depth: ScalarLike, k: ParameterNamespace) -> Any:
        """Return the energy stored at a penetration depth."""
        return self.function(depth, k) if self.parameters_ else self.function(depth)

    def force(self, depth: Any, k: ParameterNamespace) -> Any:
        """Return the normal force, the derivative of the energy by the depth."""
        symbol = ca.SX.sym("depth")
        derivative = ca.gradient(m.to_casadi(self.energy(m.Scalar(symbol), k)), symbol)
        return m.Scalar(ca.substitute(derivative, symbol, m.to_casadi(depth)))

    def collision_frequency(self, values: Mapping[str, float], mass: float, speed: float) -> float:
        """Return the angular frequency of a collision, from the stiffness at the largest checked depth."""
        k = ParameterNamespace({name: float(x) for name, x in values.items() if is_scalar(x)})
        forces = [float(self.force(x * self.max_depth, k)) for x in (0.99, 1.01)]
        return math.sqrt(max(forces[1] - forces[0], 0.0) / (0.02 * self.max_depth) / mass)


def is_scalar(x: float) -> bool:
    """Return whether a value is a scalar."""
    return getattr(x, "shape", ()) == ()
