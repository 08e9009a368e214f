"""Validated description of a run."""

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
#: Largest number of unknowns of the fused tier; larger steps are assembled element type by element type. Fully unrolled
#: native code for more unknowns takes minutes to compile. The choice does not depend on the code cache, so that results
#: do not depend, bit for bit, on earlier runs.
FUSED_UNKNOWNS = 300
#: The same limit for bodies in space, whose code per unknown is longer and no faster than assembled element kernels.
FUSED_FRAME_UNKNOWNS = 100
#: Beam elements have longer code still: fewest invariants of an energy, and fewest such elements, to assemble a model.
_LONG_ENERGY, _SOME = 4, 3
#: Upper estimate of the number of unknowns of a step per coordinate and constraint.
_FEW = 12
#: Initial step size relative to the time span, if it is neither given nor can be estimated.
_FIRST = 1e-6
#: Largest number of steps that doubles count exactly.
_MOST_STEPS = 2**52
#: Largest number of threads of one run.
_MOST_THREADS = 256


@dataclass(frozen=True)
class Plan:
    """Model, scheme and options that completely define a run.

    Every description of a run (arguments of `simulate`, options of the command line, scenario files, result files,
    sweeps) is parsed into a Plan by `from_arguments`. Default values are defined here only.
    """

    model: Model
    scheme: Scheme
    h: float
    t_end: float
    t0: float = 0.0
    #: Initial values by name: ``q0 v0 p0 x0 y0``.
    start: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    #: Parameter values by name that replace the defaults of the model.
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    problem: Problem | None = None
    every: int = 1
    project: bool = False
    redundant: str = "error"
    control: StepControl | None = None
    tier: str = "auto"
    #: Number of threads of the assembled tier; results do not depend on it, bit for bit.
    threads: int = 1
    store: str | Sequence[str] | None = None
    compress: bool = False
    #: True if the initial step size is to be estimated; h is then only the fallback value.
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
        """Parse the arguments of a run; a Problem supplies defaults. `is_compatible`: skip the scheme check."""
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
                f"h = {self.h:g} is smaller than the resolution of times from {self.t0:g} to {self.t_end:g}: "
                "use t0 = 0, or larger steps"
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
        """Return a copy with other initial values and parameters; all other fields are already validated."""
        if parameters is not None and not isinstance(parameters, Mapping):
            raise InputError(f"parameters must map names to values, got {parameters!r}")
        given = {name: value for name, value in start.items() if value is not None}
        changes = {} if parameters is None else dict(parameters)
        if self.problem is not None:
            given, changes = {**self.problem.start_values, **given}, {**self.problem.parameters, **changes}
        new = object.__new__(Plan)
        new.__dict__.update(self.__dict__, start=given, parameters=changes, k=self.model.parameter_vector(changes))
        return new

    # -- derived quantities -------------------------------------------------------------------------------------------
    @functools.cached_property
    def k(self) -> np.ndarray:
        """Complete parameter vector of the compiled step."""
        return self.model.parameter_vector(self.parameters)

    @property
    def equal_steps(self) -> bool:
        """True for fixed steps in physical time, whose number is known in advance."""
        return not self.scheme.fictive and self.control is None

    @property
    def rows(self) -> int | None:
        """Largest number of output rows; None if unknown."""
        return int((self.t_end - self.t0) / self.h / self.every) + 3 if self.equal_steps else None

    @property
    def usual_start(self) -> bool:
        """True if the run has the initial values of its problem."""
        if self.problem is None:
            return False
        usual = self.problem.start_values
        return all(value is usual.get(name) for name, value in self.start.items())

    @property
    def title(self) -> str:
        """Title of the progress bar."""
        return f"{self.problem.name if self.problem else 'livens'} ({self.scheme.name})"

    def variables(self, compiled: CompiledStep) -> tuple[str, ...]:
        """Return the stored variables in their standard order; time is always stored."""
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
        """Cache shared by all plans derived from this one by `with_inputs`.

        Results refer to their plans: entries must not refer to the compiled step, whose code would never be freed.
        """
        return {}

    # -- run info in files --------------------------------------------------------------------------------------------
    def facts(self, compiled: CompiledStep) -> Facts:
        """Return the run info that is stored in result files."""
        key = compiled.fingerprint
        if key not in self.shared:
            self.shared[key] = self._facts(compiled)
        return self.facts_like(self.shared[key])

    def facts_like(self, known: Facts) -> Facts:
        """Return the run info of a plan that differs from a known one in initial values and parameters only."""
        model, facts = self.model, object.__new__(Facts)
        # evaluated lazily: these take longer than a short run
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
        """Return the plan of a stored run; `changes` replace stored values, such as a later end time."""
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
    """Return scheme and control of a Taylor scheme, which chooses its steps unless h is given.

    A given tolerance may select another order of the scheme; otherwise the scheme's tolerance is used.
    """
    if isinstance(control, StepControl) and not control.estimates:
        control.check(scheme, "fused")
    if control is None:
        return scheme, None if h is not None else StepControl(tolerance=scheme.tolerance)
    return (scheme.for_tolerance(control.usual_tolerance) if isinstance(control, StepControl) else scheme), control


def _tier(model: Model, scheme: Scheme, wanted: str) -> str:
    """Return the tier for a model and a scheme: by the number of unknowns, unless a feasible tier is requested."""
    # velocity-level constraints double the unknowns; only the fused tier passes singular configurations with them
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
            "remove tier="
        )
    return wanted


def _has_long_energies(model: Model) -> bool:
    """Return True if fully unrolled code of all elements would be too long, independent of the number of unknowns."""
    if not isinstance(model, System):
        return False
    through = [element.through.get("potential") for element in model.models if element.through]
    return sum(given is not None and given.w.numel() >= _LONG_ENERGY for given in through) >= _SOME


def _in_space(model: Model) -> bool:
    return isinstance(model, System) and any(frame.turning == 3 for frame in model.frames)
