"""Every kind of joint in the table, by one test: a new one is covered as soon as it is there.

A body hangs on the ground by the joint. What the table leaves free are the coordinates of an independent reference:
displacements along the axes that are not locked, and as many angles as the locked pairs of axes allow.
"""

import casadi as ca
import numpy as np
import pytest
from conftest import measured_order
from reduced import motion

import livens as lv
from livens.multibody.joint_types import PLANAR_JOINTS, SPATIAL_JOINTS

MASS, MOMENTS, LEAD = 2.0, np.array([0.1, 0.2, 0.3]), 0.3
STEPS, TIMES = [0.02, 0.01, 0.005, 0.0025], [0.2, 0.4]
#: Which axes of the joint the body turns about, one after the other, by the pairs of axes that stay normal.
TURNS = {
    (): (0, 1, 2),
    ((1, 2),): (0, 1),
    ((1, 3), (2, 3)): (2,),
    ((1, 2), (2, 3), (3, 1)): (),
}
CASES = [(3, what) for what in SPATIAL_JOINTS] + [(2, what) for what in PLANAR_JOINTS]


class Drawn:
    """A body on a joint of this kind, and where it is as a function of the coordinates that the joint leaves."""

    def __init__(self, dimension, what):
        self.what, self.kind = what, (SPATIAL_JOINTS if dimension == 3 else PLANAR_JOINTS)[what]
        random, self.d = np.random.default_rng(3), dimension
        if dimension == 3:
            self.axes = np.linalg.qr(random.standard_normal((3, 3)))[0]
            self.axes[:, 0] *= np.sign(np.linalg.det(self.axes))
            self.R0 = np.linalg.qr(random.standard_normal((3, 3)))[0]
            self.R0[:, 0] *= np.sign(np.linalg.det(self.R0))
            self.at, self.arm = np.array([0.1, -0.2, 0.3]), np.array([0.3, 0.2, -0.4])
            self.gravity = np.array([0, 0, -9.81])
            self.turns = TURNS[self.kind.orthogonal_axes]
        else:
            c, s = np.cos(0.4), np.sin(0.4)
            self.axes = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])
            self.R0, self.at, self.arm = self.axes @ self.axes, np.array([0.1, -0.2, 0]), np.array([0.3, -0.4, 0])
            self.gravity = np.array([0, -9.81, 0])
            self.turns = () if self.kind.orthogonal_axes else (2,)
        free = [i for i in range(dimension) if i + 1 not in self.kind.locked_translations]
        self.slides = [] if self.kind.lead else free
        self.count = len(self.slides) + len(self.turns)
        self.rates = np.array([0.7, -0.5, 0.4])[: len(self.slides)].tolist() + [1.5, -1.1, 0.8][: len(self.turns)]
        s, w = ca.SX.sym("s", self.count), ca.SX.sym("w", self.count)
        ((_, _, x, R),) = self.bodies(s)
        spin = R.T @ ca.reshape(ca.jtimes(ca.vec(R), s, w), 3, 3)
        omega = ca.vertcat(spin[2, 1], spin[0, 2], spin[1, 0])
        velocity = ca.jtimes(x, s, w)
        joint = x - R @ ca.DM(self.R0.T @ self.arm)
        parts = [x, velocity, R @ omega, R @ (ca.DM(MOMENTS) * omega), joint, R]
        self.at_state = ca.Function("at", [s, w], [ca.densify(part) for part in parts])

    def bodies(self, s):
        """Mass, moments, position and rotation."""
        moved, n = ca.SX.zeros(3), len(self.slides)
        for i, axis in enumerate(self.slides):
            moved[axis] = s[i]
        if self.kind.lead:
            moved[2] = LEAD / (2 * np.pi) * s[n]
        turned = ca.SX.eye(3)
        for i, axis in enumerate(self.turns):
            turned = turned @ about(axis, s[n + i])
        A = ca.DM(self.axes)
        turned = A @ turned @ A.T
        return [(MASS, MOMENTS, ca.DM(self.at) + A @ moved + turned @ ca.DM(self.arm), turned @ ca.DM(self.R0))]

    def mechanism(self):
        d = self.d
        mb = lv.Multibody(gravity=self.gravity[:d], planar=d == 2)
        inertia = MOMENTS if d == 3 else MOMENTS[2]
        place = dict(position=(self.at + self.arm)[:d], rotation=self.R0[:d, :d])
        body = mb.body("body", mass=MASS, inertia=inertia, **place)
        more = dict(lead=LEAD) if self.kind.lead else {}
        if self.what == "universal":
            more |= dict(axis=self.axes[:, 0], second_axis=self.axes[:, 1])
        elif self.kind.axis:
            more["axis"] = self.axes[:d, 2 if d == 3 else 0]
        mb.joint(self.what, "joint", mb.ground, body, at=self.at[:d], **more)
        _, velocity, omega, *_ = (np.array(x).ravel() for x in self.at_state(np.zeros(self.count), self.rates))
        mb.initial(body, velocity=velocity[:d], omega=omega if d == 3 else omega[2:])
        return mb

    def reference(self):
        """Position, rotation, and force and torque of the joint by Newton's and Euler's laws from the motion."""
        near = 1e-3 * np.arange(-2, 3)
        times = [t + dt for t in TIMES for dt in near]
        if self.count:
            s, w = motion(self.count, self.bodies, self.gravity, np.zeros(self.count), self.rates, times, rtol=1e-13)
        else:
            s = w = np.zeros((len(times), 0))
        parts = [[np.array(x) for x in self.at_state(a, b)] for a, b in zip(s, w, strict=True)]
        slope = np.array([1, -8, 0, 8, -1]) / 12e-3  # of fourth order
        found = []
        for first in range(0, len(times), 5):
            stencil, (x, _, _, _, joint, R) = parts[first : first + 5], parts[first + 2]
            force = MASS * (sum(c * p[1] for c, p in zip(slope, stencil, strict=True)).ravel() - self.gravity)
            turning = sum(c * p[3] for c, p in zip(slope, stencil, strict=True)).ravel()
            torque = turning - np.cross((joint - x).ravel(), force)
            found.append((x.ravel(), R, force, torque, s[first + 2]))
        return found


