"""Named outputs of contacts: ``ball-floor.force``, ``.point``, ``.normal_force``, ``.friction``, ``.depth``."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca

from livens import math as m
from livens.expressions.parameters import ParameterNamespace, Parameters
from livens.models.quantity import AppliedForce, Quantity
from livens.models.system import System
from livens.multibody.contacts.contact_group import ContactGroup
from livens.multibody.contacts.dissipation import Friction, friction_force, hunt_crossley_force, penetration
from livens.multibody.contacts.geometry.pair_geometry import SQRT_EPS, slip_velocity
from livens.multibody.contacts.narrow_phase import contact_points
from livens.multibody.contacts.pair_contact import ContactPointElements, PairContact
from livens.multibody.contacts.shapes import CollisionShape
from livens.types import Expr, FloatArray, ModelFunction

#: Largest number of shapes of a contact group with outputs of single pairs.
_MAX_SHAPES_WITH_OUTPUTS = 40


def pair_outputs(contact: PairContact, system: System, element_index: Mapping[int, int]) -> dict[str, Quantity]:
    """Return the outputs of a pair contact; forces act on the second body, in space."""
    index = {name: i for i, name in enumerate(system.coordinates)}
    points = [_PairPointForces(contact, point, system, element_index, index) for point in contact.points]
    return _contact_outputs(
        contact.name, (contact.shape_a, contact.shape_b), contact.friction, len(points), lambda: points
    )


def group_outputs(group: ContactGroup, system: System, number: int) -> dict[str, Quantity]:
    """Return the outputs of all pairs of a contact group, which is element `number`, as ``first-second.force``.

    Outputs are built on demand. The number of pairs grows quadratically, so only small groups have them.
    """
    outputs: dict[str, Quantity] = {}
    if len(group.shapes) > _MAX_SHAPES_WITH_OUTPUTS:
        return outputs
    index = {name: i for i, name in enumerate(system.coordinates)}
    parameter_indices = list(system.element_parameters[number])[system.model_parameters.size :]
    for shape_a, shape_b in itertools.combinations(group.shapes, 2):
        if shape_a.body is shape_b.body or (shape_a.body.element is None and shape_b.body.element is None):
            continue
        name = f"{shape_a.body.name}-{shape_b.body.name}"
        point_forces = functools.cache(
            functools.partial(_point_forces_of_pair, name, shape_a, shape_b, group, parameter_indices, index)
        )
        pair_outputs_ = _contact_outputs(
            name, (shape_a, shape_b), group.friction, len(contact_points(name, shape_a, shape_b)), point_forces
        )
        for key, quantity in pair_outputs_.items():  # bodies with several shapes: the first pair defines the name
            outputs.setdefault(f"{name}.{key}", dataclasses.replace(quantity, applied=None))
    return outputs


def _point_forces_of_pair(
    name: str,
    shape_a: CollisionShape,
    shape_b: CollisionShape,
    group: ContactGroup,
    parameter_indices: list[int],
    index: Mapping[str, int],
) -> list[_PointForces]:
    contact = PairContact(name, shape_a, shape_b, group.law, group.dissipation, group.friction)
    return [
        _GroupPointForces(contact, point, group.element.parameters, parameter_indices, index)
        for point in contact.points
    ]


def _contact_outputs(
    name: str,
    shapes: tuple[CollisionShape, CollisionShape],
    friction: Friction | None,
    count: int,
    point_forces: Callable[[], Sequence[_PointForces]],
) -> dict[str, Quantity]:
    """Return the outputs of a contact with a given number of contact points."""
    d, body_name = shapes[0].body.dimension, shapes[1].body.name

    def summed(which: int) -> ModelFunction:
        return lambda q, v, lam, t, k: sum(
            (point(q, v, k)[which] for point in point_forces()[1:]), point_forces()[0](q, v, k)[which]
        )

    def deepest(
        q: Expr | FloatArray, v: Expr | FloatArray, lam: Expr | None, t: Expr | float, k: Expr | FloatArray
    ) -> Expr | ca.DM:
        depth = point_forces()[0](q, v, k)[2]
        for point in point_forces()[1:]:
            depth = ca.fmax(depth, point(q, v, k)[2])
        return depth

    def force(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
        return sum(ca.sum2(ca.horzcat(*point(q, v, k)[:2])) for point in point_forces())

    def point(q: Expr, v: Expr, lam: Expr, t: Expr, k: Expr) -> Any:
        # without contact, all contact points have the same weight
        weights = [point_force(q, v, k)[4] + SQRT_EPS for point_force in point_forces()]
        positions = [point_force(q, v, k)[5] for point_force in point_forces()]
        return sum(w * x for w, x in zip(weights, positions, strict=True)) / sum(weights)

    application = AppliedForce(on=body_name, by=shapes[0].body.name, at=point)
    outputs = {
        "force": Quantity(f"force of {name} on {body_name}, in space", "N", force, shape=(d,), applied=application),
        "point": Quantity(f"point of application of the force of {name}, in space", "m", point, shape=(d,)),
        "normal_force": Quantity(
            f"normal force of {name}, summed over its contact points",
            "N",
            lambda q, v, lam, t, k: sum(point_force(q, v, k)[4] for point_force in point_forces()),
        ),
        "depth": Quantity(f"depth of {name}, negative where there is a gap", "m", deepest),
    }
    if friction is not None:
        outputs["friction"] = Quantity(f"friction of {name} on {body_name}, in space", "N", summed(1), shape=(d,))
    if count == 1:
        outputs["slip"] = Quantity(
            f"sliding velocity in {name}, of {contact_points(name, *shapes)[0].body_a.name}",
            "m/s",
            summed(3),
            shape=(d,),
        )
    return outputs


class _PointForces:
    """Forces at one contact point: ``(normal force, friction, depth, slip, magnitude of the normal force, point)``."""

    _dofs: list[int]
    _parameter_indices: list[int]
    _function: ca.Function
    _sign: int

    def __call__(self, q: Any, v: Any, k: Any) -> Sequence[Any]:
        normal, friction, depth, sliding, size, point = self._function(
            q[self._dofs], v[self._dofs], k[self._parameter_indices]
        )
        return self._sign * normal, self._sign * friction, depth, sliding, size, point


class _GroupPointForces(_PointForces):
    """Forces at a contact point of a contact group: sizes are constant, other parameters belong to the group."""

    def __init__(
        self,
        contact: PairContact,
        point: ContactPointElements,
        shared: Parameters,
        parameter_indices: list[int],
        index: Mapping[str, int],
    ) -> None:
        self._dofs, self._parameter_indices = [index[str(c)] for c in point.coordinates], parameter_indices
        k = ca.SX.sym("k", shared.size)
        named = {
            **point.parameters,
            **point.contact_point.parameters,
            **point.contact_point.constants,
            **shared.unpack_symbols(k),
        }
        self._function = _point_force_function(contact, point, ParameterNamespace(named), [k])
        self._sign = 1 if point.contact_point.body_b is contact.shape_b.body else -1


class _PairPointForces(_PointForces):
    """Forces at a contact point of a pair contact with elements."""

    def __init__(
        self,
        contact: PairContact,
        point: ContactPointElements,
        system: System,
        element_index: Mapping[int, int],
        index: Mapping[str, int],
    ) -> None:
        self._dofs = [index[str(c)] for c in point.coordinates]
        # every value of the contact is a parameter of one of its elements
        self._parameter_indices: list[int] = []
        named: dict[str, Any] = {}
        for element in point.elements:
            indices = list(system.element_parameters[element_index[id(element)]])[system.model_parameters.size :]
            symbols = [ca.SX.sym("k") for _ in indices]
            named |= element.parameters.unpack(
                m.from_casadi(ca.vertcat(*symbols)) if symbols else m.from_casadi(ca.SX(0, 1))
            )
            named |= element.constants
            self._parameter_indices += indices
            self._k = [*getattr(self, "_k", []), *symbols]
        self._function = _point_force_function(contact, point, ParameterNamespace(named), self._k)
        self._sign = 1 if point.contact_point.body_b is contact.shape_b.body else -1


def _point_force_function(
    contact: PairContact, contact_point: ContactPointElements, k: ParameterNamespace, symbols: Sequence[Expr]
) -> ca.Function:
    a, b = contact_point.parametrisations
    geometry, n = contact_point.contact_point.geometry, len(contact_point.coordinates)
    q, v = ca.SX.sym("q", n), ca.SX.sym("v", n)
    Q, V = m.from_casadi(q), m.from_casadi(v)
    gap, normal, point = geometry.contact_frame(a, b, Q, k)
    elastic = contact.law.force(penetration(gap), k)
    normal_magnitude = elastic
    if contact.dissipation:
        normal_magnitude = hunt_crossley_force(elastic, k.damping, -geometry.gap_rate(a, b, Q, V, k))
    slip_v = slip_velocity(a, b, Q, V, normal, point)
    f: Friction | None = contact.friction
    friction = 0.0 * slip_v
    if f is not None and f.coefficient:
        friction = -friction_force(elastic, slip_v, k.friction, k.smooth)
    # forces on the second body of the contact point; those on the first have the opposite sign
    _, gradient = geometry.gap_gradient(a, b, Q, k)  # longer or shorter than the normal where the gap is no distance
    magnitude = normal_magnitude * m.dot(gradient, normal)
    outputs = [-normal_magnitude * gradient, friction, -gap, slip_v, magnitude, point]
    return ca.Function("contact", [q, v, ca.vertcat(*symbols)], [ca.densify(m.to_casadi(m.array(x))) for x in outputs])
