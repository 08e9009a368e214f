"""Compositions of symmetric schemes: order conditions, measured orders, and what carries over."""

import itertools
import math

import numpy as np
import pytest
from conftest import measured_order
from scipy.integrate import solve_ivp

import livens as lv
from livens.errors import InputError
from livens.schemes.splitting.composition import ORDERS, composition_weights, concatenate_substeps
from stepping import OneStep, reversibility_defect, symmetry_defect, symplecticity_defect

METHODS = ("yoshida", "triple-jump", "suzuki", "kahan-li")
ALL = [(method, order) for method in METHODS for order in ORDERS if (method, order) != ("kahan-li", 4)]


def kepler(e=0.3):
    return lv.problems.load("kepler", e=e)


def words(order):
    """Products of X_1, X_3, X_5, X_7 of a degree up to `order`: (), (1,), (1, 1), (3,), ..."""
    found = [()]
    for length in range(1, order + 1):
        found += [w for w in itertools.product((1, 3, 5, 7), repeat=length) if sum(w) <= order]
    return found


def composed(steps, order):
    """The coefficients of ``prod_i exp(w_i X_1 + w_i^3 X_3 + w_i^5 X_5 + ...)`` up to a degree."""
    total = {w: float(not w) for w in words(order)}
    for weight in steps:
        one = {w: weight ** sum(w) / math.factorial(len(w)) for w in total}
        total = {w: sum(total[w[:i]] * one[w[i:]] for i in range(len(w) + 1)) for w in total}
    return total


@pytest.mark.parametrize(("method", "order"), ALL)
def test_order_conditions(method, order):
    """Up to the order, the product is ``exp(X_1)``, for X that do not commute; one degree further it is not."""
    steps = composition_weights(method, order)
    assert steps == steps[::-1]
    size = 1e-15 * len(steps) * max(1.0, *map(abs, steps)) ** order  # of round-off
    for w, value in composed(steps, order).items():
        exact = 1 / math.factorial(len(w)) if set(w) <= {1} else 0.0
        assert abs(value - exact) < size, w
    # an odd degree is the first that can fail
    worse = composed(steps, order + 1)
    assert max(abs(value) for w, value in worse.items() if set(w) - {1}) > 1e-9


def test_numbers_of_steps():
    count = {(method, order): len(composition_weights(method, order)) for method, order in ALL}
    assert [count["yoshida", order] for order in ORDERS] == [3, 7, 15]
    assert [count["triple-jump", order] for order in ORDERS] == [3, 9, 27]
    assert [count["suzuki", order] for order in ORDERS] == [5, 25, 125]
    assert [count["kahan-li", order] for order in (6, 8)] == [9, 17]


#: Step sizes where errors are in the asymptotic range and above round-off.
LARGEST = {
    ("yoshida", 4): 0.05, ("triple-jump", 4): 0.05, ("suzuki", 4): 0.2, ("yoshida", 6): 0.1, ("triple-jump", 6): 0.05,
    ("suzuki", 6): 0.25, ("kahan-li", 6): 0.2, ("yoshida", 8): 0.12, ("triple-jump", 8): 0.06, ("kahan-li", 8): 0.3,
}  # fmt: skip


def slope(problem, scheme, largest, t_end=3.0):
    steps, found = [largest / 2 ** (i / 2) for i in range(5)], []
    exact = problem.reference(t_end)
    for h in steps:
        run = lv.simulate(problem, scheme=scheme, h=h, t_end=t_end)
        found.append(np.linalg.norm(np.concatenate([run.q[-1] - exact["q"], run.v[-1] - exact["v"]])))
    return measured_order(steps, found)


@pytest.mark.parametrize(("method", "order"), ALL)
def test_orders_of_explicit_compositions(method, order):
    scheme = lv.schemes.get(f"{method}-{order}:stormer-verlet")
    assert scheme.order == order and scheme.symplectic and scheme.symmetric and not scheme.implicit
    assert scheme.equations(kepler().model).to_single_graph().size == 0
    if (method, order) in LARGEST:
        assert abs(slope(kepler(), scheme, LARGEST[method, order]) - order) < 0.1
    assert lv.simulate(kepler(), scheme=scheme, h=0.1, t_end=1.0).statistics.newton_iterations == 0


def test_the_order_of_125_steps():
    """Its errors are so small that they show above round-off only after a long time."""
    oscillator = lv.Hamiltonian("x", kinetic=lambda p: p @ p / 2, potential=lambda q: q @ q / 2)
    steps, found = [1000 / n for n in (1200, 1300, 1400, 1500, 1600, 1800)], []
    for h in steps:
        run = lv.simulate(
            oscillator, q0=[1.0], p0=[0.0], scheme="suzuki-8:stormer-verlet", h=h, t_end=1000.0, every=10000
        )
        found.append(np.hypot(run.q[-1, 0] - np.cos(1000.0), run.p[-1, 0] + np.sin(1000.0)))
    assert abs(measured_order(steps, found) - 8) < 0.1


