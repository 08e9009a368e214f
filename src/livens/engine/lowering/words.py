"""What lowered functions can say beside Python's own words; only compiled code can do it."""

from __future__ import annotations

from typing import Any


def call(address: int, a: Any, b: Any, c: Any, d: Any, e: Any) -> None:
    """Call the native function at an address with five addresses."""
    raise NotImplementedError


def address(array: Any) -> int:
    """Where an array begins."""
    raise NotImplementedError


def doubles_at(place: int) -> Any:
    """The doubles that begin at an address."""
    raise NotImplementedError


def bits(x: float) -> int:
    """The bits of a number as a whole number. Of numbers that are not negative the larger has the larger one, and what
    is not a number has the largest.
    """
    raise NotImplementedError


def number(pattern: int) -> float:
    """The number with these bits."""
    raise NotImplementedError


def square_root(x: float) -> float:
    """The root of a number."""
    raise NotImplementedError


def publish(array: Any, i: int, value: int) -> None:
    """``array[i] = value``, which other threads see after everything that was written before."""
    raise NotImplementedError


def published(array: Any, i: int) -> int:
    """``array[i]``; whatever was written before it was published can be read then."""
    raise NotImplementedError


def give_way() -> None:
    """Let other threads have the core."""
    raise NotImplementedError


def pause() -> None:
    """Tell the core that it waits for another one."""
    raise NotImplementedError


WORDS = frozenset((call, address, doubles_at, bits, number, square_root, publish, published, give_way, pause))
