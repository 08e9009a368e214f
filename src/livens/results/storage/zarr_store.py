"""Zarr arrays (format 2): one binary file per chunk, with JSON metadata; zarr and xarray can read them.

The zarr library is not needed. Each finished block of members is one file per variable. Files are written atomically,
so that several processes can write different blocks.
"""

from __future__ import annotations

import json
import math
import re
import stat
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from livens.results.storage.atomic import write_atomically

#: Approximate size in bytes of the chunks of arrays that are written at once.
_CHUNK_BYTES = 64_000_000
#: Names of files in a store: metadata, chunks, and temporary files.
_FILE = re.compile(r"\.(zgroup|zattrs|zarray|zmetadata)|\d+(\.\d+)*|\..*\.part")


def _write_json(path: Path, content: Mapping[str, object]) -> None:
    write_atomically(path, json.dumps(content, indent=1).encode())


@dataclass(frozen=True)
class ZarrArray:
    """Array in a folder of a store. Missing chunks are NaN, or zero for integers."""

    folder: Path
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype[Any]

    @classmethod
    def create(
        cls, store: Path, name: str, shape: Sequence[int], chunks: Sequence[int], dtype: Any, axes: Sequence[str]
    ) -> ZarrArray:
        """Create an array without chunks; `axes` are the names of its dimensions."""
        little_endian = np.dtype(dtype).newbyteorder("<")
        folder = store / name
        folder.mkdir(exist_ok=True)
        meta = {
            "zarr_format": 2,
            "shape": list(map(int, shape)),
            "chunks": [max(1, int(size)) for size in chunks],
            "dtype": little_endian.str,
            "compressor": None,
            "filters": None,
            "order": "C",
            "fill_value": "NaN" if little_endian.kind == "f" else None,  # readers mask integers equal to the fill value
        }
        _write_json(folder / ".zarray", meta)
        _write_json(folder / ".zattrs", {"_ARRAY_DIMENSIONS": list(axes)})
        return cls.open(store, name)

    @classmethod
    def open(cls, store: Path, name: str) -> ZarrArray:
        meta = json.loads((store / name / ".zarray").read_text())
        if meta["zarr_format"] != 2 or meta["compressor"] or meta["filters"] or meta["order"] != "C":
            raise ValueError(f"'{store / name}' was not written by livens")
        shape, chunks, dtype = tuple(meta["shape"]), tuple(meta["chunks"]), np.dtype(str(meta["dtype"]))
        sizes = all(type(n) is int and n >= 0 for n in shape) and all(type(n) is int and n >= 1 for n in chunks)
        if not sizes or len(shape) != len(chunks) or dtype.kind not in "fiubU" or not dtype.itemsize:
            raise ValueError(f"'{store / name}' was not written by livens")
        return cls(store / name, shape, chunks, dtype)

    @property
    def axes(self) -> tuple[str, ...]:
        return tuple(json.loads((self.folder / ".zattrs").read_text())["_ARRAY_DIMENSIONS"])

    def _path(self, chunk_index: Sequence[int]) -> Path:
        return self.folder / (".".join(map(str, chunk_index)) if chunk_index else "0")

    def write_chunk(self, index: int, values: np.ndarray) -> None:
        """Write a chunk by its index along the first axis; it spans all other axes."""
        chunk = np.full(self.chunks, np.nan if self.dtype.kind == "f" else np.zeros(1, self.dtype)[0], self.dtype)
        chunk[tuple(slice(0, size) for size in values.shape)] = values
        write_atomically(self._path((index, *[0] * (len(self.shape) - 1))), chunk.tobytes())

    def read_chunk(self, index: int) -> np.ndarray:
        """Read a chunk by its index along the first axis, without padding."""
        start = index * self.chunks[0]
        size = min(self.chunks[0], self.shape[0] - start)
        path = self._path((index, *[0] * (len(self.shape) - 1)))
        return np.fromfile(path, self.dtype).reshape(self.chunks)[(slice(0, size), *map(slice, self.shape[1:]))]

    def write(self, values: np.ndarray) -> None:
        """Write all values in chunks along the first axis."""
        if not self.shape:
            write_atomically(self._path(()), np.asarray(values, self.dtype).tobytes())
            return
        for index in range(math.ceil(self.shape[0] / self.chunks[0])):
            start = index * self.chunks[0]
            self.write_chunk(index, values[start : start + self.chunks[0]])

    def write_missing_chunks(self) -> None:
        """Write missing chunks, of members that were not started."""
        for index in range(math.ceil(self.shape[0] / self.chunks[0])):
            if not self._path((index, *[0] * (len(self.shape) - 1))).exists():
                self.write_chunk(index, np.zeros((0,) * len(self.shape), self.dtype))

    def check(self) -> None:
        """Raise ValueError unless all chunks exist with the right size, before memory is allocated."""
        size = math.prod(self.chunks) * self.dtype.itemsize
        stored = sum(path.name[:1] != "." for path in self.folder.iterdir())
        counts = [math.ceil(size / chunk) for size, chunk in zip(self.shape, self.chunks, strict=True)]
        if math.prod(counts) != stored:
            raise ValueError(f"'{self.folder.name}' has {stored} chunks instead of {math.prod(counts)}")
        for chunk_index in product(*map(range, counts)):
            if self._path(chunk_index).stat().st_size != size:
                raise ValueError(f"a chunk of '{self.folder.name}' has a wrong size")

    def read(self) -> np.ndarray:
        """Read all values; every chunk must exist."""
        self.check()
        out = np.empty(self.shape, self.dtype)
        counts = [range(math.ceil(size / chunk)) for size, chunk in zip(self.shape, self.chunks, strict=True)]
        for chunk_index in product(*counts):
            target = tuple(
                slice(i * c, min((i + 1) * c, n)) for i, c, n in zip(chunk_index, self.chunks, self.shape, strict=True)
            )
            block = np.fromfile(self._path(chunk_index), self.dtype).reshape(self.chunks)
            out[target] = block[tuple(slice(0, slice_.stop - slice_.start) for slice_ in target)]
        return out