def about(axis, angle):
    c, s, (i, j) = ca.cos(angle), ca.sin(angle), ((axis + 1) % 3, (axis + 2) % 3)
    R = ca.SX.eye(3)
    R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
    return R


@pytest.mark.parametrize(("dimension", "what"), CASES)
def test_motion_and_force(dimension, what):
    """Second order in position, rotation, force and torque with four step sizes; the joint closed to round-off."""
    drawn, d = Drawn(dimension, what), dimension
    mb, reference = drawn.mechanism(), drawn.reference()
    assert mb.check().mobility == drawn.count
    errors = {name: [] for name in ("position", "rotation", "force", "torque", "angle", "slide")}
    for h in STEPS:
        run = mb.simulate(t_end=TIMES[-1] + h, h=h)
        assert run.summary.max_energy_drift < 1e-12 and run.summary.max_constraint < 1e-14
        assert np.abs(run["joint.violation"]).max() < 1e-14
        gaps = {name: [] for name in errors}
        for t, (x, R, force, torque, s) in zip(TIMES, reference, strict=True):
            n = round(t / h)
            gaps["position"].append(run["body.position"][n] - x[:d])
            gaps["rotation"].append(run["body.rotation"][n] - R[:d, :d])
            gaps["force"].append(run["joint.force"][n] - force[:d])
            gaps["torque"].append(run["joint.torque"][n] - (torque if d == 3 else torque[2]))
            if drawn.kind.angle:
                gaps["angle"].append(run["joint.angle"][n] - s[-1])
            if drawn.kind.slide:
                slid = LEAD / (2 * np.pi) * s[0] if drawn.kind.lead else s[0]
                gaps["slide"].append(run["joint.position"][n] - slid)
        for name, found in gaps.items():
            if found:
                errors[name].append(max(np.abs(gap).max() for gap in found))
    for name, found in errors.items():
        if found and max(found) > 1e-7:  # some are exact, up to the stencil of the reference
            assert abs(measured_order(STEPS, found) - 2) < 0.1 and found[-1] < 2e-2, (name, found)


