"""Triangle meshes and their STL, OBJ and MSH files, which are untrusted input."""

from __future__ import annotations

import base64
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from livens.errors import InputError

_MAX_BYTES = 128_000_000
_MAX_TRIANGLES = 1_000_000
#: Largest absolute coordinate; squares of larger ones overflow in single precision.
_MAX_COORDINATE = 1e15


@dataclass(frozen=True, eq=False)
class TriangleMesh:
    """Triangle mesh: vertices of shape (n, 3) and counter-clockwise faces of shape (m, 3), seen from outside."""

    vertices: np.ndarray
    faces: np.ndarray
    name: str = ""

    def scaled(self, scale: object) -> TriangleMesh:
        """Return the mesh scaled along each axis; the orientation of the faces is kept for mirror images."""
        factors = np.broadcast_to(np.asarray(scale, dtype=float), 3)
        faces = self.faces[:, ::-1] if np.prod(np.sign(factors)) < 0 else self.faces
        return TriangleMesh(self.vertices * factors, faces, self.name)

    @functools.cached_property
    def bounding_radius(self) -> float:
        """Radius of the bounding sphere about the origin."""
        return float(np.linalg.norm(self.vertices, axis=1).max())

    def facets(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the corners of all facets, of shape (m, 3, 3), and the unit normals, of shape (m, 3)."""
        corners = self.vertices[self.faces]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        length = np.linalg.norm(normals, axis=1, keepdims=True)
        return corners, normals / np.where(length > 0, length, 1.0)

    def feature_edges(self, limit: int, cos_angle: float = 0.8) -> np.ndarray:
        """Return the longest feature edges (sharp or boundary edges), of shape (n_edges, 2, 3)."""
        _, normals = self.facets()
        sides = np.sort(self.faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
        pairs, edge_index, count = np.unique(sides, axis=0, return_inverse=True, return_counts=True)
        owner = np.repeat(np.arange(len(self.faces)), 3)
        normal_sums = np.zeros((len(pairs), 3))
        np.add.at(normal_sums, np.asarray(edge_index).ravel(), normals[owner])
        # the sum of two unit normals with cosine c has the length sqrt(2 + 2 c)
        flat = (count == 2) & (np.linalg.norm(normal_sums, axis=1) > np.sqrt(2 + 2 * cos_angle))
        ends = self.vertices[pairs[~flat]]
        length = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
        return np.asarray(ends[np.argsort(-length, kind="stable")[:limit]])

    # -- JSON ---------------------------------------------------------------------------------------------------------
    def to_json(self) -> dict[str, str]:
        """Return vertices in single precision and faces as base64 text."""
        parts = dict(vertices=self.vertices.astype("<f4"), faces=self.faces.astype("<u4"))
        return {name: base64.b64encode(np.ascontiguousarray(part).tobytes()).decode() for name, part in parts.items()}

    @classmethod
    def from_json(cls, data: Mapping[str, str]) -> TriangleMesh:
        """Return a mesh from untrusted JSON data, validated."""
        vertices, faces = (base64.b64decode(data[name], validate=True) for name in ("vertices", "faces"))
        points = np.frombuffer(vertices, "<f4").astype(float).reshape(-1, 3)
        return make_mesh("a mesh", points, np.frombuffer(faces, "<u4").astype(np.int64).reshape(-1, 3))


def make_mesh(name: str, vertices: object, faces: object) -> TriangleMesh:
    """Return a validated triangle mesh; raise InputError for invalid vertices or faces."""
    try:
        points, corners = np.asarray(vertices, dtype=float), np.asarray(faces)
    except (TypeError, ValueError, OverflowError):
        points, corners = np.zeros(0), np.zeros(0)
    if points.ndim != 2 or corners.ndim != 2 or points.shape[1] != 3 or corners.shape[1] != 3:
        raise InputError(f"{name} must be rows of three numbers: points, and triangles as indices of points")
    if not 0 < len(corners) <= _MAX_TRIANGLES:
        raise InputError(f"{name} has {len(corners)} triangles: between 1 and {_MAX_TRIANGLES} are allowed")
    is_integer = np.issubdtype(corners.dtype, np.integer)
    if (
        not np.all(np.abs(points) < _MAX_COORDINATE)
        or not is_integer
        or corners.min() < 0
        or corners.max() >= len(points)
    ):
        raise InputError(f"{name} has corners that are not there, or coordinates that are not finite")
    return TriangleMesh(points, corners.astype(np.int64), name)


def load_mesh(path: Path) -> TriangleMesh:
    """Load a triangle mesh from an STL, OBJ or MSH (MuJoCo) file, by its suffix."""
    suffix = path.suffix.lower()
    if suffix not in _PARSERS:
        allowed = ", ".join(name[1:].upper() for name in _PARSERS)
        raise InputError(f"the mesh {path.name} has an unsupported format: use one of {allowed}")
    raw = read_limited(path, "the mesh", _MAX_BYTES)
    try:
        vertices, faces = _PARSERS[suffix](raw)
    except (ValueError, IndexError) as error:
        raise InputError(f"the mesh {path.name} cannot be read: {error}") from None
    return make_mesh(f"the mesh {path.name}", vertices, faces)


def read_limited(path: Path, label: str, max_bytes: int) -> bytes:
    """Return the bytes of a regular file of limited size."""
    try:
        if not path.is_file():
            raise InputError(f"{label} does not exist or is not a file: {path}")
        if path.stat().st_size > max_bytes:
            raise InputError(f"{label} {path.name} is larger than {max_bytes / 1e6:g} MB")
        return path.read_bytes()
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"{label} cannot be read: {error}") from None


def _parse_msh(raw: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Parse the binary mesh format of MuJoCo: counts, vertices, normals, texture coordinates and faces."""
    n_vertices, n_normals, n_texture, n_faces = (int(count) for count in np.frombuffer(raw, "<i4", 4))
    start = 16 + 4 * (3 * n_vertices + 3 * n_normals + 2 * n_texture)
    if min(n_vertices, n_faces) < 0 or len(raw) != start + 12 * n_faces:
        raise ValueError("its size does not match its header")
    vertices = np.frombuffer(raw, "<f4", 3 * n_vertices, 16).reshape(-1, 3)
    return vertices.astype(float), np.frombuffer(raw, "<i4", 3 * n_faces, start).reshape(-1, 3).astype(np.int64)


def _parse_stl(raw: bytes) -> tuple[np.ndarray, np.ndarray]:
    count = int.from_bytes(raw[80:84], "little") if len(raw) >= 84 else -1
    if len(raw) == 84 + 50 * count:
        facet_dtype = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("more", "<u2")])
        corners = np.frombuffer(raw, facet_dtype, count, 84)["corners"].astype(float).reshape(-1, 3)
    elif raw.lstrip()[:5] == b"solid":
        tokens = raw.split()
        vertex_tokens = [i for i, token in enumerate(tokens) if token == b"vertex"]
        corners = np.array([[float(x) for x in tokens[i + 1 : i + 4]] for i in vertex_tokens]).reshape(-1, 3)
    else:
        raise ValueError("its length does not match the number of its triangles")
    if len(corners) % 3:
        raise ValueError("the number of its corners is not a multiple of three")
    # identical corners are one vertex
    order = np.lexsort(corners.T[::-1])
    ordered = corners[order]
    is_first = np.append(np.ones(min(1, len(corners)), dtype=bool), (ordered[1:] != ordered[:-1]).any(axis=1))
    vertex_index = np.empty(len(corners), dtype=np.int64)
    vertex_index[order] = np.cumsum(is_first) - 1
    return ordered[is_first], vertex_index.reshape(-1, 3)


def _parse_obj(raw: bytes) -> tuple[np.ndarray, np.ndarray]:
    vertices: list[Sequence[float]] = []
    faces: list[Sequence[int]] = []
    for line in raw.decode("utf-8", "replace").splitlines():
        tokens = line.split()
        if tokens and tokens[0] == "v":
            vertices.append([float(x) for x in tokens[1:4]])
        elif tokens and tokens[0] == "f":
            corners = [int(token.split("/")[0]) for token in tokens[1:]]
            corners = [i - 1 if i > 0 else len(vertices) + i for i in corners]
            faces += [(corners[0], corners[i], corners[i + 1]) for i in range(1, len(corners) - 1)]
    return np.array(vertices, dtype=float).reshape(-1, 3), np.array(faces, dtype=np.int64).reshape(-1, 3)


#: Parsers of mesh files by suffix.
_PARSERS = {".stl": _parse_stl, ".obj": _parse_obj, ".msh": _parse_msh}
