"""One page with everything in it: styles, three.js, the data of the runs. It needs no network."""

from __future__ import annotations

import functools
import html
import json
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from livens.viewer.data import run_data

if TYPE_CHECKING:
    from livens.results.result import Result


@functools.cache
def _asset(name: str) -> str:
    return resources.files("livens.viewer").joinpath("assets", name).read_text(encoding="utf-8")


def page(runs: Sequence[Result], *, frames: int | None = None, play: bool = True, theme: str | None = None) -> str:
    """The page that shows one run, or several at once."""
    content: dict[str, Any] = {"runs": [run_data(run, frames) for run in runs], "play": play, "theme": theme}
    title = " and ".join(dict.fromkeys(run["title"] for run in content["runs"]))
    # names come from users and files: within a script nothing may look like the end of it
    data = json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
    parts = {
        "title": html.escape(f"{title}: livens"),
        "style": _asset("viewer.css"),
        "three": _asset("three.min.js"),
        "script": _asset("viewer.js"),
        "data": data,
    }
    text = _asset("page.html")
    pieces = text.split("{{")
    return pieces[0] + "".join(parts[name] + rest for name, rest in (piece.split("}}", 1) for piece in pieces[1:]))
