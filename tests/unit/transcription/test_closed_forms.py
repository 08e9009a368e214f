"""Optimal control against closed forms and independent solutions."""

import numpy as np
import pytest
from scipy.optimize import minimize

import livens as lv
from livens import math as m


def cart():
    return lv.System(
        "x", kinetic=lambda v, k: k.mass * v[0] ** 2 / 2, forces=lambda k: [k.u], parameters=dict(mass=1.0, u=0.0)
    )


REST_TO_REST = dict(start=dict(q0=[0.0], v0=[0.0]), end=dict(q=[1.0], v=[0.0]))


@pytest.mark.parametrize("scheme", ["livens-variational", "livens-em", "livens-midpoint"])
@pytest.mark.parametrize("n", [4, 20])
def test_rest_to_rest_with_constant_inputs(scheme, n):
    """Least effort of a unit mass over a unit distance in unit time is ``12 N^2/(N^2 - 1)``."""
    motion = lv.optimal_control(cart(), inputs={"u": None}, t_end=1.0, steps=n, scheme=scheme, **REST_TO_REST)
    assert motion.converged
    assert motion.cost == pytest.approx(12 * n**2 / (n**2 - 1), rel=1e-9)


@pytest.mark.parametrize(("scheme", "shape"), [("gauss-2", "stages"), ("lobatto-iiia-iiib-3", "linear")])
def test_linear_inputs_are_exact(scheme, shape):
    """The optimal input ``6 - 12 t`` is linear in time, so that its discretization is exact."""
    motion = lv.optimal_control(
        cart(), inputs={"u": None}, t_end=1.0, steps=5, scheme=scheme, shape=shape, **REST_TO_REST
    )
    assert motion.cost == pytest.approx(12.0, rel=1e-9)
    np.testing.assert_allclose(motion.u[:, 0], 6 - 12 * motion.input_times, atol=1e-7)
    np.testing.assert_allclose(motion.input_at("u", [0.1, 0.77]), [4.8, 6 - 12 * 0.77], atol=1e-7)


def test_shortest_time_is_bang_bang():
    """A unit mass with forces of at most 1 moves by 1 in the time 2, with one switch."""
    motion = lv.optimal_control(
        cart(), inputs={"u": (-1, 1)}, t_end=(0.5, 10.0), minimise="time", steps=20, **REST_TO_REST
    )
    assert motion.converged
    assert motion.t_end == pytest.approx(2.0, abs=1e-6)
    np.testing.assert_allclose(np.abs(motion.u), 1.0, atol=1e-5)
    assert np.count_nonzero(np.diff(np.sign(motion.u[:, 0]))) == 1


def test_duals_are_derivatives_of_the_cost():
    """The least cost ``12 d^2`` of the distance d has the derivative 24 at d = 1."""
    motion = lv.optimal_control(cart(), inputs={"u": None}, t_end=1.0, scheme="gauss-2", steps=5, **REST_TO_REST)
    assert abs(motion.duals["end: q"][0]) == pytest.approx(24.0, rel=1e-6)
    assert motion.duals["continuity of q[0]"].shape == (5, 1)


def test_free_parameter():
    """The stiffness of a spring is found for which no input is needed: half a period is 1, ``sqrt(c) = pi``."""
    oscillator = lv.System(
        "x",
        kinetic=lambda v: v[0] ** 2 / 2,
        potential=lambda q, k: k.c * q[0] ** 2 / 2,
        forces=lambda k: [k.u],
        parameters=dict(c=5.0, u=0.0),
    )
    motion = lv.optimal_control(
        oscillator, inputs={"u": None}, free={"c": (1.0, 20.0)}, t_end=1.0, steps=10, scheme="gauss-3",
        start=dict(q0=[1.0], v0=[0.0]), end=dict(q=[-1.0], v=[0.0]),
    )  # fmt: skip
    assert motion.converged
    assert motion.cost < 1e-8
    assert motion.free["c"] == pytest.approx(np.pi**2, rel=1e-6)
    assert motion.replay().defect < 1e-10


def test_momenta_of_a_free_mass_depend_on_the_mass():
    """With the mass free and an initial velocity, the initial momentum follows the mass."""
    motion = lv.optimal_control(
        cart(), inputs={"u": (-50, 50)}, free={"mass": (0.5, 3.0)}, t_end=1.0, steps=10,
        start=dict(q0=[0.0], v0=[2.0]), end=dict(q=[1.0], v=[0.0]), final=lambda k: 10 * (k.mass - 2) ** 2,
    )  # fmt: skip
    assert motion.converged
    np.testing.assert_allclose(motion.p[0], motion.free["mass"] * 2.0, rtol=1e-9)
    assert motion.replay().defect < 1e-11


