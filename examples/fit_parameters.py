"""Parameters of a damped linkage from noisy measurements."""

import numpy as np

import livens as lv

linkage = lv.problems.load("double-four-bar-damped")


def tip(q):
    return [q[0] + 0.5 * q[2], q[1] + 0.5 * q[3]]


truth = lv.simulate(linkage, h=1e-3, t_end=5.0, every=50)
data = truth.observe(tip) + 0.03 * np.random.default_rng(1).standard_normal((len(truth), 2))
found = lv.study.fit(linkage, tip, data, {"g": 9.5, "eta": 0.3}, t=truth.t, sigma=0.03, h=1e-3)
print(found)
assert abs(found.values["eta"] - 0.5) < 0.01
