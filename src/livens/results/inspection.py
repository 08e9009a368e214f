"""What a file is made of, looked at before anything in it is read: files may come from anybody.

HDF5 can send a reader to other files, into programs (filters) and through arrays that are larger than any memory. None
of that belongs into the file of a run, so a file with such things is refused. Raises ValueError.
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
#: What is compressed can become smaller by this factor at most; zlib reaches 1032.
_SMALLER = 1100
#: A chunk holds no more than this many bytes, or one row.
_CHUNK = 1 << 18
#: Groups lie in each other at most so deep.
_DEEPEST = 3
#: Variables that need not be written where they have their usual value: they may be larger than what is stored.
MOSTLY_USUAL = ("step_size", "supplied_energy", "dissipated_energy")


def inspect(file: h5py.File, size: int, names: Iterable[str] | None = None) -> None:
    """Refuse what does not belong into a file of `size` bytes: in all of it, or in what bears these names."""
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
    """Refuse what does not belong into a file of `size` bytes that has groups of arrays of numbers and nothing else."""
    if _inspect_group(file.id, "", size) > size:
        raise ValueError("it claims to be larger than the file")


def _inspect_group(group: h5py.h5g.GroupID, place: str, size: int) -> int:
    """How many bytes the arrays of a group, and of those in it, take in the file."""
    if place.count("/") > _DEEPEST:
        raise ValueError(f"'{place}' lies in too many groups")
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
    """What a file says it is, if it says so in a short text."""
    if not h5a.exists(file.id, b"format"):
        return None
    stored = h5a.open(file.id, b"format")
    kind = stored.get_type()
    if not isinstance(kind, h5t.TypeStringID) or stored.shape != () or kind.get_size() > 64:
        return None
    value = file.attrs["format"]
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def regular(path: str | os.PathLike[str]) -> bool:
    """Whether there is a file at the end of a path, and not a device, a pipe or a folder."""
    return stat.S_ISREG(Path(path).stat().st_mode)


def _no_way_out(group: h5py.h5g.GroupID, name: bytes) -> None:
    if group.links.get_info(name).type != h5l.TYPE_HARD:
        raise ValueError(f"'{name.decode(errors='replace')}' is a link to somewhere else")


def _inspect_data(data: h5py.h5o.ObjectID, name: str, size: int, what: str) -> None:
    if not isinstance(data, h5d.DatasetID):
        raise ValueError(f"'{name}' is not an array")
    made, kind = data.get_create_plist(), data.get_type()
    layout = made.get_layout()
    if layout == h5d.VIRTUAL or (layout == h5d.CONTIGUOUS and made.get_external_count()):
        raise ValueError(f"'{name}' is kept in another file")
    filters = [made.get_filter(i)[0] for i in range(made.get_nfilters())]
    if not set(filters) <= _FILTERS:
        raise ValueError(f"'{name}' has passed a filter that is not known")
    text = isinstance(kind, h5t.TypeStringID)
    if text != (what == "names") or not isinstance(kind, (h5t.TypeFloatID, h5t.TypeIntegerID, h5t.TypeStringID)):
        raise ValueError(f"'{name}' does not consist of {what}")
    stored, shape, width = data.get_storage_size(), data.shape, kind.get_size()
    if shape is None or stored > size or width > 64:
        raise ValueError(f"'{name}' claims to be larger than the file")
    nominal, row = math.prod(shape) * width, math.prod(shape[1:]) * width
    if layout == h5d.CHUNKED and math.prod(made.get_chunk()) * width > max(_CHUNK, row):
        raise ValueError(f"'{name}' is stored in pieces larger than any that livens writes")
    if name in MOSTLY_USUAL:
        if len(shape) != 1:
            raise ValueError(f"'{name}' is not a row of numbers")
    elif nominal > stored * (_SMALLER if filters else 1):
        raise ValueError(f"'{name}' claims to be larger than what is stored of it")
