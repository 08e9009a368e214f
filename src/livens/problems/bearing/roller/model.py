"""Spherical roller bearing as a `System`, and its initial state."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from livens.models.element import Element
from livens.models.quantity import Quantity
from livens.models.system import System
from livens.multibody.body_elements import BodyElement, director_body
from livens.multibody.inertia import Inertia
from livens.problems.bearing import visuals
from livens.problems.bearing.rings import element_function, gravity_potential, ring_quantities, rings
from livens.problems.bearing.roller import contact
from livens.problems.bearing.roller.contact import RollerBearing
from livens.problems.bearing.roller.initial_state import RollerEquilibrium
from livens.scene import shapes
from livens.types import Expr, ModelFunction


def _bodies(b: RollerBearing) -> list[tuple[BodyElement, float, int]]:
    """Return the rollers with azimuth and row; the first half has the row at positive x."""
    axial, across = b.moments
    bodies = []
    for i in range(2 * b.rollers):
        name, side = f"roller{i + 1}", 1 if i < b.rollers else -1
        azimuth = float(b.azimuths[i % b.rollers])
        body = director_body(name, Inertia(b.mass, [axial, across, across]), visual=_barrel(b))
        bodies.append((body, azimuth, side))
    return bodies


def _barrel(b: RollerBearing) -> list[shapes.Shape]:
    half = b.length / b.slices / 2
    return [shapes.cylinder([y - half, 0, 0], [y + half, 0, 0], radius) for y, radius in b.slice_profile]


def roller_system(b: RollerBearing) -> System:
    """Return the system of rollers, rings and contact elements."""
    slice_profile, (circle, shift) = b.slice_profile, b.inner_circle
    bodies = _bodies(b)
    elements: list[Element] = [body for body, _, _ in bodies]
    for body, _, _ in bodies:
        dofs = body.coordinates[:3]
        elements.append(
            Element(dofs, potential=gravity_potential, parameters=dict(mass=b.mass), name=f"weight of {body.name}")
        )
    elements += rings(b, 0.0, visuals.roller_inner(b), visuals.roller_outer(b))
    for body, _, side in bodies:
        for inner in (False, True):
            ring = [f"inner.{c}" for c in ("x", "y", "z", "phi")] if inner else [f"outer.{c}" for c in "xyz"]
            race_parameters = dict(r=b.inner_groove, R=circle, shift=shift, side=side) if inner else dict(r=b.sphere)
            elements.append(
                Element(
                    [*body.coordinates, *ring],
                    potential=contact.roller_energy(slice_profile, inner),
                    forces=contact.roller_forces(slice_profile, inner),
                    parameters=race_parameters,
                    name=f"{body.name}-{'inner' if inner else 'outer'}",
                    expensive=True,
                )
            )
    names = [str(c) for body, _, _ in bodies for c in body.coordinates]
    names += [f"inner.{c}" for c in ("x", "y", "z", "phi")] + [f"outer.{c}" for c in "xyz"]
    shared = dict(g=b.gravity, K=b.stiffness, speed=b.speed, damping=b.damping, mu=b.friction, creep=b.creep)
    system = System(names, elements=elements, parameters=shared, frames=True)
    system.quantities.update(_quantities(system, b))
    return system


def _quantities(system: System, b: RollerBearing) -> dict[str, Quantity]:
    element_index = {element.name: i for i, element in enumerate(system.elements)}
    quantities, orbits = {}, []
    for i in range(2 * b.rollers):
        name = f"roller{i + 1}"
        dofs = list(system.element_dofs[element_index[name]])
        for inner, other in enumerate(("outer", "inner")):
            function = contact.roller_normal(b.slice_profile, bool(inner))
            description = f"normal force between {name} and the {other} race"
            element_number = element_index[f"{name}-{other}"]
            quantities[f"{name}-{other}.normal_force"] = Quantity(
                description, "N", element_function(system, element_number, function)
            )
        skew = _skew(dofs)
        description = f"angle of {name} out of the plane through its centre and the axis of the bearing"
        quantities[f"{name}.skew"] = Quantity(description, "rad", skew)
        orbits.append(dofs[1:3])

    def orbit(q: Expr, v: Expr, lam: Expr, t: Expr, k: Expr) -> Any:
        rates = [(q[y] * v[z] - q[z] * v[y]) / (q[y] ** 2 + q[z] ** 2) for y, z in orbits]
        return sum(rates) / len(rates)

    quantities["rollers.speed"] = Quantity("mean rate at which rollers go around", "rad/s", orbit)
    return quantities | ring_quantities(system)


def _skew(dofs: list[int]) -> ModelFunction:
    def skew(q: Expr, v: Expr, lam: Expr, t: Expr, k: Expr) -> Expr:
        y, z = q[dofs[1]], q[dofs[2]]
        around = (q[dofs[5]] * y - q[dofs[4]] * z) / ca.sqrt(y**2 + z**2)
        return ca.asin(around)

    return skew


def roller_initial_state(b: RollerBearing, equilibrium: RollerEquilibrium) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates and velocities of rollers that roll without slip at the middle of both races."""
    q: list[float] = []
    v: list[float] = []
    for i, (body, azimuth, side) in enumerate(_bodies(b)):
        outward, axis, around = b.frame(azimuth, side)
        position = (b.sphere - b.diameter / 2 + equilibrium.offsets[i % b.rollers]) * outward
        frame = np.column_stack([axis, around, np.cross(axis, around)])
        angular_velocity = b.orbit_rate * np.array([1.0, 0, 0]) + b.spin_rate * axis
        dofs = body.parametrisation.from_pose(position, frame)
        q += list(dofs)
        v += list(
            body.parametrisation.from_twist(dofs, b.orbit_rate * np.cross([1.0, 0, 0], position), angular_velocity)
        )
    q += [0.0, *equilibrium.ring_position.tolist(), 0.0, 0.0, 0.0, 0.0]
    v += [0.0] * 7
    return np.array(q), np.array(v)
