"""Sampled (zero-order-hold) controllers of a run: called between steps, with commands held until the next sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from livens.engine.newton.time_loop import StepPolicy, fill_time_grid
from livens.engine.stepper import IntegratorState, StepChunk, Stepper
from livens.errors import InputError
from livens.expressions.state_layout import Layout
from livens.models.controller import Controller
from livens.run.plan import Plan
from livens.run.single_steps import Measurement
from livens.types import ArrayLike, FloatArray


class SampledControllers:
    """Sampled controllers of a model, called every fixed number of steps.

    The current commands are part of the state of the run. This class stores the internal states of the controllers,
    and the history of sample times and commands.
    """

    name = "controllers"

    def __init__(self, plan: Plan, controllers: Sequence[Controller], layout: Layout) -> None:
        self._plan, self._controllers, self._layout = plan, list(controllers), layout
        if not plan.has_fixed_steps:
            raise InputError("a model with sampled controllers needs fixed steps in physical time")
        self._sample_steps = []
        for controller in self._controllers:
            count = max(1, round(controller.sample_time / plan.h))
            if abs(count * plan.h - controller.sample_time) > 1e-9 * controller.sample_time:
                raise InputError(
                    f"the sampling interval {controller.sample_time:g} of controller '{controller.name}' must be "
                    f"an integer multiple of the step size h = {plan.h:g}"
                )
            self._sample_steps.append(count)
        self._states = [controller.state.copy() for controller in self._controllers]
        view: Any = plan.model.view
        self._measurements = [
            Measurement(plan.model, controller.measurement(view.q, view.v, view.t, view.k), controller.angle_entries)
            for controller in self._controllers
        ]
        self._commanded = layout["control"]
        self._indices = [_slice_or_list(c.control_indices) for c in self._controllers]
        self._zeros = np.zeros(layout.sizes["control"])
        #: Error of a law whose earlier steps are not yet part of the run; the next sample raises it.
        self.pending_error: Exception | None = None
        self._times: list[float] = []
        self._commands: list[np.ndarray] = []

    def steps_until_sample(self, step: int) -> int:
        """Return the number of steps until the next sample."""
        return min(count - step % count for count in self._sample_steps)

    def sample(self, state: IntegratorState, step: int) -> IntegratorState:
        """Return the state with new commands of all controllers that are due."""
        due = [i for i, count in enumerate(self._sample_steps) if step % count == 0]
        if not due and self.pending_error is None:
            return state
        z = state.z.copy()
        self.sample_into(state.t, z, step)
        return replace(state, z=z)

    def sample_into(self, t: float, z: np.ndarray, step: int) -> None:
        """Set the new commands of all controllers that are due in the engine state z."""
        if self.pending_error is not None:
            error, self.pending_error = self.pending_error, None
            raise error
        commands, is_sampled = z[self._commanded].copy(), False
        for i, controller in enumerate(self._controllers):
            if step % self._sample_steps[i]:
                continue
            measured = self._measurements[i].values(t, z, self._plan.k)
            if controller.state.size:
                returned = controller.law(t, measured, self._states[i].copy())
            else:
                returned = controller.law(t, measured)
            commands[self._indices[i]], self._states[i] = self._validate(controller, returned)
            is_sampled = True
        if is_sampled:
            z[self._commanded] = commands
            self._times.append(t)
            self._commands.append(commands)

    def snapshot(self) -> tuple[Any, ...]:
        """Return what the next sample changes, for `discard`."""
        return tuple(self._states), len(self._times), [measurement.last for measurement in self._measurements]

    def discard(self, snapshot: tuple[Any, ...]) -> None:
        """Forget the samples since a snapshot."""
        self._states, n_samples, angles = list(snapshot[0]), snapshot[1], snapshot[2]
        del self._times[n_samples:], self._commands[n_samples:]
        for measurement, last in zip(self._measurements, angles, strict=True):
            measurement.last = last

    @property
    def shortest_hold(self) -> int:
        """Smallest number of steps between two samples of a controller."""
        return min(self._sample_steps)

    def _validate(self, controller: Controller, returned: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return commands and controller state after checking their sizes and that they are finite."""
        if not controller.state.size and type(returned) is np.ndarray and returned.dtype == np.float64:
            zeros = self._zeros[: returned.size]
            if returned.shape == (len(controller.control_indices),) and returned.dot(zeros) == 0.0:  # infinity: NaN
                return returned, controller.state
        commands, state = (
            returned if controller.state.size and isinstance(returned, tuple) and len(returned) == 2 else (returned, [])
        )
        expected_sizes = len(controller.control_indices), controller.state.size
        try:
            values = [np.atleast_1d(np.asarray(part, dtype=float)).ravel() for part in (commands, state)]
        except (TypeError, ValueError):
            values = [np.full(1, np.nan), np.zeros(0)]
        if tuple(part.size for part in values) != expected_sizes or not all(np.isfinite(part).all() for part in values):
            expected = f"{expected_sizes[0]} finite numbers" + (
                f" and a state of {expected_sizes[1]}" if expected_sizes[1] else ""
            )
            raise InputError(f"the controller '{controller.name}' must return {expected}, got {returned!r}")
        return values[0], values[1]

    def checkpoint(self) -> dict[str, FloatArray]:
        width = len(self._commands[0]) if self._commands else self._layout.sizes["control"]
        return {
            "states": np.concatenate(self._states) if self._states else np.zeros(0),
            "angles": np.concatenate([measurement.last for measurement in self._measurements]),
            "times": np.array(self._times),
            "said": np.array(self._commands).reshape(len(self._commands), width),
        }

    def restore(self, stored: dict[str, Any]) -> None:
        offsets = np.cumsum([controller.state.size for controller in self._controllers])[:-1]
        self._states = [part.copy() for part in np.split(np.ravel(stored["states"]), offsets)]
        angles = np.ravel(stored.get("angles", ()))
        for measurement, controller in zip(self._measurements, self._controllers, strict=True):
            size = len(controller.angle_entries)
            measurement.last, angles = angles[:size], angles[size:]
        self._times = np.ravel(stored["times"]).tolist()
        self._commands = list(np.array(stored["said"]).reshape(len(self._times), self._layout.sizes["control"]))


