"""Stepper of explicit schemes: unrolled native code maps a state to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from livens.engine import loop
from livens.engine.explicit_lanes import LaneMap, lane_map
from livens.engine.found_contacts import joined
from livens.engine.loop import Policy
from livens.engine.newton import REACHED, Kernels, kernel_names
from livens.engine.step_size import NO_CONTROL
from livens.engine.steps import Buffers, Carry, Cost, Steps, Trouble, finite, steps_of

if TYPE_CHECKING:
    from livens.engine.compiled import CompiledStep


class ExplicitStepper:
    """Stepper of schemes without unknowns; `simd`: vectorise isomorphic parts of the step, if that is faster."""

    def __init__(self, compiled: CompiledStep, k: np.ndarray, lanes: bool = True) -> None:
        assert compiled.flat.size == 0
        self.cost = Cost()
        self._compiled, self._contacts = compiled, compiled.contacts(k)
        self._k, self._h = k, np.nan
        self._lanes: LaneMap | None = None
        if lanes and compiled.flat.box is None:
            self._lanes = compiled.once("lanes", lambda: lane_map(compiled.flat))
        if self._lanes is None:
            self._kernels, known = joined(compiled.kernels(None), self._contacts), k
        else:
            others = dict.fromkeys(kernel_names(), 0)
            self._kernels = Kernels(**{**others, "end": self._lanes.code.address})
            known = np.concatenate([k, np.zeros(self._lanes.constants.nnz_out(0))])
        self._buffers = Buffers(known, compiled.flat.kind_sizes, spare=compiled.spare if lanes else None)

    def release(self) -> None:
        self._buffers.release()

    def advance(self, carry: Carry, steps: int, policy: Policy, going: np.ndarray) -> Steps:
        w = self._buffers.filled(carry, steps)
        if self._lanes is not None:
            w.c[2 + self._k.size :] = self._numbers(self._lanes, policy.h)
        status, taken = loop.advance(self._kernels, policy, NO_CONTROL, going, w, 0, steps, 0)
        layout = self._compiled.layout
        if status == REACHED and not np.isfinite(w.Z[taken + 1]).all() and np.isfinite(w.Z[taken]).all():
            entry = int(np.argmin(np.isfinite(w.Z[taken + 1])))
            what = "the state is not finite any more"
            trouble = Trouble(np.inf, 0.0, layout.name_of(entry), what, policy.h)
            return steps_of(w, carry, taken, policy, trouble)
        return finite(steps_of(w, carry, taken, policy, reached=status == REACHED), w, layout)

    def _numbers(self, lanes: LaneMap, h: float) -> np.ndarray:
        if h != self._h:
            self._h, self._known = h, lanes.numbers(h, self._k)
        return self._known

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, stored: dict[str, Any]) -> None:
        """Do nothing: the integrator state is complete."""
