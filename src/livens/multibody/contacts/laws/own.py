"""A law of one's own: any energy of the depth."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import casadi as ca

from livens import math as m
from livens.errors import InputError
from livens.expressions.numbers import number, positive
from livens.expressions.parameters import Namespace
from livens.multibody.contacts.laws.base import Law

if TYPE_CHECKING:
    from livens.multibody.contacts.shape import Shape

#: At how many depths a law is looked at before it is believed.
_LOOKS = 40


@dataclass(frozen=True)
class Own(Law):
    """The energy is a function of the depth, ``energy(depth)``; with parameters, ``energy(depth, k)``.

    It must be zero at depth zero and grow: its slope is the force. `deepest` is how far it is looked at to see that.

    >>> law = Own(lambda depth, k: k.c * depth**3 / 3, parameters=dict(c=5.0))
    >>> float(law.force(0.2, Namespace(dict(c=5.0))))
    0.2
    """

    function: Callable[..., Any]
    parameters_: tuple[tuple[str, float], ...] = ()
    deepest: float = 1e-3

    def __init__(
        self, energy: Callable[..., Any], parameters: Mapping[str, float] | None = None, deepest: float = 1e-3
    ) -> None:
        if not callable(energy):
            raise InputError(f"the energy of a contact must be a function of the depth, got {energy!r}")
        if parameters is not None and not isinstance(parameters, Mapping):
            raise InputError(f"the parameters of a law must map names to numbers, got {parameters!r}")
        values = tuple((str(name), number(f"parameter '{name}'", x)) for name, x in (parameters or {}).items())
        object.__setattr__(self, "function", energy)
        object.__setattr__(self, "parameters_", values)
        object.__setattr__(self, "deepest", positive("deepest", deepest, text=False))
        self._check()

    def _check(self) -> None:
        k = Namespace(dict(self.parameters_))
        try:
            at_zero, at_end = (float(self.energy(x, k)) for x in (0.0, self.deepest))
            slopes = [float(self.force(self.deepest * i / _LOOKS, k)) for i in range(1, _LOOKS + 1)]
        except InputError:
            raise
        except Exception as error:  # whatever a user's function raises is its own fault
            raise InputError(f"the energy of a contact: {type(error).__name__}: {error}") from error
        if not abs(at_zero) <= 1e-12 * abs(at_end):
            raise InputError(f"the energy of a contact must be zero where bodies just touch, got {at_zero:g}")
        if not all(math.isfinite(slope) and slope > 0 for slope in slopes):
            raise InputError("the energy of a contact must grow with the depth: its slope is what pushes")

    def parameters(self, name: str, first: Shape, second: Shape) -> dict[str, Any]:
        return dict(self.parameters_)

    def energy(self, depth: Any, k: Any) -> Any:
        return self.function(depth, k) if self.parameters_ else self.function(depth)

    def force(self, depth: Any, k: Any) -> Any:
        at = ca.SX.sym("depth")
        slope = ca.gradient(m.expression(self.energy(m.Scalar(at), k)), at)
        return m.Scalar(ca.substitute(slope, at, m.expression(depth)))

    def frequency(self, values: Mapping[str, Any], mass: float, speed: float) -> float:
        """By the slope of the force at the deepest that was looked at."""
        k = Namespace({name: float(x) for name, x in values.items() if np_scalar(x)})
        forces = [float(self.force(x * self.deepest, k)) for x in (0.99, 1.01)]
        return math.sqrt(max(forces[1] - forces[0], 0.0) / (0.02 * self.deepest) / mass)


def np_scalar(x: Any) -> bool:
    """One number, as parameters of laws are."""
    return getattr(x, "shape", ()) == ()
