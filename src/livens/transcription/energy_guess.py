"""Initial guesses of swing-ups: simulations with energy-shaping feedback control.

The feedback law (Fantoni and Lozano 2002) makes the Lyapunov function
``k_E (E - E_end)^2/2 + k_v |y|^2/2 + k_a |a - a_end|^2/2`` decrease, with the energy E, the actuated coordinates
``a = B^T q`` and their rates y: ``(k_E (E - E_end) + k_v B^T M^-1 B) u = -k_d y - k_a (a - a_end) - k_v dy/dt|_{u=0}``.
Simulations with several gains are compared; the one that comes closest to the end is the guess.
"""

from __future__ import annotations

import itertools
from typing import Any

import casadi as ca
import numpy as np

from livens.errors import InputError
from livens.models.equations_of_motion import equations_of_motion
from livens.models.system import System
from livens.transcription.control_problem import ControlProblem

#: Gains of the simulations: velocity gain relative to the energy gain, damping ratio, and natural periods of the
#: actuated coordinates in the duration of the motion.
_VELOCITY_GAINS, _DAMPING_RATIOS, _PERIODS = (1.1, 2.0, 5.0), (0.1, 0.4, 1.0), (0.5, 1.0, 2.0, 4.0)
#: Kinetic energy of the disturbance of the start relative to the difference of energy, with both signs.
_DISTURBANCE, _SIGNS = 0.01, (-1.0, 1.0)
#: Weight of the mean squared inputs, relative to the largest of all simulations, in the choice of the simulation.
_EFFORT_WEIGHT = 1.0
#: Number of steps of the classical Runge-Kutta method in the duration of the motion.
_N_STEPS = 200
#: Times at which a simulation may end, relative to the duration; the guess is stretched to the duration.
_EARLIEST, _LATEST = 0.5, 1.5


def energy_guess(problem: ControlProblem) -> dict[str, Any]:
    """Return rows ``q``, ``v`` and ``u`` over time of the simulation that comes closest to the end.

    Raises
    ------
    InputError
        If the model has constraints or is not mechanical, inputs do not enter the forces linearly, or the position at
        the end is not prescribed.
    """
    model, target = problem.model, problem.end_values("q") if isinstance(problem.model, System) else np.zeros(0)
    if not isinstance(model, System) or model.m or model.has_velocity_constraints or model.frames:
        raise InputError(
            'guess="energy" needs a mechanical System without constraints: give rows, a run or a motion as guess, or '
            "use joint coordinates (mb.to_joint_coordinates())"
        )
    if np.isnan(target).any():
        raise InputError('guess="energy" needs the position at the end: give q, or all coordinates, in end')
    q0, v0 = problem.reference["q"], problem.reference["v"]
    v_end = np.nan_to_num(problem.end_values("v"))
    duration = float(np.sqrt(problem.duration[0] * problem.duration[1]))
    feedback = _FeedbackModel(problem, model)
    energy_gap, direction = feedback.start(q0, v0, target, v_end)
    h = duration / _N_STEPS
    n_steps = round(_LATEST * _N_STEPS)
    gains = np.array(list(itertools.product(_VELOCITY_GAINS, _DAMPING_RATIOS, _PERIODS, _SIGNS)))
    frequency = 2 * np.pi * gains[:, 2] / duration
    data = np.vstack(
        [
            np.full(len(gains), 1 / energy_gap),
            gains[:, 0] / feedback.mobility,
            2 * gains[:, 1] * frequency,
            frequency**2,
            np.tile(np.concatenate([target, v_end])[:, None], len(gains)),
        ]
    )
    starts = np.concatenate([q0, v0])[:, None] + np.outer(np.concatenate([0 * q0, direction]), gains[:, 3])
    simulate = feedback.step(h).mapaccum(n_steps).map(len(gains))
    times = np.tile(problem.t0 + h * np.arange(n_steps), len(gains))[None, :]
    states, inputs = simulate(starts, times, np.repeat(data, n_steps, axis=1))
    rows = np.array(states).T.reshape(len(gains), n_steps, -1)
    values = np.array(inputs).T.reshape(len(gains), n_steps, -1)
    n = model.n
    length = max(float(np.abs(target - q0).max()), 1e-3)
    first = round(_EARLIEST * _N_STEPS)
    stretch = np.arange(first, n_steps + 1) / _N_STEPS
    states_at_end = rows[:, first - 1 :]
    distance = np.sum((states_at_end[..., :n] - target) ** 2, axis=-1) / length**2
    distance += np.sum((states_at_end[..., n:] - v_end) ** 2, axis=-1) * (duration / (2 * np.pi * length)) ** 2
    distance = np.where(np.isfinite(distance), distance + np.log(stretch) ** 2, np.inf)
    effort = np.cumsum(np.sum(values**2, axis=-1), axis=1)[:, first - 1 :] / np.arange(first, n_steps + 1)
    distance += _EFFORT_WEIGHT * effort / max(float(np.max(effort, initial=0.0, where=np.isfinite(effort))), 1e-300)
    best, last = np.unravel_index(int(np.argmin(distance)), distance.shape)
    count = first + int(last)
    if not np.isfinite(distance[best, last]):
        raise InputError('guess="energy" found no bounded simulation: give rows, a run or a motion as guess')
    path = np.vstack([np.concatenate([q0, v0]), rows[best, :count]])
    relative = np.linspace(0, 1, count + 1)[:, None]
    q = path[:, :n] + (target - path[-1, :n]) * relative**2
    v = path[:, n:] * count / _N_STEPS + (v_end - path[-1, n:] * count / _N_STEPS) * relative**2
    return dict(q=q, v=v, u=values[best, :count], t_end=problem.t0 + duration)


