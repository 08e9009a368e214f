"""What is to be run, checked before anything runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from livens import schemes
from livens.errors import InputError, suggestion
from livens.models.model import Model
from livens.models.problem import Problem
from livens.run.control import StepControl
from livens.schemes.base import Scheme

TIERS = ("fused", "reference")


class Task:
    """A model, a scheme and numbers that fit together."""

    def __init__(
        self, system: Model, given: Mapping[str, Any], scheme: Scheme, h: float, t0: float, t_end: float,
        k: np.ndarray, parameters: Mapping[str, Any], every: int, tier: str, problem: Problem | None,
        control: StepControl | None,
    ) -> None:  # fmt: skip
        self.system, self.given, self.scheme, self.control = system, given, scheme, control
        self.h, self.t0, self.t_end, self.k, self.every, self.tier = h, t0, t_end, k, every, tier
        self.parameters = dict(system.shared.changed(parameters).plain())
        self.problem = problem
        span = t_end - t0
        self.steps = math.floor(span / h * (1 + 1e-12) + 1e-9)
        rest = span - self.steps * h
        self.last_h = rest if rest > 1e-9 * h else 0.0

    @property
    def equal_steps(self) -> bool:
        """Steps of physical time, all of size h: their number is known beforehand."""
        return not self.scheme.fictive and self.control is None

    @property
    def usual_start(self) -> bool:
        """The run starts where its problem starts."""
        return self.problem is not None and all(
            value is _start_of(self.problem).get(name) for name, value in self.given.items()
        )

    @classmethod
    def of(
        cls, model: Model | Problem, given: Mapping[str, Any], scheme: str | Scheme | None, h: float | None,
        t_end: float | None, t0: float | None, parameters: Mapping[str, Any] | None, every: int, tier: str,
        control: StepControl | None = None, scaling: Any = None,
    ) -> Task:  # fmt: skip
        problem = model if isinstance(model, Problem) else None
        if problem is not None:
            given = {**_start_of(problem), **{name: value for name, value in given.items() if value is not None}}
            scheme, h = scheme or problem.scheme, problem.h if h is None else h
            t_end, t0 = problem.t_end if t_end is None else t_end, problem.t0 if t0 is None else t0
        elif not isinstance(model, Model):
            raise InputError(f"simulate needs a model, such as a System, or a Problem, got {model!r}")
        system = problem.system if problem is not None else model
        assert isinstance(system, Model)
        chosen = schemes.get(system.usual_scheme if scheme is None else scheme)
        schemes.require(chosen, system)
        if scaling is None and chosen.fictive and problem is not None:
            scaling = problem.scaling
        if scaling is not None:
            chosen = chosen.scaled(scaling)
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
        if control is not None and not isinstance(control, StepControl):
            raise InputError(f"control must be a livens.StepControl, got {control!r}")
        if control is not None:
            control.check(chosen, tier)
        changes = parameters or {}
        if not isinstance(changes, Mapping):
            raise InputError(f"parameters must map names to values, got {changes!r}")
        k = system.parameter_vector(changes)
        return cls(system, given, chosen, step, start, end, k, changes, int(every), tier, problem, control)


def _start_of(problem: Problem) -> dict[str, Any]:
    if problem.start:
        return dict(problem.start)
    return {"q0": problem.q0, "v0": problem.v0}


def chosen_variables(store: Any, available: Sequence[str]) -> tuple[str, ...]:
    """Those of the available variables to store, in their usual order; time is always one of them."""
    if store is None:
        return tuple(available)
    names = [name.strip() for name in store.split(",")] if isinstance(store, str) else list(store)
    for name in names:
        if name not in available:
            raise InputError(f"store names the unknown variable '{name}'{suggestion(str(name), available)}")
    return tuple(name for name in available if name == "t" or name in names)


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
