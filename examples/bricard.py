"""Bricard's overconstrained mechanism: redundant constraints are detected and removed."""

import itertools

import numpy as np

import livens as lv

P = np.array([[0, 0, 0], [1, 0, 0], [1, -1, 0], [1, -1, 1], [0, -1, 1], [0, 0, 1]], dtype=float)
cube, before = lv.Multibody(gravity=[0, -9.81, 0]), None
for i, (a, b) in enumerate(itertools.pairwise(P)):
    rod = cube.box(f"rod{i}", at=(a + b) / 2, size=np.where(a == b, 0.1, 1.0), mass=1)
    cube.revolute(f"hinge{i}", before or cube.ground, rod, at=a, axis="yzxyzx"[i])
    before = rod
cube.revolute("hinge5", before, cube.ground, at=P[5], axis="x")
print(cube.check())
run = cube.simulate(t_end=2.0, h=1e-2)
assert run.summary.max_constraint < 1e-12
