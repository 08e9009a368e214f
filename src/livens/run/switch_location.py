"""Location of switches of the state within adaptive steps, such as that of ``where(q[0] < 0, ...)``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from livens.engine.observables.kernel_table import ObservableKernel
from livens.engine.stepper import IntegratorState
from livens.expressions.state_layout import Layout
from livens.models.state_switches import StateSwitches
from livens.run.plan import Plan

#: Largest number of switching functions that are located; large contact groups have more.
_MAX_SWITCHES = 64
#: Width of a located switch in units in the last place of the time, and largest number of steps of its location.
_WIDTH_ULPS, _MAX_ITERATIONS = 16, 60
#: Width of a located switch relative to the step, for equations with constraints: multipliers of shorter steps amplify
#: rounding errors of constraints.
_CONSTRAINED_WIDTH = 1e-6
#: Half the width of the interval, relative to a part of a step, on whose sides rates are compared, and change of a rate
#: relative to its size that counts as a jump.
_SIDE, _JUMP = 1e-9, 1e-7
#: Number of parts of an interval, and of divisions, in the search for a zero of a nonlinear switching function.
_SECTIONS, _DIVISIONS = 32, 7
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


@functools.lru_cache(maxsize=64)
def _force_kernel(model: Any) -> ObservableKernel:
    """Return the compiled forces that are switched."""
    view = model.view
    return ObservableKernel(model, StateSwitches(model).forces(view.symbols, view.t, view.k))


class Crossing(NamedTuple):
    """Part of a step in which switching functions that are located change their signs."""

    step: int  # index of the step
    h: float  # size of a step that contains the sign changes, in seconds
    functions: tuple[int, ...]  # indices of the switching functions


class SwitchLocation:
    """Location of the sign changes of switching functions by trial steps, each of which begins before the switch.

    If the state has positions and velocities, all switches are located: a step may contain a short contact between its
    stages. Otherwise only those at which rates jump: where they are continuous, such as at the nodes of a table, the
    error estimate controls the steps.

    Parameters
    ----------
    plan : Plan
        Plan of a run with adaptive steps.
    layout : Layout
        Layout of the state.
    """

    def __init__(self, plan: Plan, layout: Layout) -> None:
        self.layout, self._model = layout, plan.model
        #: True if the state contains multipliers or algebraic variables.
        self.is_constrained = any(layout.sizes.get(name, 0) for name in ("multipliers", "y"))
        self._samples = _SAMPLES if {"q", "v"} <= set(layout.sizes) else ()
        self._kernel = None if plan.scheme.selects_step_size or "t" in layout else _switch_kernel(plan.model)

    @property
    def is_active(self) -> bool:
        """True if the model has switches of the state that can be located."""
        return self._kernel is not None

    def _values(self, t: np.ndarray, states: np.ndarray, k: np.ndarray) -> np.ndarray:
        assert self._kernel is not None
        return self._kernel(t, states, k).T

    def first_crossing(self, t_nodes: np.ndarray, states: np.ndarray, k: np.ndarray) -> Crossing | None:
        """Return the first part of a step in which the sign of a function changes that is located; None without one.

        Signs are compared at both ends of a step. If the state has positions and velocities, they are also compared
        within the step, on cubic polynomials through positions and velocities at its ends.

        Parameters
        ----------
        t_nodes, states : ndarray
            Times (n_steps + 1,) and states (n_steps + 1, n_state) at the ends of the steps.
        k : ndarray
            Parameters of the model.
        """
        if not self.is_active or len(t_nodes) < 2:
            return None
        fractions = np.array([*self._samples, 1.0])
        h, n_parts = np.diff(t_nodes), len(fractions)
        # parts of steps in the order of time
        times, points = np.empty((len(h), n_parts)), np.empty((len(h), n_parts, states.shape[1]))
        times[:, -1], points[:, -1] = t_nodes[1:], states[1:]
        for i, fraction in enumerate(fractions[:-1]):
            times[:, i], points[:, i] = t_nodes[:-1] + fraction * h, self._interpolated(states, h, fraction)
        t, z = np.append(t_nodes[0], times), np.concatenate([states[:1], points.reshape(len(h) * n_parts, -1)])
        values = self._values(t, z, k)
        is_negative = values < 0
        parts, functions = np.nonzero((is_negative[:, 1:] != is_negative[:, :-1]).T)
        if not len(parts):
            return None
        is_located = np.full(len(parts), True) if self._samples else self._jumps(parts, functions, t, z, values, k)
        if not is_located.any():
            return None
        first = parts[np.argmax(is_located)]
        step, part = divmod(int(first), n_parts)
        crossed = functions[is_located & (parts == first)]
        return Crossing(step, float(fractions[part] * h[step]), tuple(crossed.tolist()))

    @np.errstate(invalid="ignore", over="ignore")  # what is not finite counts as a jump
    def _jumps(
        self, parts: np.ndarray, functions: np.ndarray, t: np.ndarray, z: np.ndarray, values: np.ndarray, k: np.ndarray
    ) -> np.ndarray:
        """Return whether rates jump at sign changes of switching functions on chords between states."""
        t0, t1, z0, z1 = t[parts], t[parts + 1], z[parts], z[parts + 1]
        v0, v1 = values[functions, parts], values[functions, parts + 1]
        fraction = np.clip(v0 / (v0 - v1), _SIDE, 1 - _SIDE)
        sides = fraction + np.array([[-_SIDE], [_SIDE]])  # (2, n_parts): before and after the zero of a linear function

        def states(fractions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            chords = z0 + fractions[..., None] * (z1 - z0)
            return (t0 + fractions * (t1 - t0)).ravel(), chords.reshape(-1, z.shape[1])

        def is_crossed(fractions: np.ndarray) -> np.ndarray:
            all_values = self._values(*states(fractions), k).reshape(-1, *fractions.shape)
            return np.asarray((all_values[functions, :, np.arange(len(parts))].T < 0) != (v0 < 0))

        if not np.array_equal(is_crossed(sides), np.broadcast_to([[False], [True]], sides.shape)):
            sides = np.broadcast_to([[0.0], [1.0]], sides.shape)
            for _ in range(_DIVISIONS):
                fractions = np.linspace(sides[0], sides[1], _SECTIONS + 1)
                after = np.argmax(is_crossed(fractions[1:]), axis=0) + 1
                sides = np.take_along_axis(fractions, np.array([after - 1, after]), axis=0)
        kernel = _force_kernel(self._model)
        ends = np.abs(kernel(np.append(t0, t1), np.concatenate([z0, z1]), k)).reshape(2, len(parts), -1)
        before, after = kernel(*states(sides), k).reshape(2, len(parts), -1)
        # also true for NaN
        return np.asarray(~(np.abs(after - before) <= _JUMP * ends.max(axis=0)).all(axis=1))

    def _interpolated(self, states: np.ndarray, h: np.ndarray, fraction: float) -> np.ndarray:
        """Return states within steps: cubic polynomials for q, linear ones for all other variables."""
        inner = (1 - fraction) * states[:-1] + fraction * states[1:]
        q, v, rest = states[:, self.layout["q"]], states[:, self.layout["v"]], 1 - fraction
        inner[:, self.layout["q"]] = (
            (1 + 2 * fraction) * rest**2 * q[:-1]
            + fraction**2 * (1 + 2 * rest) * q[1:]
            + h[:, None] * fraction * rest * (rest * v[:-1] - fraction * v[1:])
        )
        return inner

    def width(self, t: float) -> float:
        """Return the size of the step over a switch, at round-off level."""
        return float(_WIDTH_ULPS * np.spacing(abs(t)))

    def locate(
        self,
        trial: Callable[[float], IntegratorState | None],
        state: IntegratorState,
        h: float,
        functions: tuple[int, ...],
        k: np.ndarray,
    ) -> tuple[float, float]:
        """Locate the first switch within a step by the Illinois variant of the method of false position.

        Parameters
        ----------
        trial : callable
            Function of the step size that returns the state after a step from `state`, or None if it is not solved.
            Such a step counts as one over the switch.
        state : IntegratorState
            State before the step.
        h : float
            Size of a step in which a sign changes, in seconds.
        functions : tuple of int
            Indices of the switching functions, as in `Crossing`.
        k : ndarray
            Parameters of the model.

        Returns
        -------
        tuple of float
            Size of the step that ends before the switch, 0 if the switch is at `state`, and distance from there to a
            time after the switch. The distance is 0 if no sign changes.
        """
        chosen, kernel = list(functions), self._kernel
        assert kernel is not None
        before = kernel.row(state.t, state.z, k)[chosen]
        sign = np.where(before < 0, -1.0, 1.0)

        def distance(size: float, rows: np.ndarray) -> tuple[float, np.ndarray]:
            end = trial(size)
            if end is None:
                return -np.inf, rows
            values = sign * kernel.row(end.t, end.z, k)[chosen]
            crossed = np.flatnonzero((values < 0) | ((values == 0) & (sign < 0)))
            rows = rows if len(rows) else crossed
            return (float(values[rows].min()) if len(rows) else np.inf), rows

        value, rows = distance(h, np.zeros(0, dtype=int))
        if not len(rows):
            return h, 0.0
        low, high, f_low, f_high = 0.0, h, float((sign * before)[rows].min()), value
        width = max(self.width(abs(state.t) + h), _CONSTRAINED_WIDTH * h if self.is_constrained else 0.0)
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
