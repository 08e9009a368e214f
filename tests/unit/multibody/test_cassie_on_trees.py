"""Cassie with its closed loops (SDF file of example-robot-data) in the tree tier, against Pinocchio and DOP853."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import livens as lv
from benchmarks.robot_steps import robot_folder
from benchmarks.robots.cassie import FILE, GRAVITY, Hinge, Link, cassie, read_file, torques


def description() -> Path:
    """Return the file of Cassie."""
    folder = robot_folder()
    if folder is None or not (folder / FILE).exists():
        pytest.skip("example-robot-data with Cassie is not installed")
    return folder / FILE


class ClosedTree:
    """Cassie in Pinocchio: tree of the revolute joints; ball joints are constraints of the accelerations."""

    def __init__(self, pin: Any, links: dict[str, Link], hinges: list[Hinge]) -> None:
        self.pin, self.model = pin, pin.Model()
        self.model.gravity.linear = np.array(GRAVITY)
        joints = dict[str, tuple[int, np.ndarray]]()

        def add(link: str, parent: int, at: np.ndarray, hinge: Hinge | None) -> None:
            """Add a link and those behind it, depth first; all joint frames are parallel to the axes of space."""
            joint = pin.JointModelFreeFlyer() if hinge is None else pin.JointModelRevoluteUnaligned(hinge.axis)
            point = np.zeros(3) if hinge is None else hinge.at
            name = "base" if hinge is None else hinge.name
            index = self.model.addJoint(parent, joint, pin.SE3(np.eye(3), point - at), name)
            joints[link] = index, point
            for other in hinges:
                if other.kind == "revolute" and other.parent == link:
                    add(other.child, index, point, other)

        add(next(iter(links)), 0, np.zeros(3), None)
        for name, link in links.items():
            index, point = joints[name]
            inertia = pin.Inertia(link.mass, np.zeros(3), link.inertia)
            self.model.appendBodyToJoint(index, inertia, pin.SE3(link.inertial.R, link.inertial.p - point))
        self.loops = []
        for hinge in hinges:
            if hinge.kind == "ball":
                ends = []
                for side in (hinge.parent, hinge.child):
                    index, point = joints[side]
                    at = pin.SE3(np.eye(3), hinge.at - point)
                    ends.append(
                        self.model.addFrame(pin.Frame(f"{hinge.name} {side}", index, at, pin.FrameType.OP_FRAME))
                    )
                self.loops.append(tuple(ends))
        self.data = self.model.createData()
        rows = {name: self.model.joints[self.model.getJointId(name)] for name in self.model.names[2:]}
        self.angles = {name: row.idx_q for name, row in rows.items()}
        self.springs = {rows[h.name].idx_v: (h.stiffness, h.rest_angle) for h in hinges if h.stiffness}
        self.motors = {rows[name].idx_v: torque for name, torque in torques(hinges).items()}

    def acceleration(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the accelerations that keep the loops closed."""
        pin, model, data = self.pin, self.model, self.data
        tau = np.zeros(model.nv)
        for i, torque in self.motors.items():
            tau[i] += torque
        for i, (stiffness, rest_angle) in self.springs.items():
            tau[i] -= stiffness * (q[i + 1] - rest_angle)
        M, bias = pin.crba(model, data, q), pin.nonLinearEffects(model, data, q, v)
        M = np.triu(M) + np.triu(M, 1).T
        pin.computeJointJacobians(model, data, q)
        pin.forwardKinematics(model, data, q, v, np.zeros(model.nv))
        pin.updateFramePlacements(model, data)
        J, drift, space = [], [], pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        for a, b in self.loops:
            J.append(np.subtract(*(pin.getFrameJacobian(model, data, i, space)[:3] for i in (b, a))))
            drift.append(
                np.subtract(*(pin.getFrameClassicalAcceleration(model, data, i, space).linear for i in (b, a)))
            )
        U, sizes, Vt = np.linalg.svd(np.vstack(J))
        rank = int((sizes > 1e-8 * sizes[0]).sum())
        rows, wanted = Vt[:rank], -(U.T @ np.concatenate(drift))[:rank] / sizes[:rank]
        free, weighted = np.linalg.solve(M, tau - bias), np.linalg.solve(M, rows.T)
        return free + weighted @ np.linalg.solve(rows @ weighted, wanted - rows @ free)

    def gaps(self, q: np.ndarray) -> float:
        """Return the largest gap of the ball joints."""
        self.pin.framesForwardKinematics(self.model, self.data, q)
        return max(np.abs(self.data.oMf[b].translation - self.data.oMf[a].translation).max() for a, b in self.loops)

    def derivative(self, t: float, y: np.ndarray) -> np.ndarray:
        q, v = y[: self.model.nq].copy(), y[self.model.nq :]
        q[3:7] /= np.linalg.norm(q[3:7])
        R, x, s = self.pin.Quaternion(q[3:7]).matrix(), q[3:6], q[6]
        turn = 0.5 * np.r_[s * v[3:6] + np.cross(x, v[3:6]), -x @ v[3:6]]
        return np.r_[R @ v[:3], turn, v[6:], self.acceleration(q, v)]


