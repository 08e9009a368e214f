"""Ball bearing as a `System`: balls, rings, cage, contact elements and named outputs."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.models.element import Element
from livens.models.quantity import Acting, Quantity
from livens.models.system import System
from livens.multibody.bodies import director_body
from livens.multibody.inertia import Inertia
from livens.multibody.modal_ring import mode_elements
from livens.problems.bearing import contacts, looks
from livens.problems.bearing.data import Bearing
from livens.problems.bearing.parts import (
    force_on_first,
    of_element,
    ring_quantities,
    rings,
    weight,
)
from livens.problems.bearing.start import Seat

#: Names of the parts that may be elastic.
ELASTIC_PARTS = ("outer", "inner", "cage")


def _ball_energy(v: Any, k: Any) -> Any:
    return k.mass / 2 * m.dot(v[:3], v[:3]) + k.moment / 2 * m.dot(v[3:], v[3:])


def _cage_weight(q: Any, k: Any) -> Any:
    return k.cage_mass * k.g * q[0]


def names(b: Bearing) -> dict[str, list[str]]:
    """Return the coordinate names of each part."""
    found = {f"ball{i}": [f"ball{i}.{c}" for c in ("x", "y", "z", "ax", "ay", "az")] for i in range(1, b.balls + 1)}
    found["cage"] = [f"cage.{c}" for c in director_body("cage", _cage_inertia(b)).placement.names]
    found["inner"] = [f"inner.{c}" for c in ("x", "y", "z", "phi")]
    found["outer"] = [f"outer.{c}" for c in "xyz"]
    for part in ELASTIC_PARTS:
        found[f"{part} modes"] = [f"{part}.{name}" for name in b.elastic(part).names]
    return found


def _races(b: Bearing) -> dict[str, contacts.Ring]:
    inner = contacts.Ring(True, b.elastic("inner").waves, 10, bool(b.oval))
    return dict(outer=contacts.Ring(False, b.elastic("outer").waves), inner=inner)


def _cage_inertia(b: Bearing) -> Inertia:
    polar, across = b.cage_moments
    return Inertia(b.cage_mass, [polar, across, across])


def bearing_system(b: Bearing) -> System:
    """Return the system; the angle of the inner ring is relative to its drive, which rotates at the given speed."""
    of = names(b)
    races = _races(b)
    cage_waves = b.elastic("cage").waves
    outer, inner = b.stiffness
    elements = []
    for i in range(1, b.balls + 1):
        elements.append(
            Element(
                of[f"ball{i}"],
                kinetic=_ball_energy,
                potential=weight,
                parameters=dict(mass=b.ball_mass, moment=b.ball_moment),
                frames=[[range(3)], [range(3, 6)]],
                name=f"ball{i}",
                look=looks.ball,
            )
        )
    cage = director_body("cage", _cage_inertia(b), look=looks.cage(b))
    elements += [
        cage,
        Element([of["cage"][2]], potential=_cage_weight, parameters=dict(cage_mass=b.cage_mass), name="cage-weight"),
        *rings(b, b.axial, looks.inner(b), looks.outer(b)),
    ]
    for part in ELASTIC_PARTS:
        ring = b.elastic(part)
        for n in ring.waves:
            elements += mode_elements([f"{part}.a{n}", f"{part}.b{n}"], part, n, ring, b.viscosity(ring, n))
    for i in range(1, b.balls + 1):
        angle = 2 * np.pi * (i - 1) / b.balls
        ball = of[f"ball{i}"]
        elements += [
            Element(
                [*ball, *of["outer"], *of["outer modes"]],
                potential=contacts.race_energy(races["outer"]),
                forces=contacts.race_forces(races["outer"]),
                parameters=dict(K=outer, R=b.outer_circle),
                name=f"ball{i}-outer",
                expensive=True,
            ),
            Element(
                [*ball, *of["inner"], *of["inner modes"]],
                potential=contacts.race_energy(races["inner"]),
                forces=contacts.race_forces(races["inner"]),
                parameters=dict(K=inner, R=b.inner_circle) | (dict(oval=b.oval) if b.oval else {}),
                name=f"ball{i}-inner",
                expensive=True,
            ),
            Element(
                [*ball, *of["cage"], *of["cage modes"]],
                potential=contacts.pocket_energy(cage_waves),
                forces=contacts.pocket_forces(cage_waves),
                parameters=dict(cosine=np.cos(angle), sine=np.sin(angle)),
                name=f"ball{i}-cage",
                expensive=True,
            ),
        ]
    shared = dict(
        g=b.gravity,
        D=b.diameter,
        r=b.groove,
        speed=b.speed,
        damping=b.damping,
        mu=b.friction,
        creep=b.creep,
        pivot=b.pivot_radius,
        pivot_creep=b.pivot_creep,
        circle=b.pitch / 2,
        gap=b.pocket_clearance,
        pocket_stiffness=b.pocket_stiffness,
        pocket_damping=b.pocket_damping,
        pocket_mu=b.pocket_friction,
    )
    system = System([name for part in of.values() for name in part], elements=elements, parameters=shared, frames=True)
    system.quantities.update(_quantities(system, b))
    return system


# -- named outputs ----------------------------------------------------------------------------------------------------
def _quantities(system: System, b: Bearing) -> dict[str, Quantity]:
    numbers = {element.name: i for i, element in enumerate(system.elements)}
    waves, races = b.elastic("cage").waves, _races(b)
    said = {
        name: (
            contacts.race_normal(ring),
            force_on_first(contacts.race_energy(ring), contacts.race_forces(ring)),
            contacts.race_point(ring),
        )
        for name, ring in races.items()
    }
    pushing = force_on_first(contacts.pocket_energy(waves), contacts.pocket_forces(waves))
    said["cage"] = contacts.pocket_normal(waves), pushing, contacts.pocket_point(waves)
    found = {}
    for i in range(1, b.balls + 1):
        for other, functions in said.items():
            name, what = f"ball{i}-{other}", other if other == "cage" else f"{other} race"
            normal, force, point = (of_element(system, numbers[name], function) for function in functions)
            acting = Acting(on=f"ball{i}", by=other, at=point)
            found[f"{name}.normal"] = Quantity(f"normal force between ball {i} and the {what}", "N", normal)
            found[f"{name}.force"] = Quantity(
                f"force of the {what} on ball {i}, in space", "N", force, shape=(3,), acts=acting
            )
    own = list(system.indices[numbers["cage"]])
    directors = [own[i : i + 3] for i in (3, 6, 9)]

    def speed(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
        """Return the angular velocity component about the axis of the bearing."""
        omega = sum((ca.cross(q[i], v[i]) for i in directors), ca.SX.zeros(3)) / 2
        return omega[0]

    found["cage.speed"] = Quantity("rate of rotation of the cage about the axis", "rad/s", speed)
    return found | ring_quantities(system)


# -- initial state ----------------------------------------------------------------------------------------------------
def start(b: Bearing, seat: Seat, cage: float) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates and velocities of rolling balls in equilibrium; `cage` is the cage speed over orbit rate."""
    of = names(b)
    q: dict[str, float] = {name: 0.0 for part in of.values() for name in part}
    v = dict(q)
    for i, angle in enumerate(b.azimuths):
        c, s = np.cos(angle), np.sin(angle)
        rho, turning = seat.rho[i], -seat.spin * np.array([np.cos(seat.angle), -np.sin(seat.angle)])
        ball = of[f"ball{i + 1}"]
        q |= dict(zip(ball[:3], [seat.x[i], rho * c, rho * s], strict=True))
        orbiting = rho * seat.orbit
        v |= dict(
            zip(ball, [0.0, -orbiting * s, orbiting * c, turning[0], turning[1] * c, turning[1] * s], strict=True)
        )
    turned = cage * seat.orbit
    body = director_body("cage", _cage_inertia(b))
    at, rate = body.state(position=[float(seat.x.mean()), 0, 0], orientation=[1, 0, 0, 0], omega=[turned, 0, 0])
    q |= dict(zip(of["cage"], at, strict=True))
    v |= dict(zip(of["cage"], rate, strict=True))
    q |= dict(zip(of["inner"][:3], seat.ring, strict=True))
    return np.array(list(q.values())), np.array(list(v.values()))
