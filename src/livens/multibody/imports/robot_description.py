"""Robot description: links, joint dofs, loop closures and couplings; common to URDF and MJCF.

Every link has a reference pose in the frame of its parent. Its dofs are given in its own frame, the one nearest to the
parent first. Links without dofs are rigidly attached to their parent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from livens.multibody.imports.link_inertia import LinkInertia
from livens.multibody.imports.orientations import from_axis_angle
from livens.multibody.imports.xml import XmlNode
from livens.scene.shapes import Shape

if TYPE_CHECKING:
    from livens.multibody.imports.collision_geometry import CollisionGeometry


@dataclass(frozen=True, eq=False)
class RigidTransform:
    """Rigid transform: position and rotation of a frame relative to another."""

    position: np.ndarray = field(default_factory=lambda: np.zeros(3))
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))

    def __matmul__(self, other: RigidTransform) -> RigidTransform:
        """Compose two transforms."""
        return RigidTransform(self.position + self.rotation @ other.position, self.rotation @ other.rotation)

    def point(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.position + self.rotation @ X)

    def rotate(self, axes: np.ndarray) -> np.ndarray:
        return np.asarray(self.rotation @ axes)

    @property
    def inverse(self) -> RigidTransform:
        return RigidTransform(-self.rotation.T @ self.position, self.rotation.T)


@dataclass(frozen=True)
class Appearance:
    """Appearance of a visual: its colour, if the file specifies one, and whether it is displayed."""

    colour: str | None = None
    is_displayed: bool = True

    @classmethod
    def of(cls, rgba: np.ndarray | None, is_displayed: bool = True) -> Appearance:
        """Return the appearance of red, green, blue and opacity from 0 to 1; opacity 0 is not displayed."""
        if rgba is None:
            return cls(None, is_displayed)
        red, green, blue, opacity = (round(255 * float(value)) for value in np.clip(rgba, 0, 1))
        return cls(f"#{red:02x}{green:02x}{blue:02x}", is_displayed and opacity > 0)

    def of_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return shapes with the colour."""
        return [replace(shape, colour=self.colour) for shape in shapes]


@dataclass(eq=False)
class JointDof:
    """Joint dof of a link relative to its parent: ``hinge``, ``slide``, ``ball`` or ``free``.

    `rest` is the unstretched coordinate of its spring and `range` its limits, relative to the reference pose. Higher
    coefficients of stiffness multiply the second and third power of the deflection, those of damping the square of the
    rate with its sign, and its cube.
    """

    name: str
    dof_type: str
    node: XmlNode
    axis: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    point: np.ndarray = field(default_factory=lambda: np.zeros(3))
    stiffness: float = 0.0
    rest: float = 0.0
    damping: float = 0.0
    higher_stiffness: tuple[float, ...] = ()
    higher_damping: tuple[float, ...] = ()
    armature: float = 0.0
    friction: float = 0.0
    range: tuple[float, float] | None = None

    @property
    def is_rotational(self) -> bool:
        return self.dof_type == "hinge"

    @property
    def has_passive_forces(self) -> bool:
        """True if the dof has stiffness, damping, armature or friction."""
        linear = self.stiffness, self.damping, self.armature, self.friction
        return any((*linear, *self.higher_stiffness, *self.higher_damping))

    def transform(self, value: float) -> RigidTransform:
        """Return the transform of the link frame for a joint coordinate."""
        if self.dof_type == "slide":
            return RigidTransform(value * self.axis)
        if self.dof_type != "hinge":
            return RigidTransform()
        R = from_axis_angle(self.axis, value)
        return RigidTransform(self.point - R @ self.point, R)

    def in_world(self, pose: RigidTransform) -> JointDof:
        """Return the dof with axis and point in world axes, for a link at the given pose."""
        return replace(self, axis=pose.rotation @ self.axis, point=pose.point(self.point))


@dataclass(eq=False)
class Link:
    """Rigid link: parent (None for the ground), pose, dofs, inertia, visual shapes and named frames."""

    name: str
    parent: str | None
    pose: RigidTransform
    node: XmlNode
    dofs: list[JointDof] = field(default_factory=list)
    mass: LinkInertia | None = None
    shapes: list[Shape] = field(default_factory=list)
    frames: dict[str, RigidTransform] = field(default_factory=dict)
    collisions: list[CollisionGeometry] = field(default_factory=list)
    #: Part of the weight that is compensated by a force at the centre of mass.
    gravity_compensation: float = 0.0


@dataclass(frozen=True, eq=False)
class LoopClosure:
    """Loop closure of two links (None for the ground): a spherical joint or a weld.

    `frame_a` and `frame_b` are the frames of the closure in the links.
    """

    name: str
    is_weld: bool
    body_a: str | None
    body_b: str | None
    frame_a: RigidTransform
    frame_b: RigidTransform
    node: XmlNode


@dataclass(frozen=True, eq=False)
class JointEquality:
    """Joint equality ``follower = offset + ratio leader`` relative to the reference pose; constant without leader."""

    name: str
    follower: str
    leader: str | None
    ratio: float
    offset: float
    node: XmlNode


