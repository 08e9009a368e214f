"""Expensive forces once per step, cheap ones implicitly (Modin paper V): orders, stability, counts, problems 22, 23."""

import functools

import casadi as ca
import numpy as np
import pytest
from conftest import measured_order
from scipy.integrate import solve_ivp

import livens as lv
from livens import math as m
from livens.errors import InputError
from stepping import OneStep

START = np.array([0.4, -0.3, 0.5, 0.2])


@functools.cache
def coupled(damped=False):
    """Both forces nonlinear, with friction in B, a mass matrix, and time in both; friction in A if `damped`."""

    def friction(v):
        return -0.3 * v * (1 + v[0] ** 2)

    return lv.Hamiltonian(
        "x y",
        kinetic=lambda p: p[0] ** 2 / 2 + 0.8 * p[1] ** 2 + 0.1 * p[0] * p[1],
        potential=lambda q, t: 2 * (q[0] - q[1]) ** 2 + q[1] ** 4 / 4 + 0.1 * q[0] * m.sin(t),
        forces=[
            lv.Force(lambda q, t: m.cos(q[0] + 2 * q[1]) + 0.2 * q[1] * m.cos(t), expensive=True, conservative=True),
            lv.Force(friction, expensive=damped),
            lv.Force(lambda q, t: [0.2 * q[1], 0.3 * m.cos(t)], expensive=True),
        ],
    )


@functools.cache
def exact(damped, t_end):
    model = coupled(damped)
    f = ca.Function("f", [model.q, model.p, model.t], [ca.vertcat(model.velocity, model.momentum_rate)])
    run = solve_ivp(
        lambda t, y: np.array(f(y[:2], y[2:], t)).ravel(), (0, t_end), START, method="DOP853", rtol=1e-13, atol=1e-14
    )
    return run.y[:, -1]


# -- orders (theorem 2) -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("alpha", "beta", "damped", "order"),
    [(0.5, 0.5, False, 2), (0.5, 0.5, True, 1), (0.5, 0.8, False, 1), (0.3, 0.5, False, 1), (0.0, 1.0, False, 1)],
)
def test_local_and_global_orders(alpha, beta, damped, order):
    """One step: h^3 in q; h^3 in p if of order 2, else h^2. Friction in A costs the order."""
    scheme = f"semi-explicit:{alpha:g},{beta:g}"
    steps = [0.004 / 2**i for i in range(4)]
    gaps = np.array([OneStep(coupled(damped), scheme, h)(START) - exact(damped, h) for h in steps])
    assert abs(measured_order(steps, np.linalg.norm(gaps[:, :2], axis=1)) - 3) < 0.1
    assert abs(measured_order(steps, np.linalg.norm(gaps[:, 2:], axis=1)) - (order + 1)) < 0.1
    steps = [0.01 / 2**i for i in range(4)]
    found = []
    for h in steps:
        run = lv.simulate(coupled(damped), q0=START[:2], p0=START[2:], scheme=scheme, h=h, t_end=1.0)
        found.append(np.concatenate([run.q[-1], run.p[-1]]) - exact(damped, 1.0))
    for part in (slice(0, 2), slice(2, 4)):  # the same order in q and in p
        assert abs(measured_order(steps, [np.linalg.norm(gap[part]) for gap in found]) - order) < 0.1
    assert lv.schemes.get(scheme).order == (2 if alpha == beta == 0.5 else 1)


def test_a_shorter_last_step_costs_no_order():
    steps, found = [0.02 / 2**i for i in range(4)], []
    for h in steps:
        t_end = 1.0 + 0.4 * h
        run = lv.simulate(coupled(), q0=START[:2], p0=START[2:], scheme="semi-explicit:0.5,0.5", h=h, t_end=t_end)
        assert run.t[-1] == t_end
        found.append(np.linalg.norm(np.concatenate([run.q[-1], run.p[-1]]) - exact(False, t_end)))
    assert abs(measured_order(steps, found) - 2) < 0.1


