"""The `Stepper` base class and the data it exchanges: integrator state, step chunk, failure, statistics."""

from __future__ import annotations

import abc
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from livens.engine.newton.iteration import HISTORY, Workspace
from livens.engine.newton.time_loop import StepPolicy, all_finite, fill_time_grid
from livens.engine.newton.workspace_layout import newton_offsets
from livens.expressions.state_layout import Layout
from livens.types import FloatArray

if TYPE_CHECKING:
    from livens.engine.codegen.unrolled_lu import PivotOrder
    from livens.engine.compiled_step import CompiledStep
    from livens.engine.newton.step_size_control import StepSizeController
    from livens.engine.taylor.stepper import TaylorStepControl
    from livens.engine.variable_steps import VariableSteps


def step_inputs(h: float, t: float, k: np.ndarray) -> np.ndarray:
    """Return the step inputs ``c = (h, t, parameters)`` of a step of size h that starts at time t."""
    c = np.empty(2 + k.size)
    c[0], c[1], c[2:] = h, t, k
    return c


@dataclass(slots=True)
class IntegratorState:
    """Complete integrator state; restoring it reproduces the following steps bit for bit."""

    t: float
    z: np.ndarray
    unknown_history: np.ndarray  # unknowns of the last `HISTORY` steps, oldest first: (history, n_unknowns)
    newton_update: np.ndarray  # last Newton update
    inv_roundoff: np.ndarray  # reciprocal round-off bounds of the residual
    stepper_state: np.ndarray = field(default_factory=lambda: np.zeros(0))  # private state of the stepper

    @classmethod
    def initial(cls, t: float, z: np.ndarray, x: np.ndarray, history: int = HISTORY) -> IntegratorState:
        """Return the state before the first step. Infinite reciprocal bounds force their evaluation in this step."""
        unknown_history, inv_roundoff = np.empty((history, x.size)), np.empty(x.size)
        unknown_history[:] = x
        inv_roundoff.fill(np.inf)
        return cls(t, z.copy(), unknown_history, np.zeros(x.size), inv_roundoff)

    def to_checkpoint(self) -> dict[str, FloatArray | float]:
        stepper_state = {"memory": self.stepper_state} if self.stepper_state.size else {}
        return {
            "time": self.t,
            "z": self.z,
            "x": self.unknown_history,
            "dx": self.newton_update,
            "scale": self.inv_roundoff,
            **stepper_state,
        }

    @classmethod
    def from_checkpoint(cls, stored: dict[str, Any]) -> IntegratorState:
        state = cls(float(stored["time"]), *(np.array(stored[name]) for name in ("z", "x", "dx", "scale")))
        return replace(state, stepper_state=np.array(stored["memory"])) if "memory" in stored else state


@dataclass(frozen=True)
class StepFailure:
    """Failure of a step: residual of the worst equation, its round-off bound, and the reason."""

    residual: float  # of the worst equation
    roundoff_bound: float  # admissible residual of this equation
    worst_equation: str
    reason: str
    h: float  # step size


def error_failure(name: str, h: float) -> StepFailure:
    """Return the failure of a step whose estimated error of a variable exceeds the tolerance for every size."""
    reason = (
        f"no step of at least {h:.3g} succeeded: its equations are solved, but the estimated error of {name} exceeds "
        "the tolerance"
    )
    return StepFailure(0.0, 0.0, name, reason, h)


