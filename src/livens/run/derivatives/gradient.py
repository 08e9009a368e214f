"""Value and gradient of a loss by the discrete adjoint of a run, exact for the steps that were taken."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens.engine.compiled_step import CompiledStep
from livens.errors import InputError, IntegrationError, explain_call_errors
from livens.models.base import Model
from livens.run.derivatives.initial_state import InitialStateDerivatives, InputTangent
from livens.run.derivatives.loss import Loss
from livens.run.derivatives.member_map import make_plan, make_plans, map_members
from livens.run.derivatives.tape import Tape, observed_steps, record
from livens.run.ensemble.members import scheme_state_function
from livens.run.events.event import model_events
from livens.run.held_parameters import BranchGuard
from livens.run.plan import Plan
from livens.run.prepare import Prepared
from livens.run.schedule import Schedule
from livens.run.startup import compile_and_start, start_integration
from livens.types import ArrayLike, FloatArray, ModelFunction
from livens.validation import check_integer


@dataclass(frozen=True)
class Gradient:
    """Derivatives of a loss by initial values (``gradient.q0``, ``.v0``, ...), by parameters and by h.

    Initial values stay on the constraints: their derivatives include the projection to the nearest consistent values,
    as with ``project=True``. The same holds for parameters of the constraints.

    If h changes, the number of steps is constant and the end time moves. If h does not divide the time span, the end
    time is constant and the last, shorter step changes.

    Parameters
    ----------
    start : dict of str to ndarray
        Derivatives by the initial values, by name; also available as attributes.
    parameters : dict
        Derivatives by the parameters, by name.
    h : float
        Derivative by the step size.
    inputs : dict of str to ndarray, optional
        Derivatives by the samples of inputs over time, by name; each of the shape of the samples.
    """

    start: dict[str, np.ndarray]
    parameters: dict[str, Any]
    h: float
    inputs: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)

    def __getattr__(self, name: str) -> np.ndarray:
        start: Mapping[str, np.ndarray] = self.__dict__.get("start", {})
        if name in start:
            return start[name]
        raise AttributeError(f"the gradient has no '{name}', only {', '.join([*start, 'parameters', 'h'])}")

    @classmethod
    def from_tangent(
        cls, model: Model, tangent: InputTangent, inputs: Mapping[str, np.ndarray] | None = None
    ) -> Gradient:
        """Return the gradient with named parameters; derivatives by shared parameters are summed.

        Parameters
        ----------
        model : Model
            Model of the run.
        tangent : InputTangent
            Derivatives by initial values, the parameter vector and the step size.
        inputs : dict of str to ndarray, optional
            Derivatives by the samples of inputs over time; these have none as constant parameters.

        Returns
        -------
        Gradient
            Named derivatives.
        """
        named, samples = {}, dict(inputs or {})
        table = model.parameter_table
        for name, entry in (*table.entries.items(), *((name, table.aliases[name]) for name in model.inputs)):
            if name in samples:
                continue
            total = np.sum([tangent.k[slice_] for slice_ in entry.slices], axis=0).reshape(entry.shape)
            named[name] = float(total) if entry.shape == () else total
        return cls(tangent.initial, named, tangent.h, samples)


@explain_call_errors
def value_and_gradient(
    loss: ModelFunction, *, every: int | None = None, data: FloatArray | None = None, keep: str = "all"
) -> ValueAndGradient:
    """Return a function that computes a loss of a run and its derivatives by all inputs.

    Parameters
    ----------
    loss : callable
        Function of any of ``q, v, p, x, t, k, d`` (by argument name), written like an observable, that returns a
        scalar.
    every : int, optional
        Sum the loss over every `every`-th step, including the initial and the last state. Default: the last state
        only.
    data : array_like, optional
        Data with one row per observed state, passed to the loss as ``d``.
    keep : {"all", "checkpoints"}, default "all"
        Store all states for the adjoint sweep, or checkpoints from which they are recomputed bit for bit. Checkpoints
        take 1.5 times as long and a thousandth of the memory.

    Returns
    -------
    ValueAndGradient
        Function of a prepared step (see `livens.prepare`) and of the arguments of its `run`. It returns the value and
        a `Gradient`. Its method `many` takes rows of initial values and of parameters, as `livens.ensemble` does.

    Raises
    ------
    InputError
        If `keep` or `every` is invalid.

    Notes
    -----
    One adjoint sweep yields the derivatives by all initial values, all parameters, all samples of inputs over time and
    h; its cost does not depend on their number.

    Examples
    --------
    >>> import livens as lv
    >>> oscillator = lv.System(
    ...     "x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q, k: k.c * q[0] ** 2 / 2, parameters=dict(c=1.0)
    ... )
    >>> step = lv.prepare(oscillator, scheme="gauss-2", h=0.01)
    >>> value, by = lv.value_and_gradient(lambda q: q[0])(step, q0=[1.0], v0=[0.0], t_end=1.0)
    >>> [round(float(x), 6) for x in (value, by.q0[0], by.v0[0], by.parameters["c"])]  # cos, cos, sin, -sin/2
    [0.540302, 0.540302, 0.841471, -0.420735]
    """
    return ValueAndGradient(LossTask(loss, every, data, keep))


@dataclass(frozen=True)
class EnsembleGradients:
    """Values and gradients of an ensemble, member axis first: ``many.gradient.parameters["g"][member]``.

    Parameters
    ----------
    values : ndarray of shape (n_members,)
        Values of the loss; NaN for failed members.
    gradient : Gradient
        Derivatives with the member as the first axis.
    failures : dict of int to str
        Error messages of failed members.
    """

    values: np.ndarray
    gradient: Gradient
    failures: dict[int, str]  # error messages by member; values of failed members are NaN


class ValueAndGradient:
    """Function returned by `value_and_gradient`: takes a prepared step and the arguments of its run."""

    def __init__(self, task: LossTask) -> None:
        self._task = task

    def __call__(
        self,
        step: Prepared,
        q0: Any = None,
        v0: Any = None,
        *,
        p0: Any = None,
        x0: Any = None,
        parameters: Mapping[str, object] | None = None,
        h: float | None = None,
        t_end: float | None = None,
        t0: float | None = None,
        project: bool | None = None,
        inputs: Schedule | Mapping[str, Any] | None = None,
    ) -> tuple[float, Gradient]:
        start = dict(q0=q0, v0=v0, p0=p0, x0=x0)
        plan = make_plan(step, start, parameters=parameters, h=h, t_end=t_end, t0=t0, project=project, inputs=inputs)
        return self._evaluate(plan)

    def _evaluate(self, plan: Plan) -> tuple[float, Gradient]:
        tape, initial_sensitivity, loss_function = self._task.run(plan)
        value, loss_gradient = loss_function(tape)
        schedule = tape.inputs
        samples = schedule.zero_samples() if schedule is not None else []
        a, g = tape.adjoint(loss_gradient.cotangents, samples)
        tape.stepper.close()  # the next run reuses its arrays
        grad_h = g[0] + loss_gradient.h
        if schedule is not None:  # the loss depends on the inputs of the steps that end at the observed states
            for row, segment in zip(loss_gradient.k_rows, tape.segments_of_observed(), strict=True):
                grad_h += schedule.pull_back(row, segment.t, segment.dt_dh, samples)
        tangent = initial_sensitivity.vjp(a, g[2:] + loss_gradient.k, grad_h)
        if schedule is None or plan.inputs is None:
            return value, Gradient.from_tangent(plan.model, tangent)
        schedule.pull_back_initial(tangent.k, samples)
        return value, Gradient.from_tangent(plan.model, tangent, schedule.by_name(plan.inputs.values, samples))

    def many(
        self,
        step: Prepared,
        q0: ArrayLike | None = None,
        v0: ArrayLike | None = None,
        *,
        p0: ArrayLike | None = None,
        x0: ArrayLike | None = None,
        parameters: Mapping[str, object] | None = None,
        h: float | None = None,
        t_end: float | None = None,
        t0: float | None = None,
        project: bool | None = None,
        inputs: Schedule | Mapping[str, object] | None = None,
        threads: int = 1,
    ) -> EnsembleGradients:
        """Return values and gradients of an ensemble.

        Parameters
        ----------
        step : Prepared
            Prepared step, see `livens.prepare`.
        q0, v0, p0, x0 : array_like of shape (n_members, n) or (n,), optional
            Initial values, one row per member. A single vector is used for all members.
        parameters : dict of str to array_like, optional
            Parameter values by name, one per member or one for all members.
        h : float, optional
            Step size in seconds.
        t_end : float, optional
            End time in seconds.
        t0 : float, optional
            Start time in seconds.
        project : bool, optional
            Project inconsistent initial values to the nearest consistent ones.
        inputs : Schedule or mapping of str to array_like, optional
            Inputs over time of all members, see `livens.simulate`.
        threads : int, default 1
            Number of threads; each thread computes whole members.

        Returns
        -------
        EnsembleGradients
            Values, gradients and failures. If a member fails, the others continue.

        Raises
        ------
        IntegrationError
            If all members fail.
        """
        start = dict(q0=q0, v0=v0, p0=p0, x0=x0)
        members = make_plans(step, start, parameters, h=h, t_end=t_end, t0=t0, project=project, inputs=inputs)
        results, errors = map_members(members, self._evaluate, threads)
        first_success = next((pair[1] for pair in results if pair is not None), None)
        if first_success is None:
            raise IntegrationError(f"all members failed; error of the first one: {errors[0]}")
        values = np.array([np.nan if pair is None else pair[0] for pair in results])
        gradients = [None if pair is None else pair[1] for pair in results]

        def stack(pick: Callable[[Gradient], Any]) -> np.ndarray:
            missing = np.full(np.shape(pick(first_success)), np.nan)
            return np.array([missing if gradient is None else pick(gradient) for gradient in gradients])

        return EnsembleGradients(
            values,
            Gradient(
                {name: stack(lambda gradient: gradient.start[name]) for name in first_success.start},
                {name: stack(lambda gradient: gradient.parameters[name]) for name in first_success.parameters},
                stack(lambda gradient: gradient.h),  # type: ignore[arg-type]  # shape (n_members,)
                {name: stack(lambda gradient: gradient.inputs[name]) for name in first_success.inputs},
            ),
            {member: str(error) for member, error in errors.items()},
        )


class LossTask:
    """Loss of a run and the storage mode of its tape."""

    def __init__(self, loss: ModelFunction, every: int | None, data: FloatArray | None, keep: str) -> None:
        if not isinstance(keep, str) or keep not in ("all", "checkpoints"):
            raise InputError(f"keep must be 'all' or 'checkpoints', got {keep!r}")
        self._loss, self._data, self._keep = loss, data, keep == "all"
        self._every = None if every is None else check_integer("every", every, minimum=1)
        #: Compiled loss of the last run; optimisers evaluate the same loss repeatedly.
        self._cached_loss: tuple[CompiledStep, int, Loss] | None = None

    def run(self, plan: Plan) -> tuple[Tape, InitialStateDerivatives, Loss]:
        compiled, tape, initial_sensitivity = record_run(plan, self._every, self._keep, with_inputs=True)
        cached = self._cached_loss
        if cached is None or cached[0] is not compiled or cached[1] != len(tape.observed):
            cached = compiled, len(tape.observed), Loss(compiled.model, self._loss, self._data, len(tape.observed))
            self._cached_loss = cached
        return tape, initial_sensitivity, cached[2]


def record_run(
    plan: Plan,
    every: int | np.ndarray | None = None,
    keep: bool = True,
    *,
    guards_checked: bool = False,
    with_inputs: bool = False,
) -> tuple[CompiledStep, Tape, InitialStateDerivatives]:
    """Run a plan and record its tape; `guards_checked` if the run is known to satisfy the guards of the model.

    Observed is the last state, every `every`-th state, or the states with the given step indices. Inputs over time are
    allowed `with_inputs`.
    """
    reason = unsupported_reason(plan, guards_checked, with_inputs)
    if reason:
        raise InputError(reason)
    if plan.tier in ("assembled", "tree"):  # derivatives exist in the fused tier only
        plan = dataclasses.replace(plan, tier="fused")
    compiled, initial = compile_and_start(plan)
    initial_sensitivity = InitialStateDerivatives(plan, compiled, initial)
    scheme_state = scheme_state_function(compiled, plan.t0)(initial, plan.k, plan.h)
    state, stepper = start_integration(plan, compiled, initial, scheme_state)
    if compiled.model.angle_branches is not None:
        stepper = BranchGuard(stepper, compiled, plan.k)
    observed = every if isinstance(every, np.ndarray) else observed_steps(plan, every)
    return compiled, record(plan, compiled, state, stepper, observed, keep), initial_sensitivity


def unsupported_reason(plan: Plan, guards_checked: bool = False, with_inputs: bool = False) -> str:
    """Return the reason why a run cannot be differentiated, or an empty string."""
    if plan.control is not None:
        return "derivatives of adaptive runs are not available (step sizes depend on the state); use fixed steps"
    if plan.scheme.fictive:
        name = plan.scheme.name
        return f"scheme '{name}' uses fixed steps in fictive time; derivatives are not available"
    if getattr(plan.model, "external_force", None) is not None:
        return "an external (compiled) force and contact groups have no derivatives: write the force as an expression"
    if plan.tier == "reference":
        return "derivatives are not available in the reference tier; remove tier="
    if plan.inputs is not None and not with_inputs:
        return "these derivatives need constant parameters: use livens.value_and_gradient for inputs over time"
    if getattr(plan.model, "controllers", ()):
        return "a run with sampled controllers cannot be differentiated: they are called between steps"
    if (events := model_events(plan.model)) and not guards_checked:
        return f"{events[0].label} act between steps: use `vjp`, `jvp` of a run without such an event"
    if plan.model.guards and not guards_checked:
        return f"the model has guards ({', '.join(plan.model.guards)}): use `vjp`, `jvp` of a run that satisfies them"
    return ""
