"""How a run goes through time: in equal steps, in equal steps of a fictive time, or in steps of controlled size."""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol

import numpy as np

from livens.engine.controlled import ControlledStepper
from livens.engine.stepper import Carry, Limit, Stepper, Steps, Trouble
from livens.run.plan import Task

#: The last step of a fictive time is shortened by at most so many trials, until its end is this close to where the run
#: is to end, relative to the time it takes.
_TRIALS, _CLOSE = 60, 1e-13


class Pace(Protocol):
    """Steps, and the times they end at."""

    step: int  # taken so far
    t: float  # reached so far

    def begin(self, t: float) -> None:
        """At the start of the run."""

    def over(self) -> bool:
        """Whether no more regular step is to be taken."""
        ...

    def progress(self) -> tuple[int, int, str]:
        """How much of the run is done, of how much, and what is counted."""
        ...

    def take(self, stepper: Stepper, carry: Carry, c: np.ndarray, most: int) -> tuple[Steps, np.ndarray, np.ndarray]:
        """The next steps, at most so many; the times they end at, and their sizes."""
        ...

    def rest(self) -> float:
        """The size of the shorter step that is left to where the user said; 0 if there is none."""
        ...

    def shortened(self, stepper: Stepper, carry: Carry, c: np.ndarray, t: float, until: float) -> Steps:
        """One step from t, shorter than usual, that ends at a given time."""
        ...

    def state(self) -> dict[str, Any]:
        """What it needs to go on."""
        ...

    def restore(self, stored: dict[str, Any]) -> None:
        """Go on from there."""


class EqualSteps:
    """Steps of size h; the last one is shorter if h does not divide the time span."""

    def __init__(self, task: Task) -> None:
        self.task, self.step, self.t = task, 0, task.t0

    def begin(self, t: float) -> None:
        self.t = t

    def over(self) -> bool:
        return self.step >= self.task.steps

    def progress(self) -> tuple[int, int, str]:
        return self.step, self.task.steps, "steps"

    def take(self, stepper: Stepper, carry: Carry, c: np.ndarray, most: int) -> tuple[Steps, np.ndarray, np.ndarray]:
        task = self.task
        count = min(most, task.steps - self.step)
        steps = stepper.advance(carry, count, self.step, task.h, task.t0, c)
        t = task.t0 + np.arange(self.step + 1, self.step + steps.taken + 1) * task.h
        self.step += steps.taken
        self.t = task.t0 + self.step * task.h
        return steps, t, np.full(steps.taken, task.h)

    def rest(self) -> float:
        return self.task.last_h

    def shortened(self, stepper: Stepper, carry: Carry, c: np.ndarray, t: float, until: float) -> Steps:
        size = self.task.last_h if until == self.task.t_end else until - t
        return stepper.advance(carry, 1, 0, size, t, c)

    def state(self) -> dict[str, Any]:
        return {"step": self.step}

    def restore(self, stored: dict[str, Any]) -> None:
        self.step = int(stored["step"])
        self.t = self.task.t0 + self.step * self.task.h


