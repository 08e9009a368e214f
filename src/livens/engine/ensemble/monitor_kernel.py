"""Code generation for the drift monitor of an ensemble: running maxima and sums per SIMD lane.

The algorithm is that of `livens.engine.observables.drift_monitor` for one trajectory. NaN propagates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np

from livens.engine.codegen.fingerprint import codegen_fingerprint
from livens.engine.codegen.ir_emitter import Emitter, literal
from livens.engine.codegen.jit import NativeCode, load_or_compile
from livens.engine.observables.drift_monitor import (
    ENERGY,
    MAGNITUDE,
    MAX_DRIFT,
    MAX_INCREMENT,
    MAX_MAGNITUDE,
    MAX_MOMENTA,
    MOMENTA,
    maxima_count,
)

_X, _Z, _C, _MONITOR, _ = range(5)


@dataclass(frozen=True)
class EnsembleMonitorSpec:
    """Monitored columns ``(energy, magnitude, |g|, |G v|, momenta..., reduced...)`` of every state."""

    function: ca.Function  # of (x, z, c), the inputs of kernels
    momentum_sizes: tuple[int, ...]  # number of columns of each momentum
    n_reduced: int  # number of columns at the end with streaming statistics (sum, minimum, maximum)
    supplied_index: int = -1  # index of the supplied energy in the state, or -1

    @property
    def n_columns(self) -> int:
        return int(self.function.numel_out(0))

    @property
    def offsets(self) -> MonitorOffsets:
        maxima = 2 + self.n_columns
        sums = maxima + maxima_count(len(self.momentum_sizes))
        minimum, maximum, current, reference_energy = (sums + i * self.n_reduced for i in range(1, 5))
        return MonitorOffsets(0, 1, 2, maxima, sums, minimum, maximum, current, reference_energy, reference_energy + 1)


class MonitorOffsets(NamedTuple):
    """Offsets in the monitor of an ensemble, in rows of one number per lane."""

    mask: int  # monitored lanes
    last_energy: int  # energy of the last state
    initial_row: int  # columns of the initial state
    maxima: int  # maxima as in `livens.engine.observables.drift_monitor`
    sums: int  # sums of the reduced columns over all states
    minimum: int
    maximum: int
    current: int  # reduced columns of the current state
    reference_energy: int  # reference energy as in `livens.engine.observables.drift_monitor`
    n_rows: int  # number of rows


def initial_monitor(spec: EnsembleMonitorSpec, width: int, array: np.ndarray) -> np.ndarray:
    """Fill a zero array with the monitor before the first state."""
    offsets = spec.offsets
    array[offsets.mask] = 1.0
    array[offsets.minimum : offsets.maximum], array[offsets.maximum : offsets.current] = np.inf, -np.inf
    return array


def monitor_kernel(spec: EnsembleMonitorSpec, width: int) -> NativeCode:
    """Compile the monitor update by one state, in the lanes of the mask."""
    key = (
        f"{codegen_fingerprint()} {width} {spec.momentum_sizes} {spec.n_reduced} {spec.supplied_index} "
        f"{spec.function.serialize()}"
    )
    return load_or_compile(key, lambda: _monitor_ir(spec, width), "monitor", 1)


def monitor_init_kernel(spec: EnsembleMonitorSpec, width: int) -> NativeCode:
    """Compile the monitor initialisation: columns and energy of the initial state."""
    key = f"{codegen_fingerprint()} first {width} {spec.supplied_index} {spec.function.serialize()}"
    return load_or_compile(key, lambda: _monitor_init_ir(spec, width), "monitor_init", 1)


def _row(emitter: Emitter, spec: EnsembleMonitorSpec) -> tuple[list[str], str]:
    """Return the columns of a state, and its energy minus the supplied energy."""
    f = spec.function
    (row,) = emitter.graph(f, [emitter.inputs(p, f.nnz_in(p)) for p in (_X, _Z, _C)])
    energy = row[ENERGY]
    if spec.supplied_index >= 0:
        supplied, dissipated = (emitter.load(_Z, spec.supplied_index + i) for i in range(2))
        energy = emitter.sub(energy, emitter.sub(supplied, dissipated))
    return row, energy


def _monitor_init_ir(spec: EnsembleMonitorSpec, width: int) -> str:
    emitter, offsets = Emitter("monitor_init", 5, width), spec.offsets
    row, energy = _row(emitter, spec)
    for j, value in enumerate(row):
        emitter.store(value, _MONITOR, offsets.initial_row + j)
    emitter.store(energy, _MONITOR, offsets.last_energy)
    return emitter.to_ir()


def _monitor_ir(spec: EnsembleMonitorSpec, width: int) -> str:
    emitter, offsets = Emitter("monitor", 5, width), spec.offsets
    row, energy = _row(emitter, spec)
    active = emitter.to_bool(emitter.load(_MONITOR, offsets.mask))

    def masked_store(offset: int, value: str) -> None:
        emitter.store(emitter.select(active, value, emitter.load(_MONITOR, offset)), _MONITOR, offset)

    def running_max(offset: int, candidate: str, relation: str = "ugt") -> None:
        """Update a running maximum (or minimum). NaN propagates."""
        current = emitter.load(_MONITOR, offset)
        changed = emitter.logical_and(
            emitter.compare(relation, candidate, current), emitter.compare("ord", current, current)
        )
        emitter.store(emitter.select(emitter.logical_and(active, changed), candidate, current), _MONITOR, offset)

    drift, magnitude = (
        emitter.fabs(emitter.sub(energy, emitter.load(_MONITOR, offsets.initial_row + ENERGY))),
        emitter.fabs(row[MAGNITUDE]),
    )
    running_max(offsets.maxima + MAX_DRIFT, drift)
    running_max(
        offsets.maxima + MAX_INCREMENT, emitter.fabs(emitter.sub(energy, emitter.load(_MONITOR, offsets.last_energy)))
    )
    masked_store(offsets.last_energy, energy)
    for j in range(3):
        running_max(offsets.maxima + MAX_MAGNITUDE + j, emitter.fabs(row[MAGNITUDE + j]))
    drift_is_small = emitter.compare("ole", drift, emitter.mul(literal(0.5), magnitude))
    drift_is_small = emitter.logical_and(drift_is_small, emitter.compare("olt", magnitude, literal(math.inf)))
    reference = emitter.load(_MONITOR, offsets.reference_energy)
    larger = emitter.logical_and(
        emitter.logical_and(active, drift_is_small), emitter.compare("ogt", magnitude, reference)
    )
    emitter.store(emitter.select(larger, magnitude, reference), _MONITOR, offsets.reference_energy)
    column = MOMENTA
    for j, size in enumerate(spec.momentum_sizes):
        columns = range(column, column + size)
        change = [emitter.sub(row[k], emitter.load(_MONITOR, offsets.initial_row + k)) for k in columns]
        running_max(offsets.maxima + MAX_MOMENTA + 2 * j, _norm(emitter, change))
        running_max(offsets.maxima + MAX_MOMENTA + 1 + 2 * j, _norm(emitter, [row[k] for k in columns]))
        column += size
    for j in range(spec.n_reduced):
        value = row[column + j]
        masked_store(offsets.sums + j, emitter.add(emitter.load(_MONITOR, offsets.sums + j), value))
        running_max(offsets.minimum + j, value, "ult")
        running_max(offsets.maximum + j, value)
        masked_store(offsets.current + j, value)
    return emitter.to_ir()


def _norm(emitter: Emitter, vector: list[str]) -> str:
    total = emitter.mul(vector[0], vector[0])
    for value in vector[1:]:
        total = emitter.add(total, emitter.mul(value, value))
    return emitter.intrinsic("sqrt", total)
