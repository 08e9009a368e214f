"""An unbalanced rotor near resonance (S003 2.1.3 and paper I): linear, with a load that depends on time."""

from __future__ import annotations

import numpy as np

from livens import math as m
from livens.errors import InputError
from livens.models.problem import Problem
from livens.models.system import System
from livens.problems import problem


@problem("rotor", summary="unbalanced rotor in an elastic bearing, near resonance", source="S003 2.1.3, paper I")
def rotor(mass: float = 1.0, k: float = 1.0, Omega: float = 1.02, eps: float = 0.1) -> Problem:
    """Turns with `Omega`, unbalanced by `eps`; starts at rest in the bearing's middle. Two beats near resonance."""
    if min(mass, k, Omega) <= 0:
        raise InputError("mass, k and Omega must be greater than 0")
    system = System(
        "q1 q2",
        kinetic=lambda v, k: 0.5 * k.mass * (v @ v),
        potential=lambda q, k: 0.5 * k.k * (q @ q),
        forces=lambda t, k: k.eps * k.Omega**2 * m.array([-m.cos(k.Omega * t), m.sin(k.Omega * t)]),
        parameters=dict(mass=mass, k=k, Omega=Omega, eps=eps),
    )
    omega = np.sqrt(k / mass)
    s, d = (Omega + omega) / 2, (Omega - omega) / 2
    size = eps * Omega**2 / (2 * mass * s)

    def reference(t: float) -> dict[str, np.ndarray]:
        """Written with the sum and the difference of the frequencies: exact in resonance too."""
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
