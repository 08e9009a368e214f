"""Ball bearing as a `System`: balls, rings, cage, contact elements and named outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from livens import math as m
from livens.models.element import Element
from livens.models.quantity import AppliedForce, Quantity
from livens.models.system import System
from livens.multibody.body_elements import director_body
from livens.multibody.inertia import Inertia
from livens.multibody.modal_ring import mode_elements
from livens.problems.bearing import raceway_contact, visuals
from livens.problems.bearing.dimensions import Bearing
from livens.problems.bearing.initial_state import BearingEquilibrium
from livens.problems.bearing.rings import (
    element_function,
    force_on_first_body,
    gravity_potential,
    ring_quantities,
    rings,
)
from livens.types import Expr, ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


#: Names of the parts that may be elastic.
ELASTIC_PARTS = ("outer", "inner", "cage")


def _ball_energy(v: Vector, k: ParameterNamespace) -> ScalarLike:
    return k.mass / 2 * m.dot(v[:3], v[:3]) + k.moment / 2 * m.dot(v[3:], v[3:])


def _cage_weight(q: Vector, k: ParameterNamespace) -> ScalarLike:
    return k.cage_mass * k.g * q[0]


def coordinate_names(b: Bearing) -> dict[str, list[str]]:
    """Return the coordinate names of each part."""
    coordinates = {
        f"ball{i}": [f"ball{i}.{c}" for c in ("x", "y", "z", "ax", "ay", "az")] for i in range(1, b.balls + 1)
    }
    coordinates["cage"] = [f"cage.{c}" for c in director_body("cage", _cage_inertia(b)).parametrisation.names]
    coordinates["inner"] = [f"inner.{c}" for c in ("x", "y", "z", "phi")]
    coordinates["outer"] = [f"outer.{c}" for c in "xyz"]
    for part in ELASTIC_PARTS:
        coordinates[f"{part} modes"] = [f"{part}.{name}" for name in b.ring_modes(part).names]
    return coordinates


def _races(b: Bearing) -> dict[str, raceway_contact.Race]:
    inner = raceway_contact.Race(True, b.ring_modes("inner").wave_numbers, 10, bool(b.ovality))
    return dict(outer=raceway_contact.Race(False, b.ring_modes("outer").wave_numbers), inner=inner)


def _cage_inertia(b: Bearing) -> Inertia:
    polar, across = b.cage_moments
    return Inertia(b.cage_mass, [polar, across, across])


def bearing_system(b: Bearing) -> System:
    """Return the system; the angle of the inner ring is relative to its drive, which rotates at the given speed."""
    coordinates = coordinate_names(b)
    races = _races(b)
    cage_waves = b.ring_modes("cage").wave_numbers
    outer, inner = b.stiffness
    elements = []
    for i in range(1, b.balls + 1):
        elements.append(
            Element(
                coordinates[f"ball{i}"],
                kinetic=_ball_energy,
                potential=gravity_potential,
                parameters=dict(mass=b.ball_mass, moment=b.ball_moment),
                frames=[[range(3)], [range(3, 6)]],
                name=f"ball{i}",
                visual=visuals.ball,
            )
        )
    cage = director_body("cage", _cage_inertia(b), visual=visuals.cage(b))
    elements += [
        cage,
        Element(
            [coordinates["cage"][2]], potential=_cage_weight, parameters=dict(cage_mass=b.cage_mass), name="cage-weight"
        ),
        *rings(b, b.axial, visuals.inner(b), visuals.outer(b)),
    ]
    for part in ELASTIC_PARTS:
        ring = b.ring_modes(part)
        for n in ring.wave_numbers:
            elements += mode_elements([f"{part}.a{n}", f"{part}.b{n}"], part, n, ring, b.modal_damping(ring, n))
    for i in range(1, b.balls + 1):
        angle = 2 * np.pi * (i - 1) / b.balls
        ball = coordinates[f"ball{i}"]
        elements += [
            Element(
                [*ball, *coordinates["outer"], *coordinates["outer modes"]],
                potential=raceway_contact.race_energy(races["outer"]),
                forces=raceway_contact.race_forces(races["outer"]),
                parameters=dict(K=outer, R=b.outer_groove_circle),
                name=f"ball{i}-outer",
                expensive=True,
            ),
            Element(
                [*ball, *coordinates["inner"], *coordinates["inner modes"]],
                potential=raceway_contact.race_energy(races["inner"]),
                forces=raceway_contact.race_forces(races["inner"]),
                parameters=dict(K=inner, R=b.inner_groove_circle) | (dict(oval=b.ovality) if b.ovality else {}),
                name=f"ball{i}-inner",
                expensive=True,
            ),
            Element(
                [*ball, *coordinates["cage"], *coordinates["cage modes"]],
                potential=raceway_contact.pocket_energy(cage_waves),
                forces=raceway_contact.pocket_forces(cage_waves),
                parameters=dict(cosine=np.cos(angle), sine=np.sin(angle)),
                name=f"ball{i}-cage",
                expensive=True,
            ),
        ]
    shared = dict(
        g=b.gravity,
        D=b.diameter,
        r=b.groove_radius,
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
    system = System(
        [name for part in coordinates.values() for name in part], elements=elements, parameters=shared, frames=True
    )
    system.quantities.update(_quantities(system, b))
    return system


# -- named outputs ----------------------------------------------------------------------------------------------------
def _quantities(system: System, b: Bearing) -> dict[str, Quantity]:
    element_index = {element.name: i for i, element in enumerate(system.elements)}
    waves, races = b.ring_modes("cage").wave_numbers, _races(b)
    contact_functions = {
        name: (
            raceway_contact.race_normal(ring),
            force_on_first_body(raceway_contact.race_energy(ring), raceway_contact.race_forces(ring)),
            raceway_contact.race_point(ring),
        )
        for name, ring in races.items()
    }
    pocket_force = force_on_first_body(raceway_contact.pocket_energy(waves), raceway_contact.pocket_forces(waves))
    contact_functions["cage"] = raceway_contact.pocket_normal(waves), pocket_force, raceway_contact.pocket_point(waves)
    quantities = {}
    for i in range(1, b.balls + 1):
        for other, functions in contact_functions.items():
            name, surface = f"ball{i}-{other}", other if other == "cage" else f"{other} race"
            normal, force, point = (element_function(system, element_index[name], function) for function in functions)
            acting = AppliedForce(on=f"ball{i}", by=other, at=point)
            quantities[f"{name}.normal_force"] = Quantity(
                f"normal force between ball {i} and the {surface}", "N", normal
            )
            quantities[f"{name}.force"] = Quantity(
                f"force of the {surface} on ball {i}, in space", "N", force, shape=(3,), applied=acting
            )
    cage_dofs = list(system.element_dofs[element_index["cage"]])
    directors = [cage_dofs[i : i + 3] for i in (3, 6, 9)]

    def speed(q: Expr, v: Expr, lam: Expr, t: Expr, k: Expr) -> Expr:
        """Return the angular velocity component about the axis of the bearing."""
        omega = sum((ca.cross(q[i], v[i]) for i in directors), ca.SX.zeros(3)) / 2
        return omega[0]

    quantities["cage.speed"] = Quantity("rate of rotation of the cage about the axis", "rad/s", speed)
    return quantities | ring_quantities(system)


# -- initial state ----------------------------------------------------------------------------------------------------
def initial_state(b: Bearing, equilibrium: BearingEquilibrium, cage: float) -> tuple[np.ndarray, np.ndarray]:
    """Return coordinates and velocities of rolling balls in equilibrium; `cage` is the cage speed over orbit rate."""
    coordinates = coordinate_names(b)
    q: dict[str, float] = {name: 0.0 for part in coordinates.values() for name in part}
    v = dict(q)
    for i, angle in enumerate(b.azimuths):
        c, s = np.cos(angle), np.sin(angle)
        rho, angular_velocity = (
            equilibrium.rho[i],
            -equilibrium.ball_spin * np.array([np.cos(equilibrium.angle), -np.sin(equilibrium.angle)]),
        )
        ball = coordinates[f"ball{i + 1}"]
        q |= dict(zip(ball[:3], [equilibrium.x[i], rho * c, rho * s], strict=True))
        orbital_velocity = rho * equilibrium.cage_speed
        v |= dict(
            zip(
                ball,
                [
                    0.0,
                    -orbital_velocity * s,
                    orbital_velocity * c,
                    angular_velocity[0],
                    angular_velocity[1] * c,
                    angular_velocity[1] * s,
                ],
                strict=True,
            )
        )
    cage_rate = cage * equilibrium.cage_speed
    body = director_body("cage", _cage_inertia(b))
    cage_q, cage_v = body.state(
        position=[float(equilibrium.x.mean()), 0, 0], orientation=[1, 0, 0, 0], omega=[cage_rate, 0, 0]
    )
    q |= dict(zip(coordinates["cage"], cage_q, strict=True))
    v |= dict(zip(coordinates["cage"], cage_v, strict=True))
    q |= dict(zip(coordinates["inner"][:3], equilibrium.ring_position, strict=True))
    return np.array(list(q.values())), np.array(list(v.values()))
