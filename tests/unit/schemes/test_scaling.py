"""Scaling functions: what they say, what they are functions of, and which ones are refused."""

import casadi as ca
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import livens as lv
from livens import bodies, scaling
from livens import math as m
from livens.multibody.contacts.pair_contact import gap_contact

few = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
seeds = st.integers(0, 2**32 - 1)


def kepler():
    return lv.Hamiltonian("x y", kinetic=lambda p: p @ p / 2, potential=lambda q: -1 / m.norm(q))


def chain(exponent=4):
    return lv.Hamiltonian(
        "x y z",
        kinetic=lambda p, k: sum(p**2 / k.m) / 2,
        potential=lambda q: (q[0] - q[1]) ** exponent + m.cos(q[2]) * q[0] + q[1] ** 3,
        parameters=dict(m=[1.0, 2.0, 4.0]),
    )


def value(model, expression, q, p, *more):
    return np.array(model.function(expression)(q, p, 0, model.parameter_vector())).ravel()


# -- energies ---------------------------------------------------------------------------------------------------------
@given(seeds)
@few
def test_energies(seed):
    random = np.random.default_rng(seed)
    q, p = random.uniform(0.5, 1.5, 2), random.uniform(0.5, 1.5, 2)
    model, r, T = kepler(), np.linalg.norm(q), p @ p / 2
    for g, wanted, variables in (
        (scaling.kinetic(0.5), np.sqrt(T), "p"),
        (scaling.kinetic(), 1 / np.sqrt(T), "p"),
        (scaling.inverse_lagrangian(), 1 / (T + 1 / r), "qp"),
        (scaling.potential(1.5), r**1.5, "q"),
        (scaling.potential(2.0, sign=1, offset=5.0), (5 - 1 / r) ** -2.0, "q"),
        (scaling.user_scaling(lambda T, V: 1 / (T**2 + V**2)), 1 / (T**2 + r**-2), "qp"),
    ):
        assert g.evaluate_checked(model, q=q, p=p) == pytest.approx(wanted, rel=1e-13)
        assert g.variables(model) == variables and g.energies
        # S(p) = g(T, H0 - T) and U(q) = g(H0 - V, V) are equal on the level set (Modin 2009 paper III, eq. 11)
        H0 = model.energy(q, p)
        S, U = g.of_energies(model, model.T, H0 - model.T), g.of_energies(model, H0 - model.V, model.V)
        assert not ca.depends_on(S, model.q) and not ca.depends_on(U, model.p)
        assert value(model, S, q, p) == pytest.approx(value(model, U, q, p), rel=1e-11)


def test_equal_steps_in_space():
    """The power -1/2 of T, not the root of it, makes |q'| constant in fictive time (Modin 2009 paper III, eq. 13)."""
    model = kepler()
    lengths = {}
    for power in (-0.5, 0.5):
        way = ca.norm_2(scaling.kinetic(power).expression(model) * model.velocity)
        lengths[power] = [value(model, way, [1, 0], [a, b])[0] for a, b in ((1, 0), (0, 2), (3, -4))]
    assert lengths[-0.5] == pytest.approx([np.sqrt(2)] * 3, rel=1e-15)
    assert max(lengths[0.5]) > 20 * min(lengths[0.5])


# -- stiffness --------------------------------------------------------------------------------------------------------
@given(seeds)
@few
def test_stiffness_is_the_norm_of_second_derivatives(seed):
    random = np.random.default_rng(seed)
    q, p, c = random.uniform(0.5, 1.5, 3), random.uniform(0.5, 1.5, 3), random.uniform()
    model, mass = chain(), np.array([1.0, 2.0, 4.0])
    hessian = value(model, ca.vec(ca.densify(ca.hessian(model.V, model.q)[0])), q, p).reshape(3, 3)
    exact = (np.linalg.norm(hessian / mass[:, None]) + c) ** -0.5
    diagonal = (np.linalg.norm(np.diag(hessian) / mass) + c) ** -0.5
    g = scaling.stiffness(c)
    assert g.evaluate_checked(model, q=q, p=p) == pytest.approx(exact, rel=1e-12)
    assert scaling.stiffness(c, diagonal=True).evaluate_checked(model, q=q, p=p) == pytest.approx(diagonal, rel=1e-12)
    assert g.variables(model) == "q" and not g.energies


