"""Taylor series: every operation, orders, steps, round-off, dense output, events, resuming, and what they refuse."""

import numpy as np
import pytest
from conftest import measured_order
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.special import erf

import livens as lv
from livens import math as m

PENDULUM = lv.System(
    "angle",
    kinetic=lambda v, k: 0.5 * k.m * v[0] ** 2,
    potential=lambda q, k: -k.m * m.cos(q[0]),
    parameters=dict(m=1.0),
)
KEPLER = lv.problems.load("kepler")


# -- operations -------------------------------------------------------------------------------------------------------
FUNCTIONS = [
    lambda x: m.sin(x) * m.cos(x),
    lambda x: m.tan(0.3 * x),
    lambda x: m.sinh(0.3 * x) - m.cosh(0.2 * x),
    lambda x: m.tanh(x),
    lambda x: m.exp(-x) * m.log(2 + x),
    lambda x: m.sqrt(1 + x**2),
    lambda x: (2 + x) ** -1.5,
    lambda x: (2 + x) ** 0.3,
    lambda x: (1.5 + x) ** (0.2 * x),
    lambda x: m.asin(0.3 * x) + m.acos(0.3 * x) * x,
    lambda x: m.atan(x),
    lambda x: m.atan2(x, 1 + x**2),
    lambda x: m.asinh(x) + m.atanh(0.2 * x),
    lambda x: m.log1p(x) + m.expm1(-x),
    lambda x: m.hypot(x, 2.0) / (1 + x**2),
    lambda x: 1 / (3 + x) + x**3 - x**5 / 10,
]


@pytest.mark.parametrize("forced", [False, True])
def test_every_operation_against_dop853(forced):
    """One variable for each function, all integrated together; with time in every rate as well."""
    push = 0.1 if forced else 0.0
    model = lv.FirstOrder(
        len(FUNCTIONS),
        rhs=lambda x, t: [0.3 * (f(x[i]) - x[i]) + push * m.sin(t * x[i]) for i, f in enumerate(FUNCTIONS)],
    )
    x0 = np.linspace(0.2, 0.9, len(FUNCTIONS))
    run = lv.simulate(model, x0=x0, scheme="taylor", t_end=2.0)
    rates = [lambda t, x, f=f: 0.3 * (float(f(x)) - x) + push * np.sin(t * x) for f in FUNCTIONS]
    exact = solve_ivp(
        lambda t, x: [rate(t, y) for rate, y in zip(rates, x, strict=True)],
        (0, 2),
        x0,
        method="DOP853",
        rtol=1e-13,
        atol=1e-14,
    )
    assert np.abs(run.x[-1] - exact.y[:, -1]).max() < 3e-13


def clump(n, seed):
    """Bodies in space with random masses and starts, which attract each other softly."""
    rng = np.random.default_rng(seed)

    def potential(q, k):
        total = 0.0
        for i in range(n):
            for j in range(i):
                d = q[3 * i : 3 * i + 3] - q[3 * j : 3 * j + 3]
                total = total - k.mass[i] * k.mass[j] / m.sqrt(d @ d + 0.1)
        return total

    system = lv.System(
        3 * n,
        kinetic=lambda v, k: sum(0.5 * k.mass[i] * (v[3 * i : 3 * i + 3] @ v[3 * i : 3 * i + 3]) for i in range(n)),
        potential=potential,
        parameters=dict(mass=rng.uniform(0.5, 2.0, n)),
    )
    return system, rng.normal(size=3 * n), rng.normal(size=3 * n) / 2


@settings(max_examples=2, deadline=None)
@given(n=st.integers(2, 4), seed=st.integers(0, 99))
def test_lanes_agree_with_one_graph(n, seed):
    """Vectors, loops over vectors and constants in memory do the same as the graph that is written independently."""
    system, q0, v0 = clump(n, seed)
    runs = [
        lv.simulate(system, q0, v0, scheme="taylor:5", h=0.05, t_end=0.2, tier=tier, parameters={"mass": np.ones(n)})
        for tier in ("fused", "reference")
    ]
    for name in ("q", "v", "p"):
        assert np.abs(getattr(runs[0], name) - getattr(runs[1], name)).max() < 1e-13


# -- orders, steps and round-off --------------------------------------------------------------------------------------
@pytest.mark.parametrize("order", [2, 3, 5, 8])
def test_orders_with_equal_steps(order):
    exact = lv.simulate(PENDULUM, [2.0], [0.3], scheme="taylor", t_end=4.0)
    steps = [{2: 0.02, 3: 0.02, 5: 0.1, 8: 0.2}[order] / 2 ** (i / 2) for i in range(5)]
    errors = []
    for h in steps:
        run = lv.simulate(PENDULUM, [2.0], [0.3], scheme=f"taylor:{order}", h=h, t_end=4.0)
        errors.append(np.abs(run.q - exact.at(run.t).q).max())
    assert abs(measured_order(steps, errors) - order) < 0.1


