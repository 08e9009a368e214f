"""Map of a function over the members of an ensemble, in threads; failed members do not affect the others."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from livens.errors import InputError, LivensError
from livens.expressions.numbers import whole_number
from livens.run.members import rows_of
from livens.run.plan import Plan
from livens.run.prepare import Prepared

Found = TypeVar("Found")


def plan_of(step: Prepared, start: Mapping[str, Any], **options: Any) -> Plan:
    """Return the plan of a run of a prepared step that is to be differentiated."""
    if not isinstance(step, Prepared):
        raise InputError(f"derivatives need a prepared step, see livens.prepare; got {step!r}")
    return step._plan(start, **options)


def plans_of(
    step: Prepared, start: Mapping[str, Any], parameters: Mapping[str, Any] | None, **options: Any
) -> list[Plan]:
    """Return one plan per row of initial values or parameters; single values are used for all members."""
    plan = plan_of(step, {}, **options)
    return [
        dataclasses.replace(plan, start={**plan.start, **given}, parameters={**plan.parameters, **changed})
        for given, changed in rows_of(plan.model, start, parameters)
    ]


def one_by_one(
    plans: Sequence[Plan], work: Callable[[Plan], Found], threads: int
) -> tuple[list[Found | None], dict[int, LivensError]]:
    """Return the result of every plan (None if it fails) and the errors by member."""
    errors: dict[int, LivensError] = {}

    def one(member: int) -> Found | None:
        try:
            return work(plans[member])
        except LivensError as error:
            errors[member] = error
            return None

    with ThreadPoolExecutor(whole_number("threads", threads, least=1)) as pool:
        found = list(pool.map(one, range(len(plans))))
    return found, dict(sorted(errors.items()))
