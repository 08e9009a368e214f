"""Three-dimensional axes with equal units, plain panes and uncut labels."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from livens.plot.user_axes import AxesAdapter


def set_equal_units(axes: Any) -> np.ndarray:
    """Set equal units, white panes and few ticks on 3-D axes; return the half ranges as box aspect."""
    limits = np.array([axes.get_xlim(), axes.get_ylim(), axes.get_zlim()])
    half = np.ptp(limits, axis=1) / 2
    half = np.maximum(half, 0.3 * half.max())
    for axis, middle, half_range in zip("xyz", limits.mean(axis=1), half, strict=True):
        axes.set(**{f"{axis}lim": (middle - half_range, middle + half_range)})
        axis_3d = getattr(axes, f"{axis}axis")
        axis_3d.set_pane_color((1.0, 1.0, 1.0))
        axis_3d.set_major_locator(MaxNLocator(nbins=max(2, round(4 * half_range / half.max())), steps=[1, 2, 5, 10]))
    axes.tick_params(pad=-1)
    axes.zaxis.set_rotate_label(False)  # keeps the label upright on the left
    axes.zaxis.label.set_rotation(90)
    return half


def fit_to_figure(figure: Figure, axes: Any, size: np.ndarray, top: float) -> None:
    """Zoom 3-D axes to fill the figure up to `top`, because matplotlib's layouts cut off their labels."""
    if isinstance(figure, AxesAdapter):  # user axes keep their size
        axes.set_box_aspect(size)
        return
    figure.set_layout_engine("none")
    corners = np.array(list(itertools.product(axes.get_xlim(), axes.get_ylim(), axes.get_zlim(), [1.0])))
    zoom, offset = 0.8, np.zeros(2)
    for _ in range(5):  # labels keep their size while the box grows: fixed-point iteration
        axes.set_box_aspect(size, zoom=zoom)
        axes.set_position((*offset, 1.0, top))
        figure.draw_without_rendering()
        projected = corners @ axes.get_proj().T
        walls = axes.transData.transform(projected[:, :2] / projected[:, 3:])
        labels = [axis.get_tightbbox() for axis in (axes.xaxis, axes.yaxis, axes.zaxis)]
        outline = np.concatenate([walls, *(box.get_points() for box in labels)])
        low, high = figure.transFigure.inverted().transform([outline.min(axis=0), outline.max(axis=0)])
        zoom *= 0.97 * float(min(1 / (high - low)[0], top / (high - low)[1]))
        offset += (np.array([1.0, top]) - low - high) / 2


def view_azimuth(paths: list[np.ndarray]) -> float:
    """Return the azimuth, of two, at which the paths appear wider."""

    def width(angle: float) -> float:
        across = np.array([-np.sin(np.radians(angle)), np.cos(np.radians(angle))])
        return float(np.ptp(np.concatenate(paths)[:, :2] @ across))

    return max((-60.0, 30.0), key=width)
