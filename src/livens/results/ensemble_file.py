"""Ensembles in HDF5 files with a checksum; files are validated before they are read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from livens.errors import InputError
from livens.results import inspection
from livens.results.checksums import with_checksum, without_checksum
from livens.results.ensemble import Ensemble, Reduced, Summaries
from livens.results.ensemble_store import REDUCED, SUMMARY
from livens.results.hdf5_reader import readable, sound
from livens.results.hdf5_writer import checksum, claim, reason
from livens.results.inspection import inspect_everything
from livens.results.record import Summary

#: Format written, and formats that can be read; the first format has no checksum.
FORMAT = "livens-ensemble-2"
FORMATS = ("livens-ensemble-1", FORMAT)


def save(many: Ensemble, path: Path, *, force: bool) -> Path:
    """Write an ensemble atomically to an HDF5 file."""
    claim(path, force)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    if os.path.lexists(part):
        raise InputError(f"cannot write the ensemble '{path}': the temporary file '{part.name}' exists already")
    try:
        with h5py.File(part, "x") as file:  # exclusive creation: links are not followed
            _write(many, file)
        part.replace(path)
    except (OSError, RuntimeError) as error:
        raise InputError(f"cannot write the ensemble '{path}': {reason(error)}") from None
    finally:
        part.unlink(missing_ok=True)
    return path


def _write(many: Ensemble, file: h5py.File) -> None:
    file.attrs["format"] = FORMAT
    _write_summary(many, file)
    for name in ("t", "steps", "newton_iterations"):
        file[name] = getattr(many, name)
    for name, values in many.arrays.items():
        file[f"states/{name}"] = values
    for name, values in many.parameters.items():
        file[f"parameters/{name}"] = values
    for name, reduced in many.reduced.items():
        for kind in REDUCED:
            if getattr(reduced, kind) is not None:
                file[f"reduced/{name}/{kind}"] = getattr(reduced, kind)
    told = {"facts": many.facts, "reasons": many.reasons, "left": many.left, "checksum": checksum(_arrays(file))}
    file.create_dataset("record", data=np.frombuffer(with_checksum(json.dumps(told)), dtype=np.uint8))


def _write_summary(many: Ensemble, file: h5py.File) -> None:
    """Write one column per summary quantity; -1 marks a momentum that is not conserved by a member."""
    summaries = list(many.summary)
    file.create_group("summary").attrs["energy"] = summaries[0].energy if summaries else ""
    for name in SUMMARY:
        file[f"summary/{name}"] = np.array([getattr(one, name) for one in summaries])
    momenta = dict.fromkeys(name for one in summaries for name in one.momentum_drift)
    for i, name in enumerate(momenta):
        column = file.create_dataset(
            f"summary/momentum_drift/{i}", data=np.array([one.momentum_drift.get(name, -1.0) for one in summaries])
        )
        column.attrs["name"] = name


def load(path: Path) -> Ensemble:
    """Read an ensemble from an HDF5 file."""
    with readable(path, FORMATS, "the file of an ensemble") as (file, size), sound(path):
        inspect_everything(file, size)
        return _read(file, inspection.format_of(file) == FORMATS[0])


def _read(file: h5py.File, early: bool) -> Ensemble:
    text = file["record"][()].tobytes()
    told = json.loads(text if early else without_checksum(text))
    if not early and checksum(_arrays(file)) != told["checksum"]:
        raise ValueError("its arrays do not match their checksum")
    found = Ensemble(
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
        left=int(told["left"]),
    )
    members = found.steps.size
    if any(len(a) != members for a in (*found.arrays.values(), *found.parameters.values())):
        raise ValueError("its arrays have different numbers of members")
    return found


def _arrays(file: h5py.File) -> dict[str, np.ndarray]:
    """Return all arrays of a file except the record, by path, and all attributes as bytes, for the checksum."""
    found: dict[str, np.ndarray] = {}

    def take(place: str, item: Any) -> None:
        for key, value in item.attrs.items():
            found[f"{place}@{key}"] = np.frombuffer(str(value).encode(), dtype=np.uint8)
        if isinstance(item, h5py.Dataset) and place != "record":
            found[f"{place} {item.shape} {item.dtype.str}"] = item[()]

    file.visititems(take)
    return found


def _read_summary(file: h5py.File, told: Mapping[str, Any]) -> Sequence[Summary]:
    if "summary" in told:  # format version 1
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
