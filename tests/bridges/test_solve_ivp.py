"""`livens.solve_ivp`: agreement with SciPy, tracing of ordinary functions, no stale traces, hand-over to SciPy."""

import copy
import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import casadi as ca
import numpy as np
import pytest
import scipy.integrate as si
from ivp_corpus import CASES as CASE_LIST
from scipy.interpolate import interp1d
from scipy.linalg import expm
from scipy.special import j0

import livens as lv
from livens import math as m
from livens.expressions.numpy_tracing import TracingError, trace_numpy

CASES = {case.name: case for case in CASE_LIST}
#: Cases that cannot be traced: a Bessel function, and root finding in the right-hand side.
NOT_TRACEABLE = {"bessel-source": "j0", "lambert-implicit": "isnan"}
TIGHT = dict(rtol=1e-9, atol=1e-12)


def end(function, t_end=1.0, **options):
    """Return the first state at the end of a run from 1."""
    return lv.solve_ivp(function, (0, t_end), [1.0], **TIGHT, **options).y[0, -1]


def traced_function(fun, n, args=()):
    t, x = ca.SX.sym("t"), ca.SX.sym("x", n)
    return ca.Function("f", [t, x], [trace_numpy(fun, m.Scalar(t), m.from_casadi(x), *args).column])


def assert_equal_values(traced, fun, points, args=()):
    for t, x in points:
        try:
            expected = np.array(fun(t, x, *args), dtype=float).ravel()
        except (IndexError, ValueError):
            continue
        scale = max(1.0, np.nanmax(np.abs(expected)))
        np.testing.assert_allclose(np.array(traced(t, x)).ravel(), expected, rtol=1e-9, atol=1e-12 * scale)


@pytest.mark.parametrize("name", CASES)
def test_traced_functions_have_the_values_of_plain_calls(name):
    case = CASES[name]
    if name in NOT_TRACEABLE:
        with pytest.raises(TracingError, match=rf"{NOT_TRACEABLE[name]}.*\(line \d+ of ivp_corpus.py"):
            traced_function(case.fun, len(case.y0), case.args)
        return
    traced, random, y0 = traced_function(case.fun, len(case.y0), case.args), np.random.default_rng(0), np.array(case.y0)
    a, b = case.span
    points = [
        (
            a + random.random() * (b - a),
            y0 * (1 + 0.3 * random.normal(size=len(y0))) + 0.01 * random.normal(size=len(y0)),
        )
        for _ in range(20)
    ]
    assert_equal_values(traced, case.fun, points, case.args)


@pytest.mark.slow
def test_the_systems_of_dysts_are_traced_as_their_authors_wrote_them():
    flows = pytest.importorskip("dysts.flows")
    from dysts.systems import get_attractor_list

    n_traced, random = 0, np.random.default_rng(1)
    for name in get_attractor_list():
        system = getattr(flows, name)()
        if not hasattr(system, "rhs"):  # delay equations and maps
            continue
        y0 = np.array(system.ic, dtype=float)

        def fun(t, y, system=system):
            return system.rhs(y, t)

        traced = traced_function(fun, len(y0))
        assert_equal_values(
            traced, fun, [(random.random() * 5, y0 * (1 + 0.3 * random.normal(size=len(y0)))) for _ in range(5)]
        )
        n_traced += 1
    assert n_traced == 129


@pytest.mark.parametrize(
    "name",
    "lotka-volterra rossler two-link-arm three-body-figure-8 quadrotor-planar airy robertson seir-lockdown"
    " driven-cubic-spline try-isnan-guard".split(),
)
def test_solutions_agree_with_scipy(name):
    case = CASES[name]
    got = lv.solve_ivp(case.fun, case.span, case.y0, args=case.args, fallback="error", **TIGHT)
    method = "Radau" if case.stiff else "DOP853"
    expected = si.solve_ivp(case.fun, case.span, case.y0, args=case.args, rtol=1e-11, atol=1e-14, method=method)
    assert got.success and got.compiled and got.t[-1] == case.span[1]
    np.testing.assert_allclose(got.y[:, -1], expected.y[:, -1], rtol=2e-6, atol=1e-8 * np.max(np.abs(case.y0)))


