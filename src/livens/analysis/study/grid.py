"""Parameter grids of sweeps: parsing of values, and all combinations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from livens.errors import InputError
from livens.expressions.numbers import number

#: Maximum number of runs of a sweep.
MOST = 1_000_000


def values(text: str) -> tuple[str, list[Any]]:
    """Parse ``name=a,b,c`` or ``name=first:last:count``, with ``:log`` for logarithmic spacing.

    >>> values("m=0.1:10:3:log")
    ('m', [0.1, 1.0, 10.0])
    >>> values("scheme=livens-em,livens-midpoint")
    ('scheme', ['livens-em', 'livens-midpoint'])
    """
    name, equals, given = text.partition("=")
    name, given = name.strip(), given.strip()
    if not (name and equals and given):
        raise InputError(f"--vary must look like name=value,value or name=first:last:count[:log], got '{text}'")
    if name == "scheme":
        return name, [part.strip() for part in given.split(",")]
    if ":" in given:
        return name, _range(text, name, given.split(":"))
    return name, [number(name, part) for part in given.split(",")]


def _range(text: str, name: str, parts: list[str]) -> list[float]:
    if len(parts) not in (3, 4) or (len(parts) == 4 and parts[3].strip() not in ("log", "lin")):
        raise InputError(f"--vary {text}: a range is first:last:count, with :log for logarithmic spacing")
    first, last = number(name, parts[0]), number(name, parts[1])
    try:
        count = int(parts[2])
    except ValueError:
        count = 0
    if not 1 <= count <= MOST:
        raise InputError(f"--vary {text}: the count must be a whole number from 1 to {MOST}, got '{parts[2]}'")
    if parts[3:] and parts[3].strip() == "log":
        if first <= 0 or last <= 0:
            raise InputError(f"--vary {text}: logarithmic spacing needs positive ends")
        points = np.exp(np.linspace(math.log(first), math.log(last), count))
        points[0] = first
        points[-1] = last if count > 1 else first
    else:
        points = np.linspace(first, last, count)
    # rounds 0.30000000000000004 to 0.3
    return [float(f"{x:.15g}") for x in points]


def combinations(vary: Mapping[str, Iterable[Any]]) -> list[dict[str, Any]]:
    """Return all combinations of the values; the last name changes fastest."""
    lists = {name: list(items) for name, items in vary.items()}
    for name, items in lists.items():
        if not items:
            raise InputError(f"'{name}' has no values")
    if not lists:
        raise InputError("nothing is varied: name at least one option with its values")
    count = math.prod(len(items) for items in lists.values())
    if count > MOST:
        raise InputError(f"{count} runs are too many (at most {MOST})")
    return [dict(zip(lists, chosen, strict=True)) for chosen in itertools.product(*lists.values())]
