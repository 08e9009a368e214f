"""Taylor-series stepper and its dense output."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens.engine.kernels import simple_kernel
from livens.engine.loop import Policy, count, tabulate
from livens.engine.newton import FAILED, REACHED
from livens.engine.series.kernels import Asked, SeriesCode, coefficient_code, exponent, step_code
from livens.engine.steps import Carry, Cost, Steps, Trouble, finite, step_constants
from livens.schemes.series import SeriesEquations

if TYPE_CHECKING:
    from livens.engine.compiled import CompiledStep

_POINTER, _WHOLE = ctypes.c_void_p, ctypes.c_int64


@dataclass(frozen=True)
class OwnSteps:
    """Step-size control of Taylor series."""

    tolerance: float
    floor: float
    largest: float
    smallest: float


class Following:
    """Dependent variables of a state (functions of the integrated variables), evaluated at many states."""

    def __init__(self, equations: SeriesEquations, follows: ca.Function) -> None:
        z, c = ca.SX.sym("z", equations.layout.size), ca.SX.sym("c", 2 + follows.nnz_in(2))
        value = follows(z[list(equations.columns)], c[1], c[2:])
        self._code = simple_kernel(ca.Function("follows", [ca.SX.sym("x", 0), z, c], [value]), "follows", effort=1)
        self._places = list(equations.following)

    @classmethod
    def of(cls, equations: SeriesEquations) -> Following | None:
        return None if equations.follows is None else cls(equations, equations.follows)

    def __call__(self, Z: np.ndarray, t: np.ndarray, k: np.ndarray) -> None:
        """Write the dependent variables into the states Z at times t."""
        out, states = np.empty((len(Z), len(self._places))), np.ascontiguousarray(Z)
        tabulate(self._code.address, states, states, step_constants(0.0, 0.0, k), np.ascontiguousarray(t), out)
        Z[:, self._places] = out


class SeriesStepper:
    """Stepper by Taylor series, with adaptive or fixed steps."""

    def __init__(self, compiled: CompiledStep, k: np.ndarray, own: OwnSteps | None) -> None:
        equations = compiled.equations
        assert isinstance(equations, SeriesEquations)
        self.cost = Cost()
        self._equations, self._own = equations, own
        self._code: SeriesCode = compiled.once("series", lambda: step_code(equations))
        self._call = ctypes.CFUNCTYPE(_WHOLE, *[_POINTER] * 6, _WHOLE, _WHOLE)(self._code.code.address)
        self._constants = self._code.numbers(k)
        self._columns = np.array(equations.columns)[self._code.slots]
        self._follow = compiled.once("follows", lambda: Following.of(equations))
        self._k = k
        moving = {*equations.columns, *equations.velocities.values(), *equations.following}
        self._still = [i for i in range(equations.layout.size) if i not in moving]
        self._room: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def release(self) -> None:
        self._room = None

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, stored: dict[str, Any]) -> None:
        """Do nothing: the integrator state is complete."""

    def _buffers(self, carry: Carry, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if self._room is None or len(self._room[1]) <= steps:
            slots = len(self._code.slots)
            self._room = np.empty((steps + 1, carry.z.size)), np.empty(steps + 1), np.empty((steps, slots + 1))
        return self._room

    def advance(self, carry: Carry, steps: int, policy: Policy, going: np.ndarray) -> Steps:
        slots = len(self._code.slots)
        Z, T, M = self._buffers(carry, steps)
        Z[0], T[0] = carry.z, carry.t
        w = np.zeros(2 * slots + 3)
        w[:slots] = carry.z[self._columns]
        w[2 * slots] = carry.t
        if carry.memory.size:
            w[slots : 2 * slots], w[2 * slots + 1] = carry.memory[:slots], carry.memory[slots]
        asked = np.array(self._asked(policy))
        pointers = [a.ctypes.data for a in (w, self._constants, asked, Z, T, M)]
        taken = self._call(*pointers, policy.first, steps)
        status = int(w[2 * slots + 2])
        Z[1 : taken + 1, self._still] = carry.z[self._still]
        times, sizes = T[: taken + 1], np.empty(taken)
        if policy.controlled:
            sizes = np.diff(times)
        else:
            count(times, sizes, policy.origin, policy.first, policy.h)
        if self._follow is not None:
            self._follow(Z[1 : taken + 1], times[1:], self._k)
        memory = M[taken - 1].copy() if taken else carry.memory
        after = replace(carry, t=float(times[taken]), z=Z[taken].copy(), memory=memory)
        trouble = None
        if status == FAILED:
            trouble = Trouble(
                0.0, 0.0, "", "the Taylor series does not converge: the step size fell below its minimum", 0.0
            )
        if policy.controlled and taken:
            going["last"], going["steps"] = sizes[-1], going["steps"] + taken
        iterations = np.zeros(taken, dtype=np.int64)
        X = np.zeros((taken, 0))
        found = Steps(
            times, Z[: taken + 1], sizes, X, iterations, carry, after, trouble, status == REACHED, M=M[:taken]
        )
        return finite(found, None, self._equations.layout)

    def _asked(self, policy: Policy) -> Asked:
        if not policy.controlled:
            return Asked(policy.h, policy.origin, np.inf, 0.0, 0.0, 1.0, np.inf, 0.0)
        assert self._own is not None
        own = self._own
        return Asked(
            0.0,
            0.0,
            policy.t_end,
            float(policy.to_the_end),
            exponent(own.tolerance, self._equations.order),
            own.floor,
            own.largest,
            own.smallest,
        )


class Between:
    """Dense output of Taylor-series steps."""

    def __init__(self, compiled: CompiledStep) -> None:
        equations = compiled.equations
        assert isinstance(equations, SeriesEquations)
        self._equations = equations
        self._code: SeriesCode = compiled.once("coefficients", lambda: coefficient_code(equations))
        self._follow = compiled.once("follows", lambda: Following.of(equations))
        self._call = ctypes.CFUNCTYPE(None, *[_POINTER] * 4, _WHOLE)(self._code.code.address)

    def coefficients(self, Z: np.ndarray, t: np.ndarray, k: np.ndarray) -> np.ndarray:
        """Return the Taylor coefficients at every state: (state, order, variable)."""
        e, slots = self._equations, self._code.slots
        X = np.ascontiguousarray(Z[:, np.array(e.columns)[slots]])
        times, constants = np.ascontiguousarray(t, dtype=float), self._code.numbers(k)
        C = np.empty((len(X), e.order + 1, len(slots)))
        if len(X):
            self._call(*(a.ctypes.data for a in (X, constants, times, C)), len(X))
        return C[:, :, self._code.place]

    def evaluated(self, Z: np.ndarray, C: np.ndarray, t: np.ndarray, after: np.ndarray, k: np.ndarray) -> np.ndarray:
        """Return the states at times t + dt from states Z at times t with coefficients C, row by row."""
        e, out, time = self._equations, Z.copy(), after[:, None]
        value, slope = np.zeros((len(Z), C.shape[2])), np.zeros((len(Z), C.shape[2]))
        for order in reversed(range(e.order + 1)):
            slope = slope * time + value
            value = value * time + C[:, order]
        out[:, list(e.columns)] = value
        if e.velocities:
            out[:, list(e.velocities.values())] = slope[:, list(e.velocities)]
        if self._follow is not None:
            self._follow(out, t + after, k)
        return out
