"""Validated description of a run."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from livens import schemes
from livens.engine.compiled_step import CompiledStep, compiled_step
from livens.errors import InputError, suggestion
from livens.models.base import Model
from livens.models.problem import Problem
from livens.models.system import System
from livens.results.provenance import provenance
from livens.results.record import RunInfo
from livens.run.schedule import Feedback, Schedule
from livens.run.step_control import PerVariable, StepControl
from livens.schemes.core.scheme import Scheme
from livens.schemes.scaling import Scaling
from livens.schemes.scaling.named import named_scaling
from livens.types import ArrayLike
from livens.validation import check_choice, check_number, check_positive

if TYPE_CHECKING:
    from livens.multibody.spanning_tree import SpanningTree

TIERS = ("auto", "tree", "fused", "assembled", "reference")
#: Largest number of unknowns of the fused tier; larger steps are assembled element type by element type. Fully unrolled
#: native code for more unknowns takes minutes to compile. The choice does not depend on the code cache, so that results
#: do not depend, bit for bit, on earlier runs.
FUSED_UNKNOWNS = 300
#: The same limit for bodies in space, whose code per unknown is longer and no faster than assembled element kernels.
FUSED_FRAME_UNKNOWNS = 100
#: Fewest bodies of the tree tier. One or two bodies take less time in a single call of fully unrolled code.
MIN_TREE_BODIES = 3
#: Operations per iteration: of a body of a tree, and of a body and one column of the Schur complement of closures.
#: The assembled tier takes about twenty times as long as the tree tier for a body: it is preferred if the closures take
#: longer than ten times as long as the tree.
_TREE_OPERATIONS, _COLUMN_OPERATIONS, _MAX_CLOSURE_SHARE = 1300, 200, 10
#: Degrees of freedom of a free body, and largest share of them that is left to the bodies of a tree with closures.
_FREE_BODY_DOF, _MAX_FREEDOM_SHARE = 6, 0.5
#: Beam elements have longer code still: fewest invariants of an energy, and fewest such elements, to assemble a model.
_MIN_INVARIANTS, _MIN_LARGE_ELEMENTS = 4, 3
#: Upper estimate of the number of unknowns of a step per coordinate and constraint.
_UNKNOWNS_PER_COORDINATE = 12
#: Initial step size relative to the time span, if it is neither given nor can be estimated.
_INITIAL_H_FRACTION = 1e-6
#: Tolerance of runs of mechanical systems without a step size.
DEFAULT_TOLERANCE = 1e-4
#: Largest number of steps that doubles count exactly.
_MAX_STEPS = 2**52
#: Largest number of threads of one run.
_MAX_THREADS = 256


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
    #: Inputs over time; the inputs at t0 are part of the parameters.
    inputs: Schedule | Feedback | None = None
    #: True if the initial step size is to be estimated; h is then only the fallback value.
    estimate_h0: bool = False

    @classmethod
    def from_arguments(
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
        tolerance: PerVariable | None = None,
        adaptive: str | None = None,
        is_compatible: bool = False,
        **options: Any,
    ) -> Plan:
        """Parse the arguments of a run; a Problem supplies defaults. `is_compatible`: skip the scheme check."""
        problem = model if isinstance(model, Problem) else None
        initial_values = {name: value for name, value in (start or {}).items() if value is not None}
        if problem is not None:
            initial_values = {**problem.start_values, **initial_values}
            scheme = scheme or problem.scheme
            t_end, t0 = problem.t_end if t_end is None else t_end, problem.t0 if t0 is None else t0
            model = problem.model
        if not isinstance(model, Model):
            raise InputError(f"simulate needs a model, such as a System, or a Problem, got {model!r}")
        chosen_scheme = schemes.get(model.default_scheme if scheme is None else scheme)
        chosen_scheme = adaptive_scheme(chosen_scheme, adaptive, tolerance, options.get("control"))
        if not is_compatible:
            schemes.check_compatible(chosen_scheme, model)
        options["control"] = control = control_with_tolerance(options.get("control"), tolerance)
        has_default_h = problem is not None and problem.h is not None
        if h is None and control is None and not has_default_h and chosen_scheme.estimates_error_by_doubling:
            options["control"] = control = StepControl(tolerance=DEFAULT_TOLERANCE)
        is_doubling = chosen_scheme.estimates_error_by_doubling and isinstance(control, StepControl)
        is_doubling = is_doubling and control.has_tolerance
        if chosen_scheme.selects_step_size:
            chosen_scheme, options["control"] = _taylor_control(chosen_scheme, h, options.get("control"))
        elif problem is not None and h is None and not is_doubling:
            h = problem.h
        if scaling is None and chosen_scheme.fictive and problem is not None:
            scaling = problem.scaling
        if scaling is not None:
            chosen_scheme = scaled_scheme(chosen_scheme, scaling)
            schemes.check_compatible(chosen_scheme, model)
        begin, end = check_number("t0", 0.0 if t0 is None else t0), check_number("t_end", t_end)
        control = options.get("control")
        if isinstance(control, StepControl) and control.has_tolerance:
            chosen_scheme = chosen_scheme.with_error_control()
            schemes.check_compatible(chosen_scheme, model)
        estimate_h0 = h is None and isinstance(control, StepControl) and control.has_tolerance
        if h is None and not estimate_h0:
            raise InputError(_missing_h(chosen_scheme))
        step = _INITIAL_H_FRACTION * abs(end - begin) or 1.0 if estimate_h0 else check_positive("h", h)
        changes = {} if parameters is None else parameters
        if not isinstance(changes, Mapping):
            raise InputError(f"parameters must map names to values, got {changes!r}")
        if problem is not None:
            changes = {**problem.parameters, **changes}
        schedule = options["inputs"] = Schedule.of(options.get("inputs"))
        if schedule is not None:
            changes = {**changes, **schedule.first_values()}
        options["estimate_h0"] = estimate_h0
        plan = cls(model, chosen_scheme, step, end, begin, initial_values, dict(changes), problem, **options)
        model.check_parameters(plan.parameters, plan.k)
        return plan

    def __post_init__(self) -> None:
        if self.t_end <= self.t0:
            raise InputError(f"t_end must lie after t0 = {self.t0:g}, got {self.t_end:g}")
        if self.control is None and (self.t_end - self.t0) / self.h > _MAX_STEPS:
            raise InputError(f"h = {self.h:g} is too small for a run from {self.t0:g} to {self.t_end:g}")
        if self.t0 + self.h == self.t0 or (self.control is None and self.t_end - self.h == self.t_end):
            raise InputError(
                f"h = {self.h:g} is smaller than the resolution of times from {self.t0:g} to {self.t_end:g}: "
                "use t0 = 0, or larger steps"
            )
        for name in ("project", "compress"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise InputError(f"{name} must be True or False, got {getattr(self, name)!r}")
        check_choice("redundant", self.redundant, ("error", "remove", "auto"))
        every = self.every
        if isinstance(every, bool) or not isinstance(every, (int, np.integer)) or not 1 <= every <= _MAX_STEPS:
            raise InputError(f"every must be a whole number of at least 1 (and at most 2**52), got {every!r}")
        if not isinstance(self.tier, str) or self.tier not in TIERS:
            raise InputError(f"unknown tier '{self.tier}'{suggestion(str(self.tier), TIERS)}")
        threads = self.threads
        if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)) or not 1 <= threads <= _MAX_THREADS:
            raise InputError(
                f"threads must be a whole number of at least 1 (and at most {_MAX_THREADS}), got {threads!r}"
            )
        if self.control is not None and not isinstance(self.control, StepControl):
            raise InputError(f"control must be a livens.StepControl, got {self.control!r}")
        if self.tier in ("auto", "tree", "assembled"):
            object.__setattr__(self, "tier", _choose_tier(self.model, self.scheme, self.tier, self.has_fixed_steps))
        if self.control is not None:
            self.control.validate(self.scheme, self.tier)

    def with_inputs(self, start: Mapping[str, object], parameters: Mapping[str, ArrayLike] | None) -> Plan:
        """Return a copy with other initial values and parameters; all other fields are already validated."""
        if parameters is not None and not isinstance(parameters, Mapping):
            raise InputError(f"parameters must map names to values, got {parameters!r}")
        initial_values = {name: value for name, value in start.items() if value is not None}
        changes = {} if parameters is None else dict(parameters)
        if self.problem is not None:
            initial_values, changes = (
                {**self.problem.start_values, **initial_values},
                {**self.problem.parameters, **changes},
            )
        k = self.model.parameter_vector(changes)
        self.model.check_parameters(changes, k)
        plan = object.__new__(Plan)
        plan.__dict__.update(
            self.__dict__,
            start=initial_values,
            parameters=changes,
            k=k,
            cache=self.cache,
        )
        return plan

    def with_step_size(self, h: float) -> Plan:
        """Return a copy with another initial step size; all other fields are already validated."""
        plan = object.__new__(Plan)
        plan.__dict__.update(self.__dict__, h=h, cache=self.cache)
        return plan

    # -- derived quantities -------------------------------------------------------------------------------------------
    @functools.cached_property
    def k(self) -> np.ndarray:
        """Complete parameter vector of the compiled step."""
        return self.model.parameter_vector(self.parameters)

    @property
    def has_fixed_steps(self) -> bool:
        """True for fixed steps in physical time, whose number is known in advance."""
        return not self.scheme.fictive and self.control is None

    @property
    def scaling_text(self) -> str:
        """Call of the scaling function of the scheme; empty without one, or if it is user-defined."""
        scaling = getattr(self.scheme, "scaling", None)
        return scaling.call_text if isinstance(scaling, Scaling) else ""

    @property
    def max_rows(self) -> int | None:
        """Largest number of output rows; None if unknown."""
        return int((self.t_end - self.t0) / self.h / self.every) + 3 if self.has_fixed_steps else None

    @property
    def has_default_start(self) -> bool:
        """True if the run has the initial values of its problem."""
        if self.problem is None:
            return False
        defaults = self.problem.start_values
        return all(value is defaults.get(name) for name, value in self.start.items())

    @property
    def title(self) -> str:
        """Title of the progress bar."""
        return f"{self.problem.name if self.problem else self.model.name or 'livens'} ({self.scheme.name})"

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
    def cache(self) -> dict[Hashable, Any]:
        """Cache shared by all plans derived from this one by `with_inputs` and `with_step_size`.

        Results refer to their plans: entries must not refer to the compiled step, whose code would never be freed.
        """
        return {}

    # -- run info in files --------------------------------------------------------------------------------------------
    def run_info(self, compiled: CompiledStep) -> RunInfo:
        """Return the run info that is stored in result files."""
        key = "run info", compiled.removed_constraints, self.h
        if key not in self.cache:
            self.cache[key] = self._run_info(compiled)
        return self.run_info_like(self.cache[key])

    def run_info_like(self, template: RunInfo) -> RunInfo:
        """Return the run info of a plan that differs from a known one in initial values and parameters only."""
        model, info = self.model, object.__new__(RunInfo)
        # evaluated lazily: these take longer than a short run
        info.__dict__.update(
            template.__dict__,
            parameters=lambda: model.stored_parameters(self.parameters, self.k),
            scene=lambda: model.scene_for(self.k).to_json(),
            made=lambda: provenance(self),
        )
        return info

    def _run_info(self, compiled: CompiledStep) -> RunInfo:
        model, problem = self.model, self.problem
        info = RunInfo(
            scheme=self.scheme.name,
            h=self.h,
            t0=self.t0,
            t_end=self.t_end,
            every=int(self.every),
            coordinates=model.coordinates,
            constraint_names=model.constraint_names,
            parameters={},
            problem=problem.name if problem else None,
            problem_options=dict(problem.factory_options) if problem else {},
            tier=self.tier,
            tier_reason=self._tier_reason(compiled),
            dropped=compiled.removed_constraints,
            stored=self.variables(compiled),
            compress=bool(self.compress),
            bodies=model.bodies,
            algebraic=model.algebraic_names,
            control=dataclasses.asdict(self.control) if self.control else {},
            name=model.name,
            scaling=self.scaling_text,
        )
        info.__dict__["model"] = compiled.lazy_fingerprint if self.tier == "tree" else compiled.fingerprint
        return info

    def _tier_reason(self, compiled: CompiledStep) -> str:
        """Return the reason for the tier of the run."""
        if self.tier == "tree":
            tree = compiled.tree_or_reason
            assert not isinstance(tree, str)
            n_bodies, n_dof = len(tree.joints), tree.n_dof
            if not tree.closures:
                return f"{n_bodies} bodies form a tree with {n_dof} degrees of freedom, which are the unknowns"
            return (
                f"{n_bodies} bodies form a tree with {n_dof} joint coordinates, which are the unknowns with "
                f"{tree.n_multipliers} multiplier{'s'[: tree.n_multipliers != 1]} of {_closures(tree)}"
            )
        if not self.scheme.steps_on_trees or not isinstance(self.model, System) or not self.model.frames:
            return ""
        tree = compiled.tree_or_reason
        if isinstance(tree, str):
            return f"no tree tier: {tree}"
        if not self.has_fixed_steps and self.tier == "fused":
            return "no tree tier: step sizes are adaptive, and the model has few unknowns"
        if len(tree.joints) < MIN_TREE_BODIES:
            return "no tree tier: fewer than three bodies"
        if not _has_3d_frames(self.model):
            return "no tree tier: in the plane, a body takes as much time in the other tiers"
        if not tree.closures:
            return ""
        other = "too many to eliminate" if self.tier == "assembled" else "and the model has few unknowns"
        return f"no tree tier: {_closures(tree)}, {other}"

    def settle_tier(self, compiled: CompiledStep) -> None:
        """Replace the tree tier by another one if redundant constraints were removed from joints of the tree."""
        if self.tier == "tree" and isinstance(compiled.tree_or_reason, str):
            object.__setattr__(
                self, "tier", _choose_tier(self.model, self.scheme, "auto", has_fixed_steps=False, may_use_tree=False)
            )

    @classmethod
    def from_run_info(cls, info: RunInfo, model: Model | Problem, **changes: object) -> Plan:
        """Return the plan of a stored run; `changes` replace stored values, such as a later end time."""
        arguments: dict[str, Any] = dict(
            scheme=info.scheme,
            h=info.h,
            t0=info.t0,
            t_end=info.t_end,
            parameters=info.parameters,
            every=info.every,
            tier=info.tier,
            store=info.stored,
            compress=info.compress,
            scaling=info.scaling or None,
            control=StepControl(**info.control) if info.control else None,
        )
        return cls.from_arguments(
            model, **{**arguments, **{name: value for name, value in changes.items() if value is not None}}
        )


def adaptive_scheme(scheme: Scheme, adaptive: str | None, tolerance: PerVariable | None, control: object) -> Scheme:
    """Return the scheme with reversible adaptive steps, whose sizes follow a scaling function; itself without them."""
    if adaptive is None:
        return scheme
    check_choice("adaptive", adaptive, ("reversible",))
    if tolerance is not None or control is not None:
        raise InputError(
            'adaptive="reversible" takes steps h times a scaling function: remove tolerance= and control=, and give '
            "h= and scaling="
        )
    return scheme if scheme.fictive else schemes.get(f"step-density:{scheme.name}")


def scaled_scheme(scheme: Scheme, scaling: object) -> Scheme:
    """Return the scheme with a scaling function, or with the scaling of a text such as ``"speed(1.0)"``."""
    return scheme.with_scaling(named_scaling(scaling) if isinstance(scaling, str) else scaling)


def _missing_h(scheme: Scheme) -> str:
    """Return the message for a run without a step size."""
    message = "h is missing: give a number, the step size in seconds"
    return f"{message}, or tolerance=1e-6 for adaptive steps" if scheme.error_order and not scheme.fictive else message


def control_with_tolerance(control: object, tolerance: PerVariable | None) -> Any:
    """Return the step-size control with the tolerance of a run; None without both."""
    if tolerance is None:
        return control
    if control is None:
        return StepControl(tolerance=tolerance)
    if not isinstance(control, StepControl) or control.has_tolerance:
        raise InputError(f"give the tolerance once: tolerance={tolerance!r}, or control=StepControl(tolerance=...)")
    return dataclasses.replace(control, tolerance=tolerance)


def _taylor_control(scheme: Scheme, h: float | None, control: StepControl | None) -> tuple[Scheme, Any]:
    """Return scheme and control of a Taylor scheme, which chooses its steps unless h is given.

    A given tolerance may select another order of the scheme; otherwise the scheme's tolerance is used.
    """
    if isinstance(control, StepControl) and not control.has_tolerance:
        control.validate(scheme, "fused")
    if control is None:
        return scheme, None if h is not None else StepControl(tolerance=scheme.tolerance)
    return (scheme.for_tolerance(control.default_rtol) if isinstance(control, StepControl) else scheme), control


def _choose_tier(model: Model, scheme: Scheme, requested: str, has_fixed_steps: bool, may_use_tree: bool = True) -> str:
    """Return the tier for a model and a scheme: by the number of unknowns, unless a feasible tier is requested.

    The choice does not depend on the length of the run: single steps, runs and continued runs agree bit for bit. Small
    models with closures are fused: near singular positions, closures on trees keep fewer digits. Small models with
    adaptive steps are fused too: their step sizes are chosen in compiled code.
    """
    if requested == "tree":
        reason = compiled_step(model, scheme).tree_or_reason
        if isinstance(reason, str):
            raise InputError(f"the model cannot be stepped on a tree: {reason}; remove tier='tree'")
        return requested
    # velocity-level constraints double the unknowns; only the fused tier passes singular configurations with them
    has_velocity_level = "velocity_constraint" in scheme.conserves
    max_unknowns = FUSED_FRAME_UNKNOWNS if _has_3d_frames(model) and not has_velocity_level else FUSED_UNKNOWNS
    large = _UNKNOWNS_PER_COORDINATE * model.assembly_size > max_unknowns
    tree = _tree_of(model, scheme) if may_use_tree and requested == "auto" and (has_fixed_steps or large) else None
    if tree is not None and has_fixed_steps and not tree.closures:
        return "tree"
    if requested == "auto" and not large:
        return "fused"
    unknowns = compiled_step(model, scheme).equations.n_assembled_unknowns if model.assembly_size else 0
    if requested == "auto":
        is_fused = unknowns <= (0 if _has_large_element_graphs(model) else max_unknowns)
        return "fused" if is_fused else "tree" if tree is not None and _is_mostly_a_tree(tree) else "assembled"
    if not unknowns:
        raise InputError(
            f"scheme '{scheme.name}' cannot be assembled for this model: its equations are not a sum over elements; "
            "remove tier="
        )
    return requested


def _tree_of(model: Model, scheme: Scheme) -> SpanningTree | None:
    """Return the spanning tree if the tree tier applies and the model has enough bodies."""
    if not scheme.steps_on_trees or not isinstance(model, System) or len(model.frames) < MIN_TREE_BODIES:
        return None
    if not _has_3d_frames(model):  # in the plane, a body takes as much time in the other tiers
        return None
    tree = compiled_step(model, scheme).tree_or_reason
    return None if isinstance(tree, str) else tree


def _is_mostly_a_tree(tree: SpanningTree) -> bool:
    """Return True if joints restrict most bodies, and closures take few operations compared with those of the tree.

    The bodies of a beam have no joints: the tree has as many unknowns as free bodies.
    """
    n_bodies, n_columns = len(tree.joints), tree.n_closure_columns
    closures = n_columns * n_bodies * _COLUMN_OPERATIONS + n_columns**3 / 2
    is_jointed = tree.n_dof <= _MAX_FREEDOM_SHARE * _FREE_BODY_DOF * n_bodies
    return is_jointed and closures <= _MAX_CLOSURE_SHARE * n_bodies * _TREE_OPERATIONS


def _closures(tree: SpanningTree) -> str:
    n_closures = len(tree.closures)
    return f"{n_closures} element{'s'[: n_closures != 1]} that connect{'s'[: n_closures == 1]} bodies across the tree"


def _has_large_element_graphs(model: Model) -> bool:
    """Return True if fully unrolled code of all elements would be too long, independent of the number of unknowns."""
    if not isinstance(model, System):
        return False
    energies = [element.invariant_forms.get("potential") for element in model.element_types if element.invariant_forms]
    return sum(energy is not None and energy.w.numel() >= _MIN_INVARIANTS for energy in energies) >= _MIN_LARGE_ELEMENTS


def _has_3d_frames(model: Model) -> bool:
    return isinstance(model, System) and any(frame.n_rot == 3 for frame in model.frames)
