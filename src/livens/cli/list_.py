"""``livens list``: what there is."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer


def add_to(app: typer.Typer) -> None:
    app.command("list")(list_)


def list_(
    what: Annotated[str, typer.Argument(help="problems, schemes, or both if not given.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """List the ready problems with the schemes that fit, and the schemes with their properties."""
    from livens.errors import InputError, suggestion

    kinds = {"problems": (_problems, _problem_objects), "schemes": (_schemes, _scheme_objects)}
    if what and what not in kinds:
        raise InputError(f"there is no list of '{what}'{suggestion(what, kinds)}")
    chosen = {kind: both for kind, both in kinds.items() if what in ("", kind)}
    if as_json:
        typer.echo(json.dumps({kind: objects() for kind, (_, objects) in chosen.items()}))
        return
    for show, _ in chosen.values():
        show()


def _problem_objects() -> list[dict[str, Any]]:
    from livens import problems, schemes

    return [
        {
            "name": entry.name, "summary": entry.summary, "source": entry.source, "options": entry.options,
            "schemes": schemes.fitting(problems.load(entry.name).system),
        }
        for entry in problems.all()
    ]  # fmt: skip


def _scheme_objects() -> list[dict[str, Any]]:
    from livens import schemes

    traits = ("name", "summary", "source", "order", "symplectic", "symmetric", "conserves")
    return [
        {trait: getattr(scheme, trait) for trait in traits} | {"requires": [r.words for r in scheme.requires]}
        for scheme in schemes.all()
    ]


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
