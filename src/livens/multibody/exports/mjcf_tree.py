"""Spanning tree of a mechanism for MJCF, with loop-closing joints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from livens.errors import InputError
from livens.models.disjoint_sets import DisjointSets
from livens.multibody.body import Body
from livens.multibody.body_constraint import BodyConstraint
from livens.multibody.exports.mjcf_geoms import frame_to_3d, to_3d
from livens.multibody.joint import Joint

#: Joint types that MJCF can express as loop closures; all other types must be in the spanning tree.
_CLOSABLE = ("spherical", "revolute", "fixed")


@dataclass(frozen=True, eq=False)
class BodyState:
    """Initial pose and velocities of a body in world axes."""

    position: np.ndarray
    rotation: np.ndarray
    velocity: np.ndarray
    omega: np.ndarray


@dataclass(frozen=True, eq=False)
class MjcfJoint:
    """MJCF joint: ``hinge``, ``slide``, ``ball`` or ``free``, with axis and point in world axes.

    `ref` is its initial coordinate, `rates` its initial velocities.
    """

    joint_type: str
    name: str
    axis: np.ndarray
    point: np.ndarray
    ref: float = 0.0
    rates: tuple[float, ...] = (0.0,)


@dataclass(eq=False)
class TreeNode:
    """Node of the spanning tree: a body, the joint to its parent, and the MJCF joints in between, in order."""

    part: Body
    joint: Joint | None
    joints: list[MjcfJoint]
    children: list[TreeNode] = field(default_factory=list)

    def __iter__(self) -> Iterator[TreeNode]:
        """Iterate over the node and its descendants in the order of the file."""
        yield self
        for child in self.children:
            yield from child


class SpanningTree:
    """Spanning tree rooted in the ground, and the loop-closing joints."""

    def __init__(
        self, parts: dict[str, Body], ground: Body, joints: list[BodyConstraint], poses: dict[str, BodyState]
    ) -> None:
        self.poses, self.loop_joints, self._ground = poses, list[Joint](), ground
        spanning_joints = self._spanning_joints(ground, joints)
        self.roots: list[TreeNode] = []
        nodes: dict[str, TreeNode] = {}
        candidates = [ground, *parts.values()]
        for root in candidates:
            if root is not ground and root.name not in nodes:
                nodes[root.name] = TreeNode(root, None, self._free_joints(root))
                self.roots.append(nodes[root.name])
            queue = [root]
            while queue:
                body = queue.pop()
                for joint in spanning_joints:
                    other = joint.body_b if joint.body_a is body else joint.body_a if joint.body_b is body else None
                    if other is None or other is ground or other.name in nodes:
                        continue
                    node = nodes[other.name] = TreeNode(other, joint, self._tree_joints(joint, other))
                    (self.roots if body is ground else nodes[body.name].children).append(node)
                    queue.append(other)

    def __iter__(self) -> Iterator[TreeNode]:
        for branch in self.roots:
            yield from branch

    def _spanning_joints(self, ground: Body, joints: list[BodyConstraint]) -> list[Joint]:
        """Return the joints of a spanning tree: joints that cannot close a loop first, then in order of definition."""
        spanning, connected = [], DisjointSets[str]()
        for joint in sorted(joints, key=lambda candidate: candidate.type_name in _CLOSABLE):
            if not isinstance(joint, Joint) or joint.type_name not in _MJCF_JOINTS:
                raise InputError(f"MJCF has no equivalent of '{joint.name}' (type {joint.type_name})")
            if connected.union(joint.body_a.name, joint.body_b.name):
                spanning.append(joint)
            elif joint.type_name in _CLOSABLE:
                self.loop_joints.append(joint)
            else:
                raise InputError(f"MJCF cannot close a loop by the {joint.type_name} joint '{joint.name}'")
        return [joint for joint in joints if joint in spanning and isinstance(joint, Joint)]

    # -- freedoms -----------------------------------------------------------------------------------------------------
    def _free_joints(self, part: Body) -> list[MjcfJoint]:
        """Return the MJCF joints of an unconstrained body."""
        pose, z = self.poses[part.name], np.array([0.0, 0.0, 1.0])
        if part.has_orientation and part.dimension == 3:
            rates = (*pose.velocity, *(pose.rotation.T @ pose.omega))
            return [MjcfJoint("free", f"{part.name} free", z, pose.position, 0.0, rates)]
        slides = [
            MjcfJoint("slide", f"{part.name} {letter}", axis, pose.position, float(x), (float(v),))
            for letter, axis, x, v in zip("xyz", np.eye(3), pose.position, pose.velocity, strict=True)
        ][: part.dimension]
        hinge = MjcfJoint("hinge", f"{part.name} turn", z, pose.position, 0.0, (float(pose.omega[2]),))
        return [*slides, *([hinge] if part.has_orientation else [])]

    def _tree_joints(self, joint: Joint, child: Body) -> list[MjcfJoint]:
        """Return the MJCF joints of a joint, from parent to child; reversed if the child is the first body."""
        a, b = self.poses[joint.body_a.name], self.poses[joint.body_b.name]
        X, Y = to_3d(joint.parameters["X"]), to_3d(joint.parameters["Y"])
        A = _axes(joint.parameters["A"], a)
        other_axis = _axes(joint.parameters["B"], b)[:, 1]
        point_a, point_b = a.position + a.rotation @ X, b.position + b.rotation @ Y
        gap, angular_velocity = point_b - point_a, b.omega - a.omega
        point_velocity = (
            b.velocity + np.cross(b.omega, point_b - b.position) - a.velocity - np.cross(a.omega, point_a - a.position)
        )
        point_velocity = point_velocity - np.cross(a.omega, gap)  # relative to the first body
        sign, point = (1.0, point_b) if child is joint.body_b else (-1.0, point_a)
        reference_axis = _axes(joint.parameters["B"], b)[:, 0]
        angle = float(np.arctan2(A[:, 1] @ reference_axis, A[:, 0] @ reference_axis))
        to_body_axes = self.poses[child.name].rotation.T
        several = sum(joint_type == "slide" for joint_type, _ in _joint_decomposition(joint)) > 1
        joints = []
        for joint_type, axis_index in _joint_decomposition(joint):
            axis = other_axis if joint.type_name == "universal" and axis_index == 2 else A[:, axis_index - 1]
            if joint_type == "slide":
                suffix = f" slide {axis_index}" if several else "" if joint.type_name == "prismatic" else " slide"
                joints.append(
                    MjcfJoint(
                        joint_type,
                        joint.name + suffix,
                        sign * axis,
                        point,
                        float(axis @ gap),
                        (float(axis @ point_velocity),),
                    )
                )
            elif joint_type == "hinge":
                suffix, ref = (f" {axis_index}", 0.0) if joint.type_name == "universal" else ("", angle)
                joints.append(
                    MjcfJoint(
                        joint_type, joint.name + suffix, sign * axis, point, ref, (float(axis @ angular_velocity),)
                    )
                )
            else:
                joints.append(
                    MjcfJoint(joint_type, joint.name, axis, point, 0.0, tuple(sign * (to_body_axes @ angular_velocity)))
                )
        return joints if child is joint.body_b else joints[::-1]


#: Decomposition of a joint into MJCF joints, from first to second body, with the axes of the joint frame.
_MJCF_JOINTS: dict[str, tuple[tuple[str, int], ...]] = {
    "fixed": (),
    "revolute": (("hinge", 3),),
    "prismatic": (("slide", 3),),
    "cylindrical": (("slide", 3), ("hinge", 3)),
    "screw": (("slide", 3), ("hinge", 3)),
    "universal": (("hinge", 1), ("hinge", 2)),
    "spherical": (("ball", 3),),
    "planar": (("slide", 1), ("slide", 2), ("hinge", 3)),
    "point_on_line": (("slide", 3), ("ball", 3)),
    "point_on_plane": (("slide", 1), ("slide", 2), ("ball", 3)),
}


#: Decomposition of planar joints, which slide along their first axis.
_MJCF_PLANAR_JOINTS: dict[str, tuple[tuple[str, int], ...]] = {
    "fixed": (),
    "revolute": (("hinge", 3),),
    "prismatic": (("slide", 1),),
    "point_on_line": (("slide", 1), ("hinge", 3)),
}


def _joint_decomposition(joint: Joint) -> list[tuple[str, int]]:
    """Return the decomposition of a joint; particles have no rotation."""
    decomposition = (_MJCF_PLANAR_JOINTS if joint.body_a.dimension == 2 else _MJCF_JOINTS)[joint.type_name]
    rotates = joint.body_a.has_orientation and joint.body_b.has_orientation
    return [(joint_type, axis_index) for joint_type, axis_index in decomposition if rotates or joint_type == "slide"]


def _axes(axes: np.ndarray, pose: BodyState) -> np.ndarray:
    """Return the axes of a joint in world axes; planar axes rotate about the third."""
    return np.asarray(pose.rotation @ frame_to_3d(axes))
