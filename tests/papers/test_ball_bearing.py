"""The ball bearing of Modin 2009 (paper V, chapter 4): statics, motion, theory of rolling bearings, energy."""

import functools
import json
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from conftest import measured_order
from scipy.spatial.transform import Rotation

import livens as lv
from livens.analysis.contact_forces import contact_forces
from livens.errors import InputError
from livens.models.equations_of_motion import equations_of_motion
from livens.problems.bearing.dimensions import Bearing
from livens.problems.bearing.initial_state import axial_equilibrium, radial_equilibrium
from livens.reproduce.modin_2009.bearing_runs import final_state_by_cvodes

REFERENCE = json.loads((Path(__file__).parents[1] / "data" / "ref_ball_bearing.json").read_text())
SCHEME = "semi-explicit:0.5,0.8"
#: A bearing with fewer balls under the same load each, where that is as good.
FEW = dict(balls=3, load=1000 / 3)


@functools.cache
def bearing(case="axial", **options):
    return lv.problems.load("ball-bearing", case=case, **options)


@functools.cache
def run(case="axial", scheme=SCHEME, h=1e-6, t_end=6e-4, every=1):
    return lv.simulate(bearing(case), scheme=scheme, h=h, t_end=t_end, every=every)


def laid_out(q, v):
    """Positions and velocities as the reference has them, without orientation and accounts."""
    balls = 54
    x, w = (np.concatenate([a[6 * i + b : 6 * i + b + 3] for i in range(9)]) for a, b in ((q, 0), (v, 3)))
    u = np.concatenate([v[6 * i : 6 * i + 3] for i in range(9)])
    d, rate = q[balls + 3 : balls + 12].reshape(3, 3), v[balls + 3 : balls + 12].reshape(3, 3)
    turning = np.cross(d, rate).sum(axis=0) / 2
    places = np.concatenate([x, q[balls : balls + 3], q[balls + 12 :]])
    speeds = np.concatenate([u, v[balls : balls + 3], v[balls + 12 : balls + 15], v[balls + 16 :]])
    return places, speeds, np.concatenate([w, turning, v[balls + 15 : balls + 16]]), d


def of_reference(z):
    z = np.array(z)
    scalar, x, y, zz = z[30:34]
    first = [1 - 2 * (y**2 + zz**2), 2 * (x * y + scalar * zz), 2 * (x * zz - scalar * y)]  # R e_x
    places = np.concatenate([z[:30], z[34:41]])
    speeds = np.concatenate([z[41:68], z[95:98], z[101:104], z[105:108]])
    return places, speeds, np.concatenate([z[68:95], z[98:101], z[104:105]]), np.array(first)


# -- statics ----------------------------------------------------------------------------------------------------------
def test_hertz_and_geometry_of_a_6205():
    b = Bearing()
    assert b.stiffness == pytest.approx((2.68270e10, 2.53308e10), rel=1e-5)
    assert np.degrees(b.free_contact_angle) == pytest.approx(12.4779, abs=1e-4)
    assert (b.outer_groove_circle, b.inner_groove_circle) == pytest.approx((19.09499e-3, 19.40501e-3), rel=1e-12)
    assert lv.problems.load("ball-bearing", scale=1.7).model.parameters["ball1.mass"] == pytest.approx(0.01, rel=0.01)


def test_axial_equilibrium():
    """Without centrifugal force by a closed form, with it by another program."""
    still, known = axial_equilibrium(Bearing(), 1000.0, rotating=False), REFERENCE["static"]["closed_form"]
    assert np.degrees(still.contact_angles) == pytest.approx([known["alpha_deg"]] * 2, rel=1e-9)
    assert (still.inner[0], still.outer[0]) == pytest.approx((known["Q"],) * 2, rel=1e-9)
    assert still.ring_position[0] == pytest.approx(known["xi"], rel=1e-9)
    seat, known = axial_equilibrium(Bearing(), 1000.0), REFERENCE["static"]["jones_with_centrifugal"]
    found = (
        seat.x[0],
        seat.rho[0],
        seat.ring_position[0],
        seat.outer[0],
        seat.inner[0],
        seat.cage_speed,
        seat.ball_spin,
        seat.angle,
    )
    assert found == pytest.approx([known[name] for name in "xb rho xi Qo Qi wc wr b".split()], rel=1e-9)


