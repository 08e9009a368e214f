"""Trajectories of points, in the plane or in space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from livens.errors import InputError
from livens.plot import axis_labels
from livens.plot.axes3d import fit_to_figure, set_equal_units, view_azimuth
from livens.plot.curves import few_ticks, path
from livens.plot.motion import position_variable
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
    coordinates, variable = result.info.coordinates, position_variable(result)
    if variable == "x" and len(coordinates) == 3:
        figure = _figure_3d({"": result.x}, [axis_labels.symbol(name) for name in coordinates])
        caption(figure, result)
        return figure
    scene = result.scene
    traced_shapes = scene.traced
    if not traced_shapes:
        raise InputError(
            "there is no trajectory to plot: the model has no visual points. Define visuals, see livens.shapes"
        )
    shown = [traced_shapes[i] for i in axis_labels.evenly_spaced(range(len(traced_shapes)), len(PALETTE))]
    note = f"{len(shown)} of {len(traced_shapes)} points" if len(shown) < len(traced_shapes) else ""
    pose = scene.evaluate(getattr(result, variable or "q"), result.t)
    spatial = scene.dimension == 3
    paths: dict[str, np.ndarray] = {}
    for shape in shown:
        name = escaped(shape.name)
        label = name if name not in paths else f"{name} ({len(paths) + 1})"
        paths[label] = pose.traced(shape)[:, : scene.dimension]
    unit = " (m)" if variable == "q" else ""
    labels = [f"${axis}${unit}" for axis in "xyz"]
    figure = _figure_3d(paths, labels) if spatial else _figure_2d(paths, labels)
    caption(figure, result, note)
    return figure


def has_paths(result: Result) -> bool:
    """Return True if there is a trajectory to plot."""
    orbit = position_variable(result) == "x" and len(result.info.coordinates) == 3
    return bool(position_variable(result)) and (orbit or bool(result.scene.traced))


def _figure_2d(paths: dict[str, np.ndarray], labels: Sequence[str]) -> Figure:
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


def _figure_3d(paths: dict[str, np.ndarray], labels: Sequence[str]) -> Figure:
    height = 3.0 + LEGEND_ROW * legend_rows(list(paths))
    figure = new_figure(COLUMN, height)
    axes: Any = figure.add_subplot(projection="3d")
    # points in the plane have z = 0
    points_3d = {name: np.pad(points, ((0, 0), (0, 3 - points.shape[1]))) for name, points in paths.items()}
    _draw(axes, points_3d)
    axes.set(xlabel=labels[0], ylabel=labels[1], zlabel=labels[2])
    axes.view_init(elev=25, azim=view_azimuth(list(points_3d.values())))
    top = 1 - 0.2 / height
    if len(paths) > 1:
        figure.legend(loc="upper left", bbox_to_anchor=(0.02, top), ncols=legend_columns(list(paths)), borderpad=0)
        top -= LEGEND_ROW * legend_rows(list(paths)) / height
    fit_to_figure(figure, axes, set_equal_units(axes), top)
    return figure


def _draw(axes: Any, paths: dict[str, np.ndarray]) -> None:
    for (name, points), colour in zip(paths.items(), PALETTE, strict=False):
        path(axes, points, color=colour, linewidth=0.9, label=name)
        axes.plot(*points[:1].T, "o", color=colour, markerfacecolor="white", markersize=4)
        axes.plot(*points[-1:].T, "o", color=colour, markersize=4)
