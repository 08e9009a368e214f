"""Penalty contacts of spheres: laws, geometry, damping, and collisions whose outcome is known."""

import functools

import casadi as ca
import numpy as np
import pytest
from conftest import measured_order
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq

import livens as lv
from livens import bodies
from livens import rotations as rot
from livens.expressions.parameters import ParameterNamespace
from livens.models.equations_of_motion import equations_of_motion
from livens.models.smoothed_steps import smoothed_ramp, smoothed_step_function

few = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
seeds = st.integers(0, 2**32 - 1)


def evaluated(system, expression, q, v=None):
    zero = np.zeros(system.n)
    values = equations_of_motion(system).function(expression)(
        q, zero if v is None else v, zero, 0, system.parameter_vector()
    )
    return np.array(values).ravel()


def energy(system, q):
    return evaluated(system, equations_of_motion(system).V, q)[0]


def force(system, q, v=None):
    d = equations_of_motion(system)
    return evaluated(system, -ca.gradient(d.V, d.q) - ca.gradient(d.R, d.v), q, v)


def balls(dimension=3, law="linear", damping=0.0, K=1e4, masses=(1.0, 1.0)):
    a, b = (bodies.particle(name, mass, dimension) for name, mass in zip("ab", masses, strict=True))
    centre = np.zeros(dimension)
    contact = bodies.sphere_sphere((a, centre), 0.1, (b, centre), 0.15, stiffness=K, law=law, dissipation=damping)
    symmetries = dict(
        linear_momentum=lv.symmetry.translations([range(dimension), range(dimension, 2 * dimension)]),
        angular_momentum=lv.symmetry.rotations([range(dimension), range(dimension, 2 * dimension)]),
    )
    return lv.System(bodies.coordinates([a, b]), elements=[a, b, contact], symmetries=symmetries)


# -- laws and geometry ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("law", "e"), [("linear", 1.0), ("hertz", 1.5)])
@given(seed=seeds, depth=st.floats(-0.2, 0.2))
@few
def test_spheres(law, e, seed, depth):
    random = np.random.default_rng(seed)
    system, x = balls(law=law), random.uniform(-1, 1, 3)
    n = random.standard_normal(3)
    n /= np.linalg.norm(n)
    q = np.concatenate([x, x + (0.25 - depth) * n])
    depth = 0.25 - np.linalg.norm(q[3:] - q[:3])  # as rounded
    pushed = max(0.0, depth)
    assert energy(system, q) == pytest.approx(1e4 / (e + 1) * pushed ** (e + 1), rel=1e-9, abs=1e-12)
    F = 1e4 * pushed**e * n
    assert force(system, q) == pytest.approx(np.concatenate([-F, F]), rel=1e-9, abs=1e-9)


@given(seeds)
@few
def test_plane_and_box(seed):
    random = np.random.default_rng(seed)
    ball = bodies.particle("a", 1.0)
    n, origin = random.standard_normal(3), random.uniform(-1, 1, 3)
    plane = bodies.sphere_plane((ball, [0, 0, 0]), 0.2, origin, n, stiffness=100.0)
    unit = n / np.linalg.norm(n)
    system = lv.System(bodies.coordinates([ball]), elements=[ball, plane])
    x = random.uniform(-1, 1, 3)
    depth = max(0.0, 0.2 - unit @ (x - origin))
    assert force(system, x) == pytest.approx(100 * depth * unit, rel=1e-9, abs=1e-9)
    box = bodies.sphere_in_box((ball, [0, 0, 0]), 0.2, [-1, -1, -1], [1, 1, 1], stiffness=100.0)
    system = lv.System(bodies.coordinates([ball]), elements=[ball, box])
    x = random.uniform(-1.5, 1.5, 3)
    assert force(system, x) == pytest.approx(-100 * np.sign(x) * np.maximum(0, np.abs(x) - 0.8), abs=1e-11)


def test_spheres_on_rigid_bodies():
    """A ball at the end of a rod: the force goes through its centre, wherever the rod turns it."""
    rod = bodies.quaternion_body("rod", bodies.Inertia(1.0, [1, 1, 1]))
    point = bodies.particle("p", 1.0)
    contact = bodies.sphere_sphere((rod, [0, 0, 1]), 0.3, (point, [0, 0, 0]), 0.0, stiffness=50.0)
    system = lv.System(bodies.coordinates([rod, point]), elements=[rod, point, contact])
    turn = rot.normalized([1.0, 0.3, -0.2, 0.5])
    tip = np.array([1.0, 2, 3]) + rot.rotate(turn, np.array([0.0, 0, 1]))
    q = np.concatenate([[1.0, 2, 3], turn, tip + [0.2, 0, 0]])
    F = force(system, q)
    assert F[:3] == pytest.approx([-5, 0, 0], abs=1e-12) and F[7:] == pytest.approx([5, 0, 0], abs=1e-12)
    assert energy(system, q) == pytest.approx(25 * 0.1**2, rel=1e-12)


