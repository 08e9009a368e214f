"""Wisdom-Holman stepper: Jacobi coordinates persist between steps; states are transformed back after every step."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from livens.engine.loop import Policy, count
from livens.engine.planets.code import lanes_for, planet_code, row_names
from livens.engine.steps import Carry, Cost, Steps, Trouble, finite
from livens.schemes.kepler_maps import rows
from livens.schemes.wisdom_holman import PlanetEquations, numbers_of

if TYPE_CHECKING:
    from livens.engine.compiled import CompiledStep

_POINTER, _WHOLE = ctypes.c_void_p, ctypes.c_int64
_UNSOLVED = "Kepler's equation is not solved: the step is too long for an orbit, or bodies have come too close"


class _Under(NamedTuple):
    """Planets in the Jacobi coordinates of the kick-drift map, and motion of the centre of mass."""

    planets: np.ndarray  # positions, then velocities, in SIMD lanes
    centre: np.ndarray  # position and velocity of the centre of mass at the time `t_centre`
    since: float
    h: float  # step size of the map


class PlanetStepper:
    """Stepper of the Wisdom-Holman map with fixed steps."""

    def __init__(self, compiled: CompiledStep, k: np.ndarray) -> None:
        equations = compiled.equations
        assert isinstance(equations, PlanetEquations)
        self.cost = Cost()
        self._e, self._n, self._d = equations, equations.planets, equations.dimension
        self._lanes = lanes_for(self._n)
        self._code = compiled.once("planets", lambda: planet_code(self._n, self._d))
        self._rows = ctypes.CFUNCTYPE(
            _WHOLE, _POINTER, _POINTER, _WHOLE, _POINTER, _WHOLE, *[_POINTER] * 3, _WHOLE, _WHOLE
        )(self._code.address)
        G, masses = equations.model.gravity(k)
        self._masses = np.array(masses)
        self._there, self._back = (numbers_of(make(masses)) for make in (equations.to_jacobi, equations.from_jacobi))
        self._inside = np.zeros((self._lanes, self._n + 1))
        self._inside[: self._n] = self._back[:, 1:].T
        known = rows(G, masses)
        # unused lanes repeat the first planet with zero weight
        self._numbers = np.array([self._padded(known[name], name == "mu") for name in row_names(self._n)])

    def _padded(self, values: Any, repeated: bool) -> list[float]:
        numbers = [float(value) for value in values]
        return numbers + [numbers[0] if repeated else 0.0] * (self._lanes - self._n)

    def release(self) -> None:
        """Do nothing: there is no pooled workspace."""

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, stored: dict[str, Any]) -> None:
        """Do nothing: the integrator state is complete."""

    # -- coordinates --------------------------------------------------------------------------------------------------
    def _part(self, z: np.ndarray, name: str) -> np.ndarray:
        return z[self._e.layout[name]].reshape(self._n + 1, self._d)

    def _begun(self, carry: Carry, h: float) -> _Under | None:
        """Return the Jacobi state: restored, or from positions and momenta; None if Kepler's equation fails."""
        size = 2 * self._d * self._lanes
        if carry.memory.size and carry.memory[-1] == h:
            m = carry.memory
            return _Under(m[:size].copy(), m[size:-2].copy(), float(m[-2]), h)
        places = self._there @ self._part(carry.z, "q")
        speeds = self._there @ (self._part(carry.z, "p") / self._masses[:, None])
        planets = np.zeros((2 * self._d, self._lanes))
        planets[:, : self._n] = np.concatenate([places[1:].T, speeds[1:].T])
        planets[:, self._n :] = planets[:, :1]
        flat = planets.ravel()
        head = self._scaled(self._e.head, h)
        if len(head):
            still, states, out = np.zeros((3, 2)), np.empty(size), np.empty(size)
            if not self._call(flat, still, 0, head, states, out, 1):
                return None
            flat = out
        return _Under(flat, np.concatenate([places[0], speeds[0]]), carry.t, h)

    def _scaled(self, pairs: list[tuple[float, float]], h: float) -> np.ndarray:
        return np.ascontiguousarray(np.array(pairs, dtype=float).reshape(-1, 2) * (h / self._e.count))

    def _steps(self, h: float) -> np.ndarray:
        """Return the kick and drift sizes of a step: first pair, repeated inner pairs, last pair."""
        inner = h / self._e.count
        return np.array([[0.0, inner / 2], [inner, inner], [inner, inner / 2]])

    def _call(
        self,
        state: np.ndarray,
        pairs: np.ndarray,
        between: int,
        last: np.ndarray,
        states: np.ndarray,
        out: np.ndarray,
        steps: int,
    ) -> int:
        a = [x.ctypes.data for x in (state, pairs, last, self._numbers, states, out)]
        return int(self._rows(a[0], a[1], between, a[2], len(last), a[3], a[4], a[5], state.size, steps))

    # -- stepper protocol ---------------------------------------------------------------------------------------------
    def advance(self, carry: Carry, steps: int, policy: Policy, going: np.ndarray) -> Steps:
        h = policy.h
        size = 2 * self._d * self._lanes
        begun = self._begun(carry, h)
        taken = 0
        Z = np.empty((steps + 1, carry.z.size))
        Z[:] = carry.z
        M = np.empty((steps, size + 2 * self._d + 2))
        times, sizes = np.empty(steps + 1), np.empty(steps)
        times[0] = carry.t
        count(times, sizes, policy.origin, policy.first, h)
        if begun is not None:
            states, out = np.empty((steps, size)), np.empty((steps, size))
            taken = self._call(
                begun.planets.copy(),
                self._steps(h),
                self._e.count - 1,
                self._scaled(self._e.tail, h),
                states,
                out,
                steps,
            )
            M[:, :size], M[:, size:-2], M[:, -2], M[:, -1] = states, begun.centre, begun.since, h
            self._written(Z[1 : taken + 1], out[:taken], begun, times[1 : taken + 1])
        trouble = None if taken == steps else Trouble(0.0, 0.0, "", _UNSOLVED, h)
        memory = M[taken - 1].copy() if taken else carry.memory
        after = replace(carry, t=float(times[taken]), z=Z[taken].copy(), memory=memory)
        found = Steps(
            times[: taken + 1],
            Z[: taken + 1],
            sizes[:taken],
            np.zeros((taken, 0)),
            np.zeros(taken, dtype=np.int64),
            carry,
            after,
            trouble,
            M=M[:taken],
        )
        return finite(found, None, self._e.layout)

    def _written(self, Z: np.ndarray, out: np.ndarray, begun: _Under, times: np.ndarray) -> None:
        """Write positions, velocities and momenta of all bodies into the states Z."""
        n, d, layout = self._n, self._d, self._e.layout
        # one product for all rows: many small products would take longer than the steps
        both = (out.reshape(-1, self._lanes) @ self._inside).reshape(-1, 2, d, n + 1)
        centre, speed = begun.centre[:d], begun.centre[d:]
        where = centre + (times - begun.since)[:, None] * speed
        q, v, p = (Z[:, layout[name]].reshape(len(Z), n + 1, d) for name in "qvp")
        for i in range(d):
            np.add(both[:, 0, i], where[:, i : i + 1], out=q[:, :, i])
            np.add(both[:, 1, i], speed[i], out=v[:, :, i])
        np.multiply(v, self._masses[:, None], out=p)
        for name, part in zip("qvp", (q, v, p), strict=True):
            Z[:, layout[name]] = part.reshape(len(Z), (n + 1) * d)
