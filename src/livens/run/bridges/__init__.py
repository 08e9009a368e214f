"""Simulations as layers of JAX and PyTorch: `livens.bridges.jax` and `livens.bridges.torch`.

Both packages are optional dependencies: ``pip install 'livens[jax]'``, ``'livens[torch]'``.
"""

from livens.run.bridges import jax, torch

__all__ = ["jax", "torch"]