def test_radial_equilibrium():
    """The reference takes the ring's way along the balls' azimuths; Stribeck's rule gives 5 F/Z."""
    seat, known = radial_equilibrium(Bearing(radial=-1000.0), -1000.0), REFERENCE["static"]["radial"]
    assert seat.ring_position[1:] == pytest.approx(known["ring"], abs=3e-9)
    assert seat.inner == pytest.approx(known["Qi"], abs=0.3)
    assert seat.inner.max() == pytest.approx(5 * 1000 / 9, rel=0.05)
    assert seat.outer - seat.inner == pytest.approx(known["centrifugal"], rel=1e-3)


@pytest.mark.parametrize("case", ["axial", "radial"])
def test_it_starts_in_equilibrium(case):
    """Balls feel just their centripetal force, rings nothing but weight and friction, which is small."""
    problem = bearing(case)
    d = equations_of_motion(problem.model)
    k = problem.model.parameter_vector()
    force = ca.Function("f", [d.q, d.v, d.t, d.k], [d.F - ca.gradient(d.V, d.q)])
    on = np.array(force(problem.q0, problem.v0, 0.0, k)).ravel()
    seat = (
        axial_equilibrium(Bearing(), 1000.0)
        if case == "axial"
        else radial_equilibrium(Bearing(radial=-1000.0), -1000.0)
    )
    for i in range(9):
        x, push = problem.q0[6 * i : 6 * i + 3], on[6 * i : 6 * i + 3]
        radial = np.array([0.0, *x[1:]]) / np.hypot(*x[1:])
        mass = Bearing().ball_mass
        assert push @ radial == pytest.approx(-mass * seat.rho[i] * seat.cage_speed**2, abs=1.0)
        assert abs(push[0]) < 0.25
    assert np.abs(on[66:69]).max() < 5.0


def test_forces_between_bodies_cancel():
    """At random states near the start: their sum, and the moment about the axis of all but the drive."""
    problem, random = bearing(), np.random.default_rng(5)
    system = problem.model
    d = equations_of_motion(system)
    only = [i for i, element in enumerate(system.elements) if element.expensive]
    total = ca.SX.zeros(system.n)
    for i in only:
        model, index, where = system.element_types[i], list(system.element_dofs[i]), list(system.element_parameters[i])
        one = ca.Function("f", [model.q, model.v, model.t, model.k], [model.F - ca.gradient(model.V, model.q)])
        total[index] += one(d.q[index], d.v[index], d.t, d.k[where])
    force = ca.Function("f", [d.q, d.v, d.t, d.k], [total])
    for _ in range(20):
        q = problem.q0 + 1e-5 * random.normal(size=system.n) * (problem.q0 != 1)
        v = problem.v0 + random.normal(size=system.n)
        on = np.array(force(q, v, 0.0, system.parameter_vector())).ravel()
        parts = [*(on[6 * i : 6 * i + 3] for i in range(9)), on[54:57], on[66:69], on[70:73]]
        arms = [*(q[6 * i : 6 * i + 3] for i in range(9)), q[54:57], q[66:69], q[70:73]]
        assert np.abs(np.sum(parts, axis=0)).max() < 1e-11 * np.abs(on).max()
        moment = sum(np.cross(x, f)[0] for x, f in zip(arms, parts, strict=True))
        moment += sum(on[6 * i + 3] for i in range(9)) + on[69]
        moment += sum(np.cross(q[57 + 3 * i : 60 + 3 * i], on[57 + 3 * i : 60 + 3 * i])[0] for i in range(3))
        # the outer ring does not turn: what its housing takes is the moment of friction at its race
        outer = sum(_outer_moment(system, q, v, i) for i in range(9))
        assert abs(moment + outer) < 1e-11 * np.abs(on).max()


def _outer_moment(system, q, v, i):
    """About the axis through the outer ring's centre, of what a ball does to it at the contact."""
    number = next(j for j, e in enumerate(system.elements) if e.name == f"ball{i + 1}-outer")
    model, index, where = (
        system.element_types[number],
        list(system.element_dofs[number]),
        list(system.element_parameters[number]),
    )
    force = ca.Function("f", [model.q, model.v, model.t, model.k], [model.F - ca.gradient(model.V, model.q)])
    on = np.array(force(q[index], v[index], 0.0, system.parameter_vector()[where])).ravel()
    x, X = q[index][:3], q[index][6:9]
    return -(np.cross(x - X, on[:3])[0] + on[3])


