"""Public interface of single runs: `simulate` and `resume`."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from livens.engine.compiled_step import compiled_step
from livens.errors import InputError, explain_call_errors
from livens.models.base import Model
from livens.models.problem import Problem
from livens.results.checkpoint import Checkpoint
from livens.results.recorder import Recorder
from livens.results.result import Result
from livens.run.driver import Run, RunCallback
from livens.run.events.event import (
    Event,
    all_events,
    contact_resolver,
    event_names,
    model_events,
    require_same_events,
)
from livens.run.fast_path import enable_fast_path, run_fast_path
from livens.run.initial_step_size import initial_step_size
from livens.run.plan import Plan
from livens.run.progress import show_preparation
from livens.run.schedule import Feedback, Schedule
from livens.run.startup import compile_and_start
from livens.run.step_control import PerVariable, StepControl
from livens.schemes.core.scheme import Scheme
from livens.types import ArrayLike
from livens.validation import check_number, check_path

#: Initial capacity in rows if the number of steps is not known in advance.
_INITIAL_ROWS = 1024


@explain_call_errors
def simulate(
    model: Model | Problem,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    *,
    p0: ArrayLike | None = None,
    x0: ArrayLike | None = None,
    y0: ArrayLike | None = None,
    scheme: str | Scheme | None = None,
    h: float | None = None,
    t_end: float | None = None,
    t0: float | None = None,
    parameters: Mapping[str, object] | None = None,
    every: int = Plan.every,
    project: bool = Plan.project,
    redundant: str = Plan.redundant,
    tolerance: PerVariable | None = None,
    adaptive: str | None = None,
    control: StepControl | None = Plan.control,
    scaling: object = None,
    events: Sequence[Event] | None = None,
    tier: str = Plan.tier,
    threads: int = Plan.threads,
    out: str | Path | None = None,
    store: str | Sequence[str] | None = Plan.store,
    compress: bool = Plan.compress,
    inputs: Schedule | Feedback | Mapping[str, object] | None = None,
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
        Step size in seconds. If `t_end - t0` is not a multiple of `h`, the last step is shorter. With a `tolerance` it
        is the first step only and may be omitted. Mechanical systems without `h` and `tolerance` have adaptive steps
        with a tolerance of 1e-4, if the scheme estimates its error.
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
    tolerance : float, sequence of float or dict of str to float, optional
        Relative error tolerance of adaptive steps, short for ``control=StepControl(tolerance=...)``.
    adaptive : {"reversible"}, optional
        With "reversible", the steps follow the `scaling` and form a sequence that is symmetric in time: scheme
        ``step-density:<scheme>``. Its step sizes are about ``h * scaling``.
    control : StepControl, optional
        Step-size control of adaptive steps.
    scaling : callable or str, optional
        Scaling function (see `livens.scaling`) of schemes with fixed steps in fictive time; `h` is then the step in
        fictive time. As text it is a call such as ``"speed(1.0)"``.
    events : sequence of Event, optional
        Zero crossings to detect, see `Result.events`.
    tier : {"auto", "tree", "fused", "assembled", "reference"}, default "auto"
        Tier of the engine. "auto": by structure and size of the model. "tree": joint unknowns of a tree of bodies.
        "fused": fully unrolled native code. "assembled": native code per element type, for large systems. "reference":
        slow Python code. Results agree up to round-off; ``run.info.tier_reason`` explains the choice.
    threads : int, default 1
        Number of threads of the assembled tier. Results do not depend on it, bit for bit.
    out : str or Path, optional
        HDF5 file, written during the run.
    store : str or sequence of str, optional
        Variables to store, such as ``["q", "v"]``. Default: all. The time is always stored.
    compress : bool, default False
        Compress the file; writing takes longer.
    inputs : Schedule, Feedback or mapping of str to array_like, optional
        Inputs over time: a `Schedule`, a `Feedback` law, or one row of values per step by name (zero-order hold).
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
    t_start = time.perf_counter()
    plan = Plan.from_arguments(
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
        tolerance=tolerance,
        adaptive=adaptive,
        control=control,
        tier=tier,
        threads=threads,
        store=store,
        compress=compress,
        inputs=inputs,
    )
    return execute(plan, events=events, out=out, force=force, progress=progress, t_start=t_start)


def _with_contact_modes(plan: Plan, initial: Mapping[str, Any], events: Sequence[Event]) -> Plan:
    """Return the plan with the contact modes of the initial values; the plan itself if there is nothing to change."""
    resolver = contact_resolver(events)
    if resolver is None:
        return plan
    changes = resolver.initialise((initial["q"], initial["v"], plan.k), plan.t0, plan.h)
    if not changes:
        return plan
    initial_values = {**plan.start, "q0": changes["q"], "v0": changes["v"]}
    return dataclasses.replace(plan, start=initial_values, parameters={**plan.parameters, **changes["parameters"]})


def execute(
    plan: Plan,
    *,
    events: Sequence[Event] | None = None,
    out: str | Path | None = None,
    force: bool = False,
    progress: bool | None = None,
    t_start: float | None = None,
    callback: RunCallback | None = None,
    allow_fast_path: bool = True,
) -> Result:
    """Execute a plan; `t_start` is the time at which preparation started, `callback` is called between chunks.

    Short runs use the fast path (`livens.run.fast_path`) if `allow_fast_path` is True.
    """
    t_start = time.perf_counter() if t_start is None else t_start
    given_events = tuple(events or ())
    events = all_events(plan.model, events)
    allow_fast_path = allow_fast_path and out is None and callback is None and not events
    if allow_fast_path:
        fast_result = run_fast_path(plan, t_start, lambda: _checkpoint(plan))
        if fast_result is not None:
            return fast_result
    with show_preparation(plan.title, progress):
        compiled, initial = compile_and_start(plan)
        plan_with_modes = _with_contact_modes(plan, initial.values, events)
        if plan_with_modes is not plan:
            plan = plan_with_modes
            compiled, initial = compile_and_start(plan)
        if plan.estimate_h0:
            plan = dataclasses.replace(plan, h=initial_step_size(plan, compiled, initial))
        info = plan.run_info(compiled)
        info.events = event_names(events)
        file, rows = None, plan.max_rows or _INITIAL_ROWS
        if out is not None:
            from livens.results.storage.hdf5_writer import RunFile  # slow import, not needed without a file

            file = RunFile.create(check_path("out", out), info, rows=rows, force=force)
        recorder = Recorder(info, compiled.layout, file, expected=rows)
        try:
            run = Run(
                plan,
                compiled,
                info,
                recorder,
                initial=initial,
                events=events or (),
                progress=progress,
                callback=callback,
            )
        except BaseException:
            recorder.discard()
            raise
    run.statistics.compile_s = time.perf_counter() - t_start
    result = run.integrate()
    result._events = given_events
    if allow_fast_path:
        enable_fast_path(plan, compiled)
    return result


def _checkpoint(plan: Plan) -> Checkpoint:
    """Return the checkpoint from which a longer run continues."""
    return execute(plan, events=(), progress=False, allow_fast_path=False).record.checkpoint


@explain_call_errors
def resume(
    path: str | Path,
    *,
    t_end: float | None = None,
    system: Model | None = None,
    scheme: str | Scheme | None = None,
    scaling: object = None,
    events: Sequence[Event] | None = None,
    inputs: Schedule | Feedback | Mapping[str, object] | None = None,
    progress: bool | None = None,
) -> Result:
    """Resume a run from its file, bit for bit as if it had never been interrupted.

    Parameters
    ----------
    path : str or Path
        HDF5 file of the run.
    t_end : float, optional
        New end time in seconds, not before that of the run. Default: the end time of the run.
    system : Model or Multibody, optional
        Model or mechanism of the run. Required for user-defined models and mechanisms.
    scheme : str or Scheme, optional
        Scheme of the run. Required for user-defined schemes.
    scaling : callable, optional
        Scaling function of the run. Required for user-defined scaling functions.
    events : sequence of Event, optional
        Events of the run, which must be given again because files contain only their names; further events may be
        added. ``events=()`` continues without events.
    inputs : Schedule or mapping of str to array_like, optional
        Inputs over time of the run, which must be given again.
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
    from livens.results.storage.hdf5_reader import load

    t_start = time.perf_counter()
    path = check_path("the path of a run", path)
    earlier = load(path, system=system)
    info = earlier.info
    t_end = None if t_end is None else check_number("t_end", t_end)
    if t_end is not None and t_end < info.t_end:
        raise InputError(f"t_end = {t_end:g} lies before the end of the run, {info.t_end:g}")
    if earlier.status == "complete" and (t_end is None or t_end == info.t_end) and not _stopped_by_event(earlier):
        raise InputError(f"the run in '{path}' is already finished (t = {info.t_end:g}); nothing to resume")
    problem = earlier.problem if system is None else None
    schedule = Schedule.of(inputs)
    if schedule is None and earlier.record.checkpoint.get("inputs", {}).get("scheduled", 0.0):
        raise InputError(f"the run in '{path}' has inputs over time: give them again, as inputs=...")
    plan = Plan.from_run_info(
        info, problem or earlier.system, t_end=t_end, scheme=scheme, scaling=scaling, inputs=schedule
    )
    if plan.scheme.name != info.scheme:
        raise InputError(f"the run in '{path}' was made with the scheme '{info.scheme}', not '{plan.scheme.name}'")
    with show_preparation(plan.title, progress):
        run = _resume_run(path, plan, earlier, events, progress)
    run.statistics.compile_s += time.perf_counter() - t_start
    return run.integrate()


