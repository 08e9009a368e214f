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
from livens.expressions.variables import VARIABLES
from livens.results import zarr_store
from livens.results.record import Summary

if TYPE_CHECKING:
    from livens.results.ensemble import Ensemble

FORMAT = "livens-ensemble-zarr-1"
SUMMARY = ("max_energy_drift", "max_energy_increment", "max_constraint", "max_velocity_constraint")
REDUCED = ("mean", "lowest", "highest", "counts", "edges")
_MOMENTUM = "summary.momentum_drift."
Columns = dict[str, tuple[tuple[str, ...], np.ndarray]]


def axes_of(name: str) -> tuple[str, ...]:
    """Return the dimensions of a variable of all members."""
    axis = VARIABLES[name].axis
    return ("member", "t", axis) if axis else ("member", "t")


def labels_of(facts: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the labels of the entries along each dimension."""
    return {"coordinate": list(facts.get("coordinates") or ()), "constraint": list(facts.get("constraint_names") or ())}


def state_columns(many: Ensemble) -> Columns:
    """Return the stored states; variables without second dimension have two axes."""
    found = {}
    for name, values in many.arrays.items():
        axes = axes_of(name)
        found[name] = axes, values if len(axes) == 3 else values[:, :, 0]
    return found


def other_columns(many: Ensemble) -> Columns:
    """Return all other arrays with one entry per member, and the edges of histograms."""
    found: Columns = {
        "steps": (("member",), many.steps),
        "newton_iterations": (("member",), many.newton_iterations),
        "failed": (("member",), np.isin(np.arange(len(many)), list(many.reasons))),
    }
    for name, values in many.parameters.items():
        more = tuple(f"parameters.{name}.{i}" for i in range(values.ndim - 1))
        found[f"parameters.{name}"] = ("member", *more), values
    for name, one in many.reduced.items():
        for kind in REDUCED:
            values = getattr(one, kind)
            if values is None:
                continue
            axis = {"counts": "bin", "edges": "edge"}.get(kind, "entry")
            more = tuple(f"reduced.{name}.{axis}" for _ in range(values.ndim - (kind != "edges")))
            found[f"reduced.{name}.{kind}"] = more if kind == "edges" else ("member", *more), values
    summaries = list(many.summary)
    for name in SUMMARY:
        found[f"summary.{name}"] = ("member",), np.array([getattr(one, name) for one in summaries], dtype=float)
    for name in dict.fromkeys(name for one in summaries for name in one.momentum_drift):
        # -1 where a momentum is not conserved by a member
        drifts = np.array([one.momentum_drift.get(name, -1.0) for one in summaries])
        found[_MOMENTUM + name] = ("member",), drifts
    return found


def to_xarray(many: Ensemble) -> Any:
    import xarray

    data = {**state_columns(many), **other_columns(many)}
    used = {axis for axes, _ in data.values() for axis in axes}
    labels: dict[str, Any] = {"member": np.arange(len(many)), "t": many.t}
    labels |= {axis: np.array(names, dtype=object) for axis, names in labels_of(many.facts).items() if axis in used}
    facts = {name: value for name, value in many.facts.items() if isinstance(value, (str, int, float))}
    return xarray.Dataset(data, coords=labels, attrs=facts)


# -- on disk ----------------------------------------------------------------------------------------------------------
def claim(path: Path, force: bool) -> None:
    """Raise `InputError` unless an ensemble may be written to a path; `force` replaces only an ensemble store."""
    try:
        there = os.path.lexists(path)
        parent = path.parent.is_dir()
    except (OSError, ValueError) as error:  # name too long, or with a null byte
        raise InputError(f"cannot write the ensemble '{path}': {error}") from None
    if there and not force:
        raise InputError(f"'{path}' exists already: choose another name, or replace it with force=True")
    if there and not _written_by_livens(path):
        raise InputError(
            f"'{path}' was not written by livens, or is damaged, and is not replaced: "
            "choose another name, or remove it yourself"
        )
    if not parent:
        raise InputError(f"cannot write the ensemble '{path}': the folder '{path.parent}' does not exist")
    if not os.access(path.parent, os.W_OK):
        raise InputError(f"cannot write the ensemble '{path}': no permission to write in '{path.parent}'")


def _written_by_livens(path: Path) -> bool:
    try:
        return zarr_store.is_plain(path) and str(zarr_store.attributes_of(path)["format"]) == FORMAT
    except (OSError, ValueError, KeyError, TypeError):
        return False


def save(many: Ensemble, path: Path, *, force: bool) -> Path:
    """Write an ensemble atomically to a Zarr store."""
    claim(path, force)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    if os.path.lexists(part):
        raise InputError(f"cannot write the ensemble '{path}': the temporary store '{part.name}' exists already")
    try:
        zarr_store.begin(part)
        complete(many, part, np.arange(len(many)))
        put_in_place(part, path, force=force)
    except OSError as error:
        raise InputError(f"cannot write the ensemble '{path}': {error}") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return path


def complete(many: Ensemble, store: Path, rows: np.ndarray, there: Collection[str] = ()) -> None:
    """Write all arrays missing in a store; `rows` is the member index of each row along the first axis."""
    others = other_columns(many)
    for name, (axes, values) in {**state_columns(many), **others}.items():
        if name not in there:
            folder = name.replace("/", ":")
            ordered = values[rows] if axes and axes[0] == "member" else values
            zarr_store.write_array(store, folder, ordered, axes)
    for name in there:
        zarr_store.ZarrArray.open(store, name).complete()
    zarr_store.write_array(store, "member", rows.astype(np.int64), ("member",))
    zarr_store.write_array(store, "t", many.t, ("t",))
    for axis, names in labels_of(many.facts).items():
        if names:
            zarr_store.write_array(store, axis, np.array(names, dtype=np.str_), (axis,))
    summaries = many.summary
    told: dict[str, Any] = {
        "format": FORMAT,
        "facts": many.facts,
        "reasons": {str(member): why for member, why in many.failures.items()},
        "left": many.left,
        "energy": summaries[0].energy if len(summaries) else "",
        "parameters": list(many.parameters),
        "reduced": list(many.reduced),
        "momenta": [name[len(_MOMENTUM) :] for name in others if name.startswith(_MOMENTUM)],
    }
    told["checksums"] = zarr_store.checksums(store)
    told["words"] = _words(told)
    zarr_store.finish(store, told)


def _words(told: Mapping[str, Any]) -> int:
    """Return a CRC-32 checksum of the metadata."""
    plain = json.loads(json.dumps({name: value for name, value in told.items() if name != "words"}))
    return zlib.crc32(json.dumps(plain, sort_keys=True).encode())


def put_in_place(store: Path, path: Path, *, force: bool) -> None:
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
    if not _written_by_livens(path):
        raise InputError(f"'{path}' is not the store of an ensemble")
    try:
        return _read(path)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, MemoryError, OverflowError) as error:
        raise InputError(f"cannot read the ensemble '{path}': it is damaged ({error})") from None


def _read(path: Path) -> Ensemble:
    """Read the arrays of a store and restore the order of the members."""
    from livens.results.ensemble import Ensemble, Reduced, Summaries

    told = zarr_store.attributes_of(path)
    if told["words"] != _words(told) or told["checksums"] != zarr_store.checksums(path):
        raise ValueError("its contents do not match their checksums")
    arrays = {name: zarr_store.ZarrArray.open(path, name) for name in zarr_store.names_in(path)}
    back = np.argsort(arrays["member"].read())

    def column(name: str) -> np.ndarray:
        array = arrays[name.replace("/", ":")]
        return array.read()[back] if array.axes[:1] == ("member",) else array.read()

    kept = [name for name in VARIABLES if name in arrays and arrays[name].axes[:2] == ("member", "t")]
    states = {name: column(name) if len(arrays[name].shape) == 3 else column(name)[:, :, None] for name in kept}
    reduced = {}
    for name in told["reduced"]:
        parts = {kind: f"reduced.{name}.{kind}" for kind in REDUCED}
        reduced[name] = Reduced(**{k: column(p) for k, p in parts.items() if p.replace("/", ":") in arrays})
    columns = {name: column(f"summary.{name}") for name in SUMMARY}
    momenta = {name: column(_MOMENTUM + name) for name in told["momenta"]}

    def summary(member: int) -> Summary:
        drifts = {name: float(values[member]) for name, values in momenta.items() if values[member] != -1.0}
        numbers = {name: float(values[member]) for name, values in columns.items()}
        return Summary(told["energy"], **numbers, momentum_drift=drifts)

    return Ensemble(
        t=column("t"),
        arrays=states,
        parameters={name: column(f"parameters.{name}") for name in told["parameters"]},
        reasons={int(member): why for member, why in told["reasons"].items()},
        summary=Summaries(len(back), summary),
        steps=column("steps"),
        newton_iterations=column("newton_iterations"),
        facts=told["facts"],
        reduced=reduced,
        left=told["left"],
    )
