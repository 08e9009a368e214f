"""Plots of the motion: coordinates, states, multipliers and forces over time, and phase portraits."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from livens.analysis.joint_forces import internal, joint_forces, sizes
from livens.errors import InputError, suggestion
from livens.plot import names
from livens.plot.curves import curve, few_ticks, has_model, path, steady_limits, time_axis
from livens.plot.style import COLUMN, PAGE, PALETTE, caption, escaped, house_style, new_figure

if TYPE_CHECKING:
    from livens.results.result import Result

#: Maximum number of panels on a page.
_PANELS = 8


def motion(result: Result) -> str:
    """Return the name of the position variable: q, or x of a first-order model; empty if not stored."""
    return next((name for name in ("q", "x") if name in result.stored), "")


@house_style()
def coordinates(result: Result, chosen: str | Sequence[str] | None = None) -> Figure:
    """Plot coordinates or states over time, one panel each: the chosen ones, all, or a selection of eight.

    Parameters
    ----------
    result : Result
        Run to plot.
    chosen : str or sequence of str, optional
        Names of coordinates or states.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Raises
    ------
    InputError
        If a name is unknown.
    """
    known, values = result.facts.coordinates, _moving(result)
    asked = [chosen] if isinstance(chosen, str) else chosen
    if asked is not None and not isinstance(asked, (list, tuple)):
        raise InputError(f"coordinates are chosen by their names, got {chosen!r}")
    index = [_index(result, name) for name in asked] if asked else _some_coordinates(result)
    figure = _panels(result, [_label(result, i) for i in index], values[:, index])
    words = "coordinates" if motion(result) == "q" else "states"
    caption(figure, result, f"{len(index)} of {len(known)} {words}" if len(index) < len(known) else "")
    return figure


@house_style()
def algebraic(result: Result) -> Figure:
    """Plot the algebraic variables of a first-order model, at most the eight largest.

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
        If the model has no algebraic variables.
    """
    known = result.facts.algebraic
    if not known:
        raise InputError("the model has no algebraic variables: there is nothing to draw")
    return _largest(result, "algebraic variables", [escaped(name) for name in known], result.y)


@house_style()
def multipliers(result: Result) -> Figure:
    """Plot the Lagrange multipliers, at most the eight largest.

    Multipliers of rigidity constraints of single bodies are omitted if there are others.

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
        If the system has no constraints.
    """
    known = result.facts.constraint_names
    if not known:
        raise InputError("the system has no constraints, so it has no multipliers: there is nothing to draw")
    labels = [rf"$\lambda$ of {escaped(name)}" for name in known]
    hidden = internal(result.system) if has_model(result) else set()
    return _largest(result, "multipliers", labels, result.multipliers, hidden)


@house_style()
def forces(result: Result) -> Figure:
    """Plot the magnitudes of the reaction forces of joints in newtons, at most the eight largest.

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
        If no constraint acts on a point.
    """
    found = sizes(joint_forces(result))
    if not found:
        raise InputError("no constraint of the system acts on a point: there are no forces to draw")
    labels = [f"{escaped(name)} (N)" for name in found]
    return _largest(result, "forces", labels, np.column_stack(list(found.values())))


def has_forces(result: Result) -> bool:
    """Return True if joints act on points of bodies."""
    if not has_model(result) or "q" not in result.stored:
        return False
    count = len(result.facts.constraint_names)
    return bool(names.points(result.facts.coordinates)) and len(internal(result.system)) < count


def _largest(
    result: Result, words: str, labels: Sequence[str], values: np.ndarray, hidden: Collection[int] = ()
) -> Figure:
    """Draw one panel per column, at most the eight largest columns, those in `hidden` last."""
    order = sorted(range(len(labels)), key=lambda i: (i in hidden, -float(np.abs(values[:, i]).max())))
    shown = [i for i in order if i not in hidden] or order
    index = sorted(shown[:_PANELS])
    figure = _panels(result, [labels[i] for i in index], values[:, index])
    caption(figure, result, f"the {len(index)} largest of {len(shown)} {words}" if len(index) < len(shown) else "")
    return figure


@house_style()
def phase_portrait(result: Result, coordinate: str | None = None, against: str | None = None) -> Figure:
    """Plot a phase portrait, from the circle to the dot.

    By default a coordinate of a mechanical system is plotted against its velocity, and a coordinate of a Hamiltonian
    against its momentum. A state is plotted against its rate or momentum (``v_x``, ``p_x``) if there is one, otherwise
    against the next state.

    Parameters
    ----------
    result : Result
        Run to plot.
    coordinate : str, optional
        Coordinate or state. Default: the coordinate with the largest range, or the first state.
    against : str, optional
        Coordinate or state of the vertical axis.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Raises
    ------
    InputError
        If a name is unknown, or if the model has a single state.
    """
    values = _moving(result)
    i = _index(result, coordinate) if coordinate else _liveliest(result) if motion(result) == "q" else 0
    xlabel = _label(result, i)
    if against is not None or motion(result) == "x":
        j = _index(result, against) if against is not None else _partner(result, i)
        other, ylabel = values[:, j], _label(result, j)
    elif _canonical(result):
        other, ylabel = result.p[:, i], names.momentum(result.facts.coordinates[i])
    else:
        other, ylabel = result.v[:, i], names.label(result.facts.coordinates[i], rate=True)
    figure = new_figure(COLUMN, 2.8)
    axes = figure.add_subplot()
    state = np.column_stack([values[:, i], other])
    path(axes, state, color=PALETTE[0], linewidth=0.8)
    axes.plot(*state[0], "o", color=PALETTE[0], markerfacecolor="white", markersize=4)
    axes.plot(*state[-1], "o", color=PALETTE[0], markersize=4)
    axes.margins(0.05)
    few_ticks(axes)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    caption(figure, result)
    return figure


def has_plane(result: Result) -> bool:
    """Return True if there are two variables to plot against each other."""
    if motion(result) == "x":
        return len(result.facts.coordinates) > 1
    return motion(result) == "q" and ("p" if _canonical(result) else "v") in result.stored


def _canonical(result: Result) -> bool:
    """Return True if the model is formulated in momenta; False if the model is not available."""
    return has_model(result) and "p" in result.system.error_variables


def _partner(result: Result, i: int) -> int:
    """Return the index of the variable of the vertical axis: rate or momentum of the state, or the next state."""
    known = result.facts.coordinates
    if len(known) < 2:
        raise InputError("the model has only one state: there is no second one to draw it against")
    own = [known.index(f"{letter}_{known[i]}") for letter in "vp" if f"{letter}_{known[i]}" in known]
    return own[0] if own else (i + 1) % len(known)


def _moving(result: Result) -> np.ndarray:
    return np.asarray(getattr(result, motion(result) or "q"))


def _label(result: Result, i: int) -> str:
    """Return the label of a coordinate with unit, or of a state without: its unit is unknown."""
    name = result.facts.coordinates[i]
    return names.label(name) if motion(result) == "q" else names.symbol(name)


def _panels(result: Result, labels: Sequence[str], values: np.ndarray) -> Figure:
    """Return a figure with one panel per column of values."""
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
    """Return the indices of all changing coordinates if there are few, otherwise of some points or some coordinates."""
    known = result.facts.coordinates
    reach = np.ptp(_moving(result), axis=0)
    changing = [int(i) for i in np.flatnonzero(reach > 1e-9 * reach.max())] or list(range(len(known)))
    if len(changing) <= _PANELS:
        return changing
    found = list(names.points(known).values())
    if found:
        some = names.spread(range(len(found)), _PANELS // max(map(len, found)))
        return [i for j in some for i in found[j]]
    return names.spread(changing, _PANELS)


def _liveliest(result: Result) -> int:
    """Return the index of the coordinate with the largest range; among equals, that of a point."""
    reach = np.ptp(result.q, axis=0)
    most = np.flatnonzero(reach >= 0.99 * reach.max())
    located = {i for where in names.points(result.facts.coordinates).values() for i in where}
    return next((int(i) for i in most if i in located), int(most[0]))


def _index(result: Result, name: str) -> int:
    known = result.facts.coordinates
    if not isinstance(name, str) or name not in known:
        words = "coordinate" if motion(result) == "q" else "state"
        raise InputError(f"the system has no {words} '{name}'{suggestion(str(name), known)}")
    return known.index(name)
