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
MIN_SIZE, MAX_SIZE = 4096, 1 << 26


def heap_size(head: bytes) -> int:
    """Return the size of the heap that starts with these bytes; 0 if they are not a heap."""
    if len(head) < _HEAD.size or head[: len(SIGNATURE)] != SIGNATURE:
        return 0
    return int(_HEAD.unpack_from(head)[1])


def is_valid_heap(heap: bytes) -> bool:
    """Return True if the objects of a heap are contiguous up to its end.

    >>> whole = SIGNATURE + struct.pack("<Q", 4096) + _OBJECT.pack(1, 1, 5) + b"hello\\0\\0\\0"
    >>> whole += _OBJECT.pack(0, 0, 4056)
    >>> is_valid_heap(whole.ljust(4096, b"\\0")), is_valid_heap(whole[:40].ljust(4096, b"\\0"))
    (True, False)
    """
    end = heap_size(heap)
    if not MIN_SIZE <= end <= len(heap):
        return False
    offset = _HEAD.size
    while offset + _OBJECT.size <= end:
        index, _, length = _OBJECT.unpack_from(heap, offset)
        # free space includes its header, and may be shorter than a header at the end
        extent = _OBJECT.size + (length + 7) // 8 * 8 if index else length
        if extent < 8 or offset + extent > end:
            return False
        offset += extent
    return True
