"""The problems of Symank 2025 and Modin and the field's benchmarks: data, consistency, references, orders, limits."""

import functools

import numpy as np
import pytest
from conftest import measured_order
from hypothesis import given, settings
from hypothesis import strategies as st

import livens as lv
from livens.errors import InputError
from livens.problems.reference_solution import reference_ode_solution


@functools.cache
def load(name, **options):
    """A ready problem, once: references that are computed are then computed once too."""
    return lv.problems.load(name, **options)


SCHEMES = ("livens-em", "livens-midpoint")
PROBLEMS = (
    "andrews-squeezer", "car-axis", "mass-spring-damper", "vanishing-mass", "pendulum", "double-pendulum",
    "spherical-pendulum", "nonlinear-pendulum", "rotor", "two-walls", "billiard", "kepler",
)  # fmt: skip


def initial_multipliers(problem):
    """As a run computes them from q0 and v0."""
    return lv.simulate(problem, t_end=problem.h).multipliers[0]


def errors_at(problem, scheme, t, steps):
    """Largest errors of q and v at t, and of the multipliers in the middle of the last step."""
    exact, found = problem.reference(t), []
    for h in steps:
        run = lv.simulate(problem, scheme=scheme, h=h, t_end=t)
        errors = [np.abs(run.q[-1] - exact["q"]).max(), np.abs(run.v[-1] - exact["v"]).max()]
        if "multipliers" in exact:
            errors.append(np.abs(run.multipliers[-1] - problem.reference(t - h / 2)["multipliers"]).max())
        found.append(errors)
    return np.array(found).T


def halved(h, count=5):
    return [h / 2**i for i in range(count)]


# -- all of them ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", PROBLEMS)
def test_default_run(name):
    """Initial values are consistent, the run goes through, and energy comes and goes only as forces say."""
    problem = load(name)
    t_end = min(problem.t_end, 500 * problem.h)
    run = lv.simulate(problem, scheme="livens-em", t_end=t_end)
    assert run.status == "complete"
    scale = np.abs(run.observe("potential_energy")).max() + np.abs(run.observe("kinetic_energy")).max()
    assert np.abs(run.observe("energy_balance_defect")).max() < 1e-12 * scale
    if problem.model.m:
        assert np.abs(run.observe("constraint")).max() < 1e-13
    if problem.reference is not None:
        start = problem.reference(0.0)
        assert np.allclose(start["q"], problem.q0, rtol=1e-14, atol=1e-15)
        assert np.allclose(start["v"], problem.v0, rtol=1e-14, atol=1e-14)
        if "multipliers" in start:
            assert np.allclose(start["multipliers"], initial_multipliers(problem), rtol=1e-10, atol=1e-10)


ORDERS = [
    ("mass-spring-damper", {}, 2.0, 0.01),
    ("mass-spring-damper", dict(d1=0.2, d2=0.5, alpha=3.0), 2.0, 0.01),
    ("vanishing-mass", dict(p0=(6.0, 18.0)), 2.0, 0.01),
    ("pendulum", {}, 2.0, 0.01),
    ("double-pendulum", {}, 1.0, 0.01),
    ("double-pendulum", dict(m1=1.0, kappa=0.01), 1.0, 0.01),
    ("double-pendulum", dict(m1=1.0, m2=0.0, kappa=0.01), 2.0, 0.01),
    ("spherical-pendulum", {}, 1.0, 0.01),
    ("nonlinear-pendulum", {}, 2.0, 0.1),
    ("rotor", {}, 20.0, 0.1),
    ("kepler", {}, 2.0, 0.005),
]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("name", "options", "t", "h"), ORDERS)
def test_order(name, options, t, h, scheme):
    """Second order in q, v and, where there are any, multipliers, towards the reference of the problem."""
    steps = halved(h)
    for errors in errors_at(load(name, **options), scheme, t, steps):
        assert abs(measured_order(steps, errors) - 2) < 0.1
        assert errors[-1] < 1e-2


