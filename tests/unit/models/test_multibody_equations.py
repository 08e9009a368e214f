"""Quasi-velocities, auxiliary variables and formulations of different index, on one model each."""

import numpy as np
import pytest
from conftest import measured_order
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

import livens as lv
from livens import math as m
from livens import rotations

INERTIA = np.array([6.0, 8.0, 3.0])


def angles_to_matrix(q):
    """R = Rx(a) Ry(b) Rz(c)."""
    (sa, sb, sc), (ca, cb, cc) = np.sin(q), np.cos(q)
    x = np.array([[1, 0, 0], [0, ca, -sa], [0, sa, ca]])
    y = np.array([[cb, 0, sb], [0, 1, 0], [-sb, 0, cb]])
    z = np.array([[cc, -sc, 0], [sc, cc, 0], [0, 0, 1]])
    return x @ y @ z


def euler_angles(q):
    """``(a, b, c)' = Z omega`` for angular velocities in axes that turn with the body."""
    sb, cb, sc, cc = m.sin(q[1]), m.cos(q[1]), m.sin(q[2]), m.cos(q[2])
    return [[cc / cb, -sc / cb, 0.0], [sc, cc, 0.0], [-cc * sb / cb, sc * sb / cb, 1.0]]


def spinning_body(**more):
    return lv.MultibodyEquations(
        "a b c", velocities="w1 w2 w3", kinematics=euler_angles, kinetic=lambda v: sum(INERTIA * v**2) / 2, **more
    )


@settings(max_examples=20, deadline=None)
@given(q=st.lists(st.floats(-1.2, 1.2), min_size=3, max_size=3), w=st.lists(st.floats(-3, 3), min_size=3, max_size=3))
def test_the_kinematic_matrix_turns_the_body(q, w):
    """R' = R skew(omega), by differences."""
    q, w, d = np.array(q), np.array(w), 1e-6
    Z = np.array(euler_angles(q), dtype=float)
    rate = (angles_to_matrix(q + d * (Z @ w)) - angles_to_matrix(q - d * (Z @ w))) / (2 * d)
    skew = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
    assert np.abs(rate - angles_to_matrix(q) @ skew).max() < 1e-7


def test_hamel_gives_eulers_equations():
    """J w' = -w x J w, without anyone having written the gyroscopic term down."""
    body = spinning_body()
    import casadi as ca

    force = ca.Function("f", [body.q, body.v, body.k], [body.f])
    random = np.random.default_rng(0)
    for _ in range(10):
        q, w = random.uniform(-1, 1, 3), random.uniform(-2, 2, 3)
        assert np.allclose(np.array(force(q, w, [])).ravel(), -np.cross(w, INERTIA * w), atol=1e-12)


def test_a_body_in_angles_moves_as_one_in_quaternions():
    start, t_end = np.array([1.0, 2.0, 2.0]), 0.5
    model = spinning_body().formulate()
    run = lv.simulate(model, q0=[0, 0, 0], v0=start, scheme="gauss-4", h=0.01, t_end=t_end)
    problem = lv.problems.load("free-rigid-body")
    errors, steps = [], [0.01, 0.005, 0.0025, 0.00125]
    for h in steps:
        quaternion = np.array([1.0, 0, 0, 0])
        v0 = 0.5 * np.concatenate([[0.0], start])
        other = lv.simulate(problem.model, q0=quaternion, v0=v0, scheme="livens-em", h=h, t_end=t_end)
        errors.append(np.abs(rotations.to_matrix(other.q[-1]) - angles_to_matrix(run.x[-1, :3])).max())
    assert abs(measured_order(steps, errors) - 2) < 0.1 and errors[-1] < 1e-4
    assert run.summary.max_energy_drift < 1e-10


def test_singular_angles_are_reported():
    model = spinning_body().formulate()
    with pytest.raises(lv.InputError, match=r"kinematic matrix Z is singular at a = 0, b = 1\.5708, c = 0"):
        lv.simulate(model, q0=[0, np.pi / 2, 0], v0=[0, 1, 0], h=0.01, t_end=1.0)


