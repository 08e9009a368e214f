"""Spanning tree of a mechanism for MJCF, with loop-closing joints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from livens.errors import InputError
from livens.multibody.connection import Connection
from livens.multibody.exports.geoms import axes_in_space, in_space
from livens.multibody.joint import Joint
from livens.multibody.parts import Part

#: Joint types that MJCF can express as loop closures; all other types must be in the spanning tree.
_LOOSE = ("spherical", "revolute", "fixed")


@dataclass(frozen=True, eq=False)
class Pose:
    """Initial pose and velocities of a body in world axes."""

    position: np.ndarray
    rotation: np.ndarray
    velocity: np.ndarray
    omega: np.ndarray


@dataclass(frozen=True, eq=False)
class Freedom:
    """MJCF joint: ``hinge``, ``slide``, ``ball`` or ``free``, with axis and point in world axes.

    `ref` is its initial coordinate, `rates` its initial velocities.
    """

    kind: str
    name: str
    axis: np.ndarray
    at: np.ndarray
    reference: float = 0.0
    rates: tuple[float, ...] = (0.0,)


@dataclass(eq=False)
class Branch:
    """Node of the spanning tree: a body, the joint to its parent, and the MJCF joints in between, in order."""

    part: Part
    joint: Joint | None
    freedoms: list[Freedom]
    children: list[Branch] = field(default_factory=list)

    def __iter__(self) -> Iterator[Branch]:
        """Iterate over the node and its descendants in the order of the file."""
        yield self
        for child in self.children:
            yield from child


class Tree:
    """Spanning tree rooted in the ground, and the loop-closing joints."""

    def __init__(self, parts: dict[str, Part], ground: Part, joints: list[Connection], poses: dict[str, Pose]) -> None:
        self.poses, self.closing, self._ground = poses, list[Joint](), ground
        chosen = self._chosen(ground, joints)
        self.branches: list[Branch] = []
        found: dict[str, Branch] = {}
        reached = [ground, *parts.values()]
        for root in reached:
            if root is not ground and root.name not in found:
                found[root.name] = Branch(root, None, self._free(root))
                self.branches.append(found[root.name])
            waiting = [root]
            while waiting:
                here = waiting.pop()
                for joint in chosen:
                    other = joint.second if joint.first is here else joint.first if joint.second is here else None
                    if other is None or other is ground or other.name in found:
                        continue
                    branch = found[other.name] = Branch(other, joint, self._between(joint, other))
                    (self.branches if here is ground else found[here.name].children).append(branch)
                    waiting.append(other)

    def __iter__(self) -> Iterator[Branch]:
        for branch in self.branches:
            yield from branch

    def _chosen(self, ground: Part, joints: list[Connection]) -> list[Joint]:
        """Return the joints of a spanning tree: joints that cannot close a loop first, then in order of definition."""
        group: dict[str, str] = {}

        def find(name: str) -> str:
            while group.setdefault(name, name) != name:
                name = group[name]
            return name

        chosen = []
        for joint in sorted(joints, key=lambda one: one.what in _LOOSE):
            if not isinstance(joint, Joint) or joint.what not in _PARTS:
                raise InputError(f"MJCF has no equivalent of '{joint.name}' (type {joint.what})")
            ends = [find(part.name) for part in (joint.first, joint.second)]
            if ends[0] != ends[1]:
                group[ends[0]] = ends[1]
                chosen.append(joint)
            elif joint.what in _LOOSE:
                self.closing.append(joint)
            else:
                raise InputError(f"MJCF cannot close a loop by the {joint.what} joint '{joint.name}'")
        return [joint for joint in joints if joint in chosen and isinstance(joint, Joint)]

    # -- freedoms -----------------------------------------------------------------------------------------------------
    def _free(self, part: Part) -> list[Freedom]:
        """Return the MJCF joints of an unconstrained body."""
        pose, z = self.poses[part.name], np.array([0.0, 0.0, 1.0])
        if part.turns and part.dimension == 3:
            rates = (*pose.velocity, *(pose.rotation.T @ pose.omega))
            return [Freedom("free", f"{part.name} free", z, pose.position, 0.0, rates)]
        ways = [
            Freedom("slide", f"{part.name} {letter}", axis, pose.position, float(x), (float(v),))
            for letter, axis, x, v in zip("xyz", np.eye(3), pose.position, pose.velocity, strict=True)
        ][: part.dimension]
        turn = Freedom("hinge", f"{part.name} turn", z, pose.position, 0.0, (float(pose.omega[2]),))
        return [*ways, *([turn] if part.turns else [])]

    def _between(self, joint: Joint, child: Part) -> list[Freedom]:
        """Return the MJCF joints of a joint, from parent to child; reversed if the child is the first body."""
        a, b = self.poses[joint.first.name], self.poses[joint.second.name]
        X, Y = in_space(joint.parameters["X"]), in_space(joint.parameters["Y"])
        A = _axes(joint.parameters["A"], a)
        other_axis = _axes(joint.parameters["B"], b)[:, 1]
        at, to = a.position + a.rotation @ X, b.position + b.rotation @ Y
        gap, turning = to - at, b.omega - a.omega
        moving = b.velocity + np.cross(b.omega, to - b.position) - a.velocity - np.cross(a.omega, at - a.position)
        moving = moving - np.cross(a.omega, gap)  # relative to the first body
        sign, point = (1.0, to) if child is joint.second else (-1.0, at)
        first = _axes(joint.parameters["B"], b)[:, 0]
        angle = float(np.arctan2(A[:, 1] @ first, A[:, 0] @ first))
        own = self.poses[child.name].rotation.T
        several = sum(kind == "slide" for kind, _ in _parts(joint)) > 1
        found = []
        for kind, which in _parts(joint):
            axis = other_axis if joint.what == "universal" and which == 2 else A[:, which - 1]
            if kind == "slide":
                more = f" slide {which}" if several else "" if joint.what == "prismatic" else " slide"
                found.append(
                    Freedom(kind, joint.name + more, sign * axis, point, float(axis @ gap), (float(axis @ moving),))
                )
            elif kind == "hinge":
                more, now = (f" {which}", 0.0) if joint.what == "universal" else ("", angle)
                found.append(Freedom(kind, joint.name + more, sign * axis, point, now, (float(axis @ turning),)))
            else:
                found.append(Freedom(kind, joint.name, axis, point, 0.0, tuple(sign * (own @ turning))))
        return found if child is joint.second else found[::-1]


#: Decomposition of a joint into MJCF joints, from first to second body, with the axes of the joint frame.
_PARTS: dict[str, tuple[tuple[str, int], ...]] = {
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
_FLAT: dict[str, tuple[tuple[str, int], ...]] = {
    "fixed": (),
    "revolute": (("hinge", 3),),
    "prismatic": (("slide", 1),),
    "point_on_line": (("slide", 1), ("hinge", 3)),
}


def _parts(joint: Joint) -> list[tuple[str, int]]:
    """Return the decomposition of a joint; particles have no rotation."""
    found = (_FLAT if joint.first.dimension == 2 else _PARTS)[joint.what]
    turns = joint.first.turns and joint.second.turns
    return [(kind, which) for kind, which in found if turns or kind == "slide"]


def _axes(given: np.ndarray, pose: Pose) -> np.ndarray:
    """Return the axes of a joint in world axes; planar axes rotate about the third."""
    return np.asarray(pose.rotation @ axes_in_space(given))