@dataclass(frozen=True, eq=False)
class TendonEquality:
    """Constant length of a fixed tendon: ``sum weight_i coordinate_i = length``, relative to the reference pose."""

    name: str
    terms: tuple[tuple[str, float], ...]
    length: float
    node: XmlNode


@dataclass(frozen=True, eq=False)
class TendonForces:
    """Spring, damper, armature, friction and limits of a fixed tendon, relative to its length in the reference pose.

    The spring acts below and above its two rest lengths.
    """

    name: str
    terms: tuple[tuple[str, float], ...]
    stiffness: float
    rest: tuple[float, float]
    damping: float
    armature: float
    friction: float
    range: tuple[float, float] | None
    node: XmlNode


@dataclass(frozen=True, eq=False)
class Actuator:
    """Actuator of a joint or a fixed tendon: the force ``gear (gain u + bias_0 + bias_1 length + bias_2 rate)``.

    u is the control, or the activation, and ``gain = gain_0 + gain_1 length + gain_2 rate``. Length and rate are those
    of the joint times `gear`; `offset` is the joint coordinate in the reference pose. Control, activation and force
    (before gearing) are clamped to their ranges.
    """

    name: str
    joint: str
    gain: tuple[float, float, float]
    bias: tuple[float, float, float]
    gear: float
    offset: float
    control_range: tuple[float, float] | None
    force_range: tuple[float, float] | None
    node: XmlNode
    #: Terms of the fixed tendon that it acts on instead of a joint.
    terms: tuple[tuple[str, float], ...] = ()
    #: Dynamics of the activation: "none", "integrator", or "filter" with its time constant in s; and its range.
    activation_type: Literal["none", "integrator", "filter"] = "none"
    time_constant: float = 0.0
    activation_range: tuple[float, float] | None = None


@dataclass(eq=False)
class Keyframe:
    """Stored state: joint coordinates relative to the reference pose, velocities, controls and activations.

    Velocities of a free link are those of its frame, in space.
    """

    name: str
    node: XmlNode
    joints: dict[str, tuple[float, float]] = field(default_factory=dict)
    free_links: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)
    controls: dict[str, float] = field(default_factory=dict)
    activations: dict[str, float] = field(default_factory=dict)


@dataclass(eq=False)
class RobotDescription:
    """Robot description of a file; `notes` list content that was ignored or changed."""

    name: str
    gravity: np.ndarray
    links: dict[str, Link] = field(default_factory=dict)
    #: Visual shapes and frames of the ground.
    shapes: list[Shape] = field(default_factory=list)
    frames: dict[str, RigidTransform] = field(default_factory=dict)
    #: Static collision geometry, excluded pairs of bodies, and pairs of shapes that collide whatever their filters are.
    collisions: list[CollisionGeometry] = field(default_factory=list)
    excluded_pairs: set[frozenset[str]] = field(default_factory=set)
    collision_pairs: set[frozenset[str]] = field(default_factory=set)
    closures: list[LoopClosure] = field(default_factory=list)
    equalities: list[JointEquality] = field(default_factory=list)
    actuators: list[Actuator] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    #: Replace inertia tensors that violate the triangle inequality (MJCF `balanceinertia`).
    balances_inertia: bool = False
    #: Density in kg/m^3 and viscosity in Pa s of the surrounding fluid.
    fluid: tuple[float, float] = (0.0, 0.0)
    #: Weighted sums of joint coordinates that are constant.
    tendon_equalities: list[TendonEquality] = field(default_factory=list)
    tendon_forces: list[TendonForces] = field(default_factory=list)
    #: State that the model starts from, if one of the file is chosen.
    keyframe: Keyframe | None = None

    def poses(self) -> dict[str | None, RigidTransform]:
        """Return the reference poses of all links in the world; parents come first."""
        poses: dict[str | None, RigidTransform] = {None: RigidTransform()}
        for link in self.links.values():
            poses[link.name] = poses[link.parent] @ link.pose
        return poses

    def initial_poses(self) -> dict[str | None, RigidTransform]:
        """Return the poses of all links in the keyframe, if any, with the joint equalities satisfied."""
        stored = {} if self.keyframe is None else self.keyframe.joints
        equalities = {relation.follower: relation for relation in self.equalities}

        def value(name: str, visited: tuple[str, ...] = ()) -> float:
            equality = equalities.get(name)
            if equality is None:
                return stored.get(name, (0.0, 0.0))[0]
            if name in visited:
                raise equality.node.error(f"'{name}' follows itself: cyclic joint equality")
            return equality.offset + (
                equality.ratio * value(equality.leader, (*visited, name)) if equality.leader else 0.0
            )

        poses: dict[str | None, RigidTransform] = {None: RigidTransform()}
        for link in self.links.values():
            pose = poses[link.parent] @ link.pose
            for dof in link.dofs:
                pose = pose @ dof.transform(value(dof.name))
            poses[link.name] = pose
        return poses

    def dofs(self) -> Iterator[JointDof]:
        for link in self.links.values():
            yield from link.dofs
