"""Watches what a run conserves, at every step and not only at the stored ones."""

from __future__ import annotations

import functools
from typing import Any

import casadi as ca
import numpy as np

from livens.engine.table import kernel_of, tabulate
from livens.expressions.layout import Layout
from livens.models.model import Model
from livens.results.result import Summary
from livens.schemes.base import Scheme


@functools.lru_cache(maxsize=64)
def _kernel(model: Model, energy: str, momenta: tuple[str, ...]) -> tuple[int, int]:
    columns = [model.view.expression(energy) if energy else ca.SX(0), ca.SX(model.magnitude())]
    columns += [ca.norm_inf(g) if g.numel() else ca.SX(0) for g in model.watched_constraints()]
    columns += [model.view.expression(name) for name in momenta]
    column = ca.densify(ca.vertcat(*columns))
    return kernel_of(model, column), column.numel()


class Monitor:
    """Keeps the largest deviations of a run. Its numbers can be stored and taken up again."""

    def __init__(self, model: Model, scheme: Scheme, k: np.ndarray, layout: Layout) -> None:
        self._k, self._layout = k, layout
        self.energy = model.watched_energy(scheme.conserves)
        self.momenta = tuple(name for name in model.symmetries if model.conserves(name, k))
        self._kernel, self._width = _kernel(model, self.energy, self.momenta)
        self._sizes = [int(model.view.expression(name).numel()) for name in self.momenta]
        self._first: np.ndarray | None = None
        self._last_energy = 0.0
        # largest so far: drift, increment, kinetic energy, |g|, |G v|, momentum drift and size of each momentum
        self._largest = np.zeros(5 + 2 * len(self.momenta))

    def look(self, t: np.ndarray, Z: np.ndarray) -> None:
        """Take states into account, in the order of time."""
        if not len(t):
            return
        table = tabulate(self._kernel, self._width, t, Z, self._k)
        # energy that came in or went out through forces and dissipation is not drift
        energy = table[:, 0]
        if "supplied_energy" in self._layout:
            supplied, dissipated = (Z[:, self._layout[name].start] for name in ("supplied_energy", "dissipated_energy"))
            energy = energy - (supplied - dissipated)
        if self._first is None:
            self._first = table[0].copy()
            self._last_energy = energy[0]
        largest = [
            np.abs(energy - self._first[0]).max(),
            np.abs(np.diff(energy, prepend=self._last_energy)).max(),
            *np.abs(table[:, 1:4]).max(axis=0),
        ]
        self._last_energy = energy[-1]
        column = 4
        for size in self._sizes:
            momentum, first = table[:, column : column + size], self._first[column : column + size]
            largest.append(np.linalg.norm(momentum - first, axis=1).max())
            largest.append(np.linalg.norm(momentum, axis=1).max())
            column += size
        self._largest = np.fmax(self._largest, largest)

    def summary(self) -> Summary:
        """Energy relative to its initial value (to the largest kinetic energy where that is nearly zero)."""
        drift, increment, kinetic, constraint, velocity = self._largest[:5]
        start = abs(self._first[0]) if self._first is not None else 0.0
        scale = (start if start > 1e-3 * kinetic else kinetic) or 1.0
        momenta = {
            name: float(moved / (size or 1.0))
            for name, moved, size in zip(self.momenta, self._largest[5::2], self._largest[6::2], strict=True)
        }
        return Summary(
            energy=self.energy,
            max_energy_drift=float(drift / scale),
            max_energy_increment=float(increment / scale),
            max_constraint=float(constraint),
            max_velocity_constraint=float(velocity),
            momentum_drift=momenta,
        )

    def state(self) -> dict[str, Any]:
        first = self._first if self._first is not None else np.zeros(0)
        return {"monitor_first": first, "monitor_last": self._last_energy, "monitor_largest": self._largest}

    def restore(self, stored: dict[str, Any]) -> None:
        self._first = np.array(stored["monitor_first"])
        self._last_energy = float(stored["monitor_last"])
        self._largest = np.array(stored["monitor_largest"])
