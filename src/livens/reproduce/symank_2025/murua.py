"""Figure 9 of Symank 2025: energy defect of Murua's method with one stage for a pendulum, predicted and measured."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from livens import problems, schemes
from livens.engine.steppers.reference import ReferenceSolver
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
    "of the step), and the extrapolation from previous steps. In the document a better guess does not pay off; here "
    "it saves Newton corrections, because the iteration stops at round-off and not at a tolerance.",
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
    naive, extrapolated, corrections = _initial_guess_study()
    t = _H * np.arange(1, _STEPS + 1)
    d.semilogy(t, naive, color=PALETTE[7], linewidth=0.8, label="naive guess")
    d.semilogy(t, np.maximum(extrapolated, 1e-17), color=PALETTE[2], linewidth=0.8, label="extrapolated")
    d.set_ylabel("residual norm (s = 3)")
    d.set_xlabel("$t$ (s)")
    legend(d)
    picture.suptitle("pendulum, murua-1, first step 1e-5 s; (d) murua-3, h = 0.01 s", x=0.01, ha="left", color=GREY)
    late = slice(5, None)
    claims = [
        claim_below("Predicted and measured defects agree to 1e-9 J,", float(np.abs(dE_p - dE_n).max()), 1e-9, "J"),
        claim_below("and even to round-off.", float(np.abs(dE_p - dE_n).max()), ROUNDOFF_FACTOR * _EPS * 9.81, "J"),
        claim_above("The defects are larger than round-off.", float(np.abs(dE_n).max()), 1e-5, "J"),
        claim_above(
            "The defects grow with the step size (largest with h > 0.05 s over largest with h < 1e-3 s).",
            float(np.abs(dE_n[result.step_size[1:] > 0.05]).max() / np.abs(dE_n[result.step_size[1:] < 1e-3]).max()),
            1e3,
        ),
        claim_below(
            "Extrapolation reduces the residual of the initial guess (largest ratio to the naive guess).",
            float((extrapolated[late] / naive[late]).max()),
            0.1,
        ),
        claim_below(
            "Unlike in the document, extrapolation saves Newton corrections (difference of the means).",
            float(corrections[1] - corrections[0]),
            -0.3,
        ),
        *_index_two_claims(),
    ]
    return picture, claims


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
def _initial_guess_study() -> tuple[np.ndarray, np.ndarray, tuple[float, float]]:
    """Return the residual norms of each step at both initial guesses, and the mean number of corrections from each."""
    problem = problems.load("pendulum")
    equations = schemes.get("murua-3").equations(problem.model).to_single_graph()
    solver, k = ReferenceSolver(equations), problem.model.parameter_vector()
    initial = problem.model.initial_state({"q0": problem.q0, "v0": problem.v0}, k, 0.0, False, "error")
    z = equations.layout.pack(initial.values)
    norms, counts = np.empty((_STEPS, 2)), np.empty((_STEPS, 2))
    previous_unknowns: list[np.ndarray] = []
    for n in range(_STEPS):
        c = np.concatenate([[_H, n * _H], k])
        naive = equations.initial_guess_function(z, c).full().ravel()
        for i, initial_guess in enumerate((naive, _extrapolate(previous_unknowns) if n >= 5 else naive)):
            norms[n, i] = np.linalg.norm(equations.residual_function(initial_guess, z, c).full())
            x, counts[n, i], failure, _, _ = solver.solve(initial_guess, z, c)
            assert failure is None
        previous_unknowns = [*previous_unknowns[-4:], x]
        z = equations.final_state_function(x, z, c).full().ravel()
    return norms[:, 0], norms[:, 1], (float(counts[:, 0].mean()), float(counts[:, 1].mean()))


def _extrapolate(x: list[np.ndarray]) -> np.ndarray:
    """Extrapolate the unknowns from the last five steps, exact for cubics and for alternating signs."""
    return np.asarray(3 * (x[4] + x[1]) - 2 * (x[3] + x[2]) - x[0])
