"""Figure 9 of Symank 2025: energy defect of Murua's method with one stage for a pendulum, predicted and measured."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from livens import problems, tableaus
from livens.analysis.study.truncated_newton import TruncatedNewtonRun, truncated_newton
from livens.models.multibody_equations import MultibodyEquations
from livens.plot.curves import curve, time_axis
from livens.plot.style import GREY, PAGE, PALETTE, house_style, legend, new_figure
from livens.reproduce.core import Claim, figure
from livens.reproduce.measure import ROUNDOFF_FACTOR, claim_above, claim_below, claim_order
from livens.reproduce.symank_2025.runs import controlled
from livens.results.result import Result
from livens.run.simulate import simulate
from livens.run.step_control import StepControl

_EPS = float(np.finfo(float).eps)
#: Step size of the document in s, and number of steps of the initial-guess study.
_H, _STEPS = 0.01, 400
#: Initial guesses of Newton's method, with labels, and residual tolerances: that of the document, and near round-off.
_GUESSES = {"start": "naive guess", "educated": "educated guess", "extrapolated": "extrapolated"}
_TOLERANCES = (1e-8, 1e-13)


def _pendulum() -> Result:
    """Return the run with controlled steps: from 1e-5 s, growing by half after every tenth step, up to 0.1 s."""
    return controlled("pendulum", "murua-1", 1e-5, 30.0, StepControl(largest=0.1, increase=1.5, patience=10))


def predicted(result: Result) -> np.ndarray:
    """Return the energy defect ``-h lam (X U + Y V)`` of each step, (6.15) for one stage and the force ``-G^T lam``.

    With one stage, Q = (q0 + q1)/2 and V = (q1 - q0)/h. The multiplier of the stage is (z0 + z1)/2, as
    ``z1 = -z0 + 2 Z`` (def. 6.5).
    """
    h, lam = result.step_size[1:], result.multipliers[:, 0]
    Q, V = (result.q[1:] + result.q[:-1]) / 2, np.diff(result.q, axis=0) / h[:, None]
    return -h * (lam[1:] + lam[:-1]) / 2 * np.sum(Q * V, axis=1)


@figure(
    "symank-2025",
    9,
    "Energy defect of Murua's method for a pendulum, predicted and measured",
    note="(6.15) has a minus sign, which follows from the force -G^T lam; as printed, predicted and measured defects "
    "have opposite signs. Here they differ by round-off instead of 1e-9. Panel (d), with three stages, shows the "
    "residual norm at the initial guess of Newton's method: the naive guess of the document (values at the beginning "
    "of the step), its educated guess (Euler steps from node to node), and the extrapolation from previous steps, as "
    "in livens. In the document the educated guess reduces the residual, but hardly improves the performance of its "
    "solver. Here it saves one Newton correction per step, with the tolerance of the document and near round-off; the "
    "extrapolation saves as many or more.",
)
@house_style()
def defect() -> tuple[Figure, list[Claim]]:
    result = _pendulum()
    dE_p, dE_n = predicted(result), np.diff(result.observe("total_energy"))
    picture = new_figure(PAGE, 4.4)
    (a, b), (c, d) = picture.subplots(2, 2)
    for axes, values, label in ((a, dE_p, "predicted"), (b, dE_n, "measured")):
        curve(axes, result.t[1:], values, color=PALETTE[0], linewidth=0.7, label=f"{label} change (J)")
        scale = float(np.abs(values).max()) / 0.1
        curve(axes, result.t, scale * result.step_size, color=PALETTE[7], linestyle="--", label="$h$ (0.1 s = largest)")
        axes.set_ylabel("energy change per step (J)")
        legend(axes)
    curve(c, result.t[1:], dE_p - dE_n, color=PALETTE[1], linewidth=0.6)
    c.set_ylabel("predicted - measured (J)")
    for axes in (a, b, c):
        time_axis(axes, result)
    t = _H * np.arange(1, _STEPS + 1)
    guesses = {guess: _initial_guess_study(guess, _TOLERANCES[0]) for guess in _GUESSES}
    for (guess, label), colour in zip(_GUESSES.items(), (PALETTE[7], PALETTE[0], PALETTE[2]), strict=True):
        d.semilogy(t, np.maximum(guesses[guess].initial_norms, 1e-17), color=colour, linewidth=0.8, label=label)
    d.set_ylabel("residual norm (s = 3)")
    d.set_xlabel("$t$ (s)")
    legend(d)
    picture.suptitle("pendulum, murua-1, first step 1e-5 s; (d) murua-3, h = 0.01 s", x=0.01, ha="left", color=GREY)
    claims = [
        claim_below("Predicted and measured defects agree to 1e-9 J,", float(np.abs(dE_p - dE_n).max()), 1e-9, "J"),
        claim_below("and even to round-off.", float(np.abs(dE_p - dE_n).max()), ROUNDOFF_FACTOR * _EPS * 9.81, "J"),
        claim_above("The defects are larger than round-off.", float(np.abs(dE_n).max()), 1e-5, "J"),
        claim_above(
            "The defects grow with the step size (largest with h > 0.05 s over largest with h < 1e-3 s).",
            float(np.abs(dE_n[result.step_size[1:] > 0.05]).max() / np.abs(dE_n[result.step_size[1:] < 1e-3]).max()),
            1e3,
        ),
        *_initial_guess_claims(),
        *_index_two_claims(),
    ]
    return picture, claims


def _initial_guess_claims() -> list[Claim]:
    """Return the claims on the initial guesses: residual norms, and Newton corrections with two tolerances."""
    late = slice(5, None)
    norms = {guess: _initial_guess_study(guess, _TOLERANCES[0]).initial_norms[late] for guess in _GUESSES}
    claims = [
        claim_below(f"The {label} reduces the residual (largest ratio to the naive guess).", ratio, limit)
        for label, ratio, limit in (
            ("educated guess", float((norms["educated"] / norms["start"]).max()), 0.5),
            ("extrapolation", float((norms["extrapolated"] / norms["start"]).max()), 0.1),
        )
    ]
    for tolerance in _TOLERANCES:
        runs = {guess: _initial_guess_study(guess, tolerance) for guess in _GUESSES}
        means = {guess: float(run.newton_iterations[late].mean()) for guess, run in runs.items()}
        claims += [
            claim_below(
                f"With the tolerance {tolerance:g} the educated guess saves corrections (difference of the means),",
                means["educated"] - means["start"],
                -0.3,
            ),
            claim_below("and so does the extrapolation.", means["extrapolated"] - means["start"], -0.3),
        ]
    return claims


def _index_two_claims() -> list[Claim]:
    """Return the claims of thm. 6.7 on ``x' = f(x, z)``, ``0 = g(x)``: the pendulum with x = (q, v), z = lam."""
    problem, steps = problems.load("pendulum"), (0.02, 0.016, 0.0125, 0.01)
    model = MultibodyEquations.from_system(problem.model).formulate("index-2")
    initial: dict[str, Any] = {"q0": problem.q0, "v0": problem.v0, "t_end": 1.0}
    exact = simulate(model, scheme="radau-iia-5", h=0.01, **initial)
    runs = [simulate(model, scheme="murua-2", h=h, **initial) for h in steps]
    system = simulate(problem.model, scheme="murua-2", h=steps[-1], **initial)
    return [
        claim_order(
            "For index-2 equations x' = f(x, z), 0 = g(x), the method with s = 2 has order 4 in x (thm. 6.7).",
            4,
            steps,
            [float(np.abs(run.x[-1] - exact.x[-1]).max()) for run in runs],
        ),
        claim_below(
            "The formulation for mechanical systems is the same method.",
            float(np.abs(runs[-1].x[:, :2] - system.q).max()),
            ROUNDOFF_FACTOR * _EPS,
        ),
    ]


