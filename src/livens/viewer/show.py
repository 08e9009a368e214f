"""A page on the screen: in the browser, or in a notebook."""

from __future__ import annotations

import html
import os
import sys
import tempfile
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

from livens.viewer.export import write
from livens.viewer.page import page

if TYPE_CHECKING:
    from livens.results.result import Result


class Film:
    """A page that was written, which a notebook shows where it stands."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def _repr_html_(self) -> str:
        source = html.escape(self.path.read_text(encoding="utf-8"), quote=True)
        style = "width:100%;height:560px;border:1px solid #ccc"
        return f'<iframe srcdoc="{source}" style="{style}" allowfullscreen></iframe>'

    def __repr__(self) -> str:
        return f"<livens film: {self.path}>"


def view(run: Result, *others: Result, frames: int | None = None) -> Film:
    """Show the run in the browser, or in the notebook; with other runs, all of them at once.

    The page is a file in the folder for temporary files: `animate` writes one that stays.
    """
    text = page([run, *others], frames=frames)
    folder = Path(tempfile.mkdtemp(prefix="livens-"))
    film = Film(write(folder / f"{run.facts.problem or 'run'}.html", text))
    if _screen():
        webbrowser.open(film.path.as_uri())
    return film


def _screen() -> bool:
    """Whether there is a browser to open: a notebook shows the page itself."""
    if "ipykernel" in sys.modules:
        return False
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
