"""Prepared runs: a model and a scheme, compiled once, run as often as one likes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from livens.engine.compiled import CompiledStep
from livens.engine.loop import Policy
from livens.engine.step_size import flow
from livens.engine.steps import Carry, Stepper
from livens.errors import InputError, IntegrationError
from livens.expressions.numbers import number, positive
from livens.models.model import Model
from livens.models.problem import Problem
from livens.results.result import Result
from livens.run.beginning import beginning
from livens.run.control import StepControl
from livens.run.events import Event
from livens.run.plan import Plan
from livens.run.simulate import compile_and_start, execute
from livens.schemes.base import Scheme

#: A prepared step remembers at most this many plans; they are told apart by arguments of these plain types.
_REMEMBERED, _PLAIN = 64, frozenset((float, int, bool, str, type(None)))
#: What a run may be asked for beside its start and its parameters, in this order.
_ASKED = ("h", "t_end", "t0", "every", "project", "store", "control")


@dataclass(frozen=True)
class MotionState:
    """Where a motion is, for people who write their own loop: time and state, by name (``state.q``, ``state.t``).

    States are values: a step makes a new one and leaves the old one as it is.
    """

    _carry: Carry
    _stepper: Stepper
    _compiled: CompiledStep
    _number: int = 0

    @property
    def t(self) -> float:
        return self._carry.t

    def __getattr__(self, name: str) -> np.ndarray:
        layout = self._compiled.layout
        if name.startswith("_") or name not in layout:
            raise AttributeError(f"a state has no '{name}', only t, {', '.join(layout.sizes)}")
        return self._carry.z[layout[name]].copy()

    def __repr__(self) -> str:
        return f"<livens state at t = {self.t:g}>"


class Prepared:
    """A model and a scheme, compiled; made by `livens.prepare`.

    It may be used from several threads at once: what changes in a run belongs to the run, and the compiled loop lets
    other threads work.
    """

    def __init__(self, model: Model | Problem, defaults: Mapping[str, Any]) -> None:
        self._model, self._defaults = model, dict(defaults)
        self.model: Model = model.system if isinstance(model, Problem) else model
        self._checked: dict[Any, Plan] = {}  # plans of runs so far, by what these were asked for beside their start

    @property
    def scheme(self) -> Scheme:
        scheme: Scheme = self._defaults["scheme"]
        return scheme

    def _plan(self, start: Mapping[str, Any], **options: Any) -> Plan:
        given = {name: value for name, value in options.items() if value is not None}
        return Plan.of(self._model, start, fits=True, **{**self._defaults, **given})

    def _plan_of_run(self, start: Mapping[str, Any], parameters: Any, *asked: Any) -> Plan:
        """The plan of a run; one that differs from an earlier one only in where it starts need not be checked again."""
        kinds = tuple(map(type, asked))
        plain = _PLAIN.issuperset(kinds)
        known = self._checked.get((asked, kinds)) if plain else None
        if known is not None:
            return known.again(start, self._defaults.get("parameters") if parameters is None else parameters)
        plan = self._plan(start, parameters=parameters, **dict(zip(_ASKED, asked, strict=True)))
        if plain and len(self._checked) < _REMEMBERED:
            self._checked[asked, kinds] = plan
        return plan

    def run(
        self,
        q0: Any = None,
        v0: Any = None,
        *,
        p0: Any = None,
        x0: Any = None,
        y0: Any = None,
        parameters: Mapping[str, Any] | None = None,
        h: float | None = None,
        t_end: float | None = None,
        t0: float | None = None,
        every: int | None = None,
        project: bool | None = None,
        store: str | Sequence[str] | None = None,
        control: StepControl | None = None,
        events: Sequence[Event] | None = None,
        out: str | Path | None = None,
        force: bool = False,
        progress: bool | None = None,
    ) -> Result:
        """A run, as `livens.simulate` makes it; what is not given is as it was prepared, or the problem's own."""
        start = dict(q0=q0, v0=v0, p0=p0, x0=x0, y0=y0)
        plan = self._plan_of_run(start, parameters, h, t_end, t0, every, project, store, control)
        return execute(plan, events=events, out=out, force=force, progress=progress)

    def value_and_gradient(
        self, loss: Callable[..., Any], *, every: int | None = None, data: Any = None, keep: str = "all"
    ) -> Callable[..., Any]:
        """A function of what a run of this step starts from; it gives a loss and its derivatives by everything.

        As `livens.value_and_gradient`, which takes the step as its first argument.

        >>> import livens as lv
        >>> step = lv.prepare(lv.problems.load("simple-pendulum"), h=0.01, t_end=0.5)
        >>> value, by = step.value_and_gradient(lambda q: q[0])(v0=[0.0, 0.1], parameters={"g": 9.81})
        >>> round(by.parameters["g"], 4)
        0.0988
        """
        from livens.run.gradient import value_and_gradient

        return functools.partial(value_and_gradient(loss, every=every, data=data, keep=keep), self)

    # -- one step at a time -------------------------------------------------------------------------------------------
    def start(
        self,
        q0: Any = None,
        v0: Any = None,
        *,
        p0: Any = None,
        x0: Any = None,
        y0: Any = None,
        parameters: Mapping[str, Any] | None = None,
        h: float | None = None,
        t0: float | None = None,
        project: bool | None = None,
    ) -> MotionState:
        """The state before the first step, checked and completed like that of a run."""
        start = dict(q0=q0, v0=v0, p0=p0, x0=x0, y0=y0)
        begin = number("t0", t0 if t0 is not None else self._defaults.get("t0") or 0.0)
        plan = self._plan(start, parameters=parameters, h=h, t0=t0, project=project, t_end=begin + 1.0)
        if getattr(plan.model, "controllers", ()):
            raise InputError("steps one at a time have no sampled controllers: make a run, or write them into the loop")
        if getattr(plan.model, "stops", ()):
            raise InputError("steps one at a time hit no stops with a restitution: make a run")
        if getattr(plan.model, "bounces", ()):
            raise InputError("steps one at a time have no events, and bodies that bounce need them: make a run")
        compiled, initial = compile_and_start(plan)
        carry, stepper = beginning(plan, compiled, initial)
        return MotionState(carry, stepper, compiled)

    def step(self, state: MotionState, h: float | None = None) -> MotionState:
        """The state one step later. Steps of equal size cost least: their unknowns are predicted from the last ones."""
        if not isinstance(state, MotionState):
            raise InputError(f"a step goes on from a state that `start` or `step` gave, got {state!r}")
        given = h if h is not None else self._defaults.get("h")
        size = positive("h", self._model.h if given is None and isinstance(self._model, Problem) else given)
        entry = state._compiled.layout["t"].start if "t" in state._compiled.layout else -1
        policy = Policy(False, size, state.t - state._number * size, state._number, entry)
        if entry >= 0:
            policy = policy._replace(origin=0.0)
        steps = state._stepper.advance(state._carry, 1, policy, flow(size))
        if steps.trouble is not None:
            raise IntegrationError(f"the step from t = {state.t:.9g} failed: {steps.trouble.reason}")
        return MotionState(steps.carry, state._stepper, state._compiled, state._number + 1)


