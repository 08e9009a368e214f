"""``livens show``: describe a problem or a scheme, with a sketch on terminals that support it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    app.command("show")(show)


def show(
    name: Annotated[str, typer.Argument(help="Name of a built-in problem or of a scheme.")],
    picture: Annotated[
        bool | None, typer.Option("--picture/--no-picture", help="Draw a sketch in Braille; default: on a terminal.")
    ] = None,
) -> None:
    """Describe a problem or a scheme.

    A problem is sketched in its initial position with Braille characters, if the terminal supports them.

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
        raise InputError(f"unknown problem or scheme '{name}'{suggestion(name, known)}") from None


def _draws() -> bool:
    """Return True if the output is a terminal with UTF-8 encoding."""
    return sys.stdout.isatty() and (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def _drawn(name: str) -> str:
    from livens import problems
    from livens.models.sketch import dots

    return dots(*problems.load(name).pose)
