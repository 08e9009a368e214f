"""Simulation as a differentiable PyTorch function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from livens.errors import InputError, MissingExtraError
from livens.run.bridges.layer import SimulationLayer
from livens.run.prepare import Prepared
from livens.types import ModelFunction

if TYPE_CHECKING:
    from torch import Tensor
    from torch.autograd.function import FunctionCtx


def layer(
    step: Prepared,
    inputs: Sequence[str],
    outputs: Sequence[str],
    *,
    every: int | None = None,
    h: float | None = None,
    t_end: float | None = None,
    t0: float | None = None,
    parameters: Mapping[str, object] | None = None,
) -> ModelFunction:
    """Return a differentiable PyTorch function from initial values and parameters to the states of a run.

    Tensors are copied to the CPU and back; outputs have the dtype and device of the first input.

    Parameters
    ----------
    step : Prepared
        Prepared step, see `livens.prepare`.
    inputs : sequence of str
        Names of initial values (``q0 v0 p0 x0``) and parameters, in the order of the arguments.
    outputs : sequence of str
        Names of variables (``q v p x``), returned as tensors of shape (n_times, n).
    every : int, optional
        Return every `every`-th state and the last one. Default: the last state only.
    h : float, optional
        Step size in seconds.
    t_end : float, optional
        End time in seconds.
    t0 : float, optional
        Start time in seconds.
    parameters : dict of str to array_like, optional
        Constant parameter values by name.

    Returns
    -------
    callable
        Function of tensors; returns one tensor, or a tuple of tensors if there are several outputs.

    Raises
    ------
    InputError
        If PyTorch is not installed, or a name is unknown.
    """
    try:
        import torch
    except ImportError:
        raise MissingExtraError("a PyTorch function", "torch") from None
    times = {name: value for name, value in dict(h=h, t_end=t_end, t0=t0).items() if value is not None}
    core = SimulationLayer(step, inputs, outputs, every=every, parameters=parameters, **times)

    def to_numpy(tensor: Tensor) -> np.ndarray:
        return tensor.detach().to("cpu", torch.float64).numpy()

    class Simulated(torch.autograd.Function):  # type: ignore[misc]  # torch is not typed where it is missing
        @staticmethod
        def forward(context: FunctionCtx, *values: Tensor) -> tuple[Tensor, ...]:
            context.save_for_backward(*values)
            results = core.forward(*(to_numpy(value) for value in values))
            return tuple(torch.as_tensor(part, dtype=values[0].dtype, device=values[0].device) for part in results)

        @staticmethod
        def backward(context: FunctionCtx, *cotangents: Tensor) -> tuple[Tensor, ...]:
            values = context.saved_tensors
            results = core.backward(
                [to_numpy(value) for value in values], [to_numpy(cotangent) for cotangent in cotangents]
            )
            return tuple(
                torch.as_tensor(part, dtype=value.dtype, device=value.device)
                for part, value in zip(results, values, strict=True)
            )

    def call(*values: Tensor | ArrayLike) -> Tensor | tuple[Tensor, ...]:
        if len(values) != len(core.inputs):
            raise InputError(f"the simulation takes {len(core.inputs)} inputs ({', '.join(core.inputs)})")
        tensors = [value if torch.is_tensor(value) else torch.tensor(value, dtype=torch.float64) for value in values]
        results = Simulated.apply(*tensors)
        return results[0] if len(core.outputs) == 1 else results

    return call
