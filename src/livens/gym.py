"""Gymnasium environments of models: `livens.gym.Env` and `livens.gym.VectorEnv`.

Public module of `livens.run.bridges.gym`, which imports its names on first use.
"""

from typing import TYPE_CHECKING

from livens.run.bridges.gym import __all__ as __all__
from livens.run.bridges.gym import __getattr__ as __getattr__

if TYPE_CHECKING:
    from livens.run.bridges.gym import *
