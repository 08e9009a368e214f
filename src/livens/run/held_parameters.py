"""Parameters that change between the steps of a run: scheduled inputs, and branches of continuous angles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from livens.engine.compiled_step import CompiledStep
from livens.engine.newton.time_loop import StepPolicy
from livens.engine.observables.kernel_table import ObservableKernel
from livens.engine.stepper import IntegratorState, StepChunk, Stepper
from livens.errors import InputError
from livens.models.angle_branches import MOVE_DISTANCE
from livens.run.plan import Plan
from livens.run.schedule import BoundFeedback, BoundSchedule, Feedback


def wrapped_angles(compiled: CompiledStep, t: np.ndarray, Z: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Return the angles with branches within half a turn, (n_rows, n_joints), at states Z."""
    branches = compiled.model.angle_branches
    assert branches is not None
    model = compiled.model

    def make_kernel() -> ObservableKernel:
        view: Any = model.view
        return ObservableKernel(model, branches.wrapped_angles(view.q, view.k))

    kernel = compiled.cached("wrapped angles", make_kernel)
    return kernel(t, Z, k)


def without_newton_history(state: IntegratorState) -> IntegratorState:
    """Return a state without Newton update and round-off bounds, which depend on the division into chunks of steps."""
    update, bounds = np.zeros_like(state.newton_update), np.full_like(state.inv_roundoff, np.inf)
    return replace(state, newton_update=update, inv_roundoff=bounds)


class BranchGuard(Stepper):
    """Stepper that raises an error if an angle leaves its branch, for runs that do not move branches."""

    def __init__(self, stepper: Stepper, compiled: CompiledStep, k: np.ndarray) -> None:
        super().__init__(compiled.layout)
        self._stepper, self._compiled, self._k = stepper, compiled, k
        self.statistics = stepper.statistics

    def close(self) -> None:
        self._stepper.close()

    def set_parameters(self, k: np.ndarray) -> None:
        self._k = k
        self._stepper.set_parameters(k)

    def advance(
        self, state: IntegratorState, n_steps: int, policy: StepPolicy, controller_state: np.ndarray
    ) -> StepChunk:
        steps = self._stepper.advance(state, n_steps, policy, controller_state)
        branches = self._compiled.model.angle_branches
        assert branches is not None
        joint = branches.crossed(wrapped_angles(self._compiled, steps.t_nodes, steps.states, self._k), self._k)
        if joint:
            raise InputError(
                f"the joint '{joint}' turns by more than half a revolution, and a force depends on its angle: "
                "derivatives are available within half a revolution only"
            )
        return steps


class HeldParameters:
    """Parameter vector of a run whose entries change between steps; its history is part of the results."""

    name = "inputs"

    def __init__(self, plan: Plan, compiled: CompiledStep) -> None:
        self._compiled, self._branches = compiled, compiled.model.angle_branches
        self._schedule: BoundSchedule | BoundFeedback | None = None
        if plan.inputs is not None:
            if not plan.has_fixed_steps:
                raise InputError("inputs over time need fixed steps in physical time: give h, and no step control")
            if isinstance(plan.inputs, Feedback):
                self._schedule = BoundFeedback(plan.inputs, plan.model, plan.t0, plan.h)
            else:
                self._schedule = BoundSchedule(plan.inputs, plan.model, plan.t0, plan.t_end, plan.h)
        self._times: list[float] = []
        self._vectors: list[np.ndarray] = []

    def updated(self, state: IntegratorState, k: np.ndarray) -> tuple[IntegratorState, np.ndarray]:
        """Return the state and the parameter vector of the next steps; k itself if nothing changes."""
        new = k
        if self._schedule is not None:
            new = k.copy()
            self._schedule.apply(new, state.t, state.z)
            new = k if np.array_equal(new, k) else new
        if self._branches is not None:
            angles = wrapped_angles(self._compiled, np.array([state.t]), state.z[None, :], new)[0]
            moved = self._branches.moved(angles, new)
            state, new = (state, new) if moved is new else (without_newton_history(state), moved)
        if new is not k or not self._times:
            self._times.append(state.t)
            self._vectors.append(new)
        return state, new

    def steps_until_change(self, t: float) -> int:
        """Return the number of steps until the schedule changes an input."""
        return 2**52 if self._schedule is None else self._schedule.steps_until_change(t)

    def n_valid(self, steps: StepChunk, k: np.ndarray) -> int:
        """Return the number of steps up to and including the first one that leaves the branch of an angle."""
        if self._branches is None or not steps.n_steps:
            return steps.n_steps
        angles = wrapped_angles(self._compiled, steps.t_end, steps.end_states, k)
        left = (np.abs(self._branches.deviation(angles, k)) > MOVE_DISTANCE).any(axis=1)
        return int(np.argmax(left)) + 1 if left.any() else steps.n_steps

    def checkpoint(self) -> dict[str, Any]:
        vectors = np.array(self._vectors) if self._vectors else np.zeros((0, 0))
        changing = np.flatnonzero((vectors != vectors[:1]).any(axis=0))
        constant = vectors[0] if len(vectors) else np.zeros(0)
        return {
            "times": np.array(self._times),
            "indices": changing,
            "values": vectors[:, changing],
            "first": constant,
            "scheduled": float(self._schedule is not None),
            "angles": self._schedule.measurement.last if isinstance(self._schedule, BoundFeedback) else np.zeros(0),
        }

    def restore(self, stored: dict[str, Any]) -> None:
        self._times = np.ravel(stored["times"]).tolist()
        if isinstance(self._schedule, BoundFeedback):
            self._schedule.measurement.last = np.ravel(stored["angles"])
        indices, first = np.ravel(stored["indices"]).astype(int), np.ravel(stored["first"])
        rows = np.array(stored["values"]).reshape(len(self._times), indices.size)
        self._vectors = []
        for row in rows:
            vector = first.copy()
            vector[indices] = row
            self._vectors.append(vector)

    @property
    def has_started(self) -> bool:
        """True if parameters of a step are stored."""
        return bool(self._vectors)

    @property
    def last(self) -> np.ndarray:
        """Parameter vector of the last steps."""
        return self._vectors[-1]
