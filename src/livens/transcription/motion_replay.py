"""Replay of an optimal motion by the simulator, and results of the states of a motion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from livens.results.record import RunInfo, RunRecord, Statistics, Summary
from livens.results.result import Result
from livens.run.plan import Plan
from livens.transcription.compiled_replay import CompiledMap

if TYPE_CHECKING:
    from livens.transcription.motion import OptimalMotion

#: Smallest reference magnitude of a state entry relative to the largest entry, in relative defects.
_MIN_SCALE = 1e-3


@dataclass(frozen=True, eq=False)
class Replay:
    """Motion computed by the compiled simulator with the inputs of an optimal motion.

    Parameters
    ----------
    result : Result
        Simulated run with the inputs as parameters of the steps.
    defect : float
        Largest difference to the motion of the optimiser, relative to the magnitude of each state entry.
    one_step_defect : float
        The same for single steps, each from a node of the optimiser.
    """

    result: Result
    defect: float
    one_step_defect: float


def replay(motion: OptimalMotion, compiled_map: CompiledMap) -> Replay:
    """Simulate a motion with the compiled steps of the simulator, from the same start with the same inputs."""
    unknowns, states = motion.solution.w[motion.transcription.unknown_index], motion.states
    active = motion.transcription.stage.active
    magnitudes = np.abs(states[:, active]).max(axis=0)
    scale = np.maximum(magnitudes, max(_MIN_SCALE * magnitudes.max(initial=0.0), 1e-300))
    rows, one_step = [states[0]], 0.0
    for i, h in enumerate(motion.h):
        step = motion.t[i], h, motion.parameter_rows[i], unknowns[i]
        rows.append(compiled_map(rows[-1], *step))
        gap = np.abs(compiled_map(states[i], *step) - states[i + 1])[active] / scale
        one_step = max(one_step, float(gap.max(initial=0.0)))
    simulated = np.array(rows)
    defect = float((np.abs(simulated - states)[:, active] / scale).max(initial=0.0))
    return Replay(as_result(motion, simulated), defect, one_step)


def as_result(motion: OptimalMotion, states: np.ndarray) -> Result:
    """Return states of a motion as a result, with the inputs as parameters that change from step to step."""
    problem, layout = motion.transcription.problem, motion.transcription.stage.layout
    model = problem.model
    arrays = {
        "t": motion.t,
        "step_size": np.concatenate([[0.0], motion.h]),
        "newton_iterations": np.zeros(len(motion.t), dtype=int),
    }
    for name in ("q", "v", "p", "x", "y", "supplied_energy", "dissipated_energy", "multipliers"):
        if name in layout and name in model.layout:
            arrays[name] = states[:, layout[name]][:, 0] if name.endswith("_energy") else states[:, layout[name]]
    parameters = (*problem.inputs, *problem.free)
    indices = [i for parameter in parameters for slice_indices in parameter.indices for i in slice_indices]
    held = {"times": motion.t[:-1], "indices": indices, "values": motion.parameter_rows[:, indices], "first": problem.k}
    plan = Plan(
        model,
        problem.scheme,
        float(motion.h.mean()),
        motion.t_end,
        problem.t0,
        parameters=problem.parameters,
        tier="fused",
    )
    info = RunInfo(
        scheme=problem.scheme.name, h=plan.h, t0=plan.t0, t_end=plan.t_end, every=1, coordinates=model.coordinates,
        constraint_names=model.constraint_names, parameters=model.stored_parameters(problem.parameters, problem.k),
        problem=problem.problem.name if problem.problem else None, stored=tuple(arrays), bodies=model.bodies,
        dropped=motion.transcription.stage.removed, algebraic=model.algebraic_names,
        scene=lambda: model.scene_for(problem.k).to_json(),  # type: ignore[arg-type]  # evaluated on first access
    )  # fmt: skip
    summary = Summary(model.monitored_energy(problem.scheme.conserves))
    record = RunRecord(
        info, summary, Statistics(steps=len(motion.h)), "complete", checkpoint={"inputs": held} if indices else {}
    )
    result = Result(arrays, record, system=model)
    result._scheme = problem.scheme
    return result
