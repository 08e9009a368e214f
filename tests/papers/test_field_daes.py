"""Problems of the IVP test set (Bari) with constraints or stiffness, against independent integrations."""

import casadi as ca
import numpy as np
import pytest

import livens as lv


@pytest.fixture
def field(reference):
    return reference("field_daes")


def placed(rows, t):
    """The row of a reference at this time."""
    return next(row for row in rows if row["t"] == t)


# -- Fekete's points --------------------------------------------------------------------------------------------------
def test_fekete_points_start_and_move(field):
    problem = lv.problems.load("fekete")
    assert np.abs(problem.q0 - np.ravel(field["fekete"]["initial_positions"])).max() < 2e-15
    for t in (0.5, 1.0):
        exact = np.ravel(placed(field["fekete"]["reference"], t)["p"])
        assert np.abs(problem.reference(t)["q"] - exact).max() < 3e-12


@pytest.mark.slow
def test_fekete_points_come_to_rest(field):
    """Multipliers eliminated, Taylor series; in the end all multipliers are equal."""
    problem = lv.problems.load("fekete")
    model = lv.MultibodyEquations.from_system(problem.model).formulate("index-1")
    run = lv.simulate(model, q0=problem.q0, v0=problem.v0, scheme="taylor", t_end=100.0)
    for t, good in ((1.0, 1e-12), (2.0, 1e-12), (100.0, 1e-11)):
        exact = np.ravel(placed(field["fekete"]["reference"], t)["p"])
        assert np.abs(run.at(t).x[:60] - exact).max() < good
    assert np.abs(run.y[-1, -20:] - field["fekete"]["end_multipliers"]).max() < 1e-5


@pytest.mark.slow
def test_fekete_points_by_a_symplectic_scheme(field):
    """The usual run, which holds positions and velocities to the sphere."""
    problem = lv.problems.load("fekete")
    run = lv.simulate(problem, t_end=2.0, h=0.01)
    exact = np.ravel(placed(field["fekete"]["reference"], 2.0)["p"])
    assert np.abs(run.q[-1] - exact).max() < 2e-4
    assert run.summary.max_constraint < 1e-13 and run.summary.max_velocity_constraint < 1e-13


# -- a slider-crank whose rod bends -----------------------------------------------------------------------------------
def test_flexible_slider_crank(field):
    from livens.problems import flexible_slider_crank as module

    data = field["flexible_slider_crank"]
    for name, found in (("K", module._STIFFNESS), ("M", module._MASS), ("B", module._COUPLING)):
        assert np.allclose(found, data[name], rtol=1e-14, atol=1e-22)
    problem = lv.problems.load("flexible-slider-crank")
    y = np.array(placed(data["reference"], 0.01)["y"])
    motion = problem.reference(0.01)
    assert np.abs(motion["q"] - y[:7]).max() < 1e-14
    assert np.abs(motion["v"] - y[7:14]).max() < 1e-10
    assert np.abs(motion["multipliers"] - y[21:]).max() < 1e-8


@pytest.mark.slow
def test_flexible_slider_crank_by_its_schemes(field):
    """At the end; stiff vibrations with 18,000 rad/s go on, and the energy is no less."""
    problem = lv.problems.load("flexible-slider-crank")
    y = np.array(placed(field["flexible_slider_crank"]["reference"], 0.1)["y"])
    for scheme, h, good in (("lobatto-iiia-iiib-4", 5e-5, 1e-10), ("livens-em", 2e-5, 1e-7)):
        run = lv.simulate(problem, scheme=scheme, h=h)
        assert np.abs(run.q[-1] - y[:7]).max() < good
    assert run.summary.max_energy_drift < 1e-12


# -- a wheelset on rails ----------------------------------------------------------------------------------------------
def internal(y):
    """The order of the model: states, multipliers, contact at x > 0, contact at x < 0."""
    y = np.array(y)
    return np.concatenate([y[:11], y[15:17], y[13:15], y[11:13]])


def test_wheelset_geometry(field):
    """States of the reference touch the rails where they should, and do not leave them."""
    model = lv.problems.load("wheelset").model
    conditions = ca.Function("g", [model.descriptor.x, model.descriptor.k], [model.g])
    for row in field["wheelset"]["reference"]:
        residual = np.array(conditions(internal(row["y"]), model.parameter_vector())).ravel()
        assert np.abs(residual).max() < 1e-13


