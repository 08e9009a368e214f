"""Planets by REBOUND WHFast with symplectic corrector of order 17."""

from __future__ import annotations

from typing import Any

import numpy as np


def whfast(problem: Any, t_end: float, count: float) -> np.ndarray:
    """Return the final positions after `count` steps."""
    import rebound

    system = problem.model
    G, masses = system.gravity_parameters(system.parameter_vector())
    q, v = (np.reshape(part, (-1, 3)) for part in (problem.q0, problem.v0))
    simulation = rebound.Simulation()
    simulation.G = float(G)
    for mass, position, speed in zip(masses, q, v, strict=True):
        names = ("x", "y", "z", "vx", "vy", "vz")
        simulation.add(m=float(mass), **dict(zip(names, map(float, (*position, *speed)), strict=True)))
    simulation.integrator = "whfast"
    simulation.dt = t_end / count
    # up to version 4 the settings belong to the simulation, later to its integrator
    settings = getattr(simulation, "ri_whfast", None) or simulation.integrator
    settings.safe_mode, settings.corrector = 0, 17
    simulation.steps(round(count))
    synchronize = getattr(simulation, "synchronize", None) or simulation.integrator_synchronize
    synchronize()
    return np.array([[body.x, body.y, body.z] for body in simulation.particles]).ravel()
