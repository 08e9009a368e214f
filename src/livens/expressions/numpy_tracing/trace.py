"""Trace of a function written for numbers, with the reason and the line where tracing is not possible."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.expressions.numpy_tracing.branches import PathEnumerator, TracingError
from livens.expressions.numpy_tracing.function_copies import FunctionCopier
from livens.types import ModelFunction

#: Folders of packages whose frames are not lines of the user: livens, and packages installed beside NumPy.
_PACKAGE_FOLDERS = (str(Path(__file__).parents[2]), str(Path(np.__file__).parents[1]))


@dataclass(frozen=True)
class TracedValue:
    """Value of a traced function: an array of Scalars and numbers, and the conditions of its branches."""

    value: np.ndarray
    conditions: tuple[Any, ...]

    @property
    def column(self) -> Any:
        """Value as a CasADi column."""
        return ca.densify(m.to_casadi(self.value.ravel())) if self.value.size else ca.SX(0, 1)


def trace_numpy(function: ModelFunction, *arguments: object, **named: object) -> TracedValue:
    """Trace a function written for numbers: call a copy of it with symbols.

    Parameters
    ----------
    function : callable
        Function of numbers and arrays, written with NumPy, SciPy and `math`. It may branch on its arguments.
    *arguments, **named
        Arguments of the function: Scalars, arrays of Scalars, numbers and other objects.

    Returns
    -------
    TracedValue
        Value of the function.

    Raises
    ------
    TracingError
        If the function cannot be traced. The message contains the reason and the line.

    Examples
    --------
    >>> x = m.from_casadi(ca.SX.sym("x", 2))
    >>> def saturated(x):
    ...     out = np.zeros(2)
    ...     out[0] = -x[0] if x[0] > 1 else x[1]
    ...     return out
    >>> trace_numpy(saturated, x).value
    array([@1=(1<x_0), ((@1?(-x_0):0)+((!@1)?x_1:0)), 0], dtype=object)
    """
    copier, paths = FunctionCopier(), PathEnumerator()

    def call() -> np.ndarray:
        fresh = [value.copy() if isinstance(value, np.ndarray) else value for value in arguments]
        value = copied(*fresh, **{name: v.copy() if isinstance(v, np.ndarray) else v for name, v in named.items()})
        copier.check_unchanged()
        return _as_array(value)

    try:
        copied = copier.copy(function, getattr(function, "__name__", type(function).__name__))
        return TracedValue(paths.join_all(call), tuple(paths.conditions))
    except TracingError as error:
        raise TracingError(f"{error}{_user_line(error, function)}") from None
    except RecursionError:
        raise TracingError("it calls itself without end") from None
    except Exception as error:
        lines = str(error).splitlines()
        text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
        raise TracingError(f"{text}{_user_line(error, function)}") from error


def _as_array(value: object) -> np.ndarray:
    """Return the value of a function as an array of objects; arrays of size 1 within lists are numbers."""
    if value is None:
        raise TracingError("it returns None")
    if isinstance(value, (list, tuple)):
        return m.array([_unwrapped(item) for item in value]).astype(object)
    if isinstance(value, m.Scalar):
        array = np.empty((), dtype=object)
        array[()] = value
        return array
    return np.asarray(value).astype(object)


def _unwrapped(item: object) -> Any:
    if isinstance(item, np.ndarray) and item.ndim and item.size == 1:
        return item.ravel()[0]
    return item.item() if isinstance(item, np.ndarray) and item.ndim == 0 else item


def _user_line(error: BaseException, function: ModelFunction) -> str:
    """Return the last line of the user in the traceback of an error, as text."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_PACKAGE_FOLDERS)
    ]
    if not frames or " (line " in str(error):
        return ""
    return f" (line {frames[-1].lineno} of {Path(frames[-1].filename).name}, in '{frames[-1].name}')"
