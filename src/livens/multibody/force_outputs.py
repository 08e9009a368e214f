"""Named outputs of force elements (spring tension, motor torque, bushing wrench).

All outputs are computed from the generalised force of the element, ``-grad V - grad_v R + F``.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import casadi as ca
import numpy as np

from livens import math as m
from livens.expressions.parameters import ParameterNamespace
from livens.models.element import Element, ElementType
from livens.models.quantity import Quantity
from livens.models.system import System
from livens.multibody.body import Body
from livens.multibody.joint import Joint
from livens.multibody.joint_types import n_angle_invariants
from livens.types import Expr, FloatArray, ModelFunction, Vector

#: Lower bound of a squared distance in m^2: avoids division by zero for coincident points.
_MIN_SQUARED_DISTANCE = 1e-300


@dataclass(frozen=True, eq=False)
class ElementIndex:
    """Index of an element in its system: element model, coordinate and parameter indices, coordinates by name."""

    model: ElementType
    coordinates: list[int]
    parameters: list[int]
    coordinate_index: Mapping[str, int]

    @classmethod
    def of(cls, system: System, number: int, coordinate_index: Mapping[str, int]) -> ElementIndex:
        coordinates, parameters = system.element_dofs[number], system.element_parameters[number]
        return cls(system.element_types[number], list(coordinates), list(parameters), coordinate_index)

    @functools.cached_property
    def generalised_force(self) -> ca.Function:
        """Generalised force of the element on its coordinates."""
        model = self.model
        force = -ca.gradient(model.V, model.q) - ca.gradient(model.R, model.v) + model.F
        return ca.Function("acting", [model.q, model.v, model.t, model.k], [ca.densify(force)])

    def force_on(self, body: Body, q: Expr, v: Expr, t: Expr, k: Expr) -> Expr:
        """Return the generalised force on all coordinates of a body."""
        coordinates = self.coordinates
        f = self.generalised_force(q[coordinates], v[coordinates], t, k[self.parameters])
        row = {j: i for i, j in enumerate(coordinates)}
        rows = [row.get(self.coordinate_index[str(c)]) for c in body.coordinates]
        return ca.vertcat(*(ca.SX(0) if i is None else f[i] for i in rows))

    def coordinates_of(self, body: Body, q: Expr) -> Vector:
        """Return the coordinates of a body."""
        return m.from_casadi(q[[self.coordinate_index[str(c)] for c in body.coordinates]])


class ForceOutputs(Protocol):
    """Protocol of a force element with named outputs."""

    @property
    def element(self) -> Element: ...

    def outputs(self, name: str, index: ElementIndex) -> dict[str, Quantity]: ...


def wrench_from_generalised_force(body: Body, q: Expr, f: Expr, local_position: FloatArray) -> tuple[Expr, Expr]:
    """Return force and torque about a body-fixed point, in space, from forces on the centre and the directors."""
    d = body.dimension
    directors = [(q[j : j + d], f[j : j + d]) for j in range(d, f.numel(), d)]
    arm = sum((float(x) * e for x, (e, _) in zip(local_position, directors, strict=False)), ca.SX.zeros(d))
    pairs = [*directors, (-arm, f[:d])]
    if d == 3:
        return f[:d], sum((ca.cross(e, g) for e, g in pairs), ca.SX.zeros(3))
    return f[:d], sum((e[0] * g[1] - e[1] * g[0] for e, g in pairs), ca.SX(0))


@dataclass(frozen=True, eq=False)
class PointToPointOutputs:
    """Outputs of a point-to-point force (spring, damper); each end is a body and a local position."""

    element: Element
    end_a: tuple[Body, np.ndarray]
    end_b: tuple[Body, np.ndarray]
    #: Positions of ends that move as functions of time.
    motion: tuple[ModelFunction | None, ModelFunction | None] = (None, None)

    def outputs(self, name: str, index: ElementIndex) -> dict[str, Quantity]:
        def gap(q: Expr, t: Expr) -> Expr:
            ends = [
                body.parametrisation.point(index.coordinates_of(body, q), local_position)
                if law is None
                else m.array(law(m.Scalar(t)))
                for (body, local_position), law in zip((self.end_a, self.end_b), self.motion, strict=True)
            ]
            return m.to_casadi(m.array(ends[1] - ends[0]))

        def length(q: Expr, v: Expr, lam: Expr, t: Expr, k: Expr) -> Any:
            return ca.sqrt(ca.sumsqr(gap(q, t)))

        def tension(q: Expr, v: Expr, lam: Expr, t: Expr, k: Expr) -> Expr:
            # force on an end that belongs to a body, towards the other end
            end, sign = (self.end_b[0], -1) if self.end_b[0].element is not None else (self.end_a[0], 1)
            along, d = gap(q, t), end.dimension
            return (
                sign
                * ca.dot(index.force_on(end, q, v, t, k)[:d], along)
                / ca.sqrt(ca.fmax(ca.sumsqr(along), _MIN_SQUARED_DISTANCE))
            )

        return {
            "length": Quantity(f"length of {name}", "m", length),
            "tension": Quantity(f"tension of {name}, positive where it pulls", "N", tension),
        }


@dataclass(frozen=True, eq=False)
class CableOutputs:
    """Outputs of a cable: length and tension as functions of its coordinates, velocities and parameters."""

    element: Element
    length: ModelFunction
    tension: ModelFunction

    def outputs(self, name: str, index: ElementIndex) -> dict[str, Quantity]:
        def output(function: ModelFunction) -> ModelFunction:
            def expression(q: Expr, v: Expr, lam: Expr, t: Expr, k: Expr) -> Any:
                dofs = index.coordinates
                return m.to_casadi(
                    function(m.from_casadi(q[dofs]), m.from_casadi(v[dofs]), self._parameters(k[index.parameters]))
                )

            return expression

        return {
            "length": Quantity(f"length of {name}", "m", output(self.length)),
            "tension": Quantity(f"tension of {name}", "N", output(self.tension)),
        }

    def _parameters(self, k: Expr) -> ParameterNamespace:
        """Return the parameters of the element by name; shared parameters of the system precede them."""
        parameters = self.element.parameters
        return ParameterNamespace(parameters.unpack_symbols(k[k.numel() - parameters.size :]))


@dataclass(frozen=True, eq=False)
class JointForceOutputs:
    """Output of a force element in a joint: torque about its axis or force along it."""

    element: Element
    joint: Joint
    rotational: bool

    def outputs(self, name: str, index: ElementIndex) -> dict[str, Quantity]:
        joint = self.joint
        # if the second body is the ground: the force on the first body with opposite sign
        body, sign = (joint.body_b, 1) if joint.body_b.element is not None else (joint.body_a, -1)
        last = 2 if joint.body_a.dimension == 3 else 0

        def size(q: Expr, v: Expr, lam: Expr, t: Expr, k: Expr) -> Any:
            body_force, body_q = index.force_on(body, q, v, t, k), m.to_casadi(index.coordinates_of(body, q))
            force, torque = wrench_from_generalised_force(body, body_q, body_force, np.zeros(body.dimension))
            if self.rotational and body.dimension == 2:
                return sign * torque
            axis = joint.a.vector(index.coordinates_of(joint.body_a, q), joint.parameters["A"][:, last])
            if self.rotational and n_angle_invariants(joint.parameters["B"]) == 3:  # normal to the other hinge axes
                last_axis = joint.b.vector(index.coordinates_of(joint.body_b, q), joint.parameters["B"][:, 0])
                normal = m.cross(last_axis, axis)
                axis = normal / m.sqrt(m.dot(normal, normal))
            return sign * ca.dot(m.to_casadi(m.array(axis)), torque if self.rotational else force)

        quantity, unit, preposition = ("torque", "N m", "about") if self.rotational else ("force", "N", "along")
        description = f"{quantity} of {name} on {joint.body_b.name} {preposition} the axis of {joint.name}"
        return {quantity: Quantity(description, unit, size)}


@dataclass(frozen=True, eq=False)
class BodyWrenchOutputs:
    """Outputs of a force element on a body, in space: force and torque about a point, selected by `shows`."""

    element: Element
    body: Body
    local_position: np.ndarray
    selected: tuple[str, ...]
    sign: int = 1

    def outputs(self, name: str, index: ElementIndex) -> dict[str, Quantity]:
        body, d = self.body, self.body.dimension

        def wrench(q: Expr, v: Expr, t: Expr, k: Expr) -> tuple[Expr, Expr]:
            return wrench_from_generalised_force(
                body, m.to_casadi(index.coordinates_of(body, q)), index.force_on(body, q, v, t, k), self.local_position
            )

        def force(q: Expr, v: Expr, lam: Expr, t: Expr, k: Expr) -> Any:
            return self.sign * wrench(q, v, t, k)[0]

        def torque(q: Expr, v: Expr, lam: Expr, t: Expr, k: Expr) -> Expr:
            return self.sign * wrench(q, v, t, k)[1]

        torque_shape, body_name = (3,) if d == 3 else (), body.name if self.sign == 1 else "the ground"
        available = {
            "force": Quantity(f"force of {name} on {body_name}, in space", "N", force, shape=(d,)),
            "torque": Quantity(f"torque of {name} on {body_name}, in space", "N m", torque, shape=torque_shape),
        }
        return {quantity: available[quantity] for quantity in self.selected}
