"""Checks of a control problem before the search: inputs without effect, and too many conditions."""

from __future__ import annotations

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.transcription.nlp_blocks import BlockFunctions
from livens.transcription.transcription import Transcription

#: Relative rank tolerance of the Jacobian of the end conditions, and size of the perturbation of the guess.
_RANK_RTOL, _PERTURBATION = 1e-10, 0.1


def check_problem(transcription: Transcription) -> None:
    """Raise InputError for inputs and free parameters without effect, and for more equations than variables."""
    _check_effect_of_inputs(transcription)
    _check_degrees_of_freedom(transcription)


def check_end_conditions(transcription: Transcription, w: np.ndarray) -> None:
    """Raise InputError if equations at the end depend on each other, at a random point near the guess w."""
    block, f = transcription.blocks[1], transcription.stage.ends
    equations = [
        i for i, label in enumerate(f.labels) if label.startswith("end: ") and block.lower[0, i] == block.upper[0, i]
    ]
    if not equations:
        return
    point = w + _PERTURBATION * np.random.default_rng(0).standard_normal(w.size)
    nonzeros = np.array(f.jacobian(point[block.index[0]], block.data[0])[1]).ravel()
    jacobian = np.zeros((f.n_constraints, f.n_variables))
    jacobian[f.jacobian_rows, f.jacobian_columns] = nonzeros
    rows = jacobian[equations]
    if not np.isfinite(rows).all():
        return
    for count in range(1, len(equations) + 1):
        values = np.linalg.svd(rows[:count], compute_uv=False)
        if values[-1] <= _RANK_RTOL * max(values[0], 1e-300):
            raise InputError(
                f"condition '{f.labels[equations[count - 1]].removeprefix('end: ')}' in end follows from the other "
                "conditions, or does not depend on the motion: remove it"
            )


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
    first_free = stage.stage.n_variables - stage.n_free
    ends_shift = stage.n_start + stage.n_node
    used = {i - first_free for i in _dependencies(stage.stage)}
    used |= {i - first_free - ends_shift for i in _dependencies(stage.ends)}
    offset = 0
    for parameter in problem.free:
        if not used & set(range(offset, offset + parameter.size)):
            raise InputError(f"free parameter '{parameter.name}' has no effect: no equation and no cost depends on it")
        offset += parameter.size


def _dependencies(functions: BlockFunctions) -> set[int]:
    """Return the local variables that constraints or cost of a block depend on."""
    outputs = (functions.value.jac_sparsity(output, 0).get_triplet()[1] for output in (0, 1))
    return {i for columns in outputs for i in columns}


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
