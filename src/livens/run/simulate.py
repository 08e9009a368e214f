"""The way in: from a model and initial values to a Result."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from livens.engine.compiled import CompiledStep, compiled_step
from livens.errors import InputError
from livens.expressions.numbers import number, path_of
from livens.models.model import InitialState, Model
from livens.models.problem import Problem
from livens.results.checkpoint import Checkpoint
from livens.results.recorder import Recorder
from livens.results.result import Result
from livens.run.control import StepControl
from livens.run.events import Blow, Event, afresh, check_blows, given_again, names_of, stops_of, with_stops
from livens.run.first_step import first_step
from livens.run.plan import Plan
from livens.run.progress import preparing
from livens.run.run import Onlooker, Run
from livens.run.short import remember, run_again
from livens.schemes.base import Scheme

#: Where the number of steps is not known beforehand, room is made for this many rows at first.
_ROWS = 1024


def simulate(
    model: Model | Problem,
    q0: Any = None,
    v0: Any = None,
    *,
    p0: Any = None,
    x0: Any = None,
    y0: Any = None,
    scheme: str | Scheme | None = None,
    h: float | None = None,
    t_end: float | None = None,
    t0: float | None = None,
    parameters: Mapping[str, Any] | None = None,
    every: int = Plan.every,
    project: bool = Plan.project,
    redundant: str = Plan.redundant,
    control: StepControl | None = Plan.control,
    scaling: Any = None,
    events: Sequence[Event] | None = None,
    tier: str = Plan.tier,
    threads: int = Plan.threads,
    out: str | Path | None = None,
    store: str | Sequence[str] | None = Plan.store,
    compress: bool = Plan.compress,
    force: bool = False,
    progress: bool | None = None,
) -> Result:
    """Integrate a model, or a ready problem with its own initial values and defaults.

    :param q0, v0: initial coordinates and velocities of a mechanical system; a Problem brings its own.
    :param p0: initial momenta, of a model that is written in them.
    :param x0, y0: initial states, and algebraic variables, of a first-order model.
    :param scheme: name of a scheme, see `livens.schemes.all`.
    :param h: step size, honoured exactly; if it does not divide the time span, the last step is shorter. With a
        `control` that has a tolerance it is the first step, and need not be given.
    :param parameters: values that replace the model's own, by name; those of elements and bodies are called
        ``door.mass``. Changing them or h compiles nothing.
    :param every: store every step whose number this divides (and the last one always).
    :param project: start from the nearest consistent values if q0, v0 violate the constraints.
    :param redundant: what to do with constraints that follow from others: "error" or "remove".
    :param control: a `livens.StepControl`, for steps that differ; the first has size h.
    :param scaling: a scaling function (see `livens.scaling`) for schemes that adapt their steps; h is then the step of
        a fictive time.
    :param events: `livens.Event` objects: zeros of functions of the state that are looked for, see `Result.events`.
    :param tier: "auto" (by the size of the model), "fused" (one straight line of native code), "assembled" (native code
        for each type of element, for large systems) or "reference" (slow and simple). All give the same to round-off.
    :param threads: how many threads work on the steps of a large system (the assembled tier); the run is the same, bit
        for bit.
    :param out: a file to write the run to as it goes; `force` replaces an existing one.
    :param store: names of the variables to keep, such as ``["q", "v"]``; all if not given, and t in any case.
    :param compress: make the file smaller; writing it then takes longer.
    :param progress: show what is done before the first step, and a progress bar, if that takes longer than two
        seconds; by default on a terminal.

    A step that does not converge raises IntegrationError, Ctrl-C raises Interrupted (a KeyboardInterrupt): both carry
    everything up to there as `result`. To run one model many times, see `livens.prepare`.

    >>> import livens as lv
    >>> oscillator = lv.System("x", kinetic=lambda v: 0.5 * v[0] ** 2, potential=lambda q: 0.5 * q[0] ** 2)
    >>> result = lv.simulate(oscillator, q0=[1], v0=[0], scheme="livens-em", h=0.1, t_end=10)
    >>> result.q.shape, bool(result.summary.max_energy_drift < 1e-13)
    ((101, 1), True)
    """
    begun = time.perf_counter()
    plan = Plan.of(
        model,
        dict(q0=q0, v0=v0, p0=p0, x0=x0, y0=y0),
        scheme=scheme,
        h=h,
        t_end=t_end,
        t0=t0,
        parameters=parameters,
        scaling=scaling,
        every=every,
        project=project,
        redundant=redundant,
        control=control,
        tier=tier,
        threads=threads,
        store=store,
        compress=compress,
    )
    return execute(plan, events=events, out=out, force=force, progress=progress, begun=begun)


def compile_and_start(plan: Plan) -> tuple[CompiledStep, InitialState]:
    """The compiled step of a plan and where it starts; which constraints are redundant shows only there."""
    compiled = compiled_step(plan.model, plan.scheme)
    # the model that was compiled has the same content as the plan's, and what follows from it has been derived already
    initial = compiled.model.start(plan.start, plan.k, plan.t0, plan.project, plan.redundant)
    if initial.dropped:
        compiled = compiled_step(plan.model, plan.scheme, initial.dropped)
    return compiled, initial


def _touching(plan: Plan, events: Sequence[Event]) -> Plan:
    """The plan for a run whose bodies may lie on each other from its start on."""
    places = afresh(events)
    if places is None and not any(isinstance(event, Blow) for event in events):
        return plan
    start = plan.model.start(plan.start, plan.k, plan.t0, plan.project, plan.redundant).values
    check_blows(events, start["q"], start["v"])
    if places is None:
        return plan
    found = places.begun((start["q"], start["v"], plan.k), plan.t0, plan.h, set(names_of(events)))
    if not found:
        return plan
    moved = {**plan.start, "q0": found["q"], "v0": found["v"]}
    return dataclasses.replace(plan, start=moved, parameters={**plan.parameters, **found["parameters"]})


def execute(
    plan: Plan,
    *,
    events: Sequence[Event] | None = None,
    out: str | Path | None = None,
    force: bool = False,
    progress: bool | None = None,
    begun: float | None = None,
    onlooker: Onlooker | None = None,
    may_be_short: bool = True,
) -> Result:
    """Do what a plan says; `begun` is when getting ready began, `onlooker` sees the run while it is under way.

    Short runs are taken in one go, see `livens.run.short`, unless they must not be.
    """
    begun = time.perf_counter() if begun is None else begun
    missing = getattr(plan.model, "bounces", ()) if events is None else ()
    if missing:
        raise InputError(
            f"{missing[0]}: bodies would pass through each other without their events: pass events=mb.bounce(...), or "
            "events=() if that is wanted"
        )
    events = with_stops(plan.model, events)
    may_be_short = may_be_short and out is None and onlooker is None and not events
    if may_be_short:
        found = run_again(plan, begun, lambda: _checkpoint(plan))
        if found is not None:
            return found
    with preparing(plan.title, progress):
        plan = _touching(plan, events)
        compiled, initial = compile_and_start(plan)
        if plan.automatic:
            plan = dataclasses.replace(plan, h=first_step(plan, compiled, initial))
        facts = plan.facts(compiled)
        facts.events = names_of(events)
        file, rows = None, plan.rows or _ROWS
        if out is not None:
            from livens.results.hdf5_writer import RunFile  # HDF5 takes long to import, and most runs need no file

            file = RunFile.create(path_of("out", out), facts, rows=rows, force=force)
        recorder = Recorder(facts, compiled.layout, file, expected=rows)
        try:
            run = Run(
                plan,
                compiled,
                facts,
                recorder,
                initial=initial,
                events=events or (),
                progress=progress,
                onlooker=onlooker,
            )
        except BaseException:
            recorder.discard()
            raise
    run.statistics.compile_s = time.perf_counter() - begun
    result = run.go()
    if may_be_short:
        remember(plan, compiled)
    return result


def _checkpoint(plan: Plan) -> Checkpoint:
    """From where a longer run than this one goes on."""
    return execute(plan, events=(), progress=False, may_be_short=False).record.checkpoint


def resume(
    path: str | Path,
    *,
    t_end: float | None = None,
    system: Model | None = None,
    scheme: str | Scheme | None = None,
    scaling: Any = None,
    events: Sequence[Event] | None = None,
    progress: bool | None = None,
) -> Result:
    """Go on with a run from its file, bit for bit as if it had never stopped.

    `t_end` may be later than the run's own. The file of a system of your own needs that `system`, a run with a scaling
    function of your own that `scaling`, and a `scheme` of your own may be given if it is not known by its name.

    A run that was stopped by a terminal event goes on from the time and state of the event. Functions are not kept in
    a file, only the names of the events: those the run looks for have to be given again as `events`, and more may be
    added; with ``events=()`` nothing is looked for any more.
    """
    from livens.results.hdf5_reader import load

    begun = time.perf_counter()
    path = path_of("the path of a run", path)
    earlier = load(path, system=system)
    facts = earlier.facts
    t_end = None if t_end is None else number("t_end", t_end)
    if t_end is not None and t_end < facts.t_end:
        raise InputError(f"t_end = {t_end:g} lies before the end of the run, {facts.t_end:g}")
    if earlier.status == "complete" and (t_end is None or t_end == facts.t_end) and not _stopped_by_event(earlier):
        raise InputError(f"the run in '{path}' is already finished (t = {facts.t_end:g}); nothing to resume")
    problem = earlier.problem if system is None else None
    plan = Plan.from_facts(facts, problem or earlier.system, t_end=t_end, scheme=scheme, scaling=scaling)
    if plan.scheme.name != facts.scheme:
        raise InputError(f"the run in '{path}' was made with the scheme '{facts.scheme}', not '{plan.scheme.name}'")
    with preparing(plan.title, progress):
        run = _taken_up(path, plan, earlier, events, progress)
    run.statistics.compile_s += time.perf_counter() - begun
    return run.go()


def _taken_up(path: Any, plan: Plan, earlier: Result, events: Sequence[Event] | None, progress: bool | None) -> Run:
    """The run of a file, ready to go on."""
    from livens.results.hdf5_writer import RunFile

    facts = earlier.facts
    compiled = compiled_step(plan.model, plan.scheme, facts.dropped)
    if not compiled.solves(facts.model):
        raise InputError(
            f"the run in '{path}' was made with other equations (another model or another version of livens): "
            "it cannot be resumed"
        )
    own = names_of(stops_of(plan.model))
    given_again(path, [name for name in facts.events if name not in own], events)
    events = with_stops(plan.model, events)
    facts = dataclasses.replace(facts, t_end=plan.t_end, events=names_of(events))
    stored = earlier.record.checkpoint["recorder"]
    file = RunFile.reopen(Path(path), int(stored["rows"]), int(stored["step"]))
    recorder = Recorder(facts, compiled.layout, file)
    try:
        return Run(plan, compiled, facts, recorder, earlier=earlier.record, events=events or (), progress=progress)
    except BaseException:
        recorder.release()
        raise


def _stopped_by_event(earlier: Result) -> bool:
    """Whether a run ended before the time it was meant to reach."""
    counts = earlier.record.checkpoint["run"].get("counts", ())
    return len(counts) > 0 and bool(counts[-1])
