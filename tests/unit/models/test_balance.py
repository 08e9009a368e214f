"""Coordinates without mass: their forces have to balance at the start, and to go on to do so."""

import numpy as np
import pytest

import livens as lv
from livens import math as m
from livens.models.initialization.dense import initial_state
from livens.models.initialization.massless import MasslessEquilibrium

START = dict(q0=[1.0, 0.5], v0=[0.3, 0.15])


def two_springs(**more):
    """A mass at x on two springs in a row; where they meet, at y, is no mass."""
    potential = lambda q: ((q[0] - q[1]) ** 2 + q[1] ** 2) / 2  # noqa: E731
    return lv.System("x y", kinetic=lambda v: v[0] ** 2 / 2, potential=potential, **more)


def start_of(model, q0, v0, **options):
    return initial_state(model, q0, v0, model.parameter_vector(), **options)


def test_forces_that_do_not_balance_are_refused():
    with pytest.raises(lv.InputError, match=r"'y' has no mass.* residual 1.*q0 = \(1, 0.5\), v0 = \(0.3, 0.15\)"):
        lv.simulate(two_springs(), [1.0, 0.0], [0.3, 0.0], h=0.1, t_end=1.0)


def test_velocities_that_leave_the_balance_are_refused():
    with pytest.raises(lv.InputError, match=r"leave equilibrium with v0: rate 0.3; .* v0 = \(0.3, 0.15\);"):
        lv.simulate(two_springs(), [1.0, 0.5], [0.3, 0.0], h=0.1, t_end=1.0)


@pytest.mark.parametrize(
    "scheme",
    [
        "livens-em", "livens-em-full", "livens-em-reduced", "livens-em:mean-value", "livens-midpoint", "gauss-2",
        "lobatto-iiic-3", "lobatto-iiid-2", "lobatto-iiie-3", "radau-ia-2", "radau-iia-3", "murua-2", "murua-ggl-2",
    ],
)  # fmt: skip
def test_a_start_that_is_moved_stays_in_balance(scheme):
    """Two springs in a row are one of half the stiffness: ``x'' = -x/2``, and y lies half way."""
    model = two_springs()
    with pytest.raises(lv.InputError, match="has no mass"):
        lv.simulate(model, [1.0, 0.0], [0.3, 0.0], scheme=scheme, h=0.05, t_end=1.0)
    run = lv.simulate(model, [1.0, 0.0], [0.3, 0.0], scheme=scheme, h=0.05, t_end=1.0, project=True)
    assert np.array_equal(run.q[0], START["q0"]) and np.allclose(run.v[0], START["v0"], rtol=1e-15)
    rate = np.sqrt(0.5)
    x = np.cos(rate * run.t) + 0.3 / rate * np.sin(rate * run.t)
    assert np.abs(run.q[:, 0] - x).max() < 1e-3
    assert np.abs(run.q[:, 1] - run.q[:, 0] / 2).max() < 1e-13
    assert np.abs(run.v[:, 1] - run.v[:, 0] / 2).max() < 1e-9


@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_every_scheme_that_is_said_to_fit_takes_steps(damping):
    """None may find out in its first step that it needs mass where there is none."""
    model = two_springs(dissipation=lambda v: damping * v[1] ** 2)
    fitting = [scheme for scheme in lv.schemes.all() if not scheme.unmet_requirements(model) and not scheme.fictive]
    assert len(fitting) > 10
    for scheme in fitting:
        run = lv.simulate(model, **START, scheme=scheme, h=0.05, t_end=0.2, project=True, tier="reference")
        assert run.t[-1] == pytest.approx(0.2)


def test_schemes_that_need_mass_say_so():
    free, damped = two_springs(), two_springs(dissipation=lambda v: 0.3 * v[1] ** 2)
    led = two_springs(constraints=lambda q: [q[0] - 2 * q[1]])
    pushed = two_springs(forces=lambda v: [0.0, -0.6 * v[1]])
    allowed = "on the null space of G"
    for model in (free, damped, pushed):
        with pytest.raises(lv.InputError, match=f"needs a mass matrix that is positive definite {allowed}"):
            lv.simulate(model, **START, scheme="livens-variational", h=0.05, t_end=0.2)
    with pytest.raises(lv.InputError, match=f"needs mass or damping {allowed}"):
        lv.simulate(free, **START, scheme="symplectic-euler", h=0.05, t_end=0.2)
    for model, scheme in ((led, "livens-variational"), (led, "symplectic-euler"), (damped, "symplectic-euler")):
        assert not lv.schemes.get(scheme).unmet_requirements(model)
    assert not lv.schemes.get("symplectic-euler").unmet_requirements(pushed)
    run = lv.simulate(led, **START, scheme="livens-variational", h=0.01, t_end=1.0)
    assert np.abs(run.q[:, 0] - 2 * run.q[:, 1]).max() < 1e-13
    rate = np.sqrt(0.5)
    x = np.cos(rate * run.t) + 0.3 / rate * np.sin(rate * run.t)
    assert np.abs(run.q[:, 0] - x).max() < 1e-4


