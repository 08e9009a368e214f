"""Runge-Kutta methods on first-order and on mechanical systems: orders, invariants, estimates, constraints, limits."""

import functools

import numpy as np
import pytest
from conftest import measured_order
from hypothesis import given, settings
from hypothesis import strategies as st

import livens as lv
from livens import math as m
from livens.problems.reference_solution import reference_motion, reference_ode_solution
from stepping import estimated_error

#: Steps per unit of time, for errors between 1e-3 and 1e-12, by the order of the method.
STEPS = {2: (32, 48, 64, 96), 3: (24, 32, 48, 64), 4: (16, 24, 32, 48), 5: (12, 16, 24, 32), 6: (10, 12, 16, 20),
         7: (8, 10, 12, 16), 8: (8, 10, 12, 14), "lobatto-iiic-4": (16, 20, 24, 28)}  # fmt: skip
#: For order 10 the errors are soon at the reference's own; where they are on a line depends on the system.
STEPS_OF_GAUSS_5 = {"rates": (7, 8, 9, 10), "plane": (6, 7, 8, 9), "coupled": (4, 5, 6, 7, 8)}
T_END = 6
MAIN = [*(f"gauss-{s}" for s in range(1, 6)), *(f"radau-iia-{s}" for s in (2, 3, 4))]
MAIN += [f"lobatto-iiic-{s}" for s in (2, 3, 4)]
OTHERS = ["radau-ia-2", "radau-ia-3"] + [f"lobatto-iii{x}-{s}" for x in "abde" for s in (2, 3)]
LOBATTO = [f"lobatto-{x}" for x in ("iiic-2", "iiic-3", "iiia-3", "iiib-3", "iiid-3", "iiie-3")]
Q0, V0 = np.array([1.2, 0.7]), np.array([0.1, 0.4])


def plane():
    """Polar coordinates: M depends on q."""
    return lv.System(
        "r phi",
        kinetic=lambda q, v: 0.5 * (v[0] ** 2 + q[0] ** 2 * v[1] ** 2),
        potential=lambda q: 10 * (q[0] - 1) ** 2 - 4 * q[0] * m.cos(q[1]),
    )


def coupled():
    """M is constant, and not diagonal."""
    return lv.System(
        "x y",
        kinetic=lambda v: 0.5 * (v[0] ** 2 + 2 * v[1] ** 2 + v[0] * v[1]),
        potential=lambda q: q[0] ** 2 * q[1] ** 2 + m.cos(q[0] - q[1]) + q[0] ** 2,
    )


def rates(x):
    """Return the rates of the pendulum with drag and a constant force."""
    return [x[1], -10 * m.sin(x[0]) - 0.1 * x[1] ** 3 + 0.5]


def order_of(run, name, exact, key, system):
    """Errors are taken at all whole times, as at a single one they may happen to vanish."""
    numbers = STEPS_OF_GAUSS_5[system.__name__] if name == "gauss-5" else STEPS[name if name in STEPS else order(name)]
    errors = [np.linalg.norm(getattr(run(name, n), key)[n::n] - exact) for n in numbers]
    return measured_order([1 / n for n in numbers], errors), errors


def order(name):
    return lv.schemes.get(name).order


@functools.cache
def exact_motion(make):
    motion = reference_motion(make(), Q0, V0)
    return {key: np.array([motion(t)[key] for t in range(1, T_END + 1)]) for key in ("q", "v")}


@functools.cache
def exact_rates():
    solution = reference_ode_solution(lambda t, y: np.array([float(r) for r in rates(y)]), Q0)
    return np.array([solution(t) for t in range(1, T_END + 1)])


@pytest.mark.parametrize("name", MAIN + OTHERS)
def test_order_on_a_first_order_system(name):
    model = lv.FirstOrder("angle rate", rhs=rates)

    def run(scheme, n):
        return lv.simulate(model, x0=Q0, scheme=scheme, h=1 / n, t_end=T_END)

    found, errors = order_of(run, name, exact_rates(), "x", rates)
    assert abs(found - order(name)) < 0.1, errors


@pytest.mark.parametrize("make", [plane, coupled])
@pytest.mark.parametrize("name", MAIN + [name for name in OTHERS if name.endswith("3")])
def test_order_on_a_mechanical_system(name, make):
    """Positions and velocities, for an M that depends on q and for one that does not."""
    system = make()

    def run(scheme, n):
        return lv.simulate(system, Q0, V0, scheme=scheme, h=1 / n, t_end=T_END)

    for key, exact in exact_motion(make).items():
        found, errors = order_of(run, name, exact, key, make)
        assert abs(found - order(name)) < 0.1, (key, errors)


