"""Where schemes are found: by name, by the pattern of their family, and by the models they fit.

Nothing is remembered here but that the files of this folder have been read once. A scheme that is defined later, in a
script, a test or a notebook, is found and listed from then on; one with a known name takes the place of the known one.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import itertools
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from livens.errors import InputError
from livens.schemes.base import Scheme
from livens.schemes.patterns import pattern

#: What to try first where another scheme does not fit: the usual ones of every kind.
USUAL = (
    "livens-em livens-variational implicit-midpoint stormer-verlet gauss-2 radau-iia-3 lobatto-iiia-iiib-3 murua-ggl-2 "
    "livens-midpoint symplectic-euler nambu-t lobatto-iiic-3 gauss-3 yoshida-4:stormer-verlet variational-sym:0.25"
).split()
#: A message names no more than this.
_MOST = 6


def all() -> list[Scheme]:
    """Every scheme there is; of families, the members that they give as examples."""
    _read_files()
    members = [kind(*arguments) for kind in Scheme._families.values() for arguments in kind.examples]
    named = [kind() for kind in Scheme._registry.values()]
    found = {scheme.name: scheme for scheme in [*members, *named]}  # a name of its own goes before that of a member
    return [found[name] for name in sorted(found)]


def names() -> list[str]:
    """What a scheme can be called: names, and patterns such as ``gauss-<s>`` of families."""
    _read_files()
    return sorted([*Scheme._registry, *Scheme._families])


def aliases() -> dict[str, str]:
    """Other names of schemes, such as short names in the literature, and what they stand for.

    >>> aliases()["EML"], aliases()["J-PRK"], aliases()["J-PRK-<s>"]
    ('livens-em', 'lobatto-iiia-iiib-3', 'lobatto-iiia-iiib-<s>')
    """
    _read_files()
    found: dict[str, str] = {}
    for name, kind in [*Scheme._registry.items(), *Scheme._families.items()]:
        found |= dict.fromkeys(kind.__dict__.get("aliases", ()), name)
        found |= {alias: kind(*arguments).name for alias, arguments in kind.__dict__.get("nicknames", {}).items()}
    return dict(sorted(found.items()))


def get(name: str | Scheme) -> Scheme:
    """The scheme of this name.

    >>> get("gauss-3").order, get("EML").name
    (6, 'livens-em')
    """
    if isinstance(name, Scheme):
        return name
    if not isinstance(name, str):
        raise InputError(f"scheme must be a name, got {name!r}")
    _read_files()
    if name in Scheme._registry:
        return Scheme._registry[name]()
    # the longest pattern first, as one may begin like another
    for family, kind in sorted(Scheme._families.items(), key=lambda item: -len(item[0])):
        if (arguments := pattern(family).arguments(name)) is not None:
            return kind(*arguments)
    found = _by_alias(name)
    if found is None:
        raise InputError(f"unknown scheme '{name}'{_closest(name)}")
    return found


def fitting(model: Any) -> list[str]:
    """The names of the schemes that fit a model."""
    if not hasattr(model, "forms"):
        raise InputError(f"schemes fit models, such as a System, not {model!r}")
    return [scheme.name for scheme in all() if not scheme.missing(model)]


def require(scheme: Scheme, model: Any) -> None:
    """Raise an error that says what is missing if the scheme does not fit the model."""
    if not isinstance(scheme, Scheme) or not hasattr(model, "forms"):
        raise InputError(f"a scheme fits a model, such as a System, or not: got {scheme!r} and {model!r}")
    missing = scheme.missing(model)
    if missing:
        raise InputError(f"scheme '{scheme.name}' needs {' and '.join(missing)}; {_some_that_fit(model)}")


def _some_that_fit(model: Any) -> str:
    """A few schemes that fit a model, in words: the usual one of the model first, then the usual ones of each kind."""
    few = list(itertools.islice(_by_use(model), _MOST + 1))
    if not few:
        return "there is no scheme that fits"
    return f"schemes that fit: {', '.join(few[:_MOST])}{' and others' if len(few) > _MOST else ''}"


def _by_use(model: Any) -> Iterator[str]:
    """All that fit, those first that are tried first."""
    others = (scheme.name for scheme in all() if not scheme.fictive)
    for name in dict.fromkeys(itertools.chain([model.usual_scheme], USUAL, others)):
        if not get(name).missing(model):
            yield name


def _by_alias(name: str) -> Scheme | None:
    for kind in Scheme._registry.values():
        if name in kind.__dict__.get("aliases", ()):
            return kind()
    for kind in Scheme._families.values():
        own = kind.__dict__
        if name in own.get("nicknames", {}):
            return kind(*own["nicknames"][name])
        for alias in own.get("aliases", ()):
            if (arguments := pattern(alias).arguments(name)) is not None:
                return kind(*arguments)
    return None


def _closest(name: str) -> str:
    known = {*names(), *aliases(), *(scheme.name for scheme in all())}
    close = difflib.get_close_matches(name, sorted(known), n=1)
    return f"; did you mean '{close[0]}'?" if close else "; `livens list schemes` shows what there is"


@functools.cache
def _read_files() -> None:
    """Import every file of this folder, once: that defines the schemes in it."""
    for module in pkgutil.walk_packages([str(Path(__file__).parent)], f"{__package__}."):
        importlib.import_module(module.name)
