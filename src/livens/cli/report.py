"""``livens report``: conservation report of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from livens.models.base import Model


def register(app: typer.Typer) -> None:
    app.command("report")(report)


def report(
    file: Annotated[Path, typer.Argument(help="A result file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing; only set the exit code.")] = False,
    accuracy: Annotated[
        bool, typer.Option("--accuracy/--no-accuracy", help="Estimate the error by runs with other step sizes.")
    ] = True,
    system: Annotated[
        str | None,
        typer.Option(metavar="FILE.py:NAME", help="User-defined model and the Python file that defines it."),
    ] = None,
) -> None:
    """Report the accuracy of a run and what it conserved: initial value, largest deviation, drift, verdict.

    The error is estimated by runs with other step sizes, if they take a few seconds at most.

    Drifts are regressions over the stored rows, with a 95 % confidence interval. Exit code 1 if a quantity that the
    scheme is guaranteed to conserve was not conserved to round-off.

    Result files do not contain user-defined models; some columns and the accuracy need the model (--system).

    Example: livens report double-four-bar.h5 --json
    """
    import livens as lv
    from livens.analysis.conservation import as_object, conservation_rows
    from livens.analysis.report import print_report

    result = lv.load(file, system=None if system is None else load_model(system))
    if as_json:
        output = as_object(result, accuracy=accuracy)
        typer.echo(json.dumps(output))
        holds = bool(output["as_promised"])
    else:
        table = conservation_rows(result) if quiet else print_report(result, accuracy=accuracy)
        holds = all(row.holds for row in table)
    if not holds:
        raise typer.Exit(1)


def load_model(reference: str) -> Model:
    """Run a Python file and return the model with this name."""
    import runpy

    from livens.errors import InputError
    from livens.models.base import Model

    path, _, name = reference.rpartition(":")
    if not path or not Path(path).is_file():
        raise InputError(f"--system must have the form file.py:name with an existing file, got '{reference}'")
    model = runpy.run_path(path).get(name)
    if not isinstance(model, Model):
        raise InputError(f"'{path}' has no model called '{name}'")
    return model
