"""MJCF geoms and meshes: inertia and visual shapes."""

from __future__ import annotations

import numpy as np

from livens.errors import InputError
from livens.multibody.imports import link_inertia as solids
from livens.multibody.imports.collision_geometry import CollisionGeometry, read_mjcf_collision
from livens.multibody.imports.link_inertia import LinkInertia
from livens.multibody.imports.mesh_files import MeshFiles
from livens.multibody.imports.mesh_inertia import mesh_inertia
from livens.multibody.imports.mjcf_defaults import Settings
from livens.multibody.imports.orientations import align_z, from_quaternion
from livens.multibody.imports.robot_description import Appearance, RigidTransform
from livens.multibody.imports.xml import XmlNode
from livens.scene import shapes
from livens.scene.mesh import TriangleMesh, make_mesh
from livens.scene.shapes import Shape

_TYPES = ("sphere", "capsule", "cylinder", "box", "ellipsoid", "mesh", "plane", "hfield", "sdf")
_SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3}
#: Visual size of an unbounded plane, in metres.
_FLOOR_SIZE = 3.0
#: Last group of geoms that MuJoCo displays by default; files keep collision geometry in later groups.
_LAST_DISPLAYED_GROUP = 2


class Geoms:
    """Reader of geoms with a cache of meshes."""

    def __init__(self, settings: Settings, files: MeshFiles, notes: list[str]) -> None:
        self.settings, self.files, self.notes = settings, files, notes
        self._meshes: dict[str, XmlNode] = {}
        self._loaded_meshes: dict[str, TriangleMesh] = {}
        self._mesh_inertias: dict[str, LinkInertia] = {}
        self._materials: dict[str, XmlNode] = {}
        for assets in settings.root.children_with_tag("asset"):
            for node in assets.children_with_tag("material"):
                self._materials[node.name] = settings.apply_defaults(node, None)
            for node in assets.children_with_tag("mesh"):
                settings.apply_defaults(node, None)
                file = node.get("file")
                name = node.get("name") or (
                    file.replace("\\", "/").rpartition("/")[2].rpartition(".")[0] if file else ""
                )
                if not name or name in self._meshes:
                    raise node.error("a mesh needs a unique name")
                self._meshes[name] = node

    def read_geom(self, node: XmlNode) -> tuple[LinkInertia | None, list[Shape]]:
        """Return inertia and visual shapes of a geom in the frame of its body; the inertia is None without mass."""
        geom_type = node.choice("type", "sphere", _TYPES)
        mesh = node.get("mesh")
        if geom_type in ("hfield", "sdf"):  # MuJoCo gives neither of them a mass
            self.notes.append(f"the {geom_type} '{node.name}' is not drawn, and bodies do not collide with it")
            node.document.mark_read(node)
            return None, []
        if mesh is not None and geom_type != "mesh":
            raise node.error("primitives fitted to meshes are not supported")
        if node.choice("shellinertia", "false", ("false", "true")) == "true":
            raise node.error("shellinertia is not supported: add an <inertial> to the body")
        if geom_type == "mesh":
            pose = self.settings.pose(node)
            solid = self._mesh(node, mesh)
            visuals = [shapes.mesh(pose.position, solid, frame=pose.rotation, name=node.name, trace=None)]
            inertia = self._geom_inertia(node, pose, lambda: self._mesh_inertia(node, mesh or "", solid))
            return inertia, visuals
        if geom_type == "plane":
            pose, size = self.settings.pose(node), node.numbers("size", (1, 2, 3), np.zeros(3))
            return None, [
                shapes.ground(pose.position, 2 * float(size[:2].max()) or _FLOOR_SIZE, pose.rotation, node.name)
            ]
        pose, size = self._pose_and_size(node, geom_type)
        if geom_type in ("sphere", "box", "ellipsoid"):
            constructors = {"sphere": lambda: solids.sphere(size[0]), "box": lambda: solids.box(2 * size)}
            unit = constructors.get(geom_type, lambda: solids.ellipsoid(size))
        else:
            unit = lambda: (solids.capsule if geom_type == "capsule" else solids.cylinder)(size[0], 2 * size[1])  # noqa: E731
        return self._geom_inertia(node, pose, unit), _visuals(geom_type, pose, size, node.name)

    def appearance(self, node: XmlNode) -> Appearance:
        """Return the appearance of a geom: its own colour, or that of its material."""
        is_displayed = node.number("group", 0.0) <= _LAST_DISPLAYED_GROUP
        material = self._materials.get(node.text("material", ""))
        for source in (node, material):
            if source is not None:
                try:
                    rgba = source.numbers("rgba", 4)
                except InputError as error:  # a colour does not affect the motion
                    self.notes.append(f"a colour is not used: {error}")
                    continue
                if rgba is not None:
                    return Appearance.of(rgba, is_displayed)
        return Appearance(None, is_displayed)

    def read_collision(self, node: XmlNode, pose: RigidTransform) -> list[CollisionGeometry]:
        """Return the collision geometry of a geom, with the pose of its frame in the body."""
        geom_type, size, points = node.choice("type", "sphere", _TYPES), np.zeros(0), np.zeros((0, 3))
        if geom_type in ("hfield", "sdf"):
            node.refuse(f"contact with a {geom_type} is not supported")
            return []
        if geom_type in ("mesh", "plane"):
            local_pose = self.settings.pose(node)
            if geom_type == "mesh":
                points = self._mesh(node, node.get("mesh")).vertices
        else:
            local_pose, size = self._pose_and_size(node, geom_type)
        return [read_mjcf_collision(node, pose @ local_pose, geom_type, size, points)]

    def _geom_inertia(self, node: XmlNode, pose: RigidTransform, unit: object) -> LinkInertia | None:
        """Return the inertia of a geom, from its mass if specified, otherwise from its density."""
        mass, density = node.numbers("mass", 1), node.not_negative("density", 1000.0)
        if mass is not None and mass[0] < 0:
            raise node.error(f"mass must not be negative, got {mass[0]:g}")
        groups, group = self.settings.groups, node.number("group", 0.0)
        is_excluded = groups is not None and not groups[0] <= group <= groups[1]
        if is_excluded or (mass is not None and mass[0] == 0) or (mass is None and density == 0):
            return None
        inertia: LinkInertia = unit()  # type: ignore[operator]  # a function without arguments
        if not inertia.mass > 0:
            raise node.error("it has no volume")
        return inertia.scaled(density if mass is None else mass[0] / inertia.mass).transformed(
            pose.position, pose.rotation
        )

    def _pose_and_size(self, node: XmlNode, geom_type: str) -> tuple[RigidTransform, np.ndarray]:
        """Return pose and half sizes of a geom; with `fromto`, the length is the distance of the two points."""
        ends = node.numbers("fromto", 6)
        n_sizes = _SIZES[geom_type]
        size = node.numbers("size", None)
        if size is None:
            raise node.error("the attribute 'size' is missing")
        if ends is None:
            pose = self.settings.pose(node)
        else:
            if geom_type == "sphere":
                raise node.error("a sphere cannot have fromto")
            axis = ends[:3] - ends[3:]
            length = float(np.linalg.norm(axis))
            if not length > 1e-10:
                raise node.error("the two points of fromto are the same")
            pose = RigidTransform((ends[:3] + ends[3:]) / 2, align_z(axis / length))
            size = np.array([size[0], length / 2] if n_sizes == 2 else [size[0], size[0], length / 2])
        if len(size) < n_sizes or not np.all(size[:n_sizes] > 0):
            raise node.error(f"size must be {n_sizes} numbers greater than 0 for a {geom_type}")
        return pose, size[:n_sizes]

    # -- meshes -------------------------------------------------------------------------------------------------------
    def _mesh(self, node: XmlNode, name: str | None) -> TriangleMesh:
        if name is None or name not in self._meshes:
            raise node.error(f"there is no mesh '{name or ''}' in <asset>")
        if name not in self._loaded_meshes:
            self._loaded_meshes[name] = self._load_mesh(self._meshes[name])
        return self._loaded_meshes[name]

    def _load_mesh(self, node: XmlNode) -> TriangleMesh:
        file, vertices, faces = node.get("file"), node.numbers("vertex", None), node.numbers("face", None)
        try:
            if file is not None:
                path = file.replace("\\", "/")
                path = path.rpartition("/")[2] if self.settings.strip_path else path
                solid = self.files.mesh(f"{self.settings.mesh_folder}/{path}" if self.settings.mesh_folder else path)
            elif vertices is None or faces is None or len(vertices) % 3 or len(faces) % 3:
                raise InputError("a mesh needs a file, or vertices and faces in threes")
            else:
                rows = np.asarray(faces, dtype=np.int64).reshape(-1, 3)
                solid = make_mesh(f"the mesh '{node.name}'", vertices.reshape(-1, 3), rows)
            scale = node.numbers("scale", 3, np.ones(3))
            if not np.all(scale != 0):
                raise InputError("the scale of a mesh must not be zero")
            solid = solid.scaled(scale)
        except InputError as error:
            raise node.error(str(error)) from None
        # MuJoCo uses this point and these axes as the frame of the mesh
        at, quaternion = node.numbers("refpos", 3, np.zeros(3)), node.numbers("refquat", 4)
        R = np.eye(3) if quaternion is None else from_quaternion(quaternion)
        return TriangleMesh((solid.vertices - at) @ R, solid.faces, solid.name)

    def _mesh_inertia(self, node: XmlNode, name: str, solid: TriangleMesh) -> LinkInertia:
        asset = self._meshes[name]
        method = asset.choice("inertia", "legacy", ("legacy", "exact", "convex", "shell"))
        if name not in self._mesh_inertias:
            try:
                inertia, is_consistent = mesh_inertia(solid, method)
            except InputError as error:
                raise node.error(str(error)) from None
            if not is_consistent and method == "exact":
                self.notes.append(f"faces have inconsistent orientations, so the mass is doubtful: mesh '{name}'")
            elif not is_consistent:
                self.notes.append(
                    "faces have inconsistent orientations, so the mass is that of MuJoCo's legacy method, not that of "
                    f"the volume: mesh '{name}'"
                )
            self.notes.append(
                "inertia tensors of meshes are exact to round-off; MuJoCo rounds their principal axes, so its "
                f"accelerations may differ in the eighth digit: mesh '{name}'"
            )
            self._mesh_inertias[name] = inertia
        return self._mesh_inertias[name]


