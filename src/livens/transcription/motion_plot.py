"""Plots of optimal motions: quantities and inputs over time with their bounds, and Pareto fronts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from livens.plot.style import COLUMN, PALETTE, escaped, house_style, legend, new_figure
from livens.transcription.nlp_blocks import INFINITE_BOUND

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from livens.transcription.motion import OptimalMotion
    from livens.transcription.pareto import ParetoFront

#: Height of a panel in inches, and number of points per step of a polynomial input.
_PANEL_HEIGHT, _POINTS_PER_STEP = 1.3, 8


@house_style()
def plot_motion(motion: OptimalMotion, quantities: Sequence[str | Callable[..., object]]) -> Figure:
    """Return the figure of `OptimalMotion.plot`: one panel per quantity, then one per input."""
    inputs = motion.transcription.problem.inputs
    names = list(quantities) or list(motion.system.coordinates)
    figure = new_figure(COLUMN, 0.5 + _PANEL_HEIGHT * (len(names) + len(inputs)))
    panels = np.atleast_1d(figure.subplots(len(names) + len(inputs), sharex=True))
    for panel, name in zip(panels, names, strict=False):
        values = motion.observe(name).reshape(len(motion.t), -1)
        for column, colour in zip(values.T, PALETTE * values.shape[1], strict=False):
            panel.plot(motion.t, column, ".-", color=colour, markersize=3)
        panel.set_ylabel(escaped(name) if isinstance(name, str) else getattr(name, "__name__", "function"))
    for panel, parameter in zip(panels[len(names) :], inputs, strict=True):
        _plot_input(panel, motion, parameter.name, parameter.lower, parameter.upper)
    panels[-1].set_xlabel("t (s)")
    figure.align_ylabels()
    return figure


@house_style()
def plot_front(front: ParetoFront) -> Figure:
    """Return the figure of `ParetoFront.plot`: the second objective over the first one."""
    figure = new_figure(COLUMN, 0.75 * COLUMN)
    axes = figure.subplots()
    axes.plot(*front.costs[:, :2].T, ".-", color=PALETTE[0])
    axes.set_xlabel(escaped(front.objectives[0]))
    axes.set_ylabel(escaped(front.objectives[1]))
    return figure


def _plot_input(panel: Axes, motion: OptimalMotion, name: str, lower: np.ndarray, upper: np.ndarray) -> None:
    """Plot an input as the polynomials of the steps, with its bounds as dashed lines."""
    theta = np.linspace(0.0, 1.0 - 1e-9, _POINTS_PER_STEP)
    times = motion.t[:-1, None] + motion.h[:, None] * theta
    values = motion.input_at(name, times.ravel()).reshape(len(motion.h), _POINTS_PER_STEP, -1)
    for i in range(values.shape[-1]):
        label = f"{name}[{i}]" if values.shape[-1] > 1 else None
        panel.plot(times.ravel(), values[:, :, i].ravel(), color=PALETTE[i % len(PALETTE)], label=label)
    for bound in {*lower.tolist(), *upper.tolist()}:
        if abs(bound) < INFINITE_BOUND:
            panel.axhline(bound, color="0.6", linewidth=0.8, linestyle="--")
    panel.set_ylabel(escaped(name))
    if values.shape[-1] > 1:
        legend(panel)
