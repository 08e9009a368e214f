"""Curves below an animation: energies, momenta, constraints, and optional plots."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.analysis.observables import iterate_blocks
from livens.analysis.reaction_forces import PointForce, force_magnitudes
from livens.errors import LivensError
from livens.types import FloatArray
from livens.viewer.keyframes import to_base64

if TYPE_CHECKING:
    from livens.analysis.signals import Signal
    from livens.results.result import Result

#: Maximum number of distinguishable curves in a panel.
_MAX_CURVES = 6
#: Maximum number of optional panels, and of values in all of them.
_MAX_OPTIONAL_PANELS, _MAX_VALUES = 40, 400_000
#: Outputs of a mechanism that are not offered as plots.
_SKIPPED = ("rotation", "violation")
_AXES = "xyz"
#: Number of values per block of rows, which fits into the cache.
_BLOCK = 500_000


def _curve(panel: str, name: str, values: FloatArray, unit: str = "", log: bool = False) -> dict[str, bool | str]:
    return dict(panel=panel, name=name, values=to_base64(np.asarray(values, dtype="<f4")), unit=unit, log=log)


def has_model(sampled: Result) -> bool:
    """Return True if observables can be computed: the model is available and its state variables are stored."""
    if sampled._system is None and sampled.info.problem is None:
        return False
    return set(sampled.system.view.symbols) <= set(sampled.stored)


def curves_of(sampled: Result, requested: Sequence[str] = ()) -> list[dict[str, object]]:
    """Return curves over the frames of a run by panel; none if the model is unknown or variables are not stored.

    The `requested` signals come first, one panel each.
    """
    curves: list[dict[str, Any]] = []
    for name in requested:
        curves += _panel(name, sampled.named(name))
    if not has_model(sampled):
        return curves

    def add(panel: str, name: str, values: np.ndarray, unit: str = "", log: bool = False) -> None:
        if sum(curve["panel"] == panel for curve in curves) < _MAX_CURVES:
            curves.append(_curve(panel, name, values, unit, log))

    energies = dict.fromkeys(["kinetic_energy", "potential_energy", sampled.summary.energy])
    constraint_labels = dict(constraint="g(q)", velocity_constraint="G(q) v") if sampled.info.constraint_names else {}
    observed = _observed(sampled, [*energies, *sampled.summary.momentum_drift], list(constraint_labels))
    for name in energies:
        values = observed.get(name)
        if values is not None and values.ndim == 1:
            add("energy", name.replace("_energy", "").replace("_", " "), values)
    for name in ("supplied_energy", "dissipated_energy"):  # only if energy is exchanged
        if name in sampled.stored and np.any(getattr(sampled, name)):
            add("energy", name.removesuffix("_energy"), getattr(sampled, name))
    for name in sampled.summary.momentum_drift:
        values = observed.get(name)
        if values is not None:
            columns = values.reshape(len(values), -1).T
            for i, column in enumerate(columns):
                short = name.removesuffix("_momentum").replace("_", " ")
                add("momenta", f"{short} {_AXES[i]}" if 1 < len(columns) <= 3 else short, column)
    for name, label in constraint_labels.items():
        if name in observed:
            add("constraints", label, observed[name], log=True)
    if "q" not in sampled.stored and "x" in sampled.stored:  # first-order model without geometry
        for name, values in _varying_signals(
            {n: sampled.x[:, i] for i, n in enumerate(sampled.info.coordinates)}, _MAX_CURVES
        ):
            add("states", name, values)
    return curves


def optional_curves(sampled: Result, forces: Sequence[PointForce] = ()) -> list[dict[str, object]]:
    """Return the optional curves of the page: joint forces, outputs of a mechanism, coordinates."""
    max_panels = min(_MAX_OPTIONAL_PANELS, _MAX_VALUES // max(1, len(sampled.t)))
    curves: list[dict[str, Any]] = []
    for name, values in _varying_signals(force_magnitudes(forces), max_panels // 2):
        curves.append(_curve(f"force of {name}", "size", values, "N"))
    if has_model(sampled):
        names = [name for name in getattr(sampled.system, "quantities", {}) if name.rpartition(".")[2] not in _SKIPPED]
        for name in names[: max(0, max_panels - len(curves))]:
            curves += _panel(name, sampled.named(name))
    position_variable = next((name for name in ("q", "x") if name in sampled.stored), "")
    if position_variable:
        known = {name: getattr(sampled, position_variable)[:, i] for i, name in enumerate(sampled.info.coordinates)}
        remaining = max(0, max_panels - len({curve["panel"] for curve in curves}))
        curves += [_curve(name, name, values) for name, values in _varying_signals(known, remaining)]
    return curves


def _panel(name: str, series: Signal) -> list[dict[str, Any]]:
    """Return the curves of one signal with all its components."""
    if isinstance(series, dict):
        return [curve for each, values in series.items() for curve in _panel(each, values)]
    values = np.asarray(series)
    columns, unit = values.reshape(len(values), -1).T, getattr(series, "unit", "")
    if len(columns) == 1:
        return [_curve(name, name, columns[0], unit)]
    return [
        _curve(name, _AXES[i] if len(columns) <= 3 else str(i), c, unit) for i, c in enumerate(columns[:_MAX_CURVES])
    ]


def _varying_signals(curves: Mapping[str, np.ndarray], count: int) -> list[tuple[str, np.ndarray]]:
    """Return at most `count` curves, without constant ones."""
    changing = ((name, y) for name, y in curves.items() if np.ptp(y) > 1e-9 * max(1e-300, float(np.abs(y).max())))
    return list(itertools.islice(changing, count))


def _observed(sampled: Result, names: Sequence[str], multi_component: Sequence[str]) -> dict[str, np.ndarray]:
    """Return observables at every row by name; for those in `multi_component`, the largest absolute component."""
    available = [name for name in (*names, *multi_component) if name and _has(sampled, name)]
    blocks: dict[str, list[np.ndarray]] = {name: [] for name in available}
    rows = max(8, _BLOCK // max(1, 3 * len(sampled.info.coordinates)))
    for t, block in iterate_blocks(sampled, available, rows):
        for name, values in zip(available, block, strict=True):
            blocks[name].append(np.abs(values.reshape(len(t), -1)).max(axis=1) if name in multi_component else values)
    return {name: np.concatenate(parts) for name, parts in blocks.items()}


def _has(sampled: Result, name: str) -> bool:
    """Return True if an observable can be computed and is not empty."""
    try:
        _, (values,) = next(iterate_blocks(sampled, [name], 1))
    except LivensError:
        return False
    return values.size > 0
