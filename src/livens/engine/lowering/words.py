"""Intrinsics of lowered functions; they exist in compiled code only."""

from __future__ import annotations

from typing import Any


def call(address: int, a: Any, b: Any, c: Any, d: Any, e: Any) -> None:
    """Call the kernel at an address with five pointers."""
    raise NotImplementedError


def address(array: Any) -> int:
    """Return the address of an array."""
    raise NotImplementedError


def doubles_at(place: int) -> Any:
    """Return the float64 array at an address."""
    raise NotImplementedError


def bits(x: float) -> int:
    """Return the bit pattern of a float as an integer.

    The bit patterns of non-negative doubles order like int64; NaN sorts last.
    """
    raise NotImplementedError


def number(pattern: int) -> float:
    """Return the float with a bit pattern."""
    raise NotImplementedError


def square_root(x: float) -> float:
    """Return the square root."""
    raise NotImplementedError


def publish(array: Any, i: int, value: int) -> None:
    """Store ``array[i] = value`` with release ordering."""
    raise NotImplementedError


def published(array: Any, i: int) -> int:
    """Load ``array[i]`` with acquire ordering."""
    raise NotImplementedError


def give_way() -> None:
    """Yield the core to other threads."""
    raise NotImplementedError


def pause() -> None:
    """Hint to the processor that this thread spins."""
    raise NotImplementedError


WORDS = frozenset((call, address, doubles_at, bits, number, square_root, publish, published, give_way, pause))
