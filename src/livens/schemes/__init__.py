"""Time-stepping schemes. One file each; `get` finds a scheme by its name.

>>> from livens import schemes
>>> em = schemes.get("livens-em")
>>> em.order, em.symmetric, em.symplectic
(2, True, False)
"""

from __future__ import annotations

import functools
import importlib
import pkgutil

from livens.errors import InputError, suggestion
from livens.schemes.base import Scheme
from livens.system import System

__all__ = ["Scheme", "all", "fitting", "get", "require"]


@functools.cache
def _registry() -> dict[str, type[Scheme]]:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return dict(sorted(Scheme._registry.items()))


def all() -> list[Scheme]:
    """Every scheme there is."""
    return [kind() for kind in _registry().values()]


def get(name: str | Scheme) -> Scheme:
    """The scheme of this name."""
    if isinstance(name, Scheme):
        return name
    if not isinstance(name, str):
        raise InputError(f"scheme must be a name, got {name!r}")
    if name not in _registry():
        raise InputError(f"unknown scheme '{name}'{suggestion(name, _registry())}")
    return _registry()[name]()


def fitting(system: System) -> list[str]:
    """The names of the schemes that fit a system."""
    return [scheme.name for scheme in all() if not scheme.missing(system)]


def require(scheme: Scheme, system: System) -> None:
    """Raise an error that says what is missing if the scheme does not fit the system."""
    missing = scheme.missing(system)
    if missing:
        raise InputError(
            f"scheme '{scheme.name}' needs {' and '.join(missing)}; schemes that fit: {', '.join(fitting(system))}"
        )
