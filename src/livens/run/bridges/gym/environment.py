"""Environment of Gymnasium: actions are parameters of a model, observations are outputs by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np

from livens.errors import InputError
from livens.models.base import Model
from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.run.prepare import Prepared, prepare
from livens.schemes.core.scheme import Scheme
from livens.validation import check_integer, check_positive

#: Function of observation and action that returns the reward; the last axis of both are their entries.
Reward = Callable[[np.ndarray, np.ndarray], Any]
#: Function of a random generator that returns initial values, such as ``{"q0": ..., "v0": ...}``.
Reset = Callable[[np.random.Generator], Mapping[str, Any]]


def prepared_model(model: Any, scheme: str | Scheme | None, dt: float, substeps: int) -> Prepared:
    """Return a mechanism, problem or model prepared with steps of ``dt / substeps``."""
    if isinstance(model, Multibody):
        model = model.problem()
    if not isinstance(model, (Model, Problem)):
        raise InputError(f"an environment needs a Multibody, a Problem or a model, got {model!r}")
    h = check_positive("dt", dt) / check_integer("substeps", substeps, minimum=1)
    return prepare(model, scheme, h=h, redundant="remove", compile=False)


def parse_names(what: str, names: str | Sequence[str]) -> list[str]:
    """Return names as a list of at least one."""
    parsed = [names] if isinstance(names, str) else list(names)
    if not parsed or not all(isinstance(name, str) for name in parsed):
        raise InputError(f"{what} must be names of {'parameters' if what == 'action' else 'outputs'}, got {names!r}")
    return parsed


class Env(gymnasium.Env[np.ndarray, np.ndarray]):
    """Environment of a mechanism or model for reinforcement learning with Gymnasium.

    Parameters
    ----------
    model : Multibody, Problem or Model
        Mechanism or model. A `Multibody` and a `Problem` have initial values.
    action : str or sequence of str
        Names of scalar parameters that the actions set, such as ``"motor.u"``.
    observation : str or sequence of str
        Names of coordinates, outputs of a mechanism (``"hinge.angle"``) or observables. Angles are continuous.
    reward : callable
        Function of observation and action that returns the reward. Write ``observation[..., i]`` for entry i, so that
        the function also suits `VectorEnv`.
    terminated : callable, optional
        Function of the observation that returns True at the end of an episode.
    reset : callable, optional
        Function of a random generator that returns initial values as a dict, such as ``{"q0": ..., "v0": ...}``.
        Default: the initial values of the problem.
    dt : float, default 0.02
        Time between actions in seconds.
    substeps : int, default 1
        Number of steps between actions.
    scheme : str or Scheme, optional
        Scheme with fixed implicit steps. Default: that of the problem or model.
    low, high : float or array_like, default -1.0 and 1.0
        Bounds of the actions.
    max_steps : int, default 1000
        Number of actions after which an episode is truncated.

    Raises
    ------
    InputError
        If a name is unknown, or the scheme has no fixed implicit steps.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}  # type: ignore[misc]

    def __init__(
        self,
        model: Multibody | Problem | Model,
        *,
        action: str | Sequence[str],
        observation: str | Sequence[str],
        reward: Reward,
        terminated: Callable[[np.ndarray], Any] | None = None,
        reset: Reset | None = None,
        dt: float = 0.02,
        substeps: int = 1,
        scheme: str | Scheme | None = None,
        low: Any = -1.0,
        high: Any = 1.0,
        max_steps: int = 1000,
    ) -> None:
        names = parse_names("action", action)
        step = prepared_model(model, scheme, dt, substeps)
        initial = {} if reset is None else dict(reset(np.random.default_rng(0)))
        self._drive = step.drive(names, parse_names("observation", observation), **initial)
        self._default_start = self._drive.state()
        self._substeps, self._max_steps, self._n_actions = substeps, max_steps, 0
        self._reward, self._terminated, self._reset = reward, terminated, reset
        self.action_space = gymnasium.spaces.Box(np.float32(low), np.float32(high), (len(names),), np.float32)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, self._drive.outputs.shape, np.float64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode and return the observation.

        Parameters
        ----------
        seed : int, optional
            Seed of the random generator of `reset`.
        options : dict, optional
            Accepted for compatibility; not used.

        Returns
        -------
        observation : ndarray
            Observation of the initial state.
        info : dict
            Empty.
        """
        super().reset(seed=seed)
        self._n_actions = 0
        self._drive.inputs.fill(0.0)
        if self._reset is None:
            return self._drive.restart(self._default_start).copy(), {}
        return self._drive.reset(**self._reset(self.np_random)).copy(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Apply an action for the time `dt`.

        Parameters
        ----------
        action : array_like
            Values of the action parameters.

        Returns
        -------
        observation : ndarray
            Observation after the time `dt`.
        reward : float
            Reward.
        terminated, truncated : bool
            True at the end of an episode, and after `max_steps` actions.
        info : dict
            Empty.

        Raises
        ------
        IntegrationError
            If a step cannot be solved.
        """
        self._drive.inputs[:] = action
        observation = self._drive.advance(self._substeps).copy()
        self._n_actions += 1
        is_terminated = bool(self._terminated(observation)) if self._terminated is not None else False
        reward = float(self._reward(observation, np.asarray(action)))
        return observation, reward, is_terminated, self._n_actions >= self._max_steps, {}
