"""Whether a drawing may start as it does: bodies that overlap too far, blows that steps are too long for."""

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

#: A blow that is shorter than this many steps may be missed; one this long is followed well.
FEWEST, ENOUGH = 2, 20
#: Slower than this, bodies lie on each other rather than meet.
SLOW = 1e-2


def check_overlaps(contacts: Iterable[Contact], system: System, q: np.ndarray) -> None:
    """Bodies may press into each other by a little, as their weight does, and not by a mistake in the drawing."""
    for contact in contacts:
        limit = DEEPEST * min(contact.first.size, contact.second.size)
        depth = max((-_gap(held, system, q, 0 * q)[0] for held in contact.spots), default=0.0)
        if depth > limit:
            raise InputError(
                f"{contact.name}: '{contact.first.part.name}' and '{contact.second.part.name}' overlap by {depth:.3g} "
                f"at the start, which is more than a contact is made for ({limit:.3g}): move them apart"
            )


def check_steps(contacts: Iterable[Contact], system: System, q: np.ndarray, v: np.ndarray, h: Any, g: float) -> None:
    """Bodies that are about to meet must touch for at least two steps, or one may go through the other unseen."""
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
                    f"{contact.name}: a blow at {speed:.3g} m/s lasts {lasts:.2g} s, which steps of h = {h:g} may "
                    f"miss: h = {lasts / ENOUGH:.1g} would do, or a smaller stiffness"
                )


def _gap(held: Held, system: System, q: np.ndarray, v: np.ndarray) -> tuple[float, float]:
    """The gap of a spot in a state, and its rate."""
    place = {name: i for i, name in enumerate(system.coordinates)}
    i = [place[str(c)] for c in held.coordinates]
    a, b = held.placements
    k = Namespace({**held.spot.sizes, **held.spot.constants})
    own, rates = ca.SX.sym("q", len(i)), ca.SX.sym("v", len(i))
    gap = m.expression(held.spot.geometry.gap_at(a, b, m.symbols(own), k))
    found = ca.Function("gap", [own, rates], [gap, ca.jtimes(gap, own, rates)])(q[i], v[i])
    return float(found[0]), float(found[1])