@pytest.mark.parametrize("seed", range(5))
def test_random_linear_problems_against_dense_elimination(seed):
    """The implicit midpoint rule on a linear system: least-norm inputs from the dense map of inputs to the end."""
    rng = np.random.default_rng(seed)
    n, n_inputs, steps, t_end = 4, 2, 6, 1.5
    A, B = rng.standard_normal((n, n)), rng.standard_normal((n, n_inputs))
    x0, target = rng.standard_normal(n), rng.standard_normal(n)
    model = lv.FirstOrder(
        n,
        rhs=lambda x, k: [
            sum(A[i, j] * x[j] for j in range(n)) + sum(B[i, j] * k.u[j] for j in range(n_inputs)) for i in range(n)
        ],
        parameters=dict(u=np.zeros(n_inputs)),
    )
    motion = lv.optimal_control(
        model, inputs={"u": None}, t_end=t_end, steps=steps, scheme="gauss-1", start=dict(x0=x0), end=dict(x=target)
    )
    h = t_end / steps
    left = np.linalg.inv(np.eye(n) - h / 2 * A)
    step, input_map = left @ (np.eye(n) + h / 2 * A), left @ (h * B)
    columns = [np.linalg.matrix_power(step, steps - 1 - i) @ input_map for i in range(steps)]
    u = np.linalg.lstsq(np.hstack(columns), target - np.linalg.matrix_power(step, steps) @ x0, rcond=None)[0]
    assert motion.converged
    np.testing.assert_allclose(motion.u.ravel(), u, atol=1e-7 * np.abs(u).max())
    assert motion.cost == pytest.approx(h * (u @ u), rel=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_random_nonlinear_problems_against_single_shooting(seed):
    """A random damped pendulum: SLSQP on the inputs, with the simulator's own steps, finds the same optimum."""
    rng = np.random.default_rng(seed)
    g, d, target = rng.uniform(2, 10), rng.uniform(0, 0.5), rng.uniform(0.5, 1.2)
    model = lv.FirstOrder("th w", rhs=lambda x, k: [x[1], -g * m.sin(x[0]) - d * x[1] + k.u], parameters=dict(u=0.0))
    steps, t_end = 5, 1.0
    motion = lv.optimal_control(
        model, inputs={"u": (-40, 40)}, t_end=t_end, steps=steps, scheme="gauss-1", start=dict(x0=[0.0, 0.0]),
        end=dict(x=[target, 0.0]),
    )  # fmt: skip
    h = t_end / steps

    def end_of(u):
        x = np.zeros(2)
        for value in u:
            y = x.copy()
            for _ in range(50):  # fixed point of the implicit midpoint rule
                middle = (x + y) / 2
                y = x + h * np.array([middle[1], -g * np.sin(middle[0]) - d * middle[1] + value])
            x = y
        return x - [target, 0.0]

    found = minimize(
        lambda u: h * (u @ u), np.ones(steps), constraints=dict(type="eq", fun=end_of), method="SLSQP",
        options=dict(ftol=1e-13, maxiter=500),
    )  # fmt: skip
    assert motion.converged
    assert motion.cost == pytest.approx(found.fun, rel=1e-6)


def test_running_costs_use_the_quadrature_of_the_scheme():
    """A running cost of the input, summed over the stages, equals the exact effort of the input polynomial."""
    options = dict(inputs={"u": None}, t_end=1.0, steps=4, scheme="gauss-2", **REST_TO_REST)
    by_name = lv.optimal_control(cart(), **options)
    by_function = lv.optimal_control(cart(), minimise=lambda u: u @ u, **options)
    assert by_function.cost == pytest.approx(by_name.cost, rel=1e-9)


def test_supplied_energy_is_the_gain_of_kinetic_energy():
    motion = lv.optimal_control(
        cart(), inputs={"u": (-5, 5)}, t_end=1.0, steps=10, start=dict(q0=[0.0], v0=[0.0]),
        end=dict(q=[1.0], v=[1.5]), minimise="supplied",
    )  # fmt: skip
    assert motion.cost == pytest.approx(1.5**2 / 2, rel=1e-8)


def test_terms_of_the_cost_and_pareto_front():
    """Least effort plus w times the duration T: ``12 c/T^3 + w T`` with ``T^4 = 36 c/w``, ``c = N^2/(N^2 - 1)``."""
    n, weights = 8, np.array([1.0, 5.0, 25.0])
    options = dict(inputs={"u": None}, t_end=(0.2, 10.0), steps=n, **REST_TO_REST)
    front = lv.pareto_front(cart(), ("effort", "time"), weights, **options)
    c = n**2 / (n**2 - 1)
    times = (36 * c / weights) ** 0.25
    assert front.converged
    np.testing.assert_allclose(front.costs, np.column_stack([12 * c / times**3, times]), rtol=1e-6)
    np.testing.assert_allclose([motion.cost for motion in front.motions], (front.costs * front.weights).sum(axis=1))
    figure = front.plot()
    assert figure.axes[0].get_ylabel() == "time"
    work = lambda v, u: u[0] * v[0]  # noqa: E731
    motion = lv.optimal_control(
        cart(), minimise={"effort": 2.0, work: 0.5}, final=lambda q: q[0], **{**options, "t_end": 1.0}
    )
    assert motion.costs == pytest.approx({"effort": 12 * c, "lambda": 0.0, "final": 1.0}, abs=1e-6)
    assert motion.cost == pytest.approx(2 * 12 * c + 1, rel=1e-8)
