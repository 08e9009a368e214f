"""``livens lab``: interactive simulations in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("lab")(lab)


def lab(
    port: Annotated[int, typer.Option(help="Port to listen on; default: a free one.", min=0, max=65535)] = 0,
    timeout: Annotated[float, typer.Option(help="Time limit of a run in seconds.", min=1.0)] = 60.0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
) -> None:
    """Open the lab: choose a problem, a scheme and parameters in the browser, and watch the animation of the run.

    It serves this machine only, needs the link with its token, and reads no files outside the folder it was started
    in. Ctrl-C stops it. It needs the extra 'lab': pip install 'livens[lab]'.

    Example: livens lab --no-browser
    """
    import webbrowser

    from livens.lab.server import Lab

    server = Lab(Path.cwd(), port=port, timeout=timeout)
    typer.echo(f"the lab is at {server.link}\nCtrl-C stops it")
    if browser:
        webbrowser.open(server.link)
    server.serve()
