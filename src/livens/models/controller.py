"""Sampled controllers: Python functions that are evaluated at sampling times; commands are held in between."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from livens.types import ModelFunction


@dataclass(frozen=True, eq=False)
class Controller:
    """Sampled control law ``law(t, measurement, state)`` with sample-and-hold of its commands.

    `measurement` maps ``(q, v, t, k)`` to the measured values. `control_indices` are indices into the system's
    controls. The state of the controller is stored with the run and in its file, so that a resumed run continues
    unchanged.
    """

    name: str
    sample_time: float
    law: ModelFunction
    measurement: ModelFunction
    control_indices: tuple[int, ...]
    state: np.ndarray
    #: Entries of the measurement that are angles, continuous over revolutions.
    angle_entries: tuple[int, ...] = ()
