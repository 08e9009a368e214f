"""Export of an animation as a glTF model: one node per shape with key-frame animation."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.errors import MissingExtraError
from livens.plot.style import PALETTE
from livens.scene.outlines import extent
from livens.scene.scene import Scene, ScenePose, SceneShape
from livens.viewer.frame_selection import scene_coordinates, select_rows, with_rows
from livens.viewer.payload import check_scene, continuous_quaternions

if TYPE_CHECKING:
    from livens.results.result import Result

_FLOAT, _UINT = 5126, 5125
_TYPES = {1: "SCALAR", 3: "VEC3", 4: "VEC4"}


class _Binary:
    """Binary buffer of a glTF file with its buffer views and accessors."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []

    def add(self, numbers: np.ndarray, component_type: int = _FLOAT) -> int:
        array = np.ascontiguousarray(numbers, dtype="<f4" if component_type == _FLOAT else "<u4")
        flat = array.reshape(len(array), -1)
        self.views.append({"buffer": 0, "byteOffset": len(self.bytes), "byteLength": array.nbytes})
        self.bytes += array.tobytes()
        self.accessors.append(
            {
                "bufferView": len(self.views) - 1,
                "componentType": component_type,
                "count": len(array),
                "type": _TYPES[flat.shape[1]],
                "min": flat.min(axis=0).tolist(),
                "max": flat.max(axis=0).tolist(),
            }
        )
        return len(self.accessors) - 1


def glb(result: Result, frames: int) -> bytes:
    """Return the animation as the bytes of a .glb file; requires the extra `animation` (trimesh for unit shapes)."""
    try:
        from trimesh import creation
    except ImportError:
        raise MissingExtraError("a glb file", "animation") from None
    scene = check_scene(result)
    sampled = with_rows(result, select_rows(np.asarray(result.t), 1, frames))
    pose = scene.evaluate(scene_coordinates(sampled), sampled.t)
    size = extent(scene, pose)
    units = {
        "segment": creation.cylinder(radius=0.5, height=1.0, sections=24),
        "cone": creation.cone(radius=1.0, height=1.0, sections=32),
        "ball": creation.icosphere(subdivisions=3, radius=1.0),
        "box": creation.box(extents=(1.0, 1.0, 1.0)),
        "ring": creation.torus(major_radius=1.0, minor_radius=0.06, major_sections=48, minor_sections=10),
    }
    binary = _Binary()
    geometry = {
        name: (
            binary.add(unit.vertices),
            binary.add(unit.vertex_normals),
            binary.add(unit.faces.reshape(-1), _UINT),
        )
        for name, unit in units.items()
    }
    colours = [*PALETTE[:6], "#9AA3AB", *dict.fromkeys(shape.colour for shape in scene.shapes if shape.colour)]
    materials = [
        {"pbrMetallicRoughness": {"baseColorFactor": _colour(colour), "metallicFactor": 0.1, "roughnessFactor": 0.6}}
        for colour in colours
    ]
    times = binary.add(sampled.t - sampled.t[0])
    meshes: list[dict[str, object]] = []
    nodes: list[dict[str, object]] = []
    samplers: list[dict[str, object]] = []
    channels: list[dict[str, object]] = []
    traced = scene.traced
    for shape in scene.shapes:
        material = traced.index(shape) % 6 if shape in traced else 6
        if shape.colour:
            material = colours.index(shape.colour, 7)
        for unit, transforms in _primitives(scene, shape, pose, size):
            if isinstance(unit, str):
                position, normal, index = geometry[unit]
            else:  # individual geometry
                position, normal, index = (
                    binary.add(unit.vertices),
                    binary.add(unit.normals),
                    binary.add(unit.faces, _UINT),
                )
            primitive = {"attributes": {"POSITION": position, "NORMAL": normal}, "indices": index, "material": material}
            meshes.append({"primitives": [primitive]})
            node: dict[str, object] = {"name": shape.name or shape.shape_type, "mesh": len(meshes) - 1}
            for target_path, values in transforms.items():
                node[target_path] = values[0].tolist()
                if len(values) > 1 and np.ptp(values, axis=0).any():
                    samplers.append({"input": times, "output": binary.add(values), "interpolation": "LINEAR"})
                    channels.append({"sampler": len(samplers) - 1, "target": {"node": len(nodes), "path": target_path}})
            nodes.append(node)
    # glTF has y upwards; a 3-D scene has z upwards
    root: dict[str, object] = {"name": "livens", "children": list(range(len(nodes)))}
    if scene.dimension == 3:
        root["rotation"] = [-float(np.sqrt(0.5)), 0.0, 0.0, float(np.sqrt(0.5))]
    content: dict[str, object] = {
        "asset": {"version": "2.0", "generator": "livens"},
        "scene": 0,
        "scenes": [{"nodes": [len(nodes)]}],
        "nodes": [*nodes, root],
        "meshes": meshes,
        "materials": materials,
        "accessors": binary.accessors,
        "bufferViews": binary.views,
        "buffers": [{"byteLength": len(binary.bytes)}],
    }
    if channels:
        content["animations"] = [
            {"name": result.info.problem or result.info.name or "run", "samplers": samplers, "channels": channels}
        ]
    return _pack_glb(content, bytes(binary.bytes))


