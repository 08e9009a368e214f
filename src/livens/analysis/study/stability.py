"""Stability of motions: Lyapunov exponents, and monodromy matrix and Floquet multipliers of periodic orbits."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import scipy.linalg

from livens.analysis.study.unknowns import prepared
from livens.engine.compiled import CompiledStep
from livens.engine.steps import Carry
from livens.errors import InputError, IntegrationError
from livens.expressions.numbers import not_negative, number, positive, whole_number
from livens.models.model import InitialState, Model
from livens.models.problem import Problem
from livens.models.summed import dynamics
from livens.models.system import System
from livens.run.beginning import beginning
from livens.run.departure import Departure, Shift
from livens.run.gradient import tape_of, why_not
from livens.run.plan import Plan
from livens.run.prepare import Prepared
from livens.run.progress import Progress
from livens.run.several import plan_of
from livens.run.simulate import compile_and_start
from livens.run.tape import Chunk, Tape, advanced
from livens.schemes.base import Scheme

#: Ratio of singular values below which a direction is normal to the constraints.
_TANGENT = 1e-8


# -- directions -------------------------------------------------------------------------------------------------------
class _Space:
    """Tangent space of the initial state: independent changes of the initial values as changes of the state."""

    def __init__(self, plan: Plan, departure: Departure) -> None:
        self._departure, self._k = departure, plan.k.size
        n = len(plan.model.coordinates)
        self.names, self.size = departure.names, n * len(departure.names)
        self.lifted = np.array([self.lift(unit) for unit in np.eye(self.size)])  # (direction, entry of the state)

    def shift(self, direction: np.ndarray) -> Shift:
        parts = np.split(direction, len(self.names))
        return Shift(dict(zip(self.names, parts, strict=True)), np.zeros(self._k))

    def lift(self, direction: np.ndarray) -> np.ndarray:
        return self._departure.forth(self.shift(direction))

    def columns(self, layout: Any) -> np.ndarray:
        """Return the indices of the state entries in which deviations are measured: the initial values."""
        parts = [np.arange(layout.size)[layout[name.removesuffix("0")]] for name in self.names]
        return np.concatenate(parts)

    def basis(self, layout: Any) -> np.ndarray:
        """Return an orthonormal basis of the directions along the constraints, as rows."""
        there = self.lifted[:, self.columns(layout)]
        left, values, _ = np.linalg.svd(there)
        return left[:, values > _TANGENT * values.max(initial=1.0)].T


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
        told = ", ".join(f"{x:.4g} ± {e:.1g}" for x, e in zip(self.exponents, self.errors, strict=True))
        return f"Lyapunov exponents per unit of time: {told}"


def lyapunov(
    model: Model | Problem | Prepared,
    count: int = 1,
    *,
    q0: Any = None,
    v0: Any = None,
    p0: Any = None,
    x0: Any = None,
    parameters: Mapping[str, Any] | None = None,
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
    step = prepared(model, scheme=scheme, h=h)
    plan = plan_of(step, dict(q0=q0, v0=v0, p0=p0, x0=x0), parameters=parameters, h=h, t_end=t_end, t0=t0, project=True)
    reason = why_not(plan, watched=True)
    if reason:
        raise InputError(reason)
    every = whole_number("interval", interval, least=1)
    settling = not_negative("settle", settle)
    if settling >= 1:
        raise InputError(f"settle must be a fraction of the run, less than 1, got {settling:g}")
    compiled, initial = compile_and_start(plan)
    space = _Space(plan, Departure(plan, compiled, initial))
    basis, columns = space.basis(compiled.layout), space.columns(compiled.layout)
    wanted = whole_number("count", count, least=1)
    if wanted > len(basis):
        raise InputError(f"the motion has {len(basis)} independent deviations, not {wanted}")
    random = np.random.default_rng(whole_number("seed", seed, least=0))
    mixed = np.linalg.qr(random.standard_normal((len(basis), wanted)))[0].T
    d = mixed @ basis @ space.lifted
    steps = round((plan.t_end - plan.t0) / plan.h)
    if not steps:
        raise InputError(f"a run of {plan.t_end - plan.t0:g} has no step of h = {plan.h:g}")
    blocks = [(first, min(every, steps - first)) for first in range(0, steps, every)]
    carry, stepper = beginning(plan, compiled, initial)
    growth = np.empty((len(blocks), wanted))
    dc = np.zeros((wanted, 2 + plan.k.size))
    held = _held(compiled.model)
    with Progress("lyapunov", len(blocks), progress, unit="blocks") as bar:
        for number, (first, size) in enumerate(blocks):
            chunk = Chunk(first, size, plan.h, plan.t0, carry, stepper.state())
            carry = advanced(chunk, stepper, keep=True)[0]
            tape = Tape(compiled, plan.k, size, stepper, [chunk])
            ((_, kept),) = tape.directions_through(d, dc)
            d = _on_constraints(plan, compiled, carry, kept[-1], columns) if held else kept[-1]
            R: np.ndarray = np.asarray(np.linalg.qr(d[:, columns].T, mode="r"))
            growth[number] = np.log(np.abs(np.diag(R)))
            d = np.linalg.solve(R.T, d)
            bar.update(number + 1)
    return _averaged(plan, blocks, growth, settling)


def _held(model: Model) -> bool:
    """Return True if the model has constraints that do not depend on time."""
    return isinstance(model, System) and model.m > 0 and not ca.depends_on(dynamics(model).g, dynamics(model).t)


def _on_constraints(plan: Plan, compiled: CompiledStep, carry: Carry, d: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Project deviations on the constraints: normal components do not decay and would hide negative exponents."""
    layout = compiled.layout
    values = {name: carry.z[layout[name]] for name in ("q", "v", "p")}
    there = dataclasses.replace(plan, start={"q0": values["q"], "v0": values["v"]})
    departure = Departure(there, compiled, InitialState(plan.t0, values))
    n = len(columns) // 2
    nothing = np.zeros(plan.k.size)
    return np.array([departure.forth(Shift({"q0": x[:n], "v0": x[n:]}, nothing)) for x in d[:, columns]])


