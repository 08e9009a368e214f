"""``livens list``: what there is."""

from __future__ import annotations

from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    app.command("list")(list_)


def list_(what: Annotated[str, typer.Argument(help="problems, schemes, or both if not given.")] = "") -> None:
    """List the ready problems with the schemes that fit, and the schemes with their properties."""
    from livens.errors import InputError, suggestion

    kinds = {"problems": _problems, "schemes": _schemes}
    if what and what not in kinds:
        raise InputError(f"there is no list of '{what}'{suggestion(what, kinds)}")
    for kind, show in kinds.items():
        if what in ("", kind):
            show()


def _problems() -> None:
    from livens import problems, schemes

    for entry in problems.all():
        options = "  ".join(f"{name}={_short(value)}" for name, value in entry.options.items())
        fitting = schemes.fitting(problems.load(entry.name).system)
        typer.echo(f"{entry.name}\n    {entry.summary} ({entry.source})")
        typer.echo(f"    options  {options}\n    schemes  {', '.join(fitting)}\n")


def _schemes() -> None:
    from livens import schemes

    for scheme in schemes.all():
        traits = [name for name in ("symplectic", "symmetric") if getattr(scheme, name)]
        conserved = ", ".join(name.replace("_", " ") for name in scheme.conserves)
        typer.echo(f"{scheme.name}\n    {scheme.summary} ({scheme.source})")
        typer.echo(f"    order {scheme.order}{''.join(', ' + trait for trait in traits)}; conserves {conserved}")
        if scheme.requires:
            typer.echo(f"    needs {' and '.join(r.words for r in scheme.requires)}")
        typer.echo()


def _short(value: object) -> str:
    return ",".join(f"{x:g}" for x in value) if isinstance(value, tuple) else f"{value:g}"
