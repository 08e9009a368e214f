"""Signals of a run by name: coordinates, stored variables, observables and named outputs of mechanisms."""

from __future__ import annotations

import fnmatch
import weakref
from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError, suggestion
from livens.models.equations_of_motion import equations_of_motion
from livens.models.quantity import Quantity
from livens.models.system import System
from livens.multibody.twist_coordinates import TwistCoordinates
from livens.results.result import Result
from livens.types import Expr

#: Number of stored rows whose matrices are in memory at once.
_BLOCK = 512
_NODE_MULTIPLIERS: weakref.WeakKeyDictionary[Result, np.ndarray] = weakref.WeakKeyDictionary()


class Signal(np.ndarray):
    """Array of values over time with a unit."""

    unit: str = ""

    def __array_finalize__(self, obj: object) -> None:
        self.unit = getattr(obj, "unit", "")


def _signal(result: Result, name: str) -> Any:
    """Return a signal as an array over time; for a name with "*", a dict of all matching signals.

    Parameters
    ----------
    result : Result
        Run.
    name : str
        Name of a coordinate, a quantity of the model, a stored variable or an observable.

    Returns
    -------
    Signal or dict of str to Signal
        Values over time with their unit.

    Raises
    ------
    InputError
        If the run has no signal of this name.
    """
    if not isinstance(name, str):
        raise InputError(f"a signal is selected by its name (a string), got {name!r}")
    coordinates = list(result.info.coordinates)
    if name in coordinates:
        return _as_signal(_states(result)[:, coordinates.index(name)], "")
    if name in result.stored:
        return _as_signal(getattr(result, name), "")
    quantities = getattr(result.system, "quantities", {})
    if "*" in name:
        matches = [each for each in (*coordinates, *quantities) if fnmatch.fnmatchcase(each, name)]
        if matches:
            return {each: _signal(result, each) for each in matches}
    if name in quantities:
        values = (
            _controller_commands(result, quantities[name])
            if quantities[name].control_index is not None
            else evaluate_quantity(result, quantities[name])
        )
        return _as_signal(values, quantities[name].unit)
    observables = result.system.view.observable_names
    if name in observables:
        return _as_signal(result.observe(name), "")
    raise InputError(f"the run has no '{name}'{suggestion(name, _names(result))}. `run.names` lists all signals")


def _names(result: Result) -> tuple[str, ...]:
    """Names of all signals: coordinates, quantities of the model, stored variables and observables.

    Returns
    -------
    tuple of str
        Names for ``run[name]``, each once.

    Examples
    --------
    >>> import livens as lv
    >>> run = lv.simulate(lv.problems.load("simple-pendulum"), t_end=0.1)
    >>> run.names[:2], "total_energy" in run, "speed" in run
    (('x', 'y'), True, False)
    """
    quantities, observables = getattr(result.system, "quantities", {}), result.system.view.observable_names
    return tuple(dict.fromkeys([*result.info.coordinates, *quantities, *result.stored, *observables]))


def _states(result: Result) -> np.ndarray:
    return result.q if "q" in result.stored else result.x


def _as_signal(values: np.ndarray, unit: str) -> Signal:
    signal = np.asarray(values).view(Signal)
    signal.unit = unit
    return signal


def _controller_commands(result: Result, quantity: Quantity) -> np.ndarray:
    """Return the command of a sampled controller on the step that begins at each row."""
    stored = result.record.checkpoint.get("controllers", {})
    times, commands = np.ravel(stored.get("times", ())), np.asarray(stored.get("said", ()))
    if not times.size:
        return np.zeros(len(result.t))
    indices = np.searchsorted(times, np.asarray(result.t) + 1e-12 * max(1.0, abs(times[-1])), side="right") - 1
    return np.asarray(commands.reshape(times.size, -1)[np.maximum(indices, 0), quantity.control_index])


def evaluate_quantity(result: Result, quantity: Quantity) -> np.ndarray:
    """Evaluate a quantity at all stored times of a run."""
    system = result.system
    sizes = (system.n, system.n, system.m, 1, system.parameter_count)
    symbols = [ca.SX.sym(name, size) for name, size in zip("qvltk", sizes, strict=True)]
    expression, rows = ca.densify(quantity.expression(*symbols)), len(result.t)
    # a quantity depends on one or two of possibly hundreds of bodies: only the entries that occur are passed on
    used = _entries(expression, "qvltk", sizes)
    arguments = [
        getattr(result, name)[:, entries].T if entries else np.zeros((0, rows))
        for name, entries in zip(("q", "v"), used, strict=False)
    ]
    lam = np.zeros((0, rows))
    if used[2]:
        lam = multipliers_at_nodes(result) if quantity.from_multipliers else result.multipliers.T
    k = np.empty((len(used[4]), rows))
    segments = result.parameter_segments
    for (first_row, values), stop in zip(segments, [*(row for row, _ in segments[1:]), rows], strict=True):
        k[:, first_row:stop] = values[used[4], None]
    arguments += [lam[used[2]], np.asarray(result.t)[None, :][used[3]], k]
    inputs = ca.vertcat(*(symbol[i] for symbol, entries in zip(symbols, used, strict=True) for i in entries))
    function = ca.Function("quantity", [inputs], [expression])
    values = (
        np.array(function(np.vstack(arguments))).T if inputs.numel() else np.array(function([])).T.repeat(rows, axis=0)
    )
    if quantity.is_angle:
        values = np.unwrap(values, axis=0)
    return (
        values.reshape(rows, *quantity.shape)
        if quantity.postprocess is None
        else np.asarray(quantity.postprocess(values))
    )


