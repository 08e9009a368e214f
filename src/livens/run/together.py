"""Runs that differ in numbers only, taken together: plans in, an Ensemble out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens.engine.batch import Batch, Outcome, Schedule, in_order, ordered_members, width_of
from livens.engine.compiled import CompiledStep, compiled_step
from livens.engine.factors import Order
from livens.engine.pivots import SingularMatrixError
from livens.engine.table import observing
from livens.engine.watch import Watched
from livens.errors import InputError, LivensError
from livens.expressions.evaluate import Evaluator
from livens.models import observable
from livens.models.model import InitialState, Model
from livens.results.ensemble import Ensemble, Reduced
from livens.results.record import Summary
from livens.run.extremes import conserved, energy_scale, summary_of, watched_columns
from livens.run.march import whole_steps
from livens.run.plan import Plan
from livens.run.run import TYPICAL_STEP

Reductions = Mapping[str, Callable[..., Any]]


def why_not(plan: Plan) -> str:
    """Why runs like this one cannot be taken together, in words; nothing if they can."""
    if not plan.equal_steps:
        return "members of an ensemble take equal steps of time, neither controlled ones nor those of a fictive time"
    if plan.tier == "reference":
        return "members of an ensemble are run by native code"
    if plan.model.guards:
        return f"the model does not allow everything ({', '.join(plan.model.guards)}), which an ensemble cannot watch"
    return ""


def together(plans: Sequence[Plan], *, reduce: Reductions | None = None, threads: int = 1) -> Ensemble:
    """Carry out plans with the same equations, scheme, step, end and rows, each from its own start."""
    plan = plans[0]
    reason = why_not(plan)
    if reason:
        raise InputError(reason)
    compiled, states, reasons = _starts(plans)
    members = np.array([i for i in range(len(plans)) if i not in reasons], dtype=int)
    names = plan.variables(compiled)
    kept = [name for name in compiled.layout.sizes if name in names]
    columns = np.concatenate([np.arange(compiled.layout.size)[compiled.layout[name]] for name in kept])
    steps, rest = whole_steps(plan.h, plan.t0, plan.t_end)
    schedule = Schedule(plan.h, plan.t0, steps, rest, int(plan.every), columns)
    momenta = tuple(compiled.model.symmetries)
    if reduce:
        watched, shapes = _watched(compiled, momenta, reduce)
    else:
        watched, shapes = compiled.once("watched", lambda: _watched(compiled, momenta, {}))
    k = np.array([one.k for one in plans])
    width, outcome = compiled.once("width", lambda: width_of(compiled)), None
    if members.size:
        z = np.array([states[i] for i in members])
        order = ordered_members(z, k[members])
        z, sorted_k = z[order], k[members][order]
        batch = _batch(compiled, _pivots(compiled, plan, z, sorted_k), watched, width, bool(reduce))
        outcome = in_order(batch.run(z, sorted_k, schedule, threads), order)
        reasons |= {int(members[member]): why for member, why in outcome.reasons.items()}
    return _ensemble(plans, compiled, schedule, outcome, members, reasons, momenta, shapes, k, width)


def _starts(plans: Sequence[Plan]) -> tuple[CompiledStep, dict[int, np.ndarray], dict[int, str]]:
    """The compiled step, and the first state of every member or why it has none."""
    plan, states, reasons = plans[0], dict[int, np.ndarray](), dict[int, str]()
    compiled, dropped = compiled_step(plan.model, plan.scheme), None
    begun = {}
    for i, one in enumerate(plans):
        try:
            begun[i] = compiled.model.start(one.start, one.k, one.t0, one.project, one.redundant)
        except LivensError as error:
            reasons[i] = str(error)
            continue
        if dropped is not None and begun[i].dropped != dropped:
            raise InputError("other constraints are redundant in some members than in others: run them by themselves")
        dropped = begun[i].dropped
    if dropped:
        compiled = compiled_step(plan.model, plan.scheme, dropped)
    memory = compiled.once(("memory", plan.t0, plan.h), lambda: _memory(compiled, plan))
    for i, initial in begun.items():
        states[i] = compiled.layout.vector({**initial.values, **memory(initial, plans[i].k)})
    return compiled, states, reasons


def _memory(compiled: CompiledStep, plan: Plan) -> Callable[[InitialState, np.ndarray], dict[str, Any]]:
    """What the scheme adds to the state of a member: by expressions that are made ready once, if there are any."""
    scheme, model, sizes = compiled.scheme, compiled.model, compiled.layout.sizes
    if "p" in sizes:
        q, p, k = (
            ca.SX.sym(name, size) for name, size in zip("qpk", (sizes["q"], sizes["p"], plan.k.size), strict=True)
        )
        expressions = scheme.memory_expressions(model, q, p, k, plan.t0, plan.h)
        if expressions:
            evaluate = Evaluator([q, p, k], list(expressions.values()))

            def evaluated(initial: InitialState, k: np.ndarray) -> dict[str, Any]:
                found = evaluate(initial["q"], initial["p"], k)
                return {name: value.ravel() for name, value in zip(expressions, found, strict=True)}

            return evaluated
    return lambda initial, k: scheme.memory(model, initial.values, k, initial.t, plan.h)


def _pivots(compiled: CompiledStep, plan: Plan, z: np.ndarray, k: np.ndarray) -> Order | None:
    """A pivot order that suits the first step of the first member that has one."""
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
    """Functions of the user's own are read anew every time; without any, what was made is found again."""
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
            raise InputError(f"reduce names the unknown observable '{what}'; there are {', '.join(model.view.names)}")
        column = ca.densify(ca.SX(model.view.expression(what)))
        return column, () if column.numel() == 1 else (int(column.numel()),)
    if not callable(what):
        raise InputError(f"reduce maps names to observables or functions of the state, got {what!r}")
    return observable.read(model, what)


