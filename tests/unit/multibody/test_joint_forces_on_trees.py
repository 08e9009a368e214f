"""Joint forces and torques of a branched tree in space, against Newton's and Euler's laws of an independent motion."""

import casadi as ca
import numpy as np
import pytest
from conftest import measured_order
from newton_euler import needed
from test_all_joints import about

import livens as lv

GRAVITY = [0.5, -1.0, -9.81]
STEPS, TIMES = (8e-3, 4e-3, 2e-3, 1e-3), (0.08, 0.16)
#: Joint types, parents, and the axes about which the joints turn one after the other, of a tree with two branches.
TREE = {
    "cardan": ("universal", None, (0, 1)),
    "slider": ("prismatic", "cardan", ()),
    "ball": ("spherical", "cardan", (0, 1, 2)),
    "hinge": ("revolute", "slider", (2,)),
    "tip": ("spherical", "hinge", (2, 0, 1)),
}
STIFFNESS, DAMPING = 300.0, 4.0


class BranchedTree:
    """Tree of bodies whose coordinates are joint angles and one displacement; joint names are those of the bodies."""

    def __init__(self):
        random = np.random.default_rng(5)
        self.masses, self.moments, self.turned, self.at, self.centre, self.axes = {}, {}, {}, {}, {}, {}
        for name, (_, parent, _) in TREE.items():
            self.masses[name], self.moments[name] = random.uniform(0.5, 2), random.uniform(0.1, 0.15, 3)
            self.turned[name], self.axes[name] = self.rotation(random), self.rotation(random)
            self.at[name] = np.zeros(3) if parent is None else self.centre[parent] + random.uniform(-0.3, 0.3, 3)
            self.centre[name] = self.at[name] + random.uniform(-0.3, 0.3, 3)
        self.count = sum(max(1, len(turns)) for _, _, turns in TREE.values())
        self.rates = random.uniform(-1.5, 1.5, self.count)

    @staticmethod
    def rotation(random):
        """Return a random rotation matrix."""
        Q = np.linalg.qr(random.standard_normal((3, 3)))[0]
        return Q * np.linalg.det(Q)

    def bodies(self, s):
        """Return masses, moments, positions and rotations at the joint coordinates s."""
        moved, place, i = {None: (ca.SX(3, 1), ca.SX.eye(3))}, [], 0
        for name, (_, parent, turns) in TREE.items():
            base, R = moved[parent]
            A, shift = ca.DM(self.axes[name]), ca.SX(3, 1)
            if not turns:
                shift, i = s[i] * A[:, 2], i + 1
            base = base + R @ (ca.DM(self.at[name]) + shift)
            for axis in turns:
                R, i = R @ A @ about(axis, s[i]) @ A.T, i + 1
            moved[name] = base - R @ ca.DM(self.at[name]), R  # motion of points that are fixed in the body
            centre = moved[name][0] + R @ ca.DM(self.centre[name])
            place.append((self.masses[name], self.moments[name], centre, R @ ca.DM(self.turned[name])))
        return place

    def forces(self, s, w, t):
        """Return the forces of the joint coordinates: a spring and a damper of the slider."""
        return [-STIFFNESS * s[i] - DAMPING * w[i] if i == 2 else ca.SX(0) for i in range(self.count)]

    def mechanism(self):
        """Return the same tree as a mechanism."""
        mb = lv.Multibody(gravity=GRAVITY)
        s, w = ca.SX.sym("s", self.count), ca.SX.sym("w", self.count)
        for (name, (what, parent, _)), (mass, moments, x, R) in zip(TREE.items(), self.bodies(s), strict=True):
            pose = dict(position=self.centre[name], rotation=self.turned[name])
            body = mb.body(name, mass=mass, inertia=moments, **pose)
            axes = dict(universal="axis second_axis", spherical="").get(what, "axis").split()
            columns = [0, 1] if what == "universal" else [2]
            more = dict(zip(axes, self.axes[name][:, columns].T, strict=False))
            mb.joint(what, f"{name} joint", mb.bodies[parent] if parent else mb.ground, body, at=self.at[name], **more)
            spin = ca.reshape(ca.jtimes(ca.vec(R), s, w), 3, 3) @ R.T
            start = ca.Function("start", [s, w], [ca.jtimes(x, s, w), ca.vertcat(spin[2, 1], spin[0, 2], spin[1, 0])])
            velocity, omega = (np.array(value).ravel() for value in start(np.zeros(self.count), self.rates))
            mb.initial(body, velocity=velocity, omega=omega)
        mb.motor(mb.joints["slider joint"], force=lambda t, x, v: -STIFFNESS * x - DAMPING * v, name="spring")
        return mb

    def joint_loads(self):
        """Return force and torque about the point of the child body, for every joint and time."""
        names, found = list(TREE), []
        for row in needed(self.count, self.bodies, GRAVITY, np.zeros(self.count), self.rates, TIMES, self.forces):
            of, loads = dict(zip(names, row, strict=True)), {}
            for name in names:
                x, R, _, _ = of[name]
                point = x + R @ self.turned[name].T @ (self.at[name] - self.centre[name])
                beyond = [other for other in names if name in self.path(other)]
                force = sum(of[other][2] for other in beyond)
                torque = sum(of[other][3] + np.cross(of[other][0] - point, of[other][2]) for other in beyond)
                loads[name] = force, torque
            found.append(loads)
        return found

    @staticmethod
    def path(name):
        """Return the names of the bodies from the ground to a body."""
        return [] if name is None else [*BranchedTree.path(TREE[name][1]), name]


def test_joint_forces_against_newton_and_euler():
    """Forces and torques of all joints converge with order two; they carry the weight and inertia of a branch."""
    drawn = BranchedTree()
    mb, loads = drawn.mechanism(), drawn.joint_loads()
    slide = drawn.turned["cardan"].T @ drawn.axes["slider"][:, 2]
    errors = {(name, what): [] for name in TREE for what in ("force", "torque")}
    for h in STEPS:
        run = mb.simulate(t_end=TIMES[-1] + h, h=h, tier="tree")
        assert run.statistics.reference_steps == 0 and run.summary.max_energy_drift < 1e-12
        rows = [round(t / h) for t in TIMES]
        for name in TREE:
            force, torque = run[f"{name} joint.force"], run[f"{name} joint.torque"]
            for what, found in (("force", force), ("torque", torque)):
                gaps = []
                for n, load in zip(rows, loads, strict=True):
                    gap = found[n] - load[name][what == "torque"]
                    if name == "slider" and what == "force":  # the spring is not a force of the joint
                        gap = gap + run["spring.force"][n] * (run["cardan.rotation"][n] @ slide)
                    gaps.append(np.abs(gap).max())
                errors[name, what].append(max(gaps))
    for (name, what), found in errors.items():
        if what == "torque" and TREE[name][0] == "spherical":
            assert max(found) < 1e-8  # none, up to the stencil of the reference
        else:
            assert measured_order(STEPS, found) == pytest.approx(2.0, abs=0.1) and found[-1] < 1e-3, (name, what, found)