@pytest.mark.parametrize("w, h", [([0.0, 1.0, 0.0], 0.03), ([1e-3, 1.0, 0.0], 0.05)])
def test_singular_angles_on_the_way_too(w, h):
    """Also where a step jumps across: what comes behind is not to be trusted."""
    model = spinning_body().formulate()
    with pytest.raises(lv.IntegrationError, match=r"at t = 0\.[01]\d* the kinematic matrix Z is singular") as caught:
        lv.simulate(model, q0=[0, np.pi / 2 - 0.1, 0], v0=w, scheme="radau-iia-2", h=h, t_end=0.5)
    assert len(caught.value.result.t) > 1


# -- auxiliary variables ---------------------------------------------------------------------------------------------
def bead(with_auxiliary):
    """A bead on the curve y = sin x; with s, the place on the curve, as a variable of its own: tan(s) = x."""
    if not with_auxiliary:
        g = dict(constraints=lambda q: [q[1] - m.sin(q[0])])
    else:
        g = dict(
            auxiliary="s", conditions=lambda q, s: [s[0] ** 3 + s[0] - q[0]],
            constraints=lambda q, s: [q[1] - m.sin(s[0] ** 3 + s[0])],
        )  # fmt: skip
    return lv.MultibodyEquations("x y", kinetic=lambda v: v @ v / 2, potential=lambda q: 9.81 * q[1], **g)


@pytest.mark.parametrize("formulation", ["index-3", "index-2", "ggl", "index-1"])
def test_auxiliary_variables_change_nothing(formulation):
    q0, v0 = [0.3, np.sin(0.3)], [1.0, np.cos(0.3)]
    runs = [
        lv.simulate(
            bead(with_s).formulate(formulation), q0=q0, v0=v0, scheme="radau-iia-3", h=0.01, t_end=0.5
        )
        for with_s in (False, True)
    ]  # fmt: skip
    assert np.abs(runs[0].x - runs[1].x).max() < 1e-9
    s, x = runs[1].y[:, 0], runs[1].x[:, 0]
    assert np.abs(s**3 + s - x).max() < 1e-12


def test_conditions_that_determine_nothing():
    form = lv.MultibodyEquations(
        "x y", kinetic=lambda v: v @ v / 2, auxiliary="s", conditions=lambda q, s: [q[0] + 0 * s[0]]
    )
    with pytest.raises(lv.InputError, match="do not determine the auxiliary variables"):
        lv.simulate(form.formulate(), q0=[0, 0], v0=[0, 0], h=0.1, t_end=1)


# -- formulations ----------------------------------------------------------------------------------------------------
def pendulum(formulation):
    return lv.MultibodyEquations.from_system(lv.problems.load("simple-pendulum").model).formulate(formulation)


def swing(formulation, scheme="radau-iia-2", h=0.01, t_end=10.0):
    return lv.simulate(pendulum(formulation), q0=[-1, 0], v0=[0, 0], scheme=scheme, h=h, t_end=t_end)


def test_what_is_imposed_holds_and_what_is_not_drifts():
    """Index 3 and GGL hold g, index 2 and GGL hold its rate; index 2 drifts off g, index 1 off both (Symank 2.2.1)."""
    g, rate = {}, {}
    for formulation in ("index-3", "index-2", "ggl", "index-1"):
        run = swing(formulation)
        g[formulation] = np.abs(run.observe("constraint")).ravel()
        rate[formulation] = np.abs(run.observe("velocity_constraint")).ravel()
    assert g["index-3"].max() < 1e-13 and g["ggl"].max() < 1e-13
    assert rate["index-2"].max() < 1e-12 and rate["ggl"].max() < 1e-12
    assert rate["index-3"].max() > 1e-7
    for formulation in ("index-2", "index-1"):
        assert g[formulation][-1] > 1e-6 and g[formulation][-1] > 3 * g[formulation][len(g[formulation]) // 10]
    assert rate["index-1"][-1] > 1e-8


@pytest.mark.parametrize("formulation, order", [("index-1", 3), ("index-2", 3), ("ggl", 3)])
def test_orders_of_radau_in_every_formulation(formulation, order):
    """Radau IIA with two stages: order 3 for index 1 and for the differential variables of index 2."""
    exact = np.array([-0.275087462576117, -0.961419205099125])
    steps = [0.02, 0.01, 0.005, 0.0025]
    errors = [np.abs(swing(formulation, h=h).x[-1, :2] - exact).max() for h in steps]
    assert abs(measured_order(steps, errors) - order) < 0.1


def test_massless_systems_are_refused():
    with pytest.raises(lv.ModelError, match="regular mass matrix"):
        lv.MultibodyEquations.from_system(lv.problems.load("mass-spring-redundant").model)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (dict(), "either kinetic or mass"),
        (dict(kinetic=lambda v: v @ v, mass=np.eye(2)), "either kinetic or mass"),
        (dict(mass=np.eye(3)), r"mass must be an array of shape \(2, 2\)"),
        (dict(mass=np.eye(2), velocities="u"), "as many velocities as coordinates"),
        (dict(mass=np.eye(2), auxiliary="s"), "together with as many conditions"),
        (dict(mass=np.eye(2), kinematics=lambda q: [1.0, 2.0]), "kinematics must be an array"),
        (dict(mass=np.eye(2), forces=lambda q, s: [0.0, 0.0]), "has an argument 's'"),
    ],
)
def test_bad_models(arguments, words):
    with pytest.raises((lv.InputError, lv.ModelError), match=words):
        lv.MultibodyEquations("x y", **arguments)


