"""Stepper of the variable-order Radau method: selection of the number of stages, and transfer of the unknowns."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.engine.factors import Order
from livens.engine.fused import FusedStepper
from livens.engine.loop import Policy
from livens.engine.newton import PAST
from livens.engine.step_size import SAFETY, Control
from livens.engine.steps import Carry, Cost, Steps, Trouble, step_constants
from livens.errors import IntegrationError
from livens.models.descriptor import DescriptorModel
from livens.schemes.radau import FIRST, MOST, FewerStages, Radau, at_nodes

if TYPE_CHECKING:
    from livens.engine.compiled import CompiledStep

#: Steps between selections of the number of stages: initial interval, and maximum after repeated doubling.
_SOON, _LATE = 4, 32
#: Largest ratio of the work per unit time at which the number of stages changes: steps after a change cost more.
_BETTER = 0.85
#: Maximum number of operations of a Newton iteration, limited by compilation time.
_LONGEST = 20_000
#: Size of the header of the stepper state, in front of the unknowns: number of stages, steps since the last selection,
#: interval to the next selection.
_HEADER = 3


class VariableOrderStepper:
    """Stepper that delegates to one fused stepper per number of stages.

    The complete state is in `IntegratorState.stepper_state`, so that a resumed run continues bit for bit. Callers
    receive the unknowns of the maximum number of stages: the collocation polynomial at their nodes.
    """

    def __init__(
        self,
        compiled: CompiledStep,
        k: np.ndarray,
        control: Control,
        member: Callable[[int], CompiledStep],
        order_for: Callable[[CompiledStep, np.ndarray, np.ndarray], Order],
    ) -> None:
        self.cost = Cost()
        self._compiled, self._k, self._control = compiled, k, control
        self._member, self._order_for = member, order_for
        self._steppers: dict[int, FusedStepper] = {}
        self._n = compiled.size // MOST
        # variables of higher index require at least three stages
        self._fewest = FIRST if max(_of_first_order(compiled).pencil.indices) > 1 else Radau.stages[0]
        self._most = max(FIRST, *(s for s in Radau.stages if self._work(s) <= _LONGEST), self._fewest)

    # -- stepper protocol ---------------------------------------------------------------------------------------------
    def release(self) -> None:
        for stepper in self._steppers.values():
            stepper.release()

    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for s, stepper in self._steppers.items():
            found |= {f"{name}_{s}": order for name, order in stepper.state().items()}
        return found

    def restore(self, stored: dict[str, Any]) -> None:
        for s in Radau.stages:
            if f"row_order_{s}" in stored:
                order: Any = tuple(tuple(map(int, stored[f"{name}_order_{s}"])) for name in ("row", "column"))
                self._steppers[s] = self._made(s, order)

    def advance(self, carry: Carry, steps: int, policy: Policy, going: np.ndarray) -> Steps:
        parts: list[Steps] = []
        now, left, before = carry, steps, carry
        trouble: Trouble | None = None
        reached = False
        while left and trouble is None and not reached:
            s, since, pause = self._header(now)
            burst = min(left, max(1, int(pause - since))) if policy.controlled else left
            own = self._own(now)
            taken = self._stepper(s, own).advance(own, burst, policy, going)
            trouble, reached = taken.trouble, taken.reached
            parts.append(self._shown(taken, s, since, pause))
            now = parts[-1].carry
            left -= taken.taken
            if policy.controlled and taken.taken and trouble is None and not reached:
                now = self._thought_over(now, taken, going)
                parts[-1].M[-1] = now.memory  # type: ignore[index]  # not None here
            elif not taken.taken:
                break
        self._count(going, policy)
        return _joined(parts, before, now, trouble, reached)

    # -- fixed number of stages ---------------------------------------------------------------------------------------
    def _header(self, carry: Carry) -> tuple[int, float, float]:
        if not carry.memory.size:
            return FIRST, 0.0, float(_SOON)
        s, since, pause = carry.memory[:_HEADER]
        return int(s), float(since), float(pause)

    def _own(self, carry: Carry) -> Carry:
        """Return the integrator state of the stepper with this number of stages."""
        s, _, _ = self._header(carry)
        if not carry.memory.size:
            c = step_constants(1.0, carry.t, self._k)
            return Carry.start(carry.t, carry.z, self._member(s).first_guess(carry.z, c))
        return Carry.start(carry.t, carry.z, carry.memory[_HEADER : _HEADER + s * self._n])

    def _stepper(self, s: int, own: Carry) -> FusedStepper:
        if s not in self._steppers:
            self._steppers[s] = self._made(s, self._order_for(self._member(s), own.x[-1], own.z))
        return self._steppers[s]

    def _made(self, s: int, order: Order) -> FusedStepper:
        compiled = self._member(s)
        error = compiled.flat.error
        assert error is not None
        return FusedStepper(compiled, self._k, order, replace(self._control, order=error.order))

    def _shown(self, taken: Steps, s: int, since: float, pause: float) -> Steps:
        """Return the chunk with the unknowns of the maximum number of stages, and the stepper state after each step."""
        count, n = taken.taken, self._n
        X = np.einsum("ij,tjn->tin", _nodes(s, MOST), taken.X.reshape(count, s, n)).reshape(count, MOST * n)
        M = np.zeros((count, _HEADER + MOST * n))
        M[:, 0], M[:, 1], M[:, 2] = s, since + np.arange(1, count + 1), pause
        M[:, _HEADER : _HEADER + s * n] = taken.X
        past = taken.before if not count else taken.carry
        rows = np.zeros((PAST, MOST * n))
        memory = M[-1].copy() if count else np.concatenate([[s, since, pause], taken.before.x[-1]])
        if memory.size < _HEADER + MOST * n:
            memory = np.concatenate([memory, np.zeros(_HEADER + MOST * n - memory.size)])
        carry = Carry(past.t, past.z, rows, np.zeros(MOST * n), np.full(MOST * n, np.inf), memory)
        return replace(
            taken,
            times=taken.times.copy(),
            states=taken.states.copy(),
            X=X,
            iterations=taken.iterations.copy(),
            carry=carry,
            M=M,
        )

    def _count(self, going: np.ndarray, policy: Policy) -> None:
        costs = [stepper.cost for stepper in self._steppers.values()]
        for name in ("repivots", "reference_steps", "compile_s"):
            setattr(self.cost, name, sum(getattr(cost, name) for cost in costs))
        if policy.controlled:
            self.cost.rejected, self.cost.unsolved = int(going[0]["failures"]), int(going[0]["unsolved"])

    # -- selection of the number of stages ----------------------------------------------------------------------------
    def _thought_over(self, carry: Carry, taken: Steps, going: np.ndarray) -> Carry:
        """Return the state, with another number of stages if its estimated work per unit time is smaller."""
        s, since, pause = self._header(carry)
        if since < pause or going[0]["since_failure"] < 1.0:
            return carry
        h, norm = float(taken.sizes[-1]), max(float(going[0]["norm"]), 1e-10)
        c = step_constants(h, float(taken.times[-2]), self._k)
        tolerated = self._control.absolute, self._control.relative
        fewer = max(self._fewer(s)(taken.X[-1], taken.states[-2], c, *tolerated), 1e-10)
        errors = {s: norm}
        if s > self._fewest:
            errors[s - 1] = fewer
        if s < self._most and fewer > norm:
            errors[s + 1] = norm**2 / fewer
        sizes = {j: self._reach(j, error) for j, error in errors.items()}
        best = min(sizes, key=lambda j: self._work(j) / sizes[j])
        memory, n = carry.memory.copy(), self._n
        memory[1], memory[2] = 0.0, min(2 * pause, _LATE)
        stays = replace(carry, memory=memory.copy())
        if best == s or self._work(best) / sizes[best] > _BETTER * self._work(s) / sizes[s]:
            return stays
        slopes = _nodes(s, best) @ memory[_HEADER : _HEADER + s * n].reshape(s, n)
        memory[:] = 0.0
        memory[0], memory[1], memory[2] = best, 0.0, _SOON
        memory[_HEADER : _HEADER + best * n] = slopes.ravel()
        other = replace(carry, memory=memory)
        try:
            self._stepper(best, self._own(other))
        except IntegrationError:  # the equations cannot be solved with this number of stages here
            return stays
        going["norm"], going["equal"] = errors[best], 0.0
        going["size"] = min(h * min(sizes[best], self._control.increase), self._control.largest)
        return other

    def _reach(self, s: int, error: float) -> float:
        """Return the admissible ratio of step sizes with s stages, given the scaled error of the last size."""
        order = self._compiled.flat.error.order - (MOST - s)  # type: ignore[union-attr]  # not None here
        return float(SAFETY * error ** (-1.0 / (order + 1.0)))

    def _work(self, s: int) -> float:
        """Return the operations of a Newton iteration with s stages: residual, derivatives, elimination."""
        found: float = self._compiled.once(("work", s), lambda: self._counted(s))
        return found

    def _counted(self, s: int) -> float:
        terms = self._compiled.flat.newton_function.n_instructions() / MOST
        return s * terms + (s * self._n) ** 3 / 3.0

    def _fewer(self, s: int) -> FewerStages:
        compiled = self._member(s)
        found: FewerStages = self._compiled.once(
            ("fewer", s), lambda: FewerStages(_of_first_order(compiled).without(compiled.dropped), compiled.flat, s)
        )
        return found


def _of_first_order(compiled: CompiledStep) -> DescriptorModel:
    """Return the descriptor model, the only model type of Radau steps."""
    assert isinstance(compiled.model, DescriptorModel)
    return compiled.model


@functools.lru_cache(maxsize=64)
def _nodes(s: int, other: int) -> np.ndarray:
    return np.eye(s) if s == other else at_nodes(s, other)


def _joined(parts: list[Steps], before: Carry, after: Carry, trouble: Trouble | None, reached: bool) -> Steps:
    if len(parts) == 1:
        return replace(parts[0], before=before, carry=after, trouble=trouble, reached=reached)
    first, *rest = parts
    together = {
        name: np.concatenate([getattr(first, name), *(getattr(part, name)[1:] for part in rest)])
        for name in ("times", "states")
    }
    others = {name: np.concatenate([getattr(part, name) for part in parts]) for name in ("sizes", "X", "iterations")}
    M = np.concatenate([part.M for part in parts if part.M is not None])
    return Steps(**together, **others, before=before, carry=after, trouble=trouble, reached=reached, M=M)
