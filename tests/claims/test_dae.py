"""Runge-Kutta methods on systems with algebraic variables: what they return, and how well they choose their steps."""

import functools

import numpy as np
import pytest
from conftest import measured_order
from scipy.integrate import solve_ivp

import livens as lv
from livens import math as m
from livens.engine.steppers.reference import ReferenceSolver
from stepping import estimated_error

FORMULATIONS = ["index-1", "index-2", "ggl", "index-3"]
ANGLE, SPEED = 0.5, 2.0
Q0 = np.array([np.sin(ANGLE), -np.cos(ANGLE)])
V0 = SPEED * np.array([np.cos(ANGLE), np.sin(ANGLE)])


@functools.cache
def pendulum():
    return lv.MultibodyEquations(
        "x y", kinetic=lambda v: v @ v / 2, potential=lambda q: 9.81 * q[1], constraints=lambda q: [(q @ q - 1) / 2]
    )


@functools.cache
def double_pendulum():
    return lv.MultibodyEquations.from_system(lv.problems.load("double-pendulum").model)


def implicit_oscillator():
    return lv.FirstOrder(
        "a b",
        algebraic="y",
        rhs=lambda x, y: [x[1], -y[0]],
        constraints=lambda x, y: [y[0] + 0.1 * y[0] ** 3 - m.sin(x[0])],
    )


# -- indices ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("formulation", "indices"),
    [
        ("index-1", (1, 1, 1, 1, 1)),
        ("index-2", (1, 1, 1, 1, 2)),
        ("ggl", (1, 1, 1, 1, 2, 2)),
        ("index-3", (1, 1, 2, 2, 3)),
    ],
)
def test_indices_of_variables(formulation, indices):
    assert pendulum().formulate(formulation).pencil.indices == indices


def test_stiffness_is_not_taken_for_an_index():
    stiff = lv.FirstOrder("a b", rhs=lambda x: [-1e15 * (x[0] - x[1]), -x[1]])
    assert stiff.pencil.indices == (1, 1) and stiff.pencil.is_ode and stiff.default_scheme == "gauss-2"
    turned = lv.FirstOrder("a b", rhs=lambda x: [-x[0], x[0] - x[1]], mass=[[1.0, 1.0], [2.0, 2.0]])
    assert turned.pencil.indices == (1, 1) and np.allclose(turned.pencil.projector, [[0.5, -0.5], [-0.5, 0.5]])
    assert turned.default_scheme == "radau-iia-3"


# -- algebraic variables ----------------------------------------------------------------------------------------------
@functools.cache
def network():
    """A pendulum as a port-Hamiltonian system of index 2, its start and an accurate run of it."""
    system = lv.problems.load("simple-pendulum").model
    model = lv.port_hamiltonian.from_system(system)
    start = lv.port_hamiltonian.state_from_system(system, Q0, V0)
    return model, start, lv.simulate(model, x0=start, scheme="radau-iia-6", h=0.02, t_end=1.0)


@pytest.mark.parametrize(("name", "order"), [("gauss-1", 1), ("gauss-3", 3), ("radau-iia-2", 2), ("radau-iia-3", 3)])
def test_multipliers_converge_at_the_end_of_steps_and_between(name, order):
    """Integrated, those of Gauss' methods would be wrong by more than their size."""
    model, start, exact = network()
    steps, errors, between = [0.05, 0.04, 0.025, 0.02], [], []
    for h in steps:
        run = lv.simulate(model, x0=start, scheme=name, h=h, t_end=1.0)
        errors.append(np.abs(run.x[1:, -1] - exact.at(run.t[1:]).x[:, -1]).max())
        times = run.t[:-1] + 0.3 * h
        between.append(np.abs(run.at(times).x[:, -1] - exact.at(times).x[:, -1]).max())
    assert abs(measured_order(steps, errors) - order) < 0.15
    assert max(between) < 3 * errors[0] and between[-1] < between[0]


def test_gauss_with_two_stages_has_bounded_multipliers():
    model, start, exact = network()
    run = lv.simulate(model, x0=start, scheme="gauss-2", h=0.01, t_end=1.0)
    assert np.abs(run.x[:, -1] - exact.at(run.t).x[:, -1]).max() < 0.01 * np.abs(exact.x[:, -1]).max()


