"""``livens list``: list problems and schemes."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from livens.schemes.catalogue import Row

#: Width of tables in characters if the output is not a terminal, so that no cell is wrapped.
_WIDTH = 240


def add_to(app: typer.Typer) -> None:
    app.command("list")(list_)


def list_(
    what: Annotated[str, typer.Argument(help="problems or schemes; default: both.")] = "",
    name: Annotated[str, typer.Argument(help="Name of a problem or scheme, to describe it in detail.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """List the built-in problems, and the schemes with their properties.

    Example: livens list schemes gauss-2
    """
    from livens.errors import InputError, suggestion

    kinds = {
        "problems": (_problems, tell_problem, _problem_objects),
        "schemes": (_schemes, tell_scheme, _scheme_objects),
    }
    if what and what not in kinds:
        raise InputError(f"unknown list '{what}'{suggestion(what, kinds)}")
    chosen = {kind: those for kind, those in kinds.items() if what in ("", kind)}
    if as_json:
        typer.echo(json.dumps({kind: objects(name) for kind, (_, _, objects) in chosen.items()}))
        return
    for show_all, show_one, _ in chosen.values():
        if name:
            show_one(name)
        else:
            show_all()


def _problem_objects(name: str = "") -> list[dict[str, Any]]:
    from livens import problems, schemes
    from livens.run.progress import Progress

    found, asked = [], [problems.entry(name)] if name else problems.all()
    with Progress("trying schemes", len(asked), unit="problems") as bar:
        for entry in asked:
            problem = problems.load(entry.name)
            found.append(
                {
                    "name": entry.name,
                    "summary": entry.summary,
                    "source": entry.source,
                    "options": dict(entry.options),
                    "kind": problem.system.kind,
                    "scheme": problem.scheme,
                    "schemes": schemes.fitting(problem.system),
                }
            )
            bar.update(len(found))
    return found


def _scheme_objects(name: str = "") -> list[dict[str, Any]]:
    from livens import schemes

    return [scheme.traits.as_object() for scheme in ([schemes.get(name)] if name else schemes.all())]


def _problems() -> None:
    from livens import problems

    table = _table("problem", "description", "default scheme")
    for entry in problems.all():
        table.add_row(entry.name, entry.summary, entry.scheme)
    out = _console()
    out.print(table)
    out.print("Options, applicable schemes and a picture: livens show NAME\n")


def tell_problem(name: str) -> None:
    """Describe a problem: its options and the applicable schemes by group."""
    from livens.schemes.catalogue import grouped

    facts = _problem_objects(name)[0]
    typer.echo(f"{facts['name']}\n    {facts['summary']} ({facts['source']})")
    typer.echo(f"    type          {facts['kind']}")
    options = "  ".join(f"{option}={_short(value)}" for option, value in facts["options"].items())
    typer.echo(f"    options       {options or 'none'}")
    typer.echo(f"    default       {facts['scheme']}")
    typer.echo("    applicable schemes")
    for group, names in grouped(facts["schemes"]).items():
        typer.echo(f"        {group}")
        for line in textwrap.wrap(", ".join(names), width=100, break_long_words=False, break_on_hyphens=False):
            typer.echo(f"            {line}")


def _schemes() -> None:
    """Print one table per group; a family of schemes is one row with the pattern of its names."""
    from livens.schemes.catalogue import rows

    groups: dict[str, list[Row]] = {}
    for row in rows():
        groups.setdefault(row.group, []).append(row)
    width = max(len(row.name) for those in groups.values() for row in those)
    out = _console()
    for group, those in groups.items():
        table = _table("scheme", "order", "symplectic", "symmetric", "step", "conserves exactly")
        table.columns[0].min_width = width  # aligns the columns of all tables
        for row in those:
            table.add_row(row.name, row.order, row.symplectic, row.symmetric, row.solved, row.conserves)
        out.print(f"[bold]{group}[/]")
        out.print(table)
    out.print("Description, source and requirements: livens show NAME, such as gauss-2 or gauss-<s>\n")


def tell_scheme(name: str) -> None:
    """Describe a scheme by its name, or a family by its pattern."""
    from livens import schemes
    from livens.schemes.base import FORMS
    from livens.schemes.catalogue import row, rows

    found = next((row for row in rows() if row.name == name), None)
    if found is None:
        traits = schemes.get(name).traits
        found = row(traits.name, [traits])
    first, members = found.members[0], found.members
    alone, scaling = first.name == found.name, ["a scaling function"] if first.fictive else []
    summaries = dict.fromkeys(f"{member.summary} ({member.source})" for member in members)
    lines = {
        "such as": "" if alone else ", ".join(member.name for member in members),
        "family": first.family if alone else "",
        "also called": ", ".join(first.aliases) if alone else "",
        "order": found.order,
        "symplectic": found.symplectic,
        "symmetric": found.symmetric,
        "step": found.solved,
        "conserves": found.conserves or "nothing exactly",
        "takes": found.forms if "<scheme>" in found.forms else " or ".join(FORMS[form] for form in first.forms),
        "needs": "; ".join([r.words for r in first.requires] + scaling) if alone else found.needs,
        "own error": f"estimated, of order {first.estimate_order}" if alone and first.estimate_order else "",
    }
    typer.echo(f"{found.name}\n    {' / '.join(summaries)}")
    for word, text in lines.items():
        if text:
            typer.echo(f"    {word:<13} {text}")


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0))
    table.columns[0].no_wrap = True
    return table


def _console() -> Console:
    """Return a console of the width of the terminal, or of a fixed width."""
    from rich.console import Console

    wide = Console(highlight=False)
    return wide if wide.is_terminal else Console(highlight=False, width=_WIDTH)


def _short(value: object) -> str:
    return ",".join(f"{x:g}" for x in value) if isinstance(value, tuple) else f"{value:g}"
