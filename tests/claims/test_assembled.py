"""The assembled tier gives what the other tiers give, to round-off; for every scheme, see `test_assembled_schemes`."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import livens as lv
from livens import math as m
from livens.run.plan import Plan


def chain_of_points(count, seed=0, constrained=True):
    """Points on rods and springs, one after the other, with drag, a force that turns, and masses of their own."""
    random = np.random.default_rng(seed)
    masses = random.uniform(0.5, 2.0, count)
    elements = [
        lv.Element(
            [2 * i, 2 * i + 1],
            kinetic=lambda v, k: 0.5 * k.m * (v @ v),
            potential=lambda q, k: k.m * k.g * q[1],
            dissipation=lambda v: 0.05 * (v @ v),
            forces=lambda q, v, t: [0.3 * m.sin(3 * t), 0.2 * m.cos(2 * t)],
            parameters=dict(m=mass),
            name=f"point{i}",
        )
        for i, mass in enumerate(masses)
    ]

    def rod(q):
        d = q[2:4] - q[0:2]
        return [0.5 * (d @ d - 1)]

    def spring(q, k):
        d = q[2:4] - q[0:2]
        return 0.5 * k.c * (m.sqrt(d @ d + 1e-3) - 1) ** 2

    for i in range(count - 1):
        both = [2 * i, 2 * i + 1, 2 * i + 2, 2 * i + 3]
        if constrained and i % 2 == 0:
            elements.append(lv.Element(both, constraints=rod, name=f"rod{i}"))
        else:
            elements.append(lv.Element(both, potential=spring, name=f"spring{i}", parameters=dict(c=20.0 + i)))
    system = lv.System(2 * count, elements=elements, parameters=dict(g=9.81))
    q0 = np.stack([np.arange(count), np.zeros(count)], axis=1)
    v0 = np.stack([np.full(count, 0.3), 0.5 * np.sin(np.arange(count))], axis=1)
    return system, q0.ravel(), v0.ravel()


def both(system, q0, v0, tiers=("assembled", "fused"), **options):
    return [lv.simulate(system, q0, v0, tier=tier, **options) for tier in tiers]


def assert_equal(runs, scale=1.0):
    # velocities that are not on the constraints amplify round-off of the positions by 1/h
    for name, allowed in (("q", 1e-13), ("v", 1e-10), ("p", 1e-10)):
        assert np.abs(getattr(runs[0], name) - getattr(runs[1], name)).max() < scale * allowed, name
    for name in ("supplied_energy", "dissipated_energy"):
        assert np.abs(getattr(runs[0], name) - getattr(runs[1], name)).max() < scale * 1e-12, name


@given(seed=st.integers(0, 10**6), count=st.integers(2, 6), constrained=st.booleans())
@settings(max_examples=6, deadline=None)
def test_random_chains(seed, count, constrained):
    """Several types of elements, work of forces and drag, with and without constraints; and the reference tier."""
    system, q0, v0 = chain_of_points(count, seed, constrained)
    runs = both(system, q0, v0, ("assembled", "reference"), scheme="livens-em", h=0.01, t_end=0.2)
    assert_equal(runs)
    assert np.abs(runs[0].observe("energy_balance_defect")).max() < 1e-12


@pytest.mark.parametrize("scheme", ["lie-em", "livens-em"])
def test_frame_bodies(scheme):
    """Bodies in space with joints: elements see bodies, and forces are contracted within their kernels."""
    problem = lv.problems.load("link-chain")
    runs = [lv.simulate(problem, scheme=scheme, h=1e-3, t_end=0.2, tier=tier) for tier in ("assembled", "fused")]
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-13
    assert np.abs(runs[0].v - runs[1].v).max() < 1e-9
    assert runs[0].summary.max_energy_drift < 5e-15
    assert runs[0].summary.max_constraint < 1e-15
    # what is carried on makes one correction enough where the fused tier takes more
    assert runs[0].statistics.newton_iterations < runs[1].statistics.newton_iterations


def test_quaternions_and_moving_constraints():
    """A quaternion's own guess, and a pendulum whose support moves: constraints by increments of place and time."""
    top = lv.problems.load("heavy-top")
    runs = [lv.simulate(top, scheme="livens-em", t_end=20 * top.h, tier=tier) for tier in ("assembled", "fused")]
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-12
    moving = lv.System(
        "x y",
        kinetic=lambda v: 0.5 * (v @ v),
        potential=lambda q: 9.81 * q[1],
        constraints=lambda q, t: [0.5 * ((q[0] - 0.1 * m.sin(2 * t)) ** 2 + q[1] ** 2 - 1)],
    )
    runs = both(moving, [1.0, 0.0], [0.2, 0.0], scheme="livens-em", h=0.01, t_end=1.0)
    assert_equal(runs)
    assert np.abs(runs[0].supplied_energy).max() > 1e-3