def test_a_double_pendulum_as_a_network_by_default():
    """Nobody says which scheme: multipliers of up to 106 are right to four digits in all steps, and between them."""
    problem = lv.problems.load("double-pendulum")
    model = lv.port_hamiltonian.from_system(problem.model)
    start = lv.port_hamiltonian.state_from_system(problem.model, problem.q0, problem.v0)
    run = lv.simulate(model, x0=start, h=0.01, t_end=3.0)
    fine = lv.simulate(model, x0=start, h=0.001, t_end=3.0)
    assert run.info.scheme == "radau-iia-3" == model.default_scheme
    assert 90 < np.abs(fine.x[:, -2:]).max() < 120
    assert np.abs(run.x[:, -2:] - fine.x[::10, -2:]).max() < 0.02
    times = np.linspace(0.0, 3.0, 701)
    assert np.abs(run.at(times).x[:, -2:] - fine.at(times).x[:, -2:]).max() < 0.02


@pytest.mark.parametrize("name", ["gauss-1", "gauss-2", "gauss-3", "lobatto-iiid-3"])
def test_algebraic_variables_of_index_one_have_the_order_of_the_scheme(name):
    """They are solved for at the end of the step, and there fulfil their equations to round-off."""
    model, steps, errors = implicit_oscillator(), [0.2, 0.15, 0.1, 0.075], []
    exact = lv.simulate(model, x0=[1.0, 0.5], scheme="radau-iia-7", h=0.1, t_end=3.0)
    for h in steps:
        run = lv.simulate(model, x0=[1.0, 0.5], scheme=name, h=h, t_end=3.0)
        errors.append(abs(run.y[-1, 0] - exact.y[-1, 0]))
        assert np.abs(run.y + 0.1 * run.y**3 - np.sin(run.x[:, :1])).max() < 1e-14
    assert abs(measured_order(steps, errors) - lv.schemes.get(name).order) < 0.15


def test_a_singular_matrix_that_is_not_diagonal():
    """``x' + y' = -x``, ``0 = y - x^2``: neither variable is algebraic, but a combination is."""
    model = lv.FirstOrder("a b", rhs=lambda x: [-x[0], x[1] - x[0] ** 2], mass=[[1.0, 1.0], [0.0, 0.0]])
    exact = lv.simulate(model, x0=[1.0, 1.0], scheme="radau-iia-5", h=0.02, t_end=1.0)
    run = lv.simulate(model, x0=[1.0, 1.0], scheme="gauss-3", h=0.02, t_end=1.0)
    assert np.abs(run.x - exact.x).max() < 1e-5


# -- estimates --------------------------------------------------------------------------------------------------------
def estimates(scheme, model, start, steps):
    """The largest error that the first step estimates, by its size, and the order it is said to have."""
    e, k, found = lv.schemes.get(scheme).equations(model).to_single_graph(), model.parameter_vector(), []
    z = e.layout.pack(model.initial_state(start, k, 0.0, False, "error").values)
    measured = [i for i, name in enumerate(e.error_estimate.names) if not name.startswith("mu")]
    for h in steps:
        c = np.concatenate([[h, 0.0], k])
        x, _, trouble, *_ = ReferenceSolver(e).solve(e.initial_guess_function(z, c).full().ravel(), z, c)
        assert trouble is None
        found.append(np.abs(estimated_error(e, x, z, c)[measured]).max())
    return found, e.error_estimate.order


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("name", ["radau-iia-2", "radau-iia-3", "lobatto-iiic-2", "lobatto-iiic-4", "gauss-2"])
def test_orders_of_estimates_on_constraints(name, formulation):
    """Errors of index 2 and 3 are taken times h and h^2; those of Lobatto IIIC with multipliers have one order less."""
    steps = [0.006, 0.0045, 0.003, 0.00225]
    found, order = estimates(name, pendulum().formulate(formulation), dict(q0=Q0, v0=V0), steps)
    less = name.startswith("lobatto") and formulation != "index-1"
    assert order == int(name[-1]) - less
    assert abs(measured_order(steps, found) - order - 1) < 0.1