# -- benchmarks -------------------------------------------------------------------------------------------------------
def test_andrews_reference(reference):
    """Model and start reproduce an independent solution to 12 digits, and the published one to its own accuracy."""
    given_ = reference("andrews_squeezer")
    problem = load("andrews-squeezer")
    assert np.array_equal(problem.q0, given_["initial"]["q"]) and not problem.v0.any()
    assert np.abs(initial_multipliers(problem) - given_["initial"]["lambda"]).max() < 1e-11
    found = problem.reference(given_["t"])
    for known, position, others in (("computed", 2e-12, 2e-10), ("published", 2e-9, 2e-6)):
        exact = given_[known]
        assert np.abs(found["q"] - exact["q"]).max() < position
        assert np.abs(found["v"] / exact["v"] - 1).max() < others
        assert np.abs(found["multipliers"] / exact["lambda"] - 1).max() < others


@pytest.mark.parametrize("scheme", [*SCHEMES, "livens-variational"])
def test_order_for_the_squeezer(scheme, reference):
    """Started from the given data: no hints on the index, no multipliers or accelerations."""
    exact = reference("andrews_squeezer")["computed"]
    steps, position, velocity = halved(1e-5), [], []
    for h in steps:
        run = lv.simulate(load("andrews-squeezer"), scheme=scheme, h=h, every=10**6)
        position.append(np.abs(run.q[-1] - exact["q"]).max())
        velocity.append(np.abs(run.v[-1] - exact["v"]).max())
    assert abs(measured_order(steps, position) - 2) < 0.01 and position[-1] < 2e-7
    assert abs(measured_order(steps, velocity) - 2) < 0.1


def test_car_axis_reference(reference):
    """The published solution, which has 12 digits; its multipliers have the opposite sign."""
    given_ = reference("car_axis")
    found, exact = load("car-axis").reference(given_["t"]), given_["published"]
    assert np.abs(found["q"] - exact["q"]).max() < 1e-12
    assert np.abs(found["v"] - exact["v"]).max() < 1e-11
    assert np.abs(found["multipliers"] + exact["lambda"]).max() < 1e-13


@pytest.mark.parametrize("scheme", [*SCHEMES, "livens-variational"])
def test_order_for_the_car_axis(scheme, reference):
    exact = reference("car_axis")["published"]
    steps, position, velocity = halved(1e-3), [], []
    for h in steps:
        run = lv.simulate(load("car-axis"), scheme=scheme, h=h, every=10**6)
        position.append(np.abs(run.q[-1] - exact["q"]).max())
        velocity.append(np.abs(run.v[-1] - exact["v"]).max())
    assert abs(measured_order(steps, position) - 2) < 0.1 and position[-1] < 2e-6
    assert abs(measured_order(steps, velocity) - 2) < 0.1


@pytest.mark.parametrize("name", ["andrews-squeezer", "car-axis"])
def test_every_scheme_that_fits_runs_the_benchmarks(name):
    """At the usual step: to the end and near the reference, constraints at round-off where the scheme says so."""
    problem = load(name)
    exact = problem.reference(problem.t_end)["q"]
    for name in lv.schemes.compatible(problem.model):
        if lv.schemes.get(name).fictive:  # adaptive steps need a scaling function, which these problems do not have
            continue
        if (problem.name, name) == ("andrews-squeezer", "livens-em:itoh-abe"):
            # its forces of constraints act along one coordinate after the other: in this mechanism that breaks down
            with pytest.raises(lv.IntegrationError):
                lv.simulate(problem, scheme=name)
            continue
        run = lv.simulate(problem, scheme=name)
        assert np.abs(run.q[-1] - exact).max() < 0.01, name
        if "constraint" in lv.schemes.get(name).conserves:
            assert np.abs(run.observe("constraint")).max() < 1e-14, name


