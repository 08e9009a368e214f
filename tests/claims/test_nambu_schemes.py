"""Splittings of Nambu systems: orders, what they conserve, volumes, periodic orbits, adaptive steps."""

import casadi as ca
import numpy as np
import pytest
from conftest import measured_order
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import livens as lv
from livens import scaling
from livens.errors import InputError
from livens.problems import load
from livens.schemes.splitting.nambu import Rotations

FIXED, ADAPTIVE = ("nambu-t", "nambu-m", "nambu-mt"), ("nambu-t-g", "nambu-m-g", "nambu-mt-g")
OTHER = ("nambu-t-g:-1", "nambu-t-g:2", "nambu-mt-g:0.5")
#: In fictive time this makes a mean step of about 0.15, as in Modin 2009 paper IV, 4.1.
EPS = 0.054
seeds = st.integers(0, 2**32 - 1)


def ellipsoids(I=(0.7, 1.1, 2.3), m=(1.0, 2.0, 0.5)):  # noqa: E741
    return lv.Nambu(
        "a b c",
        hamiltonians=dict(M=lambda x, k: sum(k.m * x**2) / 2, T=lambda x, k: sum(x**2 / k.I) / 2),
        parameters=dict(I=I, m=m),
    )


def one_step(model, scheme, h):
    """A step as a function of the state of the run, and of (x, density) where there is one."""
    e = scheme.equations(model).to_single_graph()
    assert e.size == 0
    c = np.concatenate([[h, 0.0], model.parameter_vector()])
    return ca.Function("step", [e.z], [e.final_state_function(ca.SX(0, 1), e.z, c)]), e.layout


# -- the reference ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("I", "angle"), [((0.5, 1.0, 2.0), 0.2), ((0.3, 1.5, 1.6), 1.3)])
def test_reference(I, angle):  # noqa: E741
    problem = load("euler-top", I=I, angle=angle)
    times = np.linspace(0, 20, 30)
    x0, tight = problem.initial_values["x0"], dict(rtol=1e-12, atol=1e-12)
    f = solve_ivp(lambda t, x: problem.model.evaluate(x), (0, 20), x0, "DOP853", times, **tight)
    assert np.abs(f.y.T - [problem.reference(t)["x"] for t in times]).max() < 1e-10


# -- orders -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scheme", [*FIXED, *ADAPTIVE, *OTHER])
def test_orders(scheme):
    problem, t = load("euler-top"), 7.3
    steps = [(0.15 if scheme in FIXED else EPS) / 2**i for i in range(1, 6)]
    errors = [
        np.abs(lv.simulate(problem, scheme=scheme, h=h, t_end=t).x[-1] - problem.reference(t)["x"]).max() for h in steps
    ]
    assert lv.schemes.get(scheme).order == 2
    assert measured_order(steps, errors) == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("scheme", [*FIXED, *ADAPTIVE])
def test_orders_of_compositions(scheme):
    problem, t = load("euler-top"), 7.3
    steps = [(0.2 if scheme in FIXED else 0.06) / 1.5**i for i in range(1, 6)]
    errors = [
        np.abs(lv.simulate(problem, scheme=f"suzuki-4:{scheme}", h=h, t_end=t).x[-1] - problem.reference(t)["x"]).max()
        for h in steps
    ]
    assert measured_order(steps, errors) == pytest.approx(4, abs=0.1)


@pytest.mark.parametrize("scheme", ["gauss-2", "radau-iia-2"])
def test_runge_kutta_methods_run_too(scheme):
    problem, t = load("euler-top"), 7.3
    order = lv.schemes.get(scheme).order
    steps = [0.2 / 2**i for i in range(5)]
    errors = [
        np.abs(lv.simulate(problem, scheme=scheme, h=h, t_end=t).x[-1] - problem.reference(t)["x"]).max() for h in steps
    ]
    assert measured_order(steps, errors) == pytest.approx(order, abs=0.1)
    drift = lv.simulate(problem, scheme="gauss-2").summary.momentum_drift
    assert max(drift.values()) < 1e-13  # both Hamiltonians are quadratic


