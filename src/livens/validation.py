"""Validation of user input: finite numbers, shapes, ranges, choices and paths; invalid input raises `InputError`.

`name` is the label of the value in the error message: ``h``, ``q0``, ``link a-b: the length``.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np

from livens.errors import InputError

#: Vectors up to this size are tested with Python floats, which is faster than NumPy.
_SMALL_SIZE = 32


#: Folder outside of which no file is read, if any.
_READABLE_FOLDER: ContextVar[Path | None] = ContextVar("readable_folder", default=None)


@contextmanager
def readable_files_within(folder: Path) -> Iterator[None]:
    """Restrict the files that models refer to (robots, meshes, included files) to a folder."""
    token = _READABLE_FOLDER.set(folder.resolve())
    try:
        yield
    finally:
        _READABLE_FOLDER.reset(token)


def check_readable_path(path: Path) -> Path:
    """Return a path; raise InputError if it lies outside of the folder of `readable_files_within`."""
    folder = _READABLE_FOLDER.get()
    if folder is not None and not path.resolve().is_relative_to(folder):
        raise InputError(f"the file '{path.name[:80]}' is outside of the folder whose files may be read")
    return path


def check_number(name: str, value: Any, allow_strings: bool = True) -> float:
    """Return a finite number. Strings (command line) are converted unless `allow_strings` is False.

    >>> check_number("h", 0.1), check_number("h", "1e-3")
    (0.1, 0.001)
    """
    if value is None:
        raise InputError(f"{name} is missing: give a number")
    try:
        converted = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be a number, got {value!r}") from None
    if (
        isinstance(value, (bool, np.bool_))
        or not math.isfinite(converted)
        or (isinstance(value, str) and not allow_strings)
    ):
        raise InputError(f"{name} must be a finite number, got {value!r}")
    return converted


def check_positive(name: str, value: object, allow_strings: bool = True) -> float:
    """Return a finite number greater than zero."""
    converted = check_number(name, value, allow_strings)
    if converted <= 0:
        raise InputError(f"{name} must be greater than 0, got {converted:g}")
    return converted


def check_nonnegative(name: str, value: object, allow_strings: bool = True) -> float:
    """Return a finite number greater than or equal to zero."""
    converted = check_number(name, value, allow_strings)
    if converted < 0:
        raise InputError(f"{name} must not be negative, got {converted:g}")
    return converted


def check_integer(name: str, value: Any, minimum: int, maximum: int | None = None) -> int:
    """Return an integer within bounds.

    >>> check_integer("every", 3, minimum=1)
    3
    """
    is_integer = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not is_integer or value < minimum or (maximum is not None and value > maximum):
        bound = "" if maximum is None else f" (and at most {_power_of_two(maximum)})"
        raise InputError(f"{name} must be a whole number of at least {minimum}{bound}, got {value!r}")
    return int(value)


def check_choice(name: str, value: object, allowed: Sequence[str]) -> str:
    """Return a string that is one of the `allowed` choices.

    >>> check_choice("tier", "fused", ["fused", "reference"])
    'fused'
    """
    if not isinstance(value, str) or value not in allowed:
        *choices, last_choice = map(repr, allowed)
        raise InputError(f"{name} must be {', '.join(choices)}{' or ' if choices else ''}{last_choice}, got {value!r}")
    return value


def check_bool(name: str, value: object) -> bool:
    """Return a Boolean.

    >>> check_bool("rotor", True)
    True
    """
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_path(name: str, value: object) -> Path:
    """Return a file path given as str or as os.PathLike.

    >>> check_path("out", "run.h5").name
    'run.h5'
    """
    if not isinstance(value, (str, os.PathLike)) or not isinstance(os.fspath(value), str) or not os.fspath(value):
        raise InputError(f"{name} must be the name of a file, got {value!r}")
    return Path(os.fspath(value))


def check_vector(name: str, value: object, names: Sequence[str], entry_noun: str = "") -> np.ndarray:
    """Return a vector with one finite number for each of `names`. `entry_noun` names one entry, as "coordinate".

    >>> check_vector("q0", [1, 2], ["x", "y"], "coordinate")
    array([1., 2.])
    """
    size = len(names)
    if value is None:
        expected = f"one number per {entry_noun}" if entry_noun else f"{size} numbers"
        raise InputError(f"{name} is missing: give {expected} ({_join_names(names)})")
    numbers = _as_float_array(value)
    if numbers is None:
        raise InputError(f"{name} must be {size} numbers, got {value!r}")
    if numbers.shape != (size,):
        got = f"{numbers.size} numbers" if numbers.ndim == 1 else f"an array of shape {numbers.shape}"
        entries = f"one per {entry_noun}" if entry_noun else _join_names(names)
        raise InputError(f"{name} must be {size} numbers ({entries}), got {got}")
    if not all_finite(numbers):
        bad = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise InputError(f"{name} must be finite, but {name}[{names[bad]}] is {numbers[bad]}")
    return numbers


def check_array(
    name: str, value: object, shape: tuple[int, ...] | None = None, description: str = "a number or an array of numbers"
) -> np.ndarray:
    """Return an array of finite numbers of the given shape (any shape if None). `description` is used in messages.

    >>> check_array("centre", (0, 0, 1), (3,))
    array([0., 0., 1.])
    """
    numbers = _as_float_array(value)
    if numbers is None:
        raise InputError(f"{name} must be {description}, got {value!r}")
    finite = math.isfinite(numbers) if not numbers.ndim else bool(np.isfinite(numbers).all())
    if shape is not None and not (numbers.shape == shape and finite):
        expected = f"{shape[0]} numbers" if len(shape) == 1 else f"numbers of shape {shape}"
        raise InputError(f"{name} must be {expected}, all finite, got {value!r}")
    if not finite:
        raise InputError(f"{name} must be finite, got {value!r}")
    return numbers


def all_finite(numbers: np.ndarray) -> bool:
    """Return True if all entries of a vector are finite.

    >>> all_finite(np.array([1.0, 2.0])), all_finite(np.array([1.0, np.inf]))
    (True, False)
    """
    return (
        all(map(math.isfinite, numbers.tolist())) if numbers.size <= _SMALL_SIZE else bool(np.isfinite(numbers).all())
    )


def _as_float_array(value: object) -> np.ndarray | None:
    """Return a new float array, or None if the value is not numeric."""
    try:
        return np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        return None


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")


def _power_of_two(number: int) -> str:
    return f"2**{number.bit_length() - 1}" if number > 2**20 and number & (number - 1) == 0 else str(number)


def check_arguments(context: str, function: Callable[..., object], names: Sequence[str]) -> None:
    """Check that a function can be called with these arguments, in this order; raise an InputError otherwise."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a built-in function without a signature
        return
    try:
        signature.bind(*names)
    except TypeError:
        raise InputError(
            f"{context} is called with {len(names)} arguments ({', '.join(names)}), but takes {signature}"
        ) from None
