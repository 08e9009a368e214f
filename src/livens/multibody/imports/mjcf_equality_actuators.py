"""MJCF equality constraints, actuators and tendons."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Literal

import numpy as np

from livens.errors import suggestion
from livens.multibody.imports.effective_inertia import effective_joint_inertias
from livens.multibody.imports.import_notes import names_of_note
from livens.multibody.imports.mjcf_defaults import Settings
from livens.multibody.imports.orientations import from_quaternion
from livens.multibody.imports.robot_description import (
    Actuator,
    JointEquality,
    LoopClosure,
    RigidTransform,
    RobotDescription,
    TendonEquality,
    TendonForces,
)
from livens.multibody.imports.xml import XmlNode

#: Attributes of the laws of actuators.
_LAW_ATTRIBUTES = (
    "gaintype",
    "gainprm",
    "biastype",
    "biasprm",
    "dyntype",
    "dynprm",
    "kp",
    "kv",
    "dampratio",
    "timeconst",
    "area",
    "diameter",
    "bias",
)
_BIAS_TYPES = ("none", "affine", "muscle", "user")
#: Smallest time constant of a filter in s: that of MuJoCo.
_MIN_TIME_CONSTANT = 1e-15
_GAIN_TYPES = ("fixed", "affine", "muscle", "user")
_UNSUPPORTED = ("muscle", "plugin", "dcmotor", "flex", "flexvert", "flexstrain")


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


class _ActuatorLaw:
    """Law of an actuator: default classes and the element itself set one gain and one affine bias, in this order."""

    def __init__(self) -> None:
        self.gain, self.bias = [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]
        self.unsupported, self.inherits_range, self.damping_ratio = "", 0.0, 0.0
        self.activation_type: Literal["none", "integrator", "filter"] = "none"
        self.time_constant = 1.0
        self._has_bias, self._has_affine_gain = False, False

    def apply(self, node: XmlNode) -> None:
        """Apply the attributes of a node, without its defaults."""
        node_alone = XmlNode(node.tag, node.attributes, node.line, node.document, node.file)
        self.inherits_range = node_alone.number("inheritrange", self.inherits_range)
        if node.tag == "motor":
            self.gain, self.bias = [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]
        elif node.tag in ("position", "intvelocity"):
            kp = node_alone.not_negative("kp", self.gain[0])
            self.damping_ratio = node_alone.not_negative("dampratio", self.damping_ratio)
            self.gain = [kp, 0.0, 0.0]
            self.bias = [0.0, -kp, -node_alone.not_negative("kv", max(-self.bias[2], 0.0))]
            if node.tag == "intvelocity":
                self.activation_type = "integrator"
            elif node_alone.number("timeconst", 0.0):
                self.activation_type, self.time_constant = "filter", node_alone.not_negative("timeconst")
        elif node.tag == "velocity":
            kv = node_alone.not_negative("kv", self.gain[0])
            self.gain, self.bias = [kv, 0.0, 0.0], [0.0, 0.0, -kv]
        elif node.tag == "damper":
            self.gain, self.bias = [0.0, 0.0, -node_alone.not_negative("kv", 1.0)], [0.0, 0.0, 0.0]
        elif node.tag == "cylinder":
            self._apply_cylinder(node_alone)
        elif node.tag == "general":
            self._apply_general(node_alone)

    def _apply_cylinder(self, node: XmlNode) -> None:
        """Apply the attributes of a pneumatic or hydraulic cylinder, whose pressure is the activation."""
        diameter = node.number("diameter", 0.0)
        area = np.pi / 4 * diameter**2 if diameter else node.number("area", 1.0)
        self.gain, self.bias = [float(area), 0.0, 0.0], node.numbers("bias", 3, np.zeros(3)).tolist()
        self.activation_type, self.time_constant = "filter", node.not_negative("timeconst", 1.0)

    def _apply_general(self, node: XmlNode) -> None:
        has_dyntype = node.get("dyntype") is not None
        dynamics = node.choice("dyntype", "none", ("none", "integrator", "filter", "filterexact", "muscle", "user"))
        if dynamics in ("muscle", "user"):
            self.unsupported = f"actuators of dyntype '{dynamics}' are not supported"
        elif has_dyntype:
            self.activation_type = {"none": "none", "integrator": "integrator"}.get(dynamics, "filter")  # type: ignore[assignment]
        self.time_constant = float(node.numbers("dynprm", None, np.array([self.time_constant]))[0])
        gain_type = node.choice("gaintype", "affine" if any(self.gain[1:]) else "fixed", _GAIN_TYPES)
        if gain_type not in ("fixed", "affine"):
            self.unsupported = f"actuators of gaintype '{gain_type}' are not supported"
        gain = [*node.numbers("gainprm", None, np.array(self.gain))[:3].tolist(), 0.0, 0.0][:3]
        self.gain = gain if gain_type == "affine" else [gain[0], 0.0, 0.0]
        bias_type = node.choice("biastype", "affine" if self._has_bias or any(self.bias) else "none", _BIAS_TYPES)
        if bias_type not in ("none", "affine"):
            self.unsupported = f"actuators of biastype '{bias_type}' are not supported"
        self._has_bias = bias_type == "affine"
        values = node.numbers("biasprm", None)
        if values is not None:
            self.bias = [*values[:3].tolist(), 0.0, 0.0, 0.0][:3]
        if not self._has_bias:
            self.bias = [0.0, 0.0, 0.0]


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

    @functools.cached_property
    def effective_inertias(self) -> dict[str, float]:
        return effective_joint_inertias(self.robot)

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
                self.robot.notes.append(f"inactive and ignored: equality '{name}'")
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
        without_joint: list[str] = []
        for number, node in enumerate(section.children):
            list(section.children_with_tag(node.tag))
            self.settings.apply_defaults(node, None)
            name = node.get("name") or f"actuator {number + 1}"
            if node.tag in _UNSUPPORTED:
                node.refuse("this type of actuator is not supported")
                continue
            for attribute in ("joint", "jointinparent", "tendon", "site", "refsite", "body", "cranksite", "slidersite"):
                node.get(attribute)
            actuator = self._actuator(name, node)
            if actuator is not None:
                self.robot.actuators.append(actuator)
            else:
                without_joint.append(name)
        self._apply_joint_force_ranges()
        if without_joint:
            self.robot.notes.append(
                f"actuators that do not act in a joint are not imported ({names_of_note(without_joint)})"
            )

    def _apply_joint_force_ranges(self) -> None:
        """Clamp the forces of actuators to the `actuatorfrcrange` of their joints."""
        for dof in self.robot.dofs():
            if dof.dof_type not in ("hinge", "slide"):
                continue
            ends = self._range(dof.node, "actuatorfrcrange", "actuatorfrclimited")
            acting = [i for i, actuator in enumerate(self.robot.actuators) if actuator.joint == dof.name]
            if ends is None or not acting:
                continue
            if len(acting) > 1:
                self.robot.notes.append(f"force ranges of joints with several actuators are ignored: '{dof.name}'")
                continue
            actuator = self.robot.actuators[acting[0]]
            lower, upper = sorted(end / actuator.gear for end in ends) if actuator.gear else (-np.inf, np.inf)
            if actuator.force_range is not None:
                lower, upper = (float(np.clip(end, *actuator.force_range)) for end in (lower, upper))
            self.robot.actuators[acting[0]] = replace(actuator, force_range=(lower, upper))

    def _actuator(self, name: str, node: XmlNode) -> Actuator | None:
        """Return the actuator of a joint; None without joint, if it applies no force at zero control."""
        law = _ActuatorLaw()
        for source in (*reversed(node.defaults), node):  # outermost default class first
            law.apply(source)
        for attribute in (
            *_LAW_ATTRIBUTES,
            "ctrllimited",
            "forcelimited",
            "inheritrange",
            "actlimited",
            "actrange",
            "actearly",
        ):
            node.get(attribute)
        if law.unsupported:
            node.refuse(law.unsupported)
        limited = {
            attribute: self._range(node, f"{attribute}range", f"{attribute}limited")
            for attribute in ("ctrl", "force", "act")
        }
        joint = node.get("joint") or node.get("jointinparent")
        terms = self.fixed_tendons.get(node.get("tendon") or "", ())
        if (joint is None or joint not in self.scalar_joints) and not terms:
            control = 0.0 if limited["ctrl"] is None else float(np.clip(0.0, *limited["ctrl"]))
            if any(law.bias) or law.gain[0] * control:
                node.refuse("an actuator that acts without control is only supported on a joint with one coordinate")
            return None
        gear = float(node.numbers("gear", None, np.ones(1))[0])
        if terms:
            joint = ""
            if law.damping_ratio or law.inherits_range:
                node.refuse("dampratio and inheritrange of an actuator on a tendon are not supported")
        assert joint is not None
        inherited = "act" if law.activation_type == "integrator" else "ctrl"
        if law.inherits_range and limited[inherited] is None and joint:
            ends = next((dof.range for dof in self.robot.dofs() if dof.name == joint), None)
            if ends is not None:
                offset = self.joint_ref[joint]
                middle, radius = (ends[0] + ends[1]) / 2 + offset, (ends[1] - ends[0]) / 2 * law.inherits_range
                limited[inherited] = middle - radius, middle + radius
        if law.damping_ratio and joint:
            inertia = self.effective_inertias[joint] / gear**2
            law.bias[2] = -2 * law.damping_ratio * float(np.sqrt(-law.bias[1] * inertia))
        gain, bias = (law.gain[0], law.gain[1], law.gain[2]), (law.bias[0], law.bias[1], law.bias[2])
        ranges = limited["ctrl"], limited["force"]
        activation_type, time_constant = law.activation_type, max(law.time_constant, _MIN_TIME_CONSTANT)
        offset = self._reference_length(terms) if terms else self.joint_ref[joint]
        state_range = limited["act"] if activation_type != "none" else None
        return Actuator(
            name, joint, gain, bias, gear, offset, *ranges, node, terms, activation_type, time_constant, state_range
        )

    def _reference_length(self, terms: tuple[tuple[str, float], ...]) -> float:
        """Return the length of a fixed tendon in the reference pose."""
        return float(sum(weight * self.joint_ref[joint] for joint, weight in terms))

    def _range(self, node: XmlNode, name: str, switch: str) -> tuple[float, float] | None:
        """Return the limits of control or force, or None."""
        ends, limited = node.numbers(name, 2), node.choice(switch, "auto", ("auto", "true", "false"))
        if ends is None or limited == "false" or (limited == "auto" and not self.settings.autolimits) or not ends.any():
            return None
        if not ends[0] < ends[1]:
            raise node.error(f"{name} must be two numbers, the lower first, got {ends[0]:g} and {ends[1]:g}")
        return float(ends[0]), float(ends[1])

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
            names = ("stiffness", "damping", "armature", "frictionloss")
            values = {name: node.numbers(name, None, np.zeros(1)) for name in names}
            acts = any(value.any() for value in values.values())
            limits, limited = node.numbers("range", 2), node.choice("limited", "auto", ("auto", "true", "false"))
            has_limits = limits is not None and limited != "false" and limits.any()
            has_limits = has_limits and (limited == "true" or self.settings.autolimits)
            if node.tag == "fixed" and node.name in self.fixed_tendons and (acts or has_limits):
                self._read_tendon_forces(node, values, limits if has_limits else None)
            else:
                for name in names:
                    if values[name].any():
                        node.refuse(f"a tendon with {name} is not supported: see mb.cable and mb.couple")
                if has_limits:
                    self.robot.notes.append(f"limits of length are ignored: tendon '{node.name}'")
                if node.name not in self.tied_tendons and not any(
                    actuator.terms is self.fixed_tendons.get(node.name) for actuator in self.robot.actuators
                ):
                    self.robot.notes.append(f"without force and ignored: tendon '{node.name}'")
            node.document.mark_read(node)

    def _read_tendon_forces(self, node: XmlNode, values: dict[str, np.ndarray], limits: np.ndarray | None) -> None:
        """Read spring, damper, armature, friction and limits of a fixed tendon."""
        if any(values[name][1:].any() for name in ("stiffness", "damping")):
            node.refuse("polynomials of stiffness or damping of a tendon are not supported")
        numbers = {name: float(value[0]) for name, value in values.items()}
        for name, value in numbers.items():
            if value < 0:
                raise node.error(f"{name} must not be negative, got {value:g}")
        terms = self.fixed_tendons[node.name]
        reference = self._reference_length(terms)
        springs = node.numbers("springlength", (1, 2), np.array([-1.0]))
        if springs[0] == -1:  # the length where the springs of the joints are relaxed
            joint_rest = {dof.name: dof.rest for dof in self.robot.dofs()}
            rest = (sum(weight * joint_rest[joint] for joint, weight in terms),) * 2
        else:
            rest = float(springs[0]) - reference, float(springs[-1]) - reference
        ends = None if limits is None else (float(limits[0]) - reference, float(limits[1]) - reference)
        forces = numbers["stiffness"], rest, numbers["damping"], numbers["armature"], numbers["frictionloss"]
        self.robot.tendon_forces.append(TendonForces(node.name, terms, *forces, ends, node))