class _FeedbackModel:
    """Equations of motion of a system with energy-shaping feedback, as CasADi functions."""

    def __init__(self, problem: ControlProblem, model: System) -> None:
        d = equations_of_motion(model)
        self._problem, self._q, self._v, self._t = problem, d.q, d.v, d.t
        size = sum(parameter.size for parameter in problem.inputs)
        self._u = ca.SX.sym("u", size)
        k, offset = ca.SX(ca.DM(problem.k)), 0
        for parameter in problem.inputs:
            for indices in parameter.indices:
                k[indices] = self._u[offset : offset + parameter.size]
            offset += parameter.size
        T, V, R, F = (ca.substitute(ca.SX(term), d.k, k) for term in (d.T, d.V, d.R, d.F))
        B = ca.jacobian(F, self._u)
        if not size or any(ca.depends_on(term, self._u) for term in (T, V, R, B)):
            raise InputError(
                'guess="energy" needs inputs that enter the forces linearly: give rows, a run or a motion as guess'
            )
        p = ca.gradient(T, d.v)
        mass = ca.jacobian(p, d.v)
        force = F + ca.gradient(T - V, d.q) - ca.gradient(R, d.v) - ca.jtimes(p, d.q, d.v) - ca.jacobian(p, d.t)
        self._acceleration = ca.solve(mass, force)
        self._energy = ca.dot(p, d.v) - T + V
        self._B, self._mass = B, mass

    def start(self, q: np.ndarray, v: np.ndarray, q_end: np.ndarray, v_end: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the difference of energy from start to end, and the velocity of the disturbance of the start."""
        t, k_u = self._problem.t0, np.zeros(self._u.numel())
        arguments = [self._q, self._v, self._t, self._u]
        evaluate = ca.Function("start", arguments, [self._energy, self._mass, ca.densify(self._B)])
        energy, mass, B = (np.array(value) for value in evaluate(q, v, t, k_u))
        energy_end = np.array(evaluate(q_end, v_end, t, k_u)[0])
        gap = abs((energy_end - energy).item())
        accelerations = np.linalg.solve(mass, B)
        #: Mean of the diagonal of ``B^T M^-1 B``: acceleration of the actuated coordinates by unit inputs.
        self.mobility = float(np.trace(B.T @ accelerations)) / B.shape[1]
        if not (np.isfinite(self.mobility) and self.mobility > 0):
            raise InputError('guess="energy" needs inputs that act at the start: give rows, a run or a motion as guess')
        direction = accelerations.sum(axis=1)
        kinetic = float(direction @ mass @ direction) / 2
        gap = max(gap, 1e-12 * kinetic)
        return gap, direction * np.sqrt(_DISTURBANCE * gap / kinetic)

    def step(self, h: float) -> ca.Function:
        """Return a step of the classical Runge-Kutta method: (state, t, data) -> (state, u).

        The data are the gains of energy and velocity, damping and stiffness relative to the gain of the velocity, and
        position and velocity of the end.
        """
        q, v, t, u, B = self._q, self._v, self._t, self._u, self._B
        n, size = q.numel(), u.numel()
        data = ca.SX.sym("data", 4 + 2 * n)
        q_end, v_end = data[4 : 4 + n], data[4 + n :]
        energy_end = ca.substitute(self._energy, ca.vertcat(q, v), ca.vertcat(q_end, v_end))
        y = B.T @ v
        rate = ca.jtimes(B.T @ v, q, v) + B.T @ self._acceleration
        drift = ca.substitute(rate, u, ca.SX.zeros(size))
        mobility = ca.jacobian(rate, u)
        gap = B.T @ (q - q_end) if not ca.depends_on(B, ca.vertcat(q, v, t)) else ca.SX.zeros(size)
        matrix = data[0] * (self._energy - energy_end) * ca.SX.eye(size) + data[1] * mobility
        law = ca.solve(matrix, -data[1] * (data[2] * y + data[3] * gap + drift))
        lower = np.concatenate([parameter.lower for parameter in self._problem.inputs])
        upper = np.concatenate([parameter.upper for parameter in self._problem.inputs])
        law = ca.fmin(ca.fmax(law, ca.DM(lower)), ca.DM(upper))
        state = ca.vertcat(q, v)
        derivative = ca.Function("derivative", [state, t, u], [ca.vertcat(v, self._acceleration)])
        k1 = derivative(state, t, law)
        k2 = derivative(state + h / 2 * k1, t + h / 2, law)
        k3 = derivative(state + h / 2 * k2, t + h / 2, law)
        k4 = derivative(state + h * k3, t + h, law)
        return ca.Function("step", [state, t, data], [state + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), law])
