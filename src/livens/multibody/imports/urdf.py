"""URDF reader (ROS): links with inertia and visuals, and single-dof joints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from livens.errors import InputError, suggestion
from livens.models import shapes
from livens.models.shapes import Shape
from livens.multibody.imports.files import Files
from livens.multibody.imports.mass import Mass
from livens.multibody.imports.robot import Freedom, Link, Pose, Relation, Robot
from livens.multibody.imports.turns import of_quaternion, of_rpy
from livens.multibody.imports.xml import Node, read

_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
#: Default gravity in m/s^2; URDF files do not specify it.
GRAVITY = (0.0, 0.0, -9.81)


def read_urdf(path: Path, base: str, packages: Mapping[str, Path] | None) -> Robot:
    """Read the robot description of a URDF file; the root link is fixed to the ground unless the base is floating."""
    root = read(path)
    if root.tag != "robot":
        raise root.error("not a URDF file: its root element is not <robot>")
    return _Reader(root, Files(path.parent, packages)).robot(base)


class _Reader:
    def __init__(self, root: Node, files: Files) -> None:
        self.root, self.files = root, files
        self.notes: list[str] = []
        self.collisions = 0

    def robot(self, base: str) -> Robot:
        root = self.root
        links, joints = _named(root, "link"), _named(root, "joint")
        if not links:
            raise root.error("it has no links")
        above: dict[str, Node] = {}
        for joint in joints.values():
            parent, child = (joint.must(word).text("link") for word in ("parent", "child"))
            for name in (parent, child):
                if name not in links:
                    raise joint.error(f"there is no link '{name}'{suggestion(name, links)}")
            if child in above:
                raise joint.error(f"the link '{child}' is the child of another joint already, '{above[child].name}'")
            above[child] = joint
        robot = Robot(root.text("name", "robot"), np.array(GRAVITY))
        for name in self._in_order(links, above):
            robot.links[name] = self._link(links[name], above.get(name), base)
        robot.relations = [self._mimic(joint, joints) for joint in joints.values() if joint.one("mimic") is not None]
        robot.notes = self.notes
        self._unread(root)
        return robot

    def _in_order(self, links: dict[str, Node], above: dict[str, Node]) -> list[str]:
        """Return the link names, parents before children."""
        below: dict[str, list[str]] = {}
        for child, joint in above.items():
            below.setdefault(joint.must("parent").text("link"), []).append(child)
        roots = [name for name in links if name not in above]
        if len(roots) > 1:
            raise links[roots[1]].error(f"neither it nor '{roots[0]}' is the child of a joint: a URDF must be one tree")
        order = list(roots)
        for name in order:
            order += below.get(name, ())
        left = [name for name in links if name not in set(order)]
        if left:
            raise above[left[0]].error(f"the link '{left[0]}' is its own ancestor: joints must form a tree")
        return order

    def _link(self, node: Node, joint: Node | None, base: str) -> Link:
        found = Link(node.text("name"), None, Pose(), node)
        inertial = node.one("inertial")
        if inertial is not None:
            found.mass = _mass(inertial)
        for look in node.all("visual"):
            found.shapes += self._look(look)
        collisions = list(node.all("collision"))
        self.collisions += len(collisions)
        drawn = bool(found.shapes)
        for look in collisions:
            if drawn:
                look.document.known(look)
            else:
                found.shapes += self._look(look)
        if joint is not None:
            found.parent = joint.must("parent").text("link")
            found.pose = _origin(joint)
            found.freedoms = self._freedoms(joint)
        elif base == "floating":
            found.freedoms = [Freedom("base", "free", node)]
        if inertial is None and joint is not None and joint.text("type") != "fixed":
            self.notes.append(f"the link '{found.name}' has no <inertial>, so it has no mass")
        return found

    def _freedoms(self, joint: Node) -> list[Freedom]:
        """Return the dofs of a joint in the frame of its child link."""
        name, what = joint.text("name"), joint.choice("type", "", _TYPES)
        given = joint.one("axis")
        axis = given.direction("xyz", (1.0, 0.0, 0.0)) if given is not None else np.array([1.0, 0.0, 0.0])
        found: list[Freedom] = []
        if what == "floating":
            found = [Freedom(name, "free", joint)]
        elif what == "planar":
            across = _across(axis)
            found = [Freedom(f"{name}_{word}", "slide", joint, axis=d) for word, d in zip("xy", across, strict=True)]
            found.append(Freedom(f"{name}_turn", "hinge", joint, axis=axis))
        elif what != "fixed":
            found = [Freedom(name, "slide" if what == "prismatic" else "hinge", joint, axis=axis)]
        dynamics, limit = joint.one("dynamics"), joint.one("limit")
        if len(found) == 1 and found[0].kind != "free":
            one = found[0]
            if dynamics is not None:
                one.damping, one.friction = (
                    dynamics.not_negative("damping", 0.0),
                    dynamics.not_negative("friction", 0.0),
                )
            if limit is not None and what != "continuous":
                lower, upper = limit.number("lower", 0.0), limit.number("upper", 0.0)
                if lower > upper:
                    raise limit.error(f"lower ({lower:g}) is above upper ({upper:g})")
                one.range = (lower, upper) if lower < upper else None
        elif dynamics is not None and any(dynamics.number(word, 0.0) for word in ("damping", "friction")):
            raise dynamics.error(f"damping and friction in a {what} joint are not supported")
        return found

    def _mimic(self, joint: Node, joints: dict[str, Node]) -> Relation:
        mimic = joint.must("mimic")
        leader, own = mimic.text("joint"), joint.text("name")
        if leader not in joints:
            raise mimic.error(f"there is no joint '{leader}'{suggestion(leader, joints)}")
        for name in (leader, own):
            if joints[name].text("type") not in ("revolute", "continuous", "prismatic"):
                raise mimic.error(f"the joint '{name}' has no single coordinate")
        if leader == own:
            raise mimic.error("a joint cannot follow itself")
        ratio, offset = mimic.number("multiplier", 1.0), mimic.number("offset", 0.0)
        return Relation(f"{own} mimic", own, leader if ratio else None, ratio, offset, mimic)

    # -- visuals ------------------------------------------------------------------------------------------------------
    def _look(self, node: Node) -> list[Shape]:
        geometry, pose, name = node.must("geometry"), _origin(node), node.name
        solids = [one for tag in ("box", "cylinder", "sphere", "capsule", "mesh") for one in geometry.all(tag)]
        if len(solids) != 1:
            raise geometry.error("it must be one of box, cylinder, sphere, mesh")
        (solid,) = solids
        at, frame = pose.position, pose.rotation
        if solid.tag == "box":
            size = solid.numbers("size", 3)
            if size is None or not np.all(size > 0):
                raise solid.error("size must be three numbers greater than 0")
            return [shapes.box(at, size.tolist(), frame, name, None)]
        if solid.tag == "sphere":
            return [shapes.sphere(at, solid.positive("radius"), frame, name, None)]
        if solid.tag != "mesh":
            half = frame[:, 2] * solid.positive("length") / 2
            return [shapes.cylinder(at - half, at + half, solid.positive("radius"), name)]
        scale = solid.numbers("scale", (1, 3), np.ones(3))
        file = solid.text("filename")
        try:
            return [shapes.mesh(at, self.files.mesh(file), scale=scale, frame=frame, name=name, trace=None)]
        except InputError as error:  # visuals do not affect the motion
            self.notes.append(f"'{file}' is not drawn: {error}")
            return []

    def _unread(self, root: Node) -> None:
        if self.collisions:
            self.notes.append(
                f"{self.collisions} <collision>: contacts are not imported, links do not collide"
            )
        for (tag, inner), count in root.document.unread().items():
            what = f"{inner[1:]} of <{tag}>" if inner.startswith("@") else f"<{inner}> in <{tag}>"
            self.notes.append(f"{what} is not imported" + (f" ({count} times)" if count > 1 else ""))


def _named(root: Node, tag: str) -> dict[str, Node]:
    found: dict[str, Node] = {}
    for node in root.all(tag):
        name = node.text("name")
        if not name or name in found:
            raise node.error("it needs a unique name")
        found[name] = node
    return found


def _origin(node: Node) -> Pose:
    given = node.one("origin")
    if given is None:
        return Pose()
    position, quaternion = given.numbers("xyz", 3, np.zeros(3)), given.numbers("quat_xyzw", 4)
    if quaternion is not None:
        if not np.linalg.norm(quaternion) > 0:
            raise given.error("quat_xyzw must not be zero")
        return Pose(position, of_quaternion(quaternion[[3, 0, 1, 2]]))
    return Pose(position, of_rpy(given.numbers("rpy", 3, np.zeros(3))))


def _mass(node: Node) -> Mass | None:
    pose, mass = _origin(node), node.must("mass").not_negative("value")
    inertia = node.must("inertia")
    xx, yy, zz, xy, xz, yz = (inertia.number(word) for word in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if mass == 0:
        if tensor.any():
            raise node.error("it has an inertia and no mass")
        return None
    return Mass(mass, np.zeros(3), tensor).placed(pose.position, pose.rotation)


def _across(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two orthonormal directions of a plane, close to axes of the frame."""
    first = np.array([1.0, 0.0, 0.0]) if abs(axis[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
    x = first - axis * (axis @ first)
    x = x / np.linalg.norm(x)
    return x, np.cross(axis, x)
