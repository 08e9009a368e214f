"""A mechanism of bars in the plane, drawn as it stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from livens.errors import InputError
from livens.plot import names
from livens.plot.curves import few_ticks, has_model
from livens.plot.style import COLUMN, caption, equal_height, house_style, legend, new_figure

if TYPE_CHECKING:
    from livens.results.result import Result

_FADING = LinearSegmentedColormap.from_list("fading", ["#B9D6EA", "#0072B2", "#00243A"])


@house_style()
def snapshots(result: Result, times: Sequence[float] | None = None, count: int = 6) -> Figure:
    """The mechanism at several instants, from light to dark, with triangles at the points that stay at rest.

    Bodies with coordinates ``NAME.x NAME.y NAME.d1x NAME.d1y`` are bars of the length that their parameter ``l`` says.
    Without `times`, the instants are spread along the motion until it first comes back to its beginning.
    """
    if not has_bars(result):
        raise InputError(
            "the system has no bars to draw: they are bodies with coordinates NAME.x, NAME.y, NAME.d1x, NAME.d1y "
            "and a parameter l, their length"
        )
    found = names.bars(result.facts.coordinates)
    ends = np.stack([_ends(result.q[:, where], _length(result, name)) for name, where in found.items()], axis=1)
    instants = _instants(result, count) if times is None else [int(np.abs(result.t - time).argmin()) for time in times]
    labels = [f"$t$ = {result.t[i]:.2f} s" for i in instants]
    figure = new_figure(COLUMN, equal_height(ends[instants].reshape(-1, 2), labels))
    axes = figure.add_subplot()
    for i, label, colour in zip(instants, labels, _FADING(np.linspace(0, 1, len(instants))), strict=True):
        for bar in ends[i]:
            axes.plot(*bar.T, "o-", color=colour, linewidth=1.6, markersize=2.5, solid_capstyle="round", label=label)
            label = "_"  # one entry in the legend per instant
    for point in _at_rest(ends):
        axes.plot(*point, "^", color="black", markersize=6, clip_on=False, zorder=5)
    axes.margins(0.05)
    few_ticks(axes)
    axes.set(xlabel="$x$ (m)", ylabel="$y$ (m)", aspect="equal")
    legend(axes)
    caption(figure, result)
    return figure


def has_bars(result: Result) -> bool:
    """Whether there is a mechanism to draw."""
    found = names.bars(result.facts.coordinates)
    return bool(found) and not any(np.isnan(_length(result, name)) for name in found)


def _length(result: Result, bar: str) -> float:
    """A bar's own l, or that of the whole system; nan if there is none."""
    elements = getattr(result.system, "elements", ()) if has_model(result) else ()
    own: dict[str, Any] = next((e.parameters.plain() for e in elements if e.name == bar), {})
    length = own.get("l", result.facts.parameters.get("l"))
    return float(length) if isinstance(length, (int, float)) else float("nan")


def _ends(q: np.ndarray, length: float) -> np.ndarray:
    """Both ends of a bar with coordinates (x, y, d1x, d1y): time, end, x or y."""
    arm = length / 2 * q[:, 2:]
    return np.stack([q[:, :2] - arm, q[:, :2] + arm], axis=1)


def _at_rest(ends: np.ndarray) -> np.ndarray:
    """Ends of bars that never move, each once."""
    every = ends.reshape(len(ends), -1, 2)
    still = np.ptp(every, axis=0).max(axis=1) < 1e-6 * np.ptp(every)
    return np.unique(np.round(every[0, still], 9), axis=0)


def _instants(result: Result, count: int) -> list[int]:
    """Rows at equal distances along the motion, until it first comes back near its beginning."""
    away = np.linalg.norm(result.q - result.q[0], axis=1)
    left = np.flatnonzero(away > 0.5 * away.max())
    back = left[0] + np.flatnonzero(away[left[0] :] < 0.05 * away.max()) if len(left) else left
    end = int(back[0]) + 1 if len(back) else len(away)
    way = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(result.q[:end], axis=0), axis=1))]
    # where the motion comes back, its beginning is not drawn twice
    marks = np.linspace(0, way[-1], count, endpoint=not len(back))
    return sorted({int(i) for i in np.searchsorted(way, marks).clip(0, end - 1)})
