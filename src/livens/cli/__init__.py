"""Command-line interface. Heavy modules are imported inside the commands, so that ``livens --help`` is fast."""

from __future__ import annotations

import io
import os
import signal
import sys
from types import FrameType
from typing import Annotated


def _exit_on_interrupt(number: int, frame: FrameType | None) -> None:
    """End the process without a traceback: an interrupted import would leave partial modules."""
    os.write(2, b"livens: stopped by the user\n")
    os._exit(130)


# Ctrl-C while the command starts; runs install their own handler
_is_command = sys.argv and sys.argv[0].endswith(("/livens", "\\livens", "livens.exe"))
if _is_command and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _exit_on_interrupt)

import typer  # noqa: E402

import livens  # noqa: E402

app = typer.Typer(
    name="livens",
    help="Simulate mechanical systems with structure-preserving integrators.\n\n"
    "Examples:\n\n"
    "  livens list problems\n\n"
    "  livens run double-four-bar --h 1e-3 --t-end 10\n\n"
    "  livens init pendulum.yaml\n\n"
    "  livens run pendulum.yaml --set l=2\n\n"
    "  livens run spring-pendulum --scheme livens-midpoint --set EA=100 --json\n\n"
    "  livens plot double-four-bar.h5 --out figures\n\n"
    "  livens view double-four-bar.h5\n\n"
    "  livens lab",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"livens {livens.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Simulate mechanical systems with structure-preserving integrators."""


def _commands() -> None:
    from livens.cli import (
        bench,
        export_fmu,
        init,
        lab,
        list_,
        plot,
        report,
        reproduce,
        run,
        show,
        study,
        sweep,
        view,
        warm_up,
    )

    commands = (run, init, list_, show, plot, view, lab, report, study, sweep, export_fmu, reproduce, bench, warm_up)
    for module in commands:
        module.register(app)


def main() -> None:
    """Run the command line; exit codes: 0 success, 2 invalid input, 3 integration failed, 130 interrupted."""
    from livens.errors import InputError, IntegrationError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # terminals without UTF-8
    try:
        app()
    except InputError as error:
        sys.exit(_print_error(error, 2))
    except IntegrationError as error:
        sys.exit(_print_error(error, 3))
    except BrokenPipeError:
        sys.exit(0)  # the reader closed the pipe


def _print_error(error: BaseException, code: int) -> int:
    typer.echo(f"livens: {error}", err=True)
    return code


_commands()
