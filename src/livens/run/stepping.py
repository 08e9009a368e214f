"""Stepping strategies of a run: fixed steps, fixed steps in fictive time (Sundman), adaptive steps."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from livens.engine.newton.step_size_control import CONTROLLER_STATE, controller_state_from, initial_controller_state
from livens.engine.newton.time_loop import StepPolicy
from livens.engine.stepper import IntegratorState, StepChunk, StepFailure, Stepper
from livens.expressions.state_layout import Layout
from livens.models.switch_times import switch_times
from livens.run.plan import Plan
from livens.run.switch_location import SwitchLocation
from livens.types import FloatArray

#: Largest number of secant iterations for the last step in fictive time, and tolerance of its end time relative to the
#: larger of end time and remaining time.
_MAX_SECANT_ITERATIONS, _END_RTOL = 60, 1e-13
#: Largest number of steps to the end time of an adaptive run, if the last step fails and is subdivided.
_MAX_FINAL_STEPS = 4096
#: Distance of breakpoints from a switch time in units in the last place, and largest number of switch times.
_BREAKPOINT_ULPS, _MAX_BREAKPOINTS = 8, 100_000
_NO_BREAKPOINTS = np.zeros(0)
#: Ratio of the distance between two switches to the width of a switch below which they follow at once, and number of
#: such switches from which on the motion slides along a switch and switches are not located any more.
_AT_ONCE, _MAX_AT_ONCE = 1000.0, 3
#: Number of sizes, each twice the one before, of a step over a switch with the rates before it.
_MAX_DOUBLINGS = 8
#: Number of steps of the first chunk after a switch; it doubles with every chunk without a switch.
_CHUNK_AFTER_SWITCH = 16
#: Parts of the controller state that hold for the whole run, also after an event.
KEPT_AT_RESTART = {"size", "failures", "unsolved", "reference_speed"}
#: Controller state of fixed steps.
NO_CONTROLLER_STATE = initial_controller_state(0.0)


class Stepping(Protocol):
    """Stepping strategy: regular steps in chunks, then the final steps that end at `t_end`."""

    n_steps: int  # number of regular steps taken
    has_more_final_steps: bool  # True if the last final steps do not reach the end time

    def is_finished(self, state: IntegratorState) -> bool:
        """Return True if no regular step is left."""
        ...

    def progress(self, state: IntegratorState) -> tuple[int, int, str]:
        """Return the completed amount, the total amount and its unit."""
        ...

    def advance(self, stepper: Stepper, state: IntegratorState, max_steps: int) -> StepChunk:
        """Take the next regular steps, at most `max_steps`."""
        ...

    def final_steps(self, stepper: Stepper, state: IntegratorState) -> StepChunk | None:
        """Take the final steps to `t_end`, which a longer run would not take. Return None if `t_end` is reached."""
        ...

    def step_to(self, stepper: Stepper, state: IntegratorState, until: float) -> StepChunk:
        """Take one step, shorter than a regular one, that ends at time `until`."""
        ...

    def restart_from(self, state: IntegratorState) -> None:
        """Count steps from this state on, after a shortened step has left the time grid."""
        ...

    def rollback(self, steps: StepChunk, taken: int) -> None:
        """Discard all but the first `taken` of the last steps."""
        ...

    def set_parameters(self, k: np.ndarray) -> None:
        """Use other parameter values from the current state on."""
        ...

    def checkpoint(self) -> dict[str, Any]:
        """Return the stepping part of the checkpoint."""
        ...

    def restore(self, stored: dict[str, object]) -> None:
        """Restore a stored checkpoint."""
        ...


def split_interval(h: float, begin: float, end: float) -> tuple[int, float]:
    """Return the number of steps of size h in an interval, and the size of the final, shorter step (0 if none)."""
    steps = math.floor((end - begin) / h * (1 + 1e-12) + 1e-9)
    rest = (end - begin) - steps * h
    return steps, rest if rest > 1e-9 * h else 0.0


class FixedStepping:
    """Fixed steps of size h; the last one is shorter if h does not divide the time span."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self.n_steps, self.has_more_final_steps = plan, 0, False
        self._count_from(plan.t0)

    def _count_from(self, origin: float, n_since_origin: int = 0) -> None:
        """Set the origin of the time grid; compute the number of regular steps and the size of the final one."""
        self._t_origin, self._n_since_origin = origin, n_since_origin
        self._n_regular, self._final_h = split_interval(self._plan.h, origin, self._plan.t_end)

    def is_finished(self, state: IntegratorState) -> bool:
        return self._n_since_origin >= self._n_regular

    def progress(self, state: IntegratorState) -> tuple[int, int, str]:
        return self.n_steps, self.n_steps + self._n_regular - self._n_since_origin, "steps"

    def advance(self, stepper: Stepper, state: IntegratorState, max_steps: int) -> StepChunk:
        policy = fixed_step_policy(self._plan.h, self._t_origin, self._n_since_origin)
        steps = stepper.advance(
            state, min(max_steps, self._n_regular - self._n_since_origin), policy, NO_CONTROLLER_STATE
        )
        self._n_since_origin += steps.n_steps
        self.n_steps += steps.n_steps
        return steps

    def final_steps(self, stepper: Stepper, state: IntegratorState) -> StepChunk | None:
        return self._single_step(stepper, state, self._final_h, self._plan.t_end) if self._final_h else None

    def step_to(self, stepper: Stepper, state: IntegratorState, until: float) -> StepChunk:
        return self._single_step(stepper, _without_newton_update(state), until - state.t, until)

    def _single_step(self, stepper: Stepper, state: IntegratorState, size: float, until: float) -> StepChunk:
        return _with_end_time(
            stepper.advance(state, 1, fixed_step_policy(size, state.t, 0), NO_CONTROLLER_STATE), until
        )

    def restart_from(self, state: IntegratorState) -> None:
        self._count_from(state.t)

    def rollback(self, steps: StepChunk, taken: int) -> None:
        self._n_since_origin -= steps.n_steps - taken
        self.n_steps -= steps.n_steps - taken

    def set_parameters(self, k: np.ndarray) -> None:
        """Steps of equal size do not depend on parameters."""

    def checkpoint(self) -> dict[str, float]:
        return {"step": self.n_steps, "origin": self._t_origin, "counted": self._n_since_origin}

    def restore(self, stored: dict[str, Any]) -> None:
        self.n_steps = int(stored["step"])
        self._count_from(float(stored.get("origin", self._plan.t0)), int(stored.get("counted", self.n_steps)))


