"""``livens warm-up``: compile the time loops into the machine-code cache."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("warm-up")(warm_up)


def warm_up(quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False) -> None:
    """Compile all time loops that do not depend on a model, so that the first run starts at once.

    Example: livens warm-up
    """
    from livens.engine.warm_up import warm_up as compile_loops

    count = compile_loops((lambda name: None) if quiet else (lambda name: typer.echo(f"compiling {name}")))
    if not quiet:
        typer.echo(f"{count} time loops are compiled")