# -- motion -----------------------------------------------------------------------------------------------------------
@functools.cache
def scheme_5_written_by_hand(n_steps=600, h=1e-6, beta=0.8):
    """Scheme (5) in NumPy, with a reversible rotation of the cage: a free half turn, a kick, an adjoint half turn.

    Returns coordinates and velocities of all steps. Forces on the coordinates are those of the model.
    """
    problem, frame = bearing(), slice(57, 66)
    system, d = problem.model, equations_of_motion(problem.model)
    forces = []
    for expensive in (True, False):
        total = ca.SX.zeros(system.n)
        for i in (i for i, element in enumerate(system.elements) if element.expensive is expensive):
            model, index = system.element_types[i], list(system.element_dofs[i])
            pushed = model.F - ca.gradient(model.R, model.v) - ca.gradient(model.V, model.q)
            one = ca.Function("f", [model.q, model.v, model.t, model.k], [pushed])
            total[index] += one(d.q[index], d.v[index], d.t, d.k[list(system.element_parameters[i])])
        known = ca.substitute(total, ca.vertcat(d.t, d.k), ca.vertcat(0, system.parameter_vector()))
        forces.append(ca.Function("f", [d.q, d.v], [ca.densify(known)]))
    A, B = (lambda q, v, f=f: np.array(f(q, v)).ravel() for f in forces)
    mass_matrix = ca.Function("M", [d.q, d.k], [ca.densify(ca.hessian(d.T, d.v)[0])])
    mass = np.diag(np.array(mass_matrix(problem.q0, system.parameter_vector())))
    euler = mass[57:66:3]
    J = np.diag(euler.sum() - euler)
    K, C = (
        np.array(ca.Function("J", [d.q, d.v], [ca.jacobian(forces[1](d.q, d.v), x)])(problem.q0, problem.v0))
        for x in (d.q, d.v)
    )  # cheap forces are linear
    q, v = problem.q0.copy(), problem.v0.copy()
    states = [(q, v)]
    for _ in range(n_steps):
        D = q[frame].reshape(3, 3).T  # directors as columns
        w = np.cross(D.T, v[frame].reshape(3, 3)).sum(axis=0) / 2
        half = Rotation.from_rotvec(h / 2 * w).as_matrix() @ D
        q_A, v_A = q + h / 2 * v, v.copy()
        q_A[frame], v_A[frame] = half.T.ravel(), np.cross(w, half.T).ravel()
        pushed, cheap = A(q_A, v_A), B(q, v)
        matrix = np.diag(mass) - h * (beta * h / 2 * K + beta * C)
        change = np.linalg.solve(matrix, h * (pushed + cheap + beta * h * K @ v))
        momentum = D @ J @ D.T @ w + h * np.cross(half.T, pushed[frame].reshape(3, 3)).sum(axis=0)
        turned = w
        for _ in range(12):  # the iteration contracts by h |w|
            end = Rotation.from_rotvec(h / 2 * turned).as_matrix() @ half
            turned = end @ np.linalg.solve(J, end.T @ momentum)
        q, v = q + h * (v + change / 2), v + change
        q[frame], v[frame] = end.T.ravel(), np.cross(turned, end.T).ravel()
        states.append((q, v))
    return states


@pytest.mark.parametrize("sample", REFERENCE["scheme_5"], ids=lambda sample: f"{sample['t']:g}")
def test_states_are_those_of_scheme_5_written_by_hand(sample):
    result = run()
    i = round(sample["t"] / 1e-6)
    found, known = laid_out(result.q[i], result.v[i]), laid_out(*scheme_5_written_by_hand()[i])
    assert found[0] == pytest.approx(known[0], rel=0, abs=1e-12)  # m
    assert found[1] == pytest.approx(known[1], rel=0, abs=1e-8)
    assert found[2] == pytest.approx(known[2], rel=0, abs=1e-6)  # rad/s, of balls with a radius of 4 mm
    assert found[3][0] == pytest.approx(known[3][0], rel=0, abs=1e-12)  # axis of the cage


@pytest.mark.parametrize("sample", REFERENCE["scheme_5"], ids=lambda sample: f"{sample['t']:g}")
def test_states_are_those_of_another_program(sample):
    """It has its own forces, and the gyroscopic torque of the cage in A: rates across the axis of the cage differ."""
    result, across = run(), [28, 29]
    i = round(sample["t"] / 1e-6)
    found, known = laid_out(result.q[i], result.v[i]), of_reference(sample["state"])
    assert found[0] == pytest.approx(known[0], rel=0, abs=5e-12)  # m
    assert found[1] == pytest.approx(known[1], rel=0, abs=1e-8)
    assert np.delete(found[2], across) == pytest.approx(np.delete(known[2], across), rel=0, abs=1e-6)
    assert found[2][across] == pytest.approx(known[2][across], rel=0, abs=2e-5)
    assert found[3][0] == pytest.approx(known[3], rel=0, abs=5e-9)