@pytest.mark.parametrize(
    ("scheme", "largest", "unknowns"),
    [
        ("yoshida-4:implicit-midpoint", 0.05, 3 * 2), ("kahan-li-6:implicit-midpoint", 0.2, 9 * 2),
        ("yoshida-4:variational-sym:0.3", 0.05, 3 * 2), ("suzuki-4:livens-em", 0.2, 5 * 2),
        ("yoshida-4:livens-midpoint", 0.05, 3 * 2), ("yoshida-6:livens-midpoint", 0.1, 7 * 2),
        ("yoshida-4:trapezoidal", 0.05, 3 * 4), ("suzuki-4:strang", 0.2, 0),
    ],
)  # fmt: skip
def test_orders_of_other_compositions(scheme, largest, unknowns):
    """Implicit maps, element schemes, methods that are not symplectic."""
    scheme = lv.schemes.get(scheme)
    assert scheme.equations(kepler().model).to_single_graph().size == unknowns
    assert abs(slope(kepler(), scheme, largest) - scheme.order) < 0.1


def test_driven_systems_know_the_time_of_every_part():
    rotor = lv.problems.load("rotor", eps=1.0)
    for scheme in ("suzuki-4:strang", "yoshida-4:implicit-midpoint", "suzuki-4:stormer-verlet"):
        assert abs(slope(rotor, scheme, 0.4, t_end=4.0) - 4) < 0.1


def test_first_order_models():
    model = lv.FirstOrder("a b", rhs=lambda x: [x[1], -lv.math.sin(x[0])])
    pendulum = lv.problems.load("nonlinear-pendulum")
    exact, steps = pendulum.reference(2.0), [0.2 / 2**i for i in range(4)]
    for name in ("yoshida-4:trapezoidal", "triple-jump-6:gauss-2"):
        scheme = lv.schemes.get(name)
        found = [
            abs(lv.simulate(model, x0=[np.pi / 2, 0.0], scheme=scheme, h=h, t_end=2.0).x[-1, 0] - exact["q"][0])
            for h in (steps if scheme.order == 4 else [2 * h for h in steps])
        ]
        assert abs(measured_order(steps, found) - scheme.order) < 0.1
    assert len(lv.schemes.get("triple-jump-6:gauss-2").weights) == 3  # gauss-2 is of order 4 already


@pytest.mark.parametrize(("scheme", "largest"), [("yoshida-4:sundman", 0.15), ("suzuki-4:step-density", 0.2)])
def test_schemes_with_adaptive_steps(scheme, largest):
    """Composed in fictive time; time itself is part of the state."""
    problem = kepler(0.6)
    steps, found = [largest / 2 ** (i / 2) for i in range(5)], []
    for h in steps:
        run = lv.simulate(problem, scheme=scheme, h=h, t_end=3.0)
        found.append(np.linalg.norm(run.q[-1] - problem.reference(3.0)["q"]))
    assert abs(measured_order(steps, found) - 4) < 0.1
    assert run.statistics.newton_iterations == 0 and np.ptp(run.step_size[1:-1]) > 0.01


def test_orders_with_constraints():
    pendulum = lv.problems.load("simple-pendulum")
    steps, found = [0.04 / 2**i for i in range(4)], []
    for h in steps:
        run = lv.simulate(pendulum, scheme="yoshida-4:livens-em", h=h, t_end=1.0)
        found.append(np.linalg.norm(run.q[-1] - pendulum.reference(1.0)["q"]))
    assert abs(measured_order(steps, found) - 4) < 0.1


def test_geometry_carries_over():
    model = lv.Hamiltonian("x y", kinetic=lambda p: p @ p / 2, potential=lambda q: -1 / lv.math.norm(q))
    q, p = np.array([0.8, 0.1]), np.array([0.2, 1.1])
    for name in ("yoshida-6:stormer-verlet", "suzuki-4:implicit-midpoint", "kahan-li-8:stormer-verlet"):
        assert symplecticity_defect(model, name, q, p, 0.1) < 1e-8
        assert symmetry_defect(model, name, q, p, 0.1) < 1e-13
        assert reversibility_defect(model, name, q, p, 0.1) < 1e-13
    assert symplecticity_defect(model, "yoshida-4:trapezoidal", q, p, 0.1) > 1e-6


