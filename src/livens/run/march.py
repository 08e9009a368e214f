"""Stepping strategies of a run: fixed steps, fixed steps in fictive time (Sundman), adaptive steps."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from livens.engine.loop import Policy
from livens.engine.step_size import flow, restored_flow
from livens.engine.steps import Carry, Stepper, Steps, Trouble
from livens.expressions.layout import Layout
from livens.run.plan import Plan

#: Largest number of secant iterations for the last step in fictive time, and tolerance of its end time relative to the
#: larger of end time and remaining time.
_TRIALS, _CLOSE = 60, 1e-13
#: Largest number of steps to the end time of an adaptive run, if the last step fails and is subdivided.
_LAST_STEPS = 4096
#: Controller state of fixed steps.
NO_FLOW = flow(0.0)


class March(Protocol):
    """Stepping strategy: regular steps in chunks, then the final steps that end at `t_end`."""

    step: int  # number of regular steps taken

    def over(self, carry: Carry) -> bool:
        """Return True if no regular step is left."""
        ...

    def progress(self, carry: Carry) -> tuple[int, int, str]:
        """Return the completed amount, the total amount and its unit."""
        ...

    def take(self, stepper: Stepper, carry: Carry, most: int) -> Steps:
        """Take the next regular steps, at most `max_steps`."""
        ...

    def last(self, stepper: Stepper, carry: Carry) -> Steps | None:
        """Take the final steps to `t_end`, which a longer run would not take. Return None if `t_end` is reached."""
        ...

    def shortened(self, stepper: Stepper, carry: Carry, until: float) -> Steps:
        """Take one step, shorter than a regular one, that ends at time `until`."""
        ...

    def rebase(self, carry: Carry) -> None:
        """Count steps from this state on, after a shortened step has left the time grid."""
        ...

    def back(self, steps: Steps, taken: int) -> None:
        """Discard all but the first `taken` of the last steps."""
        ...

    def state(self) -> dict[str, Any]:
        """Return the stepping part of the checkpoint."""
        ...

    def restore(self, stored: dict[str, Any]) -> None:
        """Restore a stored checkpoint."""
        ...


def whole_steps(h: float, begin: float, end: float) -> tuple[int, float]:
    """Return the number of steps of size h in an interval, and the size of the final, shorter step (0 if none)."""
    steps = math.floor((end - begin) / h * (1 + 1e-12) + 1e-9)
    rest = (end - begin) - steps * h
    return steps, rest if rest > 1e-9 * h else 0.0


class EqualSteps:
    """Fixed steps of size h; the last one is shorter if h does not divide the time span."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self.step = plan, 0
        self._count_from(plan.t0)

    def _count_from(self, origin: float, counted: int = 0) -> None:
        """Set the origin of the time grid; compute the number of regular steps and the size of the final one."""
        self._origin, self._counted = origin, counted
        self._steps, self._rest = whole_steps(self._plan.h, origin, self._plan.t_end)

    def over(self, carry: Carry) -> bool:
        return self._counted >= self._steps

    def progress(self, carry: Carry) -> tuple[int, int, str]:
        return self.step, self.step + self._steps - self._counted, "steps"

    def take(self, stepper: Stepper, carry: Carry, most: int) -> Steps:
        policy = equal_policy(self._plan.h, self._origin, self._counted)
        steps = stepper.advance(carry, min(most, self._steps - self._counted), policy, NO_FLOW)
        self._counted += steps.taken
        self.step += steps.taken
        return steps

    def last(self, stepper: Stepper, carry: Carry) -> Steps | None:
        return self._one(stepper, carry, self._rest, self._plan.t_end) if self._rest else None

    def shortened(self, stepper: Stepper, carry: Carry, until: float) -> Steps:
        return self._one(stepper, _afresh(carry), until - carry.t, until)

    def _one(self, stepper: Stepper, carry: Carry, size: float, until: float) -> Steps:
        return _ending(stepper.advance(carry, 1, equal_policy(size, carry.t, 0), NO_FLOW), until)

    def rebase(self, carry: Carry) -> None:
        self._count_from(carry.t)

    def back(self, steps: Steps, taken: int) -> None:
        self._counted -= steps.taken - taken
        self.step -= steps.taken - taken

    def state(self) -> dict[str, Any]:
        return {"step": self.step, "origin": self._origin, "counted": self._counted}

    def restore(self, stored: dict[str, Any]) -> None:
        self.step = int(stored["step"])
        self._count_from(float(stored.get("origin", self._plan.t0)), int(stored.get("counted", self.step)))


