"""MJCF writer (MuJoCo): mechanism in its initial configuration, with the initial velocities as a keyframe.

Bodies form a tree; loop-closing joints become ``equality`` constraints, which are compliant in MuJoCo. Contacts, motor
laws and similar elements have no equivalent; omitted elements are reported.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Comment, SubElement, indent, tostring
from xml.etree.ElementTree import Element as Tag

import numpy as np

from livens import rotations as rot
from livens.errors import InputError
from livens.multibody.exports.geoms import axes_in_space, in_space, numbers, write_geoms
from livens.multibody.exports.tree import Branch, Freedom, Pose, Tree
from livens.multibody.joint import Joint
from livens.multibody.parts import Part, point_in_space

if TYPE_CHECKING:
    from livens.multibody.builder import Multibody

#: Limit of a one-sided joint range, in radians or metres.
_FAR = 1e9
#: Radius in metres of a sphere whose inertia is used for particles, as MuJoCo requires a non-zero inertia.
_SPECK = 1e-4


def write_mjcf(mb: Multibody, path: Path, force: bool) -> list[str]:
    """Write the file and return messages on omitted elements."""
    writer = Writer(mb)
    root = writer.written(path.stem)
    indent(root)
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(tostring(root, encoding="unicode") + "\n")
    except FileExistsError:
        raise InputError(
            f"the file '{path}' exists already: choose another name, or replace it with force=True"
        ) from None
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"cannot write '{path}': {words}") from None
    return writer.notes


class Writer:
    """MJCF writer of one mechanism."""

    def __init__(self, mb: Multibody) -> None:
        self.mb, self.notes = mb, list[str]()
        q, v = mb.started
        self.tree = Tree(mb.bodies, mb.ground, list(mb.connections.values()), poses(mb, q, v))
        #: Attributes of passive forces by MJCF joint name.
        self.acting: dict[str, dict[str, str]] = {}
        self.tendons, self.equality, self.actuators = Tag("tendon"), Tag("equality"), Tag("actuator")
        self.sites: dict[str, list[Tag]] = {}

    def written(self, name: str) -> Tag:
        mb, root = self.mb, Tag("mujoco", model=name)
        for one, (what, given) in mb._said.items():
            self._force(one, what, given)
        left = (*mb._contacts, *mb._holds, *(f"{one}, a beam" for one in mb.beams), *mb._sampled)
        self.notes += [f"'{one}' is not in the file" for one in left]
        for coupling in mb.couplings.values():
            self._couple(coupling.name, coupling.members)
        for joint in self.tree.closing:
            self._close(joint)
        gravity = np.zeros(3) if mb.gravity is None else in_space(mb.gravity)
        SubElement(root, "compiler", angle="radian", inertiafromgeom="false", autolimits="true")
        SubElement(root, "option", gravity=numbers(gravity))
        seen = SubElement(root, "default")
        SubElement(seen, "geom", contype="0", conaffinity="0", mass="0")
        world = SubElement(root, "worldbody")
        SubElement(world, "light", pos="0 0 10", directional="true")
        world.extend(self.sites.get("ground", []))
        for branch in self.tree.branches:
            self._body(world, branch, Pose(np.zeros(3), np.eye(3), np.zeros(3), np.zeros(3)))
        root.extend(tag for tag in (self.tendons, self.equality, self.actuators) if len(tag))
        root.append(self._start())
        for note in self.notes:
            root.insert(0, Comment(f" {note.replace('--', '- -')} "))
        return root

    # -- bodies -------------------------------------------------------------------------------------------------------
    def _body(self, within: Tag, branch: Branch, parent: Pose) -> None:
        part, pose = branch.part, self.tree.poses[branch.part.name]
        turn = parent.rotation.T @ pose.rotation
        place = parent.rotation.T @ (pose.position - parent.position)
        tag = SubElement(within, "body", name=part.name, pos=numbers(place), quat=numbers(rot.from_matrix(turn)))
        self._inertia(tag, part)
        for one in branch.freedoms:
            self._freedom(tag, one, pose)
        write_geoms(tag, part, self.notes.append)
        tag.extend(self.sites.get(part.name, []))
        for child in branch.children:
            self._body(tag, child, pose)

    def _inertia(self, tag: Tag, part: Part) -> None:
        assert part.element is not None
        given = part.element.parameters.values
        mass = float(given["mass"])
        if "euler" in given:
            J = np.trace(given["euler"]) * np.eye(3) - given["euler"]
        elif "moment" in given:  # only the third moment affects planar motion
            J = float(given["moment"]) * np.diag([0.5, 0.5, 1.0])
        else:
            J = 0.4 * mass * _SPECK**2 * np.eye(3)
        six = [J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2]]
        SubElement(tag, "inertial", pos="0 0 0", mass=numbers([mass]), fullinertia=numbers(six))

    def _freedom(self, tag: Tag, one: Freedom, pose: Pose) -> None:
        if one.kind == "free":
            SubElement(tag, "freejoint", name=one.name)
            return
        place = pose.rotation.T @ (one.at - pose.position)
        found = dict(name=one.name, type=one.kind, pos=numbers(place))
        if one.kind != "ball":
            found |= dict(axis=numbers(pose.rotation.T @ one.axis), ref=numbers([one.reference]))
        SubElement(tag, "joint", found | self.acting.get(one.name, {}))

    def _start(self) -> Tag:
        """Return the keyframe ``start``."""
        places, rates = list[float](), list[float]()
        for branch in self.tree:
            pose = self.tree.poses[branch.part.name]
            for one in branch.freedoms:
                rates += one.rates
                if one.kind == "free":
                    places += [*pose.position, *rot.from_matrix(pose.rotation)]
                else:
                    places += [1.0, 0.0, 0.0, 0.0] if one.kind == "ball" else [one.reference]
        found = Tag("keyframe")
        SubElement(found, "key", name="start", qpos=numbers(places), qvel=numbers(rates))
        return found

    # -- loops and couplings ------------------------------------------------------------------------------------------
    def _close(self, joint: Joint) -> None:
        """Write a loop closure by coincident points; a hinge in 3-D has two points on its axis."""
        part, lever, other = joint.first, in_space(joint.parameters["X"]), joint.second
        axes = axes_in_space(joint.parameters["A"])
        if part.element is None:  # body2 defaults to the world
            part, lever, other = joint.second, in_space(joint.parameters["Y"]), joint.first
            axes = axes_in_space(joint.parameters["B"])
        ends = dict(body1=part.name) | ({} if other.element is None else dict(body2=other.name))
        if joint.what == "fixed":
            SubElement(self.equality, "weld", dict(name=joint.name) | ends)
            return
        SubElement(self.equality, "connect", dict(name=joint.name, anchor=numbers(lever)) | ends)
        if joint.what == "revolute" and joint.first.dimension == 3:
            along = lever + 0.1 * axes[:, 2]
            SubElement(self.equality, "connect", dict(name=f"{joint.name} axis", anchor=numbers(along)) | ends)

    def _couple(self, name: str, members: Any) -> None:
        """Write a coupling: ``sum weight_i (angle_i or position_i)`` is constant."""
        names = [self._name(name, joint, "hinge" if quantity == "angle" else "slide") for joint, quantity, _ in members]
        if any(not one for one in names):
            return
        weights = [weight for _, _, weight in members]
        if len(names) == 2:
            ratio = numbers([0, -weights[0] / weights[1], 0, 0, 0])
            SubElement(self.equality, "joint", name=name, joint1=names[1], joint2=names[0], polycoef=ratio)
            return
        tendon = SubElement(self.tendons, "fixed", name=name)
        for one, weight in zip(names, weights, strict=True):
            SubElement(tendon, "joint", joint=one, coef=numbers([weight]))
        SubElement(self.equality, "tendon", name=name, tendon1=name)

    def _name(self, name: str, joint: Joint, kind: str) -> str:
        """Return the MJCF name of the coordinate of a joint; empty, with a note, if the joint closes a loop."""
        for branch in self.tree:
            for one in branch.freedoms:
                if branch.joint is joint and one.kind == kind:
                    return one.name
        self.notes.append(f"'{name}' is not in the file: the joint '{joint.name}' closes a loop there")
        return ""

    # -- forces -------------------------------------------------------------------------------------------------------
    def _force(self, name: str, what: str, given: tuple[Any, ...]) -> None:
        values = self.mb._acting[name].parameters.values
        if what in ("spring", "damper", "distance"):
            length, stiffness = values.get("length", np.zeros(())), values.get("stiffness", np.zeros(()))
            attributes = dict(name=name)
            if what == "spring":
                attributes |= dict(stiffness=numbers(stiffness), springlength=numbers(length))
            elif what == "damper":
                attributes["damping"] = numbers(values["viscosity"])
            tendon = SubElement(self.tendons, "spatial", attributes)
            for i, end in enumerate(given):
                SubElement(tendon, "site", site=self._site(f"{name} {i + 1}", end))
            if what == "distance":
                SubElement(self.equality, "tendon", name=name, tendon1=name)
        elif what in ("torsion_spring", "torsion_damper", "friction", "limit", "motor"):
            self._in_joint(name, what, given[0], values)
        elif what != "scenery":
            self.notes.append(f"'{name}' is not in the file")

    def _in_joint(self, name: str, what: str, joint: Joint, values: Any) -> None:
        found = self._name(name, joint, "hinge" if joint.kind.angle else "slide")
        if not found:
            return
        acting = self.acting.setdefault(found, {})
        if what == "torsion_spring":
            acting |= dict(stiffness=numbers(values["stiffness"]), springref=numbers(values["rest"]))
        elif what == "torsion_damper":
            acting["damping"] = numbers(values["viscosity"])
        elif what == "friction":
            acting["frictionloss"] = numbers(values["level"])
        elif what == "limit":
            acting["range"] = numbers([values.get("lower", -_FAR), values.get("upper", _FAR)])
            self.notes.append(f"'{name}' has the default limit stiffness of MuJoCo")
        else:
            SubElement(self.actuators, "motor", name=name, joint=found)
            self.notes.append(f"the law of '{name}' is not in the file: its control is the applied torque or force")

    def _site(self, name: str, end: Any) -> str:
        """Add a site at a point of a body or of the ground, and return its name."""
        marker = end.centre if isinstance(end, Part) and end.element is not None else end
        part = getattr(marker, "part", self.mb.ground)
        if part.element is None:
            part, place = self.mb.ground, point_in_space(name, marker, self.mb.dimension)
        else:
            place = marker.lever
        self.sites.setdefault(part.name, []).append(Tag("site", name=name, pos=numbers(in_space(place))))
        return name


def poses(mb: Multibody, q: np.ndarray, v: np.ndarray) -> dict[str, Pose]:
    """Return the initial poses and velocities of all bodies."""
    still = np.zeros(3)
    found = {"ground": Pose(still, np.eye(3), still, still)}
    place = {name: i for i, name in enumerate(mb.system.coordinates)}
    for part in mb.bodies.values():
        own, d = [place[str(c)] for c in part.coordinates], part.dimension
        R, omega = np.eye(3), np.zeros(3)
        if part.turns:
            R = axes_in_space(np.asarray(part.placement.frame(q[own]), dtype=float))
            rates = np.zeros((3, 3))
            rates[:d, :d] = np.asarray(part.placement.frame(v[own]), dtype=float)
            omega = np.cross(R.T, rates.T).sum(axis=0) / 2
        found[part.name] = Pose(in_space(q[own[:d]]), R, in_space(v[own[:d]]), omega)
    return found
