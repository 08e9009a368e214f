"""Several runs of a prepared step that are taken one by one, in threads, and of which one that fails stops no other."""

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
    """The plan of a run of a prepared step, whose derivatives are asked for."""
    if not isinstance(step, Prepared):
        raise InputError(f"derivatives are those of a prepared step, see livens.prepare, got {step!r}")
    return step._plan(start, **options)


def plans_of(
    step: Prepared, start: Mapping[str, Any], parameters: Mapping[str, Any] | None, **options: Any
) -> list[Plan]:
    """One plan for each row of initial values or value of a parameter; what is given once is that of all of them."""
    plan = plan_of(step, {}, **options)
    return [
        dataclasses.replace(plan, start={**plan.start, **given}, parameters={**plan.parameters, **changed})
        for given, changed in rows_of(plan.model, start, parameters)
    ]


def one_by_one(
    plans: Sequence[Plan], work: Callable[[Plan], Found], threads: int
) -> tuple[list[Found | None], dict[int, LivensError]]:
    """What comes of every plan, None where it fails, and why it fails."""
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