def test_wheelset(field):
    """A tenth of a second, all 17 variables."""
    problem = lv.problems.load("wheelset")
    control = lv.StepControl(tolerance=1e-9, absolute=1e-11)
    run = lv.simulate(problem, t_end=0.1, control=control)
    exact = internal(placed(field["wheelset"]["reference"], 0.1)["y"])
    assert np.abs(np.concatenate([run.x[-1], run.y[-1]]) - exact).max() < 2e-10


def test_wheelset_index():
    """Numbers drawn at random put no wheel on its rail; its multipliers have index 2 all the same."""
    model = lv.problems.load("wheelset").model
    indices = dict(zip((*model.coordinates, *model.algebraic_names), model.pencil.indices, strict=True))
    assert {name for name, index in indices.items() if index == 2} == {"lambda_left", "lambda_right"}
    assert model.index == 2
    start = lv.problems.load("wheelset").start_values
    with pytest.raises(lv.InputError, match="the time derivative of constraint 0 is violated"):
        lv.simulate(model, x0=start["x0"], y0=start["y0"] + [1e-5, 0, 0, 0, 0, 0], h=1e-3, t_end=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("tolerance", [1e-9, 1e-10])
def test_wheelset_to_the_end(field, tolerance):
    """Ten seconds of swaying from rail to rail: to what the reference is good for."""
    problem = lv.problems.load("wheelset")
    control = lv.StepControl(tolerance=tolerance, absolute=tolerance / 100)
    run = lv.simulate(problem, scheme="radau-iia-3", t_end=10.0, control=control)
    row = placed(field["wheelset"]["reference"], 10.0)
    error = np.abs(np.concatenate([run.x[-1], run.y[-1]]) - internal(row["y"])).max()
    assert error < row["difference"]


# -- a beam of many segments ------------------------------------------------------------------------------------------
def test_beam_equations():
    """Angular accelerations are those of the dense matrices, at a random state."""
    n, rng = 12, np.random.default_rng(3)
    model = lv.problems.load("beam-bari", n=n).model
    angle, rate, t = rng.normal(size=n), rng.normal(size=n), 0.7
    C, D = np.diag([1.0, *[2.0] * (n - 2), 3.0]), np.zeros((n, n))
    for i in range(n - 1):
        C[i, i + 1] = C[i + 1, i] = -np.cos(angle[i + 1] - angle[i])
        D[i, i + 1] = np.sin(angle[i + 1] - angle[i])
        D[i + 1, i] = -D[i, i + 1]
    bend = np.diag([-2.0] * n) + np.diag(np.ones(n - 1), 1) + np.diag(np.ones(n - 1), -1)
    bend[0, 0], bend[-1, -1] = -3.0, -1.0
    push = 1.5 * np.sin(t) ** 2 * (np.cos(angle) + np.sin(angle))
    v = n**4 * bend @ angle + n**2 * push
    w = np.linalg.solve(C, D @ v + rate**2)
    d = model.descriptor
    f = ca.Function("f", [d.x, d.t, d.k], [model.f, model.g])
    rates, residual = (np.array(part).ravel() for part in f(np.concatenate([angle, rate, w]), t, [1.5]))
    assert np.allclose(rates[n:], C @ v + D @ w, rtol=1e-12) and np.allclose(rates[:n], rate)
    assert np.abs(residual).max() < 1e-9 * np.abs(w).max()
    with pytest.raises(lv.InputError, match="at least 3"):
        lv.problems.load("beam-bari", n=2)


@pytest.mark.slow
def test_beam(field):
    """Smooth up to t = pi, and from there on without the force."""
    problem, rows = lv.problems.load("beam-bari", released=False), field["beam"]["reference"]
    first = lv.simulate(problem, scheme="taylor", t_end=np.pi)
    options = dict(x0=first.x[-1], t0=np.pi, t_end=5.0, parameters={"F": 0.0})
    second = lv.simulate(problem, scheme="taylor", **options)
    for run, t in ((first, 1.0), (first, 3.0), (second, 5.0)):
        x, y = run.at(t).x, np.array(placed(rows, t)["y"])
        assert np.abs(x[:40] - y[:40]).max() < 2e-12 and np.abs(x[40:] - y[40:]).max() < 1e-8
    assert np.abs(second.x[-1, :40] - field["beam"]["published_end_angles"]).max() < 1e-12
