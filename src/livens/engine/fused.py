"""The fused tier: the whole Newton correction is one straight line of native code, the loop is compiled."""

from __future__ import annotations

import numpy as np

from livens.engine import loop
from livens.engine.kernels import (
    Order,
    end_kernel,
    floor_kernel,
    guess_kernel,
    newton_kernel,
    onward_kernel,
    residual_kernel,
)
from livens.engine.loop import PAST
from livens.engine.pivots import SingularMatrixError, pivot_order
from livens.engine.reference import ReferenceStepper
from livens.engine.stepper import NO_LIMIT, Buffers, Carry, Limit, Statistics, Steps, Trouble, handed_back
from livens.schemes.step import StepEquations


class FusedStepper:
    """Steps taken by native code in a static pivot order, which is chosen anew when the numbers ask for it."""

    name = "fused"

    def __init__(
        self, equations: StepEquations, z: np.ndarray, x: np.ndarray, c: np.ndarray, typical: np.ndarray | None = None
    ) -> None:
        """`typical` is a c to choose the first pivot order with, so that another mass or step compiles nothing."""
        self.equations = equations
        self.statistics = Statistics()
        self._buffers = Buffers()
        self.reference = ReferenceStepper(equations)
        self._residual, self._end = residual_kernel(equations), end_kernel(equations)
        self._floor, self._guess = floor_kernel(equations), guess_kernel(equations)
        self._onward = onward_kernel(equations)
        self._newton: dict[Order, int] = {}
        self.order = self._first_order(x, z, c, c if typical is None else typical)
        # no steps: this only makes the compiled loop ready, which takes seconds the first time on a machine
        Z, X, iterations = self._buffers.filled(Carry.start(z, x), 1)
        self._take(0, 0, float(c[0]), float(c[1]), c, Z, X, x.copy(), x.copy(), iterations, loop.SLOW_ITERATIONS)

    @property
    def order(self) -> Order:
        """The pivot order in use."""
        return self._order

    @order.setter
    def order(self, order: Order) -> None:
        if order not in self._newton:
            self._newton[order] = newton_kernel(self.equations, order)
        self._order = order

    def _first_order(self, x: np.ndarray, z: np.ndarray, c: np.ndarray, typical: np.ndarray) -> Order:
        try:
            return self._choose_order(x, z, typical)
        except SingularMatrixError:
            return self._choose_order(x, z, c)

    def _choose_order(self, x: np.ndarray, z: np.ndarray, c: np.ndarray) -> Order:
        e = self.equations
        values = e.newton_function(x, z, c)[1].full().ravel()
        return pivot_order(e.rows, e.columns, values, e.size)

    def advance(
        self, carry: Carry, steps: int, first: int, h: float, t0: float, c: np.ndarray, limit: Limit = NO_LIMIT
    ) -> Steps:
        Z, X, iterations = self._buffers.filled(carry, steps)
        dx, scale = carry.dx.copy(), carry.scale.copy()
        done, tried = 0, {self.order}
        last, slow = steps, loop.SLOW_ITERATIONS
        while done < steps:
            status, taken = self._take(
                last - done, first + done, h, t0, c, Z[done:], X[done:], dx, scale, iterations[done:], slow, limit
            )
            if taken:
                done, tried = done + taken, {self.order}
            if status == loop.DONE:
                last, slow = steps, loop.SLOW_ITERATIONS
                continue
            if status == loop.REACHED:
                return handed_back(Z, X, iterations, dx, scale, done, reached=True)
            # step number `done` was refused: another pivot order, then patience, then the reference tier
            c[0], c[1] = h, t0 + (first + done) * h
            dx[:], scale[:] = 0.0, self.reference.scales(X[done + PAST - 1], Z[done], c)
            order = self._other_order(X[done + PAST - 1], Z[done], c, tried)
            if order is not None:
                self.statistics.repivots += 1
                self.order = order
                tried.add(order)
            elif status == loop.REPIVOT and slow <= loop.MOST_ITERATIONS:
                last, slow = done + 1, loop.MOST_ITERATIONS + 1
            else:
                trouble = self._reference_step(done, Z, X, iterations, dx, scale, c)
                if trouble is not None:
                    return handed_back(Z, X, iterations, dx, scale, done, trouble)
                if limit.entry >= 0 and Z[done + 1, limit.entry] > limit.value:
                    return handed_back(Z, X, iterations, dx, scale, done, reached=True)
                done, tried = done + 1, {self.order}
                last, slow = steps, loop.SLOW_ITERATIONS
        return handed_back(Z, X, iterations, dx, scale, steps)

    def _take(
        self, steps: int, first: int, h: float, t0: float, c: np.ndarray, Z: np.ndarray, X: np.ndarray, dx: np.ndarray,
        scale: np.ndarray, iterations: np.ndarray, slow: int, limit: Limit = NO_LIMIT,
    ) -> tuple[int, int]:  # fmt: skip
        """Call the compiled loop: (how it ended, steps taken)."""
        kernels = (self._newton[self.order], self._residual, self._floor, self._end, self._guess)
        r = np.empty(self.equations.size + 1)
        status, taken, _ = loop.advance(
            kernels, self._onward, steps, first, h, t0, c, Z, X, scale, r, dx, iterations, slow, limit.entry,
            limit.value, self.equations.kind_sizes,
        )  # fmt: skip
        return status, taken

    def _other_order(self, x: np.ndarray, z: np.ndarray, c: np.ndarray, tried: set[Order]) -> Order | None:
        """The order that suits the numbers here, unless it has been tried."""
        try:
            order = self._choose_order(x, z, c)
        except SingularMatrixError:
            return None
        return None if order in tried else order

    def _reference_step(
        self, done: int, Z: np.ndarray, X: np.ndarray, iterations: np.ndarray, dx: np.ndarray, scale: np.ndarray,
        c: np.ndarray,
    ) -> Trouble | None:  # fmt: skip
        x, count, trouble, last, there = self.reference.solve(X[done + PAST - 1], Z[done], c)
        if trouble is None:
            self.statistics.reference_steps += 1
            X[done + PAST], iterations[done], dx[:], scale[:] = x, count, last, there
            Z[done + 1] = self.equations.end_function(x, Z[done], c).full().ravel()
        return trouble
