"""What a run is, said once and checked before anything runs."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from livens import schemes
from livens.engine.compiled import CompiledStep, compiled_step
from livens.errors import InputError, suggestion
from livens.expressions.numbers import number, one_of, positive
from livens.models.model import Model
from livens.models.problem import Problem
from livens.models.system import System
from livens.results.provenance import provenance
from livens.results.record import Facts
from livens.run.control import StepControl
from livens.schemes.base import Scheme

TIERS = ("auto", "fused", "assembled", "reference")
#: Steps with more unknowns than this are assembled, element type by element type: one straight line of native code for
#: all of them would take minutes to compile. Whether there is such code already makes no difference, so that a run is
#: the same, bit for bit, whatever was run before.
FUSED_UNKNOWNS = 300
#: Of bodies in space, a third of that: what is written for each unknown is longer, and runs no faster than pieces do.
FUSED_FRAME_UNKNOWNS = 100
#: Elements of beams are longer still: energies through this many invariants, if there are some of them.
_LONG_ENERGY, _SOME = 4, 3
#: A step has hardly more unknowns than this for each coordinate and constraint.
_FEW = 12
#: Where nobody says how long the first step is, and nothing of the start does, it is this part of the time span.
_FIRST = 1e-6
#: More steps than this cannot be counted exactly.
_MOST_STEPS = 2**52
#: More threads than this work on one run in no case.
_MOST_THREADS = 256


@dataclass(frozen=True)
class Plan:
    """A model, a scheme and numbers that fit together: all that decides about a run.

    Whatever describes a run (arguments of `simulate`, options of the command line, scenario files, result files,
    sweeps) is read into a Plan by `of`; the defaults stand here and nowhere else.
    """

    model: Model
    scheme: Scheme
    h: float
    t_end: float
    t0: float = 0.0
    #: What the run starts from, of ``q0 v0 p0 x0 y0``.
    start: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    #: Values that replace the model's own, by name.
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    problem: Problem | None = None
    every: int = 1
    project: bool = False
    redundant: str = "error"
    control: StepControl | None = None
    tier: str = "auto"
    #: How many threads the assembled tier has; the run is the same, bit for bit.
    threads: int = 1
    store: str | Sequence[str] | None = None
    compress: bool = False
    #: Nobody said how long the first step is: h is where to begin to look for that.
    automatic: bool = False

    @classmethod
    def of(
        cls,
        model: Model | Problem,
        start: Mapping[str, Any] | None = None,
        *,
        scheme: str | Scheme | None = None,
        h: float | None = None,
        t_end: float | None = None,
        t0: float | None = None,
        parameters: Mapping[str, Any] | None = None,
        scaling: Any = None,
        fits: bool = False,
        **options: Any,
    ) -> Plan:
        """Read what a user asks for; a Problem fills in what is not given. `fits`: the scheme is known to fit."""
        problem = model if isinstance(model, Problem) else None
        given = {name: value for name, value in (start or {}).items() if value is not None}
        if problem is not None:
            given = {**problem.start_values, **given}
            scheme = scheme or problem.scheme
            t_end, t0 = problem.t_end if t_end is None else t_end, problem.t0 if t0 is None else t0
            model = problem.system
        if not isinstance(model, Model):
            raise InputError(f"simulate needs a model, such as a System, or a Problem, got {model!r}")
        chosen = schemes.get(model.usual_scheme if scheme is None else scheme)
        if not fits:
            schemes.require(chosen, model)
        if chosen.own_steps:
            chosen, options["control"] = _own_control(chosen, h, options.get("control"))
        elif problem is not None and h is None:
            h = problem.h
        if scaling is None and chosen.fictive and problem is not None:
            scaling = problem.scaling
        if scaling is not None:
            chosen = chosen.scaled(scaling)
            schemes.require(chosen, model)
        begin, end = number("t0", 0.0 if t0 is None else t0), number("t_end", t_end)
        control = options.get("control")
        if isinstance(control, StepControl) and control.estimates:
            chosen = chosen.controlled()
            schemes.require(chosen, model)
        automatic = h is None and isinstance(control, StepControl) and control.estimates
        step = _FIRST * abs(end - begin) or 1.0 if automatic else positive("h", h)
        changes = {} if parameters is None else parameters
        if not isinstance(changes, Mapping):
            raise InputError(f"parameters must map names to values, got {changes!r}")
        if problem is not None:
            changes = {**problem.parameters, **changes}
        options["automatic"] = automatic
        return cls(model, chosen, step, end, begin, given, dict(changes), problem, **options)

    def __post_init__(self) -> None:
        if self.t_end <= self.t0:
            raise InputError(f"t_end must lie after t0 = {self.t0:g}, got {self.t_end:g}")
        if self.control is None and (self.t_end - self.t0) / self.h > _MOST_STEPS:
            raise InputError(f"h = {self.h:g} is too small for a run from {self.t0:g} to {self.t_end:g}")
        if self.t0 + self.h == self.t0 or (self.control is None and self.t_end - self.h == self.t_end):
            raise InputError(
                f"h = {self.h:g} is smaller than the last digit of the times from {self.t0:g} to {self.t_end:g}: "
                "begin at t0 = 0, or take larger steps"
            )
        for name in ("project", "compress"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise InputError(f"{name} must be True or False, got {getattr(self, name)!r}")
        one_of("redundant", self.redundant, ("error", "remove", "auto"))
        every = self.every
        if isinstance(every, bool) or not isinstance(every, (int, np.integer)) or not 1 <= every <= _MOST_STEPS:
            raise InputError(f"every must be a whole number of at least 1 (and at most 2**52), got {every!r}")
        if not isinstance(self.tier, str) or self.tier not in TIERS:
            raise InputError(f"unknown tier '{self.tier}'{suggestion(str(self.tier), TIERS)}")
        threads = self.threads
        if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or not 1 <= threads <= _MOST_THREADS:
            raise InputError(
                f"threads must be a whole number of at least 1 (and at most {_MOST_THREADS}), got {threads!r}"
            )
        if self.control is not None and not isinstance(self.control, StepControl):
            raise InputError(f"control must be a livens.StepControl, got {self.control!r}")
        if self.tier in ("auto", "assembled"):
            object.__setattr__(self, "tier", _tier(self.model, self.scheme, self.tier))
        if self.control is not None:
            self.control.check(self.scheme, self.tier)

    def again(self, start: Mapping[str, Any], parameters: Mapping[str, Any] | None) -> Plan:
        """The same from another start and with other parameters: all else has been checked, and is only copied."""
        if parameters is not None and not isinstance(parameters, Mapping):
            raise InputError(f"parameters must map names to values, got {parameters!r}")
        given = {name: value for name, value in start.items() if value is not None}
        changes = {} if parameters is None else dict(parameters)
        if self.problem is not None:
            given, changes = {**self.problem.start_values, **given}, {**self.problem.parameters, **changes}
        new = object.__new__(Plan)
        new.__dict__.update(self.__dict__, start=given, parameters=changes, k=self.model.parameter_vector(changes))
        return new

    # -- what follows from it -----------------------------------------------------------------------------------------
    @functools.cached_property
    def k(self) -> np.ndarray:
        """All parameters as the compiled step reads them."""
        return self.model.parameter_vector(self.parameters)

    @property
    def equal_steps(self) -> bool:
        """Steps of physical time, all of size h: their number is known beforehand."""
        return not self.scheme.fictive and self.control is None

    @property
    def rows(self) -> int | None:
        """How many rows the run will have at most, if that is known."""
        return int((self.t_end - self.t0) / self.h / self.every) + 3 if self.equal_steps else None

    @property
    def usual_start(self) -> bool:
        """The run starts where its problem starts."""
        if self.problem is None:
            return False
        usual = self.problem.start_values
        return all(value is usual.get(name) for name, value in self.start.items())

    @property
    def title(self) -> str:
        """What a progress bar calls the run."""
        return f"{self.problem.name if self.problem else 'livens'} ({self.scheme.name})"

    def variables(self, compiled: CompiledStep) -> tuple[str, ...]:
        """What the rows of the run hold: those asked for in their usual order, and time in any case."""
        available = compiled.variables
        if self.store is None:
            return available
        if not isinstance(self.store, (str, list, tuple)):
            raise InputError(f"store must be names of variables, got {self.store!r}")
        names = [name.strip() for name in self.store.split(",")] if isinstance(self.store, str) else list(self.store)
        for name in names:
            if not isinstance(name, str) or name not in available:
                raise InputError(f"store names the unknown variable '{name}'{suggestion(str(name), available)}")
        return tuple(name for name in available if name == "t" or name in names)

    @functools.cached_property
    def shared(self) -> dict[str, Any]:
        """What is the same for all plans that follow from this one by `again`, by name.

        Results know their plans: what is kept here must not hold the compiled step, whose code would never be freed.
        """
        return {}

    # -- as a file says it --------------------------------------------------------------------------------------------
    def facts(self, compiled: CompiledStep) -> Facts:
        """What a result file keeps of the plan, with what it was compiled to."""
        key = compiled.fingerprint
        if key not in self.shared:
            self.shared[key] = self._facts(compiled)
        return self.facts_like(self.shared[key])

    def facts_like(self, known: Facts) -> Facts:
        """The same of a plan that differs only in where it starts and in parameters."""
        model, facts = self.model, object.__new__(Facts)
        # what takes longer than a short run is found out when somebody asks
        facts.__dict__.update(
            known.__dict__,
            parameters=lambda: model.parameter_values(self.parameters, self.k),
            scene=lambda: model.scene_with(self.k).plain(),
            made=lambda: provenance(self),
        )
        return facts

    def _facts(self, compiled: CompiledStep) -> Facts:
        model, problem = self.model, self.problem
        return Facts(
            scheme=self.scheme.name,
            h=self.h,
            t0=self.t0,
            t_end=self.t_end,
            every=int(self.every),
            coordinates=model.coordinates,
            constraint_names=model.constraint_names,
            parameters={},
            problem=problem.name if problem else None,
            problem_options=dict(problem.options) if problem else {},
            model=compiled.fingerprint,
            tier=self.tier,
            dropped=compiled.dropped,
            stored=self.variables(compiled),
            compress=bool(self.compress),
            bodies=model.bodies,
            algebraic=model.algebraic,
            control=dataclasses.asdict(self.control) if self.control else {},
        )

    @classmethod
    def from_facts(cls, facts: Facts, model: Model | Problem, **changes: Any) -> Plan:
        """The plan of a run that a file tells of; `changes` are for what may differ, such as a later end."""
        told: dict[str, Any] = dict(
            scheme=facts.scheme,
            h=facts.h,
            t0=facts.t0,
            t_end=facts.t_end,
            parameters=facts.parameters,
            every=facts.every,
            tier=facts.tier,
            store=facts.stored,
            compress=facts.compress,
            control=StepControl(**facts.control) if facts.control else None,
        )
        return cls.of(model, **{**told, **{name: value for name, value in changes.items() if value is not None}})


def _own_control(scheme: Scheme, h: Any, control: Any) -> tuple[Scheme, Any]:
    """A scheme that chooses its steps by itself does so unless h is given.

    By its own tolerance, or by one that is asked for, which it may suit better with another order.
    """
    if isinstance(control, StepControl) and not control.estimates:
        control.check(scheme, "fused")
    if control is None:
        return scheme, None if h is not None else StepControl(tolerance=scheme.tolerance)
    return (scheme.for_tolerance(control.usual_tolerance) if isinstance(control, StepControl) else scheme), control


def _tier(model: Model, scheme: Scheme, wanted: str) -> str:
    """The tier for a model and a scheme: by its size, unless one is wanted that can do it."""
    # with both levels of constraints unknowns are twice as many, and only one graph of all passes singular positions
    levels = "velocity_constraint" in scheme.conserves
    most = FUSED_FRAME_UNKNOWNS if _in_space(model) and not levels else FUSED_UNKNOWNS
    large = isinstance(model, System) and _FEW * (model.n + model.m) > most
    if wanted == "auto" and not large:
        return "fused"
    unknowns = compiled_step(model, scheme).equations.size_in_pieces if isinstance(model, System) else 0
    if wanted == "auto":
        return "assembled" if unknowns > (0 if _has_long_energies(model) else most) else "fused"
    if not unknowns:
        raise InputError(
            f"scheme '{scheme.name}' cannot be assembled for this model: its equations are not a sum over elements; "
            "leave the tier out"
        )
    return wanted


def _has_long_energies(model: Model) -> bool:
    """Whether one straight line of native code for all elements would be too long, however few unknowns there are."""
    if not isinstance(model, System):
        return False
    through = [element.through.get("potential") for element in model.models if element.through]
    return sum(given is not None and given.w.numel() >= _LONG_ENERGY for given in through) >= _SOME


def _in_space(model: Model) -> bool:
    return isinstance(model, System) and any(frame.turning == 3 for frame in model.frames)