def test_special_cases():
    """Everything cheap, b = 1/2: the implicit midpoint rule. Everything expensive, a = 1/2: drift, kick, drift."""

    def model(expensive):
        potential = lv.Force(lambda q: m.cos(q[0] * q[1]) + q @ q, expensive=expensive, conservative=True)
        return lv.Hamiltonian("x y", kinetic=lambda p: p @ p / 2 + 0.1 * p[0] * p[1], forces=potential)

    cheap, dear = model(False), model(True)
    midpoint = OneStep(cheap, "implicit-midpoint", 0.1)(START)
    assert OneStep(cheap, "semi-explicit:0.5,0.5", 0.1)(START) == pytest.approx(midpoint, abs=1e-15)
    strang = OneStep(dear, "strang", 0.1)(START)
    assert OneStep(dear, "semi-explicit:0.5,0.5", 0.1)(START) == pytest.approx(strang, abs=1e-15)
    assert lv.schemes.get("semi-explicit:0.5,0.5").equations(dear).to_single_graph().size == 0  # nothing to solve
    assert lv.schemes.get("semi-explicit:0.5,0").equations(cheap).to_single_graph().size == 0
    assert lv.schemes.get("semi-explicit:0.5,0.5").equations(cheap).to_single_graph().size == 2


# -- how often A is evaluated -----------------------------------------------------------------------------------------
def marked():
    """The one hyperbolic tangent in the model is in A, the one arc tangent in B: instructions can be counted."""
    return lv.Hamiltonian(
        "x y",
        kinetic=lambda p: p @ p / 2,
        forces=[
            lv.Force(lambda q, v: [-m.tanh(q[0] + v[0]), 0], expensive=True),
            lv.Force(lambda q: [0, -m.atan(q[1] - q[0])]),
        ],
    )


def count(function, name):
    code = getattr(ca, f"OP_{name}")
    return sum(function.instruction_id(i) == code for i in range(function.n_instructions()))


def test_a_step_evaluates_the_expensive_force_once_and_newton_never():
    """Residual and Newton's matrix do not contain A at all; the end of the step, computed once, has it once."""
    e = lv.schemes.get("semi-explicit:0.5,0.6").equations(marked()).to_single_graph()
    assert e.size == 2
    assert count(e.residual_function, "TANH") == count(e.newton_function, "TANH") == 0
    assert count(e.final_state_function, "TANH") == lv.schemes.get("semi-explicit:0.5,0.6").evaluations_per_step == 1
    assert count(e.residual_function, "ATAN") == count(e.newton_function, "ATAN") == 1
    for scheme in ("theta:0.6", "implicit-midpoint"):  # here every residual and every correction evaluates it
        e = lv.schemes.get(scheme).equations(marked()).to_single_graph()
        assert count(e.residual_function, "TANH") >= 1 and count(e.newton_function, "TANH") >= 1
    adaptive = lv.schemes.get("semi-explicit:0.5,0.6").with_scaling(lv.scaling.stiffness_estimate(1.0))
    e = adaptive.equations(marked()).to_single_graph()
    assert (
        count(e.newton_function, "TANH") == 0
        and count(e.final_state_function, "TANH") == adaptive.evaluations_per_step == 3
    )


# -- stability (theorems 3 and 6, corollary 4) ------------------------------------------------------------------------
@functools.cache
def linear():
    return lv.Hamiltonian(
        "x",
        kinetic=lambda p: p @ p / 2,
        forces=[
            lv.Force(lambda q, v, k: -k.kA * q - k.cA * v, expensive=True),
            lv.Force(lambda q, v, k: -k.kB * q - k.cB * v),
        ],
        parameters=dict(kA=0.0, cA=0.0, kB=0.0, cB=0.0),
    )


