"""Splittings with flows of the user, and the J-R splitting of port-Hamiltonian systems."""

import numpy as np
import pytest
from conftest import measured_order
from scipy.integrate import solve_ivp

import livens as lv
from livens import math as m

STEPS = [0.1 / 2**i for i in range(4)]


def rotation(x, h):
    return [m.cos(h) * x[0] + m.sin(h) * x[1], m.cos(h) * x[1] - m.sin(h) * x[0]]


def kick(x, h, t, k):
    """The exact flow of ``x1' = -c x0^3 + cos t``."""
    return [x[0], x[1] - h * k.c * x[0] ** 3 + m.sin(t + h) - m.sin(t)]


def duffing():
    driven = lambda x, t, k: [x[1], -x[0] - k.c * x[0] ** 3 + m.cos(t)]  # noqa: E731
    return lv.FirstOrder("q p", rhs=driven, parameters=dict(c=1.5))


def exact(t_end):
    rates = lambda t, x: [x[1], -x[0] - 1.5 * x[0] ** 3 + np.cos(t)]  # noqa: E731
    return solve_ivp(rates, (0, t_end), [1.0, 0.0], method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]


@pytest.mark.parametrize(("method", "composed", "order"), [("lie", 0, 1), ("strang", 0, 2), ("strang", 4, 4)])
def test_order_of_splittings_with_user_flows(method, composed, order):
    scheme = lv.schemes.flow_splitting([rotation, kick], method=method)
    assert scheme.order == (1 if method == "lie" else 2)
    scheme = lv.schemes.compose(scheme, composed) if composed else scheme
    runs = [lv.simulate(duffing(), x0=[1.0, 0.0], scheme=scheme, h=h, t_end=2.0) for h in STEPS]
    errors = [np.abs(run.x[-1] - exact(2.0)).max() for run in runs]
    assert measured_order(STEPS, errors) == pytest.approx(order, abs=0.1)


def test_symplectic_flows_make_a_symplectic_scheme(tmp_path):
    pendulum = lv.Hamiltonian("q", kinetic=lambda p: p[0] ** 2 / 2, potential=lambda q: -m.cos(q[0]))
    drift = lambda x, h: [x[0] + h * x[1], x[1]]  # noqa: E731
    fall = lambda x, h: [x[0], x[1] - h * m.sin(x[0])]  # noqa: E731
    scheme = lv.schemes.flow_splitting([fall, drift], symplectic=True, name="kick-drift-kick")
    assert lv.study.symplecticity_defect(pendulum, scheme, [1.0], p=[0.3], h=0.2) < 1e-14
    run = lv.simulate(pendulum, q0=[1.0], p0=[0.0], scheme=scheme, h=0.1, t_end=10.0, out=tmp_path / "run.h5")
    other = lv.simulate(pendulum, q0=[1.0], p0=[0.0], scheme="stormer-verlet", h=0.1, t_end=10.0)
    assert np.abs(run.q - other.q).max() < 1e-12 and np.abs(run.v - other.v).max() < 1e-12
    longer = lv.resume(tmp_path / "run.h5", t_end=20.0, system=pendulum, scheme=scheme)
    assert longer.t[-1] == pytest.approx(20.0)


def test_flows_are_checked():
    oscillator = lv.FirstOrder("q p", rhs=lambda x: [x[1], -x[0] - x[0] ** 3])
    cube = lambda x, h: [x[0], x[1] - h * x[0] ** 3]  # noqa: E731

    def refused(flows, words, **options):
        with pytest.raises(lv.InputError, match=words):
            lv.simulate(oscillator, x0=[1.0, 0.0], scheme=lv.schemes.flow_splitting(flows, **options), h=0.1, t_end=1.0)

    refused([rotation, lambda x, h: [x[0], x[1] - 2 * h * x[0] ** 3]], "add up to the equations")
    refused([rotation, lambda x, h: [x[0], x[1] + 1 - h * x[0] ** 3]], "flow 2 is not")
    euler = lambda x, h: [x[0] + h * x[1], x[1] - h * x[0]]  # noqa: E731
    refused([euler, cube], "flow 1 does not: use method='lie'")
    assert lv.simulate(
        oscillator, x0=[1.0, 0.0], scheme=lv.schemes.flow_splitting([euler, cube], method="lie"), h=0.1, t_end=1.0
    )
    with pytest.raises(lv.InputError, match="at least two functions"):
        lv.schemes.flow_splitting([rotation])


# -- port-Hamiltonian systems -----------------------------------------------------------------------------------------
def swing(**others):
    return lv.PortHamiltonian(
        "q p", H=lambda x: x[1] ** 2 / 2 - m.cos(x[0]) + x[0] ** 4 / 8, J=[[0, 1], [-1, 0]], **others
    )


def damped():
    return swing(R=lambda x: [[0, 0], [0, 0.2 + x[0] ** 2]], B=[[0], [1]], u=lambda t: [m.sin(2 * t)])


def damped_rates(t, x):
    return [x[1], -np.sin(x[0]) - x[0] ** 3 / 2 - (0.2 + x[0] ** 2) * x[1] + np.sin(2 * t)]


