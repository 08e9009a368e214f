"""Spanning tree of a multibody system: tree joint of every body, weights, and force laws in the joints."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

import numpy as np

from livens.models.element import Element, ElementType, InvariantForm
from livens.models.system import System
from livens.multibody.couplings import Coupling
from livens.multibody.joint import Joint
from livens.multibody.joint_forces import joint_invariants
from livens.multibody.loads import gravity_potential

#: Joint types of the tree tier, and those whose parent may be either body.
TREE_JOINTS = ("revolute", "prismatic", "spherical", "fixed", "cylindrical", "universal", "planar")
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
class Armature:
    """Rotor on the ground that rotates with a revolute tree joint: its inertia is a number of this joint."""

    element_index: int  # of the coupling
    rotor: int
    body: int  # whose tree joint drives the rotor


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

    @property
    def n_dof(self) -> int:
        """Number of degrees of freedom."""
        return sum(DEGREES_OF_FREEDOM[joint_type_name(joint)] for joint in self.joints) - len(self.armatures)


DEGREES_OF_FREEDOM = dict(free=6, revolute=1, prismatic=1, spherical=3, fixed=0, cylindrical=2, universal=2, planar=3)


def joint_type_name(joint: TreeJoint) -> str:
    """Return the type of a tree joint, "free" for a body without joint."""
    return "free" if joint.joint is None else joint.joint.type_name


def spanning_tree(system: System) -> SpanningTree:
    """Return the spanning tree of a system of rigid bodies in space.

    Raises
    ------
    NotATreeError
        If the system has an element that is neither a tree joint, nor a weight, nor a force law in a tree joint.
    """
    if not system.frames:
        raise NotATreeError("the model has no rigid bodies in director coordinates")
    body_of_element: dict[int, int] = {}
    for body, frame in enumerate(system.frames):
        if frame.dimension != 3 or len(frame.directors) != 3 or frame.rotor:
            raise NotATreeError("it has bodies other than rigid bodies in space")
        body_of_element[id(system.elements[frame.element_index])] = body
    if system.external_force is not None:
        raise NotATreeError("it has detected contacts")
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
            if joint.type_name not in TREE_JOINTS:
                raise NotATreeError(f"the {joint.type_name} joint '{joint.name}' is not a tree joint")
            joints.append((index, joint, ends[0], ends[1]))
        elif _is_weight(element):
            body = next(b for b, f in enumerate(system.frames) if set(system.element_dofs[index]) <= set(f.coordinates))
            if body in weights or np.any(element.parameters.values["X"]):
                raise NotATreeError(f"'{element.name}' does not act at the centre of mass")
            weights[body] = index
        elif _contributes(system.element_types[index]):
            others.append(index)
    tree = _traverse(len(system.frames), joints)
    laws, forces, armatures = list[JointLaw](), list[BodyForce](), list[Armature]()
    for index in others:
        coupling = system.elements[index].joint
        if isinstance(coupling, Coupling):
            armatures.append(_armature(index, coupling, tree))
            continue
        force = _body_force(system, index)
        if force is None or isinstance(system.elements[index].joint, Joint):
            laws.append(_law(system, index, tree))
        else:
            forces.append(force)
    rotors = {armature.rotor for armature in armatures}
    if len(rotors) < len(armatures) or len({armature.body for armature in armatures}) < len(armatures):
        raise NotATreeError("a joint or a rotor has several armatures")
    loaded = {law.body for law in laws} | {force.body for force in forces} | {joint.parent for joint in tree}
    if loaded & rotors:
        raise NotATreeError("other elements act on the rotor of an armature")
    tree = [joint for joint in tree if joint.body not in rotors] + [joint for joint in tree if joint.body in rotors]
    return SpanningTree(tuple(tree), weights, tuple(laws), tuple(forces), tuple(armatures))


def _armature(index: int, coupling: Coupling, tree: list[TreeJoint]) -> Armature:
    """Return the armature of a coupling between a revolute tree joint and a rotor in a bearing on the ground."""
    owners = {id(joint.joint): joint for joint in tree if joint.joint is not None}
    ends = [owners.get(id(joint)) for joint, _, _ in coupling.terms]
    weights = [weight for _, _, weight in coupling.terms]
    if len(ends) == 2 and weights[0] == -weights[1] and coupling.coupling_type == "armature":
        driver, rotor = ends
        if driver is not None and rotor is not None and rotor.joint is not None:
            is_revolute = joint_type_name(driver) == joint_type_name(rotor) == "revolute"
            on_ground = rotor.parent < 0 and not rotor.is_reversed and not np.any(rotor.joint.parameters["Y"])
            if is_revolute and on_ground:
                return Armature(index, rotor.body, driver.body)
    raise NotATreeError(f"the coupling '{coupling.name}' is not an armature of a revolute joint")


def _body_force(system: System, index: int) -> BodyForce | None:
    """Return the force of an element without constraints on the coordinates of one body, or None."""
    dofs = set(system.element_dofs[index])
    if system.element_types[index].m:
        return None
    return next((BodyForce(index, i) for i, frame in enumerate(system.frames) if dofs <= set(frame.coordinates)), None)


def _is_weight(element: Element) -> bool:
    potential = element.functions.get("potential")
    parametrisation = getattr(potential, "__closure__", None)
    if len(element.functions) != 1 or not parametrisation or isinstance(potential, InvariantForm):
        return False
    return any(gravity_potential(cell.cell_contents) is potential for cell in parametrisation)


def _contributes(model: ElementType) -> bool:
    return bool(model.m or model.F.nnz()) or not all(x.is_zero() for x in (model.T, model.V, model.R))


def _traverse(n_bodies: int, joints: list[tuple[int, Joint, int, int]]) -> list[TreeJoint]:
    """Return the tree joints in breadth-first order from the ground, then from one free body of each component."""
    neighbours: dict[int, list[tuple[int, Joint, int, bool]]] = {}
    for index, joint, first, second in joints:
        neighbours.setdefault(first, []).append((index, joint, second, False))
        neighbours.setdefault(second, []).append((index, joint, first, True))
    _check_for_loops(joints)
    seconds = {second for _, _, _, second in joints}
    used, reached, tree = set[int](), set[int](), list[TreeJoint]()
    # roots of floating components: bodies that are not the second body of a joint first
    for root in [-1, *sorted(range(n_bodies), key=lambda body: body in seconds)]:
        if root in reached:
            continue
        reached.add(root)
        if root >= 0:
            tree.append(TreeJoint(root))
        queue = deque([root])
        while queue:
            parent = queue.popleft()
            for index, joint, body, is_reversed in neighbours.get(parent, ()):
                if index in used:
                    continue
                used.add(index)
                if is_reversed and joint.type_name not in _REVERSIBLE:
                    raise NotATreeError(
                        f"the {joint.type_name} joint '{joint.name}' leads from the body to its parent: "
                        "exchange its bodies"
                    )
                reached.add(body)
                queue.append(body)
                tree.append(TreeJoint(body, parent, joint, index, is_reversed))
    return tree


def _check_for_loops(joints: list[tuple[int, Joint, int, int]]) -> None:
    """Raise an error at the first joint whose bodies are connected by earlier joints."""
    root: dict[int, int] = {}

    def find(body: int) -> int:
        while root.setdefault(body, body) != body:
            body = root[body]
        return body

    for _, joint, first, second in joints:
        a, b = find(first), find(second)
        if a == b:
            raise NotATreeError(f"the joint '{joint.name}' closes a loop")
        root[a] = b


def _law(system: System, index: int, tree: list[TreeJoint]) -> JointLaw:
    """Return the force law of an element, if it acts on the coordinate of a tree joint."""
    element = system.elements[index]
    name = element.name or f"element {index}"
    owner = next((joint for joint in tree if joint.joint is element.joint and joint.joint is not None), None)
    if owner is None or owner.joint is None:
        raise NotATreeError(f"the element '{name}' acts on several bodies")
    joint = owner.joint
    if len(element.coordinates) != len(joint.coordinates) or not element.functions.keys() <= {
        "potential",
        "dissipation",
        "forces",
    }:
        raise NotATreeError(f"the element '{name}' is not a force law of a joint coordinate")
    for rotational in (True, False):
        invariants = joint_invariants(joint.a, joint.b, rotational)
        if all(isinstance(f, InvariantForm) and f.invariants is invariants for f in element.functions.values()):
            has_coordinate = joint.joint_type.angle if rotational else joint.joint_type.slide
            if has_coordinate:
                return JointLaw(index, owner.body, rotational)
    raise NotATreeError(f"the element '{name}' is not a force law of a joint coordinate")