@pytest.mark.parametrize(
    ("name", "t_end", "steps"),
    [
        ("kepler", 100.3 * 2 * np.pi, 5899),
        ("nonlinear-pendulum", 1000.0, 3683),
        ("pleiades", 3.0, 248),
        ("outer-solar-system", 1e6, 3439),
    ],
)
def test_counts_of_steps(name, t_end, steps):
    """Step counts agree with other codes that have the same rule, up to single steps by rounding."""
    run = lv.simulate(lv.problems.load(name), scheme="taylor", t_end=t_end)
    assert abs(run.statistics.steps - steps) <= 3
    assert run.t[-1] == t_end and run.info.scheme == "taylor"
    assert run.summary.max_energy_drift < 5e-14


def test_a_symmetric_start_does_not_deceive():
    """A pendulum that is let go from the side: of every four coefficients only one does not vanish."""
    run = lv.simulate(PENDULUM, [np.pi / 2], [0.0], scheme="taylor", t_end=5.0)
    exact = solve_ivp(
        lambda t, y: [y[1], -np.sin(y[0])], (0, 5), [np.pi / 2, 0], method="DOP853", rtol=1e-13, atol=1e-14
    )
    assert abs(run.q[-1, 0] - exact.y[0, -1]) < 1e-12


def test_kepler_to_the_last_digits():
    """A hundred orbits with an eccentricity of 0.8, against the exact motion, at every step."""
    run = lv.simulate(KEPLER, scheme="taylor", t_end=100.3 * 2 * np.pi)
    exact = np.array([KEPLER.reference(t)["q"] for t in run.t[::50]])
    assert np.abs(run.q[::50] - exact).max() < 2e-11
    assert run.summary.momentum_drift["angular_momentum"] < 1e-14


@pytest.mark.slow
def test_round_off_grows_as_slowly_as_it_can():
    """Brouwer's law: after a million steps the energy is wrong by some 1e-13, of the order of a thousand roundings."""
    problem, errors = lv.problems.load("kepler", e=0.2), []
    for start in range(4):
        q, v = (problem.reference(0.3 * start)[name] for name in ("q", "v"))
        run = lv.simulate(problem.model, q, v, scheme="taylor", t_end=2e5, every=1000)
        energy = run.observe("total_energy")
        errors.append(abs(energy[-1] / energy[0] - 1))
    assert run.statistics.steps > 6e5
    assert np.sqrt(np.mean(np.square(errors))) < 2e-13


def test_a_tolerance_chooses_the_order():
    """As ``1 - log(tolerance)/2``; an order that is given stays, and shorter steps do what it cannot."""
    exact = KEPLER.reference(10.0)["q"]
    for tolerance, scheme in ((1e-6, "taylor:8"), (1e-10, "taylor:13")):
        run = lv.simulate(KEPLER, scheme="taylor", t_end=10.0, control=lv.StepControl(tolerance=tolerance))
        assert run.info.scheme == scheme
        assert np.abs(run.q[-1] - exact).max() < 1e3 * tolerance
    kept = lv.simulate(KEPLER, scheme="taylor:8", t_end=10.0, control=lv.StepControl(tolerance=1e-12))
    assert kept.info.scheme == "taylor:8" and np.abs(kept.q[-1] - exact).max() < 1e-10
    usual = lv.simulate(KEPLER, scheme="taylor:8", t_end=10.0)
    assert usual.statistics.steps < kept.statistics.steps / 3


def test_steps_can_be_bounded():
    run = lv.simulate(
        KEPLER, scheme="taylor", t_end=10.0, control=lv.StepControl(tolerance=1e-16, largest=0.05, most_steps=150)
    )
    assert run.step_size[1:].max() <= 0.05 * (1 + 1e-12) and run.statistics.steps == 150 and run.t[-1] < 10.0


def test_work_of_forces_is_accounted_for():
    """Friction and a moving potential, with parameters that are changed: the balance holds to round-off."""
    model = lv.Hamiltonian(
        "x",
        kinetic=lambda p, k: p[0] ** 2 / (2 * k.m),
        potential=lambda q, t, k: k.c * q[0] ** 2 / 2 + m.cos(q[0]) * m.sin(t),
        forces=lambda v, k: [-k.d * v[0]],
        parameters=dict(m=2.0, c=3.0, d=0.1),
    )
    run = lv.simulate(model, [1.0], p0=[0.0], scheme="taylor", t_end=10.0, parameters=dict(m=1.0))
    exact = solve_ivp(
        lambda t, y: [y[1], -3 * y[0] + np.sin(y[0]) * np.sin(t) - 0.1 * y[1]],
        (0, 10),
        [1.0, 0.0],
        method="DOP853",
        rtol=1e-13,
        atol=1e-14,
    )
    assert np.abs(run.q[-1] - exact.y[0, -1]) < 1e-11
    assert run.summary.max_energy_drift < 1e-14


