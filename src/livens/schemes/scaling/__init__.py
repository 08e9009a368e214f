"""Scaling functions ``dt/dtau = g`` of time-transformed schemes: step size in time per unit of fictive time tau.

A time-transformed scheme has a constant step ``eps`` in fictive time and steps of about ``eps g`` in time (Modin 2009,
ch. 3). Some schemes need g as a function of the two energies, some as a function of the coordinates only.
`Scaling.require` checks the arguments of a scaling.

>>> import livens as lv
>>> kepler = lv.Hamiltonian("x y", kinetic=lambda p: p @ p / 2, potential=lambda q: -1 / lv.math.norm(q))
>>> lv.scaling.potential(1.5).evaluate_checked(kepler, q=[0.25, 0.0], p=[0.0, 1.0])  # as r^(3/2)
0.125
"""

from livens.schemes.scaling.base import Scaling
from livens.schemes.scaling.energies import inverse_lagrangian, kinetic, potential
from livens.schemes.scaling.outputs import of
from livens.schemes.scaling.stiffness import StiffnessEstimate, stiffness, stiffness_estimate
from livens.schemes.scaling.user_defined import curvature, speed, user_scaling

__all__ = [
    "Scaling",
    "StiffnessEstimate",
    "curvature",
    "inverse_lagrangian",
    "kinetic",
    "of",
    "potential",
    "speed",
    "stiffness",
    "stiffness_estimate",
    "user_scaling",
]