def test_nothing_is_left_to_be_solved():
    """Penalties are linear and act on one coordinate each: one evaluation of the contacts per step, and no matrix."""
    assert lv.schemes.get(SCHEME).equations(bearing().model).to_single_graph().size == 0
    assert run().statistics.newton_iterations == 0


@functools.cache
def force_error(scheme, h):
    """Return the error of the force between the first ball and the outer race, relative to its maximum."""
    curve = np.array(REFERENCE["axial"]["curves_every_5_us"]["Q_outer_ball0"])
    result = lv.simulate(bearing(), scheme=scheme, h=h, t_end=6e-4, every=round(5e-6 / h))
    return np.abs(np.asarray(result["ball1-outer.normal_force"]) - curve).max() / curve.max()


def test_order_with_friction():
    """Scheme (5) has order 1 here; with extrapolated velocities the order is 2, at one evaluation as well."""
    steps = [0.5e-6, 0.25e-6, 0.125e-6, 0.0625e-6]
    assert force_error(SCHEME, 1e-6) == pytest.approx(8.9e-4, rel=0.05)
    assert abs(measured_order(steps, [force_error(SCHEME, h) for h in steps]) - 1) < 0.1
    second = "semi-explicit-2:0.5"
    assert force_error(second, 1e-6) < 2.5e-4
    assert abs(measured_order(steps, [force_error(second, h) for h in steps]) - 2) < 0.1


def test_theory_of_rolling_bearings():
    """Cage and balls go around as epicyclic theory says, and the drive feels the friction."""
    result, known = run(t_end=0.03, every=5), REFERENCE["long_axial"]
    late = result.t >= 0.015
    cage = result["cage.speed"][late].mean()
    # the cage bounces between balls, and the reference has its gyroscopic torque in A, which changes the bounces:
    # with other steps (0.5 to 1 us) and schemes its mean speed varies by 3e-4, and the mean torque by 1 %
    assert cage == pytest.approx(known["epicyclic"], rel=2e-3) and cage == pytest.approx(known["cage_speed"], rel=5e-4)
    assert result["drive.torque"][late].mean() == pytest.approx(known["drive_torque"], rel=2e-2)
    y, z = result.q[late][:, 1], result.q[late][:, 2]
    orbit = np.diff(np.unwrap(np.arctan2(z, y))[[0, -1]])[0] / np.diff(result.t[late][[0, -1]])[0]
    assert orbit == pytest.approx(known["ball_orbit_speed"], rel=1e-4)
    spin = np.linalg.norm(result.v[-1][3:6] - [orbit, 0, 0])
    assert spin == pytest.approx(2443.4, rel=2e-3)


def test_radial_load():
    """The largest inner load is Stribeck's within a few percent; the cage slips where balls carry nothing."""
    result = run("radial", t_end=0.03, every=20)
    late = result.t >= 0.015
    largest = max(result[f"ball{i}-inner.normal_force"][late].max() for i in range(1, 10))
    assert largest == pytest.approx(558, rel=0.02)
    assert result["cage.speed"][late].mean() == pytest.approx(REFERENCE["radial_cage_speed"], rel=1e-3)
    carried = sum(result[f"ball{i}-inner.normal_force"][0] for i in range(1, 10))
    assert carried > 1000


def test_bad_bearings():
    for options, word in (
        (dict(case="diagonal"), "case"),
        (dict(clearance=-1e-6), "clearance"),
        (dict(balls=40), "balls"),
        (dict(load=-1.0), "load"),
        (dict(case="elastic", modes=3), "modes"),
        (dict(penalty=0.0), "penalty"),
        (dict(ovality=1e-3), "oval"),
    ):
        with pytest.raises(InputError, match=word):
            lv.problems.load("ball-bearing", **options)


