"""Jacobian-vector products (forward sensitivities) of an ensemble."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens.engine.stepper import step_inputs
from livens.errors import InputError, explain_call_errors, suggestion
from livens.run.derivatives.gradient import record_run
from livens.run.derivatives.member_map import make_plans, map_members
from livens.run.derivatives.sensitivity import input_tangent
from livens.run.plan import Plan
from livens.run.prepare import Prepared
from livens.types import ArrayLike
from livens.validation import check_integer

_DIRECTION_NAMES = ("q0", "v0", "p0", "x0", "parameters", "h")


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


@explain_call_errors
def jvp(
    step: Prepared,
    along: Mapping[str, object],
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    *,
    p0: ArrayLike | None = None,
    x0: ArrayLike | None = None,
    parameters: Mapping[str, object] | None = None,
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
    >>> found = lv.jvp(step, {"parameters": {"g": 1.0}}, parameters={"g": [9.0, 9.81]})
    >>> [round(float(x), 4) for x in found.change["q"][:, -1, 0]]
    [0.0976, 0.0996]
    """
    if not isinstance(along, Mapping) or not along:
        raise InputError(f"along must be a non-empty dict such as {{'parameters': {{'g': 1.0}}}}, got {along!r}")
    for name in along:
        if name not in _DIRECTION_NAMES:
            raise InputError(f"unknown direction '{name}' in along{suggestion(str(name), _DIRECTION_NAMES)}")
    chosen = None if every is None else check_integer("every", every, minimum=1)
    initial = dict(q0=q0, v0=v0, p0=p0, x0=x0)
    plans = make_plans(step, initial, parameters, h=h, t_end=t_end, t0=t0, project=project)
    results, errors = map_members(plans, lambda plan: _member_tangents(plan, along, chosen), threads)
    first_success = next((part for part in results if part is not None), None)
    if first_success is None:
        raise errors[0]
    missing = np.full(first_success[1].shape, np.nan)
    states, changes = (np.array([missing if part is None else part[i] for part in results]) for i in (1, 2))
    view, offset = {}, 0
    for name, symbol in plans[0].model.view.symbols.items():
        view[name] = slice(offset, offset + int(symbol.numel()))
        offset = view[name].stop
    return Tangents(
        first_success[0],
        {name: states[:, :, slice_] for name, slice_ in view.items()},
        {name: changes[:, :, slice_] for name, slice_ in view.items()},
        {member: str(error) for member, error in errors.items()},
    )


def _member_tangents(
    plan: Plan, along: Mapping[str, Any], every: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return times, states and tangents of one run, with the variables of the model as columns."""
    compiled, tape, initial_sensitivity = record_run(plan, every, keep=False)
    initial = {name: value for name, value in along.items() if name not in ("parameters", "h")}
    tangent = input_tangent(plan.model, initial_sensitivity, initial, along.get("parameters"), along.get("h"))
    dz, dc = initial_sensitivity.jvp(tangent)[None], step_inputs(tangent.h, 0.0, tangent.k)[None]
    tangents = tape.tangents(dz, dc)[:, 0]
    slices = [compiled.layout[name] for name in plan.model.view.symbols]
    states, changes = (np.hstack([rows[:, slice_] for slice_ in slices]) for rows in (tape.states, tangents))
    return tape.t, states, changes
