"""Schemes in coordinates and momenta: special cases, orders, symplecticity, symmetry, work, and problems 14 and 15."""

import functools

import casadi as ca
import numpy as np
import pytest
from conftest import measured_order
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import livens as lv
from livens import math as m
from livens.errors import InputError
from livens.expressions.graph.merge_divisions import merge_divisions
from stepping import OneStep, reversibility_defect, symmetry_defect, symplecticity_defect

seeds = st.integers(0, 10**6)
few = settings(max_examples=4, deadline=None)

FIRST = ("symplectic-euler", "variational:0", "variational:0.3", "variational:1")
SECOND = (
    "variational:0.5", "implicit-midpoint", "variational-sym:0", "variational-sym:0.3", "variational-sym:0.5",
    "variational-sym:1",
)  # fmt: skip
EXPLICIT = ("symplectic-euler", "variational:0", "variational:1", "variational-sym:0", "variational-sym:1")
COMPARISON = {
    "explicit-euler": 1, "implicit-euler": 1, "heun": 2, "explicit-midpoint": 2, "implicit-extrapolation": 2,
    "theta:0.6": 1, "theta:0.5": 2, "trapezoidal": 2,
}  # fmt: skip


@functools.cache
def separable(seed=0):
    """Neither energy quadratic, nothing even or odd."""
    random = np.random.default_rng(seed)
    a, b, c = random.uniform(0.5, 1.5, (3, 2))
    return lv.Hamiltonian(
        "x y",
        kinetic=lambda p: p @ (a * p) / 2 + 0.05 * (p[0] - p[1]) ** 3 + 0.1 * p[0] * p[1],
        potential=lambda q: m.cos(b[0] * q[0] + q[1]) + (c * q) @ q / 2 + 0.1 * q[0] ** 3,
    )


@functools.cache
def mixed():
    """Not separable: a mass that depends on the position, and a term linear in p."""
    return lv.Hamiltonian(
        "x y",
        hamiltonian=lambda q, p: (
            p[0] ** 2 / (2 + m.sin(q[1])) + p[1] ** 2 / 2 + 0.3 * q[0] * p[1] + m.cos(q[0]) + q @ q
        ),
    )


@functools.cache
def driven(velocity=True):
    """Forces without potential, friction, and a potential that moves; as a System, which knows what friction is."""
    return lv.System(
        "x y",
        kinetic=lambda v: v[0] ** 2 / 2 + v[1] ** 2 + 0.2 * v[0] * v[1],
        potential=lambda q, t: q @ q / 2 + q[0] ** 4 / 4 + q[1] * m.sin(t),
        dissipation=(lambda v: 0.1 * v[0] ** 2 + 0.05 * (v @ v)) if velocity else None,
        forces=lambda q, t: [0.3 * q[1] * m.cos(t), 0.2 * m.sin(2 * t)],
    )


def accurate(model, q, p, t_end):
    f = ca.Function("f", [model.q, model.p, model.t], [ca.vertcat(model.velocity, model.momentum_rate)])
    n = len(q)
    run = solve_ivp(
        lambda t, y: np.array(f(y[:n], y[n:], t)).ravel(), (0, t_end), [*q, *p], method="DOP853", rtol=1e-13, atol=1e-13
    )
    return run.y[:, -1]


@functools.cache
def reference_of(make, t_end):
    model = make()
    model = lv.Hamiltonian.from_system(model) if isinstance(model, lv.System) else model
    return accurate(model, START[:2], START[2:], t_end)


START = np.array([0.4, -0.3, 0.5, 0.2])


def errors(make, scheme, steps, t_end=1.0):
    model = make()
    first = {"p0": START[2:]}
    if isinstance(model, lv.System):
        phase = lv.Hamiltonian.from_system(model)
        first = {"v0": np.array(phase.function(phase.velocity)(START[:2], START[2:], 0, [])).ravel()}
    found = []
    for h in steps:
        run = lv.simulate(model, q0=START[:2], **first, scheme=scheme, h=h, t_end=t_end)
        found.append(np.linalg.norm(np.concatenate([run.q[-1], run.p[-1]]) - reference_of(make, t_end)))
    return found


