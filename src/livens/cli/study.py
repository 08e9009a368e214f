"""``livens compare``, ``converge`` and ``work-precision``: studies of several runs."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from livens.analysis.conservation import ConservationRow
    from livens.analysis.study.comparison import Comparison
    from livens.analysis.study.convergence import Convergence, Curve
    from livens.models.problem import Problem
    from livens.schemes.core.scheme import Scheme

T = TypeVar("T")

ProblemName = Annotated[str, typer.Argument(metavar="PROBLEM", help="A problem, or a scenario FILE.yaml.")]
Schemes = Annotated[str | None, typer.Option(help="Names of schemes, comma-separated; default: all applicable ones.")]
FewSchemes = Annotated[
    str | None,
    typer.Option(
        "--schemes",
        help="Names of schemes, comma-separated, or all; default: five applicable ones of different families.",
    ),
]
Steps = Annotated[
    str | None, typer.Option("--h", help="Step sizes, comma-separated, or 0.01:5 for 0.01 and four halvings of it.")
]
End = Annotated[float | None, typer.Option(help="End time of the runs.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change an option of the problem.")
]
Figure = Annotated[Path | None, typer.Option(help="File for a figure: png, pdf or svg.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]


def register(app: typer.Typer) -> None:
    app.command("compare")(compare)
    app.command("converge")(converge)
    app.command("work-precision")(work_precision)


def compare(
    problem: ProblemName,
    schemes: Schemes = None,
    h: Annotated[float | None, typer.Option("--h", help="Step size.")] = None,
    t_end: End = None,
    set_: Settings = None,
    out: Figure = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run a problem with several schemes, and compare conservation and cost.

    Exit codes: 1 if a scheme did not conserve what it guarantees, 3 if no run could be finished.

    Example: livens compare spring-pendulum --schemes livens-em,livens-midpoint --t-end 10 --out energy.png
    """
    from livens.analysis.study import compare as study_of

    check_figure(out)
    study = handle_interrupt(
        lambda: study_of(load_problem(problem, set_), schemes, h, t_end, progress=_progress(as_json, quiet))
    )
    if as_json:
        typer.echo(json.dumps(study.as_object()))
    elif not quiet:
        _print_comparison(study)
    if out is not None and study.results:
        from livens.plot.convergence import comparison_diagram

        _save(comparison_diagram(study.results), out, as_json or quiet)
    _finish([entry.failure for entry in study.entries], all(entry.as_guaranteed for entry in study.entries))


