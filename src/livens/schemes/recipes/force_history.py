"""What expensive forces were in the steps before: for steps of any size with one evaluation each, and their errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens.schemes.step import ErrorEstimate

#: Steps grow slowly: forces are compared over steps, and where these differ much, so do the estimates.
_GROWTH = 1.2


class ForceHistory:
    """The last two values of A and of all forces, and when they were.

    A for a step of size s was evaluated at ``t0 + a s``. A step of size h wants it at ``t0 + a h``: it is moved there
    along the line through its last two values, which are ``tau`` apart::

        A* = A + a (h - s) (A - A_before)/tau

    That is of second order, and exactly A where steps are equal. With forces f, their rate f' and its rate f'' from the
    last steps, the errors of a step are estimated as ``h^3 |1/6 - a/2| M^-1 f'`` in q and ``h^3/6 f'' + d h^2 f'`` in
    p; d is how far from the middle of the step anything is evaluated.
    """

    @staticmethod
    def sizes(n: int) -> dict[str, int]:
        """What it keeps in the state: A before, two forces, and four numbers."""
        return {"A_before": 2 * n + 1, "forces": 2 * n, "past": 4}

    @staticmethod
    def start(A: Any, n: int) -> dict[str, Any]:
        """Before the first step: the size that A is for, tau, the distance of the last two steps, and their number."""
        return {
            "A_before": np.array(ca.DM(A)).ravel(),
            "forces": np.zeros(2 * n),
            "past": np.array([0.0, 1.0, 1.0, 0.0]),
        }

    def __init__(self, old: Any, alpha: float, h: Any) -> None:
        self.old, self.alpha, self.h = old, alpha, h
        self.size, self.tau, self.between, self.count = (old.past[i] for i in range(4))
        #: How far the middles of this step and of the last one are apart.
        self.distance = (h + self.size) / 2

    def moved(self, A: Any) -> Any:
        """A where this step wants it."""
        return A + self.alpha * (self.h - self.size) / self.tau * (A - self.old.A_before)

    def next(self, A: Any, force: Any) -> dict[str, Any]:
        """What is kept for the next step."""
        n, h = force.numel(), self.h
        tau = h + self.alpha * (h - self.size)
        past = ca.vertcat(h, tau, self.distance, self.count + 1)
        return {"A_before": A, "forces": ca.vertcat(force, self.old.forces[:n]), "past": past}

    def estimate(
        self,
        names: Sequence[str],
        inverse_mass: Any,
        force: Any,
        begin: tuple[Any, Any],
        end: tuple[Any, Any],
        away: float,
    ) -> ErrorEstimate:
        """Errors of coordinates and momenta; `away` is how far from the middle of the step something is evaluated."""
        n, h, count = force.numel(), self.h, self.count
        last, before = self.old.forces[:n], self.old.forces[n:]
        rate = (force - last) / self.distance
        bend = 2 * (rate - (last - before) / self.between) / (self.distance + self.between)
        in_q = h**3 * abs(1 / 6 - self.alpha / 2) * (inverse_mass @ rate)
        in_p = h**3 / 6 * ca.fabs(bend) + away * h**2 * ca.fabs(rate)
        first, second = count < 0.5, count < 1.5
        # in the first step nothing is known of how forces go on: it is as short as if they were not known at all
        in_q = ca.if_else(first, h**2 / 2 * (inverse_mass @ force), in_q)
        in_p = ca.if_else(first, 0, ca.if_else(second, h**2 / 6 * rate, in_p))
        sizes = [ca.fmax(ca.fabs(a), ca.fabs(b)) for a, b in zip(begin, end, strict=True)]
        return ErrorEstimate(
            errors=ca.densify(ca.vertcat(in_q, in_p)),
            sizes=ca.densify(ca.vertcat(*sizes)),
            order=1 if away else 2,
            names=(*names, *(f"p_{name}" for name in names)),
            growth=_GROWTH,
        )