def test_periodic_pulses_are_not_stepped_over():
    """The dosing problem of the corpus in closed form: half an hour of constant rate at every twelfth hour."""
    matrix, values = np.array([[-1.1, 0.0], [1.1, -0.25]]), np.zeros(2)
    for duration, rate in [(0.5, 100.0), (11.5, 0.0)] * 4:
        steady = -np.linalg.solve(matrix, [rate, 0.0])
        values = steady + expm(matrix * duration) @ (values - steady)
    case = CASES["pharmacokinetics-dosing"]
    solution = lv.solve_ivp(case.fun, case.span, case.y0, rtol=1e-8, atol=1e-10)
    assert np.abs(solution.y[:, -1] - values).max() < 1e-9


def test_stiff_problems_change_to_radau():
    case = CASES["van-der-pol-1000"]
    result = lv.solve_ivp(case.fun, case.span, case.y0, args=case.args)
    assert result.scheme.startswith("taylor") and result.scheme.endswith("radau-iia-5")
    assert [len(result.runs), result.t.size] == [2, result.y.shape[1]]
    assert np.all(np.diff(result.t) > 0)


@pytest.mark.parametrize("method", ["auto", "RK45", "Radau", "LSODA", "gauss-3"])
def test_the_error_follows_the_tolerance(method):
    errors = []
    for rtol in (1e-5, 1e-7, 1e-9, 1e-11):
        result = lv.solve_ivp(lambda t, y: [y[1], -y[0]], (0, 10), [1.0, 0.0], method, rtol=rtol, atol=rtol)
        errors.append(abs(result.y[0, -1] - np.cos(10)))
        assert errors[-1] < 100 * rtol
    assert errors[-1] < 1e-9


def test_default_tolerances():
    result = lv.solve_ivp(lambda t, y: -y, (0, 5), [1.0])
    assert abs(result.y[0, -1] - np.exp(-5)) < 1e-11
    coarse = lv.solve_ivp(lambda t, y: -y, (0, 5), [1.0], method="Radau")
    assert 1e-9 < abs(coarse.y[0, -1] - np.exp(-5)) < 1e-3


# -- events and dense output -------------------------------------------------------------------------------------------
def test_events_and_dense_output_agree_with_scipy():
    def hit(t, y):
        return y[0]

    hit.terminal, hit.direction = True, -1
    options = dict(events=[hit, lambda t, y: y[1]], dense_output=True, rtol=1e-9, atol=1e-11)
    a, b = (solve(lambda t, y: [y[1], -9.81], (0, 10), [1.0, 3.0], **options) for solve in (lv.solve_ivp, si.solve_ivp))
    assert a.status == b.status == 1 and a.message == b.message
    for x, y in zip(a.t_events + a.y_events, b.t_events + b.y_events, strict=True):
        assert x.shape == y.shape
        np.testing.assert_allclose(x, y, atol=1e-8)
    times = np.linspace(0, 0.5, 9)
    np.testing.assert_allclose(a.sol(times), b.sol(times), atol=1e-8)
    assert a.sol(0.1).shape == b.sol(0.1).shape == (2,)


@pytest.mark.parametrize("method", ["RK45", "Radau"])
def test_a_terminal_event_may_count(method):
    def zero(t, y):
        return y[0]

    zero.terminal = 3
    a = lv.solve_ivp(lambda t, y: [y[1], -y[0]], (0, 100), [0.5, 1.0], method, events=zero, **TIGHT)
    assert a.status == 1 and len(a.t_events[0]) == 3
    np.testing.assert_allclose(a.t_events[0], np.pi * np.arange(1, 4) - np.arctan(0.5), atol=1e-8)
    assert a.t[-1] == pytest.approx(a.t_events[0][-1], abs=1e-12)


def test_events_of_a_run_may_count():
    oscillator = lv.FirstOrder("x v", rhs=lambda x: [x[1], -x[0]])
    zero = lv.Event(lambda x: x[0], terminal=2)
    run = lv.simulate(oscillator, x0=[0.5, 1.0], scheme="gauss-2", h=0.01, t_end=50.0, events=[zero])
    assert len(run.events) == 2 and run.t[-1] == pytest.approx(2 * np.pi - np.arctan(0.5), abs=1e-8)
    with pytest.raises(lv.InputError, match="terminal of an event must be True, False or a number"):
        lv.Event(lambda x: x[0], terminal=-1)


# -- hand-over to SciPy ------------------------------------------------------------------------------------------------
def test_functions_that_cannot_be_traced_are_integrated_by_scipy():
    case = CASES["bessel-source"]
    with pytest.warns(lv.LivensWarning, match=r"SciPy integrates.*j0.*line \d+ of ivp_corpus.py") as caught:
        result = lv.solve_ivp(case.fun, case.span, case.y0)
    assert result.success and not result.compiled and result.scheme == "SciPy LSODA"
    assert caught[0].filename == __file__
    with pytest.raises(TracingError, match="j0"):
        lv.solve_ivp(case.fun, case.span, case.y0, fallback="error")