@dataclass(slots=True)
class StepChunk:
    """Chunk of accepted steps: times, states, step sizes, unknowns and Newton iterations.

    The arrays are views of a workspace that the next call of `Stepper.advance` overwrites.
    """

    t_nodes: np.ndarray  # (n_steps + 1,), including the initial time
    states: np.ndarray  # (n_steps + 1, n_state), including the initial state
    step_sizes: np.ndarray
    unknowns: np.ndarray
    newton_iterations: np.ndarray
    initial: IntegratorState
    final: IntegratorState
    failure: StepFailure | None = None
    reached_end: bool = False  # the next step would pass the end condition
    fictive_t: np.ndarray | None = None  # fictive times of the step ends, for steps of equal size in fictive time
    stepper_states: np.ndarray | None = None  # private state of the stepper after every step

    @property
    def t_end(self) -> np.ndarray:
        """Times at the ends of the steps, (n_steps,)."""
        return self.t_nodes[1:]

    @property
    def end_states(self) -> np.ndarray:
        """States at the ends of the steps, (n_steps, n_state)."""
        return self.states[1:]

    @property
    def n_steps(self) -> int:
        return len(self.step_sizes)

    def truncated(self, s: int, failure: StepFailure | None = None) -> StepChunk:
        """Return the chunk truncated to its first s steps, with the final state of step s."""
        if s == self.n_steps:
            return self if failure is None else replace(self, failure=failure, reached_end=False)
        unknown_history = np.concatenate([self.initial.unknown_history, self.unknowns[:s]])[
            -len(self.initial.unknown_history) :
        ]
        t, z = (float(self.t_nodes[s]), self.states[s].copy()) if s else (self.initial.t, self.initial.z)
        stepper_state = (
            self.initial.stepper_state if self.stepper_states is None or not s else self.stepper_states[s - 1].copy()
        )
        final = replace(self.final, t=t, z=z, unknown_history=unknown_history, stepper_state=stepper_state)
        fictive_t = None if self.fictive_t is None else self.fictive_t[:s]
        return StepChunk(
            self.t_nodes[: s + 1],
            self.states[: s + 1],
            self.step_sizes[:s],
            self.unknowns[:s],
            self.newton_iterations[:s],
            self.initial,
            final,
            failure,
            fictive_t=fictive_t,
            stepper_states=None if self.stepper_states is None else self.stepper_states[:s],
        )


class CompleteRun(NamedTuple):
    """Times, states and Newton iterations of all steps of an adaptive run, including the initial time and state."""

    t: np.ndarray  # (n_steps + 1,)
    states: np.ndarray  # (n_steps + 1, n_state)
    newton_iterations: np.ndarray  # (n_steps,)
    reached_end: bool  # False after the largest number of steps


@dataclass
class StepperStatistics:
    """Counters of a stepper other than Newton iterations."""

    repivots: int = 0
    fallback_steps: int = 0
    rejected: int = 0
    newton_failures: int = 0  # rejected steps whose Newton iteration failed
    compile_s: float = 0.0  # compilation time during the run, in seconds


#: Number of steps that may be needed to land on the end time, if the last step fails and is subdivided.
LANDING_STEPS = 16
#: Maximum number of workspaces in the pool of a compiled step.
_POOL_SIZE = 2
#: Group sizes of steps without unknowns.
_NO_GROUPS = np.zeros(0, dtype=np.int64)


