"""A simulation as a function that PyTorch differentiates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from livens.errors import InputError
from livens.run.bridges.layer import SimulationLayer
from livens.run.prepare import Prepared


def layer(
    step: Prepared,
    inputs: Sequence[str],
    outputs: Sequence[str],
    *,
    every: int | None = None,
    h: float | None = None,
    t_end: float | None = None,
    t0: float | None = None,
    parameters: Any = None,
) -> Callable[..., Any]:
    """A function of tensors: from initial values and parameters to the states of a run.

    Everything is as in `livens.bridges.jax.layer`. Tensors are taken to the processor and back; outputs have the type
    and the place of the first input.
    """
    try:
        import torch
    except ImportError:
        raise InputError("PyTorch is not installed: pip install 'livens[torch]'") from None
    run = dict(h=h, t_end=t_end, t0=t0, parameters=parameters)
    core = SimulationLayer(
        step, inputs, outputs, every=every, **{name: value for name, value in run.items() if value is not None}
    )

    def numbers(tensor: Any) -> Any:
        return tensor.detach().to("cpu", torch.float64).numpy()

    class Simulated(torch.autograd.Function):  # type: ignore[misc]  # torch is not typed where it is missing
        @staticmethod
        def forward(context: Any, *values: Any) -> Any:
            context.save_for_backward(*values)
            found = core.forward(*(numbers(value) for value in values))
            return tuple(torch.as_tensor(part, dtype=values[0].dtype, device=values[0].device) for part in found)

        @staticmethod
        def backward(context: Any, *bars: Any) -> Any:
            values = context.saved_tensors
            found = core.backward([numbers(value) for value in values], [numbers(bar) for bar in bars])
            return tuple(
                torch.as_tensor(part, dtype=value.dtype, device=value.device)
                for part, value in zip(found, values, strict=True)
            )

    def called(*values: Any) -> Any:
        if len(values) != len(core.inputs):
            raise InputError(f"the simulation takes {len(core.inputs)} inputs ({', '.join(core.inputs)})")
        tensors = [value if torch.is_tensor(value) else torch.tensor(value, dtype=torch.float64) for value in values]
        found = Simulated.apply(*tensors)
        return found[0] if len(core.outputs) == 1 else found

    return called
