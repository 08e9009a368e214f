"""``livens sweep``: parameter sweeps of a problem."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from livens.analysis.study.sweeps import Sweep

#: Largest number of rows printed; the file contains all rows.
_MAX_ROWS = 40
_COLUMNS = (
    "status",
    "steps",
    "us_per_step",
    "max_energy_drift",
    "max_constraint",
    "momentum_drift",
    "error_q",
    "error_x",
)


def register(app: typer.Typer) -> None:
    app.command("sweep")(sweep)


def sweep(
    problem: Annotated[str, typer.Argument(metavar="PROBLEM", help="A problem, or a scenario FILE.yaml.")],
    vary: Annotated[
        list[str],
        typer.Option(metavar="NAME=VALUES", help="Comma-separated values, or first:last:count[:log]."),
    ],
    scheme: Annotated[str | None, typer.Option(help="Name of a scheme (livens list schemes).")] = None,
    h: Annotated[float | None, typer.Option("--h", help="Step size.")] = None,
    t_end: Annotated[float | None, typer.Option(help="End time of the runs.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change an option of the problem.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Table file: .csv or .parquet.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing table.")] = False,
    final: Annotated[bool, typer.Option("--final", help="Also store the final state.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Number of processes; default: one per core.")] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on a dask cluster, such as tcp://host:8786.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Run a problem with every combination of the given values, on all cores, and write a table.

    Options of the problem (livens list problems), h, t_end and scheme can be varied. A failed run is a row with its
    error message. Ctrl-C keeps the finished runs. Exit code 3 if no run could be finished.

    Example: livens sweep simple-pendulum --vary m=0.1:10:20:log --vary h=1e-3,1e-2 --out table.csv
    """
    from livens.analysis.study.grid import parse_values
    from livens.analysis.study.sweep_run import from_scenario
    from livens.analysis.study.sweeps import sweep as study_of
    from livens.analysis.study.table_files import check_target
    from livens.cli.init import SUFFIXES
    from livens.cli.run import keyboard_interrupts, parse_settings
    from livens.errors import InputError

    varied = dict(parse_values(text) for text in vary)
    if len(varied) < len(vary):
        raise InputError("--vary contains the same name twice")
    fixed = parse_settings(set_ or []) | {
        name: value for name, value in dict(scheme=scheme, h=h, t_end=t_end).items() if value is not None
    }
    for name in varied:
        if name in fixed:
            raise InputError(f"'{name}' cannot be both varied and set")
    if out is not None:
        check_target(out, force=force)
    scenario = problem.lower().endswith(SUFFIXES)
    if scenario:
        from_scenario(problem)  # report errors in the file once, before the sweep
    build = functools.partial(from_scenario, problem) if scenario else problem
    progress = False if quiet or as_json else None
    client = None
    if cluster is not None:
        from livens.analysis.study.cluster import connect

        client = connect(cluster)
    try:
        with keyboard_interrupts():
            study = study_of(build, varied, fixed, final=final, workers=workers, client=client, progress=progress)
    finally:
        if client is not None:
            client.close()
    if out is not None:
        study.save(out, force=force)
    if as_json:
        output = {"problem": problem, "total": study.total, "interrupted": study.interrupted, "rows": list(study.rows)}
        typer.echo(json.dumps(output))
    elif not quiet:
        _print(study, list(varied), out)
    if study.interrupted:
        typer.echo(f"livens: stopped by the user after {len(study.rows)} of {study.total} runs", err=True)
        raise typer.Exit(130)
    if len(study.failures) == study.total:
        typer.echo(f"livens: no run could be finished: {study.failures[0]['reason']}", err=True)
        raise typer.Exit(3)


def _print(study: Sweep, varied: list[str], out: Path | None) -> None:
    from rich.table import Table

    from livens.analysis.report import console

    columns = varied + [name for name in _COLUMNS if any(row.get(name) is not None for row in study.rows)]
    table = Table(*(name.replace("_", " ") if name not in varied else name for name in columns))
    for row in study.rows[:_MAX_ROWS]:
        table.add_row(*(_cell(row.get(name)) for name in columns), style="red" if row["status"] == "failed" else None)
    screen = console()
    screen.print(table)
    if len(study.rows) > _MAX_ROWS:
        screen.print(f"... and {len(study.rows) - _MAX_ROWS} more rows")
    for row in study.failures[:5]:
        values_text = ", ".join(f"{name} = {_cell(row[name])}" for name in varied)
        screen.print(f"failed: {values_text}: {row['reason']}", markup=False)
    done = len(study.rows) - len(study.failures)
    screen.print(f"{done} of {study.total} runs finished, {len(study.failures)} failed")
    if out is not None:
        screen.print(f"written to {out}", markup=False)


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