# -- references against equations in other coordinates ----------------------------------------------------------------
@pytest.mark.parametrize(
    "options", [{}, dict(m1=1.0, m2=8.0, l2=5.0, u1=10.0), dict(m1=1.0, m2=1.0, l2=0.7, kappa=0.3)]
)
def test_double_pendulum_in_its_angles(options):
    """The reference, from Cartesian equations of index 1, is that of Lagrange's equations in the two angles."""
    k = dict(m1=3.0, m2=1.0, l1=1.0, l2=1.0, g=9.81, u1=0.0, kappa=0.0) | options
    m1, m2, l1, l2, g, kappa = (k[name] for name in ("m1", "m2", "l1", "l2", "g", "kappa"))

    def rate(_, y):
        (a, b), w = y[:2], y[2:]
        c, s = np.cos(a - b), np.sin(a - b)
        M = np.array([[(m1 + m2) * l1**2, m2 * l1 * l2 * c], [m2 * l1 * l2 * c, m2 * l2**2]])
        C = kappa * np.array([[2 * l1**2, l1 * l2 * c], [l1 * l2 * c, l2**2]])
        force = np.array([-(m1 + m2) * g * l1 * np.cos(a), -m2 * g * l2 * np.cos(b)])
        force += m2 * l1 * l2 * s * np.array([-(w[1] ** 2), w[0] ** 2]) - C @ w
        return np.concatenate([w, np.linalg.solve(M, force)])

    # the second mass starts at rest, so the second rod turns against the first
    a, b, wa, wb = reference_ode_solution(rate, np.array([0, 0, k["u1"] / l1, -k["u1"] / l2]))(2.0)
    first, second = l1 * np.array([np.cos(a), np.sin(a)]), l2 * np.array([np.cos(b), np.sin(b)])
    v1, v2 = wa * np.array([-first[1], first[0]]), wb * np.array([-second[1], second[0]])
    exact = load("double-pendulum", **options).reference(2.0)
    assert np.allclose(exact["q"], [*first, *(first + second)], rtol=0, atol=2e-11)
    assert np.allclose(exact["v"], [*v1, *(v1 + v2)], rtol=0, atol=1e-10)


def test_spherical_pendulum_in_its_angles():
    """theta from below and phi, of which the momentum is constant."""
    g, theta, speed = 9.81, 1.2, 2.0
    L3 = speed * np.sin(theta)

    def rate(_, y):
        turning = L3 / np.sin(y[0]) ** 2
        return np.array([y[1], np.sin(y[0]) * (turning**2 * np.cos(y[0]) - g), turning])

    theta, _, phi = reference_ode_solution(rate, np.array([theta, 0.0, 0.0]))(5.0)
    x = [np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), -np.cos(theta)]
    exact = load("spherical-pendulum").reference(5.0)
    assert np.allclose(exact["q"], x, rtol=0, atol=1e-11)
    q, v = exact["q"], exact["v"]
    assert exact["multipliers"][0] == pytest.approx(v @ v - g * q[2], abs=1e-10)


def test_spherical_pendulum_conserves():
    run = lv.simulate(load("spherical-pendulum"))
    assert run.summary.max_energy_drift < 1e-13 and run.summary.momentum_drift["L3"] < 1e-13


def test_pendulum_is_the_other_one_mirrored():
    one, other = load("pendulum", l=2.0), load("simple-pendulum", l=2.0)
    assert np.array_equal(one.q0, [2.0, 0.0]) and one.t_end == 240.0
    a, b = (lv.simulate(problem, t_end=3.0, h=0.01) for problem in (one, other))
    assert np.abs(a.q * [-1, 1] - b.q).max() < 1e-13


def test_multipliers_alternate_after_a_moving_start():
    """After a moving start the errors of the multipliers alternate and are of first order; their mean is of second.

    The constraint holds at the ends of the steps alone, so nothing damps what the first step does.
    """
    problem = load("double-pendulum", m1=1.0, m2=8.0, l2=5.0, u1=10.0)
    steps, single, mean = halved(0.00125, 4), [], []
    for h in steps:
        run = lv.simulate(problem, h=h, t_end=0.5)
        errors = [run.multipliers[-i] - problem.reference(0.5 - (i - 0.5) * h)["multipliers"] for i in (1, 2, 3)]
        single.append(np.abs(errors[0]).max())
        mean.append(np.abs(errors[0] + 2 * errors[1] + errors[2]).max() / 4)
    assert abs(measured_order(steps, single) - 1) < 0.1
    assert abs(measured_order(steps, mean) - 2) < 0.2


