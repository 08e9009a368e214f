"""Steps of different size: the loop over time with step-size control, and its stepper."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numba as nb
import numpy as np

from livens.engine import loop
from livens.engine.fused import FusedStepper
from livens.engine.kernels import simple_kernel
from livens.engine.loop import DONE, FAILED, PAST, REACHED, REPIVOT, call, extrapolate, solve_step
from livens.engine.stepper import Carry, Steps, handed_back
from livens.schemes.step import StepEquations

#: A step that would have been longer by less than this stays as it is: equal steps have better starting guesses.
_WORTH_CHANGING = 1.2
#: The next step is this much shorter than the one that would just meet the tolerance.
_SAFETY = 0.9


@dataclass(frozen=True)
class Control:
    """How the size of steps follows what they meet; see `livens.StepControl`."""

    smallest: float
    largest: float
    decrease: float
    increase: float
    patience: int  # steps without failure before they grow
    absolute: float  # tolerated error of a step; no estimate is used if both are zero
    relative: float
    order: int  # of the estimate

    @property
    def numbers(self) -> np.ndarray:
        return np.array(
            [self.smallest, self.largest, self.decrease, self.increase, self.patience, self.absolute, self.relative,
             self.order]
        )  # fmt: skip


@nb.njit(cache=True, nogil=True)
def advance_controlled(
    kernels: tuple[int, int, int, int, int], error: int, steps: int, control: np.ndarray, flow: np.ndarray,
    t_end: float, c: np.ndarray, Z: np.ndarray, X: np.ndarray, T: np.ndarray, scale: np.ndarray, r: np.ndarray,
    dx: np.ndarray, iterations: np.ndarray, estimate: np.ndarray, slow: int, kinds: np.ndarray,
) -> tuple[int, int]:  # fmt: skip
    """As `loop.advance`, with steps of their own size; ``T[s+1]`` is where step s ends.

    `flow` is what goes on from step to step: the next size, steps since the last failure, sizes that failed, equal
    steps so far, and the last size.
    """
    newton, residual, floor, end, guess = kernels
    smallest, largest, decrease, increase, patience, absolute, relative, order = control
    pz, size, pc = Z.ctypes.data, Z.shape[1] * 8, c.ctypes.data
    pr, pdx, pscale = r.ctypes.data, dx.ctypes.data, scale.ctypes.data
    half = estimate.size // 2
    for s in range(steps):
        z, x, t = pz + s * size, X[s + PAST], T[s]
        count = 0
        while True:
            h = min(flow[0], largest)
            if not h >= smallest:
                return FAILED, s
            final = t + h >= t_end - 1e-10 * h
            if final:
                h = t_end - t
            equal = flow[3] >= PAST and h == flow[4]
            c[0], c[1] = h, t
            smooth = equal and extrapolate(X, s, x, kinds)
            if not smooth:
                for i in range(x.size):
                    x[i] = X[s + PAST - 1, i]
                call(guess, x.ctypes.data, z, pc, pr, x.ctypes.data)
                for i in range(dx.size):
                    dx[i] = 0.0
            if not smooth or flow[3] % loop.REFRESH == 0:
                call(floor, x.ctypes.data, z, pc, pdx, pscale)
            status, again, _ = solve_step(newton, residual, floor, x, z, pc, r, dx, scale, slow)
            count += again
            if status == REPIVOT:
                return REPIVOT, s
            norm = 0.0
            if status == DONE and half:
                call(error, x.ctypes.data, z, pc, pr, estimate.ctypes.data)
                for i in range(half):
                    one = abs(estimate[i]) / (absolute + relative * estimate[half + i])
                    if not one <= norm:
                        norm = one
            if status == DONE and norm <= 1.0:
                break
            flow[1], flow[2], flow[3] = 0.0, flow[2] + 1.0, 0.0
            factor = decrease
            if status == DONE:
                factor = max(0.1, min(decrease, _SAFETY * norm ** (-1.0 / (order + 1.0))))
            flow[0] = h * factor
        iterations[s] = count
        call(end, x.ctypes.data, z, pc, pr, z + size)
        T[s + 1] = t_end if final else t + h
        flow[1] += 1.0
        flow[3] = flow[3] + 1.0 if h == flow[4] else 1.0
        flow[4] = h
        factor = increase
        if half:
            factor = min(increase, _SAFETY * max(norm, 1e-10) ** (-1.0 / (order + 1.0)))
        if final:
            return REACHED, s + 1
        if flow[1] >= patience and factor >= _WORTH_CHANGING:
            flow[0], flow[1] = min(largest, h * factor), 0.0
        elif half and factor < 1.0:
            flow[0] = h * factor
    return DONE, steps


class ControlledStepper(FusedStepper):
    """Steps whose size is controlled."""

    def __init__(
        self, equations: StepEquations, z: np.ndarray, x: np.ndarray, c: np.ndarray, control: Control, t_end: float,
        typical: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        super().__init__(equations, z, x, c, typical)
        self.control, self.t_end = control, t_end
        self._estimate, self._error = np.zeros(0), 0
        if control.absolute or control.relative:
            both = ca.densify(ca.vertcat(*equations.error))
            self._estimate = np.zeros(both.numel())
            self._error = simple_kernel(ca.Function("error", equations.arguments, [both]), "error")

    def flow(self, h: float) -> np.ndarray:
        """What goes on from step to step, before the first."""
        return np.array([h, 0.0, 0.0, 0.0, 0.0])

    def go_on(self, carry: Carry, steps: int, t: float, c: np.ndarray, flow: np.ndarray) -> Steps:
        """Take up to `steps` steps from time t; `flow` is brought up to date."""
        Z, X, iterations = self._buffers.filled(carry, steps)
        T = np.full(steps + 1, t)
        dx, scale, r = carry.dx.copy(), carry.scale.copy(), np.empty(self.equations.size + 1)
        done, tried, slow = 0, {self.order}, loop.SLOW_ITERATIONS
        trouble, status = None, DONE
        while done < steps:
            kernels = (self._newton[self.order], self._residual, self._floor, self._end, self._guess)
            status, taken = advance_controlled(
                kernels, self._error, steps - done, self.control.numbers, flow, self.t_end, c, Z[done:], X[done:],
                T[done:], scale, r, dx, iterations[done:], self._estimate, slow, self.equations.kind_sizes,
            )  # fmt: skip
            if taken:
                done, tried, slow = done + taken, {self.order}, loop.SLOW_ITERATIONS
            if status == REACHED:
                break
            if status == REPIVOT:
                order = self._other_order(X[done + PAST], Z[done], c, tried)
                if order is None:
                    slow = loop.MOST_ITERATIONS + 1
                else:
                    self.statistics.repivots += 1
                    self.order = order
                    tried.add(order)
            elif status == FAILED:
                trouble = self.reference.trouble(
                    X[done + PAST], Z[done], c, dx, f"no step of at least {self.control.smallest:g} succeeded"
                )
                break
        self.statistics.rejected = int(flow[2])
        steps_taken = handed_back(Z, X, iterations, dx, scale, done, trouble, status == REACHED)
        steps_taken.t = T[1 : done + 1]
        return steps_taken