def _colour(name: str) -> list[float]:
    """Return red, green, blue and opacity of ``#rrggbb`` in linear colour space."""
    return [*((int(name[i : i + 2], 16) / 255) ** 2.2 for i in (1, 3, 5)), 1.0]


Transforms = dict[str, np.ndarray]


@dataclass(frozen=True)
class _Solid:
    """Triangle mesh, visible from both sides."""

    vertices: np.ndarray
    normals: np.ndarray
    faces: np.ndarray


def _primitives(scene: Scene, shape: SceneShape, pose: ScenePose, size: float) -> list[tuple[str | _Solid, Transforms]]:
    """Return the primitives of a shape: unit shapes or meshes, with translation, rotation and scale over the frames."""
    points, frames = pose.points(shape), pose.frames(shape)
    quaternions = continuous_quaternions(frames) if frames is not None else np.tile([1.0, 0, 0, 0], (len(points), 1))
    if shape.shape_type in ("rod", "cylinder", "spring", "damper"):
        width = pose.size(shape, "width", 0.022 * size)
        if shape.shape_type == "cylinder":
            width = 2 * pose.size(shape, "radius", 0.02 * size)
        return [("segment", _segment_transforms(points[:, 0], points[:, -1], width, size))]
    if shape.shape_type == "cone":  # the base of the unit cone is at the origin
        transforms = _segment_transforms(points[:, 1], points[:, 0], pose.size(shape, "radius", 0.02 * size), size)
        return [("cone", transforms | {"translation": points[:, 1]})]
    if shape.shape_type in ("cable", "path"):
        thickness = 0.004 * size
        return [
            ("segment", _segment_transforms(points[:, i], points[:, i + 1], thickness, size))
            for i in range(points.shape[1] - 1)
        ]
    if shape.shape_type == "axes":
        length = pose.size(shape, "size", 0.12 * size)
        axes = np.eye(3)[None] if frames is None else frames
        ends = [points[:, 0] + length * axes[:, :, i] for i in range(3)]
        return [("segment", _segment_transforms(points[:, 0], end, 0.06 * length, size)) for end in ends]
    if shape.mesh is not None:
        corners, normals = scene.meshes[shape.mesh].facets()
        solid = _Solid(corners.reshape(-1, 3), np.repeat(normals, 3, axis=0), np.arange(3 * len(corners)))
        return [
            (
                solid,
                {
                    "translation": points[:, 0],
                    "rotation": _scalar_last(quaternions),
                    "scale": np.ones((len(points), 3)),
                },
            )
        ]
    if shape.shape_type == "polygon":
        return [_plate(points)] if points.shape[1] > 2 else []
    if shape.shape_type == "box":
        sides = [pose.size(shape, name, 0.02 * size) for name in ("length", "width", "depth")]
        unit, scale = "box", np.tile(sides, (len(points), 1))
    elif shape.shape_type == "ground" and "size" in shape.sizes:
        side = pose.size(shape, "size", size)
        unit, scale = "box", np.tile([side, side, 1e-3 * side], (len(points), 1))
    else:
        unit = "ring" if shape.shape_type == "ring" else "ball"
        radius = 0.015 * size if shape.shape_type == "ground" else pose.size(shape, "radius", 0.03 * size)
        scale = np.full((len(points), 3), radius)
    return [(unit, {"translation": points[:, 0], "rotation": _scalar_last(quaternions), "scale": scale})]


