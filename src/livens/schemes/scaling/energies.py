"""Scalings by the kinetic and the potential energy (S003 paper III, 2.1.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from livens.errors import InputError
from livens.expressions.numbers import number
from livens.models.hamiltonian.model import Hamiltonian
from livens.schemes.scaling.base import Scaling


class OfEnergies(Scaling):
    """A scaling that is a function of the energies."""

    energies = True

    def expression(self, model: Any) -> Any:
        if not model.separable:
            raise InputError(f"the scaling {self} needs a Hamiltonian given as kinetic and potential energy")
        return self.of_energies(model, model.T, model.V)


@dataclass(frozen=True)
class Kinetic(OfEnergies):
    power: float

    def of_energies(self, model: Hamiltonian, T: Any, V: Any) -> Any:
        return T**self.power

    def __str__(self) -> str:
        return f"kinetic({self.power:g})"


def kinetic(power: float = -0.5) -> Scaling:
    """A power of the kinetic energy.

    With ``T = |p|^2/2`` and the power -1/2 steps are equally long in space, as |q'| is then constant in fictive time.
    Of no use where the motion comes to rest.

    >>> str(kinetic())
    'kinetic(-0.5)'
    """
    return Kinetic(number("power", power, text=False))


@dataclass(frozen=True)
class InverseLagrangian(OfEnergies):
    def of_energies(self, model: Hamiltonian, T: Any, V: Any) -> Any:
        return 1 / (T - V)

    def __str__(self) -> str:
        return "inverse_lagrangian()"


def inverse_lagrangian() -> Scaling:
    """``1/(T - V)``, for potentials that are negative.

    >>> str(inverse_lagrangian())
    'inverse_lagrangian()'
    """
    return InverseLagrangian()


@dataclass(frozen=True)
class Potential(OfEnergies):
    power: float
    sign: int
    offset: float

    def of_energies(self, model: Hamiltonian, T: Any, V: Any) -> Any:
        return (self.offset + self.sign * V) ** -self.power

    def __str__(self) -> str:
        return f"potential({self.power:g}, sign={self.sign:+d}, offset={self.offset:g})"


def potential(power: float = 1.5, sign: int = -1, offset: float = 0.0) -> Scaling:
    """``(offset + sign V)^-power``: small steps near singularities of V (S003 paper III, eq. 15).

    The sign is -1 for attraction, where V goes to minus infinity, and 1 for repulsion. For Newton's gravitation the
    power 3/2 makes all close encounters alike.

    >>> str(potential(0.5, sign=1))
    'potential(0.5, sign=+1, offset=0)'
    """
    if not isinstance(sign, (int, float)) or sign not in (-1, 1):
        raise InputError(f"sign must be -1 or 1, got {sign!r}")
    return Potential(number("power", power, text=False), sign, number("offset", offset, text=False))
