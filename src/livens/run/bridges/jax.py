"""Simulation as a differentiable JAX function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from livens.errors import InputError, MissingExtraError
from livens.run.bridges.layer import SimulationLayer
from livens.run.prepare import Prepared
from livens.types import ModelFunction

if TYPE_CHECKING:
    from jax import Array, ShapeDtypeStruct
    from jax.typing import ArrayLike, DTypeLike


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
    """Return a differentiable JAX function from initial values and parameters to the states of a run.

    Parameters
    ----------
    step : Prepared
        Prepared step, see `livens.prepare`.
    inputs : sequence of str
        Names of initial values (``q0 v0 p0 x0``) and parameters, in the order of the arguments.
    outputs : sequence of str
        Names of variables (``q v p x``), returned as arrays of shape (n_times, n).
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
        Function of JAX arrays; returns one array, or a tuple of arrays if there are several outputs.

    Raises
    ------
    InputError
        If JAX is not installed, or a name is unknown.

    Notes
    -----
    `jax.grad`, `jax.vjp` and `jax.jit` are supported; `jax.vmap` runs sequentially. The steps are native code, and the
    derivatives are the exact derivatives of the steps. With JAX's default single precision, inputs and outputs are
    rounded; set ``jax_enable_x64`` for full precision.
    """
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        raise MissingExtraError("a JAX function", "jax") from None
    times = {name: value for name, value in dict(h=h, t_end=t_end, t0=t0).items() if value is not None}
    core = SimulationLayer(step, inputs, outputs, every=every, parameters=parameters, **times)

    def shapes(shape_list: Sequence[tuple[int, ...]]) -> list[ShapeDtypeStruct]:
        return [jax.ShapeDtypeStruct(shape, jnp.result_type(float)) for shape in shape_list]

    def forward(*values: Array) -> list[np.ndarray]:
        return _cast(core.forward(*(np.asarray(value, dtype=float) for value in values)), jnp.result_type(float))

    def backward(values: Sequence[Array], cotangents: Sequence[Array]) -> list[np.ndarray]:
        arrays = [np.asarray(value, dtype=float) for value in values]
        return _cast(core.backward(arrays, [np.asarray(cotangent) for cotangent in cotangents]), jnp.result_type(float))

    def simulated_by_callback(*values: Array) -> list[Array]:
        return jax.pure_callback(forward, shapes(core.output_shapes), *values, vmap_method="sequential")

    simulated = jax.custom_vjp(simulated_by_callback)

    def simulated_forward(*values: Array) -> tuple[list[Array], tuple[Array, ...]]:
        return simulated(*values), values

    def simulated_backward(values: tuple[Array, ...], cotangents: Sequence[Array]) -> tuple[Array, ...]:
        gradients = jax.pure_callback(backward, shapes(core.input_shapes), values, cotangents, vmap_method="sequential")
        return tuple(part.astype(jnp.result_type(value)) for part, value in zip(gradients, values, strict=True))

    simulated.defvjp(simulated_forward, simulated_backward)

    def call(*values: ArrayLike) -> Array | tuple[Array, ...]:
        if len(values) != len(core.inputs):
            raise InputError(f"the simulation takes {len(core.inputs)} inputs ({', '.join(core.inputs)})")
        results = simulated(*(jnp.asarray(value, dtype=jnp.result_type(float)) for value in values))
        return results[0] if len(core.outputs) == 1 else tuple(results)

    return call


def _cast(arrays: Sequence[np.ndarray], dtype: DTypeLike) -> list[np.ndarray]:
    return [np.asarray(part, dtype=dtype) for part in arrays]
