"""How loops are compiled: by Numba, once per machine, and without the lock that keeps threads apart.

Numba keeps compiled loops beside the source, else in the user's cache folder. Where it can write to neither, it does
not only not keep them but refuses to compile: then they are kept where our own code is kept, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba as nb

from livens.engine import cache

F = TypeVar("F", bound=Callable[..., Any])
#: Other threads may work, and a division by zero gives infinity or NaN, which the residual test sees.
_HOW = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def jit(function: F) -> F:
    """Compile a function when it is first called, or take it from where it is kept."""
    return _compiled(function, _HOW)


def fast_jit(function: F) -> F:
    """As `jit`, for sums whose terms may be taken in another order, several at a time."""
    return _compiled(function, {**_HOW, "fastmath": {"reassoc", "contract"}})


def _compiled(function: F, how: dict[str, Any]) -> F:
    try:
        return nb.njit(cache=True, **how)(function)
    except (RuntimeError, OSError, KeyError):  # nowhere to keep it, or no home to look for a place in
        inside = cache.folder()
    if inside is not None:
        nb.config.CACHE_DIR = str(inside / "loops")
        try:
            return nb.njit(cache=True, **how)(function)
        except (RuntimeError, OSError, KeyError):
            pass
    return nb.njit(**how)(function)


def ready(function: Callable[..., Any]) -> bool:
    """Whether a function has been called: the first call compiles it, or reads what is kept of it."""
    return bool(getattr(function, "overloads", ()))
