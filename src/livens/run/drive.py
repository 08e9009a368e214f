"""Single motion whose inputs change between steps, in arrays that stay in place."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from livens.engine.newton import time_loop
from livens.engine.newton.convergence import CONVERGED, REPIVOT_AFTER
from livens.engine.newton.iteration import HISTORY
from livens.engine.newton.step_size_control import initial_controller_state
from livens.engine.newton.time_loop import StepPolicy
from livens.engine.observables.kernel_table import ObservableKernel
from livens.engine.stepper import IntegratorState, Stepper, WorkspaceManager, step_inputs
from livens.engine.steppers.fused import FusedStepper
from livens.errors import InputError, IntegrationError, suggestion
from livens.models.base import Model
from livens.models.input_entry import input_entry
from livens.models.observable import output_expression
from livens.run.held_parameters import wrapped_angles
from livens.run.plan import Plan
from livens.run.startup import compile_and_start, make_stepper, start_integration
from livens.validation import check_integer

#: Largest number of steps in one native call.
_CHUNK_STEPS = 64
_REVOLUTION = 2 * math.pi


class Drive:
    """Motion with inputs that are held in a step and may change between steps, returned by `Prepared.drive`.

    `inputs` and `outputs` are arrays that stay in place: set ``drive.inputs[:]``, call `advance`, read the outputs.

    Parameters
    ----------
    plan : Plan
        Plan of a run, with initial values.
    inputs : sequence of str
        Names of scalar inputs of a mechanism (`Multibody.input`) or of scalar parameters.
    outputs : sequence of str
        Names of coordinates, outputs of a mechanism or observables.
    """

    def __init__(self, plan: Plan, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self._plan, (indices, numbers) = plan, input_indices(plan.model, inputs)
        self._entries = list(zip((2 + indices).tolist(), numbers.tolist(), strict=True))
        compiled, initial = compile_and_start(plan)
        state, stepper = start_integration(plan, compiled, initial)
        is_fused = isinstance(stepper, FusedStepper)
        if not (is_fused or plan.tier == "tree") or plan.control is not None or plan.scheme.fictive:
            raise InputError(f"scheme '{plan.scheme.name}' cannot be driven: a drive needs fixed implicit steps")
        self._compiled, self._w = compiled, _Arrays.of_run(plan, state)
        #: Stepper of the tree tier, and its state; the fused tier is called without a stepper.
        self._stepper: Stepper | None = None
        if isinstance(stepper, FusedStepper):
            self._kernels = compiled.kernels(stepper.order)
            stepper.close()
            self._w = WorkspaceManager(plan.k, compiled.flat_equations.block_size_array).prepare(state, _CHUNK_STEPS)
            time_loop.advance_fixed.compile()  # type: ignore[attr-defined]
            self._advance_native, _ = time_loop.advance_fixed._entry  # type: ignore[attr-defined]
        else:
            self._stepper = stepper
        self._measure = Outputs(plan.model, outputs)
        #: Values of the inputs.
        self.inputs: np.ndarray = np.zeros(len(inputs))
        self.inputs[numbers] = plan.k[indices]
        #: Values of the outputs after the last step.
        self.outputs: np.ndarray = np.zeros(self._measure.size)
        self._evaluate_outputs = self._measure.bind(self._w.Z, self._w.c, self.outputs)
        self.restart(state)

    @property
    def t(self) -> float:
        """Time in seconds."""
        return self._t0 + self._n_steps * self._plan.h

    def reset(self, **initial_values: object) -> np.ndarray:
        """Start again and return the outputs.

        Parameters
        ----------
        **initial_values
            Initial values ``q0 v0 p0 x0 y0``. Default: those of the problem.

        Returns
        -------
        ndarray of shape (n_outputs,)
            Outputs of the initial state: the array `outputs`, which the next step overwrites.
        """
        plan = self._plan.with_inputs({**self._plan.start, **initial_values}, self._plan.parameters)
        compiled, initial = compile_and_start(plan)
        state, stepper = start_integration(plan, compiled, initial)
        stepper.close()
        return self.restart(state)

    def restart(self, state: IntegratorState) -> np.ndarray:
        """Start again from an integrator state.

        Parameters
        ----------
        state : IntegratorState
            State that `state` has returned.

        Returns
        -------
        ndarray of shape (n_outputs,)
            Outputs at the start.
        """
        w, self._state = self._w, state
        w.Z[0], w.X[:HISTORY] = state.z, state.unknown_history
        w.newton_update.fill(0.0)
        w.inv_roundoff.fill(np.inf)
        self._t0, self._n_steps, self._k = state.t, 0, np.zeros(0)
        self._measure.forget()
        return self._update_outputs()

    def state(self) -> IntegratorState:
        """Return a copy of the current integrator state.

        Returns
        -------
        IntegratorState
            State for `restart`.
        """
        if self._stepper is not None:
            return self._state
        w = self._w
        state = IntegratorState.initial(self.t, w.Z[0].copy(), w.X[HISTORY - 1].copy())
        return replace(state, unknown_history=w.X[:HISTORY].copy())

    def advance(self, n_steps: int = 1) -> np.ndarray:
        """Take steps with the current inputs and return the outputs.

        Parameters
        ----------
        n_steps : int, default 1
            Number of steps.

        Returns
        -------
        ndarray of shape (n_outputs,)
            Outputs: the array `outputs`, which the next step overwrites.

        Raises
        ------
        IntegrationError
            If a step cannot be solved.
        """
        w, h = self._w, self._plan.h
        for entry, number in self._entries:
            w.c[entry] = self.inputs[number]
        self._move_branches()
        if self._stepper is not None:
            self._advance_stepper(self._stepper, check_integer("n_steps", n_steps, 1))
            n_steps = 0
        while n_steps > 0:
            count = min(n_steps, _CHUNK_STEPS)
            status = self._advance_native(
                self._kernels.address, w.address, h, self._t0, self._n_steps, -1, np.inf, 0, count, REPIVOT_AFTER
            )
            if status != CONVERGED:
                count = self._advance_by_stepper(count)
            else:
                w.Z[0], w.X[:HISTORY] = w.Z[count], w.X[count : count + HISTORY]
                self._n_steps += count
            n_steps -= count
        return self._update_outputs()

    def _move_branches(self) -> None:
        """Move the branches of continuous angles to the current angles."""
        branches, w = self._plan.model.angle_branches, self._w
        if branches is None:
            return
        k = w.c[2:].copy()
        moved = branches.moved(wrapped_angles(self._compiled, np.array([self.t]), w.Z[:1], k)[0], k)
        if moved is not k:
            w.c[2:] = moved
            w.newton_update.fill(0.0)
            w.inv_roundoff.fill(np.inf)

    def _advance_stepper(self, stepper: Stepper, n_steps: int) -> None:
        """Take steps by the stepper of the tree tier."""
        w, h = self._w, self._plan.h
        if not np.array_equal(w.c[2:], self._k):
            self._k = w.c[2:].copy()
            stepper.set_parameters(self._k)
        final = stepper.advance_once(self._state, h, self._t0, self._n_steps, n_steps)
        if final is None:
            policy = StepPolicy(False, h, self._t0, self._n_steps)
            steps = stepper.advance(self._state, n_steps, policy, initial_controller_state(h))
            if steps.failure is not None:
                raise IntegrationError(f"the step from t = {steps.final.t:.9g} failed: {steps.failure.reason}")
            final = steps.final
        self._state, w.Z[0] = final, final.z
        self._n_steps += n_steps

    def _advance_by_stepper(self, n_steps: int) -> int:
        """Take steps by a stepper, which chooses another pivot order or the reference solver; return their number."""
        plan = replace(self._plan)
        plan.__dict__["k"] = self._w.c[2:].copy()
        state = self.state()
        stepper = make_stepper(plan, self._compiled, state)
        policy = StepPolicy(False, plan.h, self._t0, self._n_steps)
        steps = stepper.advance(state, n_steps, policy, initial_controller_state(plan.h))
        if steps.failure is not None:
            raise IntegrationError(f"the step from t = {steps.final.t:.9g} failed: {steps.failure.reason}")
        self._w.Z[0], self._w.X[:HISTORY] = steps.final.z, steps.final.unknown_history
        self._n_steps += n_steps
        stepper.close()
        return n_steps

    def _update_outputs(self) -> np.ndarray:
        self._w.c[1] = self.t
        self._evaluate_outputs()
        return self.outputs


@dataclass
class _Arrays:
    """State, unknowns of the last steps and inputs of a motion by a stepper."""

    Z: np.ndarray
    X: np.ndarray
    c: np.ndarray
    newton_update: np.ndarray
    inv_roundoff: np.ndarray

    @classmethod
    def of_run(cls, plan: Plan, state: IntegratorState) -> Any:
        """Return the arrays for the initial state of a run."""
        c = step_inputs(plan.h, plan.t0, plan.k)
        return cls(state.z[None, :].copy(), state.unknown_history.copy(), c, np.zeros(1), np.zeros(1))


class Outputs:
    """Compiled outputs of a model as functions of engine states; angles are continuous from call to call."""

    def __init__(self, model: Model, names: Sequence[str]) -> None:
        multipliers = ca.SX.sym("lam", len(model.constraint_names))
        columns, is_angle = list[Any](), list[bool]()
        for name in names:
            column = ca.reshape(ca.densify(ca.SX(output_expression(model, name, multipliers))), -1, 1)
            if multipliers.numel() and ca.depends_on(column, multipliers):
                raise InputError(f"the output '{name}' depends on constraint forces: it is not a function of the state")
            quantity = getattr(model, "quantities", {}).get(name)
            is_angle += [quantity is not None and quantity.is_angle] * int(column.numel())
            columns.append(column)
        self.size = len(is_angle)
        #: Expressions of the outputs in the symbols of `model.view`.
        self.column: Any = ca.vertcat(*columns) if columns else ca.SX(0, 1)
        self._kernel = ObservableKernel(model, self.column) if columns else None
        self._angles = np.flatnonzero(is_angle)
        self._last: np.ndarray | None = None
        self._last_row: list[float] | None = None  # of the function returned by `bind`

    def forget(self, rows: Any = None) -> None:
        """Forget the revolutions of all angles, or of those of some rows."""
        self._last_row = None
        if rows is None or self._last is None:
            self._last = None
        else:
            self._last[rows] = np.nan

    def __call__(self, t: np.ndarray, Z: np.ndarray, k: np.ndarray) -> np.ndarray:
        """Return one row of outputs for each state."""
        if self._kernel is None:
            return np.zeros((len(t), 0))
        values = self._kernel(t, Z, k)
        self._unwrap(values)
        return values

    def bind(self, Z: np.ndarray, c: np.ndarray, out: np.ndarray) -> Callable[[], None]:
        """Return a function that writes the outputs of the first row of Z, at the step inputs c, to `out`."""
        if self._kernel is None:
            return lambda: None
        call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)(self._kernel.address)
        z, inputs, target = (array.__array_interface__["data"][0] for array in (Z, c, out))
        angles = self._angles.tolist()

        def evaluate() -> None:
            call(z, z, inputs, target, target)
            if not angles:
                return
            # as `_unwrap`, without arrays: they take longer than a step
            values, last = [out.item(i) for i in angles], self._last_row
            if last is not None:
                revolutions = [(before - value) / _REVOLUTION for before, value in zip(last, values, strict=True)]
                for i, (angle, change) in enumerate(zip(angles, revolutions, strict=True)):
                    if abs(change) > 0.5 and math.isfinite(change):
                        out[angle] = values[i] = values[i] + _REVOLUTION * round(change)
            self._last_row = values

        return evaluate

    def _unwrap(self, values: np.ndarray) -> None:
        """Make angles continuous from call to call, in place."""
        if not self._angles.size:
            return
        angles = values[:, self._angles]
        if self._last is not None:
            revolutions = np.round((self._last - angles) / _REVOLUTION)
            if revolutions.any():
                angles += _REVOLUTION * np.nan_to_num(revolutions)
                values[:, self._angles] = angles
        self._last = angles


def input_indices(model: Model, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return indices in the parameter vector, and for each of them the number of the scalar input that sets it."""
    known, indices, numbers = (*model.inputs, *model.parameter_table.entries), list[int](), list[int]()
    for number, name in enumerate(names):
        if name not in known:
            raise InputError(f"unknown input '{name}'{suggestion(str(name), known)}")
        entry = input_entry(model, name).value
        if entry.shape != ():
            raise InputError(f"the input '{name}' has shape {entry.shape}: only inputs of one number can be set here")
        indices += [slice_.start for slice_ in entry.slices]
        numbers += [number] * len(entry.slices)
    return np.array(indices, dtype=np.int64), np.array(numbers, dtype=np.int64)
