"""A robot as its file describes it: links, the freedoms between them, closures, couplings. Both formats become this.

Every link has a pose in the frame of its parent, that of the drawing; its freedoms are said in its own frame, the one
nearest to the parent first. Links without freedoms are part of their parent.
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
    """Where a frame is, and how it is turned, seen from another."""

    position: np.ndarray = field(default_factory=lambda: np.zeros(3))
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))

    def __matmul__(self, other: Pose) -> Pose:
        """A pose in this one's frame, seen from where this one is seen from."""
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
    """One way in which a link moves against its parent: ``hinge``, ``slide``, ``ball``, ``free``.

    `rest` is where its spring is relaxed, and `range` its ends, counted from the drawn pose.
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
        """Whether anything acts along it."""
        return any((self.stiffness, self.damping, self.armature, self.friction))

    def moved(self, value: float) -> Pose:
        """Where the frame of its link goes if it has this value."""
        if self.kind == "slide":
            return Pose(value * self.axis)
        if self.kind != "hinge":
            return Pose()
        R = about(self.axis, value)
        return Pose(self.at - R @ self.at, R)

    def in_space(self, pose: Pose) -> Freedom:
        """The same with axis and point in space, of a link at this pose."""
        return replace(self, axis=pose.rotation @ self.axis, at=pose.point(self.at))


@dataclass(eq=False)
class Link:
    """A rigid part: its parent (nobody stands for the ground), pose, freedoms, mass, shapes and named frames."""

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
    """Two links (nobody stands for the ground) that are held together beside the tree: at a point, or rigidly.

    `at` and `to` are where it is in the frames of the first and of the second.
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
    """``follower = offset + ratio leader``, counted from the drawn pose; without a leader it stays at the offset."""

    name: str
    follower: str
    leader: str | None
    ratio: float
    offset: float
    node: Node


@dataclass(frozen=True, eq=False)
class Servo:
    """What steers a joint: ``stiffness (target - position) - damping rate``, counted from the drawn pose."""

    name: str
    joint: str
    stiffness: float
    damping: float
    target: float
    node: Node


@dataclass(eq=False)
class Robot:
    """All of a file; `notes` are sentences about what was not taken over, or differently."""

    name: str
    gravity: np.ndarray
    links: dict[str, Link] = field(default_factory=dict)
    #: Of the ground.
    shapes: list[Shape] = field(default_factory=list)
    frames: dict[str, Pose] = field(default_factory=dict)
    closures: list[Closure] = field(default_factory=list)
    relations: list[Relation] = field(default_factory=list)
    servos: list[Servo] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def poses(self) -> dict[str | None, Pose]:
        """Where all links are in the drawing; parents come first."""
        found: dict[str | None, Pose] = {None: Pose()}
        for link in self.links.values():
            found[link.name] = found[link.parent] @ link.pose
        return found

    def started(self) -> dict[str | None, Pose]:
        """Where all links are if everything is as drawn, and what follows or is held is where it belongs."""
        follows = {relation.follower: relation for relation in self.relations}

        def value(name: str, seen: tuple[str, ...] = ()) -> float:
            relation = follows.get(name)
            if relation is None:
                return 0.0
            if name in seen:
                raise relation.node.error(f"'{name}' follows itself")
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