def test_stiffness_of_an_oscillator_is_its_frequency():
    model = lv.Hamiltonian("q", kinetic=lambda p: p[0] ** 2 / 6, potential=lambda q: 6 * q[0] ** 2)  # m = 3, c = 12
    assert scaling.stiffness(0.0).evaluate_checked(model, q=[0.3], p=[0.0]) == pytest.approx(1 / 2, rel=1e-15)


def test_stiffness_and_its_derivative_where_there_is_none():
    """Free motion: only the limit counts, and nothing becomes 0/0."""
    model = chain(exponent=2)
    free = lv.Hamiltonian("x y", kinetic=lambda p: p @ p / 2, potential=lambda q: (q[0] - q[1]) ** 4)
    for flat, g in ((free, scaling.stiffness(4.0)), (free, scaling.stiffness(4.0, diagonal=True))):
        expression = g.expression(flat)
        assert value(flat, expression, [1, 1], [0, 0])[0] == pytest.approx(0.5, rel=1e-15)
        assert value(flat, ca.gradient(expression, flat.q), [1, 1], [0, 0]).tolist() == [0, 0]
    slope = ca.gradient(scaling.stiffness(1.0).expression(model), model.q)
    assert np.all(np.isfinite(value(model, slope, [1, 1, 1], [0, 0, 0])))
    with pytest.raises(lv.InputError, match=r"stiffness\(0\) is inf in the initial state"):
        scaling.stiffness(0.0).evaluate_checked(
            lv.Hamiltonian("q", kinetic=lambda p: p[0] ** 2, potential=lambda q: q[0]), q=[0], p=[1]
        )


def two_walls(law="linear"):
    """Modin 2009 paper II, example 3.2, as contacts of a point."""
    point = bodies.particle("a", 1.0, dimension=1)
    soft, stiff = (
        bodies.sphere_plane((point, [0]), 0.0, [0], [side], stiffness=K, law=law) for side, K in ((-1, 1.0), (1, 1e4))
    )
    return lv.Hamiltonian.from_system(lv.System(bodies.coordinates([point]), elements=[point, soft, stiff]))


@given(st.floats(-0.05, 1.0), st.floats(1e-4, 1e-2))
@few
def test_contacts_set_in_smoothly(q, c):
    """Hooke's law: the stiffnesses of both walls, each times the square of the slope of the smoothed depth (29)."""
    model = two_walls()
    slopes = [0.5 + np.arctan(s * q / c) / np.pi for s in (1, -1)]
    wanted = (slopes[0] ** 2 + 1e4 * slopes[1] ** 2) ** -0.5
    for simplified in (False, True):  # in one dimension there is nothing to simplify
        g = scaling.stiffness(0.0, smoothing_length=c, diagonal=simplified)
        assert g.evaluate_checked(model, q=[q], p=[0]) == pytest.approx(wanted, rel=1e-12)
        slope = ca.gradient(g.expression(model), model.q)
        d = 1e-3 * c
        ahead, behind = (value(model, g.expression(model), [q + s * d], [0])[0] for s in (1, -1))
        assert value(model, slope, [q], [0])[0] == pytest.approx((ahead - behind) / (2 * d), rel=1e-4, abs=1e-8)


def test_hertz_contact_scales_too():
    model, c = two_walls("hertz"), 1e-3
    g = scaling.stiffness(0.0, smoothing_length=c)
    deep = g.evaluate_checked(model, q=[-0.5], p=[0])  # 0.5 deep: d/dx (1e4 x^(3/2))
    assert deep == pytest.approx((1.5 * 1e4 * np.sqrt(0.5)) ** -0.5, rel=1e-3)
    values = [g.evaluate_checked(model, q=[q], p=[0]) for q in np.linspace(-0.01, 0.01, 41)]
    assert np.all(np.diff(values) > 0)


