"""Snapshots of a mechanism at several instants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from livens.errors import InputError
from livens.models.outlines import SURROUNDINGS, Outline, extent, outlines, reach
from livens.plot.curves import few_ticks
from livens.plot.motion import motion
from livens.plot.space import azimuth, fill, room
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

if TYPE_CHECKING:
    from livens.results.result import Result

_FADING = LinearSegmentedColormap.from_list("fading", ["#B9D6EA", "#0072B2", "#00243A"])


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
        raise InputError(
            "there is no mechanism to draw: the model has no visuals. Define visuals, see livens.shapes"
        )
    scene = result.scene
    instants = _instants(result, count) if times is None else [int(np.abs(result.t - time).argmin()) for time in times]
    pose = scene.at(_state(result)[instants], result.t[instants])
    size = extent(scene, pose)
    drawn = [outlines(scene, pose, row, size) for row in range(len(instants))]
    labels = [f"$t$ = {result.t[i]:.2f} s" for i in instants]
    flat = scene.dimension == 2
    height = equal_height(reach(drawn)[:, :2], labels) if flat else 3.0 + LEGEND_ROW * legend_rows(labels)
    figure = new_figure(COLUMN, height)
    axes: Any = figure.add_subplot() if flat else figure.add_subplot(projection="3d")
    keep = slice(0, 2 if flat else 3)
    for row, label, colour in zip(drawn, labels, _FADING(np.linspace(0, 1, len(instants))), strict=True):
        for outline in row:
            if outline.kind not in SURROUNDINGS:
                label = _part(axes, outline, keep, colour, label)
    for outline in drawn[0]:
        if outline.kind == "ground":
            axes.plot(*outline.lines[0][:1, keep].T, "^", color="black", markersize=6, clip_on=False, zorder=5)
        elif outline.kind == "path":
            axes.plot(*outline.lines[0][:, keep].T, color="#999999", linewidth=0.8, zorder=0)
    if flat:
        axes.margins(0.05)
        few_ticks(axes)
        axes.set(xlabel="$x$ (m)", ylabel="$y$ (m)", aspect="equal")
        legend(axes)
    else:
        axes.set(xlabel="$x$ (m)", ylabel="$y$ (m)", zlabel="$z$ (m)")
        axes.view_init(elev=25, azim=azimuth([reach(drawn)]))
        top = 1 - 0.2 / height
        figure.legend(loc="upper left", bbox_to_anchor=(0.02, top), ncols=legend_columns(labels), borderpad=0)
        fill(figure, axes, room(axes), top - LEGEND_ROW * legend_rows(labels) / height)
    caption(figure, result)
    return figure


def _part(axes: Any, outline: Outline, keep: slice, colour: Any, label: str) -> str:
    """Draw one shape; return the legend label for the next one, as only the first shape of an instant has an entry."""
    pins = outline.kind == "rod"
    for line in outline.lines:
        style = "o-" if pins or len(line) == 1 else "-"
        width = 1.6 if pins else 0.8
        axes.plot(
            *line[:, keep].T,
            style,
            color=colour,
            linewidth=width,
            markersize=2.5 if pins else 4,
            solid_capstyle="round",
            label=label,
        )
        label = "_"
    return label


def has_mechanism(result: Result) -> bool:
    """Return True if the scene contains shapes other than points and surroundings."""
    simple = ("sphere", *SURROUNDINGS)
    return bool(motion(result)) and any(shape.kind not in simple for shape in result.scene.shapes)


def _state(result: Result) -> np.ndarray:
    """Return the variable that the scene depends on."""
    return np.asarray(getattr(result, motion(result)))


def _instants(result: Result, count: int) -> list[int]:
    """Return rows at equal arc lengths along the motion, until it first returns near its initial configuration."""
    state = _state(result)
    away = np.linalg.norm(state - state[0], axis=1)
    left = np.flatnonzero(away > 0.5 * away.max())
    back = left[0] + np.flatnonzero(away[left[0] :] < 0.05 * away.max()) if len(left) else left
    end = int(back[0]) + 1 if len(back) else len(away)
    way = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(state[:end], axis=0), axis=1))]
    # for a closed motion the initial configuration is not drawn twice
    marks = np.linspace(0, way[-1], count, endpoint=not len(back))
    return sorted({int(i) for i in np.searchsorted(way, marks).clip(0, end - 1)})
