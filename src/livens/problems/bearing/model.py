"""The ball bearing as a system: balls, rings and cage, what acts between them, and what results show by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from livens import math as m
from livens.expressions.parameters import Namespace
from livens.models.element import Element
from livens.models.quantity import Quantity
from livens.models.system import System
from livens.multibody.bodies import director_body
from livens.multibody.inertia import Inertia
from livens.problems.bearing import contacts, looks
from livens.problems.bearing.data import Bearing
from livens.problems.bearing.start import Seat

#: Where constraints by penalty are taken in a step, and where elastic parts are: see S003 4.2 and docs/bearing.md.
PENALTY, ELASTIC = 0.8, 0.5


def _ball_energy(v: Any, k: Any) -> Any:
    return k.mass / 2 * m.dot(v[:3], v[:3]) + k.moment / 2 * m.dot(v[3:], v[3:])


def _weight(q: Any, k: Any) -> Any:
    return k.mass * k.g * q[2]


def _cage_weight(q: Any, k: Any) -> Any:
    return k.cage_mass * k.g * q[0]


def _inner_energy(v: Any, k: Any) -> Any:
    return k.mass / 2 * m.dot(v[:3], v[:3]) + k.moment / 2 * v[3] ** 2


def _loaded(q: Any, k: Any) -> Any:
    return k.mass * k.g * q[2] - k.axial_load * q[0] - k.radial_load * q[2]


def _moving(v: Any, k: Any) -> Any:
    return k.mass / 2 * m.dot(v, v)


def _spring(q: Any, k: Any) -> Any:
    return k.stiffness / 2 * m.dot(q, q)


def _damper(v: Any, k: Any) -> Any:
    return k.damping / 2 * m.dot(v, v)


def _held(coordinates: list[str], name: str, stiffness: float, damping: float, beta: float) -> Element:
    """A linear spring and damper on each of these coordinates."""
    return Element(
        coordinates,
        potential=_spring,
        dissipation=_damper,
        parameters=dict(stiffness=stiffness, damping=damping),
        name=name,
        beta=beta,
    )


def names(b: Bearing) -> dict[str, list[str]]:
    """The coordinates of each part."""
    found = {f"ball{i}": [f"ball{i}.{c}" for c in ("x", "y", "z", "ax", "ay", "az")] for i in range(1, b.balls + 1)}
    found["cage"] = [f"cage.{c}" for c in director_body("cage", _cage_inertia(b)).placement.names]
    found["inner"] = [f"inner.{c}" for c in ("x", "y", "z", "phi")]
    found["outer"] = [f"outer.{c}" for c in "xyz"]
    found["modes"] = [f"outer.{c}{n}" for n in b.waves for c in "ab"]
    return found


def _cage_inertia(b: Bearing) -> Inertia:
    polar, across = b.cage_moments
    return Inertia(b.cage_mass, [polar, across, across])


def bearing_system(b: Bearing) -> System:
    """All bodies and forces. The inner ring's angle is that ahead of its drive, which turns at the given speed."""
    of = names(b)
    waves = tuple(b.waves)
    outer, inner = b.stiffness
    elements = []
    for i in range(1, b.balls + 1):
        elements.append(
            Element(
                of[f"ball{i}"],
                kinetic=_ball_energy,
                potential=_weight,
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
        Element(
            of["inner"],
            kinetic=_inner_energy,
            potential=_loaded,
            parameters=dict(mass=b.inner_mass, moment=b.inner_moment, axial_load=b.axial, radial_load=b.radial),
            frames=[[range(3)], [range(3, 4)]],
            name="inner",
            look=looks.inner(b),
        ),
        Element(
            of["outer"],
            kinetic=_moving,
            potential=_weight,
            parameters=dict(mass=b.outer_mass),
            frames=[[range(3)]],
            name="outer",
            look=looks.outer(b),
        ),
        _held(of["outer"], "housing", *b.penalty(b.outer_mass), PENALTY),
        _held(of["inner"][3:], "drive", *b.penalty(b.inner_moment), PENALTY),
    ]
    for n in waves:
        own, (mass, stiffness, damping) = [f"outer.a{n}", f"outer.b{n}"], b.mode(n)
        given: dict[str, Any] = dict(parameters=dict(mass=mass), frames=[[range(2)]], name=f"mode{n}")
        elements += [
            Element(own, kinetic=_moving, look=looks.nothing, **given),
            _held(own, f"bending{n}", stiffness, damping, ELASTIC),
        ]
    for i in range(1, b.balls + 1):
        angle = 2 * np.pi * (i - 1) / b.balls
        ball = of[f"ball{i}"]
        elements += [
            Element(
                [*ball, *of["outer"], *of["modes"]],
                potential=contacts.race_energy(waves, 9),
                forces=contacts.race_forces(False, waves, 9),
                parameters=dict(K=outer, R=b.outer_circle),
                name=f"ball{i}-outer",
                expensive=True,
            ),
            Element(
                [*ball, *of["inner"]],
                potential=contacts.race_energy((), 10, bool(b.oval)),
                forces=contacts.race_forces(True, (), 10, bool(b.oval)),
                parameters=dict(K=inner, R=b.inner_circle) | (dict(oval=b.oval) if b.oval else {}),
                name=f"ball{i}-inner",
                expensive=True,
            ),
            Element(
                [*ball, *of["cage"]],
                potential=contacts.pocket_energy,
                forces=contacts.pocket_forces,
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


# -- what results show by name ----------------------------------------------------------------------------------------
def _quantities(system: System, b: Bearing) -> dict[str, Quantity]:
    place = {name: i for i, name in enumerate(system.coordinates)}
    numbers = {element.name: i for i, element in enumerate(system.elements)}
    waves = tuple(b.waves)
    normals = {
        "outer": contacts.race_normal(waves, 9),
        "inner": contacts.race_normal((), 10, bool(b.oval)),
        "cage": contacts.pocket_normal,
    }
    found = {}
    for i in range(1, b.balls + 1):
        for other, function in normals.items():
            name = f"ball{i}-{other}"
            words = f"normal force between ball {i} and the {other}{'' if other == 'cage' else ' race'}"
            found[f"{name}.normal"] = Quantity(words, "N", _of_element(system, numbers[name], function))
    own = list(system.indices[numbers["cage"]])
    directors = [own[i : i + 3] for i in (3, 6, 9)]
    inner = [place[f"inner.{c}"] for c in "xyz"]
    drive, psi = list(system.parameter_indices[numbers["drive"]]), place["inner.phi"]

    def speed(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
        """About the axis of space."""
        omega = sum((ca.cross(q[i], v[i]) for i in directors), ca.SX.zeros(3)) / 2
        return omega[0]

    def torque(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
        stiffness, damping = (k[drive[-2]], k[drive[-1]])
        return -stiffness * q[psi] - damping * v[psi]

    found["cage.speed"] = Quantity("rate of rotation of the cage about the axis", "rad/s", speed)
    found["drive.torque"] = Quantity("torque of the drive on the inner ring", "N m", torque)
    found["inner.position"] = Quantity("centre of the inner ring", "m", lambda q, v, lam, t, k: q[inner], shape=(3,))
    return found


def _of_element(system: System, number: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the coordinates, velocities and parameters of one element."""
    index, where, size = list(system.indices[number]), list(system.parameter_indices[number]), system.shared.size
    element = system.elements[number]

    def expression(q: Any, v: Any, lam: Any, t: Any, k: Any) -> Any:
        own = m.symbols(k[where])
        named = Namespace(system.shared.named(own[:size]) | element.parameters.named(own[size:]))
        return m.expression(function(m.symbols(q[index]), m.symbols(v[index]), m.symbols(ca.SX(t))[0], named))

    return expression


# -- where it starts --------------------------------------------------------------------------------------------------
def start(b: Bearing, seat: Seat, cage: float) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates and velocities of rolling balls in equilibrium; the cage turns at `cage` times their orbit."""
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
