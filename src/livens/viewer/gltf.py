"""A film as a glTF model, which other programs open: a node for each shape, moved by key frames."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from livens.errors import InputError
from livens.models.outlines import extent
from livens.models.scene import Drawn, Pose
from livens.plot.style import PALETTE
from livens.viewer.data import check_scene, continuous
from livens.viewer.frames import chosen_rows, part

if TYPE_CHECKING:
    from livens.results.result import Result

_FLOAT, _UINT = 5126, 5125
_TYPES = {1: "SCALAR", 3: "VEC3", 4: "VEC4"}


class _Binary:
    """The numbers of a model, one after the other, and what says where they are."""

    def __init__(self) -> None:
        self.bytes = bytearray()
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []

    def add(self, numbers: np.ndarray, kind: int = _FLOAT) -> int:
        array = np.ascontiguousarray(numbers, dtype="<f4" if kind == _FLOAT else "<u4")
        flat = array.reshape(len(array), -1)
        self.views.append({"buffer": 0, "byteOffset": len(self.bytes), "byteLength": array.nbytes})
        self.bytes += array.tobytes()
        self.accessors.append(
            {
                "bufferView": len(self.views) - 1,
                "componentType": kind,
                "count": len(array),
                "type": _TYPES[flat.shape[1]],
                "min": flat.min(axis=0).tolist(),
                "max": flat.max(axis=0).tolist(),
            }
        )
        return len(self.accessors) - 1


def glb(result: Result, frames: int) -> bytes:
    """The film as the bytes of a .glb file; needs the extra `animation`, whose trimesh makes the unit shapes."""
    try:
        from trimesh import creation
    except ImportError:
        raise InputError("a glb needs the extra 'animation': pip install 'livens[animation]'") from None
    scene = check_scene(result)
    few = part(result, chosen_rows(np.asarray(result.t), 1, frames))
    pose = scene.at(few.q, few.t)
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
    colours = [*PALETTE[:6], "#9AA3AB"]
    materials = [
        {"pbrMetallicRoughness": {"baseColorFactor": _colour(colour), "metallicFactor": 0.1, "roughnessFactor": 0.6}}
        for colour in colours
    ]
    times = binary.add(few.t - few.t[0])
    meshes: list[dict[str, Any]] = []
    nodes: list[dict[str, Any]] = []
    samplers: list[dict[str, Any]] = []
    channels: list[dict[str, Any]] = []
    traced = scene.traced
    for shape in scene.shapes:
        placed = _placed(shape, pose, size)
        if placed is None:
            continue
        unit, ways = placed
        position, normal, index = geometry[unit]
        material = traced.index(shape) % 6 if shape in traced else 6
        primitive = {"attributes": {"POSITION": position, "NORMAL": normal}, "indices": index, "material": material}
        meshes.append({"primitives": [primitive]})
        node: dict[str, Any] = {"name": shape.name or shape.kind, "mesh": len(meshes) - 1}
        for way, values in ways.items():
            node[way] = values[0].tolist()
            if len(values) > 1 and np.ptp(values, axis=0).any():
                samplers.append({"input": times, "output": binary.add(values), "interpolation": "LINEAR"})
                channels.append({"sampler": len(samplers) - 1, "target": {"node": len(nodes), "path": way}})
        nodes.append(node)
    # glTF has y upwards; a scene in space has z upwards
    root: dict[str, Any] = {"name": "livens", "children": list(range(len(nodes)))}
    if scene.dimension == 3:
        root["rotation"] = [-float(np.sqrt(0.5)), 0.0, 0.0, float(np.sqrt(0.5))]
    content: dict[str, Any] = {
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
        content["animations"] = [{"name": result.facts.problem or "run", "samplers": samplers, "channels": channels}]
    return _packed(content, bytes(binary.bytes))


def _colour(name: str) -> list[float]:
    """Red, green, blue and opacity of ``#rrggbb``, in the linear scale of glTF."""
    return [*((int(name[i : i + 2], 16) / 255) ** 2.2 for i in (1, 3, 5)), 1.0]


def _placed(shape: Drawn, pose: Pose, size: float) -> tuple[str, dict[str, np.ndarray]] | None:
    """The unit shape, and where it is, how it is turned and how large it is in every frame."""
    points, frames = pose.points(shape), pose.frames(shape)
    if shape.kind in ("rod", "cylinder", "spring", "damper", "cone"):
        a, b = points[:, 0], points[:, -1]
        if shape.kind == "cone":  # the unit cone stands on its base in the origin
            a, b = b, a
        width = pose.size(shape, "width", 0.022 * size)
        if shape.kind in ("cylinder", "cone"):
            width = pose.size(shape, "radius", 0.02 * size) * (2 if shape.kind == "cylinder" else 1)
        length = np.linalg.norm(b - a, axis=1)
        turns = np.array([_from_z(line) for line in b - a])
        scale = np.column_stack([np.full(len(a), width), np.full(len(a), width), np.maximum(length, 1e-9 * size)])
        unit, where = ("cone", a) if shape.kind == "cone" else ("segment", (a + b) / 2)
        return unit, {"translation": where, "rotation": _last(turns), "scale": scale}
    turns = continuous(frames) if frames is not None else np.tile([1.0, 0, 0, 0], (len(points), 1))
    if shape.kind == "box":
        sides = [pose.size(shape, name, 0.02 * size) for name in ("length", "width", "depth")]
        unit, scale = "box", np.tile(sides, (len(points), 1))
    elif shape.kind in ("sphere", "ring"):
        unit = "ball" if shape.kind == "sphere" else "ring"
        scale = np.full((len(points), 3), pose.size(shape, "radius", 0.03 * size))
    elif shape.kind == "ground":
        unit, scale = "ball", np.full((len(points), 3), 0.015 * size)
    else:  # lines and plates have no unit shape
        return None
    return unit, {"translation": points[:, 0], "rotation": _last(turns), "scale": scale}


def _from_z(line: np.ndarray) -> np.ndarray:
    """The shortest turn from the z axis to a line, as a unit quaternion."""
    length = np.linalg.norm(line)
    if length == 0:
        return np.array([1.0, 0, 0, 0])
    along = line / length
    if along[2] < -1 + 1e-12:
        return np.array([0.0, 1, 0, 0])
    found = np.array([1 + along[2], -along[1], along[0], 0.0])
    return np.asarray(found / np.linalg.norm(found))


def _last(turns: np.ndarray) -> np.ndarray:
    """Quaternions as glTF writes them: the scalar is the last component."""
    return np.asarray(turns[:, [1, 2, 3, 0]])


def _packed(content: dict[str, Any], binary: bytes) -> bytes:
    text = json.dumps(content, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 4)
    binary += b"\0" * (-len(binary) % 4)
    length = 12 + 8 + len(text) + 8 + len(binary)
    head = struct.pack("<4sII", b"glTF", 2, length)
    return head + struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", len(binary), b"BIN\0") + binary