@pytest.mark.parametrize("name", ["radau-iia-3", "gauss-2", "gauss-3", "lobatto-iiic-3"])
def test_orders_of_estimates_of_index_one(name):
    steps = [0.04, 0.03, 0.02, 0.015]
    found, order = estimates(name, implicit_oscillator(), dict(x0=[1.0, 0.5]), steps)
    assert order == int(name[-1]) and abs(measured_order(steps, found) - order - 1) < 0.1


@pytest.mark.parametrize(("name", "order"), [("radau-iia-3", 3), ("lobatto-iiic-2", 1), ("lobatto-iiic-4", 3)])
def test_orders_of_estimates_of_mechanical_systems(name, order):
    system = lv.System(
        "x y", kinetic=lambda v: v @ v / 2, potential=lambda q: 9.81 * q[1], constraints=lambda q: [(q @ q - 1) / 2]
    )
    steps = [0.006, 0.0045, 0.003, 0.00225]
    found, said = estimates(name, system, dict(q0=Q0, v0=V0), steps)
    assert said == order and abs(measured_order(steps, found) - order - 1) < 0.1


# -- counts of steps --------------------------------------------------------------------------------------------------
def run_of(model, tolerance, t_end, scheme="radau-iia-3", h=None, control=None, **start):
    control = control or lv.StepControl(tolerance=tolerance)
    return lv.simulate(model, **start, scheme=scheme, h=h, t_end=t_end, control=control)


def test_prothero_and_robinson():
    """As stiff as can be: the smooth solution is all there is to follow. RADAU5's estimate without its filter takes
    847 steps; SciPy's Radau takes 7."""
    stiff = lv.FirstOrder("x", rhs=lambda x, t: [-1e15 * (x[0] - m.cos(t)) - m.sin(t)])
    run = run_of(stiff, 1e-6, 10.0, x0=[1.0])
    assert run.statistics.steps <= 7 and run.statistics.rejected == 0
    assert np.abs(run.x[:, 0] - np.cos(run.t)).max() < 1e-13


def test_robertson():
    """Over eleven orders of magnitude of time; SciPy's Radau takes 559 steps."""
    reactions = lv.FirstOrder(
        "a b c",
        rhs=lambda x: [
            -0.04 * x[0] + 1e4 * x[1] * x[2],
            0.04 * x[0] - 1e4 * x[1] * x[2] - 3e7 * x[1] ** 2,
            3e7 * x[1] ** 2,
        ],
    )
    run = run_of(reactions, 0, 1e11, x0=[1.0, 0.0, 0.0], control=lv.StepControl(tolerance=1e-6, absolute=1e-18))
    assert run.statistics.steps <= 530 and run.statistics.rejected < 10
    # the test set for IVP solvers (Mazzia and Magherini 2008), problem ROBER, at t = 1e11
    assert run.x[-1] == pytest.approx([0.2083340149701255e-7, 0.8333360770334713e-13, 0.9999999791665050], rel=1e-5)


def test_pendulum_of_index_one():
    """1552 steps with the same estimate and the controller of before, 31230 with another estimate; SciPy's Radau takes
    1366 with another norm."""
    run = run_of(pendulum().formulate("index-1"), 1e-10, 2.0, q0=[1.0, 0.0], v0=[0.0, 0.0])
    assert run.statistics.steps <= 1470 and run.statistics.newton_iterations < 1.2 * run.statistics.steps
    assert abs(run.observe("total_energy")[-1]) < 1e-8


@pytest.mark.parametrize(
    ("formulation", "tolerance", "most", "forces"),
    [("index-2", 1e-8, 767, 1e-4), ("ggl", 1e-8, 720, 1e-4), ("index-3", 1e-6, 290, 0.2), ("index-3", 1e-8, 900, 0.02)],
)
def test_double_pendulum(formulation, tolerance, most, forces):
    """`forces` is the largest error of multipliers, which are up to 110, in all steps."""
    problem = lv.problems.load("double-pendulum")
    start = dict(q0=problem.q0, v0=problem.v0)
    run = run_of(double_pendulum().formulate(formulation), tolerance, 3.0, **start)
    exact = lv.simulate(double_pendulum().formulate("ggl"), scheme="radau-iia-3", h=0.001, t_end=3.0, **start)
    assert run.statistics.steps <= most and run.statistics.unsolved == 0
    assert np.abs(run.x[-1, :4] - exact.x[-1, :4]).max() < 300 * tolerance
    assert np.abs(run.y[:, :2] - exact.at(run.t).y[:, :2]).max() < forces


