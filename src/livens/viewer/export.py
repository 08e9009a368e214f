"""Films as files, by their suffix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from livens.errors import InputError, suggestion
from livens.expressions.numbers import path_of
from livens.viewer.frames import check_frames
from livens.viewer.page import page

if TYPE_CHECKING:
    from livens.results.result import Result


def write(path: Path, content: str | bytes) -> Path:
    """Write a file, or say why that is not possible."""
    try:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise InputError(f"cannot write '{path}': {error.strerror or error}") from None
    return path


def _html(runs: list[Result], path: Path, frames: int | None, options: dict[str, Any]) -> Path:
    return write(path, page(runs, frames=frames, **options))


def _strip(runs: list[Result], path: Path, frames: int | None, options: dict[str, Any]) -> Path:
    from livens.viewer.pictures import strip

    return strip(runs[0], path, frames or 6, **options)


def _gif(runs: list[Result], path: Path, frames: int | None, options: dict[str, Any]) -> Path:
    from livens.viewer.pictures import gif

    return gif(runs[0], path, frames or 120, **options)


def _mp4(runs: list[Result], path: Path, frames: int | None, options: dict[str, Any]) -> Path:
    from livens.viewer.pictures import mp4

    return mp4(runs[0], path, frames or 240, **options)


def _glb(runs: list[Result], path: Path, frames: int | None, options: dict[str, Any]) -> Path:
    from livens.viewer.gltf import glb

    return write(path, glb(runs[0], frames or 240, **options))


KINDS: dict[str, Callable[[list[Result], Path, int | None, dict[str, Any]], Path]] = {
    "html": _html,
    "png": _strip,
    "gif": _gif,
    "mp4": _mp4,
    "glb": _glb,
}


#: What else can be said of a film, by suffix.
_OPTIONS = {"html": ("play", "theme", "curves"), "png": (), "gif": ("fps",), "mp4": ("fps",), "glb": ()}


def animate(run: Result, path: str | Path, *others: Result, frames: int | None = None, **options: Any) -> Path:
    """Write a film of the run: html, png (a strip), gif, mp4 or glb, as the suffix says.

    An html page may show `others` beside the run. `frames` is the number of instants, spread evenly over time; by
    default a page has as many as it takes to move smoothly. A page also takes ``play=False`` (it waits for a click),
    ``theme="dark"`` and ``curves="hinge.angle"``, which is plotted first; gif and mp4 take ``fps=25``.
    """
    path = path_of("the file of a film", path)
    check_frames(frames)
    suffix = path.suffix.removeprefix(".").lower()
    if suffix not in KINDS:
        raise InputError(f"a film cannot be written as '{suffix}'{suggestion(suffix, KINDS)}")
    for option in options:
        if option not in _OPTIONS[suffix]:
            raise InputError(f"a film as {suffix} has no option '{option}'{suggestion(option, _OPTIONS[suffix])}")
    if others and suffix != "html":
        raise InputError("only an html page can show several runs at once")
    return KINDS[suffix]([run, *others], path, frames, options)
