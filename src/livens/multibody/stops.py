"""Ends of the way of joints that are hit with a coefficient of restitution.

An impact changes velocities at once, by impulses in the joints and at the stop alone: of all velocities that the joints
allow and that turn the rate of the joint round, ``rate+ = -e rate-``, it is the one with the least kinetic energy of
the change. What it takes out of the energy is ``(1 - e^2)/2 rate-^2`` times the inertia that the stop feels.

Bounces become shorter and shorter. Before steps cannot tell them from one another, the joint lands, without a rate, on
a spring that is there while it touches the stop.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.models.stop import Stop
from livens.models.summed import dynamics
from livens.models.system import System
from livens.multibody.assembly import Motion, least_change
from livens.multibody.joint import Joint

#: A flight of fewer steps is too short to be seen; what touches an end may move away from it by so much (m, rad).
_STEPS, _CLEAR = 4, 1e-3


@dataclass(frozen=True, eq=False)
class DrawnStop:
    """One end of the way of a joint: `sign` is +1 for the upper one.

    Where a flight would last less than a few steps, the joint lands on the spring of the `limit`.
    """

    name: str
    joint: Joint
    at: float
    sign: float
    restitution: float
    limit: str

    def beyond(self, q: Any) -> Any:
        """Negative before the end and positive beyond it; of an angle, the sine of how far it is."""
        value = self.joint.angle(q) if self.joint.kind.angle else self.joint.position(q)
        return m.sin(self.sign * (value - self.at)) if self.joint.kind.angle else self.sign * (value - self.at)


class Impact:
    """What happens to the velocities of a system at one of its stops."""

    def __init__(self, system: System, stop: DrawnStop, places: list[int], switch: int) -> None:
        self.system, self.stop, self.places, self.motion = system, stop, places, Motion(system)
        #: Where ``touching`` is among the parameters.
        self.switch = switch

    def hit(self, q: Any, k: Any) -> Any:
        """Crosses zero upwards where the joint reaches the end, unless it touches it already."""
        return (1 - k[self.switch]) * self._beyond(q) - k[self.switch]

    def left(self, q: Any, k: Any) -> Any:
        """Crosses zero downwards where the joint leaves the end that it touches, by more than it may tremble."""
        return k[self.switch] * (self._beyond(q) + _CLEAR) - (1 - k[self.switch])

    def _beyond(self, q: Any) -> Any:
        return m.expression(m.array([self.stop.beyond(m.symbols(q[self.places]))]))

    def touches(self, q: np.ndarray) -> bool:
        """Whether it is at the end, or beyond it."""
        angle, value = self.stop.joint.kind.angle, float(self._value(q))
        gap = self.stop.sign * (value - self.stop.at)
        return bool(gap > -1e-9 and not (angle and gap > np.pi))

    @functools.cached_property
    def _value(self) -> ca.Function:
        q = ca.SX.sym("q", self.system.n)
        of, joint = m.symbols(q[self.places]), self.stop.joint
        value = joint.angle(of) if joint.kind.angle else joint.position(of)
        return ca.Function("value", [q], [m.expression(m.array([value]))])

    @functools.cached_property
    def _linear(self) -> ca.Function:
        """Rate of the joint by velocities, masses, and constraints between bodies by velocities; what makes it faster:
        the system of accelerations, and the part of the joint's own that velocities have."""
        system, d, kept = self.system, dynamics(self.system), list(self.motion.constraints)
        G = d.G[kept, :] if kept else ca.SX(0, system.n)
        row = ca.jacobian(self._beyond(d.q), d.q)
        parts = [row, ca.jacobian(d.fibre_derivative, d.v), G, *d.acceleration_system, ca.jtimes(row @ d.v, d.q, d.v)]
        return ca.Function("impact", [d.q, d.v, d.t, d.k], [ca.densify(part) for part in parts])

    def rebound(self, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray, h: float) -> Mapping[str, Any]:
        """The joint is thrown back; or it lands, where the next flight would last for a few steps only."""
        row, mass, G, matrix, right, own = (np.array(part) for part in self._linear(q, v, t, k))
        rate = float((row @ v).item())
        far = self.stop.joint.kind.angle and np.cos(float(self._value(q)) - self.stop.at) < 0
        if rate <= 0 or far:  # the sine of how far it is vanishes on the other side of the turn as well
            return {}
        back = self.stop.restitution * rate
        pressed = float((row @ np.linalg.lstsq(matrix, right, rcond=1e-12)[0][: q.size] + own).item())
        lands = 2 * back < _STEPS * h * pressed
        N = self.motion.map(q)
        wanted = np.append(np.zeros(len(G)), -rate - (0.0 if lands else back))
        after = {"v": v + N @ least_change(np.vstack([G, row]) @ N, wanted, N.T @ mass @ N)}
        return {**after, "parameters": self._touching(1.0)} if lands else after

    def release(self, q: np.ndarray) -> Mapping[str, Any]:
        return {"parameters": self._touching(0.0)}

    def _touching(self, value: float) -> dict[str, float]:
        return {f"{self.stop.limit}.touching": value}


def impacts_of(system: System, drawn: Sequence[DrawnStop]) -> list[Impact]:
    """The stops of a drawing in its system."""
    place = {name: i for i, name in enumerate(system.coordinates)}
    last = {
        element.name: where[-1]
        for element, where in zip(system.elements, system.parameter_indices, strict=True)
        if where
    }
    return [Impact(system, one, [place[str(name)] for name in one.joint.coordinates], last[one.limit]) for one in drawn]


def stops_of(system: System, drawn: Sequence[DrawnStop]) -> tuple[Stop, ...]:
    """Two for each end: where it is hit, and where it is left again."""
    found = []
    for one in impacts_of(system, drawn):
        found.append(Stop(one.stop.name, one.hit, 1, one.rebound))
        found.append(Stop(f"{one.stop.name} left", one.left, -1, one.release))
    return tuple(found)
