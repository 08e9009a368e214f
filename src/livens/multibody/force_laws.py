"""Forces between two points by a law of their distance, also with ends that move as functions of time."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import casadi as ca

from livens import math as m
from livens.expressions.tracing import ModelFunction
from livens.models.element import Element, InvariantForm, of_invariants
from livens.multibody import visuals
from livens.multibody.body_elements import attachment_pair, relative_position
from livens.multibody.parametrisation import Parametrisation
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace

#: Position of an end in space as a function of time; None for an end at rest or in a body.
Motion = ModelFunction | None
#: Names of the arguments of a force law, and of a potential.
FORCE_ARGUMENTS = (("length",), ("rate", "velocity"), ("t",), ("k",))
POTENTIAL_ARGUMENTS = (("length",), ("k",))


def point_force(
    point_a: Any,
    point_b: Any,
    *,
    force: ModelFunction | None = None,
    potential: ModelFunction | None = None,
    motion: tuple[Motion, Motion] = (None, None),
    parameters: dict[str, Any],
) -> Element:
    """Return a force between two points, with a tension ``force(length, rate, t, k)`` and ``potential(length, k)``."""
    a, b, local_positions, name = attachment_pair(point_a, point_b, "force")
    sides = a.parametrisation, b.parametrisation
    functions: dict[str, Any] = {}
    if force is not None:
        functions["forces"] = _law_forces(*sides, force, motion)
    if potential is not None:
        functions["potential"] = _law_potential(*sides, potential, motion)
    if motion == (None, None):
        functions["visual"] = visuals.link_visual(*sides, "spring")
    coordinates = [*a.coordinates, *b.coordinates]
    return Element(coordinates, name=name, parameters=local_positions | parameters, **functions)


def gap(
    a: Parametrisation,
    b: Parametrisation,
    motion: tuple[Motion, Motion],
    q: Vector,
    t: ScalarLike,
    k: ParameterNamespace,
) -> Vector:
    """Return the vector from the second point to the first."""
    x: Any = relative_position(a, b, q, k)
    for law, sign in zip(motion, (1.0, -1.0), strict=True):
        if law is not None:
            x = x + sign * m.array(law(t))
    return m.array(x)


@functools.cache
def _law_potential(
    a: Parametrisation, b: Parametrisation, law: ModelFunction, motion: tuple[Motion, Motion]
) -> InvariantForm | ModelFunction:
    if motion != (None, None):
        return lambda q, t, k: law(m.norm(gap(a, b, motion, q, t, k)), k)
    invariants, is_square = _distance_invariants(a, b)
    return of_invariants(invariants, lambda w, k: law(m.sqrt(w[0]) if is_square else m.norm(w), k))


@functools.cache
def _law_forces(
    a: Parametrisation, b: Parametrisation, law: ModelFunction, motion: tuple[Motion, Motion]
) -> InvariantForm | ModelFunction:
    if motion != (None, None):
        return _forces_at_moving_points(a, b, law, motion)
    invariants, is_square = _distance_invariants(a, b)

    def forces(w: Any, u: Any, t: Any, k: Any) -> list[Any]:
        if is_square:  # the rate of the distance is that of its square divided by twice the distance
            length = m.sqrt(w[0])
            return [-law(length, u[0] / (2 * length), t, k) / (2 * length)]
        length = m.norm(w)
        tension = law(length, m.dot(w, u) / length, t, k)
        return [-tension * x / length for x in w]

    return of_invariants(invariants, forces)


def _distance_invariants(a: Parametrisation, b: Parametrisation) -> tuple[ModelFunction, bool]:
    """Return the squared distance as invariant, or the vector between points that are not linear in q."""
    if a.is_linear and b.is_linear:

        def square(q: Vector, k: ParameterNamespace) -> list[ScalarLike]:
            x = relative_position(a, b, q, k)
            return [m.dot(x, x)]

        return square, True
    return lambda q, k: relative_position(a, b, q, k), False


def _forces_at_moving_points(
    a: Parametrisation, b: Parametrisation, law: ModelFunction, motion: tuple[Motion, Motion]
) -> ModelFunction:
    n = len(a.names)

    def forces(q: Vector, v: Vector, t: ScalarLike, k: ParameterNamespace) -> list[Any]:
        x, (qa, qb) = gap(a, b, motion, q, t, k), (q[:n], q[n:])
        rate: Any = 0.0
        for side, part, speed, point, end, sign in (
            (a, qa, v[:n], k.X, motion[0], 1.0),
            (b, qb, v[n:], k.Y, motion[1], -1.0),
        ):
            if end is not None:
                rate = rate + sign * _time_derivative(end, t)
            elif side.names:
                rate = rate + sign * m.array(side.velocity(part, speed, point))
        length = m.norm(x)
        pull = law(length, m.dot(x, m.array(rate)) / length, t, k) / length * x
        loads = [] if not a.names else list(a.generalised_force(qa, k.X, -pull))
        return loads + ([] if not b.names else list(b.generalised_force(qb, k.Y, pull)))

    return forces


def _time_derivative(law: ModelFunction, t: ScalarLike) -> Vector:
    """Return the derivative of a function of time, at a symbol."""
    time = ca.SX.sym("t")
    gradient = ca.jacobian(m.to_casadi(m.array(law(m.Scalar(time)))), time)
    return m.from_casadi(ca.densify(ca.substitute(gradient, time, m.to_casadi(t))))
