"""Plots of the motion: coordinates, states, multipliers and forces over time, and phase portraits."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from livens.analysis.reaction_forces import force_magnitudes, joint_forces, rigidity_multipliers
from livens.errors import InputError, suggestion
from livens.plot import axis_labels
from livens.plot.curves import curve, few_ticks, has_model, path, steady_limits, time_axis
from livens.plot.style import COLUMN, PAGE, PALETTE, caption, escaped, house_style, new_figure

if TYPE_CHECKING:
    from livens.results.result import Result

#: Maximum number of panels on a page.
_MAX_PANELS = 8


def position_variable(result: Result) -> str:
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
    known, values = result.info.coordinates, _positions(result)
    requested = [chosen] if isinstance(chosen, str) else chosen
    if requested is not None and not isinstance(requested, (list, tuple)):
        raise InputError(f"coordinates are chosen by their names, got {chosen!r}")
    index = [_index(result, name) for name in requested] if requested else _default_coordinates(result)
    figure = _panels(result, [_label(result, i) for i in index], values[:, index])
    noun = "coordinates" if position_variable(result) == "q" else "states"
    caption(figure, result, f"{len(index)} of {len(known)} {noun}" if len(index) < len(known) else "")
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
    known = result.info.algebraic
    if not known:
        raise InputError("the model has no algebraic variables: there is nothing to draw")
    return _largest_panels(result, "algebraic variables", [escaped(name) for name in known], result.y)


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
    known = result.info.constraint_names
    if not known:
        raise InputError("the system has no constraints, so it has no multipliers: there is nothing to draw")
    labels = [rf"$\lambda$ of {escaped(name)}" for name in known]
    hidden = rigidity_multipliers(result.system) if has_model(result) else set()
    return _largest_panels(result, "multipliers", labels, result.multipliers, hidden)


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
    magnitudes = force_magnitudes(joint_forces(result))
    if not magnitudes:
        raise InputError("no constraint of the system acts on a point: there are no forces to draw")
    labels = [f"{escaped(name)} (N)" for name in magnitudes]
    return _largest_panels(result, "forces", labels, np.column_stack(list(magnitudes.values())))


def has_forces(result: Result) -> bool:
    """Return True if joints act on points of bodies."""
    if not has_model(result) or "q" not in result.stored:
        return False
    count = len(result.info.constraint_names)
    return bool(axis_labels.named_points(result.info.coordinates)) and len(rigidity_multipliers(result.system)) < count


def _largest_panels(
    result: Result, noun: str, labels: Sequence[str], values: np.ndarray, hidden: Collection[int] = ()
) -> Figure:
    """Draw one panel per column, at most the eight largest columns, those in `hidden` last."""
    order = sorted(range(len(labels)), key=lambda i: (i in hidden, -float(np.abs(values[:, i]).max())))
    shown = [i for i in order if i not in hidden] or order
    index = sorted(shown[:_MAX_PANELS])
    figure = _panels(result, [labels[i] for i in index], values[:, index])
    caption(figure, result, f"the {len(index)} largest of {len(shown)} {noun}" if len(index) < len(shown) else "")
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
    values = _positions(result)
    i = _index(result, coordinate) if coordinate else _most_varying(result) if position_variable(result) == "q" else 0
    xlabel = _label(result, i)
    if against is not None or position_variable(result) == "x":
        j = _index(result, against) if against is not None else _partner(result, i)
        other, ylabel = values[:, j], _label(result, j)
    elif _canonical(result):
        other, ylabel = result.p[:, i], axis_labels.momentum(result.info.coordinates[i])
    else:
        other, ylabel = result.v[:, i], axis_labels.label(result.info.coordinates[i], rate=True)
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
    if position_variable(result) == "x":
        return len(result.info.coordinates) > 1
    return position_variable(result) == "q" and ("p" if _canonical(result) else "v") in result.stored


def _canonical(result: Result) -> bool:
    """Return True if the model is formulated in momenta; False if the model is not available."""
    return has_model(result) and "p" in result.system.error_norm_variables


def _partner(result: Result, i: int) -> int:
    """Return the index of the variable of the vertical axis: rate or momentum of the state, or the next state."""
    known = result.info.coordinates
    if len(known) < 2:
        raise InputError("the model has only one state: there is no second one to draw it against")
    conjugates = [known.index(f"{letter}_{known[i]}") for letter in "vp" if f"{letter}_{known[i]}" in known]
    return conjugates[0] if conjugates else (i + 1) % len(known)


def _positions(result: Result) -> np.ndarray:
    return np.asarray(getattr(result, position_variable(result) or "q"))


def _label(result: Result, i: int) -> str:
    """Return the label of a coordinate with unit, or of a state without: its unit is unknown."""
    name = result.info.coordinates[i]
    return axis_labels.label(name) if position_variable(result) == "q" else axis_labels.symbol(name)


def _panels(result: Result, labels: Sequence[str], values: np.ndarray) -> Figure:
    """Return a figure with one panel per column of values."""
    wide = len(labels) > _MAX_PANELS // 2
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


def _default_coordinates(result: Result) -> list[int]:
    """Return the indices of all changing coordinates if there are few, otherwise of some points or some coordinates."""
    known = result.info.coordinates
    ranges = np.ptp(_positions(result), axis=0)
    changing = [int(i) for i in np.flatnonzero(ranges > 1e-9 * ranges.max())] or list(range(len(known)))
    if len(changing) <= _MAX_PANELS:
        return changing
    point_coordinates = list(axis_labels.named_points(known).values())
    if point_coordinates:
        selected = axis_labels.evenly_spaced(
            range(len(point_coordinates)), _MAX_PANELS // max(map(len, point_coordinates))
        )
        return [i for j in selected for i in point_coordinates[j]]
    return axis_labels.evenly_spaced(changing, _MAX_PANELS)


def _most_varying(result: Result) -> int:
    """Return the index of the coordinate with the largest range; among equals, that of a point."""
    ranges = np.ptp(result.q, axis=0)
    largest = np.flatnonzero(ranges >= 0.99 * ranges.max())
    located = {i for axes in axis_labels.named_points(result.info.coordinates).values() for i in axes}
    return next((int(i) for i in largest if i in located), int(largest[0]))


def _index(result: Result, name: str) -> int:
    known = result.info.coordinates
    if not isinstance(name, str) or name not in known:
        noun = "coordinate" if position_variable(result) == "q" else "state"
        raise InputError(f"the system has no {noun} '{name}'{suggestion(str(name), known)}")
    return known.index(name)
