"""MJCF compiler settings, included files, default classes, and orientation attributes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from livens.errors import InputError, suggestion
from livens.multibody.imports.robot import Pose
from livens.multibody.imports.turns import about, of_euler, of_quaternion, to_z
from livens.multibody.imports.xml import Document, Node, read

_MOST_FILES = 100
_ACTUATORS = ("general", "motor", "position", "velocity", "damper", "intvelocity", "cylinder", "muscle", "adhesion")


def whole(path: Path) -> Node:
    """Read the root element of a file with all included files inserted."""
    root = read(path)
    if root.tag != "mujoco":
        raise root.error("not an MJCF file: its root element is not <mujoco>")
    _include(root, root.document, path.parent, {path.resolve()})
    return root


def _include(node: Node, document: Document, folder: Path, seen: set[Path]) -> None:
    children: list[Node] = []
    for child in node.children:
        if child.tag != "include":
            _include(child, document, folder, seen)
            children.append(child)
            continue
        file = folder / child.text("file")
        if file.resolve() in seen or len(seen) >= _MOST_FILES:
            raise child.error(f"{file.name} is included a second time, or there are too many files")
        try:
            inner = read(file, document)
        except InputError as error:
            raise child.error(str(error)) from None
        seen.add(file.resolve())
        _include(inner, document, folder, seen)
        children += inner.children
    node.children = children


class Settings:
    """Compiler settings and default classes."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self._compilers = list(root.all("compiler"))
        self.degrees = self.word("angle", "degree", ("degree", "radian")) == "degree"
        self.sequence = self.word("eulerseq", "xyz", None)
        if len(self.sequence) != 3 or set(self.sequence.lower()) - set("xyz"):
            raise root.error(f"eulerseq must be three letters of xyzXYZ, got '{self.sequence[:20]}'")
        self.autolimits = self.word("autolimits", "true", ("true", "false")) == "true"
        self.from_geoms = self.word("inertiafromgeom", "auto", ("auto", "true", "false"))
        self.word("coordinate", "local", ("local",))
        self.word("balanceinertia", "false", ("false",))
        for name in ("boundmass", "boundinertia"):
            for node in self._compilers:
                if node.number(name, 0.0):
                    raise node.error(f"{name} is not supported: set the masses of the bodies explicitly")
        self.total = max([node.number("settotalmass", -1.0) for node in self._compilers], default=-1.0)
        self.groups = next(
            (node.numbers("inertiagrouprange", 2) for node in self._compilers if node.get("inertiagrouprange")), None
        )
        folders = [self.word(name, "", None) for name in ("meshdir", "assetdir")]
        self.meshes = folders[0] or folders[1]
        self.strip = self.word("strippath", "false", ("true", "false")) == "true"
        for node in self._compilers:  # no effect on the motion
            for name in ("fusestatic", "discardvisual", "usethread", "alignfree", "texturedir", "exactmeshinertia"):
                node.get(name)
        self._classes: dict[str, list[Node]] = {}
        for node in root.all("default"):
            self._default(node, [], "main")

    def word(self, name: str, default: str, allowed: Sequence[str] | None) -> str:
        """Return a compiler setting; the last one is valid."""
        found = default
        for node in self._compilers:
            if node.get(name) is not None:
                found = node.text(name) if allowed is None else node.choice(name, default, allowed)
        return found

    # -- default classes ----------------------------------------------------------------------------------------------
    def _default(self, node: Node, behind: list[Node], usual: str) -> None:
        name = node.text("class", usual)
        if not name:
            raise node.error("a nested default class needs a name")
        chain = self._classes.setdefault(name, [])
        chain[:0] = [node]
        chain += [one for one in behind if one not in chain]
        for inner in node.all("default"):
            self._default(inner, chain, "")

    def behind(self, node: Node, childclass: str | None) -> Node:
        """Attach the default class to a node: its own, that of the enclosing bodies, or the main class."""
        wanted = node.get("class") or childclass or "main"
        if wanted not in self._classes and wanted != "main":
            raise node.error(f"there is no default class '{wanted}'{suggestion(wanted, self._classes)}")
        tags = (node.tag, *(tag for tag in _ACTUATORS if tag != node.tag)) if node.tag in _ACTUATORS else (node.tag,)
        chain = self._classes.get(wanted, [])
        node.behind = tuple(child for tag in tags for owner in chain for child in owner.all(tag))
        return node

    # -- poses --------------------------------------------------------------------------------------------------------
    def angle(self, value: float) -> float:
        return float(np.deg2rad(value)) if self.degrees else float(value)

    def pose(self, node: Node) -> Pose:
        return Pose(node.numbers("pos", 3, np.zeros(3)), self.rotation(node))

    def rotation(self, node: Node) -> np.ndarray:
        """Return the rotation from one of the five orientation attributes."""
        given = {
            name: node.numbers(name, count)
            for name, count in dict(quat=4, axisangle=4, xyaxes=6, zaxis=3, euler=3).items()
        }
        said = {name: value for name, value in given.items() if value is not None}
        own = [name for name in said if name in node.attributes]
        if len(own or said) > 1:
            raise node.error(f"its orientation is specified in several ways: {', '.join(own or said)}")
        if not said:
            return np.eye(3)
        name = (own or list(said))[0]
        value = said[name]
        if name == "euler":
            return of_euler([self.angle(x) for x in value], self.sequence)
        if not np.linalg.norm(value[:3] if name != "quat" else value) > 1e-10:
            raise node.error(f"{name} must not be zero")
        if name == "quat":
            return of_quaternion(value)
        if name == "axisangle":
            return about(value[:3] / np.linalg.norm(value[:3]), self.angle(value[3]))
        if name == "zaxis":
            return to_z(value / np.linalg.norm(value))
        x = value[:3] / np.linalg.norm(value[:3])
        y = value[3:] - x * (x @ value[3:])
        if not np.linalg.norm(y) > 1e-10:
            raise node.error("xyaxes must be two directions that are not parallel")
        y = y / np.linalg.norm(y)
        return np.column_stack([x, y, np.cross(x, y)])
