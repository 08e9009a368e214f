"""A run in a file, continued bit for bit."""

import numpy as np

import livens as lv

pendulum = lv.problems.load("simple-pendulum")
lv.simulate(pendulum, h=1e-3, t_end=2.0, out="run.h5", force=True)
longer = lv.resume("run.h5", t_end=4.0)
whole = lv.simulate(pendulum, h=1e-3, t_end=4.0)
print("identical:", np.array_equal(longer.q, whole.q))
assert np.array_equal(longer.q, whole.q)
