"""Collision geometry of robot files: shapes, collision filters, and the contacts between them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.errors import InputError, suggestion
from livens.multibody.imports.robot_description import RigidTransform
from livens.validation import check_choice, check_nonnegative, check_positive

if TYPE_CHECKING:
    from livens.multibody.body import Body
    from livens.multibody.contacts.dissipation import Friction
    from livens.multibody.contacts.shapes import CollisionShape
    from livens.multibody.imports.to_multibody import MultibodyBuilder
    from livens.multibody.imports.xml import XmlNode

#: Number of directions whose extreme points replace the vertices of a mesh.
_MESH_DIRECTIONS = 80
#: Time constant and damping ratio, and impedances, of MuJoCo's constraints.
_SOLREF, _SOLIMP = (0.02, 1.0), (0.9, 0.95)


@dataclass(frozen=True)
class ContactOptions:
    """Options of imported contacts: law, friction, and which pairs collide.

    Parameters
    ----------
    stiffness : float or "solref"
        Stiffness in N/m. With ``"solref"`` it follows from MuJoCo's time constant and impedance and the mass of the
        model: a contact that carries the model sags as much as in MuJoCo.
    dissipation : float, default 1.0
        Hunt-Crossley dissipation in s/m.
    friction : float, optional
        Coulomb friction coefficient; by default that of the file, or 1 in URDF files.
    pairs : {"ground", "all"}, default "ground"
        Contacts of bodies with the static shapes only, or of all pairs that collide in the file.
    """

    stiffness: float | str
    dissipation: float = 1.0
    friction: float | None = None
    pairs: str = "ground"

    @classmethod
    def of(cls, contacts: Mapping[str, Any] | None) -> ContactOptions | None:
        """Return checked options; None if contacts are not imported."""
        if contacts is None:
            return None
        if not isinstance(contacts, Mapping) or "stiffness" not in contacts:
            raise InputError(
                f"contacts must be a mapping with a stiffness, such as dict(stiffness=1e5), got {contacts!r}"
            )
        for key in contacts:
            if key not in cls.__dataclass_fields__:
                raise InputError(f"contacts has no '{key}'{suggestion(str(key), cls.__dataclass_fields__)}")
        options = cls(**contacts)
        if options.stiffness != "solref":
            check_positive("the stiffness of contacts", options.stiffness)
        check_nonnegative("the dissipation of contacts", options.dissipation)
        if options.friction is not None:
            check_nonnegative("the friction of contacts", options.friction)
        check_choice("the pairs of contacts", options.pairs, ("ground", "all"))
        return options


@dataclass(frozen=True, eq=False)
class CollisionGeometry:
    """Collision geometry of a link: shape with pose and half sizes, friction, and collision filter."""

    name: str
    shape_type: str  # sphere, capsule, cylinder, box, ellipsoid, mesh or plane
    pose: RigidTransform
    node: XmlNode | None = None
    size: np.ndarray = field(default_factory=lambda: np.zeros(0))
    points: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    contype: int = 1
    conaffinity: int = 1
    condim: int = 3
    #: Coefficient of sliding, and radii of spinning and rolling friction in m.
    friction: tuple[float, float, float] = (1.0, 0.0, 0.0)
    #: Distance from which on the contact acts.
    margin: float = 0.0
    priority: int = 0
    solref: tuple[float, float] = _SOLREF
    solimp: tuple[float, float] = _SOLIMP

    def shape(self, body: Body, link_pose: RigidTransform, margin: float) -> CollisionShape:
        """Return the collision shape of a body in the reference configuration; planes are raised by a margin."""
        from livens.multibody.contacts import shapes

        pose, size = link_pose @ self.pose, self.size
        at, R = pose.position, pose.rotation
        if self.shape_type == "plane":
            return shapes.HalfSpace(body, at + margin * R[:, 2], R[:, 2])
        if self.shape_type == "sphere":
            return shapes.Sphere(body, float(size[0]), at)
        if self.shape_type == "capsule":
            half = R[:, 2] * size[1]
            return shapes.Capsule(body, at - half, at + half, float(size[0]))
        if self.shape_type == "cylinder":
            return shapes.Cylinder(body, float(size[0]), 2 * float(size[1]), at, R[:, 2])
        if self.shape_type == "box":
            return shapes.Box(body, 2 * size, at, R)
        if self.shape_type == "ellipsoid":
            return shapes.Ellipsoid(body, size, at, R)
        return shapes.ConvexMesh(body, np.array([pose.point(X) for X in _extreme_points(self.points)]))


def read_mjcf_collision(
    node: XmlNode, pose: RigidTransform, shape_type: str, size: Any, points: Any
) -> CollisionGeometry:
    """Return the collision geometry of a geom whose shape is known."""
    friction = node.numbers("friction", None)
    values = [*(() if friction is None else friction), *(1.0, 0.005, 1e-4)[0 if friction is None else len(friction) :]]
    solref, solimp = node.numbers("solref", 2, np.array(_SOLREF)), node.numbers("solimp", None)
    return CollisionGeometry(
        node.get("name") or node.name,
        shape_type,
        pose,
        node,
        size,
        points,
        int(node.number("contype", 1)),
        int(node.number("conaffinity", 1)),
        int(node.number("condim", 3)),
        (values[0], values[1], values[2]),
        node.not_negative("margin", 0.0) - node.not_negative("gap", 0.0),
        int(node.number("priority", 0)),
        (float(solref[0]), float(solref[1])),
        _SOLIMP if solimp is None or len(solimp) < 2 else (float(solimp[0]), float(solimp[1])),
    )


def _extreme_points(points: np.ndarray) -> np.ndarray:
    """Return the vertices of a mesh that are extreme in many directions."""
    if len(points) <= _MESH_DIRECTIONS:
        return points
    i = np.arange(_MESH_DIRECTIONS) + 0.5
    height, longitude = 1 - 2 * i / _MESH_DIRECTIONS, np.pi * (1 + 5**0.5) * i
    radius = np.sqrt(1 - height**2)
    directions = np.vstack([np.column_stack([radius * np.cos(longitude), radius * np.sin(longitude), height]),
                            np.eye(3), -np.eye(3)])  # fmt: skip
    return np.asarray(points[np.unique((points @ directions.T).argmax(axis=0))])


@dataclass(frozen=True, eq=False)
class _Placed:
    """Collision geometry on a body; without an own body it is static."""

    geometry: CollisionGeometry
    body: Body
    parent: Body | None
    pose: RigidTransform
    is_static: bool


def add_contacts(builder: MultibodyBuilder, options: ContactOptions) -> None:
    """Add the contacts of all pairs of collision geometries that collide."""
    robot, mb = builder.robot, builder.mb
    geometries = [_Placed(geometry, mb.ground, None, RigidTransform(), True) for geometry in robot.collisions]
    for link in robot.links.values():
        cluster = builder.clusters[link.name]
        if cluster.part is None or cluster.massless_dofs:
            if link.collisions:
                robot.notes.append(f"'{link.name}' has no mass and is not a separate body: it does not collide")
            continue
        parent = cluster.parent.part if cluster.parent is not None else None
        is_static = cluster.part is mb.ground
        geometries += [
            _Placed(geometry, cluster.part, parent, builder.poses[link.name], is_static) for geometry in link.collisions
        ]
    mass = sum(body.element.mass for body in mb.bodies.values() if body.element is not None)
    skipped = 0
    for a, b in itertools.combinations(geometries, 2):
        if not _may_collide(a, b, robot.excluded_pairs, robot.collision_pairs):
            continue
        if options.pairs == "ground" and not a.is_static and not b.is_static:
            skipped += 1
            continue
        _add_contact(builder, options, a, b, mass)
    if skipped:
        robot.notes.append(
            f"{skipped} pairs of moving shapes collide in the file and have no contact: use contacts=dict(pairs='all')"
        )


def _may_collide(a: _Placed, b: _Placed, excluded: set[frozenset[str]], pairs: set[frozenset[str]]) -> bool:
    """Return whether two geometries collide: MuJoCo's filters, and never two bodies connected by a joint."""
    if a.body is b.body or (a.is_static and b.is_static):
        return False
    if frozenset((a.geometry.name, b.geometry.name)) in pairs:
        return True
    if frozenset((a.body.name, b.body.name)) in excluded:
        return False
    if not a.is_static and not b.is_static and (a.parent is b.body or b.parent is a.body):
        return False
    return bool(a.geometry.contype & b.geometry.conaffinity or b.geometry.contype & a.geometry.conaffinity)


