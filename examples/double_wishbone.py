"""Double-wishbone suspension: static equilibrium, then a kick of the wheel."""

import livens as lv

problem = lv.problems.load("double-wishbone")
run = lv.simulate(problem, t_end=2.0)
print(run.report())
print(f"defect of the energy balance: {run.summary.max_energy_drift:.0e}")
assert run.summary.max_constraint < 1e-12
run.animate("double-wishbone.html", frames=120)
