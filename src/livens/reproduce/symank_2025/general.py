"""General statements of Symank 2025, measured on equations other than those of the pendulums."""

from __future__ import annotations

from typing import Any

import numpy as np

from livens import math as m
from livens.models.constrained_hamiltonian import ConstrainedHamiltonian
from livens.models.first_order import FirstOrder
from livens.models.multibody_equations import MultibodyEquations
from livens.problems import load
from livens.reproduce.core import Claim
from livens.reproduce.measure import ROUNDOFF_FACTOR, claim_above, claim_below, claim_order
from livens.run.simulate import simulate

_STEPS = (0.1, 0.0625, 0.05, 0.04)
_ROUNDOFF_LIMIT = ROUNDOFF_FACTOR * float(np.finfo(float).eps)
#: Smallest relative drift of an invariant that a scheme does not conserve, far above round-off.
_NOT_CONSERVED = 1e-8


def _energy(q: Any, p: Any) -> np.ndarray:
    """Return a Hamiltonian that is neither separable nor quadratic in the momenta."""
    return p @ p / (2 * (1 + q[1] ** 2)) + 0.05 * (p @ p) ** 2 + 3 * q[2] + 0.5 * m.sin(q[0])


def general_hamiltonian_claims() -> list[Claim]:
    """Return the claims of def. 6.2 and thm. 6.4 for a general H(q, p) on a sphere."""
    model = ConstrainedHamiltonian("x y z", hamiltonian=_energy, constraints=lambda q: [(q @ q - 1) / 2])
    initial: dict[str, Any] = {"q0": [0.6, 0.0, -0.8], "p0": [0.4, 0.5, 0.3], "t_end": 1.0, "project": True}
    exact = simulate(model, scheme="lobatto-iiia-iiib-6", h=0.04, **initial)
    claims = []
    for s in (2, 3):
        runs = [simulate(model, scheme=f"lobatto-iiia-iiib-{s}", h=h, **initial) for h in _STEPS]
        errors = [float(np.abs(run.x[-1] - exact.x[-1]).max()) for run in runs]
        forces = [float(np.abs(run.y[-1] - exact.y[-1]).max()) for run in runs]
        order = 2 * s - 2
        claims.append(claim_order(f"J-PRK with s = {s} on a general H(q, p) has order {order},", order, _STEPS, errors))
        claims.append(claim_order("and so have its multipliers (thm. 6.4).", order, _STEPS, forces))
    long_run = simulate(model, scheme="lobatto-iiia-iiib-3", h=0.05, **{**initial, "t_end": 100.0})
    claims.append(claim_below("The position constraint holds", long_run.summary.max_constraint, _ROUNDOFF_LIMIT))
    claims.append(
        claim_below(
            "and the velocity constraint, to round-off.", long_run.summary.max_velocity_constraint, _ROUNDOFF_LIMIT
        )
    )
    return claims


def partitioned_claims() -> list[Claim]:
    """Return the claims of def. 6.1 for non-Hamiltonian equations, and the invariants of sect. 6.2.3."""
    # a rotation of (x, y) in the plane of each component, with a rate that depends on x: both quantities are invariants
    model = FirstOrder(
        "x y u v",
        rhs=lambda x: (1 + x[:2] @ x[:2]) * m.array([x[2], x[3], -x[0], -x[1]]),
        partition="u v",
        invariants={"bilinear": lambda x: x[0] * x[3] - x[1] * x[2], "norm": lambda x: x @ x},
    )
    drift, gauss_drift = (
        simulate(model, x0=[1.0, 0.2, -0.3, 0.8], scheme=scheme, h=0.1, t_end=50.0).summary.momentum_drift
        for scheme in ("lobatto-iiia-iiib-3", "gauss-3")
    )
    return [
        claim_below(
            "The pair on x' = f(x, y), y' = g(x, y) conserves invariants x^T D y (6.2.3),",
            drift["bilinear"],
            _ROUNDOFF_LIMIT,
        ),
        claim_above("but not the invariant x^T x + y^T y,", drift["norm"], _NOT_CONSERVED),
        claim_below("which a Gauss method conserves.", gauss_drift["norm"], _ROUNDOFF_LIMIT),
    ]


def index_claims() -> list[Claim]:
    """Return the claim of thm. 2.2 for the double pendulum."""
    problem = load("double-pendulum")
    equations = MultibodyEquations.from_system(problem.model)
    index_test = equations.index_test(problem.q0)
    measured = max(equations.formulate("index-3").pencil.indices)
    return [
        Claim(
            "Double pendulum: Gamma is regular, so the index is 3 (thm. 2.2), which agrees with the measured index.",
            f"{index_test.index}, measured {measured}",
            index_test.index == 3 == measured,
        )
    ]
