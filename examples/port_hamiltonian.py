"""Driven oscillator as a port-Hamiltonian system: power balance to round-off."""

import livens as lv
from livens import math as m

oscillator = lv.PortHamiltonian(
    "q p",
    H=lambda x, k: x[1] ** 2 / 2 + k.c * x[0] ** 2 / 2,
    J=[[0, 1], [-1, 0]],
    R=lambda k: [[0, 0], [0, k.d]],
    B=[[0], [1]],
    u=lambda t: [m.sin(t)],
    parameters=dict(c=4.0, d=0.1),
)
run = lv.simulate(oscillator, x0=[1, 0], scheme="gauss-2", h=0.05, t_end=30.0)
defect = abs(run.observe("energy_balance_defect")).max()
print(f"defect of the energy balance: {defect:.0e}")
assert defect < 1e-13