# -- one step ---------------------------------------------------------------------------------------------------------
@settings(max_examples=10, deadline=None)
@given(seeds)
def test_volumes(seed):
    """Preserved by all: in x, and in (x, density) with adaptive steps."""
    random = np.random.default_rng(seed)
    model, x = ellipsoids(random.uniform(0.5, 2, 3), random.uniform(0.5, 2, 3)), random.uniform(-1, 1, 3)
    for name in (*FIXED, *ADAPTIVE):
        scheme = lv.schemes.get(name)
        scheme = scheme.with_scaling(scaling.speed(0.3)) if scheme.fictive else scheme
        step, layout = one_step(model, scheme, 0.1)
        z = layout.pack({"x": x, **({"step_density": 0.7} if scheme.fictive else {})})
        J = np.array(ca.Function("J", step.sx_in(), [ca.jacobian(step(step.sx_in()[0]), step.sx_in()[0])])(z))
        index = [*range(3), *([layout["step_density"].start] if scheme.fictive else [])]
        assert np.linalg.det(J[np.ix_(index, index)]) == pytest.approx(1, abs=1e-12)


@settings(max_examples=10, deadline=None)
@given(seeds)
def test_reversibility(seed):
    """A step, one state mirrored, a step: back, for each of the three mirrors."""
    random = np.random.default_rng(seed)
    model, x = ellipsoids(), random.uniform(-1, 1, 3)
    for name in (*FIXED, *ADAPTIVE):
        scheme = lv.schemes.get(name)
        scheme = scheme.with_scaling(scaling.speed(0.3)) if scheme.fictive else scheme
        step, layout = one_step(model, scheme, 0.1)
        z = layout.pack({"x": x, **({"step_density": 0.7} if scheme.fictive else {})})
        for i in range(3):
            mirror = np.ones(layout.size)
            mirror[i] = -1
            back = mirror * np.array(step(mirror * np.array(step(z)).ravel())).ravel()
            if scheme.fictive:
                back[layout["t"]] = 0.0
            assert np.abs(back - z).max() < 1e-13


@settings(max_examples=10, deadline=None)
@given(seeds)
def test_the_parts_of_nambu_t_are_exact_flows(seed):
    """Each turns the state on the ellipsoid M: against the field of the same part, for any positive coefficients."""
    random = np.random.default_rng(seed)
    coefficients, x = random.uniform(0.5, 2, 3), random.uniform(-1, 1, 3)
    model, k = ellipsoids(m=coefficients), ellipsoids(m=coefficients).parameter_vector()
    for i, flow in enumerate(lv.schemes.get("nambu-t").subflows(model, ca.DM(k))):
        t = np.zeros(3)
        t[i] = 1 / np.array(model.parameters["I"])[i]
        field = solve_ivp(
            lambda s, y, t=t: np.cross(coefficients * y, t * y), (0, 0.7), x, "DOP853", rtol=1e-12, atol=1e-13
        )
        assert np.abs(np.array(ca.evalf(flow(ca.SX(ca.DM(x)), 0.7))).ravel() - field.y[:, -1]).max() < 1e-10


# -- the experiment (Modin paper IV, 4.1) ------------------------------------------------------------------------------
def errors_of(scheme, h, steps=1000):
    run = lv.simulate(load("euler-top"), scheme=scheme, h=h, t_end=0.15 * steps)
    return run, *(np.abs(run.observe(name) - run.observe(name)[0]) for name in ("momentum", "kinetic_energy"))