def test_bad_starts():
    with pytest.raises(lv.InputError, match="unknown formulation 'index-4'"):
        pendulum("index-4")
    with pytest.raises(lv.InputError, match="violated on position level"):
        lv.simulate(pendulum("ggl"), q0=[-1.1, 0], v0=[0, 0], h=0.1, t_end=1)
    with pytest.raises(lv.InputError, match="violated on velocity level"):
        lv.simulate(pendulum("ggl"), q0=[-1, 0], v0=[1, 0], h=0.1, t_end=1)
    with pytest.raises(lv.InputError, match="starts from q0 and v0, not from x0"):
        lv.simulate(pendulum("ggl"), q0=[-1, 0], v0=[0, 0], x0=[0], h=0.1, t_end=1)


# -- masses, forces and formulations of more kinds --------------------------------------------------------------------
SLOPE, FRICTION = 0.6, 0.2
DOWN, NORMAL = np.array([np.cos(SLOPE), -np.sin(SLOPE)]), np.array([np.sin(SLOPE), np.cos(SLOPE)])


def sliding_block():
    """A block on an incline, whose friction is that of the force that holds it there (Symank 2025 eq. 6.11)."""

    def friction(v, lam):
        return -FRICTION * m.abs(lam[0]) * v / m.sqrt(v @ v + 1e-16)

    return lv.MultibodyEquations(
        "x y",
        mass=np.eye(2),
        potential=lambda q: 9.81 * q[1],
        constraints=lambda q: [-(NORMAL[0] * q[0] + NORMAL[1] * q[1])],
        forces=friction,
    )


@pytest.mark.parametrize("formulation", ["index-1", "index-2", "ggl", "ggl-principle", "index-3"])
def test_friction_that_depends_on_multipliers(formulation):
    """``s = v0 t + g (sin - mu cos) t^2 / 2`` in every formulation, from a start whose multiplier is computed."""
    model = sliding_block().formulate(formulation)
    run = lv.simulate(model, q0=[0.0, 0.0], v0=0.1 * DOWN, scheme="radau-iia-2", h=0.05, t_end=1.0)
    way = 0.1 + 9.81 * (np.sin(SLOPE) - FRICTION * np.cos(SLOPE)) / 2
    assert run.x[-1, :2] @ DOWN == pytest.approx(way, abs=1e-12)
    assert run.y[[0, -1], 0] == pytest.approx(9.81 * np.cos(SLOPE), abs=1e-10)


def test_a_mass_matrix_that_depends_on_coordinates():
    """Given as a matrix and as an energy: the same equations."""
    potential, start = (
        (lambda q: 2 * q[1] ** 2),
        dict(q0=[0.3, 0.8], v0=[0.5, -0.2], scheme="gauss-2", h=0.05, t_end=2.0),
    )
    as_matrix = lv.MultibodyEquations("a r", mass=lambda q: [[1 + q[1] ** 2, 0], [0, 1]], potential=potential)
    as_energy = lv.MultibodyEquations(
        "a r", kinetic=lambda q, v: ((1 + q[1] ** 2) * v[0] ** 2 + v[1] ** 2) / 2, potential=potential
    )
    a, b = (lv.simulate(e.formulate("index-1"), **start) for e in (as_matrix, as_energy))
    assert np.abs(a.x - b.x).max() < 1e-13 and np.ptp(a.observe("total_energy")) < 1e-5