def test_constraints_of_reduced_index():
    """A double pendulum in Cartesian coordinates, its constraints on accelerations; multipliers are as accurate."""
    equations = lv.MultibodyEquations(
        "x y X Y",
        kinetic=lambda v, k: 0.5 * (v[:2] @ v[:2]) + 0.5 * k.m * (v[2:] @ v[2:]),
        potential=lambda q, k: 9.81 * (q[1] + k.m * q[3]),
        constraints=lambda q: [(q[:2] @ q[:2] - 1) / 2, ((q[2:] - q[:2]) @ (q[2:] - q[:2]) - 1) / 2],
        parameters=dict(m=2.0),
    )
    start = dict(q0=[1.0, 0.0, 1.0, -1.0], v0=[0.0, 0.0, 0.5, 0.0])
    run = lv.simulate(equations.formulate("index-1"), **start, scheme="taylor", t_end=1.0)
    control = lv.StepControl(tolerance=1e-12)
    other = lv.simulate(equations.formulate("ggl"), **start, scheme="radau-iia-3", t_end=1.0, control=control)
    assert abs(run.statistics.steps - 59) <= 2 and run.summary.max_constraint < 1e-13
    assert np.abs(run.x[-1] - other.x[-1]).max() < 1e-9 and np.abs(run.y[-1] - other.y[-1, :2]).max() < 1e-6
    assert np.abs(run.at(1.0).y - run.y[-1]).max() < 1e-10
    slow = lv.simulate(equations.formulate("index-1"), **start, scheme="taylor:4", h=0.05, t_end=0.1, tier="reference")
    fast = lv.simulate(equations.formulate("index-1"), **start, scheme="taylor:4", h=0.05, t_end=0.1)
    assert np.abs(slow.x - fast.x).max() < 1e-13 and np.abs(slow.y - fast.y).max() < 1e-11


@pytest.mark.parametrize("options", [{}, {"h": 0.1}])
def test_algebraic_variables_follow_time(options):
    """At the end of every step, and between: here ``y = t^2 - x`` with ``x' = y``."""
    model = lv.FirstOrder("x", rhs=lambda y: [y[0]], algebraic="y", constraints=lambda x, y, t: [y[0] + x[0] - t**2])
    run = lv.simulate(model, x0=[0.0], y0=[0.0], scheme="taylor:12", t_end=2.0, **options)
    for t, y in ((run.t, run.y), (run.t[:-1] + 0.03, run.at(run.t[:-1] + 0.03).y)):
        assert np.abs(y[:, 0] - (2 * t - 2 + 2 * np.exp(-t))).max() < 1e-11


# -- between rows -----------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def orbit():
    return lv.simulate(KEPLER, scheme="taylor", t_end=20.0)


def test_dense_output_is_as_good_as_the_steps(orbit):
    times = np.linspace(0.0, 20.0, 317)
    found = orbit.at(times)
    for name in ("q", "v"):
        exact = np.array([KEPLER.reference(t)[name] for t in times])
        assert np.abs(getattr(found, name) - exact).max() < 2e-12
    assert np.abs(orbit.at(orbit.t).q - orbit.q).max() < 1e-15


def test_events_are_found_to_the_last_digits():
    """Both crossings of the axis in every orbit, and two that lie within one step."""
    run = lv.simulate(KEPLER, scheme="taylor", t_end=20.0, events=[lv.Event(lambda q: q[1], name="axis")])
    times = [event.t for event in run.events]
    assert np.abs(np.array(times) - np.pi * np.arange(1, 7)).max() < 1e-12
    wave = lv.FirstOrder("x v", rhs=lambda x: [x[1], -x[0]])
    top = lv.simulate(wave, x0=[0.0, 1.0], scheme="taylor", t_end=20.0, events=[lv.Event(lambda x: x[0] - 0.9)])
    exact = np.add.outer(2 * np.pi * np.arange(4), [np.arcsin(0.9), np.pi - np.arcsin(0.9)]).ravel()[:7]
    assert np.abs(np.array([event.t for event in top.events]) - exact).max() < 1e-12


