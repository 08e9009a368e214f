"""Simulations as layers of JAX and PyTorch: `livens.bridges.jax` and `livens.bridges.torch`.

Public module of `livens.run.bridges`.
"""

from livens.run.bridges import *
from livens.run.bridges import __all__ as __all__
