"""One page with everything in it: styles, three.js, the data of the runs. It needs no network."""

from __future__ import annotations

import functools
import html
import json
from collections.abc import Sequence
from importlib import resources
from typing import Any

from livens.errors import InputError
from livens.results.result import Result
from livens.viewer.data import run_data


@functools.cache
def asset(name: str) -> str:
    """A file of the page, as it is."""
    return resources.files("livens.viewer").joinpath("assets", name).read_text(encoding="utf-8")


#: The scripts of the page, in this order within one function, so that nothing of theirs is seen from outside.
_SCRIPTS = ("data.js", "world.js", "plots.js", "viewer.js")


def script() -> str:
    """All of our own that a page carries out."""
    return '"use strict";(function () {\n' + "\n".join(asset(name) for name in _SCRIPTS) + "\n})();"


def page(
    runs: Sequence[Result],
    *,
    frames: int | None = None,
    play: bool = True,
    theme: str | None = None,
    curves: str | Sequence[str] = (),
) -> str:
    """The page that shows one run, or several at once; `curves` are plotted first, such as ``"hinge.angle"``."""
    asked = [curves] if isinstance(curves, str) else curves
    if not isinstance(asked, (list, tuple)):
        raise InputError(f"curves must be names of quantities, such as 'hinge.angle', got {curves!r}")
    for run in runs:
        if not isinstance(run, Result):
            raise InputError(f"a film is one of runs, as simulate gives them, got {run!r}")
    content: dict[str, Any] = {
        "runs": [run_data(run, frames, curves=asked) for run in runs],
        "play": bool(play),
        "theme": check_theme(theme),
    }
    title = " and ".join(dict.fromkeys(run["title"] for run in content["runs"]))
    texts = []
    for i, run in enumerate(content["runs"]):  # apart: nobody has to read a long text of numbers as JSON
        texts.append(f'<script id="tracks{i}" type="text/plain">{run["tracks"]}</script>')
        run["tracks"] = i
    return filled(
        "page.html",
        title=html.escape(f"{title}: livens"),
        style=asset("viewer.css"),
        film=asset("film.html"),
        three=asset("three.min.js"),
        script=script(),
        data=as_json(content),
        tracks="\n".join(texts),
    )


def check_theme(theme: str | None) -> str | None:
    """Light, dark, or as the reader's screen is."""
    if theme is not None and (not isinstance(theme, str) or theme not in ("light", "dark")):
        raise InputError(f"theme must be 'light' or 'dark', got {theme!r}")
    return theme


def as_json(content: Any) -> str:
    """Data within a script: names come from users and files, and nothing may look like the end of it."""
    return json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")


def filled(name: str, **parts: str) -> str:
    """A template with its parts."""
    first, *pieces = asset(name).split("{{")
    return first + "".join(parts[key] + rest for key, rest in (piece.split("}}", 1) for piece in pieces))
