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
import re
from typing import Any

from livens.errors import InputError, suggestion
from livens.schemes.base import Scheme
from livens.schemes.recipes.composition import compose

__all__ = ["Scheme", "all", "compose", "fitting", "get", "require"]

#: What may stand for the parts of a family's name in brackets; anything else is a number.
_WHOLE, _NAME, _NUMBER = r"(\d+)", r"(.+)", r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
_PARTS = {"s": (_WHOLE, int), "order": (_WHOLE, int), "scheme": (_NAME, str)}


@functools.cache
def _registry() -> dict[str, type[Scheme]]:
    for module in pkgutil.walk_packages(__path__, f"{__name__}."):
        importlib.import_module(module.name)
    return dict(sorted(Scheme._registry.items()))


@functools.cache
def _families() -> list[tuple[re.Pattern[str], list[Any], type[Scheme]]]:
    """Pattern of the name, what its parts are, and the class; the longest first, as one may begin like another."""
    _registry()
    families = []
    for family, kind in sorted(Scheme._families.items(), key=lambda item: -len(item[0])):
        parts = [_PARTS.get(part, (_NUMBER, float)) for part in re.findall("<(.+?)>", family)]
        words = re.split("<.+?>", family)
        pattern = "".join(re.escape(word) + (parts[i][0] if i < len(parts) else "") for i, word in enumerate(words))
        families.append((re.compile(pattern), [convert for _, convert in parts], kind))
    return families


def all() -> list[Scheme]:
    """Every scheme there is; of families, the members usually wanted."""
    members = [kind(*arguments) for _, _, kind in _families() for arguments in kind.examples]
    return sorted([*(kind() for kind in _registry().values()), *members], key=lambda scheme: scheme.name)


def names() -> list[str]:
    """What a scheme can be called: names, and patterns such as ``gauss-<s>`` of families."""
    return sorted([*_registry(), *Scheme._families])


def get(name: str | Scheme) -> Scheme:
    """The scheme of this name."""
    if isinstance(name, Scheme):
        return name
    if not isinstance(name, str):
        raise InputError(f"scheme must be a name, got {name!r}")
    if name in _registry():
        return _registry()[name]()
    for pattern, converts, kind in _families():
        if found := pattern.fullmatch(name):
            return kind(*(convert(text) for convert, text in zip(converts, found.groups(), strict=True)))
    raise InputError(f"unknown scheme '{name}'{suggestion(name, [*names(), *(scheme.name for scheme in all())])}")


def fitting(model: Any) -> list[str]:
    """The names of the schemes that fit a model."""
    return [scheme.name for scheme in all() if not scheme.missing(model)]


def require(scheme: Scheme, model: Any) -> None:
    """Raise an error that says what is missing if the scheme does not fit the model."""
    missing = scheme.missing(model)
    if missing:
        fits = ", ".join(fitting(model))
        raise InputError(f"scheme '{scheme.name}' needs {' and '.join(missing)}; schemes that fit: {fits}")
