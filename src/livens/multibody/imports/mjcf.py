"""MJCF reader (MuJoCo): nested bodies with joints and geoms, default classes, equality constraints, actuators."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from livens.multibody.imports.files import Files
from livens.multibody.imports.mass import Mass, summed
from livens.multibody.imports.mjcf_beside import beside_the_tree
from livens.multibody.imports.mjcf_geoms import Geoms
from livens.multibody.imports.mjcf_settings import Settings, whole
from livens.multibody.imports.mjcf_unread import unread
from livens.multibody.imports.robot import Freedom, Link, Pose, Robot
from livens.multibody.imports.xml import Node

_REFUSED = ("replicate", "attach", "composite", "flexcomp", "plugin")
#: Flags that disable passive forces or constraints.
_SWITCHES = ("constraint", "equality", "frictionloss", "passive", "spring", "damper", "actuation")


def read_mjcf(path: Path) -> Robot:
    """Read the robot description of an MJCF file at its reference pose."""
    root = whole(path)
    reader = _Reader(root, Settings(root), path.parent)
    for world in root.all("worldbody"):
        reader.content(world, None, Pose(), None)
    robot = reader.robot
    total = sum(link.mass.mass for link in robot.links.values() if link.mass is not None)
    if reader.settings.total > 0 and total > 0:
        for link in robot.links.values():
            link.mass = None if link.mass is None else link.mass.scaled(reader.settings.total / total)
    beside_the_tree(root, reader.settings, robot, reader.sites, reader.references)
    robot.notes += unread(root.document)
    return robot


class _Reader:
    def __init__(self, root: Node, settings: Settings, folder: Path) -> None:
        self.settings = settings
        self.robot = Robot(root.text("model", "MuJoCo model"), _gravity(root))
        self.geoms = Geoms(settings, Files(folder), self.robot.notes)
        #: Sites by name: link and pose in the link.
        self.sites: dict[str, tuple[str | None, Pose]] = {}
        #: Joint coordinates in the reference pose (MJCF `ref`).
        self.references: dict[str, float] = {}
        self._parts: dict[str | None, list[Mass]] = {}

    def content(self, node: Node, link: Link | None, pose: Pose, childclass: str | None) -> None:
        """Read the content of a body, the world or a frame, with the pose of the frame in its body."""
        name = link.name if link is not None else None
        childclass = node.get("childclass") or childclass
        for child in node.all("geom"):
            self.settings.behind(child, childclass)
            mass, looks = self.geoms.read(child)
            if mass is not None:
                self._parts.setdefault(name, []).append(mass.placed(pose.position, pose.rotation))
            here = self.robot.shapes if link is None else link.shapes
            here += [shape.placed(pose.point, pose.turned) for shape in looks]
        for child in node.all("site"):
            self.settings.behind(child, childclass)
            at = pose @ self.settings.pose(child)
            site = child.get("name")
            if site:
                if site in self.sites:
                    raise child.error("there are two sites of this name")
                self.sites[site] = name, at
                (self.robot.frames if link is None else link.frames)[site] = at
        for child in node.all("joint", "freejoint"):
            if link is None or node.tag == "frame":
                raise child.error("a joint must be a child of a body")
            self._freedom(child, link, childclass)
        if link is not None and node.tag == "body":
            inertial = node.one("inertial")
            link.mass = self._mass(inertial, link)
        for child in node.all("frame"):
            self.content(child, link, pose @ self.settings.pose(child), childclass)
            if link is not None:
                self._again(link)
        for child in node.all(*_REFUSED):
            raise child.error(f"<{child.tag}> is not supported: expand it in the file")
        for child in node.all("body"):
            self._body(child, link, pose, childclass)

    def _body(self, node: Node, parent: Link | None, pose: Pose, childclass: str | None) -> None:
        robot = self.robot
        name = node.get("name") or f"body {len(robot.links) + 1}"
        if name in robot.links or name == "world":
            raise node.error("there are two bodies of this name")
        if node.number("gravcomp", 0.0) or node.choice("mocap", "false", ("false", "true")) == "true":
            raise node.error("gravcomp and mocap are not supported")
        link = Link(name, parent.name if parent is not None else None, pose @ self.settings.pose(node), node)
        robot.links[name] = link
        self.content(node, link, Pose(), childclass)

    def _mass(self, inertial: Node | None, link: Link) -> Mass | None:
        how = self.settings.from_geoms
        if how == "true" or (how == "auto" and inertial is None):
            return summed(self._parts.get(link.name, ()))
        return None if inertial is None else _inertial(inertial, self.settings)

    def _again(self, link: Link) -> None:
        """Update the inertia of a link, as geoms in nested frames contribute."""
        link.mass = self._mass(link.node.one("inertial"), link)

    def _freedom(self, node: Node, link: Link, childclass: str | None) -> None:
        name = node.get("name") or f"{link.name}_joint" + (f"_{len(link.freedoms) + 1}" if link.freedoms else "")
        if name in self.references:
            raise node.error("there are two joints of this name")
        self.references[name] = 0.0
        if node.tag == "freejoint":
            for harmless in ("align", "group"):
                node.get(harmless)
            link.freedoms.append(Freedom(name, "free", node))
            return
        settings = self.settings
        settings.behind(node, childclass)
        kind = node.choice("type", "hinge", ("hinge", "slide", "ball", "free"))
        if kind == "free" and link.parent is not None:
            raise node.error("a free joint is only allowed in a body of the world")
        turns = kind == "hinge"
        found = Freedom(name, kind, node, at=node.numbers("pos", 3, np.zeros(3)))
        if kind in ("hinge", "slide"):
            found.axis = node.direction("axis", (0.0, 0.0, 1.0))
        spring = node.numbers("springdamper", 2, np.zeros(2))
        if spring.any():
            raise node.error("springdamper is not supported: give stiffness and damping")
        read = settings.angle if turns else float
        reference = read(node.number("ref", 0.0))
        found.stiffness, found.damping = node.not_negative("stiffness", 0.0), node.not_negative("damping", 0.0)
        found.rest = read(node.number("springref", 0.0)) - reference
        found.armature, found.friction = node.not_negative("armature", 0.0), node.not_negative("frictionloss", 0.0)
        ends = node.numbers("range", 2)
        limited = node.choice("limited", "auto", ("auto", "true", "false"))
        if ends is not None and (limited == "true" or (limited == "auto" and settings.autolimits)) and ends.any():
            if kind in ("hinge", "slide"):
                if not ends[0] < ends[1]:
                    raise node.error(f"its range must be two numbers, the lower first, got {ends[0]:g} and {ends[1]:g}")
                found.range = read(ends[0]) - reference, read(ends[1]) - reference
            else:
                self.robot.notes.append(f"the range of the {kind} joint '{name}' is ignored")
        if reference and kind in ("hinge", "slide"):
            self.references[name] = reference
            self.robot.notes.append(
                f"the joint '{name}' is measured from its reference pose: MuJoCo's value {reference:g} (ref) is 0 here"
            )
        link.freedoms.append(found)


def _gravity(root: Node) -> np.ndarray:
    found = np.array([0.0, 0.0, -9.81])
    for option in root.all("option"):
        found = option.numbers("gravity", 3, found)
        for name, count in dict(density=1, viscosity=1).items():
            if option.numbers(name, count, np.zeros(1)).any():
                raise option.error(f"forces of a fluid ({name}) are not supported")
        option.get("wind")  # acts through a fluid only
        for flag in option.all("flag"):
            if flag.choice("gravity", "enable", ("enable", "disable")) == "disable":
                found = np.zeros(3)
            for name in _SWITCHES:
                if flag.choice(name, "enable", ("enable", "disable")) == "disable":
                    raise flag.error(f"{name} is switched off, which is not supported: remove the flag from the file")
    return found


def _inertial(node: Node, settings: Settings) -> Mass | None:
    """Return mass, centre of mass and inertia tensor of an <inertial> element; None without mass."""
    mass, at = node.not_negative("mass"), settings.pose(node)
    diagonal, full = node.numbers("diaginertia", 3), node.numbers("fullinertia", 6)
    if (diagonal is None) == (full is None):
        raise node.error("it needs either diaginertia or fullinertia")
    if full is not None:
        xx, yy, zz, xy, xz, yz = full
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    else:
        tensor = np.diag(diagonal)
    if mass == 0:
        if tensor.any():
            raise node.error("it has an inertia and no mass")
        return None
    return Mass(mass, np.zeros(3), tensor).placed(at.position, at.rotation)
