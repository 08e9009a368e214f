"""The paths of points, in the plane or in space."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from livens.errors import InputError
from livens.plot import names
from livens.plot.curves import few_ticks, path
from livens.plot.motion import motion
from livens.plot.style import (
    COLUMN,
    LEGEND_ROW,
    PALETTE,
    caption,
    equal_height,
    escaped,
    house_style,
    legend,
    legend_columns,
    legend_rows,
    new_figure,
)

if TYPE_CHECKING:
    from livens.results.result import Result


@house_style()
def trajectory(result: Result) -> Figure:
    """The paths of points, from the circle to the dot; of more than eight points, eight are drawn.

    Which points these are, the scene of the model says (see `livens.shapes`). Of a model of first order with three
    states this is its orbit in the space of these.
    """
    known, variable = result.facts.coordinates, motion(result)
    if variable == "x" and len(known) == 3:
        figure = _in_space({"": result.x}, [names.symbol(name) for name in known])
        caption(figure, result)
        return figure
    scene = result.scene
    every = scene.traced
    if not every:
        raise InputError(
            "there is no path to draw: the model does not say where its points are. Give it a look, see livens.shapes"
        )
    shown = [every[i] for i in names.spread(range(len(every)), len(PALETTE))]
    note = f"{len(shown)} of {len(every)} points" if len(shown) < len(every) else ""
    pose = scene.at(getattr(result, variable or "q"), result.t)
    spatial = scene.dimension == 3
    paths: dict[str, np.ndarray] = {}
    for shape in shown:
        name = escaped(shape.name)
        label = name if name not in paths else f"{name} ({len(paths) + 1})"
        paths[label] = pose.traced(shape)[:, : scene.dimension]
    unit = " (m)" if variable == "q" else ""
    labels = [f"${axis}${unit}" for axis in "xyz"]
    figure = _in_space(paths, labels) if spatial else _in_plane(paths, labels)
    caption(figure, result, note)
    return figure


def has_paths(result: Result) -> bool:
    """Whether there is a path to draw."""
    orbit = motion(result) == "x" and len(result.facts.coordinates) == 3
    return bool(motion(result)) and (orbit or bool(result.scene.traced))


def _in_plane(paths: dict[str, np.ndarray], labels: Sequence[str]) -> Figure:
    entries = list(paths) if len(paths) > 1 else []
    figure = new_figure(COLUMN, equal_height(np.concatenate(list(paths.values())), entries))
    axes = figure.add_subplot()
    _draw(axes, paths)
    axes.margins(0.05)
    few_ticks(axes)
    axes.set(xlabel=labels[0], ylabel=labels[1], aspect="equal")
    if entries:
        legend(axes)
    return figure


def _in_space(paths: dict[str, np.ndarray], labels: Sequence[str]) -> Figure:
    height = 3.0 + LEGEND_ROW * legend_rows(list(paths))
    figure = new_figure(COLUMN, height)
    axes: Any = figure.add_subplot(projection="3d")
    # a point without z stays in the plane z = 0
    placed = {name: np.pad(points, ((0, 0), (0, 3 - points.shape[1]))) for name, points in paths.items()}
    _draw(axes, placed)
    axes.set(xlabel=labels[0], ylabel=labels[1], zlabel=labels[2])
    axes.view_init(elev=25, azim=_azimuth(list(placed.values())))
    top = 1 - 0.2 / height
    if len(paths) > 1:
        figure.legend(loc="upper left", bbox_to_anchor=(0.02, top), ncols=legend_columns(list(paths)), borderpad=0)
        top -= LEGEND_ROW * legend_rows(list(paths)) / height
    _fill(figure, axes, _room(axes), top)
    return figure


def _draw(axes: Any, paths: dict[str, np.ndarray]) -> None:
    for (name, points), colour in zip(paths.items(), PALETTE, strict=False):
        path(axes, points, color=colour, linewidth=0.9, label=name)
        axes.plot(*points[:1].T, "o", color=colour, markerfacecolor="white", markersize=4)
        axes.plot(*points[-1:].T, "o", color=colour, markersize=4)


def _room(axes: Any) -> np.ndarray:
    """Walls that do not outshine the paths, with few ticks. Returns the size that gives all axes equal units."""
    limits = np.array([axes.get_xlim(), axes.get_ylim(), axes.get_zlim()])
    half = np.ptp(limits, axis=1) / 2
    half = np.maximum(half, 0.3 * half.max())
    for axis, middle, reach in zip("xyz", limits.mean(axis=1), half, strict=True):
        axes.set(**{f"{axis}lim": (middle - reach, middle + reach)})
        wall = getattr(axes, f"{axis}axis")
        wall.set_pane_color((1.0, 1.0, 1.0))
        wall.set_major_locator(MaxNLocator(nbins=max(2, round(4 * reach / half.max())), steps=[1, 2, 5, 10]))
    axes.tick_params(pad=-1)
    axes.zaxis.set_rotate_label(False)  # it would stand on its head on the left
    axes.zaxis.label.set_rotation(90)
    return half


def _fill(figure: Figure, axes: Any, size: np.ndarray, top: float) -> None:
    """Let the room fill the figure up to `top`: matplotlib's own layouts cut off the labels of such axes."""
    figure.set_layout_engine("none")
    corners = np.array(list(itertools.product(axes.get_xlim(), axes.get_ylim(), axes.get_zlim(), [1.0])))
    zoom, place = 0.8, np.zeros(2)
    for _ in range(5):  # labels keep their size while the room grows, so the first guess is not quite right
        axes.set_box_aspect(size, zoom=zoom)
        axes.set_position((*place, 1.0, top))
        figure.draw_without_rendering()
        seen = corners @ axes.get_proj().T
        walls = axes.transData.transform(seen[:, :2] / seen[:, 3:])
        labels = [axis.get_tightbbox() for axis in (axes.xaxis, axes.yaxis, axes.zaxis)]
        outline = np.concatenate([walls, *(box.get_points() for box in labels)])
        low, high = figure.transFigure.inverted().transform([outline.min(axis=0), outline.max(axis=0)])
        zoom *= 0.97 * float(min(1 / (high - low)[0], top / (high - low)[1]))
        place += (np.array([1.0, top]) - low - high) / 2


def _azimuth(paths: list[np.ndarray]) -> float:
    """The side that shows more of the paths: one that runs towards the eye cannot be seen."""

    def width(azimuth: float) -> float:
        across = np.array([-np.sin(np.radians(azimuth)), np.cos(np.radians(azimuth))])
        return float(np.ptp(np.concatenate(paths)[:, :2] @ across))

    return max((-60.0, 30.0), key=width)