def prepare(
    model: Model | Problem,
    scheme: str | Scheme | None = None,
    *,
    h: float | None = None,
    t_end: float | None = None,
    t0: float | None = None,
    parameters: Mapping[str, Any] | None = None,
    scaling: Any = None,
    every: int = Plan.every,
    project: bool = Plan.project,
    redundant: str = Plan.redundant,
    control: StepControl | None = Plan.control,
    tier: str = Plan.tier,
    threads: int = Plan.threads,
    store: str | Sequence[str] | None = Plan.store,
) -> Prepared:
    """Compile a model with a scheme; what is given here are defaults of the runs to come.

    A model is compiled once, however often it is prepared or simulated: what was compiled is found again by content.

    >>> import livens as lv
    >>> pendulum = lv.System(
    ...     "x y",
    ...     kinetic=lambda v, k: 0.5 * k.m * (v @ v),
    ...     potential=lambda q, k: k.m * k.g * q[1],
    ...     constraints=lambda q, k: [0.5 * (q @ q - k.l**2)],
    ...     parameters=dict(m=1.0, l=1.0, g=9.81),
    ... )
    >>> step = lv.prepare(pendulum, scheme="livens-em", h=0.01)
    >>> speeds = [step.run([-l, 0], [0, 0], parameters={"l": l}, t_end=2.0).v[:, 0].max() for l in (1.0, 2.0)]
    >>> [round(float(speed), 2) for speed in speeds]  # sqrt(2 g l)
    [4.43, 6.26]

    For a loop of your own:

    >>> state = step.start([-1, 0], [0, 0])
    >>> while state.q[0] < 0:
    ...     state = step.step(state)
    >>> round(state.t, 2)
    0.6
    """
    from livens import schemes

    actual = model.system if isinstance(model, Problem) else model
    if not isinstance(actual, Model):
        raise InputError(f"prepare needs a model, such as a System, or a Problem, got {model!r}")
    usual = model.scheme if isinstance(model, Problem) else actual.usual_scheme
    chosen = schemes.get(usual if scheme is None else scheme)
    schemes.require(chosen, actual)
    if scaling is None and chosen.fictive and isinstance(model, Problem):
        scaling = model.scaling
    if scaling is not None:
        chosen = chosen.scaled(scaling)
    given = dict(
        scheme=chosen,
        h=h,
        t_end=t_end,
        t0=t0,
        parameters=parameters,
        every=every,
        project=project,
        redundant=redundant,
        control=control,
        tier=tier,
        threads=threads,
        store=store,
    )
    return Prepared(model, {name: value for name, value in given.items() if value is not None})
