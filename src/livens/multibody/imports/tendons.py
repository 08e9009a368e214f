"""Fixed tendons of robot descriptions: forces on a weighted sum of joint coordinates, and its prescribed length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from livens.errors import InputError
from livens.models.element import Element
from livens.multibody.assembly import InitialCondition
from livens.multibody.fixed_tendons import (
    FixedTendon,
    linear_tendon_spring,
    tendon_damper,
    tendon_friction,
    tendon_spring,
)
from livens.multibody.imports.robot_description import TendonEquality, TendonForces
from livens.multibody.joint import Joint

if TYPE_CHECKING:
    from livens.multibody.imports.to_multibody import MultibodyBuilder
    from livens.multibody.multibody import Multibody

#: Rate in rad/s or m/s below which Coulomb friction is regularised.
_FRICTION_RATE = 1e-3


def add_tendon_element(
    mb: Multibody, name: str, tendon: FixedTendon, parameters: dict[str, Any], **functions: Any
) -> Element:
    """Add a force element on the length of a tendon, with the branches of its angles."""
    element = mb._add_force_element(name, tendon.element(name, parameters, **functions))
    mb._angle_branches += tendon.branches(element)
    return element


def add_tendon_equality(builder: MultibodyBuilder, tendon: TendonEquality) -> None:
    """Add the constant weighted sum of joint coordinates of a fixed tendon."""
    mb = builder.mb
    terms = [(builder.scalar_joint(name, tendon.node, "a tendon"), weight) for name, weight in tendon.terms]
    name = builder.unique_name(tendon.name, "coupling")
    if len(terms) == 1:
        ((joint, weight),) = terms
        coordinate = "angle" if joint.joint_type.angle else "position"
        mb.drive(joint, name=name, **{coordinate: tendon.length / weight})
        return
    try:
        coupling = mb.couple(name, *terms, coupling_type="coupling")
    except InputError as error:
        raise tendon.node.error(str(error)) from None
    mb._initial_conditions.append(InitialCondition(coupling, "phase", np.array([tendon.length]), True))


def add_tendon_forces(builder: MultibodyBuilder, forces: TendonForces) -> None:
    """Add spring, damper, armature, friction and limits of a fixed tendon."""
    mb, label = builder.mb, builder.unique_name(forces.name, "tendon")
    terms = [(builder.scalar_joint(name, forces.node, "a tendon"), weight) for name, weight in forces.terms]
    tendon = FixedTendon(terms)
    springs: list[tuple[str, float, tuple[float, float]]] = []
    if forces.stiffness:
        springs.append((f"{label} spring", forces.stiffness, forces.rest))
    if forces.range is not None:
        if builder.limit_stiffness is None:
            builder.inactive_limits.append(f"tendon {forces.name}")
        else:
            springs.append((f"{label} limit", builder.limit_stiffness, forces.range))
    for name, stiffness, (lower, upper) in springs:
        parameters = dict(rest=lower) if lower == upper else dict(lower=lower, upper=upper)
        parameters["stiffness"] = stiffness
        law = (linear_tendon_spring if lower == upper else tendon_spring)(tendon.terms)
        add_tendon_element(mb, name, tendon, parameters, potential=law)
    if forces.damping:
        damping = tendon_damper(tendon.terms)
        add_tendon_element(mb, f"{label} damper", tendon, dict(viscosity=forces.damping), dissipation=damping)
    if forces.friction:
        parameters = dict(level=forces.friction, smooth=_FRICTION_RATE)
        friction = tendon_friction(tendon.terms)
        add_tendon_element(mb, f"{label} friction", tendon, parameters, dissipation=friction)
        builder.robot.notes.append(
            f"Coulomb friction of '{forces.name}' is regularised below a rate of {_FRICTION_RATE:g}"
        )
    if forces.armature:
        _add_tendon_armature(mb, label, forces.armature, terms)


def _add_tendon_armature(mb: Multibody, label: str, armature: float, terms: list[tuple[Joint, float]]) -> None:
    """Add the armature of a tendon: a weightless rotor on the ground whose angle is the length of the tendon."""
    name, origin, axis = f"{label} rotor", np.zeros(3), np.array([0.0, 0.0, 1.0])
    rotor = mb.body(name, mass=armature, inertia=[armature] * 3, position=origin, shape=("shapes",))
    bearing = mb.revolute(f"{name} bearing", mb.ground, rotor, at=origin, axis=axis)
    bearing.element.visual = None  # not visible
    mb.couple(f"{label} armature", *terms, (bearing, -1.0), coupling_type="armature")
