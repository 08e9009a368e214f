"""Rendering of animations without a browser: image strips, gif and mp4."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from livens.errors import InputError, MissingExtraError
from livens.plot.style import PALETTE, house_style, new_figure, save
from livens.scene.outlines import SURROUNDINGS, Outline, all_points, extent, outlines
from livens.viewer.frame_selection import scene_coordinates, select_rows, with_rows
from livens.viewer.payload import check_scene

if TYPE_CHECKING:
    from livens.results.result import Result


class _FrameRenderer:
    """Renderer of the frames of a run into axes with fixed limits."""

    def __init__(self, result: Result, frames: int) -> None:
        self.scene = check_scene(result)
        self.sampled = with_rows(result, select_rows(np.asarray(result.t), 1, frames))
        pose = self.scene.evaluate(scene_coordinates(self.sampled), self.sampled.t)
        size = extent(self.scene, pose)
        self.frame_outlines = [outlines(self.scene, pose, row, size) for row in range(len(self.sampled.t))]
        points = all_points(self.frame_outlines)
        points = points[np.isfinite(points).all(axis=1)]
        low, high = points.min(axis=0), points.max(axis=0)
        self.middle, self.half = (low + high) / 2, (high - low) / 2 + 0.05 * size
        self.flat = self.scene.dimension == 2
        moving = {id(shape): i for i, shape in enumerate(self.scene.traced)}
        self.colours = [
            shape.colour or (PALETTE[moving[id(shape)] % len(PALETTE)] if id(shape) in moving else "#555555")
            for shape in self.scene.shapes
        ]

    @property
    def shape(self) -> tuple[float, float]:
        """Width and height of an image, normalised to a maximum of 1."""
        wide, tall = self.half[:2] if self.flat else (1.0, 1.0)
        longer = max(wide, tall)
        return max(wide / longer, 0.25), max(tall / longer, 0.25)

    def axes(self, figure: Figure, position: Any) -> Any:
        axes: Any = figure.add_subplot(position) if self.flat else figure.add_subplot(position, projection="3d")
        return axes

    def paint(self, axes: Any, row: int) -> None:
        axes.clear()
        dimensions = slice(0, 2 if self.flat else 3)
        for outline, colour in zip(self.frame_outlines[row], self.colours, strict=True):
            self._draw_outline(axes, outline, dimensions, colour)
        for axis, middle, half in zip("xyz"[dimensions], self.middle, self.half, strict=False):
            axes.set(**{f"{axis}lim": (middle - half, middle + half)})
        if self.flat:
            axes.set_aspect("equal")
        else:
            axes.set_box_aspect(tuple(self.half), zoom=1.1)  # a tuple, as matplotlib modifies arrays
        axes.set_axis_off()
        axes.set_title(f"$t$ = {self.sampled.t[row]:.3g} s", loc="left")

    def _draw_outline(self, axes: Any, outline: Outline, dimensions: slice, colour: str) -> None:
        if outline.shape_type == "ground":
            axes.plot(*outline.lines[0][:1, dimensions].T, "^", color="black", markersize=6, clip_on=False)
            return
        faint = outline.shape_type in SURROUNDINGS
        for line in outline.lines:
            style = "o" if len(line) == 1 else "o-" if outline.shape_type == "rod" else "-"
            axes.plot(
                *line[:, dimensions].T,
                style,
                color="#999999" if faint else colour,
                linewidth=2.2 if outline.shape_type == "rod" else 1.0,
                markersize=6 if len(line) == 1 else 3,
            )


@house_style()
def strip(result: Result, path: Path, frames: int) -> Path:
    """Write several instants side by side to an image file."""
    renderer = _FrameRenderer(result, frames)
    count = len(renderer.sampled.t)
    wide, tall = renderer.shape
    figure = new_figure(1.8 * wide * count, 1.8 * tall + 0.3)
    grid = figure.add_gridspec(1, count)
    for i in range(count):
        renderer.paint(renderer.axes(figure, grid[0, i]), i)
    return save(figure, path)


def _images(result: Result, frames: int, dpi: int) -> Any:
    """Iterate over the frames as arrays of pixels with even width and height, as video encoders require."""
    renderer = _FrameRenderer(result, frames)
    wide, tall = renderer.shape
    figure = new_figure(4.0 * wide + 0.4, 4.0 * tall + 0.4)
    figure.set_layout_engine("none")  # layout of every frame would take longer than drawing it
    figure.set_dpi(dpi)
    canvas: Any = FigureCanvasAgg(figure)
    axes = renderer.axes(figure, 111)
    axes.set_position((0.02, 0.02, 0.96, 0.9))
    for row in range(len(renderer.sampled.t)):
        renderer.paint(axes, row)
        canvas.draw()
        image = np.asarray(canvas.buffer_rgba())
        height, width, _ = image.shape
        yield np.array(image[: height // 2 * 2, : width // 2 * 2, :3])


def _check_fps(fps: float) -> float:
    if not (isinstance(fps, (int, float)) and 0 < fps <= 100):
        raise InputError(f"fps must be a number of frames per second, at most 100, got {fps!r}")
    return float(fps)


@house_style()
def gif(result: Result, path: Path, frames: int, fps: float = 25) -> Path:
    """Write an animated gif."""
    from PIL import Image  # dependency of matplotlib

    duration = 1000 / _check_fps(fps)
    images = [Image.fromarray(image).quantize(64) for image in _images(result, frames, 100)]
    try:
        images[0].save(path, save_all=True, append_images=images[1:], duration=duration, loop=0)
    except OSError as error:
        raise InputError(f"cannot write '{path}': {error.strerror or error}") from None
    return path


@house_style()
def mp4(result: Result, path: Path, frames: int, fps: float = 25) -> Path:
    """Write an mp4 video; requires the extra `animation`."""
    try:
        import imageio_ffmpeg
    except ImportError:
        raise MissingExtraError("an mp4 video", "animation") from None
    rate = _check_fps(fps)
    images = list(_images(result, frames, 150))
    height, width, _ = images[0].shape
    command = [
        imageio_ffmpeg.get_ffmpeg_exe(),
        *"-y -loglevel error -f rawvideo -pix_fmt rgb24".split(),
        "-s",
        f"{width}x{height}",
        "-r",
        str(rate),
        "-i",
        "-",
        *"-an -c:v libx264 -pix_fmt yuv420p".split(),
        *"-movflags +faststart -f mp4".split(),
        str(path.resolve()),
    ]
    process = subprocess.run(command, input=b"".join(image.tobytes() for image in images), capture_output=True)
    if process.returncode:
        raise InputError(f"cannot write '{path}': {process.stderr.decode(errors='replace').strip()}")
    return path
