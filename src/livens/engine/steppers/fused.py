"""Stepper of the fused tier: the whole Newton iteration is fully unrolled native code, the time loop is compiled."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.engine.codegen.unrolled_lu import PivotOrder
from livens.engine.neighbour_list import bind_contacts
from livens.engine.newton import time_loop
from livens.engine.newton.convergence import (
    CONVERGED,
    END_REACHED,
    ERROR_TOO_LARGE,
    MAX_NEWTON_ITERATIONS,
    NEEDS_REPIVOT,
    REPIVOT_AFTER,
)
from livens.engine.newton.error_estimate import argmax_scaled_error
from livens.engine.newton.iteration import HISTORY, Workspace
from livens.engine.newton.markowitz import SingularMatrixError
from livens.engine.newton.step_size_control import (
    FIXED_STEP,
    NOT_ESTIMATED,
    StepSizeController,
    on_accept,
    on_reject,
)
from livens.engine.newton.time_loop import StepPolicy
from livens.engine.stepper import (
    LANDING_STEPS,
    CompleteRun,
    IntegratorState,
    StepChunk,
    StepFailure,
    Stepper,
    StepperOptions,
    WorkspaceManager,
    chunk_from_workspace,
    error_failure,
    truncate_at_nonfinite,
)

if TYPE_CHECKING:
    from livens.engine.compiled_step import CompiledStep

#: Maximum number of pivot orders of a run. Steps that are hard for another reason, such as simultaneous
#: sticking of many contacts, would require a new order each; the reference solver takes these steps.
_MAX_PIVOT_ORDERS = 8


class FusedStepper(Stepper):
    """Newton stepper with unrolled LU in a static pivot order, which is chosen anew if pivots grow."""

    needs_pivot_order = True

    def __init__(
        self, compiled: CompiledStep, k: np.ndarray, order: PivotOrder, control: StepSizeController | None = None
    ) -> None:
        self._compiled, self._neighbours = compiled, compiled.neighbour_list(k)
        self._control = FIXED_STEP if control is None else control
        estimate_size = compiled.error_estimate_size if self._control.atol.size else 0
        super().__init__(
            compiled.layout,
            WorkspaceManager(k, compiled.flat_equations.block_size_array, estimate_size, compiled.workspace_pool),
        )
        self.order = order
        self._used_orders = {order}

    @classmethod
    def create(cls, compiled: CompiledStep, k: np.ndarray, options: StepperOptions) -> FusedStepper:
        assert options.pivot_order is not None
        assert options.control is None or isinstance(options.control, StepSizeController)
        return cls(compiled, k, options.pivot_order, options.control)

    @property
    def order(self) -> PivotOrder:
        """The pivot order in use."""
        return self._order

    @order.setter
    def order(self, order: PivotOrder) -> None:
        self._kernels = bind_contacts(self._compiled.kernels(order), self._neighbours)
        self._order = order

    def set_parameters(self, k: np.ndarray) -> None:
        if self._neighbours is not None:
            self._neighbours.require_parameters(k)
        super().set_parameters(k)

    def advance_once(
        self, state: IntegratorState, h: float, t_origin: float, step0: int, n_steps: int
    ) -> IntegratorState | None:
        w = self._workspaces.prepare(state, n_steps)
        kernels = self._kernels
        status = time_loop.advance_fixed(kernels, w, h, t_origin, step0, -1, np.inf, 0, n_steps, REPIVOT_AFTER)
        if status != CONVERGED:
            return None
        z = w.Z[n_steps].copy()
        if z.dot(np.zeros(z.size)) != 0.0:  # infinity and NaN times zero are NaN
            return None
        history = w.X[n_steps : n_steps + HISTORY].copy()
        self.last_iterations = w.newton_iterations[:n_steps]
        t = t_origin + (step0 + n_steps) * h
        return IntegratorState(t, z, history, w.newton_update.copy(), w.inv_roundoff.copy())

    def advance_to_end(
        self, state: IntegratorState, h: float, t_end: float, n_steps: int, controller_state: np.ndarray
    ) -> CompleteRun | None:
        w = self._workspaces.prepare(state, n_steps + LANDING_STEPS)
        control, kernels, n_done, reached_end = self._control, self._kernels, 0, False
        for lands_on_end, limit in ((False, n_steps), (True, LANDING_STEPS)):
            policy = StepPolicy(True, h, 0.0, 0, t_end=t_end, land_on_end=lands_on_end)
            status, n_done = time_loop.advance(
                kernels, policy, control, controller_state, w, n_done, n_done + limit, REPIVOT_AFTER
            )
            if status != END_REACHED and (lands_on_end or status != CONVERGED):
                return None
            reached_end = status == END_REACHED
            if not reached_end or not w.t[n_done] < t_end:
                break
        if not time_loop.all_finite(w.Z, w.Z.shape[1], (n_done + 1) * w.Z.shape[1]):
            return None
        self._count_rejections(controller_state)
        return CompleteRun(
            w.t[: n_done + 1].copy(), w.Z[: n_done + 1].copy(), w.newton_iterations[:n_done].copy(), reached_end
        )

    def checkpoint(self) -> dict[str, Any]:
        return dict(zip(("row_order", "column_order"), self.order, strict=True))

    def restore(self, stored: dict[str, Any]) -> None:
        self.order = tuple(map(int, stored["row_order"])), tuple(map(int, stored["column_order"]))

    def advance(
        self, state: IntegratorState, n_steps: int, policy: StepPolicy, controller_state: np.ndarray
    ) -> StepChunk:
        w = self._workspaces.prepare(state, n_steps)
        done, stop, repivot_after, tried_orders = 0, n_steps, REPIVOT_AFTER, {self.order}
        failure: StepFailure | None = None
        reached_end = False
        while done < n_steps and failure is None and not reached_end:
            status, n_done = time_loop.advance(
                self._kernels, policy, self._control, controller_state, w, done, stop, repivot_after
            )
            if n_done > done:
                done, tried_orders = n_done, {self.order}
            if status == CONVERGED:
                stop, repivot_after = n_steps, REPIVOT_AFTER
            elif status == END_REACHED:
                reached_end = True
            elif policy.adaptive:
                if status != NEEDS_REPIVOT:
                    failure = self._size_failure(w, done, status)
                elif self._repivot(w.X[done + HISTORY], w, done, tried_orders):
                    repivot_after = REPIVOT_AFTER
                elif repivot_after <= MAX_NEWTON_ITERATIONS:
                    repivot_after = MAX_NEWTON_ITERATIONS + 1
                else:
                    done += self._take_reference_step(w, done, policy, controller_state)
                    reached_end = policy.land_on_end and w.t[done] >= policy.t_end
                    repivot_after, tried_orders = REPIVOT_AFTER, {self.order}
            # a step failed: try another pivot order, then more iterations, then the reference solver
            elif not self._repivot(self._reset_newton(w, done), w, done, tried_orders):
                if status == NEEDS_REPIVOT and repivot_after <= MAX_NEWTON_ITERATIONS:
                    stop, repivot_after = done + 1, MAX_NEWTON_ITERATIONS + 1
                    continue
                failure = self._compiled.reference_solver.take_step(w.X[done + HISTORY - 1], w, done)
                if failure is None:
                    self.statistics.fallback_steps += 1
                    reached_end = policy.stop_entry >= 0 and not w.Z[done + 1, policy.stop_entry] <= policy.stop_value
                    done += not reached_end
                    stop, repivot_after, tried_orders = n_steps, REPIVOT_AFTER, {self.order}
        if policy.adaptive:
            self._count_rejections(controller_state)
        if self._neighbours is not None:
            self._neighbours.report_tunnelling(w.Z[1 : done + 1, self._layout["v"]], policy.h)
        return truncate_at_nonfinite(chunk_from_workspace(w, state, done, policy, failure, reached_end), self._layout)

    def _reset_newton(self, w: Workspace, done: int) -> np.ndarray:
        """Reset Newton update and round-off bounds; return the last converged unknowns."""
        x = w.X[done + HISTORY - 1]
        w.newton_update[:], w.inv_roundoff[:] = 0.0, self._compiled.reference_solver.inv_roundoff(x, w.Z[done], w.c)
        return x

    def _take_reference_step(self, w: Workspace, done: int, policy: StepPolicy, controller_state: np.ndarray) -> bool:
        """Solve an adaptive step by the reference solver, as no pivot order is left; return True if it succeeded.

        Schemes with an embedded error estimate continue with another step size, which has another Jacobian.
        """
        control, h = self._control, float(w.c[0])
        has_embedded_estimate = control.atol.size > 0 and control.doubling_order == 0
        solver = self._compiled.reference_solver
        if has_embedded_estimate or solver.take_step(w.X[done + HISTORY - 1], w, done) is not None:
            on_reject(control, controller_state.view(np.float64), h, False, 0.0)
            return False
        is_last = h >= policy.t_end - w.t[done]
        w.t[done + 1] = policy.t_end if is_last else w.t[done] + h
        on_accept(control, controller_state.view(np.float64), h, NOT_ESTIMATED, is_last)
        self.statistics.fallback_steps += 1
        return True

    def _repivot(self, x: np.ndarray, w: Workspace, done: int, tried_orders: set[PivotOrder]) -> bool:
        """Change to the pivot order for the Jacobian at x, unless it has been tried."""
        t_start = time.perf_counter()
        try:
            order = self._compiled.pivot_order_for(x, w.Z[done], w.c)
        except SingularMatrixError:
            return False
        # counted by run: a run takes the same steps whatever other runs of the model have compiled
        if order in tried_orders or len(self._used_orders | {order}) > _MAX_PIVOT_ORDERS:
            return False
        tried_orders.add(order)
        self._used_orders.add(order)
        self.order = order
        self.statistics.repivots += 1
        self.statistics.compile_s += time.perf_counter() - t_start
        return True

    def _size_failure(self, w: Workspace, done: int, status: int) -> StepFailure:
        """Return why no step size succeeded: Newton failure, or an error estimate above the tolerance."""
        h = w.c[0]
        if status == ERROR_TOO_LARGE:
            error = self._compiled.error_estimate("fused")
            assert error is not None
            return error_failure(error.names[argmax_scaled_error(self._control, w.estimate, h)], h)
        reason = f"no step of at least {h:.3g} succeeded: its equations could not be solved"
        solver = self._compiled.reference_solver
        return solver.describe_failure(w.X[done + HISTORY], w.Z[done], w.c, w.newton_update, reason)
