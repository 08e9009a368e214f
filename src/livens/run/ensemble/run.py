"""Run an ensemble: members share equations and time grid, and differ in initial values and parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from livens.engine.codegen.unrolled_lu import PivotOrder
from livens.engine.compiled_step import CompiledStep, compiled_step
from livens.engine.ensemble.lane_run import (
    EnsembleArrays,
    HistogramSpec,
    InputTable,
    TimeGrid,
)
from livens.engine.ensemble.member_ordering import morton_order
from livens.engine.ensemble.monitor_kernel import EnsembleMonitorSpec
from livens.engine.ensemble.stepper import EnsembleStepper, choose_width, unpermute
from livens.engine.newton.markowitz import SingularMatrixError
from livens.engine.observables.drift_monitor import ENERGY, MAX_DRIFT, MAX_MAGNITUDE
from livens.engine.observables.kernel_table import observable_function
from livens.engine.stepper import step_inputs
from livens.engine.trees.observables import TreeObservables
from livens.errors import InputError
from livens.models import observable
from livens.models.base import Model
from livens.results.ensemble import Ensemble, Reduced, Summaries
from livens.results.record import Summary
from livens.run.drift_monitor import (
    conserved_momenta,
    describe_energy_growth,
    energy_scale,
    monitored_columns,
    name_nonfinite_quantity,
    scaled_summary,
)
from livens.run.ensemble.execution import EnsembleColumns, EnsembleJob, execute
from livens.run.ensemble.member_runs import MemberRuns
from livens.run.ensemble.members import EnsembleMembers, initial_states
from livens.run.ensemble.partial_results import finalize
from livens.run.events.event import model_events
from livens.run.plan import Plan
from livens.run.progress import Progress
from livens.run.startup import REFERENCE_H
from livens.run.stepping import split_interval
from livens.types import ModelFunction
from livens.validation import check_integer

Reductions = Mapping[str, ModelFunction]

#: Largest number of unknowns of trees and assembled models that advance in SIMD lanes. The compilation of larger steps
#: takes ten seconds and more, and their code is slower than single runs. The choice depends on equations only.
_MAX_LANE_UNKNOWNS = 150
#: The same for trees whose members advance in SIMD lanes by the tree tier. Their steps are shorter than those of fused
#: code from two bodies on, but single initial states take as much time as a thousand steps.
_MAX_FUSED_UNKNOWNS_OF_TREES = 40

#: Tiers of members that take the steps of single runs, and how they step.
_TIERS = {"tree": "on a tree", "assembled": "by assembled kernels"}


def unsupported_reason(plan: Plan) -> str:
    """Return the reason why runs of this plan cannot form an ensemble, or an empty string."""
    if not plan.has_fixed_steps:
        return "an ensemble needs fixed steps in physical time, neither adaptive steps nor steps in fictive time"
    if plan.tier == "reference":
        return "an ensemble needs native code: remove tier='reference'"
    if getattr(plan.model, "controllers", ()):
        return "an ensemble cannot have sampled controllers, which are called between steps"
    if events := model_events(plan.model):
        return f"an ensemble cannot have {events[0].label}, which act between steps"
    if plan.model.guards:
        return f"the model has guards ({', '.join(plan.model.guards)}), which an ensemble cannot monitor"
    return ""


def _reason_for_lanes(members: EnsembleMembers, tier: str, reduce: Reductions | None, client: object) -> str:
    """Return the reason why members advance in fused lanes; empty if they take the steps of single runs."""
    plan = members.plan
    if plan.tier not in ("tree", "assembled"):
        return (
            "tier='fused' is given" if tier == "fused" else f"the model is not stepped {_TIERS.get(tier, 'on a tree')}"
        )
    if tier in _TIERS and plan.tier != tier:
        return f"the model is not stepped {_TIERS[tier]}"
    if tier == "auto":
        compiled = compiled_step(plan.model, plan.scheme)
        has_tree_lanes = plan.tier == "tree" and MemberRuns.supports_lanes(compiled) and not members.inputs.steps.size
        limit = _MAX_FUSED_UNKNOWNS_OF_TREES if has_tree_lanes else _MAX_LANE_UNKNOWNS
        if compiled.equations.n_assembled_unknowns <= limit:
            return f"the step has at most {limit} unknowns"
    if reduce:
        return "functions of the state over all steps are evaluated in SIMD lanes only"
    if client is not None:
        return "workers of a cluster step in SIMD lanes only"
    if plan.tier == "tree" and not TreeObservables.supports(tuple(plan.model.symmetries)):
        return "the tree tier monitors linear and angular momentum only"
    return ""


def run_ensemble(
    members: EnsembleMembers | Sequence[Plan],
    *,
    reduce: Reductions | None = None,
    histograms: Mapping[str, object] | None = None,
    threads: int = 1,
    out: Path | None = None,
    force: bool = False,
    client: str | None = None,
    progress: bool | None = False,
    tier: str = "auto",
) -> Ensemble:
    """Run members with the same equations, scheme, step size, end time and output rows.

    With `tier` "tree" or "assembled", members take the steps of single runs; "auto" chooses it for large models.
    """
    members = members if isinstance(members, EnsembleMembers) else EnsembleMembers.from_plans(members)
    plan = members.plan
    reason = unsupported_reason(plan)
    if reason:
        raise InputError(reason)
    if reduce is not None and not isinstance(reduce, Mapping):
        raise InputError(f"reduce must map names to observables or functions of the state, got {reduce!r}")
    lane_reason = _reason_for_lanes(members, tier, reduce, client)
    if lane_reason and tier in _TIERS:
        raise InputError(f"{lane_reason}: remove tier='{tier}'")
    compiled, z, reasons = initial_states(members, vectorized=bool(lane_reason))
    if compiled.removed_constraints and not lane_reason:
        plan.settle_tier(compiled)
        lane_reason = "" if plan.tier in _TIERS else "constraints of joints are redundant"
    started = np.delete(np.arange(members.n_members), list(reasons))
    names = plan.variables(compiled)
    stored = [name for name in compiled.layout.sizes if name in names]
    entries = np.arange(compiled.layout.size)
    columns = np.concatenate([entries[:0], *(entries[compiled.layout[name]] for name in stored)])
    steps, rest = split_interval(plan.h, plan.t0, plan.t_end)
    schedule = TimeGrid(plan.h, plan.t0, steps, rest, int(plan.every), columns)
    momenta = tuple(compiled.model.symmetries)
    shapes = {name: _expression(compiled.model, definition)[1] for name, definition in (reduce or {}).items()}
    bins, outcome, job = _histogram_specs(histograms, shapes), None, None
    width = compiled.cached("width", lambda: choose_width(compiled)) if lane_reason else 1
    if started.size:
        z, k = (z[started], members.k[started]) if reasons else (z, members.k)
        order = morton_order(z, k)
        z, k = z[order], k[order]
        stepper = lane_stepper(compiled, plan, z, k, reduce) if lane_reason else MemberRuns(compiled, plan, momenta)
        width = stepper.width
        stored_columns = EnsembleColumns(_column_slices(compiled, stored), started[order], members.n_members)
        inputs = members.inputs.of_members(started[order])
        job = EnsembleJob(stepper, z, k, schedule, tuple(bins.values()), threads, stored_columns, inputs)
        with Progress(plan.title, len(z), progress, unit="members") as bar:
            outcome = unpermute(execute(job, out, client, force, bar.update), order, threads)
        outcome.failures |= _late_failures(
            compiled, schedule, outcome, momenta, members.k[started], _monitored_energy(compiled, members.inputs)
        )
        reasons |= {int(started[member]): message for member, message in outcome.failures.items()}
    ensemble = _build_ensemble(
        members, compiled, schedule, outcome, started, reasons, momenta, shapes, bins, width, lane_reason
    )
    if out is not None:
        finalize(ensemble, out, job, force)
    return ensemble


def _column_slices(compiled: CompiledStep, names: Sequence[str]) -> dict[str, slice]:
    """Return the slices of variables within the stored columns."""
    ends = np.cumsum([compiled.layout.sizes[name] for name in names]).tolist()
    return {name: slice(end - compiled.layout.sizes[name], end) for name, end in zip(names, ends, strict=True)}


def _histogram_specs(
    histograms: Mapping[str, Any] | None, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, HistogramSpec]:
    """Parse the histograms of scalar reductions."""
    if histograms is None:
        return {}
    if not isinstance(histograms, Mapping):
        raise InputError(f"histograms must map names to (low, high, bins), got {histograms!r}")
    offset, offsets = 0, {}
    for name, shape in shapes.items():
        offsets[name] = offset
        offset += int(np.prod(shape, dtype=int))
    specs = {}
    for name, spec in histograms.items():
        if name not in offsets or shapes[name] != ():
            raise InputError(f"histograms need scalar entries of reduce; '{name}' is not one")
        try:
            low, high, count = spec
            low, high = float(low), float(high)
        except (TypeError, ValueError):
            raise InputError(f"the histogram of '{name}' must be (low, high, bins), got {spec!r}") from None
        n_bins = check_integer(f"the number of bins of '{name}'", count, minimum=1, maximum=2**20)
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise InputError(f"the histogram of '{name}' needs low < high, got {spec!r}")
        specs[name] = HistogramSpec(offsets[name], low, high, n_bins)
    return specs


def _pivot_order(compiled: CompiledStep, plan: Plan, z: np.ndarray, k: np.ndarray) -> PivotOrder | None:
    """Return a pivot order for the first step of the first member with a regular Jacobian."""
    if not compiled.flat_equations.size:
        return None
    reference_inputs = np.concatenate([[REFERENCE_H, plan.t0], plan.model.parameter_vector()])
    for state, values in zip(z, k, strict=True):
        c = step_inputs(plan.h, plan.t0, values)
        try:
            return compiled.initial_pivot_order(compiled.initial_unknowns(state, c), state, c, reference_inputs)
        except SingularMatrixError as error:
            message = str(error)
    raise InputError(f"the first step cannot be solved for any member: {message}")


def lane_stepper(
    compiled: CompiledStep, plan: Plan, z: np.ndarray, k: np.ndarray, reduce: Reductions | None = None
) -> EnsembleStepper:
    """Return the ensemble stepper of a plan, with a pivot order for the states z and parameters k of some members.

    It is cached unless there are functions to reduce.
    """
    order, momenta = _pivot_order(compiled, plan, z, k), tuple(compiled.model.symmetries)
    width = compiled.cached("width", lambda: choose_width(compiled))
    if reduce:
        return EnsembleStepper(compiled, order, _monitor_spec(compiled, momenta, reduce), width)
    monitor = compiled.cached("watched", lambda: _monitor_spec(compiled, momenta, {}))
    return compiled.cached(("batch", order), lambda: EnsembleStepper(compiled, order, monitor, width))


def _monitor_spec(compiled: CompiledStep, momenta: tuple[str, ...], reduce: Reductions) -> EnsembleMonitorSpec:
    model = compiled.model
    columns, sizes = monitored_columns(model, model.monitored_energy(compiled.scheme.conserves), momenta)
    user_columns = [_expression(model, definition)[0] for definition in reduce.values()]
    user_expressions = ca.vertcat(*user_columns) if user_columns else ca.SX(0, 1)
    supplied = compiled.layout["supplied_energy"].start if "supplied_energy" in compiled.layout else -1
    function = observable_function(model, ca.vertcat(columns, user_expressions))
    return EnsembleMonitorSpec(function, tuple(sizes.tolist()), int(user_expressions.numel()), supplied)


def _monitored_energy(compiled: CompiledStep, inputs: InputTable) -> str:
    """Return the name of the monitored energy; empty if it depends on inputs over time, whose changes supply it."""
    model = compiled.model
    name = model.monitored_energy(compiled.scheme.conserves)
    if not name or not inputs.entries.size:
        return name
    columns = ca.jacobian_sparsity(ca.SX(model.view.observable(name)), model.view.k).get_triplet()[1]
    return "" if np.isin(inputs.entries, columns).any() else name


def _expression(model: Model, definition: object) -> tuple[Any, tuple[int, ...]]:
    if isinstance(definition, str):
        if definition not in model.view.observable_names:
            raise InputError(
                f"unknown observable '{definition}' in reduce; allowed: {', '.join(model.view.observable_names)}"
            )
        column = ca.densify(ca.SX(model.view.observable(definition)))
        return column, () if column.numel() == 1 else (int(column.numel()),)
    if not callable(definition):
        raise InputError(f"reduce maps names to observables or functions of the state, got {definition!r}")
    return observable.trace_observable(model, definition)


def _build_ensemble(
    members: EnsembleMembers,
    compiled: CompiledStep,
    schedule: TimeGrid,
    outcome: EnsembleArrays | None,
    started: np.ndarray,
    reasons: dict[int, str],
    momenta: tuple[str, ...],
    shapes: Mapping[str, tuple[int, ...]],
    bins: Mapping[str, HistogramSpec],
    width: int,
    lane_reason: str,
) -> Ensemble:
    plan, model, count, k = members.plan, compiled.model, members.n_members, members.k
    energy = _monitored_energy(compiled, members.inputs)
    reduced, rows = {}, np.full(count, -1)
    if outcome is not None and len(started) == count:  # avoid copies of large ensembles
        states, steps, newton_iterations = outcome.states, outcome.steps, outcome.corrections
    else:
        states = np.full((count, schedule.n_rows, len(schedule.stored)), np.nan)
        steps, newton_iterations = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        if outcome is not None:
            states[started], steps[started], newton_iterations[started] = (
                outcome.states,
                outcome.steps,
                outcome.corrections,
            )
    if outcome is not None:
        rows[started] = np.arange(len(started))
        offset = 0
        for name, shape in shapes.items():
            slice_ = slice(offset, offset + int(np.prod(shape, dtype=int)))
            offset = slice_.stop
            mean = outcome.sums[:, slice_] / (outcome.steps + 1)[:, None]
            reductions = (mean, outcome.lowest[:, slice_], outcome.highest[:, slice_])
            mean, lowest, highest = (_scatter_members(values, started, count, shape) for values in reductions)
            counts, edges = _histogram(outcome, bins, name, started, count)
            reduced[name] = Reduced(mean, lowest, highest, counts, edges)

    def summary(member: int) -> Summary:
        row = rows[member]
        if outcome is None or row < 0:
            return Summary(energy)
        initial_row, reference_energy, maxima = outcome.first[row], float(outcome.trusted[row]), outcome.largest[row]
        k_largest = members.parameters_with_largest_inputs(member)
        return _summary(model, energy, momenta, k_largest, initial_row, reference_energy, maxima)

    arrays, offset = {}, 0
    for name, size in compiled.layout.sizes.items():
        if name in plan.variables(compiled):
            arrays[name] = states[:, :, offset : offset + size]
            offset += size
    table = model.parameter_table
    parameters = {
        name: k[:, entry.slices[0]].reshape(count, *entry.shape)
        for name, entry in table.entries.items()
        if name in table.model_parameters.values or name in plan.parameters
    }
    info = dict(
        scheme=plan.scheme.name,
        h=plan.h,
        t0=plan.t0,
        t_end=plan.t_end,
        every=int(plan.every),
        coordinates=list(model.coordinates),
        constraint_names=list(model.constraint_names),
        problem=plan.problem.name if plan.problem else None,
        width=width,
        tier="fused" if lane_reason else plan.tier,
        tier_reason=lane_reason,
    )
    n_scalar_fallbacks = outcome.n_scalar_fallbacks if outcome is not None else 0
    summaries = Summaries(count, summary)
    return Ensemble(
        schedule.times,
        arrays,
        parameters,
        reasons,
        summaries,
        steps,
        newton_iterations,
        info,
        reduced,
        n_scalar_fallbacks,
    )


def _histogram(
    outcome: EnsembleArrays, bins: Mapping[str, HistogramSpec], name: str, started: np.ndarray, count: int
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return counts and bin edges of a reduction, or None if no histogram is requested."""
    if name not in bins:
        return None, None
    spec, index = bins[name], list(bins).index(name)
    counts = np.zeros((count, spec.count + 2), dtype=np.int64)
    counts[started] = outcome.counts[:, index, : spec.count + 2]
    return counts, np.linspace(spec.low, spec.high, spec.count + 1)


