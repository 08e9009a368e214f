"""3-D plot of the ball bearing, assembled or exploded."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from mpl_toolkits.mplot3d.art3d import Poly3DCollection  # type: ignore[import-untyped]  # it has no types

from livens.models.problem import Problem
from livens.plot.style import PALETTE
from livens.problems.bearing.data import Bearing
from livens.problems.bearing.looks import turned_ring

#: Unit vector towards the light source.
_LIGHT = np.array([0.5, -0.6, 0.6]) / np.linalg.norm([0.5, -0.6, 0.6])


def draw_bearing(axes: Any, problem: Problem, apart: float) -> None:
    """Plot outer ring, balls with cage and inner ring along the axis, `separation` millimetres apart."""
    b = Bearing()
    q = np.asarray(problem.q0)
    parts = [
        (*turned_ring(b, "outer"), PALETTE[0], -apart),
        (*turned_ring(b, "inner"), PALETTE[1], 1.5 * apart),
    ]
    sphere = _revolved(_arc(b.diameter / 2, 0.0), 16)
    for i in range(b.balls):
        at = q[6 * i : 6 * i + 3]
        parts.append((sphere[0] + at, sphere[1], "#9aa0a6", 0.5 * apart))
    for x in (-0.42, 0.42):
        side = _revolved(_circle(0.12 * b.diameter) + [0.0, b.pitch / 2], 48)
        parts.append((side[0] + [x * b.diameter, 0, 0], side[1], PALETTE[2], -0.3 * apart))
    triangles, colours = [], []
    for points, faces, colour, shift in parts:
        corners = 1e3 * points[faces] + [shift, 0, 0]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        length = np.linalg.norm(normals, axis=1, keepdims=True)
        light = 0.45 + 0.55 * np.abs((normals / np.where(length > 0, length, 1)) @ _LIGHT)
        triangles.append(corners)
        colours.append(np.clip(light[:, None] * np.array(to_rgb(colour)), 0, 1))
    axes.add_collection3d(Poly3DCollection(np.concatenate(triangles), facecolors=np.concatenate(colours)))
    reach, middle = 27.0, 0.25 * apart
    axes.set_xlim(middle - reach, middle + reach)
    axes.set_ylim(-reach, reach)
    axes.set_zlim(-reach, reach)
    axes.set_box_aspect((1, 1, 1), zoom=1.45 if not apart else 1.05)
    axes.view_init(elev=18, azim=-52)
    axes.set_axis_off()


def _arc(radius: float, off: float) -> np.ndarray:
    angle = np.linspace(0, np.pi, 13)
    return np.column_stack([radius * np.cos(angle), off + radius * np.sin(angle)])


def _circle(radius: float) -> np.ndarray:
    angle = np.linspace(0, 2 * np.pi, 9)
    return radius * np.column_stack([np.cos(angle), np.sin(angle)])


def _revolved(profile: np.ndarray, around: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points and triangles of the surface of revolution of a profile (x, radius)."""
    angle, n = 2 * np.pi * np.arange(around) / around, len(profile)
    x, r = profile.T
    grid = np.stack([np.broadcast_to(x, (around, n)), np.outer(np.cos(angle), r), np.outer(np.sin(angle), r)], -1)
    i, j = np.meshgrid(np.arange(around), np.arange(n - 1), indexing="ij")
    a, b = i * n + j, (i + 1) % around * n + j
    faces = [np.stack(three, -1).reshape(-1, 3) for three in ((a, a + 1, b + 1), (a, b + 1, b))]
    return grid.reshape(-1, 3), np.vstack(faces)
