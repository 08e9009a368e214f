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
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from livens.errors import InputError, suggestion
from livens.plot import names, style
from livens.plot.conserved import constraints, energy, energy_increments, has_energy, momenta
from livens.plot.curves import has_model, thin
from livens.plot.mechanism import has_bars, snapshots
from livens.plot.motion import coordinates, multipliers, newton, phase_portrait
from livens.plot.paths import trajectory

if TYPE_CHECKING:
    from livens.result import Result

__all__ = [
    "PICTURES", "Plots", "check_names", "constraints", "coordinates", "energy", "energy_increments", "momenta",
    "multipliers", "newton", "phase_portrait", "save_all", "snapshots", "thin", "trajectory",
]  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A kind of picture, the variables it is made of, and the runs it makes sense for."""

    draw: Callable[[Any], Figure]
    needs: str
    sensible: Callable[[Result], bool] = lambda result: True

    def fits(self, result: Result) -> bool:
        return set(self.needs.split()) <= set(result.stored) and self.sensible(result)


#: Every kind of picture by its name.
PICTURES = {
    "energy": Kind(energy, "q v p", has_energy),
    "energy_increments": Kind(energy_increments, "q v p", lambda r: has_energy(r) and len(r.t) > 1),
    "constraints": Kind(constraints, "q v p", lambda r: has_model(r) and bool(r.facts.constraint_names)),
    "momenta": Kind(momenta, "q v p", lambda r: has_model(r) and bool(r.summary.momentum_drift)),
    "multipliers": Kind(multipliers, "multipliers", lambda r: bool(r.facts.constraint_names)),
    "coordinates": Kind(coordinates, "q"),
    "phase_portrait": Kind(phase_portrait, "q v"),
    "newton": Kind(newton, "newton_iterations step_size", lambda r: len(r.t) > 1),
    "trajectory": Kind(trajectory, "q", lambda r: bool(names.points(r.facts.coordinates))),
    "snapshots": Kind(snapshots, "q", has_bars),
}


class Plots:
    """The pictures of one run. With `path`, a picture goes to that file: png, pdf or svg by its suffix."""

    def __init__(self, result: Result) -> None:
        self._result = result

    def energy(self, path: str | Path | None = None) -> Figure:
        """Kinetic and potential energy, and the conserved one."""
        return self._drawn(energy, path)

    def energy_increments(self, path: str | Path | None = None) -> Figure:
        """Relative change of energy from step to step, with a band that marks round-off."""
        return self._drawn(energy_increments, path)

    def constraints(self, path: str | Path | None = None) -> Figure:
        """The largest violation of the constraints, of positions and of velocities."""
        return self._drawn(constraints, path)

    def momenta(self, path: str | Path | None = None) -> Figure:
        """How far momenta are from their initial values."""
        return self._drawn(momenta, path)

    def multipliers(self, path: str | Path | None = None) -> Figure:
        """The Lagrange multipliers, at most the eight largest."""
        return self._drawn(multipliers, path)

    def coordinates(self, chosen: str | Sequence[str] | None = None, path: str | Path | None = None) -> Figure:
        """The chosen coordinates against time; without a choice all of them, or eight of many."""
        return self._drawn(coordinates, path, chosen)

    def phase_portrait(self, coordinate: str | None = None, path: str | Path | None = None) -> Figure:
        """A coordinate against its velocity; without a name, the coordinate that moves most."""
        return self._drawn(phase_portrait, path, coordinate)

    def newton(self, path: str | Path | None = None) -> Figure:
        """Newton corrections and step sizes."""
        return self._drawn(newton, path)

    def trajectory(self, path: str | Path | None = None) -> Figure:
        """The paths of points in the plane or in space."""
        return self._drawn(trajectory, path)

    def snapshots(self, times: Sequence[float] | None = None, path: str | Path | None = None) -> Figure:
        """A mechanism of bars at several instants."""
        return self._drawn(snapshots, path, times)

    def _drawn(self, draw: Callable[..., Figure], path: str | Path | None, *options: Any) -> Figure:
        with style.windows(path is None):
            figure = draw(self._result, *options)
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
