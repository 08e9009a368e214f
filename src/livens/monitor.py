"""Watches what a run conserves, at every step and not only at the stored ones."""

from __future__ import annotations

import functools
from typing import Any

import casadi as ca
import numpy as np

from livens.dynamics import dynamics
from livens.noether import is_symmetry
from livens.observe import expression, kernel_of, tabulate
from livens.result import Summary
from livens.schemes.base import Scheme
from livens.system import System

_ENERGIES = ("generalized_energy", "hamiltonian", "total_energy")


def watched_energy(scheme: Scheme) -> str:
    """The energy a scheme is said to conserve, else the total energy."""
    return next((name for name in _ENERGIES if name in scheme.conserves), "total_energy")


@functools.lru_cache(maxsize=64)
def _kernel(system: System, energy: str, momenta: tuple[str, ...]) -> tuple[int, int]:
    d = dynamics(system)
    columns = [expression(system, energy), d.T]
    columns += [ca.norm_inf(d.g), ca.norm_inf(d.velocity_constraint)] if system.m else [ca.SX(0), ca.SX(0)]
    columns += [expression(system, name) for name in momenta]
    column = ca.densify(ca.vertcat(*columns))
    return kernel_of(system, column), column.numel()


class Monitor:
    """Keeps the largest deviations of a run. Its numbers can be stored and taken up again."""

    def __init__(self, system: System, scheme: Scheme, k: np.ndarray) -> None:
        self._k = k
        self._work = 3 * system.n  # where a state holds the energy supplied, then the energy dissipated
        self.energy = watched_energy(scheme)
        self.momenta = tuple(name for name in system.symmetries if is_symmetry(system, name, k))
        self._kernel, self._width = _kernel(system, self.energy, self.momenta)
        self._sizes = [int(system.momentum_symmetry(name).size2_out(0)) for name in self.momenta]
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
        energy = table[:, 0] - (Z[:, self._work] - Z[:, self._work + 1])
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