# -- control ----------------------------------------------------------------------------------------------------------
def test_the_first_step_needs_no_size():
    """Too small a guess grows fast, and nothing is rejected; a given one is honoured."""
    model = pendulum().formulate("index-2")
    free = run_of(model, 1e-8, 1.0, q0=Q0, v0=V0)
    given = run_of(model, 1e-8, 1.0, q0=Q0, v0=V0, h=1e-4)
    assert given.step_size[1] == 1e-4 and abs(free.statistics.steps - given.statistics.steps) < 12
    assert free.statistics.rejected <= 2


def test_tolerances_of_single_variables():
    model = pendulum().formulate("index-2")
    usual = run_of(model, 1e-8, 1.0, q0=Q0, v0=V0)
    loose = lv.StepControl(tolerance=1e-8, absolute={"lam[0]": np.inf, "v_x": 1e-3, "v_y": 1e-3})
    some = run_of(model, 0, 1.0, q0=Q0, v0=V0, control=loose)
    listed = lv.StepControl(tolerance=1e-8, absolute=[1e-11, 1e-11, 1e-3, 1e-3, np.inf])
    same = run_of(model, 0, 1.0, q0=Q0, v0=V0, control=listed)
    assert some.statistics.steps < 0.9 * usual.statistics.steps and np.array_equal(some.t, same.t)
    with pytest.raises(lv.InputError, match=r"absolute of the step-size control names the unknown variable 'w_x'"):
        run_of(model, 0, 1.0, q0=Q0, v0=V0, control=lv.StepControl(tolerance=1e-8, absolute={"w_x": 1.0}))
    with pytest.raises(lv.InputError, match="must have 5 values"):
        run_of(model, 0, 1.0, q0=Q0, v0=V0, control=lv.StepControl(tolerance=[1e-8, 1e-8]))


def test_stages_are_extrapolated_whatever_the_ratio_of_steps():
    """Steps of a smooth motion need two corrections or fewer, though no two are equally long."""
    run = run_of(pendulum().formulate("index-2"), 1e-9, 2.0, q0=Q0, v0=V0)
    sizes = run.step_size[2:-1]
    assert len(set(sizes.tolist())) > 0.9 * len(sizes)
    assert run.statistics.newton_iterations < 2.1 * run.statistics.steps


def test_failures_are_told_apart():
    """Equations that cannot be solved, and equations that can but are not accurate enough."""
    root = lv.FirstOrder("x", algebraic="y", rhs=lambda x: [1.0], constraints=lambda x, y: [y[0] ** 2 - 1 + x[0]])
    with pytest.raises(lv.IntegrationError, match=r"its equations could not be solved|estimated error of y") as caught:
        run_of(root, 1e-6, 2.0, x0=[0.0], y0=[1.0])
    assert caught.value.result.t[-1] == pytest.approx(1.0, abs=1e-2)
    jump = lv.FirstOrder("x", rhs=lambda t: [m.where(t < 0.5, 0.0, 1e6)])
    with pytest.raises(
        lv.IntegrationError, match="its equations are solved, but the estimated error of x exceeds the tolerance"
    ):
        run_of(jump, 0, 1.0, x0=[0.0], control=lv.StepControl(tolerance=1e-8, smallest=1e-3))


def test_steps_may_be_as_small_as_the_time_allows():
    """A layer of 1e-20 at t = 0, and then a second."""
    layer = lv.FirstOrder("x", rhs=lambda x: [-1e20 * (x[0] - 1.0)])
    run = run_of(layer, 1e-6, 1.0, x0=[2.0], control=lv.StepControl(tolerance=1e-6), h=1e-22)
    assert run.statistics.steps < 80 and run.x[-1, 0] == pytest.approx(1.0, abs=1e-12)


