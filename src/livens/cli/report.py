"""``livens report``: what a run conserved, and whether that is what the scheme promises."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from livens.models.model import Model


def add_to(app: typer.Typer) -> None:
    app.command("report")(report)


def report(
    file: Annotated[Path, typer.Argument(help="A result file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing; the exit code says it.")] = False,
    accuracy: Annotated[
        bool, typer.Option("--accuracy/--no-accuracy", help="Estimate the error from runs with other steps.")
    ] = True,
    system: Annotated[
        str | None,
        typer.Option(metavar="FILE.py:NAME", help="A model of your own, and where it is written."),
    ] = None,
) -> None:
    """Say how accurate a run is and what it conserved: start value, worst deviation over every step, drift, verdict.

    The error is estimated from the same run with other steps, if that takes a few seconds at most.

    Drifts are regressions over the stored rows, with a 95 % confidence interval. Exit code 1 if something that the
    scheme promises to conserve was not conserved to round-off.

    A file does not hold a model of your own, and all columns and the accuracy are there only if it is given.

    Example: livens report double-four-bar.h5 --json
    """
    import livens as lv
    from livens.analysis.report import print_report
    from livens.analysis.verdicts import as_object, rows

    result = lv.load(file, system=None if system is None else model_in(system))
    if as_json:
        found = as_object(result, accuracy=accuracy)
        typer.echo(json.dumps(found))
        holds = bool(found["as_promised"])
    else:
        table = rows(result) if quiet else print_report(result, accuracy=accuracy)
        holds = all(row.holds for row in table)
    if not holds:
        raise typer.Exit(1)


def model_in(place: str) -> Model:
    """The model of this name in a file of Python, which is carried out."""
    import runpy

    from livens.errors import InputError
    from livens.models.model import Model

    path, _, name = place.rpartition(":")
    if not path or not Path(path).is_file():
        raise InputError(f"--system must look like file.py:name, with a file that is there, got '{place}'")
    found = runpy.run_path(path).get(name)
    if not isinstance(found, Model):
        raise InputError(f"'{path}' has no model called '{name}'")
    return found
