"""Cantilever: deflection and first frequency against beam theory."""

import numpy as np

import livens as lv

radius, E, density = 0.005, 2.1e11, 7850
steel = lv.Section.circular(radius, E=E, nu=0.3, density=density)
inertia, area = np.pi * radius**4 / 4, np.pi * radius**2
mb = lv.Multibody()
boom = mb.beam("boom", points=[[0, 0, 0], [1, 0, 0]], section=steel, elements=8, clamp_first=mb.ground)
mb.wrench("load", boom.b, force=[0, 0, -2])
mb.equilibrium(load_steps=4)
run = mb.simulate(t_end=1e-3, h=1e-3)
deflection, formula = -run["boom.position"][0, -1, 2], 2 / (3 * E * inertia)
print(f"deflection {deflection * 1e3:.3f} mm, beam theory {formula * 1e3:.3f} mm")
assert abs(deflection / formula - 1) < 0.02
