"""3-D plot of the ball bearing, assembled or exploded."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from mpl_toolkits.mplot3d.art3d import Poly3DCollection  # type: ignore[import-untyped]  # it has no types

from livens.models.problem import Problem
from livens.plot.style import PALETTE
from livens.problems.bearing.dimensions import Bearing
from livens.problems.bearing.visuals import ring_mesh

#: Unit vector towards the light source.
_LIGHT = np.array([0.5, -0.6, 0.6]) / np.linalg.norm([0.5, -0.6, 0.6])


def draw_bearing(axes: Any, problem: Problem, separation: float) -> None:
    """Plot outer ring, balls with cage and inner ring along the axis, `separation` millimetres apart."""
    b = Bearing()
    q = np.asarray(problem.q0)
    parts = [
        (*ring_mesh(b, "outer"), PALETTE[0], -separation),
        (*ring_mesh(b, "inner"), PALETTE[1], 1.5 * separation),
    ]
    sphere = _revolve_profile(_arc(b.diameter / 2, 0.0), 16)
    for i in range(b.balls):
        centre = q[6 * i : 6 * i + 3]
        parts.append((sphere[0] + centre, sphere[1], "#9aa0a6", 0.5 * separation))
    for x in (-0.42, 0.42):
        side = _revolve_profile(_circle(0.12 * b.diameter) + [0.0, b.pitch / 2], 48)
        parts.append((side[0] + [x * b.diameter, 0, 0], side[1], PALETTE[2], -0.3 * separation))
    triangles, colours = [], []
    for points, faces, colour, shift in parts:
        corners = 1e3 * points[faces] + [shift, 0, 0]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        length = np.linalg.norm(normals, axis=1, keepdims=True)
        light = 0.45 + 0.55 * np.abs((normals / np.where(length > 0, length, 1)) @ _LIGHT)
        triangles.append(corners)
        colours.append(np.clip(light[:, None] * np.array(to_rgb(colour)), 0, 1))
    axes.add_collection3d(Poly3DCollection(np.concatenate(triangles), facecolors=np.concatenate(colours)))
    half_width, middle = 27.0, 0.25 * separation
    axes.set_xlim(middle - half_width, middle + half_width)
    axes.set_ylim(-half_width, half_width)
    axes.set_zlim(-half_width, half_width)
    axes.set_box_aspect((1, 1, 1), zoom=1.45 if not separation else 1.05)
    axes.view_init(elev=18, azim=-52)
    axes.set_axis_off()


def _arc(radius: float, off: float) -> np.ndarray:
    angle = np.linspace(0, np.pi, 13)
    return np.column_stack([radius * np.cos(angle), off + radius * np.sin(angle)])


def _circle(radius: float) -> np.ndarray:
    angle = np.linspace(0, 2 * np.pi, 9)
    return radius * np.column_stack([np.cos(angle), np.sin(angle)])


def _revolve_profile(profile: np.ndarray, n_segments: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points and triangles of the surface of revolution of a profile (x, radius)."""
    angle, n = 2 * np.pi * np.arange(n_segments) / n_segments, len(profile)
    x, r = profile.T
    grid = np.stack([np.broadcast_to(x, (n_segments, n)), np.outer(np.cos(angle), r), np.outer(np.sin(angle), r)], -1)
    i, j = np.meshgrid(np.arange(n_segments), np.arange(n - 1), indexing="ij")
    a, b = i * n + j, (i + 1) % n_segments * n + j
    faces = [np.stack(triangle, -1).reshape(-1, 3) for triangle in ((a, a + 1, b + 1), (a, b + 1, b))]
    return grid.reshape(-1, 3), np.vstack(faces)
