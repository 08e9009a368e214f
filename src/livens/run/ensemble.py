"""Many trajectories of one model at once: the way in."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from livens.expressions.numbers import path_of, whole_number
from livens.models.model import Model
from livens.models.problem import Problem
from livens.results.ensemble import Ensemble
from livens.run.members import Members, member_of, parameter_rows, read_rows
from livens.run.parts import claim
from livens.run.plan import Plan
from livens.run.together import Reductions, together
from livens.schemes.base import Scheme


def ensemble(
    model: Model | Problem,
    q0: Any = None,
    v0: Any = None,
    *,
    p0: Any = None,
    x0: Any = None,
    y0: Any = None,
    parameters: Mapping[str, Any] | None = None,
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
) -> Ensemble:
    """Run a model from many initial values, or with many values of its parameters, all at once.

    :param q0, v0, p0, x0, y0: initial values, one row per member; a single vector is that of all members.
    :param parameters: by name, one value per member; a single value is that of all members.
    :param every: keep every state whose number this divides (and the last one always). To keep all of them takes as
        long as to compute them.
    :param threads: how many cores work on it.
    :param reduce: names with functions of the state (or names of observables), whose mean and extrema over every
        state are found as the members run, see `Ensemble.reduced`.
    :param histograms: for names of `reduce`, ``(low, high, bins)``: how often the number falls into each bin is counted
        over every state.
    :param out: a file for the ensemble, HDF5 or, if its name ends in ``.zarr``, a Zarr store. What is done is kept in a
        folder beside it until all members are: if the process is killed, the same call goes on from there. `force`
        replaces an existing file.
    :param client: a client of dask.distributed (``pip install 'livens[cluster]'``): members are run in blocks on its
        workers, and blocks of workers that are lost on others.
    :param progress: show a progress bar if it takes longer than two seconds; by default on a terminal.

    Everything else is as in `livens.simulate`. Eight or sixteen members go through the same instructions side by side,
    so that each takes a fraction of the time it would take by itself. A member equals the run of `simulate` up to
    round-off, and it is the same bit for bit whatever the order of the members and the number of threads. A member that
    fails stops no other.

    >>> import livens as lv
    >>> oscillator = lv.System(
    ...     "x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q, k: k.c * q[0] ** 2 / 2, parameters=dict(c=1.0)
    ... )
    >>> many = lv.ensemble(oscillator, q0=[1], v0=[0], parameters={"c": [1, 4, 9]}, h=0.01, t_end=1, every=50)
    >>> many.q.shape, [round(float(x), 3) for x in many.q[:, -1, 0]]
    ((3, 3, 1), [0.54, -0.416, -0.99])
    """
    given = {"q0": q0, "v0": v0, "p0": p0, "x0": x0, "y0": y0}
    actual = model.system if isinstance(model, Problem) else model
    starts, values, count = read_rows(actual, given, parameters)
    plan = Plan.of(
        model,
        member_of(starts, 0),
        scheme=scheme,
        h=h,
        t_end=t_end,
        t0=t0,
        every=every,
        store=store,
        project=project,
        redundant=redundant,
    )
    own = {name: value for name, value in plan.parameters.items() if name not in values}
    k = parameter_rows(plan.model, own, values, count)
    plan = dataclasses.replace(plan, parameters={**own, **member_of(values, 0)})
    given_starts = {name: np.asarray(value, dtype=float)[None] for name, value in plan.start.items()}
    target = None if out is None else path_of("out", out)
    if target is not None:
        claim(target, force)
    return together(
        Members(plan, count, {**given_starts, **starts}, k),
        reduce=reduce,
        histograms=histograms,
        threads=whole_number("threads", threads, least=1),
        out=target,
        force=force,
        client=client,
        progress=progress,
    )