def _ensemble(
    plans: Sequence[Plan],
    compiled: CompiledStep,
    schedule: Schedule,
    outcome: Outcome | None,
    members: np.ndarray,
    reasons: dict[int, str],
    momenta: tuple[str, ...],
    shapes: Mapping[str, tuple[int, ...]],
    k: np.ndarray,
    width: int,
) -> Ensemble:
    plan, model, count = plans[0], compiled.model, len(plans)
    energy = model.watched_energy(compiled.scheme.conserves)
    states = np.full((count, schedule.rows, len(schedule.columns)), np.nan)
    steps, corrections = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    summary = [Summary(energy) for _ in plans]
    reduced = {}
    if outcome is not None:
        states[members], steps[members], corrections[members] = outcome.states, outcome.steps, outcome.corrections
        for row, member in enumerate(members):
            summary[member] = _summary(model, energy, momenta, k[member], outcome.first[row], outcome.largest[row])
        first = 0
        for name, shape in shapes.items():
            here = slice(first, first + int(np.prod(shape, dtype=int)))
            first = here.stop
            mean = outcome.sums[:, here] / (outcome.steps + 1)[:, None]
            found = (mean, outcome.lowest[:, here], outcome.highest[:, here])
            reduced[name] = Reduced(*(_spread(values, members, count, shape) for values in found))
    arrays, first = {}, 0
    for name, size in compiled.layout.sizes.items():
        if name in plan.variables(compiled):
            arrays[name] = states[:, :, first : first + size]
            first += size
    table = model.parameter_table
    parameters = {
        name: k[:, entry.places[0]].reshape(count, *entry.shape)
        for name, entry in table.entries.items()
        if name in table.shared.values or any(name in one.parameters for one in plans[:1])
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
    return Ensemble(schedule.times, arrays, parameters, reasons, summary, steps, corrections, facts, reduced, left)


def _summary(
    model: Model, energy: str, momenta: tuple[str, ...], k: np.ndarray, first: np.ndarray, largest: np.ndarray
) -> Summary:
    """Of the momenta, those that the motion with these parameters conserves."""
    scale = energy_scale(float(first[0]), float(largest[2]), float(largest[2])) or 1.0
    found = summary_of(energy, momenta, scale, largest)
    if momenta:
        kept = conserved(model, k)
        found.momentum_drift = {name: drift for name, drift in found.momentum_drift.items() if name in kept}
    return found


def _spread(values: np.ndarray, members: np.ndarray, count: int, shape: tuple[int, ...]) -> np.ndarray:
    """One entry for each member, also for those that never began."""
    out = np.full((count, *shape), np.nan)
    out[members] = values.reshape(len(members), *shape)
    return out