@pytest.mark.parametrize(("scheme", "order"), [("j-r-splitting", 2), ("suzuki-4:j-r-splitting", 4)])
def test_j_r_splitting(scheme, order):
    """Order, exact balance for a Hamiltonian that is not quadratic, and losses that are losses."""
    end = solve_ivp(damped_rates, (0, 2), [1.2, 0.3], method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]
    runs = [lv.simulate(damped(), x0=[1.2, 0.3], scheme=scheme, h=h, t_end=2.0) for h in STEPS]
    errors = [np.abs(run.x[-1] - end).max() for run in runs]
    assert measured_order(STEPS, errors) == pytest.approx(order, abs=0.15)
    assert max(np.abs(run.observe("energy_balance_defect")).max() for run in runs) < 1e-13
    if order == 2:
        assert np.all(np.diff(runs[0].dissipated_energy) >= 0)
    free = lv.simulate(swing(), x0=[1.2, 0.3], scheme=scheme, h=0.2, t_end=60.0)
    assert np.ptp(free.observe("hamiltonian")) < 1e-13


def test_j_r_splitting_refuses_algebraic_equations():
    with pytest.raises(lv.InputError, match="a regular matrix E"):
        lv.simulate(lv.problems.load("rlc-circuit"), scheme="j-r-splitting", h=0.01, t_end=0.1)


# -- time-transformed splittings ---------------------------------------------------------------------------------------
FAST = 10.0


def turn(x, h):
    """The exact flow of two oscillators of one frequency."""
    cos, sin = m.cos(FAST * h), m.sin(FAST * h)
    return [
        *(cos * x[i] + sin * x[i + 2] / FAST for i in (0, 1)),
        *(cos * x[i + 2] - FAST * sin * x[i] for i in (0, 1)),
    ]


def push(x, h, k):
    return [x[0], x[1], x[2] - h * k.c * x[1] * (1 + 2 * x[0]), x[3] - h * k.c * (x[0] + x[0] ** 2 - x[1] ** 2)]


PARTS = (
    lambda q, p: (p @ p + FAST**2 * (q @ q)) / 2,
    lambda q, k: k.c * (q[0] * q[1] + q[0] ** 2 * q[1] - q[1] ** 3 / 3),
)


def coupled():
    return lv.Hamiltonian(
        "x y",
        kinetic=lambda p: p @ p / 2,
        potential=lambda q, k: FAST**2 * (q @ q) / 2 + k.c * (q[0] * q[1] + q[0] ** 2 * q[1] - q[1] ** 3 / 3),
        parameters=dict(c=0.8),
    )


COUPLED_START = dict(q0=[0.4, -0.2], p0=[0.5, 1.0])


def test_sundman_splitting_with_user_flows():
    """Steps by hand in NumPy, those of `sundman-harmonic`, and no drift."""
    scheme, g = lv.schemes.sundman_splitting([turn, push], PARTS), lambda T, V: 1 / (1 + 0.3 * T + V**2)
    run = lv.simulate(coupled(), **COUPLED_START, scheme=scheme, scaling=g, h=0.1, t_end=10.0)
    built_in = lv.simulate(coupled(), **COUPLED_START, scheme="sundman-harmonic", scaling=g, h=0.1, t_end=10.0)
    assert np.abs(run.q - built_in.q).max() < 1e-12 and np.abs(run.t - built_in.t).max() < 1e-12
    c, x, t = 0.8, np.r_[COUPLED_START["q0"], COUPLED_START["p0"]], 0.0
    H1 = lambda x: (x[2:] @ x[2:] + FAST**2 * (x[:2] @ x[:2])) / 2  # noqa: E731
    H2 = lambda x: c * (x[0] * x[1] + x[0] ** 2 * x[1] - x[1] ** 3 / 3)  # noqa: E731
    H0 = H1(x) + H2(x)

    def pushed(x, h):
        return x - h * c * np.array([0, 0, x[1] * (1 + 2 * x[0]), x[0] + x[0] ** 2 - x[1] ** 2])

    for row, time in zip(run.q[1:50], run.t[1:50], strict=True):
        x = pushed(x, 0.05 * g(H0 - H2(x), H2(x)))
        duration = 0.1 * g(H1(x), H0 - H1(x))
        cos, sin = np.cos(FAST * duration), np.sin(FAST * duration)
        x, t = np.r_[cos * x[:2] + sin * x[2:] / FAST, cos * x[2:] - FAST * sin * x[:2]], t + duration
        x = pushed(x, 0.05 * g(H0 - H2(x), H2(x)))
        assert np.abs(x[:2] - row).max() < 1e-12 and abs(t - time) < 1e-13
    long = lv.simulate(coupled(), **COUPLED_START, scheme=scheme, scaling=g, h=0.2, t_end=200.0)
    energy = long.observe("hamiltonian")
    assert np.ptp(energy[len(energy) // 2 :]) < 1.2 * np.ptp(energy[: len(energy) // 2]) < 0.1


def test_energies_of_a_sundman_splitting_are_checked():
    def refused(flows, energies, words):
        with pytest.raises(lv.InputError, match=words):
            scheme = lv.schemes.sundman_splitting(flows, energies)
            lv.simulate(coupled(), **COUPLED_START, scheme=scheme, scaling=lambda T, V: 1 + T, h=0.1, t_end=1.0)

    refused([turn, push], (PARTS[0], lambda q: q[0]), "add up to the Hamiltonian")
    refused([push, turn], PARTS, "flow 1 does not")
    refused([turn], PARTS, "flows must be two functions")
