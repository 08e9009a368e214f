"""3-D plots of boxes with given position and orientation."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from livens import rotations as rot
from livens.types import ArrayLike, FloatArray

#: One colour for each pair of faces, so that rotations are visible.
_FACES = ("#0072B2", "#E69F00", "#D5E5EE")


def box_with_inertia_ratio(J: Sequence[float]) -> np.ndarray:
    """Return the edges of a homogeneous box whose principal moments are proportional to J."""
    J1, J2, J3 = J
    squares = np.array([J2 + J3 - J1, J3 + J1 - J2, J1 + J2 - J3])
    return np.asarray(np.sqrt(squares / squares.max()))


def box(axes: Any, centre: FloatArray, quaternion: FloatArray, edges: ArrayLike, alpha: float = 1.0) -> None:
    """Plot a box with edges along the axes of its body frame."""
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection  # type: ignore[import-untyped]

    R, half = rot.to_matrix(quaternion), np.asarray(edges) / 2
    for axis, side in itertools.product(range(3), (-1, 1)):
        other = [i for i in range(3) if i != axis]
        corners = []
        for a, b in ((-1, -1), (-1, 1), (1, 1), (1, -1)):
            X = np.zeros(3)
            X[axis], X[other[0]], X[other[1]] = side * half[axis], a * half[other[0]], b * half[other[1]]
            corners.append(np.asarray(centre) + R @ X)
        axes.add_collection3d(
            Poly3DCollection([corners], facecolor=_FACES[axis], edgecolor="#333333", linewidth=0.4, alpha=alpha)
        )


def set_equal_axes(axes: Any, low: Any, high: Any, title: str) -> None:
    """Set limits, equal units and title of a 3-D panel without axes."""
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    axes.set_box_aspect(np.asarray(high) - np.asarray(low), zoom=1.1)
    axes.view_init(elev=22, azim=-58)
    axes.set_axis_off()
    axes.set_title(title, loc="center", y=1.0)
