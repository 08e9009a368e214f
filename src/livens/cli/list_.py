"""``livens list``: what there is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from livens.schemes.base import Scheme


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
            "kind": (model := problems.load(entry.name).system).kind, "schemes": schemes.fitting(model),
        }
        for entry in problems.all()
    ]  # fmt: skip


def _scheme_objects() -> list[dict[str, Any]]:
    from livens import schemes

    traits = ("name", "summary", "source", "order", "symplectic", "symmetric", "conserves", "models", "fictive")
    return [
        {trait: getattr(scheme, trait) for trait in traits}
        | {"requires": [r.words for r in scheme.requires], "family": family_of(scheme)}
        for scheme in schemes.all()
    ]


def family_of(scheme: Scheme) -> str | None:
    """The pattern of the names of its family, if it is one of many."""
    family = getattr(type(scheme), "family", None)
    return None if family is None else str(family)


def _problems() -> None:
    from livens import problems, schemes

    for entry in problems.all():
        options = "  ".join(f"{name}={_short(value)}" for name, value in entry.options.items())
        model = problems.load(entry.name).system
        typer.echo(f"{entry.name}\n    {entry.summary} ({entry.source})\n    kind     {model.kind}")
        typer.echo(f"    options  {options}\n    schemes  {', '.join(schemes.fitting(model))}\n")


def _schemes() -> None:
    """One by one; those of a family together, under the pattern of their names."""
    from livens import schemes

    families: dict[str, list[Scheme]] = {}
    for scheme in schemes.all():
        families.setdefault(family_of(scheme) or scheme.name, []).append(scheme)
    for name, members in sorted(families.items()):
        first = members[0]
        typer.echo(f"{name}\n    {_common([f'{member.summary} ({member.source})' for member in members])}")
        if family_of(first):
            typer.echo(f"    such as {', '.join(member.name for member in members)}")
        typer.echo(f"    {_all_traits(members)}")
        typer.echo(f"    for models of the kind {', '.join(first.models)}")
        needs = [r.words for r in first.requires] + (["a scaling function"] if first.fictive else [])
        if needs:
            typer.echo(f"    needs {' and '.join(needs)}")
        typer.echo()


def _common(lines: list[str]) -> str:
    """What is said of all, or else what is said of each."""
    return " / ".join(dict.fromkeys(lines))


def _all_traits(members: list[Scheme]) -> str:
    traits = [_traits(member) for member in members]
    if len(set(traits)) == 1:
        return f"order {', '.join(dict.fromkeys(str(member.order) for member in members))}{traits[0]}"
    return " / ".join(f"order {member.order}{words}" for member, words in zip(members, traits, strict=True))


def _traits(scheme: Scheme) -> str:
    traits = [name for name in ("symplectic", "symmetric") if getattr(scheme, name)]
    traits += [] if scheme.implicit else ["explicit"]
    conserved = ", ".join(name.replace("_", " ") for name in scheme.conserves)
    return "".join(f", {trait}" for trait in traits) + (f"; conserves {conserved}" if conserved else "")


def _short(value: object) -> str:
    return ",".join(f"{x:g}" for x in value) if isinstance(value, tuple) else f"{value:g}"
