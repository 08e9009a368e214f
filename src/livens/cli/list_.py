"""``livens list``: what there is."""

from __future__ import annotations

from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    app.command("list")(list_)


def list_(what: Annotated[str, typer.Argument(help="problems, schemes, or both if not given.")] = "") -> None:
    """List the ready problems with the schemes that fit, and the schemes with their properties."""
    from rich.console import Console
    from rich.table import Table

    from livens import problems, schemes
    from livens.errors import InputError, suggestion

    kinds = ("problems", "schemes")
    if what and what not in kinds:
        raise InputError(f"there is no list of '{what}'{suggestion(what, kinds)}")
    console = Console()
    if what in ("", "problems"):
        table = Table("problem", "what it is", "source", "options", "schemes that fit", title="Problems")
        for entry in problems.all():
            options = ", ".join(f"{name}={value}" for name, value in entry.options.items())
            fitting = schemes.fitting(problems.load(entry.name).system)
            table.add_row(entry.name, entry.summary, entry.source, options, ", ".join(fitting))
        console.print(table)
    if what in ("", "schemes"):
        table = Table(
            "scheme", "what it is", "source", "order", "symplectic", "symmetric", "conserves", title="Schemes"
        )
        for scheme in schemes.all():
            flags = ["yes" if flag else "no" for flag in (scheme.symplectic, scheme.symmetric)]
            table.add_row(
                scheme.name, scheme.summary, scheme.source, str(scheme.order), *flags, ", ".join(scheme.conserves)
            )
        console.print(table)
