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
from livens.expressions.graph.roundoff import UNIT, roundoff_bound

if TYPE_CHECKING:
    from livens.models.descriptor import DescriptorModel

#: Relative tolerance of residuals, with respect to the magnitude of their terms.
TOLERANCE = 1e-10
#: Relative rank tolerance of singular values, with respect to the largest one.
_RANK = 1e-11
#: Absolute tolerance, relative to the largest variable.
_SHARED = 1e-14
_TRIALS = 50
#: Weight of derivatives and algebraic variables in the least-squares projection: moving them is 1000 times cheaper.
_FREE = 1e3
_RATES = ("", "the time derivative of ", "the second time derivative of ")


@dataclass(frozen=True)
class _Array:
    """Derivative array at a state x with derivatives u, its Jacobians and its roundoff tolerance."""

    value: np.ndarray
    by_x: np.ndarray
    by_u: np.ndarray
    allowed: np.ndarray

    @property
    def finite(self) -> bool:
        return all(np.all(np.isfinite(part)) for part in (self.value, self.by_x, self.by_u, self.allowed))


def derivative_array(model: DescriptorModel) -> ca.Function:
    """Return the derivative array as a function (x, u, t, k) -> residual, d/dx, d/du, roundoff bound.

    u contains the derivatives (x', x'', ...).
    """
    d, n, levels = model.descriptor, int(model.descriptor.x.numel()), max(model.pencil.indices)
    motion, rows = [d.x, d.xdot, *(ca.SX.sym("u", n) for _ in range(levels - 1))], [ca.densify(d.residual)]
    for _ in range(levels - 1):
        rate = ca.jtimes(rows[-1], d.t, ca.SX(1))
        for symbol, derivative in itertools.pairwise(motion):
            rate += ca.jtimes(rows[-1], symbol, derivative)
        rows.append(ca.densify(rate))
    # the parts of the symbol u are not symbols: evaluate the array at the complete u
    u = ca.SX.sym("u", n * levels)
    parts = ca.Function("array", [*motion, d.t, d.k], [ca.vertcat(*rows)])
    array, at = parts(d.x, *ca.vertsplit(u, n), d.t, d.k), [d.x, u, d.t, d.k]
    bound = UNIT * roundoff_bound(ca.Function("array", at, [array]), at, [ca.SX.zeros(a.numel()) for a in at])
    return ca.Function("at", at, [array, ca.jacobian(array, d.x), ca.jacobian(array, u), ca.densify(bound)])


