"""Run an ensemble: members share equations and time grid, and differ in initial values and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from livens.engine.batch import Batch, Bins, Outcome, Schedule, in_order, width_of
from livens.engine.compiled import CompiledStep
from livens.engine.factors import Order
from livens.engine.member_order import ordered_members
from livens.engine.pivots import SingularMatrixError
from livens.engine.table import observing
from livens.engine.watch import Watched
from livens.errors import InputError
from livens.expressions.numbers import whole_number
from livens.models import observable
from livens.models.model import Model
from livens.results.ensemble import Ensemble, Reduced, Summaries
from livens.results.record import Summary
from livens.run.beginning import TYPICAL_STEP
from livens.run.blocks import Rows, Work, carried_out
from livens.run.extremes import conserved, energy_scale, growth, not_finite, summary_of, watched_columns
from livens.run.march import whole_steps
from livens.run.members import Members, first_states
from livens.run.parts import finish
from livens.run.plan import Plan
from livens.run.progress import Progress

Reductions = Mapping[str, Callable[..., Any]]


def why_not(plan: Plan) -> str:
    """Return the reason why runs of this plan cannot form an ensemble, or an empty string."""
    if not plan.equal_steps:
        return "an ensemble needs fixed steps in physical time, neither adaptive steps nor steps in fictive time"
    if plan.tier == "reference":
        return "an ensemble needs native code: remove tier='reference'"
    if getattr(plan.model, "controllers", ()):
        return "an ensemble cannot have sampled controllers, which are called between steps"
    if getattr(plan.model, "stops", ()):
        return "an ensemble cannot have joint stops with restitution, which act between steps"
    if getattr(plan.model, "bounces", ()):
        return "an ensemble cannot have rigid contact, which needs events between steps"
    if plan.model.guards:
        return f"the model has guards ({', '.join(plan.model.guards)}), which an ensemble cannot monitor"
    return ""


def together(
    members: Members | Sequence[Plan],
    *,
    reduce: Reductions | None = None,
    histograms: Mapping[str, Any] | None = None,
    threads: int = 1,
    out: Path | None = None,
    force: bool = False,
    client: Any = None,
    progress: bool | None = False,
) -> Ensemble:
    """Run members with the same equations, scheme, step size, end time and output rows."""
    members = members if isinstance(members, Members) else Members.of(members)
    plan = members.plan
    reason = why_not(plan)
    if reason:
        raise InputError(reason)
    if reduce is not None and not isinstance(reduce, Mapping):
        raise InputError(f"reduce must map names to observables or functions of the state, got {reduce!r}")
    compiled, z, reasons = first_states(members)
    begun = np.delete(np.arange(members.count), list(reasons))
    names = plan.variables(compiled)
    kept = [name for name in compiled.layout.sizes if name in names]
    entries = np.arange(compiled.layout.size)
    columns = np.concatenate([entries[:0], *(entries[compiled.layout[name]] for name in kept)])
    steps, rest = whole_steps(plan.h, plan.t0, plan.t_end)
    schedule = Schedule(plan.h, plan.t0, steps, rest, int(plan.every), columns)
    momenta = tuple(compiled.model.symmetries)
    if reduce:
        watched, shapes = _watched(compiled, momenta, reduce)
    else:
        watched, shapes = compiled.once("watched", lambda: _watched(compiled, momenta, {}))
    bins = _bins(histograms, shapes)
    width, outcome, work = compiled.once("width", lambda: width_of(compiled)), None, None
    if begun.size:
        z, k = (z[begun], members.k[begun]) if reasons else (z, members.k)
        order = ordered_members(z, k)
        z, k = z[order], k[order]
        batch = _batch(compiled, _pivots(compiled, plan, z, k), watched, width, bool(reduce))
        rows = Rows(_places(compiled, kept), begun[order], members.count)
        work = Work(batch, z, k, schedule, tuple(bins.values()), threads, rows)
        with Progress(plan.title, len(z), progress, unit="members") as bar:
            outcome = in_order(carried_out(work, out, client, force, bar.update), order, threads)
        outcome.reasons |= _seen_later(compiled, schedule, outcome, momenta)
        reasons |= {int(begun[member]): why for member, why in outcome.reasons.items()}
    many = _ensemble(members, compiled, schedule, outcome, begun, reasons, momenta, shapes, bins, width)
    if out is not None:
        finish(many, out, work, force)
    return many


def _places(compiled: CompiledStep, names: Sequence[str]) -> dict[str, slice]:
    """Return the slices of variables within the stored columns."""
    ends = np.cumsum([compiled.layout.sizes[name] for name in names]).tolist()
    return {name: slice(end - compiled.layout.sizes[name], end) for name, end in zip(names, ends, strict=True)}


def _bins(histograms: Mapping[str, Any] | None, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Bins]:
    """Parse the histograms of scalar reductions."""
    if histograms is None:
        return {}
    if not isinstance(histograms, Mapping):
        raise InputError(f"histograms must map names to (low, high, bins), got {histograms!r}")
    first, places = 0, {}
    for name, shape in shapes.items():
        places[name] = first
        first += int(np.prod(shape, dtype=int))
    found = {}
    for name, given in histograms.items():
        if name not in places or shapes[name] != ():
            raise InputError(f"histograms need scalar entries of reduce; '{name}' is not one")
        try:
            low, high, count = given
            low, high = float(low), float(high)
        except (TypeError, ValueError):
            raise InputError(f"the histogram of '{name}' must be (low, high, bins), got {given!r}") from None
        whole = whole_number(f"the number of bins of '{name}'", count, least=1, most=2**20)
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise InputError(f"the histogram of '{name}' needs low < high, got {given!r}")
        found[name] = Bins(places[name], low, high, whole)
    return found


def _pivots(compiled: CompiledStep, plan: Plan, z: np.ndarray, k: np.ndarray) -> Order | None:
    """Return a pivot order for the first step of the first member with a regular Jacobian."""
    if not compiled.flat.size:
        return None
    typical = np.concatenate([[TYPICAL_STEP, plan.t0], plan.model.parameter_vector()])
    for state, values in zip(z, k, strict=True):
        c = np.concatenate([[plan.h, plan.t0], values])
        try:
            return compiled.first_order(compiled.first_guess(state, c), state, c, typical)
        except SingularMatrixError as error:
            why = str(error)
    raise InputError(f"the first step cannot be solved for any member: {why}")


def _batch(compiled: CompiledStep, order: Order | None, watched: Watched, width: int, own: bool) -> Batch:
    """Return the ensemble stepper; it is cached unless the user passed functions to reduce."""
    if own:
        return Batch(compiled, order, watched, width)
    return compiled.once(("batch", order), lambda: Batch(compiled, order, watched, width))


def _watched(
    compiled: CompiledStep, momenta: tuple[str, ...], reduce: Reductions
) -> tuple[Watched, dict[str, tuple[int, ...]]]:
    model = compiled.model
    columns, sizes = watched_columns(model, model.watched_energy(compiled.scheme.conserves), momenta)
    shapes, own = dict[str, tuple[int, ...]](), []
    for name, what in reduce.items():
        column, shapes[name] = _expression(model, what)
        own.append(column)
    further = ca.vertcat(*own) if own else ca.SX(0, 1)
    supplied = compiled.layout["supplied_energy"].start if "supplied_energy" in compiled.layout else -1
    function = observing(model, ca.vertcat(columns, further))
    return Watched(function, tuple(sizes.tolist()), int(further.numel()), supplied), shapes


def _expression(model: Model, what: Any) -> tuple[Any, tuple[int, ...]]:
    if isinstance(what, str):
        if what not in model.view.names:
            raise InputError(f"unknown observable '{what}' in reduce; allowed: {', '.join(model.view.names)}")
        column = ca.densify(ca.SX(model.view.expression(what)))
        return column, () if column.numel() == 1 else (int(column.numel()),)
    if not callable(what):
        raise InputError(f"reduce maps names to observables or functions of the state, got {what!r}")
    return observable.read(model, what)


def _ensemble(
    members: Members,
    compiled: CompiledStep,
    schedule: Schedule,
    outcome: Outcome | None,
    begun: np.ndarray,
    reasons: dict[int, str],
    momenta: tuple[str, ...],
    shapes: Mapping[str, tuple[int, ...]],
    bins: Mapping[str, Bins],
    width: int,
) -> Ensemble:
    plan, model, count, k = members.plan, compiled.model, members.count, members.k
    energy = model.watched_energy(compiled.scheme.conserves)
    reduced, rows = {}, np.full(count, -1)
    if outcome is not None and len(begun) == count:  # avoid copies of large ensembles
        states, steps, corrections = outcome.states, outcome.steps, outcome.corrections
    else:
        states = np.full((count, schedule.rows, len(schedule.columns)), np.nan)
        steps, corrections = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        if outcome is not None:
            states[begun], steps[begun], corrections[begun] = outcome.states, outcome.steps, outcome.corrections
    if outcome is not None:
        rows[begun] = np.arange(len(begun))
        first = 0
        for name, shape in shapes.items():
            here = slice(first, first + int(np.prod(shape, dtype=int)))
            first = here.stop
            mean = outcome.sums[:, here] / (outcome.steps + 1)[:, None]
            found = (mean, outcome.lowest[:, here], outcome.highest[:, here])
            mean, lowest, highest = (_spread(values, begun, count, shape) for values in found)
            counts, edges = _counted(outcome, bins, name, begun, count)
            reduced[name] = Reduced(mean, lowest, highest, counts, edges)

    def summary(member: int) -> Summary:
        row = rows[member]
        if outcome is None or row < 0:
            return Summary(energy)
        first, trusted, largest = outcome.first[row], float(outcome.trusted[row]), outcome.largest[row]
        return _summary(model, energy, momenta, k[member], first, trusted, largest)

    arrays, first = {}, 0
    for name, size in compiled.layout.sizes.items():
        if name in plan.variables(compiled):
            arrays[name] = states[:, :, first : first + size]
            first += size
    table = model.parameter_table
    parameters = {
        name: k[:, entry.places[0]].reshape(count, *entry.shape)
        for name, entry in table.entries.items()
        if name in table.shared.values or name in plan.parameters
    }
    facts = dict(
        scheme=plan.scheme.name,
        h=plan.h,
        t0=plan.t0,
        t_end=plan.t_end,
        every=int(plan.every),
        coordinates=list(model.coordinates),
        constraint_names=list(model.constraint_names),
        problem=plan.problem.name if plan.problem else None,
        width=width,
    )
    left = outcome.left if outcome is not None else 0
    summaries = Summaries(count, summary)
    return Ensemble(schedule.times, arrays, parameters, reasons, summaries, steps, corrections, facts, reduced, left)


def _counted(
    outcome: Outcome, bins: Mapping[str, Bins], name: str, begun: np.ndarray, count: int
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return counts and bin edges of a reduction, or None if no histogram is requested."""
    if name not in bins:
        return None, None
    one, number = bins[name], list(bins).index(name)
    counts = np.zeros((count, one.count + 2), dtype=np.int64)
    counts[begun] = outcome.counts[:, number, : one.count + 2]
    return counts, np.linspace(one.low, one.high, one.count + 1)


