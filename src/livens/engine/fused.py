"""Stepper of the fused tier: the whole Newton iteration is fully unrolled native code, the time loop is compiled."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.engine import loop
from livens.engine.factors import Order
from livens.engine.found_contacts import joined
from livens.engine.loop import Policy
from livens.engine.newton import (
    DONE,
    INACCURATE,
    MOST_ITERATIONS,
    PAST,
    REACHED,
    REPIVOT,
    SLOW_ITERATIONS,
    Workspace,
)
from livens.engine.pivots import SingularMatrixError
from livens.engine.reference import ReferenceSolver
from livens.engine.step_size import NO_CONTROL, Control, worst_variable
from livens.engine.steps import Buffers, Carry, Cost, Steps, Trouble, finite, steps_of

if TYPE_CHECKING:
    from livens.engine.compiled import CompiledStep

#: Maximum number of compiled pivot orders of a step. Steps that are hard for another reason, such as simultaneous
#: sticking of many contacts, would require a new order each; the reference solver takes these steps.
_MOST_ORDERS = 8


class FusedStepper:
    """Newton stepper with unrolled LU in a static pivot order, which is chosen anew if pivots grow."""

    def __init__(self, compiled: CompiledStep, k: np.ndarray, order: Order, control: Control | None = None) -> None:
        self._compiled, self.cost = compiled, Cost()
        self._contacts = compiled.contacts(k)
        self._control = NO_CONTROL if control is None else control
        estimates = compiled.estimates if self._control.absolute.size else 0
        self._buffers = Buffers(k, compiled.flat.kind_sizes, estimates, compiled.spare)
        self.order = order

    @property
    def order(self) -> Order:
        """The pivot order in use."""
        return self._order

    @order.setter
    def order(self, order: Order) -> None:
        self._kernels = joined(self._compiled.kernels(order), self._contacts)
        self._order = order

    @property
    def reference(self) -> ReferenceSolver:
        """Reference solver, created at first use: most runs never need it."""
        return self._compiled.once("reference", lambda: ReferenceSolver(self._compiled.flat))

    def state(self) -> dict[str, Any]:
        return dict(zip(("row_order", "column_order"), self.order, strict=True))

    def restore(self, stored: dict[str, Any]) -> None:
        self.order = tuple(map(int, stored["row_order"])), tuple(map(int, stored["column_order"]))

    def release(self) -> None:
        self._buffers.release()

    def advance(self, carry: Carry, steps: int, policy: Policy, going: np.ndarray) -> Steps:
        w = self._buffers.filled(carry, steps)
        done, last, slow, tried = 0, steps, SLOW_ITERATIONS, {self.order}
        trouble: Trouble | None = None
        reached = False
        while done < steps and trouble is None and not reached:
            status, now = loop.advance(self._kernels, policy, self._control, going, w, done, last, slow)
            if now > done:
                done, tried = now, {self.order}
            if status == DONE:
                last, slow = steps, SLOW_ITERATIONS
            elif status == REACHED:
                reached = True
            elif policy.controlled:
                if status != REPIVOT:
                    trouble = self._no_size(w, done, status)
                elif not self._repivot(w.X[done + PAST], w, done, tried):
                    slow = MOST_ITERATIONS + 1
            # a step failed: try another pivot order, then more iterations, then the reference solver
            elif not self._repivot(self._forget(w, done), w, done, tried):
                if status == REPIVOT and slow <= MOST_ITERATIONS:
                    last, slow = done + 1, MOST_ITERATIONS + 1
                    continue
                trouble = self._reference_step(w, done)
                if trouble is None:
                    reached = policy.entry >= 0 and not w.Z[done + 1, policy.entry] <= policy.limit
                    done += not reached
                    last, slow, tried = steps, SLOW_ITERATIONS, {self.order}
        if policy.controlled:
            self.cost.rejected, self.cost.unsolved = int(going[0]["failures"]), int(going[0]["unsolved"])
        return finite(steps_of(w, carry, done, policy, trouble, reached), w, self._compiled.layout)

    def _forget(self, w: Workspace, done: int) -> np.ndarray:
        """Reset Newton update and round-off bounds; return the last converged unknowns."""
        x = w.X[done + PAST - 1]
        w.dx[:], w.scale[:] = 0.0, self.reference.scales(x, w.Z[done], w.c)
        return x

    def _repivot(self, x: np.ndarray, w: Workspace, done: int, tried: set[Order]) -> bool:
        """Change to the pivot order for the Jacobian at x, unless it has been tried."""
        begun = time.perf_counter()
        try:
            order = self._compiled.order_for(x, w.Z[done], w.c)
        except SingularMatrixError:
            return False
        if order in tried or not self._compiled.may_take(order, _MOST_ORDERS):
            return False
        tried.add(order)
        self.order = order
        self.cost.repivots += 1
        self.cost.compile_s += time.perf_counter() - begun
        return True

    def _reference_step(self, w: Workspace, done: int) -> Trouble | None:
        x, count, trouble, dx, scale = self.reference.solve(w.X[done + PAST - 1], w.Z[done], w.c)
        if trouble is None:
            self.cost.reference_steps += 1
            w.X[done + PAST], w.iterations[done], w.dx[:], w.scale[:] = x, count, dx, scale
            w.Z[done + 1] = self._compiled.flat.ended(x, w.Z[done], w.c)
        return trouble

    def _no_size(self, w: Workspace, done: int, status: int) -> Trouble:
        """Return why no step size succeeded: Newton failure, or an error estimate above the tolerance."""
        h = w.c[0]
        if status == INACCURATE:
            error = self._compiled.flat.error
            assert error is not None
            worst = worst_variable(self._control, w.estimate, h)
            what = (
                f"no step of at least {h:.3g} succeeded: its equations are solved, but the estimated error of "
                f"{error.names[worst]} exceeds the tolerance"
            )
            return Trouble(0.0, 0.0, error.names[worst], what, h)
        what = f"no step of at least {h:.3g} succeeded: its equations could not be solved"
        return self.reference.trouble(w.X[done + PAST], w.Z[done], w.c, w.dx, what)
