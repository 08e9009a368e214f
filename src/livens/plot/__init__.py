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

from livens.analysis.step_sizes import differ
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
from livens.plot.findings import band, eigenvalues, exponents, fit
from livens.plot.mechanism import has_mechanism, snapshots
from livens.plot.motion import (
    algebraic,
    coordinates,
    forces,
    has_forces,
    has_plane,
    motion,
    multipliers,
    phase_portrait,
)
from livens.plot.paths import has_paths, trajectory
from livens.plot.within import within
from livens.plot.work import newton, step_sizes
from livens.results.result import Result

__all__ = [
    "PICTURES",
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
class Kind:
    """Plot type: drawing function, required variables, and the runs to which it applies.

    Among the required variables, "state" stands for all state variables of the model.
    """

    draw: Callable[[Any], Figure]
    needs: str
    sensible: Callable[[Result], bool] = lambda result: True

    def fits(self, result: Result) -> bool:
        needs = set(self.needs.split())
        if "state" in needs:
            if not has_model(result):
                return False
            needs = needs - {"state"} | set(result.system.view.symbols)
        return needs <= set(result.stored) and self.sensible(result)


#: Plot types by name.
PICTURES = {
    "energy": Kind(energy, "state", has_energy),
    "balance": Kind(balance, "state", has_exchange),
    "energy_increments": Kind(energy_increments, "state", lambda r: has_energy(r) and len(r.t) > 1),
    "constraints": Kind(constraints, "state", has_constraints),
    "momenta": Kind(momenta, "state", lambda r: bool(r.summary.momentum_drift)),
    "forces": Kind(forces, "multipliers", has_forces),
    "multipliers": Kind(multipliers, "multipliers", lambda r: bool(r.facts.constraint_names) and not has_forces(r)),
    "algebraic": Kind(algebraic, "y"),
    "coordinates": Kind(coordinates, "", lambda r: bool(motion(r))),
    "phase_portrait": Kind(phase_portrait, "", has_plane),
    "newton": Kind(newton, "newton_iterations step_size", lambda r: bool(r.newton_iterations.any())),
    "step_sizes": Kind(step_sizes, "step_size", lambda r: differ(r) and len(r.t) > 1),
    "trajectory": Kind(trajectory, "", has_paths),
    "snapshots": Kind(snapshots, "q", has_mechanism),
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
        return self._drawn(energy, path, ax)

    def balance(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
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
        return self._drawn(balance, path, ax)

    def energy_increments(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
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
        return self._drawn(energy_increments, path, ax)

    def constraints(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
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
        return self._drawn(constraints, path, ax)

    def momenta(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
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
        return self._drawn(momenta, path, ax)

    def forces(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
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
        return self._drawn(forces, path, ax)

    def multipliers(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
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
        return self._drawn(multipliers, path, ax)

    def coordinates(
        self, chosen: str | Sequence[str] | None = None, path: str | Path | None = None, *, ax: Any = None
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
        return self._drawn(coordinates, path, ax, chosen)

    def algebraic(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
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
        return self._drawn(algebraic, path, ax)

    def phase_portrait(
        self,
        coordinate: str | None = None,
        path: str | Path | None = None,
        against: str | None = None,
        *,
        ax: Any = None,
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
        return self._drawn(phase_portrait, path, ax, coordinate, against)

    def newton(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
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
        return self._drawn(newton, path, ax)

    def step_sizes(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
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
        return self._drawn(step_sizes, path, ax)

    def trajectory(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
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
        return self._drawn(trajectory, path, ax)

    def snapshots(
        self, times: Sequence[float] | None = None, path: str | Path | None = None, *, ax: Any = None
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
        return self._drawn(snapshots, path, ax, times)

    def _drawn(self, draw: Callable[..., Figure], path: str | Path | None, ax: Any, *options: Any) -> Figure:
        with style.windows(path is None), within(ax):
            figure = draw(self._result, *options)
        if ax is not None:
            figure = ax.get_figure()
        if path is not None:
            style.save(figure, path)
        return figure


def check_names(what: str | Sequence[str]) -> list[str]:
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
    listed = what.split(",") if isinstance(what, str) else what
    checked = [name.strip().replace("-", "_") for name in listed]
    for name in checked:
        if name not in PICTURES:
            raise InputError(f"unknown plot '{name}'{suggestion(name, PICTURES)}")
    return checked


def save_all(
    result: Result, folder: str | Path, what: str | Sequence[str] | None = None, suffix: str = "png"
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
    chosen = check_names(what) if what is not None else [name for name, kind in PICTURES.items() if kind.fits(result)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot create the folder '{folder}': {error.strerror}") from None
    stem = result.path.stem if result.path is not None else result.facts.problem or "run"
    return [
        style.save(PICTURES[name].draw(result), folder / f"{stem}-{name.replace('_', '-')}.{suffix}") for name in chosen
    ]


Result.attach("plot", property(Plots))