# -- starts -----------------------------------------------------------------------------------------------------------
def test_a_singular_mass_is_seen_at_the_start():
    model = lv.FirstOrder("a b", rhs=lambda x: [-x[1], x[1] - x[0] ** 2], mass=[[1, 0], [0, 0]])
    with pytest.raises(lv.InputError, match=r"equation 1 \(of 'b'\) is violated by -4; .* nearby is \(a = 1, b = 1\)"):
        lv.simulate(model, x0=[1.0, 5.0], h=0.1, t_end=1.0)
    run = lv.simulate(model, x0=[1.0, 5.0], h=0.1, t_end=1.0, project=True)
    assert run.x[0] == pytest.approx([1.0, 1.0], abs=1e-14) and run.info.scheme == "radau-iia-3"


def hidden():
    """``a' = z``, ``0 = a - sin t``: z = cos t follows from a rate."""
    return lv.FirstOrder(
        "a b", algebraic="z", rhs=lambda x, y: [y[0], x[0] - y[0]], constraints=lambda x, t: [x[0] - m.sin(t)]
    )


def test_variables_of_index_two_are_computed_and_checked():
    run = lv.simulate(hidden(), x0=[0.0, 1.0], h=0.1, t_end=1.0)
    assert run.y[0] == pytest.approx([1.0], abs=1e-14)
    for given, words in (
        (dict(x0=[0.0, 1.0], y0=[3.0]), "the time derivative of constraint 0 is violated by"),
        (dict(x0=[0.5, 1.0]), "constraint 0 is violated by"),
    ):
        with pytest.raises(lv.InputError, match=f"inconsistent initial values: {words}"):
            lv.simulate(hidden(), **given, h=0.1, t_end=1.0)
        run = lv.simulate(hidden(), **given, h=0.1, t_end=1.0, project=True)
        assert run.x[0] == pytest.approx([0.0, 1.0], abs=1e-14) and run.y[0] == pytest.approx([1.0], abs=1e-14)


def test_adaptive_steps_with_variables_of_index_one_and_two():
    """The jumps of z (index 2) between steps of a Gauss method are no errors, also if w (index 1) is solved for."""
    model = lv.FirstOrder(
        "a b",
        algebraic="z w",
        rhs=lambda x, y: [y[0], y[1] - x[1]],
        constraints=lambda x, y, t: [x[0] - m.sin(3 * t), y[1] - x[0] * x[1] - 1],
    )
    run = lv.simulate(model, x0=[0.0, 1.0], y0=[3.0, 1.0], scheme="gauss-3", tolerance=1e-6, t_end=3.0)
    assert run.statistics.steps < 300
    assert np.abs(run.x[:, 0] - np.sin(3 * run.t)).max() < 1e-4
    assert np.abs(run.y[:, 1] - run.x[:, 0] * run.x[:, 1] - 1).max() < 1e-12


def test_index_three_written_by_hand():
    model = lv.FirstOrder(
        "x y u v",
        algebraic="lam",
        rhs=lambda x, y: [x[2], x[3], -x[0] * y[0], -9.81 - x[1] * y[0]],
        constraints=lambda x: [(x[0] ** 2 + x[1] ** 2 - 1) / 2],
    )
    run = lv.simulate(model, x0=[*Q0, *V0], h=0.01, t_end=0.1)
    assert run.y[0, 0] == pytest.approx(SPEED**2 + 9.81 * np.cos(ANGLE), abs=1e-12)
    with pytest.raises(lv.InputError, match=r"the time derivative of constraint 0 is violated by 0\.5"):
        lv.simulate(model, x0=[1.0, 0.0, 0.5, 0.0], h=0.01, t_end=0.1)
    with pytest.raises(lv.InputError, match="the second time derivative of constraint 0 is violated"):
        lv.simulate(model, x0=[*Q0, *V0], y0=[0.0], h=0.01, t_end=0.1)


