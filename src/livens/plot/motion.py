"""Pictures of coordinates, multipliers and of the work of a run, against time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from livens.errors import InputError, suggestion
from livens.plot import names
from livens.plot.curves import COLUMNS, curve, few_ticks, need_steps, path, steady_limits, time_axis
from livens.plot.style import COLUMN, PAGE, PALETTE, caption, escaped, house_style, legend, new_figure

if TYPE_CHECKING:
    from livens.result import Result

#: More panels than this cannot be read on a page.
_PANELS = 8
#: With more steps than this, a mean says more about Newton's method than dots.
_DOTS = 300


@house_style()
def coordinates(result: Result, chosen: str | Sequence[str] | None = None) -> Figure:
    """Coordinates against time, a panel each: those chosen, or all; of more than eight, some."""
    known = result.facts.coordinates
    asked = [chosen] if isinstance(chosen, str) else chosen
    index = [_index(result, name) for name in asked] if asked else _some_coordinates(result)
    figure = _panels(result, [names.label(known[i]) for i in index], result.q[:, index])
    caption(figure, result, f"{len(index)} of {len(known)} coordinates" if len(index) < len(known) else "")
    return figure


@house_style()
def multipliers(result: Result) -> Figure:
    """The Lagrange multipliers; if there are more than eight, the largest."""
    known = result.facts.constraint_names
    if not known:
        raise InputError("the system has no constraints, so it has no multipliers: there is nothing to draw")
    largest = np.argsort(-np.abs(result.multipliers).max(axis=0), kind="stable")
    index = sorted(largest[:_PANELS])
    figure = _panels(result, [rf"$\lambda$ of {escaped(known[i])}" for i in index], result.multipliers[:, index])
    caption(figure, result, f"the {len(index)} largest of {len(known)} multipliers" if len(index) < len(known) else "")
    return figure


@house_style()
def phase_portrait(result: Result, coordinate: str | None = None) -> Figure:
    """A coordinate against its velocity, from the circle to the dot; without a name, the coordinate that moves most."""
    i = _index(result, coordinate) if coordinate else _liveliest(result)
    name = result.facts.coordinates[i]
    figure = new_figure(COLUMN, 2.8)
    axes = figure.add_subplot()
    state = np.column_stack([result.q[:, i], result.v[:, i]])
    path(axes, state, color=PALETTE[0], linewidth=0.8)
    axes.plot(*state[0], "o", color=PALETTE[0], markerfacecolor="white", markersize=4)
    axes.plot(*state[-1], "o", color=PALETTE[0], markersize=4)
    axes.margins(0.05)
    few_ticks(axes)
    axes.set(xlabel=names.label(name), ylabel=names.label(name, rate=True))
    caption(figure, result)
    return figure


@house_style()
def newton(result: Result) -> Figure:
    """Newton corrections of every step, with their mean over a while in long runs, and the step sizes."""
    need_steps(result)
    t, count, h = result.t[1:], result.newton_iterations[1:], result.step_size[1:]
    figure = new_figure(COLUMN, 3.0)
    upper, lower = figure.subplots(2, sharex=True, height_ratios=[2, 1])
    # dots of one pixel column and one height are one dot
    cells = np.column_stack([np.floor((t - t[0]) / (np.ptp(t) or 1.0) * COLUMNS / 4), count])
    seen = np.unique(cells, axis=0, return_index=True)[1]
    upper.plot(t[seen], count[seen], ".", color=PALETTE[5], markersize=4, markeredgewidth=0, label="every step")
    if len(count) > _DOTS:
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


def _panels(result: Result, labels: Sequence[str], values: np.ndarray) -> Figure:
    """One panel per column of values."""
    wide = len(labels) > _PANELS // 2
    rows = -(-len(labels) // 2) if wide else len(labels)
    figure = new_figure(PAGE if wide else COLUMN, 0.6 + (1.15 if rows > 1 else 1.8) * rows)
    grid = figure.subplots(rows, 2 if wide else 1, sharex=True, squeeze=False)
    for axes in grid.flat[len(labels) :]:
        axes.remove()
    for axes, label, y in zip(grid.flat, labels, values.T, strict=False):
        curve(axes, result.t, y, color=PALETTE[0])
        steady_limits(axes, y)
        axes.set_title(label, loc="left")
        axes.yaxis.set_major_locator(MaxNLocator(nbins=4, steps=[1, 2, 5, 10]))
    for column in range(grid.shape[1]):
        bottom = grid.flat[[i for i in range(len(labels)) if i % grid.shape[1] == column][-1]]
        time_axis(bottom, result)
        bottom.tick_params(labelbottom=True)
    return figure


def _some_coordinates(result: Result) -> list[int]:
    """All of them if they are few; else some points; else some that move."""
    known = result.facts.coordinates
    if len(known) <= _PANELS:
        return list(range(len(known)))
    found = list(names.points(known).values())
    if found:
        some = names.spread(range(len(found)), _PANELS // max(map(len, found)))
        return [i for j in some for i in found[j]]
    reach = np.ptp(result.q, axis=0)
    return names.spread([int(i) for i in np.flatnonzero(reach > 1e-9 * reach.max())] or range(len(known)), _PANELS)


def _liveliest(result: Result) -> int:
    """The coordinate that moves most; of several, one of a point."""
    reach = np.ptp(result.q, axis=0)
    most = np.flatnonzero(reach >= 0.99 * reach.max())
    located = {i for where in names.points(result.facts.coordinates).values() for i in where}
    return next((int(i) for i in most if i in located), int(most[0]))


def _index(result: Result, name: str) -> int:
    known = result.facts.coordinates
    if name not in known:
        raise InputError(f"the system has no coordinate '{name}'{suggestion(name, known)}")
    return known.index(name)
