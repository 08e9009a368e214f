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

from livens.expressions.result_variables import RESULT_VARIABLES
from livens.results.storage.checksums import GROUP

LABELS = ("coordinate", "constraint", "algebraic")
GROUPS = ("checkpoint", "scene", GROUP)
_FILTERS = {h5z.FILTER_DEFLATE, h5z.FILTER_SHUFFLE, h5z.FILTER_FLETCHER32}
#: Upper bound of the compression ratio; zlib reaches 1032.
_MAX_COMPRESSION = 1100
#: Upper bound of the size of a chunk in bytes, unless one row is larger.
_MAX_CHUNK_BYTES = 1 << 18
#: Maximum depth of nested groups.
_MAX_DEPTH = 3
#: Variables whose default value is not written: they may be larger than their storage.
CONSTANT_VARIABLES = ("step_size", "supplied_energy", "dissipated_energy")


def validate(file: h5py.File, size: int, names: Iterable[str] | None = None) -> None:
    """Reject features that result files of `size` bytes do not have, in the whole file or in the named objects."""
    if names is None:
        for name in file.id:
            _require_hard_link(file.id, name)
        names = [name for name in (*RESULT_VARIABLES, *LABELS, *GROUPS) if name in file]
    for path in names:
        name, _, member = path.partition("/")
        _require_hard_link(file.id, name.encode())
        node = h5py.h5o.open(file.id, name.encode())
        if name in GROUPS:
            if not isinstance(node, h5py.h5g.GroupID):
                raise ValueError(f"'{name}' is not a group")
            for inner in [member.encode()] if member else node:
                _require_hard_link(node, inner)
                _validate_dataset(
                    h5py.h5o.open(node, inner), f"{name}/{inner.decode(errors='replace')}", size, "numbers"
                )
        else:
            _validate_dataset(node, name, size, "names" if name in LABELS else "numbers")


def validate_all(file: h5py.File, size: int) -> None:
    """Reject all contents except groups of numeric arrays in a file of `size` bytes."""
    if _validate_group(file.id, "", size) > size:
        raise ValueError("it claims to be larger than the file")


def _validate_group(group: h5py.h5g.GroupID, path: str, size: int) -> int:
    """Return the storage size in bytes of all arrays of a group and its subgroups."""
    if path.count("/") > _MAX_DEPTH:
        raise ValueError(f"'{path}' is nested too deeply")
    total = 0
    for name in group:
        _require_hard_link(group, name)
        node, node_path = h5py.h5o.open(group, name), f"{path}/{name.decode(errors='replace')}"
        if isinstance(node, h5py.h5g.GroupID):
            total += _validate_group(node, node_path, size)
        else:
            _validate_dataset(node, node_path, size, "numbers")
            total += node.get_storage_size()
    return total


def read_format(file: h5py.File) -> str | None:
    """Return the format attribute of a file, or None if it is not a short string."""
    if not h5a.exists(file.id, b"format"):
        return None
    stored = h5a.open(file.id, b"format")
    type_id = stored.get_type()
    if not isinstance(type_id, h5t.TypeStringID) or stored.shape != () or type_id.get_size() > 64:
        return None
    value = file.attrs["format"]
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def is_regular_file(path: str | os.PathLike[str]) -> bool:
    """Return True if a path refers to a regular file, not to a device, a pipe or a folder."""
    return stat.S_ISREG(Path(path).stat().st_mode)


def _require_hard_link(group: h5py.h5g.GroupID, name: bytes) -> None:
    if group.links.get_info(name).type != h5l.TYPE_HARD:
        raise ValueError(f"'{name.decode(errors='replace')}' is a soft or external link")


def _validate_dataset(data: h5py.h5o.ObjectID, name: str, size: int, content: str) -> None:
    if not isinstance(data, h5d.DatasetID):
        raise ValueError(f"'{name}' is not an array")
    creation, type_id = data.get_create_plist(), data.get_type()
    layout = creation.get_layout()
    if layout == h5d.VIRTUAL or (layout == h5d.CONTIGUOUS and creation.get_external_count()):
        raise ValueError(f"'{name}' is stored in another file")
    filters = [creation.get_filter(i)[0] for i in range(creation.get_nfilters())]
    if not set(filters) <= _FILTERS:
        raise ValueError(f"'{name}' uses an unknown filter")
    is_text = isinstance(type_id, h5t.TypeStringID)
    if is_text != (content == "names") or not isinstance(
        type_id, (h5t.TypeFloatID, h5t.TypeIntegerID, h5t.TypeStringID)
    ):
        raise ValueError(f"'{name}' does not consist of {content}")
    stored, shape, width = data.get_storage_size(), data.shape, type_id.get_size()
    if shape is None or stored > size or width > 64:
        raise ValueError(f"'{name}' claims to be larger than the file")
    if name in RESULT_VARIABLES:
        if not shape:
            raise ValueError(f"'{name}' is not an array with one row per stored time")
        if isinstance(type_id, h5t.TypeFloatID) and width != 8:
            raise ValueError(f"'{name}' has numbers of {width} bytes, not doubles")
        if layout != h5d.CHUNKED and name not in CONSTANT_VARIABLES:
            raise ValueError(f"'{name}' is not stored in chunks: rows cannot be added, and it has no checksums")
    nominal, row = math.prod(shape) * width, math.prod(shape[1:]) * width
    if layout == h5d.CHUNKED and math.prod(creation.get_chunk()) * width > max(_MAX_CHUNK_BYTES, row):
        raise ValueError(f"'{name}' is stored in larger chunks than livens writes")
    if name in CONSTANT_VARIABLES:
        if len(shape) != 1:
            raise ValueError(f"'{name}' is not a vector")
    elif nominal > stored * (_MAX_COMPRESSION if filters else 1):
        raise ValueError(f"'{name}' claims to be larger than what is stored of it")
