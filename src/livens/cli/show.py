"""``livens show``: all there is to say about a problem or a scheme, with a picture in terminals that can."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    app.command("show")(show)


def show(
    name: Annotated[str, typer.Argument(help="Name of a ready problem or of a scheme.")],
    picture: Annotated[
        bool | None, typer.Option("--picture/--no-picture", help="Draw the problem in dots; by default on a terminal.")
    ] = None,
) -> None:
    """Tell all there is to say about a problem or a scheme.

    A problem is drawn as it starts, in dots, where the terminal has such letters.

    Example: livens show double-four-bar
    """
    from livens import problems
    from livens.cli.list_ import tell_problem, tell_scheme
    from livens.errors import InputError, suggestion
    from livens.schemes import registry

    ready = [entry.name for entry in problems.all()]
    if name in ready:
        if _draws() if picture is None else picture:
            drawn = _drawn(name)
            if drawn:
                typer.echo(drawn + "\n")
        tell_problem(name)
        return
    try:
        tell_scheme(name)
    except InputError:
        known = [*ready, *(scheme.name for scheme in registry.all())]
        raise InputError(f"there is no problem and no scheme '{name}'{suggestion(name, known)}") from None


def _draws() -> bool:
    """Whether there is a terminal, and whether it can write Braille."""
    return sys.stdout.isatty() and (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def _drawn(name: str) -> str:
    from livens import problems
    from livens.models.sketch import dots

    return dots(*problems.load(name).pose)
