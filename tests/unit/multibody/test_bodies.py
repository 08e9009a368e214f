"""Rigid-body elements: inertia, kinematics, loads and links, and what chains of bodies conserve."""

import functools
import itertools

import casadi as ca
import numpy as np
import pytest
from conftest import measured_order
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import livens as lv
from livens import bodies
from livens import math as m
from livens import rotations as rot
from livens.models.equations_of_motion import equations_of_motion
from livens.multibody.parametrisation import DirectorParametrisation, QuaternionParametrisation

few = settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.too_slow])
seeds = st.integers(0, 2**32 - 1)


def random_unit(random):
    return rot.normalized(random.standard_normal(4))


def cloud(random):
    """Masses and places of a few points: the inertia of any such cloud is one a body can have."""
    return random.uniform(0.2, 1.0, 6), random.uniform(-1.0, 1.0, (6, 3))


def inertia_of(masses, points, about=None):
    """The inertia of a cloud, by its definition (Kinon and Betsch 2024 eq. 39)."""
    centre = masses @ points / masses.sum()
    origin = centre if about is None else about
    tensor = sum(w * ((x @ x) * np.eye(3) - np.outer(x, x)) for w, x in zip(masses, points - origin, strict=True))
    return bodies.Inertia(masses.sum(), tensor, centre, about)


# -- inertia ----------------------------------------------------------------------------------------------------------
@given(seeds)
def test_parallel_axes(seed):
    random = np.random.default_rng(seed)
    masses, points = cloud(random)
    about = random.uniform(-2, 2, 3)
    central, elsewhere = inertia_of(masses, points), inertia_of(masses, points, about)
    assert np.allclose(central.tensor, elsewhere.tensor, atol=1e-12)
    direct = sum(w * ((x @ x) * np.eye(3) - np.outer(x, x)) for w, x in zip(masses, points - about, strict=True))
    assert np.allclose(central.about(about), direct, atol=1e-12)
    shifted = points - central.centre
    assert np.allclose(central.euler_tensor, np.einsum("p,pi,pj->ij", masses, shifted, shifted), atol=1e-12)


