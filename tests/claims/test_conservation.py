"""Conservation over whole runs: to round-off where guaranteed, violated where theory says so."""

import numpy as np
import pytest

import livens as lv
from livens import math as m


def deviation(result, name):
    """The largest deviation from the initial value, relative to it."""
    values = result.observe(name)
    return np.abs(values - values[0]).max() / np.abs(values[0]).max()


def test_mass_spring_redundant():
    """Singular mass matrix: energy increments and constraint at round-off (Kinon and Betsch 2023 Figs. 2-4)."""
    run = lv.simulate(lv.problems.load("mass-spring-redundant"))
    energy = run.observe("generalized_energy")
    assert np.abs(np.diff(energy)).max() < 1e-14
    assert np.abs(run.observe("constraint")).max() < 1e-14
    assert not run.system.regular_mass
    # the midpoint rule does not conserve the quartic energy
    other = lv.simulate(lv.problems.load("mass-spring-redundant"), scheme="livens-midpoint")
    assert np.abs(np.diff(other.observe("generalized_energy"))).max() > 1e-6


def test_spring_pendulum_spherical():
    """Generalised energy at round-off, total energy only to 1e-4 (Kinon, Betsch 2023 Figs. 6-8): p is not M(q) v."""
    run = lv.simulate(lv.problems.load("spring-pendulum-spherical"))
    assert np.abs(np.diff(run.observe("generalized_energy"))).max() < 1e-14
    total = np.abs(np.diff(run.observe("total_energy"))).max()
    assert 1e-5 < total < 1e-3
    # p.M^-1 p/2 + V differs from it by the square of p - M v only: closer, but not conserved either
    assert 1e-10 < deviation(run, "hamiltonian") < 1e-6


def test_momenta_of_the_spring_pendulum():
    """Conserved quantities depend on the coordinates.

    In spherical coordinates the rotation about z shifts phi, on which nothing depends: p_phi is exact. In Cartesian
    coordinates livens-em conserves all of the angular momentum if the potential is given through an invariant, and not
    with the plain discrete gradient of the same quartic potential. The midpoint rule conserves it there in any case.
    """
    spherical = lv.simulate(lv.problems.load("spring-pendulum-spherical"))
    assert spherical.summary.momentum_drift["p_phi"] < 1e-13
    problem = lv.problems.load("spring-pendulum")
    equivariant = lv.simulate(problem)
    assert equivariant.summary.momentum_drift["angular_momentum"] < 1e-13
    assert equivariant.summary.max_energy_drift < 1e-13
    written_out = lv.System(
        "x y z",
        kinetic=lambda v: 0.5 * (v @ v),
        potential=lambda q: 150 * ((q @ q - 1) / 2) ** 2,
        symmetries=dict(angular_momentum=lv.symmetry.rotations([[0, 1, 2]])),
    )
    plain = lv.simulate(written_out, problem.q0, problem.v0, h=0.01, t_end=1.0)
    assert plain.summary.max_energy_drift < 1e-13
    assert plain.summary.momentum_drift["angular_momentum"] > 1e-6
    midpoint = lv.simulate(lv.problems.load("spring-pendulum"), scheme="livens-midpoint")
    assert midpoint.summary.momentum_drift["angular_momentum"] < 1e-13
    assert midpoint.summary.max_energy_drift > 1e-6


def test_double_four_bar():
    """1e4 steps through the singular positions: energy 1e-13 relative, constraints 1e-13; velocities only so far."""
    run = lv.simulate(lv.problems.load("double-four-bar"))
    assert deviation(run, "generalized_energy") < 1e-13
    assert np.abs(run.observe("constraint")).max() < 1e-13
    assert run.summary.max_energy_drift == pytest.approx(deviation(run, "generalized_energy"), rel=1e-2)
    assert run.summary.max_constraint == np.abs(run.observe("constraint")).max()
    # for a constant mass p = M v at every step, so total and generalised energy are the same
    assert deviation(run, "total_energy") < 1e-13
    # the hidden constraints hold at the midpoint of a step, not at its end
    assert 1e-9 < np.abs(run.observe("velocity_constraint")).max() < 1e-3


def test_simple_pendulum_within_the_benchmark():
    """Energy error below 5e-5 J after 10 s, as the benchmark library asks; ours is round-off."""
    run = lv.simulate(lv.problems.load("simple-pendulum"))
    energy = run.observe("total_energy")
    assert np.abs(energy - energy[0]).max() < 1e-12
    assert np.allclose(run.q[-1], [-0.275087462576117, -0.961419205099125], atol=1e-4)


def test_long_run_has_no_trend():
    """Over 2e5 steps the energy error is a random walk of round-off, not a drift."""
    run = lv.simulate(lv.problems.load("spring-pendulum-spherical"), t_end=2000.0, every=10)
    energy = run.observe("generalized_energy")
    assert np.abs(energy / energy[0] - 1).max() < 1e-12
    assert np.abs(np.polyfit(run.t, energy / energy[0] - 1, 1)[0]) * 2000.0 < 1e-12


def damped_and_driven(scheme, potential):
    """A particle in space on a spring, with friction, a rotating force and a magnetic one."""
    system = lv.System(
        "x y z",
        kinetic=lambda v, k: 0.5 * k.m * (v @ v),
        potential=potential,
        dissipation=lambda q, v, k: 0.5 * k.d * (1 + q[0] ** 2) * (v @ v),
        forces=lambda q, v, t: [m.cos(3 * t) - v[1], m.sin(3 * t) + v[0], 0.1 * q[2] * t],
        parameters=dict(m=1.3, d=0.2, c=7.0),
    )
    return lv.simulate(system, [1.0, 0.2, 0.3], [0.0, 1.0, -0.5], scheme=scheme, h=0.02, t_end=20.0)


