"""Consistent initial values of a DAE ``r(t, x, x') = 0`` by its derivative array.

For index 1, the initial values have to satisfy the algebraic equations. For a higher index, time derivatives of the
equations contain hidden constraints, such as those on multipliers and velocities. The derivative array (Campbell)
contains the equations and their time derivatives up to the index. Initial values are consistent if derivatives
``x', x'', ...`` exist for which the array vanishes.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.expressions.graph.roundoff import UNIT_ROUNDOFF, roundoff_bound
from livens.models.initialization.gauss_newton import gauss_newton, inconsistent_values_error
from livens.models.linalg import EXACT_RTOL, left_null_space

if TYPE_CHECKING:
    from livens.models.descriptor import DescriptorModel

#: Relative tolerance of residuals, with respect to the magnitude of their terms.
TOLERANCE = 1e-10
#: Absolute tolerance, relative to the largest variable.
_ABSOLUTE_TOLERANCE = 1e-14
_MAX_ITERATIONS = 50
#: Weight of derivatives and algebraic variables in the least-squares projection: moving them is 1000 times cheaper.
_FREE_WEIGHT = 1e3
_DERIVATIVE_PREFIX = ("", "the time derivative of ", "the second time derivative of ")


@dataclass(frozen=True)
class _DerivativeArray:
    """Derivative array at a state x with derivatives u, its Jacobians and its roundoff tolerance."""

    residual: np.ndarray
    d_dx: np.ndarray
    d_du: np.ndarray
    tolerance: np.ndarray

    @property
    def is_finite(self) -> bool:
        return all(np.all(np.isfinite(part)) for part in (self.residual, self.d_dx, self.d_du, self.tolerance))


def derivative_array(model: DescriptorModel, levels: int | None = None) -> ca.Function:
    """Return the derivative array as a function (x, u, t, k) -> residual, d/dx, d/du, roundoff bound.

    It contains the equations and their first ``levels - 1`` time derivatives, by default as many as the pencil
    determines; u contains the derivatives (x', x'', ...).
    """
    d, n, levels = model.descriptor, int(model.descriptor.x.numel()), levels or max(model.pencil.indices)
    motion, residuals = [d.x, d.xdot, *(ca.SX.sym("u", n) for _ in range(levels - 1))], [ca.densify(d.residual)]
    for _ in range(levels - 1):
        time_derivative = ca.jtimes(residuals[-1], d.t, ca.SX(1))
        for symbol, derivative in itertools.pairwise(motion):
            time_derivative += ca.jtimes(residuals[-1], symbol, derivative)
        residuals.append(ca.densify(time_derivative))
    # the parts of the symbol u are not symbols: evaluate the array at the complete u
    u = ca.SX.sym("u", n * levels)
    parts = ca.Function("array", [*motion, d.t, d.k], [ca.vertcat(*residuals)])
    array, arguments = parts(d.x, *ca.vertsplit(u, n), d.t, d.k), [d.x, u, d.t, d.k]
    bound = UNIT_ROUNDOFF * roundoff_bound(
        ca.Function("array", arguments, [array]), arguments, [ca.SX.zeros(a.numel()) for a in arguments]
    )
    return ca.Function("at", arguments, [array, ca.jacobian(array, d.x), ca.jacobian(array, u), ca.densify(bound)])


class ConsistentInitialization:
    """Consistent initialization of a DAE at one time and for one parameter vector."""

    def __init__(self, model: DescriptorModel, t: float, k: np.ndarray) -> None:
        self.model, self.t, self.k = model, t, k
        self.n = int(model.descriptor.x.numel())
        self.names = (*model.coordinates, *model.algebraic_names)

    def _evaluate(self, x: np.ndarray, u: np.ndarray) -> _DerivativeArray:
        residual, d_dx, d_du, bound = (
            np.array(ca.densify(part)) for part in self.model.derivative_array(x, u, self.t, self.k)
        )
        tolerance = TOLERANCE * (np.abs(d_dx) @ np.abs(x) + np.abs(d_du) @ np.abs(u)) + bound.ravel()
        tolerance += _ABSOLUTE_TOLERANCE * np.abs(d_dx).sum(axis=1) * (np.abs(x).max(initial=0.0) or 1.0)
        return _DerivativeArray(residual.ravel(), d_dx, d_du, tolerance)

    # -- checking -----------------------------------------------------------------------------------------------------
    def worst_violation(self, x: np.ndarray) -> tuple[str, float] | None:
        """Return a description and the residual of the worst violated condition; None for a consistent state."""
        u = self._zero_derivatives()
        for n_rows in range(self.n, u.size + 1, self.n):  # the equations, then with time derivatives
            array, u = self._fit_derivatives(x, u, n_rows)
            if not array.is_finite:
                raise InputError("the equations cannot be evaluated at the initial values: the result is not finite")
            null_space = left_null_space(array.d_du[:n_rows])
            residual, tolerance = null_space @ array.residual[:n_rows], np.abs(null_space) @ array.tolerance[:n_rows]
            violated = np.abs(residual) > tolerance
            if violated.any():
                worst = int(np.argmax(np.where(violated, np.abs(residual), 0.0)))
                return self._describe(null_space[worst]), float(residual[worst])
        return None

    def _describe(self, row: np.ndarray) -> str:
        """Return a description of a combination of equations by its dominant equation, an algebraic one if present."""
        entries = np.flatnonzero(np.abs(row) > 0.05 * np.abs(row).max())
        algebraic = [int(i) for i in entries if i % self.n in self.model.pencil.algebraic_equations]
        main = max(algebraic, key=lambda i: (i // self.n, abs(row[i]))) if algebraic else int(np.argmax(np.abs(row)))
        prefix = _DERIVATIVE_PREFIX[min(main // self.n, 2)]
        label = f"{prefix}{self.model.equation_label(main % self.n)}"
        return label if prefix or len(entries) == 1 else f"a combination of equations, mainly {label},"

    def _zero_derivatives(self) -> np.ndarray:
        return np.zeros(self.n * max(self.model.pencil.indices))

    def _fit_derivatives(self, x: np.ndarray, u: np.ndarray, n_rows: int) -> tuple[_DerivativeArray, np.ndarray]:
        """Return the array at the least-squares derivatives of its first `n_rows` rows (Gauss-Newton)."""

        def step(u: np.ndarray) -> np.ndarray | None:
            array = self._evaluate(x, u)
            if not array.is_finite:
                return None
            return np.asarray(np.linalg.lstsq(array.d_du[:n_rows], array.residual[:n_rows], rcond=EXACT_RTOL)[0])

        u, _ = gauss_newton(step, u, rtol=1e-13)
        return self._evaluate(x, u), u

    # -- projection ---------------------------------------------------------------------------------------------------
    def project(self, x: np.ndarray, free: Collection[int] | None = None) -> np.ndarray | None:
        """Return a consistent state near x that differs in the `free` variables only; None if there is none nearby.

        By default, the algebraic variables are moved first; all variables if this fails.
        """
        if free is None:
            projected = (
                self.project(x, self.model.pencil.algebraic_variables)
                if self.model.pencil.algebraic_variables
                else None
            )
            return projected if projected is not None else self.project(x, range(self.n))
        free_indices, state = list(free), x.copy()
        weights = np.array(
            [1.0 if j not in self.model.pencil.algebraic_variables else _FREE_WEIGHT for j in free_indices]
        )
        u = self._fit_derivatives(state, self._zero_derivatives(), self.n)[1]
        for _ in range(_MAX_ITERATIONS):
            array = self._evaluate(state, u)
            if not array.is_finite:
                return None
            # states and derivatives simultaneously: the equations may be nonlinear in both
            jacobian = np.hstack([array.d_dx[:, free_indices] * weights, _FREE_WEIGHT * array.d_du])
            step = np.linalg.lstsq(jacobian, array.residual, rcond=EXACT_RTOL / _FREE_WEIGHT)[0]
            step[: len(free_indices)] *= weights
            state[free_indices] -= step[: len(free_indices)]
            u = u - _FREE_WEIGHT * step[len(free_indices) :]
            if np.abs(step[: len(free_indices)]).max(initial=0.0) <= 1e-15 * (1.0 + np.abs(state).max(initial=0.0)):
                break
        try:
            return state if self.worst_violation(state) is None else None
        except InputError:
            return None

    # -- check --------------------------------------------------------------------------------------------------------
    def check_or_project(self, x: np.ndarray, prescribed: Sequence[int], project: bool) -> np.ndarray:
        """Return consistent initial values from x; variables that are not `prescribed` are computed.

        Prescribed values are moved with `project` only; otherwise InputError proposes consistent values nearby.
        """
        free = [j for j in range(self.n) if j not in prescribed]
        violation = self.worst_violation(x)
        if violation is None:
            return x
        completed = self.project(x, free) if free else None
        if completed is not None:
            return completed
        projected = self.project(x)
        if project and projected is not None:
            return projected
        problem = f"inconsistent initial values: {violation[0]} is violated by {violation[1]:.3g}"
        raise inconsistent_values_error(problem, self.names, projected)
