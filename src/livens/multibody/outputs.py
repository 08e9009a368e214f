"""Named outputs of a model: ``hinge.angle``, ``slider.position``, ``pin.force``."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import casadi as ca

from livens import math as m
from livens.errors import InputError, suggestion
from livens.models.element import Element, ElementType
from livens.models.quantity import Quantity
from livens.models.system import System
from livens.multibody.beam import beam_outputs
from livens.multibody.body import Body, Marker
from livens.multibody.body_constraint import BodyConstraint
from livens.multibody.couplings import Coupling
from livens.multibody.force_outputs import ElementIndex, wrench_from_generalised_force
from livens.multibody.joint import Joint
from livens.multibody.joint_forces import angular_velocity
from livens.multibody.joint_stops import stop_outputs
from livens.multibody.penalty_joint import PenaltyJoint
from livens.multibody.pid import ControllerState
from livens.types import Expr, ModelFunction

if TYPE_CHECKING:
    from livens.multibody.builder.base import ModelBase


def model_outputs(system: System, model: ModelBase) -> dict[str, Quantity]:
    """Return all outputs of a model by name."""
    index = {name: i for i, name in enumerate(system.coordinates)}
    element_index = {id(element): i for i, element in enumerate(system.elements)}
    outputs: dict[str, Quantity] = {}

    def add(owner: str, quantities_: Mapping[str, Quantity]) -> None:
        outputs.update({f"{owner}.{name}": quantity for name, quantity in quantities_.items()})

    for model_body in model.bodies.values():
        add(model_body.name, _body_outputs(model_body, [index[str(c)] for c in model_body.coordinates]))
    for constraint in model.connections.values():
        i = [index[str(c)] for c in constraint.coordinates]
        add(constraint.name, _constraint_outputs(system, constraint, element_index[id(constraint.element)], i))
        if isinstance(constraint, Joint):
            add(constraint.name, _joint_outputs(constraint, i))
    for beam in model.beams.values():
        add(beam.name, beam_outputs(system, beam, element_index))
    for coordinate in model.joint_coordinates.values():
        add(coordinate.name, _joint_outputs(coordinate, [index[str(c)] for c in coordinate.coordinates]))
    for coupling in model.couplings.values():
        i = [index[c] for c in coupling.coordinates]
        add(
            coupling.name,
            _coupling_outputs(coupling, system.element_constraints[element_index[id(coupling.element)]].start, i),
        )
    for armature in model.armatures.values():
        multiplier = system.element_constraints[element_index[id(armature.element)]].start
        quantity, unit = ("torque", "N m") if armature.is_angle else ("force", "N")
        description = f"{quantity} of {armature.name} on {armature.driving_joint.name}"
        expression = functools.partial(_opposite_multiplier, index=multiplier)
        add(armature.name, {quantity: Quantity(description, unit, expression, from_multipliers=True)})
    for link in model._distance_constraints:
        number = element_index[id(link)]
        multiplier, length = system.element_constraints[number].start, system.element_parameters[number][-1]
        add(link.name, dict(tension=_link_tension(link, multiplier, length)))
    for drive, unit in model._drives:
        multiplier = system.element_constraints[element_index[id(drive)]].start
        add(drive.name, {"force" if unit == "N" else "torque": _drive_force(drive, multiplier, unit)})
    for name, force_outputs in model._force_outputs:
        add(name, force_outputs.outputs(name, ElementIndex.of(system, element_index[id(force_outputs.element)], index)))
    for name, state in model._integrator_states.items():
        outputs[f"{name}.{state.quantity}"] = _controller_output(name, index[str(state.body.coordinates[0])], state)
    for wheel in model._wheels.values():
        dofs, spin = [index[str(c)] for c in wheel.body.coordinates], index[str(wheel.spin.coordinates[0])]
        mass_entry = system.element_parameters[element_index[id(wheel.spin)]][-1]
        add(wheel.name, wheel.outputs(dofs, spin, mass_entry))
    for penalty_joint in model._penalty_joints.values():
        add(
            penalty_joint.name,
            _penalty_joint_outputs(system, penalty_joint, element_index[id(penalty_joint.element)], index),
        )
    for rigid_contact in model._rigid_contacts.values():
        if rigid_contact.element is None:
            continue
        multipliers = system.element_constraints[element_index[id(rigid_contact.element)]]
        add(rigid_contact.name, _rigid_contact_outputs(rigid_contact.name, multipliers.start))
    for limit, stops in model._joint_stops.items():
        rows = [system.element_constraints[element_index[id(stop.element)]].start for stop in stops]
        add(limit, stop_outputs(stops, rows))
    if model._pair_contacts or model._contact_groups:
        from livens.multibody.contacts import outputs as contact_outputs  # imported on demand

        for contact in model._pair_contacts.values():
            add(contact.name, contact_outputs.pair_outputs(contact, system, element_index))
        for group in model._contact_groups.values():
            outputs.update(contact_outputs.group_outputs(group, system, element_index[id(group.element)]))
    for name, function in model._user_outputs.items():
        outputs[name] = Quantity(name, "", _user_output(function))
    for name, (marker, frame) in model._point_sensors.items():
        add(name, _sensor_outputs(name, marker, frame, index))
    for name, (source, frame) in model._resolved_outputs.items():
        if source not in outputs:
            raise InputError(f"{name}: there is no output '{source}'{suggestion(source, outputs)}")
        outputs[name] = _resolved_in_frame(name, outputs[source], frame, index)
    return outputs


def _resolved_in_frame(name: str, quantity: Quantity, frame: Marker | None, index: Mapping[str, int]) -> Quantity:
    """Return a vector output resolved in the axes of a frame of a body."""
    if frame is None:
        return quantity
    d = frame.body.dimension
    if quantity.shape != (d,):
        raise InputError(
            f"{name}: only a vector of {d} numbers can be resolved in a frame, which {quantity.description} is not"
        )

    def resolved(q: Expr, v: Expr, lam: Expr, t: Expr, k: Expr) -> Expr:
        frame_q = m.from_casadi(q[[index[str(c)] for c in frame.body.coordinates]])
        axes = [m.to_casadi(m.array(frame.body.parametrisation.vector(frame_q, frame.axes[:, i]))) for i in range(d)]
        vector = quantity.expression(q, v, lam, t, k)
        return ca.vertcat(*(ca.dot(axis, vector) for axis in axes))

    description = f"{quantity.description}, in the axes of {frame.body.name}.{frame.name}"
    return dataclasses.replace(quantity, description=description, expression=resolved, applied=None)


def _controller_output(name: str, index: int, state: ControllerState) -> Quantity:
    label = "integrated error" if state.quantity == "integral" else state.quantity
    return Quantity(f"{label} of {name}", state.unit, lambda q, v, lam, t, k: q[index])


def _sensor_outputs(name: str, marker: Marker, frame: Marker | None, index: Mapping[str, int]) -> dict[str, Quantity]:
    """Return position ``A^T (x - x_frame)`` and velocity of a point relative to a frame."""
    d, dofs = marker.body.dimension, [index[str(c)] for c in marker.body.coordinates]

    def relative_position(q: Expr) -> Expr:
        x = marker.body.parametrisation.point(m.from_casadi(q[dofs]), marker.local_position)
        if frame is None:
            return m.to_casadi(m.array(x))
        frame_q = m.from_casadi(q[[index[str(c)] for c in frame.body.coordinates]])
        gap = x - frame.body.parametrisation.point(frame_q, frame.local_position)
        axes = [frame.body.parametrisation.vector(frame_q, frame.axes[:, i]) for i in range(d)]
        return m.to_casadi(m.array([m.dot(axis, gap) for axis in axes]))

    def rate(q: Expr, v: Expr, lam: Expr, t: Expr, k: Expr) -> Expr:
        symbol = ca.SX.sym("q", q.numel())
        rate_function = ca.Function("rate", [symbol, v], [ca.jtimes(relative_position(symbol), symbol, v)])
        return rate_function(q, v)

    frame_text = "" if frame is None else f" relative to {frame.body.name}.{frame.name}"
    return {
        "position": Quantity(
            f"position of {name}{frame_text}", "m", lambda q, v, lam, t, k: relative_position(q), shape=(d,)
        ),
        "velocity": Quantity(f"velocity of {name}{frame_text}", "m/s", rate, shape=(d,)),
    }


def _drive_force(drive: Element, multiplier: int, unit: str) -> Quantity:
    """Return the drive force on the second body; its constraint has derivative one in angle or displacement."""
    description = f"{'force' if unit == 'N' else 'torque'} of {drive.name}"
    return Quantity(description, unit, lambda q, v, lam, t, k: -lam[multiplier], from_multipliers=True)


def _coupling_outputs(coupling: Coupling, multiplier: int, i: list[int]) -> dict[str, Quantity]:
    def values(q: Expr, v: Expr, lam: Expr, t: Expr, k: Expr) -> Any:
        return m.to_casadi(m.array(coupling.values(m.from_casadi(q[i]))))

    joint, quantity, coefficient = coupling.terms[-1]
    output, unit = ("torque", "N m") if quantity == "angle" else ("force", "N")
    return {
        "violation": Quantity(
            f"violation of {coupling.name}",
            "rad" if quantity == "angle" else "m",
            values,
            postprocess=coupling.violation,
        ),
        output: Quantity(
            f"{output} of {coupling.name} in {joint.name}",
            unit,
            lambda q, v, lam, t, k: -coefficient * lam[multiplier],
            from_multipliers=True,
        ),
    }


def _opposite_multiplier(q: Expr, v: Expr, lam: Expr, t: Expr, k: Expr, *, index: int) -> Expr:
    """Return a multiplier with the opposite sign."""
    return -lam[index]


def _rigid_contact_outputs(name: str, multiplier: int) -> dict[str, Quantity]:
    """Return the normal force of a rigid contact, the multiplier of the gap constraint; zero while it is open."""
    description = f"normal force of {name}"
    return dict(
        normal_force=Quantity(description, "N", lambda q, v, lam, t, k: -lam[multiplier], from_multipliers=True)
    )


def _link_tension(link: Element, multiplier: int, length: int) -> Quantity:
    """Return the tension of a rigid link, positive in tension; its constraint is ``(x.x - length^2)/2``."""
    return Quantity(
        f"tension of {link.name}", "N", lambda q, v, lam, t, k: lam[multiplier] * k[length], from_multipliers=True
    )


def _user_output(function: ModelFunction) -> ModelFunction:
    return lambda q, v, lam, t, k: m.to_casadi(m.array(function(m.from_casadi(q), m.from_casadi(v))))


def _body_outputs(body: Body, i: list[int]) -> dict[str, Quantity]:
    d, parametrisation = body.dimension, body.parametrisation

    def local(function: ModelFunction) -> ModelFunction:
        return lambda q, v, lam, t, k: m.to_casadi(m.array(function(m.from_casadi(q[i]), m.from_casadi(v[i]))))

    outputs = {
        "position": Quantity(f"centre of {body.name}", "m", local(lambda q, v: q[:d]), shape=(d,)),
        "velocity": Quantity(f"velocity of the centre of {body.name}", "m/s", local(lambda q, v: v[:d]), shape=(d,)),
    }
    if body.has_orientation:
        rotation = local(lambda q, v: parametrisation.rotation_matrix(q).ravel())
        outputs["rotation"] = Quantity(f"axes of {body.name} as columns", "1", rotation, shape=(d, d))
        rate = local(
            lambda q, v: (
                angular_velocity(parametrisation, q, v) if d == 3 else [angular_velocity(parametrisation, q, v)]
            )
        )
        outputs["omega"] = Quantity(f"angular velocity of {body.name}", "rad/s", rate, shape=(3,) if d == 3 else ())
    for name, marker in body.markers.items():
        local_position = marker.local_position
        if name not in ("centre", *outputs):
            outputs[name] = Quantity(
                f"point {name} of {body.name}",
                "m",
                local(lambda q, v, lever=local_position: parametrisation.point(q, lever)),
                shape=(d,),
            )
    return outputs


def _joint_outputs(joint: Joint, i: list[int]) -> dict[str, Quantity]:
    name = joint.name

    def local(function: ModelFunction) -> ModelFunction:
        return lambda q, v, lam, t, k: m.to_casadi(m.array([function(m.from_casadi(q[i]), m.from_casadi(v[i]))]))

    outputs = {}
    if joint.joint_type.angle:
        outputs["angle"] = Quantity(f"angle of {name}", "rad", local(lambda q, v: joint.angle(q)), is_angle=True)
        outputs["rate"] = Quantity(f"rate of {name}", "rad/s", local(joint.angle_rate))
    if joint.joint_type.slide:
        outputs["position"] = Quantity(f"position of {name}", "m", local(lambda q, v: joint.displacement(q)))
        outputs["velocity"] = Quantity(f"velocity of {name}", "m/s", local(joint.displacement_rate))
    return outputs


def _constraint_outputs(system: System, constraint: BodyConstraint, number: int, i: list[int]) -> dict[str, Quantity]:
    name = constraint.name
    model, multipliers = system.element_types[number], system.element_constraints[number]
    parameter_indices = list(system.element_parameters[number])
    outputs = {}

    def residual(q: Expr, v: Expr, lam: Expr, t: Expr, k: Expr) -> Any:
        residual_function = ca.Function(
            "g", [model.q, model.t, model.k], [ca.densify(model.g[: model.n_position_constraints])]
        )
        return residual_function(q[i], t, k[parameter_indices])

    if model.n_position_constraints:
        outputs["violation"] = Quantity(f"violation of {name}", "m", residual, shape=(model.n_position_constraints,))
    d = constraint.a.dimension

    # built on demand: most reactions of a large model are never evaluated
    @functools.cache
    def reaction() -> ca.Function:
        return _reaction_wrench(model, constraint)

    def force(q: Expr, v: Expr, lam: Expr, t: Expr, k: Expr) -> Any:
        return reaction()(q[i], lam[multipliers], t, k[parameter_indices])[0]

    def torque(q: Expr, v: Expr, lam: Expr, t: Expr, k: Expr) -> Expr:
        return reaction()(q[i], lam[multipliers], t, k[parameter_indices])[1]

    outputs["force"] = Quantity(
        f"force of {name} on {constraint.body_b.name}, in space", "N", force, from_multipliers=True, shape=(d,)
    )
    torque_shape = (3,) if d == 3 else ()
    about = "the joint" if isinstance(constraint, Joint) else "the point or the centre"
    description = f"torque of {name} on {constraint.body_b.name} about {about}, in space"
    outputs["torque"] = Quantity(description, "N m", torque, from_multipliers=True, shape=torque_shape)
    return outputs


def _penalty_joint_outputs(
    system: System, penalty_joint: PenaltyJoint, number: int, index: Mapping[str, int]
) -> dict[str, Quantity]:
    """Return the outputs of a penalty joint: constraint residuals and force on the second body."""
    model, parameter_indices, joint = (
        system.element_types[number],
        list(system.element_parameters[number]),
        penalty_joint.joint,
    )
    i, d = [index[str(c)] for c in joint.coordinates], joint.a.dimension
    invariants = model.invariant_forms["potential"].w_of_q
    generalised_force = -ca.gradient(model.V, model.q) - ca.gradient(model.R, model.v)
    offset = len(joint.body_a.coordinates)
    # if the second body is the ground: the force on the first body with opposite sign
    force_on_b = generalised_force[offset : offset + d] if joint.body_b.element is not None else -generalised_force[:d]
    outputs_function = ca.Function(
        "hold", [model.q, model.v, model.k], [ca.densify(invariants), ca.densify(force_on_b)]
    )

    def residuals(q: Expr, v: Expr, lam: Expr, t: Expr, k: Expr) -> Expr:
        return outputs_function(q[i], v[i], k[parameter_indices])[0]

    def force(q: Expr, v: Expr, lam: Expr, t: Expr, k: Expr) -> Any:
        return outputs_function(q[i], v[i], k[parameter_indices])[1]

    return {
        "violation": Quantity(f"violation of {penalty_joint.name}", "m", residuals, shape=(int(invariants.numel()),)),
        "force": Quantity(f"force of {penalty_joint.name} on {joint.body_b.name}, in space", "N", force, shape=(d,)),
    }


def _reaction_wrench(model: ElementType, joint: BodyConstraint) -> ca.Function:
    """Return the reaction force and torque about the joint on the second body, from multipliers."""
    lam = ca.SX.sym("lam", model.m)
    jacobian = ca.jacobian(model.g, model.q)
    if model.velocity_constraints is not None:
        jacobian[model.n_position_constraints :, :] = ca.jacobian(model.velocity_constraints.a, model.v)
    f = -jacobian.T @ lam
    offset = len(joint.body_a.coordinates)
    # if the second body is the ground: the force on the first body with opposite sign
    body, sign = (joint.body_b, 1) if joint.body_b.element is not None else (joint.body_a, -1)
    dofs = slice(offset, None) if sign == 1 else slice(0, offset)
    force, torque = wrench_from_generalised_force(
        body, model.q[dofs], f[dofs], joint.parameters["Y" if sign == 1 else "X"]
    )
    outputs = [ca.densify(sign * force), ca.densify(sign * torque)]
    return ca.Function("reaction", [model.q, lam, model.t, model.k], outputs)
