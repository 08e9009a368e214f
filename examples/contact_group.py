"""Pile of logs with a contact group."""

import livens as lv
from livens import contacts

pile = lv.Multibody(gravity=[0, 0, -9.81])
logs = []
for i in range(3):
    y, z = 0.03 * (-1) ** i, 0.06 + 0.11 * i
    logs.append(pile.rod(f"log{i}", a=[-0.2, y, z], b=[0.2, y, z], mass=0.5, radius=0.05))
friction = contacts.Friction(0.4, slip_tolerance=0.02)
heap = pile.contact_group("heap", [*logs, pile.ground], stiffness=2e4, dissipation=0.5, friction=friction)
run = pile.simulate(t_end=0.3, h=1e-4, every=50)
print(f"largest elastic energy in the contacts: {heap.stored_energy(run).max():.4f} J")
