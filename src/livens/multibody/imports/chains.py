"""Composition of several dofs between two bodies into one joint, as the links in between have no mass.

Supported are mutually orthogonal slides followed by hinges with successively orthogonal axes that intersect in a point,
and a slide and a hinge with a common axis. This includes cylindrical, universal, spherical and planar joints, sliding
tables, and three slides.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from livens.multibody.imports.robot import Freedom, Link
from livens.multibody.joint_table import SPACE, Kind
from livens.multibody.parts import axes_about

_SMALL = 1e-9


@dataclass(frozen=True, eq=False)
class Composed:
    """Composite joint at a point, with axes as columns; `joint_type` is None if all directions are free."""

    kind: Kind | None
    at: np.ndarray
    axes: np.ndarray
    #: Measurable dofs with their axes, and True if the second body is measured relative to the first.
    measured: tuple[tuple[Freedom, np.ndarray, bool], ...]

    @property
    def what(self) -> str:
        own = None if self.kind is None else _locked(self.kind)
        alike = [name for name, kind in SPACE.items() if not kind.lead and _locked(kind) == own]
        return alike[0] if alike else "sliding"


def _locked(kind: Kind) -> tuple[object, object]:
    return kind.directions, kind.pairs


def composed(link: Link, chain: Sequence[Freedom]) -> Composed:
    """Return the composite joint of a chain of dofs in world axes, from the first body to the second."""
    slides = [one for one in chain if one.kind == "slide"]
    hinges = [one for one in chain if one.kind == "hinge"]
    balls = [one for one in chain if one.kind == "ball"]
    if any(one.kind == "free" for one in chain):
        raise link.node.error("a free joint cannot be combined with other joints: the link in between has no mass")
    if len(hinges) + 3 * len(balls) > 3 or len(slides) > 3:
        raise _refused(link, chain, "more than three slides, or more than three hinges")
    same = len(slides) == len(hinges) == 1 and _parallel(slides[0].axis, hinges[0].axis)
    if not same and list(chain) != [*slides, *hinges, *balls]:
        raise _refused(link, chain, "a slide after a hinge")
    axes = [one.axis for one in hinges]
    if not all(_normal(a, b) for a, b in itertools.pairwise(axes)) or not all(
        _normal(a.axis, b.axis) for i, a in enumerate(slides) for b in slides[i + 1 :]
    ):
        raise _refused(link, chain, "axes that are not normal to one another")
    at = balls[0].at if balls else _meeting(link, chain, hinges) if hinges else chain[0].at
    frame = _frame([one.axis for one in slides], axes)
    along = [i for i in range(3) for one in slides if _parallel(frame[:, i], one.axis)]
    if len(along) < len(slides):
        raise _refused(link, chain, "slides that are neither along nor across the hinges")
    locked = tuple(i + 1 for i in range(3) if i not in along)
    pairs = {0: SPACE["fixed"].pairs, 1: SPACE["revolute"].pairs, 2: ((1, 2),)}.get(len(hinges) + 3 * len(balls), ())
    kind = Kind(locked, pairs) if locked or pairs else None
    measured = [(one, axes_about(one.axis), True) for one in slides]
    if len(hinges) == 1:
        measured.append((hinges[0], axes_about(axes[0]), True))
    elif len(hinges) == 2:  # the second axis is fixed in the second body, relative to which the first is measured
        measured.append((hinges[0], axes_about(axes[0], axes[1]), True))
        measured.append((hinges[1], axes_about(-axes[1], axes[0]), False))
    return Composed(kind, at, frame, tuple(measured))


def _frame(slides: list[np.ndarray], hinges: list[np.ndarray]) -> np.ndarray:
    """Return the joint frame: one hinge is the third axis, two are the first and second; slides take the others."""
    if len(hinges) == 2:
        return np.column_stack([hinges[0], hinges[1], np.cross(hinges[0], hinges[1])])
    if len(hinges) == 1:
        across = [axis for axis in slides if _normal(axis, hinges[0])]
        return axes_about(hinges[0], across[0] if across else None)
    if len(slides) >= 2:  # the normal of two slides is locked
        return axes_about(np.cross(slides[0], slides[1]), slides[0])
    return axes_about(slides[0]) if slides else np.eye(3)


def _meeting(link: Link, chain: Sequence[Freedom], hinges: Sequence[Freedom]) -> np.ndarray:
    """Return the intersection point of the hinge axes."""
    if len(hinges) == 1:
        return hinges[0].at
    across = [np.eye(3) - np.outer(one.axis, one.axis) for one in hinges]
    right = np.concatenate([P @ one.at for P, one in zip(across, hinges, strict=True)])
    point, *_ = np.linalg.lstsq(np.vstack(across), right, rcond=None)
    gap = np.abs(np.vstack(across) @ point - right).max()
    if gap > _SMALL * max(1.0, float(np.abs(right).max())):
        raise _refused(link, chain, "axes that do not meet in a point")
    return np.asarray(point)


def _parallel(a: np.ndarray, b: np.ndarray) -> bool:
    return float(np.linalg.norm(np.cross(a, b))) < _SMALL


def _normal(a: np.ndarray, b: np.ndarray) -> bool:
    return abs(float(a @ b)) < _SMALL


def _refused(link: Link, chain: Sequence[Freedom], why: str) -> Exception:
    names = ", ".join(one.name for one in chain)
    return link.node.error(
        f"there are several joints ({names}) between it and the next body with mass, with {why}; this combination is "
        "not supported as one joint: add links with mass in between"
    )
