"""MJCF equality constraints, actuators and tendons."""

from __future__ import annotations

import numpy as np

from livens.errors import suggestion
from livens.multibody.imports.mjcf_settings import Settings
from livens.multibody.imports.robot import Closure, Pose, Relation, Robot, Servo
from livens.multibody.imports.turns import of_quaternion
from livens.multibody.imports.xml import Node

_STILL = ("motor", "damper", "adhesion")
_REFUSED = ("intvelocity", "cylinder", "muscle", "plugin", "dcmotor", "flex", "flexvert", "flexstrain")


def beside_the_tree(
    root: Node,
    settings: Settings,
    robot: Robot,
    sites: dict[str, tuple[str | None, Pose]],
    references: dict[str, float],
) -> None:
    """Add loop closures, joint equalities and actuators to a robot description, and notes on inactive elements."""
    reader = _Beside(settings, robot, sites, references)
    for section in root.all("equality"):
        reader.equality(section)
    for section in root.all("actuator"):
        reader.actuators(section)
    for section in root.all("tendon"):
        reader.tendons(section)
    for section in root.all("deformable"):
        for node in section.children:
            raise node.error("deformable bodies are not supported")


class _Beside:
    def __init__(
        self,
        settings: Settings,
        robot: Robot,
        sites: dict[str, tuple[str | None, Pose]],
        references: dict[str, float],
    ) -> None:
        self.settings, self.robot, self.sites, self.references = settings, robot, sites, references
        self.poses = robot.poses()
        self.single = {one.name for one in robot.freedoms() if one.kind in ("hinge", "slide")}

    # -- equality -----------------------------------------------------------------------------------------------------
    def equality(self, section: Node) -> None:
        for number, node in enumerate(section.children):
            name = node.get("name") or f"{node.tag} {number + 1}"
            if node.tag not in ("connect", "weld", "joint"):
                raise node.error(f"equality constraints of type '{node.tag}' are not supported")
            list(section.all(node.tag))
            if node.choice("active", "true", ("true", "false")) == "false":
                node.document.known(node)
                self.robot.notes.append(f"the equality '{name}' is inactive and ignored")
            elif node.tag == "joint":
                self._relation(name, node)
            else:
                self._closure(name, node)

    def _relation(self, name: str, node: Node) -> None:
        follower, leader = self._joint(node, "joint1"), node.get("joint2")
        if leader is not None:
            leader = self._joint(node, "joint2")
        coefficients = np.zeros(5)
        given = node.numbers("polycoef", (1, 2, 3, 4, 5), np.array([0.0, 1.0]))
        coefficients[: len(given)] = given
        if len(given) == 1:
            coefficients[1] = 1.0
        if leader is not None and coefficients[2:].any():
            raise node.error('only linear joint equalities are supported: polycoef="a b 0 0 0"')
        if follower == leader:
            raise node.error("a joint cannot be coupled to itself")
        ratio = float(coefficients[1]) if leader is not None else 0.0
        self.robot.relations.append(
            Relation(name, follower, leader if ratio else None, ratio, float(coefficients[0]), node)
        )

    def _closure(self, name: str, node: Node) -> None:
        rigid = node.tag == "weld"
        if node.get("site1") is not None or node.get("site2") is not None:
            ends = [self._site(node, word) for word in ("site1", "site2")]
            (first, at), (second, to) = ends
            self.robot.closures.append(Closure(name, rigid, first, second, at, to, node))
            return
        first, second = self._body(node, "body1"), self._body(node, "body2", "world")
        between = self.poses[first].inverse @ self.poses[second]
        if rigid:
            node.numbers("anchor", 3)  # weights torques against forces in MuJoCo; irrelevant for exact constraints
            given = node.numbers("relpose", 7)
            if given is not None and given[3:].any():
                between = Pose(given[:3], of_quaternion(given[3:]))
            self.robot.closures.append(Closure(name, True, first, second, between, Pose(), node))
            return
        anchor = node.numbers("anchor", 3)
        if anchor is None:
            raise node.error("the attribute 'anchor' is missing")
        at = Pose(anchor, np.eye(3))
        self.robot.closures.append(Closure(name, False, first, second, at, between.inverse @ at, node))

    def _body(self, node: Node, word: str, default: str | None = None) -> str | None:
        name = node.text(word, default)
        if name == "world":
            return None
        if name not in self.robot.links:
            raise node.error(f"there is no body '{name}'{suggestion(name, self.robot.links)}")
        return name

    def _site(self, node: Node, word: str) -> tuple[str | None, Pose]:
        name = node.text(word)
        if name not in self.sites:
            raise node.error(f"there is no site '{name}'{suggestion(name, self.sites)}")
        return self.sites[name]

    def _joint(self, node: Node, word: str) -> str:
        name = node.text(word)
        if name not in self.references:
            raise node.error(f"there is no joint '{name}'{suggestion(name, self.references)}")
        if name not in self.single:
            raise node.error(f"the joint '{name}' has no single coordinate")
        return name

    # -- actuators ----------------------------------------------------------------------------------------------------
    def actuators(self, section: Node) -> None:
        still: list[str] = []
        for number, node in enumerate(section.children):
            list(section.all(node.tag))
            self.settings.behind(node, None)
            name = node.get("name") or f"actuator {number + 1}"
            if node.tag in _REFUSED:
                raise node.error("this type of actuator is not supported")
            for word in ("joint", "jointinparent", "tendon", "site", "refsite", "body", "cranksite", "slidersite"):
                node.get(word)
            stiffness, damping, offset = self._law(node)
            if not (stiffness or damping or offset):
                still.append(name)
                continue
            if node.get("joint") is None:
                raise node.error("an actuator with a bias force is only supported on a joint")
            joint, gear = self._joint(node, "joint"), float(node.numbers("gear", None, np.ones(1))[0])
            if not gear or offset or stiffness < 0 or damping < 0:
                raise node.error("an actuator with a constant bias force, active without control, is not supported")
            # the force is gear (-stiffness gear position - damping gear rate), with the control at zero
            target = -self.references[joint]
            self.robot.servos.append(Servo(name, joint, stiffness * gear**2, damping * gear**2, target, node))
            self.robot.notes.append(f"the actuator '{name}' has the target zero, as its control is zero, see mb.pd")
        if still:
            names = ", ".join(still[:8]) + (f" and {len(still) - 8} more" if len(still) > 8 else "")
            self.robot.notes.append(f"actuators without control apply no force ({names}): add mb.motor to the joints")

    def _law(self, node: Node) -> tuple[float, float, float]:
        """Return stiffness, damping and constant force of an actuator at zero control."""
        if node.tag in _STILL:
            return 0.0, 0.0, 0.0
        if node.tag == "general":
            kind = node.choice("biastype", "none", ("none", "affine", "muscle", "user"))
            if kind == "none":
                return 0.0, 0.0, 0.0
            given = np.zeros(3)
            bias = node.numbers("biasprm", None, np.zeros(3))[:3]
            given[: len(bias)] = bias
            if kind != "affine":
                raise node.error(f"actuators of biastype '{kind}' are not supported")
            return -float(given[1]), -float(given[2]), float(given[0])
        if node.number("timeconst", 0.0) or node.number("dampratio", 0.0):
            raise node.error("timeconst and dampratio are not supported: give kv")
        if node.tag == "velocity":
            return 0.0, node.not_negative("kv", 1.0), 0.0
        if node.tag == "position":
            return node.not_negative("kp", 1.0), node.not_negative("kv", 0.0), 0.0
        raise node.error("this type of actuator is not supported")

    # -- tendons ------------------------------------------------------------------------------------------------------
    def tendons(self, section: Node) -> None:
        for node in section.children:
            list(section.all(node.tag))
            self.settings.behind(node, None)
            for word in ("stiffness", "damping", "frictionloss", "armature"):
                if node.numbers(word, None, np.zeros(1)).any():
                    raise node.error(f"a tendon with {word} is not supported: see mb.cable and mb.couple")
            self.robot.notes.append(f"the tendon '{node.name}' applies no force and is ignored")
            node.document.known(node)