# -- what is the same ---------------------------------------------------------------------------------------------
@given(seeds)
@few
def test_special_cases_are_equal_to_round_off(seed):
    model, random = separable(seed % 5), np.random.default_rng(seed)
    state, h = random.uniform(-1, 1, 4), random.uniform(0.01, 0.3)
    for one, other in [
        ("variational:0", "symplectic-euler"),
        ("variational:0.5", "implicit-midpoint"),
        ("variational-sym:0", "stormer-verlet"),
        ("variational-sym:1", "stormer-verlet"),
        ("variational-sym:0.5", "implicit-midpoint"),
        ("variational-sym:0.3", "variational-sym:0.7"),
        ("theta:0.5", "trapezoidal"),
        ("theta:0", "explicit-euler"),
        ("theta:1", "implicit-euler"),
    ]:
        there = OneStep(model, one, h)(state), OneStep(model, other, h)(state)
        assert there[0] == pytest.approx(there[1], abs=1e-14), (one, other)


def test_special_cases_of_an_energy_that_is_no_sum():
    step = {name: OneStep(mixed(), name, 0.1)(START) for name in (*FIRST, *SECOND)}
    assert step["variational:0"] == pytest.approx(step["symplectic-euler"], abs=1e-15)
    assert step["variational:0.5"] == pytest.approx(step["implicit-midpoint"], abs=1e-15)
    assert step["variational-sym:0.5"] == pytest.approx(step["implicit-midpoint"], abs=1e-15)
    assert step["variational-sym:0"] == pytest.approx(step["variational-sym:1"], abs=1e-15)


def test_a_system_and_its_hamiltonian_move_alike():
    """Symplectic Euler has its own equations for systems: they agree, also with friction and moving potentials."""
    system = driven()
    phase = lv.Hamiltonian.from_system(system)
    v0 = np.array(phase.function(phase.velocity)(START[:2], START[2:], 0, [])).ravel()
    for scheme in ("symplectic-euler", "implicit-midpoint", "variational-sym:0.3", "heun"):
        given_v = lv.simulate(system, q0=START[:2], v0=v0, scheme=scheme, h=0.05, t_end=1.0)
        given_p = lv.simulate(phase, q0=START[:2], p0=START[2:], scheme=scheme, h=0.05, t_end=1.0)
        assert np.abs(given_v.q - given_p.q).max() < 1e-13
        assert np.abs(given_v.p - given_p.p).max() < 1e-13


def test_explicit_schemes_solve_nothing():
    pendulum = lv.problems.load("nonlinear-pendulum")
    for scheme in (*EXPLICIT, "stormer-verlet", "strang", "explicit-euler", "heun", "explicit-midpoint"):
        assert lv.schemes.get(scheme).equations(pendulum.model).to_single_graph().size == 0
        assert lv.schemes.get(scheme).equations(separable()).to_single_graph().size == 0
        assert lv.simulate(pendulum, scheme=scheme, t_end=1.0).statistics.newton_iterations == 0
        assert not lv.schemes.get(scheme).implicit or scheme == "symplectic-euler"  # implicit with constraints
    for scheme in ("variational:0.3", "implicit-midpoint", "variational-sym:0.3"):
        assert lv.schemes.get(scheme).equations(separable()).to_single_graph().size == 2  # one velocity per coordinate
        assert lv.schemes.get(scheme).implicit
    assert lv.schemes.get("variational:0").equations(mixed()).to_single_graph().size == 2
    assert lv.schemes.get("variational:1").equations(mixed()).to_single_graph().size == 2
    assert lv.schemes.get("variational:0.3").equations(mixed()).to_single_graph().size == 4