def test_the_ggl_principle_keeps_both_levels_and_differs_from_the_classical_equations():
    """Both converge to the same motion; multipliers mu vanish with h; at finite h the two are not the same."""
    pendulum = lv.MultibodyEquations(
        "x y", kinetic=lambda v: v @ v / 2, potential=lambda q: 9.81 * q[1], constraints=lambda q: [(q @ q - 1) / 2]
    )
    ends = {}
    for formulation in ("ggl", "ggl-principle"):
        start = dict(q0=[1.0, 0.0], v0=[0.0, 0.0], scheme="radau-iia-2", t_end=1.0)
        runs = [lv.simulate(pendulum.formulate(formulation), h=h, **start) for h in (0.05, 0.0125)]
        for run in runs:
            assert run.summary.max_constraint < 1e-14 and run.summary.max_velocity_constraint < 1e-13
        assert np.abs(runs[1].y[:, 1]).max() < 0.1 * np.abs(runs[0].y[:, 1]).max()
        ends[formulation] = [run.x[-1] for run in runs]
    gaps = [np.abs(a - b).max() for a, b in zip(*ends.values(), strict=True)]
    assert gaps[0] > 1e-7 and gaps[1] < 0.1 * gaps[0]
    turning = lv.MultibodyEquations(
        "a r", mass=lambda q: [[1 + q[1] ** 2, 0], [0, 1]], constraints=lambda q: [q[1] - 1]
    )
    with pytest.raises(lv.ModelError, match="the GGL principle needs a constant mass matrix"):
        turning.formulate("ggl-principle")


@settings(max_examples=20, deadline=None)
@given(
    q=st.lists(st.floats(0.2, 1.2), min_size=3, max_size=3),
    w=st.lists(st.floats(-3, 3), min_size=3, max_size=3),
    axes=st.sampled_from(["xyz", "zxz", "zyx", "yxy", "xzy"]),
)
def test_ready_kinematics_of_euler_angles(q, w, axes):
    """R' = R skew(omega), by differences, whichever axes are turned about."""
    q, w, d = np.array(q), np.array(w), 1e-6
    Z = rotations.euler_kinematic_matrix(q, axes)
    R, ahead, behind = (
        rotations.to_matrix(rotations.from_euler_angles(q + step * (Z @ w), axes)) for step in (0.0, d, -d)
    )
    assert np.abs((ahead - behind) / (2 * d) - R @ rotations.skew(w)).max() < 1e-6
    if axes == "xyz":
        assert np.abs(Z - np.array(euler_angles(q), dtype=float)).max() < 1e-13


def test_a_body_with_ready_kinematics():
    """Euler's equations, whichever angles the body has."""
    import casadi as ca

    for axes in ("xyz", "zxz"):
        body = lv.MultibodyEquations(
            "a b c",
            velocities="w1 w2 w3",
            kinematics=lambda q, axes=axes: rotations.euler_kinematic_matrix(q, axes),
            kinetic=lambda v: sum(INERTIA * v**2) / 2,
        )
        w, force = np.array([0.5, -1.0, 2.0]), ca.Function("f", [body.q, body.v, body.k], [body.f])
        assert np.allclose(np.array(force([0.3, 0.7, -0.4], w, [])).ravel(), -np.cross(w, INERTIA * w), atol=1e-12)
    with pytest.raises(lv.InputError, match="axes"):
        rotations.euler_kinematic_matrix([0.1, 0.2, 0.3], "abc")


# -- other velocities, and the index ----------------------------------------------------------------------------------
def hung_body():
    """A body of angles whose mass depends on them, loaded along its own axes, and held by a constraint."""
    return spinning_body(
        potential=lambda q: 9.81 * m.sin(q[1]),
        forces=lambda v, t: [-0.3 * v[0], 0.2 * m.sin(t), 0.1 * v[1]],
        constraints=lambda q: [q[0] - 0.3 * q[1] ** 2],
    )


