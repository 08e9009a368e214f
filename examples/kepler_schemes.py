"""Four integrators on an eccentric orbit: energy errors."""

import livens as lv

kepler = lv.problems.load("kepler", e=0.6)
for name in ("heun", "gauss-2", "stormer-verlet", "livens-em"):
    run = lv.simulate(kepler, scheme=name, h=0.02, t_end=60)
    energy = run.observe("total_energy")
    print(f"{name:15s} largest energy error {abs(energy / energy[0] - 1).max():.1e}")
