"""Conversion of a robot description to a Multibody: one body per rigid cluster with mass, connected by joints."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.errors import InputError
from livens.models.element import Element
from livens.multibody import body_drag, joint_forces, sliding_joint_forces, spherical_joint_forces
from livens.multibody.assembly import InitialCondition
from livens.multibody.body import Body
from livens.multibody.imports.actuators import add_actuator
from livens.multibody.imports.collision_geometry import ContactOptions, add_contacts
from livens.multibody.imports.import_notes import group_notes, names_of_note
from livens.multibody.imports.inertia_regrouping import TRIANGLE_TOLERANCE, links_without_inertia, regroup_inertia
from livens.multibody.imports.joint_composition import compose_joint
from livens.multibody.imports.link_inertia import LinkInertia, sum_inertias
from livens.multibody.imports.robot_description import (
    JointDof,
    JointEquality,
    Keyframe,
    Link,
    LoopClosure,
    RigidTransform,
    RobotDescription,
)
from livens.multibody.imports.tendons import add_tendon_equality, add_tendon_forces
from livens.multibody.joint import Joint
from livens.multibody.joint_coordinate import JointCoordinate
from livens.multibody.joint_types import SPATIAL_JOINTS
from livens.multibody.pid import ControllerState
from livens.scene.shapes import Shape

if TYPE_CHECKING:
    from livens.multibody.imports.xml import XmlNode
    from livens.multibody.multibody import Multibody


@dataclasses.dataclass(eq=False)
class RigidCluster:
    """Rigid cluster of links in the frame of its root link; the cluster of the ground has no root."""

    root: Link | None
    #: Links with their poses in the frame of the root link.
    links: list[tuple[Link, RigidTransform]] = dataclasses.field(default_factory=list)
    part: Body | None = None
    #: Dofs since the last body with mass, in world axes.
    massless_dofs: list[JointDof] = dataclasses.field(default_factory=list)
    has_child: bool = False
    parent: RigidCluster | None = None
    #: Inertias that are moved to this cluster, or from it, across its joints.
    transfers: list[LinkInertia] = dataclasses.field(default_factory=list)

    def mass(self) -> LinkInertia | None:
        link_inertias = [
            link.mass.transformed(transform.position, transform.rotation)
            for link, transform in self.links
            if link.mass is not None
        ]
        return sum_inertias([*link_inertias, *self.transfers])

    def shapes(self, origin: np.ndarray) -> list[Shape]:
        """Return the visual shapes relative to a point of the root link, in its axes."""
        shapes = []
        for link, transform in self.links:
            relative = RigidTransform(transform.position - origin, transform.rotation)
            shapes += [shape.transformed(relative.point, relative.rotate) for shape in link.shapes]
        if shapes:  # the first shape of a body is traced
            shapes[0] = dataclasses.replace(shapes[0], trace=0.5 if shapes[0].shape_type == "cylinder" else 0.0)
        return shapes


class MultibodyBuilder:
    """Builder that converts a robot description into an empty mechanism."""

    def __init__(
        self,
        mb: Multibody,
        robot: RobotDescription,
        limit_stiffness: float | None,
        balances_inertia: bool,
        contacts: ContactOptions | None = None,
    ) -> None:
        self.contacts = contacts
        self.mb, self.robot, self.limit_stiffness = mb, robot, limit_stiffness
        self.balances_inertia = balances_inertia or robot.balances_inertia
        self.balanced: list[str] = []
        self.poses = robot.poses()
        self.clusters: dict[str | None, RigidCluster] = {}
        self.joints: dict[str, Joint] = {}
        self.non_scalar_joints: set[str] = set()
        self.inactive_limits: list[str] = []
        #: Names of inputs by the name of the actuator in the file.
        self.control_names: dict[str, str] = {}
        #: Activation states by the name of the actuator in the file.
        self.activations: dict[str, ControllerState] = {}

    def build(self) -> None:
        robot = self.robot
        self._cluster_links()
        receivers = links_without_inertia(robot, self.clusters, self.poses)
        if receivers:  # joints may be split
            self.poses = robot.poses()
            self.clusters.clear()
            self._cluster_links()
        regrouped = regroup_inertia(self.clusters, self.poses, receivers)
        if regrouped:
            robot.notes.append(
                f"inertia of neighbours is moved across joints to links that have none ({names_of_note(regrouped)}): "
                "motions are the same, reactions in these joints are not"
            )
        for cluster in dict.fromkeys(self.clusters.values()):
            if cluster.root is not None:
                self._add_body(cluster)
        for cluster in dict.fromkeys(self.clusters.values()):
            if cluster.massless_dofs and not cluster.has_child:
                raise _link(cluster).node.error(
                    "it moves, but neither it nor its children have mass: its motion is undetermined"
                )
        for equality in robot.equalities:
            self._add_equality(equality)
        for tendon in robot.tendon_equalities:
            add_tendon_equality(self, tendon)
        for tendon_forces in robot.tendon_forces:
            add_tendon_forces(self, tendon_forces)
        for closure in robot.closures:
            self._add_closure(closure)
        self._add_loads_on_links()
        for actuator in robot.actuators:
            add_actuator(self, actuator)
        self._add_static_visuals()
        if self.contacts is not None:
            add_contacts(self, self.contacts)
        self._apply_initial_pose()
        if robot.keyframe is not None:
            self._apply_keyframe(robot.keyframe)
        skipped = next(iter(robot.links.values())).node.document.skipped if robot.links else []
        robot.notes += [f"ignored, although it changes the motion: {message}" for message in skipped]
        if self.balanced:
            robot.notes.append(
                f"inertia tensors that no body can have are replaced by mean moments ({names_of_note(self.balanced)})"
            )
        if self.inactive_limits:
            robot.notes.append(
                f"joint limits are ignored ({names_of_note(self.inactive_limits)}) because the file gives no limit "
                "stiffness; pass limit_stiffness or add mb.limit"
            )
        self.mb.import_warnings += group_notes(robot.notes)

    # -- bodies -------------------------------------------------------------------------------------------------------
    def _cluster_links(self) -> None:
        self.clusters[None] = RigidCluster(None, part=self.mb.ground)
        for link in self.robot.links.values():
            if link.dofs:
                self.clusters[link.name] = RigidCluster(
                    link, [(link, RigidTransform())], parent=self.clusters[link.parent]
                )
            else:
                cluster = self.clusters[link.name] = self.clusters[link.parent]
                origin = self.poses[cluster.root.name if cluster.root else None]
                cluster.links.append((link, origin.inverse @ self.poses[link.name]))

    def _add_body(self, cluster: RigidCluster) -> None:
        """Add the body of a cluster and the joint to its parent."""
        link, parent = _link(cluster), cluster.parent
        assert parent is not None
        pose = self.poses[link.name]
        chain = [*parent.massless_dofs, *(dof.in_world(pose) for dof in link.dofs)]
        if parent.massless_dofs and parent.has_child:
            raise _link(parent).node.error("it moves, has no mass, and has more than one child")
        parent.has_child = True
        mass, parent_body = cluster.mass(), parent.part
        armature = sum(dof.armature for dof in link.dofs if dof.dof_type == "free")
        if armature and mass is not None:  # six equal inertias: a weightless mass at the origin, and three moments
            mass = sum_inertias([mass, LinkInertia(armature, np.zeros(3), armature * np.eye(3))])
        assert parent_body is not None
        if mass is not None and not mass.mass > 0:
            raise link.node.error("it has an inertia and no mass, and moves by itself: give it a mass")
        if mass is None:
            if any(dof.dof_type in ("free", "ball") for dof in link.dofs):
                raise link.node.error("it moves and has no mass")
            cluster.part, cluster.massless_dofs = parent_body, chain
            if cluster.shapes(np.zeros(3)):
                self.robot.notes.append(f"'{link.name}' has no mass and is not a separate body: it is not drawn")
            return
        try:
            tensor = (mass.tensor + mass.tensor.T) / 2
            moments = np.linalg.eigvalsh(tensor)
            if self.balances_inertia and moments[0] + moments[1] < moments[2] * (1 - TRIANGLE_TOLERANCE):
                # as MuJoCo's balanceinertia: three equal moments with the same sum
                tensor, moments = np.eye(3) * moments.mean(), np.full(3, moments.mean())
                self.balanced.append(link.name)
            if not moments[0] > 1e-12 * moments[2]:
                raise InputError(
                    "it has no inertia about one of its axes: the rotation about this axis is undetermined"
                )
            name = self.unique_name(link.name, "body")
            cluster.part = self.mb.body(
                name,
                mass=mass.mass,
                inertia=tensor,
                position=pose.point(mass.centre),
                rotation=_orthonormal(pose.rotation),
                shape=("shapes", *cluster.shapes(mass.centre)),
            )
        except InputError as error:
            raise link.node.error(str(error)) from None
        self._add_frames(cluster.part, cluster)
        if armature and self.robot.gravity.any():
            name = self.unique_name(f"weight of the armature of {link.name}", "load")
            self.mb.wrench(name, cluster.part, force=-armature * self.robot.gravity, at=pose.position)
        self._add_joint(link, parent_body, cluster.part, chain)

    def _add_frames(self, part: Body, cluster: RigidCluster) -> None:
        """Add the frames of the links, and the frames defined in links."""
        for link, _ in cluster.links:
            link_pose = self.poses[link.name]
            frames = {"origin" if link is cluster.root else link.name: RigidTransform(), **link.frames}
            for name, pose in frames.items():
                self._add_frame(part, name, link_pose @ pose)

    def _add_frame(self, part: Body, name: str, pose: RigidTransform) -> None:
        unique = name if name not in part.markers and not hasattr(type(part), name) else f"{name} frame"
        part.frame(unique, pose.position, pose.rotation)

    def _add_static_visuals(self) -> None:
        """Add visuals and named frames of the ground."""
        ground = self.clusters[None]
        self._add_frames(self.mb.ground, ground)
        for name, pose in self.robot.frames.items():
            self._add_frame(self.mb.ground, name, pose)
        shapes = [*self.robot.shapes, *ground.shapes(np.zeros(3))]
        if shapes and self.mb.bodies:
            body = next(iter(self.mb.bodies.values()))
            static_shapes = [dataclasses.replace(shape, trace=None) for shape in shapes]
            name = self.unique_name("surroundings", "scenery")
            self.mb._add_force_element(
                name, Element(body.coordinates, name=name, visual=lambda q: static_shapes), "scenery"
            )

    # -- joints -------------------------------------------------------------------------------------------------------
    def _add_joint(self, link: Link, body_a: Body, body_b: Body, chain: list[JointDof]) -> None:
        mb, dof = self.mb, chain[0]
        if len(chain) == 1 and dof.dof_type in ("hinge", "slide", "ball", "free"):
            if dof.dof_type == "free":
                if dof.friction or dof.stiffness:
                    dof.node.refuse("stiffness and frictionloss of a free joint are not supported")
                if dof.damping:
                    name = self.unique_name(f"{dof.name} damper", "damper")
                    origin = self.poses[link.name].position
                    mb._add_force_element(name, body_drag.free_damper(body_b, origin, dof.damping))
                if body_a is not mb.ground:
                    self.robot.notes.append(f"the free joint '{dof.name}' is between two bodies: it adds no constraint")
            else:
                joint_type = {"hinge": "revolute", "slide": "prismatic", "ball": "spherical"}[dof.dof_type]
                axis = None if dof.dof_type == "ball" else dof.axis
                joint = mb.joint(
                    joint_type, self.unique_name(dof.name, "joint"), body_a, body_b, at=dof.point, axis=axis
                )
                if dof.dof_type != "ball":
                    self.joints[dof.name] = joint
                elif dof.has_passive_forces and not (dof.armature or dof.friction):
                    self._add_ball_joint_forces(dof, joint)
                    self.non_scalar_joints.add(dof.name)
                    return
        else:
            composite = compose_joint(link, chain)
            first, second = (body_b, body_a) if composite.is_reversed else (body_a, body_b)
            if composite.joint_type is not None:
                name = self.unique_name(f"{link.name} joint", "joint")
                points = composite.point, composite.point
                mb.connections[name] = Joint(
                    name, composite.type_name, composite.joint_type, first, second, points, composite.axes
                )
            for measured in composite.coordinates:
                dof, bodies = measured.dof, (first, second) if measured.is_forward else (second, first)
                name = self.unique_name(dof.name, "joint")
                coordinate = JointCoordinate(
                    name, *bodies, composite.point, measured.axes, dof.is_rotational, measured.last_axis
                )
                mb.joint_coordinates[name] = self.joints[dof.name] = coordinate
        for chain_dof in chain:
            if chain_dof.name not in self.joints:
                self.non_scalar_joints.add(chain_dof.name)
                if chain_dof.has_passive_forces and chain_dof.dof_type != "free":
                    chain_dof.node.refuse(
                        "stiffness, damping, armature and frictionloss are not supported in a joint without a single "
                        "coordinate (free joint, hinges that are not normal; ball joint: armature and frictionloss)"
                    )
            else:
                self._add_passive_forces(chain_dof, self.joints[chain_dof.name])

    def _add_passive_forces(self, dof: JointDof, joint: Joint) -> None:
        """Add the passive forces of one dof: spring, damper, friction, armature and limit."""
        mb, is_rotational = self.mb, dof.is_rotational
        if dof.higher_stiffness or dof.higher_damping:
            self._add_polynomial_forces(dof, joint)
            dof = dataclasses.replace(
                dof,
                stiffness=0.0 if dof.higher_stiffness else dof.stiffness,
                damping=0.0 if dof.higher_damping else dof.damping,
            )
        if dof.stiffness:
            name = f"{joint.name} spring"
            if is_rotational:
                mb.torsion_spring(name, joint, stiffness=dof.stiffness, rest_angle=dof.rest)
            else:
                parameters = dict(stiffness=dof.stiffness, rest=dof.rest)
                spring = joint.force_element(name, parameters, potential=sliding_joint_forces.spring(joint.a, joint.b))
                mb._add_force_element(name, spring, "torsion_spring", joint)
        if dof.damping:
            name, viscosity = f"{joint.name} damper", dof.damping
            if is_rotational:
                mb.torsion_damper(name, joint, damping=viscosity)
            else:
                functions: dict[str, Any] = dict(dissipation=sliding_joint_forces.damper(joint.a, joint.b))
                damper = joint.force_element(name, dict(viscosity=viscosity), **functions)
                mb._add_force_element(name, damper, "torsion_damper", joint)
        if dof.friction:
            level: dict[str, float] = {"torque" if is_rotational else "force": dof.friction}
            mb.friction(f"{joint.name} friction", joint, **level)
            self.robot.notes.append(
                f"Coulomb friction of '{dof.name}' is regularised below a rate of 1e-3, see mb.friction"
            )
        if dof.armature:
            mb.armature(joint, inertia=dof.armature)
        if dof.range is not None:
            if self.limit_stiffness is None or (is_rotational and dof.range[1] - dof.range[0] >= 2 * np.pi):
                self.inactive_limits.append(dof.name)
            else:
                lower, upper = dof.range
                mb.limit(f"{joint.name} limit", joint, lower=lower, upper=upper, stiffness=self.limit_stiffness)

    def _add_polynomial_forces(self, dof: JointDof, joint: Joint) -> None:
        """Add a spring or damper whose force is a polynomial of the joint coordinate or of its rate."""
        sides = joint.a, joint.b, dof.is_rotational
        if dof.higher_stiffness:
            parameters: dict[str, Any] = dict(stiffness=np.array([dof.stiffness, *dof.higher_stiffness]), rest=dof.rest)
            if dof.is_rotational:
                parameters["angle_branch"] = joint_forces.ZERO_BRANCH
            name, law = f"{joint.name} spring", joint_forces.polynomial_spring(*sides)
            spring = joint.force_element(name, parameters, potential=law)
            element = self.mb._add_force_element(name, spring)
            self.mb._register_joint_output(joint, dof.is_rotational, element)
        if dof.higher_damping:
            viscosity = dict(viscosity=np.array([dof.damping, *dof.higher_damping]))
            name, loss = f"{joint.name} damper", joint_forces.polynomial_damper(*sides)
            self.mb._add_force_element(name, joint.force_element(name, viscosity, dissipation=loss))

    def _add_ball_joint_forces(self, dof: JointDof, joint: Joint) -> None:
        """Add a spring on the relative rotation angle, relaxed in the reference configuration, and a damper."""
        sides = joint.a, joint.b
        if dof.stiffness:
            name, law = f"{joint.name} spring", spherical_joint_forces.spring(*sides)
            self.mb._add_force_element(name, joint.force_element(name, dict(stiffness=dof.stiffness), potential=law))
        if dof.damping:
            name, loss = f"{joint.name} damper", spherical_joint_forces.damper(*sides)
            self.mb._add_force_element(name, joint.force_element(name, dict(viscosity=dof.damping), dissipation=loss))

    # -- equality constraints and closures ----------------------------------------------------------------------------
    def scalar_joint(self, name: str, node: XmlNode, element: str) -> Joint:
        if name in self.non_scalar_joints:
            raise node.error(f"{element} on '{name}' is not supported: the joint has no single coordinate")
        return self.joints[name]

    def _add_equality(self, equality: JointEquality) -> None:
        follower = self.scalar_joint(equality.follower, equality.node, "a coupling")
        name = self.unique_name(equality.name, "coupling")
        if equality.leader is None:
            self.mb.drive(
                follower, name=name, **{"angle" if follower.joint_type.angle else "position": equality.offset}
            )
            return
        leader = self.scalar_joint(equality.leader, equality.node, "a coupling")
        try:
            coupling = self.mb.couple(name, (leader, equality.ratio), (follower, -1.0), coupling_type="coupling")
        except InputError as error:
            raise equality.node.error(str(error)) from None
        # the initial position of the follower satisfies the coupling
        self.mb._initial_conditions.append(InitialCondition(coupling, "phase", np.array([0.0 - equality.offset]), True))

    def _add_loads_on_links(self) -> None:
        """Add the drag of a fluid, and forces that compensate weight, on all links that move."""
        density, viscosity = self.robot.fluid
        for link in self.robot.links.values():
            part, inertia = self.clusters[link.name].part, link.mass
            if inertia is None or part is None or part.element is None or self.clusters[link.name].massless_dofs:
                continue
            pose = self.poses[link.name]
            centre = pose.point(inertia.centre)
            if density or viscosity:
                name = self.unique_name(f"drag on {link.name}", "drag")
                fluid = inertia.mass, inertia.tensor, pose.rotation, centre, density, viscosity
                element = body_drag.fluid_drag(part, *fluid)
                self.mb._add_force_element(name, element)
            if link.gravity_compensation and self.robot.gravity.any():
                force = -link.gravity_compensation * inertia.mass * self.robot.gravity
                name = self.unique_name(f"compensation of {link.name}", "load")
                self.mb.wrench(name, part, force=force, at=centre)

    def _add_closure(self, closure: LoopClosure) -> None:
        """Add a loop closure, which need not be satisfied in the reference configuration."""
        body_a, body_b = (self.clusters[name].part for name in (closure.body_a, closure.body_b))
        for end in (closure.body_a, closure.body_b):
            if self.clusters[end].massless_dofs:
                raise closure.node.error(f"'{end}' has no mass: it cannot be constrained")
        assert body_a is not None and body_b is not None
        if body_a is body_b:
            raise closure.node.error("it connects a body to itself")
        frame_a, frame_b = self.poses[closure.body_a] @ closure.frame_a, self.poses[closure.body_b] @ closure.frame_b
        # reference configuration in which the closure is satisfied
        correction = frame_a @ frame_b.inverse
        virtual = body_b
        if body_b.element is not None:
            virtual = dataclasses.replace(
                body_b,
                reference_position=correction.point(body_b.reference_position),
                reference_rotation=correction.rotation @ body_b.reference_rotation,
                markers={},
            )
        elif body_a.element is not None:
            body_a = dataclasses.replace(
                body_a,
                reference_position=correction.inverse.point(body_a.reference_position),
                reference_rotation=correction.inverse.rotation @ body_a.reference_rotation,
                markers={},
            )
        point = frame_a.position if body_b.element is not None else frame_b.position
        axes = frame_a.rotation if body_b.element is not None else frame_b.rotation
        name, joint_type = self.unique_name(closure.name, "closure"), "fixed" if closure.is_weld else "spherical"
        joint = Joint(name, joint_type, SPATIAL_JOINTS[joint_type], body_a, virtual, (point, point), _orthonormal(axes))
        joint.body_a, joint.body_b = (
            self.clusters[end].part or self.mb.ground for end in (closure.body_a, closure.body_b)
        )
        self.mb.connections[name] = joint

    def _apply_initial_pose(self) -> None:
        """Move bodies to poses that satisfy the couplings; joint coordinates are zero where they are in the file."""
        poses = self.robot.initial_poses()
        for cluster in dict.fromkeys(self.clusters.values()):
            if cluster.root is not None and cluster.part is not None and not cluster.massless_dofs:
                part, name = cluster.part, cluster.root.name
                correction = poses[name] @ self.poses[name].inverse
                part.reference_position, part.reference_rotation = (
                    correction.point(part.reference_position),
                    _orthonormal(correction.rotation @ part.reference_rotation),
                )

    def _apply_keyframe(self, keyframe: Keyframe) -> None:
        """Set the initial values of joints and free bodies, and the values of controls."""
        mb, followers = self.mb, {equality.follower for equality in self.robot.equalities}
        for name, (position, rate) in keyframe.joints.items():
            joint = self.joints.get(name)
            if joint is None:
                if position or rate:
                    keyframe.node.refuse(f"the joint '{name}' has no single coordinate: it cannot be set")
            elif name not in followers:
                if joint.joint_type.angle:
                    mb.initial(joint, angle=position, rate=rate)
                else:
                    mb.initial(joint, position=position, velocity=rate)
        for name, (velocity, omega) in keyframe.free_links.items():
            body = self.clusters[name].part
            assert body is not None
            arm = body.reference_position - self.poses[name].position  # in the keyframe: bodies are at their start
            mb.initial(body, velocity=velocity + np.cross(omega, arm), omega=omega)
        for name, value in keyframe.activations.items():
            self.activations[name].initial = value
        for name, value in keyframe.controls.items():
            control = mb._inputs[self.control_names[name]]
            control.value = np.array(value)
            for element, parameter in control.uses:
                element.parameters.values[parameter] = np.array(value)

    def unique_name(self, requested: str, category: str) -> str:
        """Return a unique name without dots; add a note if it differs from the name in the file."""
        mb = self.mb
        base = requested.replace(".", "_") or category
        taken = {"ground", *mb.bodies, *mb.connections, *mb.couplings, *mb._force_elements, *mb.joint_coordinates}
        taken |= set(mb._pair_contacts)
        unique, number = base, 2
        while unique in taken:
            unique, number = (
                (f"{base} {category}", number) if unique == base else (f"{base} {category} {number}", number + 1)
            )
        if requested and unique != requested:
            self.robot.notes.append(f"renamed in the model: '{requested} -> {unique}'")
        return unique


def _link(cluster: RigidCluster) -> Link:
    assert cluster.root is not None
    return cluster.root


def _orthonormal(R: np.ndarray) -> np.ndarray:
    """Return the nearest rotation matrix, which removes the round-off of products of rotations."""
    u, _, vh = np.linalg.svd(R)
    return np.asarray(u @ vh)
