"""Plots of conserved quantities: energy, energy balance, constraints and momenta."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from livens.analysis.conservation import conserved_by_scheme
from livens.analysis.energy_balance import balance as balance_of
from livens.analysis.energy_balance import has_energy_record, net_supplied_energy, reference_scale
from livens.analysis.observables import expression
from livens.errors import InputError
from livens.plot import axis_labels
from livens.plot.curves import curve, has_model, log_curves, require_steps, round_off, time_axis
from livens.plot.style import COLUMN, PALETTE, caption, house_style, legend, new_figure

if TYPE_CHECKING:
    from livens.results.result import Result


@house_style()
def energy(result: Result) -> Figure:
    """Plot the monitored energy, and kinetic and potential energy if the model has them.

    With non-conservative forces the energy balance (energy minus net supplied energy) is plotted too.

    Parameters
    ----------
    result : Result
        Run to plot.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    name = _monitored_energy(result)
    figure = new_figure(COLUMN, 2.5)
    axes = figure.add_subplot()
    for i, (part, dashes) in enumerate({"kinetic": "-", "potential": "--"}.items()):
        if f"{part}_energy" in result.system.view.observable_names:
            y = result.observe(f"{part}_energy")
            curve(axes, result.t, y, label=part, color=PALETTE[i], linestyle=dashes)
    curve(axes, result.t, result.observe(name), label=axis_labels.quantity(name), color=PALETTE[6], linewidth=1.4)
    if np.any(net_supplied_energy(result)):
        curve(axes, result.t, balance_of(result), label="balance", color=PALETTE[2], dashes=(4, 1.5))
    axes.set_ylabel("energy (J)")
    time_axis(axes, result)
    legend(axes)
    caption(figure, result)
    return figure


@house_style()
def balance(result: Result) -> Figure:
    """Plot stored, supplied and dissipated energy since the initial time; below, the defect of the energy balance.

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
        If the run records no supplied or dissipated energy.
    """
    name = _monitored_energy(result)
    if result.system.conservative or "supplied_energy" not in result.system.layout:
        raise InputError("the run records no supplied or dissipated energy: there is nothing to draw")
    stored, reference = result.observe(name), reference_scale(result)
    figure = new_figure(COLUMN, 3.6)
    upper, lower = figure.subplots(2, sharex=True, height_ratios=[3, 2])
    # wide and light: without losses the stored energy equals the supplied energy and lies below it
    curve(upper, result.t, stored - stored[0], label="stored", color=PALETTE[6], linewidth=3.0, alpha=0.35)
    curve(upper, result.t, result.supplied_energy, label="supplied", color=PALETTE[0])
    curve(upper, result.t, result.dissipated_energy, label="dissipated", color=PALETTE[1], linestyle="--")
    upper.set_ylabel("energy since the start (J)")
    legend(upper)
    defect = np.abs(stored - stored[0] - net_supplied_energy(result)) / reference[0]
    rounding = round_off(result, name) / reference[0]
    band = log_curves(lower, result.t, {"defect": defect}, rounding, _random_walk_bound(result, rounding))
    lower.set_ylabel(f"defect $/\\; {reference[1]}$")
    legend(lower, band)
    time_axis(lower, result)
    figure.align_ylabels()
    caption(figure, result)
    return figure


@house_style()
def energy_increments(result: Result) -> Figure:
    """Plot the relative change of energy per step; zeros lie at the bottom, the band marks round-off.

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
    name = _monitored_energy(result)
    size, symbol = reference_scale(result)
    figure = new_figure(COLUMN, 2.4)
    axes = figure.add_subplot()
    increments = np.abs(np.diff(balance_of(result))) / size
    band = log_curves(axes, result.t[1:], {"increment": increments}, round_off(result, name) / size)
    axes.set_ylabel(f"$|E_{{n+1}} - E_n|\\; /\\; {symbol}$")
    time_axis(axes, result)
    legend(axes, band)
    stride = result.info.every
    caption(figure, result, f"every {stride} steps" if stride > 1 else "")
    return figure


@house_style()
def constraints(result: Result) -> Figure:
    """Plot the largest constraint violation on position level and, if defined, on velocity level.

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
    if not has_constraints(result):
        raise InputError("the system has no constraints: there is nothing to draw")
    labels = {"constraint": "max $|g|$" if result.info.algebraic else "max $|g(q)|$"}
    if "velocity_constraint" in result.system.view.observable_names:
        labels["velocity_constraint"] = r"max $|\mathrm{d}g/\mathrm{d}t|$"
    figure = new_figure(COLUMN, 0.6 + 1.4 * len(labels))
    panels = figure.subplots(len(labels), sharex=True, squeeze=False)[:, 0]
    rounding = round_off(result, "constraint")
    # if only position constraints are enforced, their round-off divided by h appears in the velocities
    velocities_guaranteed = "velocity_constraint" in conserved_by_scheme(result)
    for axes, (name, label) in zip(panels, labels.items(), strict=True):
        worst = np.abs(result.observe(name)).max(axis=1)
        propagated = 0.0 if velocities_guaranteed or name == "constraint" else rounding / result.info.h
        band = log_curves(axes, result.t, {label: worst}, round_off(result, name), propagated)
        axes.set_ylabel(label)
    time_axis(panels[-1], result)
    legend(panels[0], band)
    caption(figure, result)
    return figure


@house_style()
def momenta(result: Result) -> Figure:
    """Plot the deviation of momenta and other invariants from their initial values, relative to their size.

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
        If the system has no invariants.
    """
    symmetries = list(result.summary.momentum_drift)
    if not symmetries:
        raise InputError("the system has no symmetries or invariants: there is nothing to draw")
    curves, rounding = {}, 0.0
    for name in symmetries:
        momentum = result.observe(name).reshape(len(result.t), -1)
        size = float(np.linalg.norm(momentum, axis=1).max()) or 1.0
        curves[axis_labels.quantity(name)] = np.linalg.norm(momentum - momentum[0], axis=1) / size
        rounding = max(rounding, round_off(result, name) / size)
    figure = new_figure(COLUMN, 2.4)
    axes = figure.add_subplot()
    band = log_curves(axes, result.t, curves, rounding, _random_walk_bound(result, rounding))
    axes.set_ylabel("change since the start, relative")
    time_axis(axes, result)
    legend(axes, *axes.get_lines(), band)
    caption(figure, result)
    return figure


def has_energy(result: Result) -> bool:
    """Return True if the run stores everything needed for its energy."""
    return has_model(result) and bool(result.summary.energy) and has_energy_record(result)


def has_exchange(result: Result) -> bool:
    """Return True if the run records supplied and dissipated energy."""
    return has_energy(result) and not result.system.conservative and "supplied_energy" in result.stored


def has_constraints(result: Result) -> bool:
    """Return True if the model has constraints."""
    return "constraint" in result.system.view.observable_names and bool(expression(result.system, "constraint").numel())


def _monitored_energy(result: Result) -> str:
    if not result.summary.energy:
        raise InputError("the model has no energy: there is nothing to draw")
    return result.summary.energy


def _random_walk_bound(result: Result, rounding: float) -> float:
    """Return the random-walk bound of accumulated round-off."""
    return float(rounding * np.sqrt(max(result.statistics.steps, 100) / 100))