def test_a_damper_gives_the_velocity():
    """Then the position is free, and the velocity follows from the forces: ``d v_y = x - 2 y``."""
    model = two_springs(dissipation=lambda v: 0.3 * v[1] ** 2)
    with pytest.raises(lv.InputError, match=r"equilibrium holds for v0 = \(0.3, 1.66666667\);"):
        lv.simulate(model, [1.0, 0.0], [0.3, 0.0], h=0.1, t_end=1.0)
    run = lv.simulate(model, [1.0, 0.0], [0.3, 0.0], h=0.1, t_end=1.0, project=True)
    assert np.array_equal(run.q[0], [1.0, 0.0]) and run.v[0] == pytest.approx([0.3, 1 / 0.6])
    assert np.abs(run.q[:, 0] - 2 * run.q[:, 1] - 0.6 * run.v[:, 1]).max() < 1e-12


def test_a_push_that_changes_with_time():
    """The rate of a force that depends on time enters the velocity: y = (x + sin t)/2."""
    model = two_springs(forces=lambda t: [0.0, m.sin(t)])
    run = lv.simulate(model, [1.0, 0.0], [0.3, 0.0], h=0.05, t_end=0.5, project=True, scheme="gauss-2")
    assert run.v[0] == pytest.approx([0.3, (0.3 + 1) / 2])
    assert np.abs(run.q[:, 1] - (run.q[:, 0] + np.sin(run.t)) / 2).max() < 1e-4


def test_no_balance_is_possible():
    model = lv.System("x y", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: q[0] ** 2 + q[1])
    for project in (False, True):
        with pytest.raises(lv.InputError, match="residual 1, and no equilibrium was found nearby"):
            lv.simulate(model, [1.0, 0.0], [0.0, 0.0], h=0.1, t_end=1.0, project=project)


def test_along_constraints():
    """The junction of the springs moves on a circle, on which the equilibrium is computed."""
    model = lv.System(
        "x a b",
        kinetic=lambda v: v[0] ** 2 / 2,
        potential=lambda q: ((q[0] - q[1]) ** 2 + q[1] ** 2 + q[2]) / 2,
        constraints=lambda q: [q[1] ** 2 + q[2] ** 2 - 1],
    )
    start = start_of(model, [1.0, 0.6, -0.8], [0.0, 0.0, 0.0], project=True)
    x, a, b = start["q"]
    assert x == 1.0 and a**2 + b**2 == pytest.approx(1.0, abs=1e-14)
    slope = (2 * a - x, 0.5)  # of the potential, which is level along the circle
    assert abs(slope[0] * b - slope[1] * a) < 1e-12
    assert (a, b) != (0.6, -0.8) and start["v"] == pytest.approx([0.0, 0.0, 0.0])
    start_of(model, start["q"], start["v"])  # what was offered is accepted


def test_directions_without_mass_that_turn():
    """The mass feels only the rate of r; the rest of the plane has a potential, and the balance turns with the mass."""
    model = lv.System(
        "x y",
        kinetic=lambda q, v: (q[0] * v[0] + q[1] * v[1]) ** 2 / (q[0] ** 2 + q[1] ** 2) / 2,
        potential=lambda q: (q[0] - 2.0) ** 2 + 3 * q[1] ** 2,
    )
    start = start_of(model, [1.0, 0.2], [0.5, 0.4], project=True)
    (x, y), (a, b) = start["q"], start["v"]
    across = lambda x, y: -y * 2 * (x - 2.0) + x * 6 * y  # noqa: E731  # the force across the radius
    assert abs(across(x, y)) < 1e-12
    step = 1e-6
    assert abs(across(x + step * a, y + step * b) - across(x - step * a, y - step * b)) / (2 * step) < 1e-8
    start_of(model, start["q"], start["v"])


@pytest.mark.parametrize(
    ("kinetic", "start"), [(lambda v: v[0] ** 4, [0.0]), (lambda q, v: q[0] ** 2 * v[0] ** 2, [1.0])]
)
def test_a_mass_that_vanishes_for_a_moment_is_no_reason(kinetic, start):
    """At rest, or in one position: there the momentum has a rate all the same."""
    model = lv.System("x", kinetic=kinetic, potential=lambda q: q[0])
    assert start_of(model, [1.0 - start[0]], [0.0])["v"] == [0.0]


@pytest.mark.parametrize(("rest", "closed"), [(1e-9, True), (0.9e-8, True), (1.2e-8, False), (1e-6, False)])
def test_beside_large_forces_small_ones_are_rounding(rest, closed):
    """Nothing is known to more digits than a part in 1e14 of the largest force."""
    model = lv.System("x y", kinetic=lambda v: v[0] ** 2 / 2, forces=lambda q: [1e6, rest])
    balance = MasslessEquilibrium(model, 0.0, model.parameter_vector(), lambda q, v: (q, v))
    assert balance._force_residual(np.zeros(2), np.zeros(2))[0].is_zero is closed


def test_a_damper_alone_balances_a_force_on_a_point_without_mass():
    """Nothing depends on positions: the rate ``F / d`` is consistent, and no other rate is."""
    system = lv.System(
        "x y",
        kinetic=lambda v: v[1] ** 2 / 2,
        potential=lambda q: q[1] ** 2 / 2,
        dissipation=lambda v: 50.0 * v[0] ** 2,
        forces=lambda: [300.0, 0.0],
    )
    run = lv.simulate(system, q0=[0, 1], v0=[3.0, 0.0], h=0.01, t_end=0.1)
    assert np.array_equal(run.v[0], [3.0, 0.0]) and run.q[-1, 0] == pytest.approx(0.3, abs=1e-12)
    with pytest.raises(lv.InputError):
        lv.simulate(system, q0=[0, 1], v0=[3.1, 0.0], h=0.01, t_end=0.1)