class SamplingStepper(Stepper):
    """Stepper that samples controllers between its steps, which are taken one by one.

    A run then handles many samples as one chunk of steps. The chunk ends before a step that needs more than the plain
    Newton iteration; the run takes that step with the other stepper.
    """

    def __init__(self, stepper: Stepper, controllers: SampledControllers, layout: Layout, first_step: int) -> None:
        super().__init__(layout)
        self._stepper, self._controllers, self._first_step = stepper, controllers, first_step
        self.statistics = stepper.statistics

    def advance(
        self, state: IntegratorState, n_steps: int, policy: StepPolicy, controller_state: np.ndarray
    ) -> StepChunk:
        controllers, advance_once, offset = self._controllers, self._stepper.advance_once, self._first_step
        h, t_origin, step0 = policy.h, policy.t_origin, policy.step0
        Z, X = np.empty((n_steps + 1, state.z.size)), np.empty((n_steps, state.unknown_history.shape[1]))
        iterations = np.zeros(n_steps, dtype=np.int64)
        memory = np.empty((n_steps, state.stepper_state.size))
        done, Z[0] = 0, state.z
        current = initial = replace(state, z=state.z.copy())  # commands are set in place, in states of this loop only
        stepper = self._stepper
        while done < n_steps:
            snapshot, z = controllers.snapshot(), current.z
            try:
                controllers.sample_into(current.t, z, offset + done)
                final = advance_once(current, h, t_origin, step0 + done, 1)
            except Exception as error:  # of a user function: the steps before are valid
                if done == 0:
                    raise
                final, controllers.pending_error = None, error
            if final is None:
                controllers.discard(snapshot)
                z[:] = Z[done]
                break
            if done == 0:
                initial, Z[0] = replace(state, z=z.copy()), z
                if final.stepper_state.size != memory.shape[1]:
                    memory = np.empty((n_steps, final.stepper_state.size))
            X[done], iterations[done] = final.unknown_history[-1], stepper.last_iterations[0]
            if memory.shape[1]:
                memory[done] = final.stepper_state
            done += 1
            Z[done], current = final.z, final
        t_nodes, step_sizes = np.empty(done + 1), np.empty(done)
        t_nodes[0] = state.t
        fill_time_grid(t_nodes, step_sizes, t_origin, step0, h)
        return StepChunk(
            t_nodes,
            Z[: done + 1],
            step_sizes,
            X[:done],
            iterations[:done],
            initial,
            current,
            stepper_states=memory[:done] if memory.shape[1] else None,
        )


def _slice_or_list(indices: Sequence[int]) -> slice | list[int]:
    """Return consecutive indices as a slice, which is quicker to assign to."""
    first, n = indices[0], len(indices)
    return slice(first, first + n) if list(indices) == list(range(first, first + n)) else list(indices)