def test_multipliers_of_networks_are_computed():
    model, start, _ = network()
    zero = start.copy()
    zero[-1] = 0.0
    for given in (start, zero):
        assert lv.simulate(model, x0=given, h=0.01, t_end=0.1).x[0] == pytest.approx(start, abs=1e-11)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_multibody_equations_project_and_leave_out(formulation):
    twice = lv.MultibodyEquations(
        "x y",
        kinetic=lambda v: v @ v / 2,
        potential=lambda q: 9.81 * q[1],
        constraints=lambda q: [(q @ q - 1) / 2, q @ q - 1],
    ).formulate(formulation)
    once = pendulum().formulate(formulation)
    with pytest.raises(lv.InputError, match="constraint 1 follows from the others; pass redundant='remove'"):
        lv.simulate(twice, q0=[1.0, 0.0], v0=[0.0, 0.0], h=0.01, t_end=0.5)
    with pytest.raises(lv.InputError, match=r"violated on position level by .* nearby is \(x = 1, y = 0"):
        lv.simulate(once, q0=[1.1, 0.0], v0=[0.0, 0.0], h=0.01, t_end=0.5)
    options = dict(q0=[1.1, 0.0], v0=[0.1, 1.0], h=0.01, t_end=0.5, project=True)
    run, other = lv.simulate(twice, **options, redundant="remove"), lv.simulate(once, **options)
    assert run.x[0] == pytest.approx([1.0, 0.0, 0.0, 1.0], abs=1e-14)
    lam = run.y[-1, :2] @ [1.0, 2.0]  # the kept one may be either
    assert run.x[-1] == pytest.approx(other.x[-1], abs=1e-11) and lam == pytest.approx(other.y[-1, 0], abs=1e-9)


# -- Murua's method on models of index 2 ------------------------------------------------------------------------------
@functools.cache
def accurate_pendulum():
    return lv.simulate(pendulum().formulate("ggl"), q0=Q0, v0=V0, scheme="radau-iia-6", h=0.01, t_end=1.0)


@pytest.mark.parametrize("formulation", ["index-2", "ggl"])
@pytest.mark.parametrize(("s", "steps"), [(1, [0.02, 0.0125, 0.01, 0.005]), (3, [0.1, 0.08, 0.05, 0.04])])
def test_order_of_murua_on_index_two(formulation, s, steps):
    """Order 2s (Symank thm. 6.7); what the formulation imposes is kept, and with velocities alone positions drift."""
    exact, errors, drift = accurate_pendulum(), [], []
    for h in steps:
        run = lv.simulate(pendulum().formulate(formulation), q0=Q0, v0=V0, scheme=f"murua-{s}", h=h, t_end=1.0)
        errors.append(np.abs(run.x[-1] - exact.x[-1]).max())
        drift.append(run.summary.max_constraint)
        assert run.summary.max_velocity_constraint < 1e-14
    assert abs(measured_order(steps, errors) - 2 * s) < 0.1
    assert max(drift) < 1e-15 if formulation == "ggl" else abs(measured_order(steps, drift) - 2 * s) < 0.15


def test_murua_is_one_method_on_all_kinds_of_models():
    system = lv.problems.load("simple-pendulum").model
    options = dict(scheme="murua-3", h=0.05, t_end=1.0)
    a = lv.simulate(system, q0=Q0, v0=V0, **options)
    b = lv.simulate(lv.MultibodyEquations.from_system(system).formulate("index-2"), q0=Q0, v0=V0, **options)
    start = lv.port_hamiltonian.state_from_system(system, Q0, V0)
    c = lv.simulate(lv.port_hamiltonian.from_system(system), x0=start, **options)
    for x, lam in ((b.x, b.y[1:, 0]), (c.x, c.x[1:, -1])):
        assert np.abs(x[:, :2] - a.q).max() < 1e-14 and np.abs(lam - a.multipliers[1:, 0]).max() < 1e-11


def test_murua_with_places_of_contact():
    """Auxiliary variables of index 1 are solved for at both kinds of nodes."""
    contact = lv.MultibodyEquations(
        "x y",
        kinetic=lambda v: v @ v / 2,
        potential=lambda q: 9.81 * q[1],
        auxiliary="s",
        conditions=lambda q, s: [s[0] + 0.1 * s[0] ** 3 - q[0] ** 2 - 0.1 * q[0] ** 6],
        constraints=lambda q, s: [(s[0] + q[1] ** 2 - 1) / 2],
    ).formulate("index-2")
    run = lv.simulate(contact, q0=Q0, v0=V0, scheme="murua-3", h=0.05, t_end=1.0)
    assert np.abs(run.x[-1] - accurate_pendulum().x[-1]).max() < 1e-8
    assert np.abs(run.y[:, 0] - run.x[:, 0] ** 2).max() < 1e-14


