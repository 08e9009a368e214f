"""Outer planets for a million days with a scheme of order 8."""

import livens as lv

problem = lv.problems.load("outer-solar-system")
run = lv.simulate(problem, t_end=1e6, every=100)
print(run.info.scheme, f"energy error {run.summary.max_energy_drift:.1e} after {run.statistics.steps} steps")