def _add_contact(builder: MultibodyBuilder, options: ContactOptions, a: _Placed, b: _Placed, mass: float) -> None:
    first, second = a.geometry, b.geometry
    if first.shape_type == "plane":
        a, b, first, second = b, a, second, first
    leading = first if first.priority > second.priority else second if second.priority > first.priority else None
    condim = leading.condim if leading else max(first.condim, second.condim)
    friction = leading.friction if leading else tuple(np.maximum(first.friction, second.friction))
    margin = first.margin + second.margin
    if margin and second.shape_type != "plane":
        builder.robot.notes.append(f"the margin of the contact of '{first.name}' with '{second.name}' is not imported")
    name = builder.unique_name(f"{first.name}-{second.name}", "contact")
    try:
        builder.mb.contact(
            first.shape(a.body, a.pose, 0.0),
            second.shape(b.body, b.pose, margin),
            name=name,
            stiffness=_stiffness(options, first, second, mass),
            dissipation=options.dissipation,
            friction=_friction(options, condim, friction),
        )
    except InputError as error:
        node = first.node or second.node
        if node is None:
            raise
        node.refuse(str(error))


def _stiffness(options: ContactOptions, first: CollisionGeometry, second: CollisionGeometry, mass: float) -> float:
    if options.stiffness != "solref":
        return float(options.stiffness)
    (time, ratio), (low, high) = (
        np.mean([first.solref, second.solref], axis=0),
        np.mean([first.solimp, second.solimp], axis=0),
    )
    if time <= 0:  # stiffness and damping, relative to the mass
        return float(-time * mass * low / (1 - low))
    return float(mass * low / (1 - low) / (high * time * ratio) ** 2)


def _friction(options: ContactOptions, condim: int, values: tuple[float, float, float]) -> Friction | float:
    from livens.multibody.contacts.dissipation import Friction

    sliding = values[0] if options.friction is None else options.friction
    if condim == 1 or not sliding:
        return 0.0
    return Friction(
        float(sliding),
        spinning=float(values[1]) if condim >= 4 else 0.0,
        rolling=float(values[2]) if condim >= 6 else 0.0,
    )