class FictiveTimeStepping:
    """Fixed steps of size h in fictive time; physical time is an entry of the state."""

    def __init__(self, plan: Plan, time_index: int) -> None:
        self._plan, self.n_steps, self._time_index, self._end_reached = plan, 0, time_index, False
        self.has_more_final_steps = False
        self._fictive_origin, self._n_since_origin = (
            0.0,
            0,
        )  # origin of the fictive time grid, and number of steps since then
        self._final_fictive_t: float | None = None  # fictive time at the end of a shortened step

    @property
    def _fictive_t(self) -> float:
        """Fictive time at the end of the last regular step."""
        return self._fictive_origin + self._n_since_origin * self._plan.h

    def is_finished(self, state: IntegratorState) -> bool:
        return self._end_reached

    def progress(self, state: IntegratorState) -> tuple[int, int, str]:
        return _percent(state.t, self._plan)

    def advance(self, stepper: Stepper, state: IntegratorState, max_steps: int) -> StepChunk:
        h, step0 = self._plan.h, self._n_since_origin
        policy = fixed_step_policy(h, self._fictive_origin, step0, self._time_index, self._plan.t_end)
        steps = stepper.advance(state, max_steps, policy, NO_CONTROLLER_STATE)
        steps = replace(steps, fictive_t=self._fictive_origin + np.arange(step0 + 1, step0 + steps.n_steps + 1) * h)
        if not np.all(steps.step_sizes > 0):  # also true for NaN
            reason = "time does not advance, because the scaling function is no longer positive"
            steps = steps.truncated(
                int(np.argmin(steps.step_sizes > 0)), StepFailure(0.0, 0.0, "time", reason, self._plan.h)
            )
        self.n_steps += steps.n_steps
        self._n_since_origin += steps.n_steps
        self._end_reached, self._final_fictive_t = steps.reached_end, None
        return steps

    def final_steps(self, stepper: Stepper, state: IntegratorState) -> StepChunk | None:
        rest = self._plan.t_end - state.t
        is_significant = rest > 1e-9 * max(abs(self._plan.t_end), self._plan.h)
        return self.step_to(stepper, state, self._plan.t_end) if is_significant else None

    def step_to(self, stepper: Stepper, state: IntegratorState, until: float) -> StepChunk:
        """Solve for the fictive step size by the method of false position (Illinois variant)."""
        rest = until - state.t
        low, high, f_low, f_high = 0.0, self._plan.h, -rest, 0.0
        for _ in range(_MAX_SECANT_ITERATIONS):
            size = (low * f_high - high * f_low) / (f_high - f_low) if f_high else high
            policy = fixed_step_policy(size, self._fictive_t, 0, self._time_index, np.inf)
            steps = stepper.advance(state, 1, policy, NO_CONTROLLER_STATE)
            if steps.failure is not None:
                return steps
            gap = float(steps.t_end[0]) - until
            if abs(gap) <= _END_RTOL * max(abs(until), rest):
                break
            if gap < 0:
                low, f_low, f_high = size, gap, f_high / 2
            else:
                high, f_high, f_low = size, gap, f_low / 2 if f_high else f_low
        else:
            reason = f"no step in fictive time ends at t = {until:.9g}"
            return steps.truncated(0, StepFailure(0.0, 0.0, "time", reason, 0.0))
        self._final_fictive_t = self._fictive_t + size
        return replace(
            _with_end_time(steps, until), step_sizes=np.array([rest]), fictive_t=np.array([self._final_fictive_t])
        )

    def restart_from(self, state: IntegratorState) -> None:
        """Start a new fictive time grid at the end of the shortened step; physical time is part of the state."""
        self._fictive_origin = self._fictive_t if self._final_fictive_t is None else self._final_fictive_t
        self._n_since_origin, self._end_reached, self._final_fictive_t = 0, False, None

    def rollback(self, steps: StepChunk, taken: int) -> None:
        self.n_steps -= steps.n_steps - taken
        self._n_since_origin -= steps.n_steps - taken

    def set_parameters(self, k: np.ndarray) -> None:
        """Steps of equal size do not depend on parameters."""

    def checkpoint(self) -> dict[str, float]:
        return {"step": self.n_steps, "origin": self._fictive_origin, "counted": self._n_since_origin}

    def restore(self, stored: dict[str, Any]) -> None:
        self.n_steps = int(stored["step"])
        self._fictive_origin = float(stored.get("origin", 0.0))
        self._n_since_origin = int(stored.get("counted", self.n_steps))