def _seen_later(
    compiled: CompiledStep, schedule: Schedule, outcome: Outcome, momenta: tuple[str, ...]
) -> dict[int, str]:
    """Return error messages of members that reached the end with non-finite values or a blown-up energy.

    `livens.simulate` stops such runs. Rows of a member from the first non-finite one on are set to NaN.
    """
    model, found = compiled.model, dict[int, str]()
    energy = model.watched_energy(compiled.scheme.conserves)
    accounted = bool(energy) and ("supplied_energy" in compiled.layout or model.conservative)
    for member in np.flatnonzero(~np.isfinite(outcome.states).all(axis=(1, 2))).tolist():
        if member not in outcome.reasons:
            rows = outcome.states[member]
            row, column = (int(i) for i in np.argwhere(~np.isfinite(rows))[0])
            rows[row:] = np.nan
            name = compiled.layout.name_of(int(schedule.columns[column]))
            found[member] = f"{name} is no longer finite at t = {schedule.times[row]:.9g}"
    before = np.maximum(np.abs(outcome.first[:, 0]), outcome.trusted)
    # only members with grown energy or non-finite maxima need a closer check
    grown = ~(outcome.largest[:, 0] <= before)
    for member in np.flatnonzero(grown | ~np.isfinite(outcome.largest).all(axis=1)).tolist():
        largest = outcome.largest[member]
        start, trusted = outcome.first[member].item(0), outcome.trusted.item(member)
        why = growth(start, trusted, largest.item(0), largest.item(2)) if accounted else ""
        lost = not_finite(energy, momenta, largest)
        if (why or lost) and member not in {**outcome.reasons, **found}:
            found[member] = f"the run blew up: {why}" if why else f"the {lost} is no longer finite"
    return found


def _summary(
    model: Model,
    energy: str,
    momenta: tuple[str, ...],
    k: np.ndarray,
    first: np.ndarray,
    trusted: float,
    largest: np.ndarray,
) -> Summary:
    """Return the summary of a member, restricted to the momenta that are conserved with its parameters."""
    scale = energy_scale(float(first[0]), trusted, float(largest[2])) or 1.0
    found = summary_of(energy, momenta, scale, largest)
    if momenta:
        kept = conserved(model, k)
        found.momentum_drift = {name: drift for name, drift in found.momentum_drift.items() if name in kept}
    return found


def _spread(values: np.ndarray, members: np.ndarray, count: int, shape: tuple[int, ...]) -> np.ndarray:
    """Scatter values to all members; NaN for members without a valid initial state."""
    out = np.full((count, *shape), np.nan)
    out[members] = values.reshape(len(members), *shape)
    return out