def _visuals(geom_type: str, pose: RigidTransform, size: np.ndarray, name: str) -> list[Shape]:
    position, R = pose.position, pose.rotation
    if geom_type == "sphere":
        return [shapes.sphere(position, float(size[0]), R, name, None)]
    if geom_type == "box":
        return [shapes.box(position, (2 * size).tolist(), R, name, None)]
    if geom_type == "ellipsoid":
        return [shapes.mesh(position, _unit_sphere_mesh().scaled(size), frame=R, name=name, trace=None)]
    half = R[:, 2] * size[1]
    barrel = shapes.cylinder(position - half, position + half, float(size[0]), name)
    if geom_type == "cylinder":
        return [barrel]
    return [barrel, *(shapes.sphere(end, float(size[0]), R, name, None) for end in (position - half, position + half))]


def _unit_sphere_mesh(rings: int = 12, around: int = 20) -> TriangleMesh:
    """Return a triangle mesh of the unit sphere."""
    height = np.linspace(0, np.pi, rings + 1)[1:-1]
    longitude = np.linspace(0, 2 * np.pi, around, endpoint=False)
    body = [[np.sin(a) * np.cos(b), np.sin(a) * np.sin(b), np.cos(a)] for a in height for b in longitude]
    last = len(body) + 1
    faces = [(0, 1 + j, 1 + (j + 1) % around) for j in range(around)]
    for i in range(rings - 2):
        upper, lower = 1 + i * around, 1 + (i + 1) * around
        for j in range(around):
            k = (j + 1) % around
            faces += [(upper + j, lower + j, lower + k), (upper + j, lower + k, upper + k)]
    faces += [(last, last - around + (j + 1) % around, last - around + j) for j in range(around)]
    return make_mesh("a ball", [[0, 0, 1], *body, [0, 0, -1]], faces)
