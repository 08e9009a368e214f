"""SDF reader (Gazebo): links and joints of one model, with visual and collision geometry as in URDF.

Values are texts of elements: they are read as attributes, so that inertia and geometry have one reader.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from livens.errors import suggestion
from livens.multibody.imports.mesh_files import MeshFiles
from livens.multibody.imports.orientations import from_rpy
from livens.multibody.imports.robot_description import JointDof, Link, LoopClosure, RigidTransform, RobotDescription
from livens.multibody.imports.urdf import GRAVITY, UrdfReader
from livens.multibody.imports.xml import XmlNode, read

#: Dof types of the joints with one dof, and of joints without or with three.
_DOF_TYPES = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide", "ball": "ball"}
_TYPES = (*_DOF_TYPES, "fixed", "universal", "revolute2", "gearbox", "screw")
_MOMENTS = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
#: First version whose joint axes are in the joint frame by default; in older files they are in that of the model.
_AXES_IN_JOINT_FRAME = 1.5
#: Smallest length of a direction, and limit of a joint coordinate in rad or m that counts as infinite.
_MIN_LENGTH, _UNLIMITED = 1e-10, 1e9


def read_sdf(
    path: Path,
    packages: Mapping[str, Path] | None,
    strict: bool = True,
    contacts: bool = False,
    show_collisions: bool = False,
) -> RobotDescription:
    """Read the robot description of an SDF file with one model; links without a joint to a parent are free."""
    root = read(path, strict=strict)
    if root.tag != "sdf":
        raise root.error("not an SDF file: its root element is not <sdf>")
    worlds = [root, *root.children_with_tag("world")]
    models = [model for world in worlds for model in world.children_with_tag("model")]
    if len(models) != 1:
        raise root.error(f"it must contain one model, but it has {len(models)}")
    for world in worlds:
        for include in world.children_with_tag("include"):
            include.refuse("included models are not supported: copy them into the file")
    (model,) = models
    gravity = [_numbers(node, 3) for world in worlds for node in world.children_with_tag("gravity")]
    robot = RobotDescription(model.text("name", "SDF model"), gravity[0] if gravity else np.array(GRAVITY))
    reader = _SdfReader(model, robot, UrdfReader(model, MeshFiles(path.parent, packages), contacts, show_collisions))
    version = root.number("version", 1.9)
    reader.read("__model__" if version < _AXES_IN_JOINT_FRAME else "")
    return robot


class _SdfReader:
    def __init__(self, model: XmlNode, robot: RobotDescription, urdf: UrdfReader) -> None:
        self.model, self.robot, self.urdf = model, robot, urdf
        self.link_nodes = {node.text("name"): node for node in model.children_with_tag("link")}
        self.joint_nodes = {node.text("name"): node for node in model.children_with_tag("joint")}
        self.frame_nodes = {node.text("name"): node for node in model.children_with_tag("frame")}
        if not self.link_nodes:
            raise model.error("it has no links")
        #: Poses of links, joints and frames in the model.
        self._poses: dict[str, RigidTransform] = {}

    def read(self, axis_frame: str) -> None:
        """Read the model; `axis_frame` is the frame of joint axes without one, or empty for that of the joint."""
        model, robot = self.model, self.robot
        for node in model.children_with_tag("model", "include"):
            node.refuse("nested models are not supported")
        in_world = _pose(model)
        is_static = _text(model, "static", "false") in ("true", "1")
        parents: dict[str, XmlNode] = {}
        loops: list[XmlNode] = []
        for joint in self.joint_nodes.values():
            child = self._end(joint, "child")
            self._end(joint, "parent")
            if child is None:
                raise joint.error("the child of a joint must be a link")
            if child in parents:
                loops.append(joint)
            else:
                parents[child] = joint
        for name in self._in_order(parents):
            link = self._link(self.link_nodes[name])
            pose, joint_node = self.pose(name), parents.get(name)
            is_massless = link.mass is None or not link.mass.mass > 0
            if joint_node is not None:
                link.parent = self._end(joint_node, "parent")
                link.dofs = self._dofs(joint_node, pose, axis_frame)
            elif not is_static and is_massless:
                self.link_nodes[name].refuse(
                    "a free link needs a mass: add a joint to the world, or make the model static; with strict=False "
                    "it is fixed to the world"
                )
            elif not is_static:
                link.dofs = [JointDof(f"{name} base", "free", link.node)]
            link.pose = in_world @ pose if link.parent is None else self.pose(link.parent).inverse @ pose
            robot.links[name] = link
        for joint in loops:
            self._add_closure(joint)
        self.urdf.note_ignored()
        robot.notes += self.urdf.notes

    def _in_order(self, parents: dict[str, XmlNode]) -> list[str]:
        """Return the names of links, parents before children."""
        order: list[str] = []
        remaining = list(self.link_nodes)
        while remaining:
            ready = [n for n in remaining if n not in parents or self._end(parents[n], "parent") in (None, *order)]
            if not ready:
                raise parents[remaining[0]].error(f"the link '{remaining[0]}' is its own ancestor: joints form a ring")
            order += ready
            remaining = [n for n in remaining if n not in ready]
        return order

    def _end(self, joint: XmlNode, tag: str) -> str | None:
        """Return the link at an end of a joint; None for the world."""
        name = _text(joint, tag)
        if name == "world":
            return None
        if name not in self.link_nodes:
            raise joint.error(f"there is no link '{name}'{suggestion(name, self.link_nodes)}")
        return name

    # -- poses --------------------------------------------------------------------------------------------------------
    def pose(self, name: str, visited: tuple[str, ...] = ()) -> RigidTransform:
        """Return the pose of a link, a joint or a frame in the model."""
        if name in ("", "__model__"):
            return RigidTransform()
        if name not in self._poses:
            if name in visited:
                raise self.model.error(f"the pose of '{name}' refers to itself")
            node = self.link_nodes.get(name) or self.joint_nodes.get(name) or self.frame_nodes.get(name)
            if node is None:
                raise self.model.error(f"there is no frame '{name}'")
            default = (_text(node, "child") if node.tag == "joint" else node.get("attached_to")) or ""
            pose_node = node.optional_child("pose")
            base = default if pose_node is None else pose_node.get("relative_to") or default
            self._poses[name] = self.pose(base, (*visited, name)) @ _pose(node)
        return self._poses[name]

    # -- joints -------------------------------------------------------------------------------------------------------
    def _dofs(self, joint: XmlNode, link_pose: RigidTransform, axis_frame: str) -> list[JointDof]:
        """Return the dofs of a joint in the frame of its child link."""
        joint_type, name = joint.choice("type", "", _TYPES), joint.text("name")
        if joint_type == "fixed":
            return []
        in_link = link_pose.inverse @ self.pose(name)
        if joint_type == "ball":
            return [JointDof(name, "ball", joint, point=in_link.position)]
        if joint_type not in (*_DOF_TYPES, "universal"):
            raise joint.error(f"joints of type '{joint_type}' are not supported")
        tags = ("axis", "axis2") if joint_type == "universal" else ("axis",)
        dof_type = _DOF_TYPES.get(joint_type, "hinge")
        return [
            self._dof(joint, tag, axis_frame, JointDof(dof_name, dof_type, joint, point=in_link.position))
            for tag, dof_name in zip(tags, (name, f"{name}_2"), strict=False)
        ]

    def _dof(self, joint: XmlNode, tag: str, axis_frame: str, dof: JointDof) -> JointDof:
        axis = joint.required_child(tag)
        direction = axis.required_child("xyz")
        frame = direction.get("expressed_in")
        if frame is None:
            in_model = _text(axis, "use_parent_model_frame", "0") in ("1", "true")
            frame = "__model__" if in_model else axis_frame or joint.text("name")
        child = self._end(joint, "child") or ""
        vector = (self.pose(child).inverse @ self.pose(frame)).rotation @ _numbers(direction, 3)
        length = float(np.linalg.norm(vector))
        if not length > _MIN_LENGTH:
            raise direction.error("the axis must be a direction, and not zero")
        dof = replace(dof, axis=vector / length)
        dynamics, limit = axis.optional_child("dynamics"), axis.optional_child("limit")
        if dynamics is not None:
            dof.damping, dof.friction = (_number(dynamics, name, 0.0) for name in ("damping", "friction"))
            dof.stiffness = _number(dynamics, "spring_stiffness", 0.0)
            dof.rest = _number(dynamics, "spring_reference", 0.0)
        if limit is not None and joint.text("type") != "continuous":
            lower, upper = _number(limit, "lower", -_UNLIMITED), _number(limit, "upper", _UNLIMITED)
            dof.range = (lower, upper) if lower < upper and max(-lower, upper) < _UNLIMITED else None
        return dof

    def _add_closure(self, joint: XmlNode) -> None:
        """Add a joint of a link that has a parent already."""
        joint_type = joint.choice("type", "", _TYPES)
        if joint_type not in ("ball", "fixed"):
            raise joint.error(f"a joint that closes a loop must be of type ball or fixed, not {joint_type}")
        ends = self._end(joint, "parent"), self._end(joint, "child")
        pose, in_world = self.pose(joint.text("name")), _pose(self.model)
        frame_a, frame_b = (in_world @ pose if end is None else self.pose(end).inverse @ pose for end in ends)
        closure = LoopClosure(joint.text("name"), joint_type == "fixed", *ends, frame_a, frame_b, joint)
        self.robot.closures.append(closure)

    # -- links --------------------------------------------------------------------------------------------------------
    def _link(self, node: XmlNode) -> Link:
        """Return a link with inertia and geometry, read from equivalent URDF elements."""
        copies = [_as_urdf(child) for child in node.children_with_tag("inertial", "visual", "collision")]
        if node.optional_child("inertial") is None:
            copies.append(_as_urdf(XmlNode("inertial", {}, node.line, node.document, node.file)))
            self.robot.notes.append(f"no <inertial>, so the default of SDF: 1 kg, 1 kg m^2: link '{node.text('name')}'")
        copy = XmlNode("link", {"name": node.text("name")}, node.line, node.document, node.file, copies)
        link = self.urdf.read_link(copy, None, "fixed")
        node.document.mark_read(node)
        if _text(node, "gravity", "true") in ("false", "0"):
            link.gravity_compensation = 1.0
        return link


def _as_urdf(node: XmlNode) -> XmlNode:
    """Return an inertia, a visual or a collision as a URDF element: texts of elements become attributes."""

    def element(tag: str, attributes: dict[str, str], children: list[XmlNode] | None = None) -> XmlNode:
        return XmlNode(tag, attributes, node.line, node.document, node.file, children or [])

    pose = _numbers(node.optional_child("pose"), 6, "0 0 0 0 0 0")
    texts = [" ".join(repr(float(x)) for x in part) for part in (pose[:3], pose[3:])]
    children = [element("origin", dict(zip(("xyz", "rpy"), texts, strict=True)))]
    if node.tag == "inertial":
        inertia = node.optional_child("inertia")
        defaults = dict.fromkeys(_MOMENTS[:3], "1") | dict.fromkeys(_MOMENTS[3:], "0")
        moments = {n: d if inertia is None else _text(inertia, n, d) for n, d in defaults.items()}
        children += [element("mass", {"value": _text(node, "mass", "1")}), element("inertia", moments)]
        return element("inertial", {}, children)
    solids = []
    for solid in node.required_child("geometry").children:
        texts_by_name = {child.tag: child.content for child in solid.children}
        texts_by_name |= {"filename": texts_by_name.pop("uri")} if "uri" in texts_by_name else {}
        solids.append(element(solid.tag, texts_by_name))
    material = node.optional_child("material")
    diffuse = None if material is None else material.optional_child("diffuse")
    if diffuse is not None:
        children.append(element("material", {"name": ""}, [element("color", {"rgba": diffuse.content})]))
    return element(node.tag, {"name": node.text("name", "")}, [*children, element("geometry", {}, solids)])


def _text(node: XmlNode, tag: str, default: str | None = None) -> str:
    child = node.optional_child(tag)
    if child is None and default is None:
        raise node.error(f"a <{tag}> is missing")
    return (default or "") if child is None else child.content.strip()


def _numbers(node: XmlNode | None, count: int, default: str = "") -> np.ndarray:
    """Return the text of an element as numbers."""
    if node is None:
        return np.array([float(x) for x in default.split()])
    copy = XmlNode(node.tag, {"value": node.content}, node.line, node.document, node.file)
    return np.asarray(copy.numbers("value", count))


def _number(node: XmlNode, tag: str, default: float) -> float:
    child = node.optional_child(tag)
    return default if child is None else float(_numbers(child, 1)[0])


def _pose(node: XmlNode) -> RigidTransform:
    values = _numbers(node.optional_child("pose"), 6, "0 0 0 0 0 0")
    return RigidTransform(values[:3], from_rpy(values[3:]))
