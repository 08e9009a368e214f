"""Environments of Gymnasium from mechanisms and models: `Env` and `VectorEnv`.

Gymnasium is an optional dependency: ``pip install 'livens[gym]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from livens.errors import MissingExtraError

if TYPE_CHECKING:
    from livens.run.bridges.gym.environments import Env as Env
    from livens.run.bridges.gym.environments import VectorEnv as VectorEnv

__all__ = ["Env", "VectorEnv"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    try:
        from livens.run.bridges.gym import environments
    except ImportError as error:
        if error.name != "gymnasium":
            raise
        raise MissingExtraError("an environment", "gym") from None
    return getattr(environments, name)
