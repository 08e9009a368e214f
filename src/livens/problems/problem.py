"""A ready problem: a system with initial values and sensible defaults for a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from livens.system import System


@dataclass(frozen=True, eq=False)
class Problem:
    """A system, where it starts, and how it is usually run.

    `reference(t)`, where known, gives the exact solution as a dict with some of ``q``, ``v``.
    """

    name: str
    system: System
    q0: np.ndarray
    v0: np.ndarray
    scheme: str
    h: float
    t_end: float
    t0: float = 0.0
    reference: Callable[[float], dict[str, np.ndarray]] | None = None
    options: dict[str, Any] = field(default_factory=dict)  # what `load` was called with
