"""Mechanisms with tree structure in joint coordinates (minimal coordinates).

Positions and directors of all bodies are functions of the joint angles and displacements, by recursion from the ground.
Energies and forces of the elements are composed with these functions: ``T(q(theta), dq/dtheta theta')`` and
``(dq/dtheta)^T F``. Joint constraints are satisfied identically.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.expressions.parameters import ParameterNamespace, shared
from livens.models.element import Element, ElementType
from livens.models.external_force import require_force_expressions
from livens.models.quantity import Quantity
from livens.models.system import System
from livens.multibody.armature import JointArmature
from livens.multibody.body import Body
from livens.multibody.joint import Joint
from livens.types import ModelFunction, ScalarLike, Vector

#: Names of the coordinate and of its rate, by joint type.
_COORDINATES = {"revolute": ("angle", "rate"), "prismatic": ("position", "velocity")}


def joint_coordinate_system(
    system: System, bodies: Sequence[Body], ground: Body, joints: Sequence[Joint]
) -> tuple[System, ca.Function]:
    """Return a mechanism in joint coordinates, and the function ``(theta, theta') -> (q, v)`` to body coordinates.

    Parameters
    ----------
    system : System
        System in body coordinates.
    bodies : sequence of Body
        Bodies, all in space.
    ground : Body
        Ground.
    joints : sequence of Joint
        Revolute, prismatic and fixed joints; every body is connected to its parent by exactly one joint.
    """
    require_force_expressions(system, "a system in joint coordinates")
    tree = tree_joints(bodies, ground, joints)
    path = [joint for joint in tree if joint.type_name != "fixed"]
    theta, rates = ca.SX.sym("theta", len(path)), ca.SX.sym("rates", len(path))
    q = body_coordinates(system, ground, tree, {joint.name: theta[i] for i, joint in enumerate(path)})
    v = ca.jtimes(q, theta, rates)
    names = [f"{joint.name}.{_COORDINATES[joint.type_name][0]}" for joint in path]
    elements: dict[int, Element] = {}
    for element, model, dofs in zip(system.elements, system.element_types, system.element_dofs, strict=True):
        if isinstance(element.joint, JointArmature):  # the coordinate of the rotor is that of the joint
            continue
        local = q[list(dofs)], v[list(dofs)]
        elements[id(element)] = _composed_element(system, element, model, local, (theta, rates), names, elements)
    shared_parameters = system.model_parameters.values
    reduced = System(names, elements=list(elements.values()), parameters=shared_parameters)
    to_bodies = ca.Function("to_bodies", [theta, rates], [ca.densify(q), ca.densify(v)])
    reduced.quantities = _quantities(system, path, to_bodies)
    return reduced, to_bodies


def tree_joints(bodies: Sequence[Body], ground: Body, joints: Sequence[Joint]) -> list[Joint]:
    """Return the joints from the ground outwards; raise InputError for loops, free bodies and other joints."""
    for joint in joints:
        if joint.a.dimension != 3:
            raise InputError("joint coordinates are available for bodies in space, not for planar mechanisms")
        if joint.type_name not in (*_COORDINATES, "fixed"):
            raise InputError(
                f"joint '{joint.name}' is {joint.type_name}: joint coordinates need revolute and prismatic joints"
            )
    ordered, reached, remaining = list[Joint](), {id(ground)}, list(joints)
    while remaining:
        joint = next((x for x in remaining if id(x.body_a) in reached or id(x.body_b) in reached), remaining[0])
        ends = id(joint.body_a) in reached, id(joint.body_b) in reached
        if all(ends):
            raise InputError(
                f"joint '{joint.name}' closes a loop: joint coordinates need a tree, in which one path leads from the "
                "ground to every body"
            )
        if not any(ends):
            names = ", ".join(f"'{joint.name}'" for joint in remaining)
            raise InputError(
                f"no path of joints leads from the ground to the bodies of {names}: fix a body to mb.ground"
            )
        if not ends[0]:
            raise InputError(f"joint '{joint.name}' must name the body nearer to the ground first")
        ordered.append(joint)
        reached.add(id(joint.body_b))
        remaining.remove(joint)
    free = [body.name for body in bodies if id(body) not in reached]
    if free:
        raise InputError(f"the bodies {', '.join(free)} have no joint: joint coordinates need a tree on the ground")
    return ordered


def body_coordinates(system: System, ground: Body, tree: Sequence[Joint], values: Mapping[str, ca.SX]) -> ca.SX:
    """Return centres and directors of all bodies as functions of the joint coordinates, given by joint name."""
    q, index = ca.SX.zeros(system.n), {name: i for i, name in enumerate(system.coordinates)}
    poses: dict[int, tuple[ca.SX, ca.SX]] = {id(ground): (ca.SX.zeros(3), ca.SX.eye(3))}
    for joint in tree:
        position, rotation = poses[id(joint.body_a)]
        A, B = ca.DM(np.asarray(joint.parameters["A"])), ca.DM(np.asarray(joint.parameters["B"]))
        origin = position + rotation @ ca.DM(np.asarray(joint.parameters["X"]))
        if joint.type_name == "revolute":
            c, s = ca.cos(values[joint.name]), ca.sin(values[joint.name])
            turn = ca.blockcat([[c, -s, 0], [s, c, 0], [0, 0, 1]])
            new_rotation = rotation @ A @ turn @ B.T
        else:
            new_rotation = rotation @ A @ B.T
        if joint.type_name == "prismatic":
            origin = origin + rotation @ ca.DM(np.asarray(joint.axis)) * values[joint.name]
        new_position = origin - new_rotation @ ca.DM(np.asarray(joint.parameters["Y"]))
        poses[id(joint.body_b)] = new_position, new_rotation
        dofs = [index[name] if isinstance(name, str) else int(name) for name in joint.body_b.coordinates]
        q[dofs] = ca.vertcat(new_position, ca.vec(new_rotation))
        if joint.armature is not None:
            q[index[str(joint.armature.rotor.coordinates[0])]] = values[joint.name]
    return q


def _composed_element(
    system: System,
    element: Element,
    model: ElementType,
    local: tuple[ca.SX, ca.SX],
    symbols: tuple[ca.SX, ca.SX],
    names: Sequence[str],
    earlier: dict[int, Element],
) -> Element:
    """Return an element with the energies and forces of another element, as functions of joint coordinates."""
    if model.velocity_constraints is not None:
        raise InputError(f"element '{element.name}' has velocity constraints, which joint coordinates do not support")
    theta, rates = symbols
    terms = ca.Function("terms", [model.q, model.v, model.t, model.k], [model.T, model.V, model.R, model.F])
    T, V, R, F = terms(*local, model.t, model.k)
    forces = ca.jtimes(local[0], theta, F, True) if local[0].numel() else ca.SX.zeros(theta.numel())
    parameter_names = [*system.model_parameters.values, *element.parameters.values]

    def composed(expression: ca.SX) -> ModelFunction:
        function = ca.Function("composed", [theta, rates, model.t, model.k], [ca.densify(expression)])

        def evaluate(q: Vector, v: Vector, t: ScalarLike, k: ParameterNamespace) -> Any:
            parameters = [ca.SX(m.to_casadi(m.array(getattr(k, name)).ravel())) for name in parameter_names]
            values = function(m.to_casadi(q), m.to_casadi(v), m.to_casadi(t), ca.vertcat(ca.SX(0, 1), *parameters))
            items = m.from_casadi(values)
            return items if expression.numel() > 1 or expression is forces else items[0]

        return evaluate

    functions: dict[str, Any] = {}
    if not T.is_zero():
        kinetic = composed(T)
        functions["kinetic"] = lambda q, v, k: kinetic(q, v, 0.0, k)
    if not V.is_zero():
        potential = composed(V)
        functions["potential"] = lambda q, t, k: potential(q, 0 * q, t, k)
    if not R.is_zero():
        functions["dissipation"] = composed(R)
    if not forces.is_zero():
        functions["forces"] = composed(forces)
    tied = element.parameters.tied
    parameters: dict[str, Any] = {
        name: shared(earlier[id(tied[name].owner)], tied[name].name)
        if name in tied and id(tied[name].owner) in earlier
        else value
        for name, value in element.parameters.values.items()
    }
    return Element(names, parameters=parameters, name=element.name, **functions)


def _quantities(system: System, path: Sequence[Joint], to_bodies: ca.Function) -> dict[str, Quantity]:
    """Return the outputs of the mechanism that do not depend on constraint forces, and the joint rates."""
    reduced: dict[str, Quantity] = {}
    own_names = {f"{joint.name}.{name}" for joint in path for name in _COORDINATES[joint.type_name]}
    lam = ca.SX.sym("lam", system.m)
    probe = [
        ca.SX.sym("q", system.n),
        ca.SX.sym("v", system.n),
        lam,
        ca.SX.sym("t"),
        ca.SX.sym("k", system.parameter_count),
    ]
    for name, quantity in system.quantities.items():
        if name in own_names or quantity.from_multipliers or ca.depends_on(ca.SX(quantity.expression(*probe)), lam):
            continue

        reduced[name] = Quantity(
            quantity.description, quantity.unit, _in_joint_coordinates(quantity, to_bodies, system.m),
            is_angle=quantity.is_angle, shape=quantity.shape, postprocess=quantity.postprocess,
        )  # fmt: skip
    for i, joint in enumerate(path):
        unit = "rad/s" if joint.type_name == "revolute" else "m/s"
        rate = f"{joint.name}.{_COORDINATES[joint.type_name][1]}"
        reduced[rate] = Quantity("joint rate", unit, _velocity_entry(i))
    return reduced


def _in_joint_coordinates(quantity: Quantity, to_bodies: ca.Function, n_constraints: int) -> ModelFunction:
    """Return the expression of an output as a function of joint coordinates."""

    def expression(q: Vector, v: Vector, lam: object, t: ScalarLike, k: ParameterNamespace) -> Any:
        positions, velocities = to_bodies(q, v)
        return quantity.expression(positions, velocities, ca.SX.zeros(n_constraints), t, k)

    return expression


def _velocity_entry(i: int) -> ModelFunction:
    """Return the expression of one velocity."""
    return lambda q, v, lam, t, k: v[i]
