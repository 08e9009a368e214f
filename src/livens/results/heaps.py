"""Global heaps of HDF5, in which texts of any length are: looked at before HDF5 looks at them.

They are the one part of its bookkeeping that HDF5 neither protects by a checksum nor checks: an object that claims to
have no size sends it round and round for ever. A file that is damaged there is refused instead.
"""

from __future__ import annotations

import struct

SIGNATURE = b"GCOL\x01\0\0\0"
_HEAD = struct.Struct("<8sQ")  # signature with version, size of the heap
_OBJECT = struct.Struct("<HH4xQ")  # number (0 is what is free), references, size
#: HDF5 makes them of 4096 bytes, and larger only for larger texts.
SMALLEST, LARGEST = 4096, 1 << 26


def size(head: bytes) -> int:
    """How large the heap that begins with these bytes says it is; 0 if none begins here."""
    if len(head) < _HEAD.size or head[: len(SIGNATURE)] != SIGNATURE:
        return 0
    return int(_HEAD.unpack_from(head)[1])


def is_sound(heap: bytes) -> bool:
    """Whether objects follow each other up to the end of the heap.

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
        # what is free includes its own head, and may be less than a head at the very end
        taken = _OBJECT.size + (length + 7) // 8 * 8 if number else length
        if taken < 8 or place + taken > end:
            return False
        place += taken
    return True
