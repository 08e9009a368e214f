"""Marble with rigid impacts: exact impact times."""

import livens as lv

mb = lv.Multibody(gravity=[0, 0, -9.81])
marble = mb.sphere("marble", at=[0, 0, 1.1], radius=0.1, mass=0.3)
mb.rigid_contact(marble, mb.ground, restitution=0.8)
run = mb.simulate(t_end=6, h=1e-2)
first = (2 / 9.81) ** 0.5
print(f"{len(run.events)} events; first three at", [round(event.t, 6) for event in run.events[:3]])
assert abs(run.events[1].t - first * (1 + 2 * 0.8)) < 1e-12
