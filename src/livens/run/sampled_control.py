"""Sampled (zero-order-hold) controllers of a run: called between steps, with commands held until the next sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from livens.engine.stepper import IntegratorState
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
        self._times: list[float] = []
        self._commands: list[np.ndarray] = []

    def steps_until_sample(self, step: int) -> int:
        """Return the number of steps until the next sample."""
        return min(count - step % count for count in self._sample_steps)

    def sample(self, state: IntegratorState, step: int) -> IntegratorState:
        """Return the state with new commands of all controllers that are due."""
        due = [i for i, count in enumerate(self._sample_steps) if step % count == 0]
        if not due:
            return state
        z, layout = state.z.copy(), self._layout
        commands = z[layout["control"]].copy()
        for i in due:
            controller = self._controllers[i]
            measurement = self._measurements[i].values(state.t, state.z, self._plan.k)
            state_argument = (self._states[i].copy(),) if controller.state.size else ()
            returned = controller.law(state.t, measurement, *state_argument)
            new_commands, self._states[i] = self._validate(controller, returned)
            commands[list(controller.control_indices)] = new_commands
        z[layout["control"]] = commands
        self._times.append(state.t)
        self._commands.append(commands)
        return replace(state, z=z)

    def _validate(self, controller: Controller, returned: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return commands and controller state after checking their sizes and that they are finite."""
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
