"""``livens list``: list problems and schemes."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from livens.schemes.core.catalogue import Row

#: Width of tables in characters if the output is not a terminal, so that no cell is wrapped.
_WIDTH = 240


def register(app: typer.Typer) -> None:
    app.command("list")(list_)


def list_(
    topic: Annotated[str, typer.Argument(help="problems or schemes; default: both.")] = "",
    name: Annotated[str, typer.Argument(help="Name of a problem or scheme, to describe it in detail.")] = "",
    show_all: Annotated[bool, typer.Option("--all", help="Print the tables of both lists.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """List the built-in problems, and the schemes with their properties.

    Without a topic only names are printed, by section; with a topic or --all, tables with descriptions.

    Example: livens list schemes gauss-2
    """
    from livens.errors import InputError, suggestion

    handlers = {
        "problems": (_problems, describe_problem, _problem_objects),
        "schemes": (_schemes, describe_scheme, _scheme_objects),
    }
    if topic and topic not in handlers:
        raise InputError(f"unknown list '{topic}'{suggestion(topic, handlers)}")
    chosen = {key: functions for key, functions in handlers.items() if topic in ("", key)}
    if as_json:
        typer.echo(json.dumps({key: objects(name) for key, (_, _, objects) in chosen.items()}))
        return
    if not topic and not show_all:
        _names()
        return
    for show_table, show_one, _ in chosen.values():
        if name:
            show_one(name)
        else:
            show_table()


def _names() -> None:
    """Print the names of all problems by section and of all schemes by group."""
    from livens import problems
    from livens.problems.sections import by_section
    from livens.schemes.core.catalogue import all_rows

    groups: dict[str, list[str]] = {}
    for row in all_rows():
        groups.setdefault(row.group, []).append(row.name)
    for heading, listed in {
        "Problems": by_section(entry.name for entry in problems.all()),
        "Schemes": groups,
    }.items():
        typer.echo(heading.upper())
        for title, names in listed.items():
            typer.echo(f"  {title}")
            for line in textwrap.wrap(", ".join(names), width=92, break_long_words=False, break_on_hyphens=False):
                typer.echo(f"      {line}")
        typer.echo("")
    typer.echo("Descriptions: livens list problems, livens list schemes. Details of one of them: livens show NAME")


def _problem_objects(name: str = "") -> list[dict[str, Any]]:
    from livens import problems, schemes
    from livens.run.progress import Progress

    objects, entries = [], [problems.entry(name)] if name else problems.all()
    with Progress("trying schemes", len(entries), unit="problems") as bar:
        for entry in entries:
            problem = problems.load(entry.name)
            objects.append(
                {
                    "name": entry.name,
                    "summary": entry.summary,
                    "source": entry.source,
                    "options": dict(entry.options),
                    "type": problem.model.type_label,
                    "scheme": problem.scheme,
                    "h": problem.h,
                    "t_end": problem.t_end,
                    "source_run": entry.source_run,
                    "schemes": schemes.compatible(problem.model),
                }
            )
            bar.update(len(objects))
    return objects


def _scheme_objects(name: str = "") -> list[dict[str, Any]]:
    from livens import schemes

    return [scheme.traits.to_dict() for scheme in ([schemes.get(name)] if name else schemes.all())]


def _problems() -> None:
    from livens import problems
    from livens.problems.sections import by_section

    entries = {entry.name: entry for entry in problems.all()}
    width = max(map(len, entries))
    out = _console()
    for title, names in by_section(entries).items():
        table = _table("problem", "description", "default scheme")
        table.columns[0].min_width = width  # aligns the columns of all tables
        for name in names:
            table.add_row(name, entries[name].summary, entries[name].scheme)
        out.print(f"[bold]{title}[/]")
        out.print(table)
    out.print("Options, applicable schemes and a picture: livens show NAME\n")


def describe_problem(name: str) -> None:
    """Describe a problem: its options and the applicable schemes by group."""
    from livens.problems.option_descriptions import option_description
    from livens.schemes.core.catalogue import group_names

    info = _problem_objects(name)[0]
    typer.echo(f"{info['name']}\n    {info['summary']}")
    if info["source"]:
        typer.echo(f"    source        {info['source']}")
    typer.echo(f"    type          {info['type']}")
    typer.echo(f"    options       {'none' if not info['options'] else ''}".rstrip())
    for option, value in info["options"].items():
        description = option_description(info["name"], option)
        typer.echo(f"        {f'{option}={_format_value(value)}':<24}  {description}".rstrip())
    typer.echo(f"    default run   scheme {info['scheme']}, h = {info['h']:g} s, until t = {info['t_end']:g} s")
    if info["source_run"]:
        typer.echo(f"    source run    {info['source_run']}")
    typer.echo("    applicable schemes")
    for group, names in group_names(info["schemes"]).items():
        typer.echo(f"        {group}")
        for line in textwrap.wrap(", ".join(names), width=100, break_long_words=False, break_on_hyphens=False):
            typer.echo(f"            {line}")


def _schemes() -> None:
    """Print one table per group; a family of schemes is one row with the pattern of its names."""
    from livens.schemes.core.catalogue import all_rows

    groups: dict[str, list[Row]] = {}
    for row in all_rows():
        groups.setdefault(row.group, []).append(row)
    width = max(len(row.name) for group_rows in groups.values() for row in group_rows)
    out = _console()
    for group, group_rows in groups.items():
        table = _table("scheme", "order", "symplectic", "symmetric", "step", "conserves exactly")
        table.columns[0].min_width = width  # aligns the columns of all tables
        for row in group_rows:
            table.add_row(row.name, row.order, row.symplectic, row.symmetric, row.step_type, row.conserves)
        out.print(f"[bold]{group}[/]")
        out.print(table)
    out.print("Description, source and requirements: livens show NAME, such as gauss-2 or gauss-<s>\n")


def describe_scheme(name: str) -> None:
    """Describe a scheme by its name, or a family by its pattern."""
    from livens import schemes
    from livens.schemes.core.catalogue import all_rows, make_row
    from livens.schemes.core.scheme import FORMULATION_DESCRIPTIONS

    table_row = next((make_row for make_row in all_rows() if make_row.name == name), None)
    if table_row is None:
        traits = schemes.get(name).traits
        table_row = make_row(traits.name, [traits])
    first_member, members = table_row.members[0], table_row.members
    is_single, scaling = first_member.name == table_row.name, ["a scaling function"] if first_member.fictive else []
    summaries = dict.fromkeys(f"{member.summary} ({member.source})" for member in members)
    lines = {
        "such as": "" if is_single else ", ".join(member.name for member in members),
        "family": first_member.family if is_single else "",
        "also called": ", ".join(first_member.aliases) if is_single else "",
        "order": table_row.order,
        "symplectic": table_row.symplectic,
        "symmetric": table_row.symmetric,
        "step": table_row.step_type,
        "conserves": table_row.conserves or "nothing exactly",
        "takes": table_row.formulations
        if "<scheme>" in table_row.formulations
        else " or ".join(FORMULATION_DESCRIPTIONS[form] for form in first_member.formulations),
        "needs": "; ".join([r.description for r in first_member.requires] + scaling)
        if is_single
        else table_row.requirements,
        "use": first_member.when_to_use,
        "avoid if": first_member.when_to_avoid,
        "own error": f"estimated, of order {first_member.error_order}"
        if is_single and first_member.error_order
        else "",
    }
    typer.echo(f"{table_row.name}\n    {' / '.join(summaries)}")
    for label, text in lines.items():
        if text:
            typer.echo(f"    {label:<13} {text}")


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


def _format_value(value: object) -> str:
    if isinstance(value, str):
        return value
    return ",".join(f"{x:g}" for x in value) if isinstance(value, tuple) else f"{value:g}"
