"""Axis labels: symbols and units of coordinates and observables."""

from __future__ import annotations

import re
from collections.abc import Sequence

from livens.plot.style import escaped
from livens.scene.scene import named_points

__all__ = ["evenly_spaced", "label", "momentum", "named_points", "quantity", "symbol"]

_GREEK = "alpha beta gamma delta theta phi varphi psi omega chi".split()
_LENGTH = re.compile(r"[xyzr]\d*")
_ANGLE = re.compile(rf"({'|'.join(_GREEK)})_?\d*")
_DIRECTOR = re.compile(r"d\d[xyz]")
_SYMBOL = re.compile(rf"({'|'.join(_GREEK)}|[A-Za-z])_?(\d*)")


def symbol(name: str, dot: bool = False) -> str:
    """Return a coordinate, or its rate, as a formula if the name is a symbol (``x1``, ``theta``), otherwise as text."""
    match = _SYMBOL.fullmatch(name)
    if not match:
        return f"rate of {escaped(name)}" if dot else escaped(name)
    letter = rf"\{match[1]}" if match[1] in _GREEK else match[1]
    index = f"_{{{match[2]}}}" if match[2] else ""
    return rf"$\dot{{{letter}}}{index}$" if dot else f"${letter}{index}$"


def momentum(name: str) -> str:
    """Return the symbol of the momentum of a coordinate."""
    formula = symbol(name)
    return f"$p_{{{formula.strip('$')}}}$" if formula.startswith("$") else f"momentum of {formula}"


def quantity(name: str) -> str:
    """Return an observable as text, or as a formula if its name is one (``p_phi``)."""
    letter, _, index = name.partition("_")
    if len(letter) != 1 or not index.isalnum():
        return escaped(name).replace("_", " ")
    return f"${letter}_{{{symbol(index).strip('$') if _SYMBOL.fullmatch(index) else index}}}$"


def label(name: str, rate: bool = False) -> str:
    """Return symbol and, if known, unit of a coordinate or of its rate."""
    coordinate = name.rpartition(".")[2]
    units = (
        ("m", "m/s") if _LENGTH.fullmatch(coordinate)
        else ("rad", "rad/s") if _ANGLE.fullmatch(coordinate)
        else ("", "1/s") if _DIRECTOR.fullmatch(coordinate)
        else ("", "")
    )  # fmt: skip
    unit = units[rate]
    return symbol(name, rate) + (f" ({unit})" if unit else "")


def evenly_spaced(items: Sequence[int], count: int) -> list[int]:
    """Return at most `count` items, evenly spaced."""
    if len(items) <= count:
        return list(items)
    return [items[i * (len(items) - 1) // (count - 1)] for i in range(count)]
