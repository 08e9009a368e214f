"""Forces and torques of a known motion by Newton's and Euler's laws."""

import casadi as ca
import numpy as np
from reduced import motion

#: Spacing and weights of a slope of fourth order.
_DT, _SLOPE = 1e-3, np.array([1, -8, 0, 8, -1]) / 12e-3


def needed(count, bodies, gravity, s0, rates, times, forces=None):
    """For every time, and for every body: position, rotation, the force other than gravity and the torque about the
    centre, all in space; `bodies` and `forces` as in `reduced.motion`."""
    s, w = ca.SX.sym("s", count), ca.SX.sym("w", count)
    parts = []
    for mass, moments, x, R in bodies(s):
        x, R = ca.SX(x), ca.SX(R)
        spin = R.T @ ca.reshape(ca.jtimes(ca.vec(R), s, w), 3, 3)
        omega = ca.vertcat(spin[2, 1], spin[0, 2], spin[1, 0])
        parts += [x, mass * ca.jtimes(x, s, w), R @ (ca.DM(moments) * omega), R]
    at = ca.Function("at", [s, w], [ca.densify(part) for part in parts])
    masses = [body[0] for body in bodies(s)]
    around = [t + i * _DT for t in times for i in range(-2, 3)]
    states = motion(count, bodies, gravity, s0, rates, around, forces, rtol=1e-13)
    values = [[np.array(x) for x in at(*state)] for state in zip(*states, strict=True)]
    found = []
    for first in range(0, len(around), 5):
        stencil, row = values[first : first + 5], []
        for i, mass in enumerate(masses):
            momentum, spin = (sum(c * v[4 * i + j] for c, v in zip(_SLOPE, stencil, strict=True)) for j in (1, 2))
            here = stencil[2]
            row.append(
                (here[4 * i].ravel(), here[4 * i + 3], momentum.ravel() - mass * np.array(gravity), spin.ravel())
            )
        found.append(row)
    return found
