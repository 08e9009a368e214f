"""How many motions change along one direction: the way forth for ensembles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens.errors import InputError, suggestion
from livens.expressions.numbers import whole_number
from livens.run.gradient import tape_of
from livens.run.plan import Plan
from livens.run.prepare import Prepared
from livens.run.sensitivity import direction
from livens.run.several import one_by_one, plans_of

_ALONG = ("q0", "v0", "p0", "x0", "parameters", "h")


@dataclass(frozen=True)
class Tangents:
    """States of many runs and how they change, the member first: ``found.change["q"][member, time, coordinate]``."""

    t: np.ndarray
    states: dict[str, np.ndarray]
    change: dict[str, np.ndarray]
    failures: dict[int, str]  # why members failed; their numbers are NaN


def tangents(
    step: Prepared,
    along: Mapping[str, Any],
    q0: Any = None,
    v0: Any = None,
    *,
    p0: Any = None,
    x0: Any = None,
    parameters: Mapping[str, Any] | None = None,
    h: float | None = None,
    t_end: float | None = None,
    t0: float | None = None,
    every: int | None = None,
    project: bool | None = None,
    threads: int = 1,
) -> Tangents:
    """How the states of many runs change along a direction of what they are given: the tangents of an ensemble.

    :param along: the direction, as `run.jvp` takes it: ``{"parameters": {"g": 1.0}}``, ``{"v0": [0, 1]}``.
    :param q0, v0, p0, x0, parameters: one row of initial values, or one value of a parameter, for each member; what is
        given once is that of all members.
    :param every: the states whose number this divides, and the last one; that one alone, if it is not given.

    For one direction and many outputs; gradients of many runs by everything have `many` of `value_and_gradient`. A
    member that fails stops no other.

    >>> import livens as lv
    >>> step = lv.prepare(lv.problems.load("simple-pendulum"), h=0.01, t_end=0.5)
    >>> found = lv.tangents(step, {"parameters": {"g": 1.0}}, parameters={"g": [9.0, 9.81]})
    >>> [round(float(x), 4) for x in found.change["q"][:, -1, 0]]
    [0.0976, 0.0996]
    """
    if not isinstance(along, Mapping) or not along:
        raise InputError(f"along must say what changes, such as {{'parameters': {{'g': 1.0}}}}, got {along!r}")
    for name in along:
        if name not in _ALONG:
            raise InputError(f"there is no direction '{name}'{suggestion(str(name), _ALONG)}")
    chosen = None if every is None else whole_number("every", every, least=1)
    start = dict(q0=q0, v0=v0, p0=p0, x0=x0)
    plans = plans_of(step, start, parameters, h=h, t_end=t_end, t0=t0, project=project)
    found, errors = one_by_one(plans, lambda plan: _moved(plan, along, chosen), threads)
    good = next((part for part in found if part is not None), None)
    if good is None:
        raise errors[0]
    nothing = np.full(good[1].shape, np.nan)
    states, moved = (np.array([nothing if part is None else part[i] for part in found]) for i in (1, 2))
    view, first = {}, 0
    for name, symbol in plans[0].model.view.symbols.items():
        view[name] = slice(first, first + int(symbol.numel()))
        first = view[name].stop
    return Tangents(
        good[0],
        {name: states[:, :, place] for name, place in view.items()},
        {name: moved[:, :, place] for name, place in view.items()},
        {member: str(error) for member, error in errors.items()},
    )


def _moved(plan: Plan, along: Mapping[str, Any], every: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, states and their changes of one run, the variables of the model side by side."""
    compiled, tape, departure = tape_of(plan, every, keep=False)
    start = {name: value for name, value in along.items() if name not in ("parameters", "h")}
    shift = direction(plan.model, departure, start, along.get("parameters"), along.get("h"))
    dz, dc = departure.forth(shift)[None], np.concatenate([[shift.h, 0.0], shift.k])[None]
    moved = tape.forth(dz, dc)[:, 0]
    places = [compiled.layout[name] for name in plan.model.view.symbols]
    states, changes = (np.hstack([rows[:, place] for place in places]) for rows in (tape.states, moved))
    return tape.t, states, changes