# -- invariants -------------------------------------------------------------------------------------------------------
def spinning():
    """Euler's equations of a free top: energy and the square of the angular momentum are quadratic."""
    I1, I2, I3 = 1.0, 2.0, 3.0
    return lv.FirstOrder(
        "w1 w2 w3",
        rhs=lambda x: [
            (I2 - I3) / I1 * x[1] * x[2],
            (I3 - I1) / I2 * x[2] * x[0],
            (I1 - I2) / I3 * x[0] * x[1],
        ],
    )


def quadratics(w):
    inertia = np.array([1.0, 2.0, 3.0])
    return np.stack([w**2 @ inertia, w**2 @ inertia**2], axis=1)


@pytest.mark.parametrize("name", ["gauss-1", "gauss-2", "gauss-3"])
def test_quadratic_invariants_over_many_steps(name):
    """1e5 steps of a free top, of a size at which the motion itself is not resolved to more than a few digits."""
    run = lv.simulate(spinning(), x0=[1.0, 0.6, -0.4], scheme=name, h=0.1, t_end=1e4, every=100)
    found = quadratics(run.x)
    assert np.abs(found / found[0] - 1).max() < 2e-13


@pytest.mark.parametrize("name", ["radau-iia-2", "lobatto-iiic-3", "lobatto-iiia-3", "lobatto-iiib-3", "radau-ia-2"])
def test_quadratic_invariants_are_lost_without_symplecticity(name):
    assert "quadratic_invariants" not in lv.schemes.get(name).conserves
    found = quadratics(lv.simulate(spinning(), x0=[1.0, 0.6, -0.4], scheme=name, h=0.1, t_end=100).x)
    assert np.abs(found / found[0] - 1).max() > 1e-9


def oscillators():
    """Two equal springs in the plane: energy and angular momentum are quadratic in (q, v)."""
    return lv.System(
        "x y",
        kinetic=lambda v: 0.5 * (v @ v),
        potential=lambda q: 0.5 * (q @ q),
        symmetries=dict(L=lambda q: [-q[1], q[0]]),
    )


@pytest.mark.parametrize(
    "name", ["gauss-2", "gauss-3", "lobatto-iiid-2", "lobatto-iiie-2", "radau-iia-3", "lobatto-iiic-3"]
)
def test_energy_and_angular_momentum_of_springs(name):
    run = lv.simulate(oscillators(), [1.0, 0.0], [0.2, 0.8], scheme=name, h=0.2, t_end=2000.0)
    kept = max(run.summary.max_energy_drift, run.summary.momentum_drift["L"]) < 1e-12
    assert (
        kept
        == ("quadratic_invariants" in lv.schemes.get(name).conserves)
        == ("momentum_maps" in lv.schemes.get(name).conserves)
    )


@pytest.mark.parametrize("make", [plane, coupled])
@pytest.mark.parametrize("name", ["gauss-1", "gauss-3", *OTHERS, "radau-iia-2", "lobatto-iiic-2", "lobatto-iiic-3"])
def test_symplectic_and_symmetric_as_declared(name, make):
    scheme, system = lv.schemes.get(name), make()
    symplectic = lv.study.symplecticity_defect(system, name, Q0, V0, 0.2)
    symmetric = lv.study.reversibility_defect(system, name, Q0, V0, 0.2)
    assert symplectic < 1e-12 if scheme.symplectic else symplectic > 1e-7
    assert symmetric < 1e-12 if scheme.symmetric else symmetric > 1e-8


# -- two ways to the same ---------------------------------------------------------------------------------------------
@settings(deadline=None, max_examples=15)
@given(
    family=st.sampled_from(["gauss", "radau-ia", "radau-iia", "lobatto-iiia", "lobatto-iiib", "lobatto-iiic",
                            "lobatto-iiid", "lobatto-iiie"]),
    s=st.integers(2, 4), h=st.floats(0.01, 0.2), q=st.floats(-1, 1), v=st.floats(-1, 1),
)  # fmt: skip
def test_livens_form_is_the_method_on_positions_and_momenta(family, s, h, q, v):
    """For M(q): the stages of a System are those of the method applied to Hamilton's equations."""
    name = f"{family}-{s}"
    q0, v0 = Q0 + 0.1 * np.array([q, -q]), V0 + 0.1 * np.array([v, v])
    p0 = [v0[0], q0[0] ** 2 * v0[1]]
    a = lv.simulate(PLANE, q0, v0, scheme=name, h=h, t_end=3 * h)
    b = lv.simulate(HAMILTON, x0=[*q0, *p0], scheme=name, h=h, t_end=3 * h)
    assert np.abs(np.hstack([a.q, a.p]) - b.x).max() < 1e-13


