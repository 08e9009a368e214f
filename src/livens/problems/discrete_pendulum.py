"""Pendulum given by a discrete Lagrangian."""

from __future__ import annotations

from livens import math as m
from livens.models.discrete_lagrangian import DiscreteLagrangian
from livens.models.problem import Problem
from livens.problems import problem
from livens.problems.nonlinear_pendulum import nonlinear_pendulum, pendulum_visual
from livens.types import ScalarLike, Vector


def _action(q0: Vector, q1: Vector, h: ScalarLike) -> ScalarLike:
    """Return the action of the straight path: Simpson's rule for the potential energy."""
    weights = (m.cos(q0[0]) + 4 * m.cos((q0[0] + q1[0]) / 2) + m.cos(q1[0])) / 6
    return (q1[0] - q0[0]) ** 2 / (2 * h) + h * weights


@problem(
    "discrete-pendulum",
    summary="pendulum as a discrete Lagrangian: the action of one step",
    source="Modin 2009, 2.6.4",
    scheme="discrete-euler-lagrange",
)
def discrete_pendulum(theta0: float = 1.5) -> Problem:
    """Build the pendulum of `nonlinear-pendulum`, at rest at `theta0`."""
    continuous = nonlinear_pendulum(theta0)
    model = DiscreteLagrangian("theta", lagrangian=_action, visual=pendulum_visual)
    exact = continuous.reference
    return Problem(
        "discrete-pendulum",
        model,
        None,
        None,
        "discrete-euler-lagrange",
        0.1,
        continuous.t_end,
        initial_values={"q0": [theta0], "p0": [0.0]},
        reference=None if exact is None else lambda t: {"q": exact(t)["q"], "p": exact(t)["v"]},
    )
