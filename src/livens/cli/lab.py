"""``livens lab``: problems in the browser, to play with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add_to(app: typer.Typer) -> None:
    app.command("lab")(lab)


def lab(
    port: Annotated[int, typer.Option(help="Port to listen at; a free one if not given.", min=0, max=65535)] = 0,
    seconds: Annotated[float, typer.Option(help="The longest that a run may take.", min=1.0)] = 60.0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
) -> None:
    """Open the lab: choose a problem, a scheme and numbers in the browser, and see it move while it is computed.

    It serves this machine alone, to whoever has the link with its token, and reads no file outside the folder it was
    started in. Ctrl-C ends it. It needs the extra 'lab': pip install 'livens[lab]'.

    Example: livens lab --no-browser
    """
    import webbrowser

    from livens.lab.server import Lab

    found = Lab(Path.cwd(), port=port, seconds=seconds)
    typer.echo(f"the lab is at {found.link}\nCtrl-C ends it")
    if browser:
        webbrowser.open(found.link)
    found.serve()
