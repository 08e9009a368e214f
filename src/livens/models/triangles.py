"""Triangle meshes and their STL and OBJ files, which are untrusted input."""

from __future__ import annotations

import base64
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from livens.errors import InputError

_MOST_BYTES = 128_000_000
_MOST_TRIANGLES = 1_000_000
#: Largest absolute coordinate; squares of larger ones overflow in single precision.
_FAR = 1e15


@dataclass(frozen=True, eq=False)
class Triangles:
    """Triangle mesh: vertices of shape (n, 3) and counter-clockwise faces of shape (m, 3), seen from outside."""

    vertices: np.ndarray
    faces: np.ndarray
    name: str = ""

    def scaled(self, scale: Any) -> Triangles:
        """Return the mesh scaled along each axis; the orientation of the faces is kept for mirror images."""
        factors = np.broadcast_to(np.asarray(scale, dtype=float), 3)
        faces = self.faces[:, ::-1] if np.prod(np.sign(factors)) < 0 else self.faces
        return Triangles(self.vertices * factors, faces, self.name)

    @functools.cached_property
    def reach(self) -> float:
        """Radius of the bounding sphere about the origin."""
        return float(np.linalg.norm(self.vertices, axis=1).max())

    def corners(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the corners of all facets, of shape (m, 3, 3), and the unit normals, of shape (m, 3)."""
        corners = self.vertices[self.faces]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        length = np.linalg.norm(normals, axis=1, keepdims=True)
        return corners, normals / np.where(length > 0, length, 1.0)

    def edges(self, most: int, sharp: float = 0.8) -> np.ndarray:
        """Return the longest feature edges (sharp or boundary edges), of shape (n_edges, 2, 3)."""
        _, normals = self.corners()
        sides = np.sort(self.faces[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=1)
        pairs, which, count = np.unique(sides, axis=0, return_inverse=True, return_counts=True)
        owner = np.repeat(np.arange(len(self.faces)), 3)
        total = np.zeros((len(pairs), 3))
        np.add.at(total, np.asarray(which).ravel(), normals[owner])
        # the sum of two unit normals with cosine c has the length sqrt(2 + 2 c)
        flat = (count == 2) & (np.linalg.norm(total, axis=1) > np.sqrt(2 + 2 * sharp))
        ends = self.vertices[pairs[~flat]]
        length = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
        return np.asarray(ends[np.argsort(-length, kind="stable")[:most]])

    # -- JSON ---------------------------------------------------------------------------------------------------------
    def plain(self) -> dict[str, str]:
        """Return vertices in single precision and faces as base64 text."""
        parts = dict(vertices=self.vertices.astype("<f4"), faces=self.faces.astype("<u4"))
        return {name: base64.b64encode(np.ascontiguousarray(part).tobytes()).decode() for name, part in parts.items()}

    @classmethod
    def from_plain(cls, plain: Any) -> Triangles:
        """Return a mesh from untrusted JSON data, validated."""
        vertices, faces = (base64.b64decode(plain[name], validate=True) for name in ("vertices", "faces"))
        points = np.frombuffer(vertices, "<f4").astype(float).reshape(-1, 3)
        return triangles("a mesh", points, np.frombuffer(faces, "<u4").astype(np.int64).reshape(-1, 3))


def triangles(name: str, vertices: Any, faces: Any) -> Triangles:
    """Return a validated triangle mesh; raise InputError for invalid vertices or faces."""
    try:
        points, corners = np.asarray(vertices, dtype=float), np.asarray(faces)
    except (TypeError, ValueError, OverflowError):
        points, corners = np.zeros(0), np.zeros(0)
    if points.ndim != 2 or corners.ndim != 2 or points.shape[1] != 3 or corners.shape[1] != 3:
        raise InputError(f"{name} must be rows of three numbers: points, and triangles as indices of points")
    if not 0 < len(corners) <= _MOST_TRIANGLES:
        raise InputError(f"{name} has {len(corners)} triangles: between 1 and {_MOST_TRIANGLES} are allowed")
    whole = np.issubdtype(corners.dtype, np.integer)
    if not np.all(np.abs(points) < _FAR) or not whole or corners.min() < 0 or corners.max() >= len(points):
        raise InputError(f"{name} has corners that are not there, or coordinates that are not finite")
    return Triangles(points, corners.astype(np.int64), name)


def read(path: Path) -> Triangles:
    """Load a triangle mesh from an STL or OBJ file, by its suffix."""
    kind = path.suffix.lower()
    if kind not in (".stl", ".obj"):
        raise InputError(f"the mesh {path.name} is neither an STL nor an OBJ file; other formats are not supported")
    raw = content(path, "the mesh", _MOST_BYTES)
    try:
        vertices, faces = _stl(raw) if kind == ".stl" else _obj(raw)
    except (ValueError, IndexError) as error:
        raise InputError(f"the mesh {path.name} cannot be read: {error}") from None
    return triangles(f"the mesh {path.name}", vertices, faces)


def content(path: Path, what: str, most: int) -> bytes:
    """Return the bytes of a regular file of limited size."""
    try:
        if not path.is_file():
            raise InputError(f"{what} does not exist or is not a file: {path}")
        if path.stat().st_size > most:
            raise InputError(f"{what} {path.name} is larger than {most / 1e6:g} MB")
        return path.read_bytes()
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"{what} cannot be read: {error}") from None


def _stl(raw: bytes) -> tuple[np.ndarray, np.ndarray]:
    count = int.from_bytes(raw[80:84], "little") if len(raw) >= 84 else -1
    if len(raw) == 84 + 50 * count:
        kind = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("more", "<u2")])
        corners = np.frombuffer(raw, kind, count, 84)["corners"].astype(float).reshape(-1, 3)
    elif raw.lstrip()[:5] == b"solid":
        words = raw.split()
        places = [i for i, word in enumerate(words) if word == b"vertex"]
        corners = np.array([[float(x) for x in words[i + 1 : i + 4]] for i in places]).reshape(-1, 3)
    else:
        raise ValueError("its length does not match the number of its triangles")
    if len(corners) % 3:
        raise ValueError("the number of its corners is not a multiple of three")
    # identical corners are one vertex
    vertices, which = np.unique(corners, axis=0, return_inverse=True)
    return vertices, np.asarray(which).reshape(-1, 3)


def _obj(raw: bytes) -> tuple[np.ndarray, np.ndarray]:
    vertices: list[Sequence[float]] = []
    faces: list[Sequence[int]] = []
    for line in raw.decode("utf-8", "replace").splitlines():
        words = line.split()
        if words and words[0] == "v":
            vertices.append([float(x) for x in words[1:4]])
        elif words and words[0] == "f":
            corners = [int(word.split("/")[0]) for word in words[1:]]
            corners = [i - 1 if i > 0 else len(vertices) + i for i in corners]
            faces += [(corners[0], corners[i], corners[i + 1]) for i in range(1, len(corners) - 1)]
    return np.array(vertices, dtype=float).reshape(-1, 3), np.array(faces, dtype=np.int64).reshape(-1, 3)
