"""Chain of 30 rods with ball joints, falling from the horizontal."""

import livens as lv

chain, before = lv.Multibody(gravity=[0, 0, -9.81]), None
for i in range(30):
    rod = chain.rod(f"rod{i}", a=[0.1 * i, 0, 0], b=[0.1 * (i + 1), 0, 0], mass=0.1)
    chain.spherical(f"ball{i}", before or chain.ground, rod, at=rod.a)
    before = rod
run = chain.simulate(t_end=0.5, h=2e-3)
print(f"end of the chain at {run['rod29.b'][-1].round(3)}")
assert run.summary.max_energy_drift < 1e-11
