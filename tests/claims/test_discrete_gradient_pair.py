"""Discrete gradient pairs of port-Hamiltonian descriptor systems: exact energy balance, order, motion."""

import casadi as ca
import numpy as np
import pytest
from conftest import measured_order
from scipy.integrate import solve_ivp

import livens as lv
from livens import math as m
from livens.schemes.energy_momentum.discrete_gradient_pair import _storage_blocks

J = [[0, 1], [-1, 0]]
STEPS = [0.2 / 2**i for i in range(5)]


def pendulum(**others):
    return lv.PortHamiltonian("q p", H=lambda x: x[1] ** 2 / 2 - m.cos(x[0]) + x[0] ** 4 / 8, J=J, **others)


def damped():
    """Losses, a periodic input and a Hamiltonian that is not quadratic."""
    return pendulum(R=lambda x: [[0, 0], [0, 0.2 + x[0] ** 2]], B=[[0], [1]], u=lambda t: [m.sin(2 * t)])


def damped_rates(t, x):
    force = -np.sin(x[0]) - x[0] ** 3 / 2
    return [x[1], force - (0.2 + x[0] ** 2) * x[1] + np.sin(2 * t)]


def errors(model, scheme, exact, t_end=2.0, x0=(1.2, 0.3)):
    runs = [lv.simulate(model, x0=list(x0), scheme=scheme, h=h, t_end=t_end) for h in STEPS]
    return [np.linalg.norm(run.x[-1] - exact) for run in runs], runs


def exact_motion(rates, t_end=2.0, x0=(1.2, 0.3)):
    return solve_ivp(rates, (0, t_end), x0, method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]


def test_the_motion_has_order_two_and_four():
    """Compared with DOP853 on equations that are written down once more."""
    exact = exact_motion(damped_rates)
    found, _ = errors(damped(), "discrete-gradient-pair", exact)
    assert abs(measured_order(STEPS, found) - 2) < 0.05
    found, _ = errors(damped(), "suzuki-4:discrete-gradient-pair", exact)
    assert abs(measured_order(STEPS, found) - 4) < 0.1


@pytest.mark.parametrize("scheme", ["discrete-gradient-pair", "suzuki-4:discrete-gradient-pair"])
@pytest.mark.parametrize("h", [0.01, 0.3])
def test_the_energy_balance_is_exact_for_every_hamiltonian(scheme, h):
    """And is not with the midpoint rule, which conserves quadratic Hamiltonians only."""
    conservative = lv.simulate(pendulum(), x0=[1.2, 0.3], scheme=scheme, h=h, t_end=300 * h)
    H = conservative.observe("hamiltonian")
    assert np.abs(H - H[0]).max() < 1e-13
    open_system = lv.simulate(damped(), x0=[1.2, 0.3], scheme=scheme, h=h, t_end=300 * h)
    assert np.abs(open_system.observe("energy_balance_defect")).max() < 1e-13
    assert np.all(np.diff(open_system.observe("dissipated_energy")) >= 0)
    midpoint = lv.simulate(pendulum(), x0=[1.2, 0.3], scheme="gauss-1", h=h, t_end=300 * h).observe("hamiltonian")
    assert np.abs(midpoint - midpoint[0]).max() > 1e-8


def test_hamiltonians_that_depend_on_time():
    """H(x, t) with its time flow r: the increment of H includes that of the explicit time."""
    model = lv.PortHamiltonian(
        "q p",
        H=lambda x, t: x[1] ** 2 / 2 + (1 + 0.5 * m.sin(t)) * x[0] ** 4 / 4 + t * 0,
        z=lambda x, t: [(1 + 0.5 * m.sin(t)) * x[0] ** 3, x[1]],
        E=[[1, 0], [0, 1]],
        r=lambda x, t: [0.5 * m.cos(t) * x[0] / (4 * (1 + 0.5 * m.sin(t))), 0],
        J=J,
    )
    exact = exact_motion(
        lambda t, x: [
            x[1] - 0.5 * np.cos(t) * x[0] / (4 * (1 + 0.5 * np.sin(t))),
            -(1 + 0.5 * np.sin(t)) * x[0] ** 3,
        ]
    )
    found, runs = errors(model, "discrete-gradient-pair", exact)
    assert abs(measured_order(STEPS, found) - 2) < 0.05
    for run in runs:
        assert np.abs(run.observe("energy_balance_defect")).max() < 1e-13


