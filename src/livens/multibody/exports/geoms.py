"""MJCF geoms of visual shapes, without mass and contact."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from xml.etree.ElementTree import Element as Tag
from xml.etree.ElementTree import SubElement

import numpy as np

from livens import rotations as rot
from livens.models.shapes import Shape
from livens.multibody import looks
from livens.multibody.parts import Part

#: Number of segments of a ring, and default thickness relative to the length or radius.
_PIECES, _THIN = 24, 0.02


def numbers(values: Any) -> str:
    """Return numbers in MJCF format with full precision (round-trip)."""
    return " ".join(repr(float(x) + 0.0) for x in np.ravel(values))


def in_space(x: Any) -> np.ndarray:
    """Return a planar vector padded to three components."""
    found = np.zeros(3)
    found[: len(x)] = x
    return found


def axes_in_space(R: np.ndarray) -> np.ndarray:
    found = np.eye(3)
    found[: len(R), : len(R)] = R
    return found


def write_geoms(tag: Tag, part: Part, say: Callable[[str], None]) -> None:
    """Write the visual shapes of a body in its axes."""
    drawn = looks.drawn(part.shape, part.dimension) if part.shape else None
    for shape in drawn or [Shape("sphere", (np.zeros(part.dimension),))]:
        found = False
        for attributes in _geoms(shape):
            found = True
            SubElement(tag, "geom", attributes)
        if not found:
            say(f"a {shape.kind} of the body '{part.name}' is not drawn")


def _geoms(shape: Shape) -> Iterator[dict[str, str]]:
    points, sizes = [in_space(x) for x in shape.points], shape.sizes
    frame = np.eye(3) if shape.frame is None else axes_in_space(np.asarray(shape.frame, dtype=float))
    if shape.kind in ("rod", "cylinder"):
        length = float(np.linalg.norm(points[1] - points[0]))
        radius = sizes.get("radius") or (sizes.get("width") or 2 * _THIN * length) / 2
        yield dict(type="cylinder", fromto=numbers([*points[0], *points[1]]), size=numbers([radius]))
    elif shape.kind == "box":
        half = [float(sizes.get(side, 0.0)) / 2 for side in ("length", "width", "depth")]
        sides = [max(x, _THIN * max(half)) for x in half]
        yield dict(type="box", size=numbers(sides), pos=numbers(points[0]), quat=numbers(rot.from_matrix(frame)))
    elif shape.kind == "sphere":
        yield dict(type="sphere", size=numbers([sizes.get("radius") or _THIN]), pos=numbers(points[0]))
    elif shape.kind == "ring":
        radius = float(sizes["radius"])
        thick = float(sizes.get("width") or 2 * _THIN * radius) / 2
        angles = 2 * np.pi * np.arange(_PIECES + 1) / _PIECES
        around: Sequence[np.ndarray] = [points[0] + radius * (frame @ [np.cos(a), np.sin(a), 0]) for a in angles]
        for a, b in itertools.pairwise(around):
            yield dict(type="capsule", fromto=numbers([*a, *b]), size=numbers([thick]))
