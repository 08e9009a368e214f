"""Intrinsics of lowered functions; they exist in compiled code only."""

from __future__ import annotations

from typing import Any


def call_kernel(address: int, a: object, b: object, c: object, d: object, e: object) -> None:
    """Call the kernel at an address with five pointers."""
    raise NotImplementedError


def address_of(array: object) -> int:
    """Return the address of an array."""
    raise NotImplementedError


def f64_pointer(address: int) -> Any:
    """Return the float64 array at an address."""
    raise NotImplementedError


def float_to_bits(x: float) -> int:
    """Return the bit pattern of a float as an integer.

    The bit patterns of non-negative doubles order like int64; NaN sorts last.
    """
    raise NotImplementedError


def bits_to_float(pattern: int) -> float:
    """Return the float with a bit pattern."""
    raise NotImplementedError


def sqrt(x: float) -> float:
    """Return the square root."""
    raise NotImplementedError


def atan(x: float) -> float:
    """Return the arc tangent."""
    raise NotImplementedError


def load_quad(array: object, i: int) -> Any:
    """Load the vector of four entries from entry i on."""
    raise NotImplementedError


def store_quad(array: object, i: int, vector: object) -> None:
    """Store a vector of four to the entries from entry i on."""
    raise NotImplementedError


def make_quad(x: float, y: float, z: float) -> Any:
    """Return the vector (x, y, z, 0)."""
    raise NotImplementedError


def lane(vector: object, i: int) -> float:
    """Return component i of a vector of four."""
    raise NotImplementedError


def sum3(vector: object) -> float:
    """Return the sum of the first three components of a vector of four."""
    raise NotImplementedError


def cyclic(vector: object) -> Any:
    """Return the vector (y, z, x, w) of a vector (x, y, z, w)."""
    raise NotImplementedError


def store_release(array: object, i: int, value: int) -> None:
    """Store ``array[i] = value`` with release ordering."""
    raise NotImplementedError


def load_acquire(array: object, i: int) -> int:
    """Load ``array[i]`` with acquire ordering."""
    raise NotImplementedError


def yield_thread() -> None:
    """Yield the core to other threads."""
    raise NotImplementedError


def cpu_pause() -> None:
    """Hint to the processor that this thread spins."""
    raise NotImplementedError


INTRINSICS = frozenset(
    (
        call_kernel,
        address_of,
        f64_pointer,
        float_to_bits,
        bits_to_float,
        sqrt,
        atan,
        load_quad,
        store_quad,
        make_quad,
        lane,
        sum3,
        cyclic,
        store_release,
        load_acquire,
        yield_thread,
        cpu_pause,
    )
)