def test_power_balance_of_a_damped_and_driven_system():
    """Energy change = work supplied - energy dissipated, to round-off, for any potential with livens-em."""
    quartic = lambda q, k: k.c * (q @ q) ** 2 / 4  # noqa: E731
    run = damped_and_driven("livens-em", quartic)
    assert run.dissipated_energy[-1] > 1 and abs(run.supplied_energy[-1]) > 1
    assert np.all(np.diff(run.dissipated_energy) > 0)
    assert np.abs(run.observe("energy_balance_defect")).max() < 1e-12
    assert run.summary.max_energy_drift < 1e-12  # the drift of a run leaves out what came in and went out
    midpoint = damped_and_driven("livens-midpoint", quartic)
    assert np.abs(midpoint.observe("energy_balance_defect")).max() > 1e-6
    # with a quadratic potential it is exact for the midpoint rule as well
    quadratic = damped_and_driven("livens-midpoint", lambda q, k: k.c * (q @ q) / 2)
    assert np.abs(quadratic.observe("energy_balance_defect")).max() < 1e-12


@pytest.mark.parametrize("scheme", ["livens-em", "livens-midpoint"])
def test_driven_pendulum_with_known_motion(scheme):
    """Rheonomic constraints: a bead on a rod that turns at a given rate about a fixed axis.

    In the rotating frame r'' = w^2 r, so r = r0 cosh(w t) if started at rest on the rod.
    """
    w, r0, steps, errors = 1.5, 0.5, [0.02 / 2**i for i in range(4)], []
    system = lv.System(
        "x y",
        kinetic=lambda v: 0.5 * (v @ v),
        constraints=lambda q, t, k: [m.cos(k.w * t) * q[1] - m.sin(k.w * t) * q[0]],
        parameters=dict(w=w),
    )
    for h in steps:
        run = lv.simulate(system, [r0, 0.0], [0.0, w * r0], scheme=scheme, h=h, t_end=1.0)
        assert np.abs(run.observe("constraint")).max() < 1e-14
        r = r0 * np.cosh(w)
        errors.append(np.linalg.norm(run.q[-1] - r * np.array([np.cos(w), np.sin(w)])))
        # the motor does work: all of it is accounted for as the energy that came in through the constraint
        if scheme == "livens-em":
            assert np.abs(run.observe("energy_balance_defect")).max() < 1e-13
            assert run.supplied_energy[-1] > 0.1
    assert abs(np.polyfit(np.log(steps), np.log(errors), 1)[0] - 2) < 0.1


@pytest.mark.parametrize(
    ("scheme", "order"),
    {
        **dict.fromkeys(["livens-em", "livens-em-full", "livens-midpoint", "livens-variational", "hamilton-em"], 2),
        **dict.fromkeys(["hamilton-midpoint", "rattle", "lobatto-iiia-iiib-2", "murua-1", "murua-ggl-1"], 2),
        "symplectic-euler": 1,
    }.items(),
)
def test_the_work_of_a_constraint_that_moves(scheme, order):
    """All that the bead on the turning rod gains comes in through the rod, as accurately as the scheme is."""
    w, r, steps = 1.5, 0.5, [0.02 / 2**i for i in range(4)]
    system = lv.System(
        "x y",
        kinetic=lambda v: 0.5 * (v @ v),
        constraints=lambda q, t, k: [m.cos(k.w * t) * q[1] - m.sin(k.w * t) * q[0]],
        parameters=dict(w=w),
    )
    gained = 0.5 * (w * r) ** 2 * (np.sinh(w) ** 2 + np.cosh(w) ** 2 - 1)
    runs = [lv.simulate(system, [r, 0.0], [0.0, w * r], scheme=scheme, h=h, t_end=1.0) for h in steps]
    errors = [abs(run.supplied_energy[-1] - gained) for run in runs]
    assert abs(np.polyfit(np.log(steps), np.log(errors), 1)[0] - order) < 0.1


def test_time_dependent_potential():
    """The energy that comes in through a potential that changes with time is accounted for."""
    system = lv.System(
        "x",
        kinetic=lambda v: 0.5 * v[0] ** 2,
        potential=lambda q, t: (1 + 0.3 * m.sin(2 * t)) * q[0] ** 4,
    )
    run = lv.simulate(system, [1.0], [0.0], h=0.01, t_end=10.0)
    assert np.ptp(run.observe("generalized_energy")) > 0.1
    assert np.abs(run.observe("energy_balance_defect")).max() < 1e-13


def test_equilibrium_stays():
    """At rest in an equilibrium every increment is zero: nothing happens, and nothing breaks."""
    system = lv.System(
        "x y",
        kinetic=lambda q, v: 0.5 * (1 + q[0] ** 2) * v[0] ** 2 + 0.5 * v[1] ** 2,
        potential=lambda q: m.cosh(q[0]) + q[1] ** 4 + m.sqrt(1 + q[1] ** 2),
    )
    run = lv.simulate(system, [0.0, 0.0], [0.0, 0.0], h=0.1, t_end=10.0)
    assert not run.q.any() and not run.v.any()
    # and a start that is only almost at rest stays small
    run = lv.simulate(system, [1e-9, 1e-12], [0.0, 0.0], h=0.1, t_end=100.0)
    assert np.abs(run.q).max() < 2e-9
