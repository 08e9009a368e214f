"""Modified Hamiltonians of splittings and modified matrices of linear systems, against measured drifts."""

import numpy as np
import pytest
from conftest import measured_order

import livens as lv
from livens import math as m

STEPS = [0.1 / 2**i for i in range(4)]
COUPLED = lv.Hamiltonian(
    "x y",
    kinetic=lambda p: p @ p / 2 + p[0] ** 4 / 8,
    potential=lambda q, k: (q @ q) / 2 + k.c * (q[0] ** 2 * q[1] - q[1] ** 3 / 3),
    parameters=dict(c=1.0),
)


def remaining(scheme, order, steps=STEPS, model=COUPLED):
    """What the truncated modified Hamiltonian changes by along runs, for every step size."""
    modified = lv.study.modified_hamiltonian(model, scheme, order)
    runs = [lv.simulate(model, q0=[0.1, 0.2], p0=[0.3, 0.1], scheme=scheme, h=h, t_end=10.0) for h in steps]
    return [np.ptp(modified.along(run)) for run in runs]


@pytest.mark.parametrize("order", range(4))
def test_each_term_explains_one_more_order_of_the_drift(order):
    assert measured_order(STEPS, remaining("symplectic-euler", order)) == pytest.approx(order + 1, abs=0.1)


@pytest.mark.parametrize(
    ("scheme", "order", "expected"),
    [("stormer-verlet", 2, 4), ("stormer-verlet", 4, 6), ("strang", 2, 4), ("yoshida-4:stormer-verlet", 4, 6)],
)
def test_symmetric_splittings_have_even_powers(scheme, order, expected):
    modified = lv.study.modified_hamiltonian(COUPLED, scheme, order)
    q, p = np.array([0.3, -0.2]), np.array([0.1, 0.4])
    assert modified.evaluate(q, p, 0.1) == pytest.approx(modified.evaluate(q, p, -0.1), abs=1e-15)
    steps = [0.2 / 2**i for i in range(4)]
    assert measured_order(steps, remaining(scheme, order, steps)) == pytest.approx(expected, abs=0.1)


def test_the_measured_amplitude_is_that_of_the_first_term():
    """`modified_energy` measures the amplitude of the energy in a run; the series predicts it."""
    modified = lv.study.modified_hamiltonian(COUPLED, "stormer-verlet", 2)
    run = lv.simulate(COUPLED, q0=[0.1, 0.2], p0=[0.3, 0.1], scheme="stormer-verlet", h=0.02, t_end=600.0)
    values = ca_values(modified, run)
    energy = run.observe("hamiltonian")
    assert np.ptp(energy) == pytest.approx(0.02**2 * np.ptp(values), rel=1e-3)
    measured = lv.study.modified_energy(run)
    assert measured.verdict == "oscillates, no drift"


def ca_values(modified, run):
    """The second term along a run: by the difference of two truncations."""
    first = lv.study.modified_hamiltonian(COUPLED, modified.scheme, 1)
    return modified.evaluate(run.q, run.p, 1.0) - first.evaluate(run.q, run.p, 1.0)


def test_parameters_and_systems():
    system = lv.System(
        "a", kinetic=lambda v: v @ v / 2, potential=lambda q, k: -k.g * m.cos(q[0]), parameters=dict(g=1.0)
    )
    modified = lv.study.modified_hamiltonian(system, "stormer-verlet", 4)
    run = lv.simulate(system, [1.0], [0.0], scheme="stormer-verlet", h=0.05, t_end=20.0, parameters=dict(g=3.0))
    assert np.ptp(modified.along(run)) < 1e-4 * np.ptp(run.observe("hamiltonian"))
    assert np.isscalar(modified.evaluate([1.0], [0.0], 0.05)) and modified.order == 4
    of_problem = lv.study.modified_hamiltonian(lv.problems.load("nonlinear-pendulum"), "gauss-2", 4)
    assert of_problem.order == 4 and lv.study.modified_equation(lv.problems.load("kepler"), "heun", 2).order == 2