class FictiveSteps:
    """Steps of size h in a fictive time; time itself is part of the state."""

    def __init__(self, task: Task, entry: int) -> None:
        self.task, self.step, self.t = task, 0, task.t0
        self._entry, self._reached = entry, False

    def begin(self, t: float) -> None:
        self.t = t

    def over(self) -> bool:
        return self._reached

    def progress(self) -> tuple[int, int, str]:
        return _percent(self.t, self.task)

    def take(self, stepper: Stepper, carry: Carry, c: np.ndarray, most: int) -> tuple[Steps, np.ndarray, np.ndarray]:
        task = self.task
        limit = Limit(self._entry, task.t_end)
        steps = stepper.advance(carry, most, self.step, task.h, 0.0, c, limit)
        t = steps.Z[:, self._entry].copy()
        sizes = np.diff(t, prepend=self.t)
        if not np.all(sizes > 0):  # a NaN is not greater either
            steps = _until(steps, int(np.argmin(sizes > 0)), carry)
            t, sizes = t[: steps.taken], sizes[: steps.taken]
        self.step += steps.taken
        self.t = float(t[-1]) if len(t) else self.t
        self._reached = steps.reached
        return steps, t, sizes

    def rest(self) -> float:
        rest = self.task.t_end - self.t
        return rest if rest > 1e-9 * max(abs(self.task.t_end), self.task.h) else 0.0

    def shortened(self, stepper: Stepper, carry: Carry, c: np.ndarray, t: float, until: float) -> Steps:
        """By the rule of false position (Illinois) for the size of the step in fictive time."""
        rest = until - t
        low, high, short, beyond = 0.0, self.task.h, -rest, 0.0
        for _ in range(_TRIALS):
            size = (low * beyond - high * short) / (beyond - short) if beyond else high
            steps = stepper.advance(carry, 1, 0, size, self.step * self.task.h, c)
            if steps.trouble is not None:
                break
            gap = float(steps.Z[0, self._entry]) - until
            if abs(gap) <= _CLOSE * max(abs(until), rest):
                break
            if gap < 0:
                low, short, beyond = size, gap, beyond / 2
            else:
                high, beyond, short = size, gap, short / 2 if beyond else short
        return steps

    def state(self) -> dict[str, Any]:
        return {"step": self.step, "time": self.t}

    def restore(self, stored: dict[str, Any]) -> None:
        self.step, self.t = int(stored["step"]), float(stored["time"])


class ControlledSteps:
    """Steps whose size is controlled; the last one ends where the user said."""

    def __init__(self, task: Task) -> None:
        self.task, self.step, self.t = task, 0, task.t0
        self._reached = False
        self._flow: np.ndarray | None = None

    def begin(self, t: float) -> None:
        self.t = t

    def over(self) -> bool:
        return self._reached

    def progress(self) -> tuple[int, int, str]:
        return _percent(self.t, self.task)

    def take(self, stepper: Stepper, carry: Carry, c: np.ndarray, most: int) -> tuple[Steps, np.ndarray, np.ndarray]:
        assert isinstance(stepper, ControlledStepper)
        if self._flow is None:
            self._flow = stepper.flow(self.task.h)
        steps = stepper.go_on(carry, most, self.t, c, self._flow)
        assert steps.t is not None
        sizes = np.diff(steps.t, prepend=self.t)
        self.step += steps.taken
        self.t = float(steps.t[-1]) if steps.taken else self.t
        self._reached = steps.reached
        return steps, steps.t, sizes

    def rest(self) -> float:
        return 0.0

    def shortened(self, stepper: Stepper, carry: Carry, c: np.ndarray, t: float, until: float) -> Steps:
        return stepper.advance(carry, 1, 0, until - t, t, c)

    def state(self) -> dict[str, Any]:
        flow = np.zeros(0) if self._flow is None else self._flow
        return {"step": self.step, "time": self.t, "flow": flow}

    def restore(self, stored: dict[str, Any]) -> None:
        self.step, self.t = int(stored["step"]), float(stored["time"])
        self._flow = np.array(stored["flow"]) if np.size(stored["flow"]) else None


def _until(steps: Steps, taken: int, before: Carry) -> Steps:
    """The first of these steps, up to the one that did not go on in time."""
    z = steps.Z[taken - 1] if taken else before.z
    x = np.concatenate([before.x, steps.X[:taken]])[-len(before.x) :]
    trouble = Trouble(0.0, 0.0, "time", "time does not go on, as the scaling function is not positive any more")
    return dataclasses.replace(
        steps, taken=taken, Z=steps.Z[:taken], X=steps.X[:taken], iterations=steps.iterations[:taken],
        carry=dataclasses.replace(steps.carry, z=z.copy(), x=x), trouble=trouble, reached=False,
    )  # fmt: skip


def _percent(t: float, task: Task) -> tuple[int, int, str]:
    return int(100 * (t - task.t0) / (task.t_end - task.t0)), 100, "%"


def pace_of(task: Task, time_entry: int | None) -> Pace:
    """How a task goes through time; `time_entry` is the place of time in its state, if it is there."""
    if time_entry is not None:
        return FictiveSteps(task, time_entry)
    return EqualSteps(task) if task.control is None else ControlledSteps(task)
