"""A ready problem: a system with initial values and sensible defaults for a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Problem:
    """A model, where it starts, and how it is usually run.

    A mechanical system starts from q0 and v0; for other kinds of models, `start` has what they start from, such as
    ``{"x0": [1.0, 0.0]}``. `reference(t)`, where known, gives the exact solution as a dict with some of ``q``, ``v``
    (``x``, ``p``).
    """

    name: str
    system: Any  # a Model
    q0: np.ndarray | None
    v0: np.ndarray | None
    scheme: str
    h: float
    t_end: float
    t0: float = 0.0
    reference: Callable[[float], dict[str, np.ndarray]] | None = None
    scaling: Any = None  # for schemes that adapt their steps, see `livens.scaling`
    start: Mapping[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)  # what `load` was called with

    @property
    def start_values(self) -> dict[str, Any]:
        """Where it starts, by the names of the arguments of `livens.simulate`."""
        return dict(self.start) if self.start else {"q0": self.q0, "v0": self.v0}
