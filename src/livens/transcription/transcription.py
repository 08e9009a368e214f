"""Direct transcription of an optimal control problem on a mesh: variables, bounds, blocks and scaling."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from livens.errors import InputError
from livens.transcription.control_problem import ControlProblem
from livens.transcription.nlp_blocks import INFINITE_BOUND, Block, BoundedProgram
from livens.transcription.stage import StageModel
from livens.transcription.step_inputs import DecisionParameter

#: Largest number of nonzeros of Jacobian and Hessian; the factors of IPOPT then need several gigabytes.
MAX_NONZEROS = 50_000_000
#: Bytes of memory per nonzero of Jacobian and Hessian: matrices, gathering, and factors with fill-in.
_BYTES_PER_NONZERO = 160


class Transcription:
    """Nonlinear program of a control problem on a mesh.

    The variables of a step are the node, the input values and the unknowns of the step. The variables of a free start
    precede them. The last node, the duration, the free parameters and the velocity at the end follow.

    Parameters
    ----------
    stage : StageModel
        Expressions of one step and of both ends.
    fractions : ndarray of shape (n_steps,)
        Step sizes relative to the duration.
    """

    def __init__(self, stage: StageModel, fractions: np.ndarray) -> None:
        self.stage, self.fractions = stage, fractions
        self.problem: ControlProblem = stage.problem
        self.n_steps = len(fractions)
        self.tau = np.concatenate([[0.0], np.cumsum(fractions)])
        self.tau[-1] = 1.0
        self._number_variables()
        self._check_size()
        self._set_bounds()

    def _number_variables(self) -> None:
        stage, n = self.stage, self.n_steps
        shape = self.problem.shape
        per_step_inputs = stage.n_inputs * (1 if shape.is_continuous else shape.n_nodes)
        first, n_node, n_unknowns = stage.n_start, stage.n_node, stage.graph.size
        stride = n_node + per_step_inputs + n_unknowns
        self.start_index = np.arange(first)
        self.node_index = first + np.arange(n + 1)[:, None] * stride + np.arange(n_node)
        self.unknown_index = first + np.arange(n)[:, None] * stride + n_node + per_step_inputs + np.arange(n_unknowns)
        end = first + n * stride + n_node
        if shape.is_continuous:  # one value per node
            rows = first + np.arange(n)[:, None] * stride + n_node + np.arange(stage.n_inputs)
            last = end + np.arange(stage.n_inputs)[None, :]
            end += stage.n_inputs
            self.input_nodes = np.vstack([rows, last]) if stage.n_inputs else np.zeros((n + 1, 0), dtype=int)
            self.value_index = np.stack([self.input_nodes[:-1], self.input_nodes[1:]], axis=1)
        else:
            rows = first + np.arange(n)[:, None] * stride + n_node + np.arange(per_step_inputs)
            self.value_index = rows.reshape(n, shape.n_nodes, stage.n_inputs)
        self.duration_index = end
        self.free_index = end + 1 + np.arange(stage.n_free)
        end += 1 + stage.n_free
        self.end_auxiliary_index = end + np.arange(stage.n_end_auxiliary)
        self.size = int(end + stage.n_end_auxiliary)

    def _check_size(self) -> None:
        """Raise InputError if the program does not fit into memory."""
        f = self.stage.stage
        n_nonzeros = self.n_steps * (f.jacobian_rows.size + f.hessian_rows.size)
        if n_nonzeros > MAX_NONZEROS:
            raise InputError(
                f"{self.n_steps} steps are too many for this model: the program has {self.size:,} variables and "
                f"{n_nonzeros:,} nonzeros, about {n_nonzeros * _BYTES_PER_NONZERO / 2**30:.0f} GB; use fewer steps, a "
                "scheme with fewer unknowns, or fewer bodies"
            )

    def _set_bounds(self) -> None:
        problem, stage = self.problem, self.stage
        self.lower, self.upper = np.full(self.size, -INFINITE_BOUND), np.full(self.size, INFINITE_BOUND)
        if problem.inputs:
            self.lower[self.value_index] = np.concatenate([parameter.lower for parameter in problem.inputs])
            self.upper[self.value_index] = np.concatenate([parameter.upper for parameter in problem.inputs])
        self.lower[self.duration_index], self.upper[self.duration_index] = problem.duration
        if problem.free:
            self.lower[self.free_index] = np.concatenate([parameter.lower for parameter in problem.free])
            self.upper[self.free_index] = np.concatenate([parameter.upper for parameter in problem.free])
        n_active = len(stage.active)
        if problem.has_fixed_start:
            z = self.initial_state_vector
            self._fix(self.node_index[0, :n_active], z[stage.active])
            if stage.has_node_velocity:
                v = z[stage.layout["v"]]
                self._fix(self.node_index[0, n_active:], np.concatenate([v, np.zeros(stage.n_auxiliary - v.size)]))
            return
        offset = 0
        for name in ("q0", "v0") if "q" in stage.layout else ("x0",):
            size = len(problem.model.coordinates)
            if name in problem.given_start:
                self._fix(self.start_index[offset : offset + size], problem.given_start[name])
            offset += size
        if stage.has_node_velocity:
            multipliers = self.node_index[0, n_active + len(problem.model.coordinates) :]
            self._fix(multipliers, np.zeros(multipliers.size))

    def _fix(self, index: np.ndarray, values: np.ndarray) -> None:
        self.lower[index] = self.upper[index] = values

    @functools.cached_property
    def initial_state_vector(self) -> np.ndarray:
        """State vector of a fixed start, with the scheme state."""
        problem, stage = self.problem, self.stage
        k = stage.model.parameter_vector(problem.parameters)
        values = problem.reference.values
        h = self.fractions[0] * problem.duration[0]
        scheme_state = problem.scheme.initial_scheme_state(stage.model, values, k, problem.t0, h)
        return stage.layout.pack({**values, **scheme_state})

    @functools.cached_property
    def blocks(self) -> list[Block]:
        """Block of all steps, and block of both ends."""
        stage, n = self.stage, self.n_steps
        tail = [np.full((n, 1), self.duration_index), np.tile(self.free_index, (n, 1))]
        values = self.value_index.reshape(n, -1)
        parts = [self.node_index[:-1], self.node_index[1:], self.unknown_index, values, *tail]
        index = np.hstack(parts).astype(int)
        data = np.column_stack([self.tau[:-1], self.fractions])
        n_equations = stage.stage.n_constraints - sum(len(c.lower) for c in stage.along)
        lower = np.concatenate([np.zeros(n_equations), *(c.lower for c in stage.along)])
        upper = np.concatenate([np.zeros(n_equations), *(c.upper for c in stage.along)])
        steps = Block(stage.stage, index, data, np.tile(lower, (n, 1)), np.tile(upper, (n, 1)))
        row = np.concatenate([self.start_index, self.node_index[0], index[-1], self.end_auxiliary_index])
        ends = Block(
            stage.ends, row.astype(int)[None, :], data[-1:], stage.end_lower[None, :], stage.end_upper[None, :]
        )
        return [steps, ends]

    @property
    def program(self) -> BoundedProgram:
        """Nonlinear program with the given bounds."""
        title = f"optimal control ({self.problem.scheme.name}, {self.size:,} variables)"
        return BoundedProgram(title, tuple(self.blocks), self.value_index, self.lower, self.upper)

    def relaxed_program(self, input_factor: float, time_factor: float) -> BoundedProgram:
        """Return the program with other bounds, for a homotopy.

        Bounds of inputs are widened by a factor about their middle; open sides stay open. A fixed duration is
        multiplied by a factor; of a free duration, the longest duration is.
        """
        lower, upper = self.lower.copy(), self.upper.copy()
        for side, sign in ((lower, -1.0), (upper, 1.0)):
            bounds = [_relaxed_bound(parameter, sign, input_factor) for parameter in self.problem.inputs]
            side[self.value_index] = np.concatenate([np.zeros(0), *bounds])
        shortest, longest = self.problem.duration
        last = time_factor * longest
        first = min(shortest, last) if self.problem.has_free_duration else last
        lower[self.duration_index], upper[self.duration_index] = first, last
        return dataclasses.replace(self.program, lower=lower, upper=upper)

    # -- variables of a solution --------------------------------------------------------------------------------------
    def inputs_of(self, w: np.ndarray) -> np.ndarray:
        """Return the input values, (n_steps, n_nodes, n_inputs)."""
        return np.asarray(w[self.value_index])

    def free_of(self, w: np.ndarray) -> dict[str, np.ndarray | float]:
        """Return the free parameters by name."""
        values, offset = dict[str, np.ndarray | float](), 0
        for parameter in self.problem.free:
            part = w[self.free_index[offset : offset + parameter.size]]
            values[parameter.name] = part.reshape(parameter.entry.shape) if parameter.entry.shape else float(part[0])
            offset += parameter.size
        return values

    def parameters_of(self, w: np.ndarray) -> np.ndarray:
        """Return the parameter vector of every step, (n_steps, n_parameters)."""
        problem, duration = self.problem, w[self.duration_index]
        k = np.tile(problem.k, (self.n_steps, 1))
        theta, offset = w[self.free_index], 0
        for parameter in problem.free:
            for indices in parameter.indices:
                k[:, indices] = theta[offset : offset + parameter.size]
            offset += parameter.size
        values, inputs = self.inputs_of(w), problem.polynomial_inputs
        middle, offset = np.einsum("j,sji->si", inputs.middle_weights, values), 0
        for parameter in problem.inputs:
            for indices in parameter.indices:
                k[:, indices] = middle[:, offset : offset + parameter.size]
            offset += parameter.size
        if not inputs.is_rewritten:
            return k
        times = np.column_stack([problem.t0 + duration * self.tau[:-1], duration * self.fractions])
        return np.hstack([k, times, values.reshape(self.n_steps, -1)])


def _relaxed_bound(parameter: DecisionParameter, sign: float, factor: float) -> np.ndarray:
    """Return the lower (sign -1) or upper (sign 1) bound of an input, moved by a factor away from the middle."""
    is_open = (parameter.lower <= -INFINITE_BOUND) | (parameter.upper >= INFINITE_BOUND)
    middle, half = (parameter.lower + parameter.upper) / 2, (parameter.upper - parameter.lower) / 2
    bound = parameter.lower if sign < 0 else parameter.upper
    return np.where(is_open, bound, middle + sign * factor * half)