def test_inertia_must_be_possible():
    for bad, words in (
        (lambda: bodies.Inertia(1.0, [1, 1, 3]), "sum of the two others"),
        (lambda: bodies.Inertia(1.0, [-1, 1, 1]), "negative"),
        (lambda: bodies.Inertia(1.0, [[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]), "symmetric"),
        (lambda: bodies.Inertia(0.0, [1, 1, 1]), "mass"),
        (lambda: bodies.Inertia(1.0, [1, 1]), "shape"),
        (lambda: bodies.Inertia(1.0, [1, 1, np.nan]), "finite"),
        # fine as it stands, but not about a point so far from the centre of mass
        (lambda: bodies.Inertia(1.0, [1, 1, 1], centre=[0, 0, 2], about=[0, 0, 0]), "negative"),
    ):
        with pytest.raises(lv.ModelError, match=words):
            bad()
    bodies.Inertia(1.0, [1, 1, 2])  # a plate
    bodies.Inertia(1.0, [1, 0, 1])  # a rod


def test_the_misprinted_moments_of_the_top_are_refused():
    """Kinon and Betsch 2024 (114) as printed adds m l^2 to the wrong axis: no body has such moments."""
    with pytest.raises(lv.ModelError, match="sum of the two others"):
        bodies.Inertia(0.7068583, [5.301e-4, 5.301e-4, 4.506e-3])


# -- kinematics -------------------------------------------------------------------------------------------------------
PLACEMENTS = [
    DirectorParametrisation(3, 3),
    DirectorParametrisation(2, 2),
    DirectorParametrisation(3, 0),
    QuaternionParametrisation(),
    QuaternionParametrisation(fixed=True),
]


@pytest.mark.parametrize("placement", PLACEMENTS, ids=str)
def test_velocities_and_forces_belong_to_points(placement):
    """velocity is the rate of point, and force its transpose, at any q, v: also off the constraints."""
    n, d = len(placement.names), placement.dimension
    random = np.random.default_rng(1)
    q, X = ca.SX.sym("q", n), random.standard_normal(d)
    x = ca.densify(m.to_casadi(placement.point(m.from_casadi(q), X)))
    slope = ca.Function("J", [q], [ca.jacobian(x, q)])
    at, v, f = random.standard_normal(n), random.standard_normal(n), random.standard_normal(d)
    J = np.array(slope(at))
    assert np.allclose(placement.velocity(at, v, X), J @ v, atol=1e-13)
    assert np.allclose(placement.generalised_force(at, X, f), J.T @ f, atol=1e-13)


@pytest.mark.parametrize("placement", PLACEMENTS, ids=str)
def test_state_of_motion(placement):
    """Coordinates and rates of a body in a given motion: frame, velocity of points, power of torques, rotations."""
    random = np.random.default_rng(2)
    d = placement.dimension
    quaternion = random_unit(random) if d == 3 else rot.from_axis_angle([0, 0, 1], 0.7)
    R = rot.to_matrix(quaternion)
    position = np.zeros(d) if not placement.has_translation else random.standard_normal(d)
    velocity = np.zeros(d) if not placement.has_translation else random.standard_normal(d)
    omega, tau = (random.standard_normal(3 if d == 3 else 1) for _ in range(2))
    q = placement.from_pose(position, R)
    v = placement.from_twist(q, velocity, omega)
    spin = omega if d == 3 else np.array([0, 0, omega[0]])
    if placement.has_orientation:
        assert np.allclose(placement.rotation_matrix(q), R[:d, :d])
        X = random.standard_normal(d)
        assert np.allclose(placement.point(q, X), position + R[:d, :d] @ X)
        turned = np.cross(spin, R @ (X if d == 3 else [*X, 0]))[:d]
        assert np.allclose(placement.velocity(q, v, X), velocity + turned)
        assert placement.generalised_torque(q, tau) @ v == pytest.approx(tau @ omega)
    # the generator of rotations: the rates of a body that turns about the origin of space
    about_origin = np.cross(spin, position if d == 3 else [*position, 0])[:d]
    assert np.allclose(omega @ placement.rotation_generator(q), placement.from_twist(q, about_origin, omega))


@few
@given(seeds)
def test_energies_of_a_cloud(seed):
    """Kinetic and potential energy and momenta of all descriptions are those of the points the body is made of."""
    random = np.random.default_rng(seed)
    masses, points = cloud(random)
    inertia = inertia_of(masses, points)
    quaternion, omega, position, velocity = (
        random_unit(random), random.standard_normal(3), random.standard_normal(3), random.standard_normal(3),
    )  # fmt: skip
    g = random.standard_normal(3)
    arms = (points - inertia.centre) @ rot.to_matrix(quaternion).T
    x, rates = position + arms, velocity + np.cross(omega, arms)
    for body in (bodies.quaternion_body("b", inertia), bodies.director_body("b", inertia)):
        check_energies(body, body.state(position, quaternion, velocity, omega), masses, x, rates, g)
    # with the origin of the frame fixed in the origin of space
    x = points @ rot.to_matrix(quaternion).T
    top = bodies.fixed_point_body("b", inertia)
    check_energies(top, top.state(None, quaternion, None, omega), masses, x, np.cross(omega, x), g)


def check_energies(body, state, masses, x, rates, g):
    symmetries = dict(angular_momentum=bodies.angular_momentum([body]))
    system = lv.System(body.coordinates, elements=[body, bodies.gravity(body, g)], symmetries=symmetries)
    d, k, (q, v) = equations_of_motion(system), system.parameter_vector(), state
    assert float(d.function(d.T)(q, v, v, 0, k)) == pytest.approx(0.5 * masses @ (rates**2).sum(axis=1))
    assert float(d.function(d.V)(q, v, v, 0, k)) == pytest.approx(-masses @ x @ g)
    p = np.array(d.function(d.fibre_derivative)(q, v, v, 0, k)).ravel()
    L = np.array(system.symmetry_generator("angular_momentum")(q)).T @ p
    assert np.allclose(L, masses @ np.cross(x, rates))
    assert np.allclose(np.array(d.function(d.g)(q, v, v, 0, k)), 0, atol=1e-14)
    assert np.allclose(np.array(d.function(d.velocity_constraint)(q, v, v, 0, k)), 0, atol=1e-13)


def test_planar_body():
    """A bar in the plane that turns about its end: moment m l^2/3."""
    bar = bodies.planar_body("bar", 3.0, 3.0 * 2.0**2 / 12, centre=[1.0, 0.0])
    joint = bodies.spherical_joint((bar, [0.0, 0.0]), [0.0, 0.0])
    symmetries = dict(angular_momentum=bodies.angular_momentum([bar]))
    system = lv.System(
        bar.coordinates, elements=[bar, joint, bodies.torque(bar, lambda t: 2 * t)], symmetries=symmetries
    )
    assert (system.n, system.m) == (6, 5)
    q0, v0 = bar.state(position=[1.0, 0.0], orientation=0.0)
    run = lv.simulate(system, q0, v0, h=0.001, t_end=1.0)
    moment = 3.0 * 2.0**2 / 3
    assert run.observe("angular_momentum")[-1] == pytest.approx(1.0, rel=1e-6)
    angle = 1 / (3 * moment)
    assert np.allclose(run.q[-1, 2:4], [np.cos(angle), np.sin(angle)], atol=1e-7)


# -- the quaternions of a system --------------------------------------------------------------------------------------
def test_quaternions_of_a_system():
    inertia = bodies.Inertia(1.0, [1, 1, 1])
    a, b = bodies.quaternion_body("a", inertia), bodies.quaternion_body("b", inertia)
    joint = bodies.spherical_joint((a, [1, 0, 0]), (b, [-1, 0, 0]))
    system = lv.System(bodies.coordinates([a, b]), elements=[joint, a, b])
    assert system.quaternions == ((3, 4, 5, 6), (10, 11, 12, 13))
    assert system.quaternion_constraints == (3, 4)
    assert [system.constraint_names[i] for i in system.quaternion_constraints] == ["a: |q| = 1", "b: |q| = 1"]
    model = dict(kinetic=lambda v: v @ v / 2, constraints=lambda q: [q[4], 0.5 * (q[:4] @ q[:4] - 1)])
    own = lv.System("a b c d e", **model, quaternions=["abcd"])
    assert own.quaternions == ((0, 1, 2, 3),) and own.quaternion_constraints == (1,)
    assert lv.System("a b c d e", **model).quaternions == ()
    with pytest.raises(lv.ModelError, match=r"needs the unit-norm constraint \(q.q - 1\)/2"):
        lv.System("a b c d e", **model, quaternions=[(1, 2, 3, 4)])
    with pytest.raises(lv.ModelError, match="four coordinates"):
        lv.System("a b c d e", **model, quaternions=[(1, 2, 3)])
    with pytest.raises(lv.ModelError, match=r"needs the unit-norm constraint \(q.q - 1\)/2"):
        lv.System("a b c d", kinetic=lambda v: v @ v / 2, quaternions=[range(4)])


def test_elements_of_a_kind_share_their_functions():
    """However many bodies, joints, springs and loads there are: each kind is derived once."""
    chain = [bodies.quaternion_body(f"b{i}", bodies.Inertia(1.0 + i, [1, 1, 1 + i / 10])) for i in range(4)]
    elements = [*chain]
    for a, b in itertools.pairwise(chain):
        elements += [
            bodies.spherical_joint((a, [1, 0, 0]), (b, [-1, 0, 0])), bodies.spring((a, [0, 1, 0]), (b, [0, 2, 0]), 3.0),
            bodies.damper((a, [0, 1, 0]), (b, [0, 2, 0]), 1.0), bodies.torsion_spring(a, b, 1.0),
        ]  # fmt: skip
    elements += [bodies.gravity(b) for b in chain]
    system = lv.System(bodies.coordinates(chain), elements=elements)
    assert len(system.elements) == 4 + 12 + 4 and len(set(system.element_types)) == 6


def test_bad_input():
    inertia = bodies.Inertia(1.0, [1, 1, 1])
    a, flat = bodies.quaternion_body("a", inertia), bodies.planar_body("flat", 1.0, 1.0)
    point, top = bodies.particle("point", 1.0), bodies.fixed_point_body("top", inertia)
    for call, words in (
        (lambda: bodies.spherical_joint((a, [0, 1]), [0, 0, 0]), "a point of 'a' must be 3 numbers"),
        (lambda: bodies.spherical_joint([0, 0, 0], [0, 0, 0]), "must belong to a body"),
        (lambda: bodies.spherical_joint((a, [0, 0, 0]), (flat, [0, 0])), "in the plane"),
        (lambda: bodies.spherical_joint((a, [0, 0, 0]), 3), "a point is"),
        (lambda: bodies.rigid_link((a, [1, 0, 0]), [0, 0, 0], 1.0), "linearly"),
        (lambda: bodies.rigid_link((point, [0, 0, 0]), [0, 0, 0], 0.0), "length"),
        (lambda: bodies.spring((point, [0, 0, 0]), [0, 0, 0], 1.0, -1.0), "negative"),
        (lambda: bodies.damper((point, [0, 0, 0]), [0, 0, 0], -1.0), "negative"),
        (lambda: bodies.torsion_spring(a, point, 1.0), "quaternions"),
        (lambda: bodies.force(a, lambda t: [0, 0, 0], frame="moon"), "frame"),
        (lambda: bodies.force(point, lambda t: [0, 0, 0], frame="body"), "no body frame"),
        (lambda: bodies.torque(point, lambda t: [0, 0, 0]), "no torque"),
        (lambda: bodies.gravity(flat, [0, 0, -1]), "2 numbers"),
        (lambda: bodies.linear_momentum([top]), "fixed point"),
        (lambda: bodies.particle("p", 0.0), "mass"),
    ):
        with pytest.raises(lv.InputError, match=words):
            call()


# -- loads ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [bodies.quaternion_body, bodies.director_body])
def test_momenta_follow_the_loads(kind):
    """Impulse and torque impulse are those of the loads; the work of all of them is accounted for."""
    inertia = inertia_of(*cloud(np.random.default_rng(5)))
    body = kind("b", inertia)
    elements = [
        body,
        bodies.torque(body, lambda t: [m.sin(t), 0.3, t]),
        bodies.force(body, lambda t: [0.0, m.cos(t), 1.0]),
        bodies.force(body, lambda t: [0.2, 0.0, 0.0], at=[0.5, 0.1, 0.0], frame="body"),
        bodies.force(body, lambda t: [-0.1, 0.0, t], at=[0.0, -1.0, 0.3]),
    ]
    momenta = dict(linear_momentum=bodies.linear_momentum([body]), angular_momentum=bodies.angular_momentum([body]))
    system = lv.System(body.coordinates, elements=elements, symmetries=momenta)
    q0, v0 = body.state(omega=[0.5, -0.2, 1.0])
    errors, steps = [], [0.04 / 2**i for i in range(4)]
    for h in steps:
        run = lv.simulate(system, q0, v0, h=h, t_end=1.0)
        assert np.abs(run.observe("energy_balance_defect")).max() < 1e-12
        assert run.supplied_energy[-1] > 0.1
        # the rates of both momenta at the stored states, added up by the trapezoidal rule
        forces, torques = [], []
        for t, q in zip(run.t, run.q, strict=True):
            R = body.parametrisation.rotation_matrix(q)
            applied = [
                (q[:3], np.array([0.0, np.cos(t), 1.0])),
                (q[:3] + R @ ([0.5, 0.1, 0.0] - inertia.centre), R @ [0.2, 0.0, 0.0]),
                (q[:3] + R @ ([0.0, -1.0, 0.3] - inertia.centre), np.array([-0.1, 0.0, t])),
            ]
            forces.append(sum(f for _, f in applied))
            torques.append(np.array([np.sin(t), 0.3, t]) + sum(np.cross(x, f) for x, f in applied))
        gained = [run.observe(name)[-1] - run.observe(name)[0] for name in momenta]
        wanted = [np.trapezoid(rates, run.t, axis=0) for rates in (forces, torques)]
        errors.append(np.abs(np.array(gained) - wanted).max())
    assert errors[-1] < 1e-4
    assert abs(measured_order(steps, errors) - 2) < 0.1


def test_torque_on_a_quaternion_is_exact():
    """A constant torque in space changes the angular momentum exactly, at any step size."""
    body = bodies.fixed_point_body("b", bodies.Inertia(1.0, [1.0, 2.0, 1.5]))
    symmetries = dict(angular_momentum=bodies.angular_momentum([body]))
    torque = bodies.torque(body, lambda t: [1.0, 2.0, -1.0])
    system = lv.System(body.coordinates, elements=[body, torque], symmetries=symmetries)
    run = lv.simulate(system, *body.state(), h=0.1, t_end=1.0)
    assert np.allclose(run.observe("angular_momentum")[-1], [1.0, 2.0, -1.0], rtol=0, atol=1e-13)


# -- chains -----------------------------------------------------------------------------------------------------------
def free_chain(kind, random, count=3, joints=True):
    """Bodies of random inertia in random motion, joined end to end; springs between neighbours and from end to end."""
    chain, states, joint_of = [], [], []
    at, speed = np.zeros(3), random.standard_normal(3)
    for i in range(count):
        inertia = inertia_of(*cloud(random))
        quaternion, omega = random_unit(random), random.standard_normal(3)
        near, far = random.uniform(-1, 1, (2, 3))
        R = rot.to_matrix(quaternion)
        arm = R @ (inertia.centre - near)
        body = kind(f"b{i}", inertia)
        states.append(body.state(at + arm, quaternion, speed + np.cross(omega, arm), omega))
        reach = R @ (far - near)
        at, speed = at + reach, speed + np.cross(omega, reach)
        chain.append(body)
        joint_of.append((near, far))
    links = []
    for i in range(count - 1):
        a, b = chain[i], chain[i + 1]
        if joints:
            links.append(bodies.spherical_joint((a, joint_of[i][1]), (b, joint_of[i + 1][0])))
        links.append(bodies.spring((a, a.centre), (b, b.centre), random.uniform(1, 5), random.uniform(0.5, 1.5)))
    if joints:
        first, last = (chain[0], joint_of[0][0]), (chain[-1], joint_of[-1][1])
        links.append(bodies.spring(first, last, random.uniform(1, 5), random.uniform(0.5, 1.5)))
    else:
        links += [bodies.torsion_spring(a, b, random.uniform(1, 5)) for a, b in itertools.pairwise(chain)]
    system = lv.System(
        bodies.coordinates(chain),
        elements=[*chain, *links],
        symmetries=dict(
            linear_momentum=bodies.linear_momentum(chain), angular_momentum=bodies.angular_momentum(chain)
        ),
    )  # fmt: skip
    return system, *(np.concatenate(parts) for parts in zip(*states, strict=True))


def drifts(run):
    """Largest deviations of energy, linear and angular momentum, relative to their size."""
    found = []
    for name in ("generalized_energy", "linear_momentum", "angular_momentum"):
        values = run.observe(name)
        scale = max(np.abs(values).max(), run.observe("kinetic_energy").max() if values.ndim == 1 else 0.0)
        found.append(np.abs(values - values[0]).max() / scale)
    return found


@few
@given(seeds)
def test_chains_of_director_bodies_conserve_everything(seed):
    """Joints and springs anywhere: energy, linear and angular momentum at round-off."""
    run = lv.simulate(*free_chain(bodies.director_body, np.random.default_rng(seed)), h=0.02, t_end=1.0)
    assert max(drifts(run)) < 1e-12


@few
@given(seeds)
def test_quaternion_bodies_conserve_everything_if_coupled_by_invariants(seed):
    """Springs between centres of mass and torsion springs: energy, linear and angular momentum at round-off."""
    equivariant = functools.partial(bodies.quaternion_body, equivariant=True)
    run = lv.simulate(*free_chain(equivariant, np.random.default_rng(seed), joints=False), h=0.02, t_end=1.0)
    assert max(drifts(run)) < 1e-12


@few
@given(seeds)
def test_chains_of_quaternion_bodies(seed):
    """With joints and springs at other points: energy and linear momentum at round-off, and angular momentum is not.

    In the middle of a step the mean quaternion is shorter than one, R(q_m) X is not the mean of R(q) X, and the two
    forces of a joint are not on one line.
    """
    run = lv.simulate(*free_chain(bodies.quaternion_body, np.random.default_rng(seed)), h=0.02, t_end=1.0)
    energy, linear, angular = drifts(run)
    assert energy < 1e-12 and linear < 1e-12
    assert 1e-9 < angular < 0.1


def test_angular_momentum_of_jointed_quaternion_bodies_is_of_second_order():
    model = free_chain(bodies.quaternion_body, np.random.default_rng(7))
    steps = [0.01 / 2**i for i in range(4)]
    errors = [drifts(lv.simulate(*model, h=h, t_end=1.0))[2] for h in steps]
    assert abs(measured_order(steps, errors) - 2) < 0.1


@few
@given(seeds)
def test_one_body_needs_the_invariants(seed):
    """Kinetic energy without its invariant: energy remains exact, angular momentum does not."""
    random = np.random.default_rng(seed)
    inertia = inertia_of(*cloud(random))
    body = bodies.fixed_point_body("b", inertia)
    symmetries = dict(angular_momentum=bodies.angular_momentum([body]))
    q0, v0 = body.state(orientation=random_unit(random), omega=random.standard_normal(3) + 1)
    plain = lv.Element(
        body.coordinates,
        kinetic=_written_out,
        constraints=_unit_length,
        parameters=dict(inertia=inertia.about([0, 0, 0])),
    )
    exact, lost = (
        lv.simulate(lv.System(body.coordinates, elements=[e], symmetries=symmetries), q0, v0, h=0.05, t_end=1.0)
        for e in (body, plain)
    )
    assert exact.summary.max_energy_drift < 1e-12 and lost.summary.max_energy_drift < 1e-12
    assert exact.summary.momentum_drift["angular_momentum"] < 1e-12
    assert lost.summary.momentum_drift["angular_momentum"] > 1e-8


def _written_out(q, v, k):
    Omega = rot.convective_velocity(q, v)
    return 0.5 * (Omega @ k.inertia @ Omega)


def _unit_length(q):
    return [0.5 * (q @ q - 1)]


def test_springs_and_dampers_on_one_line():
    """A damped oscillator between two particles: x'' + 2 d x' + w^2 x = 0 for their distance."""
    a, b = bodies.particle("a", 2.0), bodies.particle("b", 2.0)
    ends = (a, [0, 0, 0]), (b, [0, 0, 0])
    elements = [a, b, bodies.spring(*ends, 9.0, 1.0), bodies.damper(*ends, 0.4)]
    system = lv.System(bodies.coordinates([a, b]), elements=elements)
    # reduced mass 1: w = 3, d = 0.2
    errors, steps = [], [0.02 / 2**i for i in range(4)]
    damped = np.sqrt(9 - 0.2**2)
    exact = 1 + 0.5 * np.exp(-0.2) * (np.cos(damped) + 0.2 / damped * np.sin(damped))
    for h in steps:
        run = lv.simulate(system, [0, 0, 0, 0.9, 1.2, 0], np.zeros(6), h=h, t_end=1.0)
        errors.append(abs(np.linalg.norm(run.q[-1, 3:] - run.q[-1, :3]) - exact))
        assert np.abs(run.observe("energy_balance_defect")).max() < 1e-13
    assert abs(measured_order(steps, errors) - 2) < 0.1


@pytest.mark.parametrize("axial", [True, False])
def test_dampers_on_bodies(axial):
    """The dissipated energy of a damper is its viscosity times the squared rate of the distance.

    If it is not axial, times that of the relative velocity.
    """
    inertia = bodies.Inertia(1.0, [1.0, 1.2, 0.9])
    a, b = bodies.quaternion_body("a", inertia), bodies.director_body("b", inertia)
    damper = bodies.damper((a, [0.5, 0, 0]), (b, [0, 0.5, 0]), 0.7, axial=axial)
    system = lv.System(bodies.coordinates([a, b]), elements=[a, b, damper])
    states = a.state([0, 0, 0], omega=[0, 1, 2]), b.state([2, 0, 0], velocity=[-0.5, 0, 0.3], omega=[1, 0, 0])
    q0, v0 = (np.concatenate(parts) for parts in zip(*states, strict=True))
    run = lv.simulate(system, q0, v0, h=0.01, t_end=1.0)
    assert np.all(np.diff(run.dissipated_energy) >= 0) and run.dissipated_energy[-1] > 1e-2
    assert np.abs(run.observe("energy_balance_defect")).max() < 1e-13
    point, other = (
        (lambda q: a.parametrisation.point(q[:7], [0.5, 0, 0])),
        (lambda q: b.parametrisation.point(q[7:], [0, 0.5, 0])),
    )
    away = run.observe(lambda q: point(q) - other(q))
    seen = np.linalg.norm(away, axis=1)[:, None] if axial else away
    power = 0.7 * ((np.diff(seen, axis=0) / 0.01) ** 2).sum(axis=1)
    assert run.dissipated_energy[-1] == pytest.approx(0.01 * power.sum(), rel=1e-3)


def test_a_spring_without_natural_length_is_safe_at_zero():
    a = bodies.particle("a", 1.0)
    system = lv.System(a.coordinates, elements=[a, bodies.spring((a, [0, 0, 0]), [0, 0, 0], 4.0)])
    run = lv.simulate(system, [0, 0, 0], [1, 0, 0], h=0.01, t_end=1.0)
    assert run.q[-1, 0] == pytest.approx(np.sin(2) / 2, abs=1e-4)