@functools.cache
def _initial_guess_study(guess: str, tolerance: float) -> TruncatedNewtonRun:
    """Return the run of the pendulum with an initial guess and a residual tolerance."""
    return truncated_newton(
        problems.load("pendulum"),
        tolerance,
        scheme="M-PRK",
        h=_H,
        t_end=_STEPS * _H,
        initial_guess=_educated_guess if guess == "educated" else guess,
    )


def _educated_guess(state: Mapping[str, np.ndarray], h: float, t: float) -> np.ndarray:
    """Return the educated guess of 7.3.1: explicit Euler steps from node to node, with the multiplier of the start.

    The unknowns of `murua-3` with a constant mass are ``D = A (V - v0)`` and the stage multipliers.
    """
    gauss, lam = tableaus.gauss(3), state["multipliers"]
    position, velocity, previous, increments = state["q"], state["v"], 0.0, []
    for c in gauss.c:
        acceleration = -lam[0] * position - np.array([0.0, 9.81])
        position, velocity = position + (c - previous) * h * velocity, velocity + (c - previous) * h * acceleration
        previous = c
        increments.append(velocity - state["v"])
    return np.concatenate([(np.asarray(gauss.A, dtype=float) @ np.array(increments)).ravel(), np.repeat(lam, 3)])
