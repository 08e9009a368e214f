"""Jacobian-vector products (forward sensitivities) of an ensemble."""

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
    """States of an ensemble and their tangents, axes (member, time, coordinate).

    Parameters
    ----------
    t : ndarray of shape (n_times,)
        Times in seconds.
    states : dict of str to ndarray
        Variables of the model by name, each of shape (n_members, n_times, n).
    change : dict of str to ndarray
        Tangents of the variables, of the same shapes.
    failures : dict of int to str
        Error messages of failed members; values of failed members are NaN.
    """

    t: np.ndarray
    states: dict[str, np.ndarray]
    change: dict[str, np.ndarray]
    failures: dict[int, str]  # error messages by member; values of failed members are NaN


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
    """Return Jacobian-vector products of an ensemble: derivatives of the states along one direction of the inputs.

    Parameters
    ----------
    step : Prepared
        Prepared step, see `livens.prepare`.
    along : dict
        Direction, as in `Result.jvp`: ``{"parameters": {"g": 1.0}}``, ``{"v0": [0, 1]}``.
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
    every : int, optional
        Return every `every`-th state and the last one. Default: the last state only.
    project : bool, optional
        Project inconsistent initial values to the nearest consistent ones.
    threads : int, default 1
        Number of threads; each thread computes whole members.

    Returns
    -------
    Tangents
        States, tangents and failures. If a member fails, the others continue.

    Raises
    ------
    InputError
        If `along` is empty or contains an unknown name.

    Notes
    -----
    Use this function for one direction and many outputs; for gradients use ``value_and_gradient(...).many``.

    Examples
    --------
    >>> import livens as lv
    >>> step = lv.prepare(lv.problems.load("simple-pendulum"), h=0.01, t_end=0.5)
    >>> found = lv.tangents(step, {"parameters": {"g": 1.0}}, parameters={"g": [9.0, 9.81]})
    >>> [round(float(x), 4) for x in found.change["q"][:, -1, 0]]
    [0.0976, 0.0996]
    """
    if not isinstance(along, Mapping) or not along:
        raise InputError(f"along must be a non-empty dict such as {{'parameters': {{'g': 1.0}}}}, got {along!r}")
    for name in along:
        if name not in _ALONG:
            raise InputError(f"unknown direction '{name}' in along{suggestion(str(name), _ALONG)}")
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
    """Return times, states and tangents of one run, with the variables of the model as columns."""
    compiled, tape, departure = tape_of(plan, every, keep=False)
    start = {name: value for name, value in along.items() if name not in ("parameters", "h")}
    shift = direction(plan.model, departure, start, along.get("parameters"), along.get("h"))
    dz, dc = departure.forth(shift)[None], np.concatenate([[shift.h, 0.0], shift.k])[None]
    moved = tape.forth(dz, dc)[:, 0]
    places = [compiled.layout[name] for name in plan.model.view.symbols]
    states, changes = (np.hstack([rows[:, place] for place in places]) for rows in (tape.states, moved))
    return tape.t, states, changes
