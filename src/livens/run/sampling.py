"""Sampled (zero-order-hold) controllers of a run: called between steps, with commands held until the next sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from livens.engine.steps import Carry
from livens.errors import InputError
from livens.expressions.layout import Layout
from livens.models.controller import Controller
from livens.run.plan import Plan


class Sampling:
    """Sampled controllers of a model, called every fixed number of steps.

    The current commands are part of the state of the run. This class stores the internal states of the controllers,
    and the history of sample times and commands.
    """

    name = "controllers"

    def __init__(self, plan: Plan, controllers: Sequence[Controller], layout: Layout) -> None:
        self._plan, self._controllers, self._layout = plan, list(controllers), layout
        if not plan.equal_steps:
            raise InputError("a model with sampled controllers needs fixed steps in physical time")
        self._steps = []
        for one in self._controllers:
            count = max(1, round(one.every / plan.h))
            if abs(count * plan.h - one.every) > 1e-9 * one.every:
                raise InputError(
                f"the sampling interval {one.every:g} of controller '{one.name}' must be an integer multiple of the "
                f"step size h = {plan.h:g}"
                )
            self._steps.append(count)
        self._states = [one.state.copy() for one in self._controllers]
        self._times: list[float] = []
        self._said: list[np.ndarray] = []

    def room(self, step: int) -> int:
        """Return the number of steps until the next sample."""
        return min(count - step % count for count in self._steps)

    def sample(self, carry: Carry, step: int) -> Carry:
        """Return the state with new commands of all controllers that are due."""
        due = [i for i, count in enumerate(self._steps) if step % count == 0]
        if not due:
            return carry
        z, layout = carry.z.copy(), self._layout
        commands = z[layout["control"]].copy()
        q, v = z[layout["q"]], z[layout["v"]]
        for i in due:
            one = self._controllers[i]
            seen = np.array(one.measure(q, v, carry.t, self._plan.k)).ravel()
            known = (self._states[i].copy(),) if one.state.size else ()
            answer = one.function(carry.t, seen, *known)
            said, self._states[i] = self._checked(one, answer)
            commands[list(one.commands)] = said
        z[layout["control"]] = commands
        self._times.append(carry.t)
        self._said.append(commands)
        return replace(carry, z=z)

    def _checked(self, one: Controller, answer: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return commands and controller state after checking their sizes and that they are finite."""
        said, state = answer if one.state.size and isinstance(answer, tuple) and len(answer) == 2 else (answer, [])
        wanted = len(one.commands), one.state.size
        try:
            numbers = [np.atleast_1d(np.asarray(part, dtype=float)).ravel() for part in (said, state)]
        except (TypeError, ValueError):
            numbers = [np.full(1, np.nan), np.zeros(0)]
        if tuple(part.size for part in numbers) != wanted or not all(np.isfinite(part).all() for part in numbers):
            words = f"{wanted[0]} finite numbers" + (f" and a state of {wanted[1]}" if wanted[1] else "")
            raise InputError(f"the controller '{one.name}' must return {words}, got {answer!r}")
        return numbers[0], numbers[1]

    def state(self) -> dict[str, Any]:
        width = len(self._said[0]) if self._said else self._layout.sizes["control"]
        return {
            "states": np.concatenate(self._states) if self._states else np.zeros(0),
            "times": np.array(self._times),
            "said": np.array(self._said).reshape(len(self._said), width),
        }

    def restore(self, stored: dict[str, Any]) -> None:
        ends = np.cumsum([one.state.size for one in self._controllers])[:-1]
        self._states = [part.copy() for part in np.split(np.ravel(stored["states"]), ends)]
        self._times = np.ravel(stored["times"]).tolist()
        self._said = list(np.array(stored["said"]).reshape(len(self._times), self._layout.sizes["control"]))
