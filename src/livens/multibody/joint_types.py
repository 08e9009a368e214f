"""Table of joint types: locked translations and orthogonality conditions of axes.

Both bodies have a frame at the joint, with axes a_1 a_2 a_3 and b_1 b_2 b_3 that coincide in the reference
configuration; the third is the joint axis. A locked translation i is ``a_i . (x_b - x_a) = 0``. If all translations are
locked, the points coincide, which is linear. An orthogonality condition ij is ``a_i . b_j = 0``. All constraints are at
most quadratic in the directors.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from livens import math as m
from livens.expressions.tracing import ModelFunction
from livens.multibody.parametrisation import GroundParametrisation, Parametrisation
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


@dataclass(frozen=True)
class JointType:
    """Joint type: locked translations, orthogonal pairs of axes, and free coordinates."""

    locked_translations: tuple[int, ...]
    orthogonal_axes: tuple[tuple[int, int], ...] = ()
    angle: bool = False  # rotation about the third axis
    slide: bool = False  # translation along the third axis
    axis: bool = True  # an axis is required
    lead: bool = False  # screw: translation coupled to rotation

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the constraints."""
        return (*(f"along {i}" for i in self.locked_translations), *(f"axes {i}{j}" for i, j in self.orthogonal_axes))


_PARALLEL = ((1, 3), (2, 3))
_RIGID = ((1, 2), (2, 3), (3, 1))
SPATIAL_JOINTS = {
    "fixed": JointType((1, 2, 3), _RIGID, axis=False),
    "revolute": JointType((1, 2, 3), _PARALLEL, angle=True),
    "prismatic": JointType((1, 2), _RIGID, slide=True),
    "cylindrical": JointType((1, 2), _PARALLEL, angle=True, slide=True),
    "screw": JointType((1, 2), _PARALLEL, angle=True, slide=True, lead=True),
    "universal": JointType((1, 2, 3), ((1, 2),)),
    "spherical": JointType((1, 2, 3), axis=False),
    "planar": JointType((3,), _PARALLEL, angle=True),
    "point_on_line": JointType((1, 2), slide=True),
    "point_on_plane": JointType((3,)),
}
#: Planar joint types: translation along the first axis, rotation about the normal of the plane.
PLANAR_JOINTS = {
    "fixed": JointType((1, 2), ((1, 2),), axis=False),
    "revolute": JointType((1, 2), angle=True, axis=False),
    "prismatic": JointType((2,), ((1, 2),), slide=True),
    "point_on_line": JointType((2,), slide=True),
}


@dataclass(frozen=True)
class JointFrame:
    """Joint frame on one body; zero components and axes that are body axes are not evaluated.

    `lever` marks the non-zero components of the local position. `axes` contains the body axis and the sign of each
    joint axis, or None if a joint axis is not a body axis.
    """

    parametrisation: Parametrisation
    nonzero: tuple[bool, ...]
    axes: tuple[tuple[int, int], ...] | None

    @classmethod
    def from_values(cls, parametrisation: Parametrisation, local_position: np.ndarray, axes: np.ndarray) -> JointFrame:
        """Return the joint frame of a numerical position and axes."""
        if isinstance(parametrisation, GroundParametrisation):
            return cls(parametrisation, (True,) * len(local_position), None)
        body_axes = [
            (int(np.argmax(np.abs(column))), int(np.sign(column[np.argmax(np.abs(column))]))) for column in axes.T
        ]
        exact = np.zeros_like(axes)
        for j, (i, sign) in enumerate(body_axes):
            exact[i, j] = sign
        aligned = parametrisation.has_orientation and bool(np.array_equal(exact, axes))
        return cls(parametrisation, tuple(bool(x) for x in local_position), tuple(body_axes) if aligned else None)

    def parameters(self, local_position: np.ndarray, axes: np.ndarray, names: str, uses_axes: bool) -> dict[str, Any]:
        """Return the parameters of this side: ``X`` or its non-zero components, and ``A`` if it is needed."""
        X, A = names[0], names[1]
        point_parameters = (
            {X: local_position}
            if all(self.nonzero)
            else {f"{X}{i + 1}": local_position[i] for i, used in enumerate(self.nonzero) if used}
        )
        return point_parameters | ({A: axes} if self.axes is None and uses_axes else {})

    def point(self, q: Vector, k: ParameterNamespace, name: str) -> Any:
        """Return the position of the joint on this body."""
        if all(self.nonzero):
            return self.parametrisation.point(q, getattr(k, name))
        return self.parametrisation.point(
            q, [getattr(k, f"{name}{i + 1}") if used else 0.0 for i, used in enumerate(self.nonzero)]
        )

    def axis(self, q: Vector, k: ParameterNamespace, name: str, number: int) -> Any:
        """Return a joint axis in space."""
        if self.axes is None:
            return self.parametrisation.vector(q, getattr(k, name)[:, number - 1])
        i, sign = self.axes[number - 1]
        d = self.parametrisation.dimension
        director = q[d * (1 + i) : d * (2 + i)]
        return director if sign == 1 else -director


@functools.cache
def joint_constraints(a: JointFrame, b: JointFrame, joint_type: JointType) -> ModelFunction:
    """Return the constraint function of a joint type; k contains points X, Y and axes A, B (columns)."""

    def constraints(q: Vector, k: ParameterNamespace) -> Any:
        qa, qb = split_pair(a.parametrisation, q)
        gap = b.point(qb, k, "Y") - a.point(qa, k, "X")
        if len(joint_type.locked_translations) == a.parametrisation.dimension:
            translations = list(gap)
        else:
            translations = [m.dot(a.axis(qa, k, "A", i), gap) for i in joint_type.locked_translations]
        return translations + [
            m.dot(a.axis(qa, k, "A", i), b.axis(qb, k, "B", j)) for i, j in joint_type.orthogonal_axes
        ]

    return constraints


def split_pair(a: Parametrisation, q: Vector) -> tuple[Vector, Vector]:
    """Return the coordinates of the first and of the second body."""
    n = len(a.names)
    return q[:n], q[n:]


def n_angle_invariants(B: Any) -> int:
    """Return the number of invariants of a joint angle: 3 for a second Cardan angle, whose B is a single column."""
    return 3 if B.shape == (3, 1) else 2


def angle_invariants(a: Parametrisation, b: Parametrisation, q: Vector, A: Any, B: Any) -> list[ScalarLike]:
    """Return the invariants of the joint angle of b relative to a: products of joint axes, bilinear in the directors.

    Two invariants are cosine and sine. The second Cardan angle of three hinges has three, for A with the second, third
    and first hinge axes and B with the third: the cosine is the length of the first two, the third is the sine.
    """
    qa, qb = split_pair(a, q)
    axis_b = b.vector(qb, B[:, 0])
    return [m.dot(a.vector(qa, A[:, i]), axis_b) for i in range(n_angle_invariants(B))]


def cosine_sine(w: Any) -> tuple[Any, Any]:
    """Return cosine and sine of a joint angle from its invariants, up to a common positive factor."""
    return (w[0], w[1]) if len(w) == 2 else (m.sqrt(w[0] ** 2 + w[1] ** 2), w[2])


def cos_sin_angle(
    a: Parametrisation, b: Parametrisation, q: Vector, A: Vector, B: Vector
) -> tuple[ScalarLike, ScalarLike]:
    """Return cosine and sine of the joint angle of b relative to a (times the lengths of the directors)."""
    return cosine_sine(angle_invariants(a, b, q, A, B))
