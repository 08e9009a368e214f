"""Export of animations to files by suffix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from livens.errors import InputError, suggestion
from livens.validation import check_path
from livens.viewer.frame_selection import check_frames
from livens.viewer.page import page

if TYPE_CHECKING:
    from livens.results.result import Result


def write(path: Path, content: str | bytes) -> Path:
    """Write a file; raise an InputError if that fails."""
    try:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise InputError(f"cannot write '{path}': {error.strerror or error}") from None
    return path


def _html(runs: list[Result], path: Path, frames: int | None, options: dict[str, Any]) -> Path:
    return write(path, page(runs, frames=frames, **options))


def _strip(runs: list[Result], path: Path, frames: int | None, options: dict[str, object]) -> Path:
    from livens.viewer.render import strip

    return strip(runs[0], path, frames or 6, **options)


def _gif(runs: list[Result], path: Path, frames: int | None, options: dict[str, Any]) -> Path:
    from livens.viewer.render import gif

    return gif(runs[0], path, frames or 120, **options)


def _mp4(runs: list[Result], path: Path, frames: int | None, options: dict[str, Any]) -> Path:
    from livens.viewer.render import mp4

    return mp4(runs[0], path, frames or 240, **options)


def _glb(runs: list[Result], path: Path, frames: int | None, options: dict[str, object]) -> Path:
    from livens.viewer.gltf import glb

    return write(path, glb(runs[0], frames or 240, **options))


EXPORTERS: dict[str, Callable[[list[Result], Path, int | None, dict[str, Any]], Path]] = {
    "html": _html,
    "png": _strip,
    "gif": _gif,
    "mp4": _mp4,
    "glb": _glb,
}


#: Additional options by suffix.
_OPTIONS = {"html": ("play", "theme", "curves"), "png": (), "gif": ("fps",), "mp4": ("fps",), "glb": ()}


def animate(run: Result, path: str | Path, *others: Result, frames: int | None = None, **options: object) -> Path:
    """Write an animation of a run: html, png (a strip), gif, mp4 or glb, by the suffix of the file.

    Parameters
    ----------
    run : Result
        Run to animate.
    path : str or Path
        File to write.
    *others : Result
        Further runs on the same page (html only).
    frames : int, optional
        Number of frames at equal time intervals. Default for html: as many as a smooth motion needs.
    **options
        For html: ``play=False`` (start paused), ``theme="dark"``, ``curves="hinge.angle"`` (plotted first). For gif and
        mp4: ``fps=25``.

    Returns
    -------
    Path
        File written.

    Raises
    ------
    InputError
        If the suffix or an option is unknown, or if the model has no geometry.
    """
    path = check_path("the file of an animation", path)
    check_frames(frames)
    suffix = path.suffix.removeprefix(".").lower()
    if suffix not in EXPORTERS:
        raise InputError(f"an animation cannot be written as '{suffix}'{suggestion(suffix, EXPORTERS)}")
    for option in options:
        if option not in _OPTIONS[suffix]:
            raise InputError(f"an animation as {suffix} has no option '{option}'{suggestion(option, _OPTIONS[suffix])}")
    if others and suffix != "html":
        raise InputError("only an html page can show several runs at once")
    return EXPORTERS[suffix]([run, *others], path, frames, options)
