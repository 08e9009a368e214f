"""``livens plot``: plots of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

#: File suffixes that mark --out as a file, not a folder; not all of them can be written.
_PICTURE_SUFFIXES = "png pdf svg jpg jpeg gif eps ps tif tiff webp bmp".split()


def register(app: typer.Typer) -> None:
    app.command("plot")(plot)


def plot(
    file: Annotated[Path, typer.Argument(help="A result file.")],
    plots: Annotated[
        str | None, typer.Option(help="Names of plots, comma-separated; default: all applicable plots.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the plots; for a single plot its file.")] = Path(),
    as_json: Annotated[bool, typer.Option("--json", help="Print the files written as one JSON object.")] = False,
) -> None:
    """Plot energies, constraints, coordinates and more of a run, and print the files written.

    Plots: energy, balance, energy_increments, constraints, momenta, multipliers, algebraic, coordinates,
    phase_portrait, newton, step_sizes, trajectory, snapshots.

    Example: livens plot double-four-bar.h5 --plots energy,constraints --out figures
    """
    import livens as lv
    from livens.errors import InputError
    from livens.plot import PLOTS, check_names, save_all
    from livens.plot.style import check_suffix, save

    names = check_names(plots) if plots is not None else None
    suffix = out.suffix.removeprefix(".").lower()
    single = suffix in _PICTURE_SUFFIXES and not out.is_dir()
    if single:
        check_suffix(suffix)
    if single and (names is None or len(names) != 1):
        raise InputError(f"'{out}' is a single plot: select it with --plots, or give a folder")
    result = lv.load(file)
    paths = [save(PLOTS[names[0]].draw(result), out)] if single and names else save_all(result, out, names)
    if as_json:
        typer.echo(json.dumps({"plots": [str(path) for path in paths]}))
        return
    for path in paths:
        typer.echo(str(path))