@functools.cache
def linear_step(alpha, beta):
    """The derivative of the state (q, v, p, A) after a step by that before, of the parameters.

    v and A follow from q and p from the first step on: beside the eigenvalues of the map of q and p, there are zeros.
    """
    e = lv.schemes.get(f"semi-explicit:{alpha!r},{beta!r}").equations(linear()).to_single_graph()
    by_x, by_z = ca.jacobian(e.final_state, e.x), ca.jacobian(e.final_state, e.z)
    if e.size:
        by_z -= by_x @ ca.solve(ca.jacobian(e.residual, e.x), ca.jacobian(e.residual, e.z))
    parts = np.concatenate([np.arange(e.z.numel())[e.layout[name]] for name in ("q", "v", "p", "A")]).tolist()
    still = ca.Function("D", e.arguments, [by_z[parts, parts]])
    return lambda k: np.array(still(np.zeros(e.size), np.zeros(e.z.numel()), [1.0, 0.0, *k]))


def matrix(alpha, beta, kA, cA, kB=0.0, cB=0.0):
    """For h = 1."""
    return linear_step(alpha, beta)([kA, cA, kB, cB])


@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_stability_region_of_theorem_3(alpha):
    """Stable inside of ``y >= 0, x + a y <= 2, x >= (1/2 - a) y`` with x = h c, y = h^2 k, and nowhere outside."""
    inside = outside = 0
    for x in np.linspace(-1.03, 3.01, 28):
        for y in np.linspace(-1.02, 6.07, 28):
            gap = min(y, 2 - x - alpha * y, x - (0.5 - alpha) * y)  # all three conditions
            if abs(gap) < 1e-3:
                continue  # too close to tell
            largest = np.abs(np.linalg.eigvals(matrix(alpha, 0.5, y, x))).max()
            assert (largest <= 1 + 1e-12) == (gap > 0), (x, y)
            inside, outside = inside + (gap > 0), outside + (gap < 0)
    assert inside > 40 and outside > 200


@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.5])
def test_the_border_of_the_stability_region(alpha):
    """On the border powers stay bounded, but not at its corners (0, 0) and (2 - 4a, 4)."""

    def growth(x, y):
        return np.abs(np.linalg.matrix_power(matrix(alpha, 0.5, y, x), 4096)).max()

    for part in (0.1, 0.5, 0.9):
        assert growth(part * 2, 0.0) < 100  # y = 0
        if alpha < 0.5:
            assert growth((0.5 - alpha) * 4 * part, 4 * part) < 100  # x = (1/2 - a) y
        assert growth(2 - alpha * 4 * part, 4 * part) < 100  # x + a y = 2
    assert growth(0.0, 0.0) > 1000 and growth(2 - 4 * alpha, 4.0) > 1000


def test_when_it_oscillates():
    """Corollary 4: eigenvalues are complex for ``h c < 2 h sqrt(k) - h^2 k (1 + 2a)/2``."""
    for alpha in (0.0, 0.5, 1.0):
        for x in np.linspace(0.01, 2, 12):
            for y in np.linspace(0.01, 3, 12):
                gap = 2 * np.sqrt(y) - y * (1 + 2 * alpha) / 2 - x
                if abs(gap) > 1e-3:
                    complex_pair = np.abs(np.linalg.eigvals(matrix(alpha, 0.5, y, x)).imag).max() > 1e-9
                    assert complex_pair == (gap > 0)


def test_any_stiffness_and_damping_in_the_cheap_force():
    """Theorem 6: for b >= 1/2 it is enough that A is in its region; for b < 1/2 it is not."""
    for alpha in (0.0, 0.25, 0.5, 1.0):
        for x in np.linspace(0.0, 2.0, 6):
            for y in np.linspace(0.01, 3.9, 6):
                if min(2 - x - alpha * y, x - (0.5 - alpha) * y) < 1e-9:
                    continue
                for kB in (0.0, 0.1, 10.0, 1e6):
                    for cB in (0.0, 0.3, 30.0, 1e6):
                        for beta in (0.5, 0.6, 1.0):
                            R = matrix(alpha, beta, y, x, kB, cB)
                            assert np.abs(np.linalg.eigvals(R)).max() <= 1 + 1e-9, (alpha, beta, x, y, kB, cB)
    assert np.abs(np.linalg.eigvals(matrix(0.5, 0.4, 0.5, 0.1, 1e6, 0.0))).max() > 1.01


