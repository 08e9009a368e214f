"""Unbalanced rotor near resonance (Modin 2009, 2.1.3 and paper I): linear, with a time-dependent load."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem
from livens.scene import shapes
from livens.types import ScalarLike, Vector

if TYPE_CHECKING:
    from livens.expressions.parameters import ParameterNamespace


def _visual(q: Vector, t: ScalarLike, k: ParameterNamespace) -> list[shapes.Shape]:
    """Return the rotor in its elastic bearing, with the unbalanced mass."""
    angle, size = k.Omega * t, 1.0
    unbalance = [q[0] + 0.7 * size * m.cos(angle), q[1] - 0.7 * size * m.sin(angle)]
    frame = m.array([[m.cos(angle), m.sin(angle)], [-m.sin(angle), m.cos(angle)]])
    ends = [[9, 0], [0, 9], [-9, 0], [0, -9]]
    return [
        *(shapes.ground(end) for end in ends),
        *(shapes.spring(end, [q[0] + size * end[0] / 9, q[1] + size * end[1] / 9]) for end in ends),
        shapes.ring(q, size, frame),
        shapes.sphere(q, 0.1, name="rotor"),
        shapes.rod(q, unbalance),
        shapes.sphere(unbalance, 0.2, name="unbalance", trace=None),
    ]


@problem(
    "rotor",
    summary="unbalanced rotor in an elastic bearing, near resonance",
    source="Modin 2009, 2.1.3, paper I",
    scheme="livens-midpoint",
)
def rotor(mass: float = 1.0, k: float = 1.0, Omega: float = 1.02, eps: float = 0.1) -> Problem:
    """Build the problem: angular speed `Omega`, unbalance `eps`, from rest at the centre. Two beats near resonance."""
    if min(mass, k, Omega) <= 0:
        raise InputError("mass, k and Omega must be greater than 0")
    system = System(
        "q1 q2",
        kinetic=lambda v, k: 0.5 * k.mass * (v @ v),
        potential=lambda q, k: 0.5 * k.k * (q @ q),
        forces=lambda t, k: k.eps * k.Omega**2 * m.array([-m.cos(k.Omega * t), m.sin(k.Omega * t)]),
        parameters=dict(mass=mass, k=k, Omega=Omega, eps=eps),
        visual=_visual,
    )
    omega = np.sqrt(k / mass)
    s, d = (Omega + omega) / 2, (Omega - omega) / 2
    size = eps * Omega**2 / (2 * mass * s)

    def reference(t: float) -> dict[str, np.ndarray]:
        """Evaluate the exact motion by sum and difference of the frequencies, valid in resonance as well."""
        beat, rate = t * np.sinc(d * t / np.pi), np.cos(d * t)
        q = -size * np.array([np.sin(s * t) * beat, np.cos(s * t) * beat - np.sin(omega * t) / omega])
        v = -size * np.array(
            [
                s * np.cos(s * t) * beat + np.sin(s * t) * rate,
                np.cos(s * t) * rate - s * np.sin(s * t) * beat - np.cos(omega * t),
            ]
        )
        return {"q": q, "v": v}

    return Problem("rotor", system, np.zeros(2), np.zeros(2), "livens-midpoint", 0.05, 628.0, reference=reference)
