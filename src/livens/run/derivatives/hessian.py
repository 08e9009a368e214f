"""Hessian of a loss by forward-over-reverse differentiation (tangent of the adjoint sweep)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from livens.engine.stepper import step_inputs
from livens.errors import InputError, explain_call_errors, suggestion
from livens.models.base import Model
from livens.run.derivatives.gradient import Gradient, LossTask
from livens.run.derivatives.initial_state import InitialStateDerivatives, InputTangent
from livens.run.derivatives.member_map import make_plan
from livens.run.prepare import Prepared
from livens.types import ArrayLike, FloatArray, ModelFunction


@dataclass(frozen=True)
class Hessian:
    """Second derivatives of a loss.

    Parameters
    ----------
    names : tuple of str
        Names of rows and columns: ``g``, ``q0[1]``, ``h``.
    matrix : ndarray of shape (n, n)
        Second derivatives, symmetric up to round-off.
    """

    names: tuple[str, ...]
    matrix: np.ndarray


@explain_call_errors
def hessian(
    loss: ModelFunction,
    by: str | Sequence[str],
    *,
    every: int | None = None,
    data: FloatArray | None = None,
    keep: str = "all",
) -> Callable[..., tuple[float, Gradient, Hessian]]:
    """Return a function that computes a loss of a run, its gradient and its second derivatives.

    Parameters
    ----------
    loss : callable
        Function of any of ``q, v, p, x, t, k, d`` that returns a scalar, see `livens.value_and_gradient`.
    by : str or sequence of str
        Inputs to differentiate by twice: names of parameters, ``q0``, ``v0``, ``p0``, ``x0``, ``h``, or single entries
        such as ``v0[1]``.
    every : int, optional
        Sum the loss over every `every`-th step. Default: the last state only.
    data : array_like, optional
        Data with one row per observed state, passed to the loss as ``d``.
    keep : {"all", "checkpoints"}, default "all"
        Store all states for the adjoint sweep, or checkpoints from which they are recomputed.

    Returns
    -------
    callable
        Function of a prepared step (see `livens.prepare`) and of the arguments of its `run`. It returns the value, a
        `Gradient` and a `Hessian`.

    Raises
    ------
    InputError
        If `by` is not a name or a sequence of names.

    Notes
    -----
    Each column costs about as much as two gradients and is exact for the steps that were taken.

    Examples
    --------
    >>> import livens as lv
    >>> oscillator = lv.System(
    ...     "x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q, k: k.c * q[0] ** 2 / 2, parameters=dict(c=1.0)
    ... )
    >>> step = lv.prepare(oscillator, scheme="gauss-2", h=0.01)
    >>> value, by, second = lv.hessian(lambda q: q[0], by="c")(step, q0=[1.0], v0=[0.0], t_end=1.0)
    >>> round(float(second.matrix[0, 0]), 6)  # sin(1)/4 - cos(1)/4
    0.075292
    """
    task, names = LossTask(loss, every, data, keep), _parse_names(by)

    def evaluate(
        step: Prepared,
        q0: ArrayLike | None = None,
        v0: ArrayLike | None = None,
        *,
        p0: ArrayLike | None = None,
        x0: ArrayLike | None = None,
        parameters: Mapping[str, object] | None = None,
        h: float | None = None,
        t_end: float | None = None,
        t0: float | None = None,
        project: bool | None = None,
    ) -> tuple[float, Gradient, Hessian]:
        plan = make_plan(
            step, dict(q0=q0, v0=v0, p0=p0, x0=x0), parameters=parameters, h=h, t_end=t_end, t0=t0, project=project
        )
        tape, initial_sensitivity, loss_function = task.run(plan)
        value, loss_gradient = loss_function(tape)
        columns = unit_tangents(plan.model, initial_sensitivity, names)
        initial_tangents = [initial_sensitivity.jvp(tangent) for tangent in columns.values()]
        input_tangents = [step_inputs(tangent.h, 0.0, tangent.k) for tangent in columns.values()]
        states = tape.tangents(np.array(initial_tangents), np.array(input_tangents))
        cotangent, matrix = None, np.empty((len(columns), len(columns)))
        for i, tangent in enumerate(columns.values()):
            d_loss_gradient = loss_function.gradient_jvp(tape, states[:, i], tangent.k, tangent.h)
            a, g, da, dg = tape.second_order(
                loss_gradient.cotangents, d_loss_gradient.cotangents, initial_tangents[i], input_tangents[i]
            )
            grad_h = g[0] + loss_gradient.h, dg[0] + d_loss_gradient.h
            cotangent, d_cotangent = initial_sensitivity.vjp_jvp(
                a, da, g[2:] + loss_gradient.k, dg[2:] + d_loss_gradient.k, grad_h, tangent
            )
            matrix[:, i] = [_dot(d_cotangent, other) for other in columns.values()]
        assert cotangent is not None
        return value, Gradient.from_tangent(plan.model, cotangent), Hessian(tuple(columns), matrix)

    return evaluate


def _parse_names(by: str | Sequence[str]) -> tuple[str, ...]:
    names = [by] if isinstance(by, str) else by
    if not isinstance(names, Sequence) or not names or not all(isinstance(name, str) and name for name in names):
        raise InputError(f"by must be names of parameters or initial values, got {by!r}")
    return tuple(names)


def unit_tangents(
    model: Model, initial_sensitivity: InitialStateDerivatives, names: Sequence[str]
) -> dict[str, InputTangent]:
    """Return a unit tangent for every scalar input: ``v0`` selects all its entries, ``v0[1]`` one of them."""
    tangents = dict[str, InputTangent]()
    for spec in names:
        name, _, entry = spec.partition("[")
        columns = _tangents_of(model, initial_sensitivity, name, spec)
        if entry:
            if spec not in columns:
                raise InputError(f"'{name}' has {len(columns)} entries, there is no '{spec}'")
            columns = {spec: columns[spec]}
        tangents |= columns
    return tangents


def _tangents_of(
    model: Model, initial_sensitivity: InitialStateDerivatives, name: str, spec: str
) -> dict[str, InputTangent]:
    table, tangents = model.parameter_table, dict[str, InputTangent]()
    zero_k = np.zeros(table.size)
    if name in initial_sensitivity.input_names:
        size = len(model.coordinates)
        return {f"{name}[{i}]": InputTangent({name: np.eye(size)[i]}, zero_k) for i in range(size)}
    if name == "h":
        return {"h": InputTangent({}, zero_k, 1.0)}
    if name not in table.entries and name not in table.aliases:
        valid_names = [*table.entries, *initial_sensitivity.input_names, "h"]
        raise InputError(f"cannot differentiate by '{spec}'{suggestion(name, valid_names)}")
    entry = table.lookup(name)
    for i in range(int(np.prod(entry.shape, dtype=int))):
        dk = zero_k.copy()
        for slice_ in entry.slices:
            dk[slice_.start + i] = 1.0
        tangents[name if entry.shape == () else f"{name}[{i}]"] = InputTangent({}, dk)
    return tangents


def _dot(cotangent: InputTangent, tangent: InputTangent) -> float:
    initial_part = sum(float(cotangent.initial[name] @ d_value) for name, d_value in tangent.initial.items())
    return initial_part + float(cotangent.k @ tangent.k) + cotangent.h * tangent.h
