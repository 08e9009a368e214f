"""Monitored quantities of the tree tier: energy, constraint residuals, linear and angular momentum of a state."""

from __future__ import annotations

from livens.engine.lowering.function import lowered
from livens.engine.lowering.intrinsics import lane, load_quad, make_quad, store_quad
from livens.engine.lowering.types import F64Array, Quad
from livens.engine.trees.closures import add_closure_residuals
from livens.engine.trees.records import (
    A1,
    A2,
    AXIS_A,
    AXIS_B,
    CARRIAGE,
    CROSS,
    EPS,
    FIXED,
    FREE,
    J_INV,
    MASS,
    NU,
    PHI,
    PI,
    PRISMATIC,
    REVOLUTE,
    ROTOR,
    STRIDE,
    WEIGHT,
    P,
    R,
    TreeArrays,
    X,
    Y,
)
from livens.engine.trees.vectors import cross, dot, mul

#: Columns: energy, kinetic energy, largest constraint residual on position and velocity level, linear and angular
#: momentum, and supplied minus dissipated energy.
MONITOR_WIDTH, NET_WORK = 11, 10


@lowered
def _largest_of(largest: float, x: Quad) -> float:
    """Return the larger of a number and the absolute components of a vector."""
    return max(largest, max(abs(lane(x, 0)), max(abs(lane(x, 1)), abs(lane(x, 2)))))


@lowered
def monitor_state(t: TreeArrays, time: float, potential: float, row: F64Array) -> None:
    """Evaluate the monitored quantities of the poses and momenta in the records; `potential` is that of all forces."""
    kinetic, gap, rate_gap = 0.0, 0.0, 0.0
    zero = make_quad(0.0, 0.0, 0.0)
    linear, angular = zero, zero
    for i in range(t.n_bodies):
        b, a, joint_type = t.records + i * STRIDE, t.records + t.parent[i] * STRIDE, t.joint_type[i]
        if joint_type == ROTOR:  # neither pose nor momentum in space
            kinetic += 0.5 * b[P] * b[P] / b[MASS]
            continue
        if t.model_body[i] < 0:  # velocities of the parent: rates of sliding and of the cross are free
            store_quad(b, EPS, load_quad(a, EPS))
            store_quad(b, NU, load_quad(a, NU) + cross(load_quad(a, EPS), load_quad(b, PHI) - load_quad(a, PHI)))
            continue
        p, spin, phi = load_quad(b, P), load_quad(b, PI), load_quad(b, PHI)
        rate = mul(b + J_INV, spin)
        omega, v = mul(b + R, rate), p * (1.0 / b[MASS])
        store_quad(b, EPS, omega)
        store_quad(b, NU, v)
        kinetic += 0.5 * (dot(p, v) + dot(spin, rate))
        potential -= dot(load_quad(b, WEIGHT), phi)
        if t.spin_ptr[t.model_body[i]] < 0:  # a body with one coordinate has neither pose nor momentum in space
            continue
        linear = linear + p
        angular = angular + cross(phi, p) + mul(b + R, spin)
        d0, d1, d2 = load_quad(b, R), load_quad(b, R + 4), load_quad(b, R + 8)
        gap = _largest_of(gap, make_quad(0.5 * (dot(d0, d0) - 1.0), 0.5 * (dot(d1, d1) - 1.0), dot(d0, d1)))
        gap = _largest_of(gap, make_quad(0.5 * (dot(d2, d2) - 1.0), dot(d0, d2), dot(d1, d2)))
        if joint_type != FREE:
            lever_a, lever_b = mul(a + R, load_quad(b, X)), mul(b + R, load_quad(b, Y))
            distance = phi + lever_b - load_quad(a, PHI) - lever_a
            speed = v + cross(omega, lever_b) - load_quad(a, NU) - cross(load_quad(a, EPS), lever_a)
            relative = omega - load_quad(a, EPS)
            before = t.model_body[t.parent[i]]
            if joint_type == PRISMATIC or before in (CARRIAGE, CROSS):
                axis = mul(a + R, load_quad(b, AXIS_A))
                a1, a2 = mul(a + R, load_quad(b, A1)), mul(a + R, load_quad(b, A2))
                speed = speed - cross(load_quad(a, EPS), distance)
                if before == CROSS:
                    gap, rate_gap = _largest_of(gap, distance), _largest_of(rate_gap, speed)
                    second = mul(b + R, load_quad(b, AXIS_B))
                    first = mul(t.records + t.parent[t.parent[i]] * STRIDE + R, load_quad(a, AXIS_A))
                    gap = max(gap, abs(dot(first, second)))
                    rate_gap = max(rate_gap, abs(dot(relative, cross(first, second))))
                elif joint_type == PRISMATIC:
                    gap = max(gap, max(abs(dot(a1, distance)), abs(dot(a2, distance))))
                    rate_gap = max(rate_gap, max(abs(dot(a1, speed)), abs(dot(a2, speed))))
                    rate_gap = max(max(rate_gap, abs(dot(relative, axis))), abs(dot(relative, a1)))
                    rate_gap = max(rate_gap, abs(dot(relative, a2)))
                else:  # end of a cylindrical or planar joint: distances along the axes of its carriages are free
                    gap = _largest_of(gap, cross(mul(b + R, load_quad(b, AXIS_B)), axis))
                    rate_gap = max(rate_gap, max(abs(dot(relative, a1)), abs(dot(relative, a2))))
                    if t.model_body[t.parent[t.parent[i]]] == CARRIAGE:
                        rate_gap = max(rate_gap, abs(dot(axis, speed)))
                    else:
                        rate_gap = max(rate_gap, max(abs(dot(a1, speed)), abs(dot(a2, speed))))
            else:
                gap, rate_gap = _largest_of(gap, distance), _largest_of(rate_gap, speed)
                if joint_type == REVOLUTE:
                    owner, axis = a, mul(b + R, load_quad(b, AXIS_B))
                    if t.law_sign[i] < 0.0:
                        owner, axis = b, mul(a + R, load_quad(b, AXIS_A))
                    a1, a2 = mul(owner + R, load_quad(b, A1)), mul(owner + R, load_quad(b, A2))
                    gap = max(gap, max(abs(dot(a1, axis)), abs(dot(a2, axis))))
                    rate_gap = max(rate_gap, max(abs(dot(relative, a1)), abs(dot(relative, a2))))
                elif joint_type == FIXED:
                    rate_gap = _largest_of(rate_gap, relative)
    row[0], row[1], row[2], row[3] = kinetic + potential, kinetic, gap, rate_gap
    add_closure_residuals(t, time, row)
    for j in range(3):
        row[4 + j], row[7 + j] = lane(linear, j), lane(angular, j)
