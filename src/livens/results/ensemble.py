"""Many runs of one model, kept together: the member is the first axis of every array."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import h5py
import numpy as np

from livens.errors import InputError
from livens.models import html
from livens.results import ensemble_store
from livens.results.ensemble_store import REDUCED, SUMMARY
from livens.results.record import Summary

if TYPE_CHECKING:
    import xarray

FORMAT = "livens-ensemble-1"


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
        path = Path(path)
        if path.exists() and not force:
            raise InputError(f"the file '{path}' exists already: choose another name, or replace it with force=True")
        if path.suffix == ".zarr":
            return ensemble_store.save(self, path, force=force)
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        try:
            with h5py.File(part, "w") as file:
                self._write(file)
            part.replace(path)
        except OSError as error:
            raise InputError(f"cannot write the ensemble '{path}': {error}") from None
        finally:
            part.unlink(missing_ok=True)
        return path

    def _write(self, file: h5py.File) -> None:
        file.attrs["format"] = FORMAT
        told = {"facts": self.facts, "reasons": self.reasons, "left": self.left}
        self._write_summary(file)
        file.create_dataset("record", data=np.frombuffer(json.dumps(told).encode(), dtype=np.uint8))
        for name in ("t", "steps", "newton_iterations"):
            file[name] = getattr(self, name)
        for name, values in self.arrays.items():
            file[f"states/{name}"] = values
        for name, values in self.parameters.items():
            file[f"parameters/{name}"] = values
        for name, reduced in self.reduced.items():
            for kind in REDUCED:
                if getattr(reduced, kind) is not None:
                    file[f"reduced/{name}/{kind}"] = getattr(reduced, kind)

    def _write_summary(self, file: h5py.File) -> None:
        """One column for each number; -1 where a momentum is not conserved by a member."""
        summaries = list(self.summary)
        file.create_group("summary").attrs["energy"] = summaries[0].energy if summaries else ""
        for name in SUMMARY:
            file[f"summary/{name}"] = np.array([getattr(one, name) for one in summaries])
        momenta = dict.fromkeys(name for one in summaries for name in one.momentum_drift)
        for i, name in enumerate(momenta):
            column = file.create_dataset(
                f"summary/momentum_drift/{i}", data=np.array([one.momentum_drift.get(name, -1.0) for one in summaries])
            )
            column.attrs["name"] = name

    @classmethod
    def load(cls, path: str | Path) -> Ensemble:
        """Read an ensemble from its file, or from its Zarr store."""
        try:
            if Path(path).is_dir():
                return ensemble_store.load(Path(path))
            with h5py.File(path, "r") as file:
                if file.attrs.get("format") != FORMAT:
                    raise InputError(f"'{path}' is not the file of an ensemble")
                return cls._read(file)
        except (OSError, KeyError, ValueError) as error:
            raise InputError(f"cannot read the ensemble '{path}': {error}") from None

    @classmethod
    def _read(cls, file: h5py.File) -> Ensemble:
        told = json.loads(file["record"][()].tobytes())
        return cls(
            t=file["t"][()],
            arrays={name: data[()] for name, data in file.get("states", {}).items()},
            parameters={name: data[()] for name, data in file.get("parameters", {}).items()},
            reasons={int(member): reason for member, reason in told["reasons"].items()},
            summary=_read_summary(file, told),
            steps=file["steps"][()],
            newton_iterations=file["newton_iterations"][()],
            facts=told["facts"],
            reduced={
                name: Reduced(**{kind: group[kind][()] for kind in REDUCED if kind in group})
                for name, group in file.get("reduced", {}).items()
            },
            left=told["left"],
        )


def _read_summary(file: h5py.File, told: Mapping[str, Any]) -> Sequence[Summary]:
    if "summary" in told:  # a file of an earlier version
        return [Summary(**one) for one in told["summary"]]
    group = file["summary"]
    energy, columns = str(group.attrs["energy"]), {name: group[name][()] for name in SUMMARY}
    momenta = {str(column.attrs["name"]): column[()] for column in group.get("momentum_drift", {}).values()}

    def one(member: int) -> Summary:
        drifts = {name: float(column[member]) for name, column in momenta.items() if column[member] != -1.0}
        return Summary(
            energy, **{name: float(column[member]) for name, column in columns.items()}, momentum_drift=drifts
        )

    return Summaries(len(file["steps"]), one)
