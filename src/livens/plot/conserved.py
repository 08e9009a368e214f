"""Pictures of what a run conserves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from livens import schemes
from livens.errors import InputError
from livens.plot import names
from livens.plot.curves import curve, has_model, log_curves, need_steps, round_off, time_axis
from livens.plot.style import COLUMN, PALETTE, caption, house_style, legend, new_figure

if TYPE_CHECKING:
    from livens.result import Result


@house_style()
def energy(result: Result) -> Figure:
    """Kinetic and potential energy, and the energy the scheme watches over.

    With forces, its balance too: the energy without what came in and with what was lost.
    """
    name = result.summary.energy
    watched = result.observe(name)
    figure = new_figure(COLUMN, 2.5)
    axes = figure.add_subplot()
    curve(axes, result.t, result.observe("kinetic_energy"), label="kinetic", color=PALETTE[0])
    curve(axes, result.t, result.observe("potential_energy"), label="potential", color=PALETTE[1], linestyle="--")
    curve(axes, result.t, watched, label=names.quantity(name), color=PALETTE[6], linewidth=1.4)
    if np.any(_exchanged(result)):
        curve(axes, result.t, _balance(result), label="balance", color=PALETTE[2], dashes=(4, 1.5))
    axes.set_ylabel("energy (J)")
    time_axis(axes, result)
    legend(axes)
    caption(figure, result)
    return figure


@house_style()
def energy_increments(result: Result) -> Figure:
    """Relative change of energy from step to step; zeros lie at the bottom, the band is round-off."""
    need_steps(result)
    balance = _balance(result)
    scale, words = _energy_scale(result)
    figure = new_figure(COLUMN, 2.4)
    axes = figure.add_subplot()
    band = log_curves(
        axes,
        result.t[1:],
        {"increment": np.abs(np.diff(balance)) / scale},
        round_off(result, result.summary.energy) / scale,
    )
    axes.set_ylabel(f"$|E_{{n+1}} - E_n|\\; /\\; {words}$")
    time_axis(axes, result)
    legend(axes, band)
    every = result.facts.every
    caption(figure, result, f"every {every} steps" if every > 1 else "")
    return figure


@house_style()
def constraints(result: Result) -> Figure:
    """The largest violation of the constraints: of the positions above, of the velocities below."""
    if not result.facts.constraint_names:
        raise InputError("the system has no constraints: there is nothing to draw")
    figure = new_figure(COLUMN, 3.4)
    upper, lower = figure.subplots(2, sharex=True)
    rounding = round_off(result, "constraint")
    # where only positions are held, their roundings are roundings over h of the velocities
    held = any(s.name == result.facts.scheme and "velocity_constraint" in s.conserves for s in schemes.all())
    for axes, name, label, passed_on in (
        (upper, "constraint", "max $|g(q)|$", 0.0),
        (lower, "velocity_constraint", r"max $|\mathrm{d}g/\mathrm{d}t|$", 0.0 if held else rounding / result.facts.h),
    ):
        worst = np.abs(result.observe(name)).max(axis=1)
        band = log_curves(axes, result.t, {label: worst}, round_off(result, name), passed_on)
        axes.set_ylabel(label)
    time_axis(lower, result)
    legend(upper, band)
    caption(figure, result)
    return figure


@house_style()
def momenta(result: Result) -> Figure:
    """How far the momenta of the system's symmetries are from their initial values, relative to their size."""
    symmetries = list(result.summary.momentum_drift)
    if not symmetries:
        raise InputError("the system has no symmetry, so no momentum is conserved: there is nothing to draw")
    curves, rounding = {}, 0.0
    for name in symmetries:
        momentum = result.observe(name).reshape(len(result.t), -1)
        size = float(np.linalg.norm(momentum, axis=1).max()) or 1.0
        curves[names.quantity(name)] = np.linalg.norm(momentum - momentum[0], axis=1) / size
        rounding = max(rounding, round_off(result, name) / size)
    figure = new_figure(COLUMN, 2.4)
    axes = figure.add_subplot()
    # roundings add up like a random walk
    walk = rounding * np.sqrt(max(result.statistics.steps, 100) / 100)
    band = log_curves(axes, result.t, curves, rounding, walk)
    axes.set_ylabel("change since the start, relative")
    time_axis(axes, result)
    legend(axes, *axes.get_lines(), band)
    caption(figure, result)
    return figure


def has_energy(result: Result) -> bool:
    """Whether the run says enough about its energy."""
    recorded = {"supplied_energy", "dissipated_energy"} <= set(result.stored)
    return has_model(result) and (recorded or result.system.conservative)


def _balance(result: Result) -> np.ndarray:
    """Energy that came in or went out through forces and dissipation is not drift."""
    return np.asarray(result.observe(result.summary.energy) - _exchanged(result))


def _exchanged(result: Result) -> np.ndarray:
    """What came in less what went out; nothing does in a conservative system, whether that was stored or not."""
    if result.system.conservative:
        return np.zeros(len(result.t))
    return np.asarray(result.supplied_energy - result.dissipated_energy)


def _energy_scale(result: Result) -> tuple[float, str]:
    """Relative to the initial energy, or to the largest kinetic energy where that is nearly zero."""
    start = abs(float(result.observe(result.summary.energy)[0]))
    kinetic = float(np.abs(result.observe("kinetic_energy")).max())
    if start > 1e-3 * kinetic:
        return start, "|E_0|"
    return kinetic or 1.0, r"\max T"