def _crossed_branches(
    compiled: CompiledStep, schedule: TimeGrid, outcome: EnsembleArrays, k: np.ndarray
) -> dict[int, str]:
    """Return error messages of members in which an angle leaves its branch, as far as the stored rows show it."""
    branches, failures = compiled.model.angle_branches, dict[int, str]()
    entries = np.arange(compiled.layout.size)[compiled.layout["q"]] if branches is not None else np.zeros(0)
    if branches is None or not np.isin(entries, schedule.stored).all():
        return failures
    columns = np.searchsorted(schedule.stored, entries)
    for member, rows in enumerate(outcome.states):
        q = rows[:, columns]
        if not np.isfinite(q).all():
            continue
        joint = branches.crossed(np.array(branches.wrapped_angles(q.T, k[member])).T, k[member])
        if joint:
            failures[member] = (
                f"the joint '{joint}' turns by more than half a revolution, and a force depends on its angle: "
                "simulate this member by itself"
            )
    return failures


def _late_failures(
    compiled: CompiledStep,
    schedule: TimeGrid,
    outcome: EnsembleArrays,
    momenta: tuple[str, ...],
    k: np.ndarray,
    energy: str,
) -> dict[int, str]:
    """Return error messages of members that reached the end with non-finite values or a blown-up energy.

    `livens.simulate` stops such runs. Rows of a member from the first non-finite one on are set to NaN.
    """
    model, failures = compiled.model, dict[int, str]()
    has_energy_balance = bool(energy) and ("supplied_energy" in compiled.layout or model.conservative)
    for member in np.flatnonzero(~np.isfinite(outcome.states).all(axis=(1, 2))).tolist():
        if member not in outcome.failures:
            rows = outcome.states[member]
            row, column = (int(i) for i in np.argwhere(~np.isfinite(rows))[0])
            rows[row:] = np.nan
            name = compiled.layout.entry_label(int(schedule.stored[column]))
            failures[member] = f"{name} is no longer finite at t = {schedule.times[row]:.9g}"
    failures |= _crossed_branches(compiled, schedule, outcome, k)
    scale = np.maximum(np.abs(outcome.first[:, ENERGY]), outcome.trusted)
    # only members with grown energy or non-finite maxima need a closer check
    grown = ~(outcome.largest[:, MAX_DRIFT] <= scale)
    for member in np.flatnonzero(grown | ~np.isfinite(outcome.largest).all(axis=1)).tolist():
        maxima = outcome.largest[member]
        initial_energy, reference_energy = outcome.first[member].item(ENERGY), outcome.trusted.item(member)
        growth_message = (
            describe_energy_growth(initial_energy, reference_energy, maxima.item(MAX_DRIFT), maxima.item(MAX_MAGNITUDE))
            if has_energy_balance
            else ""
        )
        nonfinite = name_nonfinite_quantity(energy, momenta, maxima)
        if (growth_message or nonfinite) and member not in {**outcome.failures, **failures}:
            failures[member] = (
                f"the run blew up: {growth_message}" if growth_message else f"the {nonfinite} is no longer finite"
            )
    return failures


def _summary(
    model: Model,
    energy: str,
    momenta: tuple[str, ...],
    k: np.ndarray,
    initial_row: np.ndarray,
    reference_energy: float,
    maxima: np.ndarray,
) -> Summary:
    """Return the summary of a member, restricted to the momenta that are conserved with its parameters."""
    scale = energy_scale(float(initial_row[ENERGY]), reference_energy, float(maxima[MAX_MAGNITUDE])) or 1.0
    summary = scaled_summary(energy, momenta, scale, maxima)
    if momenta:
        conserved_names = conserved_momenta(model, k)
        summary.momentum_drift = {
            name: drift for name, drift in summary.momentum_drift.items() if name in conserved_names
        }
    return summary


def _scatter_members(values: np.ndarray, members: np.ndarray, count: int, shape: tuple[int, ...]) -> np.ndarray:
    """Scatter values to all members; NaN for members without a valid initial state."""
    out = np.full((count, *shape), np.nan)
    out[members] = values.reshape(len(members), *shape)
    return out
