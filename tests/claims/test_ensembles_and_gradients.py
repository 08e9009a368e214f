"""Whatever the scheme: members of an ensemble are the runs they would be, and gradients are those of differences."""

import numpy as np
import pytest

import livens as lv

CONSTRAINED = (
    "livens-em livens-midpoint ggl-em hamilton-em hamilton-midpoint livens-variational lobatto-iiia-iiib-2 "
    "symplectic-euler ggl-variational rattle shake radau-iia-2 murua-ggl-2 murua-2 ggl-classic"
).split()
FREE = (
    "gauss-2 implicit-midpoint strang variational-sym:0.5 semi-explicit:0.5,0.5 yoshida-4:stormer-verlet heun".split()
)
CASES = [("simple-pendulum", scheme) for scheme in CONSTRAINED] + [("kepler", scheme) for scheme in FREE]


@pytest.mark.parametrize(("name", "scheme"), CASES)
def test_members_are_single_runs(name, scheme):
    problem = lv.problems.load(name)
    speeds = np.asarray(problem.v0) + np.outer(np.linspace(-0.1, 0.1, 9), [0.0, 1.0])
    many = lv.ensemble(problem, v0=speeds, scheme=scheme, h=0.01, t_end=0.5, every=10)
    assert many.status == ["complete"] * 9
    for i in (0, 8):
        alone = lv.simulate(problem, v0=speeds[i], scheme=scheme, h=0.01, t_end=0.5, every=10)
        np.testing.assert_allclose(many.q[i], alone.q, atol=1e-12)
        np.testing.assert_allclose(many.last("v")[i], alone.v[-1], atol=1e-10)


@pytest.mark.parametrize(("name", "scheme"), CASES)
def test_gradients_are_those_of_differences(name, scheme):
    problem = lv.problems.load(name)
    step = lv.prepare(problem, scheme, h=0.01, t_end=0.3)
    loss = lv.value_and_gradient(lambda q, p: q[0] + 0.3 * p[1])
    _, by = loss(step)
    move = np.array([0.0, 1e-5])
    for given in ("q0", "v0"):
        usual = np.asarray(problem.start_values[given])
        ahead, behind = (loss(step, project=True, **{given: usual + sign * move})[0] for sign in (1, -1))
        assert by.start[given][1] == pytest.approx((ahead - behind) / 2e-5, rel=1e-5, abs=1e-8), given
