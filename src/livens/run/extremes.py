"""Drift monitor: largest deviations of conserved quantities over all steps, stored or not."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from livens.engine import fold
from livens.engine.compiled import CompiledStep
from livens.engine.element_table import ElementTable
from livens.engine.short import Columns
from livens.engine.steps import Carry, Steps
from livens.engine.table import Table
from livens.expressions.numbers import all_finite
from livens.models.model import Model
from livens.results.record import Summary

#: Growth factor of an unsupplied energy above which the integration has blown up.
_EXPLODED = 1e6


def energy_scale(start: float, trusted: float, largest: float) -> float:
    """Return the scale of energy deviations: the initial energy, or its magnitude where that is nearly zero.

    The magnitude is the largest one while the drift was small (`reference_energy`), if available: the magnitude of a
    run that has blown up would make every relative drift 1. Returns 0 if no magnitude is available.
    """
    magnitude = trusted if trusted > 0 or start else largest if np.isfinite(largest) else 0.0
    return abs(start) if abs(start) > 1e-3 * magnitude else magnitude


@functools.lru_cache(maxsize=32)
def _tables(digest: str) -> dict[Any, Any]:
    """Return the cache of compiled tables of models with this fingerprint."""
    return {}


def watched_columns(model: Model, energy: str, momenta: tuple[str, ...]) -> tuple[Any, np.ndarray]:
    """Return the monitored expressions (energy, magnitude, constraints, momenta) and the sizes of the momenta."""
    view = model.view
    columns = [view.expression(energy) if energy else ca.SX(0), ca.SX(model.magnitude())]
    columns += [ca.norm_inf(g) if g.numel() else ca.SX(0) for g in model.watched_constraints()]
    parts = [view.expression(name) for name in momenta]
    sizes = np.array([int(part.numel()) for part in parts], dtype=np.int64)
    return ca.vertcat(*columns, *parts), sizes


def _table(model: Model, energy: str, momenta: tuple[str, ...]) -> tuple[Table | ElementTable, np.ndarray]:
    known = _tables(model.digest)
    if (energy, momenta) not in known:
        sums = model.watched_sums(energy, momenta)
        if sums is not None:
            known[energy, momenta] = ElementTable(sums[0]), sums[1]
        else:
            columns, sizes = watched_columns(model, energy, momenta)
            known[energy, momenta] = Table(model, columns), sizes
    return known[energy, momenta]


def conserved(model: Model, k: np.ndarray) -> tuple[str, ...]:
    """Return the names of the symmetries that are conserved with these parameters."""
    if not model.symmetries:
        return ()
    known, key = _tables(model.digest), ("conserved", k.tobytes())
    if key not in known:
        known[key] = tuple(name for name in model.symmetries if model.conserves(name, k))
    return known[key]


def growth(start: float, trusted: float, drift: float, magnitude: float) -> str:
    """Return a message if the energy growth indicates a blow-up, else an empty string.

    The kinetic energy must have grown as well: a motion at round-off level has an energy at round-off level.
    """
    before = max(abs(start), trusted)
    if drift <= _EXPLODED * before or magnitude <= _EXPLODED * before or not 0 < before < np.inf:
        return ""
    if not np.isfinite(drift + magnitude):
        return "the energy is no longer finite"
    return f"the energy has grown to {drift / before:.1g} times its initial magnitude"


def not_finite(energy: str, momenta: Sequence[str], largest: np.ndarray) -> str:
    """Return the name of the first non-finite deviation, or an empty string."""
    names = [energy or "energy"] * 2 + ["kinetic energy", "constraint", "hidden constraint"]
    names += [name for name in momenta for _ in range(2)]
    for unsound in (np.isnan(largest), ~np.isfinite(largest)):
        if unsound.any():
            return names[int(np.argmax(unsound))].replace("_", " ")
    return ""


class Watched(NamedTuple):
    """Quantities monitored in runs of a compiled step."""

    energy: str
    momenta: tuple[str, ...]
    #: Index of the supplied energy in the state; -1 if absent.
    supplied: int
    #: True if all supplied and dissipated energy is known: any other change of energy is then an error.
    accounted: bool
    table: Table | ElementTable
    sizes: np.ndarray  # of the momenta
    #: Monitor arrays of the single-call loop; None for large models.
    columns: Columns | None

    @classmethod
    def of(cls, compiled: CompiledStep, momenta: tuple[str, ...]) -> Watched:
        energy, layout = compiled.model.watched_energy(compiled.scheme.conserves), compiled.layout
        supplied = layout["supplied_energy"].start if "supplied_energy" in layout else -1
        accounted = bool(energy) and (supplied >= 0 or compiled.model.conservative)
        table, sizes = _table(compiled.model, energy, momenta)
        columns = None
        if isinstance(table, Table):
            columns = Columns(table.address, table.width, supplied, sizes, len(momenta))
        return cls(energy, momenta, supplied, accounted, table, sizes, columns)


def watched(compiled: CompiledStep, k: np.ndarray) -> Watched:
    """Return the monitored quantities of runs of a compiled step with these parameters."""
    momenta = conserved(compiled.model, k)
    return compiled.once(("extremes", momenta), lambda: Watched.of(compiled, momenta))


def explosion(of: Watched, start: float, trusted: float, drift: float, magnitude: float) -> str:
    """Return a message if a run has blown up; empty string if not, or if the energy balance is not closed."""
    return growth(start, trusted, drift, magnitude) if of.accounted else ""


class Extremes:
    """Monitor of the largest deviations of a run. Its state can be stored in checkpoints and restored."""

    name = "extremes"

    def __init__(self, compiled: CompiledStep, k: np.ndarray) -> None:
        self._k, self._of = k, watched(compiled, k)
        self._begun: tuple[float, np.ndarray] | None = None  # initial state, until it is evaluated
        self._first: np.ndarray | None = None
        self._last = np.zeros(1)  # energy of the last state
        # maxima: energy drift, increment, kinetic energy, |g|, |G v|, then drift and magnitude of each momentum
        self._largest = np.zeros(5 + 2 * len(self._of.momenta))
        self._trusted = np.zeros(1)  # largest energy magnitude while the drift was small
        self._before: tuple[Any, ...] = ()  # copy of these values before the last steps

    def begin(self, carry: Carry) -> None:
        self._begun = carry.t, carry.z  # evaluated together with the first steps: one call instead of two
        fold.prepare()  # compile before the run starts

    def look(self, steps: Steps, regular: bool = True) -> None:
        """Update the maxima with the states of a chunk, in order of time."""
        self._before = self._first is None, self._begun, *(a.copy() for a in (self._last, self._largest, self._trusted))
        if self._begun is not None:
            self._begun = None
            self.take(steps.times, steps.states)
        elif steps.taken:
            self.take(steps.t, steps.Z)

    def _catch_up(self) -> None:
        """Evaluate the initial state if no step was taken."""
        if self._begun is not None:
            (t, z), self._begun = self._begun, None
            self.take(np.array([t]), z[None, :])

    def take(self, t: np.ndarray, Z: np.ndarray) -> None:
        """Update the maxima; the first call of a run must contain the initial state."""
        begins = self._first is None
        of = self._of
        first = self._first = np.empty(of.table.width) if self._first is None else self._first
        # supplied and dissipated energy is not drift
        of.table.fold(t, Z, self._k, of.supplied, begins, first, self._last, self._largest, of.sizes, self._trusted)

    def jump(self, before: Carry, after: Carry, k: np.ndarray) -> None:
        """Shift the references after an action changed the state or the parameters."""
        old = self._of.table(np.array([before.t]), before.z[None, :], self._k)[0]
        new = self._of.table(np.array([after.t]), after.z[None, :], k)[0]
        self._k = k
        assert self._first is not None
        if self._of.supplied < 0:  # otherwise the change is booked as supplied energy
            self._first[0] += new[0] - old[0]
            self._last[0] += new[0] - old[0]
        self._first[4:] += new[4:] - old[4:]

    @property
    def _start_energy(self) -> float:
        return 0.0 if self._first is None else self._first.item(0)

    def exploded(self) -> str:
        """Return a message if the energy growth indicates a blow-up, else an empty string."""
        drift, magnitude = self._largest.item(0), self._largest.item(2)
        return explosion(self._of, self._start_energy, self._trusted.item(0), drift, magnitude)

    def lost(self) -> str:
        """Return the name of a non-finite monitored quantity; empty string if none, or if the run has blown up."""
        if all_finite(self._largest) or (self.exploded() and not np.isnan(self._largest).any()):
            return ""
        return not_finite(self._of.energy, self._of.momenta, self._largest)

    def back(self, steps: Steps) -> int:
        """Undo the last update and return the number of leading steps with finite monitored quantities."""
        anew, self._begun, self._last, self._largest, self._trusted = self._before
        if anew:
            self._first = None
        finite = np.isfinite(self._of.table(steps.times, steps.states, self._k)).all(axis=1)
        return max(0, (len(finite) if finite.all() else int(np.argmin(finite))) - 1)

    def summary(self) -> Summary:
        """Return the summary of the largest deviations so far."""
        return self.summary_later()()

    def summary_later(self) -> Callable[[], Summary]:
        """Return a function that computes the summary when it is first needed."""
        self._catch_up()
        energy, momenta, start = self._of.energy, self._of.momenta, self._start_energy
        return functools.partial(summary_from, energy, momenta, start, self._trusted.item(0), self._largest.copy())

    def state(self) -> dict[str, Any]:
        self._catch_up()
        first = self._first if self._first is not None else np.zeros(0)
        last, trusted = float(self._last[0]), float(self._trusted[0])
        return {"first": first, "last": last, "largest": self._largest.copy(), "trusted": trusted}

    def restore(self, stored: dict[str, Any]) -> None:
        self._first = np.array(stored["first"])
        self._last = np.array([float(stored["last"])])
        self._largest = np.array(stored["largest"])
        # older files do not store the reference energy
        self._trusted = np.array([float(stored.get("trusted", self._largest[2]))])


def summary_from(energy: str, momenta: tuple[str, ...], start: float, trusted: float, largest: np.ndarray) -> Summary:
    """Return the summary of the largest deviations of a run with this initial energy."""
    return summary_of(energy, momenta, energy_scale(start, trusted, float(largest[2])) or 1.0, largest)


def summary_of(energy: str, momenta: Sequence[str], scale: float, largest: np.ndarray) -> Summary:
    """Return the summary of the largest deviations computed by `fold`; energies are relative to `scale`."""
    # Python floats: no warnings for inf / inf after a blow-up
    drift, increment, _, constraint, velocity, *others = largest.tolist()
    drifts = {name: moved / (size or 1.0) for name, moved, size in zip(momenta, others[::2], others[1::2], strict=True)}
    return Summary(
        energy=energy,
        max_energy_drift=drift / scale,
        max_energy_increment=increment / scale,
        max_constraint=constraint,
        max_velocity_constraint=velocity,
        momentum_drift=drifts,
    )
