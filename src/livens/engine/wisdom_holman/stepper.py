"""Wisdom-Holman stepper: Jacobi coordinates persist between steps; states are transformed back after every step."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from livens.engine.newton.time_loop import StepPolicy, fill_time_grid
from livens.engine.stepper import IntegratorState, StepChunk, StepFailure, Stepper, truncate_at_nonfinite
from livens.engine.wisdom_holman.kernel import lane_count, row_names, wisdom_holman_kernel
from livens.errors import InputError
from livens.schemes.splitting.kepler_maps import jacobi_coefficients
from livens.schemes.splitting.wisdom_holman import WisdomHolmanEquations, to_array

if TYPE_CHECKING:
    from livens.engine.compiled_step import CompiledStep

_POINTER, _INT64 = ctypes.c_void_p, ctypes.c_int64
_KEPLER_FAILURE = "Kepler's equation is not solved: the step is too long for an orbit, or bodies have come too close"


class _JacobiState(NamedTuple):
    """Planets in the Jacobi coordinates of the kick-drift map, and motion of the centre of mass."""

    planets: np.ndarray  # positions, then velocities, in SIMD lanes
    centre: np.ndarray  # position and velocity of the centre of mass at the time `t_centre`
    t_centre: float
    h: float  # step size of the map


class WisdomHolmanStepper(Stepper):
    """Stepper of the Wisdom-Holman map with fixed steps."""

    def __init__(self, compiled: CompiledStep, k: np.ndarray) -> None:
        equations = compiled.equations
        assert isinstance(equations, WisdomHolmanEquations)
        super().__init__(compiled.layout)
        self._e, self._n, self._d = equations, equations.n_planets, equations.dimension
        self._lanes = lane_count(self._n)
        self._code = compiled.cached("planets", lambda: wisdom_holman_kernel(self._n, self._d))
        self._rows = ctypes.CFUNCTYPE(
            _INT64, _POINTER, _POINTER, _INT64, _POINTER, _INT64, *[_POINTER] * 3, _INT64, _INT64
        )(self._code.address)
        G, masses = equations.model.gravity_parameters(k)
        self._masses = np.array(masses)
        self._to_jacobi, self._from_jacobi = (
            to_array(make(masses)) for make in (equations.to_jacobi, equations.from_jacobi)
        )
        self._from_jacobi_lanes = np.zeros((self._lanes, self._n + 1))
        self._from_jacobi_lanes[: self._n] = self._from_jacobi[:, 1:].T
        constants = jacobi_coefficients(G, masses)
        # unused lanes repeat the first planet with zero weight
        self._constants = np.array([self._pad(constants[name], name == "mu") for name in row_names(self._n)])

    def _pad(self, values: Any, repeat_first: bool) -> list[float]:
        padded = [float(value) for value in values]
        return padded + [padded[0] if repeat_first else 0.0] * (self._lanes - self._n)

    # -- coordinates --------------------------------------------------------------------------------------------------
    def _part(self, z: np.ndarray, name: str) -> np.ndarray:
        return z[self._e.layout[name]].reshape(self._n + 1, self._d)

    def _to_jacobi_state(self, state: IntegratorState, h: float) -> _JacobiState | None:
        """Return the Jacobi state: restored, or from positions and momenta; None if Kepler's equation fails."""
        size = 2 * self._d * self._lanes
        if state.stepper_state.size and state.stepper_state[-1] == h:
            m = state.stepper_state
            return _JacobiState(m[:size].copy(), m[size:-2].copy(), float(m[-2]), h)
        positions = self._to_jacobi @ self._part(state.z, "q")
        velocities = self._to_jacobi @ (self._part(state.z, "p") / self._masses[:, None])
        planets = np.zeros((2 * self._d, self._lanes))
        planets[:, : self._n] = np.concatenate([positions[1:].T, velocities[1:].T])
        planets[:, self._n :] = planets[:, :1]
        flat = planets.ravel()
        start_pairs = self._scaled_pairs(self._e.corrector_substeps, h)
        if len(start_pairs):
            no_motion, states, out = np.zeros((3, 2)), np.empty(size), np.empty(size)
            if not self._call(flat, no_motion, 0, start_pairs, states, out, 1):
                return None
            flat = out
        return _JacobiState(flat, np.concatenate([positions[0], velocities[0]]), state.t, h)

    def _scaled_pairs(self, pairs: list[tuple[float, float]], h: float) -> np.ndarray:
        return np.ascontiguousarray(np.array(pairs, dtype=float).reshape(-1, 2) * (h / self._e.n_substeps))

    def _kick_drift_pairs(self, h: float) -> np.ndarray:
        """Return the kick and drift sizes of a step: first pair, repeated inner pairs, last pair."""
        inner = h / self._e.n_substeps
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
        a = [x.ctypes.data for x in (state, pairs, last, self._constants, states, out)]
        return int(self._rows(a[0], a[1], between, a[2], len(last), a[3], a[4], a[5], state.size, steps))

    # -- stepper protocol ---------------------------------------------------------------------------------------------
    def set_parameters(self, k: np.ndarray) -> None:
        raise InputError(f"steps of the {type(self).__name__} do not support parameters that change during a run")

    def advance(
        self, state: IntegratorState, n_steps: int, policy: StepPolicy, controller_state: np.ndarray
    ) -> StepChunk:
        h = policy.h
        size = 2 * self._d * self._lanes
        jacobi = self._to_jacobi_state(state, h)
        n_taken = 0
        Z = np.empty((n_steps + 1, state.z.size))
        Z[:] = state.z
        M = np.empty((n_steps, size + 2 * self._d + 2))
        t_nodes, step_sizes = np.empty(n_steps + 1), np.empty(n_steps)
        t_nodes[0] = state.t
        fill_time_grid(t_nodes, step_sizes, policy.t_origin, policy.step0, h)
        if jacobi is not None:
            states, out = np.empty((n_steps, size)), np.empty((n_steps, size))
            n_taken = self._call(
                jacobi.planets.copy(),
                self._kick_drift_pairs(h),
                self._e.n_substeps - 1,
                self._scaled_pairs(self._e.inverse_corrector_substeps, h),
                states,
                out,
                n_steps,
            )
            M[:, :size], M[:, size:-2], M[:, -2], M[:, -1] = states, jacobi.centre, jacobi.t_centre, h
            self._write_states(Z[1 : n_taken + 1], out[:n_taken], jacobi, t_nodes[1 : n_taken + 1])
        failure = None if n_taken == n_steps else StepFailure(0.0, 0.0, "", _KEPLER_FAILURE, h)
        stepper_state = M[n_taken - 1].copy() if n_taken else state.stepper_state
        final = replace(state, t=float(t_nodes[n_taken]), z=Z[n_taken].copy(), stepper_state=stepper_state)
        chunk = StepChunk(
            t_nodes[: n_taken + 1],
            Z[: n_taken + 1],
            step_sizes[:n_taken],
            np.zeros((n_taken, 0)),
            np.zeros(n_taken, dtype=np.int64),
            state,
            final,
            failure,
            stepper_states=M[:n_taken],
        )
        return truncate_at_nonfinite(chunk, self._layout)

    def _write_states(self, Z: np.ndarray, out: np.ndarray, jacobi: _JacobiState, t_nodes: np.ndarray) -> None:
        """Write positions, velocities and momenta of all bodies into the states Z."""
        n, d, layout = self._n, self._d, self._e.layout
        # one product for all rows: many small products would take longer than the steps
        bodies = (out.reshape(-1, self._lanes) @ self._from_jacobi_lanes).reshape(-1, 2, d, n + 1)
        centre, centre_velocity = jacobi.centre[:d], jacobi.centre[d:]
        centre_positions = centre + (t_nodes - jacobi.t_centre)[:, None] * centre_velocity
        q, v, p = (Z[:, layout[name]].reshape(len(Z), n + 1, d) for name in "qvp")
        for i in range(d):
            np.add(bodies[:, 0, i], centre_positions[:, i : i + 1], out=q[:, :, i])
            np.add(bodies[:, 1, i], centre_velocity[i], out=v[:, :, i])
        np.multiply(v, self._masses[:, None], out=p)
        for name, part in zip("qvp", (q, v, p), strict=True):
            Z[:, layout[name]] = part.reshape(len(Z), (n + 1) * d)
