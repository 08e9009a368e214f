"""Watches what a run conserves, at every step and not only at the stored ones."""

from __future__ import annotations

import functools
from typing import Any

import casadi as ca
import numpy as np

from livens.engine.compiled import CompiledStep
from livens.engine.fold import fold
from livens.engine.steps import Carry, Steps
from livens.engine.table import Table
from livens.models.model import Model
from livens.results.record import Summary


@functools.lru_cache(maxsize=32)
def _tables(digest: str) -> dict[Any, Any]:
    """What was made for models of this content, by what it was made for."""
    return {}


def _table(model: Model, energy: str, momenta: tuple[str, ...]) -> tuple[Table, np.ndarray]:
    """Energy, its magnitude, both levels of constraints and the momenta of a state; the sizes of the momenta."""
    known = _tables(model.digest)
    if (energy, momenta) not in known:
        view = model.view
        columns = [view.expression(energy) if energy else ca.SX(0), ca.SX(model.magnitude())]
        columns += [ca.norm_inf(g) if g.numel() else ca.SX(0) for g in model.watched_constraints()]
        parts = [view.expression(name) for name in momenta]
        sizes = np.array([int(part.numel()) for part in parts], dtype=np.int64)
        known[energy, momenta] = Table(model, ca.vertcat(*columns, *parts)), sizes
    return known[energy, momenta]


def _conserved(model: Model, k: np.ndarray) -> tuple[str, ...]:
    """Those of the model's symmetries that the motion with these parameters really has."""
    if not model.symmetries:
        return ()
    known, key = _tables(model.digest), ("conserved", k.tobytes())
    if key not in known:
        known[key] = tuple(name for name in model.symmetries if model.conserves(name, k))
    return known[key]


class Extremes:
    """Keeps the largest deviations of a run. Its numbers can be stored and taken up again."""

    name = "extremes"

    def __init__(self, compiled: CompiledStep, k: np.ndarray) -> None:
        model, self._k = compiled.model, k
        self.energy = model.watched_energy(compiled.scheme.conserves)
        self.momenta = _conserved(model, k)
        self._table, self._sizes = _table(model, self.energy, self.momenta)
        layout = compiled.layout
        self._supplied = layout["supplied_energy"].start if "supplied_energy" in layout else -1
        self._first: np.ndarray | None = None
        self._last = np.zeros(1)  # the last energy
        # largest so far: drift, increment, kinetic energy, |g|, |G v|, momentum drift and size of each momentum
        self._largest = np.zeros(5 + 2 * len(self.momenta))

    def begin(self, carry: Carry) -> None:
        self._take(np.array([carry.t]), carry.z[None, :])

    def look(self, steps: Steps, regular: bool = True) -> None:
        """Take states into account, in the order of time."""
        if steps.taken:
            self._take(steps.t, steps.Z)

    def _take(self, t: np.ndarray, Z: np.ndarray) -> None:
        table = self._table(t, Z, self._k)
        # energy that came in or went out through forces and dissipation is not drift
        exchanged = np.zeros(len(t)) if self._supplied < 0 else Z[:, self._supplied] - Z[:, self._supplied + 1]
        if self._first is None:
            self._first = table[0].copy()
            self._last[0] = table[0, 0] - exchanged[0]
        fold(table, exchanged, self._first, self._last, self._largest, self._sizes)

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
        return {"first": first, "last": float(self._last[0]), "largest": self._largest.copy()}

    def restore(self, stored: dict[str, Any]) -> None:
        self._first = np.array(stored["first"])
        self._last = np.array([float(stored["last"])])
        self._largest = np.array(stored["largest"])
