"""Display of the viewer page in a browser or notebook."""

from __future__ import annotations

import functools
import html
import os
import sys
import tempfile
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from livens.errors import MissingExtraError
from livens.viewer.export import write
from livens.viewer.page import page

if TYPE_CHECKING:
    from livens.results.result import Result


#: JavaScript of the widget: the page in an iframe whose time is synchronised with the widget.
_WIDGET = """
export function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.style = "width:100%;height:560px;border:1px solid #ccc";
  frame.srcdoc = model.get("page");
  const film = () => frame.contentWindow && frame.contentWindow.livens;
  frame.addEventListener("load", () => {
    if (model.get("time") !== null) { film().play(false); film().seek(model.get("time")); }
    frame.contentDocument.getElementById("scrub").addEventListener("input", () => {
      model.set("time", film().time()); model.save_changes();
    });
  });
  const follow = () => {
    if (film() && film().time() !== model.get("time")) { film().play(false); film().seek(model.get("time")); }
  };
  model.on("change:time", follow);
  el.append(frame);
  return () => model.off("change:time", follow);
}
"""


class Animation:
    """Viewer page in a file, displayed inline by notebooks.

    Notebooks show the page in an iframe, which remains in notebooks that are exported to HTML. If anywidget is
    installed, `widget` is the animation as a widget: ``animation.widget.time = 0.5`` seeks that time, and reading it
    returns the position of the time slider.

    Parameters
    ----------
    path : Path
        File of the page.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @functools.cached_property
    def widget(self) -> Any:
        """Animation as a widget; requires the extra `notebook`."""
        try:
            import anywidget
            import traitlets
        except ImportError:
            raise MissingExtraError("a widget", "notebook") from None

        class FilmWidget(anywidget.AnyWidget):
            _esm = _WIDGET
            page = traitlets.Unicode().tag(sync=True)
            time = traitlets.Float(None, allow_none=True).tag(sync=True)

        return FilmWidget(page=self.path.read_text(encoding="utf-8"))

    def _repr_html_(self) -> str:
        source = html.escape(self.path.read_text(encoding="utf-8"), quote=True)
        style = "width:100%;height:560px;border:1px solid #ccc"
        return f'<iframe srcdoc="{source}" style="{style}" allowfullscreen></iframe>'

    def __repr__(self) -> str:
        return f"<livens animation: {self.path}>"


def view(run: Result, *others: Result, frames: int | None = None, curves: str | Sequence[str] = ()) -> Animation:
    """Show one or several runs in the browser or notebook.

    The page is a temporary file; `animate` writes a permanent one.

    Parameters
    ----------
    run : Result
        Run to show.
    *others : Result
        Further runs on the same page.
    frames : int, optional
        Number of frames at equal time intervals.
    curves : str or sequence of str, optional
        Names of signals that are plotted first, such as ``"hinge.angle"``.

    Returns
    -------
    Animation
        The page.
    """
    text = page([run, *others], frames=frames, curves=curves)
    folder = Path(tempfile.mkdtemp(prefix="livens-"))
    animation = Animation(write(folder / f"{run.info.problem or 'run'}.html", text))
    if _has_browser():
        webbrowser.open(animation.path.as_uri())
    return animation


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules


def _has_browser() -> bool:
    """Return True if there is a browser to open; a notebook shows the page itself."""
    if _in_notebook():
        return False
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
