"""Value and gradient of a loss by the discrete adjoint of a run, exact for the steps that were taken."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens.engine.compiled import CompiledStep
from livens.errors import InputError, IntegrationError
from livens.expressions.numbers import whole_number
from livens.models.model import Model
from livens.run.beginning import beginning
from livens.run.departure import Departure, Shift
from livens.run.loss import Loss
from livens.run.members import memory_of
from livens.run.plan import Plan
from livens.run.prepare import Prepared
from livens.run.several import one_by_one, plan_of, plans_of
from livens.run.simulate import compile_and_start
from livens.run.tape import Tape, observed_numbers, recorded


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
    """

    start: dict[str, np.ndarray]
    parameters: dict[str, Any]
    h: float

    def __getattr__(self, name: str) -> np.ndarray:
        start: Mapping[str, np.ndarray] = self.__dict__.get("start", {})
        if name in start:
            return start[name]
        raise AttributeError(f"the gradient has no '{name}', only {', '.join([*start, 'parameters', 'h'])}")

    @classmethod
    def of(cls, model: Model, shift: Shift) -> Gradient:
        """Build the gradient with named parameters; derivatives by shared parameters are summed."""
        named = {}
        for name, entry in model.parameter_table.entries.items():
            total = np.sum([shift.k[place] for place in entry.places], axis=0).reshape(entry.shape)
            named[name] = float(total) if entry.shape == () else total
        return cls(shift.start, named, shift.h)


def value_and_gradient(
    loss: Callable[..., Any], *, every: int | None = None, data: Any = None, keep: str = "all"
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
    One adjoint sweep yields the derivatives by all initial values, all parameters and h; its cost does not depend on
    their number.

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
    return ValueAndGradient(Differentiated(loss, every, data, keep))


@dataclass(frozen=True)
class ManyGradients:
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

    def __init__(self, task: Differentiated) -> None:
        self._task = task

    def __call__(
        self,
        step: Prepared,
        q0: Any = None,
        v0: Any = None,
        *,
        p0: Any = None,
        x0: Any = None,
        parameters: Mapping[str, Any] | None = None,
        h: float | None = None,
        t_end: float | None = None,
        t0: float | None = None,
        project: bool | None = None,
    ) -> tuple[float, Gradient]:
        start = dict(q0=q0, v0=v0, p0=p0, x0=x0)
        plan = plan_of(step, start, parameters=parameters, h=h, t_end=t_end, t0=t0, project=project)
        return self._evaluated(plan)

    def _evaluated(self, plan: Plan) -> tuple[float, Gradient]:
        tape, departure, cost = self._task.run(plan)
        value, slope = cost(tape)
        a, g = tape.back(slope.bars)
        tape.stepper.release()  # the next run reuses its arrays
        return value, Gradient.of(plan.model, departure.back(a, g[2:] + slope.k, g[0] + slope.h))

    def many(
        self,
        step: Prepared,
        q0: Any = None,
        v0: Any = None,
        *,
        p0: Any = None,
        x0: Any = None,
        parameters: Mapping[str, Any] | None = None,
        h: float | None = None,
        t_end: float | None = None,
        t0: float | None = None,
        project: bool | None = None,
        threads: int = 1,
    ) -> ManyGradients:
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
        members = plans_of(step, start, parameters, h=h, t_end=t_end, t0=t0, project=project)
        found, errors = one_by_one(members, self._evaluated, threads)
        good = next((pair[1] for pair in found if pair is not None), None)
        if good is None:
            raise IntegrationError(f"all members failed; error of the first one: {errors[0]}")
        values = np.array([np.nan if pair is None else pair[0] for pair in found])
        gradients = [None if pair is None else pair[1] for pair in found]

        def stacked(pick: Callable[[Gradient], Any]) -> np.ndarray:
            nothing = np.full(np.shape(pick(good)), np.nan)
            return np.array([nothing if one is None else pick(one) for one in gradients])

        return ManyGradients(
            values,
            Gradient(
                {name: stacked(lambda one: one.start[name]) for name in good.start},
                {name: stacked(lambda one: one.parameters[name]) for name in good.parameters},
                stacked(lambda one: one.h),  # type: ignore[arg-type]  # shape (n_members,)
            ),
            {member: str(error) for member, error in errors.items()},
        )


class Differentiated:
    """Loss of a run and the storage mode of its tape."""

    def __init__(self, loss: Callable[..., Any], every: int | None, data: Any, keep: str) -> None:
        if not isinstance(keep, str) or keep not in ("all", "checkpoints"):
            raise InputError(f"keep must be 'all' or 'checkpoints', got {keep!r}")
        self._loss, self._data, self._keep = loss, data, keep == "all"
        self._every = None if every is None else whole_number("every", every, least=1)
        #: Compiled loss of the last run; optimisers evaluate the same loss repeatedly.
        self._known: tuple[CompiledStep, int, Loss] | None = None

    def run(self, plan: Plan) -> tuple[Tape, Departure, Loss]:
        compiled, tape, departure = tape_of(plan, self._every, self._keep)
        known = self._known
        if known is None or known[0] is not compiled or known[1] != len(tape.at):
            known = compiled, len(tape.at), Loss(compiled.model, self._loss, self._data, len(tape.at))
            self._known = known
        return tape, departure, known[2]


def tape_of(
    plan: Plan, every: int | np.ndarray | None = None, keep: bool = True, *, watched: bool = False
) -> tuple[CompiledStep, Tape, Departure]:
    """Run a plan and record its tape; `guards_checked` if the run is known to satisfy the guards of the model.

    Observed is the last state, every `every`-th state, or the states with the given step indices.
    """
    reason = why_not(plan, watched)
    if reason:
        raise InputError(reason)
    if plan.tier == "assembled":  # derivatives exist in the fused tier only
        plan = dataclasses.replace(plan, tier="fused")
    compiled, initial = compile_and_start(plan)
    departure = Departure(plan, compiled, initial)
    memory = memory_of(compiled, plan.t0)(initial, plan.k, plan.h)
    carry, stepper = beginning(plan, compiled, initial, memory)
    at = every if isinstance(every, np.ndarray) else observed_numbers(plan, every)
    return compiled, recorded(plan, compiled, carry, stepper, at, keep), departure


def why_not(plan: Plan, watched: bool = False) -> str:
    """Return the reason why a run cannot be differentiated, or an empty string."""
    if plan.control is not None:
        return "derivatives of adaptive runs are not available (step sizes depend on the state); use fixed steps"
    if plan.scheme.fictive:
        name = plan.scheme.name
        return f"scheme '{name}' uses fixed steps in fictive time; derivatives are not available"
    if plan.tier == "reference":
        return "derivatives are not available in the reference tier; remove tier="
    if getattr(plan.model, "controllers", ()):
        return "a run with sampled controllers cannot be differentiated: they are called between steps"
    if getattr(plan.model, "stops", ()) and not watched:
        return "a joint stop with restitution acts between steps: use `vjp`, `jvp` of a run without such an event"
    if getattr(plan.model, "bounces", ()) and not watched:
        return "rigid contact acts between steps: use `vjp`, `jvp` of a run without impacts"
    if plan.model.guards and not watched:
        return f"the model has guards ({', '.join(plan.model.guards)}): use `vjp`, `jvp` of a run that satisfies them"
    return ""