def test_how_often_forces_are_evaluated():
    """The one exponential of the model is its force: it can be counted in the compiled step."""
    model = lv.Hamiltonian("x", kinetic=lambda p: p @ p / 2, potential=lambda q: m.exp(q[0]))
    for scheme, times in {
        "stormer-verlet": 1, "strang": 1, "symplectic-euler": 1, "variational:1": 1, "variational-sym:0": 2,
        "explicit-euler": 1, "heun": 2, "explicit-midpoint": 2, "yoshida-4:stormer-verlet": 3,
    }.items():  # fmt: skip
        e = lv.schemes.get(scheme).equations(model).to_single_graph().final_state_function
        assert sum(e.instruction_id(i) == ca.OP_EXP for i in range(e.n_instructions())) == times
        assert getattr(lv.schemes.get(scheme), "evaluations_per_step", 1) == times


# -- orders -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("make", [separable, mixed, driven])
@pytest.mark.parametrize("scheme", [*FIRST, *SECOND, *COMPARISON])
def test_orders(scheme, make):
    order = lv.schemes.get(scheme).order
    assert order == (1 if scheme in FIRST else 2 if scheme in SECOND else COMPARISON[scheme])
    steps = [0.02 / 2**i for i in range(4)] if order == 2 else [0.005 / 2**i for i in range(4)]
    found = errors(make, scheme, steps)
    assert abs(measured_order(steps, found) - order) < 0.1
    assert found[-1] < 0.01


@pytest.mark.parametrize("scheme", ["stormer-verlet", "strang"])
@pytest.mark.parametrize("make", [separable, lambda: driven(velocity=False)])
def test_orders_of_splittings(scheme, make):
    steps = [0.02 / 2**i for i in range(4)]
    assert abs(measured_order(steps, errors(make, scheme, steps)) - 2) < 0.1


def lotka(h, scheme):
    model = lv.FirstOrder(
        "a b",
        rhs=lambda x, t, k: [x[0] * (1 - x[1]) + 0.1 * m.sin(t), k.rate * x[1] * (x[0] - 1)],
        mass=lambda x: [[1 + x[0] ** 2, 0.1], [0, 2]],
        parameters=dict(rate=1.2),
    )
    return model, lv.simulate(model, x0=[1.5, 0.8], scheme=scheme, h=h, t_end=1.0)


@pytest.mark.parametrize("scheme", COMPARISON)
def test_orders_on_systems_of_first_order(scheme):
    """With a mass matrix that depends on the state, and time in the right-hand side."""

    def rates(t, x):
        mass = np.array([[1 + x[0] ** 2, 0.1], [0, 2]])
        return np.linalg.solve(mass, [x[0] * (1 - x[1]) + 0.1 * np.sin(t), 1.2 * x[1] * (x[0] - 1)])

    exact = solve_ivp(rates, (0, 1), [1.5, 0.8], method="DOP853", rtol=1e-13, atol=1e-13).y[:, -1]
    steps = [0.05 / 2**i for i in range(4)]
    found = [np.linalg.norm(lotka(h, scheme)[1].x[-1] - exact) for h in steps]
    assert abs(measured_order(steps, found) - COMPARISON[scheme]) < 0.1
    explicit = scheme in ("explicit-euler", "heun", "explicit-midpoint")
    assert (lv.schemes.get(scheme).equations(lotka(0.1, scheme)[0]).to_single_graph().size == 0) == explicit


def test_comparison_methods_see_the_same_motion_in_every_form():
    """A pendulum as Hamiltonian, of first order, and as Nambu system of the plane."""
    hamilton = lv.Hamiltonian("q", kinetic=lambda p: p[0] ** 2 / 2, potential=lambda q: -m.cos(q[0]))
    first = lv.FirstOrder("q p", rhs=lambda x: [x[1], -m.sin(x[0])])
    nambu = lv.Nambu("q p", hamiltonians=[lambda x: x[1] ** 2 / 2 - m.cos(x[0])])
    for scheme in COMPARISON:
        one = lv.simulate(hamilton, q0=[1.0], p0=[0.3], scheme=scheme, h=0.1, t_end=2.0)
        for model in (first, nambu):
            other = lv.simulate(model, x0=[1.0, 0.3], scheme=scheme, h=0.1, t_end=2.0)
            assert np.abs(np.hstack([one.q, one.p]) - other.x).max() < 1e-13


