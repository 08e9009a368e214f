"""MJCF geoms and meshes: inertia and visual shapes."""

from __future__ import annotations

import numpy as np

from livens.errors import InputError
from livens.models import shapes
from livens.models.shapes import Shape
from livens.models.triangles import Triangles, triangles
from livens.multibody.imports import mass as solids
from livens.multibody.imports.files import Files
from livens.multibody.imports.mass import Mass
from livens.multibody.imports.mesh import mass_of
from livens.multibody.imports.mjcf_settings import Settings
from livens.multibody.imports.robot import Pose
from livens.multibody.imports.turns import of_quaternion, to_z
from livens.multibody.imports.xml import Node

_TYPES = ("sphere", "capsule", "cylinder", "box", "ellipsoid", "mesh", "plane", "hfield", "sdf")
_SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3}
#: Visual size of an unbounded plane, in metres.
_FLOOR = 3.0


class Geoms:
    """Reader of geoms with a cache of meshes."""

    def __init__(self, settings: Settings, files: Files, notes: list[str]) -> None:
        self.settings, self.files, self.notes = settings, files, notes
        self._meshes: dict[str, Node] = {}
        self._solids: dict[str, Triangles] = {}
        self._weights: dict[str, Mass] = {}
        for assets in settings.root.all("asset"):
            for node in assets.all("mesh"):
                settings.behind(node, None)
                file = node.get("file")
                name = node.get("name") or (
                    file.replace("\\", "/").rpartition("/")[2].rpartition(".")[0] if file else ""
                )
                if not name or name in self._meshes:
                    raise node.error("a mesh needs a unique name")
                self._meshes[name] = node

    def read(self, node: Node) -> tuple[Mass | None, list[Shape]]:
        """Return inertia and visual shapes of a geom in the frame of its body; the inertia is None without mass."""
        kind = node.choice("type", "sphere", _TYPES)
        mesh = node.get("mesh")
        if kind in ("hfield", "sdf") or (mesh is not None and kind != "mesh"):
            raise node.error("height fields, distance fields and primitives fitted to meshes are not supported")
        if node.choice("shellinertia", "false", ("false", "true")) == "true":
            raise node.error("shellinertia is not supported: add an <inertial> to the body")
        if kind == "mesh":
            pose = self.settings.pose(node)
            solid = self._solid(node, mesh)
            look = [shapes.mesh(pose.position, solid, frame=pose.rotation, name=node.name, trace=None)]
            weight = self._weighed(node, pose, lambda: self._weight(node, mesh or "", solid))
            return weight, look
        if kind == "plane":
            pose, size = self.settings.pose(node), node.numbers("size", (1, 2, 3), np.zeros(3))
            return None, [shapes.ground(pose.position, 2 * float(size[:2].max()) or _FLOOR, pose.rotation, node.name)]
        pose, size = self._extent(node, kind)
        if kind in ("sphere", "box", "ellipsoid"):
            make = {"sphere": lambda: solids.sphere(size[0]), "box": lambda: solids.box(2 * size)}
            unit = make.get(kind, lambda: solids.ellipsoid(size))
        else:
            unit = lambda: (solids.capsule if kind == "capsule" else solids.cylinder)(size[0], 2 * size[1])  # noqa: E731
        return self._weighed(node, pose, unit), _look(kind, pose, size, node.name)

    def _weighed(self, node: Node, pose: Pose, unit: object) -> Mass | None:
        """Return the inertia of a geom, from its mass if specified, otherwise from its density."""
        given, density = node.numbers("mass", 1), node.not_negative("density", 1000.0)
        if given is not None and given[0] < 0:
            raise node.error(f"mass must not be negative, got {given[0]:g}")
        groups, group = self.settings.groups, node.number("group", 0.0)
        left_out = groups is not None and not groups[0] <= group <= groups[1]
        if left_out or (given is not None and given[0] == 0) or (given is None and density == 0):
            return None
        one: Mass = unit()  # type: ignore[operator]  # a function without arguments
        if not one.mass > 0:
            raise node.error("it has no volume")
        return one.scaled(density if given is None else given[0] / one.mass).placed(pose.position, pose.rotation)

    def _extent(self, node: Node, kind: str) -> tuple[Pose, np.ndarray]:
        """Return pose and half sizes of a geom; with `fromto`, the length is the distance of the two points."""
        ends = node.numbers("fromto", 6)
        need = _SIZES[kind]
        size = node.numbers("size", None)
        if size is None:
            raise node.error("the attribute 'size' is missing")
        if ends is None:
            pose = self.settings.pose(node)
        else:
            if kind == "sphere":
                raise node.error("a sphere cannot have fromto")
            along = ends[:3] - ends[3:]
            length = float(np.linalg.norm(along))
            if not length > 1e-10:
                raise node.error("the two points of fromto are the same")
            pose = Pose((ends[:3] + ends[3:]) / 2, to_z(along / length))
            size = np.array([size[0], length / 2] if need == 2 else [size[0], size[0], length / 2])
        if len(size) < need or not np.all(size[:need] > 0):
            raise node.error(f"size must be {need} numbers greater than 0 for a {kind}")
        return pose, size[:need]

    # -- meshes -------------------------------------------------------------------------------------------------------
    def _solid(self, node: Node, name: str | None) -> Triangles:
        if name is None or name not in self._meshes:
            raise node.error(f"there is no mesh '{name or ''}' in <asset>")
        if name not in self._solids:
            self._solids[name] = self._loaded(self._meshes[name])
        return self._solids[name]

    def _loaded(self, node: Node) -> Triangles:
        file, vertices, faces = node.get("file"), node.numbers("vertex", None), node.numbers("face", None)
        try:
            if file is not None:
                path = file.replace("\\", "/")
                path = path.rpartition("/")[2] if self.settings.strip else path
                solid = self.files.mesh(f"{self.settings.meshes}/{path}" if self.settings.meshes else path)
            elif vertices is None or faces is None or len(vertices) % 3 or len(faces) % 3:
                raise InputError("a mesh needs a file, or vertices and faces in threes")
            else:
                rows = np.asarray(faces, dtype=np.int64).reshape(-1, 3)
                solid = triangles(f"the mesh '{node.name}'", vertices.reshape(-1, 3), rows)
            scale = node.numbers("scale", 3, np.ones(3))
            if not np.all(scale != 0):
                raise InputError("the scale of a mesh must not be zero")
            solid = solid.scaled(scale)
        except InputError as error:
            raise node.error(str(error)) from None
        # MuJoCo uses this point and these axes as the frame of the mesh
        at, turn = node.numbers("refpos", 3, np.zeros(3)), node.numbers("refquat", 4)
        R = np.eye(3) if turn is None else of_quaternion(turn)
        return Triangles((solid.vertices - at) @ R, solid.faces, solid.name)

    def _weight(self, node: Node, name: str, solid: Triangles) -> Mass:
        asset = self._meshes[name]
        how = asset.choice("inertia", "legacy", ("legacy", "exact", "convex", "shell"))
        if how in ("convex", "shell"):
            raise asset.error(f"the mesh inertia '{how}' is not supported: use inertia=\"exact\"")
        if name not in self._weights:
            try:
                found, starlike = mass_of(solid)
            except InputError as error:
                raise node.error(str(error)) from None
            if how == "legacy" and not starlike:
                self.notes.append(
                    f"the mesh '{name}' is not star-shaped about its centre: livens uses its exact volume, MuJoCo "
                    'overestimates it (inertia="legacy")'
                )
            self._weights[name] = found
        return self._weights[name]


