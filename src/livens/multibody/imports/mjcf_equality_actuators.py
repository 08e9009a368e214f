"""MJCF equality constraints, actuators and tendons."""

from __future__ import annotations

import numpy as np

from livens.errors import suggestion
from livens.multibody.imports.mjcf_defaults import Settings
from livens.multibody.imports.orientations import from_quaternion
from livens.multibody.imports.robot_description import (
    JointEquality,
    LoopClosure,
    PositionActuator,
    RigidTransform,
    RobotDescription,
    TendonEquality,
)
from livens.multibody.imports.xml import XmlNode

_NO_BIAS = ("motor", "damper", "adhesion")
_UNSUPPORTED = ("intvelocity", "cylinder", "muscle", "plugin", "dcmotor", "flex", "flexvert", "flexstrain")


def read_equality_and_actuators(
    root: XmlNode,
    settings: Settings,
    robot: RobotDescription,
    sites: dict[str, tuple[str | None, RigidTransform]],
    joint_ref: dict[str, float],
    actuators: bool = True,
) -> None:
    """Add loop closures, joint equalities and actuators to a robot description, and notes on inactive elements."""
    reader = _EqualityActuatorReader(settings, robot, sites, joint_ref)
    for section in root.children_with_tag("tendon"):
        reader.fixed_tendon_terms(section)
    for section in root.children_with_tag("equality"):
        reader.equality(section)
    for section in root.children_with_tag("actuator"):
        if actuators:
            reader.actuators(section)
        else:
            section.document.mark_read(section)
            robot.notes.append(f"{len(section.children)} actuators are not imported (actuators=False)")
    for section in root.children_with_tag("tendon"):
        reader.tendons(section)
    for section in root.children_with_tag("deformable"):
        for node in section.children:
            raise node.error("deformable bodies are not supported")


