"""Checks of contacts before a run: initial penetration, and step size against collision duration."""

from __future__ import annotations

from collections.abc import Iterable

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