class AdaptiveStepping:
    """Adaptive steps; the final ones end at `t_end`.

    Steps end just before and just after the switch times of the model: no step of more than round-off contains one.
    The same holds for switches of the state, which are located by trial steps, unless the motion slides along them.
    """

    def __init__(self, plan: Plan, layout: Layout) -> None:
        self._k, self._breakpoints = plan.k, _breakpoints(plan, plan.k)
        location = plan.cache.get("switch location")
        if location is None or location.layout is not layout:
            location = plan.cache["switch location"] = SwitchLocation(plan, layout)
        self._location: SwitchLocation = location
        #: Size of a step that contains a switch of the state, and of the next step if it is one over a switch.
        self._h_switch, self._h_over = 0.0, 0.0
        #: Indices of the switching functions that change their signs in that step.
        self._switched: tuple[int, ...] = ()
        self.has_more_final_steps = False
        self._final_controller: np.ndarray | None = None  # controller state of the final steps
        self._chunk = _CHUNK_AFTER_SWITCH  # largest number of steps of the next chunk
        self._n_at_once = 0  # number of switches that followed one another at once
        self._plan, self.n_steps, self._end_reached = plan, 0, False
        # a first step found by trial steps needs no start-up with free growth
        free_growth = plan.estimate_h0 and not plan.scheme.estimates_error_by_doubling
        self._controller_state = initial_controller_state(plan.h, free_growth)
        self._controller_before = self._controller_state.copy()  # before the last chunk

    @property
    def has_breakpoints(self) -> bool:
        """True if steps have to end at switch times of the model."""
        return self._breakpoints.size > 0

    def crosses_switch(self, t: np.ndarray, states: np.ndarray) -> bool:
        """Return True if a step between these states contains a switch of the state at which it has to end."""
        return self._location.first_crossing(t, states, self._k) is not None

    @property
    def controller_state(self) -> np.ndarray:
        """State of the step-size controller."""
        return self._controller_state

    def is_finished(self, state: IntegratorState) -> bool:
        return self._end_reached

    def progress(self, state: IntegratorState) -> tuple[int, int, str]:
        return _percent(state.t, self._plan)

    def set_parameters(self, k: np.ndarray) -> None:
        self._k, self._breakpoints = k, _breakpoints(self._plan, k)

    def _policy(self, t_end: float, to_the_end: bool) -> StepPolicy:
        return StepPolicy(True, self._plan.h, 0.0, 0, t_end=t_end, land_on_end=to_the_end)

    def advance(self, stepper: Stepper, state: IntegratorState, max_steps: int) -> StepChunk:
        return self._take(stepper, state, max_steps)

    def _take(self, stepper: Stepper, state: IntegratorState, max_steps: int, final: bool = False) -> StepChunk:
        """Take steps up to the next switch of the state, to it, or over it."""
        self._controller_before = self._controller_state.copy()
        if self._h_over or self._h_switch:
            steps = self._step_over(stepper, state) if self._h_over else self._step_to_switch(stepper, state)
            return steps or self._advance_freely(stepper, state, 1, final)
        is_located = self._location.is_active and self._n_at_once < _MAX_AT_ONCE
        if is_located and not final:  # steps after a switch are discarded
            max_steps, self._chunk = min(max_steps, self._chunk), 2 * self._chunk
        steps = self._advance_freely(stepper, state, max_steps, final)
        crossing = self._location.first_crossing(steps.t_nodes, steps.states, self._k) if is_located else None
        if crossing is None:
            self._n_at_once = 0 if steps.n_steps and is_located else self._n_at_once
            return steps
        (taken, h_switch, switched), self._chunk = crossing, _CHUNK_AFTER_SWITCH
        steps = self._cut(steps, taken)
        self._h_switch, self._switched, self.has_more_final_steps = h_switch, switched, final
        if taken:
            self._n_at_once = 0
            return steps
        return self._step_to_switch(stepper, state) or self._advance_freely(stepper, state, 1, final)

    def _advance_freely(self, stepper: Stepper, state: IntegratorState, max_steps: int, final: bool) -> StepChunk:
        """Take steps up to the next switch time, over switches of the state."""
        if final:
            policy = self._policy(self._plan.t_end, True)
            steps = stepper.advance(state, max_steps, policy, self._controller_state)
            self.has_more_final_steps = max_steps == 1 and steps.final.t < self._plan.t_end and steps.failure is None
            return steps
        ahead = self._breakpoints[self._breakpoints > state.t]
        target = float(ahead[0]) if len(ahead) else self._plan.t_end
        steps = stepper.advance(state, max_steps, self._policy(target, bool(len(ahead))), self._controller_state)
        self.n_steps += steps.n_steps
        self._end_reached = steps.reached_end and not len(ahead)
        if len(ahead) and steps.final.t >= target:  # the steps before a switch do not predict those after it
            self._forget_last_steps()
        return steps

    def _cut(self, steps: StepChunk, taken: int) -> StepChunk:
        """Return the first steps of a chunk, with the controller as it was after them."""
        before = self._controller_before.copy()
        self.rollback(steps, taken)
        self._controller_before, self._end_reached = before, False
        return steps.truncated(taken)

    def _step_to_switch(self, stepper: Stepper, state: IntegratorState) -> StepChunk | None:
        """Take a step that ends just before the switch within the next step; None if there is none."""
        start, h_switch, self._h_switch = _without_newton_update(state), self._h_switch, 0.0

        def trial(size: float) -> IntegratorState | None:
            if stepper.takes_single_steps:
                return stepper.advance_once(start, size, start.t, 0, 1)
            steps = stepper.advance(start, 1, fixed_step_policy(size, start.t, 0), NO_CONTROLLER_STATE)
            return steps.final if steps.n_steps and steps.failure is None else None

        size, self._h_over = self._location.locate(trial, start, h_switch, self._switched, self._k)
        if not self._h_over:
            return None
        if size < _AT_ONCE * self._location.width(start.t + h_switch):
            self._n_at_once += 1
        if self._n_at_once >= _MAX_AT_ONCE:
            self._h_over = 0.0
            return None
        if not size:
            return self._step_over(stepper, state)
        steps = stepper.advance(start, 1, fixed_step_policy(size, start.t, 0), NO_CONTROLLER_STATE)
        self.n_steps += steps.n_steps
        return steps

    def _step_over(self, stepper: Stepper, state: IntegratorState) -> StepChunk | None:
        """Take a step of round-off size over a switch and restart the controller; None if the step fails."""
        size, self._h_over = self._h_over, 0.0
        if state.t + size >= self._plan.t_end:
            return None
        steps = stepper.advance(
            _without_newton_update(state), 1, fixed_step_policy(size, state.t, 0), NO_CONTROLLER_STATE
        )
        over = steps if steps.failure is None else self._extrapolate_over(stepper, state, size)
        if over is None:
            return None
        self.n_steps += over.n_steps
        self.restart_from(over.final)
        return over

    def _extrapolate_over(self, stepper: Stepper, state: IntegratorState, size: float) -> StepChunk | None:
        """Step over a switch with the rates before it; None if the switch is not passed.

        An implicit step over a switch has no solution where the rate after the switch keeps the state before it, such
        as that of a tank whose outflow ends at a level.
        """
        if self._location.is_constrained:  # multipliers have no rates
            return None
        for width in size * 2.0 ** np.arange(_MAX_DOUBLINGS):
            policy = fixed_step_policy(-width, state.t, 0)
            back = stepper.advance(_without_newton_update(state), 1, policy, NO_CONTROLLER_STATE)
            if back.failure is not None or state.t + width >= self._plan.t_end:
                return None
            times = np.array([state.t, state.t + width])
            states = np.vstack([state.z, 2 * state.z - back.final.z])
            if self._location.first_crossing(times, states, self._k) is not None:
                final = replace(back.final, t=float(times[1]), z=states[1].copy())
                return replace(
                    back, t_nodes=times, states=states, step_sizes=np.array([width]), initial=state, final=final
                )
        return None

    def final_steps(self, stepper: Stepper, state: IntegratorState) -> StepChunk | None:
        """Take the final steps: several if the last step fails. The controller state of a longer run is unchanged."""
        if state.t >= self._plan.t_end:
            self.has_more_final_steps = False
            return None
        n_steps, controller_state = self.n_steps, self._controller_state
        self._controller_state = controller_state.copy() if self._final_controller is None else self._final_controller
        self.has_more_final_steps = True
        steps = self._take(stepper, state, _MAX_FINAL_STEPS, final=True)
        self._final_controller, self._controller_state = self._controller_state, controller_state
        self.n_steps, self._end_reached = n_steps, True
        return steps

    def step_to(self, stepper: Stepper, state: IntegratorState, until: float) -> StepChunk:
        return _with_end_time(
            stepper.advance(
                _without_newton_update(state), 1, fixed_step_policy(until - state.t, state.t, 0), self._controller_state
            ),
            until,
        )

    def restart_from(self, state: IntegratorState) -> None:
        """Restart with the size of the last regular step; the rest of the controller state is reset."""
        if self._controller_state["last"] > 0:
            # rounded to single precision: the value is exact or a difference of times, depending on the chunks
            self._controller_state["size"] = (
                float(np.float32(self._controller_state["last"][0])) or self._controller_state["last"]
            )
        self._forget_last_steps()
        self._final_controller = None
        self._end_reached, self._h_switch, self._h_over = False, 0.0, 0.0

    def _forget_last_steps(self) -> None:
        for name in set(CONTROLLER_STATE.names or ()) - KEPT_AT_RESTART:
            self._controller_state[name] = 0.0

    def rollback(self, steps: StepChunk, taken: int) -> None:
        self.n_steps -= steps.n_steps - taken
        self._controller_state = self._controller_before
        self._h_switch, self._h_over = 0.0, 0.0
        if taken:
            self._controller_state["size"] = self._controller_state["last"] = steps.step_sizes[taken - 1]

    def checkpoint(self) -> dict[str, FloatArray | int]:
        switch = np.array([self._h_switch, self._h_over, self._n_at_once, *self._switched])
        return {"step": self.n_steps, "flow": self._controller_state.view("f8").copy(), "switch": switch}

    def restore(self, stored: dict[str, Any]) -> None:
        self.n_steps = int(stored["step"])
        if np.size(stored["flow"]):
            self._controller_state = controller_state_from(stored["flow"])
        if "switch" in stored:  # older files do not store it
            self._h_switch, self._h_over, n_at_once, *switched = np.ravel(stored["switch"]).tolist()
            self._n_at_once, self._switched = int(n_at_once), tuple(map(int, switched))