# -- masses that vanish -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ["m1", "m2"])
def test_double_pendulum_with_a_vanishing_mass(name, scheme):
    """From 1e-6 down to 1e-40, and zero: the distance to zero is that of the masses, down to round-off."""
    runs = {}
    for mass in (0.0, 1e-40, 1e-30, 1e-18, 1e-12, 1e-9, 1e-6):
        problem = load("double-pendulum", **{"m1": 1.0, "m2": 1.0, "kappa": 0.01, name: mass})
        assert np.abs(initial_multipliers(problem)).max() < 1e-12  # by least squares
        runs[mass] = lv.simulate(problem, scheme=scheme, h=0.005, t_end=2.0)
        assert np.abs(runs[mass].observe("constraint")).max() < 1e-14
        assert np.abs(runs[mass].observe("energy_balance_defect")).max() < 1e-12
    distance = {mass: np.abs(run.q - runs[0.0].q).max() for mass, run in runs.items()}
    assert distance[1e-40] == 0.0 and distance[1e-30] < 1e-13 and distance[1e-18] < 1e-12
    for mass, smaller in ((1e-6, 1e-9), (1e-9, 1e-12)):
        assert distance[mass] == pytest.approx(1e3 * distance[smaller], rel=0.05)


def test_massless_end_moves_along_its_rod():
    run = lv.simulate(load("double-pendulum", m1=1.0, m2=0.0, kappa=0.01), h=0.005, t_end=2.0)
    exact = load("double-pendulum", m1=1.0, m2=0.0, kappa=0.01).reference(1.7)
    for q, v in zip(run.q[1:], run.v[1:], strict=True):
        assert abs(np.linalg.det([q[2:] - q[:2], v[2:]])) < 1e-3  # to the order of the scheme
    assert abs(np.linalg.det([exact["q"][2:] - exact["q"][:2], exact["v"][2:]])) < 1e-14


@pytest.mark.parametrize("scheme", SCHEMES)
def test_vanishing_mass_on_springs(scheme):
    """As above; with no layer at the start the distance is proportional to the mass."""
    runs = {}
    for mass in (0.0, 1e-40, 1e-24, 1e-12, 1e-8, 1e-4):
        problem = load("vanishing-mass", m2=mass, p0=(6.0, 18.0))
        runs[mass] = lv.simulate(problem, scheme=scheme, h=0.01)
    distance = {mass: np.abs(run.q - runs[0.0].q).max() for mass, run in runs.items()}
    assert distance[1e-40] == distance[1e-24] == 0.0
    for mass, smaller in ((1e-4, 1e-8), (1e-8, 1e-12)):
        assert distance[mass] == pytest.approx(1e4 * distance[smaller], rel=0.05)


@pytest.mark.parametrize("m2", [0.0, 1e-24, 1e-6, 1.0])
def test_vanishing_mass_starts_in_balance(m2):
    """-k2 (p2 - p1 - r2) + k3 (l - p2 - r3) = d2 v2, with the correct k2 (and not 2 k2)."""
    problem = load("vanishing-mass", m2=m2)
    assert np.allclose(problem.q0, [4.275, 15.0])
    assert problem.v0 == pytest.approx([0.0, 1e4 * (-(15 - 4.275 - 10) + (20 - 15))])
    light = load("mass-spring-damper", m2=0.0, d2=1e-4, p0=(4.275, 15.0))
    assert np.allclose(light.v0, problem.v0)


def test_mass_spring_damper_by_hand():
    """Equal masses and springs: both modes in closed form, for the whole of the thesis' run."""
    problem = load("mass-spring-damper")
    assert np.array_equal(problem.q0, [6.0, 24.0]) and problem.t_end == 2000.0
    for t in (1.0, 100.0, 2000.0):
        # from the middle (10, 20): (-4, 4) is the mode that stretches the second spring, with w^2 = 3
        x = 4 * np.cos(np.sqrt(3.0) * t)
        assert np.allclose(problem.reference(t)["q"], [10 - x, 20 + x], rtol=0, atol=1e-10)