def test_contacts_in_the_plane():
    """One contact of stiffness K in the direction n: K n n^T exactly, K on the diagonal if simplified."""
    ball = bodies.particle("ball", 2.0, dimension=2)
    spring = bodies.spring((ball, [0, 0]), [0, 0], stiffness=3.0)
    wall = bodies.sphere_plane((ball, [0, 0]), 0.1, [0, 0], [1, 1], stiffness=1e4)
    system = lv.System(bodies.coordinates([ball]), elements=[ball, spring, wall])
    model = lv.Hamiltonian.from_system(system)
    state = dict(q=[-1.0, -1.0], p=[0.0, 0.0])  # deep inside
    exact = np.linalg.norm(3 * np.eye(2) + 1e4 * np.ones((2, 2)) / 2) / 2
    full = scaling.stiffness(0.0, smoothing_length=1e-9)
    assert full.evaluate_checked(model, **state) == pytest.approx(exact**-0.5, rel=1e-8)
    diagonal = np.sqrt(2) * (3 + 1e4) / 2
    simple = scaling.stiffness(0.0, smoothing_length=1e-9, diagonal=True)
    assert simple.evaluate_checked(model, **state) == pytest.approx(diagonal**-0.5, rel=1e-8)
    with pytest.raises(lv.InputError, match="needs a `smoothing_length` for contacts, such as 'contact ball-plane'"):
        scaling.stiffness(1.0).evaluate_checked(model, **state)


@given(seeds)
@few
def test_estimate_is_the_stiffness_along_the_motion(seed):
    """Modin 2009 paper V, eq. 15, for a linear force: exact for any step."""
    random = np.random.default_rng(seed)
    K, mass = random.uniform(-1, 1, (2, 2)), random.uniform(1, 2)
    K = K @ K.T
    model = lv.Hamiltonian(
        "x y",
        kinetic=lambda p: p @ p / (2 * mass),
        potential=lambda q: 1e9 * q @ q,  # cheap: does not take part
        forces=lv.Force(lambda q: q @ K @ q / 2, expensive=True, conservative=True),
    )
    q, p, h, alpha = random.uniform(-1, 1, 2), random.uniform(0.5, 1, 2), random.uniform(1e-3, 1), 0.5
    s = scaling.stiffness_estimate(1e-9).expression(model, h, alpha)
    wanted = np.linalg.norm(K @ p) / mass / np.linalg.norm(p)
    assert value(model, s, q, p)[0] == pytest.approx((wanted + 1e-9) ** -0.5, rel=1e-7)
    at_rest = np.linalg.norm(K @ K @ q) / mass / np.linalg.norm(K @ q)  # along the acceleration
    s = scaling.stiffness_estimate(4.0).expression(model, h, alpha)
    assert value(model, s, q, [0, 0])[0] == pytest.approx((at_rest + 4.0) ** -0.5, rel=1e-7)
    assert value(model, s, [0, 0], [0, 0])[0] == pytest.approx(0.5)
    with pytest.raises(lv.InputError, match="min_omega2 must be greater than 0"):
        scaling.stiffness_estimate(0.0)
    with pytest.raises(lv.ModelError, match="constant mass matrix"):
        scaling.stiffness_estimate(1.0).expression(
            lv.Hamiltonian("q", hamiltonian=lambda q, p: q[0] * p[0] ** 2), h, alpha
        )