def test_contacts_of_one_kind_share_their_functions():
    many = [bodies.particle(str(i), 1.0 + i, dimension=2) for i in range(6)]
    pairs = [
        bodies.sphere_sphere((a, [0, 0]), 0.1, (b, [0, 0]), 0.2, stiffness=1.0 + i)
        for i, a in enumerate(many)
        for b in many[:i]
    ]
    walls = [bodies.sphere_in_box((a, [0, 0]), 0.1, [0, 0], [1, 2], stiffness=5.0) for a in many]
    system = lv.System(bodies.coordinates(many), elements=[*many, *pairs, *walls])
    assert len(set(system.element_types)) == 3 and len(pairs) == 15


# -- collisions -------------------------------------------------------------------------------------------------------
STEPS = (1e-3, 5e-4, 2.5e-4, 1.25e-4)


@functools.cache
def collision(scheme, h, law="linear", damping=0.0):
    """Head on, in the plane, and off the axes: ball a hits ball b, which rests; both have unit mass."""
    n = np.array([0.6, 0.8])
    q0 = np.concatenate([-(0.25 + 0.05) * n, 0 * n])  # 0.05 apart
    return lv.simulate(balls(2, law, damping), q0=q0, v0=np.concatenate([n, 0 * n]), scheme=scheme, h=h, t_end=0.15)


def test_equal_balls_exchange_their_velocities():
    """Modin 2009 paper II, example 3.3: the first ball stops, the second goes on with its velocity.

    That follows from energy and momentum, so a scheme that conserves both does it exactly; when, is of its order.
    """
    errors = []
    for h in STEPS:
        result = collision("livens-em", h)
        assert np.abs(result.v[-1] - [0, 0, 0.6, 0.8]).max() < 1e-13
        way = 0.15 - 0.05 - np.pi / np.sqrt(2e4) / 2  # half of the time of contact is lost
        errors.append(np.abs(result.q[-1, 2:] - [0.6 * way, 0.8 * way]).max())
    assert measured_order(STEPS, errors) == pytest.approx(2, abs=0.1)
    v = collision("livens-variational", 5e-4).v[-1]
    assert 1e-7 < np.abs(v - [0, 0, 0.6, 0.8]).max() < 1e-1  # without energy there is no such exactness


def test_duration_of_a_hertz_impact():
    """For two equal spheres with ``F = K x^(3/2)``: depth (5 mu v^2/(4 K))^(2/5), duration 2.94 depth/v (Hertz)."""
    result = collision("livens-em", 1e-4, law="hertz")
    gaps = np.linalg.norm(result.q[:, 2:] - result.q[:, :2], axis=1) - 0.25
    deepest = (5 * 0.5 / (4 * 1e4)) ** 0.4
    assert -gaps.min() == pytest.approx(deepest, rel=1e-4)
    duration = 2 * deepest * quad(lambda s: 1 / np.sqrt(1 - s**2.5), 0, 1)[0]
    inside = np.flatnonzero(gaps < 0)
    assert (inside[-1] - inside[0] + 1) * 1e-4 == pytest.approx(duration, abs=2.1e-4)
    assert result.v[-1] == pytest.approx([0, 0, 0.6, 0.8], abs=1e-4)


@pytest.mark.parametrize("law", ["linear", "hertz"])
def test_energy_and_momenta_through_a_collision(law):
    system = balls(3, law)
    result = lv.simulate(
        system, q0=[0, 0, 0, 0.3, 0.1, 0.05], v0=[1, 0.2, 0, 0, 0, -0.1], scheme="livens-em", h=5e-4, t_end=0.5
    )
    E = result.observe("total_energy")
    assert np.abs(E - E[0]).max() < 1e-12 * E[0]
    assert result.observe("potential_energy").max() > 0.05 * E[0]  # they did meet
    for name in ("linear_momentum", "angular_momentum"):
        momentum = result.observe(name)
        assert np.abs(momentum - momentum[0]).max() < 1e-13
    other = lv.simulate(
        system, q0=[0, 0, 0, 0.3, 0.1, 0.05], v0=[1, 0.2, 0, 0, 0, -0.1], scheme="livens-midpoint", h=5e-4, t_end=0.5
    )
    E = other.observe("total_energy")
    assert np.abs(E - E[0]).max() > 1e-7 * E[0]  # of a scheme that promises nothing


def test_damping_takes_what_it_says():
    """Hunt and Crossley: passive, no force at the first touch, and every loss is accounted for."""
    result = collision("livens-em", 2e-4, damping=0.4)
    assert np.diff(result.observe("dissipated_energy")).min() >= 0
    assert np.abs(result.observe("energy_balance_defect")).max() < 1e-13
    momentum = result.observe("linear_momentum")
    assert np.abs(momentum - momentum[0]).max() < 1e-14
    system = balls(2, damping=0.4)
    q = np.array([0, 0, 0.25 - 1e-9, 0])
    assert np.abs(force(system, q, np.array([1.0, 0, 0, 0]))).max() == pytest.approx(1e-9 * 1e4 * (1 + 0.4), rel=1e-6)
    apart = np.array([0, 0, 0.26, 0])
    assert force(system, apart, np.array([1.0, 0, 0, 0])).tolist() == [0, 0, 0, 0]
    sliding = force(system, np.array([0, 0, 0.24, 0]), np.array([0, 1.0, 0, 0]))
    assert sliding == pytest.approx([-100, 0, 100, 0], rel=1e-12)  # only the rate of the depth counts


