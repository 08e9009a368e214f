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
from livens.results.ensemble import Ensemble, Reduced, Summaries
from livens.results.record import Summary
from livens.results.storage import hdf5_validation
from livens.results.storage.atomic import replace_atomically, temporary_path
from livens.results.storage.checksums import add_checksum, strip_checksum
from livens.results.storage.ensemble_zarr import REDUCED, SUMMARY
from livens.results.storage.hdf5_reader import damage_as_input_error, open_readable
from livens.results.storage.hdf5_validation import validate_all
from livens.results.storage.hdf5_writer import check_writable, checksum, os_error_text

#: Format written, and formats that can be read; the first format has no checksum.
FORMAT = "livens-ensemble-2"
FORMATS = ("livens-ensemble-1", FORMAT)


def save(ensemble: Ensemble, path: Path, *, force: bool) -> Path:
    """Write an ensemble atomically to an HDF5 file."""
    check_writable(path, force)
    part = temporary_path(path)
    if os.path.lexists(part):
        raise InputError(f"cannot write the ensemble '{path}': the temporary file '{part.name}' exists already")
    try:
        with replace_atomically(path), h5py.File(part, "x") as file:  # exclusive creation: links are not followed
            _write(ensemble, file)
    except (OSError, RuntimeError) as error:
        raise InputError(f"cannot write the ensemble '{path}': {os_error_text(error)}") from None
    return path


def _write(ensemble: Ensemble, file: h5py.File) -> None:
    file.attrs["format"] = FORMAT
    _write_summary(ensemble, file)
    for name in ("t", "steps", "newton_iterations"):
        file[name] = getattr(ensemble, name)
    for name, values in ensemble.arrays.items():
        file[f"states/{name}"] = values
    for name, values in ensemble.parameters.items():
        file[f"parameters/{name}"] = values
    for name, reduced in ensemble.reduced.items():
        for statistic in REDUCED:
            if getattr(reduced, statistic) is not None:
                file[f"reduced/{name}/{statistic}"] = getattr(reduced, statistic)
    metadata = {
        "facts": ensemble.info,
        "reasons": ensemble.reasons,
        "left": ensemble.n_scalar_fallbacks,
        "checksum": checksum(_arrays(file)),
    }
    file.create_dataset("record", data=np.frombuffer(add_checksum(json.dumps(metadata)), dtype=np.uint8))


def _write_summary(ensemble: Ensemble, file: h5py.File) -> None:
    """Write one column per summary quantity; -1 marks a momentum that is not conserved by a member."""
    summaries = list(ensemble.summary)
    file.create_group("summary").attrs["energy"] = summaries[0].energy if summaries else ""
    for name in SUMMARY:
        file[f"summary/{name}"] = np.array([getattr(summary, name) for summary in summaries])
    momenta = dict.fromkeys(name for summary in summaries for name in summary.momentum_drift)
    for i, name in enumerate(momenta):
        column = file.create_dataset(
            f"summary/momentum_drift/{i}",
            data=np.array([summary.momentum_drift.get(name, -1.0) for summary in summaries]),
        )
        column.attrs["name"] = name


def load(path: Path) -> Ensemble:
    """Read an ensemble from an HDF5 file."""
    with open_readable(path, FORMATS, "the file of an ensemble") as (file, size), damage_as_input_error(path):
        validate_all(file, size)
        return _read(file, hdf5_validation.read_format(file) == FORMATS[0])


def _read(file: h5py.File, without_checksums: bool) -> Ensemble:
    text = file["record"][()].tobytes()
    metadata = json.loads(text if without_checksums else strip_checksum(text))
    if not without_checksums and checksum(_arrays(file)) != metadata["checksum"]:
        raise ValueError("its arrays do not match their checksum")
    ensemble = Ensemble(
        t=file["t"][()],
        arrays={name: data[()] for name, data in file.get("states", {}).items()},
        parameters={name: data[()] for name, data in file.get("parameters", {}).items()},
        reasons={int(member): reason for member, reason in metadata["reasons"].items()},
        summary=_read_summary(file, metadata),
        steps=file["steps"][()],
        newton_iterations=file["newton_iterations"][()],
        info=metadata["facts"],
        reduced={
            name: Reduced(**{statistic: group[statistic][()] for statistic in REDUCED if statistic in group})
            for name, group in file.get("reduced", {}).items()
        },
        n_scalar_fallbacks=int(metadata["left"]),
    )
    members = ensemble.steps.size
    if any(len(a) != members for a in (*ensemble.arrays.values(), *ensemble.parameters.values())):
        raise ValueError("its arrays have different numbers of members")
    return ensemble


def _arrays(file: h5py.File) -> dict[str, np.ndarray]:
    """Return all arrays of a file except the record, by path, and all attributes as bytes, for the checksum."""
    arrays: dict[str, np.ndarray] = {}

    def collect(path: str, item: Any) -> None:
        for key, value in item.attrs.items():
            arrays[f"{path}@{key}"] = np.frombuffer(str(value).encode(), dtype=np.uint8)
        if isinstance(item, h5py.Dataset) and path != "record":
            arrays[f"{path} {item.shape} {item.dtype.str}"] = item[()]

    file.visititems(collect)
    return arrays


def _read_summary(file: h5py.File, metadata: Mapping[str, Any]) -> Sequence[Summary]:
    if "summary" in metadata:  # format version 1
        return [Summary(**member_summary) for member_summary in metadata["summary"]]
    group = file["summary"]
    energy, columns = str(group.attrs["energy"]), {name: group[name][()] for name in SUMMARY}
    momenta = {str(column.attrs["name"]): column[()] for column in group.get("momentum_drift", {}).values()}

    def member_summary(member: int) -> Summary:
        drifts = {name: float(column[member]) for name, column in momenta.items() if column[member] != -1.0}
        return Summary(
            energy, **{name: float(column[member]) for name, column in columns.items()}, momentum_drift=drifts
        )

    return Summaries(len(file["steps"]), member_summary)
