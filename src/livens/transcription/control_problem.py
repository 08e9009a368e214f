"""Optimal control problem: validated arguments of `optimal_control`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from livens import schemes
from livens.errors import InputError
from livens.models.base import InitialState, Model
from livens.models.descriptor import DescriptorModel
from livens.models.problem import Problem
from livens.models.system import System
from livens.multibody.multibody import Multibody
from livens.schemes.core.scheme import Scheme
from livens.transcription.step_inputs import (
    DecisionParameter,
    InputShape,
    PolynomialInputs,
    decision_parameter,
    input_shape,
    stage_nodes,
)
from livens.types import ModelFunction
from livens.validation import check_array, check_integer, check_number

#: Objectives by name; all other objectives are functions.
OBJECTIVES = ("effort", "time", "supplied")
#: Largest number of steps.
MAX_STEPS = 100_000


@dataclass(frozen=True, eq=False)
class ControlProblem:
    """Optimal control problem on a model in a scheme, before its transcription."""

    model: Model  # original model; `polynomial_inputs.model` is the model of the step equations
    scheme: Scheme
    polynomial_inputs: PolynomialInputs
    free: tuple[DecisionParameter, ...]
    t0: float
    duration: tuple[float, float]  # shortest and longest duration
    start: Mapping[str, object]  # conditions at the start, with q0, v0 or x0
    end: Mapping[str, object]
    along: Mapping[str, object]
    periodic: bool | ModelFunction
    objectives: tuple[tuple[str | ModelFunction, float], ...]
    final: ModelFunction | None
    parameters: Mapping[str, object]
    k: np.ndarray  # parameter vector of the original model
    reference: InitialState  # consistent state at or near the start
    problem: Problem | None = None
    statistics: dict[str, float] = field(default_factory=dict)

    @property
    def step_model(self) -> Model:
        """Model of the step equations, with inputs as polynomials within a step."""
        return self.polynomial_inputs.model

    @property
    def inputs(self) -> tuple[DecisionParameter, ...]:
        return self.polynomial_inputs.inputs

    @property
    def shape(self) -> InputShape:
        return self.polynomial_inputs.shape

    @property
    def has_free_duration(self) -> bool:
        return self.duration[0] != self.duration[1]

    @property
    def given_start(self) -> dict[str, np.ndarray]:
        """Initial values that the start prescribes completely, by argument name."""
        names = ("q0", "v0") if isinstance(self.model, System) else ("x0", "y0")
        return {name: np.asarray(self.start[name], dtype=float) for name in names if name in self.start}

    def end_values(self, name: str) -> np.ndarray:
        """Return the entries of ``q``, ``v`` or ``x`` that conditions at the end prescribe; NaN for other entries."""
        coordinates = self.model.coordinates
        values = np.full(len(coordinates), np.nan)
        requested = self.end.get(name)
        items = np.asarray(requested, dtype=object)
        # a tuple with the name of a coordinate is a pair of bounds
        is_vector = items.ndim == 1 and not (name in coordinates and isinstance(requested, tuple))
        for i, coordinate in enumerate(coordinates):
            own_name = f"v_{coordinate}" if name == "v" else coordinate
            target = items[i] if is_vector and i < len(items) else self.end.get(own_name)
            if isinstance(target, (int, float, np.number)):
                values[i] = float(target)
        return values

    @property
    def has_fixed_start(self) -> bool:
        """True if the initial state is a constant of the program."""
        needed = {"q0", "v0"} if isinstance(self.model, System) else {"x0"}
        return needed <= self.start.keys() and not self.periodic and not self.free


def control_problem(
    model: Model | Multibody | Problem,
    *,
    inputs: Mapping[str, object],
    t_end: float | tuple[float, float],
    scheme: str | Scheme | None,
    start: Mapping[str, object] | None,
    end: Mapping[str, object] | None,
    along: Mapping[str, object] | None,
    periodic: bool | ModelFunction | None,
    minimise: object,
    final: ModelFunction | None,
    free: Mapping[str, object] | None,
    parameters: Mapping[str, object] | None,
    shape: str | None,
    guess: object,
    t0: float,
) -> ControlProblem:
    """Return the validated problem; arguments as of `optimal_control`."""
    problem = model if isinstance(model, Problem) else None
    if parameters is not None and not isinstance(parameters, Mapping):
        raise InputError(f"parameters must map names to values, got {parameters!r}")
    start_values, changes = dict[str, object](), dict(parameters or {})
    if isinstance(model, Multibody):
        mechanism = model
        model = mechanism.system
        start_values = dict(zip(("q0", "v0"), mechanism.initial_state, strict=True))
    elif problem is not None:
        start_values, changes = problem.start_values, {**problem.parameters, **changes}
        model = problem.model
    if not isinstance(model, Model):
        raise InputError(f"optimal_control needs a model, a Multibody or a Problem, got {model!r}")
    _check_transcribable_model(model)
    for name, argument in (("inputs", inputs), ("start", start), ("end", end), ("along", along), ("free", free)):
        if argument is not None and not isinstance(argument, Mapping):
            raise InputError(f"{name} must map names to values, got {argument!r}")
    begin = check_number("t0", t0)
    duration = _duration(t_end, begin)
    for name, value in (("final", final), ("periodic", periodic)):
        if not (value is None or callable(value) or (name == "periodic" and isinstance(value, bool))):
            allowed = "True, or a function (q, v) -> (q, v)" if name == "periodic" else "a function of the last state"
            raise InputError(f"{name} must be {allowed}, got {value!r}")
    chosen = schemes.get(scheme if scheme is not None else default_scheme(model, bool(periodic)))
    decided = [decision_parameter(model, "inputs", name, bounds) for name, bounds in inputs.items()]
    released = tuple(decision_parameter(model, "free", name, bounds) for name, bounds in (free or {}).items())
    names = [parameter.name for parameter in (*decided, *released)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"'{twice}' is in inputs and in free: an input is found per step, a free parameter once")
    shape_name = default_shape(chosen, model) if shape is None else shape
    polynomial_inputs = PolynomialInputs(model, decided, input_shape(shape_name, chosen))
    schemes.check_compatible(chosen, polynomial_inputs.model)
    _check_transcribable_scheme(chosen)
    k = model.parameter_vector(changes)
    own_start = dict(start) if start is not None else ({} if periodic else dict(start_values))
    own_start = {name: value for name, value in own_start.items() if value is not None}
    is_complete = ({"q0", "v0"} if isinstance(model, System) else {"x0"}) <= own_start.keys()
    if not (decided or released or duration[0] != duration[1] or not is_complete or periodic):
        raise InputError("nothing can be optimised: inputs are empty, and start, t_end and parameters are fixed")
    reference_values = _reference_values(model, {**start_values, **_only_initial(own_start)}, guess)
    reference = model.initial_state(reference_values, k, begin, start is None or not is_complete, "auto")
    objectives = _objectives(minimise)
    conditions = end or along or final or periodic or own_start.keys() - {"q0", "v0", "x0", "y0"}
    if not conditions and all(objective in ("effort", "time") for objective, _ in objectives):
        raise InputError(
            "conditions are missing, and the objective does not depend on the motion: give end, along, periodic, final "
            "or an objective of the motion"
        )
    _check_contradictions(model, end or {}, along or {})
    return ControlProblem(
        model, chosen, polynomial_inputs, released, begin, duration, own_start, dict(end or {}), dict(along or {}),
        periodic if periodic is not None else False, objectives, final, changes, k, reference, problem,
    )  # fmt: skip


def default_scheme(model: Model, periodic: bool) -> str:
    """Return the default scheme of an optimal control problem.

    ``livens-variational`` fulfils constraints on both levels, so that periodic problems close; bodies with frames
    have ``lie-em``, or ``lie-ggl`` if the motion is periodic. Other models have their default scheme.
    """
    if isinstance(model, System) and model.frames:
        return "lie-ggl" if periodic else "lie-em"
    if isinstance(model, System) and not schemes.get("livens-variational").unmet_requirements(model):
        return "livens-variational"
    return model.default_scheme


def default_shape(scheme: Scheme, model: Model) -> str:
    """Return the shape of inputs with which a scheme has its full order."""
    if isinstance(model, System) and (model.frames or model.has_velocity_constraints):
        return "constant"
    nodes, _ = stage_nodes(scheme)
    if len(nodes) == 1 or len(np.unique(nodes)) < len(nodes):
        return "constant"
    return "linear" if nodes[0] == 0.0 and nodes[-1] == 1.0 else "stages"


def mesh_fractions(steps: int, mesh: Sequence[float] | None) -> np.ndarray:
    """Return the step sizes relative to the duration."""
    if mesh is None:
        count = check_integer("steps", steps, 1, MAX_STEPS)
        return np.full(count, 1.0 / count)
    fractions = check_array("mesh", mesh, description="positive relative lengths of the steps").ravel()
    if not fractions.size or np.any(fractions <= 0):
        raise InputError("mesh must be positive relative lengths of the steps")
    return np.asarray(fractions / fractions.sum())


def _duration(t_end: float | tuple[float, float], t0: float) -> tuple[float, float]:
    if isinstance(t_end, (tuple, list)):
        if len(t_end) != 2:
            raise InputError(f"t_end must be a time or a pair (earliest, latest), got {t_end!r}")
        low, high = check_number("t_end", t_end[0]) - t0, check_number("t_end", t_end[1]) - t0
    else:
        low = high = check_number("t_end", t_end) - t0
    if not 0 < low <= high:
        raise InputError(f"t_end must lie after t0 = {t0:g}, as a time or a pair (earliest, latest), got {t_end!r}")
    return low, high


def _objectives(minimise: object) -> tuple[tuple[str | ModelFunction, float], ...]:
    if minimise is None:
        return ()
    if isinstance(minimise, Mapping):
        pairs = list(minimise.items())
    elif isinstance(minimise, (list, tuple)) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in minimise):
        pairs = list(minimise)
    else:
        pairs = [(minimise, 1.0)]
    for objective, _ in pairs:
        if not callable(objective) and objective not in OBJECTIVES:
            raise InputError(
                f"minimise must be {', '.join(map(repr, OBJECTIVES))}, a function of the motion, "
                f"or a mapping of these to weights, got {objective!r}"
            )
    return tuple((objective, check_number("a weight in minimise", weight)) for objective, weight in pairs)


def _check_contradictions(model: Model, end: Mapping[str, object], along: Mapping[str, object]) -> None:
    """Raise InputError if values at the end are outside of their bounds along the motion."""
    targets = dict(end)
    for vector, prefix in (("q", ""), ("x", ""), ("v", "v_")):
        items = np.atleast_1d(np.asarray(end.get(vector), dtype=object))
        if vector in end and vector not in model.coordinates and len(items) == len(model.coordinates):
            targets |= {f"{prefix}{name}": item for name, item in zip(model.coordinates, items, strict=True)}
    for name in targets.keys() & along.keys():
        sides = [_plain_bounds(conditions[name]) for conditions in (targets, along)]
        if None in sides:
            continue
        (end_low, end_high), (low, high) = sides  # type: ignore[misc]  # None is excluded
        if end_low > high or end_high < low:
            raise InputError(
                f"'{name}' cannot be {targets[name]} at the end and {along[name]} along the motion: the bounds "
                "contradict each other"
            )


def _plain_bounds(value: object) -> tuple[float, float] | None:
    """Return the bounds of a condition on one number; None for other conditions."""
    pair: tuple[Any, Any] = value if isinstance(value, tuple) and len(value) == 2 else (value, value)
    if not all(item is None or isinstance(item, (int, float, np.number)) for item in pair):
        return None
    low, high = pair
    return -np.inf if low is None else float(low), np.inf if high is None else float(high)


def _only_initial(start: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in start.items() if name in ("q0", "v0", "x0", "y0") and value is not None}


def _reference_values(model: Model, values: Mapping[str, object], guess: object) -> dict[str, object]:
    """Return initial values at or near the start; of a guess, if the start has none."""
    initial_values = {name: value for name, value in values.items() if value is not None}
    part = "q" if isinstance(model, System) else "x"
    if f"{part}0" not in initial_values:
        rows = None
        if isinstance(guess, Mapping):
            rows = guess.get(part)
        elif guess is not None:
            rows = getattr(guess, part, None)
        if rows is None:
            raise InputError(f"the position of the start is unknown: give {part}0 in start, or a guess of {part}")
        initial_values[f"{part}0"] = np.asarray(rows, dtype=float).reshape(len(rows), -1)[0]
    if part == "q" and "v0" not in initial_values:
        initial_values["v0"] = np.zeros(model.n if isinstance(model, System) else 0)
    return initial_values


def _check_transcribable_model(model: Model) -> None:
    if not isinstance(model, (System, DescriptorModel)):
        raise InputError(
            f"optimal_control supports System, Multibody, PortHamiltonian and FirstOrder, not a {model.type_label}"
        )
    if isinstance(model, System):
        if model.external_force is not None:
            raise InputError("an external (compiled) force has no second derivatives: optimal_control cannot use it")
        if model.model_events:
            raise InputError(
                "stops with restitution and rigid contacts change the motion at events, which optimal_control cannot "
                "transcribe: use stops without restitution, or bounds of the joint in along"
            )
        if model.control_indices:
            raise InputError(
                "optimal_control finds the inputs itself: remove the sampled controllers, or replace them by motors "
                "with a parameter"
            )


def _check_transcribable_scheme(scheme: Scheme) -> None:
    if scheme.fictive or scheme.selects_step_size:
        raise InputError(
            f"scheme '{scheme.name}' chooses its steps and cannot be transcribed: use a scheme with fixed steps, such "
            "as livens-variational or gauss-3"
        )
