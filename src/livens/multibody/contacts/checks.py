"""Checks of contacts: initial penetration, step size against collision duration, and tunnelling of pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.expressions.parameters import ParameterNamespace
from livens.models.system import System
from livens.multibody.contacts.pair_contact import (
    MAX_INITIAL_PENETRATION,
    ContactPointElements,
    PairContact,
    reduced_mass,
)
from livens.multibody.contacts.shapes import CollisionShape, HollowCylinder, HollowSphere, Torus

#: Shapes around or through which other bodies move.
_CONCAVE = HollowSphere, HollowCylinder, Torus

#: Smallest and recommended number of steps per collision.
MIN_STEPS_PER_COLLISION, GOOD_STEPS_PER_COLLISION = 2, 20
#: Approach velocity in m/s below which the step size is not checked.
MIN_CHECKED_SPEED = 1e-2


def check_initial_penetration(contacts: Iterable[PairContact], system: System, q: np.ndarray) -> None:
    """Raise InputError if the initial penetration of two bodies exceeds the limit."""
    for contact in contacts:
        limit = MAX_INITIAL_PENETRATION * min(contact.shape_a.characteristic_size, contact.shape_b.characteristic_size)
        depth = max((-_gap_and_rate(point, system, q, 0 * q)[0] for point in contact.points), default=0.0)
        if depth > limit:
            raise InputError(
                f"{contact.name}: '{contact.shape_a.body.name}' and '{contact.shape_b.body.name}' overlap by "
                f"{depth:.3g} at the start, which exceeds the allowed initial penetration ({limit:.3g}): "
                "move them apart"
            )


def check_step_size(
    contacts: Iterable[PairContact], system: System, q: np.ndarray, v: np.ndarray, h: float, g: float
) -> None:
    """Raise InputError if an expected collision lasts less than two steps, so that bodies could interpenetrate."""
    if not isinstance(h, (int, float)) or not h > 0:
        return
    for contact in contacts:
        mass = reduced_mass(contact.shape_a.body, contact.shape_b.body)
        for point in contact.points:
            gap, rate = _gap_and_rate(point, system, q, v)
            speed = float(np.sqrt(min(rate, 0.0) ** 2 + 2 * g * max(gap, 0.0)))
            if speed < MIN_CHECKED_SPEED:
                continue
            duration = np.pi / contact.law.collision_frequency(point.parameters, mass, speed)
            if duration < MIN_STEPS_PER_COLLISION * h:
                raise InputError(
                    f"{contact.name}: a collision at {speed:.3g} m/s lasts {duration:.2g} s, too short for steps of "
                    f"h = {h:g}: use h <= {duration / GOOD_STEPS_PER_COLLISION:.1g}, or a smaller stiffness"
                )


@dataclass(frozen=True, eq=False)
class SweptPair:
    """Bounding spheres of two shapes in contact, for the detection of tunnelling."""

    name: str
    bodies: tuple[str, str]
    centres: tuple[SphereCentre, SphereCentre]
    radius_sum: float

    def passes(self, q: np.ndarray) -> np.ndarray:
        """Return the steps, as a mask, in which the spheres meet and move by more than the sum of their radii."""
        arm = self.centres[0].positions(q) - self.centres[1].positions(q)
        limit, start, change = self.radius_sum**2, arm[:-1], np.diff(arm, axis=0)
        square = np.einsum("ij,ij->i", change, change)
        fast = np.flatnonzero(square > limit)
        passing = np.zeros(len(start), dtype=bool)
        if fast.size:
            s = np.clip(-np.einsum("ij,ij->i", start[fast], change[fast]) / square[fast], 0.0, 1.0)
            nearest = start[fast] + s[:, None] * change[fast]
            passing[fast] = (nearest**2).sum(axis=1) < limit
        return passing


@dataclass(frozen=True, eq=False)
class SphereCentre:
    """Centre of a bounding sphere as an affine function of the coordinates."""

    offset: np.ndarray
    indices: tuple[int, ...]  # of the centre of the body, then of its directors; empty for the ground
    local_position: np.ndarray

    def positions(self, q: np.ndarray) -> np.ndarray:
        """Return the positions for rows of coordinates, of shape (n_rows, d)."""
        if not self.indices:
            return np.broadcast_to(self.offset, (len(q), len(self.offset)))
        d, vectors = len(self.offset), q[:, self.indices[0] : self.indices[-1] + 1]
        positions = vectors[:, :d]
        for j, x in enumerate(self.local_position):
            if x:
                positions = positions + x * vectors[:, d * (j + 1) : d * (j + 2)]
        return positions


def swept_pairs(contacts: Iterable[PairContact], system: System) -> tuple[SweptPair, ...]:
    """Return the pairs of convex shapes of finite size, which could pass each other within a step."""
    index, pairs = {name: i for i, name in enumerate(system.coordinates)}, []
    for contact in contacts:
        shapes = contact.shape_a, contact.shape_b
        radius_sum = sum(shape.bounding_radius for shape in shapes)
        if np.isfinite(radius_sum) and not any(isinstance(shape, _CONCAVE) for shape in shapes):
            a, b = (_sphere_centre(shape, index) for shape in shapes)
            if a is not None and b is not None:
                pairs.append(SweptPair(contact.name, (shapes[0].body.name, shapes[1].body.name), (a, b), radius_sum))
    return tuple(pairs)


def _sphere_centre(shape: CollisionShape, index: Mapping[str, int]) -> SphereCentre | None:
    """Return the centre of a bounding sphere; None if the body has no contiguous position and directors."""
    d, indices = shape.body.dimension, tuple(index[str(c)] for c in shape.body.coordinates)
    is_contiguous = not indices or indices == tuple(range(indices[0], indices[0] + len(indices)))
    if len(indices) not in (0, d, d * (d + 1)) or not is_contiguous:
        return None
    local_position = shape.local_position if len(indices) > d else np.zeros(0)
    return SphereCentre(shape.reference_position, indices, local_position)


def _gap_and_rate(point: ContactPointElements, system: System, q: np.ndarray, v: np.ndarray) -> tuple[float, float]:
    """Return the gap of a contact point in a state, and its rate."""
    index = {name: i for i, name in enumerate(system.coordinates)}
    i = [index[str(c)] for c in point.coordinates]
    a, b = point.parametrisations
    k = ParameterNamespace({**point.contact_point.parameters, **point.contact_point.constants})
    coordinates, rates = ca.SX.sym("q", len(i)), ca.SX.sym("v", len(i))
    gap = m.to_casadi(point.contact_point.geometry.gap_at(a, b, m.from_casadi(coordinates), k))
    values = ca.Function("gap", [coordinates, rates], [gap, ca.jtimes(gap, coordinates, rates)])(q[i], v[i])
    return float(values[0]), float(values[1])
