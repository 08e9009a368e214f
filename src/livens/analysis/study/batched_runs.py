"""Batched runs of a sweep: runs that differ in initial values or parameters only are integrated as one ensemble."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from livens.analysis.study.sweep_run import plan_member, result_row, run_member
from livens.errors import LivensError
from livens.models.problem import Problem
from livens.results.ensemble import Ensemble
from livens.run.ensemble.run import run_ensemble, unsupported_reason
from livens.run.plan import Plan

#: Minimum number of runs for which compiling the ensemble code pays off.
MIN_BATCH = 8


def run_members(
    build: str | Callable[..., Problem],
    options: Mapping[str, object],
    members: Sequence[Mapping[str, Any]],
    final: bool,
) -> Iterator[dict[str, Any]]:
    """Iterate over the rows of the members in order; each equals the row of `run_member` up to round-off.

    Members outside of a batch are run when their row is requested, so that an interruption takes effect at once.
    """
    rows: list[dict[str, Any] | None] = [None] * len(members)
    groups: dict[Any, list[tuple[int, Plan, Problem]]] = {}
    for i, chosen in enumerate(members):
        try:
            plan, problem = plan_member(build, options, chosen)
        except Exception:  # reported in the row of the member, which is run individually
            continue
        if not unsupported_reason(plan):
            key = plan.model.fingerprint, plan.scheme, plan.h, plan.t0, plan.t_end
            groups.setdefault(key, []).append((i, plan, problem))
    for group in groups.values():
        if len(group) >= MIN_BATCH:
            _fill_rows(rows, group, members, final)
    for row, chosen in zip(rows, members, strict=True):
        yield run_member(build, options, chosen, final) if row is None else row


def run_block(
    build: str | Callable[..., Problem],
    options: Mapping[str, object],
    members: Sequence[Mapping[str, object]],
    final: bool,
) -> list[dict[str, object]]:
    """Run the members of one block of a sweep in a worker process."""
    return list(run_members(build, options, members, final))


def _fill_rows(
    rows: list[dict[str, Any] | None],
    group: Sequence[tuple[int, Plan, Problem]],
    members: Sequence[Mapping[str, Any]],
    final: bool,
) -> None:
    """Fill in the rows of the successful members of a batch; failed members are run individually for the reason."""
    started = time.perf_counter()
    try:
        members_result = run_ensemble([plan for _, plan, _ in group])
    except LivensError:
        return
    wall_s_each = (time.perf_counter() - started) / len(group)
    for member, (i, plan, problem) in enumerate(group):
        if member not in members_result.reasons:
            rows[i] = _row(members[i], plan, problem, members_result, member, wall_s_each, final)


def _row(
    chosen: Mapping[str, Any],
    plan: Plan,
    problem: Problem,
    members_result: Ensemble,
    member: int,
    wall_s: float,
    final: bool,
) -> dict[str, float | str]:
    final_state = {name: members_result.arrays[name][member, -1] for name in plan.model.error_norm_variables}
    return dict(chosen) | result_row(
        problem,
        plan.t_end,
        plan.model.coordinates,
        final_state,
        members_result.summary[member],
        steps=int(members_result.steps[member]),
        wall_s=wall_s,
        corrections=int(members_result.newton_iterations[member]),
        final=final,
    )
