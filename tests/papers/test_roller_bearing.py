"""The spherical roller bearing, case 2 of Modin 2009 4.3: line contact, balance, theory of rolling, another solver."""

import functools

import casadi as ca
import numpy as np
import pytest
from conftest import measured_order

import livens as lv
from livens.errors import InputError
from livens.models.equations_of_motion import equations_of_motion
from livens.problems.bearing.roller.contact import RollerBearing
from livens.problems.bearing.roller.initial_state import roller_equilibrium
from livens.reproduce.modin_2009.bearing_runs import final_state_by_cvodes
from livens.schemes.discretization.semi_explicit_step import force_split

FEW = dict(case="rollers", balls=5, slices=3)


@functools.cache
def problem(**options):
    return lv.problems.load("ball-bearing", **{**FEW, **options})


def test_palmgrens_line_contact():
    """A barrel that fits its race touches along its whole length: 8.06e4 l^(8/9) depth^(10/9) in N and mm."""
    b = RollerBearing(profile=22.5e-3, slices=20)
    seat = roller_equilibrium(b)
    i = int(np.argmax(seat.outer))
    expected = 8.06e4 * 6.5 ** (8 / 9) * (1e3 * seat.offsets[i]) ** (10 / 9)
    assert seat.outer[i] == pytest.approx(expected, rel=0.01)
    # a barrel that is rounder than the race touches in the middle first, and gives way more
    assert roller_equilibrium(RollerBearing(slices=20)).offsets.max() > 1.2 * seat.offsets.max()


def test_the_load_is_carried():
    """Vertical forces of both rows add up to the load; the largest is Stribeck's, 5 F/(Z cos a), and more with play."""
    for clearance, least, most in ((0.0, 0.75, 1.05), (15e-6, 1.0, 1.5)):
        b = RollerBearing(clearance=clearance, rollers=12)
        seat = roller_equilibrium(b)
        assert (seat.outer - seat.inner) == pytest.approx(
            b.mass * b.pitch * b.orbit_rate**2 * np.cos(b.angle), rel=1e-6
        )
        stribeck = 5 * 1000 / (24 * np.cos(b.angle))
        assert least < seat.inner.max() / stribeck < most
        assert seat.ring_position[1] < -clearance / 2 and abs(seat.ring_position[0]) < 1e-9


def test_it_starts_without_sliding_in_the_middle_of_its_rollers():
    b = RollerBearing()
    for side in (1, -1):
        out, axis, around = b.frame(0.7, side)
        turning = b.orbit_rate * np.array([1.0, 0, 0]) + b.spin_rate * axis
        centre = (b.sphere - b.diameter / 2) * out
        moving = b.orbit_rate * np.cross([1.0, 0, 0], centre)
        at_outer = moving + np.cross(turning, b.diameter / 2 * out)
        inner = centre - b.diameter / 2 * out
        at_inner = moving - np.cross(turning, b.diameter / 2 * out) - b.speed * np.cross([1.0, 0, 0], inner)
        assert np.abs([at_outer, at_inner]).max() < 1e-12
        assert np.cross(axis, around) @ out == pytest.approx(-1)


def test_forces_between_bodies_cancel():
    system, random = problem().model, np.random.default_rng(2)
    d = equations_of_motion(system)
    total = ca.SX.zeros(system.n)
    for i, element in enumerate(system.elements):
        if element.expensive:
            model, index, where = (
                system.element_types[i],
                list(system.element_dofs[i]),
                list(system.element_parameters[i]),
            )
            one = ca.Function("f", [model.q, model.v, model.t, model.k], [model.F - ca.gradient(model.V, model.q)])
            total[index] += one(d.q[index], d.v[index], d.t, d.k[where])
    force = ca.Function("f", [d.q, d.v, d.t, d.k], [total])
    centres = [list(range(12 * i, 12 * i + 3)) for i in range(10)]
    centres += [[120, 121, 122], [124, 125, 126]]
    for _ in range(5):
        q = problem().q0.copy()
        for i in range(10):
            q[12 * i : 12 * i + 3] += 2e-6 * random.normal(size=3)
        v = problem().v0 + 0.1 * random.normal(size=system.n)
        on = np.array(force(q, v, 0.0, system.parameter_vector())).ravel()
        assert np.abs(on).max() > 10
        assert np.abs(sum(on[i] for i in centres)).max() < 1e-11 * np.abs(on).max()


def test_motion_against_another_solver_and_its_balance_of_energy():
    p, t_end = problem(), 5e-5
    system, k = p.model, ca.DM(p.model.parameter_vector())
    forces = force_split(system)

    def power(q, u, t):
        return ca.dot(forces.evaluate((*forces.expensive, *forces.cheap), q, u, t, k).nonconservative, u)

    q, v, (work, turned) = final_state_by_cvodes(p, t_end, 1e-11, [power, lambda q, u, t: ca.fabs(power(q, u, t))])
    d = equations_of_motion(system)
    energy = ca.Function("E", [d.q, d.v, d.t, d.k], [d.T + d.V])
    change = float(energy(q, v, t_end, k) - energy(p.q0, p.v0, 0.0, k))
    assert abs(change - work) < 1e-10 * turned
    steps, errors = [0.5e-6, 0.25e-6, 0.125e-6, 0.0625e-6], []
    for h in steps:
        run = lv.simulate(p, h=h, t_end=t_end, every=10**6)
        errors.append(np.abs(run.v[-1][:120] - v[:120]).max())
    assert abs(measured_order(steps, errors) - 1) < 0.1
    assert run.statistics.force_jacobians == 0


def test_rollers_go_around_as_theory_says():
    run = lv.simulate(problem(), t_end=3e-4, every=10)
    assert run["rollers.speed"] == pytest.approx(RollerBearing().orbit_rate, rel=5e-3)
    assert np.abs(run["roller4.skew"]).max() < 0.01
    assert run["roller4-inner.normal_force"].min() > 50  # it carries all the time
    assert run["inner.position"].shape == (len(run.t), 3)


def test_what_rollers_refuse():
    for options, word in (
        (dict(balls=40), "rollers do not fit"),
        (dict(slices=0), "slice"),
        (dict(clearance=-1e-6), "clearance"),
        (dict(modes=4), "rigid"),
    ):
        with pytest.raises(InputError, match=word):
            lv.problems.load("ball-bearing", **{**FEW, **options})
