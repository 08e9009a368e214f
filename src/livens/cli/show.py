"""``livens show``: describe a problem or a scheme, with a sketch on terminals that support it."""

from __future__ import annotations

import sys
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
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
    from livens.cli.list_ import describe_problem, describe_scheme
    from livens.errors import InputError, suggestion
    from livens.schemes.core import registry

    problem_names = [entry.name for entry in problems.all()]
    if name in problem_names:
        if _supports_braille() if picture is None else picture:
            sketch = _sketch(name)
            if sketch:
                typer.echo(sketch + "\n")
        describe_problem(name)
        return
    try:
        describe_scheme(name)
    except InputError:
        names = [*problem_names, *(scheme.name for scheme in registry.all())]
        raise InputError(f"unknown problem or scheme '{name}'{suggestion(name, names)}") from None


def _supports_braille() -> bool:
    """Return True if the output is a terminal with UTF-8 encoding."""
    return sys.stdout.isatty() and (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def _sketch(name: str) -> str:
    from livens import problems
    from livens.scene.sketch import braille

    return braille(*problems.load(name).initial_scene)