def test_what_is_conserved_stays_conserved():
    """Energy and angular momentum by every part of the step, constraints too; not by what does not conserve them."""
    run = lv.simulate(kepler(0.6), scheme="yoshida-4:livens-em", h=0.05, t_end=20.0)
    assert run.summary.max_energy_drift < 1e-12 and run.summary.momentum_drift["angular_momentum"] < 1e-12
    run = lv.simulate(kepler(0.6), scheme="yoshida-4:stormer-verlet", h=0.05, t_end=20.0)
    assert run.summary.max_energy_drift > 1e-6 and run.summary.momentum_drift["angular_momentum"] < 1e-12
    pendulum = lv.problems.load("simple-pendulum")
    run = lv.simulate(pendulum, scheme="suzuki-4:livens-em", h=0.02, t_end=2.0)
    assert run.summary.max_energy_drift < 1e-12 and run.summary.max_constraint < 1e-13


def test_parts_are_the_steps_they_are_made_of():
    """One composed step against steps of the parts' sizes, one by one."""
    model = kepler().model
    for base in ("stormer-verlet", "implicit-midpoint"):
        scheme = lv.schemes.compose(base, 4)
        whole = lv.simulate(kepler(), scheme=scheme, h=0.1, t_end=0.1)
        z = np.concatenate([kepler().q0, kepler().v0])
        for weight in scheme.weights:
            z = OneStep(model, base, 0.1 * weight)(z)
        assert np.concatenate([whole.q[-1], whole.p[-1]]) == pytest.approx(z, abs=1e-14)


def test_work_of_all_parts_is_counted():
    model = lv.System(
        "x", kinetic=lambda v: v @ v / 2, potential=lambda q: q @ q / 2, dissipation=lambda v: 0.1 * v @ v
    )
    run = lv.simulate(model, q0=[1.0], v0=[0.0], scheme="yoshida-4:implicit-midpoint", h=0.1, t_end=5.0)
    assert run.summary.max_energy_drift < 1e-13 and run.dissipated_energy[-1] > 0.2


def test_compose_and_its_names():
    assert lv.schemes.compose("stormer-verlet", 6, "kahan-li") == lv.schemes.get("kahan-li-6:stormer-verlet")
    assert lv.schemes.compose("stormer-verlet", 4) != lv.schemes.compose("strang", 4)
    assert lv.schemes.get("yoshida-4:variational-sym:0.25").base.name == "variational-sym:0.25"
    with pytest.raises(InputError, match="is not symmetric"):
        lv.schemes.compose("symplectic-euler", 4)
    with pytest.raises(InputError, match="order 4, 6 or 8, not 10"):
        lv.schemes.compose("stormer-verlet", 10)
    with pytest.raises(InputError, match="has order 4 already"):
        lv.schemes.compose("gauss-2", 4)
    with pytest.raises(InputError, match="no composition 'kahan-li' of order 4"):
        lv.schemes.compose("stormer-verlet", 4, "kahan-li")
    with pytest.raises(InputError, match="unknown composition 'yosida'; did you mean 'yoshida'"):
        lv.schemes.compose("stormer-verlet", 4, "yosida")
    with pytest.raises(InputError, match="takes equal steps"):
        lv.simulate(kepler(), scheme="yoshida-4:strang", scaling=lambda q: 1.0, h=0.1, t_end=1.0)


def test_one_part_alone_is_the_scheme_itself():
    e = lv.schemes.get("implicit-midpoint").equations(kepler().model).to_single_graph()
    one = concatenate_substeps(e, (1.0,))
    x, z, c = np.full(2, 0.3), np.linspace(0.1, 0.8, e.z.numel()), np.array([0.1, 0.0])
    assert np.array(one.residual_function(x, z, c)) == pytest.approx(np.array(e.residual_function(x, z, c)), abs=0)
    assert np.array(one.final_state_function(x, z, c)) == pytest.approx(
        np.array(e.final_state_function(x, z, c)), abs=0
    )


@pytest.mark.parametrize("base", ["livens-midpoint", "livens-em", "hamilton-midpoint", "semi-explicit:0.5,0.5"])
def test_compositions_of_order_six_need_velocities_on_the_constraints(base):
    """Coordinates would have order 4 and velocities order 2; with `ggl-em` both have the declared order."""
    pendulum = lv.problems.load("simple-pendulum")
    with pytest.raises(lv.InputError, match="velocities satisfy the constraints"):
        lv.simulate(pendulum, scheme=f"kahan-li-6:{base}", h=0.1, t_end=1.0)
    angle = solve_ivp(
        lambda t, y: [y[1], -9.81 * np.sin(y[0])], (0, 1), [-np.pi / 2, 0], method="DOP853", rtol=1e-13, atol=1e-14
    ).y[:, -1]
    steps, errors = [0.1, 0.05, 0.04, 0.025], []
    for h in steps:
        run = lv.simulate(pendulum, scheme="kahan-li-6:ggl-em", h=h, t_end=1.0)
        exact = angle[1] * np.array([np.cos(angle[0]), np.sin(angle[0])])
        errors.append(np.abs(run.v[-1] - exact).max())
    assert abs(measured_order(steps, errors) - 6) < 0.4
