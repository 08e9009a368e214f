"""Snapshots of a mechanism at several instants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from livens.errors import InputError
from livens.plot.axes3d import fit_to_figure, set_equal_units, view_azimuth
from livens.plot.curves import few_ticks
from livens.plot.motion import position_variable
from livens.plot.style import (
    COLUMN,
    LEGEND_ROW,
    caption,
    equal_height,
    house_style,
    legend,
    legend_columns,
    legend_rows,
    new_figure,
)
from livens.scene.outlines import SURROUNDINGS, Outline, all_points, extent, outlines
from livens.types import FloatArray

if TYPE_CHECKING:
    from livens.results.result import Result

_COLOURMAP = LinearSegmentedColormap.from_list("fading", ["#B9D6EA", "#0072B2", "#00243A"])


@house_style()
def snapshots(result: Result, times: Sequence[float] | None = None, count: int = 6) -> Figure:
    """Plot the mechanism at several instants, from light to dark, with triangles at ground points.

    The scene of the model is drawn (see `livens.shapes`).

    Parameters
    ----------
    result : Result
        Run to plot.
    times : sequence of float, optional
        Instants. Default: distributed along the motion until it first returns to its initial configuration.
    count : int, default 6
        Number of default instants.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Raises
    ------
    InputError
        If the model has no visuals.
    """
    if not has_mechanism(result):
        raise InputError("there is no mechanism to draw: the model has no visuals. Define visuals, see livens.shapes")
    scene = result.scene
    instants = _instants(result, count) if times is None else [int(np.abs(result.t - time).argmin()) for time in times]
    pose = scene.evaluate(_state(result)[instants], result.t[instants])
    size = extent(scene, pose)
    instant_outlines = [outlines(scene, pose, row, size) for row in range(len(instants))]
    labels = [f"$t$ = {result.t[i]:.2f} s" for i in instants]
    flat = scene.dimension == 2
    height = (
        equal_height(all_points(instant_outlines)[:, :2], labels) if flat else 3.0 + LEGEND_ROW * legend_rows(labels)
    )
    figure = new_figure(COLUMN, height)
    axes: Any = figure.add_subplot() if flat else figure.add_subplot(projection="3d")
    dimensions = slice(0, 2 if flat else 3)
    for row, label, colour in zip(instant_outlines, labels, _COLOURMAP(np.linspace(0, 1, len(instants))), strict=True):
        for outline in row:
            if outline.shape_type not in SURROUNDINGS:
                label = _draw_outline(axes, outline, dimensions, colour, label)
    for outline in instant_outlines[0]:
        if outline.shape_type == "ground":
            axes.plot(*outline.lines[0][:1, dimensions].T, "^", color="black", markersize=6, clip_on=False, zorder=5)
        elif outline.shape_type == "path":
            axes.plot(*outline.lines[0][:, dimensions].T, color="#999999", linewidth=0.8, zorder=0)
    if flat:
        axes.margins(0.05)
        few_ticks(axes)
        axes.set(xlabel="$x$ (m)", ylabel="$y$ (m)", aspect="equal")
        legend(axes)
    else:
        axes.set(xlabel="$x$ (m)", ylabel="$y$ (m)", zlabel="$z$ (m)")
        axes.view_init(elev=25, azim=view_azimuth([all_points(instant_outlines)]))
        top = 1 - 0.2 / height
        figure.legend(loc="upper left", bbox_to_anchor=(0.02, top), ncols=legend_columns(labels), borderpad=0)
        fit_to_figure(figure, axes, set_equal_units(axes), top - LEGEND_ROW * legend_rows(labels) / height)
    caption(figure, result)
    return figure


def _draw_outline(axes: Any, outline: Outline, dimensions: slice, colour: FloatArray, label: str) -> str:
    """Draw one shape; return the legend label for the next one, as only the first shape of an instant has an entry."""
    is_rod = outline.shape_type == "rod"
    for line in outline.lines:
        style = "o-" if is_rod or len(line) == 1 else "-"
        width = 1.6 if is_rod else 0.8
        axes.plot(
            *line[:, dimensions].T,
            style,
            color=colour,
            linewidth=width,
            markersize=2.5 if is_rod else 4,
            solid_capstyle="round",
            label=label,
        )
        label = "_"
    return label


def has_mechanism(result: Result) -> bool:
    """Return True if the scene contains shapes other than points and surroundings."""
    simple = ("sphere", *SURROUNDINGS)
    return bool(position_variable(result)) and any(shape.shape_type not in simple for shape in result.scene.shapes)


def _state(result: Result) -> np.ndarray:
    """Return the variable that the scene depends on."""
    return np.asarray(getattr(result, position_variable(result)))


def _instants(result: Result, count: int) -> list[int]:
    """Return rows at equal arc lengths along the motion, until it first returns near its initial configuration."""
    state = _state(result)
    distance = np.linalg.norm(state - state[0], axis=1)
    far_rows = np.flatnonzero(distance > 0.5 * distance.max())
    return_rows = (
        far_rows[0] + np.flatnonzero(distance[far_rows[0] :] < 0.05 * distance.max()) if len(far_rows) else far_rows
    )
    end = int(return_rows[0]) + 1 if len(return_rows) else len(distance)
    arc_length = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(state[:end], axis=0), axis=1))]
    # for a closed motion the initial configuration is not drawn twice
    targets = np.linspace(0, arc_length[-1], count, endpoint=not len(return_rows))
    return sorted({int(i) for i in np.searchsorted(arc_length, targets).clip(0, end - 1)})
