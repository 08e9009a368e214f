"""Many runs of one model, kept together: the member is the first axis of every array."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from livens.errors import InputError
from livens.expressions.numbers import path_of
from livens.models import html
from livens.results import ensemble_store
from livens.results.record import Summary

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True)
class Reduced:
    """An expression of the state, reduced over every state of a run: one entry for each member."""

    mean: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    #: How often its value fell between the `edges`, (member, bin): first what lay below all of them, last above.
    counts: np.ndarray | None = None
    edges: np.ndarray | None = None


class Summaries(Sequence[Summary]):
    """What was conserved by each member; made when somebody asks, as there may be a million of them."""

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

    __hash__ = None  # type: ignore[assignment]  # as a list has none


@dataclass
class Ensemble:
    """What `livens.ensemble` made. ``many.q[member, time, coordinate]`` are the states that were kept.

    A member that failed has the `status` "failed", its `reasons` entry says why, and its states are NaN from there on.
    One whose energy has exploded keeps its states, for what they are worth.
    """

    t: np.ndarray
    arrays: dict[str, np.ndarray]  # by name: (member, time, entry)
    parameters: dict[str, np.ndarray]  # (member, ...)
    reasons: dict[int, str]  # why members failed
    summary: Sequence[Summary]  # of each member
    steps: np.ndarray
    newton_iterations: np.ndarray
    facts: dict[str, Any]  # scheme, h, t0, t_end, every, coordinates, problem, width
    reduced: dict[str, Reduced] = field(default_factory=dict)
    left: int = 0  # how often a trajectory went on by itself for a while

    def __len__(self) -> int:
        return len(self.steps)

    def __getattr__(self, name: str) -> np.ndarray:
        arrays: Mapping[str, np.ndarray] = self.__dict__.get("arrays", {})
        if name in arrays:
            return arrays[name]
        raise AttributeError(f"the ensemble has no '{name}', only {', '.join(['t', *arrays])}")

    @property
    def status(self) -> list[str]:
        return ["failed" if member in self.reasons else "complete" for member in range(len(self))]

    @property
    def failures(self) -> dict[int, str]:
        """The members that failed, and why."""
        return dict(sorted(self.reasons.items()))

    def last(self, name: str) -> np.ndarray:
        """The state at the end of every member."""
        if not isinstance(name, str) or name not in self.arrays:
            raise InputError(f"the ensemble has no {name!r}, only {', '.join(self.arrays)}")
        return self.arrays[name][:, -1]

    def __repr__(self) -> str:
        scheme, h = self.facts.get("scheme"), self.facts.get("h")
        failed = f", {len(self.reasons)} failed" if self.reasons else ""
        return f"<livens ensemble of {len(self)} members, {scheme}, h = {h:g}{failed}>"

    def _repr_html_(self) -> str:
        varied = {name: values for name, values in self.parameters.items() if np.ptp(values, axis=0).any()}
        return html.listing(
            {
                "ensemble": f"{len(self)} members, {len(self.reasons)} failed",
                "problem": self.facts.get("problem"),
                "scheme": f"{self.facts.get('scheme')}, h = {self.facts.get('h'):g}",
                "time": f"{self.t[0]:g} to {self.t[-1]:g}, {len(self.t)} instants",
                "parameters that differ": ", ".join(
                    f"{name} from {values.min():.4g} to {values.max():.4g}" for name, values in varied.items()
                ),
                "states": ", ".join(f"{name} {values.shape}" for name, values in self.arrays.items()),
            }
        )

    def to_xarray(self) -> xarray.Dataset:
        """The ensemble as an xarray Dataset with the dimension ``member``.

        Beside the states it has the parameters (``parameters.g``), what was reduced (``reduced.height.mean``) and what
        was conserved (``summary.max_energy_drift``), each with one entry for every member.

        >>> import livens as lv
        >>> many = lv.ensemble(lv.problems.load("simple-pendulum"), parameters={"g": [9.0, 10.0]}, t_end=0.1, every=20)
        >>> dict(many.to_xarray()["q"].sizes)
        {'member': 2, 't': 6, 'coordinate': 2}
        """
        return ensemble_store.to_xarray(self)

    # -- on disk ------------------------------------------------------------------------------------------------------
    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write everything to one file, which is there complete or not at all.

        That is an HDF5 file, or a Zarr store if the name ends in ``.zarr``.
        """
        where = path_of("the path of an ensemble", path)
        if where.suffix == ".zarr":
            return ensemble_store.save(self, where, force=force)
        from livens.results import ensemble_file  # HDF5 takes long to import, and most ensembles are never written

        return ensemble_file.save(self, where, force=force)

    @classmethod
    def load(cls, path: str | Path) -> Ensemble:
        """Read an ensemble from its file, or from its Zarr store."""
        where = path_of("the path of an ensemble", path)
        if where.suffix == ".zarr":
            return ensemble_store.load(where)
        from livens.results import ensemble_file

        return ensemble_file.load(where)