def rates(equations, q, v, t=0.4):
    """Accelerations and multipliers, by the constraint on acceleration level."""
    import casadi as ca

    e, (A, b) = equations, equations.acceleration_constraint
    at = ca.Function("at", [e.q, e.v, e.s, e.t, e.k], [e.M, A, b, e.f])
    M, A, b, f = (np.array(part) for part in at(q, v, [], t, []))
    found = np.linalg.solve(np.block([[M, A.T], [A, np.zeros((1, 1))]]), np.vstack([f, -b])).ravel()
    return found[:3], found[3:]


def test_rates_of_coordinates_in_place_of_quasi_velocities():
    """(2.22) of Symank 2025: w = Z v has the rate Z v' + Z' v, and the multipliers are the same."""
    body, random = hung_body(), np.random.default_rng(3)
    plain = body.with_coordinate_velocities()
    assert plain.Z.is_eye() and plain.velocities == ("v_a", "v_b", "v_c")
    for _ in range(5):
        q, v, d = random.uniform(-0.8, 0.8, 3), random.uniform(-1, 1, 3), 1e-5
        Z = np.array(euler_angles(q), dtype=float)
        w = Z @ v
        turning = (np.array(euler_angles(q + d * w), float) - np.array(euler_angles(q - d * w), float)) / (2 * d)
        (own, lam), (other, same) = rates(body, q, v), rates(plain, q, w)
        assert other == pytest.approx(Z @ own + turning @ v, abs=1e-8)
        assert same == pytest.approx(lam, rel=1e-11, abs=1e-11)


def test_a_run_with_rates_of_coordinates():
    turned = lv.MultibodyEquations(
        "a b", kinematics=lambda q: [[1 + q[1] ** 2, 0.0], [0.0, 2.0]], mass=[[1.0, 0.1], [0.1, 2.0]],
        potential=lambda q: 9.81 * m.sin(q[0]), constraints=lambda q: [q[0] - q[1] ** 2],
    )  # fmt: skip
    given = dict(q0=[0.25, 0.5], h=0.02, t_end=0.6, scheme="radau-iia-3")
    a = lv.simulate(turned.formulate("index-2"), v0=[0.4, 0.25], **given)
    b = lv.simulate(turned.with_coordinate_velocities().formulate("index-2"), v0=[0.5, 0.5], **given)
    assert np.abs(a.x[:, :2] - b.x[:, :2]).max() < 1e-7 and np.abs(a.y[-1, 0] - b.y[-1, 0]) < 1e-3


def test_the_index_by_gamma():
    """Theorem 2.2 of Symank: regular where constraints are independent, and the place where they are not is told."""
    body = hung_body()
    found = body.index_test([0.1, 0.5, 0.2])
    G = np.array([[1.0, -0.6 * 0.5, 0.0]]) @ np.array(euler_angles([0.1, 0.5, 0.2]), float)
    assert (
        found.index == 3 and found.gamma == pytest.approx(G @ np.diag(1 / INERTIA) @ G.T) and "index is 3" in str(found)
    )
    twice = spinning_body(constraints=lambda q: [q[0] - q[1], 2 * q[1] - 2 * q[0], q[2]])
    found = twice.index_test([0.1, 0.1, 0.0])
    assert found.index is None and len(found.dependent_constraints) == 1 and found.dependent_constraints[0] in (0, 1)
    assert "Gamma is singular" in str(found) and found.rcond < 1e-12
    fork = lv.MultibodyEquations(
        "x y", mass=[[1.0, 0.0], [0.0, 2.0]], constraints=lambda q: [q[0] ** 2 + q[1] ** 2 - 1, q[1] * (q[0] - 1)]
    )
    assert fork.index_test([1.0, 0.0]).index is None and fork.index_test([0.6, 0.8]).index == 3
    assert spinning_body().index_test([0.1, 0.2, 0.3]).index == 0
    with pytest.raises(lv.InputError, match="mass matrix is singular"):
        lv.MultibodyEquations("x y", mass=[[1.0, 0.0], [0.0, 0.0]], constraints=lambda q: [q[0]]).index_test([0.0, 0.0])
    with pytest.raises(lv.InputError, match="q must be 3 numbers"):
        body.index_test([0.1])


@pytest.mark.parametrize(("formulation", "index"), [("index-3", 3), ("index-2", 2), ("ggl", 2), ("index-1", 1)])
def test_gamma_agrees_with_the_index_that_is_measured(formulation, index):
    body = hung_body()
    assert body.index_test([0.1, 0.5, 0.2]).index == 3 and body.formulate(formulation).index == index


