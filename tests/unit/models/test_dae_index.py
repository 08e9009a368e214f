"""Index of DAEs: time-dependent pencils, and indices above three."""

import numpy as np
import pytest
from conftest import measured_order
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

import livens as lv
from livens import math as m
from livens.models.differentiation_index import differentiation_index


def test_a_singular_pencil_has_no_index_and_is_refused():
    """Kunkel and Mehrmann's equations have index 2 and one solution; their pencil is singular at every time."""
    model = lv.FirstOrder(
        "x y", mass=lambda t: [[0, 0], [1, -t]], rhs=lambda x, t: [-x[0] + t * x[1] + m.sin(t), 0]
    )  # y = -cos t
    assert model.index == 2 and model.pencil.is_singular
    for scheme in ("gauss-2", "radau-iia-3"):
        with pytest.raises(lv.LivensError, match="index of 2 is that along time only"):
            lv.simulate(model, x0=[0.0, -1.0], scheme=scheme, h=0.01, t_end=2.0)


def test_a_moving_kernel_is_stated_in_the_report():
    """A rotation by t of ``x' = -x, y = 0``: the pencil is regular, but ker E turns."""

    def rotated(t):
        return [[m.cos(t), m.sin(t)], [0, 0]]

    model = lv.FirstOrder(
        "x y",
        mass=rotated,
        rhs=lambda x, t: [-m.cos(t) * x[0] - m.sin(t) * x[1], -m.sin(t) * x[0] + m.cos(t) * x[1]],
    )
    assert model.index == 1 and not model.pencil.is_singular
    run = lv.simulate(model, x0=[1.0, 0.0], scheme="radau-iia-3", h=0.01, t_end=0.1)
    assert any("index 1 along time" in line for line in run.report(accuracy=False).lines)


@pytest.mark.parametrize("index", [1, 2, 3, 4])
def test_the_index_of_rotated_equations_is_that_of_the_derivative_array(index):
    """``x_2' = x_1, x_3' = x_2, ..., x_n = sin t`` in coordinates that turn with time, with n = index."""
    shift = np.eye(index, k=1)

    def turned(t):
        turn = np.full((index, index), 0.0).astype(object)
        turn[range(index), range(index)] = 1.0
        if index > 1:
            turn[0, 0], turn[0, 1], turn[1, 0], turn[1, 1] = m.cos(t), m.sin(t), -m.sin(t), m.cos(t)
        return turn

    def rate(t):  # of the turn
        turn = np.full((index, index), 0.0).astype(object)
        if index > 1:
            turn[0, 0], turn[0, 1], turn[1, 0], turn[1, 1] = -m.sin(t), m.cos(t), -m.cos(t), -m.sin(t)
        return turn

    def rhs(x, t):  # shift (turn z)' = turn z - sin t e_n
        values = (turned(t) - shift @ rate(t)) @ np.array([x[i] for i in range(index)])
        return [*values[:-1], values[-1] - m.sin(t)]

    names = " ".join("abcd"[:index])
    model = lv.FirstOrder(names, mass=lambda t: (shift @ turned(t)).tolist(), rhs=rhs)
    assert differentiation_index(model) == index and model.index == index


def test_the_index_of_nonlinear_equations_with_a_moving_kernel_is_not_known():
    model = lv.FirstOrder(
        "x y", mass=lambda t: [[m.cos(t), m.sin(t)], [0, 0]], rhs=lambda x, t: [-(x[0] ** 3), -m.sin(t) * x[0] + x[1]]
    )
    assert model.index is None


def test_index_four():
    """``d = sin t, c = d', b = c', a = b'``."""
    shift = [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    model = lv.FirstOrder("a b c d", mass=shift, rhs=lambda x, t: [x[0], x[1], x[2], x[3] - m.sin(t)])
    assert model.pencil.indices == (4, 3, 2, 1) and model.index == 4


def test_time_dependent_coefficients_alone_leave_the_index_known():
    model = lv.FirstOrder(
        "x", algebraic="y", rhs=lambda x, y, t: [-t * y[0]], constraints=lambda x, y, t: [y[0] - (1 + t) * x[0]]
    )
    assert model.index == 1


@pytest.mark.parametrize(("stages", "steps"), [(1, (20, 40, 80, 160)), (2, (10, 20, 40, 80)), (3, (8, 12, 18, 27))])
def test_multipliers_of_the_index_one_formulation_have_the_order_of_gauss_methods(stages, steps):
    """They are solved for at the end of the step, together with the accelerations."""
    q0, v0 = [0.6, -0.8], [1.6, 1.2]
    equations = lv.MultibodyEquations(
        "x y", kinetic=lambda v: v @ v / 2, potential=lambda q: 9.81 * q[1], constraints=lambda q: [(q @ q - 1) / 2]
    ).formulate("index-1")
    exact = lv.simulate(equations, q0=q0, v0=v0, scheme="radau-iia-6", h=0.005, t_end=1.0).y[-1, 0]
    errors = [
        abs(lv.simulate(equations, q0=q0, v0=v0, scheme=f"gauss-{stages}", h=1 / n, t_end=1.0).y[-1, 0] - exact)
        for n in steps
    ]
    assert abs(measured_order([1 / n for n in steps], errors) - 2 * stages) < 0.1


@pytest.mark.parametrize(("stages", "steps"), [(1, (20, 40, 80, 160)), (2, (10, 20, 40, 80)), (3, (3, 4, 6, 8))])
def test_variables_of_index_one_have_the_order_of_gauss_methods_beside_those_of_index_two(stages, steps):
    """``y + y^3 / 3 = b`` determines y at one time; z is the derivative of a prescribed function."""
    model = lv.FirstOrder(
        "a b",
        algebraic="z y",
        rhs=lambda x, y: [y[0], -y[1] + x[0]],
        constraints=lambda x, y, t: [x[0] - m.sin(t), y[1] + y[1] ** 3 / 3 - x[1]],
    )
    assert model.pencil.indices == (1, 1, 2, 1)

    def branch(b):
        return brentq(lambda y: y + y**3 / 3 - b, -2, 2, xtol=1e-15)

    b = solve_ivp(lambda t, b: -branch(b[0]) + np.sin(t), (0, 1), [1.0], rtol=1e-13, atol=1e-14, method="DOP853").y[
        0, -1
    ]
    errors = []
    for n in steps:
        run = lv.simulate(model, x0=[0.0, 1.0], scheme=f"gauss-{stages}", h=1 / n, t_end=1.0)
        errors.append(abs(run.y[-1, 1] - branch(b)))
        assert abs(run.y[-1, 1] + run.y[-1, 1] ** 3 / 3 - run.x[-1, 1]) < 1e-14
    assert measured_order([1 / n for n in steps], errors) == pytest.approx(2 * stages, abs=0.3)
