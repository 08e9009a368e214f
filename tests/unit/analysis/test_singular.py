"""Singular positions of a run: a linkage that goes through them, one that has none, and one that starts in one."""

import numpy as np
import pytest

import livens as lv
from livens.problems import load


def test_a_linkage_goes_through_its_singular_positions():
    """All bars of the double four-bar lie on one line where its feet have turned by a quarter from upright."""
    problem = load("double-four-bar-multibody")
    run = lv.simulate(problem, h=2e-3, t_end=5.0)
    angle = run[next(name for name in run.system.quantities if name.endswith(".angle"))]
    crossed = []
    for level in np.pi / 2 + np.pi * np.arange(-8, 8):
        (at,) = np.nonzero((angle[:-1] - level) * (angle[1:] - level) < 0)
        part = (level - angle[at]) / (angle[at + 1] - angle[at])
        crossed += (run.t[at] + part * (run.t[at + 1] - run.t[at])).tolist()
    found = run.singular_positions()
    assert len(crossed) >= 2
    assert np.abs(np.array([one.t for one in found]) - np.sort(crossed)).max() < 1e-4
    assert all(one.distance < 0.02 and len(one.joints) > 2 for one in found)
    assert "where motion can branch" in str(found[0])


def test_a_pendulum_has_none():
    mb = lv.Multibody(gravity=[0, -9.81], planar=True)
    arm = mb.rod("arm", a=[0, 0], b=[1, 0], mass=1)
    mb.revolute("hinge", mb.ground, arm, at=arm.a)
    assert mb.simulate(t_end=1.0, h=0.02, tier="reference").singular_positions() == ()
    oscillator = lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: q[0] ** 2)
    run = lv.simulate(oscillator, [1.0], [0.0], h=0.1, t_end=1.0, tier="reference")
    with pytest.raises(lv.InputError, match="singular configurations are defined for mechanisms"):
        run.singular_positions()


def test_reports_name_them():
    """The rank is looked at along the run when it is reported; of many only the first are named."""
    run = lv.simulate(load("double-four-bar-multibody"), h=2e-3, t_end=5.0)
    found = run.singular_positions()
    said = run.report(accuracy=False).lines
    assert [line for line in said if "a singular configuration" in line] == [str(one) for one in found[:3]]
    assert len(found) <= 3 or f"... and {len(found) - 3} more singular configurations" in said
    mb = lv.Multibody(gravity=[0, -9.81], planar=True)
    arm = mb.rod("arm", a=[0, 0], b=[1, 0], mass=1)
    mb.revolute("hinge", mb.ground, arm, at=arm.a)
    plain = mb.simulate(t_end=1.0, h=0.02, tier="reference")
    assert not any("singular" in line for line in plain.report(accuracy=False).lines)
