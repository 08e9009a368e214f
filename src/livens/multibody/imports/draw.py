"""Conversion of a robot description to a Multibody: one body per rigid cluster with mass, connected by joints."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.errors import InputError
from livens.models.element import Element
from livens.models.shapes import Shape
from livens.multibody import balls, sliding
from livens.multibody.assembly import Target
from livens.multibody.gauge import Gauge
from livens.multibody.imports.chains import composed
from livens.multibody.imports.mass import Mass, summed
from livens.multibody.imports.robot import Closure, Freedom, Link, Pose, Relation, Robot
from livens.multibody.joint import Joint
from livens.multibody.joint_table import SPACE
from livens.multibody.parts import Part

if TYPE_CHECKING:
    from livens.multibody.builder import Multibody


@dataclasses.dataclass(eq=False)
class _Group:
    """Rigid cluster of links in the frame of its root link; the cluster of the ground has no root."""

    root: Link | None
    #: Links with their poses in the frame of the root link.
    links: list[tuple[Link, Pose]] = dataclasses.field(default_factory=list)
    part: Part | None = None
    #: Dofs since the last body with mass, in world axes.
    waiting: list[Freedom] = dataclasses.field(default_factory=list)
    carries: bool = False
    behind: _Group | None = None

    def mass(self) -> Mass | None:
        return summed(link.mass.placed(at.position, at.rotation) for link, at in self.links if link.mass is not None)

    def shapes(self, origin: np.ndarray) -> list[Shape]:
        """Return the visual shapes relative to a point of the root link, in its axes."""
        found = []
        for link, at in self.links:
            move = Pose(at.position - origin, at.rotation)
            found += [shape.placed(move.point, move.turned) for shape in link.shapes]
        if found:  # the first shape of a body is traced
            found[0] = dataclasses.replace(found[0], trace=0.5 if found[0].kind == "cylinder" else 0.0)
        return found


class Drawer:
    """Builder that converts a robot description into an empty mechanism."""

    def __init__(self, mb: Multibody, robot: Robot, limit_stiffness: float | None) -> None:
        self.mb, self.robot, self.limit_stiffness = mb, robot, limit_stiffness
        self.poses = robot.poses()
        self.groups: dict[str | None, _Group] = {}
        self.joints: dict[str, Joint] = {}
        self.unmeasured: set[str] = set()
        self.slack: list[str] = []

    def draw(self) -> None:
        robot = self.robot
        self._group()
        for group in dict.fromkeys(self.groups.values()):
            if group.root is not None:
                self._place(group)
        for group in dict.fromkeys(self.groups.values()):
            if group.waiting and not group.carries:
                raise _link(group).node.error(
                    "it moves, but neither it nor its children have mass: its motion is undetermined"
                )
        for relation in robot.relations:
            self._relate(relation)
        for closure in robot.closures:
            self._close(closure)
        for servo in robot.servos:
            joint = self._measured(servo.joint, servo.node, "an actuator")
            gains = dict(stiffness=servo.stiffness, damping=servo.damping, angle=servo.target)
            self.mb.pd(joint, name=self._name(servo.name, "actuator"), **gains)
        self._ground()
        self._start()
        if self.slack:
            robot.notes.append(
                f"joint limits are ignored ({_few(self.slack)}) because the file gives no limit stiffness; "
                "pass limit_stiffness or add mb.limit"
            )
        self.mb.notes += robot.notes

    # -- bodies -------------------------------------------------------------------------------------------------------
    def _group(self) -> None:
        self.groups[None] = _Group(None, part=self.mb.ground)
        for link in self.robot.links.values():
            if link.freedoms:
                self.groups[link.name] = _Group(link, [(link, Pose())], behind=self.groups[link.parent])
            else:
                group = self.groups[link.name] = self.groups[link.parent]
                origin = self.poses[group.root.name if group.root else None]
                group.links.append((link, origin.inverse @ self.poses[link.name]))

    def _place(self, group: _Group) -> None:
        """Add the body of a cluster and the joint to its parent."""
        link, behind = _link(group), group.behind
        assert behind is not None
        pose = self.poses[link.name]
        chain = [*behind.waiting, *(one.in_space(pose) for one in link.freedoms)]
        if behind.waiting and behind.carries:
            raise _link(behind).node.error("it moves, has no mass, and has more than one child")
        behind.carries = True
        mass, first = group.mass(), behind.part
        assert first is not None
        if mass is None:
            if any(one.kind in ("free", "ball") for one in link.freedoms):
                raise link.node.error("it moves and has no mass")
            group.part, group.waiting = first, chain
            if group.shapes(np.zeros(3)):
                self.robot.notes.append(f"'{link.name}' has no mass and is not a separate body: it is not drawn")
            return
        try:
            moments = np.linalg.eigvalsh(mass.tensor)
            if not moments[0] > 1e-12 * moments[2]:
                raise InputError(
                    "it has no inertia about one of its axes: the rotation about this axis is undetermined"
                )
            name = self._name(link.name, "body")
            group.part = self.mb.body(
                name,
                mass=mass.mass,
                inertia=(mass.tensor + mass.tensor.T) / 2,
                position=pose.point(mass.centre),
                rotation=_orthonormal(pose.rotation),
                shape=("shapes", *group.shapes(mass.centre)),
            )
        except InputError as error:
            raise link.node.error(str(error)) from None
        self._mark(group.part, group)
        self._join(link, first, group.part, chain)

    def _mark(self, part: Part, group: _Group) -> None:
        """Add the frames of the links, and the frames defined in links."""
        for link, _ in group.links:
            here = self.poses[link.name]
            own = {"origin" if link is group.root else link.name: Pose(), **link.frames}
            for name, pose in own.items():
                self._frame(part, name, here @ pose)

    def _frame(self, part: Part, name: str, pose: Pose) -> None:
        free = name if name not in part.markers and not hasattr(type(part), name) else f"{name} frame"
        part.frame(free, pose.position, pose.rotation)

    def _ground(self) -> None:
        """Add visuals and named frames of the ground."""
        still = self.groups[None]
        self._mark(self.mb.ground, still)
        for name, pose in self.robot.frames.items():
            self._frame(self.mb.ground, name, pose)
        seen = [*self.robot.shapes, *still.shapes(np.zeros(3))]
        if seen and self.mb.bodies:
            one = next(iter(self.mb.bodies.values()))
            still_seen = [dataclasses.replace(shape, trace=None) for shape in seen]
            name = self._name("surroundings", "scenery")
            self.mb._act(name, Element(one.coordinates, name=name, look=lambda q: still_seen), "scenery")

    # -- joints -------------------------------------------------------------------------------------------------------
    def _join(self, link: Link, first: Part, second: Part, chain: list[Freedom]) -> None:
        mb, one = self.mb, chain[0]
        if len(chain) == 1 and one.kind in ("hinge", "slide", "ball", "free"):
            if one.kind == "free":
                if first is not mb.ground:
                    self.robot.notes.append(
                        f"the free joint '{one.name}' is between two bodies: it adds no constraint"
                    )
            else:
                what = {"hinge": "revolute", "slide": "prismatic", "ball": "spherical"}[one.kind]
                axis = None if one.kind == "ball" else one.axis
                joint = mb.joint(what, self._name(one.name, "joint"), first, second, at=one.at, axis=axis)
                if one.kind != "ball":
                    self.joints[one.name] = joint
                elif one.acts and not (one.armature or one.friction):
                    self._in_ball(one, joint)
                    self.unmeasured.add(one.name)
                    return
        else:
            found = composed(link, chain)
            if found.kind is not None:
                name = self._name(f"{link.name} joint", "joint")
                places = found.at, found.at
                mb.connections[name] = Joint(name, found.what, found.kind, first, second, places, found.axes)
            for freedom, axes, forwards in found.measured:
                name, ends = self._name(freedom.name, "joint"), (first, second) if forwards else (second, first)
                gauge = Gauge(name, *ends, found.at, axes, freedom.turns)
                mb.gauges[name] = self.joints[freedom.name] = gauge
        for freedom in chain:
            if freedom.name not in self.joints:
                self.unmeasured.add(freedom.name)
                if freedom.acts:
                    raise freedom.node.error(
                        "stiffness, damping, armature and frictionloss are not supported in a joint without a single "
                        "coordinate (free joint, three hinges; in a ball joint: armature and frictionloss)"
                    )
            else:
                self._forces(freedom, self.joints[freedom.name])

    def _forces(self, freedom: Freedom, joint: Joint) -> None:
        """Add the passive forces of one dof: spring, damper, friction, armature and limit."""
        mb, turns = self.mb, freedom.turns
        if freedom.stiffness:
            name, given = f"{joint.name} spring", dict(stiffness=freedom.stiffness, rest=freedom.rest)
            if turns:
                mb.torsion_spring(name, joint, **given)
            else:
                spring = joint.acting(name, given, potential=sliding.spring(joint.a, joint.b))
                mb._act(name, spring, "torsion_spring", joint)
        if freedom.damping:
            name, viscosity = f"{joint.name} damper", freedom.damping
            if turns:
                mb.torsion_damper(name, joint, viscosity=viscosity)
            else:
                functions: dict[str, Any] = dict(dissipation=sliding.damper(joint.a, joint.b))
                damper = joint.acting(name, dict(viscosity=viscosity), **functions)
                mb._act(name, damper, "torsion_damper", joint)
        if freedom.friction:
            level: dict[str, float] = {"torque" if turns else "force": freedom.friction}
            mb.friction(f"{joint.name} friction", joint, **level)
            self.robot.notes.append(
                f"Coulomb friction of '{freedom.name}' is regularised below a rate of 1e-3, see mb.friction"
            )
        if freedom.armature:
            self._rotor(freedom, joint)
        if freedom.range is not None:
            if self.limit_stiffness is None or (turns and freedom.range[1] - freedom.range[0] >= 2 * np.pi):
                self.slack.append(freedom.name)
            else:
                lower, upper = freedom.range
                mb.limit(f"{joint.name} limit", joint, lower=lower, upper=upper, stiffness=self.limit_stiffness)

    def _in_ball(self, freedom: Freedom, joint: Joint) -> None:
        """Add a spring on the relative rotation angle, relaxed in the reference configuration, and a damper."""
        sides = joint.a, joint.b
        if freedom.stiffness:
            name, law = f"{joint.name} spring", balls.spring(*sides)
            self.mb._act(name, joint.acting(name, dict(stiffness=freedom.stiffness), potential=law))
        if freedom.damping:
            name, loss = f"{joint.name} damper", balls.damper(*sides)
            self.mb._act(name, joint.acting(name, dict(viscosity=freedom.damping), dissipation=loss))

    def _rotor(self, freedom: Freedom, joint: Joint) -> None:
        """Add the armature (reflected rotor inertia) as a weightless rotor on the ground, coupled to the joint.

        Its kinetic energy is half the armature times the squared joint rate. For a slide, the rotor turns by one radian
        per metre.
        """
        mb, moment = self.mb, freedom.armature
        name = f"{joint.name} rotor"
        rotor = mb.body(name, mass=moment, inertia=[moment] * 3, position=freedom.at, shape=("shapes",))
        bearing = mb.revolute(f"{name} bearing", mb.ground, rotor, at=freedom.at, axis=freedom.axis)
        bearing.element.look = None  # not visible
        mb.couple(f"{joint.name} armature", (joint, 1.0), (bearing, -1.0), what="armature")

    # -- equality constraints and closures ----------------------------------------------------------------------------
    def _measured(self, name: str, node: Any, what: str) -> Joint:
        if name in self.unmeasured:
            raise node.error(f"{what} on '{name}' is not supported: the joint has no single coordinate")
        return self.joints[name]

    def _relate(self, relation: Relation) -> None:
        follower = self._measured(relation.follower, relation.node, "a coupling")
        name = self._name(relation.name, "coupling")
        if relation.leader is None:
            self.mb.drive(follower, name=name, **{"angle" if follower.kind.angle else "position": relation.offset})
            return
        leader = self._measured(relation.leader, relation.node, "a coupling")
        try:
            coupling = self.mb.couple(name, (leader, relation.ratio), (follower, -1.0), what="coupling")
        except InputError as error:
            raise relation.node.error(str(error)) from None
        # the initial position of the follower satisfies the coupling
        self.mb._targets.append(Target(coupling, "phase", np.array([0.0 - relation.offset]), True))

    def _close(self, closure: Closure) -> None:
        """Add a loop closure, which need not be satisfied in the reference configuration."""
        first, second = (self.groups[name].part for name in (closure.first, closure.second))
        for end in (closure.first, closure.second):
            if self.groups[end].waiting:
                raise closure.node.error(f"'{end}' has no mass: it cannot be constrained")
        assert first is not None and second is not None
        if first is second:
            raise closure.node.error("it connects a body to itself")
        here, there = self.poses[closure.first] @ closure.at, self.poses[closure.second] @ closure.to
        # reference configuration in which the closure is satisfied
        move = here @ there.inverse
        virtual = second
        if second.element is not None:
            virtual = dataclasses.replace(
                second, position=move.point(second.position), rotation=move.rotation @ second.rotation, markers={}
            )
        elif first.element is not None:
            first = dataclasses.replace(
                first,
                position=move.inverse.point(first.position),
                rotation=move.inverse.rotation @ first.rotation,
                markers={},
            )
        where = here.position if second.element is not None else there.position
        axes = here.rotation if second.element is not None else there.rotation
        name, what = self._name(closure.name, "closure"), "fixed" if closure.rigid else "spherical"
        joint = Joint(name, what, SPACE[what], first, virtual, (where, where), _orthonormal(axes))
        joint.first, joint.second = (self.groups[end].part or self.mb.ground for end in (closure.first, closure.second))
        self.mb.connections[name] = joint

    def _start(self) -> None:
        """Move bodies to poses that satisfy the couplings; joint coordinates are zero where they are in the file."""
        started = self.robot.started()
        for group in dict.fromkeys(self.groups.values()):
            if group.root is not None and group.part is not None and not group.waiting:
                part, name = group.part, group.root.name
                move = started[name] @ self.poses[name].inverse
                part.position, part.rotation = move.point(part.position), _orthonormal(move.rotation @ part.rotation)

    def _name(self, wanted: str, kind: str) -> str:
        """Return a unique name without dots; add a note if it differs from the name in the file."""
        mb = self.mb
        base = wanted.replace(".", "_") or kind
        taken = {"ground", *mb.bodies, *mb.connections, *mb.couplings, *mb._acting, *mb.gauges}
        found, number = base, 2
        while found in taken:
            found, number = (f"{base} {kind}", number) if found == base else (f"{base} {kind} {number}", number + 1)
        if wanted and found != wanted:
            self.robot.notes.append(f"the {kind} '{wanted}' is called '{found}' in the model")
        return found


def _link(group: _Group) -> Link:
    assert group.root is not None
    return group.root


def _orthonormal(R: np.ndarray) -> np.ndarray:
    """Return the nearest rotation matrix, which removes the round-off of products of rotations."""
    u, _, vh = np.linalg.svd(R)
    return np.asarray(u @ vh)


def _few(names: list[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
