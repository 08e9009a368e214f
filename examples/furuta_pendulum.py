"""Furuta pendulum from energies: a driven arm with a hanging rod, in two angles."""

import livens as lv
from livens import math as m

furuta = lv.System(
    "arm rod",
    kinetic=lambda q, v, k: (
        0.5 * k.J * v[0] ** 2
        + 0.5
        * k.m
        * ((k.r * v[0] + k.l * m.cos(q[1]) * v[1]) ** 2 + (k.l * m.sin(q[1])) ** 2 * (v[0] ** 2 + v[1] ** 2))
    ),
    potential=lambda q, k: k.m * k.g * k.l * m.cos(q[1]),
    forces=lambda t, k: [k.torque * m.sin(3 * t), 0],
    dissipation=lambda v, k: 0.5 * k.d * v[1] ** 2,
    parameters=dict(J=0.02, m=0.1, r=0.2, l=0.15, g=9.81, d=1e-3, torque=0.05),
)
run = lv.simulate(furuta, q0=[0.0, 0.1], v0=[0.0, 0.0], h=1e-3, t_end=5.0)
print(f"arm at {run.q[-1, 0]:.4f} rad, rod at {run.q[-1, 1]:.4f} rad")
print(f"defect of the energy balance: {abs(run.observe('energy_balance_defect')).max():.0e} J")
assert abs(run.observe("energy_balance_defect")).max() < 1e-11
