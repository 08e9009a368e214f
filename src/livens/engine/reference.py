"""Stepper of the reference tier: damped Newton iteration in Python with SuperLU. Slow, simple, and the fallback."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from livens.engine import newton
from livens.engine.floor import at_the_floor
from livens.engine.kernels import floor_function
from livens.engine.loop import Policy
from livens.engine.newton import PAST
from livens.engine.steps import Buffers, Carry, Cost, Steps, Trouble, finite, steps_of
from livens.schemes.step import FlatEquations

#: Maximum number of Newton iterations.
_MOST_ITERATIONS = 50
#: Maximum number of halvings of a Newton update in the line search.
_MOST_HALVINGS = 8


#: Relative rank tolerance of the minimum-norm solution of dependent equations, its largest dense size, and the residual
#: tolerance relative to the magnitude of the terms of an equation.
_DEPENDENT, _MOST_DENSE, _NOTHING = 1e-12, 400, 1e-12
#: Largest relative change of the velocities in a minimum-norm solution, which keeps it on the same branch.
_NEAR = 0.1


class ReferenceSolver:
    """Damped Newton iteration for one step, with pivoting."""

    def __init__(self, equations: FlatEquations) -> None:
        self.equations = equations
        self._floor = floor_function(equations)

    # -- equations ----------------------------------------------------------------------------------------------------
    def residual(self, x: np.ndarray, z: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the residual at x."""
        return np.asarray(self.equations.residual_function(x, z, c).full().ravel())

    def bounds(self, x: np.ndarray, z: np.ndarray, c: np.ndarray, dx: np.ndarray) -> np.ndarray:
        """Return the reciprocal round-off bounds of the residual at x after the Newton update dx."""
        return np.asarray(self._floor(x, z, c, dx).full().ravel())

    def linearised(
        self, x: np.ndarray, z: np.ndarray, c: np.ndarray
    ) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray], Callable[[np.ndarray], np.ndarray]]:
        """Return residual, Jacobian as (values, rows, columns), and the map from its solution to an increment."""
        e = self.equations
        residual, jacobian, *turn = (value.full().ravel() for value in e.newton_function(x, z, c))

        def turned(solution: np.ndarray) -> np.ndarray:
            if not turn:
                return solution
            _, rows, columns = e.turn
            correction = solution.copy()
            correction[list(set(rows))] = 0.0
            np.add.at(correction, rows, turn[0] * solution[list(columns)])
            return correction

        return residual, (jacobian, e.rows, e.columns), turned

    @property
    def kinds(self) -> tuple[int, ...]:
        """Sizes of the consecutive groups of unknowns, velocities first."""
        return self.equations.kinds

    def row_name(self, i: int) -> str:
        """Return the name of an equation."""
        return self.equations.row_names[i]

    # -- Newton iteration ---------------------------------------------------------------------------------------------
    @np.errstate(over="ignore", invalid="ignore")  # an update that overflows is a failed update
    def solve(
        self, guess: np.ndarray, z: np.ndarray, c: np.ndarray
    ) -> tuple[np.ndarray, int, Trouble | None, np.ndarray, np.ndarray]:
        """Solve one step: (unknowns, Newton iterations, failure or None, last update, reciprocal round-off bounds)."""
        if not guess.size:
            return guess, 0, None, guess, guess
        x, last, before, dx = guess.copy(), np.inf, np.inf, np.zeros(guess.size)
        reason = f"the Newton iteration did not converge to round-off level in {_MOST_ITERATIONS} iterations"
        first, scale = self._scaled(x, z, c, dx)
        count = stalls = 0
        for count in range(1, _MOST_ITERATIONS + 1):
            try:
                dx = self._correction(x, z, c)
            except RuntimeError:
                reason = "the Jacobian is singular"
                break
            if not np.all(np.isfinite(dx)):
                reason = "the residual or the Newton update is not finite"
                break
            x, worst, scale = self._damped(x, dx, z, c, last)
            if not np.isfinite(worst):
                reason = "the residual or the Newton update is not finite"
                break
            if at_the_floor(worst, last, first if count == 2 else before, count):
                return x, count, None, dx, scale
            stalls += worst > 0.5 * last
            if stalls > 1 and worst <= newton.CURVATURE_LIMIT and self._curvature_explains(x, z, c, dx, scale):
                return x, count, None, dx, scale
            before, last = last, worst
        found = self._least(guess, z, c)
        if found is not None:
            x, more, dx = found
            return x, count + more, None, dx, self.bounds(x, z, c, dx)
        return x, count, self.trouble(x, z, c, dx, reason), dx, scale

    def _least(self, guess: np.ndarray, z: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, int, np.ndarray] | None:
        """Solve by Newton iteration with minimum-norm updates, for dependent equations at singular configurations.

        The residual of dependent equations cannot be eliminated. It is accepted if it is negligible relative to the
        terms of the equations, and rejected otherwise.
        """
        if guess.size > _MOST_DENSE:
            return None
        x, last, dx = guess.copy(), np.inf, np.zeros(guess.size)
        kinds = np.split(np.arange(guess.size), np.cumsum(self.kinds)[:-1])
        for count in range(1, _MOST_ITERATIONS + 1):
            residual, (values, rows, columns), turned = self.linearised(x, z, c)
            if not all(np.isfinite(part).all() for part in (x, residual, values)):
                return None
            matrix = np.zeros((guess.size, guess.size))
            np.add.at(matrix, (rows, columns), values)
            sizes = np.abs(matrix) @ np.abs(x)
            beside = max(
                float(np.abs(residual[kind]).max() / max(float(sizes[kind].max()), 1e-300))
                for kind in kinds
                if kind.size
            )
            if beside <= _NOTHING and beside >= 0.5 * last:
                # velocities far from the initial guess belong to another solution branch
                moved, size = (np.linalg.norm(part[kinds[0]]) for part in (x - guess, guess))
                return (x, count - 1, dx) if moved <= _NEAR * size else None
            last = min(last, beside)
            dx = turned(np.linalg.lstsq(matrix, residual, rcond=_DEPENDENT)[0])
            x = x - dx
        return None

    def scales(self, x: np.ndarray, z: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the reciprocal round-off bounds of the residual at x."""
        return self.bounds(x, z, c, np.zeros(x.size))

    def _correction(self, x: np.ndarray, z: np.ndarray, c: np.ndarray) -> np.ndarray:
        residual, (jacobian, rows, columns), turned = self.linearised(x, z, c)
        if not np.all(np.isfinite(jacobian)):
            return np.full(x.size, np.nan)
        return turned(self._solved(jacobian, rows, columns, residual))

    def _solved(self, values: np.ndarray, rows: np.ndarray, columns: np.ndarray, r: np.ndarray) -> np.ndarray:
        """Solve sparse linear equations by SuperLU."""
        import scipy.sparse as sp  # slow to import, and most runs never need it
        import scipy.sparse.linalg as spl

        matrix = sp.csc_matrix((values, (rows, columns)), shape=(r.size, r.size))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", spl.MatrixRankWarning)
            return np.asarray(spl.splu(matrix).solve(r))

    def _damped(
        self, x: np.ndarray, dx: np.ndarray, z: np.ndarray, c: np.ndarray, last: float
    ) -> tuple[np.ndarray, float, np.ndarray]:
        """Return the full Newton update, or a shorter one if only that reduces the residual (line search)."""
        full = x - dx
        worst, scale = self._scaled(full, z, c, dx)
        if worst <= last:
            return full, worst, scale
        for halving in range(1, _MOST_HALVINGS + 1):
            shorter = x - 0.5**halving * dx
            smaller, scale_there = self._scaled(shorter, z, c, dx)
            if smaller < last:
                return shorter, smaller, scale_there
        return full if np.isfinite(full).all() else x, worst, scale

    def _scaled(self, x: np.ndarray, z: np.ndarray, c: np.ndarray, dx: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the scaled residual norm and the reciprocal round-off bounds.

        The norm is NaN if x is not finite, although the equations may hold at infinity, and if a bound is infinite:
        its reciprocal, zero, would accept any residual.
        """
        if not np.isfinite(x).all():
            return np.nan, np.zeros(x.size)
        scale, residual = self.bounds(x, z, c, dx), self.residual(x, z, c)
        if not scale.all():
            return np.nan, scale
        return float(np.abs(residual * scale).max(initial=0.0)), scale

    def _curvature_explains(
        self, x: np.ndarray, z: np.ndarray, c: np.ndarray, dx: np.ndarray, scale: np.ndarray
    ) -> bool:
        """Test as `livens.engine.newton.iteration.within_curvature_bound`."""
        here, forth, back = (self.residual(y, z, c) for y in (x, x + dx, x - dx))
        curvature = 0.5 * np.abs(forth - 2.0 * here + back)
        with np.errstate(divide="ignore"):
            return bool(np.all(np.abs(here) <= 1.0 / scale + 10.0 * curvature))

    def trouble(self, x: np.ndarray, z: np.ndarray, c: np.ndarray, dx: np.ndarray, reason: str) -> Trouble:
        """Return the failure with the worst equation at x."""
        residual, scale = np.abs(self.residual(x, z, c)), self.bounds(x, z, c, dx)
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = residual * scale
        worst = int(np.argmax(np.where(np.isnan(scaled), np.inf, scaled)))
        floor = float(1.0 / scale[worst]) if scale[worst] else np.inf
        return Trouble(float(residual[worst]), floor, self.row_name(worst), reason, float(c[0]))


class ReferenceStepper:
    """Stepper in Python, one step at a time."""

    def __init__(self, equations: FlatEquations, k: np.ndarray) -> None:
        self.equations, self.cost = equations, Cost()
        self._buffers = Buffers(k, equations.kind_sizes)
        self._solver = ReferenceSolver(equations)

    def release(self) -> None:
        self._buffers.release()

    def advance(self, carry: Carry, steps: int, policy: Policy, going: np.ndarray) -> Steps:
        assert not policy.controlled, "the reference tier takes fixed steps"
        w = self._buffers.filled(carry, steps)
        w.c[0] = policy.h
        for s in range(steps):
            w.c[1] = policy.origin + (policy.first + s) * policy.h
            trouble: Trouble | None = None
            n, kinds = w.unknowns, self.equations.kind_sizes
            smooth = newton.extrapolate(w.X[s : s + PAST], w.X[s + PAST], n, kinds, len(kinds))
            own = self.equations.guess_function(w.Z[s], w.c).full().ravel()
            for guess in (w.X[s + PAST].copy(), own) if smooth else (own, w.X[s + PAST - 1]):
                x, count, trouble, dx, scale = self._solver.solve(guess, w.Z[s], w.c)
                w.iterations[s], w.dx[:], w.scale[:] = count, dx, scale
                if trouble is None:
                    break
            if trouble is not None:
                return finite(steps_of(w, carry, s, policy, trouble), w, self.equations.layout)
            w.X[s + PAST] = x
            w.Z[s + 1] = self.equations.ended(x, w.Z[s], w.c)
            if policy.entry >= 0 and w.Z[s + 1, policy.entry] > policy.limit:
                return finite(steps_of(w, carry, s, policy, reached=True), w, self.equations.layout)
        return finite(steps_of(w, carry, steps, policy), w, self.equations.layout)

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, stored: dict[str, Any]) -> None:
        """Do nothing: the integrator state is complete."""