def test_mass_spring_damper_power():
    """Energy stored is energy supplied by the push less that of the dampers, step by step."""
    run = lv.simulate(load("mass-spring-damper", d1=0.2, d2=0.5, alpha=3.0), t_end=50.0)
    stored = np.diff(run.observe("generalized_energy"))
    defect = stored - np.diff(run.supplied_energy) + np.diff(run.dissipated_energy)
    assert np.abs(defect).max() < 1e-12
    assert np.all(np.diff(run.dissipated_energy) >= 0)
    assert run.supplied_energy[-1] == pytest.approx(3.0 * (run.q[-1, 0] - run.q[0, 0]), rel=1e-12)


BAD = [
    ("mass-spring-damper", dict(m2=0.0), "set d2 greater than 0"),
    ("mass-spring-damper", dict(m1=-1.0), "must not be negative"),
    ("vanishing-mass", dict(d2=0.0), "set d2 greater than 0"),
    ("double-pendulum", dict(m2=0.0), "set kappa > 0"),
    ("double-pendulum", dict(m1=0.0, kappa=0.1, u1=1.0), "set u1 = 0"),
    ("double-pendulum", dict(m1=0.0, m2=0.0, kappa=0.1), "one mass must be greater than 0"),
    ("nonlinear-pendulum", dict(theta0=4.0), "between -pi and pi"),
    ("rotor", dict(Omega=0.0), "greater than 0"),
    ("two-walls", dict(K2=-1.0), "greater than 0"),
    ("kepler", dict(e=1.0), "less than 1"),
]


@pytest.mark.parametrize(("name", "options", "words"), BAD)
def test_bad_options(name, options, words):
    with pytest.raises(InputError, match=words):
        load(name, **options)


# -- Modin -------------------------------------------------------------------------------------------------------------
@settings(max_examples=50, deadline=None)
@given(st.floats(0.0, 0.999), st.floats(-100.0, 100.0))
def test_kepler_reference(e, t):
    """Energy -1/2 and angular momentum sqrt(1 - e^2), at every time and eccentricity."""
    exact = load("kepler", e=e).reference(t)
    q, v = exact["q"], exact["v"]
    r = np.hypot(*q)
    assert (v @ v) / 2 - 1 / r == pytest.approx(-0.5, abs=1e-11 / r)
    assert q[0] * v[1] - q[1] * v[0] == pytest.approx(np.sqrt(1 - e**2), abs=1e-12)


def test_kepler_start():
    problem = load("kepler")
    assert np.allclose(problem.q0, [0.2, 0.0]) and np.allclose(problem.v0, [0.0, 3.0])
    run = lv.simulate(problem)
    assert run.summary.max_energy_drift < 1e-12 and run.summary.momentum_drift["angular_momentum"] < 1e-12


@settings(max_examples=50, deadline=None)
@given(st.floats(0.2, 3.0), st.floats(0.2, 3.0), st.floats(0.2, 3.0), st.floats(0.0, 30.0))
def test_rotor_reference(mass, k, Omega, t):
    """It solves m q'' + k q = eps Omega^2 (-cos, sin)(Omega t), in resonance too."""
    for speed in (Omega, np.sqrt(k / mass), np.sqrt(k / mass) * (1 + 1e-9)):
        exact = load("rotor", mass=mass, k=k, Omega=speed).reference
        d = 1e-3
        rates = [exact(t + i * d)["v"] for i in (-2, -1, 1, 2)]
        acceleration = (rates[0] - 8 * rates[1] + 8 * rates[2] - rates[3]) / (12 * d)
        load_ = 0.1 * speed**2 * np.array([-np.cos(speed * t), np.sin(speed * t)])
        assert np.allclose(mass * acceleration + k * exact(t)["q"], load_, rtol=0, atol=1e-7)
        places = [exact(t + i * d)["q"] for i in (-2, -1, 1, 2)]
        assert np.allclose((places[0] - 8 * places[1] + 8 * places[2] - places[3]) / (12 * d), exact(t)["v"], atol=1e-7)