# -- work -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("damped", [False, True])
def test_the_balance_of_work_closes(damped):
    steps, gaps = [0.02 / 2**i for i in range(4)], []
    for h in steps:
        run = lv.simulate(coupled(damped), q0=START[:2], p0=START[2:], scheme="semi-explicit:0.5,0.5", h=h, t_end=1.0)
        energy = run.observe("hamiltonian")
        gaps.append(abs(energy[-1] - energy[0] - run.supplied_energy[-1]))
    assert measured_order(steps, gaps) > (0.9 if damped else 1.9)
    assert abs(run.supplied_energy[-1]) > 0.05


def newton_evaluates(problem, scheme, name):
    """Return True if the Newton iteration evaluates a force, which has a parameter of its own."""
    e, place = (
        lv.schemes.get(scheme).equations(problem.model).to_single_graph(),
        list(problem.model.parameters).index(name),
    )
    return bool(ca.depends_on(ca.vertcat(e.residual, e.jac_values), e.c[2 + place]))


# -- problem 22: two oscillators (paper V, 6.1) -----------------------------------------------------------------------
def test_two_oscillators():
    """h = 1, far beyond the stiff mode: that is damped, and the soft one kept, which no theta method does."""
    problem = lv.problems.load("two-oscillators")
    off, stiff, kept = {}, {}, {}
    for scheme in ("semi-explicit:0.5,0.8", "theta:0.5", "theta:0.8"):
        run = lv.simulate(problem, scheme=scheme, h=1.0, t_end=20.0)
        exact = np.array([problem.reference(t)["q"] for t in run.t])
        off[scheme] = np.abs(run.q - exact).max()
        stiff[scheme] = abs(run.q[-1, 0] - run.q[-1, 1])
        kept[scheme] = np.abs(run.q[-10:]).max()
    assert off["semi-explicit:0.5,0.8"] < 0.6 * off["theta:0.5"] < 0.5 * off["theta:0.8"]
    assert stiff["semi-explicit:0.5,0.8"] < 1e-4 and stiff["theta:0.8"] < 1e-4 < 1e-3 < stiff["theta:0.5"]
    assert kept["semi-explicit:0.5,0.8"] > 1.0 and kept["theta:0.8"] < 0.2  # of 1.05
    assert not newton_evaluates(problem, "semi-explicit:0.5,0.8", "k")
    assert newton_evaluates(problem, "semi-explicit:0.5,0.8", "stiffness") and newton_evaluates(
        problem, "theta:0.8", "k"
    )


# -- problem 23: a pendulum on a stiff spring (paper V, 6.2) ----------------------------------------------------------
def test_pendulum_on_a_penalty():
    problem = lv.problems.load("pendulum-penalty")

    def rates(t, y):
        return [y[2], y[3], *(-1e4 * (y[:2] @ y[:2] - 1) * y[:2] - [0.0, 1.0])]

    times = np.linspace(0, 10, 1001)
    exact = solve_ivp(rates, (0, 10), [1.01, 0, 0, 0], method="DOP853", rtol=1e-10, atol=1e-11, t_eval=times).y.T
    off, left, corrections = {}, {}, {}
    for scheme in ("semi-explicit:0.5,0.6", "theta:0.5", "theta:0.6"):
        run = lv.simulate(problem, scheme=scheme, h=0.01, t_end=10.0)
        off[scheme] = np.abs(run.q[:, 0] - exact[:, 0]).max()
        left[scheme] = np.abs(np.linalg.norm(run.q[500:], axis=1) - 1).max()
        corrections[scheme] = run.statistics.newton_iterations
    stretched = np.abs(np.linalg.norm(exact[500:, :2], axis=1) - 1).max()
    assert stretched > 0.009 and left["theta:0.5"] > 0.009  # the fast oscillation goes on
    assert left["semi-explicit:0.5,0.6"] < 5e-4 and left["theta:0.6"] < 5e-4  # damped
    assert off["semi-explicit:0.5,0.6"] < 0.6 * off["theta:0.6"]  # but not the slow motion with it
    # A once in each of the 1000 steps, against twice in every correction: in the residual and with Newton's matrix.
    # That is what is saved; the number of corrections itself is not smaller than that of the damped theta method.
    assert not newton_evaluates(problem, "semi-explicit:0.5,0.6", "weight")
    for scheme in ("theta:0.5", "theta:0.6"):
        assert newton_evaluates(problem, scheme, "weight") and 2 * corrections[scheme] > 2 * 1000