def test_redundant_constraints_are_left_out():
    """A duplicated rod: one of its multipliers is zero in every tier."""

    def rod(q):
        return [0.5 * (q @ q - 1)]

    system = lv.System(
        "x y",
        elements=[
            lv.Element(["x", "y"], kinetic=lambda v: 0.5 * (v @ v), potential=lambda q: 9.81 * q[1]),
            lv.Element(["x", "y"], constraints=rod, name="rod"),
            lv.Element(["x", "y"], constraints=rod, name="again"),
        ],
    )
    runs = both(system, [1.0, 0.0], [0.0, 0.0], scheme="livens-em", h=0.01, t_end=0.5, redundant="remove")
    assert_equal(runs)
    assert np.all(runs[0].multipliers.min(axis=1) * runs[0].multipliers.max(axis=1) == 0)


def test_no_mass_and_an_end_in_words():
    """A coordinate without mass has no pivot on the diagonal; a system that is not determined ends with a reason."""
    elements = [
        lv.Element([0, 1], kinetic=lambda v: 0.5 * v[0] ** 2, potential=lambda q: 0.5 * (q[0] - q[1]) ** 2),
        lv.Element([1], potential=lambda q: 0.5 * q[0] ** 2),
    ]
    system = lv.System(2, elements=elements)
    runs = both(system, [1.0, 0.5], [0.0, 0.0], scheme="livens-em", h=0.05, t_end=1.0)
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-12
    open_ = lv.System(2, kinetic=lambda v: 0.5 * v[0] ** 2, potential=lambda q: q[0] ** 2)
    with pytest.raises(lv.LivensError) as error:
        lv.simulate(open_, [1.0, 0.0], [0.0, 0.0], scheme="livens-em", h=0.05, t_end=1.0, tier="assembled")
    assert "nan" not in str(error.value).lower()


@pytest.mark.parametrize("scheme", ["livens-em", "rattle"])
def test_a_run_goes_on_bit_for_bit(tmp_path, scheme):
    system, q0, v0 = chain_of_points(4)
    options = dict(scheme=scheme, h=0.01, tier="assembled")
    whole = lv.simulate(system, q0, v0, t_end=0.6, **options)
    path = tmp_path / "half.h5"
    lv.simulate(system, q0, v0, t_end=0.35, out=path, **options)
    later = lv.resume(path, t_end=0.6, system=system)
    assert np.array_equal(later.q, whole.q)
    assert np.array_equal(later.multipliers, whole.multipliers)


def test_events_and_shortened_steps():
    """An event is found within a step, the run goes on from there with what is carried, and another tier agrees."""
    system, q0, v0 = chain_of_points(3)
    event = lv.Event(lambda q: q[1] + 0.2, name="low", terminal=True)
    runs = [
        lv.simulate(system, q0, v0, scheme=scheme, h=0.013, t_end=1.0, tier=tier, events=[event])
        for scheme in ("livens-em", "radau-iia-2")
        for tier in ("assembled", "fused")
    ]
    for a, b in (runs[:2], runs[2:]):
        assert a.events[0].t == pytest.approx(b.events[0].t, abs=1e-11)
        assert np.abs(a.q[-1] - b.q[-1]).max() < 1e-12


def test_controlled_steps():
    system, q0, v0 = chain_of_points(3)
    control = lv.StepControl(tolerance=1e-6)
    runs = both(system, q0, v0, scheme="radau-iia-2", h=1e-3, t_end=0.5, control=control)
    assert len(runs[0].t) == len(runs[1].t)
    # sizes follow estimates, in which round-off is not small: steps end at slightly other times, on the same motion
    shift = runs[0].t - runs[1].t
    assert np.abs(shift).max() < 1e-8
    assert np.abs(runs[0].q - runs[1].q - runs[1].v * shift[:, None]).max() < 1e-12


def test_the_tier_follows_the_size():
    few, many = chain_of_points(3)[0], chain_of_points(130)[0]
    tiers = [Plan.from_arguments(system, {}, h=0.1, t_end=1.0, scheme="livens-em").tier for system in (few, many)]
    assert tiers == ["fused", "assembled"]


def test_what_is_no_sum_over_elements_cannot_be_assembled():
    oscillator = lv.System("x", kinetic=lambda v: 0.5 * v[0] ** 2, potential=lambda q: 0.5 * q[0] ** 2)
    with pytest.raises(lv.InputError, match="cannot be assembled"):
        lv.simulate(oscillator, [1.0], [0.0], scheme="stormer-verlet", h=0.1, t_end=1.0, tier="assembled")
