"""A file that changes from one consistent state to the next, whatever stops the program or the machine in between.

HDF5 changes its bookkeeping in place, in many small pieces: killed in between, a file is lost. So HDF5 writes into an
`AtomicFile` (h5py takes any file-like object), which lets through only what the last consistent state does not refer
to, namely bytes after its end. The other pieces are held back until `commit`:

1. they are appended to the file as a journal, with a checksum, and everything is brought to disk;
2. the file's signature is overwritten, so that nobody takes what follows for a whole file;
3. the pieces go to their places, the signature last, and everything is brought to disk;
4. the journal is cut off.

Stopped before 1 is done, the file is in its old state, with a tail nobody refers to. Stopped later, the journal brings
it to its new state (`pending`, `repair`). A full disk is noticed in 1 and leaves the old state.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from collections.abc import Iterable
from typing import Any

from livens.results import heaps

#: Offset and bytes.
Piece = tuple[int, bytes]

SIGNATURE = b"\x89HDF\r\n\x1a\n"
_UNFINISHED = b"livens.."
_HEAD = struct.Struct("<QQ")  # offset and length of a piece
_FOOT = struct.Struct("<8sQQQI")  # mark, size of the file without journal, length and number of the pieces, checksum
_MARK = b"LVjrnl1\n"
#: After this many bytes the system is told to begin writing them to disk: a commit then has less to wait for.
_AHEAD = 1 << 24
#: No file is longer than this, in bytes.
_FARTHEST = 1 << 62


class AtomicFile:
    """File-like object for h5py on an open file descriptor; nothing but `commit` changes what the file says."""

    def __init__(self, descriptor: int, pieces: Iterable[Piece] = ()) -> None:
        self._fd = descriptor
        self._size = self._end = os.fstat(descriptor).st_size  # of the last consistent state, and of the next
        self._held = {(offset, len(data)): data for offset, data in pieces}  # in the order of writing
        self._position = 0
        self._on_its_way = self._size
        #: Why writing failed; nothing can be committed any more.
        self.failure: OSError | None = None

    # -- what h5py calls ----------------------------------------------------------------------------------------------
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
        first, last = self._position, self._position + len(view)
        if last > _FARTHEST:  # a damaged address
            raise OSError("it points beyond the end of any file")
        done = 0
        while done < len(view) and (count := os.preadv(self._fd, [view[done:]], first + done)):
            done += count
        view[done:] = bytes(len(view) - done)  # reserved, not yet written
        for (offset, length), data in self._held.items():
            a, b = max(first, offset), min(last, offset + length)
            if a < b:
                view[a - first : b - first] = data[a - offset : b - offset]
        self._position = last
        if view[:8] == heaps.SIGNATURE:
            self._check_heap(first, bytes(view[: heaps.SMALLEST]))
        return len(view)

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        first, last = self._position, self._position + len(view)
        inside = min(max(self._size - first, 0), len(view))
        if inside:
            self._hold(first, view[:inside])
        if inside < len(view):
            self._write_after_the_end(first + inside, view[inside:])
        self._position, self._end = last, max(self._end, last)
        return len(view)

    def truncate(self, size: int) -> int:
        self._end = size
        return size

    def flush(self) -> None:
        """HDF5 flushes whenever it likes; what counts is `commit`."""

    # -- inside -------------------------------------------------------------------------------------------------------
    def _check_heap(self, first: int, head: bytes) -> None:
        """HDF5 is about to read a heap of texts, and would not notice that it is damaged."""
        size, position = heaps.size(head), self._position
        if len(head) < size <= min(heaps.LARGEST, self._end - first):
            rest = bytearray(size - 8)
            self._position = first + 8  # not at its beginning, which would be checked again
            self.readinto(rest)
            self._position, head = position, head[:8] + rest
        if not heaps.is_sound(head):
            raise OSError("a heap of texts is damaged")

    def _hold(self, offset: int, data: memoryview) -> None:
        key = offset, len(data)
        self._held.pop(key, None)
        self._held[key] = bytes(data)

    def _write_after_the_end(self, offset: int, data: memoryview) -> None:
        if self.failure is None:
            try:
                _write(self._fd, data, offset)
                self._hurry(offset + len(data))
                return
            except OSError as error:  # HDF5 would be left in disorder: let it finish what it does, in memory
                self.failure = error
        self._hold(offset, data)

    def _hurry(self, last: int) -> None:
        if last - self._on_its_way >= _AHEAD and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._fd, self._on_its_way, last - self._on_its_way, os.POSIX_FADV_DONTNEED)
            self._on_its_way = last

    # -- the only thing that changes what the file says ---------------------------------------------------------------
    def commit(self) -> None:
        """Make all that was written the state of the file, or raise OSError and leave its state as it was."""
        if self.failure is not None:
            raise self.failure
        pieces = [(offset, data) for (offset, _), data in self._held.items()]
        start = max(self._size, self._end)
        try:
            os.ftruncate(self._fd, start)
            _write(self._fd, _journal(pieces, self._end), start)
            os.fsync(self._fd)
        except OSError as error:
            self.failure = error
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._size)
            raise
        try:
            _apply(self._fd, pieces, self._end)
        except OSError as error:  # the journal is there and holds the new state
            self.failure = error
            raise
        self._size = self._end
        self._held.clear()


def pending(descriptor: int) -> tuple[list[Piece], int] | None:
    """The pieces of a whole journal at the end of a file and the size of the file without it, if there is one."""
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
    start = total - _FOOT.size - length  # a journal stands behind everything it changes
    if size > start or count > length // _HEAD.size:
        return None
    pieces, position = [], 0
    for _ in range(count):
        if position + _HEAD.size > length:
            return None
        offset, extent = _HEAD.unpack_from(body, position)
        position += _HEAD.size
        if extent > length - position or offset + extent > start:
            return None
        pieces.append((offset, body[position : position + extent]))
        position += extent
    pieces.append((0, SIGNATURE))  # overwritten while the pieces go to their places
    return pieces, size


def repair(descriptor: int) -> None:
    """Bring a file to the state its journal holds, and cut off what no consistent state refers to."""
    found = pending(descriptor)
    if found is not None:
        _apply(descriptor, *found)
    end = _end_of_state(descriptor)
    if end is not None and end < os.fstat(descriptor).st_size:
        os.ftruncate(descriptor, end)


def unfinished(descriptor: int) -> bool:
    """Whether the file was left in the middle of a change; without its journal it cannot be read."""
    return _read(descriptor, len(_UNFINISHED), 0) == _UNFINISHED


def _journal(pieces: list[Piece], size: int) -> bytes:
    body = b"".join(part for offset, data in pieces for part in (_HEAD.pack(offset, len(data)), data))
    foot = _FOOT.pack(_MARK, size, len(body), len(pieces), 0)[: -struct.calcsize("<I")]
    return body + foot + struct.pack("<I", zlib.crc32(foot, zlib.crc32(body)))


def _apply(descriptor: int, pieces: list[Piece], size: int) -> None:
    _write(descriptor, _UNFINISHED, 0)
    for offset, data in pieces:
        kept = max(0, len(SIGNATURE) - offset)  # the signature comes last
        _write(descriptor, data[kept:], offset + kept)
    _write(descriptor, SIGNATURE, 0)
    os.fsync(descriptor)
    os.ftruncate(descriptor, size)


def _end_of_state(descriptor: int) -> int | None:
    """Where HDF5 says its file ends (in a superblock of version 2)."""
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
