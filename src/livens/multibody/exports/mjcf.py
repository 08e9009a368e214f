"""MJCF writer (MuJoCo): mechanism in its initial configuration, with the initial velocities as a keyframe.

Bodies form a tree; loop-closing joints become ``equality`` constraints, which are compliant in MuJoCo. Contacts, motor
laws and similar elements have no equivalent; omitted elements are reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Comment, SubElement, indent, tostring
from xml.etree.ElementTree import Element as Tag

import numpy as np

from livens import rotations as rot
from livens.errors import InputError
from livens.multibody.body import Body, parse_point
from livens.multibody.exports.mjcf_geoms import format_numbers, frame_to_3d, to_3d, write_geoms
from livens.multibody.exports.mjcf_tree import BodyState, MjcfJoint, SpanningTree, TreeNode
from livens.multibody.joint import Joint
from livens.types import FloatArray

if TYPE_CHECKING:
    from livens.multibody.multibody import Multibody

#: Limit of a one-sided joint range, in radians or metres.
_NO_LIMIT = 1e9
#: Radius in metres of a sphere whose inertia is used for particles, as MuJoCo requires a non-zero inertia.
_PARTICLE_RADIUS = 1e-4


def write_mjcf(mb: Multibody, path: Path, force: bool) -> list[str]:
    """Write the file and return messages on omitted elements."""
    writer = Writer(mb)
    root = writer.build_xml(path.stem)
    indent(root)
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(tostring(root, encoding="unicode") + "\n")
    except FileExistsError:
        raise InputError(
            f"the file '{path}' exists already: choose another name, or replace it with force=True"
        ) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"cannot write '{path}': {reason}") from None
    return writer.notes


class Writer:
    """MJCF writer of one mechanism."""

    def __init__(self, mb: Multibody) -> None:
        self.mb, self.notes = mb, list[str]()
        q, v = mb.initial_state
        self.tree = SpanningTree(mb.bodies, mb.ground, list(mb.connections.values()), body_states(mb, q, v))
        #: Attributes of passive forces by MJCF joint name.
        self.joint_attributes: dict[str, dict[str, str]] = {}
        self.tendons, self.equality, self.actuators = Tag("tendon"), Tag("equality"), Tag("actuator")
        self.sites: dict[str, list[Tag]] = {}

    def build_xml(self, name: str) -> Tag:
        mb, root = self.mb, Tag("mujoco", model=name)
        for element_name, (element_type, definition) in mb._definitions.items():
            self._write_force(element_name, element_type, definition)
        for limit, stops in mb._joint_stops.items():
            self._write_joint_force(limit, "limit", stops[0].joint, {stop.side: stop.limit_value for stop in stops})
            self.notes.append(f"the restitution of '{limit}' is not in the file")
        unsupported = (
            *mb._pair_contacts,
            *mb._contact_groups,
            *mb._rigid_contacts,
            *mb._penalty_joints,
            *(f"{element_name}, a beam" for element_name in mb.beams),
            *mb._sampled_controllers,
        )
        self.notes += [f"'{element_name}' is not in the file" for element_name in unsupported]
        if mb.system.external_force is not None and mb.system.external_force.evaluates_within_steps:
            self.notes.append("the external force is not in the file")
        for armature in mb.armatures.values():
            joint_type = "hinge" if armature.is_angle else "slide"
            if joint_name := self._mjcf_joint_name(armature.name, armature.driving_joint, joint_type):
                attributes = self.joint_attributes.setdefault(joint_name, {})
                attributes["armature"] = format_numbers([armature.inertia])
        for coupling in mb.couplings.values():
            self._write_coupling(coupling.name, coupling.terms)
        for joint in self.tree.loop_joints:
            self._write_closure(joint)
        gravity = np.zeros(3) if mb.gravity is None else to_3d(mb.gravity)
        SubElement(root, "compiler", angle="radian", inertiafromgeom="false", autolimits="true")
        SubElement(root, "option", gravity=format_numbers(gravity))
        defaults = SubElement(root, "default")
        SubElement(defaults, "geom", contype="0", conaffinity="0", mass="0")
        world = SubElement(root, "worldbody")
        SubElement(world, "light", pos="0 0 10", directional="true")
        world.extend(self.sites.get("ground", []))
        for node in self.tree.roots:
            self._write_body(world, node, BodyState(np.zeros(3), np.eye(3), np.zeros(3), np.zeros(3)))
        root.extend(tag for tag in (self.tendons, self.equality, self.actuators) if len(tag))
        root.append(self._keyframe())
        for note in self.notes:
            root.insert(0, Comment(f" {note.replace('--', '- -')} "))
        return root

    # -- bodies -------------------------------------------------------------------------------------------------------
    def _write_body(self, parent_tag: Tag, node: TreeNode, parent: BodyState) -> None:
        part, pose = node.part, self.tree.poses[node.part.name]
        relative_rotation = parent.rotation.T @ pose.rotation
        relative_position = parent.rotation.T @ (pose.position - parent.position)
        tag = SubElement(
            parent_tag,
            "body",
            name=part.name,
            pos=format_numbers(relative_position),
            quat=format_numbers(rot.from_matrix(relative_rotation)),
        )
        self._write_inertia(tag, part)
        for joint in node.joints:
            self._write_joint(tag, joint, pose)
        write_geoms(tag, part, self.notes.append)
        tag.extend(self.sites.get(part.name, []))
        for child in node.children:
            self._write_body(tag, child, pose)

    def _write_inertia(self, tag: Tag, part: Body) -> None:
        assert part.element is not None
        parameters = part.element.parameters.values
        mass = float(parameters["mass"])
        if "euler" in parameters:
            J = np.trace(parameters["euler"]) * np.eye(3) - parameters["euler"]
        elif "moment" in parameters:  # only the third moment affects planar motion
            J = float(parameters["moment"]) * np.diag([0.5, 0.5, 1.0])
        else:
            J = 0.4 * mass * _PARTICLE_RADIUS**2 * np.eye(3)
        components = [J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2]]
        SubElement(tag, "inertial", pos="0 0 0", mass=format_numbers([mass]), fullinertia=format_numbers(components))

    def _write_joint(self, tag: Tag, joint: MjcfJoint, pose: BodyState) -> None:
        if joint.joint_type == "free":
            SubElement(tag, "freejoint", name=joint.name)
            return
        position = pose.rotation.T @ (joint.point - pose.position)
        attributes = dict(name=joint.name, type=joint.joint_type, pos=format_numbers(position))
        if joint.joint_type != "ball":
            attributes |= dict(axis=format_numbers(pose.rotation.T @ joint.axis), ref=format_numbers([joint.ref]))
        SubElement(tag, "joint", attributes | self.joint_attributes.get(joint.name, {}))

    def _keyframe(self) -> Tag:
        """Return the keyframe ``start``."""
        qpos, qvel = list[float](), list[float]()
        for node in self.tree:
            pose = self.tree.poses[node.part.name]
            for joint in node.joints:
                qvel += joint.rates
                if joint.joint_type == "free":
                    qpos += [*pose.position, *rot.from_matrix(pose.rotation)]
                else:
                    qpos += [1.0, 0.0, 0.0, 0.0] if joint.joint_type == "ball" else [joint.ref]
        keyframe = Tag("keyframe")
        SubElement(keyframe, "key", name="start", qpos=format_numbers(qpos), qvel=format_numbers(qvel))
        return keyframe

    # -- loops and couplings ------------------------------------------------------------------------------------------
    def _write_closure(self, joint: Joint) -> None:
        """Write a loop closure by coincident points; a hinge in 3-D has two points on its axis."""
        part, local_position, other = joint.body_a, to_3d(joint.parameters["X"]), joint.body_b
        axes = frame_to_3d(joint.parameters["A"])
        if part.element is None:  # body2 defaults to the world
            part, local_position, other = joint.body_b, to_3d(joint.parameters["Y"]), joint.body_a
            axes = frame_to_3d(joint.parameters["B"])
        ends = dict(body1=part.name) | ({} if other.element is None else dict(body2=other.name))
        if joint.type_name == "fixed":
            SubElement(self.equality, "weld", dict(name=joint.name) | ends)
            return
        SubElement(self.equality, "connect", dict(name=joint.name, anchor=format_numbers(local_position)) | ends)
        if joint.type_name == "revolute" and joint.body_a.dimension == 3:
            along = local_position + 0.1 * axes[:, 2]
            SubElement(self.equality, "connect", dict(name=f"{joint.name} axis", anchor=format_numbers(along)) | ends)

    def _write_coupling(self, name: str, members: Any) -> None:
        """Write a coupling: ``sum weight_i (angle_i or position_i)`` is constant."""
        names = [
            self._mjcf_joint_name(name, joint, "hinge" if quantity == "angle" else "slide")
            for joint, quantity, _ in members
        ]
        if any(not joint_name for joint_name in names):
            return
        weights = [weight for _, _, weight in members]
        if len(names) == 2:
            ratio = format_numbers([0, -weights[0] / weights[1], 0, 0, 0])
            SubElement(self.equality, "joint", name=name, joint1=names[1], joint2=names[0], polycoef=ratio)
            return
        tendon = SubElement(self.tendons, "fixed", name=name)
        for joint_name, weight in zip(names, weights, strict=True):
            SubElement(tendon, "joint", joint=joint_name, coef=format_numbers([weight]))
        SubElement(self.equality, "tendon", name=name, tendon1=name)

    def _mjcf_joint_name(self, name: str, joint: Joint, joint_type: str) -> str:
        """Return the MJCF name of the coordinate of a joint; empty, with a note, if the joint closes a loop."""
        for node in self.tree:
            for candidate in node.joints:
                if node.joint is joint and candidate.joint_type == joint_type:
                    return candidate.name
        self.notes.append(f"'{name}' is not in the file: the joint '{joint.name}' closes a loop there")
        return ""

    # -- forces -------------------------------------------------------------------------------------------------------
    def _write_force(self, name: str, element_type: str, definition: tuple[Any, ...]) -> None:
        values = self.mb._force_elements[name].parameters.values
        if element_type in ("spring", "damper", "distance"):
            length, stiffness = values.get("length", np.zeros(())), values.get("stiffness", np.zeros(()))
            attributes = dict(name=name)
            if element_type == "spring":
                attributes |= dict(stiffness=format_numbers(stiffness), springlength=format_numbers(length))
            elif element_type == "damper":
                attributes["damping"] = format_numbers(values["viscosity"])
            tendon = SubElement(self.tendons, "spatial", attributes)
            for i, end in enumerate(definition):
                SubElement(tendon, "site", site=self._add_site(f"{name} {i + 1}", end))
            if element_type == "distance":
                SubElement(self.equality, "tendon", name=name, tendon1=name)
        elif element_type in ("torsion_spring", "torsion_damper", "friction", "limit", "motor"):
            self._write_joint_force(name, element_type, definition[0], values)
        elif element_type != "scenery":
            self.notes.append(f"'{name}' is not in the file")

    def _write_joint_force(self, name: str, element_type: str, joint: Joint, values: Mapping[str, FloatArray]) -> None:
        joint_name = self._mjcf_joint_name(name, joint, "hinge" if joint.joint_type.angle else "slide")
        if not joint_name:
            return
        attributes = self.joint_attributes.setdefault(joint_name, {})
        if element_type == "torsion_spring":
            attributes |= dict(stiffness=format_numbers(values["stiffness"]), springref=format_numbers(values["rest"]))
        elif element_type == "torsion_damper":
            attributes["damping"] = format_numbers(values["viscosity"])
        elif element_type == "friction":
            attributes["frictionloss"] = format_numbers(values["level"])
        elif element_type == "limit":
            attributes["range"] = format_numbers([values.get("lower", -_NO_LIMIT), values.get("upper", _NO_LIMIT)])
            self.notes.append(f"'{name}' has the default limit stiffness of MuJoCo")
        else:
            SubElement(self.actuators, "motor", name=name, joint=joint_name)
            self.notes.append(f"the law of '{name}' is not in the file: its control is the applied torque or force")

    def _add_site(self, name: str, end: Any) -> str:
        """Add a site at a point of a body or of the ground, and return its name."""
        marker = end.centre if isinstance(end, Body) and end.element is not None else end
        part = getattr(marker, "body", self.mb.ground)
        if part.element is None:
            part, position = self.mb.ground, parse_point(name, marker, self.mb.dimension)
        else:
            position = marker.local_position
        self.sites.setdefault(part.name, []).append(Tag("site", name=name, pos=format_numbers(to_3d(position))))
        return name


def body_states(mb: Multibody, q: np.ndarray, v: np.ndarray) -> dict[str, BodyState]:
    """Return the initial poses and velocities of all bodies."""
    zero = np.zeros(3)
    states = {"ground": BodyState(zero, np.eye(3), zero, zero)}
    coordinate_index = {name: i for i, name in enumerate(mb.system.coordinates)}
    for part in mb.bodies.values():
        dofs, d = [coordinate_index[str(c)] for c in part.coordinates], part.dimension
        R, omega = np.eye(3), np.zeros(3)
        if part.has_orientation:
            R = frame_to_3d(np.asarray(part.parametrisation.rotation_matrix(q[dofs]), dtype=float))
            rates = np.zeros((3, 3))
            rates[:d, :d] = np.asarray(part.parametrisation.rotation_matrix(v[dofs]), dtype=float)
            omega = np.cross(R.T, rates.T).sum(axis=0) / 2
        states[part.name] = BodyState(to_3d(q[dofs[:d]]), R, to_3d(v[dofs[:d]]), omega)
    return states
