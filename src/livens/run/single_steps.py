"""States of user-written time loops, single steps with inputs, and compiled measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.engine.compiled_step import CompiledStep
from livens.engine.newton.step_size_control import initial_controller_state
from livens.engine.newton.time_loop import StepPolicy
from livens.engine.observables.kernel_table import ObservableKernel
from livens.engine.stepper import IntegratorState, Stepper
from livens.errors import InputError, IntegrationError, suggestion
from livens.models.base import Model
from livens.models.input_entry import input_entry
from livens.models.observable import trace_observable
from livens.run.held_parameters import without_newton_history, wrapped_angles
from livens.types import ModelFunction
from livens.validation import check_array


class StepSession:
    """Compiled step and stepper of a user-written time loop, shared by the states of the loop."""

    def __init__(self, compiled: CompiledStep, stepper: Stepper, k: np.ndarray) -> None:
        self.compiled, self._stepper, self._k = compiled, stepper, k
        self.model: Model = compiled.model
        #: Entry of the physical time in states of schemes with fictive time; -1 otherwise.
        self._time_index = compiled.layout["t"].start if "t" in compiled.layout else -1
        self._scalars: dict[str, int] = {}  # entries of scalar inputs that occur once in the parameter vector

    def with_inputs(self, k: np.ndarray, inputs: Mapping[str, Any]) -> np.ndarray:
        """Return the parameter vector with other values of inputs."""
        k = k.copy()
        scalars = self._scalars
        for name, value in inputs.items():
            index = scalars.get(name)
            if index is None:
                self._set_input(k, name, value)
                continue
            try:
                number = float(value)
            except (TypeError, ValueError):
                number = np.nan
            if number - number != 0.0:  # infinity and NaN
                raise InputError(f"input '{name}' must be one finite number, got {value!r}")
            k[index] = number
        return k

    def _set_input(self, k: np.ndarray, name: str, value: object) -> None:
        entry = input_entry(self.model, name)
        values = check_array(f"input '{name}'", value)
        if values.shape != entry.value.shape:
            raise InputError(f"input '{name}' must have shape {entry.value.shape}, got {values.shape}")
        for part in entry.value.slices:
            k[part] = values.ravel()
        for part in entry.rate.slices if entry.rate is not None else ():
            k[part] = 0.0
        if entry.value.shape == () and len(entry.value.slices) == 1:
            self._scalars[name] = entry.value.slices[0].start

    def advance(self, state: MotionState, k: np.ndarray, h: float, n_steps: int) -> MotionState:
        """Return the state after `n_steps` steps with the parameters k."""
        stepper, step0, initial = self._stepper, state._step_index, state._state
        if self.model.angle_branches is not None:
            angles = wrapped_angles(self.compiled, np.array([state.t]), initial.z[None, :], k)
            moved = self.model.angle_branches.moved(angles[0], k)
            if moved is not k:
                initial, k = without_newton_history(initial), moved
        if k is not self._k:
            stepper.set_parameters(k)
            self._k = k
        if self._time_index < 0:
            t_origin = initial.t - step0 * h
            final = stepper.advance_once(initial, h, t_origin, step0, n_steps)
            if final is not None:
                return MotionState(final, self, k, step0 + n_steps)
        t_origin = 0.0 if self._time_index >= 0 else state.t - step0 * h
        policy = StepPolicy(False, h, t_origin, step0, self._time_index)
        steps = stepper.advance(initial, n_steps, policy, initial_controller_state(h))
        if steps.failure is not None:
            raise IntegrationError(f"the step from t = {steps.final.t:.9g} failed: {steps.failure.reason}")
        return MotionState(steps.final, self, k, step0 + n_steps)


@dataclass(frozen=True, slots=True)
class MotionState:
    """State of a motion for user-written time loops: time and variables by name (``state.q``, ``state.t``).

    States are immutable: a step returns a new state. Instances are returned by `Prepared.start` and `Prepared.step`.
    """

    _state: IntegratorState
    _session: StepSession
    _k: np.ndarray
    _step_index: int = 0

    @property
    def t(self) -> float:
        """Time in seconds."""
        return self._state.t

    def __getattr__(self, name: str) -> np.ndarray:
        if name.startswith("_"):
            raise AttributeError(name)
        layout = self._session.compiled.layout
        if name not in layout:
            raise AttributeError(f"a state has no '{name}', only t, {', '.join(layout.sizes)}")
        return self._state.z[layout[name]].copy()

    def __repr__(self) -> str:
        return f"<livens state at t = {self.t:g}>"


class Measurement:
    """Compiled measurement of named outputs, such as ``"hinge.angle"``; returned by `Prepared.measurement`.

    Calling it with a state returns the values. Angles are continuous from call to call: between two calls a joint may
    turn by less than half a turn. `reset` forgets the revolutions.
    """

    def __init__(self, model: Model, columns: Any, angles: Sequence[int]) -> None:
        """Compile a column of expressions of the model's view; `angles` are the entries that are angles."""
        self._kernel = ObservableKernel(model, columns)
        self._angles = np.array(angles, dtype=np.int64)
        #: Last measured angles; empty before the first call.
        self.last = np.zeros(0)

    @classmethod
    def of_outputs(cls, model: Model, names: Sequence[str | ModelFunction]) -> Measurement:
        """Return the measurement of outputs by name, and of functions of the state."""
        quantities = getattr(model, "quantities", {})
        view: Any = model.view
        expressions, is_angle = list[Any](), list[bool]()
        for name in names:
            if callable(name):
                expressions.append(ca.vec(ca.densify(trace_observable(model, name)[0])))
                is_angle += [False] * int(expressions[-1].numel())
                continue
            if name in quantities:
                quantity = quantities[name]
                if quantity.from_multipliers or quantity.control_index is not None:
                    raise InputError(f"'{name}' is not a function of the state: it cannot be measured before a step")
                if quantity.postprocess is not None:
                    raise InputError(f"'{name}' is a function of the whole run: it cannot be measured in a step")
                expression = quantity.expression(
                    view.q, view.v, ca.SX.zeros(len(model.constraint_names)), view.t, view.k
                )
            elif name in model.coordinates:
                states = view.q if hasattr(view, "q") else view.x
                expression = states[model.coordinates.index(name)]
            elif name in view.observable_names:
                expression = view.observable(name)
            else:
                known = [*quantities, *model.coordinates, *view.observable_names]
                raise InputError(f"there is no output '{name}' to measure{suggestion(name, known)}")
            expressions.append(ca.vec(ca.densify(expression)))
            is_angle += [name in quantities and quantities[name].is_angle] * int(expressions[-1].numel())
        return cls(model, ca.vertcat(*expressions), [i for i, angle in enumerate(is_angle) if angle])

    def reset(self) -> None:
        """Forget the revolutions of all angles."""
        self.last = np.zeros(0)

    def __call__(self, state: MotionState) -> np.ndarray:
        """Return the measured values of a state, one after another."""
        return self.values(state._state.t, state._state.z, state._k)

    def values(self, t: float, z: np.ndarray, k: np.ndarray) -> np.ndarray:
        """Return the measured values at time t, engine state z and parameters k."""
        values = self._kernel.row(t, z, k)
        if self._angles.size:
            angles = values[self._angles]
            if self.last.size:
                change = self.last - angles
                if change.dot(change) > 9.0:  # below, no change is larger than half a turn
                    angles += 2 * np.pi * np.round(change / (2 * np.pi))
                    values[self._angles] = angles
            self.last = angles
        return values