def test_what_has_no_series_is_refused():
    driven = lv.Hamiltonian("q", kinetic=lambda p: p @ p, potential=lambda q, t: q[0] * t)
    with pytest.raises(lv.InputError, match="without time"):
        lv.study.modified_hamiltonian(driven, "stormer-verlet")
    for scheme in ("heun", "radau-iia-2"):
        with pytest.raises(lv.InputError, match="no symplectic Runge-Kutta method"):
            lv.study.modified_hamiltonian(COUPLED, scheme)
    with pytest.raises(lv.InputError, match=r"needs an energy T\(p\) \+ V\(q\)"):
        lv.study.modified_hamiltonian(MIXED, "stormer-verlet")
    run = lv.simulate(COUPLED, q0=[0.1, 0.2], p0=[0.3, 0.1], scheme="heun", h=0.1, t_end=1.0)
    with pytest.raises(lv.InputError, match="not of 'heun'"):
        lv.study.modified_hamiltonian(COUPLED, "stormer-verlet").along(run)


# -- Runge-Kutta methods: B-series over rooted trees -------------------------------------------------------------------
MIXED = lv.Hamiltonian(
    "x y",
    hamiltonian=lambda q, p, k: (
        (1 + k.a * m.cos(q[0])) * (p @ p) / 2 + 0.4 * p[0] * q[1] + (q @ q) / 2 + q[0] ** 2 * q[1] / 2
    ),
    parameters=dict(a=0.3),
)
SYMPLECTIC = {
    "implicit-midpoint": [(0, 2), (2, 4), (4, 6)],
    "gauss-2": [(0, 4), (4, 6)],
    "lobatto-iiia-iiib-2": [(2, 4), (4, 6)],
    "lobatto-iiia-iiib-3": [(4, 6)],
    "variational:0.25": [(0, 1), (1, 2), (2, 3), (3, 4)],
    "suzuki-4:implicit-midpoint": [(4, 6)],
}


@pytest.mark.parametrize("scheme", SYMPLECTIC)
@pytest.mark.parametrize("model", [COUPLED, MIXED], ids=["separable", "mixed"])
def test_elementary_hamiltonians_explain_the_energy_of_symplectic_methods(model, scheme):
    for order, expected in SYMPLECTIC[scheme]:
        steps = [0.2 / 2**i for i in range(4)]
        assert measured_order(steps, remaining(scheme, order, steps, model)) == pytest.approx(expected, abs=0.15)


@pytest.mark.parametrize("scheme", ["gauss-1", "implicit-midpoint"])
def test_both_names_of_the_midpoint_rule_have_one_series(scheme):
    """The known terms ``-H_zz(f, f)/24`` of order 2 (Hairer, Lubich and Wanner 2006, IX.8)."""
    import casadi as ca

    modified = lv.study.modified_hamiltonian(MIXED, scheme, 2)
    z = ca.vertcat(MIXED.q, MIXED.p)
    hessian, slope = ca.hessian(MIXED.H, z)
    field = ca.vertcat(slope[2:], -slope[:2])
    known = ca.Function("known", [MIXED.q, MIXED.p, MIXED.k], [-(field.T @ hessian @ field) / 24])
    q, p, h = [0.3, -0.2], [0.1, 0.4], 0.1
    second = modified.evaluate(q, p, h) - lv.study.modified_hamiltonian(MIXED, scheme, 1).evaluate(q, p, h)
    assert second == pytest.approx(h**2 * float(known(q, p, [0.3])), rel=1e-9)


def test_rooted_trees_and_brackets_agree():
    """Stoermer-Verlet as a partitioned Runge-Kutta pair and as a splitting, up to the power 6."""
    q, p = [0.3, -0.2], [0.1, 0.4]
    by_trees, by_brackets = (
        lv.study.modified_hamiltonian(COUPLED, scheme, 6).evaluate(q, p, 1.0)
        for scheme in ("lobatto-iiia-iiib-2", "stormer-verlet")
    )
    assert by_trees == pytest.approx(by_brackets, abs=1e-13)


@pytest.mark.parametrize(
    ("scheme", "order"),
    [("explicit-euler", 2), ("implicit-euler", 3), ("heun", 3), ("explicit-midpoint", 3), ("theta:0.6", 2)],
)
def test_the_modified_equation_explains_the_drift_of_other_methods(scheme, order):
    """Measured and predicted changes of the energy differ by the next power of h."""
    modified = lv.study.modified_equation(MIXED, scheme, order)
    steps, differences, changes = [0.02 / 2**i for i in range(4)], [], []
    for h in steps:
        run = lv.simulate(MIXED, q0=[0.1, 0.2], p0=[0.3, 0.1], scheme=scheme, h=h, t_end=3.0)
        changes.append(np.diff(run.observe("hamiltonian")[[0, -1]])[0])
        differences.append(abs(modified.drift(run) - changes[-1]))
    assert measured_order(steps, differences) == pytest.approx(order + 1, abs=0.2)
    assert differences[-1] < 0.1 * abs(changes[-1])


