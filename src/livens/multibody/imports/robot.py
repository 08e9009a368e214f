"""Robot description: links, joint dofs, loop closures and couplings; common to URDF and MJCF.

Every link has a reference pose in the frame of its parent. Its dofs are given in its own frame, the one nearest to the
parent first. Links without dofs are rigidly attached to their parent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from livens.models.shapes import Shape
from livens.multibody.imports.mass import Mass
from livens.multibody.imports.turns import about
from livens.multibody.imports.xml import Node


@dataclass(frozen=True, eq=False)
class Pose:
    """Rigid transform: position and rotation of a frame relative to another."""

    position: np.ndarray = field(default_factory=lambda: np.zeros(3))
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))

    def __matmul__(self, other: Pose) -> Pose:
        """Compose two transforms."""
        return Pose(self.position + self.rotation @ other.position, self.rotation @ other.rotation)

    def point(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.position + self.rotation @ X)

    def turned(self, axes: np.ndarray) -> np.ndarray:
        return np.asarray(self.rotation @ axes)

    @property
    def inverse(self) -> Pose:
        return Pose(-self.rotation.T @ self.position, self.rotation.T)


@dataclass(eq=False)
class Freedom:
    """Joint dof of a link relative to its parent: ``hinge``, ``slide``, ``ball`` or ``free``.

    `rest` is the unstretched coordinate of its spring and `range` its limits, relative to the reference pose.
    """

    name: str
    kind: str
    node: Node
    axis: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    at: np.ndarray = field(default_factory=lambda: np.zeros(3))
    stiffness: float = 0.0
    rest: float = 0.0
    damping: float = 0.0
    armature: float = 0.0
    friction: float = 0.0
    range: tuple[float, float] | None = None

    @property
    def turns(self) -> bool:
        return self.kind == "hinge"

    @property
    def acts(self) -> bool:
        """True if the dof has stiffness, damping, armature or friction."""
        return any((self.stiffness, self.damping, self.armature, self.friction))

    def moved(self, value: float) -> Pose:
        """Return the transform of the link frame for a joint coordinate."""
        if self.kind == "slide":
            return Pose(value * self.axis)
        if self.kind != "hinge":
            return Pose()
        R = about(self.axis, value)
        return Pose(self.at - R @ self.at, R)

    def in_space(self, pose: Pose) -> Freedom:
        """Return the dof with axis and point in world axes, for a link at the given pose."""
        return replace(self, axis=pose.rotation @ self.axis, at=pose.point(self.at))


@dataclass(eq=False)
class Link:
    """Rigid link: parent (None for the ground), pose, dofs, inertia, visual shapes and named frames."""

    name: str
    parent: str | None
    pose: Pose
    node: Node
    freedoms: list[Freedom] = field(default_factory=list)
    mass: Mass | None = None
    shapes: list[Shape] = field(default_factory=list)
    frames: dict[str, Pose] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Closure:
    """Loop closure of two links (None for the ground): a spherical joint or a weld.

    `frame_a` and `frame_b` are the frames of the closure in the links.
    """

    name: str
    rigid: bool
    first: str | None
    second: str | None
    at: Pose
    to: Pose
    node: Node


@dataclass(frozen=True, eq=False)
class Relation:
    """Joint equality ``follower = offset + ratio leader`` relative to the reference pose; constant without leader."""

    name: str
    follower: str
    leader: str | None
    ratio: float
    offset: float
    node: Node


@dataclass(frozen=True, eq=False)
class Servo:
    """Position actuator ``stiffness (target - position) - damping rate``, relative to the reference pose."""

    name: str
    joint: str
    stiffness: float
    damping: float
    target: float
    node: Node


@dataclass(eq=False)
class Robot:
    """Robot description of a file; `notes` list content that was ignored or changed."""

    name: str
    gravity: np.ndarray
    links: dict[str, Link] = field(default_factory=dict)
    #: Visual shapes and frames of the ground.
    shapes: list[Shape] = field(default_factory=list)
    frames: dict[str, Pose] = field(default_factory=dict)
    closures: list[Closure] = field(default_factory=list)
    relations: list[Relation] = field(default_factory=list)
    servos: list[Servo] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def poses(self) -> dict[str | None, Pose]:
        """Return the reference poses of all links in the world; parents come first."""
        found: dict[str | None, Pose] = {None: Pose()}
        for link in self.links.values():
            found[link.name] = found[link.parent] @ link.pose
        return found

    def started(self) -> dict[str | None, Pose]:
        """Return the poses of all links with the joint equalities satisfied."""
        follows = {relation.follower: relation for relation in self.relations}

        def value(name: str, seen: tuple[str, ...] = ()) -> float:
            relation = follows.get(name)
            if relation is None:
                return 0.0
            if name in seen:
                raise relation.node.error(f"'{name}' follows itself: cyclic joint equality")
            return relation.offset + (
                relation.ratio * value(relation.leader, (*seen, name)) if relation.leader else 0.0
            )

        found: dict[str | None, Pose] = {None: Pose()}
        for link in self.links.values():
            here = found[link.parent] @ link.pose
            for freedom in link.freedoms:
                here = here @ freedom.moved(value(freedom.name))
            found[link.name] = here
        return found

    def freedoms(self) -> Iterator[Freedom]:
        for link in self.links.values():
            yield from link.freedoms