class FictiveSteps:
    """Fixed steps of size h in fictive time; physical time is an entry of the state."""

    def __init__(self, plan: Plan, entry: int) -> None:
        self._plan, self.step, self._entry, self._reached = plan, 0, entry, False
        self._origin, self._counted = 0.0, 0  # origin of the fictive time grid, and number of steps since then
        self._shortened_to: float | None = None  # fictive time at the end of a shortened step

    @property
    def _fictive(self) -> float:
        """Fictive time at the end of the last regular step."""
        return self._origin + self._counted * self._plan.h

    def over(self, carry: Carry) -> bool:
        return self._reached

    def progress(self, carry: Carry) -> tuple[int, int, str]:
        return _percent(carry.t, self._plan)

    def take(self, stepper: Stepper, carry: Carry, most: int) -> Steps:
        h, first = self._plan.h, self._counted
        policy = equal_policy(h, self._origin, first, self._entry, self._plan.t_end)
        steps = stepper.advance(carry, most, policy, NO_FLOW)
        steps = replace(steps, fictive=self._origin + np.arange(first + 1, first + steps.taken + 1) * h)
        if not np.all(steps.sizes > 0):  # also true for NaN
            why = "time does not advance, because the scaling function is no longer positive"
            steps = steps.until(int(np.argmin(steps.sizes > 0)), Trouble(0.0, 0.0, "time", why, self._plan.h))
        self.step += steps.taken
        self._counted += steps.taken
        self._reached, self._shortened_to = steps.reached, None
        return steps

    def last(self, stepper: Stepper, carry: Carry) -> Steps | None:
        rest = self._plan.t_end - carry.t
        enough = rest > 1e-9 * max(abs(self._plan.t_end), self._plan.h)
        return self.shortened(stepper, carry, self._plan.t_end) if enough else None

    def shortened(self, stepper: Stepper, carry: Carry, until: float) -> Steps:
        """Solve for the fictive step size by the method of false position (Illinois variant)."""
        rest = until - carry.t
        low, high, short, beyond = 0.0, self._plan.h, -rest, 0.0
        for _ in range(_TRIALS):
            size = (low * beyond - high * short) / (beyond - short) if beyond else high
            policy = equal_policy(size, self._fictive, 0, self._entry, np.inf)
            steps = stepper.advance(carry, 1, policy, NO_FLOW)
            if steps.trouble is not None:
                return steps
            gap = float(steps.t[0]) - until
            if abs(gap) <= _CLOSE * max(abs(until), rest):
                break
            if gap < 0:
                low, short, beyond = size, gap, beyond / 2
            else:
                high, beyond, short = size, gap, short / 2 if beyond else short
        else:
            why = f"no step in fictive time ends at t = {until:.9g}"
            return steps.until(0, Trouble(0.0, 0.0, "time", why, 0.0))
        self._shortened_to = self._fictive + size
        return replace(_ending(steps, until), sizes=np.array([rest]), fictive=np.array([self._shortened_to]))

    def rebase(self, carry: Carry) -> None:
        """Start a new fictive time grid at the end of the shortened step; physical time is part of the state."""
        self._origin = self._fictive if self._shortened_to is None else self._shortened_to
        self._counted, self._reached, self._shortened_to = 0, False, None

    def back(self, steps: Steps, taken: int) -> None:
        self.step -= steps.taken - taken
        self._counted -= steps.taken - taken

    def state(self) -> dict[str, Any]:
        return {"step": self.step, "origin": self._origin, "counted": self._counted}

    def restore(self, stored: dict[str, Any]) -> None:
        self.step = int(stored["step"])
        self._origin = float(stored.get("origin", 0.0))
        self._counted = int(stored.get("counted", self.step))


