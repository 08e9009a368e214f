"""History of expensive forces: extrapolation for variable steps with one evaluation per step, and error estimate."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np

from livens.schemes.core.step_equations import ErrorEstimate
from livens.types import Expr, FloatArray

#: Maximum ratio of successive step sizes, as the estimate compares forces of successive steps.
_MAX_GROWTH = 1.2


class ForceHistory:
    """Last two values of the explicit force A and of the total force, with their times.

    A for a step of size s was evaluated at ``t0 + a s``. A step of size h needs it at ``t0 + a h``; A is extrapolated
    linearly from its last two values, with the distance ``tau`` in time::

        A* = A + a (h - s) (A - A_before)/tau

    This is of second order, and exact for equal steps. With forces f and their first and second differences f' and f''
    from the last steps, the errors of a step are estimated as ``h^3 |1/6 - a/2| M^-1 f'`` in q and
    ``h^3/6 f'' + d h^2 f'`` in p; d is the maximum distance of the evaluation points from the midpoint, in units of h.
    """

    @staticmethod
    def state_sizes(n: int) -> dict[str, int]:
        """Return names and sizes of the additional state: previous A, two forces, and four scalars."""
        return {"A_before": 2 * n + 1, "forces": 2 * n, "past": 4}

    @staticmethod
    def initial(A: Any, n: int) -> dict[str, FloatArray]:
        """Return the initial history; `past` is the step size of A, tau, the last step spacing, and the step count."""
        return {
            "A_before": np.array(ca.DM(A)).ravel(),
            "forces": np.zeros(2 * n),
            "past": np.array([0.0, 1.0, 1.0, 0.0]),
        }

    def __init__(self, old: SimpleNamespace, alpha: float, h: Expr) -> None:
        self.old, self.alpha, self.h = old, alpha, h
        self.size, self.tau, self.previous_spacing, self.step_count = (old.past[i] for i in range(4))
        #: Distance of the midpoints of this step and of the previous step.
        self.spacing = (h + self.size) / 2

    def extrapolated(self, A: object) -> Expr:
        """Return A extrapolated to the evaluation point of this step."""
        return A + self.alpha * (self.h - self.size) / self.tau * (A - self.old.A_before)

    def updated(self, A: Any, force: Any) -> dict[str, Expr]:
        """Return the history for the next step."""
        n, h = force.numel(), self.h
        tau = h + self.alpha * (h - self.size)
        scalars = ca.vertcat(h, tau, self.spacing, self.step_count + 1)
        return {"A_before": A, "forces": ca.vertcat(force, self.old.forces[:n]), "past": scalars}

    def error_estimate(
        self,
        names: Sequence[str],
        inverse_mass: Any,
        force: Any,
        initial_state: tuple[Any, Any],
        final_state: tuple[Any, Any],
        offset: float,
    ) -> ErrorEstimate:
        """Return the error estimate of coordinates and momenta; `offset` is the distance d of the class docstring."""
        n, h, count = force.numel(), self.h, self.step_count
        force_last, force_before = self.old.forces[:n], self.old.forces[n:]
        first_derivative = (force - force_last) / self.spacing
        second_derivative = (
            2
            * (first_derivative - (force_last - force_before) / self.previous_spacing)
            / (self.spacing + self.previous_spacing)
        )
        q_error = h**3 * abs(1 / 6 - self.alpha / 2) * (inverse_mass @ first_derivative)
        p_error = h**3 / 6 * ca.fabs(second_derivative) + offset * h**2 * ca.fabs(first_derivative)
        is_first_step, is_second_step = count < 0.5, count < 1.5
        # no differences are available in the first step: its error is that of a step without forces
        q_error = ca.if_else(is_first_step, h**2 / 2 * (inverse_mass @ force), q_error)
        p_error = ca.if_else(is_first_step, 0, ca.if_else(is_second_step, h**2 / 6 * first_derivative, p_error))
        scales = [ca.fmax(ca.fabs(a), ca.fabs(b)) for a, b in zip(initial_state, final_state, strict=True)]
        return ErrorEstimate(
            errors=ca.densify(ca.vertcat(q_error, p_error)),
            scales=ca.densify(ca.vertcat(*scales)),
            order=1 if offset else 2,
            names=(*names, *(f"p_{name}" for name in names)),
            max_growth=_MAX_GROWTH,
        )
