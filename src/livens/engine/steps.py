"""What a tier of the engine offers: take steps, or say why not."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from livens.engine.loop import Policy, all_finite, count
from livens.engine.newton import PAST, Workspace
from livens.engine.places import places


def step_constants(h: float, t: float, k: np.ndarray) -> np.ndarray:
    """What the equations of a step are given beside state and unknowns: its size, its time and the parameters."""
    c = np.empty(2 + k.size)
    c[0], c[1], c[2:] = h, t, k
    return c


@dataclass(slots=True)
class Carry:
    """All that the next step needs of the last ones, bit for bit: state and time, unknowns, correction and scales."""

    t: float
    z: np.ndarray
    x: np.ndarray  # unknowns of the last steps, oldest first
    dx: np.ndarray  # the last Newton correction
    scale: np.ndarray  # reciprocal round-off bounds of the residual
    memory: np.ndarray = field(default_factory=lambda: np.zeros(0))  # what else a tier carries on

    @classmethod
    def start(cls, t: float, z: np.ndarray, x: np.ndarray, past: int = PAST) -> Carry:
        """Before the first step, from a state and a guess of the unknowns; the bounds accept nothing yet."""
        rows, accepted = np.empty((past, x.size)), np.empty(x.size)
        rows[:] = x
        accepted.fill(np.inf)
        return cls(t, z.copy(), rows, np.zeros(x.size), accepted)

    def state(self) -> dict[str, Any]:
        memory = {"memory": self.memory} if self.memory.size else {}
        return {"time": self.t, "z": self.z, "x": self.x, "dx": self.dx, "scale": self.scale, **memory}

    @classmethod
    def restored(cls, stored: dict[str, Any]) -> Carry:
        found = cls(float(stored["time"]), *(np.array(stored[name]) for name in ("z", "x", "dx", "scale")))
        return replace(found, memory=np.array(stored["memory"])) if "memory" in stored else found


@dataclass(frozen=True)
class Trouble:
    """Why a step was refused."""

    residual: float  # of the worst equation
    floor: float  # what round-off would allow
    equation: str
    reason: str
    h: float  # the size of the step


@dataclass(slots=True)
class Steps:
    """What a tier gives back: state at the end, time, size, unknowns and Newton corrections of every step taken.

    The arrays are views of buffers that the next call overwrites.
    """

    times: np.ndarray  # with that before the first step
    states: np.ndarray  # with that before the first step
    sizes: np.ndarray
    X: np.ndarray
    iterations: np.ndarray
    before: Carry
    carry: Carry
    trouble: Trouble | None = None
    reached: bool = False  # the next step would go beyond where the run is to end
    fictive: np.ndarray | None = None  # where the steps end in fictive time, if they are equal there
    M: np.ndarray | None = None  # what else the tier carries on, behind every step

    @property
    def t(self) -> np.ndarray:
        """Where the steps end."""
        return self.times[1:]

    @property
    def Z(self) -> np.ndarray:
        """The states there."""
        return self.states[1:]

    @property
    def taken(self) -> int:
        return len(self.sizes)

    def until(self, s: int, trouble: Trouble | None = None) -> Steps:
        """The first s of these steps, as if no other had been taken."""
        if s == self.taken:
            return self if trouble is None else replace(self, trouble=trouble, reached=False)
        unknowns = np.concatenate([self.before.x, self.X[:s]])[-len(self.before.x) :]
        t, z = (float(self.times[s]), self.states[s].copy()) if s else (self.before.t, self.before.z)
        memory = self.before.memory if self.M is None or not s else self.M[s - 1].copy()
        carry = replace(self.carry, t=t, z=z, x=unknowns, memory=memory)
        fictive = None if self.fictive is None else self.fictive[:s]
        return Steps(
            self.times[: s + 1],
            self.states[: s + 1],
            self.sizes[:s],
            self.X[:s],
            self.iterations[:s],
            self.before,
            carry,
            trouble,
            fictive=fictive,
            M=None if self.M is None else self.M[:s],
        )


@dataclass
class Cost:
    """What the steps of a run cost beside Newton corrections."""

    repivots: int = 0
    reference_steps: int = 0
    rejected: int = 0
    unsolved: int = 0  # of the rejected ones, those whose equations could not be solved
    compile_s: float = 0.0  # code that was compiled while the run was under way


class Stepper(Protocol):
    """A tier of the engine at work for one run. All tiers solve the same equations to the same floor."""

    cost: Cost

    def advance(self, carry: Carry, steps: int, policy: Policy, going: np.ndarray) -> Steps:
        """Take at most `steps` steps; `going` is the flow of controlled step sizes and is brought up to date."""
        ...

    def state(self) -> dict[str, Any]:
        """What it needs to go on bit for bit."""
        ...

    def restore(self, stored: dict[str, Any]) -> None:
        """Go on from a stored state."""
        ...

    def release(self) -> None:
        """The run is over, and what it worked with may be used by the next."""
        ...


#: At most this many workspaces are kept for the next runs of a compiled step.
_SPARE = 2


class Buffers:
    """The arrays of a chunk, kept from call to call: fresh memory costs a step's time.

    `spare` are those that earlier runs of the same step have released.
    """

    def __init__(
        self, k: np.ndarray, kinds: np.ndarray, estimates: int = 0, spare: list[Workspace] | None = None
    ) -> None:
        self._k, self._kinds, self._estimates = k, kinds, estimates
        self._spare = [] if spare is None else spare
        self._held: Workspace | None = None

    def release(self) -> None:
        """Leave the arrays to the next run: nobody looks at the last steps any more."""
        if self._held is not None and len(self._spare) < _SPARE:
            self._spare.append(self._held)
        self._held = None

    def _taken_over(self) -> Workspace | None:
        """Arrays of an earlier run, as good as new."""
        try:
            found = self._spare.pop()
        except IndexError:
            return None
        if found.estimate.size != self._estimates:
            return None
        found.c[2:] = self._k
        found.work.fill(0.0)
        return found

    def filled(self, carry: Carry, steps: int) -> Workspace:
        """Room for `steps` steps, with their past filled in. What was there before is overwritten."""
        w = self._room(steps, carry.z.size, carry.x.shape[1])
        w.Z[0], w.X[:PAST], w.t[0], w.dx[:], w.scale[:] = carry.z, carry.x, carry.t, carry.dx, carry.scale
        return w

    def begun(self, z: np.ndarray, x: np.ndarray, steps: int) -> Workspace:
        """The same before the first step of a run, as `Carry.start` says it; times are left to whoever counts them."""
        w = self._room(steps, z.size, x.size)
        w.Z[0], w.X[:PAST] = z, x
        w.dx.fill(0.0)
        w.scale.fill(np.inf)
        return w

    def _room(self, steps: int, entries: int, n: int) -> Workspace:
        if self._held is None:
            self._held = self._taken_over()
        if self._held is None or len(self._held.iterations) < steps:
            at = places(n)
            work = np.zeros(at.rows)
            self._held = Workspace(
                c=step_constants(0.0, 0.0, self._k),
                Z=np.empty((steps + 1, entries)),
                X=np.empty((steps + PAST, n)),
                t=np.empty(steps + 1),
                iterations=np.zeros(steps, dtype=np.int64),
                work=work,
                dx=work[at.dx : at.dx + n],
                scale=work[at.scale : at.scale + n],
                r=np.empty(n + 1),
                estimate=np.zeros(self._estimates),
                kinds=self._kinds,
            )
        return self._held


def steps_of(
    w: Workspace, before: Carry, taken: int, policy: Policy, trouble: Trouble | None = None, reached: bool = False
) -> Steps:
    """What a tier returns after `taken` steps in its buffers."""
    times = w.t[: taken + 1]
    if policy.entry >= 0:
        times[1:] = w.Z[1 : taken + 1, policy.entry]
    if policy.controlled or policy.entry >= 0:
        sizes = np.diff(times)
    else:
        sizes = np.empty(taken)
        count(times, sizes, policy.origin, policy.first, policy.h)
    carry = Carry(float(times[taken]), w.Z[taken].copy(), w.X[taken : taken + PAST].copy(), w.dx.copy(), w.scale.copy())
    X = w.X[PAST : PAST + taken]
    return Steps(times, w.Z[: taken + 1], sizes, X, w.iterations[:taken], before, carry, trouble, reached)


def finite(steps: Steps, w: Any, names: Any) -> Steps:
    """The same steps up to the first state that is not finite, which no run may go on from.

    All states are looked at: what follows from a state and leads to no other, such as a multiplier, may be finite
    again in the next one.
    """
    states = np.ascontiguousarray(steps.states)  # as they are in all tiers; NumPy would make an array of answers first
    if not steps.taken or all_finite(states, states.shape[1], states.size):
        return steps
    good = int(np.argmin(np.isfinite(steps.Z).all(axis=1)))
    entry = int(np.argmin(np.isfinite(steps.Z[good])))
    what = "the state is not finite any more"
    return steps.until(good, Trouble(np.inf, 0.0, names.name_of(entry), what, float(steps.sizes[good])))
