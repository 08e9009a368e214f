"""Environments of Gymnasium, single and in SIMD lanes: actions are parameters, observations are outputs by name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import casadi as ca
import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from livens.engine.ensemble.lane_run import EnsembleRun, TimeGrid
from livens.errors import InputError, IntegrationError, explain_call_errors
from livens.models.base import Model
from livens.models.problem import Problem
from livens.multibody.multibody import Multibody
from livens.run.drive import Outputs, input_indices
from livens.run.ensemble.run import lane_stepper, unsupported_reason
from livens.run.prepare import prepare
from livens.run.startup import compile_and_start, initial_unknowns
from livens.schemes.core.scheme import Scheme
from livens.validation import check_integer, check_positive

#: Function of observation and action that returns the reward; the last axis of both are their entries.
Reward = Callable[[np.ndarray, np.ndarray], Any]
#: Function of a random generator that returns initial values, such as ``{"q0": ..., "v0": ...}``.
Reset = Callable[[np.random.Generator], Mapping[str, Any]]
#: Number of consistent initial states from which episodes of lanes start; each takes about half a millisecond.
_N_STARTS = 256


class _Task:
    """Arguments of an environment: names, prepared step, reward, end of an episode, initial values, and spaces."""

    def __init__(
        self,
        model: Multibody | Problem | Model,
        action: str | Sequence[str],
        observation: str | Sequence[str],
        reward: Reward,
        terminated: Callable[[np.ndarray], Any] | None,
        reset: Reset | None,
        dt: float,
        substeps: int,
        scheme: str | Scheme | None,
        low: Any,
        high: Any,
        max_steps: int,
    ) -> None:
        if isinstance(model, Multibody):
            model = model.problem()
        if not isinstance(model, (Model, Problem)):
            raise InputError(f"an environment needs a Multibody, a Problem or a model, got {model!r}")
        self.actions, self.observations = _parse_names("action", action), _parse_names("observation", observation)
        for name, function in (("reward", reward), ("terminated", terminated), ("reset", reset)):
            if not callable(function) and (name == "reward" or function is not None):
                raise InputError(f"{name} must be a function, got {function!r}")
        self.substeps = check_integer("substeps", substeps, minimum=1)
        self.max_steps = check_integer("max_steps", max_steps, minimum=1)
        h = check_positive("dt", dt) / self.substeps
        self.step = prepare(model, scheme, h=h, redundant="remove", compile=False)
        self.reward, self.terminated, self.reset = reward, terminated, reset
        shape = (len(self.actions),)
        bounds = [np.asarray(bound, dtype=float) for bound in (low, high)]
        if any(bound.shape not in ((), shape) for bound in bounds) or not np.all(bounds[0] < bounds[1]):
            raise InputError(
                f"low and high must be numbers or {len(self.actions)} numbers, low < high: {low!r}, {high!r}"
            )
        lowest, highest = (np.broadcast_to(bound, shape).astype(np.float32) for bound in bounds)
        self.action_space = gymnasium.spaces.Box(lowest, highest, shape, np.float32)

    def initial_values(self, random: np.random.Generator) -> dict[str, Any]:
        """Return the initial values of an episode; empty for those of the problem."""
        return {} if self.reset is None else dict(self.reset(random))

    @staticmethod
    def observation_space(size: int) -> gymnasium.spaces.Box:
        """Return the unbounded space of observations."""
        return gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float64)


def _parse_names(what: str, names: str | Sequence[str]) -> list[str]:
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

    @functools.partial(explain_call_errors, name="gym.Env")
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
        task = _Task(model, action, observation, reward, terminated, reset, dt, substeps, scheme, low, high, max_steps)
        initial = task.initial_values(np.random.default_rng(0))
        self._task, self._n_actions = task, 0
        self._drive = task.step.drive(task.actions, task.observations, **initial)
        self._default_start = self._drive.state()
        self.action_space, self.observation_space = task.action_space, task.observation_space(self._drive.outputs.size)

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
        if self._task.reset is None:
            return self._drive.restart(self._default_start).copy(), {}
        return self._drive.reset(**self._task.initial_values(self.np_random)).copy(), {}

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
        task, self._n_actions = self._task, self._n_actions + 1
        observation = self._drive.advance(task.substeps).copy()
        is_terminated = task.terminated is not None and bool(task.terminated(observation))
        reward = float(task.reward(observation, np.asarray(action)))
        return observation, reward, is_terminated, self._n_actions >= task.max_steps, {}


class VectorEnv(gymnasium.vector.VectorEnv[np.ndarray, np.ndarray, np.ndarray]):
    """Many environments of one mechanism or model, integrated together in SIMD lanes.

    Arguments are those of `Env`. Finished environments start again with the next action, which is then not applied
    (`AutoresetMode.NEXT_STEP` of Gymnasium). Forces must not depend on time explicitly.

    Parameters
    ----------
    model : Multibody, Problem or Model
        Mechanism or model.
    num_envs : int
        Number of environments.
    action, observation : str or sequence of str
        Names of parameters and of outputs.
    reward : callable
        Function of observations and actions, shape (num_envs, n), that returns the rewards.
    terminated : callable, optional
        Function of the observations that returns a mask.
    reset : callable, optional
        Function of a random generator that returns initial values. 256 consistent initial states are computed once.
    dt : float, default 0.02
        Time between actions in seconds.
    substeps : int, default 1
        Number of steps between actions.
    scheme : str or Scheme, optional
        Scheme with fixed steps.
    low, high : float or array_like, default -1.0 and 1.0
        Bounds of the actions.
    max_steps : int, default 1000
        Number of actions after which an episode is truncated.
    threads : int, default 1
        Number of threads.

    Raises
    ------
    InputError
        If a name is unknown, the model cannot run in lanes, or an observation depends on an action.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": [],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    @functools.partial(explain_call_errors, name="gym.VectorEnv")
    def __init__(
        self,
        model: Multibody | Problem | Model,
        num_envs: int,
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
        threads: int = 1,
    ) -> None:
        self.num_envs = check_integer("num_envs", num_envs, minimum=1)
        task = _Task(model, action, observation, reward, terminated, reset, dt, substeps, scheme, low, high, max_steps)
        random = np.random.default_rng(0)
        initial_values = [task.initial_values(random) for _ in range(1 if reset is None else _N_STARTS)]
        plan = task.step._make_plan(initial_values[0], t_end=dt)
        reason = unsupported_reason(plan)
        if reason:
            raise InputError(reason)
        self._indices, self._numbers = input_indices(plan.model, task.actions)
        self._measure = Outputs(plan.model, task.observations)
        if ca.depends_on(self._measure.column, plan.model.view.k[self._indices.tolist()]):
            raise InputError("an observation depends on an action parameter: observe the state instead")
        compiled, initial = compile_and_start(plan)
        plans = [plan.with_inputs({**plan.start, **values}, plan.parameters) for values in initial_values]
        states = [initial] + [
            compiled.model.initial_state(other.start, other.k, other.t0, other.project, other.redundant)
            for other in plans[1:]
        ]
        self._starts = np.array(
            [initial_unknowns(other, compiled, state)[0] for other, state in zip(plans, states, strict=True)]
        )
        self._default_k, self._model, self._layout = plan.k, plan.model, compiled.layout
        self._states = np.repeat(self._starts[:1], self.num_envs, axis=0)
        self._k = np.repeat(plan.k[None, :], self.num_envs, axis=0)
        stepper = lane_stepper(compiled, plan, self._starts[:1], plan.k[None, :])
        grid = TimeGrid(plan.h, plan.t0, task.substeps, 0.0, task.substeps, np.arange(compiled.layout.size))
        self._run = EnsembleRun(stepper, self._states, self._k, grid, check_integer("threads", threads, minimum=1))
        self._times = np.full(self.num_envs, plan.t0)
        self._n_actions, self._is_done = np.zeros(self.num_envs, dtype=int), np.zeros(self.num_envs, dtype=bool)
        self._task = task
        self.single_action_space = task.action_space
        self.single_observation_space = task.observation_space(self._measure.size)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start all episodes and return the observations.

        Parameters
        ----------
        seed : int, optional
            Seed of the choice of initial states.
        options : dict, optional
            Accepted for compatibility; not used.

        Returns
        -------
        observations : ndarray of shape (num_envs, n)
            Observations of the initial states.
        info : dict
            Empty.
        """
        super().reset(seed=seed[0] if isinstance(seed, list) else seed)
        self._measure.forget()
        self._start(np.arange(self.num_envs))
        return self._observe(), {}

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Apply one action in every environment for the time `dt`.

        Parameters
        ----------
        actions : array_like of shape (num_envs, n_actions)
            Values of the action parameters.

        Returns
        -------
        observations, rewards, terminated, truncated : ndarray
            Arrays whose first axis is the environment.
        info : dict
            Empty.

        Raises
        ------
        IntegrationError
            If a step cannot be solved.
        """
        restarted = np.flatnonzero(self._is_done)
        self._k[:, self._indices] = np.asarray(actions)[:, self._numbers]
        self._move_branches()
        result = self._run.run()
        failures = {member: text for member, text in result.failures.items() if not self._is_done[member]}
        if failures:
            member, text = next(iter(failures.items()))
            raise IntegrationError(f"environment {member}: {text}")
        self._states[:] = result.states[:, -1]
        self._n_actions += 1
        if restarted.size:
            self._measure.forget(restarted)
            self._start(restarted)
        observations = self._observe()
        rewards = np.broadcast_to(
            np.asarray(self._task.reward(observations, np.asarray(actions)), float), self.num_envs
        )
        is_terminated = np.zeros(self.num_envs, dtype=bool)
        if self._task.terminated is not None:
            is_terminated |= np.asarray(self._task.terminated(observations), dtype=bool)
        is_truncated = self._n_actions >= self._task.max_steps
        rewards = rewards.copy()
        rewards[restarted], is_terminated[restarted] = 0.0, False
        self._is_done = is_terminated | is_truncated
        return observations, rewards, is_terminated, is_truncated, {}

    def _move_branches(self) -> None:
        """Move the branches of continuous angles of joints to the current angles."""
        branches, layout = self._model.angle_branches, self._layout
        if branches is None:
            return
        angles = np.array(branches.wrapped_angles(self._states[:, layout["q"]].T, self._k.T)).T
        for member, wrapped in enumerate(angles):
            self._k[member] = branches.moved(wrapped, self._k[member])

    def _start(self, members: np.ndarray) -> None:
        self._states[members] = self._starts[self.np_random.integers(len(self._starts), size=members.size)]
        self._n_actions[members], self._is_done[members], self._k[members] = 0, False, self._default_k

    def _observe(self) -> np.ndarray:
        return self._measure(self._times, self._states, self._default_k)
