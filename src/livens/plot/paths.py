"""Trajectories of points, in the plane or in space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from livens.errors import InputError
from livens.plot import names
from livens.plot.curves import few_ticks, path
from livens.plot.motion import motion
from livens.plot.space import azimuth, fill, room
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
    """Plot the trajectories of points, from the circle to the dot; at most eight points are drawn.

    The points are those traced in the scene of the model (see `livens.shapes`). For a first-order model with three
    states the orbit in state space is plotted.

    Parameters
    ----------
    result : Result
        Run to plot.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Raises
    ------
    InputError
        If the model has no traced points.
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
            "there is no trajectory to plot: the model has no visual points. Define visuals, see livens.shapes"
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
    """Return True if there is a trajectory to plot."""
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
    # points in the plane have z = 0
    placed = {name: np.pad(points, ((0, 0), (0, 3 - points.shape[1]))) for name, points in paths.items()}
    _draw(axes, placed)
    axes.set(xlabel=labels[0], ylabel=labels[1], zlabel=labels[2])
    axes.view_init(elev=25, azim=azimuth(list(placed.values())))
    top = 1 - 0.2 / height
    if len(paths) > 1:
        figure.legend(loc="upper left", bbox_to_anchor=(0.02, top), ncols=legend_columns(list(paths)), borderpad=0)
        top -= LEGEND_ROW * legend_rows(list(paths)) / height
    fill(figure, axes, room(axes), top)
    return figure


def _draw(axes: Any, paths: dict[str, np.ndarray]) -> None:
    for (name, points), colour in zip(paths.items(), PALETTE, strict=False):
        path(axes, points, color=colour, linewidth=0.9, label=name)
        axes.plot(*points[:1].T, "o", color=colour, markerfacecolor="white", markersize=4)
        axes.plot(*points[-1:].T, "o", color=colour, markersize=4)
