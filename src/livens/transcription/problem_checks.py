"""Checks of a control problem before the search: inputs without effect, and too many conditions."""

from __future__ import annotations

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.transcription.nlp_blocks import INFINITE_BOUND
from livens.transcription.transcription import Transcription


def check_problem(transcription: Transcription) -> None:
    """Raise InputError for inputs and free parameters without effect, and for more equations than variables."""
    _check_effect_of_inputs(transcription)
    _check_degrees_of_freedom(transcription)


def _check_effect_of_inputs(transcription: Transcription) -> None:
    """Raise InputError if no equation of a step depends on an input or a free parameter."""
    stage, graph, problem = transcription.stage, transcription.stage.graph, transcription.problem
    columns = ca.jacobian_sparsity(ca.vertcat(graph.residual, graph.final_state), graph.c).get_triplet()[1]
    affected = {column - 2 for column in columns}
    tail, n_inputs = problem.polynomial_inputs.n_original + 2, stage.n_inputs
    offset = 0
    for parameter in problem.inputs:
        indices_of_parameter = {i for indices in parameter.indices for i in indices}
        if problem.polynomial_inputs.is_rewritten:
            nodes = range(problem.shape.n_nodes)
            indices_of_parameter |= {tail + j * n_inputs + offset + i for j in nodes for i in range(parameter.size)}
        offset += parameter.size
        if not indices_of_parameter & affected:
            raise InputError(f"input '{parameter.name}' has no effect: no equation of the model depends on it")
    used = {i for f in (stage.stage, stage.ends) for i in f.jacobian_columns}
    for parameter in problem.free:
        indices_of_parameter = {i for indices in parameter.indices for i in indices}
        if not indices_of_parameter & affected and not used:
            raise InputError(f"free parameter '{parameter.name}' has no effect: no equation of the model depends on it")


def _check_degrees_of_freedom(transcription: Transcription) -> None:
    """Raise InputError if there are more equations than variables that are not fixed."""
    n_variables = int(np.count_nonzero(transcription.lower < transcription.upper))
    n_equations = sum(int(np.count_nonzero(block.lower == block.upper)) for block in transcription.blocks)
    if n_equations > n_variables:
        stage = transcription.stage
        n_step_equations = transcription.n_steps * (
            stage.stage.n_constraints - sum(int((c.lower < c.upper).sum()) for c in stage.along)
        )
        conditions = [
            label
            for label, low, high in zip(stage.ends.labels, stage.end_lower, stage.end_upper, strict=True)
            if low == high
        ]
        raise InputError(
            f"there are {n_equations - n_variables} more equations than variables: {n_step_equations} equations of "
            f"{transcription.n_steps} steps and {len(conditions)} conditions at the ends "
            f"({', '.join(dict.fromkeys(conditions))}) for {n_variables} variables; use more steps or inputs, or fewer "
            "conditions"
        )
    for name, low, high in zip(
        stage_names(transcription), transcription.stage.end_lower, transcription.stage.end_upper, strict=True
    ):
        if low <= -INFINITE_BOUND and high >= INFINITE_BOUND:
            raise InputError(f"condition '{name}' has no bounds")


def stage_names(transcription: Transcription) -> tuple[str, ...]:
    """Return the names of the conditions at the ends."""
    return transcription.stage.ends.labels