def test_what_is_conserved():
    """M to round-off by nambu-t and nambu-t-g, T by nambu-m and nambu-m-g, and neither by the others; nothing drifts,
    also ten times longer."""
    for scheme in (*FIXED, *ADAPTIVE):
        for steps in (1000, 10000):
            run, M, T = errors_of(scheme, 0.15 if scheme in FIXED else EPS, steps)
            assert np.mean(run.step_size[1:]) == pytest.approx(0.15, rel=0.02)
            assert M.max() < 3e-14 if scheme in ("nambu-t", "nambu-t-g") else 1e-4 < M.max() < 1.5e-3
            if scheme in ("nambu-m", "nambu-m-g"):
                assert T.max() < 5e-14
                continue
            assert 1e-4 < T.max() < 1e-3
            assert T[len(T) // 2 :].max() == pytest.approx(T[: len(T) // 2].max(), rel=0.02)


@pytest.mark.parametrize("h", [0.15, 0.075, 0.0375])
def test_adaptive_steps_make_errors_smaller(h):
    """At equal mean steps: nambu-mt by a factor of four in M and three in T, at all steps.

    With nambu-t, in the order T1, T2, T3 of the parts, errors become larger; in the order T2, T1, T3 smaller.
    """
    eps = EPS * h / 0.15
    (_, M, T), (_, M_g, T_g) = errors_of("nambu-mt", h), errors_of("nambu-mt-g", eps)
    assert M_g.max() < 0.3 * M.max() and T_g.max() < 0.35 * T.max()
    (_, _, T), (_, _, T_g) = errors_of("nambu-t", h), errors_of("nambu-t-g", eps)
    assert 1.4 * T.max() < T_g.max() < 1.7 * T.max()


def test_another_order_of_the_rotations(monkeypatch):
    usual = Rotations.subflows
    monkeypatch.setattr(Rotations, "subflows", lambda self, model, k: [usual(self, model, k)[i] for i in (1, 0, 2)])
    # not through `simulate`: the equations of a scheme and a model are kept there
    model, largest = ellipsoids(I=(0.5, 1.0, 2.0), m=(1.0, 1.0, 1.0)), {}
    T = model.function(model.hamiltonians[1])
    for name, h in (("nambu-t", 0.15), ("nambu-t-g", EPS)):
        scheme = lv.schemes.get(name)
        scheme = scheme.with_scaling(scaling.speed(0.01)) if scheme.fictive else scheme
        step, layout = one_step(model, scheme, h)
        x0 = load("euler-top").initial_values["x0"]
        memory = scheme.initial_scheme_state(model, {"x": x0}, model.parameter_vector(), 0.0, h)
        path = np.array(step.mapaccum(1000)(layout.pack({"x": x0, **memory})))
        energies = np.array([float(T(x, model.parameter_vector())) for x in path[:3].T])
        largest[name] = np.abs(energies - float(T(x0, model.parameter_vector()))).max()
    assert largest["nambu-t-g"] < 0.6 * largest["nambu-t"]


def section(scheme, h):
    """Return places and times of the descending crossings of x1 = 0 in 10000 steps, by linear interpolation."""
    run = lv.simulate(load("euler-top"), scheme=scheme, h=h, t_end=1500.0)
    x, n = run.x, np.flatnonzero((run.x[:-1, 0] > 0) & (run.x[1:, 0] <= 0))
    w = x[n, 0] / (x[n, 0] - x[n + 1, 0])
    return x[n] + w[:, None] * (x[n + 1] - x[n]), run.t[n] + w * (run.t[n + 1] - run.t[n])


@pytest.mark.parametrize("scheme", [*FIXED, *ADAPTIVE])
def test_orbits_are_periodic(scheme):
    """Modin 2009 paper IV, Fig. 1: through the section at the same place again and again, after the same time."""
    places, times = section(scheme, 0.15 if scheme in FIXED else EPS)
    assert len(places) > 85
    assert np.ptp(places[:, 2]) < 5e-3 and gone(places) < 0.2
    periods = np.diff(times)
    assert periods.std() < 0.01 * periods.mean()
    assert periods[-20:].mean() == pytest.approx(periods[:20].mean(), rel=1e-3)


def gone(places):
    """Return the distance of the last places from the first ones relative to the spread of all."""
    return abs(places[-20:, 2].mean() - places[:20, 2].mean()) / np.ptp(places[:, 2])


def test_orbits_of_a_usual_method_are_not_periodic():
    """Heun's method of the same order spirals away."""
    assert gone(section("heun", 0.15)[0]) > 0.7


# -- input ------------------------------------------------------------------------------------------------------------
def test_what_does_not_fit():
    twisted = lv.Nambu(3, hamiltonians=[lambda x: x @ x / 2, lambda x: x[0] * x[1]])
    with pytest.raises(InputError, match="sums of squares"):
        lv.simulate(twisted, x0=[1.0, 0, 0], scheme="nambu-t", h=0.1, t_end=1.0)
    with pytest.raises(InputError, match="positive coefficients"):
        lv.simulate(ellipsoids(m=(1.0, -1.0, 1.0)), x0=[1.0, 0, 0], scheme="nambu-t", h=0.1, t_end=1.0)
    with pytest.raises(InputError, match="not depend on their own"):
        lv.simulate(twisted, x0=[1.0, 0, 0], scheme="nambu-mt", h=0.1, t_end=1.0)
    with pytest.raises(InputError, match="starts from x0"):
        lv.simulate(ellipsoids(), q0=[1.0, 0, 0], scheme="nambu-t", h=0.1, t_end=1.0)
    with pytest.raises(InputError, match="x0 is missing"):
        lv.simulate(ellipsoids(), scheme="nambu-t", h=0.1, t_end=1.0)
    with pytest.raises(InputError, match="needs a scaling"):
        lv.simulate(ellipsoids(), x0=[1.0, 0, 0], scheme="nambu-t-g", h=0.1, t_end=1.0)
    with pytest.raises(InputError, match="is 0 in the initial state"):
        lv.simulate(ellipsoids(), x0=[1.0, 0, 0], scheme="nambu-t-g", h=0.1, t_end=1.0, scaling=lambda x: x[1] ** 2)
    for options, words in ((dict(I=(1.0, 0.0, 2.0)), "greater than 0"), (dict(angle=0.0), "between 0")):
        with pytest.raises(InputError, match=words):
            load("euler-top", **options)


def test_names_of_hamiltonians():
    named, plain = ellipsoids(), lv.Nambu(3, hamiltonians=[lambda x: x @ x / 2, lambda x: x[0] ** 2])
    assert list(named.symmetries) == ["M", "T"] and list(plain.symmetries) == ["H1", "H2"]
    run = lv.simulate(plain, x0=[1.0, 0.5, 0], scheme="nambu-mt", h=0.1, t_end=1.0)
    assert run.observe("H1").shape == (11,)
    assert set(run.summary.momentum_drift) == {"H1", "H2"}


# -- another extra Hamiltonian ----------------------------------------------------------------------------------------
def test_the_power_zero_is_the_logarithm():
    problem = load("euler-top")
    for name in ("nambu-t-g", "nambu-mt-g"):
        one, two = (lv.simulate(problem, scheme=s, h=EPS, t_end=20.0) for s in (name, f"{name}:0"))
        assert np.array_equal(one.x, two.x) and np.array_equal(one.t, two.t)
    with pytest.raises(InputError, match="the power 1 has equal steps"):
        lv.schemes.get("nambu-t-g:1")


@pytest.mark.parametrize("power", [-1.0, 0.5, 2.0])
def test_steps_follow_the_scaling_with_every_extra_hamiltonian(power):
    """``G2'(xi) = g`` but for errors of the scheme; the first Hamiltonian stays exact; volumes in (x, xi) are kept."""
    problem = load("euler-top")
    run = lv.simulate(problem, scheme=f"nambu-t-g:{power}", h=EPS / 10, t_end=20.0)
    rates = np.linalg.norm([problem.model.evaluate(x) for x in run.x[:-1]], axis=1)
    wanted = EPS / 10 / (rates + 0.01)
    middle = (wanted[1:] + wanted[:-1]) / 2
    assert (
        np.abs(run.step_size[1:-1] / middle - 1).max() < 0.03
        and run.step_size[1:-1].max() > 5 * run.step_size[1:-1].min()
    )
    assert run.summary.momentum_drift["momentum"] < 1e-13
    model, scheme = ellipsoids(), lv.schemes.get(f"nambu-mt-g:{power}").with_scaling(scaling.speed(0.3))
    step, layout = one_step(model, scheme, 0.05)
    z = layout.pack({"x": [0.4, -0.3, 0.7], "step_density": 1.3})
    J = np.array(ca.Function("J", step.sx_in(), [ca.jacobian(step(step.sx_in()[0]), step.sx_in()[0])])(z))
    index = [*range(3), layout["step_density"].start]
    assert np.linalg.det(J[np.ix_(index, index)]) == pytest.approx(1, abs=1e-12)


def test_the_second_hamiltonian_is_kept_if_the_first_is_split():
    """Remark 4.3 of paper IV, fixed and adaptive: T to round-off, M not, and neither drifts."""
    problem = load("euler-top")
    for name, h in (("nambu-m", 0.15), ("nambu-m-g", EPS)):
        run = lv.simulate(problem, scheme=name, h=h, t_end=500.0)
        assert run.summary.momentum_drift["kinetic_energy"] < 1e-12 < 1e-5 < run.summary.momentum_drift["momentum"]
        M = run.observe("momentum")
        half = len(M) // 2
        assert np.ptp(M[half:]) < 1.1 * np.ptp(M[:half])
    backwards = lv.Nambu("a b c", hamiltonians=[lambda x: x @ x / 2, lambda x: x[0] ** 2 - x[1] ** 2])
    with pytest.raises(InputError, match="a second Hamiltonian with positive coefficients"):
        lv.simulate(backwards, x0=[1.0, 0.2, 0.1], scheme="nambu-m", h=0.1, t_end=1.0)
