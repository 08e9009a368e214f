"""Plots of the solver: Newton corrections and step sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from livens.analysis import step_sizes as sizes_of
from livens.errors import InputError
from livens.plot.curves import COLUMNS, curve, require_steps, time_axis
from livens.plot.style import COLUMN, PALETTE, caption, house_style, legend, new_figure

if TYPE_CHECKING:
    from livens.results.result import Result

#: Number of steps above which the mean of Newton corrections is plotted too.
_MAX_DOTS = 300


@house_style()
def newton(result: Result) -> Figure:
    """Plot the Newton corrections of every step, with their moving mean in long runs, and the step sizes.

    Parameters
    ----------
    result : Result
        Run to plot.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    require_steps(result)
    t, count, h = result.t[1:], result.newton_iterations[1:], result.step_size[1:]
    figure = new_figure(COLUMN, 3.0)
    upper, lower = figure.subplots(2, sharex=True, height_ratios=[2, 1])
    # one dot per pixel column and value
    cells = np.column_stack([np.floor((t - t[0]) / (np.ptp(t) or 1.0) * COLUMNS / 4), count])
    visible = np.unique(cells, axis=0, return_index=True)[1]
    upper.plot(t[visible], count[visible], ".", color=PALETTE[5], markersize=4, markeredgewidth=0, label="every step")
    if len(count) > _MAX_DOTS:
        window = len(count) // 100
        ends = np.arange(window, len(count) + 1, window)
        total = np.r_[0, np.cumsum(count)]
        mean = (total[ends] - total[ends - window]) / window
        upper.plot(t[ends - 1 - window // 2], mean, color=PALETTE[0], label=f"mean of {window} steps")
        legend(upper)
    upper.set_ylim(0, max(int(count.max()), 2) + 0.6)
    upper.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    upper.set_ylabel("Newton corrections")
    curve(lower, t, h, color=PALETTE[1], drawstyle="steps-pre")
    lower.set_ylim(0, 1.25 * float(h.max()))
    lower.set_ylabel("step size (s)")
    time_axis(lower, result)
    figure.align_ylabels()
    caption(figure, result)
    return figure


@house_style()
def step_sizes(result: Result) -> Figure:
    """Plot variable step sizes, each at the end of its step; the last step, shortened to the final time, is omitted.

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
        If all steps are equal.
    """
    require_steps(result)
    if not sizes_of.has_variable_steps(result):
        raise InputError("the steps of the run are equal: there is nothing to draw")
    shown = slice(1, -1 if len(result.t) > 2 else None)
    t, h = result.t[shown], result.step_size[shown]
    figure = new_figure(COLUMN, 2.2)
    axes = figure.add_subplot()
    curve(axes, t, h, color=PALETTE[1], drawstyle="steps-pre", linewidth=0.8)
    axes.set_yscale("log")
    # at least a factor of 3, so that nearly equal steps do not fill the panel
    low, high = float(h.min()), float(h.max())
    axes.set_ylim(min(low / 1.3, high / 3), max(high * 1.3, low * 3))
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0,) if high > 100 * low else (1.0, 2.0, 5.0)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylabel("step size (s)")
    time_axis(axes, result)
    rejected = result.statistics.rejected
    caption(figure, result, f"{rejected} steps rejected" if rejected else "")
    return figure
