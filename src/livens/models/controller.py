"""Controllers that are sampled: a Python function that looks at the motion now and then, and says what motors do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Controller:
    """A function of ``t``, what is measured and its own state that returns commands, held until the next sample.

    `measure` gives the measured numbers from ``(q, v, t, k)``, `commands` are places among the system's controls. The
    state is kept in the run and in its file, so that a run goes on as if it had never stopped.
    """

    name: str
    every: float
    function: Callable[..., Any]
    measure: Callable[..., Any]
    commands: tuple[int, ...]
    state: np.ndarray