class WorkspaceManager:
    """Owner of the chunk workspace, which is reused between calls: an allocation costs as much time as a step.

    `pool` contains the workspaces that earlier runs of the same step have released.
    """

    def __init__(
        self,
        k: np.ndarray,
        group_sizes: np.ndarray = _NO_GROUPS,
        estimate_size: int = 0,
        pool: list[Workspace] | None = None,
    ) -> None:
        self._k, self._group_sizes, self._estimate_size = k, group_sizes, estimate_size
        self._pool = [] if pool is None else pool
        self._workspace: Workspace | None = None

    def release(self) -> None:
        """Return the workspace to the pool; arrays of the last chunk become invalid."""
        workspace, self._workspace = self._workspace, None  # Ctrl-C may follow: a workspace has one owner at most
        if workspace is not None and len(self._pool) < _POOL_SIZE:
            self._pool.append(workspace)

    def set_parameters(self, k: np.ndarray) -> None:
        """Set the parameters of the following steps."""
        self._k = k
        if self._workspace is not None:
            self._workspace.c[2:] = k

    def _from_pool(self) -> Workspace | None:
        """Return a workspace of the pool with parameters set and `work` zeroed, or None."""
        try:
            workspace = self._pool.pop()
        except IndexError:
            return None
        if workspace.estimate.size != self._estimate_size:
            return None
        workspace.c[2:] = self._k
        workspace.work.fill(0.0)
        return workspace

    def prepare(self, state: IntegratorState, n_steps: int) -> Workspace:
        """Return a workspace for `n_steps` steps that starts from an integrator state. Former contents are lost."""
        w = self._allocate(n_steps, state.z.size, state.unknown_history.shape[1])
        w.Z[0], w.X[:HISTORY], w.t[0], w.newton_update[:], w.inv_roundoff[:] = (
            state.z,
            state.unknown_history,
            state.t,
            state.newton_update,
            state.inv_roundoff,
        )
        return w

    def prepare_first(self, z: np.ndarray, x: np.ndarray, n_steps: int) -> Workspace:
        """Return a workspace before the first step (as `IntegratorState.initial`); the caller fills the time grid."""
        w = self._allocate(n_steps, z.size, x.size)
        w.Z[0], w.X[:HISTORY] = z, x
        w.newton_update.fill(0.0)
        w.inv_roundoff.fill(np.inf)
        return w

    def _allocate(self, n_steps: int, n_state: int, n: int) -> Workspace:
        if self._workspace is None:
            self._workspace = self._from_pool()
        if self._workspace is None or len(self._workspace.newton_iterations) < n_steps:
            offsets = newton_offsets(n)
            work = np.zeros(offsets.n_rows)
            self._workspace = Workspace(
                c=step_inputs(0.0, 0.0, self._k),
                Z=np.empty((n_steps + 1, n_state)),
                X=np.empty((n_steps + HISTORY, n)),
                t=np.empty(n_steps + 1),
                newton_iterations=np.zeros(n_steps, dtype=np.int64),
                work=work,
                newton_update=work[offsets.update : offsets.update + n],
                inv_roundoff=work[offsets.inv_roundoff : offsets.inv_roundoff + n],
                r=np.empty(n + 1),
                estimate=np.zeros(self._estimate_size),
                group_sizes=self._group_sizes,
            )
        return self._workspace


@dataclass(frozen=True)
class StepperOptions:
    """Options of a stepper for one run, other than the parameters."""

    pivot_order: PivotOrder | None = None  # initial pivot order of the fused tier
    control: StepSizeController | TaylorStepControl | None = None  # None for fixed steps
    n_threads: int = 1  # threads of the assembled tier


class Stepper(abc.ABC):
    """Base class of all steppers. All steppers solve the same equations to the same round-off level.

    A stepper without private state overrides `advance` only. A stepper of one type of step equations is entered in
    `livens.engine.stepper_registry`.
    """

    #: True if the stepper requires `StepperOptions.pivot_order`.
    needs_pivot_order: ClassVar[bool] = False
    #: Newton iterations of the steps of the last successful `advance_once`.
    last_iterations: np.ndarray = np.zeros(0, dtype=np.int64)

    def __init__(self, layout: Layout, workspaces: WorkspaceManager | None = None) -> None:
        """Create a stepper for states of this layout; `workspaces` returns to its pool when the run ends."""
        self.statistics = StepperStatistics()
        self._layout = layout
        self._workspaces = WorkspaceManager(np.zeros(0)) if workspaces is None else workspaces

    @classmethod
    def create(cls, compiled: CompiledStep, k: np.ndarray, options: StepperOptions) -> Self:
        """Return the stepper of a compiled step for one run with the parameters k."""
        return cls(compiled, k)  # type: ignore[arg-type]  # subclasses with another constructor override `create`

    @abc.abstractmethod
    def advance(
        self, state: IntegratorState, n_steps: int, policy: StepPolicy, controller_state: np.ndarray
    ) -> StepChunk:
        """Take at most `n_steps` steps; `controller_state` is updated by adaptive steps."""

    def advance_once(
        self, state: IntegratorState, h: float, t_origin: float, step0: int, n_steps: int
    ) -> IntegratorState | None:
        """Take fixed steps and return the state after the last one; None if they need `advance`."""
        return None

    @property
    def takes_single_steps(self) -> bool:
        """True if `advance_once` is implemented."""
        return type(self).advance_once is not Stepper.advance_once

    def advance_to_end(
        self, state: IntegratorState, h: float, t_end: float, n_steps: int, controller_state: np.ndarray
    ) -> CompleteRun | None:
        """Take all adaptive steps to `t_end`, or `n_steps` of them; None if they need `advance`."""
        return None

    def variable_steps(self, state: IntegratorState, n_steps: int) -> AbstractContextManager[VariableSteps]:
        """Return a context with steps whose sizes are chosen one at a time, of the assembled and the tree tier."""
        raise NotImplementedError

    def set_parameters(self, k: np.ndarray) -> None:
        """Use other parameter values from the next step on."""
        self._workspaces.set_parameters(k)

    def checkpoint(self) -> dict[str, Any]:
        """Return the private state that is needed to continue bit for bit; empty if `IntegratorState` is complete."""
        return {}

    def restore(self, stored: dict[str, object]) -> None:  # noqa: B027  # optional: most steppers have no private state
        """Restore a checkpoint; nothing to restore if `IntegratorState` is complete."""

    def close(self) -> None:
        """Return the workspace to the pool, for reuse by the next run."""
        self._workspaces.release()

    def _count_rejections(self, controller_state: np.ndarray) -> None:
        """Copy the counters of rejected steps from the controller state into the statistics."""
        self.statistics.rejected = int(controller_state[0]["failures"])
        self.statistics.newton_failures = int(controller_state[0]["unsolved"])


