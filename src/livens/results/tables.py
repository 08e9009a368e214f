"""Runs as tables of pandas, for whoever works with these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.errors import InputError

if TYPE_CHECKING:
    from livens.results.result import Result


def pandas() -> Any:
    """The module, if it is there; xarray, which livens needs, usually brings it."""
    try:
        import pandas
    except ImportError:
        raise InputError("that needs pandas: pip install pandas") from None
    return pandas


def frame(result: Result, names: str | Sequence[str] | None = None) -> Any:
    """Quantities by name over time; all coordinates, or states, if nobody says which. Vectors have a column for each
    component."""
    if names is None:
        names = list(result.facts.coordinates)
    elif isinstance(names, str):
        names = [names]
    elif not isinstance(names, (list, tuple)):
        raise InputError(f"quantities are asked for by their names, got {names!r}")
    columns: dict[str, np.ndarray] = {}
    for name in names:
        found = result[name]
        for label, values in found.items() if isinstance(found, dict) else [(name, found)]:
            flat = np.asarray(values).reshape(len(result.t), -1)
            for i in range(flat.shape[1]):
                columns[label if flat.shape[1] == 1 else f"{label}[{i}]"] = flat[:, i]
    return pandas().DataFrame(columns, index=pandas().Index(np.asarray(result.t), name="t"))
