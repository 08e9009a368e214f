"""``livens report``: what a run conserved, and whether that is what the scheme promises."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    app.command("report")(report)


def report(
    file: Annotated[Path, typer.Argument(help="A result file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing; the exit code says it.")] = False,
    accuracy: Annotated[
        bool, typer.Option("--accuracy/--no-accuracy", help="Estimate the error from runs with other steps.")
    ] = True,
) -> None:
    """Say how accurate a run is and what it conserved: start value, worst deviation over every step, drift, verdict.

    The error is estimated from the same run with other steps, if that takes a few seconds at most.

    Drifts are regressions over the stored rows, with a 95 % confidence interval. Exit code 1 if something that the
    scheme promises to conserve was not conserved to round-off.

    Example: livens report double-four-bar.h5 --json
    """
    import livens as lv
    from livens.analysis.report import print_report
    from livens.analysis.verdicts import as_object, rows

    result = lv.load(file)
    if as_json:
        found = as_object(result, accuracy=accuracy)
        typer.echo(json.dumps(found))
        holds = bool(found["as_promised"])
    else:
        table = rows(result) if quiet else print_report(result, accuracy=accuracy)
        holds = all(row.holds for row in table)
    if not holds:
        raise typer.Exit(1)
