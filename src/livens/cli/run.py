"""``livens run``: simulate a problem or a scenario and report what was conserved."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import threading
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from livens.analysis.accuracy import Estimate
    from livens.models.problem import Problem
    from livens.results.result import Result


#: Variables whose final values ``--json`` prints.
_FINAL = ("q", "v", "p", "x", "y")


def register(app: typer.Typer) -> None:
    app.command("run")(run)


def run(
    problem: Annotated[
        str,
        typer.Argument(
            help="A problem, a scenario FILE.yaml, a robot (urdf, sdf, xml), or with --resume a result file."
        ),
    ],
    scheme: Annotated[str | None, typer.Option(help="Name of a scheme (livens list schemes).")] = None,
    h: Annotated[float | None, typer.Option("--h", help="Step size.")] = None,
    t_end: Annotated[float | None, typer.Option(help="End time.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change an option or a parameter.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Result file; default: PROBLEM.h5.")] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="Adaptive steps with this relative tolerance of the local error.")
    ] = None,
    adaptive: Annotated[
        str | None, typer.Option(help="reversible: steps that follow --scaling, symmetric in time; needs --h.")
    ] = None,
    scaling: Annotated[
        str | None, typer.Option(help="Scaling function of reversible steps, such as 'speed(1.0)'.")
    ] = None,
    smallest: Annotated[float | None, typer.Option(help="Smallest step size of adaptive steps.")] = None,
    largest: Annotated[float | None, typer.Option(help="Largest step size of adaptive steps.")] = None,
    every: Annotated[int | None, typer.Option(help="Store every n-th step; default: 1.")] = None,
    store: Annotated[str | None, typer.Option(help="Variables to store, such as q,v; default: all.")] = None,
    compress: Annotated[bool, typer.Option("--compress", help="Compress the file, which takes longer.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume the run of a result file; with --out, start it if there is none.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing result file.")] = False,
    tier: Annotated[str | None, typer.Option(help="auto, tree, fused, assembled or reference (slow).")] = None,
    threads: Annotated[
        int | None, typer.Option(help="Threads of the assembled tier (large systems); default: 1.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object; no file unless --out.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
    accuracy: Annotated[
        bool, typer.Option("--accuracy/--no-accuracy", help="Estimate the error by runs with other step sizes.")
    ] = True,
) -> None:
    """Simulate a built-in problem or a scenario, write a result file, and report accuracy and conservation.

    The error is estimated by runs with other step sizes, if they take a few seconds at most.

    With --tolerance, --smallest or --largest the steps are adaptive, and --h is the first step size. Steps that cannot
    be solved are repeated with half the size; with --tolerance, sizes follow the estimated error. With --adaptive
    reversible, step sizes are about --h times --scaling.

    Example: livens run double-four-bar --h 1e-3 --t-end 10 --set speed=2 --out run.h5
    """
    import livens as lv
    from livens.errors import InputError

    progress = False if quiet or as_json else None
    stored: dict[str, Any] = {}
    if resume and out is not None:  # the command that started the run, repeated
        problem, out, stored = _file_to_resume(problem, out)
        resume = out is None
    if resume:
        fixed = {
            "--scheme": scheme,
            "--h": h,
            "--set": set_,
            "--out": out,
            "--store": store,
            "--tolerance": tolerance,
            "--adaptive": adaptive,
            "--scaling": scaling,
            "--smallest": smallest,
            "--largest": largest,
            "--every": every,
            "--tier": tier,
            "--threads": threads,
            "--compress": compress or None,
            "--force": force or None,
        }
        for name, value in fixed.items():
            if value is not None and not (name in stored and _same(name, value, stored[name])):
                raise InputError(f"--resume continues the run unchanged; {name} cannot be changed")
        resume_run = lv.resume  # imported here, where Ctrl-C interrupts nothing
        result = handle_interrupt(lambda: resume_run(problem, t_end=t_end, progress=progress))
    else:
        from livens.run.progress import show_preparation

        with show_preparation(problem, progress):
            loaded, options = resolve_run(
                problem, parse_settings(set_ or []), excluded={"out"} if out is not None else ()
            )
        if out is None and "out" not in options and not as_json:
            out = Path(f"{Path(problem).stem}.h5")
        specified = dict(
            scheme=scheme,
            h=h,
            t_end=t_end,
            every=every,
            tier=tier,
            threads=threads,
            out=out,
            force=force,
            store=store,
            adaptive=adaptive,
            scaling=scaling,
        )
        options |= {"compress": True} if compress else {}
        control: dict[str, Any] = {
            name: value
            for name, value in dict(tolerance=tolerance, smallest=smallest, largest=largest).items()
            if value is not None
        }
        options |= {"control": lv.StepControl(**control)} if control else {}
        options |= {name: value for name, value in specified.items() if value is not None}
        simulate = lv.simulate
        result = handle_interrupt(lambda: simulate(loaded, progress=progress, **options))
    estimate = None
    if accuracy and (as_json or not quiet):
        from livens.analysis.accuracy import estimate_within_budget

        estimate = estimate_within_budget(result)
        if result.path is not None:
            from livens.results.storage.hdf5_writer import write_accuracy

            write_accuracy(result.path, estimate.as_object())
    if as_json:
        typer.echo(json.dumps(as_object(result, estimate)))
    elif not quiet:
        from livens.analysis.report import print_report

        print_report(result, accuracy=estimate or False)


def _file_to_resume(problem: str, out: Path) -> tuple[str, Path | None, dict[str, Any]]:
    """Return problem and file of ``livens run PROBLEM --out FILE --resume``, and the options of the stored run.

    An existing file is resumed if it belongs to the problem; it is then the problem. Otherwise the run starts.
    """
    import livens as lv
    from livens.errors import InputError

    if not out.exists():
        return problem, out, {}
    info = lv.load(out).info
    if info.problem not in (problem, Path(problem).stem) and Path(problem).resolve() != out.resolve():
        raise InputError(f"cannot resume '{out}': the file contains a run of '{info.problem}', not of '{problem}'")
    stored = {
        "--scheme": info.scheme,
        "--h": info.h,
        "--set": info.parameters | info.problem_options,
        "--store": info.stored,
        "--every": info.every,
        "--tier": info.tier,
        "--compress": info.compress,
    }
    if info.scheme.startswith("step-density:"):
        stored["--adaptive"] = "reversible"
    stored |= {"--scaling": info.scaling} if info.scaling else {}
    return str(out), None, stored | {f"--{name}": value for name, value in info.control.items()}


def _same(name: str, value: Any, stored: Any) -> bool:
    """Return whether an option of the repeated command agrees with the stored run."""
    from livens import schemes
    from livens.schemes.scaling.named import named_scaling

    if name == "--scheme":
        return stored in (schemes.get(value).name, f"step-density:{schemes.get(value).name}")
    if name == "--scaling":
        return bool(named_scaling(value) == named_scaling(stored))
    if name == "--set":
        return all(key in stored and stored[key] == number for key, number in parse_settings(value).items())
    if name == "--store":
        return {part.strip() for part in value.split(",")} <= set(stored)
    return bool(value == stored or (name == "--tier" and value == "auto"))


def resolve_run(name: str, changes: dict[str, Any], excluded: Collection[str] = ()) -> tuple[Problem, dict[str, Any]]:
    """Return a problem by its name, or that of a scenario file with the run settings of the file."""
    import livens as lv
    from livens.cli.init import ROBOT_SUFFIXES, SUFFIXES

    if name.lower().endswith(ROBOT_SUFFIXES):
        robot = lv.scenario.load(name)
        return robot.problem().with_parameters(changes), {}
    if not name.lower().endswith(SUFFIXES):
        return lv.problems.with_parameters(name, changes), {}
    scenario = lv.scenario.load(name).changed(changes)
    return scenario.problem(), scenario.settings_except(excluded)


def handle_interrupt(job: Callable[[], Result]) -> Result:
    """Run a job; Ctrl-C ends the command with exit code 130 and a hint how to resume."""
    from livens.errors import Interrupted

    try:
        with keyboard_interrupts():
            return job()
    except KeyboardInterrupt as early:
        stop = early if isinstance(early, Interrupted) else Interrupted("stopped by the user")
        hint = f"; resume with: livens run {stop.result.path} --resume" if stop.result and stop.result.path else ""
        typer.echo(f"livens: {stop}{hint}", err=True)
        raise typer.Exit(130) from None


@contextlib.contextmanager
def keyboard_interrupts() -> Iterator[None]:
    """Context in which Ctrl-C raises KeyboardInterrupt instead of ending the process at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def parse_settings(items: list[str]) -> dict[str, Any]:
    """Parse ``name=value``, ``name=value,value`` and ``name=word`` from the command line."""
    from livens.errors import InputError

    chosen: dict[str, Any] = {}
    for item in items:
        name, equals, text = item.partition("=")
        try:
            numbers = [float(part) for part in text.split(",")]
        except ValueError:
            numbers = []
        if name and equals and re.fullmatch("[a-z]+(-[a-z]+)*", text) and text not in ("nan", "inf", "infinity"):
            chosen[name.strip()] = text
            continue
        if not (name and equals and numbers):
            raise InputError(f"--set must have the form name=number (or name=number,number), got '{item}'")
        chosen[name.strip()] = numbers[0] if len(numbers) == 1 else numbers
    return chosen


