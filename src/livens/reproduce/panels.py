"""Plot panels shared by several figures, in the house style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from livens.plot.curves import curve, log_curves, round_off, time_axis
from livens.plot.style import COLUMN, GREY, PAGE, PALETTE, caption, legend, new_figure
from livens.reproduce.measure import ROUNDOFF_FACTOR

if TYPE_CHECKING:
    from livens.results.result import Result

#: Ratio of the round-off bound of claims to that of `log_curves`, which is 100 roundings.
_BAND_FACTOR = ROUNDOFF_FACTOR / 100


def single_panel() -> tuple[Figure, Axes]:
    """Return a figure of column width with one panel."""
    figure = new_figure(COLUMN, 2.5)
    return figure, figure.add_subplot()


def two_panels(height: float = 2.6) -> tuple[Figure, Axes, Axes]:
    """Return a figure with two panels side by side."""
    figure = new_figure(PAGE, height)
    left, right = figure.subplots(1, 2)
    return figure, left, right


def with_caption(figure: Figure, result: Result, note: str = "") -> Figure:
    """Return the figure with a caption that describes its run."""
    caption(figure, result, note)
    return figure


def energies(axes: Axes, result: Result, conserved: str = "generalized_energy", label: str = "$E$") -> None:
    """Plot kinetic, potential and conserved energy."""
    curve(axes, result.t, result.observe("kinetic_energy"), label="$T$", color=PALETTE[0])
    curve(axes, result.t, result.observe("potential_energy"), label="$V$", color=PALETTE[1], linestyle="--")
    curve(axes, result.t, result.observe(conserved), label=label, color=PALETTE[6], linewidth=1.4)
    axes.set_ylabel("energy (J)")
    time_axis(axes, result)
    legend(axes)


def increments(axes: Axes, result: Result, name: str, label: str, *, components: Sequence[str] = ()) -> None:
    """Plot changes of an observable per step on a logarithmic axis, with a round-off band."""
    changes = np.abs(result.observe(name, increments=True))
    labels = components or [label]
    curves = dict(zip(labels, changes.reshape(len(changes), -1).T, strict=True))
    logarithmic(axes, result, curves, round_off(result, name), label, t=result.t[1:], named=bool(components))


def violations(axes: Axes, result: Result, name: str, groups: Mapping[str, Sequence[int]], label: str) -> None:
    """Plot the largest constraint violation of each group, at position or velocity level."""
    values = np.abs(result.observe(name))
    curves = {group_label: values[:, list(columns)].max(axis=1) for group_label, columns in groups.items()}
    logarithmic(axes, result, curves, round_off(result, name), label, named=len(groups) > 1)


def logarithmic(
    axes: Axes,
    result: Result,
    curves: dict[str, np.ndarray],
    rounding: float,
    label: str,
    *,
    t: np.ndarray | None = None,
    named: bool = True,
) -> None:
    """Plot curves on a logarithmic axis, with a band up to the round-off bound of the claims."""
    band = log_curves(axes, result.t if t is None else t, curves, rounding, _BAND_FACTOR * rounding)
    axes.set_ylabel(label)
    time_axis(axes, result)
    legend(axes, *(axes.get_lines() if named else ()), band)


def orders(axes: Axes, h: Sequence[float], errors: Mapping[str, Sequence[float]], expected: int, label: str) -> None:
    """Plot errors against the step size, with a line of the expected order."""
    for i, (name, values) in enumerate(errors.items()):
        style: dict[str, object] = dict(marker="osD^vP"[i], markersize=(6, 4, 4, 4, 4, 4)[i], linewidth=0.8)
        axes.loglog(h, values, color=PALETTE[i], label=name, **style)
    lowest = min(min(values) for values in errors.values())
    line = 0.4 * lowest * (np.array([min(h), max(h)]) / min(h)) ** expected
    axes.loglog([min(h), max(h)], line, color=GREY, linewidth=0.6, linestyle=(0, (4, 2)), label=f"$h^{expected}$")
    axes.margins(0.05)
    step_axis(axes)
    axes.set_ylabel(label)
    legend(axes)


def step_axis(axes: Axes) -> None:
    """Format a logarithmic step-size axis with labels that do not overlap."""
    axes.set_xlabel("$h$ (s)")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0e}".replace("e-0", "e-")))
    axes.xaxis.set_minor_formatter(NullFormatter())
