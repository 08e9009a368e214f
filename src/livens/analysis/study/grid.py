"""Parameter grids of sweeps: parsing of values, and all combinations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from livens.errors import InputError
from livens.validation import check_number

#: Maximum number of runs of a sweep.
MAX_RUNS = 1_000_000


def parse_values(text: str) -> tuple[str, list[Any]]:
    """Parse ``name=a,b,c`` or ``name=first:last:count``, with ``:log`` for logarithmic spacing.

    >>> parse_values("m=0.1:10:3:log")
    ('m', [0.1, 1.0, 10.0])
    >>> parse_values("scheme=livens-em,livens-midpoint")
    ('scheme', ['livens-em', 'livens-midpoint'])
    """
    name, equals, specification = text.partition("=")
    name, specification = name.strip(), specification.strip()
    if not (name and equals and specification):
        raise InputError(f"--vary must look like name=value,value or name=first:last:count[:log], got '{text}'")
    if name == "scheme":
        return name, [part.strip() for part in specification.split(",")]
    if ":" in specification:
        return name, _range(text, name, specification.split(":"))
    return name, [check_number(name, part) for part in specification.split(",")]


def _range(text: str, name: str, parts: list[str]) -> list[float]:
    if len(parts) not in (3, 4) or (len(parts) == 4 and parts[3].strip() not in ("log", "lin")):
        raise InputError(f"--vary {text}: a range is first:last:count, with :log for logarithmic spacing")
    start, stop = check_number(name, parts[0]), check_number(name, parts[1])
    try:
        count = int(parts[2])
    except ValueError:
        count = 0
    if not 1 <= count <= MAX_RUNS:
        raise InputError(f"--vary {text}: the count must be a whole number from 1 to {MAX_RUNS}, got '{parts[2]}'")
    if parts[3:] and parts[3].strip() == "log":
        if start <= 0 or stop <= 0:
            raise InputError(f"--vary {text}: logarithmic spacing needs positive ends")
        points = np.exp(np.linspace(math.log(start), math.log(stop), count))
        points[0] = start
        points[-1] = stop if count > 1 else start
    else:
        points = np.linspace(start, stop, count)
    # rounds 0.30000000000000004 to 0.3
    return [float(f"{x:.15g}") for x in points]


def combinations(vary: Mapping[str, Iterable[object]]) -> list[dict[str, object]]:
    """Return all combinations of the values; the last name changes fastest."""
    lists = {name: list(items) for name, items in vary.items()}
    for name, items in lists.items():
        if not items:
            raise InputError(f"'{name}' has no values")
    if not lists:
        raise InputError("nothing is varied: name at least one option with its values")
    count = math.prod(len(items) for items in lists.values())
    if count > MAX_RUNS:
        raise InputError(f"{count} runs are too many (at most {MAX_RUNS})")
    return [dict(zip(lists, combination, strict=True)) for combination in itertools.product(*lists.values())]