def _averaged(plan: Plan, blocks: list[tuple[int, int]], growth: np.ndarray, settle: float) -> Lyapunov:
    ends = np.array([first + size for first, size in blocks]) * plan.h
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

    start: dict[str, np.ndarray]
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
        told = ", ".join(f"{m:.5g}" for m in self.multipliers)
        word = "stable" if self.stable else "unstable"
        return f"{word} orbit with period {self.period:.9g}, multipliers {told}"


def periodic_orbit(
    model: Model | Problem | Prepared,
    period: float,
    *,
    q0: Any = None,
    v0: Any = None,
    p0: Any = None,
    x0: Any = None,
    parameters: Mapping[str, Any] | None = None,
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
    step = prepared(model, scheme=scheme, h=h)
    span = positive("period", period)
    given: dict[str, Any] = dict(q0=q0, v0=v0, p0=p0, x0=x0)
    limit = whole_number("most", most, least=1)

    def planned(start: Mapping[str, Any], span: float, size: float | None) -> Plan:
        begin = step._plan(start, parameters=parameters, h=size, t0=t0, t_end=_end(step, t0, span), project=True)
        count = max(1, round(span / begin.h)) if turns is None else turns
        return step._plan(start, parameters=parameters, h=span / count, t0=t0, t_end=begin.t0 + span, project=True)

    turns: int | None = None
    plan = planned(given, span, h)
    turns = max(1, round(span / plan.h))
    for attempt in range(limit + 1):
        compiled, tape, departure = tape_of(plan, np.array([0, turns]), watched=True)
        space = _Space(plan, departure)
        columns, basis = space.columns(compiled.layout), space.basis(compiled.layout)
        moves = basis @ space.lifted
        dc = np.zeros((len(moves) + 1, 2 + plan.k.size))
        dc[-1, 0] = 1.0 / turns  # derivative with respect to the period
        ends = tape.forth(np.vstack([moves, np.zeros_like(moves[:1])]), dc)[1][:, columns]
        first, last = tape.states[0, columns], tape.states[1, columns]
        gap = last - first
        size = 1.0 + np.abs(first).max()
        if np.abs(gap).max() <= 1e-11 * size or not find or attempt == limit:
            break
        matrix = (ends[:-1] - moves[:, columns]).T
        if not fixed_period:
            matrix = np.column_stack([matrix, ends[-1]])
        change = np.linalg.lstsq(matrix, -gap, rcond=1e-7)[0]
        moved = first + change[: len(basis)] @ moves[:, columns]
        start = dict(zip(space.names, np.split(moved, len(space.names)), strict=True))
        span = span if fixed_period else span + float(change[-1])
        if not span > 0:
            raise IntegrationError("no periodic orbit was found nearby: the period went to zero")
        plan = planned(start, span, None)
    defect = float(np.abs(gap).max())
    if find and not defect <= 1e-7 * size:
        raise IntegrationError(
            f"no periodic orbit was found nearby: after {attempt} iterations the closure error is {defect:.2g}"
        )
    # final deviations in the basis of the initial deviations
    along = moves[:, columns]
    frame = np.linalg.qr(along.T)[0]
    monodromy = (frame.T @ ends[:-1].T) @ np.linalg.inv(frame.T @ along.T)
    multipliers = scipy.linalg.eigvals(monodromy)
    order = np.argsort(-np.abs(multipliers), kind="stable")
    start = dict(zip(space.names, np.split(first, len(space.names)), strict=True))
    return PeriodicOrbit(start, span, plan.h, defect, monodromy, multipliers[order], frame.T)


def _end(step: Prepared, t0: float | None, span: float) -> float:
    begin = t0 if t0 is not None else step._defaults.get("t0")
    return number("t0", getattr(step._model, "t0", 0.0) if begin is None else begin) + span
