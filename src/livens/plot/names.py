"""Axis labels: symbols and units of coordinates and observables."""

from __future__ import annotations

import re
from collections.abc import Sequence

from livens.models.scene import points
from livens.plot.style import escaped

__all__ = ["label", "momentum", "points", "quantity", "spread", "symbol"]

_GREEK = "alpha beta gamma delta theta phi varphi psi omega chi".split()
_LENGTH = re.compile(r"[xyzr]\d*")
_ANGLE = re.compile(rf"({'|'.join(_GREEK)})_?\d*")
_DIRECTOR = re.compile(r"d\d[xyz]")
_SYMBOL = re.compile(rf"({'|'.join(_GREEK)}|[A-Za-z])_?(\d*)")


def symbol(name: str, dot: bool = False) -> str:
    """Return a coordinate, or its rate, as a formula if the name is a symbol (``x1``, ``theta``), otherwise as text."""
    found = _SYMBOL.fullmatch(name)
    if not found:
        return f"rate of {escaped(name)}" if dot else escaped(name)
    letter = rf"\{found[1]}" if found[1] in _GREEK else found[1]
    index = f"_{{{found[2]}}}" if found[2] else ""
    return rf"$\dot{{{letter}}}{index}$" if dot else f"${letter}{index}$"


def momentum(name: str) -> str:
    """Return the symbol of the momentum of a coordinate."""
    found = symbol(name)
    return f"$p_{{{found.strip('$')}}}$" if found.startswith("$") else f"momentum of {found}"


def quantity(name: str) -> str:
    """Return an observable as text, or as a formula if its name is one (``p_phi``)."""
    letter, _, index = name.partition("_")
    if len(letter) != 1 or not index.isalnum():
        return escaped(name).replace("_", " ")
    return f"${letter}_{{{symbol(index).strip('$') if _SYMBOL.fullmatch(index) else index}}}$"


def label(name: str, rate: bool = False) -> str:
    """Return symbol and, if known, unit of a coordinate or of its rate."""
    last = name.rpartition(".")[2]
    units = (
        ("m", "m/s") if _LENGTH.fullmatch(last)
        else ("rad", "rad/s") if _ANGLE.fullmatch(last)
        else ("", "1/s") if _DIRECTOR.fullmatch(last)
        else ("", "")
    )  # fmt: skip
    unit = units[rate]
    return symbol(name, rate) + (f" ({unit})" if unit else "")


def spread(items: Sequence[int], count: int) -> list[int]:
    """Return at most `count` items, evenly spaced."""
    if len(items) <= count:
        return list(items)
    return [items[i * (len(items) - 1) // (count - 1)] for i in range(count)]