# -- step sizes by stiffness (eqs. 14, 15) ----------------------------------------------------------------------------
def walls():
    """A point mass between two walls that repel it (Modin 2009 paper III, example 2 without its small terms)."""
    force = lv.Force(lambda q: 1 / q[0] ** 2 + 1 / (q[0] - 10) ** 2, expensive=True, conservative=True)
    return lv.Hamiltonian("x", kinetic=lambda p: p @ p / 2, forces=force)


def test_steps_follow_the_stiffness():
    """``h^2 sigma`` stays near eps^2. Errors of energy are smaller than with as many equal steps.

    But the estimate takes three evaluations of A in a step: with as many evaluations, equal steps are better here.
    """
    given = dict(q0=[5.0], p0=[-2.0], scheme="semi-explicit:0.5,0.5", t_end=50.0)
    run = lv.simulate(walls(), scaling=lv.scaling.stiffness_estimate(0.1), h=0.1, **given)
    stiffness = 6 / run.q[:-2, 0] ** 4 + 6 / (run.q[:-2, 0] - 10) ** 4
    held = run.step_size[1:-1] ** 2 * (stiffness + 0.1)
    assert held.min() > 0.5 * 0.1**2 and held.max() < 2 * 0.1**2
    assert run.step_size[1:-1].max() > 10 * run.step_size[1:-1].min()
    count = len(run.t) - 1
    as_many_steps, as_many_evaluations = (lv.simulate(walls(), h=50.0 / n, **given) for n in (count, 3 * count))
    worst, steps, evaluations = (np.ptp(r.observe("hamiltonian")) for r in (run, as_many_steps, as_many_evaluations))
    assert evaluations < worst < steps


def test_order_with_scaled_steps():
    steps, found = [0.05 / 2**i for i in range(4)], []
    y = solve_ivp(
        lambda t, y: [y[1], 2 / y[0] ** 3 + 2 / (y[0] - 10) ** 3],
        (0, 2.5), [5.0, -2.0], method="DOP853", rtol=1e-13, atol=1e-13,
    ).y[:, -1]  # fmt: skip
    for scaling in (lv.scaling.stiffness_estimate(0.1), lambda q: 0.5 + 0.1 * q[0]):
        found = []
        for eps in steps:
            run = lv.simulate(
                walls(), q0=[5.0], p0=[-2.0], scheme="semi-explicit:0.5,0.5", scaling=scaling, h=eps, t_end=2.5
            )
            assert run.t[-1] == 2.5
            found.append(np.hypot(run.q[-1, 0] - y[0], run.p[-1, 0] - y[1]))
        assert abs(measured_order(steps, found) - 2) < 0.1


def test_schemes_are_equal_if_all_their_numbers_are():
    scheme = lv.schemes.get("semi-explicit:0.5,0.5")
    assert scheme == lv.schemes.get("semi-explicit:0.5,0.5")
    assert hash(scheme) == hash(lv.schemes.get("semi-explicit:0.5,0.5"))
    assert scheme != lv.schemes.get("semi-explicit:0.5,0.25") and scheme != "semi-explicit:0.5,0.5"
    assert scheme != scheme.as_substep() != scheme and scheme != scheme.with_error_control()
    assert scheme != scheme.with_scaling(lambda q: 1 + q[0] ** 2)


