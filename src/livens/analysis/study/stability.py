"""Stability of motions: Lyapunov exponents, and monodromy matrix and Floquet multipliers of periodic orbits."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
import scipy.linalg

from livens.analysis.study.design_variables import as_prepared
from livens.engine.compiled_step import CompiledStep
from livens.engine.stepper import IntegratorState
from livens.errors import InputError, IntegrationError, explain_call_errors
from livens.models.base import InitialState, Model
from livens.models.equations_of_motion import equations_of_motion
from livens.models.problem import Problem
from livens.models.system import System
from livens.run.derivatives.gradient import record_run, unsupported_reason
from livens.run.derivatives.initial_state import InitialStateDerivatives, InputTangent
from livens.run.derivatives.member_map import make_plan
from livens.run.derivatives.tape import Segment, Tape, record_segment
from livens.run.plan import Plan
from livens.run.prepare import Prepared
from livens.run.progress import Progress
from livens.run.startup import compile_and_start, start_integration
from livens.schemes.core.scheme import Scheme
from livens.types import ArrayLike
from livens.validation import check_integer, check_nonnegative, check_number, check_positive

if TYPE_CHECKING:
    from livens.expressions.state_layout import Layout


#: Ratio of singular values below which a direction is normal to the constraints.
_TANGENT_TOLERANCE = 1e-8


# -- directions -------------------------------------------------------------------------------------------------------
class _TangentSpace:
    """Tangent space of the initial state: independent changes of the initial values as changes of the state."""

    def __init__(self, plan: Plan, initial_sensitivity: InitialStateDerivatives) -> None:
        self._initial_sensitivity, self._k = initial_sensitivity, plan.k.size
        n = len(plan.model.coordinates)
        self.names, self.size = initial_sensitivity.input_names, n * len(initial_sensitivity.input_names)
        self.state_directions = np.array(
            [self.to_state(unit) for unit in np.eye(self.size)]
        )  # (direction, entry of the state)

    def shift(self, direction: np.ndarray) -> InputTangent:
        parts = np.split(direction, len(self.names))
        return InputTangent(dict(zip(self.names, parts, strict=True)), np.zeros(self._k))

    def to_state(self, direction: np.ndarray) -> np.ndarray:
        return self._initial_sensitivity.jvp(self.shift(direction))

    def columns(self, layout: Layout) -> np.ndarray:
        """Return the indices of the state entries in which deviations are measured: the initial values."""
        parts = [np.arange(layout.size)[layout[name.removesuffix("0")]] for name in self.names]
        return np.concatenate(parts)

    def basis(self, layout: Layout) -> np.ndarray:
        """Return an orthonormal basis of the directions along the constraints, as rows."""
        measured = self.state_directions[:, self.columns(layout)]
        left_vectors, values, _ = np.linalg.svd(measured)
        return left_vectors[:, values > _TANGENT_TOLERANCE * values.max(initial=1.0)].T


# -- Lyapunov exponents -----------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Lyapunov:
    """Lyapunov exponents per unit of time, largest first.

    Parameters
    ----------
    exponents : ndarray of shape (n_exponents,)
        Lyapunov exponents per unit of time.
    errors : ndarray of shape (n_exponents,)
        Standard deviations of the exponents, from parts of the run.
    t : ndarray
        Times of `history`.
    history : ndarray of shape (n_times, n_exponents)
        Mean growth rates up to each time.
    """

    exponents: np.ndarray
    errors: np.ndarray
    t: np.ndarray
    history: np.ndarray

    @property
    def horizon(self) -> float:
        """Lyapunov time, in which a deviation grows by a factor e; infinite without a positive exponent."""
        return float(1 / self.exponents[0]) if self.exponents[0] > 0 else np.inf

    def __str__(self) -> str:
        text = ", ".join(f"{x:.4g} ± {e:.1g}" for x, e in zip(self.exponents, self.errors, strict=True))
        return f"Lyapunov exponents per unit of time: {text}"


@explain_call_errors
def lyapunov(
    model: Model | Problem | Prepared,
    count: int = 1,
    *,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    p0: ArrayLike | None = None,
    x0: ArrayLike | None = None,
    parameters: Mapping[str, object] | None = None,
    scheme: str | Scheme | None = None,
    h: float | None = None,
    t_end: float | None = None,
    t0: float | None = None,
    interval: int = 50,
    settle: float = 0.1,
    seed: int = 0,
    progress: bool | None = None,
) -> Lyapunov:
    """Compute Lyapunov exponents: mean exponential growth rates of deviations along a long run.

    Deviations are tangents of the discrete flow (exact, not differences of two runs). They satisfy the linearised
    constraints and are measured in the coordinates and velocities (momenta, states) of the initial values.

    Parameters
    ----------
    model : Model, Problem or Prepared
        Model to simulate.
    count : int, default 1
        Number of exponents, largest first.
    q0, v0, p0, x0 : array_like of shape (n,), optional
        Initial values.
    parameters : dict of str to float, optional
        Parameter values.
    scheme : str or Scheme, optional
        Integration scheme.
    h : float, optional
        Step size.
    t_end : float, optional
        Final time.
    t0 : float, optional
        Initial time.
    interval : int, default 50
        Number of steps between orthonormalisations of the deviations.
    settle : float, default 0.1
        Fraction of the run that is discarded as transient, until the directions have aligned.
    seed : int, default 0
        Seed of the random initial deviations.
    progress : bool, optional
        Show a progress bar.

    Returns
    -------
    Lyapunov
        Exponents, standard deviations and history.

    Raises
    ------
    InputError
        If the model or scheme has no tangents, or if `count` exceeds the number of independent deviations.

    Examples
    --------

    >>> import livens as lv
    >>> cat = lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: -(q[0] ** 2) / 2)
    >>> found = lv.study.lyapunov(cat, 2, q0=[0.0], v0=[0.0], scheme="gauss-2", h=0.01, t_end=20.0)
    >>> found.exponents.round(4)  # x'' = x
    array([ 1., -1.])
    """
    step = as_prepared(model, scheme=scheme, h=h)
    plan = make_plan(
        step, dict(q0=q0, v0=v0, p0=p0, x0=x0), parameters=parameters, h=h, t_end=t_end, t0=t0, project=True
    )
    reason = unsupported_reason(plan, guards_checked=True)
    if reason:
        raise InputError(reason)
    block_steps = check_integer("interval", interval, minimum=1)
    transient = check_nonnegative("settle", settle)
    if transient >= 1:
        raise InputError(f"settle must be a fraction of the run, less than 1, got {transient:g}")
    compiled, initial = compile_and_start(plan)
    space = _TangentSpace(plan, InitialStateDerivatives(plan, compiled, initial))
    basis, columns = space.basis(compiled.layout), space.columns(compiled.layout)
    n_exponents = check_integer("count", count, minimum=1)
    if n_exponents > len(basis):
        raise InputError(f"the motion has {len(basis)} independent deviations, not {n_exponents}")
    random = np.random.default_rng(check_integer("seed", seed, minimum=0))
    coefficients = np.linalg.qr(random.standard_normal((len(basis), n_exponents)))[0].T
    d = coefficients @ basis @ space.state_directions
    steps = round((plan.t_end - plan.t0) / plan.h)
    if not steps:
        raise InputError(f"a run of {plan.t_end - plan.t0:g} has no step of h = {plan.h:g}")
    blocks = [(first_step, min(block_steps, steps - first_step)) for first_step in range(0, steps, block_steps)]
    integrator_state, stepper = start_integration(plan, compiled, initial)
    growth = np.empty((len(blocks), n_exponents))
    dc = np.zeros((n_exponents, 2 + plan.k.size))
    has_constraints = _has_scleronomic_constraints(compiled.model)
    with Progress("lyapunov", len(blocks), progress, unit="blocks") as bar:
        for block_index, (first_step, size) in enumerate(blocks):
            chunk = Segment(first_step, size, plan.h, plan.t0, integrator_state, stepper.checkpoint())
            integrator_state = record_segment(chunk, stepper, keep=True)[0]
            tape = Tape(compiled, plan.k, size, stepper, [chunk])
            ((_, propagated),) = tape.propagate_tangents(d, dc)
            d = (
                _project_on_constraints(plan, compiled, integrator_state, propagated[-1], columns)
                if has_constraints
                else propagated[-1]
            )
            R: np.ndarray = np.asarray(np.linalg.qr(d[:, columns].T, mode="r"))
            growth[block_index] = np.log(np.abs(np.diag(R)))
            d = np.linalg.solve(R.T, d)
            bar.update(block_index + 1)
    return _average_growth(plan, blocks, growth, transient)


def _has_scleronomic_constraints(model: Model) -> bool:
    """Return True if the model has constraints that do not depend on time."""
    return (
        isinstance(model, System)
        and model.m > 0
        and not ca.depends_on(equations_of_motion(model).g, equations_of_motion(model).t)
    )


def _project_on_constraints(
    plan: Plan, compiled: CompiledStep, integrator_state: IntegratorState, d: np.ndarray, columns: np.ndarray
) -> np.ndarray:
    """Project deviations on the constraints: normal components do not decay and would hide negative exponents."""
    layout = compiled.layout
    values = {name: integrator_state.z[layout[name]] for name in ("q", "v", "p")}
    local_plan = dataclasses.replace(plan, start={"q0": values["q"], "v0": values["v"]})
    initial_sensitivity = InitialStateDerivatives(local_plan, compiled, InitialState(plan.t0, values))
    n = len(columns) // 2
    zero_parameters = np.zeros(plan.k.size)
    return np.array(
        [initial_sensitivity.jvp(InputTangent({"q0": x[:n], "v0": x[n:]}, zero_parameters)) for x in d[:, columns]]
    )


def _average_growth(plan: Plan, blocks: list[tuple[int, int]], growth: np.ndarray, settle: float) -> Lyapunov:
    ends = np.array([first_step + size for first_step, size in blocks]) * plan.h
    sizes = np.array([size for _, size in blocks]) * plan.h
    begin = min(int(np.searchsorted(ends, settle * ends[-1])), len(blocks) - 1)
    used, spans = growth[begin:], sizes[begin:]
    exponents = used.sum(axis=0) / spans.sum()
    parts = np.array_split(np.arange(len(used)), min(10, len(used)))
    rates = np.array([used[part].sum(axis=0) / spans[part].sum() for part in parts])
    errors = rates.std(axis=0, ddof=1) / np.sqrt(len(parts)) if len(parts) > 1 else np.full(len(exponents), np.inf)
    history = np.cumsum(used, axis=0) / np.cumsum(spans)[:, None]
    order = np.argsort(-exponents, kind="stable")
    return Lyapunov(exponents[order], errors[order], plan.t0 + ends[begin:], history[:, order])


# -- periodic orbits --------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class PeriodicOrbit:
    """Periodic orbit with monodromy matrix and Floquet multipliers.

    Parameters
    ----------
    initial : dict of str to ndarray
        Initial values of the orbit.
    period : float
        Period, in seconds.
    h : float
        Step size, which divides the period.
    defect : float
        Largest difference of final and initial state.
    monodromy : ndarray of shape (n, n)
        Derivative of the flow over one period, in `basis`.
    multipliers : ndarray of complex of shape (n,)
        Floquet multipliers: eigenvalues of `monodromy`, largest magnitude first.
    basis : ndarray
        Orthonormal basis of the directions along the constraints, as rows.
    """

    initial: dict[str, np.ndarray]
    period: float
    h: float
    defect: float
    monodromy: np.ndarray
    multipliers: np.ndarray
    basis: np.ndarray

    @property
    def exponents(self) -> np.ndarray:
        """Floquet exponents per unit of time, complex; each up to multiples of 2 pi i over the period."""
        return np.asarray(np.log(self.multipliers.astype(complex)) / self.period)

    @property
    def stable(self) -> bool:
        """True if no multiplier lies outside the unit circle, up to a tolerance of 1e-4.

        Unit multipliers of a conservative motion come in pairs and are accurate to the square root of round-off only.
        """
        return bool(np.all(np.abs(self.multipliers) <= 1 + 1e-4))

    def __str__(self) -> str:
        text = ", ".join(f"{m:.5g}" for m in self.multipliers)
        stability = "stable" if self.stable else "unstable"
        return f"{stability} orbit with period {self.period:.9g}, multipliers {text}"


@explain_call_errors
def periodic_orbit(
    model: Model | Problem | Prepared,
    period: float,
    *,
    q0: ArrayLike | None = None,
    v0: ArrayLike | None = None,
    p0: ArrayLike | None = None,
    x0: ArrayLike | None = None,
    parameters: Mapping[str, object] | None = None,
    scheme: str | Scheme | None = None,
    h: float | None = None,
    t0: float | None = None,
    find: bool = True,
    fixed_period: bool = False,
    most: int = 30,
) -> PeriodicOrbit:
    """Find the periodic orbit near the initial values and return its monodromy matrix and Floquet multipliers.

    Parameters
    ----------
    model : Model, Problem or Prepared
        Model to simulate.
    period : float
        Approximate period, in seconds; the step size is adjusted to divide it.
    q0, v0, p0, x0 : array_like of shape (n,), optional
        Initial values near the orbit.
    parameters : dict of str to float, optional
        Parameter values.
    scheme : str or Scheme, optional
        Integration scheme.
    h : float, optional
        Step size.
    t0 : float, optional
        Initial time.
    find : bool, default True
        Correct initial values (and period) by Newton's method with minimum-norm steps. Otherwise they must belong to a
        periodic orbit.
    fixed_period : bool, default False
        Keep the period fixed, for driven motions.
    most : int, default 30
        Maximum number of Newton iterations.

    Returns
    -------
    PeriodicOrbit
        Orbit, monodromy matrix and multipliers.

    Raises
    ------
    IntegrationError
        If no periodic orbit is found.

    Examples
    --------

    >>> import livens as lv
    >>> import numpy as np
    >>> oscillator = lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: q[0] ** 2 / 2 + q[0] ** 4)
    >>> orbit = lv.study.periodic_orbit(oscillator, 3.0, q0=[0.9], v0=[0.1], scheme="gauss-3", h=0.02)
    >>> orbit.defect < 1e-10, bool(np.allclose(orbit.multipliers, 1, atol=1e-4))  # conservative: both are 1
    (True, True)
    """
    step = as_prepared(model, scheme=scheme, h=h)
    span = check_positive("period", period)
    initial_values: dict[str, object] = dict(q0=q0, v0=v0, p0=p0, x0=x0)
    limit = check_integer("most", most, minimum=1)

    def make_plan(initial: Mapping[str, object], span: float, size: float | None) -> Plan:
        default_plan = step._make_plan(
            initial, parameters=parameters, h=size, t0=t0, t_end=_end(step, t0, span), project=True
        )
        count = max(1, round(span / default_plan.h)) if n_steps is None else n_steps
        return step._make_plan(
            initial, parameters=parameters, h=span / count, t0=t0, t_end=default_plan.t0 + span, project=True
        )

    n_steps: int | None = None
    plan = make_plan(initial_values, span, h)
    n_steps = max(1, round(span / plan.h))
    for attempt in range(limit + 1):
        compiled, tape, initial_sensitivity = record_run(plan, np.array([0, n_steps]), guards_checked=True)
        space = _TangentSpace(plan, initial_sensitivity)
        columns, basis = space.columns(compiled.layout), space.basis(compiled.layout)
        directions = basis @ space.state_directions
        dc = np.zeros((len(directions) + 1, 2 + plan.k.size))
        dc[-1, 0] = 1.0 / n_steps  # derivative with respect to the period
        final_directions = tape.tangents(np.vstack([directions, np.zeros_like(directions[:1])]), dc)[1][:, columns]
        initial_state, final_state = tape.states[0, columns], tape.states[1, columns]
        closure_error = final_state - initial_state
        size = 1.0 + np.abs(initial_state).max()
        if np.abs(closure_error).max() <= 1e-11 * size or not find or attempt == limit:
            break
        matrix = (final_directions[:-1] - directions[:, columns]).T
        if not fixed_period:
            matrix = np.column_stack([matrix, final_directions[-1]])
        change = np.linalg.lstsq(matrix, -closure_error, rcond=1e-7)[0]
        updated = initial_state + change[: len(basis)] @ directions[:, columns]
        initial = dict(zip(space.names, np.split(updated, len(space.names)), strict=True))
        span = span if fixed_period else span + float(change[-1])
        if not span > 0:
            raise IntegrationError("no periodic orbit was found nearby: the period went to zero")
        plan = make_plan(initial, span, None)
    defect = float(np.abs(closure_error).max())
    if find and not defect <= 1e-7 * size:
        raise IntegrationError(
            f"no periodic orbit was found nearby: after {attempt} iterations the closure error is {defect:.2g}"
        )
    # final deviations in the basis of the initial deviations
    along = directions[:, columns]
    frame = np.linalg.qr(along.T)[0]
    monodromy = (frame.T @ final_directions[:-1].T) @ np.linalg.inv(frame.T @ along.T)
    multipliers = scipy.linalg.eigvals(monodromy)
    order = np.argsort(-np.abs(multipliers), kind="stable")
    initial = dict(zip(space.names, np.split(initial_state, len(space.names)), strict=True))
    return PeriodicOrbit(initial, span, plan.h, defect, monodromy, multipliers[order], frame.T)


def _end(step: Prepared, t0: float | None, span: float) -> float:
    begin = t0 if t0 is not None else step._defaults.get("t0")
    return check_number("t0", getattr(step._model, "t0", 0.0) if begin is None else begin) + span
