"""Inputs and outputs of a linearisation: matrices B, C, D, and the state space of python-control."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
import scipy.linalg

from livens.errors import InputError, MissingExtraError, suggestion
from livens.models.base import Model
from livens.models.observable import output_expression
from livens.types import ModelFunction

if TYPE_CHECKING:
    from livens.analysis.linearise import Linearisation

#: Singular values of E below this fraction of the largest belong to variables without inertia.
_RANK_TOLERANCE = 1e-10


class InputsAndOutputs:
    """Inputs (parameters) and outputs (expressions of the state) of a model."""

    def __init__(self, model: Model, inputs: Sequence[str], outputs: Sequence[str | ModelFunction]) -> None:
        self._model, view = model, model.view
        self.input_labels, self._indices = _input_indices(model, inputs)
        self._multipliers = ca.SX.sym("lam", len(model.constraint_names))
        columns: list[Any] = []
        labels: list[str] = []
        for output in (outputs,) if isinstance(outputs, str) or callable(outputs) else outputs:
            column = ca.densify(output_expression(model, output, self._multipliers))
            name = output if isinstance(output, str) else getattr(output, "__name__", "output")
            name = f"y{len(labels)}" if name == "<lambda>" else name
            labels += [name] if column.numel() == 1 else [f"{name}[{i}]" for i in range(column.numel())]
            columns.append(ca.reshape(column, -1, 1))
        self.output_labels, self._outputs, self._view = tuple(labels), ca.vertcat(*columns), view

    # -- matrices ----------------------------------------------------------------------------------------------------
    def matrices_of_system(
        self, d: Any, q: np.ndarray, lam: Any, multipliers: np.ndarray, force: Any, t: float, k: np.ndarray, free: Any
    ) -> dict[str, Any]:
        """Return B, C, D of displacements and velocities along the free directions of a system."""
        inputs = d.k[self._indices]
        if self._indices and ca.depends_on(d.g, inputs):
            raise InputError("constraints depend on an input: its derivatives with respect to time would be inputs too")
        outputs = self._substituted({"p": d.fibre_derivative})
        outputs = ca.substitute(outputs, self._multipliers, lam) if lam.numel() else outputs
        if lam.numel() and ca.depends_on(outputs, lam):
            raise InputError("an output depends on constraint forces, which are not a function of the state")
        jacobians = [
            ca.densify(ca.jacobian(expression, symbol))
            for expression, symbol in (
                (force, inputs), (outputs, d.q), (outputs, d.v), (outputs, inputs),
            )
        ]  # fmt: skip
        evaluate = ca.Function("ports", [d.q, d.v, lam, d.t, d.k], jacobians)
        by_input, by_q, by_v, D = (np.array(part) for part in evaluate(q, np.zeros(len(q)), multipliers, t, k))
        B = np.vstack([np.zeros((free.shape[1], by_input.shape[1])), free.T @ by_input])
        return self._fields(B, np.hstack([by_q @ free, by_v @ free]), D)

    def matrices(
        self,
        state: Any,
        rates: Any,
        x: np.ndarray,
        t: float,
        k: np.ndarray,
        time: Any,
        parameters: Any,
        dependent: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Return B, C, D of ``E x' = rates(x, t, k)``; `dependent` are expressions of variables that are not states."""
        view = self._view
        outputs = self._substituted(dependent)
        view_states = [symbol for name, symbol in view.symbols.items() if name not in dependent]
        outputs = ca.substitute(outputs, ca.vertcat(*view_states, view.t, view.k), ca.vertcat(state, time, parameters))
        inputs = parameters[self._indices]
        jacobians = [
            ca.densify(ca.jacobian(expression, symbol))
            for expression, symbol in ((rates, inputs), (outputs, state), (outputs, inputs))
        ]
        B, C, D = (np.array(part) for part in ca.Function("ports", [state, time, parameters], jacobians)(x, t, k))
        return self._fields(B, C, D)

    def _substituted(self, dependent: Mapping[str, Any]) -> Any:
        outputs = self._outputs
        for name, expression in dependent.items():
            if name in self._view.symbols:
                outputs = ca.substitute(outputs, self._view.symbols[name], expression)
        return outputs

    def _fields(self, B: np.ndarray, C: np.ndarray, D: np.ndarray) -> dict[str, Any]:
        return dict(B=B, C=C, D=D, inputs=self.input_labels, outputs=self.output_labels)


def _input_indices(model: Model, inputs: Sequence[str]) -> tuple[tuple[str, ...], list[int]]:
    """Return labels of the inputs and their indices in the parameter vector."""
    labels: list[str] = []
    indices: list[int] = []
    entries = model.parameter_table.entries
    for name in (inputs,) if isinstance(inputs, str) else inputs:
        if not isinstance(name, str) or name not in entries:
            raise InputError(f"unknown input '{name}'{suggestion(str(name), entries)}")
        first, *tied = entries[name].slices
        if tied:
            raise InputError(f"the parameter '{name}' is shared by several elements and cannot be an input")
        size = first.stop - first.start
        labels += [name] if size == 1 else [f"{name}[{i}]" for i in range(size)]
        indices += range(first.start, first.stop)
    return tuple(labels), indices


def to_control(linearisation: Linearisation) -> Any:
    """Return a linearisation as a `control.StateSpace`; see `Linearisation.to_control`."""
    try:
        import control
    except ImportError:
        raise MissingExtraError("a state space of python-control", "control") from None
    E, A, B, C, D = (getattr(linearisation, name) for name in "EABCD")
    n = len(A)
    B, C = B.reshape(n, -1), C.reshape(-1, n)
    U, sizes, Vt = scipy.linalg.svd(E)
    rank = int(np.sum(sizes > _RANK_TOLERANCE * sizes.max(initial=0.0)))
    if rank < n:  # E = U S V^T: the equations U2^T (A w + B u) = 0 determine V2^T w
        A, B, C = U.T @ A @ Vt.T, U.T @ B, C @ Vt.T
        algebraic = A[rank:, rank:]
        if np.linalg.matrix_rank(algebraic, tol=_RANK_TOLERANCE * max(1.0, float(np.linalg.norm(A)))) < n - rank:
            raise InputError("variables without inertia cannot be eliminated: reduce the index of the model first")
        by_state, by_input = np.linalg.solve(algebraic, A[rank:, :rank]), np.linalg.solve(algebraic, B[rank:])
        D = D.reshape(len(C), -1) - C[:, rank:] @ by_input
        C = C[:, :rank] - C[:, rank:] @ by_state
        B, A = B[:rank] - A[:rank, rank:] @ by_input, A[:rank, :rank] - A[:rank, rank:] @ by_state
        E = np.diag(sizes[:rank])
    # signal names of python-control contain no dots
    names = linearisation.inputs, linearisation.outputs
    inputs, outputs = ([name.replace(".", "_") for name in part] for part in names)
    labels = dict(inputs=inputs or None, outputs=outputs or None)
    feedthrough = D.reshape(len(C), B.shape[1])
    return control.StateSpace(np.linalg.solve(E, A), np.linalg.solve(E, B), C, feedthrough, **labels)