def _entries(expression: Expr, letters: str, sizes: Sequence[int]) -> list[list[int]]:
    """Return the indices of the entries of symbolic vectors that an expression depends on.

    The entries of the vector x are called x_0, x_1, ...
    """
    entries: dict[str, list[int]] = {letter: [] for letter in letters}
    for symbol in ca.symvar(expression):
        letter, _, number = symbol.name().partition("_")
        entries[letter].append(int(number or 0))
    return [sorted(entries[letter]) if size else [] for letter, size in zip(letters, sizes, strict=True)]


def multipliers_at_nodes(result: Result) -> np.ndarray:
    """Return the multipliers at the stored times, shape (n_multipliers, n_rows); cached per run.

    Multipliers belong to the middle of their step. At a row between two stored steps, their mean is returned, because
    multipliers of single steps alternate about the mean in energy-momentum schemes. The first row contains the
    multipliers of the consistent initial state. The last row is computed likewise from its positions and velocities.
    Steps on both sides of an event, where loads may jump, are not averaged. If redundant constraints were removed, the
    forces are distributed over all constraints with minimum norm.
    """
    if result not in _NODE_MULTIPLIERS:
        _NODE_MULTIPLIERS[result] = _min_norm_multipliers(
            result, _step_averages(result, np.asarray(result.multipliers)).T
        )
    return _NODE_MULTIPLIERS[result]


def _step_averages(result: Result, lam: np.ndarray) -> np.ndarray:
    """Return averages of the multipliers of adjacent steps, shape (n_rows, n_multipliers)."""
    if result.info.every != 1 or len(lam) < 3:
        return lam
    averages = lam.copy()
    averages[1:-1] += lam[2:]
    averages[1:-1] /= 2
    times = np.asarray(result.t)
    jumps = [event.t for event in result.events]
    sampled = result.record.checkpoint.get("controllers", {}).get("times", ())
    at_jump = np.isin(times, [*jumps, *np.ravel(sampled)])
    averages[at_jump] = lam[at_jump]
    last = None if len(sampled) else _consistent_multipliers(result)
    if last is not None:
        averages[-1] = last
    return averages


def system_or_none(result: Result) -> System | None:
    """Return the system of a run, or None if it is not a System or not available from the file."""
    try:
        system = result.system
    except InputError:
        return None
    return system if isinstance(system, System) else None


def _consistent_multipliers(result: Result) -> np.ndarray | None:
    """Return the multipliers that are consistent with the accelerations at the last row."""
    system = system_or_none(result)
    if (
        system is None or not system.m or system.uses_sparse_path
    ):  # the dense matrix of a large system does not fit in memory
        return None
    last = result.q[-1], result.v[-1], float(result.t[-1]), result.parameter_segments[-1][1]
    *_, matrix, right_hand_side = equations_of_motion(system).initial_state_evaluator(*last)
    table = np.hstack([matrix, right_hand_side])
    retained = [i for i in range(len(table)) if i - system.n not in result.info.dropped]
    if not np.isfinite(table).all():
        return None
    lam = np.zeros(len(table))
    lam[retained] = np.linalg.lstsq(table[np.ix_(retained, retained)], table[retained, -1], rcond=None)[0]
    return lam[system.n :]


def _min_norm_multipliers(result: Result, lam: np.ndarray) -> np.ndarray:
    """Redistribute the forces of redundant constraints over all constraints by multipliers of minimum norm."""
    system = system_or_none(result)
    if not result.info.dropped or system is None or not system.frames:
        return lam
    motion, d = TwistCoordinates(system), equations_of_motion(system)
    joint_constraints = list(motion.joint_constraints)
    jacobian = ca.Function("G", [d.q, d.t, d.k], [ca.densify(d.G[joint_constraints, :])])
    redistributed, k = lam.copy(), result.parameter_vector
    for first_row in range(0, len(result.t), _BLOCK):
        rows = slice(first_row, first_row + _BLOCK)
        q, t = np.asarray(result.q)[rows], np.asarray(result.t)[rows]
        G = np.array(jacobian(q.T, t[None, :], k)).reshape(len(joint_constraints), len(t), system.n).transpose(1, 0, 2)
        unit_forces = np.swapaxes(
            G @ motion.kinematic_matrix(q), 1, 2
        )  # constraint forces of unit multipliers on the bodies
        body_forces = unit_forces @ lam[joint_constraints, rows].T[..., None]
        redistributed[joint_constraints, rows] = (np.linalg.pinv(unit_forces, rcond=1e-9) @ body_forces)[..., 0].T
    return redistributed


Result.attach("named", _signal)
Result.attach("names", property(_names))
