"""``livens bench``: benchmarks against other codes."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated

import typer

import livens
from livens.errors import InputError


def register(app: typer.Typer) -> None:
    app.command("bench")(bench)


def bench(
    rounds: Annotated[int, typer.Option(help="Number of timings of each case; the fastest counts.")] = 5,
    picture: Annotated[Path | None, typer.Option(help="File for the work-precision diagram.")] = None,
    only: Annotated[str, typer.Option(help="Only cases whose names contain one of these texts, comma-separated.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Time livens and other codes on the same problems, interleaved, and print the ratios.

    The benchmarks belong to a checkout of livens, not to the installed package.
    """
    root = Path(livens.__file__).parents[2]
    if not (root / "benchmarks" / "__init__.py").is_file():
        raise InputError("livens bench needs a checkout of livens, whose folder 'benchmarks' contains the cases")
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    importlib.import_module("benchmarks").run_and_print(rounds, as_json, picture, only)