PLANE = plane()
HAMILTON = lv.FirstOrder(
    "r phi pr pphi",
    rhs=lambda x: [
        x[2], x[3] / x[0] ** 2,
        x[3] ** 2 / x[0] ** 3 - 20 * (x[0] - 1) + 4 * m.cos(x[1]), -4 * x[0] * m.sin(x[1]),
    ],
)  # fmt: skip


# -- energy brought in and taken out ----------------------------------------------------------------------------------
@pytest.mark.parametrize(("name", "exact"), [("gauss-2", True), ("gauss-3", True), ("lobatto-iiic-3", False)])
def test_energy_balance_of_springs_and_dampers(name, exact):
    """Quadratic energies: what Gauss' weights sum up of force and damping is exactly the change (Symank 2025 7.5)."""
    problem = lv.problems.load("mass-spring-damper", d1=0.2, d2=0.5, alpha=3.0)
    run = lv.simulate(problem, scheme=name, h=0.1, t_end=100.0)
    assert run.supplied_energy[-1] > 1 and run.dissipated_energy[-1] > 1
    assert (run.summary.max_energy_drift < 1e-13) == exact


# -- step-size control ------------------------------------------------------------------------------------------------
def estimates(name, system, steps):
    """The estimate of the error of the first step, by its size."""
    from livens.engine.steppers.reference import ReferenceSolver
    from livens.models.initialization.dense import initial_state

    scheme, found = lv.schemes.get(name), []
    first = isinstance(system, lv.FirstOrder)
    e = scheme.equations(system).to_single_graph()
    k = system.parameter_vector()
    for h in steps:
        z = Q0 if first else e.layout.pack(initial_state(system, Q0, V0, k).values)
        c = np.concatenate([[h, 0.0], k])
        x, _, trouble, *_ = ReferenceSolver(e).solve(e.initial_guess_function(z, c).full().ravel(), z, c)
        assert trouble is None
        found.append(np.linalg.norm(estimated_error(e, x, z, c)))
    return found


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(
    "name", ["gauss-1", "gauss-2", "gauss-3", "radau-ia-3", "radau-iia-2", "radau-iia-3", *LOBATTO]
)
def test_order_of_the_error_estimate(name, first):
    system = lv.FirstOrder("angle rate", rhs=rates) if first else plane()
    steps = [0.008, 0.006, 0.004, 0.003]
    assert abs(measured_order(steps, estimates(name, system, steps)) - 1 - lv.schemes.get(name).error_order) < 0.15


@pytest.mark.parametrize("name", ["gauss-2", "gauss-3", "radau-iia-3", "lobatto-iiic-3"])
def test_controlled_steps_follow_the_tolerance(name):
    """Ten times the accuracy asked for is at least a few times the accuracy got, on both kinds of models."""
    cases = (
        (plane(), dict(q0=Q0, v0=V0), "q", exact_motion(plane)["q"][-1]),
        (lv.FirstOrder("angle rate", rhs=rates), dict(x0=Q0), "x", exact_rates()[-1]),
    )
    for model, start, key, exact in cases:
        errors = []
        for control in (lv.StepControl(tolerance=10.0**-k) for k in (4, 6, 8)):
            run = lv.simulate(model, **start, scheme=name, h=1e-2, t_end=T_END, control=control)
            errors.append(np.linalg.norm(getattr(run, key)[-1] - exact))
        assert errors[1] < errors[0] / 5 and errors[2] < errors[1] / 5 and errors[2] < 1e-6


# -- within a step ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["gauss-2", "radau-iia-3", "lobatto-iiia-3", "lobatto-iiic-3", "gauss-3"])
def test_between_the_steps(name):
    """Dense output is continuous and at least of the order of the polynomial, also where steps are not stored."""
    system, exact = plane(), reference_motion(plane(), Q0, V0)
    t, errors, steps = 1.037, [], [0.1, 0.075, 0.05, 0.0375]
    for h in steps:
        run = lv.simulate(system, Q0, V0, scheme=name, h=h, t_end=1.5)
        i = int(t / h)
        assert np.abs(run.at(run.t[i]).q - run.q[i]).max() < 1e-14
        theta = i * h + 0.4 * h  # the same place of a step every time
        here = run.at(theta)
        errors.append(np.linalg.norm(here.q - exact(theta)["q"]) + np.linalg.norm(here.v - exact(theta)["v"]))
    assert measured_order(steps, errors) > min(lv.schemes.get(name).tableau.s, 3) - 0.3