# -- energy, stability, elastic ring ----------------------------------------------------------------------------------
def test_the_energy_account_closes():
    """Energy at the end less what forces without potential did: nothing, beside what was turned over."""
    from livens.schemes.discretization.semi_explicit_step import force_split

    problem = bearing("axial-step", **FEW)
    system, k = problem.model, ca.DM(problem.model.parameter_vector())
    forces = force_split(system)

    def power(q, u, t):
        return ca.dot(forces.evaluate((*forces.expensive, *forces.cheap), q, u, 0.0, k).nonconservative, u)

    q, v, (work, turned) = final_state_by_cvodes(problem, 3e-4, 1e-12, [power, lambda q, u, t: ca.fabs(power(q, u, t))])
    d = equations_of_motion(system)
    energy = ca.Function("E", [d.q, d.v, d.t, d.k], [d.T + d.V])
    change = float(energy(q, v, 0.0, k) - energy(problem.q0, problem.v0, 0.0, k))
    assert turned > 1e-3
    assert abs(change - work) < 1e-10 * turned


def test_an_oval_inner_race():
    """The ring's load goes up and down twice per turn; energy is what forces and the moving race put in."""
    from livens.schemes.discretization.semi_explicit_step import force_split

    problem = bearing("axial-step", ovality=2e-6, **FEW)
    system, k = problem.model, ca.DM(problem.model.parameter_vector())
    forces = force_split(system)

    def power(q, u, t):
        pushed = forces.evaluate((*forces.expensive, *forces.cheap), q, u, t, k)
        return ca.dot(pushed.nonconservative, u) + pushed.potential_power

    t_end = 2e-4
    q, v, (work,) = final_state_by_cvodes(problem, t_end, 1e-13, [power])
    d = equations_of_motion(system)
    energy = ca.Function("E", [d.q, d.v, d.t, d.k], [d.T + d.V])
    change = float(energy(q, v, t_end, k) - energy(problem.q0, problem.v0, 0.0, k))
    assert work > 1e-3 and abs(change - work) < 1e-10 * work
    run = lv.simulate(problem, scheme="semi-explicit-2:0.5", h=0.25e-6, t_end=t_end, every=100)
    assert run.v[-1][:18] == pytest.approx(v[:18], abs=1e-2)
    pressed = [
        lv.simulate(bearing(**FEW, **more), t_end=t_end)["ball1-inner.normal_force"]
        for more in ({}, dict(ovality=2e-6))
    ]
    assert np.ptp(pressed[1]) > 5 * np.ptp(pressed[0])


def test_radial_motion_against_another_solver():
    """All coordinates of the radial case by CVODES at 1e-11: errors of the scheme fall with its order."""
    problem = bearing("radial")
    _, v, _ = final_state_by_cvodes(problem, 1e-4, 1e-11)
    steps, errors = [0.5e-6, 0.25e-6, 0.125e-6, 0.0625e-6], {SCHEME: [], "semi-explicit-2:0.5": []}
    for scheme, found in errors.items():
        for h in steps:
            end = lv.simulate(problem, scheme=scheme, h=h, t_end=1e-4, every=10**6)
            found.append(np.abs(end.v[-1][:54] - v[:54]).max())
    assert abs(measured_order(steps, errors[SCHEME]) - 1) < 0.1
    assert abs(measured_order(steps, errors["semi-explicit-2:0.5"]) - 2) < 0.1
    assert errors["semi-explicit-2:0.5"][-1] < 1e-5


def test_the_longest_step():
    """Theorem 3 by hand for one spring and damper; a bearing that is run with too long a step is told so."""
    forces = [lv.Force(lambda q: -100.0 * q, expensive=True), lv.Force(lambda v: -3.0 * v, expensive=True)]
    mass = lv.Hamiltonian("x", kinetic=lambda p: p @ p / 2, forces=forces)
    found = lv.study.longest_step(mass, "semi-explicit:0.5,0.8", q0=[0.1], v0=[0.0])
    assert found.h == pytest.approx((np.sqrt(9 + 400) - 3) / 100, rel=1e-3)
    assert (found.stiffness, found.damping) == pytest.approx((100, 3))
    limit = lv.study.longest_step(bearing(**FEW))
    assert 3.4e-6 < limit.h < 6.6e-6 and "stable" in str(limit)
    assert lv.study.longest_step(bearing(**FEW), "semi-explicit-2:0.5").h == pytest.approx(limit.h / 2, rel=0.1)
    with pytest.raises(lv.IntegrationError, match=r"the expensive forces allow h <= 4\.\de-06"):
        lv.simulate(bearing(**FEW), h=8e-6, t_end=1e-3)
    with pytest.raises(InputError, match="does not split off expensive forces"):
        lv.study.longest_step(bearing(**FEW), "lie-em")


