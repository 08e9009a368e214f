"""Adaptive steps without energy drift on an orbit of eccentricity 0.99."""

import livens as lv

problem = lv.problems.load("kepler", e=0.99)
run = lv.simulate(problem, scheme="sundman", h=0.02)
steps = run.step_size[1:-1]
print(f"steps from {steps.min():.1e} to {steps.max():.1e}; energy error {run.summary.max_energy_drift:.1e}")