def test_events_act():
    """A ball that bounces: after every impact the motion goes on from there."""
    ball = lv.System("z", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: 9.81 * q[0])
    bounce = lv.Event(lambda q: q[0], direction=-1, action=lambda v: {"v": -0.5 * v}, name="floor")
    run = lv.simulate(ball, [1.0], [0.0], scheme="taylor", t_end=1.0, events=[bounce])
    fall = np.sqrt(2 / 9.81)
    assert np.allclose([event.t for event in run.events], [fall, 2 * fall], rtol=1e-12)


# -- files ------------------------------------------------------------------------------------------------------------
def test_resumed_bit_for_bit(tmp_path, orbit):
    lv.simulate(KEPLER, scheme="taylor", t_end=7.0, out=tmp_path / "run.h5")
    run = lv.resume(tmp_path / "run.h5", t_end=20.0)
    for name in ("t", "q", "v", "p"):
        assert np.array_equal(getattr(run, name), getattr(orbit, name)), name
    loaded = lv.load(tmp_path / "run.h5")
    assert np.array_equal(loaded.at(3.3).q, orbit.at(3.3).q)


def test_accuracy_is_known(orbit):
    """From runs with halved and doubled steps, which are compared between their rows by their series."""
    found = orbit.accuracy()
    assert found.order == 20 and max(found.error.values()) < 1e-11


def test_prepared_steps_one_by_one():
    step = lv.prepare(PENDULUM, "taylor:10", h=0.1)
    state = step.start([1.0], [0.0])
    for _ in range(10):
        state = step.step(state)
    assert abs(state.q[0] - step.run([1.0], [0.0], t_end=1.0).q[-1, 0]) < 1e-15


# -- refusals ---------------------------------------------------------------------------------------------------------
def test_what_it_cannot_do_it_says():
    with pytest.raises(lv.errors.InputError, match="a system without constraints"):
        lv.simulate(lv.problems.load("pendulum"), scheme="taylor")
    with pytest.raises(lv.errors.InputError, match="functions that are smooth, without abs"):
        lv.simulate(lv.FirstOrder("x", rhs=lambda x: [abs(x[0])]), x0=[1.0], scheme="taylor", t_end=1.0)
    with pytest.raises(lv.errors.InputError, match="that determine all time derivatives"):
        model = lv.FirstOrder("x", algebraic="y", rhs=lambda y: [y[0]], constraints=lambda x, y: [x[0] + y[0] ** 3])
        lv.simulate(model, x0=[1.0], scheme="taylor", t_end=1.0)
    with pytest.raises(lv.errors.InputError, match="between 2 and 60"):
        lv.schemes.get("taylor:1")
    with pytest.raises(lv.errors.InputError, match="step-size control needs the fused tier"):
        lv.simulate(KEPLER, scheme="taylor", t_end=1.0, tier="reference")
    with pytest.raises(lv.errors.InputError, match="by a tolerance"):
        lv.simulate(KEPLER, scheme="taylor", t_end=1.0, control=lv.StepControl())
    with pytest.raises(lv.errors.IntegrationError, match=r"does not converge.*The solution may end there") as stopped:
        lv.simulate(lv.FirstOrder("x", rhs=lambda x: [x[0] ** 2]), x0=[1.0], scheme="taylor", t_end=2.0)
    assert abs(stopped.value.result.t[-1] - 1.0) < 1e-6


@pytest.mark.parametrize("width", [0.12, 0.07, 0.05])
def test_a_pulse_that_the_first_point_does_not_show(width):
    """Steps whose series does not predict the rates at their ends are repeated."""
    model = lv.FirstOrder(
        "x", rhs=lambda x, t, k: [m.exp(-(((t - 0.6) / k.width) ** 2)) - x[0]], parameters=dict(width=width)
    )

    def exact(t):
        ends = (np.array([0.0, t]) - 0.6) / width - width / 2
        return np.exp(-t) * (1 + width * np.sqrt(np.pi) / 2 * np.exp(0.6 + width**2 / 4) * np.diff(erf(ends)).item())

    run = lv.simulate(model, x0=[1.0], scheme="taylor", t_end=1.0, control=lv.StepControl(tolerance=1e-9))
    assert run.t[-1] == 1.0 and np.diff(run.t).min() > 0
    assert run.x[:, 0] == pytest.approx([exact(t) for t in run.t], abs=1e-7)
    assert run.at(0.6).x[0] == pytest.approx(exact(0.6), abs=1e-7)


def test_steps_of_a_given_size_are_not_repeated():
    model = lv.FirstOrder("x", rhs=lambda x, t: [m.exp(-(((t - 0.6) / 0.05) ** 2)) - x[0]])
    run = lv.simulate(model, x0=[1.0], scheme="taylor:8", t_end=1.0, h=0.5)
    assert run.t.tolist() == [0.0, 0.5, 1.0]
