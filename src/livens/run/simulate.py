"""Public interface of single runs: `simulate` and `resume`."""

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

#: Initial capacity in rows if the number of steps is not known in advance.
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
    """Simulate a model and return the trajectory.

    Parameters
    ----------
    model : Model or Problem
        Model to simulate. A `Problem` (see `livens.problems`) has its own initial values, step size and end time.
    q0, v0 : array_like of shape (n,), optional
        Initial coordinates and velocities of a `System`. Required unless `model` is a `Problem`.
    p0 : array_like of shape (n,), optional
        Initial momenta of a `Hamiltonian`, instead of `v0`.
    x0, y0 : array_like, optional
        Initial states and algebraic variables of a first-order model.
    scheme : str or Scheme, optional
        Integration scheme, see `livens.schemes.all`. Default: the scheme recommended for the model.
    h : float, optional
        Step size in seconds. If `t_end - t0` is not a multiple of `h`, the last step is shorter. With
        ``control=StepControl(tolerance=...)`` it is the first step only and may be omitted.
    t_end : float, optional
        End time in seconds. Required unless `model` is a `Problem`.
    t0 : float, optional
        Start time in seconds. Default: 0, or that of the `Problem`.
    parameters : dict of str to array_like, optional
        Parameter values by name that replace those of the model; parameters of elements and bodies have names such as
        ``door.mass``. Changing parameters or `h` needs no compilation.
    every : int, default 1
        Output stride: store every `every`-th step. The last step is always stored.
    project : bool, default False
        Project inconsistent initial values to the nearest consistent ones.
    redundant : {"error", "remove", "auto"}, default "error"
        Treatment of redundant constraints.
    control : StepControl, optional
        Step-size control of adaptive steps.
    scaling : callable, optional
        Scaling function (see `livens.scaling`) of schemes with fixed steps in fictive time; `h` is then the step in
        fictive time.
    events : sequence of Event, optional
        Zero crossings to detect, see `Result.events`.
    tier : {"auto", "fused", "assembled", "reference"}, default "auto"
        Tier of the engine: by the size of the model ("auto"), fully unrolled native code ("fused"), native code per
        element type for large systems ("assembled"), or slow Python code ("reference"). Results agree up to round-off.
    threads : int, default 1
        Number of threads of the assembled tier. Results do not depend on it, bit for bit.
    out : str or Path, optional
        HDF5 file, written during the run.
    store : str or sequence of str, optional
        Variables to store, such as ``["q", "v"]``. Default: all. The time is always stored.
    compress : bool, default False
        Compress the file; writing takes longer.
    force : bool, default False
        Replace an existing file.
    progress : bool, optional
        Show the preparation stages and a progress bar if they take longer than two seconds. Default: on a terminal
        only.

    Returns
    -------
    Result
        Trajectory, report and statistics. Arrays have time as the first axis: ``run.q[i]`` belongs to ``run.t[i]``.

    Raises
    ------
    InputError
        If an argument is invalid, or the initial values violate the constraints.
    IntegrationError
        If a step cannot be solved. ``error.result`` contains the run up to that time.
    Interrupted
        After Ctrl-C (a KeyboardInterrupt). ``error.result`` contains the run up to that time.

    See Also
    --------
    prepare : Compile once, run many times.
    ensemble : Run many initial values or parameters at once.

    Examples
    --------
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
    """Return the compiled step and the initial state, which determines the redundant constraints."""
    compiled = compiled_step(plan.model, plan.scheme)
    # the compiled model equals the plan's model, and its derived functions exist already
    initial = compiled.model.start(plan.start, plan.k, plan.t0, plan.project, plan.redundant)
    if initial.dropped:
        compiled = compiled_step(plan.model, plan.scheme, initial.dropped)
    return compiled, initial


def _touching(plan: Plan, events: Sequence[Event]) -> Plan:
    """Return the plan with the contact modes of the initial state."""
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
    """Execute a plan; `t_start` is the time at which preparation started, `callback` is called between chunks.

    Short runs use the fast path (`livens.run.fast_path`) if `allow_fast_path` is True.
    """
    begun = time.perf_counter() if begun is None else begun
    missing = getattr(plan.model, "bounces", ()) if events is None else ()
    if missing:
        raise InputError(
            f"the mechanism has rigid contact ('{missing[0]}'), but no events were given: pass "
            "events=mb.rigid_contact(...), or events=() to ignore the contact (bodies then interpenetrate)"
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
            from livens.results.hdf5_writer import RunFile  # slow import, not needed without a file

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
    """Return the checkpoint from which a longer run continues."""
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
    """Resume a run from its file, bit for bit as if it had never been interrupted.

    Parameters
    ----------
    path : str or Path
        HDF5 file of the run.
    t_end : float, optional
        New end time in seconds, not before that of the run. Default: the end time of the run.
    system : Model, optional
        Model of the run. Required for user-defined models.
    scheme : str or Scheme, optional
        Scheme of the run. Required for user-defined schemes.
    scaling : callable, optional
        Scaling function of the run. Required for user-defined scaling functions.
    events : sequence of Event, optional
        Events of the run, which must be given again because files contain only their names; further events may be
        added. ``events=()`` continues without events.
    progress : bool, optional
        Show a progress bar. Default: on a terminal only.

    Returns
    -------
    Result
        Complete run, including the stored part.

    Raises
    ------
    InputError
        If the run is finished already, its equations, scheme or events differ, or `t_end` lies before its end.

    Notes
    -----
    A run that was ended by a terminal event continues from the time and state of the event.
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
    """Return the run of a file, ready to continue."""
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
    """Return True if a terminal event ended the run before its end time."""
    counts = earlier.record.checkpoint["run"].get("counts", ())
    return len(counts) > 0 and bool(counts[-1])
