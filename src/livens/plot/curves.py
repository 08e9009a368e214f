"""Curves as a picture can show them: thinned, with zeros on a logarithmic axis, with round-off marked."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from livens.analysis.round_off import round_off
from livens.errors import InputError
from livens.plot.style import BAND

if TYPE_CHECKING:
    from livens.results.result import Result

__all__ = [
    "COLUMNS",
    "curve",
    "few_ticks",
    "has_model",
    "log_curves",
    "need_steps",
    "path",
    "round_off",
    "steady_limits",
    "thin",
    "thin_path",
    "time_axis",
]

#: A page at print resolution is about this many pixels wide.
COLUMNS = 2000
#: Longer curves become an image inside a pdf or svg, which readers could not open otherwise.
_VECTOR_POINTS = 20_000
#: What some steps of a computation make of the rounding of its numbers.
_ROUNDINGS = 100


def thin(t: np.ndarray, y: np.ndarray, columns: int = COLUMNS) -> tuple[np.ndarray, np.ndarray]:
    """A curve with fewer points that looks the same: first, last, least and greatest value of every pixel column.

    >>> t, y = np.arange(1e6), np.zeros(10**6)
    >>> y[123_456] = 1.0
    >>> thin(t, y, 100)[1].max()
    np.float64(1.0)
    """
    if len(t) <= 4 * columns:
        return t, y
    inner = np.searchsorted(t, np.linspace(t[0], t[-1], columns + 1)[1:-1])
    keep = []
    for a, b in itertools.pairwise(np.unique(np.r_[0, inner, len(t)])):
        part = y[a:b]
        keep += [a, a + np.argmin(part), a + np.argmax(part), b - 1]
    index = np.unique(keep)
    return t[index], y[index]


def thin_path(points: np.ndarray, cells: int = COLUMNS) -> np.ndarray:
    """A path (one row per point) without the points that fall into the pixel of the one before."""
    extent = np.ptp(points, axis=0)
    extent = np.maximum(extent, 1e-9 * extent.max()) if extent.any() else np.ones_like(extent)
    pixel = np.floor((points - points.min(axis=0)) / extent * cells)
    moved = np.any(np.diff(pixel, axis=0) != 0, axis=1)
    return points[np.r_[True, moved] | (np.arange(len(points)) == len(points) - 1)]


def curve(axes: Axes, t: np.ndarray, y: np.ndarray, **style: Any) -> None:
    """Draw y against time."""
    axes.plot(*thin(t, y), **style)


def path(axes: Any, points: np.ndarray, **style: Any) -> None:
    """Draw a path in the plane or in space."""
    few = thin_path(points)
    axes.plot(*few.T, rasterized=len(few) > _VECTOR_POINTS, **style)


def steady_limits(axes: Axes, y: np.ndarray) -> None:
    """Do not blow up the round-off of something constant until it fills the picture."""
    size = float(np.abs(y).max())
    if np.ptp(y) < 1e-9 * size or size < 1e-12:
        middle, half = float(np.mean(y)), 0.5 * size if size > 1e-12 else 1.0
        axes.set_ylim(middle - half, middle + half)


def has_model(result: Result) -> bool:
    """Whether observables can be computed: the file of a user's own system does not hold the model."""
    return result._system is not None or result.facts.problem is not None


def need_steps(result: Result) -> None:
    """A run that failed at once is a single state."""
    if len(result.t) < 2:
        raise InputError("the run has no steps: there is nothing to draw")


def few_ticks(axes: Axes) -> None:
    """So few that their labels do not touch in a paper's column."""
    axes.locator_params(nbins=6, steps=[1, 2, 5, 10])


def time_axis(axes: Axes, result: Result) -> None:
    """The whole run, also where the curves begin with its first step."""
    span = float(result.t[-1] - result.t[0]) or 1.0
    axes.set_xlim(result.t[0] - 0.01 * span, result.t[-1] + 0.01 * span)
    axes.set_xlabel("$t$ (s)")


def log_curves(
    axes: Axes, t: np.ndarray, curves: dict[str, np.ndarray], rounding: float, largest_rounding: float = 0.0
) -> Patch:
    """Draw absolute values on a logarithmic axis, with a band where they are but round-off.

    `rounding` is what one rounding amounts to; the band ends at a hundred of them, or of `largest_rounding` if that is
    more. Zeros, and what is far below a rounding, lie on a floor with the tick "0". Returns the band for a legend.
    """
    band = _ROUNDINGS * max(rounding, largest_rounding)
    floor = 10.0 ** np.floor(np.log10(rounding / 50))
    largest = max(float(y.max(initial=0)) for y in curves.values())
    top = 10.0 ** np.ceil(np.log10(max(3 * largest, 100 * band)))
    axes.axhspan(floor / 10, band, color=BAND, linewidth=0, zorder=0)
    for name, y in curves.items():
        curve(axes, t, np.maximum(y, floor), label=name, linewidth=0.6)
    axes.set_yscale("log")
    axes.set_ylim(floor / 2.5, top)
    highest, lowest = round(np.log10(top)), round(np.log10(floor))
    every = -(-(highest - lowest) // 6)
    decades = [k for k in range(highest, lowest, -every) if k - lowest >= every / 2]
    axes.set_yticks([floor, *(10.0**k for k in decades)], ["0", *(f"$10^{{{k}}}$" for k in decades)])
    axes.minorticks_off()
    return Patch(color=BAND, linewidth=0, label="round-off")