# -- geometry -----------------------------------------------------------------------------------------------------
@given(seeds)
@few
def test_symplectic_schemes(seed):
    state = np.random.default_rng(seed).uniform(-0.8, 0.8, 4)
    for scheme in (*FIRST, *SECOND, "stormer-verlet", "strang"):
        assert lv.schemes.get(scheme).symplectic
        assert symplecticity_defect(separable(), scheme, state[:2], state[2:], 0.1) < 1e-9
    for scheme in (*FIRST, *SECOND):
        assert symplecticity_defect(mixed(), scheme, state[:2], state[2:], 0.1) < 1e-9


@pytest.mark.parametrize("scheme", COMPARISON)
def test_methods_for_comparison_are_not_symplectic(scheme):
    assert not lv.schemes.get(scheme).symplectic
    assert symplecticity_defect(separable(), scheme, START[:2], START[2:], 0.1) > 1e-6


@given(seeds)
@few
def test_symmetric_schemes(seed):
    """A step and one back; of ``variational:<a>``, the one back is ``variational:<1-a>``."""
    state = np.random.default_rng(seed).uniform(-0.8, 0.8, 4)
    q, p = state[:2], state[2:]
    for scheme in (*FIRST, *SECOND, *COMPARISON, "stormer-verlet", "strang"):
        defect = symmetry_defect(separable(), scheme, q, p, 0.1)
        assert defect < 1e-13 if lv.schemes.get(scheme).symmetric else defect > 1e-7
    for a in (0.0, 0.2, 1.0):
        for model in (separable(), mixed()):
            assert symmetry_defect(model, f"variational:{a:g}", q, p, 0.1, back=f"variational:{1 - a:g}") < 1e-13


def test_reversible_schemes():
    """On a reversible system: the symmetric ones are, and the others are not."""
    kepler = lv.Hamiltonian("x y", kinetic=lambda p: p @ p / 2, potential=lambda q: -1 / m.norm(q))
    for scheme in (*FIRST, *SECOND, *COMPARISON, "stormer-verlet", "strang"):
        defect = reversibility_defect(kepler, scheme, np.array([0.8, 0.1]), np.array([0.2, 1.1]), 0.05)
        assert defect < 1e-14 if lv.schemes.get(scheme).symmetric else defect > 1e-6


# -- work ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scheme", ["variational:0", "implicit-midpoint", "variational-sym:0.3", *COMPARISON])
def test_the_balance_of_work_closes_with_the_order_of_the_scheme(scheme):
    steps, order = [0.02 / 2**i for i in range(4)], lv.schemes.get(scheme).order
    gaps = []
    for h in steps:
        run = lv.simulate(driven(), q0=[0.4, -0.3], v0=[0.5, 0.2], scheme=scheme, h=h, t_end=1.0)
        energy = run.observe("total_energy")
        gaps.append(abs(energy[-1] - energy[0] - run.supplied_energy[-1] + run.dissipated_energy[-1]))
        assert np.all(np.diff(run.dissipated_energy) > 0)  # friction always takes
    assert measured_order(steps, gaps) > order - 0.1  # some balances are better than the motion


@pytest.mark.parametrize("scheme", ["stormer-verlet", "strang"])
def test_the_work_of_explicit_kicks(scheme):
    steps, gaps = [0.02 / 2**i for i in range(4)], []
    for h in steps:
        run = lv.simulate(driven(velocity=False), q0=[0.4, -0.3], v0=[0.5, 0.2], scheme=scheme, h=h, t_end=1.0)
        energy = run.observe("total_energy")
        gaps.append(abs(energy[-1] - energy[0] - run.supplied_energy[-1]))
    assert measured_order(steps, gaps) > 1.9