def test_a_quadratic_hamiltonian_gives_the_midpoint_rule():
    problem = lv.problems.load("rlc-circuit")
    runs = [
        lv.simulate(problem, scheme=scheme, h=0.01, t_end=1.0).x for scheme in ("discrete-gradient-pair", "gauss-1")
    ]
    assert np.abs(runs[0] - runs[1]).max() < 1e-14


def test_descriptor_systems_with_algebraic_variables():
    """A flow matrix that is singular: two capacitors in parallel share a voltage, E x' = (J - R) z."""
    model = lv.PortHamiltonian(
        "a b i",
        H=lambda x: x[0] ** 4 / 4 + m.cosh(x[1]),
        z=lambda x: [x[0] ** 3, m.sinh(x[1]), x[2]],
        E=[[1, 0, 0], [0, 1, 0], [0, 0, 0]],
        J=[[0, 0, 1], [0, 0, -1], [-1, 1, 0]],
        R=[[0, 0, 0], [0, 0, 0], [0, 0, 0.5]],
    )
    # i = (b-voltage - a-voltage) / 0.5 flows from b to a
    exact = exact_motion(lambda t, x: [2 * (np.sinh(x[1]) - x[0] ** 3), -2 * (np.sinh(x[1]) - x[0] ** 3)], 0.4)
    x0 = [1.2, 0.3, 2 * (np.sinh(0.3) - 1.2**3)]
    found = []
    steps = [h / 4 for h in STEPS]
    for h in steps:
        run = lv.simulate(model, x0=x0, scheme="discrete-gradient-pair", h=h, t_end=0.4)
        found.append(np.linalg.norm(run.x[-1, :2] - exact))
        assert np.abs(run.observe("energy_balance_defect")).max() < 1e-13
    assert abs(measured_order(steps, found) - 2) < 0.1


def line_rates(t, x):
    """Five cells with the charges at even and the fluxes at odd positions, derived by hand."""
    q, flux = x[::2], x[1::2]
    current = flux - np.append(flux[1:], 0.0)
    voltage = -np.sinh(q) + np.append(0.0, np.sinh(q[:-1])) - 0.1 * flux
    return np.stack([current, voltage], axis=1).ravel()


@pytest.mark.parametrize(("scheme", "order"), [("discrete-gradient-pair", 2), ("suzuki-4:discrete-gradient-pair", 4)])
def test_networks_with_nonlinear_storage(scheme, order):
    """Order and exact balance; every term of the energy has a correction of its own, so that equations stay sparse."""
    problem = lv.problems.load("nonlinear-line")
    x0 = problem.initial_values["x0"]
    exact = exact_motion(line_rates, 2.0, x0)
    runs = [lv.simulate(problem, scheme=scheme, h=h, t_end=2.0) for h in STEPS]
    assert abs(measured_order(STEPS, [np.linalg.norm(run.x[-1] - exact) for run in runs]) - order) < 0.15
    assert max(np.abs(run.observe("energy_balance_defect")).max() for run in runs) < 1e-13
    pair, midpoint = (lv.schemes.get(name).equations(problem.model) for name in ("discrete-gradient-pair", "gauss-1"))
    assert pair.jac_rows.size == midpoint.jac_rows.size
    capacitors = [block for block in storage_blocks(problem.model) if not block.is_exact_at_midpoint]
    assert [block.states for block in capacitors] == [(i,) for i in range(0, 10, 2)]


def test_energies_with_kinks_or_time_are_one_term():
    kinked = lv.PortHamiltonian("a b", H=lambda x: m.maximum(x[0], x[1]) ** 2 + x @ x, J=J)
    assert len(storage_blocks(kinked)) == 1 and not storage_blocks(kinked)[0].is_exact_at_midpoint
    run = lv.simulate(kinked, x0=[1.0, 0.3], scheme="discrete-gradient-pair", h=0.1, t_end=20.0)
    assert np.ptp(run.observe("hamiltonian")) < 1e-12


def storage_blocks(model):
    s = model.structure
    x_and_t = ca.vertcat(s.x, s.t)
    return _storage_blocks(s, ca.Function("H", [x_and_t, s.k], [s.H]))


def test_other_models_are_refused():
    with pytest.raises(lv.InputError, match=r"port-Hamiltonian system \(PortHamiltonian\)"):
        lv.simulate(
            lv.FirstOrder("x", rhs=lambda x: [-x[0]]), x0=[1.0], scheme="discrete-gradient-pair", h=0.1, t_end=1.0
        )