class _EqualityActuatorReader:
    def __init__(
        self,
        settings: Settings,
        robot: RobotDescription,
        sites: dict[str, tuple[str | None, RigidTransform]],
        joint_ref: dict[str, float],
    ) -> None:
        self.settings, self.robot, self.sites, self.joint_ref = settings, robot, sites, joint_ref
        self.poses = robot.poses()
        #: Terms (joint, coefficient) of fixed tendons, by name.
        self.fixed_tendons: dict[str, tuple[tuple[str, float], ...]] = {}
        self.tied_tendons: set[str] = set()
        self.scalar_joints = {dof.name for dof in robot.dofs() if dof.dof_type in ("hinge", "slide")}

    # -- equality -----------------------------------------------------------------------------------------------------
    def equality(self, section: XmlNode) -> None:
        for number, node in enumerate(section.children):
            name = node.get("name") or f"{node.tag} {number + 1}"
            if node.tag not in ("connect", "weld", "joint", "tendon"):
                node.refuse(f"equality constraints of type '{node.tag}' are not supported")
                continue
            list(section.children_with_tag(node.tag))
            if node.choice("active", "true", ("true", "false")) == "false":
                node.document.mark_read(node)
                self.robot.notes.append(f"the equality '{name}' is inactive and ignored")
            elif node.tag == "joint":
                self._read_joint_equality(name, node)
            elif node.tag == "tendon":
                self._read_tendon_equality(name, node)
            else:
                self._read_closure(name, node)

    def _read_joint_equality(self, name: str, node: XmlNode) -> None:
        follower, leader = self._joint(node, "joint1"), node.get("joint2")
        if leader is not None:
            leader = self._joint(node, "joint2")
        coefficients = np.zeros(5)
        polycoef = node.numbers("polycoef", (1, 2, 3, 4, 5), np.array([0.0, 1.0]))
        coefficients[: len(polycoef)] = polycoef
        if len(polycoef) == 1:
            coefficients[1] = 1.0
        if leader is not None and coefficients[2:].any():
            raise node.error('only linear joint equalities are supported: polycoef="a b 0 0 0"')
        if follower == leader:
            raise node.error("a joint cannot be coupled to itself")
        ratio = float(coefficients[1]) if leader is not None else 0.0
        self.robot.equalities.append(
            JointEquality(name, follower, leader if ratio else None, ratio, float(coefficients[0]), node)
        )

    def _read_tendon_equality(self, name: str, node: XmlNode) -> None:
        tendon = node.text("tendon1")
        if tendon not in self.fixed_tendons:
            raise node.error(f"'{tendon}' is not a fixed tendon: only equalities of fixed tendons are supported")
        if node.get("tendon2") is not None:
            raise node.error("equalities of two tendons are not supported")
        self.tied_tendons.add(tendon)
        # the length is that of the reference pose, plus the first coefficient
        polycoef = node.numbers("polycoef", None, np.zeros(1))
        self.robot.tendon_equalities.append(TendonEquality(name, self.fixed_tendons[tendon], float(polycoef[0]), node))

    def _read_closure(self, name: str, node: XmlNode) -> None:
        is_weld = node.tag == "weld"
        if node.get("site1") is not None or node.get("site2") is not None:
            ends = [self._site(node, attribute) for attribute in ("site1", "site2")]
            (body_a, frame_a), (body_b, frame_b) = ends
            self.robot.closures.append(LoopClosure(name, is_weld, body_a, body_b, frame_a, frame_b, node))
            return
        body_a, body_b = self._body(node, "body1"), self._body(node, "body2", "world")
        relative = self.poses[body_a].inverse @ self.poses[body_b]
        if is_weld:
            node.numbers("anchor", 3)  # weights torques against forces in MuJoCo; irrelevant for exact constraints
            relpose = node.numbers("relpose", 7)
            if relpose is not None and relpose[3:].any():
                relative = RigidTransform(relpose[:3], from_quaternion(relpose[3:]))
            self.robot.closures.append(LoopClosure(name, True, body_a, body_b, relative, RigidTransform(), node))
            return
        anchor = node.numbers("anchor", 3)
        if anchor is None:
            raise node.error("the attribute 'anchor' is missing")
        frame_a = RigidTransform(anchor, np.eye(3))
        self.robot.closures.append(LoopClosure(name, False, body_a, body_b, frame_a, relative.inverse @ frame_a, node))

    def _body(self, node: XmlNode, attribute: str, default: str | None = None) -> str | None:
        name = node.text(attribute, default)
        if name == "world":
            return None
        if name not in self.robot.links:
            raise node.error(f"there is no body '{name}'{suggestion(name, self.robot.links)}")
        return name

    def _site(self, node: XmlNode, attribute: str) -> tuple[str | None, RigidTransform]:
        name = node.text(attribute)
        if name not in self.sites:
            raise node.error(f"there is no site '{name}'{suggestion(name, self.sites)}")
        return self.sites[name]

    def _joint(self, node: XmlNode, attribute: str) -> str:
        name = node.text(attribute)
        if name not in self.joint_ref:
            raise node.error(f"there is no joint '{name}'{suggestion(name, self.joint_ref)}")
        if name not in self.scalar_joints:
            raise node.error(f"the joint '{name}' has no single coordinate")
        return name

    # -- actuators ----------------------------------------------------------------------------------------------------
    def actuators(self, section: XmlNode) -> None:
        unbiased: list[str] = []
        for number, node in enumerate(section.children):
            list(section.children_with_tag(node.tag))
            self.settings.apply_defaults(node, None)
            name = node.get("name") or f"actuator {number + 1}"
            if node.tag in _UNSUPPORTED:
                node.refuse("this type of actuator is not supported")
                continue
            for attribute in ("joint", "jointinparent", "tendon", "site", "refsite", "body", "cranksite", "slidersite"):
                node.get(attribute)
            stiffness, damping, offset = self._law(node)
            if not (stiffness or damping or offset):
                unbiased.append(name)
                continue
            if node.get("joint") is None or node.text("joint") not in self.scalar_joints:
                node.refuse("an actuator with a bias force is only supported on a joint with a single coordinate")
                continue
            joint, gear = self._joint(node, "joint"), float(node.numbers("gear", None, np.ones(1))[0])
            if not gear or offset or stiffness < 0 or damping < 0:
                node.refuse("an actuator with a constant bias force, active without control, is not supported")
                continue
            # the force is gear (-stiffness gear position - damping gear rate), with the control at zero
            target = -self.joint_ref[joint]
            self.robot.actuators.append(
                PositionActuator(name, joint, stiffness * gear**2, damping * gear**2, target, node)
            )
            self.robot.notes.append(f"the actuator '{name}' has the target zero, as its control is zero, see mb.pd")
        if unbiased:
            names = ", ".join(unbiased[:8]) + (f" and {len(unbiased) - 8} more" if len(unbiased) > 8 else "")
            self.robot.notes.append(f"actuators without control apply no force ({names}): add mb.motor to the joints")

    def _law(self, node: XmlNode) -> tuple[float, float, float]:
        """Return stiffness, damping and constant force of an actuator at zero control."""
        if node.tag in _NO_BIAS:
            return 0.0, 0.0, 0.0
        if node.tag == "general":
            bias_type = node.choice("biastype", "none", ("none", "affine", "muscle", "user"))
            if bias_type == "none":
                return 0.0, 0.0, 0.0
            coefficients = np.zeros(3)
            bias = node.numbers("biasprm", None, np.zeros(3))[:3]
            coefficients[: len(bias)] = bias
            if bias_type != "affine":
                raise node.error(f"actuators of biastype '{bias_type}' are not supported")
            return -float(coefficients[1]), -float(coefficients[2]), float(coefficients[0])
        if node.number("timeconst", 0.0) or node.number("dampratio", 0.0):
            node.refuse("timeconst and dampratio are not supported: give kv")
        if node.tag == "velocity":
            return 0.0, node.not_negative("kv", 1.0), 0.0
        if node.tag == "position":
            return node.not_negative("kp", 1.0), node.not_negative("kv", 0.0), 0.0
        raise node.error("this type of actuator is not supported")

    def fixed_tendon_terms(self, section: XmlNode) -> None:
        """Read the terms of fixed tendons."""
        for node in section.children_with_tag("fixed"):
            terms = [(self._joint(term, "joint"), term.number("coef", 0.0)) for term in node.children_with_tag("joint")]
            if node.name:
                self.fixed_tendons[node.name] = tuple((joint, weight) for joint, weight in terms if weight)

    # -- tendons ------------------------------------------------------------------------------------------------------
    def tendons(self, section: XmlNode) -> None:
        for node in section.children:
            list(section.children_with_tag(node.tag))
            self.settings.apply_defaults(node, None)
            for attribute in ("stiffness", "damping", "frictionloss", "armature"):
                if node.numbers(attribute, None, np.zeros(1)).any():
                    node.refuse(f"a tendon with {attribute} is not supported: see mb.cable and mb.couple")
            if node.name not in self.tied_tendons:
                self.robot.notes.append(f"the tendon '{node.name}' applies no force and is ignored")
            node.document.mark_read(node)
