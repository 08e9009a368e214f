"""Diagrams of studies: convergence, work-precision and comparison of schemes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from livens.analysis.energy_balance import balance, reference_scale
from livens.errors import InputError
from livens.plot import axis_labels
from livens.plot.conserved import has_constraints
from livens.plot.curves import curve
from livens.plot.style import (
    COLUMN,
    GREY,
    LEGEND_ROW,
    PAGE,
    PALETTE,
    escaped,
    house_style,
    legend,
    legend_rows,
    new_figure,
)

if TYPE_CHECKING:
    from livens.analysis.study.convergence import Convergence, Curve
    from livens.results.result import Result

_MARKERS = "osD^vPX*"
#: Maximum number of invariants in a comparison.
_MAX_INVARIANTS = 3
_SIZES = (6.0, 4.0, 3.0, 2.5)  # decreasing, so that schemes with equal errors remain visible


@house_style()
def order_diagram(study: Convergence) -> Figure:
    """Plot errors at the final time over the step size, with the fitted orders. Hollow points are at the floor."""
    labels = [f"{scheme.scheme}: {fit}" for scheme in study.curves for fit in list(scheme.fits.values())[:1]]
    figure = new_figure(COLUMN, 0.4 + (2.1 + LEGEND_ROW * legend_rows(labels)) * len(study.variables))
    panels = figure.subplots(len(study.variables), sharex=True, squeeze=False)[:, 0]
    for axes, name in zip(panels, study.variables, strict=True):
        lines = [_order_curve(axes, scheme, name, i) for i, scheme in enumerate(study.curves)]
        _order_lines(axes, study, name)
        _log_axes(axes)
        axes.set_ylabel(_error(name))
        legend(axes, *lines)
    panels[-1].set_xlabel("$h$ (s)")
    _caption(figure, _description(study))
    return figure


def _order_curve(axes: Axes, study: Curve, name: str, i: int) -> Line2D:
    fit, h, errors = study.fits[name], np.array([p.h for p in study.points]), np.array(study.errors(name))
    line = _points(axes, h, errors, np.array(fit.floor), i, connected=False)
    used = np.array(fit.used)
    if np.isfinite(fit.order):
        ends = np.array([h[used].min(), h[used].max()])
        axes.plot(ends, fit.constant * ends**fit.order, color=line.get_color(), linewidth=0.8)
    line.set_label(f"{study.scheme}: {fit}")
    return line


def _order_lines(axes: Axes, study: Convergence, name: str) -> None:
    """Draw a dashed line for every declared order next to the points."""
    for order in sorted({scheme.declared_order for scheme in study.curves}):
        points = [
            (p.h, p.errors[name])
            for scheme in study.curves
            if scheme.declared_order == order
            for p, used in zip(scheme.points, scheme.fits[name].used, strict=True)
            if used
        ]
        if not points:
            continue
        h0, e0 = max(points)
        ends = np.array([min(points)[0], h0])
        line = 3 * e0 * (ends / h0) ** order
        axes.plot(ends, line, color=GREY, linewidth=0.6, linestyle=(0, (4, 2)), zorder=1)
        middle = np.exp(np.log(ends).mean()), np.exp(np.log(line).mean())
        axes.annotate(
            f"$h^{{{order}}}$", middle, xytext=(-3, 3), textcoords="offset points", ha="right", color=GREY, fontsize=7
        )


@house_style()
def work_precision_diagram(study: Convergence, variable: str | None = None) -> Figure:
    """Plot errors over wall time and over evaluations of the equations of a step. Hollow points are at the floor.

    The default variable is q, or x of a first-order model.
    """
    variable = study.variables[0] if variable is None else variable
    if variable not in study.variables:
        raise InputError(f"the study has no errors of '{variable}'")
    figure = new_figure(PAGE, 2.6)
    left, right = figure.subplots(1, 2, sharey=True)
    lines = []
    for axes, cost_name in ((left, "wall_s"), (right, "evaluations")):
        for i, scheme in enumerate(study.curves):
            cost = np.array([getattr(point, cost_name) for point in scheme.points], dtype=float)
            errors, floor = np.array(scheme.errors(variable)), np.array(scheme.fits[variable].floor)
            line = _points(axes, cost, errors, floor, i, connected=True)
            line.set_label(scheme.scheme)
            if axes is left:
                lines.append(line)
        _log_axes(axes)
    left.set_xlabel("wall time (s)")
    right.set_xlabel("evaluations")
    left.set_ylabel(_error(variable))
    legend(left, *lines)
    _caption(figure, _description(study))
    return figure


def _points(axes: Axes, x: np.ndarray, y: np.ndarray, hollow: np.ndarray, i: int, connected: bool) -> Line2D:
    """Draw the points of one scheme, hollow at the floor; return a legend entry."""
    colour, marker, size = PALETTE[i % len(PALETTE)], _MARKERS[i % len(_MARKERS)], _SIZES[min(i, len(_SIZES) - 1)]
    visible = np.isfinite(x) & np.isfinite(y) & (y > 0)
    style: dict[str, Any] = dict(color=colour, marker=marker, markersize=size, markeredgewidth=0.8)
    if connected:
        axes.plot(x[visible], y[visible], color=colour, linewidth=0.8)
    full, at_floor = visible & ~hollow, visible & hollow
    axes.plot(x[full], y[full], linestyle="", **style)
    axes.plot(x[at_floor], y[at_floor], linestyle="", markerfacecolor="white", zorder=3, **style)
    return Line2D([], [], linewidth=0.8, **style)


def _log_axes(axes: Axes) -> None:
    """Set logarithmic axes with margins and non-overlapping labels."""
    axes.margins(0.06)
    axes.set_xscale("log")
    axes.set_yscale("log")
    low, high = axes.get_xlim()
    short = high / low < 1e3
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if short else (1.0,)))
    axes.xaxis.set_major_formatter(FuncFormatter(_power))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _power(value: float, position: int) -> str:
    exponent = int(np.floor(np.log10(value) + 1e-9))
    digit = round(value / 10.0**exponent)
    return f"$10^{{{exponent}}}$" if digit == 1 else rf"${digit}{{\cdot}}10^{{{exponent}}}$"


@house_style()
def comparison_diagram(results: Mapping[str, Result]) -> Figure:
    """Plot the change of energy and the constraint violations of several runs of a problem.

    For a model without energy the deviations of its invariants are plotted.
    """
    if not results:
        raise InputError("there is no run to draw")
    runs = list(results.values())
    curves = _compared_quantities(runs[0])
    if not curves:
        raise InputError("the model has no energy, no invariants and no constraints: there is nothing to compare")
    figure = new_figure(COLUMN, 0.6 + 1.6 * len(curves) + LEGEND_ROW * legend_rows(list(results)))
    panels = figure.subplots(len(curves), sharex=True, squeeze=False)[:, 0]
    for axes, (label, values) in zip(panels, curves.items(), strict=True):
        for i, (scheme, result) in enumerate(results.items()):
            _log_curve(axes, result.t, values(result), scheme, i)
        axes.set_ylabel(label)
    panels[-1].set_xlabel("$t$ (s)")
    legend(panels[0])
    info = runs[0].info
    _caption(figure, f"{info.problem or info.name or 'system'}, h = {info.h:g} s")
    return figure


def _compared_quantities(run: Result) -> dict[str, Callable[[Result], np.ndarray]]:
    """Return the quantities of the panels of a comparison by label."""
    curves: dict[str, Callable[[Result], np.ndarray]] = {}
    if run.summary.energy:
        curves["change of energy, relative"] = _energy_change
    else:
        for name in list(run.summary.momentum_drift)[:_MAX_INVARIANTS]:
            curves[f"{axis_labels.quantity(name)},\nrelative change"] = functools.partial(_change, name=name)
    hidden = "velocity_constraint" if "velocity_constraint" in run.system.view.observable_names else "constraint"
    if has_constraints(run):
        label = r"max $|\mathrm{d}g/\mathrm{d}t|$" if hidden == "velocity_constraint" else "max $|g|$"
        curves[label] = lambda result: np.asarray(np.abs(result.observe(hidden)).max(axis=1))
    return curves


def _energy_change(result: Result) -> np.ndarray:
    energy = balance(result)
    return np.asarray(np.abs(energy - energy[0]) / reference_scale(result)[0])


def _change(result: Result, name: str) -> np.ndarray:
    values = result.observe(name).reshape(len(result.t), -1)
    size = float(np.linalg.norm(values, axis=1).max()) or 1.0
    return np.asarray(np.linalg.norm(values - values[0], axis=1) / size)


def _error(name: str) -> str:
    return f"error in ${name}$" if len(name) == 1 else f"error in {name}"


def _log_curve(axes: Axes, t: np.ndarray, y: np.ndarray, label: str, i: int) -> None:
    """Draw a curve on a logarithmic axis, from the first step on; later curves are thinner, so that equal ones show."""
    skipped = 1 if len(t) > 1 else 0
    width, dashes = max(0.6, 1.4 - 0.3 * i), "-" if i < len(PALETTE) else "--"
    colour = PALETTE[i % len(PALETTE)]
    curve(
        axes, t[skipped:], np.maximum(y[skipped:], 1e-17), label=label, color=colour, linewidth=width, linestyle=dashes
    )
    axes.set_yscale("log")


def _description(study: Convergence) -> str:
    exact = not any(study.reference.uncertainty.values())
    return f"{study.problem}, t = {study.t_end:g} s, against {'the exact solution' if exact else 'an extrapolation'}"


def _caption(figure: Figure, text: str) -> None:
    figure.suptitle(escaped(text), x=0.01, ha="left", color=GREY)