@pytest.fixture(scope="module")
def robots() -> tuple[lv.Multibody, ClosedTree]:
    pin = pytest.importorskip("pinocchio")
    links, hinges = read_file(description())
    return cassie(links, hinges), ClosedTree(pin, links, hinges)


def test_imported_file():
    """The importer reads the loops, and the tree tier steps the robot; the file has angles of five digits."""
    mb, (links, hinges) = lv.Multibody.from_sdf(description()), read_file(description())
    assert mb.joints.keys() == {hinge.name for hinge in hinges} and mb.bodies.keys() == links.keys()
    run = mb.simulate(t_end=0.01, h=1e-3)
    for name, link in links.items():
        assert mb.system.parameters[f"{name}.mass"] == pytest.approx(link.mass)
        assert np.abs(run[f"{name}.position"][0] - link.inertial.p).max() < 2e-5
    assert run.info.tier == "tree" and "4 elements" in run.info.tier_reason
    assert run.summary.max_constraint < 1e-13 and run.summary.max_energy_drift < 1e-12


def start_of(mb: lv.Multibody, reference: ClosedTree) -> np.ndarray:
    """Return the reference coordinates of the initial position; the pelvis stays at the origin of the axes."""
    run, q = mb.simulate(t_end=1e-5, h=1e-5, tier="tree"), reference.pin.neutral(reference.model)
    for name, i in reference.angles.items():
        q[i] = run[f"{name}.angle"][0]
    assert reference.gaps(q) < 1e-12
    return q


@pytest.mark.slow
def test_accelerations_of_cassie(robots):
    """Initial accelerations of all joints, with four closed loops, are those of Pinocchio's matrices."""
    mb, reference = robots
    q = start_of(mb, reference)
    acceleration = reference.acceleration(q, np.zeros(reference.model.nv))
    run = mb.simulate(t_end=2e-5, h=1e-5, tier="tree")
    assert len(mb.bodies) == 23 and len(run.info.dropped) == 2  # the plantar rods move in a plane
    found = {i: 2e10 * (run[f"{name}.angle"][1] - q[i]) for name, i in reference.angles.items()}
    largest = np.abs(acceleration).max()
    assert largest > 100 and max(abs(a - acceleration[i - 1]) for i, a in found.items()) < 1e-5 * largest


@pytest.mark.slow
def test_motion_of_cassie_converges(robots):
    """Joint angles and the rotation of the pelvis after 10 ms converge with order two to DOP853."""
    mb, reference = robots
    start = np.r_[start_of(mb, reference), np.zeros(reference.model.nv)]
    end = solve_ivp(reference.derivative, (0, 0.01), start, method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    assert reference.gaps(end[: reference.model.nq]) < 1e-9
    sizes, errors = (5e-4, 2.5e-4, 1.25e-4, 6.25e-5), []
    for h in sizes:
        run = mb.simulate(t_end=0.01, h=h, tier="tree")
        assert run.statistics.reference_steps == 0 and run.summary.max_constraint < 1e-13
        assert run.summary.max_energy_drift < 1e-12
        angles = [abs(run[f"{name}.angle"][-1] - end[i]) for name, i in reference.angles.items()]
        # both turn relative to the axes of the pelvis: its initial rotation is that of the assembled mechanism
        first, last = run["pelvis.rotation"][[0, -1]]
        rotation = first.T @ last
        errors.append(max(*angles, np.abs(rotation - Rotation.from_quat(end[3:7]).as_matrix()).max()))
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert slope == pytest.approx(2.0, abs=0.1) and errors[-1] < 1e-4, (slope, errors)


@pytest.mark.slow
def test_tiers_agree_on_cassie(robots):
    """The tree tier, chosen by default, takes the steps of the assembled tier."""
    mb, _ = robots
    runs = [mb.simulate(t_end=0.03, h=1e-3, tier=tier) for tier in ("auto", "assembled")]
    assert runs[0].info.tier == "tree" and runs[0].info.dropped == runs[1].info.dropped
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-10
    assert runs[0].summary.max_energy_drift < 1e-12