def test_the_balance_of_the_midpoint_rule_is_exact_for_linear_systems():
    """Damped and driven: the work of all forces is that of the midpoint, to round-off, in every step."""
    model = lv.System(
        "x y",
        kinetic=lambda v: v[0] ** 2 + v[1] ** 2 / 2,
        potential=lambda q: (q[0] - q[1]) ** 2 + q[0] ** 2,
        dissipation=lambda v: 0.1 * (v @ v),
        forces=lambda t: [m.cos(t), 0],
    )
    run = lv.simulate(model, q0=[1.0, 0.0], v0=[0.0, 0.5], scheme="implicit-midpoint", h=0.05, t_end=20.0)
    assert run.summary.max_energy_drift < 1e-13
    assert run.dissipated_energy[-1] > 0.1 and abs(run.supplied_energy[-1]) > 0.1


# -- what does not fit --------------------------------------------------------------------------------------------
def test_schemes_say_what_they_need():
    friction = lv.Hamiltonian("x", kinetic=lambda p: p @ p / 2, forces=lambda v: -v)
    for scheme in ("stormer-verlet", "strang"):
        with pytest.raises(InputError, match=r"needs forces that do not depend on velocities"):
            lv.simulate(friction, q0=[0.0], p0=[1.0], scheme=scheme, h=0.1, t_end=1.0)
        with pytest.raises(InputError, match=r"needs an energy T\(p\) \+ V\(q\)"):
            lv.simulate(mixed(), q0=[0.0, 0.0], p0=[1.0, 0.0], scheme=scheme, h=0.1, t_end=1.0)
    with pytest.raises(InputError, match="needs a system without constraints"):
        lv.simulate(lv.problems.load("simple-pendulum"), scheme="implicit-midpoint")
    algebraic = lv.FirstOrder("x", rhs=lambda x, y: [y[0]], algebraic=1, constraints=lambda x, y: [x[0] - y[0]])
    with pytest.raises(InputError, match="needs an explicit ODE"):
        lv.simulate(algebraic, x0=[1.0], y0=[1.0], scheme="heun", h=0.1, t_end=1.0)


def test_names_of_families_read_back():
    for name in ("variational:0.3333333333333333", "variational-sym:-0.5", "theta:0.1", "variational:1e-05"):
        assert lv.schemes.get(name).name == name
    assert lv.schemes.get("variational:.50").name == "variational:0.5"


# -- fewer divisions ----------------------------------------------------------------------------------------------
@given(seeds)
@few
def test_one_division_is_the_same_function(seed):
    x = ca.SX.sym("x", 3)
    inner = ca.sqrt(ca.sumsqr(x))
    f = ca.Function("f", [x], [ca.gradient(1 / inner + x[0] / (x[1] / inner), x), ca.if_else(x[0] > x[1], x[2], inner)])
    g, at = merge_divisions(f), np.random.default_rng(seed).uniform(0.5, 1.5, 3)
    for one, other in zip(f(at), g(at), strict=True):
        assert np.allclose(np.array(one), np.array(other), rtol=1e-14, atol=1e-15)


# -- problem 14: the pendulum (Modin 1.1, 2.9.6) -------------------------------------------------------------------
def test_implicit_euler_loses_over_half_of_the_energy_in_two_periods():
    problem = lv.problems.load("nonlinear-pendulum")  # h = 0.1, two periods
    energy = {}
    for scheme in ("implicit-euler", "symplectic-euler", "explicit-euler"):
        run = lv.simulate(problem, scheme=scheme)
        energy[scheme] = run.observe("total_energy") + 1  # above the lowest point: 1 at the start
    assert energy["implicit-euler"][148] == pytest.approx(0.307, abs=0.001)
    assert energy["symplectic-euler"][148] == pytest.approx(1.0016, abs=0.0001)
    assert energy["explicit-euler"][148] > 1.5
    assert np.all(np.diff(energy["implicit-euler"]) < 0)
    long = lv.simulate(problem, scheme="symplectic-euler", t_end=1e4).observe("total_energy") + 1
    assert np.abs(long - 1).max() == pytest.approx(np.abs(energy["symplectic-euler"] - 1).max(), rel=0.05)  # no drift


