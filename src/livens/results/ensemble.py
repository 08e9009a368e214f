"""Results of an ensemble run: the member is the first axis of every array."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from livens.errors import InputError
from livens.results.record import Summary
from livens.results.storage import ensemble_zarr
from livens.scene import html
from livens.validation import check_path

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True)
class Reduced:
    """Statistics of an expression over all states of a run, with one entry per member."""

    mean: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    #: Histogram counts (member, bin) with respect to `edges`; the first and last bin count values outside.
    counts: np.ndarray | None = None
    edges: np.ndarray | None = None


class Summaries(Sequence[Summary]):
    """Lazy sequence of the conservation summaries of all members, computed on access."""

    def __init__(self, count: int, make: Callable[[int], Summary]) -> None:
        self._count, self._make = count, make

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, member: int) -> Summary: ...
    @overload
    def __getitem__(self, member: slice) -> list[Summary]: ...
    def __getitem__(self, member: Any) -> Any:
        if isinstance(member, slice):
            return [self[i] for i in range(*member.indices(self._count))]
        number = operator.index(member)
        if not -self._count <= number < self._count:
            raise IndexError(f"there are {self._count} members, no member {number}")
        return self._make(number % self._count)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # unhashable, like a list


@dataclass
class Ensemble:
    """Result of `livens.ensemble`: trajectories of all members, ``ensemble.q[member, time, coordinate]``.

    A member that failed has the `status` "failed", a message in `reasons`, and states that are NaN from the failure on.
    A member whose energy blows up has failed too, but its states are kept.

    Parameters
    ----------
    t : numpy.ndarray of shape (n_times,)
        Output times, in seconds.
    arrays : dict of str to numpy.ndarray
        Stored variables by name, of shape (n_members, n_times, n_entries). They are also attributes.
    parameters : dict of str to numpy.ndarray
        Parameters by name; the first axis is the member.
    reasons : dict of int to str
        Messages of failed members.
    summary : sequence of Summary
        Conservation summary of each member.
    steps : numpy.ndarray of shape (n_members,)
        Number of steps.
    newton_iterations : numpy.ndarray of shape (n_members,)
        Number of Newton iterations.
    info : dict
        Metadata: scheme, h, t0, t_end, every, coordinates, problem, width, tier, tier_reason.
    reduced : dict of str to Reduced, optional
        Statistics of expressions over the time of every member.
    n_scalar_fallbacks : int, default 0
        Number of times a trajectory was continued by the scalar stepper, or of steps that the tree tier left to the
        assembled tier.
    """

    t: np.ndarray
    arrays: dict[str, np.ndarray]  # by name: (member, time, entry)
    parameters: dict[str, np.ndarray]  # (member, ...)
    reasons: dict[int, str]  # messages of failed members
    summary: Sequence[Summary]  # of each member
    steps: np.ndarray
    newton_iterations: np.ndarray
    info: dict[str, Any]  # as documented above
    reduced: dict[str, Reduced] = field(default_factory=dict)
    n_scalar_fallbacks: int = 0  # number of continuations by the scalar stepper

    def __len__(self) -> int:
        return len(self.steps)

    def __getattr__(self, name: str) -> np.ndarray:
        arrays: Mapping[str, np.ndarray] = self.__dict__.get("arrays", {})
        if name in arrays:
            return arrays[name]
        raise AttributeError(f"the ensemble has no '{name}', only {', '.join(['t', *arrays])}")

    @property
    def status(self) -> list[str]:
        """Status of each member: "complete" or "failed".

        Returns
        -------
        list of str
            One entry per member.
        """
        return ["failed" if member in self.reasons else "complete" for member in range(len(self))]

    @property
    def failures(self) -> dict[int, str]:
        """Failed members with their messages.

        Returns
        -------
        dict of int to str
            Member index to message, sorted by member.
        """
        return dict(sorted(self.reasons.items()))

    def last(self, name: str) -> np.ndarray:
        """Return the last stored state of every member.

        Parameters
        ----------
        name : str
            Name of a stored variable, such as "q".

        Returns
        -------
        numpy.ndarray of shape (n_members, n_entries)
            The variable at the last output time.

        Raises
        ------
        InputError
            If the variable was not stored.
        """
        if not isinstance(name, str) or name not in self.arrays:
            raise InputError(f"the ensemble has no {name!r}, only {', '.join(self.arrays)}")
        return self.arrays[name][:, -1]

    def __repr__(self) -> str:
        scheme, h = self.info.get("scheme"), self.info.get("h")
        failed = f", {len(self.reasons)} failed" if self.reasons else ""
        return f"<livens ensemble of {len(self)} members, {scheme}, h = {h:g}{failed}>"

    def _repr_html_(self) -> str:
        varied = {name: values for name, values in self.parameters.items() if np.ptp(values, axis=0).any()}
        return html.definition_table(
            {
                "ensemble": f"{len(self)} members, {len(self.reasons)} failed",
                "problem": self.info.get("problem"),
                "scheme": f"{self.info.get('scheme')}, h = {self.info.get('h'):g}",
                "time": f"{self.t[0]:g} to {self.t[-1]:g}, {len(self.t)} instants",
                "parameters that differ": ", ".join(
                    f"{name} from {values.min():.4g} to {values.max():.4g}" for name, values in varied.items()
                ),
                "states": ", ".join(f"{name} {values.shape}" for name, values in self.arrays.items()),
            }
        )

    def to_xarray(self) -> xarray.Dataset:
        """Return the ensemble as an xarray Dataset with the dimension ``member``.

        The Dataset contains the states, the parameters (``parameters.g``), the statistics of expressions
        (``reduced.height.mean``) and the conservation summaries (``summary.max_energy_drift``).

        Returns
        -------
        xarray.Dataset
            Dataset with the dimensions ``member``, ``t`` and those of the variables.

        Examples
        --------
        >>> import livens as lv
        >>> many = lv.ensemble(lv.problems.load("simple-pendulum"), parameters={"g": [9.0, 10.0]}, t_end=0.1, every=20)
        >>> dict(many.to_xarray()["q"].sizes)
        {'member': 2, 't': 6, 'coordinate': 2}
        """
        return ensemble_zarr.to_xarray(self)

    # -- on disk ------------------------------------------------------------------------------------------------------
    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write the ensemble atomically to an HDF5 file, or to a Zarr store if the name ends in ``.zarr``.

        Parameters
        ----------
        path : str or pathlib.Path
            Name of the file or store.
        force : bool, default False
            Replace an existing ensemble.

        Returns
        -------
        pathlib.Path
            The path.

        Raises
        ------
        InputError
            If the path exists and `force` is False, or if it cannot be written.
        """
        target = check_path("the path of an ensemble", path)
        if target.suffix == ".zarr":
            return ensemble_zarr.save(self, target, force=force)
        from livens.results.storage import ensemble_hdf5  # slow import of HDF5, rarely needed

        return ensemble_hdf5.save(self, target, force=force)

    @classmethod
    def load(cls, path: str | Path) -> Ensemble:
        """Read an ensemble from its HDF5 file or Zarr store.

        Parameters
        ----------
        path : str or pathlib.Path
            Name of the file, or of the store (``.zarr``).

        Returns
        -------
        Ensemble
            The ensemble.

        Raises
        ------
        InputError
            If the file does not exist, is not an ensemble, or is damaged.
        """
        target = check_path("the path of an ensemble", path)
        if target.suffix == ".zarr":
            return ensemble_zarr.load(target)
        from livens.results.storage import ensemble_hdf5

        return ensemble_hdf5.load(target)
