"""MJCF compiler settings, included files, default classes, and orientation attributes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from livens.errors import InputError, suggestion
from livens.multibody.imports.mjcf_attach import attach_models
from livens.multibody.imports.orientations import align_z, from_axis_angle, from_euler, from_quaternion
from livens.multibody.imports.robot_description import RigidTransform
from livens.multibody.imports.xml import TrackedDocument, XmlNode, read
from livens.validation import check_readable_path

_MAX_FILES = 100
#: Tags of actuators; all of them set attributes of one default actuator.
ACTUATORS = ("general", "motor", "position", "velocity", "damper", "intvelocity", "cylinder", "muscle", "adhesion")


def read_with_includes(path: Path, strict: bool) -> XmlNode:
    """Read the root element of a file with all included files and attached models inserted."""
    root = read_root(path, None, strict)
    attach_models(root, path.parent)
    return root


def read_root(path: Path, document: TrackedDocument | None, strict: bool = True) -> XmlNode:
    """Read the root element of a file with all included files inserted; `document` is that of an attaching model."""
    root = read(path, document, strict=strict)
    if root.tag != "mujoco":
        raise root.error("not an MJCF file: its root element is not <mujoco>")
    _include(root, root.document, path.parent, {path.resolve()})
    return root


def _include(node: XmlNode, document: TrackedDocument, folder: Path, included: set[Path]) -> None:
    children: list[XmlNode] = []
    for child in node.children:
        if child.tag != "include":
            _include(child, document, folder, included)
            children.append(child)
            continue
        file = folder / child.text("file")
        if file.resolve() in included or len(included) >= _MAX_FILES:
            raise child.error(f"{file.name} is included a second time, or there are too many files")
        try:
            inner = read(check_readable_path(file), document)
        except InputError as error:
            raise child.error(str(error)) from None
        included.add(file.resolve())
        _include(inner, document, folder, included)
        children += inner.children
    node.children = children


class Settings:
    """Compiler settings and default classes."""

    def __init__(self, root: XmlNode) -> None:
        self.root = root
        self._compilers = list(root.children_with_tag("compiler"))
        self.degrees = self.compiler_setting("angle", "degree", ("degree", "radian")) == "degree"
        self.sequence = self.compiler_setting("eulerseq", "xyz", None)
        if len(self.sequence) != 3 or set(self.sequence.lower()) - set("xyz"):
            raise root.error(f"eulerseq must be three letters of xyzXYZ, got '{self.sequence[:20]}'")
        self.autolimits = self.compiler_setting("autolimits", "true", ("true", "false")) == "true"
        self.from_geoms = self.compiler_setting("inertiafromgeom", "auto", ("auto", "true", "false"))
        self.compiler_setting("coordinate", "local", ("local",))
        self.balances_inertia = self.compiler_setting("balanceinertia", "false", ("true", "false")) == "true"
        for name in ("boundmass", "boundinertia"):
            for node in self._compilers:
                if node.number(name, 0.0):
                    raise node.error(f"{name} is not supported: set the masses of the bodies explicitly")
        self.total_mass = max([node.number("settotalmass", -1.0) for node in self._compilers], default=-1.0)
        self.groups = next(
            (node.numbers("inertiagrouprange", 2) for node in self._compilers if node.get("inertiagrouprange")), None
        )
        folders = [self.compiler_setting(name, "", None) for name in ("meshdir", "assetdir")]
        self.mesh_folder = folders[0] or folders[1]
        self.strip_path = self.compiler_setting("strippath", "false", ("true", "false")) == "true"
        for node in self._compilers:  # no effect on the motion
            for name in ("fusestatic", "discardvisual", "usethread", "alignfree", "texturedir", "exactmeshinertia"):
                node.get(name)
        self._classes: dict[str, list[XmlNode]] = {}
        for node in root.children_with_tag("default"):
            self._default(node, [], "main")

    def compiler_setting(self, name: str, default: str, allowed: Sequence[str] | None) -> str:
        """Return a compiler setting; the last one is valid."""
        value = default
        for node in self._compilers:
            if node.get(name) is not None:
                value = node.text(name) if allowed is None else node.choice(name, default, allowed)
        return value

    # -- default classes ----------------------------------------------------------------------------------------------
    def _default(self, node: XmlNode, outer: list[XmlNode], default_name: str) -> None:
        name = node.text("class", default_name)
        if not name:
            raise node.error("a nested default class needs a name")
        chain = self._classes.setdefault(name, [])
        chain[:0] = [node]
        chain += [outer_node for outer_node in outer if outer_node not in chain]
        for inner in node.children_with_tag("default"):
            self._default(inner, chain, "")

    def apply_defaults(self, node: XmlNode, childclass: str | None) -> XmlNode:
        """Attach the default class to a node: its own, that of the enclosing bodies, or the main class."""
        class_name = node.get("class") or childclass or "main"
        if class_name not in self._classes and class_name != "main":
            raise node.error(f"there is no default class '{class_name}'{suggestion(class_name, self._classes)}")
        tags = ACTUATORS if node.tag in ACTUATORS else (node.tag,)  # all actuators have common defaults
        chain = self._classes.get(class_name, [])
        node.defaults = tuple(child for owner in chain for child in owner.children_with_tag(*tags))
        return node

    # -- poses --------------------------------------------------------------------------------------------------------
    def angle(self, value: float) -> float:
        return float(np.deg2rad(value)) if self.degrees else float(value)

    def pose(self, node: XmlNode) -> RigidTransform:
        return RigidTransform(node.numbers("pos", 3, np.zeros(3)), self.rotation(node))

    def rotation(self, node: XmlNode) -> np.ndarray:
        """Return the rotation from one of the five orientation attributes."""
        values = {
            name: node.numbers(name, count)
            for name, count in dict(quat=4, axisangle=4, xyaxes=6, zaxis=3, euler=3).items()
        }
        specified = {name: value for name, value in values.items() if value is not None}
        explicit = [name for name in specified if name in node.attributes]
        if len(explicit or specified) > 1:
            raise node.error(f"its orientation is specified in several ways: {', '.join(explicit or specified)}")
        if not specified:
            return np.eye(3)
        name = (explicit or list(specified))[0]
        value = specified[name]
        if name == "euler":
            return from_euler([self.angle(x) for x in value], self.sequence)
        if not np.linalg.norm(value[:3] if name != "quat" else value) > 1e-10:
            raise node.error(f"{name} must not be zero")
        if name == "quat":
            return from_quaternion(value)
        if name == "axisangle":
            return from_axis_angle(value[:3] / np.linalg.norm(value[:3]), self.angle(value[3]))
        if name == "zaxis":
            return align_z(value / np.linalg.norm(value))
        x = value[:3] / np.linalg.norm(value[:3])
        y = value[3:] - x * (x @ value[3:])
        if not np.linalg.norm(y) > 1e-10:
            raise node.error("xyaxes must be two directions that are not parallel")
        y = y / np.linalg.norm(y)
        return np.column_stack([x, y, np.cross(x, y)])