def test_murua_with_controlled_steps():
    run = run_of(pendulum().formulate("index-2"), 1e-8, 1.0, scheme="murua-3", q0=Q0, v0=V0)
    assert np.abs(run.x[-1] - accurate_pendulum().x[-1]).max() < 1e-8 and run.statistics.steps < 150


@pytest.mark.parametrize("formulation", ["index-1", "index-3"])
def test_murua_says_what_it_needs(formulation):
    with pytest.raises(lv.InputError, match=r"needs a model of index 2, x' = f\(x, z\) with 0 = g\(x\)"):
        lv.simulate(pendulum().formulate(formulation), q0=Q0, v0=V0, scheme="murua-2", h=0.1, t_end=1.0)


@pytest.mark.parametrize(("scheme", "order"), [("murua-1", 2), ("murua-2", 2), ("murua-3", 4), ("murua-ggl-3", 4)])
@pytest.mark.parametrize("formulation", ["elements", "index-2"])
def test_end_multipliers_of_murua_have_order_s_plus_one_for_odd_s(scheme, order, formulation):
    """``gamma_0 z_0 + sum gamma_i Z_i`` against the force in the rod of a pendulum, w^2 + g cos(angle)."""
    if formulation == "index-2" and "ggl" in scheme:
        pytest.skip("murua-ggl takes systems")
    angle, rate = 1.2, 0.5
    exact = solve_ivp(
        lambda t, y: [y[1], -9.81 * np.sin(y[0])], (0, 2), [angle, rate], method="DOP853", rtol=1e-13, atol=1e-13,
        dense_output=True,
    ).sol  # fmt: skip
    given = dict(
        kinetic=lambda v: 0.5 * (v @ v), potential=lambda q: 9.81 * q[1], constraints=lambda q: [0.5 * (q @ q - 1)]
    )
    q0 = np.array([np.sin(angle), -np.cos(angle)])
    v0 = rate * np.array([np.cos(angle), np.sin(angle)])
    steps, errors = [0.04, 0.02, 0.01, 0.005], []
    for h in steps:
        if formulation == "elements":
            run = lv.simulate(lv.System("x y", **given), q0=q0, v0=v0, scheme=scheme, h=h, t_end=2.0)
            lam = run.multipliers[:, 0]
        else:
            model = lv.MultibodyEquations("x y", **given).formulate("index-2")
            run = lv.simulate(model, q0=q0, v0=v0, scheme=scheme, h=h, t_end=2.0)
            lam = run.y[:, 0]
        position, speed = exact(run.t)
        errors.append(np.abs(np.abs(lam) - (speed**2 + 9.81 * np.cos(position))).max())
    assert abs(measured_order(steps, errors) - order) < 0.1


# -- energy balance ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scheme", ["gauss-1", "gauss-2", "radau-iia-2"])
def test_work_and_loss_of_a_network_are_those_of_its_motion(scheme):
    """A damped oscillator, driven at one end: power in and out are integrated with the weights of the method."""
    model = lv.PortHamiltonian(
        "q p",
        H=lambda x: 2 * x[0] ** 2 + x[1] ** 2 / 2,
        J=[[0, 1], [-1, 0]],
        R=[[0, 0], [0, 0.3]],
        B=[[0], [1]],
        u=lambda t: [m.cos(2 * t)],
    )

    def oscillator(t, y):
        q, p, _, _ = y
        return [p, -4 * q - 0.3 * p + np.cos(2 * t), np.cos(2 * t) * p, 0.3 * p**2]

    exact = solve_ivp(oscillator, (0, 5.0), [1, 0, 0, 0], method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    steps, errors = [0.1, 0.05, 0.025, 0.0125], []
    for h in steps:
        run = lv.simulate(model, x0=[1.0, 0.0], scheme=scheme, h=h, t_end=5.0)
        found = [run.supplied_energy[-1], run.dissipated_energy[-1]]
        errors.append(np.abs(found - exact[2:]).max())
        assert scheme.startswith("radau") or run.summary.max_energy_drift < 1e-12
    assert abs(measured_order(steps, errors) - lv.schemes.get(scheme).order) < 0.25
