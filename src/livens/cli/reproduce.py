"""``livens reproduce``: figures of a paper, and a check of its claims."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from livens.reproduce import Report


def register(app: typer.Typer) -> None:
    app.command("reproduce")(reproduce)


def reproduce(
    source: Annotated[
        str, typer.Argument(help="Author-year name of a work, see --list; default: all works in one report.")
    ] = "all",
    out: Annotated[Path | None, typer.Option(help="Folder for figures and report; default: reproduce-SOURCE.")] = None,
    list_figures: Annotated[bool, typer.Option("--list", help="List the figures instead of drawing them.")] = False,
    only: Annotated[str | None, typer.Option(help="Numbers of figures, comma-separated; default: all.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Reproduce the figures of a paper from new runs, and measure its claims.

    Every figure is written as png and pdf, and a report as Markdown and HTML.

    Exit codes: 1 if a claim does not hold.

    Example: livens reproduce kinon-betsch-2024 --only 13 --out figures
    """
    from livens.cli.study import handle_interrupt
    from livens.errors import InputError
    from livens.reproduce import reproduce as reproduce_source
    from livens.reproduce import reproduce_all

    progress = False if quiet or as_json else None
    all_sources = source.lower() == "all"
    if list_figures:
        _list(None if all_sources else source)
        return
    if all_sources and only is not None:
        raise InputError("--only needs a single source, because figure numbers belong to one source")
    if all_sources:
        reports = handle_interrupt(lambda: reproduce_all(out, progress=progress))
    else:
        reports = [handle_interrupt(lambda: reproduce_source(source, out, only, progress=progress))]
    if as_json:
        objects = [report.as_object() for report in reports]
        typer.echo(json.dumps({"sources": objects} if all_sources else objects[0]))
    elif not quiet:
        for report in reports:
            _print(report)
    if not all(report.holds for report in reports):
        raise typer.Exit(1)


def _list(source: str | None) -> None:
    """Print the numbers and titles of the figures of one source or of all."""
    from livens.reproduce import figures
    from livens.reproduce.core import SOURCES, source_of

    for paper in SOURCES.values() if source is None else [source_of(source)]:
        typer.echo(f"{paper.name}: {paper.citation}")
        for entry in figures(paper.name):
            typer.echo(f"    {entry.number:<8} {entry.title}")


def _print(report: Report) -> None:
    from rich.table import Table

    from livens.analysis.report import console
    from livens.reproduce.report import status

    out = console()
    out.print(f"[bold]{report.source.name}[/]: {report.source.citation}")
    table = Table(title="Claims and measurements", show_lines=True)
    for heading in ("figure", "claim", "measured", ""):
        table.add_column(heading, no_wrap=heading == "")
    for figure in report.results:
        for i, claim in enumerate(figure.claims):
            number = "" if i else figure.entry.number
            style = "bold red" if claim.holds is False else None
            table.add_row(number, _escape(claim.text), _escape(claim.measured), status(claim.holds), style=style)
    out.print(table)
    for figure in report.results:
        if figure.entry.note:
            out.print(f"Figure {figure.entry.number}: {figure.entry.note}", markup=False)
    out.print(f"figures and report are in {report.folder}", markup=False)


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)
