"""Values and gradients of a loss: derivatives of a whole run, exact for the steps that were taken."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens.engine.compiled import CompiledStep
from livens.errors import InputError
from livens.expressions.numbers import whole_number
from livens.expressions.parameters import Namespace
from livens.expressions.read import Reader
from livens.models.model import Model
from livens.run.beginning import StartMap
from livens.run.plan import Plan
from livens.run.prepare import Prepared
from livens.run.run import Run
from livens.run.simulate import compile_and_start
from livens.run.tape import Tape, recorded
from livens.run.together import why_not


@dataclass(frozen=True)
class Gradient:
    """Derivatives of a loss by what a run starts from (``gradient.q0``, ``.v0``, ...) and by parameters, by name.

    Initial values stay on the constraints: derivatives by them are those of starting from the nearest consistent
    values, as with ``project=True``, and so are those by parameters that the constraints depend on.
    """

    start: dict[str, np.ndarray]
    parameters: dict[str, Any]

    def __getattr__(self, name: str) -> np.ndarray:
        start: Mapping[str, np.ndarray] = self.__dict__.get("start", {})
        if name in start:
            return start[name]
        raise AttributeError(f"the gradient has no '{name}', only {', '.join([*start, 'parameters'])}")


def value_and_gradient(
    loss: Callable[..., Any], *, every: int | None = None, data: Any = None, keep: str = "all"
) -> Callable[..., tuple[float, Gradient]]:
    """A function of what a run starts from, which gives the value of a loss and all its derivatives.

    :param loss: a function of the state, read like an observable (it may ask for q, v, p, x, t, k), that returns one
        number. It is that of the last state, or with `every` the sum over all states whose number this divides, the
        first among them, and the last one.
    :param data: numbers, one row for each of these states, that the loss may ask for as d.
    :param keep: "all" states until the way back, or "checkpoints" from which they are computed again, bit for bit:
        that takes half as long again and a thousandth of the memory.

    The function takes a prepared step, see `livens.prepare`, and what its `run` takes. One run back gives the
    derivatives by all initial values and all parameters, however many there are.

    >>> import livens as lv
    >>> oscillator = lv.System(
    ...     "x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q, k: k.c * q[0] ** 2 / 2, parameters=dict(c=1.0)
    ... )
    >>> step = lv.prepare(oscillator, scheme="gauss-2", h=0.01)
    >>> value, by = lv.value_and_gradient(lambda q: q[0])(step, q0=[1.0], v0=[0.0], t_end=1.0)
    >>> [round(float(x), 6) for x in (value, by.q0[0], by.v0[0], by.parameters["c"])]  # cos, cos, sin, -sin/2
    [0.540302, 0.540302, 0.841471, -0.420735]
    """
    if keep not in ("all", "checkpoints"):
        raise InputError(f"keep must be 'all' or 'checkpoints', got {keep!r}")
    interval = None if every is None else whole_number("every", every, least=1)

    def evaluated(
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
        plan = step._plan(start, parameters=parameters, h=h, t_end=t_end, t0=t0, project=project)
        compiled, tape, begun = tape_of(plan, interval, keep == "all")
        cost = _Loss(compiled.model, loss, data, len(tape.at))
        value, bars, by_k = cost(tape)
        a, g = tape.back(bars)
        by_start, by_parameters = begun.back(a, g[2:] + by_k)
        return value, Gradient(by_start, _named(plan.model, by_parameters))

    return evaluated


def tape_of(plan: Plan, every: int | None = None, keep: bool = True) -> tuple[CompiledStep, Tape, StartMap]:
    """Carry out a plan so that its derivatives can be taken."""
    reason = why_not(plan)
    if reason:
        raise InputError(reason.replace("members of an ensemble", "runs with derivatives"))
    if plan.tier == "assembled":  # which has no derivatives
        plan = dataclasses.replace(plan, tier="fused")
    compiled, initial = compile_and_start(plan)
    begun = StartMap(compiled, initial, plan.k, plan.h, tuple(plan.start))
    carry, stepper = Run.beginning(plan, compiled, initial)
    return compiled, recorded(plan, compiled, carry, stepper, every, keep), begun


class _Loss:
    """A loss and its derivatives at the observed states."""

    def __init__(self, model: Model, loss: Callable[..., Any], data: Any, rows: int) -> None:
        view, shared = model.view, model.shared
        self._data = np.zeros((rows, 0)) if data is None else np.array(data, dtype=float).reshape(len(data), -1)
        if len(self._data) != rows:
            raise InputError(f"data must have one row for each of the {rows} observed states, got {len(self._data)}")
        d = ca.SX.sym("d", self._data.shape[1])
        given = {**view.symbols, "t": view.t, "k": Namespace(shared.symbols(view.k[: shared.size])), "d": d}
        expression = Reader(given)("the loss", loss, ())
        state = view.state
        inputs = [state, view.t, view.k, d]
        by = [ca.densify(ca.gradient(expression, symbol)) for symbol in (state, view.k)]
        self._function, self._size = ca.Function("loss", inputs, [ca.densify(expression), *by]), int(state.numel())

    def __call__(self, tape: Tape) -> tuple[float, np.ndarray, np.ndarray]:
        """Its value, its derivatives by every observed state, and those by the parameters."""
        bars, by_k, total = np.zeros_like(tape.states), np.zeros(tape.k.size), 0.0
        mapped = self._function.map(len(tape.at))
        k = np.repeat(tape.k[:, None], len(tape.at), axis=1)
        value, by_z, by = mapped(tape.states[:, : self._size].T, tape.t[None, :], k, self._data.T)
        total = float(np.sum(np.array(value)))
        bars[:, : self._size] = np.array(by_z).T
        by_k += np.array(by).sum(axis=1)
        return total, bars, by_k


def _named(model: Model, by_k: np.ndarray) -> dict[str, Any]:
    """Derivatives by the parameters, as they are called: what follows another parameter counts with that."""
    found = {}
    for name, entry in model.parameter_table.entries.items():
        total = np.sum([by_k[place] for place in entry.places], axis=0).reshape(entry.shape)
        found[name] = float(total) if entry.shape == () else total
    return found
