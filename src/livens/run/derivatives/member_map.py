"""Map of a function over the members of an ensemble, in threads; failed members do not affect the others."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from livens.errors import InputError, LivensError
from livens.run.ensemble.members import iterate_rows
from livens.run.plan import Plan
from livens.run.prepare import Prepared
from livens.validation import check_integer

Value = TypeVar("Value")


def make_plan(step: Prepared, start: Mapping[str, object], **options: object) -> Plan:
    """Return the plan of a run of a prepared step that is to be differentiated."""
    if not isinstance(step, Prepared):
        raise InputError(f"derivatives need a prepared step, see livens.prepare; got {step!r}")
    return step._make_plan(start, **options)


def make_plans(
    step: Prepared, start: Mapping[str, object], parameters: Mapping[str, object] | None, **options: object
) -> list[Plan]:
    """Return one plan per row of initial values or parameters; single values are used for all members."""
    plan = make_plan(step, {}, **options)
    return [
        dataclasses.replace(
            plan, start={**plan.start, **initial_values}, parameters={**plan.parameters, **member_parameters}
        )
        for initial_values, member_parameters in iterate_rows(plan.model, start, parameters)
    ]


def map_members(
    plans: Sequence[Plan], function: Callable[[Plan], Value], threads: int
) -> tuple[list[Value | None], dict[int, LivensError]]:
    """Return the result of every plan (None if it fails) and the errors by member."""
    errors: dict[int, LivensError] = {}

    def evaluate_member(member: int) -> Value | None:
        try:
            return function(plans[member])
        except LivensError as error:
            errors[member] = error
            return None

    with ThreadPoolExecutor(check_integer("threads", threads, minimum=1)) as pool:
        results = list(pool.map(evaluate_member, range(len(plans))))
    return results, dict(sorted(errors.items()))
