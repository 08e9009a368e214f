"""Export of runs to pandas, and optional imports of pandas and xarray."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from livens.results.result import Result


def import_pandas() -> Any:
    """Import pandas, or raise `MissingExtraError` if it is not installed."""
    try:
        import pandas
    except ImportError:
        raise MissingExtraError("a data frame", "data") from None
    return pandas


def import_xarray() -> Any:
    """Import xarray, or raise `MissingExtraError` if it is not installed."""
    try:
        import xarray
    except ImportError:
        raise MissingExtraError("a Dataset", "data") from None
    return xarray


def to_dataframe(result: Result, names: str | Sequence[str] | None = None) -> Any:
    """Return quantities over time as a DataFrame (default: all coordinates); vectors have one column per component."""
    if names is None:
        names = list(result.info.coordinates)
    elif isinstance(names, str):
        names = [names]
    elif not isinstance(names, (list, tuple)):
        raise InputError(f"names must be a name or a list of names of quantities, got {names!r}")
    columns: dict[str, np.ndarray] = {}
    for name in names:
        quantity = result[name]
        for label, values in quantity.items() if isinstance(quantity, dict) else [(name, quantity)]:
            columns_2d = np.asarray(values).reshape(len(result.t), -1)
            for i in range(columns_2d.shape[1]):
                columns[label if columns_2d.shape[1] == 1 else f"{label}[{i}]"] = columns_2d[:, i]
    return import_pandas().DataFrame(columns, index=import_pandas().Index(np.asarray(result.t), name="t"))
