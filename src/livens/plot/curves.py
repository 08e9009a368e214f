"""Drawing of curves: thinning, logarithmic axes with zeros, and round-off bands."""

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
    "path",
    "require_steps",
    "round_off",
    "steady_limits",
    "thin",
    "thin_path",
    "time_axis",
]

#: Width of a page in pixels at print resolution.
COLUMNS = 2000
#: Number of points above which a curve is rasterised in pdf and svg files.
_VECTOR_POINTS = 20_000
#: Upper end of the round-off band, in units of a single rounding.
_ROUND_OFF_FACTOR = 100


def thin(t: np.ndarray, y: np.ndarray, columns: int = COLUMNS) -> tuple[np.ndarray, np.ndarray]:
    """Thin a curve without visible change: keep first, last, smallest and largest value of every pixel column.

    Parameters
    ----------
    t : ndarray of shape (n,)
        Increasing abscissae.
    y : ndarray of shape (n,)
        Ordinates.
    columns : int, default 2000
        Number of pixel columns.

    Returns
    -------
    tuple of ndarray
        Abscissae t and ordinates y of the thinned curve.

    Examples
    --------

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
    """Thin a path (one row per point): remove points in the same pixel as their predecessor."""
    extent = np.ptp(points, axis=0)
    extent = np.maximum(extent, 1e-9 * extent.max()) if extent.any() else np.ones_like(extent)
    pixel = np.floor((points - points.min(axis=0)) / extent * cells)
    changed = np.any(np.diff(pixel, axis=0) != 0, axis=1)
    return points[np.r_[True, changed] | (np.arange(len(points)) == len(points) - 1)]


def curve(axes: Axes, t: np.ndarray, y: np.ndarray, **style: Any) -> None:
    """Draw y over time."""
    axes.plot(*thin(t, y), **style)


def path(axes: Any, points: np.ndarray, **style: object) -> None:
    """Draw a path in the plane or in space."""
    thinned = thin_path(points)
    axes.plot(*thinned.T, rasterized=len(thinned) > _VECTOR_POINTS, **style)


def steady_limits(axes: Axes, y: np.ndarray) -> None:
    """Set the limits of a constant curve so that its round-off does not fill the panel."""
    size = float(np.abs(y).max())
    if np.ptp(y) < 1e-9 * size or size < 1e-12:
        middle, half = float(np.mean(y)), 0.5 * size if size > 1e-12 else 1.0
        axes.set_ylim(middle - half, middle + half)


def has_model(result: Result) -> bool:
    """Return True if the model is available; the file of a user-defined system does not contain it."""
    return result._system is not None or result.info.problem is not None


def require_steps(result: Result) -> None:
    """Raise an InputError if the run has no steps."""
    if len(result.t) < 2:
        raise InputError("the run has no steps: there is nothing to draw")


def few_ticks(axes: Axes) -> None:
    """Reduce the number of ticks so that labels do not overlap in a paper's column."""
    axes.locator_params(nbins=6, steps=[1, 2, 5, 10])


def time_axis(axes: Axes, result: Result) -> None:
    """Set limits and label of the time axis for the whole run."""
    span = float(result.t[-1] - result.t[0]) or 1.0
    axes.set_xlim(result.t[0] - 0.01 * span, result.t[-1] + 0.01 * span)
    axes.set_xlabel("$t$ (s)")


def log_curves(
    axes: Axes, t: np.ndarray, curves: dict[str, np.ndarray], rounding: float, largest_rounding: float = 0.0
) -> Patch:
    """Draw absolute values on a logarithmic axis, with a band that marks round-off.

    `rounding` is the effect of a single rounding; the band ends at a hundred times `rounding` or `largest_rounding`,
    whichever is larger. Zeros and values far below `rounding` lie on a floor with the tick label "0". Returns the band
    for a legend.
    """
    band = _ROUND_OFF_FACTOR * max(rounding, largest_rounding)
    floor = 10.0 ** np.floor(np.log10(rounding / 50))
    largest = max(float(y.max(initial=0)) for y in curves.values())
    top = 10.0 ** np.ceil(np.log10(max(3 * largest, 100 * band)))
    axes.axhspan(floor / 10, band, color=BAND, linewidth=0, zorder=0)
    for name, y in curves.items():
        curve(axes, t, np.maximum(y, floor), label=name, linewidth=0.6)
    axes.set_yscale("log")
    axes.set_ylim(floor / 2.5, top)
    highest, lowest = round(np.log10(top)), round(np.log10(floor))
    stride = -(-(highest - lowest) // 6)
    decades = [k for k in range(highest, lowest, -stride) if k - lowest >= stride / 2]
    axes.set_yticks([floor, *(10.0**k for k in decades)], ["0", *(f"$10^{{{k}}}$" for k in decades)])
    axes.minorticks_off()
    return Patch(color=BAND, linewidth=0, label="round-off")
