"""The way in: from a system and initial values to a Result."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from livens.errors import InputError
from livens.models.model import Model
from livens.models.problem import Problem
from livens.results.provenance import made
from livens.results.recorder import Recorder
from livens.results.result import Result
from livens.run.control import StepControl
from livens.run.events import Event
from livens.run.plan import Task, chosen_variables
from livens.run.run import Run
from livens.schemes.base import Scheme

#: Where the number of steps is not known beforehand, room is made for so many rows at first.
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
    every: int = 1,
    project: bool = False,
    redundant: str = "error",
    control: StepControl | None = None,
    scaling: Any = None,
    events: Sequence[Event] = (),
    tier: str = "fused",
    out: str | Path | None = None,
    store: str | Sequence[str] | None = None,
    compress: bool = False,
    force: bool = False,
    progress: bool | None = None,
) -> Result:
    """Integrate a model, or a ready problem with its own initial values and defaults.

    :param q0, v0: initial coordinates and velocities of a mechanical system; a Problem brings its own.
    :param p0: initial momenta, of a model that is written in them.
    :param x0, y0: initial states, and algebraic variables, of a first-order model.
    :param scheme: name of a scheme, see `livens.schemes.all`.
    :param h: step size, honoured exactly; if it does not divide the time span, the last step is shorter.
    :param parameters: values that replace the system's own, by name. Changing them or h compiles nothing.
    :param every: store only every so many steps (the last one always).
    :param project: start from the nearest consistent values if q0, v0 violate the constraints.
    :param redundant: what to do with constraints that follow from others: "error" or "remove".
    :param control: a `livens.StepControl`, for steps that differ; the first has size h.
    :param scaling: a scaling function (see `livens.scaling`) for schemes that adapt their steps; h is then the step of
        a fictive time.
    :param events: `livens.Event` objects: zeros of functions of the state that are looked for, see `Result.events`.
    :param tier: "fused" (native code) or "reference" (slow and simple).
    :param out: a file to write the run to as it goes; `force` replaces an existing one.
    :param store: names of the variables to keep, such as ``["q", "v"]``; all if not given, and t in any case.
    :param compress: make the file smaller; writing it then takes longer.
    :param progress: show a progress bar if it takes longer than two seconds; by default on a terminal.

    A step that does not converge raises IntegrationError, Ctrl-C raises Interrupted (a KeyboardInterrupt): both carry
    everything up to there as `result`.

    >>> import livens as lv
    >>> oscillator = lv.System("x", kinetic=lambda v: 0.5 * v[0] ** 2, potential=lambda q: 0.5 * q[0] ** 2)
    >>> result = lv.simulate(oscillator, q0=[1], v0=[0], scheme="livens-em", h=0.1, t_end=10)
    >>> result.q.shape, bool(result.summary.max_energy_drift < 1e-13)
    ((101, 1), True)
    """
    given = dict(q0=q0, v0=v0, p0=p0, x0=x0, y0=y0)
    task = Task.of(model, given, scheme, h, t_end, t0, parameters, every, tier, control, scaling)
    start = time.perf_counter()
    initial = task.system.start(task.given, task.k, task.t0, project, redundant)
    run = Run(task, initial.dropped, events)
    run.facts.stored, run.facts.compress = chosen_variables(store, run.variables), bool(compress)
    asked: dict[str, Any] = dict(project=project, redundant=redundant, store=store, compress=compress)
    usual: dict[str, Any] = dict(project=False, redundant="error", store=None, compress=False)
    run.facts.made = made(task, **{name: value for name, value in asked.items() if value != usual[name]})
    run.begin(initial)
    run.statistics.compile_s = time.perf_counter() - start
    rows = task.steps // task.every + 2 if task.equal_steps else _ROWS
    file = None
    if out is not None:
        from livens.results.hdf5_writer import RunFile

        file = RunFile.create(Path(out), run.facts, rows=rows, force=force)
    run.recorder = Recorder(run.facts, file, expected=rows)
    run.record_start(initial)
    return run.go(progress)


def resume(
    path: str | Path,
    *,
    t_end: float | None = None,
    system: Model | None = None,
    scaling: Any = None,
    events: Sequence[Event] = (),
    progress: bool | None = None,
) -> Result:
    """Go on with a run from its file, bit for bit as if it had never stopped.

    `t_end` may be later than the run's own. The file of a system of your own needs that `system`, and a run with a
    scaling function of your own that `scaling`.
    """
    from livens.results.hdf5_reader import load
    from livens.results.hdf5_writer import RunFile

    earlier = load(path, system=system)
    facts = earlier.facts
    if t_end is not None and t_end < facts.t_end:
        raise InputError(f"t_end = {t_end:g} lies before the end of the run, {facts.t_end:g}")
    if earlier.status == "complete" and (t_end is None or t_end == facts.t_end):
        raise InputError(f"the run in '{path}' is already finished (t = {facts.t_end:g}); nothing to resume")
    problem = earlier.problem if system is None else None
    task = Task.of(
        problem or earlier.system, {}, facts.scheme, facts.h, facts.t_end if t_end is None else t_end, facts.t0,
        facts.parameters, facts.every, facts.tier, StepControl(**facts.control) if facts.control else None, scaling,
    )  # fmt: skip
    start = time.perf_counter()
    run = Run(task, facts.dropped, events)
    if run.facts.model != facts.model:
        raise InputError(
            f"the run in '{path}' was made with other equations (another model or another version of livens): "
            "it cannot be resumed"
        )
    run.take_up(earlier.record)
    run.statistics.compile_s += time.perf_counter() - start
    run.facts = dataclasses.replace(facts, t_end=run.facts.t_end)
    rows, step = int(earlier.record.checkpoint["rows"]), int(earlier.record.checkpoint["step"])
    run.recorder = Recorder(run.facts, RunFile.reopen(Path(path), rows, step), regular_rows=rows)
    return run.go(progress)
