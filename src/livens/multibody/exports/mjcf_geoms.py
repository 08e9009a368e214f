"""MJCF geoms of visual shapes, without mass and contact."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from xml.etree.ElementTree import Element as Tag
from xml.etree.ElementTree import SubElement

import numpy as np

from livens import rotations as rot
from livens.multibody import visuals
from livens.multibody.body import Body
from livens.scene.shapes import Shape
from livens.types import FloatArray

#: Number of segments of a ring, and default thickness relative to the length or radius.
_RING_SEGMENTS, _RELATIVE_THICKNESS = 24, 0.02


def format_numbers(values: Any) -> str:
    """Return numbers in MJCF format with full precision (round-trip)."""
    return " ".join(repr(float(x) + 0.0) for x in np.ravel(values))


def to_3d(x: FloatArray) -> np.ndarray:
    """Return a planar vector padded to three components."""
    vector = np.zeros(3)
    vector[: len(x)] = x
    return vector


def frame_to_3d(R: np.ndarray) -> np.ndarray:
    frame = np.eye(3)
    frame[: len(R), : len(R)] = R
    return frame


def write_geoms(tag: Tag, part: Body, note: Callable[[str], None]) -> None:
    """Write the visual shapes of a body in its axes."""
    body_visual = visuals.solid_visual(part.shape, part.dimension) if part.shape else None
    for shape in body_visual or [Shape("sphere", (np.zeros(part.dimension),))]:
        is_written = False
        for attributes in _geoms(shape):
            is_written = True
            if shape.colour:
                attributes["rgba"] = format_numbers([*(int(shape.colour[i : i + 2], 16) / 255 for i in (1, 3, 5)), 1.0])
            SubElement(tag, "geom", attributes)
        if not is_written:
            note(f"a {shape.shape_type} of the body '{part.name}' is not drawn")


def _geoms(shape: Shape) -> Iterator[dict[str, str]]:
    points, sizes = [to_3d(x) for x in shape.points], shape.sizes
    frame = np.eye(3) if shape.frame is None else frame_to_3d(np.asarray(shape.frame, dtype=float))
    if shape.shape_type in ("rod", "cylinder"):
        length = float(np.linalg.norm(points[1] - points[0]))
        radius = sizes.get("radius") or (sizes.get("width") or 2 * _RELATIVE_THICKNESS * length) / 2
        yield dict(type="cylinder", fromto=format_numbers([*points[0], *points[1]]), size=format_numbers([radius]))
    elif shape.shape_type == "box":
        half = [float(sizes.get(side, 0.0)) / 2 for side in ("length", "width", "depth")]
        sides = [max(x, _RELATIVE_THICKNESS * max(half)) for x in half]
        yield dict(
            type="box",
            size=format_numbers(sides),
            pos=format_numbers(points[0]),
            quat=format_numbers(rot.from_matrix(frame)),
        )
    elif shape.shape_type == "sphere":
        yield dict(
            type="sphere",
            size=format_numbers([sizes.get("radius") or _RELATIVE_THICKNESS]),
            pos=format_numbers(points[0]),
        )
    elif shape.shape_type == "ring":
        radius = float(sizes["radius"])
        thick = float(sizes.get("width") or 2 * _RELATIVE_THICKNESS * radius) / 2
        angles = 2 * np.pi * np.arange(_RING_SEGMENTS + 1) / _RING_SEGMENTS
        around: Sequence[np.ndarray] = [points[0] + radius * (frame @ [np.cos(a), np.sin(a), 0]) for a in angles]
        for a, b in itertools.pairwise(around):
            yield dict(type="capsule", fromto=format_numbers([*a, *b]), size=format_numbers([thick]))
