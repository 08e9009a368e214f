"""Independent references of mechanisms: the same bodies in minimal coordinates, by Lagrange's equations.

Where the bodies are is written as a function of few coordinates s; masses follow by differentiation, the motion from an
ordinary integrator at a tight tolerance. No joint, no multiplier and no scheme of the package takes part.
"""

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp


def motion(count, bodies, gravity, s0, rates, times, forces=None, method="DOP853", rtol=1e-12):
    """s at the given times; `bodies(s)` is a list of (mass, moments, position, rotation), `forces(s, w, t)` is Q."""
    s, w, t = ca.SX.sym("s", count), ca.SX.sym("w", count), ca.SX.sym("t")
    T, V = ca.SX(0), ca.SX(0)
    for mass, moments, x, R in bodies(s):
        x, R = ca.SX(x), ca.SX(R)
        v = ca.jtimes(x, s, w)
        turning = R.T @ ca.reshape(ca.jtimes(ca.vec(R), s, w), 3, 3)
        omega = ca.vertcat(turning[2, 1], turning[0, 2], turning[1, 0])
        T += mass * ca.dot(v, v) / 2 + ca.dot(omega, ca.DM(moments) * omega) / 2
        V -= mass * ca.dot(ca.DM(gravity), x)
    Q = ca.SX.zeros(count) if forces is None else ca.vertcat(*forces(s, w, t))
    p = ca.gradient(T, w)
    right = ca.gradient(T - V, s) + Q - ca.jtimes(p, s, w)
    rate = ca.Function("rate", [s, w, t], [ca.solve(ca.jacobian(p, w), right)])

    def field(time, y):
        return np.concatenate([y[count:], np.array(rate(y[:count], y[count:], time)).ravel()])

    start = np.concatenate([np.atleast_1d(s0), np.atleast_1d(rates)])
    found = solve_ivp(field, (0, max(times)), start, method=method, rtol=rtol, atol=rtol, t_eval=times)
    return found.y[:count].T, found.y[count:].T


def about_y(angle):
    """A rotation matrix."""
    c, s = ca.cos(angle), ca.sin(angle)
    return ca.vertcat(ca.horzcat(c, 0, s), ca.horzcat(0, 1, 0), ca.horzcat(-s, 0, c))