def write_array(store: Path, name: str, values: np.ndarray, axes: Sequence[str]) -> ZarrArray:
    """Write an array with all its values."""
    values = np.asarray(values)
    row = max(1, int(np.prod(values.shape[1:], dtype=int)) * values.dtype.itemsize)
    chunk_rows = [max(1, min(values.shape[0], _CHUNK_BYTES // row))] if values.ndim else []
    array = ZarrArray.create(store, name, values.shape, [*chunk_rows, *values.shape[1:]], values.dtype, axes)
    array.write(values)
    return array


def create_group(store: Path) -> None:
    """Create a store without arrays."""
    store.mkdir(exist_ok=True)
    _write_json(store / ".zgroup", {"zarr_format": 2})


def consolidate(store: Path, attributes: Mapping[str, object]) -> None:
    """Write the attributes and the consolidated metadata of a store."""
    _write_json(store / ".zattrs", attributes)
    metadata = {".zgroup": {"zarr_format": 2}, ".zattrs": dict(attributes)}
    for folder in sorted(path.parent for path in store.glob("*/.zarray")):
        for metadata_file in (".zarray", ".zattrs"):
            metadata[f"{folder.name}/{metadata_file}"] = json.loads((folder / metadata_file).read_text())
    _write_json(store / ".zmetadata", {"zarr_consolidated_format": 1, "metadata": metadata})


def remove_temporary_files(store: Path) -> None:
    """Remove the temporary files in a store and in its arrays, which killed processes leave."""
    for path in [*store.glob(".*.part"), *store.glob("*/.*.part")]:
        path.unlink(missing_ok=True)


def has_only_store_files(store: Path, allowed: Collection[str] = ()) -> bool:
    """Return True if a folder contains only the files of a store: no links and no nested folders."""
    if store.is_symlink() or not store.is_dir():
        return False
    for entry in store.iterdir():
        mode = entry.lstat().st_mode
        if entry.name in allowed:
            continue
        if stat.S_ISDIR(mode):
            if not all(stat.S_ISREG(file.lstat().st_mode) and _FILE.fullmatch(file.name) for file in entry.iterdir()):
                return False
        elif not stat.S_ISREG(mode) or not _FILE.fullmatch(entry.name):
            return False
    return True


def checksums(store: Path) -> dict[str, int]:
    """Return the CRC-32 checksum of every array, over its metadata and chunks."""
    checksums_by_name = {}
    for name in array_names(store):
        value = 0
        for path in sorted((store / name).iterdir()):
            value = zlib.crc32(path.name.encode(), value)
            with path.open("rb") as file:
                while block := file.read(1 << 22):
                    value = zlib.crc32(block, value)
        checksums_by_name[name] = value
    return checksums_by_name


def read_attributes(store: Path) -> dict[str, Any]:
    """Return the attributes of a store."""
    attributes: dict[str, Any] = json.loads((store / ".zattrs").read_text())
    return attributes


def array_names(store: Path) -> list[str]:
    """Return the names of the arrays in a store."""
    return sorted(path.parent.name for path in store.glob("*/.zarray"))