def chunk_from_workspace(
    w: Workspace,
    initial: IntegratorState,
    n_taken: int,
    policy: StepPolicy,
    failure: StepFailure | None = None,
    reached_end: bool = False,
) -> StepChunk:
    """Return the chunk of the `n_taken` steps in a workspace."""
    t_nodes = w.t[: n_taken + 1]
    if policy.stop_entry >= 0:
        t_nodes[1:] = w.Z[1 : n_taken + 1, policy.stop_entry]
    if policy.adaptive or policy.stop_entry >= 0:
        step_sizes = np.diff(t_nodes)
    else:
        step_sizes = np.empty(n_taken)
        fill_time_grid(t_nodes, step_sizes, policy.t_origin, policy.step0, policy.h)
    final = IntegratorState(
        float(t_nodes[n_taken]),
        w.Z[n_taken].copy(),
        w.X[n_taken : n_taken + HISTORY].copy(),
        w.newton_update.copy(),
        w.inv_roundoff.copy(),
    )
    unknowns = w.X[HISTORY : HISTORY + n_taken]
    return StepChunk(
        t_nodes,
        w.Z[: n_taken + 1],
        step_sizes,
        unknowns,
        w.newton_iterations[:n_taken],
        initial,
        final,
        failure,
        reached_end,
    )


def nonfinite_failure(z: np.ndarray, layout: Layout, h: float) -> StepFailure | None:
    """Return the failure of a step of size h with the final state z, or None if z is finite."""
    is_finite = np.isfinite(z)
    if is_finite.all():
        return None
    return StepFailure(
        np.inf, 0.0, layout.entry_label(int(np.argmin(is_finite))), "the state is not finite any more", h
    )


def truncate_at_nonfinite(chunk: StepChunk, layout: Layout) -> StepChunk:
    """Truncate a chunk before its first non-finite state.

    All states are tested: a derived entry such as a multiplier may be infinite in one state and finite in the next.
    """
    states = np.ascontiguousarray(chunk.states)  # contiguous in all steppers; `np.isfinite` would allocate a mask
    if not chunk.n_steps or all_finite(states, states.shape[1], states.size):
        return chunk
    n_finite = int(np.argmin(np.isfinite(chunk.end_states).all(axis=1)))
    failure = nonfinite_failure(chunk.end_states[n_finite], layout, float(chunk.step_sizes[n_finite]))
    return chunk.truncated(n_finite, failure)