def test_an_elastic_ring_changes_its_diameter_as_theory_says():
    """Two opposite forces, by the modes alone: ``(pi/4 - 2/pi) F R^3/(E I)``."""
    b = Bearing(modes=4000)
    ring = b.ring_modes("outer")
    shorter = sum(4 / ring.stiffness(n) for n in ring.wave_numbers if n % 2 == 0)
    assert shorter == pytest.approx((np.pi / 4 - 2 / np.pi) * b.ring_radius**3 / b.bending, rel=1e-6)


def test_elastic_parts_need_a_beta_of_one_half():
    """Contact forces converge with 1/2 in elastic modes; with 0.8 they are off by more than a tenth at any step."""
    problem = bearing("elastic", modes=6)
    softened = [lv.Element.__new__(lv.Element) for _ in problem.model.elements]
    for copy, element in zip(softened, problem.model.elements, strict=True):
        copy.__dict__.update(element.__dict__)
        if element.name.startswith("outer bending"):
            copy.beta = 0.8
    given = dict(elements=softened, parameters=problem.model.model_parameters.values, frames=True)
    damped = lv.System(problem.model.coordinates, **given)
    damped.quantities.update(problem.model.quantities)

    def force(model, h):
        run = lv.simulate(model, q0=problem.q0, v0=problem.v0, scheme=SCHEME, h=h, t_end=6e-4, every=round(1e-6 / h))
        return np.asarray(run["ball1-outer.normal_force"])

    exact = force(problem.model, 0.0625e-6)
    size = exact.max()
    right = [np.abs(force(problem.model, h) - exact).max() / size for h in (1e-6, 0.5e-6, 0.25e-6)]
    wrong = [np.abs(force(damped, h) - exact).max() / size for h in (1e-6, 0.25e-6)]
    assert right[0] < 0.25 and right[2] < right[1] / 2 < right[0] / 4
    assert min(wrong) > 0.1 > 4 * right[2]


def test_forces_on_a_ball_hold_it_on_its_orbit():
    """At the start, forces on a ball add up to ``m v^2/rho`` towards the axis; along its way there is friction."""
    run = lv.simulate(lv.problems.load("ball-bearing"), t_end=1e-6)
    y, z = (run[f"ball1.{axis}"][0] for axis in "yz")
    mass, rho = run.system.parameters["ball1.mass"], np.hypot(y, z)
    speed = np.linalg.norm(run.v[0][[run.info.coordinates.index(f"ball1.{axis}") for axis in "yz"]])
    total = sum(np.asarray(run[f"ball1-{other}.force"][0]) for other in ("outer", "inner", "cage"))
    across = np.array([total[0], -(y * total[1] + z * total[2]) / rho])
    assert across == pytest.approx([0.0, mass * speed**2 / rho], abs=2 * mass * 9.81)
    assert mass * speed**2 / rho == pytest.approx(7.0, rel=0.01)
    for other in ("outer", "inner"):
        force, normal = run[f"ball1-{other}.force"][0], run[f"ball1-{other}.normal_force"][0]
        assert np.linalg.norm(force) == pytest.approx(normal, rel=1.3e-3)  # Coulomb: at most sqrt(1 + mu^2) times
        apart = contact_force(run, other)
        assert apart == pytest.approx(np.asarray(run[f"ball1-{other}.normal_force"][0]), rel=2e-3)


def contact_force(run, other):
    """The drawn force, as films have it: it acts at the surface of the ball."""
    (found,) = (one for one in contact_forces(run) if one.name == f"ball1-{other}")
    centre = np.array([run[f"ball1.{axis}"][0] for axis in "xyz"])
    assert found.body == "ball1" and np.linalg.norm(found.point[0] - centre) == pytest.approx(3.969e-3, rel=2e-3)
    return np.linalg.norm(found.force[0])


@pytest.mark.parametrize("case", ["axial", "rollers"])
def test_contacts_without_dissipation_can_be_requested(case):
    """Zero is zero; a negative value is the default of the case."""

    def damping(**options):
        return float(lv.problems.load("ball-bearing", case=case, balls=3, **options).model.parameters["damping"])

    assert [damping(), damping(contact_dissipation=-1.0), damping(contact_dissipation=0.0)] == [0.25, 0.25, 0.0]
    run = lv.simulate(
        lv.problems.load("ball-bearing", case=case, balls=3, contact_dissipation=0.0), t_end=2e-5, progress=False
    )
    assert np.isfinite(run.q).all()