def fixed_step_policy(h: float, origin: float, step0: int, time_index: int = -1, limit: float = np.inf) -> StepPolicy:
    """Return the policy of fixed steps on a grid of physical or fictive time."""
    return StepPolicy(False, float(h), float(origin), int(step0), int(time_index), float(limit))


def _without_newton_update(state: IntegratorState) -> IntegratorState:
    """Return the state without the last Newton update, which depends on how steps are divided into chunks."""
    return replace(state, newton_update=np.zeros_like(state.newton_update))


def _with_end_time(steps: StepChunk, until: float) -> StepChunk:
    """Set the exact end time of a single step; adding its size would introduce round-off."""
    if not steps.n_steps:
        return steps
    return replace(steps, t_nodes=np.array([steps.initial.t, until]), final=replace(steps.final, t=until))


def _breakpoints(plan: Plan, k: np.ndarray) -> np.ndarray:
    """Return the times just before and just after the switch times of the model."""
    if plan.scheme.selects_step_size:
        return _NO_BREAKPOINTS
    times = switch_times(plan.model, k, plan.t0, plan.t_end)
    if not 0 < len(times) <= _MAX_BREAKPOINTS:
        return _NO_BREAKPOINTS
    width = _BREAKPOINT_ULPS * np.spacing(np.maximum(np.abs(times), abs(plan.t_end - plan.t0) * 1e-3))
    return np.unique(np.concatenate([times - width, times + width]))


def _percent(t: float, plan: Plan) -> tuple[int, int, str]:
    return int(100 * (t - plan.t0) / (plan.t_end - plan.t0)), 100, "%"


def make_stepping(plan: Plan, layout: Layout) -> Stepping:
    """Return the stepping strategy of a plan."""
    if "t" in layout:
        return FictiveTimeStepping(plan, layout["t"].start)
    return FixedStepping(plan) if plan.control is None else AdaptiveStepping(plan, layout)
