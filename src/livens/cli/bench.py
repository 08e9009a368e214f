"""``livens bench``: side by side with other codes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    app.command("bench")(bench)


def bench(
    rounds: Annotated[int, typer.Option(help="How often each case is timed; the best counts.")] = 5,
    picture: Annotated[Path | None, typer.Option(help="File for the diagram of work and precision.")] = None,
    only: Annotated[str, typer.Option(help="Only cases with one of these texts in their names, with commas.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Time livens and its peers on the same problems, interleaved, and print the ratios."""
    from livens.bench import run_and_print

    run_and_print(rounds, as_json, picture, only)
