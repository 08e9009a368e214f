"""Discrete gradients: look-up by name (`get`), also of user-defined ones.

>>> from livens.schemes import gradients
>>> gradient = gradients.get("itoh-abe")
>>> gradient.order, gradient.symmetric, gradient.momenta
(1, False, ('cyclic',))
"""

from __future__ import annotations

from livens.errors import InputError, suggestion
from livens.schemes.gradients.base import DiscreteGradient
from livens.schemes.gradients.equivariant import Equivariant
from livens.schemes.gradients.gonzalez import Gonzalez
from livens.schemes.gradients.itoh_abe import ItohAbe
from livens.schemes.gradients.mean_value import MeanValue

__all__ = ["DiscreteGradient", "Equivariant", "Gonzalez", "ItohAbe", "MeanValue", "all", "get"]


def all() -> list[DiscreteGradient]:
    """Return all registered discrete gradients, sorted by name."""
    return [gradient_class() for _, gradient_class in sorted(DiscreteGradient.registry.items())]


def get(name: str | DiscreteGradient) -> DiscreteGradient:
    """Return the discrete gradient with a name.

    Parameters
    ----------
    name : str or DiscreteGradient
        Name; a `DiscreteGradient` is returned unchanged.

    Returns
    -------
    DiscreteGradient
        The discrete gradient.

    Raises
    ------
    InputError
        If the name is unknown.
    """
    if isinstance(name, DiscreteGradient):
        return name
    if not isinstance(name, str):
        raise InputError(f"a discrete gradient must be an object or a name, got {name!r}")
    if name not in DiscreteGradient.registry:
        raise InputError(f"unknown discrete gradient '{name}'{suggestion(name, DiscreteGradient.registry)}")
    return DiscreteGradient.registry[name]()
