"""Constraints by penalty: frequency, force, momenta, the limit of an exact joint."""

import numpy as np
import pytest

import livens as lv
from livens.errors import InputError


def test_every_direction_swings_with_the_frequency():
    mb = lv.Multibody()
    box = mb.box("box", at=[0.2, 0.1, -0.3], size=[0.1, 0.2, 0.3], mass=2.0)
    mb.penalty_joint("seat", mb.ground, box, frequency=40.0, damping_ratio=0.0)
    assert lv.linearise(mb.problem()).frequencies == pytest.approx([40.0] * 6, rel=1e-9)
    flat = lv.Multibody(planar=True)
    plate = flat.box("plate", at=[1.0, 0.5], size=[0.2, 0.1], mass=0.7)
    flat.penalty_joint("seat", flat.ground, plate, frequency=25.0, damping_ratio=0.0)
    assert lv.linearise(flat.problem()).frequencies == pytest.approx([25.0] * 3, rel=1e-9)


def test_two_bodies_share_the_frequency_of_their_reduced_mass():
    mb = lv.Multibody()
    a, b = mb.particle("a", at=[0, 0, 0], mass=1.0), mb.particle("b", at=[0, 0, 0], mass=3.0)
    hold = mb.penalty_joint("pair", a, b, joint_type="spherical", frequency=10.0, damping_ratio=0.5)
    reduced = 1.0 * 3.0 / 4.0
    assert hold.element.parameters.values["stiffness"] == pytest.approx(reduced * (20 * np.pi) ** 2)
    assert hold.element.parameters.values["damping"] == pytest.approx(reduced * 20 * np.pi)


def test_steps_that_do_not_resolve_it_leave_the_force():
    """A ring in its housing of 1 MHz: steps ten times as long as the period; it gives way by g/w^2."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    ring = mb.ring("ring", at=[0, 0, 0], axis="x", radius=0.02, tube_radius=0.004, mass=0.06)
    mb.penalty_joint("housing", mb.ground, ring, frequency=1e6)
    run = mb.simulate(t_end=1e-3, h=1e-5, scheme="semi-explicit:0.5,0.8")
    assert run["housing.force"][-1] == pytest.approx([0, 0, 0.06 * 9.81], abs=1e-7)
    assert run["housing.violation"][-1, 2] == pytest.approx(-9.81 / (2 * np.pi * 1e6) ** 2, rel=1e-6)


def test_momenta_and_the_balance_of_energy():
    mb = lv.Multibody()
    a = mb.box("a", at=[0, 0, 0], size=[0.4, 0.2, 0.1], mass=1.0)
    b = mb.box("b", at=[0.5, 0.1, 0], size=[0.3, 0.2, 0.2], mass=2.0)
    mb.penalty_joint(
        "bolt", a, b, joint_type="revolute", axis="z", at=[0.25, 0.0, 0], frequency=30.0, damping_ratio=0.3
    )
    mb.initial(a, velocity=[1.0, 0.2, 0], omega=[0.5, -1.0, 3.0], required=True)
    run = mb.simulate(t_end=1.0, h=2e-3)
    for momentum in ("linear_momentum", "angular_momentum"):
        values = run.observe(momentum)
        assert np.abs(values - values[0]).max() < 1e-12
    assert run.summary.max_energy_drift < 1e-12 and run.dissipated_energy[-1] > 1e-3
    assert np.diff(run.dissipated_energy).min() >= 0


def test_it_tends_to_the_exact_joint():
    """The further away its frequency is from that of the motion, by the square."""

    def ends(frequency=None):
        mb = lv.Multibody(gravity=[0, 0, -9.81])
        arm = mb.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=2.0, radius=0.05)
        if frequency is None:
            mb.revolute("hinge", mb.ground, arm, at=[0, 0, 0], axis="y")
        else:
            mb.penalty_joint(
                "hinge", mb.ground, arm, joint_type="revolute", axis="y", at=[0, 0, 0], frequency=frequency
            )
        return mb.simulate(t_end=0.5, h=1e-3)["arm.position"][-1]

    exact = ends()
    gaps = [np.abs(ends(frequency) - exact).max() for frequency in (20.0, 40.0, 80.0, 160.0)]
    assert gaps[-1] < 2e-4
    slopes = np.diff(np.log(gaps)) / np.log(2)
    assert slopes[1:] == pytest.approx([-2, -2], abs=0.35)


def test_what_it_refuses():
    mb = lv.Multibody()
    box = mb.box("box", at=[0, 0, 0], size=[0.1, 0.2, 0.3], mass=2.0)
    for options, word in (
        (dict(frequency=0.0), "frequency"),
        (dict(frequency=1e3, damping_ratio=-1.0), "damping ratio"),
        (dict(frequency=1e3, joint_type="revolut"), "revolute"),
        (dict(frequency=1e3, joint_type="revolute"), "axis"),
    ):
        with pytest.raises(InputError, match=word):
            mb.penalty_joint("seat", mb.ground, box, **options)