class ControlledSteps:
    """Adaptive steps; the final ones end at `t_end`."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self.step, self._reached = plan, 0, False
        self._flow = flow(plan.h, plan.automatic)
        self._before = self._flow.copy()  # before the last chunk

    def over(self, carry: Carry) -> bool:
        return self._reached

    def progress(self, carry: Carry) -> tuple[int, int, str]:
        return _percent(carry.t, self._plan)

    def _policy(self, t_end: float, to_the_end: bool) -> Policy:
        return Policy(True, self._plan.h, 0.0, 0, t_end=t_end, to_the_end=to_the_end)

    def take(self, stepper: Stepper, carry: Carry, most: int) -> Steps:
        self._before = self._flow.copy()
        steps = stepper.advance(carry, most, self._policy(self._plan.t_end, False), self._flow)
        self.step += steps.taken
        self._reached = steps.reached
        return steps

    def last(self, stepper: Stepper, carry: Carry) -> Steps | None:
        """Take the final steps: several if the last step fails. The controller state of a longer run is unchanged."""
        if carry.t >= self._plan.t_end:
            return None
        return stepper.advance(carry, _LAST_STEPS, self._policy(self._plan.t_end, True), self._flow.copy())

    def shortened(self, stepper: Stepper, carry: Carry, until: float) -> Steps:
        return _ending(stepper.advance(_afresh(carry), 1, equal_policy(until - carry.t, carry.t, 0), self._flow), until)

    def rebase(self, carry: Carry) -> None:
        """Restart with the size of the last regular step; the rest of the controller state is reset."""
        if self._flow["last"] > 0:
            # rounded to single precision: the value is exact or a difference of times, depending on the chunks
            self._flow["size"] = float(np.float32(self._flow["last"][0])) or self._flow["last"]
        for name in ("equal", "last", "norm", "steps", "since_failure", "free"):
            self._flow[name] = 0.0
        self._reached = False

    def back(self, steps: Steps, taken: int) -> None:
        self.step -= steps.taken - taken
        self._flow = self._before
        if taken:
            self._flow["size"] = self._flow["last"] = steps.sizes[taken - 1]

    def state(self) -> dict[str, Any]:
        return {"step": self.step, "flow": self._flow.view("f8").copy()}

    def restore(self, stored: dict[str, Any]) -> None:
        self.step = int(stored["step"])
        if np.size(stored["flow"]):
            self._flow = restored_flow(stored["flow"])


def equal_policy(h: float, origin: float, first: int, entry: int = -1, limit: float = np.inf) -> Policy:
    """Return the policy of fixed steps on a grid of physical or fictive time."""
    return Policy(False, float(h), float(origin), int(first), int(entry), float(limit))


def _afresh(carry: Carry) -> Carry:
    """Return the state without the last Newton update, which depends on how steps are divided into chunks."""
    return replace(carry, dx=np.zeros_like(carry.dx))


def _ending(steps: Steps, until: float) -> Steps:
    """Set the exact end time of a single step; adding its size would introduce round-off."""
    if not steps.taken:
        return steps
    return replace(steps, times=np.array([steps.before.t, until]), carry=replace(steps.carry, t=until))


def _percent(t: float, plan: Plan) -> tuple[int, int, str]:
    return int(100 * (t - plan.t0) / (plan.t_end - plan.t0)), 100, "%"


def march_of(plan: Plan, layout: Layout) -> March:
    """Return the stepping strategy of a plan."""
    if "t" in layout:
        return FictiveSteps(plan, layout["t"].start)
    return EqualSteps(plan) if plan.control is None else ControlledSteps(plan)
