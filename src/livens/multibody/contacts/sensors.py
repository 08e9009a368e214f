"""Named outputs of contacts: ``ball-floor.force``, ``.point``, ``.normal_force``, ``.friction``, ``.depth``."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca

from livens import math as m
from livens.expressions.parameters import Namespace, Parameters
from livens.models.quantity import Acting, Quantity
from livens.models.system import System
from livens.multibody.contacts.contact import Contact, Held
from livens.multibody.contacts.crowd import DrawnCrowd
from livens.multibody.contacts.friction import Friction, depth_of
from livens.multibody.contacts.geometry.base import TINY, slip
from livens.multibody.contacts.pairs import spots
from livens.multibody.contacts.shape import Shape

#: Largest number of shapes of a contact group with outputs of single pairs.
_MOST_SHAPES = 40


def quantities(contact: Contact, system: System, numbers: Mapping[int, int]) -> dict[str, Quantity]:
    """Return the outputs of a pair contact; forces act on the second body, in space."""
    place = {name: i for i, name in enumerate(system.coordinates)}
    parts = [_Spot(contact, held, system, numbers, place) for held in contact.spots]
    return _shown(contact.name, (contact.first, contact.second), contact.friction, len(parts), lambda: parts)


def of_crowd(crowd: DrawnCrowd, system: System, number: int) -> dict[str, Quantity]:
    """Return the outputs of all pairs of a contact group, which is element `number`, as ``first-second.force``.

    Outputs are built on demand. The number of pairs grows quadratically, so only small groups have them.
    """
    found: dict[str, Quantity] = {}
    if len(crowd.shapes) > _MOST_SHAPES:
        return found
    place = {name: i for i, name in enumerate(system.coordinates)}
    where = list(system.parameter_indices[number])[system.shared.size :]
    for one, other in itertools.combinations(crowd.shapes, 2):
        if one.part is other.part or (one.part.element is None and other.part.element is None):
            continue
        name = f"{one.part.name}-{other.part.name}"
        made = functools.cache(functools.partial(_of_pair, name, one, other, crowd, where, place))
        shown = _shown(name, (one, other), crowd.friction, len(spots(name, one, other)), made)
        for word, quantity in shown.items():  # bodies with several shapes: the first pair defines the name
            found.setdefault(f"{name}.{word}", dataclasses.replace(quantity, acts=None))
    return found


def _of_pair(
    name: str, one: Shape, other: Shape, crowd: DrawnCrowd, where: list[int], place: Mapping[str, int]
) -> list[_Pushing]:
    contact = Contact(name, one, other, crowd.law, crowd.damping, crowd.friction)
    return [_Paired(contact, held, crowd.element.parameters, where, place) for held in contact.spots]


def _shown(
    name: str,
    shapes: tuple[Shape, Shape],
    friction: Friction | None,
    count: int,
    made: Callable[[], Sequence[_Pushing]],
) -> dict[str, Quantity]:
    """Return the outputs of a contact with a given number of contact points."""
    d, second = shapes[0].part.dimension, shapes[1].part.name

    def summed(which: int) -> Any:
        return lambda q, v, lam, t, k: sum((part(q, v, k)[which] for part in made()[1:]), made()[0](q, v, k)[which])

    def deepest(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
        found = made()[0](q, v, k)[2]
        for part in made()[1:]:
            found = ca.fmax(found, part(q, v, k)[2])
        return found

    def force(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
        return sum(ca.sum2(ca.horzcat(*part(q, v, k)[:2])) for part in made())

    def point(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
        # without contact, all contact points have the same weight
        weights = [part(q, v, k)[4] + TINY for part in made()]
        places = [part(q, v, k)[5] for part in made()]
        return sum(w * x for w, x in zip(weights, places, strict=True)) / sum(weights)

    acting = Acting(on=second, by=shapes[0].part.name, at=point)
    found = {
        "force": Quantity(f"force of {name} on {second}, in space", "N", force, shape=(d,), acts=acting),
        "point": Quantity(f"point of application of the force of {name}, in space", "m", point, shape=(d,)),
        "normal": Quantity(
            f"normal force of {name}, summed over its contact points",
            "N",
            lambda q, v, lam, t, k: sum(part(q, v, k)[4] for part in made()),
        ),
        "depth": Quantity(f"depth of {name}, negative where there is a gap", "m", deepest),
    }
    if friction is not None:
        found["friction"] = Quantity(f"friction of {name} on {second}, in space", "N", summed(1), shape=(d,))
    if count == 1:
        found["slip"] = Quantity(
            f"sliding velocity in {name}, of {spots(name, *shapes)[0].first.name}", "m/s", summed(3), shape=(d,)
        )
    return found


class _Pushing:
    """Forces at one contact point: ``(normal force, friction, depth, slip, magnitude of the normal force, point)``."""

    _i: list[int]
    _where: list[int]
    _function: ca.Function
    _sign: int

    def __call__(self, q: Any, v: Any, k: Any) -> Sequence[Any]:
        normal, friction, depth, sliding, size, point = self._function(q[self._i], v[self._i], k[self._where])
        return self._sign * normal, self._sign * friction, depth, sliding, size, point


class _Paired(_Pushing):
    """Forces at a contact point of a contact group: sizes are constant, other parameters belong to the group."""

    def __init__(
        self, contact: Contact, held: Held, shared: Parameters, where: list[int], place: Mapping[str, int]
    ) -> None:
        self._i, self._where = [place[str(c)] for c in held.coordinates], where
        k = ca.SX.sym("k", shared.size)
        named = {**held.parameters, **held.spot.sizes, **held.spot.constants, **shared.symbols(k)}
        self._function = _forces(contact, held, Namespace(named), [k])
        self._sign = 1 if held.spot.second is contact.second.part else -1


class _Spot(_Pushing):
    """Forces at a contact point of a pair contact with elements."""

    def __init__(
        self, contact: Contact, held: Held, system: System, numbers: Mapping[int, int], place: Mapping[str, int]
    ) -> None:
        self._i = [place[str(c)] for c in held.coordinates]
        # every value of the contact is a parameter of one of its elements
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
    # forces on the second body of the contact point; those on the first have the opposite sign
    outputs = [-size * normal, rubbing, -gap, along, size, point]
    return ca.Function("contact", [q, v, ca.vertcat(*symbols)], [ca.densify(m.expression(m.array(x))) for x in outputs])
