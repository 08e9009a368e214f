"""Pictures of a run, ready for a paper.

Every function takes a Result and returns a matplotlib Figure; ``result.plot.energy()`` is the same as
``livens.plot.energy(result)``, and opens a window at ``plt.show()`` where there is a screen. With ``path="energy.pdf"``
the picture goes to a file instead (png, pdf or svg).

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
    """A kind of picture, the variables it is made of, and the runs it makes sense for.

    Among the variables, "state" stands for all that observables of the model are made of.
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


#: Every kind of picture by its name.
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
    """The pictures of one run. With `path`, a picture goes to that file: png, pdf or svg by its suffix.

    With `ax`, it is drawn into axes of yours; several panels, and those in space, then stand within these axes.
    """

    def __init__(self, result: Result) -> None:
        self._result = result

    def energy(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """Kinetic and potential energy, and the conserved one."""
        return self._drawn(energy, path, ax)

    def balance(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """Energy stored, supplied and dissipated since the start, and by how much they disagree."""
        return self._drawn(balance, path, ax)

    def energy_increments(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """Relative change of energy from step to step, with a band that marks round-off."""
        return self._drawn(energy_increments, path, ax)

    def constraints(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """The largest violation of the constraints, of positions and of velocities."""
        return self._drawn(constraints, path, ax)

    def momenta(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """How far momenta and other invariants are from their initial values."""
        return self._drawn(momenta, path, ax)

    def forces(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """The forces of joints in newtons, at most the eight largest."""
        return self._drawn(forces, path, ax)

    def multipliers(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """The Lagrange multipliers, at most the eight largest."""
        return self._drawn(multipliers, path, ax)

    def coordinates(
        self, chosen: str | Sequence[str] | None = None, path: str | Path | None = None, *, ax: Any = None
    ) -> Figure:
        """The chosen coordinates or states against time; without a choice all of them, or eight of many."""
        return self._drawn(coordinates, path, ax, chosen)

    def algebraic(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """The algebraic variables of a model of first order, at most the eight largest."""
        return self._drawn(algebraic, path, ax)

    def phase_portrait(
        self,
        coordinate: str | None = None,
        path: str | Path | None = None,
        against: str | None = None,
        *,
        ax: Any = None,
    ) -> Figure:
        """A coordinate against its velocity or momentum, a state against another one."""
        return self._drawn(phase_portrait, path, ax, coordinate, against)

    def newton(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """Newton corrections and step sizes."""
        return self._drawn(newton, path, ax)

    def step_sizes(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """The sizes of steps that differ, on a logarithmic axis."""
        return self._drawn(step_sizes, path, ax)

    def trajectory(self, path: str | Path | None = None, *, ax: Any = None) -> Figure:
        """The paths of points in the plane or in space; of three states, the orbit."""
        return self._drawn(trajectory, path, ax)

    def snapshots(
        self, times: Sequence[float] | None = None, path: str | Path | None = None, *, ax: Any = None
    ) -> Figure:
        """The mechanism at several instants, as its scene says."""
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
    """Names of pictures as they stand in `PICTURES`, from a list or with commas; a dash is as good as an underscore."""
    listed = what.split(",") if isinstance(what, str) else what
    checked = [name.strip().replace("-", "_") for name in listed]
    for name in checked:
        if name not in PICTURES:
            raise InputError(f"there is no picture '{name}'{suggestion(name, PICTURES)}")
    return checked


def save_all(
    result: Result, folder: str | Path, what: str | Sequence[str] | None = None, suffix: str = "png"
) -> list[Path]:
    """Draw what makes sense for the run, or what is asked for, and return the files written.

    `what` is a list of names, or names with commas (``"energy,constraints"``). The folder is made if need be.
    Files are called after the result file, or else after the problem: ``double-four-bar-energy.png``.
    """
    folder, suffix = Path(folder), suffix.removeprefix(".")
    style.check_suffix(suffix)
    chosen = check_names(what) if what is not None else [name for name, kind in PICTURES.items() if kind.fits(result)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder '{folder}': {error.strerror}") from None
    stem = result.path.stem if result.path is not None else result.facts.problem or "run"
    return [
        style.save(PICTURES[name].draw(result), folder / f"{stem}-{name.replace('_', '-')}.{suffix}") for name in chosen
    ]


Result.attach("plot", property(Plots))
