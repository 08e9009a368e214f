"""Registry of schemes: look-up by name, alias or family template, and selection by compatibility with a model.

Importing the modules of `livens.schemes` registers the built-in schemes, once. A scheme that is defined later, in a
script, a test or a notebook, is registered at its definition; a scheme with the same name is replaced.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import itertools
import pkgutil
from collections.abc import Iterator
from typing import Any

from livens.errors import InputError
from livens.schemes.base import Scheme
from livens.schemes.patterns import pattern

#: Preferred schemes, in the order in which error messages suggest them.
USUAL = (
    "livens-em livens-variational implicit-midpoint stormer-verlet gauss-2 radau-iia-3 lobatto-iiia-iiib-3 murua-ggl-2 "
    "livens-midpoint symplectic-euler nambu-t lobatto-iiic-3 gauss-3 yoshida-4:stormer-verlet variational-sym:0.25"
).split()
#: Maximum number of schemes suggested in an error message.
_MOST = 6


def all() -> list[Scheme]:
    """Return all registered schemes, with the example members of every family.

    Returns
    -------
    list of Scheme
        Schemes sorted by name.
    """
    _read_files()
    members = [kind(*arguments) for kind in Scheme._families.values() for arguments in kind.examples]
    named = [kind() for kind in Scheme._registry.values()]
    found = {scheme.name: scheme for scheme in [*members, *named]}  # a registered name has priority over a member
    return [found[name] for name in sorted(found)]


def names() -> list[str]:
    """Return the names of the schemes and the name templates of the families, such as ``gauss-<s>``.

    Returns
    -------
    list of str
        Sorted names and templates.
    """
    _read_files()
    return sorted([*Scheme._registry, *Scheme._families])


def aliases() -> dict[str, str]:
    """Return the aliases of schemes, such as abbreviations used in the literature.

    Returns
    -------
    dict of str to str
        Names or name templates of the schemes, by alias.

    Examples
    --------
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
    """Return the scheme with a name.

    Parameters
    ----------
    name : str or Scheme
        Name or alias of a scheme; a `Scheme` is returned unchanged.

    Returns
    -------
    Scheme
        The scheme.

    Raises
    ------
    InputError
        If the name is unknown. The message suggests the closest name.

    Examples
    --------
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
    # longest template first, as one template may be a prefix of another
    for family, kind in sorted(Scheme._families.items(), key=lambda item: -len(item[0])):
        if (arguments := pattern(family).arguments(name)) is not None:
            return kind(*arguments)
    found = _by_alias(name)
    if found is None:
        raise InputError(f"unknown scheme '{name}'{_closest(name)}")
    return found


def fitting(model: Any) -> list[str]:
    """Return the names of the schemes that are compatible with a model.

    Parameters
    ----------
    model : Model
        Model to integrate.

    Returns
    -------
    list of str
        Names of compatible schemes; of families, the example members.

    Raises
    ------
    InputError
        If `model` is not a model.
    """
    if not hasattr(model, "forms"):
        raise InputError(f"expected a model, such as a System, got {model!r}")
    return [scheme.name for scheme in all() if not scheme.missing(model)]


def require(scheme: Scheme, model: Any) -> None:
    """Raise an error if a scheme is not compatible with a model.

    Parameters
    ----------
    scheme : Scheme
        Scheme.
    model : Model
        Model to integrate.

    Raises
    ------
    InputError
        If the model does not meet the requirements of the scheme, or an argument has the wrong type.
    """
    if not isinstance(scheme, Scheme) or not hasattr(model, "forms"):
        raise InputError(f"expected a Scheme and a model, such as a System, got {scheme!r} and {model!r}")
    missing = scheme.missing(model)
    if missing:
        raise InputError(f"scheme '{scheme.name}' needs {' and '.join(missing)}; {_some_that_fit(model)}")


def _some_that_fit(model: Any) -> str:
    """Return a message that suggests compatible schemes: the default scheme of the model, then `PREFERRED`."""
    few = list(itertools.islice(_by_use(model), _MOST + 1))
    if not few:
        return "there is no compatible scheme"
    return f"compatible schemes: {', '.join(few[:_MOST])}{' and others' if len(few) > _MOST else ''}"


def _by_use(model: Any) -> Iterator[str]:
    """Yield the names of all compatible schemes, in order of preference."""
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
    return f"; did you mean '{close[0]}'?" if close else "; `livens list schemes` lists all schemes"


@functools.cache
def _read_files() -> None:
    """Import all modules of the package once, which registers the schemes defined in them."""
    package = importlib.import_module("livens.schemes")
    for module in pkgutil.walk_packages(package.__path__, "livens.schemes."):
        importlib.import_module(module.name)
