"""A thousand pendulums at once."""

import numpy as np

import livens as lv

lengths = np.linspace(0.5, 2.0, 1000)
many = lv.ensemble(
    lv.problems.load("simple-pendulum"),
    q0=np.column_stack([-lengths, 0 * lengths]),
    parameters={"l": lengths},
    h=1e-3,
    t_end=3.0,
    every=3000,
    reduce={"speed": lambda v: (v @ v) ** 0.5},
)
fastest = many.reduced["speed"].highest
print(f"largest speeds from {fastest.min():.3f} to {fastest.max():.3f} m/s")
assert abs(fastest / np.sqrt(2 * 9.81 * lengths) - 1).max() < 1e-3