def converge(
    problem: ProblemName,
    schemes: FewSchemes = None,
    h: Steps = None,
    t_end: End = None,
    set_: Settings = None,
    out: Figure = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure the order of schemes by final errors for decreasing step sizes.

    Errors are distances from the exact solution, or from an extrapolation of runs with much smaller steps. Orders are
    fitted with a 95 % confidence interval. Errors marked * are at round-off level, or below the uncertainty of the
    reference solution; they are excluded from the fit.

    Exit codes: 1 if an order is clearly below the scheme's, 3 if no run could be finished.

    Example: livens converge double-four-bar --schemes livens-em,livens-midpoint --h 0.004:5 --t-end 1 --out order.png
    """
    from livens.analysis.study import converge as study_of
    from livens.analysis.study.step_lists import parse_step_sizes

    check_figure(out)
    steps = None if h is None else parse_step_sizes(h)
    loaded = load_problem(problem, set_)
    chosen = _few_schemes(loaded, schemes)
    study = handle_interrupt(lambda: study_of(loaded, chosen, steps, t_end, progress=_progress(as_json, quiet)))
    if as_json:
        typer.echo(json.dumps(study.as_object()))
    elif not quiet:
        _print_orders(study)
    if out is not None:
        from livens.plot.convergence import order_diagram

        _save(order_diagram(study), out, as_json or quiet)
    failures = [point.failure for curve in study.curves for point in curve.points]
    _finish(failures, all(curve.as_guaranteed for curve in study.curves))


def work_precision(
    problem: ProblemName,
    schemes: FewSchemes = None,
    h: Steps = None,
    t_end: End = None,
    set_: Settings = None,
    repeats: Annotated[int, typer.Option(min=1, help="Number of timings of every run; the fastest counts.")] = 3,
    out: Figure = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure final errors against wall time and number of evaluations (work-precision diagram).

    The time is that of the steps, without derivation and compilation. Evaluations are those of the equations of a
    step: every Newton iteration takes two, the residual with its Jacobian, and the residual after the update.

    Example: livens work-precision simple-pendulum --h 0.01:6 --out work.png
    """
    from livens.analysis.study import work_precision
    from livens.analysis.study.step_lists import parse_step_sizes

    check_figure(out)
    steps, progress = None if h is None else parse_step_sizes(h), _progress(as_json, quiet)
    loaded = load_problem(problem, set_)
    chosen = _few_schemes(loaded, schemes)
    study = handle_interrupt(lambda: work_precision(loaded, chosen, steps, t_end, repeats=repeats, progress=progress))
    if as_json:
        typer.echo(json.dumps(study.as_object()))
    elif not quiet:
        _print_work(study)
    if out is not None:
        from livens.plot.convergence import work_precision_diagram

        _save(work_precision_diagram(study), out, as_json or quiet)
    _finish([point.failure for curve in study.curves for point in curve.points], True)


# -- input ------------------------------------------------------------------------------------------------------------
def load_problem(name: str, set_: list[str] | None) -> Problem:
    """Return a problem by its name or from a scenario file, with projected initial values if the file requests it."""
    from livens.cli.run import parse_settings, resolve_run

    problem, options = resolve_run(name, parse_settings(set_ or []), excluded={"out"})
    if options.get("project"):
        system = problem.model
        initial = {"q0": problem.q0, "v0": problem.v0}  # scenarios define mechanical systems
        consistent = system.initial_state(
            initial, system.parameter_vector(problem.parameters), problem.t0, project=True, redundant="remove"
        )
        problem = dataclasses.replace(problem, q0=consistent["q"], v0=consistent["v"])
    return problem


def _few_schemes(problem: Problem, names: str | None) -> str | list[Scheme] | None:
    """Return the requested schemes; None for all, five of different families by default."""
    from livens.analysis.study.step_lists import representative_schemes

    if names is None:
        return representative_schemes(problem)
    return None if names == "all" else names


def check_figure(out: Path | None) -> None:
    """Raise an error before the runs if the figure cannot be written."""
    from livens.errors import InputError

    if out is None:
        return
    if not out.parent.is_dir():
        raise InputError(f"cannot write the picture '{out}': the folder '{out.parent}' does not exist")
    from livens.plot.style import check_suffix

    check_suffix(out.suffix.removeprefix("."))


def _progress(as_json: bool, quiet: bool) -> bool | None:
    return False if as_json or quiet else None


def handle_interrupt(job: Callable[[], T]) -> T:
    """Run a job; Ctrl-C ends the command with exit code 130."""
    from livens.cli.run import keyboard_interrupts

    try:
        with keyboard_interrupts():
            return job()
    except KeyboardInterrupt:
        typer.echo("livens: stopped by the user", err=True)
        raise typer.Exit(130) from None


# -- output -----------------------------------------------------------------------------------------------------------
def _print_comparison(study: Comparison) -> None:
    from rich.table import Table

    from livens.analysis.report import console

    out = console()
    out.print(f"[bold]{study.problem}[/], h = {study.h:g}, t = {study.t_end:g}")
    errors = list(dict.fromkeys(name for entry in study.entries for name in entry.errors))
    quantities = list(dict.fromkeys(_heading(row) for entry in study.entries for row in entry.report))
    table = Table(title="Largest deviations and cost")
    table.add_column("scheme", no_wrap=True)
    for name in (*quantities, *(f"error in {name}" for name in errors), "Newton per step", "us per step"):
        table.add_column(name, justify="right")
    for entry in study.entries:
        if entry.failure or entry.result is None:
            table.add_row(entry.scheme, "failed", style="red")
            continue
        cells = {_heading(row): f"{row.deviation:.1e} {_mark(row)}" for row in entry.report}
        statistics = entry.result.statistics
        steps = max(statistics.steps, 1)
        table.add_row(
            entry.scheme,
            *(cells.get(name, "") for name in quantities),
            *(f"{entry.errors[name]:.1e}" for name in errors),
            f"{statistics.newton_iterations / steps:.2f}",
            f"{statistics.wall_s / steps * 1e6:.2f}",
            style=None if entry.as_guaranteed else "bold red",
        )
    out.print(table)
    out.print(
        "p: guaranteed and conserved to round-off   r: round-off   b: bounded, no trend   d: drifts   "
        "!: NOT AS GUARANTEED"
    )
    for entry in study.entries:
        if entry.failure:
            out.print(f"{entry.scheme}: {entry.failure}", markup=False)


def _heading(row: ConservationRow) -> str:
    """Return the column heading; all energies share one column."""
    energy = row.name.endswith("energy") or row.name == "hamiltonian"
    if not energy:
        return row.quantity
    return "energy" if row.initial is not None else "energy per step"


def _mark(row: ConservationRow) -> str:
    from livens.analysis import conservation as conserved

    marks = {
        conserved.AS_GUARANTEED: "p",
        conserved.ROUND_OFF: "r",
        conserved.BOUNDED: "b",
        conserved.DRIFTS: "d",
        conserved.NOT_AS_GUARANTEED: "!",
    }
    return marks.get(row.verdict, " ")


def _print_orders(study: Convergence) -> None:
    from rich.table import Table

    from livens.analysis.report import console

    out = console()
    out.print(f"[bold]{study.problem}[/], errors at t = {study.t_end:g} against {study.reference.description}")
    for curve in study.curves:
        table = Table(title=f"{curve.scheme} (of order {curve.declared_order})")
        for name in ("h", *(f"{column} in {name}" for name in study.variables for column in ("error", "order"))):
            table.add_column(name, justify="right")
        for i, point in enumerate(curve.points):
            cells = [cell for name in study.variables for cell in _order_cells(curve, name, i)]
            table.add_row(f"{point.h:g}", *cells)
        fits = [cell for name in study.variables for cell in ("fitted", str(curve.fits[name]))]
        table.add_section()
        table.add_row("", *fits, style="bold" if curve.as_guaranteed else "bold red")
        out.print(table)
    _print_notes(study)


def _order_cells(curve: Curve, name: str, i: int) -> tuple[str, str]:
    from livens.analysis.study.order import local_orders

    if curve.points[i].failure:
        return "failed", ""
    local = local_orders([point.h for point in curve.points], curve.errors(name))[i - 1] if i else math.nan
    mark = "*" if curve.fits[name].floor[i] else " "
    return f"{curve.errors(name)[i]:.3e}{mark}", f"{local:.2f}" if math.isfinite(local) else ""


def _print_work(study: Convergence) -> None:
    from rich.table import Table

    from livens.analysis.report import console

    out = console()
    out.print(f"[bold]{study.problem}[/], errors at t = {study.t_end:g} against {study.reference.description}")
    table = Table()
    table.add_column("scheme", no_wrap=True)
    for name in ("h", *(f"error in {name}" for name in study.variables), "wall time in s", "evaluations"):
        table.add_column(name, justify="right")
    for curve in study.curves:
        for i, point in enumerate(curve.points):
            errors = [_order_cells(curve, name, i)[0] for name in study.variables]
            cost = ("", "") if point.failure else (f"{point.wall_s:.2e}", f"{point.evaluations}")
            table.add_row("" if i else curve.scheme, f"{point.h:g}", *errors, *cost)
        table.add_section()
    out.print(table)
    out.print("evaluations: of the step equations, two per Newton iteration; of forces for explicit schemes")
    _print_notes(study)


def _print_notes(study: Convergence) -> None:
    if any(any(fit.floor) for curve in study.curves for fit in curve.fits.values()):
        typer.echo("* at round-off level or near the uncertainty of the reference: excluded from the fit")
    for curve in study.curves:
        for point in curve.points:
            if point.failure:
                typer.echo(f"{curve.scheme}, h = {point.h:g}: {point.failure}")


def _save(figure: Any, out: Path, silent: bool) -> None:
    from livens.plot.style import save

    save(figure, out)
    if not silent:
        typer.echo(str(out))


def _finish(failures: list[str], as_promised: bool) -> None:
    """Set the exit code: 3 if all runs failed, 1 if a guarantee was violated."""
    if failures and all(failures):
        typer.echo(f"livens: no run could be finished: {failures[0]}", err=True)
        raise typer.Exit(3)
    if not as_promised:
        raise typer.Exit(1)
