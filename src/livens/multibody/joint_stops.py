"""Joint stops: joint limits with a coefficient of restitution, as unilateral contacts of two bodies.

A stop is a rigid contact without friction whose gap is "coordinate minus lower limit" or "upper limit minus
coordinate". Impacts, the rule that closes a contact persistently, normal forces and release are those of all rigid
contacts, see `livens.run.contact`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.expressions.parameters import ParameterNamespace
from livens.expressions.tracing import ModelFunction
from livens.models.quantity import Quantity
from livens.multibody import joint_forces
from livens.multibody.contacts.rigid_contact import UnilateralContact, switchable_constraint
from livens.multibody.joint import Joint
from livens.multibody.joint_types import cosine_sine
from livens.multibody.parametrisation import Parametrisation
from livens.types import Expr, ScalarLike, Vector

if TYPE_CHECKING:
    from livens.models.system import System

#: Tolerance in m or rad within which a stop is closed in the initial configuration.
_CLOSED_TOL = 1e-9


class JointStop(UnilateralContact):
    """Joint stop: one limit of a joint coordinate; `sign` is +1 for the upper and -1 for the lower limit."""

    label = "joint stops with restitution"

    def __init__(
        self, limit: str, joint: Joint, rotational: bool, limit_value: float, sign: float, restitution: float
    ) -> None:
        self.limit, self.joint, self.rotational, self.sign = limit, joint, rotational, sign
        self.side, self.limit_value = "upper" if sign > 0 else "lower", np.array(limit_value)
        self.name = f"{limit} {self.side}"
        self.restitution, self.friction, self.unique, self.dimension = restitution, 0.0, False, joint.a.dimension
        self.coordinates = tuple(str(c) for c in joint.coordinates)
        is_constant = {key: bool(np.isin(value, (-1.0, 0.0, 1.0)).all()) for key, value in joint.parameters.items()}
        self.gap_constants = {key: value for key, value in joint.parameters.items() if is_constant[key]}
        self.gap_parameters = {key: value for key, value in joint.parameters.items() if not is_constant[key]}
        self.gap_parameters |= dict(limit=limit_value)
        if rotational:
            self.gap_parameters["angle_branch"] = joint_forces.ZERO_BRANCH
        masses = [body.element.mass for body in (joint.body_a, joint.body_b) if body.element is not None]
        self._set_element(
            min(masses), constraints=_stop_constraint(joint.a, joint.b, rotational, sign, len(self.coordinates))
        )

    def __repr__(self) -> str:
        return f"<joint stop {self.name}>"

    def kinematics(self, q: Vector, v: Vector, k: ParameterNamespace) -> tuple[Any, Vector, Vector]:
        w = joint_forces.joint_invariants(self.joint.a, self.joint.b, self.rotational)(q, k)
        gap = self.sign * (k.limit - joint_forces.joint_coordinate(w, k, self.rotational))
        return gap, m.array(np.zeros(self.dimension)), m.array(np.eye(self.dimension)[0])

    def overlap_message(self, overlap: float) -> str:
        unit = "rad" if self.rotational else "m"
        return (
            f"{self.name}: the joint {self.joint.name} is {overlap:.3g} {unit} beyond its stop; "
            "change its initial value or the limit"
        )


@functools.cache
def _stop_constraint(a: Parametrisation, b: Parametrisation, rotational: bool, sign: float, n: int) -> ModelFunction:
    """Return the constraint of a closed stop; for an angle, on the sine of the gap, which is quadratic in q."""
    invariants = joint_forces.joint_invariants(a, b, rotational)

    def gap(q: Vector, k: ParameterNamespace) -> ScalarLike:
        w = invariants(q, k)
        if not rotational:
            return sign * (k.limit - w[0])
        cosine, sine = cosine_sine(w)
        return sign * (m.sin(k.limit) * cosine - m.cos(k.limit) * sine)

    return switchable_constraint(gap, n)


def close_initial_stops(system: System, stops: Sequence[JointStop], q: np.ndarray) -> bool:
    """Close the stops that a configuration touches, and open the others; return whether a stop is closed.

    The parameters of the elements change; a static equilibrium then rests on the closed stops. Raises an error if the
    configuration is beyond a stop.
    """
    index, any_closed = {name: i for i, name in enumerate(system.coordinates)}, False
    for stop in stops:
        symbols = ca.SX.sym("q", len(stop.coordinates))
        assert stop.element is not None
        values, local = stop.element.parameters.values, m.from_casadi(symbols)
        gap, *_ = stop.kinematics(local, local, ParameterNamespace({**stop.gap_constants, **values}))
        gap_function = ca.Function("gap", [symbols], [m.to_casadi(m.array([gap]))])
        value = float(gap_function(q[[index[name] for name in stop.coordinates]]))
        if value < -_CLOSED_TOL:
            raise InputError(stop.overlap_message(-value))
        closed = value <= _CLOSED_TOL
        values["touching"] = np.array(float(closed))
        any_closed |= closed
    return any_closed


def stop_outputs(stops: Sequence[JointStop], multipliers: Sequence[int]) -> dict[str, Quantity]:
    """Return the force or torque of the stops of one limit on the second body: positive at a lower limit."""
    stop = stops[0]
    quantity, unit, preposition = ("torque", "N m", "about") if stop.rotational else ("force", "N", "along")
    joint = stop.joint
    description = f"{quantity} of {stop.limit} on {joint.body_b.name} {preposition} the axis of {joint.name}"

    def force(q: Expr, v: Expr, lam: Expr, t: Expr, k: Expr) -> Any:
        return sum(stop.sign * lam[i] for stop, i in zip(stops, multipliers, strict=True))

    return {quantity: Quantity(description, unit, force, from_multipliers=True)}
