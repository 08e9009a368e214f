"""MJCF reader (MuJoCo): nested bodies with joints and geoms, default classes, equality constraints, actuators."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from livens.multibody.imports.effective_inertia import effective_joint_inertias
from livens.multibody.imports.link_inertia import LinkInertia, sum_inertias
from livens.multibody.imports.mesh_files import MeshFiles
from livens.multibody.imports.mjcf_defaults import Settings, read_with_includes
from livens.multibody.imports.mjcf_equality_actuators import read_equality_and_actuators
from livens.multibody.imports.mjcf_geoms import Geoms
from livens.multibody.imports.mjcf_ignored import ignored_content
from livens.multibody.imports.mjcf_keyframes import read_keyframe
from livens.multibody.imports.robot_description import JointDof, Link, RigidTransform, RobotDescription
from livens.multibody.imports.xml import XmlNode
from livens.scene.shapes import Shape

_UNSUPPORTED = ("composite", "flexcomp", "plugin")
#: Largest number of copies of a <replicate> element.
_MAX_COPIES = 10_000
#: Flags that disable passive forces or constraints.
_SWITCHES = ("constraint", "equality", "frictionloss", "passive", "spring", "damper", "actuation")


def read_mjcf(
    path: Path,
    strict: bool = True,
    actuators: bool = True,
    keyframe: str | int | None = None,
    contacts: bool = False,
    show_collisions: bool = False,
) -> RobotDescription:
    """Read the robot description of an MJCF file, with the chosen keyframe and its collision geometry if `contacts`.

    Geoms that MuJoCo does not display by default are drawn for bodies without others, or for all bodies.
    Without a keyframe the description is that of the reference pose.
    """
    root = read_with_includes(path, strict)
    reader = _Reader(root, Settings(root), path.parent, contacts)
    for world in root.children_with_tag("worldbody"):
        reader._read_body_content(world, None, RigidTransform(), None)
    robot = reader.robot
    for link in robot.links.values():
        if show_collisions or not link.shapes:
            link.shapes += reader.hidden_shapes.get(link.name, ())
    total = sum(link.mass.mass for link in robot.links.values() if link.mass is not None)
    if reader.settings.total_mass > 0 and total > 0:
        for link in robot.links.values():
            link.mass = None if link.mass is None else link.mass.scaled(reader.settings.total_mass / total)
    for dof, time_constant, damping_ratio in reader.spring_dampers:
        inertia = effective_joint_inertias(robot)[dof.name]
        dof.stiffness = inertia / (time_constant * damping_ratio) ** 2
        dof.damping = 2 * inertia / time_constant
    read_equality_and_actuators(root, reader.settings, robot, reader.sites, reader.joint_ref, actuators)
    if keyframe is not None:
        read_keyframe(root, robot, reader.joint_ref, keyframe)
    if contacts:
        reader.read_pairs(root)
    robot.notes += ignored_content(root.document, contacts)
    return robot


class _Reader:
    def __init__(self, root: XmlNode, settings: Settings, folder: Path, contacts: bool) -> None:
        self.contacts = contacts
        self.settings = settings
        self.robot = RobotDescription(root.text("model", "MuJoCo model"), _gravity(root), fluid=_fluid(root))
        self.robot.balances_inertia = settings.balances_inertia
        self.geoms = Geoms(settings, MeshFiles(folder), self.robot.notes)
        #: Sites by name: link and pose in the link.
        self.sites: dict[str, tuple[str | None, RigidTransform]] = {}
        #: Joint coordinates in the reference pose (MJCF `ref`).
        self.joint_ref: dict[str, float] = {}
        #: Joints whose spring and damper are given by time constant in s and damping ratio.
        self.spring_dampers: list[tuple[JointDof, float, float]] = []
        self._geom_inertias: dict[str | None, list[LinkInertia]] = {}
        #: Shapes that MuJoCo does not display by default, such as collision geometry.
        self.hidden_shapes: dict[str | None, list[Shape]] = {}

    def _read_body_content(
        self, node: XmlNode, link: Link | None, pose: RigidTransform, childclass: str | None
    ) -> None:
        """Read the content of a body, the world or a frame, with the pose of the frame in its body."""
        name = link.name if link is not None else None
        childclass = node.get("childclass") or childclass
        for child in node.children_with_tag("geom"):
            self.settings.apply_defaults(child, childclass)
            if any(self.robot.fluid) and child.choice("fluidshape", "none", ("none", "ellipsoid")) == "ellipsoid":
                child.refuse("the ellipsoid model of a fluid is not supported")
            mass, visuals = self.geoms.read_geom(child)
            if mass is not None:
                self._geom_inertias.setdefault(name, []).append(mass.transformed(pose.position, pose.rotation))
            appearance = self.geoms.appearance(child)
            shapes = self.robot.shapes if link is None else link.shapes
            if not appearance.is_displayed:
                shapes = self.hidden_shapes.setdefault(name, [])
            shapes += [shape.transformed(pose.point, pose.rotate) for shape in appearance.of_shapes(visuals)]
            if self.contacts:
                collisions = self.robot.collisions if link is None else link.collisions
                collisions += self.geoms.read_collision(child, pose)
        for child in node.children_with_tag("site"):
            self.settings.apply_defaults(child, childclass)
            site_pose = pose @ self.settings.pose(child)
            site = child.get("name")
            if site:
                if site in self.sites:
                    raise child.error("there are two sites of this name")
                self.sites[site] = name, site_pose
                (self.robot.frames if link is None else link.frames)[site] = site_pose
        for child in node.children_with_tag("joint", "freejoint"):
            if link is None or node.tag == "frame":
                raise child.error("a joint must be a child of a body")
            self._read_joint(child, link, childclass)
        if link is not None and node.tag == "body":
            inertial = node.optional_child("inertial")
            link.mass = self._link_inertia(inertial, link)
        for child in node.children_with_tag("frame"):
            self._read_body_content(child, link, pose @ self.settings.pose(child), childclass)
            if link is not None:
                self._update_inertia(link)
        for child in node.children_with_tag("replicate"):
            self._read_replicate(child, link, pose, childclass)
            if link is not None:
                self._update_inertia(link)
        for child in node.children_with_tag(*_UNSUPPORTED):
            raise child.error(f"<{child.tag}> is not supported: expand it in the file")
        for child in node.children_with_tag("body"):
            self._body(child, link, pose, childclass)

    def _read_replicate(self, node: XmlNode, link: Link | None, pose: RigidTransform, childclass: str | None) -> None:
        """Read copies of the content of an element, each in the frame of the one before moved by offset and euler."""
        count = int(node.number("count"))
        if not 0 < count <= _MAX_COPIES:
            raise node.error(f"count must be from 1 to {_MAX_COPIES}, got {count}")
        move = RigidTransform(node.numbers("offset", 3, np.zeros(3)), self.settings.rotation(node))
        separator = node.text("sep", "")
        for i in range(count):
            suffix = f"{separator}{i:0{len(str(count))}d}"
            copy = XmlNode(
                "frame", {}, node.line, node.document, node.file, [_renamed(c, suffix) for c in node.children]
            )
            self._read_body_content(copy, link, pose, childclass)
            pose = pose @ move
        node.document.mark_read(node)

    def read_pairs(self, root: XmlNode) -> None:
        """Read the pairs of bodies that never collide, and the pairs of geoms that always do."""
        for contact in root.children_with_tag("contact"):
            for node in contact.children_with_tag("exclude"):
                self.robot.excluded_pairs.add(frozenset((node.text("body1"), node.text("body2"))))
                node.get("name")
            for node in contact.children_with_tag("pair"):
                self.robot.collision_pairs.add(frozenset((node.text("geom1"), node.text("geom2"))))

    def _body(self, node: XmlNode, parent: Link | None, pose: RigidTransform, childclass: str | None) -> None:
        robot = self.robot
        name = node.get("name") or f"body {len(robot.links) + 1}"
        if name in robot.links or name == "world":
            raise node.error("there are two bodies of this name")
        if node.choice("mocap", "false", ("false", "true")) == "true":
            robot.notes.append(f"mocap bodies stay where they are: '{name}'")
        link = Link(name, parent.name if parent is not None else None, pose @ self.settings.pose(node), node)
        link.gravity_compensation = node.number("gravcomp", 0.0)
        robot.links[name] = link
        self._read_body_content(node, link, RigidTransform(), childclass)

    def _link_inertia(self, inertial: XmlNode | None, link: Link) -> LinkInertia | None:
        mode = self.settings.from_geoms
        if mode == "true" or (mode == "auto" and inertial is None):
            return sum_inertias(self._geom_inertias.get(link.name, ()))
        return None if inertial is None else _read_inertial(inertial, self.settings)

    def _update_inertia(self, link: Link) -> None:
        """Update the inertia of a link, as geoms in nested frames contribute."""
        link.mass = self._link_inertia(link.node.optional_child("inertial"), link)

    def _read_joint(self, node: XmlNode, link: Link, childclass: str | None) -> None:
        name = node.get("name") or f"{link.name}_joint" + (f"_{len(link.dofs) + 1}" if link.dofs else "")
        if name in self.joint_ref:
            raise node.error("there are two joints of this name")
        self.joint_ref[name] = 0.0
        if node.tag == "freejoint":
            for attribute in ("align", "group"):
                node.get(attribute)
            link.dofs.append(JointDof(name, "free", node))
            return
        settings = self.settings
        settings.apply_defaults(node, childclass)
        dof_type = node.choice("type", "hinge", ("hinge", "slide", "ball", "free"))
        if dof_type == "free" and link.parent is not None:
            raise node.error("a free joint is only allowed in a body of the world")
        is_rotational = dof_type == "hinge"
        dof = JointDof(name, dof_type, node, point=node.numbers("pos", 3, np.zeros(3)))
        if dof_type in ("hinge", "slide"):
            dof.axis = node.direction("axis", (0.0, 0.0, 1.0))
        time_constant, damping_ratio = node.numbers("springdamper", 2, np.zeros(2))
        if time_constant > 0 and damping_ratio > 0:
            self.spring_dampers.append((dof, float(time_constant), float(damping_ratio)))
        convert = settings.angle if is_rotational else float
        reference = convert(node.number("ref", 0.0))
        dof.stiffness, dof.higher_stiffness = _polynomial(node, "stiffness")
        dof.damping, dof.higher_damping = _polynomial(node, "damping")
        if dof_type not in ("hinge", "slide") and (dof.higher_stiffness or dof.higher_damping):
            node.refuse(f"polynomials of stiffness or damping of a {dof_type} joint are not supported")
        dof.rest = convert(node.number("springref", 0.0)) - reference
        dof.armature, dof.friction = node.not_negative("armature", 0.0), node.not_negative("frictionloss", 0.0)
        ends = node.numbers("range", 2)
        limited = node.choice("limited", "auto", ("auto", "true", "false"))
        if ends is not None and (limited == "true" or (limited == "auto" and settings.autolimits)) and ends.any():
            if dof_type in ("hinge", "slide"):
                if not ends[0] < ends[1]:
                    raise node.error(f"its range must be two numbers, the lower first, got {ends[0]:g} and {ends[1]:g}")
                dof.range = convert(ends[0]) - reference, convert(ends[1]) - reference
            else:
                self.robot.notes.append(f"ranges of {dof_type} joints are ignored: '{name}'")
        if reference and dof_type in ("hinge", "slide"):
            self.joint_ref[name] = reference
            self.robot.notes.append(
                f"measured from its reference pose, where MuJoCo has the value of ref: joint '{name} ({reference:g})'"
            )
        link.dofs.append(dof)


def _renamed(node: XmlNode, suffix: str) -> XmlNode:
    """Return a copy of a node with a suffix to all names in it."""
    attributes = node.attributes | ({"name": node.name + suffix} if node.name else {})
    children = [_renamed(child, suffix) for child in node.children]
    return XmlNode(node.tag, attributes, node.line, node.document, node.file, children)


def _polynomial(node: XmlNode, name: str) -> tuple[float, tuple[float, ...]]:
    """Return the first and the higher coefficients of a stiffness or damping."""
    first, *higher = (float(x) for x in node.numbers(name, (1, 2, 3), np.zeros(1)))
    if first < 0:
        raise node.error(f"{name} must not be negative, got {first:g}")
    return first, tuple(higher) if any(higher) else ()


def _gravity(root: XmlNode) -> np.ndarray:
    gravity = np.array([0.0, 0.0, -9.81])
    for option in root.children_with_tag("option"):
        gravity = option.numbers("gravity", 3, gravity)
        for flag in option.children_with_tag("flag"):
            if flag.choice("gravity", "enable", ("enable", "disable")) == "disable":
                gravity = np.zeros(3)
            for name in _SWITCHES:
                if flag.choice(name, "enable", ("enable", "disable")) == "disable":
                    if name == "constraint" and not list(root.children_with_tag("equality")):
                        continue  # contacts and limits do not act here either
                    flag.refuse(f"{name} is switched off, which is not supported: remove the flag from the file")
    return gravity


def _fluid(root: XmlNode) -> tuple[float, float]:
    """Return density and viscosity of the surrounding fluid."""
    density, viscosity, wind = 0.0, 0.0, np.zeros(3)
    for option in root.children_with_tag("option"):
        density, viscosity = option.not_negative("density", density), option.not_negative("viscosity", viscosity)
        wind = option.numbers("wind", 3, wind)
        if (density or viscosity) and wind.any():
            option.refuse("a fluid with wind is not supported")
    return density, viscosity


def _read_inertial(node: XmlNode, settings: Settings) -> LinkInertia | None:
    """Return mass, centre of mass and inertia tensor of an <inertial> element; None without mass."""
    mass, pose = node.not_negative("mass"), settings.pose(node)
    diagonal, full = node.numbers("diaginertia", 3), node.numbers("fullinertia", 6)
    if (diagonal is None) == (full is None):
        raise node.error("it needs either diaginertia or fullinertia")
    if full is not None:
        xx, yy, zz, xy, xz, yz = full
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    else:
        tensor = np.diag(diagonal)
    if mass == 0 and not tensor.any():
        return None
    return LinkInertia(mass, np.zeros(3), tensor).transformed(pose.position, pose.rotation)