class ConsistentStart:
    """Consistent initialization of a DAE at one time and for one parameter vector."""

    def __init__(self, model: DescriptorModel, t: float, k: np.ndarray) -> None:
        self.model, self.t, self.k = model, t, k
        self.n = int(model.descriptor.x.numel())
        self.names = (*model.coordinates, *model.algebraic)

    def _at(self, x: np.ndarray, u: np.ndarray) -> _Array:
        value, by_x, by_u, bound = (
            np.array(ca.densify(part)) for part in self.model.derivative_array(x, u, self.t, self.k)
        )
        allowed = TOLERANCE * (np.abs(by_x) @ np.abs(x) + np.abs(by_u) @ np.abs(u)) + bound.ravel()
        allowed += _SHARED * np.abs(by_x).sum(axis=1) * (np.abs(x).max(initial=0.0) or 1.0)
        return _Array(value.ravel(), by_x, by_u, allowed)

    # -- checking -----------------------------------------------------------------------------------------------------
    def violation(self, x: np.ndarray) -> tuple[str, float] | None:
        """Return a description and the residual of the worst violated condition; None for a consistent state."""
        u = self._still()
        for upto in range(self.n, u.size + 1, self.n):  # the equations, then with time derivatives
            here, u = self._with_derivatives(x, u, upto)
            if not here.finite:
                raise InputError("the equations cannot be evaluated at the initial values: the result is not finite")
            rows = null_rows(here.by_u[:upto])
            gap, allowed = rows @ here.value[:upto], np.abs(rows) @ here.allowed[:upto]
            violated = np.abs(gap) > allowed
            if violated.any():
                worst = int(np.argmax(np.where(violated, np.abs(gap), 0.0)))
                return self._words(rows[worst]), float(gap[worst])
        return None

    def _words(self, row: np.ndarray) -> str:
        """Return a description of a combination of equations by its dominant equation, an algebraic one if present."""
        entries = np.flatnonzero(np.abs(row) > 0.05 * np.abs(row).max())
        algebraic = [int(i) for i in entries if i % self.n in self.model.pencil.equations]
        main = max(algebraic, key=lambda i: (i // self.n, abs(row[i]))) if algebraic else int(np.argmax(np.abs(row)))
        rate = _RATES[min(main // self.n, 2)]
        words = f"{rate}{self.model.equation_name(main % self.n)}"
        return words if rate or len(entries) == 1 else f"a combination of equations, mainly {words},"

    def _still(self) -> np.ndarray:
        return np.zeros(self.n * max(self.model.pencil.indices))

    def _with_derivatives(self, x: np.ndarray, u: np.ndarray, upto: int) -> tuple[_Array, np.ndarray]:
        """Return the array at the least-squares derivatives of its first `n_rows` rows (Gauss-Newton)."""
        here = self._at(x, u)
        for _ in range(_TRIALS):
            if not here.finite:
                break
            step = np.linalg.lstsq(here.by_u[:upto], here.value[:upto], rcond=_RANK)[0]
            u = u - step
            here = self._at(x, u)
            if np.abs(step).max(initial=0.0) <= 1e-13 * (1.0 + np.abs(u).max(initial=0.0)):
                break
        return here, u

    # -- projection ---------------------------------------------------------------------------------------------------
    def nearest(self, x: np.ndarray, free: Collection[int] | None = None) -> np.ndarray | None:
        """Return a consistent state near x that differs in the `free` variables only; None if there is none nearby.

        By default, the algebraic variables are moved first; all variables if this fails.
        """
        if free is None:
            moved = self.nearest(x, self.model.pencil.algebraic) if self.model.pencil.algebraic else None
            return moved if moved is not None else self.nearest(x, range(self.n))
        chosen, state = list(free), x.copy()
        cost = np.array([1.0 if j not in self.model.pencil.algebraic else _FREE for j in chosen])
        u = self._with_derivatives(state, self._still(), self.n)[1]
        for _ in range(_TRIALS):
            here = self._at(state, u)
            if not here.finite:
                return None
            # states and derivatives simultaneously: the equations may be nonlinear in both
            slope = np.hstack([here.by_x[:, chosen] * cost, _FREE * here.by_u])
            step = np.linalg.lstsq(slope, here.value, rcond=_RANK / _FREE)[0]
            step[: len(chosen)] *= cost
            state[chosen] -= step[: len(chosen)]
            u = u - _FREE * step[len(chosen) :]
            if np.abs(step[: len(chosen)]).max(initial=0.0) <= 1e-15 * (1.0 + np.abs(state).max(initial=0.0)):
                break
        try:
            return state if self.violation(state) is None else None
        except InputError:
            return None

    # -- check --------------------------------------------------------------------------------------------------------
    def checked(self, x: np.ndarray, given: Sequence[int], project: bool) -> np.ndarray:
        """Return consistent initial values from x; variables that are not `prescribed` are computed.

        Prescribed values are moved with `project` only; otherwise InputError proposes consistent values nearby.
        """
        free = [j for j in range(self.n) if j not in given]
        found = self.violation(x)
        if found is None:
            return x
        completed = self.nearest(x, free) if free else None
        if completed is not None:
            return completed
        nearest = self.nearest(x)
        if project and nearest is not None:
            return nearest
        problem = f"inconsistent initial values: {found[0]} is violated by {found[1]:.3g}"
        if nearest is None:
            raise InputError(f"{problem}, and no consistent start was found nearby")
        pairs = list(zip(self.names, nearest, strict=True))[:12]
        shown = ", ".join(f"{name} = {value:.9g}" for name, value in pairs) + (", ..." if self.n > 12 else "")
        raise InputError(f"{problem}; a consistent start nearby is ({shown}); pass project=True to start there")


def null_rows(E: np.ndarray) -> np.ndarray:
    """Return a basis of the left null space of E as rows; zero rows of E contribute unit vectors."""
    count = E.shape[0]
    zero = ~E.any(axis=1) if E.size else np.ones(count, dtype=bool)
    rest = np.flatnonzero(~zero)
    if not rest.size:
        return np.eye(count)
    size = np.abs(E[rest]).max(axis=1)
    left, values, _ = np.linalg.svd(E[rest] / size[:, None])
    null = np.zeros((rest.size - int((values > _RANK * values[0]).sum()), count))
    null[:, rest] = left[:, rest.size - null.shape[0] :].T / size
    return np.vstack([np.eye(count)[zero], null / np.abs(null).max(axis=1, initial=0.0, keepdims=True)])
