"""The spherical pendulum by a unit quaternion, against the one in Cartesian coordinates."""

import numpy as np
import pytest
from conftest import measured_order

import livens as lv
from livens import rotations as rot


@pytest.mark.parametrize("scheme", ["livens-em", "livens-midpoint"])
def test_the_quaternion_pendulum_moves_as_the_spherical_pendulum(scheme):
    cartesian = lv.simulate(lv.problems.load("spherical-pendulum"), scheme="lobatto-iiia-iiib-4", h=0.005, t_end=2.0)
    problem, steps, errors = lv.problems.load("quaternion-pendulum"), [0.04, 0.02, 0.01, 0.005], []
    for h in steps:
        run = lv.simulate(problem, scheme=scheme, h=h, t_end=2.0)
        errors.append(np.abs(np.array(rot.directors(run.q[-1])[2]) - cartesian.q[-1]).max())
        assert np.abs(run.observe("constraint")[:, 0]).max() < 1e-14
        assert np.abs(rot.convective_velocity(run.q[-1], run.v[-1])[2]) < 5 * h**2
    assert measured_order(steps, errors) == pytest.approx(2, abs=0.05)
    energy = np.ptp(run.observe("generalized_energy"))
    assert energy < 1e-12 if scheme == "livens-em" else energy > 1e-9