@pytest.mark.parametrize("law", ["linear", "hertz"])
def test_restitution(law):
    """``v dv/(1 + c v) = -K/mu x^e dx`` with the dissipation c integrates to the velocity of parting, for any law."""
    c = 0.4

    def loss(v):
        return v / c - np.log1p(c * v) / c**2

    parting = brentq(lambda u: loss(-u) - loss(1.0), 0.1, 1.0, xtol=1e-15)
    errors = []
    for h in STEPS:
        v = collision("livens-em", h, law=law, damping=c).v[-1]
        errors.append(abs(np.linalg.norm(v[2:] - v[:2]) - parting))
    assert measured_order(STEPS, errors) == pytest.approx(2, abs=0.1)


# -- for the choice of steps ------------------------------------------------------------------------------------------
@given(st.floats(-2, 2), st.floats(1e-3, 1))
@few
def test_smoothed_depth(depth, c):
    """Modin 2009 paper II, eq. 29, with the sign that makes it grow inside: the integral of its slope."""
    integral, error = quad(
        smoothed_step_function, 0, depth, args=(c,), epsabs=1e-12, epsrel=1e-12, points=[0], limit=200
    )
    assert smoothed_ramp(depth, c) == pytest.approx(integral, abs=1e-10 + error)
    assert 0 < smoothed_step_function(depth, c) < 1
    assert smoothed_step_function(-depth, c) == pytest.approx(1 - smoothed_step_function(depth, c), abs=1e-15)


def test_smoothing_is_not_in_the_forces():
    system = balls(2)
    contact = system.elements[-1]
    k = ParameterNamespace(contact.parameters.values)
    (gap,) = contact.gaps(np.array([0.0, 0, 0.26, 0]), k)
    assert gap == pytest.approx(0.01, rel=1e-12)
    assert contact.stiffness(gap, k, 1e-2) > 100 and force(system, [0, 0, 0.26, 0]).tolist() == [0, 0, 0, 0]
    assert contact.stiffness(-1.0, k, 1e-6) == pytest.approx(1e4, rel=1e-5)
    assert contact.stiffness(1.0, k, 1e-6) < 1e-8


def test_contacts_are_expensive_forces():
    model = lv.Hamiltonian.from_system(balls(2))
    q, p = [0, 0, 0.24, 0], [1.0, 0, 0, 0]
    A, B = (
        np.array(model.function(e)(q, p, 0, model.parameter_vector())).ravel()
        for e in (model.explicit_force, model.implicit_force)
    )
    assert pytest.approx([-100, 0, 100, 0], rel=1e-12) == A and B.tolist() == [0, 0, 0, 0]


# -- bad input --------------------------------------------------------------------------------------------------------
def test_bad_input():
    a, b = bodies.particle("a", 1.0), bodies.particle("b", 1.0, dimension=2)
    at, other = (a, [0, 0, 0]), (b, [0, 0])
    for make, words in (
        (lambda: bodies.sphere_sphere(at, 0.1, other, 0.1, stiffness=1.0), "one point is in space, the other is in"),
        (lambda: bodies.sphere_sphere([0, 0], 0.1, [1, 1], 0.1, stiffness=1.0), "must belong to a body"),
        (lambda: bodies.sphere_sphere(at, -0.1, [0, 0, 0], 0.1, stiffness=1.0), "radius must not be negative"),
        (lambda: bodies.sphere_sphere(at, 0.1, [0, 0, 0], 0.1, stiffness=0.0), "stiffness must be greater than 0"),
        (lambda: bodies.sphere_sphere(at, 0.1, [0, 0, 0], 0.1, stiffness=np.nan), "stiffness must be a finite number"),
        (
            lambda: bodies.sphere_plane(at, 0.1, [0, 0, 0], [0, 0, 1], stiffness=1, dissipation=-1),
            "dissipation must not be",
        ),
        (lambda: bodies.sphere_plane(at, 0.1, [0, 0, 0], [0, 0, 1], stiffness=1, law="herz"), "did you mean 'hertz'"),
        (lambda: bodies.sphere_plane(at, 0.1, [0, 0, 0], [0, 0, 0], stiffness=1), "normal must not be zero"),
        (lambda: bodies.sphere_plane(at, 0.1, [0, 0], [0, 0, 1], stiffness=1), "origin must be 3 numbers"),
        (lambda: bodies.sphere_plane([0, 0, 0], 0.1, [0, 0, 0], [0, 0, 1], stiffness=1), "must belong to a body"),
        (lambda: bodies.sphere_in_box(other, 0.1, [0, 0], [1, 0.2], stiffness=1), "radius 0.1 does not fit between"),
        (lambda: bodies.sphere_in_box(other, 0.1, [0, 0], [1, np.inf], stiffness=1), "upper must be 2 numbers"),
    ):
        with pytest.raises(lv.InputError, match=words):
            make()