# -- chains of rods with index 3 --------------------------------------------------------------------------------------
def rods(masses):
    """Masses on rods of length 1 that hang on one another."""
    n = len(masses)

    def lengths(q):
        points = [0.0, 0.0, *(q[i] for i in range(2 * n))]
        return [
            0.5 * ((points[2 * i + 2] - points[2 * i]) ** 2 + (points[2 * i + 3] - points[2 * i + 1]) ** 2 - 1)
            for i in range(n)
        ]

    return lv.MultibodyEquations(
        2 * n,
        kinetic=lambda v: sum(masses[i] * (v[2 * i] ** 2 + v[2 * i + 1] ** 2) for i in range(n)) / 2,
        potential=lambda q: sum(9.81 * masses[i] * q[2 * i + 1] for i in range(n)),
        constraints=lengths,
    )


def positions(angles):
    return np.stack([np.cumsum(np.sin(angles)), np.cumsum(-np.cos(angles))], axis=1).ravel()


def hanging_chain(angles, t_end):
    """Positions of unit masses at the end of a motion from rest: equations in angles by DOP853."""
    n = len(angles)
    weight = np.array([[n - max(i, j) for j in range(n)] for i in range(n)], dtype=float)

    def rate(t, y):
        a, w = y[:n], y[n:]
        difference = a[:, None] - a[None, :]
        force = -(weight * np.sin(difference)) @ w**2 - 9.81 * np.diag(weight) * np.sin(a)
        return np.concatenate([w, np.linalg.solve(weight * np.cos(difference), force)])

    start = np.concatenate([angles, np.zeros(n)])
    return positions(solve_ivp(rate, (0, t_end), start, method="DOP853", rtol=1e-12, atol=1e-12).y[:n, -1])


@pytest.mark.parametrize("n", [5, pytest.param(6, marks=pytest.mark.slow)])
def test_chains_of_rods_run_with_index_three(n):
    """From a cold start, with a tolerance, and after runs with other steps: none is refused as singular."""
    angles = np.linspace(0.3, 1.4, n)
    model, exact = rods([1.0] * n).formulate("index-3"), hanging_chain(angles, 0.5)
    start = dict(q0=positions(angles), v0=np.zeros(2 * n), scheme="radau-iia-3", t_end=0.5)
    runs = [
        lv.simulate(model, **start, **step)
        for step in (dict(control=lv.StepControl(tolerance=1e-8)), dict(h=0.01), dict(h=0.002))
    ]
    errors = [np.abs(run.x[-1, : 2 * n] - exact).max() for run in runs]
    assert errors[0] < 1e-6 and errors[1] < 1e-4 and errors[2] < errors[1] / 50, errors


@pytest.mark.parametrize(
    ("formulation", "scheme"),
    [
        ("index-2", "murua-3"),
        ("ggl", "murua-3"),
        ("index-2", "gauss-3"),
        ("ggl", "radau-iia-3"),
        ("index-3", "radau-iia-3"),
    ],
)
def test_a_chain_with_a_massless_joint_falls_freely(formulation, scheme):
    """Two rods with a mass at the lower end only: no tension is possible until they are straight."""
    angles = np.array([0.3, 1.4])
    model = rods([0.0, 1.0]).formulate(formulation)
    run = lv.simulate(model, q0=positions(angles), v0=np.zeros(4), scheme=scheme, h=0.01, t_end=0.2)
    x, y = positions(angles)[2:]
    # round-off grows as the rods approach the straight line, where the equations are singular
    assert np.abs(run.x[:, 2] - x).max() < 1e-9
    assert np.abs(run.x[:, 3] - (y - 9.81 * run.t**2 / 2)).max() < 1e-9
    half = run.x[:, 2:4] / 2  # the joint is on the bisector
    side = np.sqrt(1 - (half**2).sum(axis=1))[:, None] * half[:, ::-1] / np.linalg.norm(half, axis=1)[:, None]
    joint = half + side * np.array([1.0, -1.0])
    other = half - side * np.array([1.0, -1.0])
    near = joint if np.abs(joint[0] - run.x[0, :2]).max() < 1e-9 else other
    assert np.abs(run.x[:, :2] - near).max() < 1e-9
