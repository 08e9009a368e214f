"""Validation of untrusted HDF5 files before their contents are read. Raises ValueError.

HDF5 can redirect a reader to other files, to plugins (filters) and to arrays larger than memory. Result files contain
none of these, so that files with such features are rejected.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterable
from pathlib import Path

import h5py
from h5py import h5a, h5d, h5l, h5t, h5z

from livens.expressions.variables import VARIABLES
from livens.results.checksums import GROUP

LABELS = ("coordinate", "constraint", "algebraic")
GROUPS = ("checkpoint", "scene", GROUP)
_FILTERS = {h5z.FILTER_DEFLATE, h5z.FILTER_SHUFFLE, h5z.FILTER_FLETCHER32}
#: Upper bound of the compression ratio; zlib reaches 1032.
_SMALLER = 1100
#: Upper bound of the size of a chunk in bytes, unless one row is larger.
_CHUNK = 1 << 18
#: Maximum depth of nested groups.
_DEEPEST = 3
#: Variables whose default value is not written: they may be larger than their storage.
MOSTLY_USUAL = ("step_size", "supplied_energy", "dissipated_energy")


def inspect(file: h5py.File, size: int, names: Iterable[str] | None = None) -> None:
    """Reject features that result files of `size` bytes do not have, in the whole file or in the named objects."""
    if names is None:
        for name in file.id:
            _no_way_out(file.id, name)
        names = [name for name in (*VARIABLES, *LABELS, *GROUPS) if name in file]
    for place in names:
        name, _, only = place.partition("/")
        _no_way_out(file.id, name.encode())
        found = h5py.h5o.open(file.id, name.encode())
        if name in GROUPS:
            if not isinstance(found, h5py.h5g.GroupID):
                raise ValueError(f"'{name}' is not a group")
            for inner in [only.encode()] if only else found:
                _no_way_out(found, inner)
                _inspect_data(h5py.h5o.open(found, inner), f"{name}/{inner.decode(errors='replace')}", size, "numbers")
        else:
            _inspect_data(found, name, size, "names" if name in LABELS else "numbers")


def inspect_everything(file: h5py.File, size: int) -> None:
    """Reject all contents except groups of numeric arrays in a file of `size` bytes."""
    if _inspect_group(file.id, "", size) > size:
        raise ValueError("it claims to be larger than the file")


def _inspect_group(group: h5py.h5g.GroupID, place: str, size: int) -> int:
    """Return the storage size in bytes of all arrays of a group and its subgroups."""
    if place.count("/") > _DEEPEST:
        raise ValueError(f"'{place}' is nested too deeply")
    total = 0
    for name in group:
        _no_way_out(group, name)
        found, where = h5py.h5o.open(group, name), f"{place}/{name.decode(errors='replace')}"
        if isinstance(found, h5py.h5g.GroupID):
            total += _inspect_group(found, where, size)
        else:
            _inspect_data(found, where, size, "numbers")
            total += found.get_storage_size()
    return total


def format_of(file: h5py.File) -> str | None:
    """Return the format attribute of a file, or None if it is not a short string."""
    if not h5a.exists(file.id, b"format"):
        return None
    stored = h5a.open(file.id, b"format")
    kind = stored.get_type()
    if not isinstance(kind, h5t.TypeStringID) or stored.shape != () or kind.get_size() > 64:
        return None
    value = file.attrs["format"]
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def regular(path: str | os.PathLike[str]) -> bool:
    """Return True if a path refers to a regular file, not to a device, a pipe or a folder."""
    return stat.S_ISREG(Path(path).stat().st_mode)


def _no_way_out(group: h5py.h5g.GroupID, name: bytes) -> None:
    if group.links.get_info(name).type != h5l.TYPE_HARD:
        raise ValueError(f"'{name.decode(errors='replace')}' is a soft or external link")


def _inspect_data(data: h5py.h5o.ObjectID, name: str, size: int, what: str) -> None:
    if not isinstance(data, h5d.DatasetID):
        raise ValueError(f"'{name}' is not an array")
    made, kind = data.get_create_plist(), data.get_type()
    layout = made.get_layout()
    if layout == h5d.VIRTUAL or (layout == h5d.CONTIGUOUS and made.get_external_count()):
        raise ValueError(f"'{name}' is stored in another file")
    filters = [made.get_filter(i)[0] for i in range(made.get_nfilters())]
    if not set(filters) <= _FILTERS:
        raise ValueError(f"'{name}' uses an unknown filter")
    text = isinstance(kind, h5t.TypeStringID)
    if text != (what == "names") or not isinstance(kind, (h5t.TypeFloatID, h5t.TypeIntegerID, h5t.TypeStringID)):
        raise ValueError(f"'{name}' does not consist of {what}")
    stored, shape, width = data.get_storage_size(), data.shape, kind.get_size()
    if shape is None or stored > size or width > 64:
        raise ValueError(f"'{name}' claims to be larger than the file")
    nominal, row = math.prod(shape) * width, math.prod(shape[1:]) * width
    if layout == h5d.CHUNKED and math.prod(made.get_chunk()) * width > max(_CHUNK, row):
        raise ValueError(f"'{name}' is stored in larger chunks than livens writes")
    if name in MOSTLY_USUAL:
        if len(shape) != 1:
            raise ValueError(f"'{name}' is not a vector")
    elif nominal > stored * (_SMALLER if filters else 1):
        raise ValueError(f"'{name}' claims to be larger than what is stored of it")