def _look(kind: str, pose: Pose, size: np.ndarray, name: str) -> list[Shape]:
    at, R = pose.position, pose.rotation
    if kind == "sphere":
        return [shapes.sphere(at, float(size[0]), R, name, None)]
    if kind == "box":
        return [shapes.box(at, (2 * size).tolist(), R, name, None)]
    if kind == "ellipsoid":
        return [shapes.mesh(at, _ball().scaled(size), frame=R, name=name, trace=None)]
    half = R[:, 2] * size[1]
    barrel = shapes.cylinder(at - half, at + half, float(size[0]), name)
    if kind == "cylinder":
        return [barrel]
    return [barrel, *(shapes.sphere(end, float(size[0]), R, name, None) for end in (at - half, at + half))]


def _ball(rings: int = 12, around: int = 20) -> Triangles:
    """Return a triangle mesh of the unit sphere."""
    height = np.linspace(0, np.pi, rings + 1)[1:-1]
    turn = np.linspace(0, 2 * np.pi, around, endpoint=False)
    body = [[np.sin(a) * np.cos(b), np.sin(a) * np.sin(b), np.cos(a)] for a in height for b in turn]
    last = len(body) + 1
    faces = [(0, 1 + j, 1 + (j + 1) % around) for j in range(around)]
    for i in range(rings - 2):
        one, two = 1 + i * around, 1 + (i + 1) * around
        for j in range(around):
            k = (j + 1) % around
            faces += [(one + j, two + j, two + k), (one + j, two + k, one + k)]
    faces += [(last, last - around + (j + 1) % around, last - around + j) for j in range(around)]
    return triangles("a ball", [[0, 0, 1], *body, [0, 0, -1]], faces)
