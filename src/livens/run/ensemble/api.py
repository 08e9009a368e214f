"""Public interface of ensemble runs: many trajectories of one model at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from livens.engine.ensemble.lane_run import InputTable
from livens.errors import InputError, explain_call_errors, refuse_arguments
from livens.models.base import Model
from livens.models.problem import Problem
from livens.results.ensemble import Ensemble
from livens.run.ensemble.members import (
    EnsembleMembers,
    input_table,
    member_row,
    parameter_rows,
    parse_rows,
)
from livens.run.ensemble.partial_results import check_writable
from livens.run.ensemble.run import Reductions, run_ensemble
from livens.run.plan import Plan
from livens.run.schedule import Schedule
from livens.schemes.core.scheme import Scheme
from livens.validation import check_choice, check_integer, check_path


@explain_call_errors
@refuse_arguments(
    "members advance together, several per SIMD instruction, and share their step size; simulate them one by one",
    "tolerance",
    "control",
    "adaptive",
    "scaling",
)
def ensemble(
    model: Model | Problem,
    q0: Any = None,
    v0: Any = None,
    *,
    p0: Any = None,
    x0: Any = None,
    y0: Any = None,
    parameters: Mapping[str, object] | None = None,
    scheme: str | Scheme | None = None,
    h: float | None = None,
    t_end: float | None = None,
    t0: float | None = None,
    every: int = Plan.every,
    store: str | Sequence[str] | None = Plan.store,
    project: bool = Plan.project,
    redundant: str = Plan.redundant,
    threads: int = 1,
    reduce: Reductions | None = None,
    histograms: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    force: bool = False,
    client: Any = None,
    progress: bool | None = None,
    inputs: Schedule | Mapping[str, Any] | Sequence[Schedule | Mapping[str, Any]] | None = None,
    tier: str = Plan.tier,
) -> Ensemble:
    """Simulate many initial values or parameter sets at once.

    Parameters
    ----------
    model : Model or Problem
        Model to simulate. A `Problem` has its own initial values, step size and end time.
    q0, v0, p0, x0, y0 : array_like of shape (n_members, n) or (n,), optional
        Initial values, one row per member. A single vector is used for all members.
    parameters : dict of str to array_like, optional
        Parameter values by name, one per member or one for all members.
    scheme : str or Scheme, optional
        Integration scheme. Default: the scheme recommended for the model.
    h : float, optional
        Step size in seconds. Required unless `model` is a `Problem`.
    t_end : float, optional
        End time in seconds. Required unless `model` is a `Problem`.
    t0 : float, optional
        Start time in seconds. Default: 0, or that of the `Problem`.
    every : int, default 1
        Output stride: store every `every`-th step. The last step is always stored. Storing all steps can take as long
        as computing them; see `reduce`.
    store : str or sequence of str, optional
        Variables to store. Default: all.
    project : bool, default False
        Project inconsistent initial values to the nearest consistent ones.
    redundant : {"error", "remove", "auto"}, default "error"
        Treatment of redundant constraints.
    threads : int, default 1
        Number of threads.
    reduce : dict of str to callable or str, optional
        Functions of the state (or names of observables) by name. Their mean and extrema over all steps are computed
        during the run; see `Ensemble.reduced`.
    histograms : dict of str to tuple, optional
        For names of `reduce`, ``(low, high, bins)``: counts of the values over all steps.
    out : str or Path, optional
        HDF5 file, or Zarr store if the name ends in ``.zarr``. Finished blocks are stored in a folder next to it until
        all members are finished. If the process is killed, the same call continues from there.
    force : bool, default False
        Replace an existing file.
    client : dask.distributed.Client, optional
        Run blocks of members on the workers of a cluster (``pip install 'livens[cluster]'``). Blocks of lost workers
        are rescheduled.
    progress : bool, optional
        Show a progress bar if the run takes longer than two seconds. Default: on a terminal only.
    inputs : Schedule, mapping or sequence of these, optional
        Inputs over time, as of `simulate`: for all members, or one entry per member, with common names and times. If
        the energy depends on an input, its drift is not monitored.
    tier : {"auto", "tree", "assembled", "fused"}, default "auto"
        Tier of the engine. "fused": members advance together in SIMD lanes, by code compiled for the model. "tree":
        by the steps of `simulate` in lanes, one after another with closed loops or inputs over time; nothing is
        compiled for the model. "assembled": one after another; only kernels of elements are compiled. "auto": the
        tier of `simulate` for trees in lanes with more than 40 unknowns, and for other trees and assembled models with
        more than 150 unknowns; otherwise fused.

    Returns
    -------
    Ensemble
        Trajectories with the member as the first axis, reductions, histograms and failures.

    Raises
    ------
    InputError
        If an argument is invalid, or a file exists and `force` is False.

    Notes
    -----
    8 or 16 members are advanced at once, one per SIMD lane. Results agree with `simulate` up to round-off, and bit for
    bit where members run one after another. They are bitwise independent of the order of the members and of `threads`.
    If a member fails, the others continue.

    Examples
    --------
    >>> import livens as lv
    >>> oscillator = lv.System(
    ...     "x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q, k: k.c * q[0] ** 2 / 2, parameters=dict(c=1.0)
    ... )
    >>> many = lv.ensemble(oscillator, q0=[1], v0=[0], parameters={"c": [1, 4, 9]}, h=0.01, t_end=1, every=50)
    >>> many.q.shape, [round(float(x), 3) for x in many.q[:, -1, 0]]
    ((3, 3, 1), [0.54, -0.416, -0.99])
    """
    check_choice("tier", tier, ("auto", "tree", "assembled", "fused"))
    schedules = _schedules(inputs)
    initial_values = {"q0": q0, "v0": v0, "p0": p0, "x0": x0, "y0": y0}
    actual = model.model if isinstance(model, Problem) else model
    starts, values, count = parse_rows(actual, initial_values, parameters)
    if len(schedules) > 1:
        if count not in (1, len(schedules)):
            raise InputError(
                f"inputs must have one entry per member: there are {count} members, {len(schedules)} given"
            )
        count = len(schedules)
    plan = Plan.from_arguments(
        model,
        member_row(starts, 0),
        scheme=scheme,
        h=h,
        t_end=t_end,
        t0=t0,
        every=every,
        store=store,
        project=project,
        redundant=redundant,
        inputs=schedules[0] if schedules else None,
        tier=tier,
    )
    shared_parameters = {name: value for name, value in plan.parameters.items() if name not in values}
    k = parameter_rows(plan.model, shared_parameters, values, count)
    plan.model.check_parameters(values, k)
    plan = dataclasses.replace(plan, parameters={**shared_parameters, **member_row(values, 0)})
    default_starts = {name: np.asarray(value, dtype=float)[None] for name, value in plan.start.items()}
    table = input_table(plan, schedules, k) if schedules else InputTable.empty()
    target = None if out is None else check_path("out", out)
    if target is not None:
        check_writable(target, force)
    return run_ensemble(
        EnsembleMembers(plan, count, {**default_starts, **starts}, k, table),
        reduce=reduce,
        histograms=histograms,
        threads=check_integer("threads", threads, minimum=1),
        out=target,
        force=force,
        client=client,
        progress=progress,
        tier=tier,
    )


def _schedules(inputs: object) -> list[Schedule]:
    """Return the inputs over time: none, one for all members, or one per member."""
    if inputs is None:
        return []
    entries = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    if not entries or None in entries:
        raise InputError("inputs must be a schedule or mapping, or a sequence with one of these per member")
    return [schedule for entry in entries if (schedule := Schedule.of_samples(entry, "an ensemble"))]