def _resume_run(path: Any, plan: Plan, earlier: Result, events: Sequence[Event] | None, progress: bool | None) -> Run:
    """Return the run of a file, ready to continue."""
    from livens.results.storage.hdf5_writer import RunFile

    info = earlier.info
    compiled = compiled_step(plan.model, plan.scheme, info.dropped)
    if not compiled.matches_fingerprint(info.model):
        raise InputError(
            f"the run in '{path}' was made with other equations (another model, another scaling function or another "
            "version of livens): "
            "it cannot be resumed"
        )
    model_event_names = event_names(model_events(plan.model))
    require_same_events(path, [name for name in info.events if name not in model_event_names], events)
    events = all_events(plan.model, events)
    info = dataclasses.replace(info, t_end=plan.t_end, events=event_names(events))
    stored = earlier.record.checkpoint["recorder"]
    file = RunFile.reopen(Path(path), int(stored["rows"]), int(stored["step"]))
    recorder = Recorder(info, compiled.layout, file)
    try:
        return Run(plan, compiled, info, recorder, earlier=earlier.record, events=events or (), progress=progress)
    except BaseException:
        recorder.release()
        raise


def _stopped_by_event(earlier: Result) -> bool:
    """Return True if a terminal event ended the run before its end time."""
    counts = earlier.record.checkpoint["run"].get("counts", ())
    return len(counts) > 0 and bool(counts[-1])
