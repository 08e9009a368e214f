"""Diagnosis of a motion: summary with warnings, and the reasons why a search did not converge."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from livens.models.system import System
from livens.transcription.ipopt_solver import MAX_VIOLATION
from livens.transcription.nlp_blocks import INFINITE_BOUND

if TYPE_CHECKING:
    from livens.transcription.motion import OptimalMotion

#: Explanations of the status of the solver.
_STATUS = {
    "Infeasible_Problem_Detected": "no motion near this guess fulfils all conditions",
    "Maximum_Iterations_Exceeded": "the iteration limit is reached; continue with guess=motion",
    "Interrupted": "the search was interrupted; continue with guess=motion",
    "Solved_To_Acceptable_Level": "only the looser tolerances of IPOPT are met",
    "Restoration_Failed": "no iterate reduces the violations further",
    "Not_Enough_Degrees_Of_Freedom": "there are more equations than variables: remove conditions",
    "Invalid_Number_Detected": "the equations are not finite at an iterate: bound the motion in along",
    "Solve_Succeeded": "IPOPT succeeded in scaled variables, but conditions are violated",
}
#: Note about equations that are not smooth.
_SWITCHES = (
    "equations or costs have switches (where, abs, maximum, penalty contacts): their derivatives jump, so that the "
    "search may be slow or end early; smooth functions are better"
)
#: Fraction of input values at their bounds above which the bounds are named as a possible reason.
_SATURATED = 0.9
#: Local error of a step, relative to the range of the motion, above which the summary contains a warning.
_LARGE_STEP_ERROR = 1e-2
#: Unaccounted energy relative to the range of the energy above which the summary contains a warning.
_LARGE_IMBALANCE = 1e-2


def explain(motion: OptimalMotion) -> str:
    """Return the explanation of a motion that did not converge."""
    status = str(motion.statistics["status"])
    lines = [f"{status}: {_STATUS.get(status, 'the solver stopped')}"]
    unmet = _worst(motion, 5, _is_user_condition(motion))
    if unmet:
        lines.append("conditions that are not met: " + "; ".join(f"{name} ({size:.2g})" for name, size in unmet))
    worst = motion.worst_conditions()
    if worst:
        lines.append("largest violations: " + "; ".join(f"{name} ({size:.2g})" for name, size in worst))
    saturated = saturated_inputs(motion)
    if saturated:
        lines.append(f"almost all values of {', '.join(saturated)} are at their bounds: allow more, or more time")
    model = motion.transcription.problem.model
    if motion.transcription.stage.has_switches:
        lines.append(_SWITCHES)
    if isinstance(model, System) and model.frames:
        lines.append(
            "mechanisms of bodies need a good guess: simulate with mb.pd along a path, and give the run as guess"
        )
    return "\n".join(lines)


def summary(motion: OptimalMotion) -> str:
    """Return cost, size, time and accuracy of a motion as text, with warnings."""
    lines = [str(motion)]
    if not motion.converged:
        return "\n".join([*lines, motion.message])
    error, imbalance = motion.accuracy(), motion.energy_imbalance()
    lines.append(f"local error {error:.1e} of the range of the motion; energy imbalance {imbalance:.1e}")
    if error > _LARGE_STEP_ERROR or imbalance > _LARGE_IMBALANCE:
        lines.append(
            "warning: the inputs exploit errors of the steps; use more steps (motion.refined), or a scheme with an "
            "exact energy balance such as livens-em"
        )
    if motion.transcription.stage.has_switches:
        lines.append(_SWITCHES)
    return "\n".join(lines)


def worst_conditions(motion: OptimalMotion, count: int) -> list[tuple[str, float]]:
    """Return the conditions with the largest violations, by name and time."""
    return _worst(motion, count, np.ones(len(motion.solution.violations), dtype=bool))


def _is_user_condition(motion: OptimalMotion) -> np.ndarray:
    """Return which constraints of the program are conditions of the user, not equations of steps."""
    steps, ends = motion.transcription.blocks
    n_along = sum(len(c.lower) for c in motion.transcription.stage.along)
    per_step = np.arange(steps.functions.n_constraints) >= steps.functions.n_constraints - n_along
    at_ends = [label.startswith(("start: ", "end: ", "periodic: ")) for label in ends.functions.labels]
    return np.concatenate([np.tile(per_step, steps.count), np.array(at_ends, dtype=bool)])


def _worst(motion: OptimalMotion, count: int, chosen: np.ndarray) -> list[tuple[str, float]]:
    """Return the largest violations of the chosen constraints, by name and time."""
    labels: list[str] = []
    for number, block in enumerate(motion.transcription.blocks):
        for step in range(block.count):
            when = f" at t = {motion.t[step + 1]:.4g}" if number == 0 else ""
            labels += [f"{label}{when}" for label in block.functions.labels]
    violations = np.where(chosen, motion.solution.violations, 0.0)
    return [(labels[i], float(violations[i])) for i in np.argsort(-violations)[:count] if violations[i] > MAX_VIOLATION]


def energy_imbalance(motion: OptimalMotion) -> float:
    """Return the largest energy that is neither stored before nor supplied, relative to the range of the energy."""
    layout = motion.transcription.stage.layout
    if "supplied_energy" not in layout:
        return 0.0
    energy = motion.observe("generalized_energy" if "q" in layout else "hamiltonian")
    balance = energy - energy[0] - motion.supplied_energy + motion.dissipated_energy
    span = max(float(np.ptp(energy)), float(np.abs(motion.supplied_energy).max()))
    return float(np.abs(balance).max() / span) if span > 0 else 0.0


def saturated_inputs(motion: OptimalMotion) -> list[str]:
    """Return the inputs that are at their bounds almost everywhere."""
    names, offset = [], 0
    for parameter in motion.transcription.problem.inputs:
        values = motion.u[:, offset : offset + parameter.size]
        offset += parameter.size
        span = np.where(
            (parameter.upper < INFINITE_BOUND) & (parameter.lower > -INFINITE_BOUND),
            parameter.upper - parameter.lower,
            np.inf,
        )
        gap = np.minimum(values - parameter.lower, parameter.upper - values)
        if np.mean(gap <= 1e-3 * span) > _SATURATED and np.isfinite(span).all():
            names.append(parameter.name)
    return names
