"""``livens view``: animations of runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from livens.results.result import Result


def register(app: typer.Typer) -> None:
    app.command("view")(view)


def view(
    sources: Annotated[
        list[str],
        typer.Argument(
            help="Result files; or built-in problems, scenarios and robots (urdf, sdf, xml), which are run."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Write the animation to a file (html, png, gif, mp4, glb), without a browser.")
    ] = None,
    frames: Annotated[int | None, typer.Option(help="Number of frames, equally spaced in time.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the file written as one JSON object.")] = False,
) -> None:
    """Show an animation of one or several runs, with energies, momenta and constraints below.

    Examples: livens view double-four-bar.h5; livens view heavy-top --out top.html; livens view one.h5 other.h5
    """
    from livens.viewer.frame_selection import check_frames

    check_frames(frames)
    main_run, *others = [_run(name) for name in sources]
    path = main_run.view(*others, frames=frames).path if out is None else main_run.animate(out, *others, frames=frames)
    typer.echo(json.dumps({"animation": str(path)}) if as_json else str(path))


def _run(name: str) -> Result:
    """Load a result file, or simulate a problem; names with a suffix are files."""
    import livens as lv
    from livens.cli.init import ROBOT_SUFFIXES, SUFFIXES

    if Path(name).suffix.lower() in (*SUFFIXES, *ROBOT_SUFFIXES):
        scenario = lv.scenario.load(name)
        return lv.simulate(scenario.problem(), **scenario.settings_except(("out",)))
    if Path(name).exists() or Path(name).suffix:
        return lv.load(name)
    return lv.simulate(lv.problems.load(name))
