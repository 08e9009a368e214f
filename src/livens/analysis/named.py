"""Quantities of a run by name: coordinates, observables, and what a mechanism's bodies and joints are asked for."""

from __future__ import annotations

import fnmatch
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError, suggestion
from livens.models.quantity import Quantity
from livens.results.result import Result


class Series(np.ndarray):
    """Values over time that know their unit."""

    unit: str = ""

    def __array_finalize__(self, obj: Any) -> None:
        self.unit = getattr(obj, "unit", "")


def _named(result: Result, name: str) -> Any:
    """What the run is asked for: an array over time; with a "*" in the name, a dict of all that match."""
    if not isinstance(name, str):
        raise InputError(f"a quantity is asked for by its name, got {name!r}")
    coordinates = list(result.facts.coordinates)
    if name in coordinates:
        return _series(_states(result)[:, coordinates.index(name)], "")
    if name in result.stored:
        return _series(getattr(result, name), "")
    shown = getattr(result.system, "quantities", {})
    if "*" in name:
        found = [each for each in (*coordinates, *shown) if fnmatch.fnmatchcase(each, name)]
        if found:
            return {each: _named(result, each) for each in found}
    if name in shown:
        return _series(_values(result, shown[name]), shown[name].unit)
    observables = result.system.view.names
    if name in observables:
        return _series(result.observe(name), "")
    known = {*coordinates, *shown, *result.stored, *observables}
    raise InputError(f"the run has no '{name}'{suggestion(name, known)}")


def _states(result: Result) -> np.ndarray:
    return result.q if "q" in result.stored else result.x


def _series(values: np.ndarray, unit: str) -> Series:
    found = np.asarray(values).view(Series)
    found.unit = unit
    return found


def _values(result: Result, quantity: Quantity) -> np.ndarray:
    system = result.system
    symbols = [ca.SX.sym(name, size) for name, size in zip("qvl", (system.n, system.n, system.m), strict=True)]
    symbols += [ca.SX.sym("t"), ca.SX.sym("k", system.parameter_count)]
    expression = ca.densify(quantity.expression(*symbols))
    needed = [ca.depends_on(expression, symbol) if symbol.numel() else False for symbol in symbols[:3]]
    rows, count = len(result.t), [system.n, system.n, system.m]
    given = [
        getattr(result, name).T if used else np.zeros((size, rows))
        for name, used, size in zip(("q", "v", "multipliers"), needed, count, strict=True)
    ]
    if quantity.force:
        given[2] = at_nodes(result, given[2])
    function = ca.Function("quantity", symbols, [expression])
    k = np.repeat(result.parameter_vector[:, None], rows, axis=1)
    for first, changed in result.parameter_pieces[1:]:
        k[:, first:] = changed[:, None]
    values = np.array(function(*given, np.asarray(result.t)[None, :], k)).T
    if quantity.angle:
        values = np.unwrap(values, axis=0)
    return values.reshape(rows, *quantity.shape)


def at_nodes(result: Result, lam: np.ndarray) -> np.ndarray:
    """Multipliers belong to the middle of their step: the mean of both steps around a row, where both are stored.

    Single ones alternate about that in energy-momentum schemes. The first row is that of the consistent start.
    """
    if result.facts.every != 1 or lam.shape[1] < 3:
        return lam
    found = lam.copy()
    found[:, 1:-1] = (lam[:, 1:-1] + lam[:, 2:]) / 2
    return found


Result.attach("named", _named)
