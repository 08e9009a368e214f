"""How a run goes through time: in equal steps, in equal steps of a fictive time, or in steps of controlled size."""

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

#: The last step of a fictive time is shortened by at most this many trials, until its end is this close to where the
#: run is to end, relative to the time it takes.
_TRIALS, _CLOSE = 60, 1e-13
#: The last step to the end may fail, and be replaced by at most this many shorter ones.
_LAST_STEPS = 4096
#: Equal steps have no flow of sizes.
NO_FLOW = flow(0.0)


class March(Protocol):
    """Steps, one chunk after the other, up to the last ones, which end where the user said."""

    step: int  # regular steps taken so far

    def over(self, carry: Carry) -> bool:
        """Whether no more regular step is to be taken."""
        ...

    def progress(self, carry: Carry) -> tuple[int, int, str]:
        """How much of the run is done, of how much, and what is counted."""
        ...

    def take(self, stepper: Stepper, carry: Carry, most: int) -> Steps:
        """The next regular steps, at most this many."""
        ...

    def last(self, stepper: Stepper, carry: Carry) -> Steps | None:
        """What is left to where the user said: steps that a longer run would not take. None if nothing is."""
        ...

    def shortened(self, stepper: Stepper, carry: Carry, until: float) -> Steps:
        """One step, shorter than usual, that ends at a given time."""
        ...

    def rebase(self, carry: Carry) -> None:
        """Steps are counted from here on: a shortened step has left the places where they would have ended."""
        ...

    def back(self, steps: Steps, taken: int) -> None:
        """Only the first of the steps that were just taken count."""
        ...

    def state(self) -> dict[str, Any]:
        """The part of the checkpoint that the march needs to go on."""
        ...

    def restore(self, stored: dict[str, Any]) -> None:
        """Go on from a stored state."""
        ...


def whole_steps(h: float, begin: float, end: float) -> tuple[int, float]:
    """How many steps of size h fit, and the size of the shorter one that is left; 0 if there is none."""
    steps = math.floor((end - begin) / h * (1 + 1e-12) + 1e-9)
    rest = (end - begin) - steps * h
    return steps, rest if rest > 1e-9 * h else 0.0


class EqualSteps:
    """Steps of size h; the last one is shorter if h does not divide the time span."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self.step = plan, 0
        self._count_from(plan.t0)

    def _count_from(self, origin: float, counted: int = 0) -> None:
        """Count steps from this time on, and find how many fit before the end and what is left then."""
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
    """Steps of size h in a fictive time; time itself is an entry of the state."""

    def __init__(self, plan: Plan, entry: int) -> None:
        self._plan, self.step, self._entry, self._reached = plan, 0, entry, False
        self._origin, self._counted = 0.0, 0  # the fictive time from which steps are counted, and how many there were
        self._shortened_to: float | None = None  # the fictive time at the end of a shortened step

    @property
    def _fictive(self) -> float:
        """The fictive time at the end of the last regular step."""
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
        if not np.all(steps.sizes > 0):  # a NaN is not greater either
            why = "time does not go on, as the scaling function is not positive any more"
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
        """By the rule of false position (Illinois) for the size of the step in fictive time."""
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
            why = f"no step of the fictive time ends at t = {until:.9g}"
            return steps.until(0, Trouble(0.0, 0.0, "time", why, 0.0))
        self._shortened_to = self._fictive + size
        return replace(_ending(steps, until), sizes=np.array([rest]), fictive=np.array([self._shortened_to]))

    def rebase(self, carry: Carry) -> None:
        """Whole steps of fictive time are counted from the end of the shortened one; time itself is in the state."""
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
    """Steps whose size is controlled; the last ones end where the user said."""

    def __init__(self, plan: Plan) -> None:
        self._plan, self.step, self._reached = plan, 0, False
        self._flow = flow(plan.h, plan.automatic)
        self._before = self._flow.copy()  # of the chunk that was taken last

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
        """The last step may fail and be shortened, so it may take some; the flow of a longer run is not touched."""
        if carry.t >= self._plan.t_end:
            return None
        return stepper.advance(carry, _LAST_STEPS, self._policy(self._plan.t_end, True), self._flow.copy())

    def shortened(self, stepper: Stepper, carry: Carry, until: float) -> Steps:
        return _ending(stepper.advance(_afresh(carry), 1, equal_policy(until - carry.t, carry.t, 0), self._flow), until)

    def rebase(self, carry: Carry) -> None:
        """The next step is as long as the last regular one; everything that steps know of each other begins anew."""
        if self._flow["last"] > 0:
            # to few digits: it may come from a difference of times, or be known exactly, as chunks happen to end
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
    """Steps of one size, counted from a time or from a fictive one."""
    return Policy(False, float(h), float(origin), int(first), int(entry), float(limit))


def _afresh(carry: Carry) -> Carry:
    """The same without the last correction, which may be that of a step beyond, or not, as chunks happen to end."""
    return replace(carry, dx=np.zeros_like(carry.dx))


def _ending(steps: Steps, until: float) -> Steps:
    """A single step whose end is known better than by adding its size."""
    if not steps.taken:
        return steps
    return replace(steps, times=np.array([steps.before.t, until]), carry=replace(steps.carry, t=until))


def _percent(t: float, plan: Plan) -> tuple[int, int, str]:
    return int(100 * (t - plan.t0) / (plan.t_end - plan.t0)), 100, "%"


def march_of(plan: Plan, layout: Layout) -> March:
    """How a plan goes through time."""
    if "t" in layout:
        return FictiveSteps(plan, layout["t"].start)
    return EqualSteps(plan) if plan.control is None else ControlledSteps(plan)
