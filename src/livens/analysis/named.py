"""Signals of a run by name: coordinates, stored variables, observables and named outputs of mechanisms."""

from __future__ import annotations

import fnmatch
import weakref
from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError, suggestion
from livens.models.quantity import Quantity
from livens.models.summed import dynamics
from livens.models.system import System
from livens.multibody.assembly import Motion
from livens.results.result import Result

#: Number of stored rows whose matrices are in memory at once.
_BLOCK = 512
_AT_NODES: weakref.WeakKeyDictionary[Result, np.ndarray] = weakref.WeakKeyDictionary()


class Series(np.ndarray):
    """Array of values over time with a unit."""

    unit: str = ""

    def __array_finalize__(self, obj: Any) -> None:
        self.unit = getattr(obj, "unit", "")


def _named(result: Result, name: str) -> Any:
    """Return a signal as an array over time; for a name with "*", a dict of all matching signals."""
    if not isinstance(name, str):
        raise InputError(f"a signal is selected by its name (a string), got {name!r}")
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
        values = _said(result, shown[name]) if shown[name].command is not None else evaluated(result, shown[name])
        return _series(values, shown[name].unit)
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


def _said(result: Result, quantity: Quantity) -> np.ndarray:
    """Return the command of a sampled controller on the step that begins at each row."""
    stored = result.record.checkpoint.get("controllers", {})
    times, said = np.ravel(stored.get("times", ())), np.asarray(stored.get("said", ()))
    if not times.size:
        return np.zeros(len(result.t))
    at = np.searchsorted(times, np.asarray(result.t) + 1e-12 * max(1.0, abs(times[-1])), side="right") - 1
    return np.asarray(said.reshape(times.size, -1)[np.maximum(at, 0), quantity.command])


def evaluated(result: Result, quantity: Quantity) -> np.ndarray:
    """Evaluate a quantity at all stored times of a run."""
    system = result.system
    sizes = (system.n, system.n, system.m, 1, system.parameter_count)
    symbols = [ca.SX.sym(name, size) for name, size in zip("qvltk", sizes, strict=True)]
    expression, rows = ca.densify(quantity.expression(*symbols)), len(result.t)
    # a quantity depends on one or two of possibly hundreds of bodies: only the entries that occur are passed on
    used = _entries(expression, "qvltk", sizes)
    given = [
        getattr(result, name)[:, entries].T if entries else np.zeros((0, rows))
        for name, entries in zip(("q", "v"), used, strict=False)
    ]
    lam = np.zeros((0, rows))
    if used[2]:
        lam = at_nodes(result) if quantity.force else result.multipliers.T
    k = np.empty((len(used[4]), rows))
    for first, values in result.parameter_pieces:
        k[:, first:] = values[used[4], None]
    given += [lam[used[2]], np.asarray(result.t)[None, :][used[3]], k]
    inputs = ca.vertcat(*(symbol[i] for symbol, entries in zip(symbols, used, strict=True) for i in entries))
    function = ca.Function("quantity", [inputs], [expression])
    values = np.array(function(np.vstack(given))).T if inputs.numel() else np.array(function([])).T.repeat(rows, axis=0)
    if quantity.angle:
        values = np.unwrap(values, axis=0)
    return values.reshape(rows, *quantity.shape) if quantity.after is None else np.asarray(quantity.after(values))


def _entries(expression: Any, letters: str, sizes: Sequence[int]) -> list[list[int]]:
    """Return the indices of the entries of symbolic vectors that an expression depends on.

    The entries of the vector x are called x_0, x_1, ...
    """
    found: dict[str, list[int]] = {letter: [] for letter in letters}
    for symbol in ca.symvar(expression):
        letter, _, number = symbol.name().partition("_")
        found[letter].append(int(number or 0))
    return [sorted(found[letter]) if size else [] for letter, size in zip(letters, sizes, strict=True)]


def at_nodes(result: Result) -> np.ndarray:
    """Return the multipliers at the stored times, shape (n_multipliers, n_rows); cached per run.

    Multipliers belong to the middle of their step. At a row between two stored steps, their mean is returned, because
    multipliers of single steps alternate about the mean in energy-momentum schemes. The first row contains the
    multipliers of the consistent initial state. The last row is computed likewise from its positions and velocities.
    Steps on both sides of an event, where loads may jump, are not averaged. If redundant constraints were removed, the
    forces are distributed over all constraints with minimum norm.
    """
    if result not in _AT_NODES:
        _AT_NODES[result] = _spread(result, _means(result, np.asarray(result.multipliers)).T)
    return _AT_NODES[result]


def _means(result: Result, lam: np.ndarray) -> np.ndarray:
    """Return averages of the multipliers of adjacent steps, shape (n_rows, n_multipliers)."""
    if result.facts.every != 1 or len(lam) < 3:
        return lam
    found = lam.copy()
    found[1:-1] += lam[2:]
    found[1:-1] /= 2
    times = np.asarray(result.t)
    jumps = [event.t for event in result.events]
    sampled = result.record.checkpoint.get("controllers", {}).get("times", ())
    jumping = np.isin(times, [*jumps, *np.ravel(sampled)])
    found[jumping] = lam[jumping]
    last = None if len(sampled) else _consistent(result)
    if last is not None:
        found[-1] = last
    return found


def known_system(result: Result) -> System | None:
    """Return the system of a run, or None if it is not a System or not available from the file."""
    try:
        system = result.system
    except InputError:
        return None
    return system if isinstance(system, System) else None


def _consistent(result: Result) -> np.ndarray | None:
    """Return the multipliers that are consistent with the accelerations at the last row."""
    system = known_system(result)
    if system is None or not system.m or system.large:  # the dense matrix of a large system does not fit in memory
        return None
    matrix, right = dynamics(system).acceleration_system
    both = dynamics(system).evaluator(ca.horzcat(ca.densify(matrix), ca.densify(right)))
    table = both(result.q[-1], result.v[-1], float(result.t[-1]), result.parameter_pieces[-1][1])[0]
    kept = [i for i in range(len(table)) if i - system.n not in result.facts.dropped]
    if not np.isfinite(table).all():
        return None
    lam = np.zeros(len(table))
    lam[kept] = np.linalg.lstsq(table[np.ix_(kept, kept)], table[kept, -1], rcond=None)[0]
    return lam[system.n :]


def _spread(result: Result, lam: np.ndarray) -> np.ndarray:
    """Redistribute the forces of redundant constraints over all constraints by multipliers of minimum norm."""
    system = known_system(result)
    if not result.facts.dropped or system is None or not system.frames:
        return lam
    motion, d = Motion(system), dynamics(system)
    between = list(motion.constraints)
    slopes = ca.Function("G", [d.q, d.t, d.k], [ca.densify(d.G[between, :])])
    found, k = lam.copy(), result.parameter_vector
    for first in range(0, len(result.t), _BLOCK):
        rows = slice(first, first + _BLOCK)
        q, t = np.asarray(result.q)[rows], np.asarray(result.t)[rows]
        G = np.array(slopes(q.T, t[None, :], k)).reshape(len(between), len(t), system.n).transpose(1, 0, 2)
        turned = np.swapaxes(G @ motion.map(q), 1, 2)  # constraint forces of unit multipliers on the bodies
        acting = turned @ lam[between, rows].T[..., None]
        found[between, rows] = (np.linalg.pinv(turned, rcond=1e-9) @ acting)[..., 0].T
    return found


Result.attach("named", _named)