@pytest.mark.parametrize(
    ("dimension", "what"), [(d, what) for d, what in CASES if (SPATIAL_JOINTS if d == 3 else PLANAR_JOINTS)[what].angle]
)
def test_angles_go_on_over_ten_turns(dimension, what):
    """A ball that spins about the axis: every step turns it by the same angle, 2 atan(h rate/2), round and round.

    On a thread it also moves along, at a speed that does not depend on the step: the angle is a little larger.
    """
    mb, d, rate, h = lv.Multibody(planar=dimension == 2), dimension, 40.0, 0.02
    body = mb.body("ball", mass=1.0, inertia=[0.1] * 3 if d == 3 else 0.1, position=np.zeros(d))
    more = dict(axis=[0, 0.6, 0.8]) if d == 3 else {}
    more |= dict(lead=0.1) if what == "screw" else {}
    joint = mb.joint(what, "joint", mb.ground, body, at=np.zeros(d), **more)
    mb.initial(joint, rate=rate)
    run = mb.simulate(t_end=2.0, h=h)
    assert run["joint.angle"][-1] > 20 * np.pi
    turned = np.diff(run["joint.angle"])
    assert np.ptp(turned) < 1e-12
    assert turned[0] == pytest.approx(2 * np.arctan(h * rate / 2), rel=2e-4 if what == "screw" else 1e-12)
    assert run["joint.rate"] == pytest.approx(rate, rel=1e-3 if what == "screw" else 1e-11)
    if what == "screw":
        assert run["joint.position"] == pytest.approx(run["joint.angle"] * 0.1 / (2 * np.pi), abs=1e-13)


@pytest.mark.parametrize(("dimension", "what"), CASES)
def test_wrong_use_gets_its_sentence(dimension, what):
    """With itself, with a body of another mechanism, at no point, twice by one name, and about no axis."""
    mb, kind = lv.Multibody(planar=dimension == 2), (SPATIAL_JOINTS if dimension == 3 else PLANAR_JOINTS)[what]
    place, inertia = np.zeros(dimension), [1, 1, 1] if dimension == 3 else 1.0
    body = mb.body("body", mass=1, inertia=inertia, position=place)
    other = lv.Multibody(planar=dimension == 2).body("other", mass=1, inertia=inertia, position=place)
    good = dict(axis=np.eye(dimension)[0]) if kind.axis else {}
    good |= dict(second_axis=[0, 1, 0]) if what == "universal" else dict(lead=0.1) if kind.lead else {}
    wrong = [
        ((body, body), good, "two different bodies"),
        ((mb.ground, other), good, "not a body of this mechanism"),
        ((mb.ground, body), good | dict(at=[0.0]), "numbers"),
    ]
    if kind.axis:
        wrong += [
            ((mb.ground, body), good | dict(axis=np.zeros(dimension)), "not all zero"),
            ((mb.ground, body), good | dict(axis=None), "axis"),
            ((mb.ground, body), good | dict(axis="up"), "'x', 'y', 'z' or a vector"),
        ]
    if kind.orthogonal_axes:
        dot = mb.particle("dot", at=place, mass=1)
        wrong.append(((mb.ground, dot), good, "has no orientation"))
    for parts, given, words in wrong:
        with pytest.raises(lv.InputError, match=words):
            mb.joint(what, "joint", *parts, **given)
    mb.joint(what, "joint", mb.ground, body, **good)
    with pytest.raises(lv.InputError, match="already"):
        mb.joint(what, "joint", mb.ground, body, **good)
