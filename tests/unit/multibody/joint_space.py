"""A mechanism seen from its joints: mass matrix and bias forces in the coordinates that other codes have.

livens has bodies as its coordinates. At any pose, the constraints and the rates of the joints say how bodies move with
each joint: with that map Y, the mass matrix is ``Y^T M Y``, and forces are ``Y^T f``.
"""

import casadi as ca
import numpy as np

from livens import math as m
from livens.models.equations_of_motion import equations_of_motion
from livens.multibody.joint_forces import angular_velocity


class JointSpace:
    """`joints` are dicts with name, kind, body and parent, in the order of the coordinates; `beside` are names of
    closures and couplings that are left out, as other codes leave them out of these matrices."""

    def __init__(self, mb, joints, beside=()):
        self.mb, self.joints, self.system = mb, joints, mb.system
        d, system = equations_of_motion(self.system), self.system
        self.place = {name: i for i, name in enumerate(system.coordinates)}
        numbers = {element.name: i for i, element in enumerate(system.elements)}
        out = {i for name in beside for i in range(*_ends(system.element_constraints[numbers[name]]))}
        kept = [i for i in range(system.m) if i not in out]
        rates = ca.vertcat(*(x for joint in joints for x in self._rate(joint, d.q, d.v)))
        hidden = ca.vertcat(d.velocity_constraint[kept], rates)
        rows, turning = ca.jacobian(hidden, d.v), ca.jtimes(hidden, d.q, d.v)
        mass = ca.jacobian(d.fibre_derivative, d.v)
        force = -ca.gradient(d.V, d.q) - ca.gradient(d.R, d.v) + d.F
        weight = ca.SX.zeros(system.n)
        for part in mb.bodies.values():
            if mb.gravity is not None:
                weight[[self.place[str(c)] for c in part.coordinates[:3]]] = ca.DM(part.element.mass * mb.gravity)
        on = [i for i in kept if i in set(system.position_constraints)]
        k = ca.DM(system.parameter_vector())
        outputs = [rows, turning, mass, force - weight, weight, d.g[on]]
        self._at = ca.Function("at", [d.q, d.v, d.t, d.k], [ca.densify(x) for x in outputs])
        self._k = k

    def _of(self, part, x):
        return m.from_casadi(x[[self.place[str(c)] for c in part.coordinates]])

    def _turning(self, name, q, v):
        part = self.mb.bodies.get(name)
        return (
            np.zeros(3)
            if part is None
            else angular_velocity(part.parametrisation, self._of(part, q), self._of(part, v))
        )

    def _rate(self, joint, q, v):
        """The velocity coordinates of a joint, as MuJoCo has them: those of balls are in the axes of the body."""
        if joint["kind"] in ("hinge", "slide"):
            found = self.mb.joints[joint["name"]]
            i = [self.place[str(c)] for c in found.coordinates]
            measure = found.angle_rate if joint["kind"] == "hinge" else found.displacement_rate
            return [m.to_casadi(measure(m.from_casadi(q[i]), m.from_casadi(v[i])))]
        part = self.mb.bodies[joint["body"]]
        own, moving = self._of(part, q), self._of(part, v)
        omega = self._turning(joint["body"], q, v) - self._turning(joint["parent"], q, v)
        R = part.parametrisation.rotation_matrix(own)
        local = [m.to_casadi(m.dot(R[:, i], omega)) for i in range(3)]
        if joint["kind"] == "ball":
            return local
        return [
            *(m.to_casadi(x) for x in part.parametrisation.velocity(own, moving, part.origin.local_position)),
            *local,
        ]

    def coordinates(self, poses):
        """q from the pose of each body's frame: position and rotation."""
        q = np.zeros(self.system.n)
        for name, part in self.mb.bodies.items():
            R, at = part.reference_rotation, part.reference_position
            if name in poses:
                x, R = poses[name]
                at = x - R @ part.origin.local_position
            q[[self.place[str(c)] for c in part.coordinates]] = part.parametrisation.from_pose(at, R)
        return q

    def measured(self, q):
        """Angles and ways of the joints that have one."""
        found = {}
        for joint in self.joints:
            if joint["kind"] in ("hinge", "slide"):
                one = self.mb.joints[joint["name"]]
                own = q[[self.place[str(c)] for c in one.coordinates]]
                found[joint["name"]] = float(one.angle(own) if joint["kind"] == "hinge" else one.displacement(own))
        return found

    def at(self, q, qvel):
        """Mass matrix, bias, and what else acts, in the coordinates of the joints; and the gaps of constraints."""
        zero = np.zeros(self.system.n)
        rows, _, mass, _, _, gaps = (np.array(x) for x in self._at(q, zero, 0.0, self._k))
        right = np.zeros((len(rows), len(qvel)))
        right[len(rows) - len(qvel) :] = np.eye(len(qvel))
        Y = _solved(rows, right)
        v = Y @ qvel
        rows, turning, mass, force, weight, _ = (np.array(x) for x in self._at(q, v, 0.0, self._k))
        a = _solved(rows, -turning)
        bias = Y.T @ (mass @ a - weight)
        return Y.T @ mass @ Y, bias.ravel(), (Y.T @ force).ravel(), gaps.ravel()


def _solved(rows, right):
    found = np.linalg.lstsq(rows, right, rcond=1e-12)[0]
    assert np.abs(rows @ found - right).max() < 1e-9 * (1 + np.abs(right).max())
    return found


def _ends(where):
    return where.start, where.stop
