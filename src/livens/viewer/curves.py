"""Curves below an animation: energies, momenta, constraints, and optional plots."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.analysis.joint_forces import PointForce, sizes
from livens.analysis.observables import walk
from livens.errors import LivensError
from livens.viewer.tracks import text

if TYPE_CHECKING:
    from livens.results.result import Result

#: Maximum number of distinguishable curves in a panel.
_MOST = 6
#: Maximum number of optional panels, and of values in all of them.
_OFFERED, _NUMBERS = 40, 400_000
#: Outputs of a mechanism that are not offered as plots.
_SKIPPED = ("rotation", "violation")
_AXES = "xyz"
#: Number of values per block of rows, which fits into the cache.
_BLOCK = 500_000


def _curve(panel: str, name: str, values: Any, unit: str = "", log: bool = False) -> dict[str, Any]:
    return dict(panel=panel, name=name, values=text(np.asarray(values, dtype="<f4")), unit=unit, log=log)


def has_model(few: Result) -> bool:
    """Return True if observables can be computed: the model is available and its state variables are stored."""
    if few._system is None and few.facts.problem is None:
        return False
    return set(few.system.view.symbols) <= set(few.stored)


def curves_of(few: Result, asked: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return curves over the frames of a run by panel; none if the model is unknown or variables are not stored.

    The `requested` signals come first, one panel each.
    """
    found: list[dict[str, Any]] = []
    for name in asked:
        found += _panel(name, few.named(name))
    if not has_model(few):
        return found

    def add(panel: str, name: str, values: np.ndarray, unit: str = "", log: bool = False) -> None:
        if sum(curve["panel"] == panel for curve in found) < _MOST:
            found.append(_curve(panel, name, values, unit, log))

    energies = dict.fromkeys(["kinetic_energy", "potential_energy", few.summary.energy])
    both = dict(constraint="g(q)", velocity_constraint="G(q) v") if few.facts.constraint_names else {}
    known = _observed(few, [*energies, *few.summary.momentum_drift], list(both))
    for name in energies:
        values = known.get(name)
        if values is not None and values.ndim == 1:
            add("energy", name.replace("_energy", "").replace("_", " "), values)
    for name in ("supplied_energy", "dissipated_energy"):  # only if energy is exchanged
        if name in few.stored and np.any(getattr(few, name)):
            add("energy", name.removesuffix("_energy"), getattr(few, name))
    for name in few.summary.momentum_drift:
        values = known.get(name)
        if values is not None:
            columns = values.reshape(len(values), -1).T
            for i, column in enumerate(columns):
                short = name.removesuffix("_momentum").replace("_", " ")
                add("momenta", f"{short} {_AXES[i]}" if 1 < len(columns) <= 3 else short, column)
    for name, words in both.items():
        if name in known:
            add("constraints", words, known[name], log=True)
    if "q" not in few.stored and "x" in few.stored:  # first-order model without geometry
        for name, values in _liveliest({n: few.x[:, i] for i, n in enumerate(few.facts.coordinates)}, _MOST):
            add("states", name, values)
    return found


def offered(few: Result, forces: Sequence[PointForce] = ()) -> list[dict[str, Any]]:
    """Return the optional curves of the page: joint forces, outputs of a mechanism, coordinates."""
    most = min(_OFFERED, _NUMBERS // max(1, len(few.t)))
    found: list[dict[str, Any]] = []
    for name, values in _liveliest(sizes(forces), most // 2):
        found.append(_curve(f"force of {name}", "size", values, "N"))
    if has_model(few):
        names = [name for name in getattr(few.system, "quantities", {}) if name.rpartition(".")[2] not in _SKIPPED]
        for name in names[: max(0, most - len(found))]:
            found += _panel(name, few.named(name))
    motion = next((name for name in ("q", "x") if name in few.stored), "")
    if motion:
        known = {name: getattr(few, motion)[:, i] for i, name in enumerate(few.facts.coordinates)}
        left = max(0, most - len({curve["panel"] for curve in found}))
        found += [_curve(name, name, values) for name, values in _liveliest(known, left)]
    return found


def _panel(name: str, series: Any) -> list[dict[str, Any]]:
    """Return the curves of one signal with all its components."""
    if isinstance(series, dict):
        return [curve for each, values in series.items() for curve in _panel(each, values)]
    values = np.asarray(series)
    columns, unit = values.reshape(len(values), -1).T, getattr(series, "unit", "")
    if len(columns) == 1:
        return [_curve(name, name, columns[0], unit)]
    return [_curve(name, _AXES[i] if len(columns) <= 3 else str(i), c, unit) for i, c in enumerate(columns[:_MOST])]


def _liveliest(curves: Mapping[str, np.ndarray], count: int) -> list[tuple[str, np.ndarray]]:
    """Return at most `count` curves, without constant ones."""
    changing = ((name, y) for name, y in curves.items() if np.ptp(y) > 1e-9 * max(1e-300, float(np.abs(y).max())))
    return list(itertools.islice(changing, count))


def _observed(few: Result, names: Sequence[str], many: Sequence[str]) -> dict[str, np.ndarray]:
    """Return observables at every row by name; for those in `multi_component`, the largest absolute component."""
    there = [name for name in (*names, *many) if name and _has(few, name)]
    found: dict[str, list[np.ndarray]] = {name: [] for name in there}
    rows = max(8, _BLOCK // max(1, 3 * len(few.facts.coordinates)))
    for t, block in walk(few, there, rows):
        for name, values in zip(there, block, strict=True):
            found[name].append(np.abs(values.reshape(len(t), -1)).max(axis=1) if name in many else values)
    return {name: np.concatenate(parts) for name, parts in found.items()}


def _has(few: Result, name: str) -> bool:
    """Return True if an observable can be computed and is not empty."""
    try:
        _, (values,) = next(walk(few, [name], 1))
    except LivensError:
        return False
    return values.size > 0
