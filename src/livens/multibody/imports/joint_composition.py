"""Composition of several dofs between two bodies into one joint, as the links in between have no mass.

Supported are mutually orthogonal slides before or after hinges with successively orthogonal axes that intersect in a
point, and a slide and a hinge with a common axis. This includes cylindrical, universal, spherical and planar joints,
sliding tables, and three slides.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from livens.multibody.body import frame_from_z
from livens.multibody.imports.robot_description import JointDof, Link
from livens.multibody.joint_types import SPATIAL_JOINTS, JointType

_AXIS_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class MeasuredDof:
    """Measurable dof of a composite joint with the axes of its `JointCoordinate`.

    `is_forward` is True if the second body is measured relative to the first. `last_axis` is that of the second of
    three hinges.
    """

    dof: JointDof
    axes: np.ndarray
    is_forward: bool = True
    last_axis: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class CompositeJoint:
    """Composite joint at a point, with axes as columns; `joint_type` is None if all directions are free."""

    joint_type: JointType | None
    point: np.ndarray
    axes: np.ndarray
    coordinates: tuple[MeasuredDof, ...]
    #: True if the joint leads from the second body to the first.
    is_reversed: bool = False

    @property
    def type_name(self) -> str:
        locked = None if self.joint_type is None else _locked(self.joint_type)
        equivalent = [
            name for name, joint_type in SPATIAL_JOINTS.items() if not joint_type.lead and _locked(joint_type) == locked
        ]
        return equivalent[0] if equivalent else "sliding"


def _locked(joint_type: JointType) -> tuple[object, object]:
    return joint_type.locked_translations, joint_type.orthogonal_axes


def compose_joint(link: Link, chain: Sequence[JointDof]) -> CompositeJoint:
    """Return the composite joint of a chain of dofs in world axes, from the first body to the second."""
    slides = [dof for dof in chain if dof.dof_type == "slide"]
    hinges = [dof for dof in chain if dof.dof_type == "hinge"]
    balls = [dof for dof in chain if dof.dof_type == "ball"]
    if any(dof.dof_type == "free" for dof in chain):
        raise link.node.error("a free joint cannot be combined with other joints: the link in between has no mass")
    if len(hinges) + 3 * len(balls) > 3 or len(slides) > 3:
        raise _unsupported_error(link, chain, "more than three slides, or more than three hinges")
    coaxial = len(slides) == len(hinges) == 1 and _parallel(slides[0].axis, hinges[0].axis)
    if slides and hinges and not coaxial and list(chain) == [*hinges, *slides]:
        # seen from the second body, slides come first
        reversed_chain = [replace(dof, axis=-dof.axis) for dof in reversed(chain)]
        return replace(compose_joint(link, reversed_chain), is_reversed=True)
    if not coaxial and list(chain) != [*slides, *hinges, *balls]:
        raise _unsupported_error(link, chain, "a slide between hinges, or a slide beside a ball joint")
    axes = [dof.axis for dof in hinges]
    if not all(_normal(a, b) for a, b in itertools.pairwise(axes)) or not all(
        _normal(a.axis, b.axis) for i, a in enumerate(slides) for b in slides[i + 1 :]
    ):
        raise _unsupported_error(link, chain, "axes that are not normal to one another")
    point = balls[0].point if balls else _axes_intersection(link, chain, hinges) if hinges else chain[0].point
    frame = _frame([dof.axis for dof in slides], axes)
    along = [i for i in range(3) for dof in slides if _parallel(frame[:, i], dof.axis)]
    if len(along) < len(slides):
        raise _unsupported_error(link, chain, "slides that are neither along nor across the hinges")
    locked = tuple(i + 1 for i in range(3) if i not in along)
    pairs = {
        0: SPATIAL_JOINTS["fixed"].orthogonal_axes,
        1: SPATIAL_JOINTS["revolute"].orthogonal_axes,
        2: ((1, 2),),
    }.get(len(hinges) + 3 * len(balls), ())
    joint_type = JointType(locked, pairs) if locked or pairs else None
    coordinates = [MeasuredDof(dof, frame_from_z(dof.axis)) for dof in slides]
    if len(hinges) == 1:
        coordinates.append(MeasuredDof(hinges[0], frame_from_z(axes[0])))
    elif len(hinges) == 2:  # the second axis is fixed in the second body, relative to which the first is measured
        coordinates.append(MeasuredDof(hinges[0], frame_from_z(axes[0], axes[1])))
        coordinates.append(MeasuredDof(hinges[1], frame_from_z(-axes[1], axes[0]), False))
    elif len(hinges) == 3 and _normal(axes[0], axes[2]):  # Cardan angles
        sign = np.sign(axes[0] @ np.cross(axes[1], axes[2]))
        coordinates.append(MeasuredDof(hinges[0], frame_from_z(axes[0], axes[2])))
        middle = np.column_stack([axes[1], axes[2], sign * axes[0]])
        coordinates.append(MeasuredDof(hinges[1], middle, last_axis=axes[2]))
        coordinates.append(MeasuredDof(hinges[2], frame_from_z(-axes[2], axes[0]), False))
    return CompositeJoint(joint_type, point, frame, tuple(coordinates))


def _frame(slides: list[np.ndarray], hinges: list[np.ndarray]) -> np.ndarray:
    """Return the joint frame: one hinge is the third axis, two are the first and second; slides take the others."""
    if len(hinges) == 2:
        return np.column_stack([hinges[0], hinges[1], np.cross(hinges[0], hinges[1])])
    if len(hinges) == 1:
        across = [axis for axis in slides if _normal(axis, hinges[0])]
        return frame_from_z(hinges[0], across[0] if across else None)
    if len(slides) >= 2:  # the normal of two slides is locked
        return frame_from_z(np.cross(slides[0], slides[1]), slides[0])
    return frame_from_z(slides[0]) if slides else np.eye(3)


def _axes_intersection(link: Link, chain: Sequence[JointDof], hinges: Sequence[JointDof]) -> np.ndarray:
    """Return the intersection point of the hinge axes."""
    if len(hinges) == 1:
        return hinges[0].point
    across = [np.eye(3) - np.outer(dof.axis, dof.axis) for dof in hinges]
    right_hand_side = np.concatenate([P @ dof.point for P, dof in zip(across, hinges, strict=True)])
    point, *_ = np.linalg.lstsq(np.vstack(across), right_hand_side, rcond=None)
    gap = np.abs(np.vstack(across) @ point - right_hand_side).max()
    if gap > _AXIS_TOLERANCE * max(1.0, float(np.abs(right_hand_side).max())):
        raise _unsupported_error(link, chain, "axes that do not meet in a point")
    return np.asarray(point)


def _parallel(a: np.ndarray, b: np.ndarray) -> bool:
    return float(np.linalg.norm(np.cross(a, b))) < _AXIS_TOLERANCE


def _normal(a: np.ndarray, b: np.ndarray) -> bool:
    return abs(float(a @ b)) < _AXIS_TOLERANCE


def _unsupported_error(link: Link, chain: Sequence[JointDof], reason: str) -> Exception:
    names = ", ".join(dof.name for dof in chain)
    return link.node.error(
        f"there are several joints ({names}) between it and the next body with mass, with {reason}; "
        "this combination is not supported as one joint: add links with mass in between"
    )
