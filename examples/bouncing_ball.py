"""Ball with spin on a table: penalty contact with dissipation and friction."""

import livens as lv
from livens import contacts

mb = lv.Multibody(gravity=[0, 0, -9.81])
ball = mb.sphere("ball", at=[0, 0, 0.15], radius=0.05, mass=0.2)
mb.contact(ball, mb.ground, stiffness=2e4, dissipation=0.5, friction=contacts.Friction(0.3, slip_tolerance=5e-3))
mb.initial(ball, velocity=[1, 0, 0], omega=[0, -30, 0])
run = mb.simulate(t_end=1.5, h=5e-4)
for name, energy in run.observe("dissipated_energy", by="element").items():
    print(f"{name}: {energy[-1]:.4f} J")
assert run.summary.max_energy_drift < 1e-11
