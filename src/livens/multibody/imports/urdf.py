"""URDF reader (ROS): links with inertia and visuals, and single-dof joints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from livens.errors import InputError, MissingExtraError, suggestion
from livens.multibody.imports.collision_geometry import CollisionGeometry
from livens.multibody.imports.link_inertia import LinkInertia
from livens.multibody.imports.mesh_files import MeshFiles
from livens.multibody.imports.orientations import from_quaternion, from_rpy
from livens.multibody.imports.robot_description import (
    Appearance,
    JointDof,
    JointEquality,
    Link,
    RigidTransform,
    RobotDescription,
)
from livens.multibody.imports.xml import XmlNode, read
from livens.scene import shapes
from livens.scene.shapes import Shape

_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
#: Magnitude in rad or m from which on a joint limit is none.
_NO_LIMIT = 1e9
#: Default gravity in m/s^2; URDF files do not specify it.
GRAVITY = (0.0, 0.0, -9.81)


def read_urdf(
    path: Path,
    base: str,
    packages: Mapping[str, Path] | None,
    strict: bool = True,
    contacts: bool = False,
    show_collisions: bool = False,
) -> RobotDescription:
    """Read the robot description of a URDF file; the root link is fixed to the ground unless the base is floating.

    With `contacts` it has collision geometry, and a horizontal ground through the origin. Collision geometry is drawn
    for links without visual geometry, or for all links.
    """
    root = read(path, strict=strict, raw=expand_xacro(path) if path.suffix == ".xacro" else None)
    if root.tag != "robot":
        raise root.error("not a URDF file: its root element is not <robot>")
    robot = UrdfReader(root, MeshFiles(path.parent, packages), contacts, show_collisions).robot(base)
    if contacts:
        robot.collisions.append(CollisionGeometry("ground", "plane", RigidTransform()))
    return robot


def expand_xacro(path: Path) -> bytes:
    """Return the URDF of a xacro file with the values of its arguments by default."""
    try:
        import xacro
    except ImportError:
        raise MissingExtraError("reading xacro files", "xacro") from None
    try:
        return bytes(xacro.process_file(str(path)).toxml(encoding="utf-8"))
    except Exception as error:  # xacro evaluates expressions of the file
        raise InputError(f"{path.name}: xacro: {type(error).__name__}: {error}") from error


class UrdfReader:
    """Reader of links, joints and geometry in URDF elements."""

    def __init__(self, root: XmlNode, files: MeshFiles, contacts: bool, show_collisions: bool) -> None:
        self.contacts, self.show_collisions = contacts, show_collisions
        self.root, self.files = root, files
        self.notes: list[str] = []
        self.collisions = 0
        self.not_drawn: list[str] = []
        #: Colours of materials by name; the first definition in the file is valid for all visuals.
        self.materials: dict[str, np.ndarray | None] = {}
        list(root.children_with_tag("material"))  # marks them as read
        for node in root.iterate():
            if node.tag == "material" and node.optional_child("color") is not None:
                self.materials.setdefault(node.name, self._rgba(node))

    def robot(self, base: str) -> RobotDescription:
        root = self.root
        links, joints = _elements_by_name(root, "link"), _elements_by_name(root, "joint")
        if not links:
            raise root.error("it has no links")
        parent_joint: dict[str, XmlNode] = {}
        for joint in joints.values():
            parent, child = (joint.required_child(tag).text("link") for tag in ("parent", "child"))
            for name in (parent, child):
                if name not in links:
                    raise joint.error(f"there is no link '{name}'{suggestion(name, links)}")
            if child in parent_joint:
                raise joint.error(
                    f"the link '{child}' is the child of another joint already, '{parent_joint[child].name}'"
                )
            parent_joint[child] = joint
        robot = RobotDescription(root.text("name", "robot"), np.array(GRAVITY))
        for name in self._in_order(links, parent_joint):
            robot.links[name] = self.read_link(links[name], parent_joint.get(name), base)
        mimics = [self._mimic(joint, joints) for joint in joints.values() if joint.optional_child("mimic") is not None]
        robot.equalities = [equality for equality in mimics if equality is not None]
        robot.notes = self.notes
        self.note_ignored()
        return robot

    def _in_order(self, links: dict[str, XmlNode], parent_joint: dict[str, XmlNode]) -> list[str]:
        """Return the link names, parents before children."""
        child_links: dict[str, list[str]] = {}
        for child, joint in parent_joint.items():
            child_links.setdefault(joint.required_child("parent").text("link"), []).append(child)
        roots = [name for name in links if name not in parent_joint]
        if len(roots) > 1:
            raise links[roots[1]].error(f"neither it nor '{roots[0]}' is the child of a joint: a URDF must be one tree")
        order = list(roots)
        for name in order:
            order += child_links.get(name, ())
        unreachable = [name for name in links if name not in set(order)]
        if unreachable:
            raise parent_joint[unreachable[0]].error(
                f"the link '{unreachable[0]}' is its own ancestor: joints must form a tree"
            )
        return order

    def read_link(self, node: XmlNode, joint: XmlNode | None, base: str) -> Link:
        link = Link(node.text("name"), None, RigidTransform(), node)
        inertial = node.optional_child("inertial")
        if inertial is not None:
            link.mass = _read_inertial(inertial)
        for visual in node.children_with_tag("visual"):
            link.shapes += self._drawable(visual)
        collisions = list(node.children_with_tag("collision"))
        if self.contacts:
            link.collisions += [self._collision(collision, link.name, i) for i, collision in enumerate(collisions)]
        else:
            self.collisions += len(collisions)
        has_visuals = bool(link.shapes)
        for visual in collisions:
            if has_visuals and not self.show_collisions:
                visual.document.mark_read(visual)
            else:
                link.shapes += self._drawable(visual)
        if joint is not None:
            link.parent = joint.required_child("parent").text("link")
            link.pose = _origin(joint)
            link.dofs = self._read_dofs(joint)
        elif base == "floating":
            link.dofs = [JointDof("base", "free", node)]
        if inertial is None and joint is not None and joint.text("type") != "fixed":
            self.notes.append(f"no mass, as there is no <inertial>: link '{link.name}'")
        return link

    def _read_dofs(self, joint: XmlNode) -> list[JointDof]:
        """Return the dofs of a joint in the frame of its child link."""
        name, joint_type = joint.text("name"), joint.choice("type", "", _TYPES)
        axis = np.array([1.0, 0.0, 0.0])
        axis_nodes = list(joint.children_with_tag("axis"))
        if axis_nodes and joint_type in ("fixed", "floating"):  # the axis of such a joint has no meaning
            axis_nodes[0].get("xyz")
        elif axis_nodes:
            axis = axis_nodes[0].direction("xyz", (1.0, 0.0, 0.0))
        if len(axis_nodes) > 1:
            self.notes.append(f"the joint '{name}' has several <axis>: the first one is used")
        dofs: list[JointDof] = []
        if joint_type == "floating":
            dofs = [JointDof(name, "free", joint)]
        elif joint_type == "planar":
            directions = _plane_directions(axis)
            dofs = [
                JointDof(f"{name}_{suffix}", "slide", joint, axis=d) for suffix, d in zip("xy", directions, strict=True)
            ]
            dofs.append(JointDof(f"{name}_turn", "hinge", joint, axis=axis))
        elif joint_type != "fixed":
            dofs = [JointDof(name, "slide" if joint_type == "prismatic" else "hinge", joint, axis=axis)]
        dynamics, limit = joint.optional_child("dynamics"), joint.optional_child("limit")
        if len(dofs) == 1 and dofs[0].dof_type != "free":
            dof = dofs[0]
            if dynamics is not None:
                dof.damping, dof.friction = (
                    dynamics.not_negative("damping", 0.0),
                    dynamics.not_negative("friction", 0.0),
                )
            if limit is not None and joint_type != "continuous":
                lower, upper = (limit.number(end, 0.0, infinite=True) for end in ("lower", "upper"))
                if lower > upper:
                    self.notes.append(f"the limit of '{name}' is ignored: lower ({lower:g}) is above upper ({upper:g})")
                dof.range = (lower, upper) if lower < upper and max(-lower, upper) < _NO_LIMIT else None
        elif dynamics is not None and joint_type == "fixed":  # nothing moves
            for attribute in ("damping", "friction"):
                dynamics.get(attribute)
        elif dynamics is not None and any(dynamics.number(suffix, 0.0) for suffix in ("damping", "friction")):
            raise dynamics.error(f"damping and friction in a {joint_type} joint are not supported")
        return dofs

    def _mimic(self, joint: XmlNode, joints: dict[str, XmlNode]) -> JointEquality | None:
        mimic = joint.required_child("mimic")
        leader, follower = mimic.text("joint"), joint.text("name")
        if leader not in joints:
            mimic.refuse(f"there is no joint '{leader}'{suggestion(leader, joints)}")
            return None
        if joints[follower].text("type") == "fixed":  # nothing moves
            mimic.document.mark_read(mimic)
            return None
        for name in (leader, follower):
            if joints[name].text("type") not in ("revolute", "continuous", "prismatic", "fixed"):
                raise mimic.error(f"the joint '{name}' has no single coordinate")
        if leader == follower:
            raise mimic.error("a joint cannot follow itself")
        ratio, offset = mimic.number("multiplier", 1.0), mimic.number("offset", 0.0)
        is_constant = not ratio or joints[leader].text("type") == "fixed"  # a fixed joint has the coordinate zero
        leading_joint = None if is_constant else leader
        return JointEquality(f"{follower} mimic", follower, leading_joint, 0.0 if is_constant else ratio, offset, mimic)

    # -- visuals ------------------------------------------------------------------------------------------------------
    def _drawable(self, node: XmlNode) -> list[Shape]:
        """Return the shapes of a visual; a visual that cannot be drawn does not affect the motion."""
        try:
            return self._appearance(node).of_shapes(self._read_visual(node))
        except InputError as error:
            node.document.mark_read(node)
            self.not_drawn.append(str(error))
            return []

    def _appearance(self, node: XmlNode) -> Appearance:
        material = node.optional_child("material")
        if material is None:
            return Appearance()
        rgba = self._rgba(material)
        return Appearance.of(self.materials.get(material.text("name", "")) if rgba is None else rgba)

    def _rgba(self, material: XmlNode) -> np.ndarray | None:
        """Return the colour of a material; an invalid one is noted, as it does not affect the motion."""
        colour = material.optional_child("color")
        try:
            return None if colour is None else colour.numbers("rgba", 4)
        except InputError as error:
            self.notes.append(f"a colour is not used: {error}")
            return None

    def _collision(self, node: XmlNode, link_name: str, index: int) -> CollisionGeometry:
        name = node.name or (f"{link_name} {index + 1}" if index else link_name)
        pose = _origin(node)
        self._read_visual(node)  # checks sizes and files
        solid = next(
            iter(node.required_child("geometry").children_with_tag("box", "cylinder", "sphere", "capsule", "mesh"))
        )
        if solid.tag == "mesh":
            scale = solid.numbers("scale", (1, 3), np.ones(3))
            points = self.files.mesh(solid.text("filename")).vertices * scale
            return CollisionGeometry(name, "mesh", pose, node, points=points)
        if solid.tag == "box":
            return CollisionGeometry(name, "box", pose, node, np.array(solid.numbers("size", 3)) / 2)
        size = [solid.positive("radius"), *([] if solid.tag == "sphere" else [solid.positive("length") / 2])]
        return CollisionGeometry(name, solid.tag, pose, node, np.array(size))

    def _read_visual(self, node: XmlNode) -> list[Shape]:
        geometry, pose, name = node.required_child("geometry"), _origin(node), node.name
        solids = [
            solid_node
            for tag in ("box", "cylinder", "sphere", "capsule", "mesh")
            for solid_node in geometry.children_with_tag(tag)
        ]
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
            mesh = self.files.mesh(file)
        except InputError as error:
            raise InputError(f"'{file}': {error}") from None
        return [shapes.mesh(at, mesh, scale=scale, frame=frame, name=name, trace=None)]

    def note_ignored(self) -> None:
        """Add notes on content that was not read."""
        if self.not_drawn:
            count, first = len(self.not_drawn), self.not_drawn[0]
            self.notes.append(
                f"a visual is not drawn: {first}" if count == 1 else f"{count} visuals are not drawn, such as {first}"
            )
        if self.collisions:
            self.notes.append(f"{self.collisions} <collision>: contacts are not imported, links do not collide")
        for (tag, inner), count in self.root.document.unread().items():
            item = f"{inner[1:]} of <{tag}>" if inner.startswith("@") else f"<{inner}> in <{tag}>"
            self.notes.append(f"{item} is not imported" + (f" ({count} times)" if count > 1 else ""))


def _elements_by_name(root: XmlNode, tag: str) -> dict[str, XmlNode]:
    by_name: dict[str, XmlNode] = {}
    for node in root.children_with_tag(tag):
        name = node.text("name")
        if not name or name in by_name:
            raise node.error("it needs a unique name")
        by_name[name] = node
    return by_name


def _origin(node: XmlNode) -> RigidTransform:
    origin = node.optional_child("origin")
    if origin is None:
        return RigidTransform()
    position, quaternion = origin.numbers("xyz", 3, np.zeros(3)), origin.numbers("quat_xyzw", 4)
    if quaternion is not None:
        if not np.linalg.norm(quaternion) > 0:
            raise origin.error("quat_xyzw must not be zero")
        return RigidTransform(position, from_quaternion(quaternion[[3, 0, 1, 2]]))
    return RigidTransform(position, from_rpy(origin.numbers("rpy", 3, np.zeros(3))))


def _read_inertial(node: XmlNode) -> LinkInertia | None:
    pose, mass = _origin(node), node.required_child("mass").not_negative("value")
    inertia = node.required_child("inertia")
    xx, yy, zz, xy, xz, yz = (inertia.number(attribute) for attribute in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz"))
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if mass == 0 and not tensor.any():
        return None
    return LinkInertia(mass, np.zeros(3), tensor).transformed(pose.position, pose.rotation)


def _plane_directions(axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two orthonormal directions of a plane, close to axes of the frame."""
    reference = np.array([1.0, 0.0, 0.0]) if abs(axis[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
    x = reference - axis * (axis @ reference)
    x = x / np.linalg.norm(x)
    return x, np.cross(axis, x)