def random_force(t, y):
    return -y + np.random.normal()


def clock(t, y):
    return -y * time.time()


def loop(t, y):
    x = y[0]
    while x * x > 1e-3:
        x = x / 2
    return -y + x


def counted(t, y):
    global n_calls
    n_calls += 1
    return -y


def indexed(t, y):
    return [-[1.0, 2.0][int(y[0])]]


n_calls = 0


@pytest.mark.parametrize(
    ("fun", "y0", "words"),
    [
        (random_force, [1.0], "numpy.random depends on more than its arguments"),
        (clock, [1.0], "time.time depends on more than its arguments"),
        (loop, [1.0], "more than 64 decisions"),
        (counted, [1.0], "it assigns to 'n_calls'"),
        (indexed, [0.5], "int"),
        (lambda t, y: -y, [1j], "the state is complex"),
        (lambda t, y: -y, [], "nothing to integrate"),
        (lambda t, y: -y, np.ones(300), "300 states would take long to compile"),
        (lambda t, y: None, [1.0], "it returns None"),
        (lambda t, y: y[:1] if t < 1 else y, [1.0, 2.0], "arrays of shapes"),
    ],
)
def test_reasons_are_named(fun, y0, words):
    with pytest.raises(TracingError, match=words):
        lv.solve_ivp(fun, (0, 1), y0, fallback="error")


def test_a_path_that_raises_is_nan():
    def guarded(t, y):
        if y[0] > 2:
            raise ValueError
        return -y

    assert end(guarded) == pytest.approx(np.exp(-1))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (dict(y0=[[1.0]]), "`y0` must be 1-dimensional"),
        (dict(y0=[np.nan]), "must be finite"),
        (dict(max_step=-1), "`max_step` must be positive"),
        (dict(first_step=-1), "`first_step` must be positive"),
        (dict(first_step=20), "`first_step` exceeds bounds"),
        (dict(atol=[1.0, 2.0]), "`atol` has wrong shape"),
        (dict(max_step=np.nan), "`max_step` must be positive"),
        (dict(first_step=np.nan), "`first_step` must be positive"),
        (dict(t_span=(0, np.nan)), "`t_span` must start at a finite time and must not contain NaN"),
        (dict(t_span=(-np.inf, 0)), "`t_span` must start at a finite time"),
        (dict(t_eval=[np.nan]), "not within `t_span`"),
        (dict(fun=lambda t, y: [np.nan]), "`fun` is not finite at the initial time"),
        (dict(fun=lambda t, y: y / 0.0), "`fun` is not finite at the initial time"),
        (dict(fun=lambda t, y: None), "`fun` is not finite at the initial time"),
        (dict(fun=lambda t, y: [1.0, 2.0]), "`fun` must return 1 numbers, got 2"),
        (dict(rtol=np.nan), "`rtol` must not be NaN"),
        (dict(atol=[np.nan]), "`atol` must not be NaN"),
        (dict(t_eval=[3.0]), "not within `t_span`"),
        (dict(t_eval=[0.5, 0.2]), "not properly sorted"),
        (dict(method="RK54"), "unknown scheme 'RK54'"),
        (dict(fallback="later"), "`fallback` must be 'scipy' or 'error'"),
    ],
)
def test_bad_arguments(arguments, words):
    with pytest.raises(ValueError, match=words):
        lv.solve_ivp(**{**dict(fun=lambda t, y: -y, t_span=(0, 1), y0=[1.0]), **arguments})


def test_large_states_and_empty_output_times():
    assert lv.solve_ivp(lambda t, y: -y, (0, 1), [1e300]).y[0, -1] == pytest.approx(1e300 * np.exp(-1))
    a, b = (solve(lambda t, y: -y, (0, 1), [1.0], t_eval=[]) for solve in (lv.solve_ivp, si.solve_ivp))
    assert a.t == b.t == [] and a.y == b.y == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("metod", "did you mean 'method'"),
        ("rtoll", "did you mean 'rtol'"),
        ("jac_sparsty", "did you mean 'jac_sparsity'"),
    ],
)
def test_mistyped_arguments_are_named(name, words):
    with pytest.raises(TypeError, match=f"solve_ivp has no argument '{name}'.*{words}"):
        lv.solve_ivp(lambda t, y: -y, (0, 1), [1.0], **{name: None})
    lv.solve_ivp(lambda t, y: -y, (0, 1), [1.0], min_step=0.0, lband=0)


