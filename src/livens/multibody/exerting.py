"""Named outputs of force elements (spring tension, motor torque, bushing wrench).

All outputs are computed from the generalised force of the element, ``-grad V - grad_v R + F``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import casadi as ca
import numpy as np

from livens import math as m
from livens.expressions.parameters import Namespace
from livens.models.element import Element, ElementModel
from livens.models.quantity import Quantity
from livens.models.system import System
from livens.multibody.joint import Joint
from livens.multibody.parts import Part

#: Lower bound of a squared distance in m^2: avoids division by zero for coincident points.
_NOTHING = 1e-300


@dataclass(frozen=True, eq=False)
class Seat:
    """Index of an element in its system: element model, coordinate and parameter indices, coordinates by name."""

    model: ElementModel
    coordinates: list[int]
    parameters: list[int]
    place: Mapping[str, int]

    @classmethod
    def of(cls, system: System, number: int, place: Mapping[str, int]) -> Seat:
        own, parameters = system.indices[number], system.parameter_indices[number]
        return cls(system.models[number], list(own), list(parameters), place)

    @functools.cached_property
    def forces(self) -> ca.Function:
        """Generalised force of the element on its coordinates."""
        one = self.model
        acting = -ca.gradient(one.V, one.q) - ca.gradient(one.R, one.v) + one.F
        return ca.Function("acting", [one.q, one.v, one.t, one.k], [ca.densify(acting)])

    def on(self, part: Part, q: Any, v: Any, t: Any, k: Any) -> Any:
        """Return the generalised force on all coordinates of a body."""
        own = self.coordinates
        f = self.forces(q[own], v[own], t, k[self.parameters])
        at = {j: i for i, j in enumerate(own)}
        where = [at.get(self.place[str(c)]) for c in part.coordinates]
        return ca.vertcat(*(ca.SX(0) if i is None else f[i] for i in where))

    def state(self, part: Part, q: Any) -> Any:
        """Return the coordinates of a body."""
        return m.symbols(q[[self.place[str(c)] for c in part.coordinates]])


class Exerting(Protocol):
    """Protocol of a force element with named outputs."""

    @property
    def element(self) -> Element: ...

    def quantities(self, name: str, seat: Seat) -> dict[str, Quantity]: ...


def force_and_torque(part: Part, q: Any, f: Any, lever: Any) -> tuple[Any, Any]:
    """Return force and torque about a body-fixed point, in space, from forces on the centre and the directors."""
    d = part.dimension
    directors = [(q[j : j + d], f[j : j + d]) for j in range(d, f.numel(), d)]
    arm = sum((float(x) * e for x, (e, _) in zip(lever, directors, strict=False)), ca.SX.zeros(d))
    pairs = [*directors, (-arm, f[:d])]
    if d == 3:
        return f[:d], sum((ca.cross(e, g) for e, g in pairs), ca.SX.zeros(3))
    return f[:d], sum((e[0] * g[1] - e[1] * g[0] for e, g in pairs), ca.SX(0))


@dataclass(frozen=True, eq=False)
class Line:
    """Outputs of a point-to-point force (spring, damper); each end is a body and a local position."""

    element: Element
    first: tuple[Part, np.ndarray]
    second: tuple[Part, np.ndarray]

    def quantities(self, name: str, seat: Seat) -> dict[str, Quantity]:
        def gap(q: Any) -> Any:
            ends = [part.placement.point(seat.state(part, q), lever) for part, lever in (self.first, self.second)]
            return m.expression(m.array(ends[1] - ends[0]))

        def length(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
            return ca.sqrt(ca.sumsqr(gap(q)))

        def tension(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
            # force on an end that belongs to a body, towards the other end
            end, sign = (self.second[0], -1) if self.second[0].element is not None else (self.first[0], 1)
            along, d = gap(q), end.dimension
            return sign * ca.dot(seat.on(end, q, v, t, k)[:d], along) / ca.sqrt(ca.fmax(ca.sumsqr(along), _NOTHING))

        return {
            "length": Quantity(f"length of {name}", "m", length),
            "tension": Quantity(f"tension of {name}, positive where it pulls", "N", tension),
        }


@dataclass(frozen=True, eq=False)
class Rope:
    """Outputs of a cable: length and tension as functions of its coordinates, velocities and parameters."""

    element: Element
    length: Callable[..., Any]
    tension: Callable[..., Any]

    def quantities(self, name: str, seat: Seat) -> dict[str, Quantity]:
        def shown(function: Callable[..., Any]) -> Callable[..., Any]:
            def expression(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
                own = seat.coordinates
                return m.expression(function(m.symbols(q[own]), m.symbols(v[own]), self._named(k[seat.parameters])))

            return expression

        return {
            "length": Quantity(f"length of {name}", "m", shown(self.length)),
            "tension": Quantity(f"tension of {name}", "N", shown(self.tension)),
        }

    def _named(self, k: Any) -> Any:
        """Return the parameters of the element by name; shared parameters of the system precede them."""
        own = self.element.parameters
        return Namespace(own.symbols(k[k.numel() - own.size :]))


@dataclass(frozen=True, eq=False)
class InJoint:
    """Output of a force element in a joint: torque about its axis or force along it."""

    element: Element
    joint: Joint
    turns: bool

    def quantities(self, name: str, seat: Seat) -> dict[str, Quantity]:
        joint = self.joint
        # if the second body is the ground: the force on the first body with opposite sign
        part, sign = (joint.second, 1) if joint.second.element is not None else (joint.first, -1)
        last = 2 if joint.first.dimension == 3 else 0

        def size(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
            acting, own = seat.on(part, q, v, t, k), m.expression(seat.state(part, q))
            force, torque = force_and_torque(part, own, acting, np.zeros(part.dimension))
            if self.turns and part.dimension == 2:
                return sign * torque
            axis = joint.a.vector(seat.state(joint.first, q), joint.parameters["A"][:, last])
            return sign * ca.dot(m.expression(m.array(axis)), torque if self.turns else force)

        what, unit, where = ("torque", "N m", "about") if self.turns else ("force", "N", "along")
        words = f"{what} of {name} on {joint.second.name} {where} the axis of {joint.name}"
        return {what: Quantity(words, unit, size)}


@dataclass(frozen=True, eq=False)
class OnPart:
    """Outputs of a force element on a body, in space: force and torque about a point, selected by `shows`."""

    element: Element
    part: Part
    lever: np.ndarray
    shows: tuple[str, ...]
    sign: int = 1

    def quantities(self, name: str, seat: Seat) -> dict[str, Quantity]:
        part, d = self.part, self.part.dimension

        def both(q: Any, v: Any, t: Any, k: Any) -> tuple[Any, Any]:
            return force_and_torque(part, m.expression(seat.state(part, q)), seat.on(part, q, v, t, k), self.lever)

        def force(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
            return self.sign * both(q, v, t, k)[0]

        def torque(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
            return self.sign * both(q, v, t, k)[1]

        turning, on = (3,) if d == 3 else (), part.name if self.sign == 1 else "the ground"
        found = {
            "force": Quantity(f"force of {name} on {on}, in space", "N", force, shape=(d,)),
            "torque": Quantity(f"torque of {name} on {on}, in space", "N m", torque, shape=turning),
        }
        return {what: found[what] for what in self.shows}