def test_nonlinear_pendulum_period():
    """Two periods of 4 K, K = 1.854... for a release from the horizontal."""
    problem = load("nonlinear-pendulum")
    assert problem.t_end == pytest.approx(8 * 1.8540746773013719, rel=1e-14)
    end = problem.reference(problem.t_end)
    assert end["q"][0] == pytest.approx(np.pi / 2, abs=1e-13) and end["v"][0] == pytest.approx(0.0, abs=1e-13)
    for t in np.linspace(0, 15, 40):
        exact = problem.reference(t)
        assert exact["v"][0] ** 2 / 2 - np.cos(exact["q"][0]) == pytest.approx(0.0, abs=1e-14)


def test_symplectic_euler_keeps_the_pendulums_energy():
    """Fig. 1.1 and 2.8: over a hundred periods the energy error stays what it is over two."""
    problem = load("nonlinear-pendulum")
    error = [
        np.abs(lv.simulate(problem, scheme="symplectic-euler", t_end=t).observe("total_energy")).max()
        for t in (problem.t_end, 50 * problem.t_end)
    ]
    assert 1e-3 < error[0] < 0.1 and error[1] < 1.2 * error[0]


@settings(max_examples=50, deadline=None)
@given(st.floats(0.1, 10.0), st.floats(10.0, 1e5), st.floats(0.0, 50.0))
def test_two_walls_reference(K1, K2, t):
    """Energy K1/2 at all times, and periodic."""
    exact, period = load("two-walls", K1=K1, K2=K2).reference, np.pi / np.sqrt(K1) + np.pi / np.sqrt(K2)
    q, v = exact(t)["q"][0], exact(t)["v"][0]
    assert v**2 / 2 + (K1 if q > 0 else K2) * q**2 / 2 == pytest.approx(K1 / 2, rel=1e-12)
    assert exact(t + period)["q"][0] == pytest.approx(q, abs=1e-11 * (1 + np.sqrt(K2)))


def test_two_walls():
    """livens-em keeps the energy across the jumps of the stiffness, and has its order; the midpoint rule neither."""
    problem, steps = load("two-walls"), halved(1e-3)
    em = errors_at(problem, "livens-em", 2.0, steps)
    assert all(abs(measured_order(steps, errors) - 2) < 0.1 for errors in em)
    runs = {scheme: lv.simulate(problem, scheme=scheme, t_end=20.0) for scheme in SCHEMES}
    assert runs["livens-em"].summary.max_energy_drift < 1e-13
    assert runs["livens-midpoint"].summary.max_energy_drift > 1e-5


def test_billiard():
    """The first three balls hand on their velocity and stop; where they rest is known too."""
    problem = load("billiard")
    assert np.array_equal(problem.v0, [1, 1, 0, 0, 0, 0, 0, 0])
    start = problem.q0.reshape(4, 2)
    apart = [np.linalg.norm(start[i] - start[j]) for i in range(4) for j in range(i)]
    assert min(apart) > 0.2 and start.min() > 0.1 and start.max() < 0.9
    run = lv.simulate(problem, h=1e-5)
    q, v = run.q[-1].reshape(4, 2), run.v[-1].reshape(4, 2)
    assert np.linalg.norm(v[:3], axis=1).sum() < 2e-6
    assert np.linalg.norm(v[3]) == pytest.approx(np.sqrt(2), abs=1e-9)
    # a contact of two unit masses lasts pi/sqrt(2 K); meanwhile their centre moves with half the velocity (-1, -1)
    for i in range(3):
        rest = start[i + 1] + 0.2 / np.sqrt(2) - np.pi / np.sqrt(2e4) / 2
        assert np.allclose(q[i], rest, rtol=0, atol=1e-6)
    assert np.ptp(run.observe("total_energy")) < 1e-12


def test_billiard_converges():
    """The speeds that should be zero go to zero as h^2 on the whole, unevenly: contacts begin and end within steps."""
    steps, errors = halved(1e-3, 7), []
    for h in steps:
        v = lv.simulate(load("billiard"), h=h).v[-1].reshape(4, 2)
        errors.append(np.linalg.norm(v[:3], axis=1).sum())
    assert errors[-1] < 1e-3 * errors[0]
    assert measured_order(steps, errors) > 1.8
