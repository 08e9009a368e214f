"""Checks of contacts before a run: initial penetration, and step size against collision duration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.expressions.parameters import Namespace
from livens.models.system import System
from livens.multibody.contacts.contact import DEEPEST, Contact, Held, reduced_mass

#: Smallest and recommended number of steps per collision.
FEWEST, ENOUGH = 2, 20
#: Approach velocity in m/s below which the step size is not checked.
SLOW = 1e-2


def check_overlaps(contacts: Iterable[Contact], system: System, q: np.ndarray) -> None:
    """Raise InputError if the initial penetration of two bodies exceeds the limit."""
    for contact in contacts:
        limit = DEEPEST * min(contact.first.size, contact.second.size)
        depth = max((-_gap(held, system, q, 0 * q)[0] for held in contact.spots), default=0.0)
        if depth > limit:
            raise InputError(
                f"{contact.name}: '{contact.first.part.name}' and '{contact.second.part.name}' overlap by {depth:.3g} "
                f"at the start, which exceeds the allowed initial penetration ({limit:.3g}): move them apart"
            )


def check_steps(contacts: Iterable[Contact], system: System, q: np.ndarray, v: np.ndarray, h: Any, g: float) -> None:
    """Raise InputError if an expected collision lasts less than two steps, so that bodies could interpenetrate."""
    if not isinstance(h, (int, float)) or not h > 0:
        return
    for contact in contacts:
        mass = reduced_mass(contact.first.part, contact.second.part)
        for held in contact.spots:
            gap, rate = _gap(held, system, q, v)
            speed = float(np.sqrt(min(rate, 0.0) ** 2 + 2 * g * max(gap, 0.0)))
            if speed < SLOW:
                continue
            lasts = np.pi / contact.law.frequency(held.parameters, mass, speed)
            if lasts < FEWEST * h:
                raise InputError(
                    f"{contact.name}: a collision at {speed:.3g} m/s lasts {lasts:.2g} s, too short for steps of "
                    f"h = {h:g}: use h <= {lasts / ENOUGH:.1g}, or a smaller stiffness"
                )


def _gap(held: Held, system: System, q: np.ndarray, v: np.ndarray) -> tuple[float, float]:
    """Return the gap of a contact point in a state, and its rate."""
    place = {name: i for i, name in enumerate(system.coordinates)}
    i = [place[str(c)] for c in held.coordinates]
    a, b = held.placements
    k = Namespace({**held.spot.sizes, **held.spot.constants})
    own, rates = ca.SX.sym("q", len(i)), ca.SX.sym("v", len(i))
    gap = m.expression(held.spot.geometry.gap_at(a, b, m.symbols(own), k))
    found = ca.Function("gap", [own, rates], [gap, ca.jtimes(gap, own, rates)])(q[i], v[i])
    return float(found[0]), float(found[1])
