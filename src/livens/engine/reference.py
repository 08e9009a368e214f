"""The reference tier: CasADi evaluates, SciPy factorises with pivoting. Slow, simple, and the last resort."""

from __future__ import annotations

import warnings

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spl

from livens.engine import loop
from livens.engine.kernels import floor_function
from livens.engine.loop import PAST
from livens.engine.stepper import NO_LIMIT, Buffers, Carry, Limit, Statistics, Steps, Trouble, handed_back
from livens.schemes.step import StepEquations

#: Newton's method gives up after this many corrections.
_MOST_ITERATIONS = 50
#: A correction that does not help is halved at most this often.
_MOST_HALVINGS = 8


class ReferenceStepper:
    """Steps taken one by one in Python."""

    name = "reference"

    def __init__(self, equations: StepEquations) -> None:
        self.equations = equations
        self.statistics = Statistics()
        self._buffers = Buffers()
        self._floor = floor_function(equations)

    def advance(
        self, carry: Carry, steps: int, first: int, h: float, t0: float, c: np.ndarray, limit: Limit = NO_LIMIT
    ) -> Steps:
        Z, X, iterations = self._buffers.filled(carry, steps)
        dx, scale = carry.dx, carry.scale
        for s in range(steps):
            c[0], c[1] = h, t0 + (first + s) * h
            trouble: Trouble | None = None
            smooth = loop.extrapolate(X, s, X[s + PAST], self.equations.kind_sizes)
            own = self.equations.guess_function(Z[s], c).full().ravel()
            for guess in (X[s + PAST].copy(), own) if smooth else (own, X[s + PAST - 1]):
                x, count, trouble, dx, scale = self.solve(guess, Z[s], c)
                iterations[s] = count
                if trouble is None:
                    break
            if trouble is not None:
                return handed_back(Z, X, iterations, dx, scale, s, trouble)
            X[s + PAST] = x
            Z[s + 1] = self.equations.end_function(x, Z[s], c).full().ravel()
            if limit.entry >= 0 and Z[s + 1, limit.entry] > limit.value:
                return handed_back(Z, X, iterations, dx, scale, s, reached=True)
        return handed_back(Z, X, iterations, dx, scale, steps)

    def solve(
        self, guess: np.ndarray, z: np.ndarray, c: np.ndarray
    ) -> tuple[np.ndarray, int, Trouble | None, np.ndarray, np.ndarray]:
        """Damped Newton's method for one step: (unknowns, corrections, trouble or None, last correction, scales)."""
        if not guess.size:
            return guess, 0, None, guess, guess
        x, last, before, dx = guess.copy(), np.inf, np.inf, np.zeros(guess.size)
        reason = f"Newton's method did not reach the round-off floor in {_MOST_ITERATIONS} corrections"
        first, scale = self._scaled(x, z, c, dx)
        count = stalls = 0
        for count in range(1, _MOST_ITERATIONS + 1):
            try:
                dx = self._correction(x, z, c)
            except RuntimeError:
                reason = "the Jacobian is singular"
                break
            if not np.all(np.isfinite(dx)):
                reason = "the equations are not finite there"
                break
            x, worst, scale = self._damped(x, dx, z, c, last)
            if not np.isfinite(worst):
                reason = "the equations are not finite there"
                break
            if loop.settled(worst, last, first if count == 2 else before, count):
                return x, count, None, dx, scale
            stalls += worst > 0.5 * last
            if stalls > 1 and worst <= loop.SHAKEN_LIMIT and self._shaken(x, z, c, dx, scale):
                return x, count, None, dx, scale
            before, last = last, worst
        return x, count, self.trouble(x, z, c, dx, reason), dx, scale

    def scales(self, x: np.ndarray, z: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Reciprocal round-off bounds of the residual at x."""
        return np.asarray(self._floor(x, z, c, np.zeros(x.size)).full().ravel())

    def _correction(self, x: np.ndarray, z: np.ndarray, c: np.ndarray) -> np.ndarray:
        e = self.equations
        residual, jacobian = (value.full().ravel() for value in e.newton_function(x, z, c))
        if not np.all(np.isfinite(jacobian)):
            return np.full(e.size, np.nan)
        matrix = sp.csc_matrix((jacobian, (e.rows, e.columns)), shape=(e.size, e.size))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", spl.MatrixRankWarning)
            return np.asarray(spl.splu(matrix).solve(residual))

    def _damped(
        self, x: np.ndarray, dx: np.ndarray, z: np.ndarray, c: np.ndarray, last: float
    ) -> tuple[np.ndarray, float, np.ndarray]:
        """The full correction if it helps or nothing better is found, else a shorter one."""
        full = x - dx
        worst, scale = self._scaled(full, z, c, dx)
        if worst <= last:
            return full, worst, scale
        for halving in range(1, _MOST_HALVINGS + 1):
            shorter = x - 0.5**halving * dx
            smaller, scale_there = self._scaled(shorter, z, c, dx)
            if smaller < last:
                return shorter, smaller, scale_there
        return full, worst, scale

    def _scaled(self, x: np.ndarray, z: np.ndarray, c: np.ndarray, dx: np.ndarray) -> tuple[float, np.ndarray]:
        scale = self._floor(x, z, c, dx).full().ravel()
        residual = self.equations.residual_function(x, z, c).full().ravel()
        with np.errstate(invalid="ignore", over="ignore"):  # what is not finite is seen by who asks
            return float(np.abs(residual * scale).max(initial=0.0)), scale

    def _shaken(self, x: np.ndarray, z: np.ndarray, c: np.ndarray, dx: np.ndarray, scale: np.ndarray) -> bool:
        """As `livens.engine.loop.shaken`."""
        here, forth, back = (self.equations.residual_function(y, z, c).full().ravel() for y in (x, x + dx, x - dx))
        with np.errstate(invalid="ignore", over="ignore"):
            curvature = 0.5 * np.abs(forth - 2.0 * here + back)
        return bool(np.all(np.abs(here) <= 1.0 / scale + 10.0 * curvature))

    def trouble(self, x: np.ndarray, z: np.ndarray, c: np.ndarray, dx: np.ndarray, reason: str) -> Trouble:
        """Name the equation that is worst at x."""
        residual = np.abs(self.equations.residual_function(x, z, c).full().ravel())
        scale = self._floor(x, z, c, dx).full().ravel()
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = residual * scale
        worst = int(np.argmax(np.where(np.isnan(scaled), np.inf, scaled)))
        floor = float(1.0 / scale[worst]) if scale[worst] else np.inf
        return Trouble(float(residual[worst]), floor, self.equations.row_names[worst], reason)