# -- constraints ------------------------------------------------------------------------------------------------------
#: Orders of q, v and multipliers where all stages are on the constraints (index 3), measured.
INDEX_3 = {
    "radau-iia-2": (3, 2, 1), "radau-iia-3": (5, 3, 2), "radau-iia-4": (7, 4, 3),
    "lobatto-iiic-3": (4, 2, 1), "lobatto-iiic-4": (6, 3, 2),
}  # fmt: skip


@pytest.mark.parametrize("name", INDEX_3)
def test_stiffly_accurate_methods_on_constraints(name):
    problem = lv.problems.load("spherical-pendulum")
    exact = problem.reference(1.0)
    coarse = (22, 27, 33, 40) if name.endswith("4") else (80, 113, 160, 226)
    for key, order in zip(("q", "v", "multipliers"), INDEX_3[name], strict=True):
        numbers = coarse if key == "q" else [4 * n for n in coarse]  # the lower orders show at finer steps
        runs = [lv.simulate(problem, scheme=name, h=1 / n, t_end=1.0) for n in numbers]
        errors = [np.linalg.norm(getattr(run, key)[-1] - exact[key]) for run in runs]
        assert abs(measured_order([1 / n for n in numbers], errors) - order) < 0.1, (key, errors)
        assert max(run.summary.max_constraint for run in runs) < 1e-14
        assert min(run.summary.max_velocity_constraint for run in runs) > 1e-9


def test_multipliers_of_two_stage_lobatto_iiic_do_not_converge():
    """Index 3 costs two orders: of order 2 nothing is left."""
    problem = lv.problems.load("spherical-pendulum")
    exact = problem.reference(1.0)["multipliers"]
    for n in (100, 1000):
        run = lv.simulate(problem, scheme="lobatto-iiic-2", h=1 / n, t_end=1.0)
        assert np.abs(run.multipliers[-1] - exact).max() > 1


def test_what_a_system_must_offer_is_said():
    pendulum = lv.problems.load("pendulum")
    with pytest.raises(lv.InputError, match=r"'gauss-2' needs a system without constraints"):
        lv.simulate(pendulum, scheme="gauss-2")
    massless = lv.problems.load("vanishing-mass")
    with pytest.raises(lv.InputError, match="a regular mass matrix"):
        lv.simulate(massless, scheme="lobatto-iiib-3")
    varying = lv.System("x y", kinetic=lambda q, v: 0.5 * (1 + q[0] ** 2) * v[0] ** 2, potential=lambda q: q @ q,
                        dissipation=lambda v: v[1] ** 2)  # fmt: skip
    with pytest.raises(lv.InputError, match="regular or constant"):
        lv.simulate(varying, [1, 0], [0, 0], scheme="gauss-2", h=0.1, t_end=1)
    assert lv.simulate(varying, [1, 0], [0, 0], scheme="radau-iia-2", h=0.1, t_end=1).status == "complete"


# -- vanishing masses -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["gauss-1", "gauss-3", "radau-ia-3", "radau-iia-3", "lobatto-iiic-3", "lobatto-iiid-3",
                                  "lobatto-iiie-3", "murua-2", "murua-ggl-2"])  # fmt: skip
def test_masses_down_to_zero(name):
    """The distance to the motion without the second mass falls with that mass, until it is round-off."""

    def run(m2):
        problem = lv.problems.load("vanishing-mass", m2=m2, p0=(6.0, 18.0))
        return lv.simulate(problem, scheme=name, h=0.01, t_end=3.0)

    limit, distances = run(0.0), []
    for m2 in (1e-4, 1e-8, 1e-12, 1e-20, 1e-40):
        distances.append(np.abs(run(m2).q - limit.q).max())
    assert distances[1] < 1e-3 * distances[0] and distances[2] < 1e-3 * distances[1]
    assert distances[3] < 1e-12 and distances[4] == 0


@pytest.mark.parametrize(
    ("name", "rejected"), [("lobatto-iiic-2", 0.02), ("lobatto-iiic-3", 0.1), ("lobatto-iiic-4", 0.2)]
)
def test_controlled_steps_with_constraints_are_seldom_rejected(name, rejected):
    """The estimate does not contain the initial velocity, whose error depends on the size of the previous step."""
    problem = lv.problems.load("simple-pendulum")
    exact = lv.simulate(problem, scheme="radau-iia-3", tolerance=1e-10, t_end=5.0)
    for tolerance in (1e-4, 1e-6):
        run = lv.simulate(problem, scheme=name, tolerance=tolerance, t_end=5.0)
        assert run.statistics.rejected <= rejected * run.statistics.steps + 10
        assert np.abs(run.q[-1] - exact.q[-1]).max() < 10 * tolerance
