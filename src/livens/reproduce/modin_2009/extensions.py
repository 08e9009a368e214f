"""Schemes derived from the papers of Modin 2009 without published figures: the same claims, measured."""

from __future__ import annotations

from typing import Any

import numpy as np

from livens import problems, scaling
from livens.analysis.study.structure_defects import reversibility_defect, symplecticity_defect
from livens.models.hamiltonian.model import Force, Hamiltonian
from livens.reproduce.core import Claim
from livens.reproduce.measure import claim_above, claim_below, claim_order
from livens.reproduce.modin_2009.runs import adaptive, claim_drift, claim_no_drift
from livens.results.result import Result
from livens.run.simulate import simulate

_STEPS = (0.16, 0.12, 0.08, 0.06, 0.04)
_SYMM, _GAUSS = "step-density:gauss-2", "sundman-gauss-2"
_DESCRIPTIONS = {_SYMM: "SYMM over the two-stage Gauss method", _GAUSS: "The Gauss method in fictive time"}


def energy_error(result: Result) -> np.ndarray:
    """Return the deviation of the energy from its initial value."""
    H = result.observe("hamiltonian")
    return np.asarray(H - H[0])


def higher_order_claims() -> list[Claim]:
    """Return claims on the Kepler problem with other methods in the same fictive time (3.7)."""
    problem, claims = problems.load("kepler"), list[Claim]()
    assert problem.reference is not None
    for scheme, description in _DESCRIPTIONS.items():
        exact = problem.reference(2.3)["q"]
        errors = [float(np.abs(adaptive("kepler", scheme, eps, 2.3).q[-1] - exact).max()) for eps in _STEPS]
        claims.append(claim_order(f"{description} has order 4,", 4, _STEPS, errors))
        run = adaptive("kepler", scheme, 0.1, 200 * np.pi)
        claims.append(claim_no_drift("and its energy does not drift.", run.t, energy_error(run)))
    return claims


def non_reversible_claims() -> list[Claim]:
    """Return claims that the step density, not the underlying method, drifts in non-reversible motions."""
    claims = []
    for times, every in ((1, 1), (10, 7)):
        description = " over ten times the horizon" if times > 1 else ""
        runs = {
            scheme: adaptive("non-reversible-oscillator", scheme, 0.4, times * 3600.0, (), None, every)
            for scheme in _DESCRIPTIONS
        }
        symm, gauss = runs[_SYMM], runs[_GAUSS]
        claims.append(claim_drift(f"{_DESCRIPTIONS[_SYMM]} drifts as well{description},", symm.t, energy_error(symm)))
        claims.append(claim_no_drift(f"{_DESCRIPTIONS[_GAUSS]} does not.", gauss.t, energy_error(gauss)))
    return claims


def splitting_claims() -> list[Claim]:
    """Return claims on splittings into any two parts with known flows (second remark after theorem 2)."""
    model = Hamiltonian(
        "x y",
        kinetic=lambda p: p[0] ** 2 / 2 + p[1] ** 2,
        potential=lambda q: 50 * q[0] ** 2 + q[1] ** 2 / 2 + q[0] ** 2 * q[1] + q[1] ** 4,
    )
    g = scaling.user_scaling(lambda T, V: 1 / (1 + 0.3 * V + 0.01 * T))
    initial: dict[str, Any] = dict(q0=[0.3, 0.5], p0=[0.2, 0.1], t_end=2.0)
    exact, steps, errors = simulate(model, scheme="taylor", **initial).q[-1], (0.04, 0.02, 0.01, 0.005), {}
    for scheme in ("sundman", "sundman-harmonic"):
        runs = [simulate(model, scheme=scheme, h=h, scaling=g, **initial) for h in steps]
        errors[scheme] = [float(np.abs(run.q[-1] - exact).max()) for run in runs]
    ratio = min(a / b for a, b in zip(errors["sundman"], errors["sundman-harmonic"], strict=True))
    return [
        claim_order("With exact flows of the oscillators the order is 2,", 2, steps, errors["sundman-harmonic"]),
        claim_above("and errors are smaller than those of SYMP(T,V) (ratio).", ratio, 50.0),
    ]


def imex_claims() -> list[Claim]:
    """Return claims on kick-midpoint-kick, compared with (5) of sect. 4.2.

    The paper calls (5) symmetric and symplectic, which requires forces whose second derivatives commute. Half a kick
    with A, a midpoint step with B and half a kick with A is symmetric and symplectic for any forces.
    """
    expensive_force = Force(lambda q: (2 * q[0] ** 2 + q[1] ** 2) / 2, expensive=True, conservative=True)
    model = Hamiltonian(
        "x y", kinetic=lambda p: p @ p / 2, potential=lambda q: 20 * (q[0] - q[1]) ** 2, forces=[expensive_force]
    )
    state: dict[str, Any] = dict(q=[0.4, -0.3], p=[0.5, 0.2], h=0.3)
    swing, horizon = "pendulum-penalty", 10.0
    short, long = (adaptive(swing, "imex", 0.01, times * horizon) for times in (1, 100))
    largest = [
        float(np.abs(run.observe("total_energy") / short.observe("total_energy")[0] - 1).max()) for run in (short, long)
    ]
    return [
        claim_above(
            "(5) with alpha = beta = 1/2 is not symplectic,",
            symplecticity_defect(model, "semi-explicit:0.5,0.5", **state),
            1e-4,
        ),
        claim_below("but symmetric.", reversibility_defect(model, "semi-explicit:0.5,0.5", **state), 1e-13),
        claim_below(
            "Kick with A/2, midpoint rule with B, kick with A/2 is symplectic",
            symplecticity_defect(model, "imex", **state),
            1e-13,
        ),
        claim_below("and symmetric,", reversibility_defect(model, "imex", **state), 1e-13),
        claim_below(
            "evaluates A once per step (excess over one),",
            short.statistics.force_evaluations / short.statistics.steps - 1,
            2e-3,
        ),
        claim_below(
            "and its energy does not drift (error after 1000 s over that after 10 s).", largest[1] / largest[0], 1.1
        ),
    ]
