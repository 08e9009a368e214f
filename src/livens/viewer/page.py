"""Self-contained viewer page: styles, three.js and the payload of the runs, without network access."""

from __future__ import annotations

import functools
import html
import json
from collections.abc import Sequence
from importlib import resources
from typing import Any

from livens.errors import InputError
from livens.results.result import Result
from livens.viewer.payload import run_payload


@functools.cache
def asset(name: str) -> str:
    """Return the text of an asset file."""
    return resources.files("livens.viewer").joinpath("assets", name).read_text(encoding="utf-8")


#: Scripts of the page in order, within one function scope.
_SCRIPTS = ("data.js", "world.js", "plots.js", "viewer.js")


def script() -> str:
    """Return the script of the page."""
    return '"use strict";(function () {\n' + "\n".join(asset(name) for name in _SCRIPTS) + "\n})();"


def page(
    runs: Sequence[Result],
    *,
    frames: int | None = None,
    play: bool = True,
    theme: str | None = None,
    curves: str | Sequence[str] = (),
) -> str:
    """Return the page of one or several runs; `curves`, such as ``"hinge.angle"``, are plotted first."""
    requested = [curves] if isinstance(curves, str) else curves
    if not isinstance(requested, (list, tuple)):
        raise InputError(f"curves must be names of quantities, such as 'hinge.angle', got {curves!r}")
    for run in runs:
        if not isinstance(run, Result):
            raise InputError(f"an animation needs results of simulate, got {run!r}")
    payload: dict[str, Any] = {
        "runs": [run_payload(run, frames, curves=requested) for run in runs],
        "play": bool(play),
        "theme": check_theme(theme),
    }
    title = " and ".join(dict.fromkeys(run["title"] for run in payload["runs"]))
    texts = []
    for i, run in enumerate(payload["runs"]):  # separate elements: long base64 texts are not parsed as JSON
        texts.append(f'<script id="tracks{i}" type="text/plain">{run["tracks"]}</script>')
        run["tracks"] = i
    return fill_template(
        "page.html",
        title=html.escape(f"{title}: livens"),
        style=asset("viewer.css"),
        animation=asset("animation.html"),
        three=asset("three.min.js"),
        script=script(),
        data=as_json(payload),
        tracks="\n".join(texts),
    )


def check_theme(theme: str | None) -> str | None:
    """Check the theme: light, dark, or None for the system setting."""
    if theme is not None and (not isinstance(theme, str) or theme not in ("light", "dark")):
        raise InputError(f"theme must be 'light' or 'dark', got {theme!r}")
    return theme


def as_json(content: Any) -> str:
    """Return JSON that is safe within a script element: names from users and files cannot close it."""
    return json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")


def fill_template(name: str, **parts: str) -> str:
    """Fill in the placeholders of a template."""
    head, *segments = asset(name).split("{{")
    return head + "".join(parts[key] + rest for key, rest in (segment.split("}}", 1) for segment in segments))