def as_object(result: Result, estimate: Estimate | None) -> dict[str, Any]:
    """Return the ``--json`` output: relative errors and drifts, absolute constraints, null for non-finite values."""
    from livens.analysis.conservation import json_value
    from livens.analysis.step_sizes import step_sizes

    statistics, summary, info = result.statistics, result.summary, result.info
    steps = max(statistics.steps, 1)
    output = {
        "problem": info.problem,
        "scheme": info.scheme,
        "h": info.h,
        "t_end": info.t_end,
        "steps": statistics.steps,
        "wall_s": statistics.wall_s,
        "us_per_step": statistics.wall_s / steps * 1e6,
        "compile_s": statistics.compile_s,
        "newton_iterations_mean": statistics.newton_iterations / steps,
        "max_energy_drift": summary.max_energy_drift if summary.energy else None,
        "max_energy_increment": summary.max_energy_increment if summary.energy else None,
        "max_constraint": summary.max_constraint,
        "max_velocity_constraint": summary.max_velocity_constraint,
        "momentum_drift": max(summary.momentum_drift.values(), default=None),
        "final": {name: result.last(name).tolist() for name in _FINAL if name in result.stored},
    }
    sizes = step_sizes(result)
    output |= {} if estimate is None else estimate.as_object()
    return {name: json_value(value) for name, value in output.items()} | (
        {} if sizes is None else {"step_sizes": sizes}
    )
