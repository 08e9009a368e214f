"""What is to be run, checked before anything runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from livens import schemes
from livens.errors import InputError, suggestion
from livens.problems.problem import Problem
from livens.result import VARIABLES
from livens.schemes.base import Scheme
from livens.system import System

TIERS = ("fused", "reference")


class Task:
    """A system, a scheme and numbers that fit together."""

    def __init__(
        self, system: System, q0: Any, v0: Any, scheme: Scheme, h: float, t0: float, t_end: float, k: np.ndarray,
        parameters: Mapping[str, Any], every: int, tier: str, problem: Problem | None,
    ) -> None:  # fmt: skip
        self.system, self.q0, self.v0, self.scheme = system, q0, v0, scheme
        self.h, self.t0, self.t_end, self.k, self.every, self.tier = h, t0, t_end, k, every, tier
        self.parameters = dict(system.shared.changed(parameters).plain())
        self.problem = problem
        span = t_end - t0
        self.steps = math.floor(span / h * (1 + 1e-12) + 1e-9)
        rest = span - self.steps * h
        self.last_h = rest if rest > 1e-9 * h else 0.0

    @classmethod
    def of(
        cls, model: System | Problem, q0: Any, v0: Any, scheme: str | Scheme | None, h: float | None,
        t_end: float | None, t0: float | None, parameters: Mapping[str, Any] | None, every: int, tier: str,
    ) -> Task:  # fmt: skip
        problem = model if isinstance(model, Problem) else None
        if problem is not None:
            q0 = problem.q0 if q0 is None else q0
            v0 = problem.v0 if v0 is None else v0
            scheme, h = scheme or problem.scheme, problem.h if h is None else h
            t_end, t0 = problem.t_end if t_end is None else t_end, problem.t0 if t0 is None else t0
        elif not isinstance(model, System):
            raise InputError(f"simulate needs a System or a Problem, got {model!r}")
        system = problem.system if problem is not None else model
        assert isinstance(system, System)
        chosen = schemes.get("livens-em" if scheme is None else scheme)
        schemes.require(chosen, system)
        step, start = positive("h", h), number("t0", 0.0 if t0 is None else t0)
        end = number("t_end", t_end)
        if end <= start:
            raise InputError(f"t_end must lie after t0 = {start:g}, got {end:g}")
        if (end - start) / step > 2**52:
            raise InputError(f"h = {step:g} is too small for a run from {start:g} to {end:g}")
        if isinstance(every, bool) or not isinstance(every, (int, np.integer)) or not 1 <= every <= 2**52:
            raise InputError(f"every must be a whole number of at least 1 (and at most 2**52), got {every!r}")
        if tier not in TIERS:
            raise InputError(f"unknown tier '{tier}'{suggestion(str(tier), TIERS)}")
        changes = parameters or {}
        if not isinstance(changes, Mapping):
            raise InputError(f"parameters must map names to values, got {changes!r}")
        k = system.parameter_vector(changes)
        return cls(system, q0, v0, chosen, step, start, end, k, changes, int(every), tier, problem)


def chosen_variables(store: Any) -> tuple[str, ...]:
    """The variables to store, in their usual order; time is always one of them."""
    if store is None:
        return VARIABLES
    names = [name.strip() for name in store.split(",")] if isinstance(store, str) else list(store)
    for name in names:
        if name not in VARIABLES:
            raise InputError(f"store names the unknown variable '{name}'{suggestion(str(name), VARIABLES)}")
    return tuple(name for name in VARIABLES if name == "t" or name in names)


def number(name: str, value: Any) -> float:
    """A finite number, or a sentence that says why not."""
    if value is None:
        raise InputError(f"{name} is missing: give a number")
    try:
        converted = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number, got {value!r}") from None
    if isinstance(value, bool) or not math.isfinite(converted):
        raise InputError(f"{name} must be a finite number, got {value!r}")
    return converted


def positive(name: str, value: Any) -> float:
    converted = number(name, value)
    if converted <= 0:
        raise InputError(f"{name} must be greater than 0, got {converted:g}")
    return converted
