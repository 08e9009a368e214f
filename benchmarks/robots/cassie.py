"""Cassie, a legged robot with four closed loops and leaf springs, from the SDF file of `example-robot-data`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from scipy.spatial.transform import Rotation

import livens as lv

#: File in the folder of the robot descriptions.
FILE = "cassie_description/robots/cassie_v2.sdf"
GRAVITY = (0.0, 0.0, -9.81)
#: Springs and dampers of the motor joints of a robot that is held, in N m/rad and N m s/rad, and distance from rest.
_STIFFNESS, _DAMPING, _OFFSET = 50.0, 0.2, 0.1
#: Initial angles of bent legs, in rad: with straight legs the loops are near singular positions.
_BENT = {"knee-op": -1.2, "foot-op": -1.2, "knee-shin-joint": 0.0}
_HIPS = {"roll-op": 0.0, "yaw-op": 0.0, "pitch-op": 0.0}


@dataclass(frozen=True)
class Pose:
    """Position and rotation matrix."""

    p: np.ndarray
    R: np.ndarray

    @classmethod
    def of(cls, element: ElementTree.Element) -> Pose:
        numbers = np.array((element.findtext("pose") or "0 0 0 0 0 0").split(), dtype=float)
        quarters = np.pi / 2 * np.round(2 * numbers[3:] / np.pi)  # the file has five digits: plantar loops are planar
        angles = np.where(np.abs(numbers[3:] - quarters) < 1e-5, quarters, numbers[3:])
        return cls(numbers[:3], Rotation.from_euler("xyz", angles).as_matrix())

    def __matmul__(self, other: Pose) -> Pose:
        return Pose(self.p + self.R @ other.p, self.R @ other.R)


@dataclass(frozen=True)
class Link:
    """Link of the file: pose of its frame and of its inertial frame in the model, mass and inertia."""

    pose: Pose
    inertial: Pose
    mass: float
    inertia: np.ndarray


@dataclass(frozen=True)
class Hinge:
    """Joint of the file in the reference configuration: revolute, or a ball joint."""

    name: str
    kind: str
    parent: str
    child: str
    at: np.ndarray
    axis: np.ndarray
    stiffness: float

    @property
    def rest_angle(self) -> float:
        """Angle of a spring without load: those of the heels are nearly relaxed when the legs are bent."""
        return 0.75 if "tarsus-spring" in self.name else 0.0


def read_file(file: Path) -> tuple[dict[str, Link], list[Hinge]]:
    """Return links and joints of Cassie; a joint pose is relative to the child link."""
    model = ElementTree.parse(file).getroot().find("model")
    assert model is not None
    links, hinges = dict[str, Link](), list[Hinge]()
    for element in model.findall("link"):
        pose, inertial = Pose.of(element), element.find("inertial")
        assert inertial is not None
        number = {e.tag: float(e.text or 0) for e in inertial.iter() if e.tag[0] == "i" and len(e.tag) == 3}
        inertia = np.array([[number["i" + "".join(sorted(a + b))] for b in "xyz"] for a in "xyz"])
        mass = float(inertial.findtext("mass") or 0)
        links[str(element.get("name"))] = Link(pose, pose @ Pose.of(inertial), mass, inertia)
    for element in model.findall("joint"):
        parent, child = str(element.findtext("parent")), str(element.findtext("child"))
        pose = links[child].pose @ Pose.of(element)
        axis = pose.R @ np.array(str(element.findtext("axis/xyz")).split(), dtype=float)
        stiffness = float(element.findtext("axis/dynamics/spring_stiffness") or 0)
        hinges.append(Hinge(str(element.get("name")), str(element.get("type")), parent, child, pose.p, axis, stiffness))
    return links, hinges


def torques(hinges: list[Hinge]) -> dict[str, float]:
    """Return torques of the motors, those of joints with names on -op, in N m."""
    motors = [hinge.name for hinge in hinges if hinge.name.endswith("-op")]
    return dict(zip(motors, np.random.default_rng(3).uniform(-1, 1, len(motors)), strict=True))


def cassie(links: dict[str, Link], hinges: list[Hinge], *, held: bool = False) -> lv.Multibody:
    """Return Cassie in free fall with leaf springs and motor torques, without damping.

    If it is `held`, the motor joints have springs and dampers instead of torques, which start 0.1 rad away from rest.
    """
    mb = lv.Multibody(gravity=list(GRAVITY))
    for name, link in links.items():
        position, rotation = link.inertial.p, link.inertial.R
        mb.body(name, mass=link.mass, inertia=link.inertia, position=position, rotation=rotation)
    motors = torques(hinges)
    for hinge in hinges:
        bodies = mb.bodies[hinge.parent], mb.bodies[hinge.child]
        if hinge.kind == "ball":
            mb.spherical(hinge.name, *bodies, at=hinge.at)
            continue
        joint = mb.revolute(hinge.name, *bodies, at=hinge.at, axis=hinge.axis)
        if hinge.name in motors and held:
            rest_angle = _BENT.get(hinge.name.split("-", 1)[1], 0.0) + _OFFSET
            mb.torsion_spring(f"{hinge.name} servo", joint, stiffness=_STIFFNESS, rest_angle=rest_angle)
            mb.torsion_damper(f"{hinge.name} damper", joint, damping=_DAMPING)
        elif hinge.name in motors:
            mb.motor(joint, torque=motors[hinge.name])
        if hinge.stiffness:
            mb.torsion_spring(f"{hinge.name} spring", joint, stiffness=hinge.stiffness, rest_angle=hinge.rest_angle)
    for side in ("left", "right"):
        for name, angle in (_BENT | _HIPS if held else _BENT).items():
            mb.initial(mb.joints[f"{side}-{name}"], angle=angle)
    return mb
