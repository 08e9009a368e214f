"""Publication-ready plots of a run.

Every function takes a Result and returns a matplotlib Figure. ``result.plot.energy()`` equals
``livens.plot.energy(result)``, and opens a window at ``plt.show()`` if a display is available. With
``path="energy.pdf"`` the figure is saved to a file instead (png, pdf or svg).

>>> import livens as lv
>>> from livens import plot
>>> figure = plot.energy(lv.simulate(lv.problems.load("simple-pendulum"), t_end=1.0))
>>> figure.axes[0].get_ylabel()
'energy (J)'
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from livens.analysis.step_sizes import has_variable_steps
from livens.errors import InputError, suggestion
from livens.plot import style
from livens.plot.conserved import (
    balance,
    constraints,
    energy,
    energy_increments,
    has_constraints,
    has_energy,
    has_exchange,
    momenta,
)
from livens.plot.curves import has_model, thin
from livens.plot.mechanism import has_mechanism, snapshots
from livens.plot.motion import (
    algebraic,
    coordinates,
    forces,
    has_forces,
    has_plane,
    multipliers,
    phase_portrait,
    position_variable,
)
from livens.plot.solver import newton, step_sizes
from livens.plot.study_results import band, eigenvalues, exponents, fit
from livens.plot.trajectories import has_paths, trajectory
from livens.plot.user_axes import use_axes
from livens.results.result import Result

__all__ = [
    "PLOTS",
    "Plots",
    "algebraic",
    "balance",
    "band",
    "check_names",
    "constraints",
    "coordinates",
    "eigenvalues",
    "energy",
    "energy_increments",
    "exponents",
    "fit",
    "forces",
    "momenta",
    "multipliers",
    "newton",
    "phase_portrait",
    "save_all",
    "snapshots",
    "step_sizes",
    "thin",
    "trajectory",
]


@dataclass(frozen=True)
class PlotType:
    """Plot type: drawing function, required variables, and the runs to which it applies.

    Among the required variables, "state" stands for all state variables of the model.
    """

    draw: Callable[[Any], Figure]
    required_variables: str
    applicable: Callable[[Result], bool] = lambda result: True

    def is_applicable(self, result: Result) -> bool:
        required = set(self.required_variables.split())
        if "state" in required:
            if not has_model(result):
                return False
            required = required - {"state"} | set(result.system.view.symbols)
        return required <= set(result.stored) and self.applicable(result)


#: Plot types by name.
PLOTS = {
    "energy": PlotType(energy, "state", has_energy),
    "balance": PlotType(balance, "state", has_exchange),
    "energy_increments": PlotType(energy_increments, "state", lambda r: has_energy(r) and len(r.t) > 1),
    "constraints": PlotType(constraints, "state", has_constraints),
    "momenta": PlotType(momenta, "state", lambda r: bool(r.summary.momentum_drift)),
    "forces": PlotType(forces, "multipliers", has_forces),
    "multipliers": PlotType(multipliers, "multipliers", lambda r: bool(r.info.constraint_names) and not has_forces(r)),
    "algebraic": PlotType(algebraic, "y"),
    "coordinates": PlotType(coordinates, "", lambda r: bool(position_variable(r))),
    "phase_portrait": PlotType(phase_portrait, "", has_plane),
    "newton": PlotType(newton, "newton_iterations step_size", lambda r: bool(r.newton_iterations.any())),
    "step_sizes": PlotType(step_sizes, "step_size", lambda r: has_variable_steps(r) and len(r.t) > 1),
    "trajectory": PlotType(trajectory, "", has_paths),
    "snapshots": PlotType(snapshots, "q", has_mechanism),
}


class Plots:
    """Plots of one run, available as ``run.plot``.

    With `path`, a figure is saved to a file: png, pdf or svg by its suffix. With `ax`, it is drawn into existing axes;
    several panels, and three-dimensional axes, become insets of these axes.

    Parameters
    ----------
    result : Result
        Run to plot.
    """

    def __init__(self, result: Result) -> None:
        self._result = result

    def energy(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """Plot kinetic and potential energy, and the conserved energy.

        Parameters
        ----------
        path : str or Path, optional
            File to save to; png, pdf or svg by its suffix.
        ax : matplotlib.axes.Axes, optional
            Axes to draw into; by default a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        return self._render(energy, path, ax)

    def balance(self, path: str | Path | None = None, *, ax: object = None) -> Figure:
        """Plot stored, supplied and dissipated energy since the initial time, and the defect of the energy balance.

        Parameters
        ----------
        path : str or Path, optional
            File to save to; png, pdf or svg by its suffix.
        ax : matplotlib.axes.Axes, optional
            Axes to draw into; by default a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        return self._render(balance, path, ax)

    def energy_increments(self, path: str | Path | None = None, *, ax: object = None) -> Figure:
        """Plot the relative change of energy per step, with a band that marks round-off.

        Parameters
        ----------
        path : str or Path, optional
            File to save to; png, pdf or svg by its suffix.
        ax : matplotlib.axes.Axes, optional
            Axes to draw into; by default a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        return self._render(energy_increments, path, ax)

    def constraints(self, path: str | Path | None = None, *, ax: object = None) -> Figure:
        """Plot the largest constraint violation on position and on velocity level.

        Parameters
        ----------
        path : str or Path, optional
            File to save to; png, pdf or svg by its suffix.
        ax : matplotlib.axes.Axes, optional
            Axes to draw into; by default a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        return self._render(constraints, path, ax)

    def momenta(self, path: str | Path | None = None, *, ax: object = None) -> Figure:
        """Plot the deviation of momenta and other invariants from their initial values.

        Parameters
        ----------
        path : str or Path, optional
            File to save to; png, pdf or svg by its suffix.
        ax : matplotlib.axes.Axes, optional
            Axes to draw into; by default a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        return self._render(momenta, path, ax)

    def forces(self, path: str | Path | None = None, *, ax: object = None) -> Figure:
        """Plot the reaction forces of joints in newtons, at most the eight largest.

        Parameters
        ----------
        path : str or Path, optional
            File to save to; png, pdf or svg by its suffix.
        ax : matplotlib.axes.Axes, optional
            Axes to draw into; by default a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        return self._render(forces, path, ax)

    def multipliers(self, path: str | Path | None = None, *, ax: object = None) -> Figure:
        """Plot the Lagrange multipliers, at most the eight largest.

        Parameters
        ----------
        path : str or Path, optional
            File to save to; png, pdf or svg by its suffix.
        ax : matplotlib.axes.Axes, optional
            Axes to draw into; by default a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        return self._render(multipliers, path, ax)

    def coordinates(
        self, chosen: str | Sequence[str] | None = None, path: str | Path | None = None, *, ax: object = None
    ) -> Figure:
        """Plot coordinates or states over time; by default all, or a selection of eight.

        Parameters
        ----------
        chosen : str or sequence of str, optional
            Names of coordinates or states.
        path : str or Path, optional
            File to save to; png, pdf or svg by its suffix.
        ax : matplotlib.axes.Axes, optional
            Axes to draw into; by default a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        return self._render(coordinates, path, ax, chosen)

    def algebraic(self, path: str | Path | None = None, *, ax: object = None) -> Figure:
        """Plot the algebraic variables of a first-order model, at most the eight largest.

        Parameters
        ----------
        path : str or Path, optional
            File to save to; png, pdf or svg by its suffix.
        ax : matplotlib.axes.Axes, optional
            Axes to draw into; by default a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        return self._render(algebraic, path, ax)

    def phase_portrait(
        self,
        coordinate: str | None = None,
        path: str | Path | None = None,
        against: str | None = None,
        *,
        ax: object = None,
    ) -> Figure:
        """Plot a coordinate against its velocity or momentum, or a state against another one.

        Parameters
        ----------
        coordinate : str, optional
            Coordinate or state of the horizontal axis.
        path : str or Path, optional
            File to save to; png, pdf or svg by its suffix.
        against : str, optional
            Coordinate or state of the vertical axis.
        ax : matplotlib.axes.Axes, optional
            Axes to draw into; by default a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        return self._render(phase_portrait, path, ax, coordinate, against)

    def newton(self, path: str | Path | None = None, *, ax: object = None) -> Figure:
        """Plot Newton corrections and step sizes over time.

        Parameters
        ----------
        path : str or Path, optional
            File to save to; png, pdf or svg by its suffix.
        ax : matplotlib.axes.Axes, optional
            Axes to draw into; by default a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        return self._render(newton, path, ax)

    def step_sizes(self, path: str | Path | None = None, *, ax: object = None) -> Figure:
        """Plot variable step sizes on a logarithmic axis.

        Parameters
        ----------
        path : str or Path, optional
            File to save to; png, pdf or svg by its suffix.
        ax : matplotlib.axes.Axes, optional
            Axes to draw into; by default a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        return self._render(step_sizes, path, ax)

    def trajectory(self, path: str | Path | None = None, *, ax: object = None) -> Figure:
        """Plot the trajectories of points in the plane or in space; for three states, the orbit.

        Parameters
        ----------
        path : str or Path, optional
            File to save to; png, pdf or svg by its suffix.
        ax : matplotlib.axes.Axes, optional
            Axes to draw into; by default a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        return self._render(trajectory, path, ax)

    def snapshots(
        self, times: Sequence[float] | None = None, path: str | Path | None = None, *, ax: object = None
    ) -> Figure:
        """Plot the scene of the mechanism at several instants.

        Parameters
        ----------
        times : sequence of float, optional
            Instants; by default distributed along the motion.
        path : str or Path, optional
            File to save to; png, pdf or svg by its suffix.
        ax : matplotlib.axes.Axes, optional
            Axes to draw into; by default a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
        return self._render(snapshots, path, ax, times)

    def _render(self, draw: Callable[..., Figure], path: str | Path | None, ax: Any, *options: object) -> Figure:
        for option in options:
            if isinstance(option, (str, Path)) and Path(option).suffix[1:].lower() in style.SUFFIXES:
                raise InputError(f"'{option}' is a file, not what is plotted: save the figure with path='{option}'")
        with style.windows(path is None), use_axes(ax):
            figure = draw(self._result, *options)
        if ax is not None:
            figure = ax.get_figure()
        if path is not None:
            style.save(figure, path)
        return figure


def check_names(names: str | Sequence[str]) -> list[str]:
    """Return plot names as in `PLOTS`, from a list or a comma-separated string; a dash equals an underscore.

    Parameters
    ----------
    names : str or sequence of str
        Names of plots.

    Returns
    -------
    list of str
        Checked names.

    Raises
    ------
    InputError
        If a plot is unknown.
    """
    listed = names.split(",") if isinstance(names, str) else names
    checked = [name.strip().replace("-", "_") for name in listed]
    for name in checked:
        if name not in PLOTS:
            raise InputError(f"unknown plot '{name}'{suggestion(name, PLOTS)}")
    return checked


def save_all(
    result: Result, folder: str | Path, names: str | Sequence[str] | None = None, suffix: str = "png"
) -> list[Path]:
    """Save all applicable plots of a run, or the requested ones, and return the files written.

    Files are named after the result file, otherwise after the problem: ``double-four-bar-energy.png``.

    Parameters
    ----------
    result : Result
        Run to plot.
    folder : str or Path
        Target folder, created if necessary.
    names : str or sequence of str, optional
        Names of plots, also as a comma-separated string (``"energy,constraints"``). Default: all applicable plots.
    suffix : {"png", "pdf", "svg"}, default "png"
        File format.

    Returns
    -------
    list of Path
        Files written.

    Raises
    ------
    InputError
        If a plot or the suffix is unknown, or if a file cannot be written.
    """
    folder, suffix = Path(folder), suffix.removeprefix(".")
    style.check_suffix(suffix)
    chosen = (
        check_names(names)
        if names is not None
        else [name for name, plot_type in PLOTS.items() if plot_type.is_applicable(result)]
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot create the folder '{folder}': {error.strerror}") from None
    stem = result.path.stem if result.path is not None else result.info.problem or "run"
    return [
        style.save(PLOTS[name].draw(result), folder / f"{stem}-{name.replace('_', '-')}.{suffix}") for name in chosen
    ]


Result.attach("plot", property(Plots, doc="Plots of the run: `run.plot.energy()` and the other plot types."))
