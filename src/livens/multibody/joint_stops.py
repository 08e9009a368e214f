"""Joint stops: joint limits with a coefficient of restitution.

A stop is a rigid contact without friction, with the gap "limit minus coordinate" and the impact law of all contacts:
the joints respond with impulses, and ``rate+ = -e rate-``. The dissipated energy is ``(1 - e^2)/2 rate-^2`` times the
effective inertia at the stop, the inverse of its Delassus matrix.

Successive bounces become shorter. When a flight would last a small fraction of a step, the joint comes to rest on a
spring, which is active while the joint is in contact with the stop.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from livens import math as m
from livens.models.equations_of_motion import equations_of_motion
from livens.models.guarded_event import GuardedEvent, min_rebound_velocity
from livens.models.system import System
from livens.multibody.contacts.impact_law import dissipative_impulse, joint_space_delassus
from livens.multibody.joint import Joint
from livens.multibody.twist_coordinates import TwistCoordinates
from livens.types import Expr, ScalarLike, Vector

#: Tolerance in m or rad within which an active stop is not released.
_RELEASE_TOL = 1e-3


@dataclass(frozen=True, eq=False)
class JointStop:
    """Joint stop: one limit of a joint; `sign` is +1 for the upper limit.

    When a flight would last a small fraction of a step, the joint comes to rest on the spring of the `limit`.
    """

    name: str
    joint: Joint
    limit_value: float
    sign: float
    restitution: float
    limit: str

    def penetration(self, q: Vector) -> ScalarLike:
        """Return the signed penetration: negative inside the range; for an angle, its sine."""
        value = self.joint.angle(q) if self.joint.joint_type.angle else self.joint.displacement(q)
        return (
            m.sin(self.sign * (value - self.limit_value))
            if self.joint.joint_type.angle
            else self.sign * (value - self.limit_value)
        )


class JointStopImpact:
    """Impact at a joint stop of a system."""

    def __init__(self, system: System, stop: JointStop, dofs: list[int], switch: int) -> None:
        self.system, self.stop, self.dofs, self.twist = system, stop, dofs, TwistCoordinates(system)
        #: Index of ``touching`` among the parameters.
        self.switch = switch

    def impact_guard(self, q: Expr, k: Expr) -> Expr:
        """Return the impact guard: crosses zero upwards when the joint reaches an inactive stop."""
        return (1 - k[self.switch]) * self._penetration(q) - k[self.switch]

    def release_guard(self, q: Expr, k: Expr) -> Expr:
        """Return the release guard: crosses zero downwards when the joint leaves an active stop by the tolerance."""
        return k[self.switch] * (self._penetration(q) + _RELEASE_TOL) - (1 - k[self.switch])

    def _penetration(self, q: Expr) -> Expr:
        return m.to_casadi(m.array([self.stop.penetration(m.from_casadi(q[self.dofs]))]))

    def is_active(self, q: np.ndarray) -> bool:
        """Return whether the joint is at the stop or beyond it."""
        angle, value = self.stop.joint.joint_type.angle, float(self._value(q))
        gap = self.stop.sign * (value - self.stop.limit_value)
        return bool(gap > -1e-9 and not (angle and gap > np.pi))

    @functools.cached_property
    def _value(self) -> ca.Function:
        q = ca.SX.sym("q", self.system.n)
        joint_q, joint = m.from_casadi(q[self.dofs]), self.stop.joint
        value = joint.angle(joint_q) if joint.joint_type.angle else joint.displacement(joint_q)
        return ca.Function("value", [q], [m.to_casadi(m.array([value]))])

    @functools.cached_property
    def _impact_terms(self) -> ca.Function:
        """Jacobian of the joint rate, mass matrix, Jacobian of the constraints between bodies, the system of
        accelerations, and the velocity-dependent part of the joint acceleration."""
        system, d, joint_constraints = self.system, equations_of_motion(self.system), list(self.twist.joint_constraints)
        G = d.G[joint_constraints, :] if joint_constraints else ca.SX(0, system.n)
        rate_jacobian = ca.jacobian(self._penetration(d.q), d.q)
        terms = [
            rate_jacobian,
            ca.jacobian(d.fibre_derivative, d.v),
            G,
            *d.kkt_system,
            ca.jtimes(rate_jacobian @ d.v, d.q, d.v),
        ]
        return ca.Function("impact", [d.q, d.v, d.t, d.k], [ca.densify(term) for term in terms])

    def apply_impact(self, q: np.ndarray, v: np.ndarray, t: float, k: np.ndarray, h: float) -> Mapping[str, object]:
        """Apply the impact law; the contact becomes persistent if the next flight would be too short."""
        rate_jacobian, mass, G, matrix, right, velocity_term = (
            np.array(term) for term in self._impact_terms(q, v, t, k)
        )
        rate = float((rate_jacobian @ v).item())
        is_opposite = self.stop.joint.joint_type.angle and np.cos(float(self._value(q)) - self.stop.limit_value) < 0
        if rate <= 0 or is_opposite:  # the sine of the penetration also vanishes half a turn away
            return {}
        rebound_rate = self.stop.restitution * rate
        closing_acceleration = float(
            (rate_jacobian @ np.linalg.lstsq(matrix, right, rcond=1e-12)[0][: q.size] + velocity_term).item()
        )
        closes = rebound_rate < min_rebound_velocity(closing_acceleration, h)
        N = self.twist.kinematic_matrix(q)
        # gap rate and reactions of the joints in quasi-velocities
        delassus, response = joint_space_delassus(-rate_jacobian @ N, G @ N, N.T @ mass @ N)
        impulse = dissipative_impulse(delassus, np.array([-rate]), 0.0 if closes else self.stop.restitution, 0.0)
        change = {"v": v + N @ response @ impulse}
        return {**change, "parameters": self._active_parameter(1.0)} if closes else change

    def release(self, q: np.ndarray) -> Mapping[str, object]:
        return {"parameters": self._active_parameter(0.0)}

    def _active_parameter(self, value: float) -> dict[str, float]:
        return {f"{self.stop.limit}.touching": value}


def joint_stop_impacts(system: System, stops: Sequence[JointStop]) -> list[JointStopImpact]:
    """Return the impacts of all joint stops of a system."""
    index = {name: i for i, name in enumerate(system.coordinates)}
    switch_index = {
        element.name: indices[-1]
        for element, indices in zip(system.elements, system.element_parameters, strict=True)
        if indices
    }
    return [
        JointStopImpact(system, stop, [index[str(name)] for name in stop.joint.coordinates], switch_index[stop.limit])
        for stop in stops
    ]


def joint_stop_events(system: System, stops: Sequence[JointStop]) -> tuple[GuardedEvent, ...]:
    """Return two guarded events for each stop: impact and release."""
    events = []
    for impact in joint_stop_impacts(system, stops):
        events.append(GuardedEvent(impact.stop.name, impact.impact_guard, 1, impact.apply_impact, may_accumulate=True))
        events.append(GuardedEvent(f"{impact.stop.name} left", impact.release_guard, -1, impact.release))
    return tuple(events)
