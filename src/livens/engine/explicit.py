"""Steps in which nothing has to be solved: one straight line of native code takes a state to the next."""

from __future__ import annotations

import numpy as np

from livens.engine import loop
from livens.engine.kernels import end_kernel
from livens.engine.stepper import NO_LIMIT, Buffers, Carry, Limit, Statistics, Steps, Trouble, handed_back
from livens.schemes.step import StepEquations


class ExplicitStepper:
    """The fused tier of schemes without unknowns."""

    name = "fused"

    def __init__(self, equations: StepEquations) -> None:
        assert equations.size == 0
        self.statistics = Statistics()
        self._names = equations.layout
        self._buffers = Buffers()
        self._end = end_kernel(equations)

    def advance(
        self, carry: Carry, steps: int, first: int, h: float, t0: float, c: np.ndarray, limit: Limit = NO_LIMIT
    ) -> Steps:
        Z, X, iterations = self._buffers.filled(carry, steps)
        status, taken = loop.advance_explicitly(self._end, steps, first, h, t0, c, Z, limit.entry, limit.value)
        trouble = None
        # what is not finite stays so: looking at the last state is enough to know
        if not np.all(np.isfinite(Z[taken])) or (status == loop.REACHED and not np.all(np.isfinite(Z[taken + 1]))):
            finite = np.isfinite(Z[: taken + 2]).all(axis=1)
            taken = int(np.argmin(finite)) - 1
            entry = int(np.argmin(np.isfinite(Z[taken + 1])))
            trouble = Trouble(np.inf, 0.0, self._names.name_of(entry), "the state is not finite any more")
        reached = trouble is None and status == loop.REACHED
        return handed_back(Z, X, iterations, carry.dx, carry.scale, taken, trouble, reached)
