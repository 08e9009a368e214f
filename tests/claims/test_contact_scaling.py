"""Steps that follow the stiffness of contacts (Modin 2009 papers II and V), for bodies that turn and have joints."""

import functools

import numpy as np
import pytest

import livens as lv
from livens import contacts, scaling
from livens.errors import InputError

SCHEME = "semi-explicit:0.5,0.5"
SOFT = 1e4  # the smallest squared frequency that steps follow, in 1/s^2


@functools.cache
def thrown():
    """A ball that is thrown onto a hard floor, turning."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    ball = mb.sphere("ball", at=[0, 0, 0.3], radius=0.1, mass=1.0)
    rubbing = contacts.Friction(0.2, slip_tolerance=0.5)
    mb.contact(ball, mb.ground, law=contacts.Hertz(1e8), friction=rubbing, name="floor")
    mb.initial(ball, velocity=[1, 0, 0], omega=[0, -20, 5])
    return mb.problem()


@functools.cache
def best():
    return lv.simulate(thrown(), scheme=SCHEME, h=2e-6, t_end=0.25, every=10**6).v[-1]


@pytest.mark.parametrize(
    "given",
    [scaling.stiffness(SOFT, smoothing_length=1e-4), scaling.stiffness_estimate(SOFT)],
    ids=["stiffness", "estimate"],
)
def test_as_many_steps_where_they_are_needed(given):
    """With as many steps, errors are a tenth of those of equal ones; steps shrink with the square root of k/m."""
    equal = lv.simulate(thrown(), scheme=SCHEME, h=2e-4, t_end=0.25)
    run = lv.simulate(thrown(), scheme=SCHEME, h=0.02, t_end=0.25, scaling=given)
    assert len(run.t) < 1.15 * len(equal.t)
    assert np.abs(run.v[-1] - best()).max() < 0.15 * np.abs(equal.v[-1] - best()).max()
    sizes = np.diff(run.t)
    assert sizes.max() == pytest.approx(0.02 / np.sqrt(SOFT), rel=1e-6)  # in free flight
    depth = run["floor.depth"].max()
    hardest = 1.5 * 1e8 * np.sqrt(depth)  # the slope of Hertz' law where penetration is deepest, over a mass of 1 kg
    assert sizes[:-1].min() == pytest.approx(0.02 / np.sqrt(hardest + SOFT), rel=0.15)
    assert run.t[-1] == pytest.approx(0.25, abs=1e-12)


def test_errors_fall_with_the_unit_of_fictive_time():
    errors = []
    for unit in (0.02, 0.01, 0.005, 0.0025):
        run = lv.simulate(
            thrown(), scheme=SCHEME, h=unit, t_end=0.25, scaling=scaling.stiffness(SOFT, smoothing_length=1e-4)
        )
        errors.append(np.abs(run.v[-1] - best()).max())
    assert errors[-1] < errors[0] / 6


@functools.cache
def dropped():
    """A stone that bounces on hard ground for ever."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    stone = mb.sphere("stone", at=[0, 0, 1], radius=0.1, mass=1.0)
    mb.contact(stone, mb.ground, law="hertz")
    mb.initial(stone, velocity=[0, 0, -1])
    return mb


@pytest.mark.parametrize(("unit", "smooth"), [(0.1, 1e-5), (0.05, 1e-5), (0.05, 1e-9), (0.02, 1e-5), (0.02, 1e-4)])
def test_no_step_jumps_into_a_contact(unit, smooth):
    """In flight, a step is as long as ten times the penetration depth: contacts are seen before they close.

    This holds for every length. Errors of some sixty impacts fall with the unit.
    """
    mb = dropped()
    run = mb.simulate(
        t_end=40.0, h=unit, scheme=SCHEME, scaling=scaling.stiffness(SOFT, smoothing_length=smooth), every=7
    )
    flying = run["stone.position"][:, 2] > 0.15
    energy = run["total_energy"][flying]
    assert np.abs(energy / energy[0] - 1).max() < 1.5 * unit**2
    fastest = np.sqrt(2 * energy[0] - 2 * 9.81 * 0.1)
    assert unit / np.sqrt(SOFT) * fastest > 4 * run["stone-ground.depth"].max()


@pytest.mark.slow
def test_a_stone_bounces_for_a_thousand_seconds():
    run = dropped().simulate(
        t_end=1000.0, h=0.02, scheme=SCHEME, scaling=scaling.stiffness(SOFT, smoothing_length=1e-5), every=10
    )
    flying = run["stone.position"][:, 2] > 0.15
    energy = run["total_energy"][flying]
    assert len(energy) > 1e5 and np.abs(energy / energy[0] - 1).max() < 5e-3


def test_joints_and_penalties_stay_where_they_are():
    """A pendulum that hits a wall: an exact joint, steps that follow the impact."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    bob = mb.sphere("bob", at=[0.5, 0, 0], radius=0.05, mass=1.0)
    mb.revolute("hinge", mb.ground, bob, at=[0, 0, 0], axis="y")
    mb.contact(bob, contacts.HalfSpace(mb.ground, at=[-0.02, 0, 0], normal="x"), stiffness=1e6, name="wall")
    run = mb.simulate(t_end=0.6, h=0.02, scheme=SCHEME, scaling=scaling.stiffness(SOFT, smoothing_length=1e-3))
    assert np.abs(run["hinge.violation"]).max() < 1e-12
    assert run["wall.normal_force"].max() > 100 and np.diff(run.t)[:-1].min() < 0.2 * np.diff(run.t).max()
    assert run.summary.max_energy_drift < 2e-3


def test_what_does_not_fit():
    with pytest.raises(InputError, match="smooth"):
        lv.simulate(thrown(), scheme=SCHEME, h=0.02, t_end=0.1, scaling=scaling.stiffness(SOFT))
    with pytest.raises(InputError, match="coordinates and momenta"):
        lv.simulate(thrown(), scheme=SCHEME, h=0.02, t_end=0.1, scaling=scaling.kinetic())
    with pytest.raises(InputError, match="infinite at rest"):
        lv.simulate(thrown(), scheme=SCHEME, h=0.02, t_end=0.1, scaling=scaling.speed())