# -- tracing of model functions ----------------------------------------------------------------------------------------
def test_model_functions_may_be_written_for_numbers():
    def rhs(x):
        out = np.zeros(2)
        out[0] = x[1]
        out[1] = -x[0] if x[0] > 0 else -4 * x[0]
        return out

    spring = lv.FirstOrder("x v", rhs=rhs)
    run = lv.simulate(spring, x0=[1.0, 0.0], scheme="gauss-2", h=1e-3, t_end=np.pi / 2 + np.pi / 4)
    assert run.x[-1] == pytest.approx([-0.5, 0.0], abs=1e-5)  # half periods pi and pi / 2

    def potential(q):
        energy = np.zeros(1)
        energy[0] = 0.5 * (q[0] ** 2 if q[0] > 0 else 4 * q[0] ** 2)
        return energy[0]

    system = lv.System("x", kinetic=lambda v: 0.5 * v[0] ** 2, potential=potential)
    run = lv.simulate(system, q0=[1.0], v0=[0.0], scheme="livens-em", h=1e-3, t_end=np.pi / 2 + np.pi / 4)
    assert run.q[-1, 0] == pytest.approx(-0.5, abs=1e-5) and run.summary.max_energy_drift < 1e-12


def test_laws_of_mechanisms_may_be_written_for_numbers():
    def torque(t, angle, rate):
        if t < 0.1:
            return 1.0
        return 0.0

    mb = lv.Multibody()
    wheel = mb.cylinder("wheel", at=[0, 0, 0], length=0.1, radius=1.0, mass=2.0)  # moment of inertia 1 about its axis
    axle = mb.revolute("axle", mb.ground, wheel, axis="z")
    mb.motor(axle, torque=torque, name="motor")
    run = mb.simulate(h=1e-3, t_end=0.2)
    assert run["axle.rate"][-1] == pytest.approx(0.1, abs=2e-3)


# -- uses of scripts for SciPy -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", ["auto", "Radau"])
@pytest.mark.parametrize("span", [(0, 5), (5, 0)])
def test_solutions_can_be_pickled_and_copied(method, span):
    result = lv.solve_ivp(lambda t, y: [y[1], -y[0]], span, [1.0, 0.0], method, dense_output=True, **TIGHT)
    times = np.concatenate([np.linspace(-1, 6, 200), result.t])
    for copied in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result), copy.deepcopy(copy.deepcopy(result))):
        np.testing.assert_allclose(copied.sol(times), result.sol(times), atol=1e-13)
        assert np.array_equal(copied.y, result.y) and copied.runs == [] and copied.sol(1.0).shape == (2,)
    assert copy.copy(result).runs == result.runs


def test_functions_of_states_in_columns():
    def oscillator(t, y):
        return np.array([y[1, :], -y[0, :]])

    a, b = (
        solve(oscillator, (0, 5), [1.0, 0.0], "Radau", vectorized=True, rtol=1e-8, atol=1e-10)
        for solve in (lv.solve_ivp, si.solve_ivp)
    )
    assert a.compiled
    np.testing.assert_allclose(a.y[:, -1], b.y[:, -1], atol=1e-6)
    with pytest.warns(lv.LivensWarning, match="SciPy integrates"):
        lv.solve_ivp(lambda t, y: -y * j0(y[:1, :]), (0, 1), [1.0, 2.0], vectorized=True)


def test_threads_share_traces():
    def error(c):
        return abs(lv.solve_ivp(lambda t, y, c: -c * y, (0, 1), [1.0], args=(c,), **TIGHT).y[0, -1] - np.exp(-c))

    with ThreadPoolExecutor(8) as pool:
        assert max(pool.map(error, np.linspace(0, 2, 40))) < 1e-10


@pytest.mark.parametrize("kind", ["quadratic", "cubic"])
def test_splines_of_interp1d_are_traced(kind):
    times = np.linspace(0, 5, 12)
    force = interp1d(times, np.sin(times), kind=kind)
    assert_equal_values(
        traced_function(lambda t, y: force(t) - y, 1),
        lambda t, y: force(t) - y,
        [(t, np.ones(1)) for t in times[1:-1] + 0.1],
    )
