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
from pathlib import Path
from typing import Any

from livens.errors import InputError, explain_call_errors
from livens.schemes.core.name_template import name_template
from livens.schemes.core.scheme import Scheme

#: Preferred schemes, in the order in which error messages suggest them.
PREFERRED = (
    "livens-em livens-variational implicit-midpoint stormer-verlet gauss-2 radau-iia-3 lobatto-iiia-iiib-3 murua-ggl-2 "
    "livens-midpoint symplectic-euler nambu-t lobatto-iiic-3 gauss-3 yoshida-4:stormer-verlet variational-sym:0.25"
).split()
#: Maximum number of schemes suggested in an error message.
_MAX_SUGGESTED = 6


def all() -> list[Scheme]:
    """Return all registered schemes, with the example members of every family.

    Returns
    -------
    list of Scheme
        Schemes sorted by name.
    """
    _import_all_schemes()
    members = [
        scheme_class(*arguments) for scheme_class in Scheme._families.values() for arguments in scheme_class.examples
    ]
    named = [scheme_class() for scheme_class in Scheme._registry.values()]
    schemes = {scheme.name: scheme for scheme in [*members, *named]}  # a registered name has priority over a member
    return [schemes[name] for name in sorted(schemes)]


def names() -> list[str]:
    """Return the names of the schemes and the name templates of the families, such as ``gauss-<s>``.

    Returns
    -------
    list of str
        Sorted names and templates.
    """
    _import_all_schemes()
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
    _import_all_schemes()
    names_by_alias: dict[str, str] = {}
    for name, scheme_class in [*Scheme._registry.items(), *Scheme._families.items()]:
        names_by_alias |= dict.fromkeys(scheme_class.__dict__.get("aliases", ()), name)
        names_by_alias |= {
            alias: scheme_class(*arguments).name
            for alias, arguments in scheme_class.__dict__.get("member_aliases", {}).items()
        }
    return dict(sorted(names_by_alias.items()))


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
    if not _import_module_of(name):
        _import_all_schemes()
    if name in Scheme._registry:
        return Scheme._registry[name]()
    # longest template first, as one template may be a prefix of another
    for family, scheme_class in sorted(Scheme._families.items(), key=lambda item: -len(item[0])):
        if (arguments := name_template(family).parse(name)) is not None:
            return scheme_class(*arguments)
    scheme = _lookup_alias(name)
    if scheme is None:
        raise InputError(f"unknown scheme '{name}'{_did_you_mean(name)}")
    return scheme


@explain_call_errors
def compatible(model: object) -> list[str]:
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
    if not hasattr(model, "formulations"):
        raise InputError(f"expected a model, such as a System, got {model!r}")
    return [scheme.name for scheme in all() if not scheme.unmet_requirements(model)]


@explain_call_errors
def check_compatible(scheme: Scheme, model: object) -> None:
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
    if not isinstance(scheme, Scheme) or not hasattr(model, "formulations"):
        raise InputError(f"expected a Scheme and a model, such as a System, got {scheme!r} and {model!r}")
    unmet = scheme.unmet_requirements(model)
    if unmet:
        raise InputError(f"scheme '{scheme.name}' needs {' and '.join(unmet)}; {_suggest_compatible(model)}")


def _suggest_compatible(model: object) -> str:
    """Return a message that suggests compatible schemes: the default scheme of the model, then `PREFERRED`."""
    suggested = list(itertools.islice(_compatible_by_preference(model), _MAX_SUGGESTED + 1))
    if not suggested:
        return "there is no compatible scheme"
    remainder = " and others" if len(suggested) > _MAX_SUGGESTED else ""
    return f"compatible schemes: {', '.join(suggested[:_MAX_SUGGESTED])}{remainder}"


def _compatible_by_preference(model: Any) -> Iterator[str]:
    """Yield the names of all compatible schemes, in order of preference."""
    remaining = (scheme.name for scheme in all() if not scheme.fictive)
    for name in dict.fromkeys(itertools.chain([model.default_scheme], PREFERRED, remaining)):
        if not get(name).unmet_requirements(model):
            yield name


def _lookup_alias(name: str) -> Scheme | None:
    for scheme_class in Scheme._registry.values():
        if name in scheme_class.__dict__.get("aliases", ()):
            return scheme_class()
    for scheme_class in Scheme._families.values():
        declared = scheme_class.__dict__
        if name in declared.get("member_aliases", {}):
            return scheme_class(*declared["member_aliases"][name])
        for alias in declared.get("aliases", ()):
            if (arguments := name_template(alias).parse(name)) is not None:
                return scheme_class(*arguments)
    return None


def _did_you_mean(name: str) -> str:
    candidates = {*names(), *aliases(), *(scheme.name for scheme in all())}
    close = difflib.get_close_matches(name, sorted(candidates), n=1)
    return f"; did you mean '{close[0]}'?" if close else "; `livens list schemes` lists all schemes"


@functools.cache
def _modules_by_stem() -> dict[str, str]:
    """Return the modules of the package by the last part of their names."""
    root = Path(__file__).parents[1]
    files = (path.relative_to(root.parents[1]).with_suffix("") for path in root.rglob("*.py"))
    return {path.name: ".".join(path.parts) for path in files}


def _import_module_of(name: str) -> bool:
    """Import the module that is named after a scheme; return True if the scheme is registered.

    The import of one module takes a fraction of the time of all schemes.
    """
    module = _modules_by_stem().get(name.replace("-", "_"))
    if module is not None:
        importlib.import_module(module)
    return module is not None and name in Scheme._registry


@functools.cache
def _import_all_schemes() -> None:
    """Import all modules of the package once, which registers the schemes defined in them."""
    package = importlib.import_module("livens.schemes")
    for module in pkgutil.walk_packages(package.__path__, "livens.schemes."):
        importlib.import_module(module.name)
