"""Joint stops: joint limits with a coefficient of restitution.

An impact changes velocities instantaneously, by impulses in the joints and at the stop. Among all velocities that
satisfy the joints and ``rate+ = -e rate-``, it selects the change of least kinetic energy (Gauss principle). The
dissipated energy is ``(1 - e^2)/2 rate-^2`` times the effective inertia at the stop.

Successive bounces become shorter. When a flight would last only a few steps, the joint comes to rest on a spring, which
is active while the joint is in contact with the stop.
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

#: Shortest flight in steps; tolerance in m or rad within which an active stop is not released.
_STEPS, _CLEAR = 4, 1e-3


@dataclass(frozen=True, eq=False)
class DrawnStop:
    """Joint stop: one limit of a joint; `sign` is +1 for the upper limit.

    When a flight would last less than a few steps, the joint comes to rest on the spring of the `limit`.
    """

    name: str
    joint: Joint
    at: float
    sign: float
    restitution: float
    limit: str

    def beyond(self, q: Any) -> Any:
        """Return the signed penetration: negative inside the range; for an angle, its sine."""
        value = self.joint.angle(q) if self.joint.kind.angle else self.joint.position(q)
        return m.sin(self.sign * (value - self.at)) if self.joint.kind.angle else self.sign * (value - self.at)


class Impact:
    """Impact at a joint stop of a system."""

    def __init__(self, system: System, stop: DrawnStop, places: list[int], switch: int) -> None:
        self.system, self.stop, self.places, self.motion = system, stop, places, Motion(system)
        #: Index of ``touching`` among the parameters.
        self.switch = switch

    def hit(self, q: Any, k: Any) -> Any:
        """Return the impact guard: crosses zero upwards when the joint reaches an inactive stop."""
        return (1 - k[self.switch]) * self._beyond(q) - k[self.switch]

    def left(self, q: Any, k: Any) -> Any:
        """Return the release guard: crosses zero downwards when the joint leaves an active stop by the tolerance."""
        return k[self.switch] * (self._beyond(q) + _CLEAR) - (1 - k[self.switch])

    def _beyond(self, q: Any) -> Any:
        return m.expression(m.array([self.stop.beyond(m.symbols(q[self.places]))]))

    def touches(self, q: np.ndarray) -> bool:
        """Return whether the joint is at the stop or beyond it."""
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
        """Jacobian of the joint rate, mass matrix, Jacobian of the constraints between bodies, the system of
        accelerations, and the velocity-dependent part of the joint acceleration."""
        system, d, kept = self.system, dynamics(self.system), list(self.motion.constraints)
        G = d.G[kept, :] if kept else ca.SX(0, system.n)
        row = ca.jacobian(self._beyond(d.q), d.q)
        parts = [row, ca.jacobian(d.fibre_derivative, d.v), G, *d.acceleration_system, ca.jtimes(row @ d.v, d.q, d.v)]
        return ca.Function("impact", [d.q, d.v, d.t, d.k], [ca.densify(part) for part in parts])

    def rebound(self, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray, h: float) -> Mapping[str, Any]:
        """Apply the impact law; the contact becomes persistent if the next flight would last only a few steps."""
        row, mass, G, matrix, right, own = (np.array(part) for part in self._linear(q, v, t, k))
        rate = float((row @ v).item())
        far = self.stop.joint.kind.angle and np.cos(float(self._value(q)) - self.stop.at) < 0
        if rate <= 0 or far:  # the sine of the penetration also vanishes half a turn away
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
    """Return the impacts of all joint stops of a system."""
    place = {name: i for i, name in enumerate(system.coordinates)}
    last = {
        element.name: where[-1]
        for element, where in zip(system.elements, system.parameter_indices, strict=True)
        if where
    }
    return [Impact(system, one, [place[str(name)] for name in one.joint.coordinates], last[one.limit]) for one in drawn]


def stops_of(system: System, drawn: Sequence[DrawnStop]) -> tuple[Stop, ...]:
    """Return two guarded events for each stop: impact and release."""
    found = []
    for one in impacts_of(system, drawn):
        found.append(Stop(one.stop.name, one.hit, 1, one.rebound))
        found.append(Stop(f"{one.stop.name} left", one.left, -1, one.release))
    return tuple(found)