def test_the_modified_equation_of_a_first_order_system_is_solved_by_the_method():
    """An accurate solution of the truncated equation meets the steps of the method up to the next power."""
    from scipy.integrate import solve_ivp

    prey = lv.FirstOrder("a b", rhs=lambda x, k: [x[0] * (1 - x[1]), k.d * x[1] * (x[0] - 2)], parameters=dict(d=1.0))
    changed = dict(d=1.5)
    for scheme, order in (("radau-iia-2", 4), ("heun", 3)):
        modified = lv.study.modified_equation(prey, scheme, order)
        steps, errors = [0.1 / 2**i for i in range(4)], []
        for h in steps:
            run = lv.simulate(prey, x0=[1.0, 0.5], scheme=scheme, h=h, t_end=1.0, parameters=changed)
            exact = solve_ivp(
                lambda t, x, h=h: modified.evaluate(x, h, changed), (0, 1), [1.0, 0.5], "DOP853", rtol=1e-13, atol=1e-14
            )
            errors.append(np.abs(run.x[-1] - exact.y[:, -1]).max())
        assert measured_order(steps, errors) == pytest.approx(order + 1, abs=0.2)
    with pytest.raises(lv.InputError, match="needs a System or a Hamiltonian"):
        modified.energy_rate([1.0, 2.0], 0.1)
    with pytest.raises(lv.InputError, match="must have 2 entries"):
        modified.evaluate([1.0], 0.1)


def test_what_has_no_modified_equation_is_refused():
    driven = lv.FirstOrder("a", rhs=lambda x, t: [-x[0] + t])
    with pytest.raises(lv.InputError, match="depends on time"):
        lv.study.modified_equation(driven, "gauss-2")
    with pytest.raises(lv.InputError, match="is no Runge-Kutta method"):
        lv.study.modified_equation(COUPLED, "stormer-verlet")
    pendulum = lv.problems.load("pendulum")
    with pytest.raises(lv.InputError):
        lv.study.modified_equation(pendulum.model, "gauss-2")


# -- linear systems ---------------------------------------------------------------------------------------------------
SWING = lv.Hamiltonian("q", kinetic=lambda p: p[0] ** 2 / 2, potential=lambda q: q[0] ** 2 / 2)


@pytest.mark.parametrize(("scheme", "rate"), [("heun", 1 / 8), ("implicit-extrapolation", -1 / 4)])
def test_growth_of_a_linear_oscillator(scheme, rate):
    """The energy of a run grows at twice the real part of the eigenvalues, to round-off of a line."""
    h = 0.05
    real = np.linalg.eigvals(lv.study.modified_matrix(SWING, scheme, h)).real
    assert real == pytest.approx(rate * h**3, rel=2e-2)
    run = lv.simulate(SWING, q0=[1.0], p0=[0.0], scheme=scheme, h=h, t_end=50.0)
    growth = np.log(run.observe("hamiltonian")[-1] / run.observe("hamiltonian")[0])
    assert growth == pytest.approx(2 * real[0] * 50.0, rel=2e-2)


@pytest.mark.parametrize("scheme", ["implicit-midpoint", "stormer-verlet", "gauss-2"])
def test_symplectic_schemes_do_not_grow(scheme):
    values = np.linalg.eigvals(lv.study.modified_matrix(SWING, scheme, 0.2))
    assert np.abs(values.real).max() < 1e-14
    exact = {"implicit-midpoint": np.arctan(0.1) * 2 / 0.2, "stormer-verlet": np.arccos(1 - 0.02) / 0.2}
    assert np.abs(values.imag).max() == pytest.approx(exact.get(scheme, 1.0), rel=1e-5)


def test_first_order_systems_and_bad_input():
    decay = lv.FirstOrder("a b", rhs=lambda x: [-x[0], -3 * x[1] + x[0]])
    matrix = lv.study.modified_matrix(decay, "implicit-euler", 0.1)
    assert sorted(np.linalg.eigvals(matrix)) == pytest.approx([-np.log(1.3) / 0.1, -np.log(1.1) / 0.1])
    with pytest.raises(lv.InputError, match="not a linear map"):
        lv.study.modified_matrix(COUPLED, "stormer-verlet", 0.1)
    with pytest.raises(lv.InputError, match="no real logarithm"):
        lv.study.modified_matrix(decay, "explicit-euler", 0.8)
