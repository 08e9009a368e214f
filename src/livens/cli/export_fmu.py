"""``livens export-fmu``: export a problem or a scenario as a Functional Mock-up Unit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("export-fmu")(export_fmu)


def export_fmu(
    problem: Annotated[str, typer.Argument(help="A problem, a scenario FILE.yaml or a robot (urdf, sdf, xml).")],
    out: Annotated[Path | None, typer.Option(help="File to write; default: PROBLEM.fmu.")] = None,
    inputs: Annotated[
        list[str] | None, typer.Option("--input", metavar="PARAMETER[=NAME]", help="Parameter that is an input.")
    ] = None,
    outputs: Annotated[
        list[str] | None, typer.Option("--output", help="Coordinate, output of a mechanism or observable.")
    ] = None,
    tunable: Annotated[list[str] | None, typer.Option(help="Parameter that may be changed between steps.")] = None,
    platform: Annotated[list[str] | None, typer.Option(help="Platform; default: x86_64-linux.")] = None,
    version: Annotated[str, typer.Option(help="Version of FMI: 3.0 or 2.0.")] = "3.0",
    scheme: Annotated[str | None, typer.Option(help="Name of a scheme (livens list schemes).")] = None,
    h: Annotated[float | None, typer.Option("--h", help="Step size.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change an option or a parameter.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Export a problem or a scenario as a Functional Mock-up Unit (FMI 3.0 or 2.0, co-simulation).

    Example: livens export-fmu double-four-bar --output generalized_energy --h 1e-3
    """
    import livens as lv
    from livens.cli.run import parse_settings, resolve_run
    from livens.run.progress import show_preparation

    with show_preparation(problem, False if quiet else None):
        loaded, options = resolve_run(problem, parse_settings(set_ or []))
        pairs = (item.partition("=") for item in inputs or [])
        path = lv.fmu(
            loaded,
            out or Path(f"{Path(problem).stem}.fmu"),
            inputs={parameter: name or parameter for parameter, _, name in pairs},
            outputs=outputs or [],
            tunable=tunable or [],
            scheme=scheme or options.get("scheme"),
            h=h or options.get("h"),
            parameters=options.get("parameters"),
            platforms=platform or ["x86_64-linux"],
            version=version,
        )
    if not quiet:
        typer.echo(f"wrote {path}")