def test_local_errors_of_both_eulers_are_alike_but_not_the_global_ones():
    problem = lv.problems.load("nonlinear-pendulum")
    local, whole = {}, {}
    for scheme in ("implicit-euler", "symplectic-euler"):
        run = lv.simulate(problem, scheme=scheme)
        exact = np.array([problem.reference(t)["q"] for t in run.t])
        whole[scheme] = np.abs(run.q - exact).max()
        gaps = []
        for i in range(0, 140, 4):
            y = solve_ivp(
                lambda t, y: [y[1], -np.sin(y[0])], (0, 0.1), [run.q[i, 0], run.v[i, 0]], rtol=1e-11, atol=1e-12
            ).y[:, -1]
            gaps.append(np.hypot(run.q[i + 1, 0] - y[0], run.v[i + 1, 0] - y[1]))
        local[scheme] = np.mean(gaps)
    assert 0.5 < local["implicit-euler"] / local["symplectic-euler"] < 2
    assert whole["implicit-euler"] > 5 * whole["symplectic-euler"]


# -- problem 15: the rotor near resonance (Modin 2.1.3, paper I) ----------------------------------------------------
def test_geometric_schemes_keep_the_beat_and_the_others_lose_it():
    """h = 0.2 up to t = 1000: three beats of the exact motion, of period 2 pi/0.02 = 314 and amplitude 5.15."""
    problem = lv.problems.load("rotor")

    def beats(q):
        """Smallest and largest amplitude over one turn, in each of the three beats."""
        turn = np.array([np.abs(q[i : i + 31, 0]).max() for i in range(len(q) - 31)])
        return np.array([(part.min(), part.max()) for part in (turn[:1600], turn[1600:3200], turn[3369:])])

    found = {
        scheme: beats(lv.simulate(problem, scheme=scheme, h=0.2, t_end=1000.0).q)
        for scheme in ("strang", "implicit-midpoint", "stormer-verlet", "heun", "implicit-extrapolation")
    }
    exact = beats(np.array([problem.reference(0.2 * i)["q"] for i in range(5001)]))
    assert exact[:, 1] == pytest.approx([5.15] * 3, abs=0.01)
    for scheme in ("strang", "implicit-midpoint", "stormer-verlet"):
        # off by what their frequency is off: h^2/24 or h^2/12 of the 0.02 that it differs from the drive
        assert np.all(np.abs(found[scheme][:, 1] / 5.15 - 1) < 0.2)
        assert np.ptp(found[scheme][:, 1]) < 0.01 and np.all(found[scheme][:, 0] < 0.05 * found[scheme][:, 1])
    heun, extrapolated = found["heun"], found["implicit-extrapolation"]
    assert np.all(np.diff(heun[:, 1]) > 1) and heun[2, 1] > 2 * 5.15  # grows
    assert extrapolated[2, 0] > 0.6 * extrapolated[2, 1]  # hardly beats any more
    steps = [0.1 / 2**i for i in range(4)]
    for scheme in ("strang", "implicit-midpoint", "heun", "implicit-extrapolation"):
        found = [
            np.linalg.norm(lv.simulate(problem, scheme=scheme, h=h, t_end=20.0).q[-1] - problem.reference(20.0)["q"])
            for h in steps
        ]
        assert abs(measured_order(steps, found) - 2) < 0.1