# -- speed, and those users write -------------------------------------------------------------------------------------
def test_speed():
    top = lv.Nambu(3, hamiltonians=[lambda x: x @ x / 2, lambda x: x[0] ** 2 + x[1] ** 2 / 2 + x[2] ** 2 / 4])
    x = [0.0, np.cos(0.2), np.sin(0.2)]
    wanted = 1 / (np.linalg.norm(top.evaluate(x)) + 0.01)  # Modin 2009 paper IV, 4.1
    assert scaling.speed(0.01).evaluate_checked(top, x=x) == pytest.approx(wanted, rel=1e-14)
    assert scaling.speed(0.01).variables(top) == "x"
    fall = lv.Hamiltonian("z", kinetic=lambda p: p[0] ** 2 / 2, potential=lambda q: 4 * q[0])
    assert scaling.speed().evaluate_checked(fall, q=[0], p=[3]) == pytest.approx(1 / 5, rel=1e-15)
    with pytest.raises(lv.InputError, match="offset must not be negative"):
        scaling.speed(-1.0)


def test_written():
    model = chain()
    g = scaling.user_scaling(lambda q, k: 1 / (q[0] ** 2 + k.m[1]))
    assert g.evaluate_checked(model, q=[2, 0, 0], p=[0, 0, 0]) == pytest.approx(1 / 6)
    assert g.evaluate_checked(model, q=[2, 0, 0], p=[0, 0, 0], parameters=dict(m=[1, 4, 1])) == pytest.approx(1 / 8)
    assert scaling.user_scaling(lambda q, p: q[0] + p[0]).variables(model) == "qp"
    assert scaling.user_scaling(lambda: 1.0).variables(model) == ""
    plane = lv.Nambu(2, hamiltonians=[lambda x: x @ x])
    assert scaling.user_scaling(lambda x: 2 + x[0]).evaluate_checked(plane, x=[1, 0]) == 3


# -- what is refused --------------------------------------------------------------------------------------------------
def test_bad_values_are_refused_with_a_reason():
    model, state = kepler(), dict(q=[1.0, 0.0], p=[0.0, 0.0])
    for g, words in (
        (scaling.kinetic(0.5), r"kinetic\(0.5\) is 0 in the initial state"),
        (scaling.kinetic(), r"kinetic\(-0.5\) is inf"),
        (scaling.potential(1.5, sign=1), r"potential\(1.5, sign=\+1, offset=0\) is nan"),
        (scaling.potential(1.0, sign=1), "is -1 in the initial state; it must be finite and greater than 0"),
        (scaling.user_scaling(lambda q: q[1]), "written by the user is 0"),
        (scaling.user_scaling(lambda q: -q[0]), "written by the user is -1"),
        (scaling.user_scaling(lambda q: m.log(q[1] - 1)), "written by the user is nan"),
        (scaling.user_scaling(lambda q: q), "scaling must be one number"),
        (scaling.user_scaling(lambda q, k: k.a), "unknown parameter 'k.a'"),
    ):
        with pytest.raises(lv.InputError, match=words):
            g.evaluate_checked(model, **state)
    with pytest.raises(lv.InputError, match="given by q and p, got x"):
        scaling.kinetic().evaluate_checked(model, x=[1, 2])
    with pytest.raises(lv.InputError, match="q must be 2 numbers"):
        scaling.kinetic().evaluate_checked(model, q=[1], p=[1, 2])


def test_scalings_that_do_not_fit_a_scheme():
    model = kepler()
    scaling.potential().require(model, "energies", "sundman")
    scaling.potential().require(model, "q", "sundman-doubled")
    scaling.inverse_lagrangian().require(model, "energies", "sundman")
    scaling.user_scaling(lambda q, p: 1 + q @ p).require(model, "state", "step-density")
    scaling.user_scaling(lambda: 1.0).require(model, "q", "sundman-doubled")
    for g, wants, words in (
        (scaling.stiffness(1.0), "energies", "function of the kinetic and the potential energy; .* is one of q$"),
        (scaling.kinetic(), "q", r"function of the coordinates alone; the scaling kinetic\(-0.5\) is one of p$"),
        (scaling.inverse_lagrangian(), "q", "is one of q and p$"),
        (scaling.user_scaling(lambda p: p[0]), "q", "the scaling written by the user is one of p$"),
        (scaling.user_scaling(lambda: 1.0), "energies", "is one of nothing$"),
    ):
        with pytest.raises(lv.InputError, match=f"scheme 'some' needs a scaling that is a .*{words}"):
            g.require(model, wants, "some")
    with pytest.raises(lv.InputError, match="is not a function of the kinetic and the potential energy"):
        scaling.stiffness(1.0).of_energies(model, model.T, model.V)


