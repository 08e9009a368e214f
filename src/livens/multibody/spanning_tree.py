"""Spanning tree of a multibody system: tree joint of every body, weights, force laws in joints, and closures."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from livens.models.contact_detection import DetectedContacts
from livens.models.element import Element, ElementType, InvariantForm
from livens.models.system import System
from livens.multibody.armature import JointArmature
from livens.multibody.joint import Joint
from livens.multibody.joint_forces import joint_invariants
from livens.multibody.loads import gravity_potential

#: Joint types of the tree tier, and those whose parent may be either body.
TREE_JOINTS = ("revolute", "prismatic", "spherical", "fixed", "cylindrical", "universal", "planar", "screw")
_REVERSIBLE = ("revolute", "spherical", "fixed")


class NotATreeError(Exception):
    """A system cannot be stepped on a tree; the message states the reason."""


@dataclass(frozen=True, eq=False)
class TreeJoint:
    """Tree joint of one body: bodies by index (-1: ground); a free body has no joint element."""

    body: int
    parent: int = -1
    joint: Joint | None = None
    element_index: int = -1
    #: True if the parent is the second body of the joint.
    is_reversed: bool = False
    #: Dimension of space: 1 for a scalar body, such as the spin of a wheel or the integral of a controller.
    dimension: int = 3

    @property
    def is_scalar(self) -> bool:
        return self.dimension == 1


@dataclass(frozen=True)
class JointLaw:
    """Force element that acts on the angle or the displacement of a tree joint."""

    element_index: int
    body: int
    rotational: bool


@dataclass(frozen=True)
class BodyForce:
    """Force element on the coordinates of one body, such as ground contact or a spring to the ground."""

    element_index: int
    body: int


@dataclass(frozen=True)
class Closure:
    """Element that connects bodies other than by a tree joint: a joint that closes a loop, a coupling, or a spring.

    The coupling of rotation and translation in a screw is one, too.

    Its multipliers are unknowns beside those of the tree.
    """

    element_index: int
    bodies: tuple[int, ...]
    #: Constraints of the element that are imposed, all but redundant ones.
    rows: tuple[int, ...] = ()


@dataclass(frozen=True)
class Armature:
    """Rotor, a body with one coordinate that is the angle or displacement of a tree joint."""

    element_index: int
    rotor: int
    body: int  # whose tree joint drives the rotor
    is_angle: bool


@dataclass(frozen=True, eq=False)
class SpanningTree:
    """Tree joints in topological order, weight elements by body, force laws in joints, and forces on single bodies.

    The bodies of armatures follow all others.
    """

    joints: tuple[TreeJoint, ...]
    weights: dict[int, int] = field(default_factory=dict)
    laws: tuple[JointLaw, ...] = ()
    forces: tuple[BodyForce, ...] = ()
    armatures: tuple[Armature, ...] = ()
    closures: tuple[Closure, ...] = ()

    @property
    def n_dof(self) -> int:
        """Number of joint coordinates of the tree."""
        return sum(DEGREES_OF_FREEDOM[joint_type_name(joint)] for joint in self.joints) - len(self.armatures)

    @property
    def n_multipliers(self) -> int:
        """Number of constraints that close loops or couple joints."""
        return sum(len(closure.rows) for closure in self.closures)

    @property
    def n_closure_columns(self) -> int:
        """Estimate of the number of tree solutions per iteration for the closures."""
        return sum(len(closure.rows) + (3 if closure.rows else 9) for closure in self.closures)


DEGREES_OF_FREEDOM = dict(
    free=6, revolute=1, prismatic=1, spherical=3, fixed=0, cylindrical=2, universal=2, planar=3, screw=2, scalar=1
)


def joint_type_name(joint: TreeJoint) -> str:
    """Return the type of a tree joint; that of a body without joint is "free", in the plane "planar", or "scalar"."""
    if joint.joint is None:
        return {1: "scalar", 2: "planar", 3: "free"}[joint.dimension]
    return joint.joint.type_name


def spanning_tree(system: System, removed_constraints: Collection[int] = ()) -> SpanningTree:
    """Return the spanning tree of a system of rigid bodies, in space or in the plane, without redundant constraints.

    Raises
    ------
    NotATreeError
        If the system has a body without a tree joint, or an element that does not act on bodies alone.
    """
    if not system.frames:
        raise NotATreeError("the model has no rigid bodies in director coordinates")
    body_of_element: dict[int, int] = {}
    for body, frame in enumerate(system.frames):
        if (frame.dimension, len(frame.directors)) not in ((3, 3), (2, 2), (1, 0)) or frame.rotor:
            raise NotATreeError("it has bodies other than rigid bodies")
        body_of_element[id(system.elements[frame.element_index])] = body
    if system.external_force is not None:
        is_contact = isinstance(system.external_force, DetectedContacts)
        raise NotATreeError("it has detected contacts" if is_contact else "it has an external (compiled) force")
    body_of_dof = {dof: body for body, frame in enumerate(system.frames) for dof in frame.coordinates}
    joints: list[tuple[int, Joint, int, int]] = []
    weights: dict[int, int] = {}
    others: list[int] = []
    for index, element in enumerate(system.elements):
        joint = element.joint
        if id(element) in body_of_element:
            if any(role not in ("kinetic", "mass", "constraints") for role in element.functions):
                raise NotATreeError(f"the body '{element.name}' has forces of its own")
        elif isinstance(joint, Joint) and element is getattr(joint, "element", None):
            ends = [
                -1 if body.element is None else body_of_element[id(body.element)]
                for body in (joint.body_a, joint.body_b)
            ]
            if joint.type_name in TREE_JOINTS:
                joints.append((index, joint, ends[0], ends[1]))
            else:
                others.append(index)
        elif _is_weight(element):
            body = body_of_dof[system.element_dofs[index][0]]
            if body in weights or np.any(element.parameters.values["X"]):
                raise NotATreeError(f"'{element.name}' does not act at the centre of mass")
            weights[body] = index
        elif _contributes(system.element_types[index]):
            others.append(index)
    rows_removed = set(removed_constraints)
    redundant = {
        index for index, rows in enumerate(system.element_constraints) if rows_removed & {*range(rows.start, rows.stop)}
    }
    tree = _traverse([frame.dimension for frame in system.frames], joints, redundant)
    in_tree = {joint.element_index for joint in tree}
    owners = {id(joint.joint): joint for joint in tree if joint.joint is not None}
    laws, forces, armatures, closures = list[JointLaw](), list[BodyForce](), list[Armature](), list[Closure]()
    for joint in tree:
        if joint.joint is not None and joint.joint.joint_type.lead:
            closures.append(_lead(system, joint))
    for index in sorted([*others, *(index for index, *_ in joints if index not in in_tree)]):
        bodies = tuple(sorted({body_of_dof[dof] for dof in system.element_dofs[index] if dof in body_of_dof}))
        element = system.elements[index]
        if (armature := _armature(index, element.joint, owners, body_of_element)) is not None:
            armatures.append(armature)
        elif (law := _law(system, index, owners)) is not None:
            laws.append(law)
        elif _is_body_force(system, index, bodies) and not isinstance(element.joint, Joint):
            forces.append(BodyForce(index, bodies[0]))
        else:
            closures.append(_closure(system, index, bodies, rows_removed))
    rotors = {armature.rotor for armature in armatures}
    loaded = {law.body for law in laws} | {force.body for force in forces} | {joint.parent for joint in tree}
    loaded |= {body for closure in closures for body in closure.bodies}
    if loaded & rotors:
        raise NotATreeError("other elements act on the rotor of an armature")
    if redundant & (in_tree | {armature.element_index for armature in armatures}):
        raise NotATreeError("it has redundant constraints in several joints of a loop")
    tree = [joint for joint in tree if joint.body not in rotors] + [joint for joint in tree if joint.body in rotors]
    return SpanningTree(tuple(tree), weights, tuple(laws), tuple(forces), tuple(armatures), tuple(closures))


def tree_constraints(system: System) -> tuple[int, ...]:
    """Return the constraints of the joints of the spanning tree; none if the system has no tree."""
    try:
        tree = spanning_tree(system)
    except NotATreeError:
        return ()
    elements = [joint.element_index for joint in tree.joints if joint.joint is not None]
    elements += [armature.element_index for armature in tree.armatures]
    rows = (system.element_constraints[index] for index in elements)
    return tuple(i for row in rows for i in range(row.start, row.stop))


def _armature(
    index: int, armature: object, owners: Mapping[int, TreeJoint], rotor_of_element: Mapping[int, int]
) -> Armature | None:
    """Return the armature of a tree joint, or None."""
    if not isinstance(armature, JointArmature):
        return None
    driver = owners.get(id(armature.driving_joint))
    if driver is None:
        return None
    return Armature(index, rotor_of_element[id(armature.rotor)], driver.body, armature.is_angle)


def _closure(system: System, index: int, bodies: tuple[int, ...], removed_constraints: Collection[int]) -> Closure:
    """Return the closure of an element on the coordinates of several bodies."""
    element, model = system.elements[index], system.element_types[index]
    dofs = set(system.element_dofs[index])
    if dofs - {dof for i in bodies for dof in system.frames[i].coordinates}:
        raise NotATreeError(f"the element '{element.name or index}' has coordinates that are not those of bodies")
    if not model.T.is_zero() or model.has_constraint_friction:
        raise NotATreeError(
            f"the element '{element.name or index}' has a kinetic energy or friction of its constraints"
        )
    start = system.element_constraints[index].start
    return Closure(index, bodies, tuple(i for i in range(model.m) if start + i not in removed_constraints))


def _lead(system: System, screw: TreeJoint) -> Closure:
    """Return the velocity constraint of a screw, whose other constraints are those of a cylindrical tree joint."""
    model = system.element_types[screw.element_index]
    rows = tuple(range(model.n_position_constraints, model.m))
    return Closure(screw.element_index, tuple(sorted(i for i in (screw.body, screw.parent) if i >= 0)), rows)


def _is_body_force(system: System, index: int, bodies: tuple[int, ...]) -> bool:
    """Return True for an element without constraints on the coordinates of one rigid body."""
    if system.element_types[index].m or len(bodies) != 1 or system.frames[bodies[0]].dimension == 1:
        return False
    return set(system.element_dofs[index]) <= set(system.frames[bodies[0]].coordinates)


def _is_weight(element: Element) -> bool:
    potential = element.functions.get("potential")
    parametrisation = getattr(potential, "__closure__", None)
    if len(element.functions) != 1 or not parametrisation or isinstance(potential, InvariantForm):
        return False
    return any(gravity_potential(cell.cell_contents) is potential for cell in parametrisation)


def _contributes(model: ElementType) -> bool:
    return bool(model.m or model.F.nnz()) or not all(x.is_zero() for x in (model.T, model.V, model.R))


def _traverse(
    dimensions: Sequence[int], joints: list[tuple[int, Joint, int, int]], redundant: Collection[int]
) -> list[TreeJoint]:
    """Return the tree joints, breadth first from the ground, then from one free body of each component.

    Joints with redundant constraints close loops if possible, and then spherical joints, with the fewest constraints.
    """
    neighbours: dict[int, list[tuple[int, Joint, int, bool]]] = {}
    for index, joint, first, second in joints:
        neighbours.setdefault(first, []).append((index, joint, second, False))
        neighbours.setdefault(second, []).append((index, joint, first, True))
    seconds = {second for _, _, _, second in joints}
    reached, tree = set[int](), list[TreeJoint]()
    # roots of floating components: bodies that are not the second body of a joint first
    for root in [-1, *sorted(range(len(dimensions)), key=lambda body: body in seconds)]:
        if root in reached:
            continue
        if root >= 0:
            tree.append(TreeJoint(root, dimension=dimensions[root]))
        queue: list[tuple[tuple[bool, bool, int], TreeJoint]] = []
        body, n_queued, wrong = root, 0, None
        while True:
            reached.add(body)
            for index, joint, other, is_reversed in neighbours.get(body, ()):
                if other in reached:
                    continue
                if is_reversed and joint.type_name not in _REVERSIBLE:
                    wrong = wrong or joint
                    continue
                key = index in redundant, joint.type_name == "spherical", n_queued
                tree_joint = TreeJoint(other, body, joint, index, is_reversed, dimensions[other])
                heapq.heappush(queue, (key, tree_joint))
                n_queued += 1
            while queue and queue[0][1].body in reached:
                heapq.heappop(queue)
            if not queue:
                break
            tree.append(heapq.heappop(queue)[1])
            body = tree[-1].body
        if wrong is not None and _first_outside(wrong, joints, reached):
            raise NotATreeError(
                f"the {wrong.type_name} joint '{wrong.name}' leads from the body to its parent: exchange its bodies"
            )
    return tree


def _first_outside(joint: Joint, joints: list[tuple[int, Joint, int, int]], reached: Collection[int]) -> bool:
    """Return True if the first body of a joint has not been reached."""
    return any(other is joint and first not in reached for _, other, first, _ in joints)


def _law(system: System, index: int, owners: Mapping[int, TreeJoint]) -> JointLaw | None:
    """Return the force law of an element that acts on the coordinate of a tree joint, or None."""
    element = system.elements[index]
    owner = owners.get(id(element.joint))
    if owner is None or owner.joint is None:
        return None
    joint = owner.joint
    if len(element.coordinates) != len(joint.coordinates) or not element.functions.keys() <= {
        "potential",
        "dissipation",
        "forces",
    }:
        return None
    for rotational in (True, False):
        invariants = joint_invariants(joint.a, joint.b, rotational)
        if all(isinstance(f, InvariantForm) and f.invariants is invariants for f in element.functions.values()):
            has_coordinate = joint.joint_type.angle if rotational else joint.joint_type.slide
            if has_coordinate:
                return JointLaw(index, owner.body, rotational)
    return None
