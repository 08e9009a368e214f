"""Validation of HDF5 global heaps, which contain variable-length strings.

HDF5 neither protects global heaps by a checksum nor validates them: an object of size zero causes an infinite loop in
the library. A file with a damaged heap is rejected instead.
"""

from __future__ import annotations

import struct

SIGNATURE = b"GCOL\x01\0\0\0"
_HEAD = struct.Struct("<8sQ")  # signature with version, size of the heap
_OBJECT = struct.Struct("<HH4xQ")  # index (0: free space), references, size
#: Sizes of heaps in bytes: HDF5 creates heaps of 4096 bytes, and larger ones only for longer strings.
SMALLEST, LARGEST = 4096, 1 << 26


def size(head: bytes) -> int:
    """Return the size of the heap that starts with these bytes; 0 if they are not a heap."""
    if len(head) < _HEAD.size or head[: len(SIGNATURE)] != SIGNATURE:
        return 0
    return int(_HEAD.unpack_from(head)[1])


def is_sound(heap: bytes) -> bool:
    """Return True if the objects of a heap are contiguous up to its end.

    >>> whole = SIGNATURE + struct.pack("<Q", 4096) + _OBJECT.pack(1, 1, 5) + b"hello\\0\\0\\0"
    >>> whole += _OBJECT.pack(0, 0, 4056)
    >>> is_sound(whole.ljust(4096, b"\\0")), is_sound(whole[:40].ljust(4096, b"\\0"))
    (True, False)
    """
    end = size(heap)
    if not SMALLEST <= end <= len(heap):
        return False
    place = _HEAD.size
    while place + _OBJECT.size <= end:
        number, _, length = _OBJECT.unpack_from(heap, place)
        # free space includes its header, and may be shorter than a header at the end
        taken = _OBJECT.size + (length + 7) // 8 * 8 if number else length
        if taken < 8 or place + taken > end:
            return False
        place += taken
    return True