def _segment_transforms(a: np.ndarray, b: np.ndarray, width: float, size: float) -> Transforms:
    """Return the transforms of a unit shape along z that connects two points."""
    length = np.linalg.norm(b - a, axis=1)
    quaternions = np.array([_rotation_from_z(line) for line in b - a])
    scale = np.column_stack([np.full(len(a), width), np.full(len(a), width), np.maximum(length, 1e-9 * size)])
    return {"translation": (a + b) / 2, "rotation": _scalar_last(quaternions), "scale": scale}


def _plate(points: np.ndarray) -> tuple[_Solid, Transforms]:
    """Return a flat plate as a mesh that moves with its first three corners."""
    frames = np.array([_corner_frame(corners) for corners in points])
    flat = (points[0] - points[0, 0]) @ frames[0]
    count = len(flat)
    fan = np.array([[0, i, i + 1] for i in range(1, count - 1)])
    normals = np.concatenate([np.tile([0.0, 0, 1], (count, 1)), np.tile([0.0, 0, -1], (count, 1))])
    faces = np.concatenate([fan.ravel(), fan[:, ::-1].ravel() + count])
    solid = _Solid(np.concatenate([flat, flat]), normals, faces)
    return solid, {
        "translation": points[:, 0],
        "rotation": _scalar_last(continuous_quaternions(frames)),
        "scale": np.ones((len(points), 3)),
    }


def _corner_frame(corners: np.ndarray) -> np.ndarray:
    """Return the frame of a plate at its first corner: along the first side, in plane, normal."""
    along, other = corners[1] - corners[0], corners[2] - corners[0]
    along = along / (np.linalg.norm(along) or 1.0)
    across = np.cross(along, other)
    if not np.linalg.norm(across) > 0:
        return np.eye(3)
    across = across / np.linalg.norm(across)
    return np.column_stack([along, np.cross(across, along), across])


def _rotation_from_z(line: np.ndarray) -> np.ndarray:
    """Return the shortest rotation from the z axis to a direction, as a unit quaternion."""
    length = np.linalg.norm(line)
    if length == 0:
        return np.array([1.0, 0, 0, 0])
    along = line / length
    if along[2] < -1 + 1e-12:
        return np.array([0.0, 1, 0, 0])
    rotation = np.array([1 + along[2], -along[1], along[0], 0.0])
    return np.asarray(rotation / np.linalg.norm(rotation))


def _scalar_last(quaternions: np.ndarray) -> np.ndarray:
    """Return quaternions in the component order of glTF: scalar last."""
    return np.asarray(quaternions[:, [1, 2, 3, 0]])


def _pack_glb(content: dict[str, object], binary: bytes) -> bytes:
    text = json.dumps(content, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    binary += b"\0" * (-len(binary) % 4)
    length = 12 + 8 + len(text) + 8 + len(binary)
    head = struct.pack("<4sII", b"glTF", 2, length)
    return head + struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", len(binary), b"BIN\0") + binary
