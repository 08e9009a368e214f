"""``livens init``: write an example scenario file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

#: File suffixes of scenarios, which distinguish them from names of problems.
SUFFIXES = (".yaml", ".yml")
#: File suffixes of robot descriptions, which can also be run.
ROBOT_SUFFIXES = (".urdf", ".sdf", ".xml", ".mjcf")


def register(app: typer.Typer) -> None:
    app.command("init")(init)


def init(
    file: Annotated[Path, typer.Argument(help="File to write.")] = Path("scenario.yaml"),
    problem: Annotated[bool, typer.Option("--problem", help="A built-in problem with changed options.")] = False,
    system: Annotated[bool, typer.Option("--system", help="A system defined by expressions (default).")] = False,
    mechanism: Annotated[bool, typer.Option("--mechanism", help="Bodies, joints and forces.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write an example scenario file with comments. It can be run unchanged.

    Example: livens init pendulum.yaml; livens run pendulum.yaml
    """
    from livens.errors import InputError
    from livens.scenario import templates
    from livens.scenario.quoting import quoted

    if problem + system + mechanism > 1:
        raise InputError("choose one of --problem, --system and --mechanism")
    if file.suffix.lower() not in SUFFIXES:
        raise InputError(f"the name of a scenario file must end in {' or '.join(SUFFIXES)}, got '{file}'")
    template = templates.PROBLEM if problem else templates.MECHANISM if mechanism else templates.SYSTEM
    text = template.format(file=quoted(file.name))
    try:
        with file.open("w" if force else "x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise InputError(f"the file '{file}' exists already: choose another name, or replace it with --force") from None
    except OSError as error:
        raise InputError(f"cannot write the scenario file '{file}': {error.strerror or error}") from None
    typer.echo(f"wrote {file}; run it with: livens run {file}")
