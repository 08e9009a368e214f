"""``livens plot``: pictures of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    app.command("plot")(plot)


def plot(
    file: Annotated[Path, typer.Argument(help="A result file.")],
    out: Annotated[Path, typer.Option(help="Folder for the pictures.")] = Path(),
) -> None:
    """Draw energies, constraints and coordinates of a run.

    Example: livens plot double-four-bar.h5 --out figures
    """
    import livens as lv
    from livens.plot import save_all

    for path in save_all(lv.load(file), out):
        typer.echo(str(path))