def test_scalings_that_do_not_fit_a_model():
    general = lv.Hamiltonian("q", hamiltonian=lambda q, p: p[0] ** 2 * (1 + q[0] ** 2))
    plane = lv.Nambu(2, hamiltonians=[lambda x: x @ x])
    for model in (general, plane):
        with pytest.raises(lv.InputError, match="given as kinetic and potential energy"):
            scaling.kinetic().expression(model)
        with pytest.raises(lv.InputError, match="constant mass matrix"):
            scaling.stiffness(1.0).expression(model)
    driven = lv.Hamiltonian("q", kinetic=lambda p: p[0] ** 2, potential=lambda q, t: -1 - t * q[0] ** 2)
    with pytest.raises(lv.InputError, match="depends on time"):
        scaling.potential().evaluate_checked(driven, q=[1], p=[1])
    with pytest.raises(lv.InputError, match="depends on time"):
        scaling.stiffness(1.0).require(driven, "q", "some")


def test_bad_arguments():
    for make, words in (
        (lambda: scaling.kinetic(np.nan), "power must be a finite number"),
        (lambda: scaling.kinetic("2"), "power must be a finite number"),
        (lambda: scaling.potential(1.0, sign=0), "sign must be -1 or 1"),
        (lambda: scaling.potential(1.0, offset=np.inf), "offset must be a finite number"),
        (lambda: scaling.stiffness(-1.0), "min_omega2 must not be negative"),
        (lambda: scaling.stiffness(1.0, smoothing_length=0.0), "smoothing_length must be greater than 0"),
        (lambda: scaling.user_scaling(3.0), "must be a function"),
        (lambda: scaling.user_scaling(lambda t: t), "has an argument 't'"),
        (lambda: scaling.user_scaling(lambda T, q: T), "not of both"),
    ):
        with pytest.raises(lv.InputError, match=words):
            make()


@pytest.mark.parametrize("limit", [0.001, 0.1])
def test_the_first_step_from_rest_knows_the_stiffness(limit):
    """Two walls from rest within one of them: at rest the estimate takes the way of the accelerated motion."""
    walls = lv.Hamiltonian(
        "x",
        kinetic=lambda p: p @ p / 2,
        forces=lv.Force(
            lambda q: 0.5 * 100.0 * lv.math.maximum(abs(q[0]) - 1, 0.0) ** 2, expensive=True, conservative=True
        ),
    )
    given = dict(q0=[1.1], p0=[0.0], scheme="semi-explicit:0.5,0.5", scaling=lv.scaling.stiffness_estimate(limit))
    run = lv.simulate(walls, h=0.3, t_end=0.15, **given)  # within the wall
    energy = run.observe("total_energy")
    assert run.t[1] < 0.05 and energy.max() < 1.1 * energy[0]


def test_contacts_are_counted_in_the_coordinates_they_touch():
    """Bodies that touch nothing do not shorten the steps."""
    values = []
    for count in (1, 4):
        names = [f"x{i}" for i in range(count)]
        elements = [lv.Element([name], kinetic=lambda v: v[0] ** 2 / 2) for name in names]
        elements.append(gap_contact(["x0"], lambda q, k: q, lambda w, k: [w[0]], stiffness=100.0))
        system = lv.System(names, elements=elements)
        model = lv.Hamiltonian.from_system(system)
        s = scaling.stiffness(1e-3, smoothing_length=0.01, diagonal=True).expression(model)
        f = ca.Function("s", [model.q, model.k], [s])
        values.append(float(f(np.full(count, -0.1), system.parameter_vector())))
    assert values[0] == pytest.approx(values[1], rel=1e-12)
