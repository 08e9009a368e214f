"""Pendulum in Cartesian coordinates, from energies and a constraint."""

import livens as lv

pendulum = lv.System(
    "x y",
    kinetic=lambda v, k: 0.5 * k.m * (v @ v),
    potential=lambda q, k: k.m * k.g * q[1],
    constraints=lambda q, k: [0.5 * (q @ q - k.l**2)],
    parameters=dict(m=1.0, l=1.0, g=9.81),
)
run = lv.simulate(pendulum, q0=[-1, 0], v0=[0, 0], h=1e-3, t_end=10)
print(run.accuracy())
assert run.summary.max_energy_drift < 1e-12
