"""Stepper of the tree tier: steps of `lie-em` with as many unknowns as degrees of freedom."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from livens.engine.newton.iteration import HISTORY
from livens.engine.newton.predictors import POLYNOMIAL_POINTS
from livens.engine.newton.step_size_control import FIXED_STEP, StepSizeController, initial_controller_state
from livens.engine.newton.time_loop import StepPolicy, fill_time_grid
from livens.engine.stepper import IntegratorState, StepChunk, StepFailure, Stepper, StepperOptions, step_inputs
from livens.engine.trees.lazy_states import LazyStates
from livens.engine.trees.monitor import MONITOR_WIDTH, NET_WORK
from livens.engine.trees.output import (
    ChunkArrays,
    advance_to_end,
    expand_mean_velocities,
    expand_rows,
    monitor_compact_state,
)
from livens.engine.trees.records import COMPACT
from livens.engine.trees.time_loop import advance_tree
from livens.engine.trees.variable_steps import TreeSteps
from livens.engine.variable_steps import VariableSteps

if TYPE_CHECKING:
    from livens.engine.compiled_step import CompiledStep


class TreeWorkspace:
    """Arrays of a chunk of steps: compact states, unknowns, work and monitored quantities."""

    def __init__(self, n_steps: int, n_real: int, n_unknowns: int, n_state: int) -> None:
        self.states = np.empty((n_steps + 1, COMPACT * n_real))
        self.X = np.empty((n_steps + HISTORY, n_unknowns))
        self.work = np.zeros((n_steps + 1, 3))
        self.monitor = np.empty((n_steps + 1, MONITOR_WIDTH))
        self.newton_iterations = np.zeros(n_steps, dtype=np.int64)
        self.n_steps = n_steps
        self.z_first, self.z_last = np.zeros(n_state), np.zeros(n_state)
        chunk = self.states, self.X, self.work, self.monitor, self.newton_iterations
        self.arrays = ChunkArrays(*chunk, self.z_first, self.z_last, np.zeros(1, dtype=np.int64))


class TreeStepper(Stepper):
    """Stepper on the spanning tree of a mechanism.

    A step that Newton's method in joint unknowns does not solve is taken by the assembled tier, which solves the same
    equations in absolute unknowns. These steps are counted as fallback steps.
    """

    def __init__(self, compiled: CompiledStep, k: np.ndarray, control: StepSizeController | None = None) -> None:
        super().__init__(compiled.layout)
        self._control = FIXED_STEP if control is None else control
        self._compiled, self.model, self._k = compiled, compiled.make_tree_model(k), k.copy()
        self._workspace: TreeWorkspace | None = None
        advance_to_end.compile()  # type: ignore[attr-defined]
        self._advance_native, _ = advance_to_end._entry  # type: ignore[attr-defined]
        self._zeros = np.zeros(self.model.output.n_state)
        self._fallback: Stepper | None = None
        self._controls = tuple(compiled.model.control_indices) if hasattr(compiled.model, "control_indices") else ()

    @classmethod
    def create(cls, compiled: CompiledStep, k: np.ndarray, options: StepperOptions) -> TreeStepper:
        assert options.control is None or isinstance(options.control, StepSizeController)
        return cls(compiled, k, options.control)

    def set_parameters(self, k: np.ndarray) -> None:
        self._k = k.copy()
        self.model.set_parameters(k)
        if self._fallback is not None:
            self._fallback.set_parameters(self._k)

    def close(self) -> None:
        super().close()
        self._compiled.release_tree_model(self.model)
        if self._fallback is not None:
            self._fallback.close()

    def advance(
        self, state: IntegratorState, n_steps: int, policy: StepPolicy, controller_state: np.ndarray
    ) -> StepChunk:
        assert policy.stop_entry < 0, "steps in fictive time are taken by `StepDensityStepper`"
        if policy.adaptive:
            info = self._compiled.error_estimate("tree") if self._control.n_variables else None
            with self.variable_steps(state, n_steps) as steps:
                taken = steps.take(n_steps, policy, self._control, controller_state, () if info is None else info.names)
            self._count_rejections(controller_state)
            return taken
        w, model, n_history = self._prepare(state, n_steps), self.model, self._n_history(state)
        t, done, failure, fallback_rows = model.arrays, 0, None, dict[int, np.ndarray]()
        arguments = policy.h, policy.t_origin, policy.step0
        while done < n_steps and failure is None:
            done_before = done
            done = int(
                advance_tree(
                    t, w.states, w.X, w.work, w.monitor, w.newton_iterations, *arguments, done, n_steps, n_history
                )
            )
            n_history = min(n_history + done - done_before, POLYNOMIAL_POINTS)
            if done < n_steps:
                failure = self._fallback_step(w, state, done, policy, fallback_rows)
                done, n_history = (done + 1, 1) if failure is None else (done, n_history)
        t_nodes = np.empty(done + 1)
        t_nodes[0] = state.t
        fill_time_grid(t_nodes, np.empty(done), policy.t_origin, policy.step0, policy.h)
        return self.finished_chunk(w, state, t_nodes, policy, failure, fallback_rows, n_history)

    @contextlib.contextmanager
    def variable_steps(self, state: IntegratorState, n_steps: int) -> Iterator[VariableSteps]:
        yield TreeSteps(self, state, self._prepare(state, n_steps), self._n_history(state))

    def advance_once(
        self, state: IntegratorState, h: float, t_origin: float, step0: int, n_steps: int
    ) -> IntegratorState | None:
        w, n_history, model = self._allocate(state, n_steps), self._n_history(state), self.model
        w.z_first[:] = w.z_last[:] = state.z  # commands of controllers stay
        w.X[:HISTORY] = state.unknown_history
        n_done = self._advance_native(
            model.arrays.address, model.output.address, w.arrays.address, h, t_origin, step0, n_steps, n_history
        )
        if n_done < n_steps:
            return None
        z = w.z_last.copy()
        if z.dot(self._zeros) != 0.0:  # infinity and NaN times zero are NaN
            return None
        history = w.X[n_steps : n_steps + HISTORY].copy()
        n_history = min(n_history + n_steps, POLYNOMIAL_POINTS)
        self.last_iterations = w.newton_iterations[:n_steps]
        t = t_origin + (step0 + n_steps) * h
        return IntegratorState(t, z, history, state.newton_update, state.inv_roundoff, np.array([float(n_history)]))

    def _n_history(self, state: IntegratorState) -> int:
        """Return the number of past steps that the predictor may use."""
        return int(state.stepper_state[0]) if state.stepper_state.size else 1

    def _prepare(self, state: IntegratorState, n_steps: int) -> TreeWorkspace:
        """Return a workspace that starts from an integrator state; commands of controllers are parameters."""
        w, o = self._allocate(state, n_steps), self.model.output
        w.states[0], w.X[:HISTORY] = self.model.compact_state(state.z), state.unknown_history
        w.work[0, :2] = state.z[o.supplied : o.supplied + 2]
        return w

    def _allocate(self, state: IntegratorState, n_steps: int) -> TreeWorkspace:
        """Return a workspace of at least `n_steps` steps; commands of controllers are parameters."""
        w = self._workspace
        if w is None or w.n_steps < n_steps:
            w = self._workspace = self.new_workspace(n_steps)
        if self._controls:
            self._k[list(self._controls)] = state.z[self._compiled.layout["control"]]
            self.model.set_law_parameters(self._k)
        return w

    def new_workspace(self, n_steps: int) -> TreeWorkspace:
        """Return a workspace for `n_steps` steps."""
        t = self.model.arrays
        return TreeWorkspace(n_steps, t.n_real, t.n_unknowns, self.model.output.n_state)

    def _fallback_step(
        self, w: TreeWorkspace, state: IntegratorState, s: int, policy: StepPolicy, rows: dict[int, np.ndarray]
    ) -> StepFailure | None:
        """Take step s in absolute unknowns; return None if it succeeded."""
        compiled, model = self._compiled, self.model
        if self._fallback is None:
            self._fallback = compiled.make_stepper("assembled", self._k)
        t0 = policy.t_origin + (policy.step0 + s) * policy.h
        z = self._expand(w, state, np.zeros(0), policy, np.array([s]), rows)[0]
        c, previous = step_inputs(policy.h, t0, self._k), w.X[s + HISTORY - 1].copy()
        single = StepPolicy(False, policy.h, t0, 0)
        # the velocities at a node alternate about the mean velocities of the steps, which are the better guess
        for guess in (self._with_mean_velocities(z, w.states[s], previous, policy.h), z):
            x = compiled.initial_unknowns(guess, c, "assembled")
            start = replace(IntegratorState.initial(t0, z, x), stepper_state=compiled.initial_history(z, c))
            chunk = self._fallback.advance(start, 1, single, initial_controller_state(policy.h))
            if chunk.failure is None and chunk.n_steps:
                break
        else:
            return chunk.failure
        rows[s + 1] = z_next = np.array(chunk.states[1])
        self.statistics.fallback_steps += 1
        o, layout, z_mean = model.output, compiled.layout, z_next.copy()
        z_mean[layout["v"]] = (z_next - z)[layout["q"]] / policy.h
        w.states[s + 1], w.X[s + HISTORY] = model.compact_state(z_next), model.initial_unknowns(z_mean)
        w.work[s + 1, :2] = z_next[o.supplied : o.supplied + 2]
        w.newton_iterations[s] = chunk.newton_iterations[0]
        monitor_compact_state(model.arrays, w.states[s + 1], t0 + policy.h, w.monitor[s + 1])
        return None

    def _with_mean_velocities(self, z: np.ndarray, state: np.ndarray, x: np.ndarray, h: float) -> np.ndarray:
        """Return a full state with the mean velocities of a step from it with the unknowns x of the tree."""
        guess, model = z.copy(), self.model
        expand_mean_velocities(model.arrays, model.output, np.ascontiguousarray(state), x, h, guess)
        return guess

    def _expand(
        self,
        w: TreeWorkspace,
        state: IntegratorState,
        t_nodes: np.ndarray,
        policy: StepPolicy | None,
        numbers: np.ndarray,
        fallback_rows: dict[int, np.ndarray],
    ) -> np.ndarray:
        """Return the full states with the given numbers; number 0 is the initial state of the chunk.

        Steps are equal with a `policy`; otherwise their sizes are the differences of the times of the nodes.
        """
        model = self.model
        Z = np.empty((len(numbers), model.output.n_state))
        computed = np.array([number > 0 and number not in fallback_rows for number in numbers.tolist()], dtype=bool)
        if computed.any():
            steps = numbers[computed].astype(np.int64) - 1
            rows = np.empty((len(steps), model.output.n_state))
            if self._controls:
                rows[:, self._compiled.layout["control"]] = state.z[self._compiled.layout["control"]]
            arrays = model.arrays, model.output, w.states, w.X, w.work
            if policy is not None:
                expand_rows(*arrays, policy.h, policy.t_origin, policy.step0, steps, len(steps), rows)
            else:
                expand: Callable[..., None] = expand_rows.with_leading(*arrays)  # type: ignore[attr-defined]
                number, row = steps.ctypes.data, rows.ctypes.data
                for s in steps.tolist():
                    expand(t_nodes[s + 1] - t_nodes[s], t_nodes[s], -s, number, 1, row)
                    number, row = number + steps.itemsize, row + rows.strides[0]
            Z[computed] = rows
        for i in np.flatnonzero(~computed).tolist():
            Z[i] = fallback_rows.get(int(numbers[i]), state.z)
        return Z

    def finished_chunk(
        self,
        w: TreeWorkspace,
        state: IntegratorState,
        t_nodes: np.ndarray,
        policy: StepPolicy | None,
        failure: StepFailure | None,
        fallback_rows: dict[int, np.ndarray],
        n_history: int,
        reached_end: bool = False,
    ) -> StepChunk:
        """Return the chunk of steps with these times of the nodes; the steps are equal with a `policy`."""
        done = len(t_nodes) - 1
        step_sizes = np.diff(t_nodes) if policy is None else np.full(done, policy.h)

        def expand(numbers: np.ndarray) -> np.ndarray:
            return self._expand(w, state, t_nodes, policy, numbers, fallback_rows)

        monitor_compact_state(self.model.arrays, w.states[0], state.t, w.monitor[0])
        w.monitor[: done + 1, NET_WORK] = w.work[: done + 1, 0] - w.work[: done + 1, 1]
        states = LazyStates(expand, np.arange(done + 1), self.model.output.n_state, w.monitor)
        final = IntegratorState(
            float(t_nodes[done]),
            states[done].copy(),
            w.X[done : done + HISTORY].copy(),
            state.newton_update,
            state.inv_roundoff,
            np.array([float(n_history)]),
        )
        chunk = StepChunk(
            t_nodes,
            cast(np.ndarray, states),
            step_sizes,
            w.X[HISTORY : HISTORY + done],
            w.newton_iterations[:done],
            state,
            final,
            failure,
            reached_end,
            stepper_states=np.minimum(self._n_history(state) + np.arange(1, done + 1), POLYNOMIAL_POINTS)[:, None]
            * 1.0,
        )
        return self._truncate_at_nonfinite(chunk, w)

    def _truncate_at_nonfinite(self, chunk: StepChunk, w: TreeWorkspace) -> StepChunk:
        """Truncate a chunk before its first state with a non-finite energy."""
        finite = np.isfinite(w.monitor[1 : chunk.n_steps + 1, :3]).all(axis=1)
        if finite.all():
            return chunk
        n_finite = int(np.argmin(finite))
        reason = "the state is not finite any more"
        return chunk.truncated(n_finite, StepFailure(np.inf, 0.0, "energy", reason, float(chunk.step_sizes[n_finite])))
