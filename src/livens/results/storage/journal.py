"""Write-ahead journal: a file that changes atomically between consistent states, also if the machine stops.

HDF5 changes its metadata in place by many small patches: killed in between, the file would be lost. HDF5 therefore
writes to an `AtomicFile` (h5py accepts any file-like object). It writes directly only bytes after the end of the last
consistent state. All other patches are deferred until `commit`:

1. the patches are appended to the file as a journal with a checksum, and the file is synchronised to disk;
2. the signature of the file is overwritten, so that an intermediate state is not mistaken for a valid file;
3. the patches are applied, the signature last, and the file is synchronised to disk;
4. the journal is truncated.

After a stop before the end of 1 the file is in its old state, with an unreferenced tail. After a later stop the journal
restores the new state (`pending`, `repair`). A full disk is detected in 1 and leaves the old state.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from collections.abc import Iterable
from typing import Any

from livens.results.storage import hdf5_heap_check

#: Patch of a file: offset and bytes.
Patch = tuple[int, bytes]

SIGNATURE = b"\x89HDF\r\n\x1a\n"
_UNFINISHED = b"livens.."
_HEAD = struct.Struct("<QQ")  # offset and length of a patch
_FOOT = struct.Struct("<8sQQQI")  # mark, size of the file without journal, length and number of the patches, checksum
_MARK = b"LVjrnl1\n"
#: Number of bytes after which write-back to disk is started, to shorten the next commit.
_WRITEBACK_BYTES = 1 << 24
#: Upper bound of file offsets, in bytes.
_MAX_OFFSET = 1 << 62


class AtomicFile:
    """File-like object for h5py on an open file descriptor; only `commit` changes the state of the file."""

    def __init__(self, descriptor: int, patches: Iterable[Patch] = ()) -> None:
        self._fd = descriptor
        self._size = self._end = os.fstat(descriptor).st_size  # of the committed state, and of the next state
        self._deferred = {(offset, len(data)): data for offset, data in patches}  # in write order
        self._position = 0
        self._written_back = self._size
        #: Error of a failed write; it prevents further commits.
        self.failure: OSError | None = None

    # -- interface of h5py --------------------------------------------------------------------------------------------
    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._position = offset + (self._end if whence == os.SEEK_END else 0)
        return self._position

    def tell(self) -> int:
        return self._position

    def read(self, size: int = -1) -> bytearray:
        content = bytearray(self._end - self._position if size < 0 else size)
        self.readinto(content)
        return content

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        start, stop = self._position, self._position + len(view)
        if stop > _MAX_OFFSET:  # a damaged address
            raise OSError("an address is beyond the maximum file size")
        done = 0
        while done < len(view) and (count := os.preadv(self._fd, [view[done:]], start + done)):
            done += count
        view[done:] = bytes(len(view) - done)  # allocated but unwritten bytes are zero
        for (offset, length), data in self._deferred.items():
            a, b = max(start, offset), min(stop, offset + length)
            if a < b:
                view[a - start : b - start] = data[a - offset : b - offset]
        self._position = stop
        if view[:8] == hdf5_heap_check.SIGNATURE:
            self._check_heap(start, bytes(view[: hdf5_heap_check.MIN_SIZE]))
        return len(view)

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        start, stop = self._position, self._position + len(view)
        n_deferred = min(max(self._size - start, 0), len(view))
        if n_deferred:
            self._defer(start, view[:n_deferred])
        if n_deferred < len(view):
            self._append(start + n_deferred, view[n_deferred:])
        self._position, self._end = stop, max(self._end, stop)
        return len(view)

    def truncate(self, size: int) -> int:
        self._end = size
        return size

    def flush(self) -> None:
        """Ignore flushes of HDF5; only `commit` is relevant."""

    def close(self) -> None:
        """Close the descriptor; the system may reuse its number, so later accesses of HDF5 must not reach it."""
        descriptor, self._fd = self._fd, -1
        if descriptor >= 0:
            os.close(descriptor)

    # -- private ------------------------------------------------------------------------------------------------------
    def _check_heap(self, start: int, head: bytes) -> None:
        """Validate a global heap before HDF5 reads it; HDF5 does not detect damage there."""
        size, position = hdf5_heap_check.heap_size(head), self._position
        if len(head) < size <= min(hdf5_heap_check.MAX_SIZE, self._end - start):
            remainder = bytearray(size - 8)
            self._position = start + 8  # skip the signature, which would start the validation again
            self.readinto(remainder)
            self._position, head = position, head[:8] + remainder
        if not hdf5_heap_check.is_valid_heap(head):
            raise OSError("a heap of texts is damaged")

    def _defer(self, offset: int, data: memoryview) -> None:
        key = offset, len(data)
        self._deferred.pop(key, None)
        self._deferred[key] = bytes(data)

    def _append(self, offset: int, data: memoryview) -> None:
        if self.failure is None:
            try:
                _write(self._fd, data, offset)
                self._start_writeback(offset + len(data))
                return
            except OSError as error:  # an exception would leave HDF5 inconsistent: continue in memory
                self.failure = error
        self._defer(offset, data)

    def _start_writeback(self, stop: int) -> None:
        if stop - self._written_back >= _WRITEBACK_BYTES and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._fd, self._written_back, stop - self._written_back, os.POSIX_FADV_DONTNEED)
            self._written_back = stop

    # -- commit -------------------------------------------------------------------------------------------------------
    def commit(self) -> None:
        """Make all written data the state of the file, or raise OSError and leave the state unchanged."""
        if self.failure is not None:
            raise self.failure
        patches = [(offset, data) for (offset, _), data in self._deferred.items()]
        start = max(self._size, self._end)
        try:
            os.ftruncate(self._fd, start)
            _write(self._fd, _pack_journal(patches, self._end), start)
            os.fsync(self._fd)
        except OSError as error:
            self.failure = error
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._size)
            raise
        try:
            _apply(self._fd, patches, self._end)
        except OSError as error:  # the journal contains the new state
            self.failure = error
            raise
        self._size = self._end
        self._deferred.clear()


def pending(descriptor: int) -> tuple[list[Patch], int] | None:
    """Return the patches of a complete journal and the size of the file without it, or None without journal."""
    total = os.fstat(descriptor).st_size
    foot = _read(descriptor, _FOOT.size, max(0, total - _FOOT.size))
    if len(foot) < _FOOT.size or not foot.startswith(_MARK):
        return None
    _, size, length, count, checksum = _FOOT.unpack(foot)
    if length > total - _FOOT.size:
        return None
    body = _read(descriptor, length, total - _FOOT.size - length)
    if zlib.crc32(foot[: -struct.calcsize("<I")], zlib.crc32(body)) != checksum:
        return None
    start = total - _FOOT.size - length  # a journal is located after all data that it changes
    if size > start or count > length // _HEAD.size:
        return None
    patches, position = [], 0
    for _ in range(count):
        if position + _HEAD.size > length:
            return None
        offset, extent = _HEAD.unpack_from(body, position)
        position += _HEAD.size
        if extent > length - position or offset + extent > start:
            return None
        patches.append((offset, body[position : position + extent]))
        position += extent
    patches.append((0, SIGNATURE))  # overwritten while the patches are applied
    return patches, size


def repair(descriptor: int) -> None:
    """Apply the journal of a file, if any, and truncate data that the consistent state does not reference."""
    journal = pending(descriptor)
    if journal is not None:
        _apply(descriptor, *journal)
    end = _end_of_state(descriptor)
    if end is not None and end < os.fstat(descriptor).st_size:
        os.ftruncate(descriptor, end)


def unfinished(descriptor: int) -> bool:
    """Return True if a change of the file was interrupted; without its journal it cannot be read."""
    return _read(descriptor, len(_UNFINISHED), 0) == _UNFINISHED


def _pack_journal(patches: list[Patch], size: int) -> bytes:
    body = b"".join(part for offset, data in patches for part in (_HEAD.pack(offset, len(data)), data))
    foot = _FOOT.pack(_MARK, size, len(body), len(patches), 0)[: -struct.calcsize("<I")]
    return body + foot + struct.pack("<I", zlib.crc32(foot, zlib.crc32(body)))


def _apply(descriptor: int, patches: list[Patch], size: int) -> None:
    _write(descriptor, _UNFINISHED, 0)
    for offset, data in patches:
        n_skipped = max(0, len(SIGNATURE) - offset)  # the signature is written last
        _write(descriptor, data[n_skipped:], offset + n_skipped)
    _write(descriptor, SIGNATURE, 0)
    os.fsync(descriptor)
    os.ftruncate(descriptor, size)


def _end_of_state(descriptor: int) -> int | None:
    """Return the end-of-file address in the HDF5 superblock of version 2, or None for other versions."""
    block = _read(descriptor, 36, 0)
    if len(block) < 36 or not block.startswith(SIGNATURE) or block[8] != 2 or block[9] != 8:
        return None
    return int.from_bytes(block[28:36], "little")


def _write(descriptor: int, data: bytes | memoryview, offset: int) -> None:
    view = memoryview(data)
    while view:
        done = os.pwrite(descriptor, view, offset)
        view, offset = view[done:], offset + done


def _read(descriptor: int, size: int, offset: int) -> bytes:
    parts = []
    while size > 0:
        part = os.pread(descriptor, size, offset)
        if not part:
            break
        parts.append(part)
        size, offset = size - len(part), offset + len(part)
    return b"".join(parts)
