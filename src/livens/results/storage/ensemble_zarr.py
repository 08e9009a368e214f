"""Ensembles as named arrays with named dimensions: xarray export and Zarr stores, which can be filled blockwise."""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.errors import InputError
from livens.expressions.result_variables import RESULT_VARIABLES
from livens.results.pandas_export import import_xarray
from livens.results.record import Summary
from livens.results.storage import zarr_store
from livens.results.storage.atomic import temporary_path

if TYPE_CHECKING:
    from livens.results.ensemble import Ensemble

FORMAT = "livens-ensemble-zarr-1"
#: Folder of the blocks inside an unfinished store; it remains if the process is killed while it is removed.
PRIVATE_FOLDER = ".livens"
SUMMARY = ("max_energy_drift", "max_energy_increment", "max_constraint", "max_velocity_constraint")
REDUCED = ("mean", "lowest", "highest", "counts", "edges")
_MOMENTUM = "summary.momentum_drift."
NamedColumns = dict[str, tuple[tuple[str, ...], np.ndarray]]


def axes(name: str) -> tuple[str, ...]:
    """Return the dimensions of a variable of all members."""
    axis = RESULT_VARIABLES[name].dim
    return ("member", "t", axis) if axis else ("member", "t")


def labels(info: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the labels of the entries along each dimension."""
    return {"coordinate": list(info.get("coordinates") or ()), "constraint": list(info.get("constraint_names") or ())}


def state_columns(ensemble: Ensemble) -> NamedColumns:
    """Return the stored states; variables without second dimension have two axes."""
    columns = {}
    for name, values in ensemble.arrays.items():
        dims = axes(name)
        columns[name] = dims, values if len(dims) == 3 else values[:, :, 0]
    return columns


def other_columns(ensemble: Ensemble) -> NamedColumns:
    """Return all other arrays with one entry per member, and the edges of histograms."""
    columns: NamedColumns = {
        "steps": (("member",), ensemble.steps),
        "newton_iterations": (("member",), ensemble.newton_iterations),
        "failed": (("member",), np.isin(np.arange(len(ensemble)), list(ensemble.reasons))),
    }
    for name, values in ensemble.parameters.items():
        extra_dims = tuple(f"parameters.{name}.{i}" for i in range(values.ndim - 1))
        columns[f"parameters.{name}"] = ("member", *extra_dims), values
    for name, reduced in ensemble.reduced.items():
        for statistic in REDUCED:
            values = getattr(reduced, statistic)
            if values is None:
                continue
            axis = {"counts": "bin", "edges": "edge"}.get(statistic, "entry")
            extra_dims = tuple(f"reduced.{name}.{axis}" for _ in range(values.ndim - (statistic != "edges")))
            columns[f"reduced.{name}.{statistic}"] = (
                extra_dims if statistic == "edges" else ("member", *extra_dims),
                values,
            )
    summaries = list(ensemble.summary)
    for name in SUMMARY:
        columns[f"summary.{name}"] = (
            ("member",),
            np.array([getattr(reduced, name) for reduced in summaries], dtype=float),
        )
    for name in dict.fromkeys(name for reduced in summaries for name in reduced.momentum_drift):
        # -1 where a momentum is not conserved by a member
        drifts = np.array([reduced.momentum_drift.get(name, -1.0) for reduced in summaries])
        columns[_MOMENTUM + name] = ("member",), drifts
    return columns


def to_xarray(ensemble: Ensemble) -> Any:
    xarray = import_xarray()

    data = {**state_columns(ensemble), **other_columns(ensemble)}
    used = {axis for dims, _ in data.values() for axis in dims}
    coords: dict[str, Any] = {"member": np.arange(len(ensemble)), "t": ensemble.t}
    coords |= {axis: np.array(names, dtype=object) for axis, names in labels(ensemble.info).items() if axis in used}
    attrs = {name: value for name, value in ensemble.info.items() if isinstance(value, (str, int, float))}
    return xarray.Dataset(data, coords=coords, attrs=attrs)


# -- on disk ----------------------------------------------------------------------------------------------------------
def check_writable(path: Path, force: bool) -> None:
    """Raise `InputError` unless an ensemble may be written to a path; `force` replaces only an ensemble store."""
    try:
        exists = os.path.lexists(path)
        has_parent = path.parent.is_dir()
    except (OSError, ValueError) as error:  # name too long, or with a null byte
        raise InputError(f"cannot write the ensemble '{path}': {error}") from None
    if exists and not force:
        raise InputError(f"'{path}' exists already: choose another name, or replace it with force=True")
    if exists and not _is_livens_store(path):
        raise InputError(
            f"'{path}' was not written by livens, or is damaged, and is not replaced: "
            "choose another name, or remove it yourself"
        )
    if not has_parent:
        raise InputError(f"cannot write the ensemble '{path}': the folder '{path.parent}' does not exist")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"cannot write the ensemble '{path}': no permission to write in '{path.parent}'")


def _is_livens_store(path: Path) -> bool:
    try:
        has_only_store_files = zarr_store.has_only_store_files(path, allowed=(PRIVATE_FOLDER,))
        return has_only_store_files and str(zarr_store.read_attributes(path)["format"]) == FORMAT
    except (OSError, ValueError, KeyError, TypeError):
        return False


def save(ensemble: Ensemble, path: Path, *, force: bool) -> Path:
    """Write an ensemble atomically to a Zarr store."""
    check_writable(path, force)
    part = temporary_path(path)
    if os.path.lexists(part):
        raise InputError(f"cannot write the ensemble '{path}': the temporary store '{part.name}' exists already")
    try:
        zarr_store.create_group(part)
        write_remaining(ensemble, part, np.arange(len(ensemble)))
        publish(part, path, force=force)
    except OSError as error:
        raise InputError(f"cannot write the ensemble '{path}': {error}") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return path


def write_remaining(ensemble: Ensemble, store: Path, rows: np.ndarray, existing: Collection[str] = ()) -> None:
    """Write all arrays missing in a store; `rows` is the member index of each row along the first axis.

    Temporary files of processes that were killed are removed.
    """
    zarr_store.remove_temporary_files(store)
    other_arrays = other_columns(ensemble)
    for name, (dims, values) in {**state_columns(ensemble), **other_arrays}.items():
        if name not in existing:
            folder = name.replace("/", ":")
            ordered = values[rows] if dims and dims[0] == "member" else values
            zarr_store.write_array(store, folder, ordered, dims)
    for name in existing:
        zarr_store.ZarrArray.open(store, name).write_missing_chunks()
    zarr_store.write_array(store, "member", rows.astype(np.int64), ("member",))
    zarr_store.write_array(store, "t", ensemble.t, ("t",))
    for axis, names in labels(ensemble.info).items():
        if names:
            zarr_store.write_array(store, axis, np.array(names, dtype=np.str_), (axis,))
    summaries = ensemble.summary
    metadata: dict[str, Any] = {
        "format": FORMAT,
        "facts": ensemble.info,
        "reasons": {str(member): message for member, message in ensemble.failures.items()},
        "left": ensemble.n_scalar_fallbacks,
        "energy": summaries[0].energy if len(summaries) else "",
        "parameters": list(ensemble.parameters),
        "reduced": list(ensemble.reduced),
        "momenta": [name[len(_MOMENTUM) :] for name in other_arrays if name.startswith(_MOMENTUM)],
    }
    metadata["checksums"] = zarr_store.checksums(store)
    metadata["words"] = _metadata_crc(metadata)
    zarr_store.consolidate(store, metadata)


def _metadata_crc(metadata: Mapping[str, object]) -> int:
    """Return a CRC-32 checksum of the metadata."""
    plain = json.loads(json.dumps({name: value for name, value in metadata.items() if name != "words"}))
    return zlib.crc32(json.dumps(plain, sort_keys=True).encode())


def publish(store: Path, path: Path, *, force: bool) -> None:
    """Move a complete store to its final path."""
    if path.exists() and force:
        old = path.with_name(f".{path.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        path.rename(old)
        store.rename(path)
        shutil.rmtree(old, ignore_errors=True) if old.is_dir() else old.unlink()
        return
    store.rename(path)


def load(path: Path) -> Ensemble:
    """Read an ensemble from a Zarr store; raise `InputError` if it is damaged or not an ensemble."""
    if not _is_livens_store(path):
        raise InputError(f"'{path}' is not the store of an ensemble")
    try:
        return _read(path)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, MemoryError, OverflowError) as error:
        raise InputError(f"cannot read the ensemble '{path}': it is damaged ({error})") from None


def _read(path: Path) -> Ensemble:
    """Read the arrays of a store and restore the order of the members."""
    from livens.results.ensemble import Ensemble, Reduced, Summaries

    metadata = zarr_store.read_attributes(path)
    if metadata["words"] != _metadata_crc(metadata) or metadata["checksums"] != zarr_store.checksums(path):
        raise ValueError("its contents do not match their checksums")
    arrays = {name: zarr_store.ZarrArray.open(path, name) for name in zarr_store.array_names(path)}
    inverse_permutation = np.argsort(arrays["member"].read())

    def column(name: str) -> np.ndarray:
        array = arrays[name.replace("/", ":")]
        return array.read()[inverse_permutation] if array.axes[:1] == ("member",) else array.read()

    stored_names = [name for name in RESULT_VARIABLES if name in arrays and arrays[name].axes[:2] == ("member", "t")]
    states = {name: column(name) if len(arrays[name].shape) == 3 else column(name)[:, :, None] for name in stored_names}
    reduced = {}
    for name in metadata["reduced"]:
        parts = {statistic: f"reduced.{name}.{statistic}" for statistic in REDUCED}
        reduced[name] = Reduced(**{k: column(p) for k, p in parts.items() if p.replace("/", ":") in arrays})
    columns = {name: column(f"summary.{name}") for name in SUMMARY}
    momenta = {name: column(_MOMENTUM + name) for name in metadata["momenta"]}

    def summary(member: int) -> Summary:
        drifts = {name: float(values[member]) for name, values in momenta.items() if values[member] != -1.0}
        numbers = {name: float(values[member]) for name, values in columns.items()}
        return Summary(metadata["energy"], **numbers, momentum_drift=drifts)

    return Ensemble(
        t=column("t"),
        arrays=states,
        parameters={name: column(f"parameters.{name}") for name in metadata["parameters"]},
        reasons={int(member): message for member, message in metadata["reasons"].items()},
        summary=Summaries(len(inverse_permutation), summary),
        steps=column("steps"),
        newton_iterations=column("newton_iterations"),
        info=metadata["facts"],
        reduced=reduced,
        n_scalar_fallbacks=metadata["left"],
    )
