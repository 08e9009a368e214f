"""The `Stepper` protocol and the data it exchanges: integrator state, step chunk, failure, statistics."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from livens.engine.loop import Policy, all_finite, count
from livens.engine.newton import PAST, Workspace
from livens.engine.places import places


def step_constants(h: float, t: float, k: np.ndarray) -> np.ndarray:
    """Return the step inputs ``c = (h, t, parameters)`` of a step of size h that starts at time t."""
    c = np.empty(2 + k.size)
    c[0], c[1], c[2:] = h, t, k
    return c


@dataclass(slots=True)
class Carry:
    """Complete integrator state; restoring it reproduces the following steps bit for bit."""

    t: float
    z: np.ndarray
    x: np.ndarray  # unknowns of the last `HISTORY` steps, oldest first: (history, n_unknowns)
    dx: np.ndarray  # last Newton update
    scale: np.ndarray  # reciprocal round-off bounds of the residual
    memory: np.ndarray = field(default_factory=lambda: np.zeros(0))  # private state of the stepper

    @classmethod
    def start(cls, t: float, z: np.ndarray, x: np.ndarray, past: int = PAST) -> Carry:
        """Return the state before the first step. Infinite reciprocal bounds force their evaluation in this step."""
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
    """Failure of a step: residual of the worst equation, its round-off bound, and the reason."""

    residual: float  # of the worst equation
    floor: float  # admissible residual of this equation
    equation: str
    reason: str
    h: float  # step size


@dataclass(slots=True)
class Steps:
    """Chunk of accepted steps: times, states, step sizes, unknowns and Newton iterations.

    The arrays are views of a workspace that the next call of `Stepper.advance` overwrites.
    """

    times: np.ndarray  # (n_steps + 1,), including the initial time
    states: np.ndarray  # (n_steps + 1, n_state), including the initial state
    sizes: np.ndarray
    X: np.ndarray
    iterations: np.ndarray
    before: Carry
    carry: Carry
    trouble: Trouble | None = None
    reached: bool = False  # the next step would pass the end condition
    fictive: np.ndarray | None = None  # fictive times of the step ends, for steps of equal size in fictive time
    M: np.ndarray | None = None  # private state of the stepper after every step

    @property
    def t(self) -> np.ndarray:
        """Times at the ends of the steps, (n_steps,)."""
        return self.times[1:]

    @property
    def Z(self) -> np.ndarray:
        """States at the ends of the steps, (n_steps, n_state)."""
        return self.states[1:]

    @property
    def taken(self) -> int:
        return len(self.sizes)

    def until(self, s: int, trouble: Trouble | None = None) -> Steps:
        """Return the chunk truncated to its first s steps, with the final state of step s."""
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
    """Counters of a stepper other than Newton iterations."""

    repivots: int = 0
    reference_steps: int = 0
    rejected: int = 0
    unsolved: int = 0  # rejected steps whose Newton iteration failed
    compile_s: float = 0.0  # compilation time during the run, in seconds


class Stepper(Protocol):
    """Protocol of all steppers. All steppers solve the same equations to the same round-off level."""

    cost: Cost

    def advance(self, carry: Carry, steps: int, policy: Policy, going: np.ndarray) -> Steps:
        """Take at most `n_steps` steps; `controller_state` is updated by adaptive steps."""
        ...

    def state(self) -> dict[str, Any]:
        """Return the private state that is needed to continue bit for bit."""
        ...

    def restore(self, stored: dict[str, Any]) -> None:
        """Restore a checkpoint."""
        ...

    def release(self) -> None:
        """Return the workspace to the pool, for reuse by the next run."""
        ...


#: Maximum number of workspaces in the pool of a compiled step.
_SPARE = 2


class Buffers:
    """Owner of the chunk workspace, which is reused between calls: an allocation costs as much time as a step.

    `pool` contains the workspaces that earlier runs of the same step have released.
    """

    def __init__(
        self, k: np.ndarray, kinds: np.ndarray, estimates: int = 0, spare: list[Workspace] | None = None
    ) -> None:
        self._k, self._kinds, self._estimates = k, kinds, estimates
        self._spare = [] if spare is None else spare
        self._held: Workspace | None = None

    def release(self) -> None:
        """Return the workspace to the pool; arrays of the last chunk become invalid."""
        if self._held is not None and len(self._spare) < _SPARE:
            self._spare.append(self._held)
        self._held = None

    def _taken_over(self) -> Workspace | None:
        """Return a workspace of the pool with parameters set and `work` zeroed, or None."""
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
        """Return a workspace for `n_steps` steps that starts from an integrator state. Former contents are lost."""
        w = self._room(steps, carry.z.size, carry.x.shape[1])
        w.Z[0], w.X[:PAST], w.t[0], w.dx[:], w.scale[:] = carry.z, carry.x, carry.t, carry.dx, carry.scale
        return w

    def begun(self, z: np.ndarray, x: np.ndarray, steps: int) -> Workspace:
        """Return a workspace before the first step (as `IntegratorState.initial`); the caller fills the time grid."""
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
    """Return the chunk of the `n_taken` steps in a workspace."""
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
    """Truncate a chunk before its first non-finite state.

    All states are tested: a derived entry such as a multiplier may be infinite in one state and finite in the next.
    """
    states = np.ascontiguousarray(steps.states)  # contiguous in all steppers; `np.isfinite` would allocate a mask
    if not steps.taken or all_finite(states, states.shape[1], states.size):
        return steps
    good = int(np.argmin(np.isfinite(steps.Z).all(axis=1)))
    entry = int(np.argmin(np.isfinite(steps.Z[good])))
    what = "the state is not finite any more"
    return steps.until(good, Trouble(np.inf, 0.0, names.name_of(entry), what, float(steps.sizes[good])))
