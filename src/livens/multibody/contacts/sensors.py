"""What results show of a contact by name: ``ball-floor.force``, ``.point``, ``.normal``, ``.friction``, ``.depth``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca

from livens import math as m
from livens.expressions.parameters import Namespace
from livens.models.quantity import Acting, Quantity
from livens.models.system import System
from livens.multibody.contacts.contact import Contact, Held
from livens.multibody.contacts.friction import Friction, depth_of
from livens.multibody.contacts.geometry.base import TINY, slip


def quantities(contact: Contact, system: System, numbers: Mapping[int, int]) -> dict[str, Quantity]:
    """All of them; forces are those on the second body, in space, at the stored times."""
    place = {name: i for i, name in enumerate(system.coordinates)}
    parts = [_Spot(contact, held, system, numbers, place) for held in contact.spots]
    d, name, second = contact.first.part.dimension, contact.name, contact.second.part.name

    def summed(which: int) -> Any:
        return lambda q, v, lam, t, k: sum((part(q, v, k)[which] for part in parts[1:]), parts[0](q, v, k)[which])

    def deepest(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
        found = parts[0](q, v, k)[2]
        for part in parts[1:]:
            found = ca.fmax(found, part(q, v, k)[2])
        return found

    def force(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
        return sum(ca.sum2(ca.horzcat(*part(q, v, k)[:2])) for part in parts)

    def point(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
        # where nothing touches, all spots count alike
        weights = [part(q, v, k)[4] + TINY for part in parts]
        places = [part(q, v, k)[5] for part in parts]
        return sum(w * x for w, x in zip(weights, places, strict=True)) / sum(weights)

    acting = Acting(on=second, by=contact.first.part.name, at=point)
    found = {
        "force": Quantity(f"force of {name} on {second}, in space", "N", force, shape=(d,), acts=acting),
        "point": Quantity(f"where the force of {name} acts, in space", "m", point, shape=(d,)),
        "normal": Quantity(
            f"normal force of {name}, added over the points that touch",
            "N",
            lambda q, v, lam, t, k: sum(part(q, v, k)[4] for part in parts),
        ),
        "depth": Quantity(f"depth of {name}, negative where there is a gap", "m", deepest),
    }
    if contact.friction is not None:
        found["friction"] = Quantity(f"friction of {name} on {second}, in space", "N", summed(1), shape=(d,))
    if len(parts) == 1:
        found["slip"] = Quantity(
            f"sliding velocity in {name}, of {contact.spots[0].spot.first.name}", "m/s", summed(3), shape=(d,)
        )
    return found


class _Spot:
    """Forces at one spot: ``(normal force, friction, depth, slip, size of the normal force, point)`` of the state."""

    def __init__(
        self, contact: Contact, held: Held, system: System, numbers: Mapping[int, int], place: Mapping[str, int]
    ) -> None:
        self._i = [place[str(c)] for c in held.coordinates]
        # every number of the contact is a parameter of one of its elements
        self._where: list[int] = []
        named: dict[str, Any] = {}
        for element in held.elements:
            indices = list(system.parameter_indices[numbers[id(element)]])[system.shared.size :]
            symbols = [ca.SX.sym("k") for _ in indices]
            named |= element.parameters.named(m.symbols(ca.vertcat(*symbols)) if symbols else m.symbols(ca.SX(0, 1)))
            named |= element.constants
            self._where += indices
            self._k = [*getattr(self, "_k", []), *symbols]
        self._function = _forces(contact, held, Namespace(named), self._k)
        self._sign = 1 if held.spot.second is contact.second.part else -1

    def __call__(self, q: Any, v: Any, k: Any) -> Sequence[Any]:
        normal, friction, depth, sliding, size, point = self._function(q[self._i], v[self._i], k[self._where])
        return self._sign * normal, self._sign * friction, depth, sliding, size, point


def _forces(contact: Contact, held: Held, k: Namespace, symbols: Sequence[Any]) -> ca.Function:
    a, b = held.placements
    geometry, n = held.spot.geometry, len(held.coordinates)
    q, v = ca.SX.sym("q", n), ca.SX.sym("v", n)
    Q, V = m.symbols(q), m.symbols(v)
    gap, normal, point = geometry.touch(a, b, Q, k)
    elastic = contact.law.force(depth_of(gap), k)
    size = elastic
    if contact.damping:
        size = elastic * m.maximum(1.0 - k.damping * geometry.rate(a, b, Q, V, k), 0.0)
    along = slip(a, b, Q, V, normal, point)
    f: Friction | None = contact.friction
    rubbing = 0.0 * along
    if f is not None and f.coefficient:
        rubbing = k.friction * elastic / m.sqrt(m.dot(along, along) + k.smooth**2) * along
    # of the first body they have the other sign
    outputs = [-size * normal, rubbing, -gap, along, size, point]
    return ca.Function("contact", [q, v, ca.vertcat(*symbols)], [ca.densify(m.expression(m.array(x))) for x in outputs])