@pytest.mark.parametrize(
    ("scheme", "gain"),
    [("strang", 0), ("implicit-midpoint", 0), ("heun", 1 / 8), ("implicit-extrapolation", -1 / 4)],
)
def test_amplification_of_oscillations(scheme, gain):
    """``|R(i w h)|`` is 1, 1, 1 + (w h)^4/8 and 1 - (w h)^4/4 (Modin 2009 paper I)."""
    oscillator = lv.Hamiltonian("x", kinetic=lambda p: p @ p / 2, potential=lambda q: q @ q / 2)
    h = 0.1
    step = OneStep(oscillator, scheme, h)
    R = np.array([step(unit) for unit in np.eye(2)]).T
    largest = np.abs(np.linalg.eigvals(R)).max()
    if gain:
        assert (largest - 1) / h**4 == pytest.approx(gain, rel=0.05)
    else:
        assert largest == pytest.approx(1, abs=1e-15)


# -- strang for linear systems that are not separable -----------------------------------------------------------------
def rotor():
    """In a frame that turns at a changing rate, on a support whose stiffness changes, with an unbalance (paper I)."""
    return lv.Hamiltonian(
        "x y",
        hamiltonian=lambda q, p, t: (
            p @ p / 2
            + (0.7 + 0.3 * m.sin(t)) * (p[0] * q[1] - p[1] * q[0])
            + (1 + 0.2 * m.cos(2 * t)) * q[0] ** 2 / 2
            + q[1] ** 2
            + 0.1 * m.cos(t) * q[0]
        ),
    )


def test_strang_on_a_matrix_that_depends_on_time_and_couples():
    start, steps, errors = dict(q0=[1.0, 0.2], p0=[0.1, -0.3]), (0.2, 0.1, 0.05, 0.025), []
    exact = lv.simulate(rotor(), **start, scheme="taylor", t_end=2.0)
    for h in steps:
        run = lv.simulate(rotor(), **start, scheme="strang", h=h, t_end=2.0)
        errors.append(np.abs(np.hstack([run.q[-1] - exact.q[-1], run.p[-1] - exact.p[-1]])).max())
        assert run.statistics.newton_iterations == 0
    assert measured_order(steps, errors) == pytest.approx(2, abs=0.1)
    assert lv.study.symplecticity_defect(rotor(), "strang", q=[1.0, 0.2], p=[0.1, -0.3], h=0.4) < 1e-14
    four = [
        np.abs(lv.simulate(rotor(), **start, scheme="suzuki-4:strang", h=h, t_end=2.0).q[-1] - exact.q[-1]).max()
        for h in (0.4, 0.2, 0.1, 0.05)
    ]
    assert measured_order((0.4, 0.2, 0.1, 0.05), four) == pytest.approx(4, abs=0.15)


def test_strang_turns_a_frame_exactly():
    """A free particle in a frame that turns: drift and turn commute, so any step is exact; angular momentum is kept."""
    frame = lv.Hamiltonian(
        "x y",
        hamiltonian=lambda q, p: p @ p / 2 + 0.6 * (p[0] * q[1] - p[1] * q[0]),
        symmetries={"turn": lambda q: [-q[1], q[0]]},
    )
    run = lv.simulate(frame, q0=[1.0, 0.0], p0=[0.0, 0.5], scheme="strang", h=0.8, t_end=40.0)
    c, s = np.cos(0.6 * run.t), np.sin(0.6 * run.t)
    x, y = np.ones_like(run.t), 0.5 * run.t
    assert np.abs(run.q - np.stack([c * x + s * y, c * y - s * x], axis=1)).max() < 1e-11
    assert run.summary.momentum_drift["turn"] < 1e-12
    bent = lv.Hamiltonian("x", hamiltonian=lambda q, p: p[0] ** 2 * (1 + q[0] ** 2) / 2)
    with pytest.raises(lv.InputError, match=r"T\(p, t\) \+ p.C\(t\) q \+ V\(q, t\)"):
        lv.simulate(bent, q0=[1.0], p0=[0.0], scheme="strang", h=0.1, t_end=1.0)
