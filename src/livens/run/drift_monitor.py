"""Drift monitor: largest deviations of conserved quantities over all steps, stored or not."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np

from livens.engine.compiled_step import CompiledStep
from livens.engine.lru_cache import LruCache
from livens.engine.newton.single_call import MonitorArrays
from livens.engine.observables import drift_monitor
from livens.engine.observables.drift_monitor import (
    ENERGY,
    MAX_DRIFT,
    MAX_MAGNITUDE,
    MAX_MOMENTA,
    MOMENTA,
    maxima_count,
)
from livens.engine.observables.element_sums import ElementObservables
from livens.engine.observables.kernel_table import ObservableKernel
from livens.engine.stepper import IntegratorState, StepChunk
from livens.expressions.state_layout import Layout
from livens.models.base import Model
from livens.models.energy_round_off import AT_REST, energy_at_rest, terms_function
from livens.models.input_entry import input_entry
from livens.results.record import Summary
from livens.types import Expr, FloatArray, IndexTable
from livens.validation import all_finite

if TYPE_CHECKING:
    from livens.engine.trees.observables import TreeObservables
    from livens.run.plan import Plan

#: Largest norm of a momentum at round-off level, relative to the largest momentum with the same kinetic energy, and the
#: relative drift from which on this comparison is made.
_MOMENTUM_ROUND_OFF, _SUSPICIOUS_DRIFT = 1e-12, 1e-10
#: Growth factor of an unsupplied energy above which the integration has blown up.
_BLOW_UP_FACTOR = 1e6


def energy_scale(initial_energy: float, reference_energy: float, max_magnitude: float) -> float:
    """Return the scale of energy deviations: the initial energy, or its magnitude where that is nearly zero.

    The magnitude is the largest one while the drift was small (`reference_energy`), if available: the magnitude of a
    run that has blown up would make every relative drift 1. Returns 0 if no magnitude is available.
    """
    magnitude = (
        reference_energy
        if reference_energy > 0 or initial_energy
        else max_magnitude
        if np.isfinite(max_magnitude)
        else 0.0
    )
    return abs(initial_energy) if abs(initial_energy) > 1e-3 * magnitude else magnitude


#: Names of conserved momenta by model, parameters and varied parameters.
_conserved: LruCache[tuple[str, bytes, tuple[int, ...]], tuple[str, ...]] = LruCache(256)


@functools.lru_cache(maxsize=32)
def _model_cache(fingerprint: str) -> dict[Any, Any]:
    """Return the cache of compiled tables of models with this fingerprint."""
    return {}


def momentum_bounds(
    model: Model, layout: Layout, momenta: tuple[str, ...], k: np.ndarray, t: float, z: np.ndarray, kinetic: float
) -> dict[str, float]:
    """Return the largest norm of each momentum ``p = G v`` with a kinetic energy, by the Cauchy-Schwarz inequality.

    It is ``sqrt(2 T |G M^-1 G^T|)`` at the state z; empty for models without velocities, and for large models.
    """
    view = model.view
    has_velocities = "v" in view.symbols and "kinetic_energy" in view.observable_names
    if not has_velocities or model.uses_sparse_path or any(name not in layout for name in view.symbols):
        return {}
    v, p = view.symbols["v"], view.symbols.get("p", ca.SX(0, 1))
    mass_matrix, _ = ca.hessian(view.observable("kinetic_energy"), v)
    derivatives: list[Expr] = [mass_matrix]
    for value in map(view.observable, momenta):
        conjugate = ca.jacobian(value, p) @ mass_matrix if p.numel() else 0  # p = M v
        derivatives.append(ca.jacobian(value, v) + conjugate)
    state = [z[layout[name]] for name in view.symbols]
    mass, *gradients = (np.array(view.function(entry)(*state, t, k)) for entry in derivatives)
    inverse = np.linalg.pinv(mass, hermitian=True)
    squares = (np.linalg.norm(G @ inverse @ G.T, 2) for G in gradients)
    return {name: float(np.sqrt(2 * kinetic * square)) for name, square in zip(momenta, squares, strict=True)}


def round_off_bounds(
    model: Model,
    layout: Layout,
    momenta: tuple[str, ...],
    k: np.ndarray,
    t: float,
    z: np.ndarray,
    h: float,
    kinetic: float,
) -> dict[str, float]:
    """Return scales for a motion at round-off level: `momentum_bounds`, and energies for a step size h.

    "strain energy" is that of the positions as displacements, "energy at rest" that of `energy_at_rest`.
    """
    bounds = momentum_bounds(model, layout, momenta, k, t, z, kinetic) if momenta else {}
    function = terms_function(model)
    if function is not None and all(name in layout for name in model.view.symbols):
        terms = np.array(function(*(z[layout[name]] for name in model.view.symbols), t, k)).ravel()
        bounds["strain energy"], bounds["energy at rest"] = float(terms[1]), float(energy_at_rest(terms, h))
    return bounds


def monitored_columns(model: Model, energy: str, momenta: tuple[str, ...]) -> tuple[Expr, IndexTable]:
    """Return the monitored expressions (energy, magnitude, constraints, momenta) and the sizes of the momenta."""
    view = model.view
    columns = [view.observable(energy) if energy else ca.SX(0), ca.SX(model.energy_scale())]
    columns += [ca.norm_inf(g) if g.numel() else ca.SX(0) for g in model.monitored_constraints()]
    parts = [view.observable(name) for name in momenta]
    sizes = np.array([int(part.numel()) for part in parts], dtype=np.int64)
    return ca.vertcat(*columns, *parts), sizes


def _monitor_table(
    model: Model, energy: str, momenta: tuple[str, ...]
) -> tuple[ObservableKernel | ElementObservables, np.ndarray]:
    cache = _model_cache(model.fingerprint)
    if (energy, momenta) not in cache:
        sums = model.monitored_element_sums(energy, momenta)
        if sums is not None:
            cache[energy, momenta] = ElementObservables(sums[0]), sums[1]
        else:
            columns, sizes = monitored_columns(model, energy, momenta)
            cache[energy, momenta] = ObservableKernel(model, columns), sizes
    return cache[energy, momenta]


def conserved_momenta(model: Model, k: np.ndarray, varied: tuple[int, ...] = ()) -> tuple[str, ...]:
    """Return the names of the symmetries that are conserved with these parameters, whatever those at `varied` are."""
    if not model.symmetries:
        return ()

    def names() -> tuple[str, ...]:
        generic = k.copy()
        generic[list(varied)] = np.random.default_rng(3).uniform(0.5, 1.5, len(varied))
        cases = [k, generic] if varied else [k]
        return tuple(name for name in model.symmetries if all(model.is_invariant(name, case) for case in cases))

    return _conserved.get_or_make((model.fingerprint, k.tobytes(), varied), names)


def varied_parameters(plan: Plan) -> tuple[int, ...]:
    """Return the indices of the parameters that the inputs of a run set."""
    names = () if plan.inputs is None else plan.inputs.values
    entries = [entry for name in names for entry in input_entry(plan.model, name) if entry is not None]
    indices = np.arange(len(plan.k))
    return tuple(sorted({int(i) for entry in entries for piece in entry.slices for i in indices[piece]}))


def describe_energy_growth(initial_energy: float, reference_energy: float, drift: float, magnitude: float) -> str:
    """Return a message if the energy growth indicates a blow-up, else an empty string.

    The kinetic energy must have grown as well: a motion at round-off level has an energy at round-off level.
    """
    scale = max(abs(initial_energy), reference_energy)
    if drift <= _BLOW_UP_FACTOR * scale or magnitude <= _BLOW_UP_FACTOR * scale or not 0 < scale < np.inf:
        return ""
    if not np.isfinite(drift + magnitude):
        return "the energy is no longer finite"
    return f"the energy has grown to {drift / scale:.1g} times its initial magnitude"


def name_nonfinite_quantity(energy: str, momenta: Sequence[str], maxima: np.ndarray) -> str:
    """Return the name of the first non-finite deviation, or an empty string."""
    names = [energy or "energy"] * 2 + ["kinetic energy", "constraint", "hidden constraint"]
    names += [name for name in momenta for _ in range(2)]
    for invalid in (np.isnan(maxima), ~np.isfinite(maxima)):
        if invalid.any():
            return names[int(np.argmax(invalid))].replace("_", " ")
    return ""


class MonitorSpec(NamedTuple):
    """Quantities monitored in runs of a compiled step."""

    energy: str
    momenta: tuple[str, ...]
    #: Index of the supplied energy in the state; -1 if absent.
    supplied_index: int
    #: True if all supplied and dissipated energy is known: any other change of energy is then an error.
    has_energy_balance: bool
    table: ObservableKernel | ElementObservables | TreeObservables
    momentum_sizes: np.ndarray  # of the momenta
    #: Monitor arrays of the single-call loop; None for large models.
    arrays: MonitorArrays | None
    #: True without energy, momenta and constraints.
    is_empty: bool = False

    @classmethod
    def from_step(cls, compiled: CompiledStep, momenta: tuple[str, ...], tier: str) -> MonitorSpec:
        energy, layout = compiled.model.monitored_energy(compiled.scheme.conserves), compiled.layout
        supplied = layout["supplied_energy"].start if "supplied_energy" in layout else -1
        accounted = bool(energy) and (supplied >= 0 or compiled.model.conservative)
        if tier == "tree":
            from livens.engine.trees.observables import TreeObservables  # only models that are trees need it

            if TreeObservables.supports(momenta):
                observables = TreeObservables(compiled, momenta)
                return cls(energy, momenta, supplied, accounted, observables, observables.momentum_sizes, None)
        table, sizes = _monitor_table(compiled.model, energy, momenta)
        columns = None
        if isinstance(table, ObservableKernel):
            columns = MonitorArrays(table.address, table.width, supplied, sizes, len(momenta))
        is_empty = not (energy or momenta or any(g.numel() for g in compiled.model.monitored_constraints()))
        return cls(energy, momenta, supplied, accounted, table, sizes, columns, is_empty)


def monitor_spec(
    compiled: CompiledStep, k: np.ndarray, tier: str = "fused", varied: tuple[int, ...] = ()
) -> MonitorSpec:
    """Return the monitored quantities of runs of a compiled step with these parameters in a tier."""
    momenta = conserved_momenta(compiled.model, k, varied)
    is_tree = tier == "tree"
    return compiled.cached(("extremes", momenta, is_tree), lambda: MonitorSpec.from_step(compiled, momenta, tier))


def describe_blow_up(
    spec: MonitorSpec, initial_energy: float, reference_energy: float, drift: float, magnitude: float
) -> str:
    """Return a message if a run has blown up; empty string if not, or if the energy balance is not closed."""
    return describe_energy_growth(initial_energy, reference_energy, drift, magnitude) if spec.has_energy_balance else ""


class DriftMonitor:
    """Monitor of the largest deviations of a run. Its state can be stored in checkpoints and restored.

    Momenta are monitored if they are conserved for all values of the parameters with the indices `varied`. The
    round-off of a motion at rest depends on the step size h in seconds.
    """

    name = "extremes"

    def __init__(
        self, compiled: CompiledStep, k: np.ndarray, tier: str = "fused", varied: tuple[int, ...] = (), *, h: float
    ) -> None:
        self.k, self._spec, self._compiled, self._h = k, monitor_spec(compiled, k, tier, varied), compiled, h
        self._varied = varied
        self._broken: tuple[str, ...] = ()  # momenta that are not conserved after a change of parameters
        self._bounds: Callable[[float], dict[str, float]] | None = None  # at the initial state
        self._initial: tuple[float, np.ndarray] | None = None  # initial state, until it is evaluated
        self._initial_row: np.ndarray | None = None
        self._last_energy = np.zeros(1)  # energy of the last state
        self._maxima = np.zeros(maxima_count(len(self._spec.momenta)))
        self._reference_energy = np.zeros(1)  # largest energy magnitude while the drift was small
        self._rollback_state: tuple[Any, ...] = ()  # copy of these values before the last steps

    def start(self, state: IntegratorState) -> None:
        self._initial = state.t, state.z  # evaluated together with the first steps: one call instead of two
        self._bounds = functools.partial(
            round_off_bounds,
            self._compiled.model,
            self._compiled.layout,
            self._spec.momenta,
            self.k,
            state.t,
            state.z.copy(),
            self._h,
        )
        drift_monitor.precompile()  # compile before the run starts

    def observe(self, steps: StepChunk, regular: bool = True) -> None:
        """Update the maxima with the states of a chunk, in order of time."""
        self._rollback_state = (
            self._initial_row is None,
            self._initial,
            *(a.copy() for a in (self._last_energy, self._maxima, self._reference_energy)),
        )
        if self._initial is not None:
            self._initial = None
            self.update(steps.t_nodes, steps.states)
        elif steps.n_steps:
            self.update(steps.t_end, steps.end_states)

    def observe_run(self, t: np.ndarray, Z: np.ndarray) -> None:
        """Update the maxima with all states of a run, including the initial one."""
        self._initial = None
        if self._spec.is_empty:
            self._initial_row = np.zeros(self._spec.table.width)
        else:
            self.update(t, Z)

    def _observe_initial_state(self) -> None:
        """Evaluate the initial state if no step was taken."""
        if self._initial is not None:
            (t, z), self._initial = self._initial, None
            self.update(np.array([t]), z[None, :])

    def update(self, t: np.ndarray, Z: np.ndarray) -> None:
        """Update the maxima; the first call of a run must contain the initial state."""
        is_initial = self._initial_row is None
        spec = self._spec
        initial_row = self._initial_row = np.empty(spec.table.width) if self._initial_row is None else self._initial_row
        # supplied and dissipated energy is not drift
        spec.table.accumulate(
            t,
            Z,
            self.k,
            spec.supplied_index,
            is_initial,
            initial_row,
            self._last_energy,
            self._maxima,
            spec.momentum_sizes,
            self._reference_energy,
        )

    @property
    def has_started(self) -> bool:
        """True if the initial state has been evaluated."""
        return self._initial_row is not None

    def apply_jump(self, before: IntegratorState, after: IntegratorState, k: np.ndarray) -> None:
        """Shift the references after an action changed the state or the parameters."""
        old = self._spec.table(np.array([before.t]), before.z[None, :], self.k)[0]
        new = self._spec.table(np.array([after.t]), after.z[None, :], k)[0]
        changed = {*np.flatnonzero(self.k != k).tolist()} - {*self._varied}
        if changed and set(self._spec.momenta) > set(self._broken):
            self._varied = tuple(sorted({*self._varied, *changed}))
            conserved = conserved_momenta(self._compiled.model, k, self._varied)
            self._broken = tuple(name for name in self._spec.momenta if name not in conserved)
        self.k = k
        assert self._initial_row is not None
        if self._spec.supplied_index < 0:  # otherwise the change is booked as supplied energy
            self._initial_row[ENERGY] += new[ENERGY] - old[ENERGY]
            self._last_energy[0] += new[ENERGY] - old[ENERGY]
        self._initial_row[MOMENTA:] += new[MOMENTA:] - old[MOMENTA:]

    @property
    def _initial_energy(self) -> float:
        return 0.0 if self._initial_row is None else self._initial_row.item(ENERGY)

    def blow_up_message(self) -> str:
        """Return a message if the energy growth indicates a blow-up, else an empty string."""
        drift, magnitude = self._maxima.item(MAX_DRIFT), self._maxima.item(MAX_MAGNITUDE)
        message = describe_blow_up(self._spec, self._initial_energy, self._reference_energy.item(0), drift, magnitude)
        if message and self._bounds is not None and np.isfinite(drift + magnitude):
            # a mechanism at rest: round-off of stiff forces, whose work grows with the step size, and of joints
            bounds = self._bounds(magnitude)
            round_off = max(np.finfo(float).eps * bounds.get("strain energy", 0.0), bounds.get("energy at rest", 0.0))
            return "" if max(drift, magnitude) < round_off else message
        return message

    def nonfinite_quantity(self) -> str:
        """Return the name of a non-finite monitored quantity; empty string if none, or if the run has blown up."""
        if all_finite(self._maxima) or (self.blow_up_message() and not np.isnan(self._maxima).any()):
            return ""
        return name_nonfinite_quantity(self._spec.energy, self._spec.momenta, self._maxima)

    def rollback(self, steps: StepChunk) -> int:
        """Undo the last update and return the number of leading steps with finite monitored quantities."""
        was_initial, self._initial, self._last_energy, self._maxima, self._reference_energy = self._rollback_state
        if was_initial:
            self._initial_row = None
        finite = np.isfinite(self._spec.table(steps.t_nodes, steps.states, self.k)).all(axis=1)
        return max(0, (len(finite) if finite.all() else int(np.argmin(finite))) - 1)

    def summary(self) -> Summary:
        """Return the summary of the largest deviations so far."""
        return self.lazy_summary()()

    def lazy_summary(self) -> Callable[[], Summary]:
        """Return a function that computes the summary when it is first needed."""
        self._observe_initial_state()
        energy, momenta, start = self._spec.energy, self._spec.momenta, self._initial_energy
        return functools.partial(
            summary_from_maxima,
            energy,
            momenta,
            start,
            self._reference_energy.item(0),
            self._maxima.copy(),
            self._bounds,
            self._broken,
        )

    def checkpoint(self) -> dict[str, FloatArray | float]:
        self._observe_initial_state()
        initial_row = self._initial_row if self._initial_row is not None else np.zeros(0)
        last_energy, reference_energy = float(self._last_energy[0]), float(self._reference_energy[0])
        broken = np.array([name in self._broken for name in self._spec.momenta], dtype=float)
        return {
            "first": initial_row,
            "last": last_energy,
            "largest": self._maxima.copy(),
            "trusted": reference_energy,
            "broken": broken,
        }

    def restore(self, stored: dict[str, Any]) -> None:
        self._initial_row = np.array(stored["first"])
        self._last_energy = np.array([float(stored["last"])])
        self._maxima = np.array(stored["largest"])
        # older files do not store the reference energy
        self._reference_energy = np.array([float(stored.get("trusted", self._maxima[MAX_MAGNITUDE]))])
        broken = np.ravel(stored.get("broken", ())).tolist()
        self._broken = tuple(name for name, is_broken in zip(self._spec.momenta, broken, strict=False) if is_broken)


def summary_from_maxima(
    energy: str,
    momenta: tuple[str, ...],
    initial_energy: float,
    reference_energy: float,
    maxima: np.ndarray,
    bounds: Callable[[float], dict[str, float]] | None = None,
    broken: tuple[str, ...] = (),
) -> Summary:
    """Return the summary of the largest deviations of a run with this initial energy, without the momenta `broken`.

    `bounds` returns the largest momenta with a kinetic energy, and the scale of the energy. Drifts of a momentum or an
    energy at round-off level are relative to its bound.
    """
    magnitude = float(maxima[MAX_MAGNITUDE])
    scale = energy_scale(initial_energy, reference_energy, magnitude) or 1.0
    drifts, sizes = maxima[MAX_MOMENTA::2], maxima[MAX_MOMENTA + 1 :: 2]
    is_suspicious = maxima[MAX_DRIFT] > _SUSPICIOUS_DRIFT * scale or (drifts > _SUSPICIOUS_DRIFT * sizes).any()
    if bounds is not None and np.isfinite(maxima).all() and is_suspicious:
        largest = bounds(magnitude)
        rest = largest.get("energy at rest", 0.0)
        if magnitude < rest:  # all velocities are round-off
            largest = bounds(rest / AT_REST**2)
            if abs(initial_energy) < rest:
                scale = rest / AT_REST**2
        maxima = maxima.copy()
        for i, name in enumerate(momenta):
            if drifts[i] > 0 and sizes[i] < _MOMENTUM_ROUND_OFF * largest.get(name, 0.0):
                maxima[MAX_MOMENTA + 1 + 2 * i] = largest[name]
    summary = scaled_summary(energy, momenta, scale, maxima)
    for name in broken:
        del summary.momentum_drift[name]
    return summary


def scaled_summary(energy: str, momenta: Sequence[str], scale: float, maxima: np.ndarray) -> Summary:
    """Return the summary of the largest deviations `maxima`; energies are relative to `scale`."""
    # Python floats: no warnings for inf / inf after a blow-up
    drift, increment, _, constraint, velocity, *momentum_maxima = maxima.tolist()
    drifts = {
        name: deviation / (size or 1.0)
        for name, deviation, size in zip(momenta, momentum_maxima[::2], momentum_maxima[1::2], strict=True)
    }
    return Summary(
        energy=energy,
        max_energy_drift=drift / scale,
        max_energy_increment=increment / scale,
        max_constraint=constraint,
        max_velocity_constraint=velocity,
        momentum_drift=drifts,
    )
