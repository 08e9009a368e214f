"""Pictures of how a model moves: coordinates, states, multipliers against time, and one against another."""

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

#: More panels than this cannot be read on a page.
_PANELS = 8


def motion(result: Result) -> str:
    """The variable that says where the model is: q, or x of a model of first order; nothing if it was not stored."""
    return next((name for name in ("q", "x") if name in result.stored), "")


@house_style()
def coordinates(result: Result, chosen: str | Sequence[str] | None = None) -> Figure:
    """Coordinates or states against time, a panel each: those chosen, or all; of more than eight, some."""
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
    """The algebraic variables of a model of first order; if there are more than eight, the largest."""
    known = result.facts.algebraic
    if not known:
        raise InputError("the model has no algebraic variables: there is nothing to draw")
    return _largest(result, "algebraic variables", [escaped(name) for name in known], result.y)


@house_style()
def multipliers(result: Result) -> Figure:
    """The Lagrange multipliers; if there are more than eight, the largest.

    Those of constraints that only hold a body together are left out where there are others.
    """
    known = result.facts.constraint_names
    if not known:
        raise InputError("the system has no constraints, so it has no multipliers: there is nothing to draw")
    labels = [rf"$\lambda$ of {escaped(name)}" for name in known]
    hidden = internal(result.system) if has_model(result) else set()
    return _largest(result, "multipliers", labels, result.multipliers, hidden)


@house_style()
def forces(result: Result) -> Figure:
    """The forces of joints in newtons, as they act in space; if there are more than eight, the largest."""
    found = sizes(joint_forces(result))
    if not found:
        raise InputError("no constraint of the system acts on a point: there are no forces to draw")
    labels = [f"{escaped(name)} (N)" for name in found]
    return _largest(result, "forces", labels, np.column_stack(list(found.values())))


def has_forces(result: Result) -> bool:
    """Whether joints act on points of bodies."""
    if not has_model(result) or "q" not in result.stored:
        return False
    count = len(result.facts.constraint_names)
    return bool(names.points(result.facts.coordinates)) and len(internal(result.system)) < count


def _largest(
    result: Result, words: str, labels: Sequence[str], values: np.ndarray, hidden: Collection[int] = ()
) -> Figure:
    """A panel for each column; if there are more than eight, for the largest, first of those that are not hidden."""
    order = sorted(range(len(labels)), key=lambda i: (i in hidden, -float(np.abs(values[:, i]).max())))
    shown = [i for i in order if i not in hidden] or order
    index = sorted(shown[:_PANELS])
    figure = _panels(result, [labels[i] for i in index], values[:, index])
    caption(figure, result, f"the {len(index)} largest of {len(shown)} {words}" if len(index) < len(shown) else "")
    return figure


@house_style()
def phase_portrait(result: Result, coordinate: str | None = None, against: str | None = None) -> Figure:
    """One quantity against another, from the circle to the dot.

    A coordinate of a mechanical system against its velocity, of a Hamiltonian against its momentum; a state against
    its rate or momentum if one of the others is called that (``v_x``, ``p_x``), else against the next one. `against`
    names another coordinate or state instead. Without a name, a coordinate that moves most, or the first state.
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
    """Whether there are two things to draw against each other."""
    if motion(result) == "x":
        return len(result.facts.coordinates) > 1
    return motion(result) == "q" and ("p" if _canonical(result) else "v") in result.stored


def _canonical(result: Result) -> bool:
    """Whether the model is written in momenta; a file without its model does not say."""
    return has_model(result) and "p" in result.system.error_variables


def _partner(result: Result, i: int) -> int:
    """What a state is drawn against: its own rate or momentum, or the next state."""
    known = result.facts.coordinates
    if len(known) < 2:
        raise InputError("the model has but one state: there is nothing to draw it against")
    own = [known.index(f"{letter}_{known[i]}") for letter in "vp" if f"{letter}_{known[i]}" in known]
    return own[0] if own else (i + 1) % len(known)


def _moving(result: Result) -> np.ndarray:
    return np.asarray(getattr(result, motion(result) or "q"))


def _label(result: Result, i: int) -> str:
    """Units are known of coordinates, not of states: ``x`` may be a concentration."""
    name = result.facts.coordinates[i]
    return names.label(name) if motion(result) == "q" else names.symbol(name)


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
    """All that change if they are few; else some points; else some that move."""
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
    """The coordinate that moves most; of several, one of a point."""
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