def test_what_it_cannot_do():
    heavy = lv.Hamiltonian("x", hamiltonian=lambda q, p: p[0] ** 2 * (1 + q[0] ** 2))
    with pytest.raises(InputError, match=r"needs an energy T\(p\) \+ V\(q\)"):
        lv.simulate(heavy, q0=[0.0], p0=[1.0], scheme="semi-explicit:0.5,0.5", h=0.1, t_end=1.0)
    quartic = lv.Hamiltonian("x", kinetic=lambda p: p[0] ** 4)
    with pytest.raises(InputError, match="needs a constant mass matrix"):
        lv.simulate(quartic, q0=[0.0], p0=[1.0], scheme="semi-explicit:0.5,0.5", h=0.1, t_end=1.0)
    start = dict(q0=[5.0], p0=[1.0], h=0.1, t_end=1.0)
    with pytest.raises(InputError, match="evaluates forces at alpha h, which is 0"):
        lv.simulate(walls(), scheme="semi-explicit:0,0.5", scaling=lv.scaling.stiffness_estimate(1.0), **start)
    with pytest.raises(InputError, match="takes a scaling such as"):
        lv.simulate(walls(), scheme="semi-explicit:0.5,0.5", scaling=2.0, **start)
    with pytest.raises(InputError, match="must be finite and greater than 0"):
        lv.simulate(walls(), scheme="semi-explicit:0.5,0.5", scaling=lambda q: q[0] - 6, **start)


# -- a beta for every force -------------------------------------------------------------------------------------------
def two_springs(penalty=None, elastic=None):
    """A penalty that holds y to x, which may be damped, and an elastic spring on both, which may not."""
    return lv.Hamiltonian(
        "x y",
        kinetic=lambda p: p @ p / 2,
        forces=[
            lv.Force(lambda q: 5e3 * (q[0] - q[1]) ** 2, conservative=True, beta=penalty),
            lv.Force(lambda q: 20 * (q[0] + q[1]) ** 2 / 4, conservative=True, beta=elastic),
            lv.Force(lambda q: [0.1 * q[1] ** 2, 0.0], expensive=True),
        ],
    )


def test_a_beta_for_every_force():
    """0.8 damps the penalty; on the elastic mode it takes away what 1/2 keeps, however short the steps are."""
    start = dict(q0=[0.1, 0.11], p0=[0.0, 0.0], t_end=10.0)
    one = lv.simulate(two_springs(), scheme="semi-explicit:0.5,0.8", h=0.01, **start)
    same = lv.simulate(two_springs(0.8, 0.8), scheme="semi-explicit:0.5,0.5", h=0.01, **start)
    assert np.abs(one.q - same.q).max() < 1e-14
    own = lv.simulate(two_springs(0.8, 0.5), scheme="semi-explicit:0.5,0.5", h=0.01, **start)
    swing = {name: np.abs((run.q[-100:, 0] + run.q[-100:, 1]) / 2).max() for name, run in (("all", one), ("own", own))}
    assert swing["own"] > 0.095 and swing["all"] < 0.8 * swing["own"]
    assert np.abs(own.q[-100:, 0] - own.q[-100:, 1]).max() < 1e-4  # the penalty is damped
    undamped = lv.simulate(two_springs(), scheme="semi-explicit:0.5,0.5", h=0.01, **start)
    assert np.abs(undamped.q[-100:, 0] - undamped.q[-100:, 1]).max() > 5e-3
    for wrong, words in ((dict(beta=1.5), "between 0 and 1"), (dict(beta=0.5, expensive=True), "cheap force")):
        with pytest.raises(InputError, match=words):
            lv.Force(lambda q: q, **wrong)
