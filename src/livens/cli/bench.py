"""``livens bench``: benchmarks against other codes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("bench")(bench)


def bench(
    rounds: Annotated[int, typer.Option(help="Number of timings of each case; the fastest counts.")] = 5,
    picture: Annotated[Path | None, typer.Option(help="File for the work-precision diagram.")] = None,
    only: Annotated[str, typer.Option(help="Only cases whose names contain one of these texts, comma-separated.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Time livens and other codes on the same problems, interleaved, and print the ratios."""
    from livens.bench import run_and_print

    run_and_print(rounds, as_json, picture, only)
