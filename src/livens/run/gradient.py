"""Values and gradients of a loss: derivatives of a whole run, exact for the steps that were taken."""

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
    """Derivatives by what a run starts from (``gradient.q0``, ``.v0``, ...), by parameters, by name, and by h.

    Initial values stay on the constraints: derivatives by them are those of starting from the nearest consistent
    values, as with ``project=True``, and so are those by parameters that the constraints depend on.

    The number of steps stays as it is if h changes, and the end of the run moves. Where h does not divide the time
    span the end stays, and the last, shorter step gives way.
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
        """With the parameters as they are called: what follows another parameter counts with that."""
        named = {}
        for name, entry in model.parameter_table.entries.items():
            total = np.sum([shift.k[place] for place in entry.places], axis=0).reshape(entry.shape)
            named[name] = float(total) if entry.shape == () else total
        return cls(shift.start, named, shift.h)


def value_and_gradient(
    loss: Callable[..., Any], *, every: int | None = None, data: Any = None, keep: str = "all"
) -> ValueAndGradient:
    """A function of what a run starts from, which gives the value of a loss and all its derivatives.

    :param loss: a function of the state, read like an observable (it may ask for q, v, p, x, t, k), that returns one
        number. It is that of the last state, or with `every` the sum over all states whose number this divides, the
        first among them, and the last one.
    :param data: numbers, one row for each of these states, that the loss may ask for as d.
    :param keep: "all" states until the way back, or "checkpoints" from which they are computed again, bit for bit:
        that takes half as long again and a thousandth of the memory.

    The function takes a prepared step, see `livens.prepare`, and what its `run` takes. One run back gives the
    derivatives by all initial values, all parameters and h, however many there are. `many` of it takes rows of initial
    values and of parameters, as `livens.ensemble` does.

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
    """Values and gradients of many runs, the member first: ``many.gradient.parameters["g"][member]``."""

    values: np.ndarray
    gradient: Gradient
    failures: dict[int, str]  # why members failed; their numbers are NaN


class ValueAndGradient:
    """What `value_and_gradient` gives: a function of a prepared step and what its run takes."""

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
        tape.stepper.release()  # nobody looks at its steps any more, and the next run works in its arrays
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
        """The same for many runs: one row of initial values, or one value of a parameter, for each member.

        What is given once is that of all members. A member that fails stops no other. Threads work side by side.
        """
        start = dict(q0=q0, v0=v0, p0=p0, x0=x0)
        members = plans_of(step, start, parameters, h=h, t_end=t_end, t0=t0, project=project)
        found, errors = one_by_one(members, self._evaluated, threads)
        good = next((pair[1] for pair in found if pair is not None), None)
        if good is None:
            raise IntegrationError(f"no member could be differentiated; the first one: {errors[0]}")
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
                stacked(lambda one: one.h),  # type: ignore[arg-type]  # one for each member
            ),
            {member: str(error) for member, error in errors.items()},
        )


class Differentiated:
    """What is observed of runs, and how they are kept for the way back."""

    def __init__(self, loss: Callable[..., Any], every: int | None, data: Any, keep: str) -> None:
        if not isinstance(keep, str) or keep not in ("all", "checkpoints"):
            raise InputError(f"keep must be 'all' or 'checkpoints', got {keep!r}")
        self._loss, self._data, self._keep = loss, data, keep == "all"
        self._every = None if every is None else whole_number("every", every, least=1)
        #: The loss as it was read last: an optimiser asks for the same one many times.
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
    """Carry out a plan so that its derivatives can be taken; `watched` if it is known to stay within bounds.

    The last state is observed, or every one whose number `every` divides, or those with the given numbers.
    """
    reason = why_not(plan, watched)
    if reason:
        raise InputError(reason)
    if plan.tier == "assembled":  # which has no derivatives
        plan = dataclasses.replace(plan, tier="fused")
    compiled, initial = compile_and_start(plan)
    departure = Departure(plan, compiled, initial)
    memory = memory_of(compiled, plan.t0)(initial, plan.k, plan.h)
    carry, stepper = beginning(plan, compiled, initial, memory)
    at = every if isinstance(every, np.ndarray) else observed_numbers(plan, every)
    return compiled, recorded(plan, compiled, carry, stepper, at, keep), departure


def why_not(plan: Plan, watched: bool = False) -> str:
    """Why a run like this one has no derivatives, in words; nothing if it has."""
    if plan.control is not None:
        return "a run with step control has no derivatives: its step sizes depend on the state; take equal steps"
    if plan.scheme.fictive:
        name = plan.scheme.name
        return f"scheme '{name}' takes equal steps of a fictive time, for which there are no derivatives"
    if plan.tier == "reference":
        return "derivatives are those of native code: leave out tier"
    if getattr(plan.model, "controllers", ()):
        return "sampled controllers are called between steps and may do anything: such a run has no derivatives"
    if getattr(plan.model, "stops", ()) and not watched:
        return "a stop with a restitution acts between steps: take `vjp`, `jvp` of a run that hits none"
    if getattr(plan.model, "bounces", ()) and not watched:
        return "bodies that bounce do so between steps: take `vjp`, `jvp` of a run in which nothing meets"
    if plan.model.guards and not watched:
        return f"the model does not allow everything ({', '.join(plan.model.guards)}): take `vjp`, `jvp` of a run"
    return ""
