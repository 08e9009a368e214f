"""Spherical roller bearing as a `System`, and its initial state."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from livens.models import shapes
from livens.models.element import Element
from livens.models.quantity import Quantity
from livens.models.system import System
from livens.multibody.bodies import Body, director_body
from livens.multibody.inertia import Inertia
from livens.problems.bearing import looks, rollers
from livens.problems.bearing.parts import of_element, ring_quantities, rings, weight
from livens.problems.bearing.roller_start import RollerSeat
from livens.problems.bearing.rollers import RollerBearing


def _bodies(b: RollerBearing) -> list[tuple[Body, float, int]]:
    """Return the rollers with azimuth and row; the first half has the row at positive x."""
    axial, across = b.moments
    found = []
    for i in range(2 * b.rollers):
        name, side = f"roller{i + 1}", 1 if i < b.rollers else -1
        azimuth = float(b.azimuths[i % b.rollers])
        body = director_body(name, Inertia(b.mass, [axial, across, across]), look=_barrel(b))
        found.append((body, azimuth, side))
    return found


def _barrel(b: RollerBearing) -> list[shapes.Shape]:
    half = b.length / b.slices / 2
    return [shapes.cylinder([y - half, 0, 0], [y + half, 0, 0], radius) for y, radius in b.discs]


def roller_system(b: RollerBearing) -> System:
    """Return the system of rollers, rings and contact elements."""
    discs, (circle, shift) = b.discs, b.inner_circle
    bodies = _bodies(b)
    elements: list[Element] = [body for body, _, _ in bodies]
    for body, _, _ in bodies:
        own = body.coordinates[:3]
        elements.append(Element(own, potential=weight, parameters=dict(mass=b.mass), name=f"weight of {body.name}"))
    elements += rings(b, 0.0, looks.roller_inner(b), looks.roller_outer(b))
    for body, _, side in bodies:
        for inner in (False, True):
            ring = [f"inner.{c}" for c in ("x", "y", "z", "phi")] if inner else [f"outer.{c}" for c in "xyz"]
            numbers = dict(r=b.inner_groove, R=circle, shift=shift, side=side) if inner else dict(r=b.sphere)
            elements.append(
                Element(
                    [*body.coordinates, *ring],
                    potential=rollers.roller_energy(discs, inner),
                    forces=rollers.roller_forces(discs, inner),
                    parameters=numbers,
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
    numbers = {element.name: i for i, element in enumerate(system.elements)}
    found, orbits = {}, []
    for i in range(2 * b.rollers):
        name = f"roller{i + 1}"
        own = list(system.indices[numbers[name]])
        for inner, other in enumerate(("outer", "inner")):
            function = rollers.roller_normal(b.discs, bool(inner))
            words = f"normal force between {name} and the {other} race"
            number = numbers[f"{name}-{other}"]
            found[f"{name}-{other}.normal"] = Quantity(words, "N", of_element(system, number, function))
        skew = _skew(own)
        words = f"angle of {name} out of the plane through its centre and the axis of the bearing"
        found[f"{name}.skew"] = Quantity(words, "rad", skew)
        orbits.append(own[1:3])

    def orbit(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
        rates = [(q[y] * v[z] - q[z] * v[y]) / (q[y] ** 2 + q[z] ** 2) for y, z in orbits]
        return sum(rates) / len(rates)

    found["rollers.speed"] = Quantity("mean rate at which rollers go around", "rad/s", orbit)
    return found | ring_quantities(system)


def _skew(own: list[int]) -> Any:
    def skew(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
        y, z = q[own[1]], q[own[2]]
        around = (q[own[5]] * y - q[own[4]] * z) / ca.sqrt(y**2 + z**2)
        return ca.asin(around)

    return skew


def roller_start(b: RollerBearing, seat: RollerSeat) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates and velocities of rollers that roll without slip at the middle of both races."""
    q: list[float] = []
    v: list[float] = []
    for i, (body, azimuth, side) in enumerate(_bodies(b)):
        out, axis, around = b.frame(azimuth, side)
        at = (b.sphere - b.diameter / 2 + seat.pressed[i % b.rollers]) * out
        frame = np.column_stack([axis, around, np.cross(axis, around)])
        turning = b.orbit * np.array([1.0, 0, 0]) + b.spin * axis
        own = body.placement.coordinates(at, frame)
        q += list(own)
        v += list(body.placement.rates(own, b.orbit * np.cross([1.0, 0, 0], at), turning))
    q += [0.0, *seat.ring.tolist(), 0.0, 0.0, 0.0, 0.0]
    v += [0.0] * 7
    return np.array(q), np.array(v)
