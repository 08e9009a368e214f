"""Plots of study results: fits, Lyapunov exponents, eigenvalues and uncertainty bands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from livens.errors import InputError
from livens.plot.style import COLUMN, GREY, PALETTE, house_style, legend, new_figure, save

if TYPE_CHECKING:
    from livens.analysis.linearise import Linearisation
    from livens.analysis.study.fitting import ParameterFit
    from livens.analysis.study.monte_carlo import Uncertainty
    from livens.analysis.study.stability import Lyapunov

#: Maximum number of distinguishable curves in a plot.
_MAX_CURVES = 6


def _save(figure: Figure, path: str | Path | None) -> Figure:
    if path is not None:
        save(figure, path)
    return figure


@house_style()
def fit(result: ParameterFit, path: str | Path | None = None) -> Figure:
    """Plot the data with standard deviations, the fitted motion, and the residuals.

    Parameters
    ----------
    result : ParameterFit
        Result of `livens.study.fit`.
    path : str or Path, optional
        File to save to; png, pdf or svg by its suffix.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    figure = new_figure(COLUMN, 3.2)
    upper, lower = figure.subplots(2, sharex=True, height_ratios=(2, 1))
    order = np.argsort(result.t)
    t, lines = result.t[order], []
    for i in range(min(result.data.shape[1], _MAX_CURVES)):
        colour = PALETTE[i % len(PALETTE)]
        bars = dict(fmt=".", markersize=2.5, elinewidth=0.5, color=colour)
        upper.errorbar(t, result.data[order, i], result.sigma[order, i], alpha=0.6, **bars)
        label = "fit" if result.data.shape[1] == 1 else f"fit, number {i}"
        lines += upper.plot(t, result.model[order, i], color=colour, label=label)
        residual = (result.data - result.model)[order, i] / result.sigma[order, i]
        lower.plot(t, residual, ".", markersize=2.5, color=colour)
    lower.axhspan(-1, 1, color="#EEEEEE", zorder=0)
    lower.axhline(0, color=GREY, linewidth=0.5)
    upper.set_ylabel("measured")
    lower.set_ylabel(r"misfit ($\sigma$)")
    lower.set_xlabel("$t$ (s)")
    legend(upper, *lines)
    text = ", ".join(f"{name} = {value:.5g} ± {result.errors[name]:.1g}" for name, value in result.values.items())
    figure.suptitle(text[:90], x=0.01, ha="left", color=GREY)
    return _save(figure, path)


@house_style()
def exponents(result: Lyapunov, path: str | Path | None = None) -> Figure:
    """Plot the convergence of Lyapunov exponents over time.

    Parameters
    ----------
    result : Lyapunov
        Result of `livens.study.lyapunov`.
    path : str or Path, optional
        File to save to; png, pdf or svg by its suffix.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    figure = new_figure(COLUMN, 2.2)
    axes = figure.subplots()
    for i, exponent in enumerate(result.exponents):
        axes.plot(result.t, result.history[:, i], color=PALETTE[i % len(PALETTE)], label=f"{exponent:.4g}")
    axes.axhline(0, color=GREY, linewidth=0.5)
    axes.set_xlabel("$t$ (s)")
    axes.set_ylabel("mean growth (1/s)")
    legend(axes)
    return _save(figure, path)


@house_style()
def eigenvalues(result: Linearisation, path: str | Path | None = None) -> Figure:
    """Plot the eigenvalues of a linearisation in the complex plane; stable ones lie to the left.

    Parameters
    ----------
    result : Linearisation
        Result of `livens.linearise`.
    path : str or Path, optional
        File to save to; png, pdf or svg by its suffix.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.
    """
    figure = new_figure(COLUMN, 2.6)
    axes = figure.subplots()
    values = result.eigenvalues
    axes.plot(values.real, values.imag, "o", markersize=4, color=PALETTE[0])
    axes.axvline(0, color=GREY, linewidth=0.5)
    axes.axhline(0, color=GREY, linewidth=0.5)
    width = max(np.abs(values.real).max(initial=0.0), 0.05 * np.abs(values).max(initial=1.0))
    axes.set_xlim(-1.3 * width, 1.3 * width)
    axes.set_xlabel("real part (1/s)")
    axes.set_ylabel("imaginary part (1/s)")
    return _save(figure, path)


@house_style()
def band(result: Uncertainty, name: str, path: str | Path | None = None) -> Figure:
    """Plot an uncertain output over time: median, 50 % and 90 % bands, and the final histogram.

    Parameters
    ----------
    result : Uncertainty
        Result of `livens.study.uncertainty`.
    name : str
        Name of a scalar output.
    path : str or Path, optional
        File to save to; png, pdf or svg by its suffix.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Raises
    ------
    InputError
        If the output is not a scalar.
    """
    values = result.quantiles(name, (0.05, 0.25, 0.5, 0.75, 0.95))
    if values.ndim != 2:
        raise InputError(f"the output '{name}' is not a scalar: plot a scalar output")
    figure = new_figure(COLUMN, 2.3)
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(4, 1))
    left.fill_between(result.t, values[0], values[4], color=PALETTE[0], alpha=0.2, linewidth=0, label="90 %")
    left.fill_between(result.t, values[1], values[3], color=PALETTE[0], alpha=0.4, linewidth=0, label="50 %")
    left.plot(result.t, values[2], color=PALETTE[0], label="median")
    left.set_xlabel("$t$ (s)")
    left.set_ylabel(name)
    legend(left)
    right.hist(result.samples(name), bins=30, orientation="horizontal", color=PALETTE[0], alpha=0.6)
    right.set_xlabel("at the end")
    right.set_xticks([])
    return _save(figure, path)
