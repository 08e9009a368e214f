"""Many runs of one model, kept together: the member is the first axis of every array."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, overload

import h5py
import numpy as np

from livens.errors import InputError
from livens.expressions.numbers import path_of
from livens.models import html
from livens.results import inspection
from livens.results.checksums import with_checksum, without_checksum
from livens.results.hdf5_reader import readable, sound
from livens.results.hdf5_writer import checksum, claim, reason
from livens.results.inspection import inspect_everything
from livens.results.record import Summary

#: Of files that are written, and of those that can be read; the first has no checksum.
FORMAT = "livens-ensemble-2"
FORMATS = ("livens-ensemble-1", FORMAT)
_SUMMARY = ("max_energy_drift", "max_energy_increment", "max_constraint", "max_velocity_constraint")
_REDUCED = ("mean", "lowest", "highest", "counts", "edges")


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

    # -- on disk ------------------------------------------------------------------------------------------------------
    def save(self, path: str | Path, *, force: bool = False) -> Path:
        """Write everything to one file, which is there complete or not at all."""
        path = path_of("the path of an ensemble", path)
        claim(path, force)
        part = path.with_name(f".{path.name}.{os.getpid()}.part")
        if os.path.lexists(part):
            raise InputError(f"cannot write the ensemble '{path}': '{part.name}' stands in its way")
        try:
            with h5py.File(part, "x") as file:  # a link that somebody puts there in the meantime is not followed
                self._write(file)
            part.replace(path)
        except (OSError, RuntimeError) as error:
            raise InputError(f"cannot write the ensemble '{path}': {reason(error)}") from None
        finally:
            part.unlink(missing_ok=True)
        return path

    def _write(self, file: h5py.File) -> None:
        file.attrs["format"] = FORMAT
        self._write_summary(file)
        for name in ("t", "steps", "newton_iterations"):
            file[name] = getattr(self, name)
        for name, values in self.arrays.items():
            file[f"states/{name}"] = values
        for name, values in self.parameters.items():
            file[f"parameters/{name}"] = values
        for name, reduced in self.reduced.items():
            for kind in _REDUCED:
                if getattr(reduced, kind) is not None:
                    file[f"reduced/{name}/{kind}"] = getattr(reduced, kind)
        told = {"facts": self.facts, "reasons": self.reasons, "left": self.left, "checksum": checksum(_arrays(file))}
        file.create_dataset("record", data=np.frombuffer(with_checksum(json.dumps(told)), dtype=np.uint8))

    def _write_summary(self, file: h5py.File) -> None:
        """One column for each number; -1 where a momentum is not conserved by a member."""
        summaries = list(self.summary)
        file.create_group("summary").attrs["energy"] = summaries[0].energy if summaries else ""
        for name in _SUMMARY:
            file[f"summary/{name}"] = np.array([getattr(one, name) for one in summaries])
        momenta = dict.fromkeys(name for one in summaries for name in one.momentum_drift)
        for i, name in enumerate(momenta):
            column = file.create_dataset(
                f"summary/momentum_drift/{i}", data=np.array([one.momentum_drift.get(name, -1.0) for one in summaries])
            )
            column.attrs["name"] = name

    @classmethod
    def load(cls, path: str | Path) -> Ensemble:
        """Read an ensemble from its file."""
        path = path_of("the path of an ensemble", path)
        with readable(path, FORMATS, "the file of an ensemble") as (file, size), sound(path):
            inspect_everything(file, size)
            return cls._read(file, inspection.format_of(file) == FORMATS[0])

    @classmethod
    def _read(cls, file: h5py.File, early: bool) -> Ensemble:
        text = file["record"][()].tobytes()
        told = json.loads(text if early else without_checksum(text))
        if not early and checksum(_arrays(file)) != told["checksum"]:
            raise ValueError("its arrays are not what was written")
        found = cls(
            t=file["t"][()],
            arrays={name: data[()] for name, data in file.get("states", {}).items()},
            parameters={name: data[()] for name, data in file.get("parameters", {}).items()},
            reasons={int(member): reason for member, reason in told["reasons"].items()},
            summary=_read_summary(file, told),
            steps=file["steps"][()],
            newton_iterations=file["newton_iterations"][()],
            facts=told["facts"],
            reduced={
                name: Reduced(**{kind: group[kind][()] for kind in _REDUCED if kind in group})
                for name, group in file.get("reduced", {}).items()
            },
            left=int(told["left"]),
        )
        members = found.steps.size
        if any(len(a) != members for a in (*found.arrays.values(), *found.parameters.values())):
            raise ValueError("its arrays have different numbers of members")
        return found


def _arrays(file: h5py.File) -> dict[str, np.ndarray]:
    """Everything of a file but the words about it, by its place; what names the parts of a summary with them."""
    found: dict[str, np.ndarray] = {}

    def take(place: str, item: Any) -> None:
        for key, value in item.attrs.items():
            found[f"{place}@{key}"] = np.frombuffer(str(value).encode(), dtype=np.uint8)
        if isinstance(item, h5py.Dataset) and place != "record":
            found[f"{place} {item.shape} {item.dtype.str}"] = item[()]

    file.visititems(take)
    return found


def _read_summary(file: h5py.File, told: Mapping[str, Any]) -> Sequence[Summary]:
    if "summary" in told:  # a file of an earlier version
        return [Summary(**one) for one in told["summary"]]
    group = file["summary"]
    energy, columns = str(group.attrs["energy"]), {name: group[name][()] for name in _SUMMARY}
    momenta = {str(column.attrs["name"]): column[()] for column in group.get("momentum_drift", {}).values()}

    def one(member: int) -> Summary:
        drifts = {name: float(column[member]) for name, column in momenta.items() if column[member] != -1.0}
        return Summary(
            energy, **{name: float(column[member]) for name, column in columns.items()}, momentum_drift=drifts
        )

    return Summaries(len(file["steps"]), one)
