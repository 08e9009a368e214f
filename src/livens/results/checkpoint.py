"""Checkpoints: the complete state of a run as named arrays, and their names on disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from livens.results.record import RunInfo

#: State of each component of a run, by name: ``checkpoint["carry"]["z"]``.
Checkpoint = dict[str, dict[str, Any]]


def as_arrays(checkpoint: Mapping[str, Mapping[str, object]]) -> dict[str, np.ndarray]:
    """Return a checkpoint as flat arrays with the names on disk, such as ``carry.z``.

    >>> list(as_arrays({"carry": {"z": [1.0], "time": 0.5}}))
    ['carry.z', 'carry.time']
    """
    return {
        f"{component}.{name}": np.asarray(value)
        for component, state in checkpoint.items()
        for name, value in state.items()
    }


def from_arrays(arrays: Mapping[str, object], info: RunInfo) -> Checkpoint:
    """Return the checkpoint stored as flat arrays in a file, by component and name."""
    if "z" in arrays:
        return _from_version_2(arrays, info)
    checkpoint: Checkpoint = {}
    for key, value in arrays.items():
        component, _, name = key.partition(".")
        checkpoint.setdefault(component, {})[name] = value
    return checkpoint


def _from_version_2(old: Mapping[str, Any], info: RunInfo) -> Checkpoint:
    """Convert a checkpoint of format version 2: flat names, and no time for fixed steps."""
    step = int(old["step"])
    stepping: dict[str, Any] = {"step": step}
    if "flow" in old:
        stepping["flow"] = old["flow"]
    time = float(old["time"]) if "time" in old else info.t0 + step * info.h
    return {
        "carry": {"time": time, **{name: old[name] for name in ("z", "x", "dx", "scale")}},
        "march": stepping,
        "stepper": {name: old[name] for name in ("row_order", "column_order")},
        "recorder": {"rows": old["rows"], "step": step},
        "extremes": {name: old[f"monitor_{name}"] for name in ("first", "last", "largest")},
        "run": {"newton_iterations": old["newton_iterations"]},
    }
