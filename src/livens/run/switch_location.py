"""Location of switches of the state within adaptive steps, such as that of ``where(q[0] < 0, ...)``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from livens.engine.observables.kernel_table import ObservableKernel
from livens.engine.stepper import IntegratorState, StepChunk
from livens.expressions.state_layout import Layout
from livens.models.switch_times import StateSwitches
from livens.run.plan import Plan

#: Largest number of switching functions that are located; crowds of contacts have more.
_MAX_SWITCHES = 64
#: Width of a located switch in units in the last place of the time, and largest number of steps of its location.
_WIDTH_ULPS, _MAX_ITERATIONS = 16, 60
#: Places within a step at which signs are compared, so that two changes in one step are found.
_SAMPLES = (0.25, 0.5, 0.75)


@functools.lru_cache(maxsize=64)
def _switch_kernel(model: Any) -> ObservableKernel | None:
    """Return the compiled switching functions of the state; None if a model has none, or too many."""
    if model.uses_sparse_path:
        return None
    switches, view = StateSwitches(model), model.view
    if not 0 < len(switches) <= _MAX_SWITCHES or not set(switches.names) <= set(view.symbols):
        return None
    return ObservableKernel(model, switches.expressions(view.symbols, view.t, view.k))


class SwitchLocation:
    """Location of the sign changes of switching functions by trial steps, each of which begins before the switch.

    Parameters
    ----------
    plan : Plan
        Plan of a run with adaptive steps.
    layout : Layout
        Layout of the state.
    """

    def __init__(self, plan: Plan, layout: Layout) -> None:
        self._layout = layout
        self._kernel = None if plan.scheme.selects_step_size or "t" in layout else _switch_kernel(plan.model)

    @property
    def is_active(self) -> bool:
        """True if the model has switches of the state that can be located."""
        return self._kernel is not None

    def _values(self, t: np.ndarray, states: np.ndarray, k: np.ndarray) -> np.ndarray:
        assert self._kernel is not None
        return self._kernel(t, states, k).T

    def first_crossing(self, steps: StepChunk, k: np.ndarray) -> tuple[int, float] | None:
        """Return the index of the first step with a sign change, and the size of a step that contains the change.

        Signs are compared at both ends of a step. If the state has positions and velocities, they are also compared
        within the step, on cubic polynomials through positions and velocities at its ends.
        """
        if not self.is_active or not steps.n_steps:
            return None
        fractions = [*(_SAMPLES if {"q", "v"} <= set(self._layout.sizes) else ()), 1.0]
        t, states, h = steps.t_nodes[:-1], steps.states, steps.step_sizes
        is_negative = self._values(steps.t_nodes, states, k) < 0
        crossed = [np.any(is_negative[:, 1:] != is_negative[:, :-1], axis=0)]
        for fraction in reversed(fractions[:-1]):
            inner = self._values(t + fraction * h, self._interpolated(states, h, fraction), k) < 0
            crossed.append(np.any(inner != is_negative[:, :-1], axis=0))
        has_crossed = np.array(crossed[::-1])  # (n_fractions, n_steps)
        if not has_crossed.any():
            return None
        first = int(np.argmax(has_crossed.any(axis=0)))
        return first, float(fractions[int(np.argmax(has_crossed[:, first]))] * h[first])

    def _interpolated(self, states: np.ndarray, h: np.ndarray, fraction: float) -> np.ndarray:
        """Return states within steps: cubic polynomials for q, linear ones for all other variables."""
        inner = (1 - fraction) * states[:-1] + fraction * states[1:]
        q, v, rest = states[:, self._layout["q"]], states[:, self._layout["v"]], 1 - fraction
        inner[:, self._layout["q"]] = (
            (1 + 2 * fraction) * rest**2 * q[:-1]
            + fraction**2 * (1 + 2 * rest) * q[1:]
            + h[:, None] * fraction * rest * (rest * v[:-1] - fraction * v[1:])
        )
        return inner

    def width(self, t: float) -> float:
        """Return the size of the step over a switch, at round-off level."""
        return float(_WIDTH_ULPS * np.spacing(abs(t)))

    def locate(
        self, step: Callable[[float], StepChunk], state: IntegratorState, h: float, k: np.ndarray
    ) -> tuple[float, float]:
        """Locate the first switch within a step by the Illinois variant of the method of false position.

        Parameters
        ----------
        step : callable
            Function of the step size that returns a chunk of one step from `state`.
        state : IntegratorState
            State before the step.
        h : float
            Size of a step in which a sign changes, in seconds.
        k : ndarray
            Parameters of the model.

        Returns
        -------
        tuple of float
            Size of the step that ends before the switch, 0 if the switch is at `state`, and distance from there to a
            time after the switch. The distance is 0 if no sign changes.
        """
        before = self._values(np.array([state.t]), state.z[None, :], k)[:, 0]
        sign = np.where(before < 0, -1.0, 1.0)

        def distance(size: float, rows: np.ndarray) -> tuple[float, np.ndarray]:
            steps = step(size)
            if steps.failure is not None or not steps.n_steps:
                return -np.inf, rows
            values = sign * self._values(steps.t_end[-1:], steps.end_states[-1:], k)[:, 0]
            crossed = np.flatnonzero((values < 0) | ((values == 0) & (sign < 0)))
            rows = rows if len(rows) else crossed
            return (float(values[rows].min()) if len(rows) else np.inf), rows

        value, rows = distance(h, np.zeros(0, dtype=int))
        if not len(rows):
            return h, 0.0
        low, high, f_low, f_high = 0.0, h, float((sign * before)[rows].min()), value
        width = self.width(abs(state.t) + h)
        for i in range(_MAX_ITERATIONS):
            if high - low <= width:
                break
            middle = (low + high) / 2
            if i % 3 < 2 and np.isfinite(f_high) and f_low > f_high:
                # a quarter of the width towards the wider side: both ends of the bracket approach the switch
                middle = (low * f_high - high * f_low) / (f_high - f_low)
                middle = min(max(middle, low + width / 4), high - width / 4)
                middle += width / 4 if middle - low < high - middle else -width / 4
            value, _ = distance(middle, rows)
            if value > 0 or (value == 0 and bool((sign[rows] > 0).all())):
                low, f_low = middle, value
            else:
                high, f_high = middle, value
        return low, high - low + width
