"""Scaling functions of the kinetic and the potential energy (Modin 2009, paper III, 2.1.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from livens.errors import InputError
from livens.models.hamiltonian.model import Hamiltonian
from livens.schemes.scaling.base import Scaling
from livens.types import Expr
from livens.validation import check_number


class EnergyScaling(Scaling):
    """Scaling that is a function of the energies."""

    energies = True

    def expression(self, model: Any) -> Any:
        if not model.separable:
            raise InputError(f"the scaling {self} needs a Hamiltonian given as kinetic and potential energy")
        return self.of_energies(model, model.T, model.V)


@dataclass(frozen=True)
class Kinetic(EnergyScaling):
    factory: ClassVar[str] = "kinetic"
    power: float

    def of_energies(self, model: Hamiltonian, T: Expr, V: Expr) -> Expr:
        return T**self.power

    def __str__(self) -> str:
        return f"kinetic({self.power:g})"


def kinetic(power: float = -0.5) -> Scaling:
    """Return a power of the kinetic energy as scaling function.

    With ``T = |p|^2/2`` and the power -1/2 the steps are equally long in configuration space. Not suitable if the
    kinetic energy vanishes.

    Parameters
    ----------
    power : float, default -0.5
        Exponent of the kinetic energy.

    Returns
    -------
    Scaling
        Scaling function ``T^power``.

    Examples
    --------
    >>> str(kinetic())
    'kinetic(-0.5)'
    """
    return Kinetic(check_number("power", power, allow_strings=False))


@dataclass(frozen=True)
class InverseLagrangian(EnergyScaling):
    factory: ClassVar[str] = "inverse_lagrangian"

    def of_energies(self, model: Hamiltonian, T: Expr, V: Expr) -> Expr:
        return 1 / (T - V)

    def __str__(self) -> str:
        return "inverse_lagrangian()"


def inverse_lagrangian() -> Scaling:
    """Return the scaling function ``1/(T - V)``, for negative potentials.

    Returns
    -------
    Scaling
        Scaling function.

    Examples
    --------
    >>> str(inverse_lagrangian())
    'inverse_lagrangian()'
    """
    return InverseLagrangian()


@dataclass(frozen=True)
class Potential(EnergyScaling):
    factory: ClassVar[str] = "potential"
    power: float
    sign: int
    offset: float

    def of_energies(self, model: Hamiltonian, T: Expr, V: Expr) -> Expr:
        return (self.offset + self.sign * V) ** -self.power

    def __str__(self) -> str:
        return f"potential({self.power:g}, sign={self.sign:+d}, offset={self.offset:g})"


def potential(power: float = 1.5, sign: int = -1, offset: float = 0.0) -> Scaling:
    """Return the scaling function ``(offset + sign V)^-power`` (Modin 2009, paper III, eq. 15).

    Steps are small near singularities of V. For Newtonian gravitation the power 3/2 resolves all close encounters
    equally well.

    Parameters
    ----------
    power : float, default 1.5
        Exponent.
    sign : {-1, 1}, default -1
        -1 for attraction, where V tends to minus infinity, and 1 for repulsion.
    offset : float, default 0.0
        Offset, in joules.

    Returns
    -------
    Scaling
        Scaling function.

    Raises
    ------
    InputError
        If `sign` is not -1 or 1.

    Examples
    --------
    >>> str(potential(0.5, sign=1))
    'potential(0.5, sign=+1, offset=0)'
    """
    if not isinstance(sign, (int, float)) or sign not in (-1, 1):
        raise InputError(f"sign must be -1 or 1, got {sign!r}")
    return Potential(
        check_number("power", power, allow_strings=False), sign, check_number("offset", offset, allow_strings=False)
    )
