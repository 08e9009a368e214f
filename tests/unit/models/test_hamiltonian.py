"""Hamilton's form: what follows from H, forces by cost, and the way from and to Livens' form."""

import casadi as ca
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import livens as lv
from livens import bodies
from livens import math as m
from livens.models.equations_of_motion import equations_of_motion

few = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
seeds = st.integers(0, 2**32 - 1)


def pair(random, n):
    return random.uniform(0.5, 1.5, n), random.uniform(-1, 1, n)


def numbers(model, expression, q, p, t=0.0, **changes):
    return np.array(model.function(expression)(q, p, t, model.parameter_vector(changes))).ravel()


def oscillator(e=0.01):
    """Modin 2009 paper III, example 2: neither T(p) = T(-p), nor T quadratic."""
    return lv.Hamiltonian(
        "q",
        kinetic=lambda p, k: p[0] ** 2 / 2 - k.e * p[0] ** 3 / 3,
        potential=lambda q, k: 1 / q[0] ** 2 + 1 / (q[0] - 10) ** 2 + k.e * q[0],
        parameters=dict(e=e),
    )


def gyroscope():
    """Terms linear and quadratic in v, a mass matrix that depends on q and is not diagonal, friction, a drive."""
    return lv.System(
        "x y z",
        kinetic=lambda q, v, k: (
            0.5 * k.m * (v @ v) + 0.3 * v[0] * v[1] * m.sin(q[2]) + k.m * q[0] * v[2] + 0.1 * q[1] ** 2
        ),
        potential=lambda q, t: q[0] ** 4 + q[1] * q[2] + t * q[0],
        dissipation=lambda v, k: 0.5 * k.d * (v @ v),
        forces=lambda q, v, t: [m.cos(t), q[0] * v[2], 0],
        parameters=dict(m=1.3, d=0.2),
    )


# -- what follows from H ----------------------------------------------------------------------------------------------
@given(seeds)
@few
def test_equations_of_motion(seed):
    random = np.random.default_rng(seed)
    q, p = pair(random, 1)
    model = oscillator()
    assert numbers(model, model.velocity, q, p) == pytest.approx(p - 0.01 * p**2, abs=1e-14)
    assert numbers(model, model.momentum_rate, q, p) == pytest.approx(2 / q**3 + 2 / (q - 10) ** 3 - 0.01, rel=1e-13)
    f = model.q[0] ** 2 * model.p[0] ** 3
    rate = ca.jtimes(f, model.q, model.velocity) + ca.jtimes(f, model.p, model.momentum_rate)
    assert numbers(model, model.bracket(f, model.H), q, p) == pytest.approx(numbers(model, rate, q, p), rel=1e-12)
    assert numbers(model, model.bracket(model.H, model.H), q, p) == 0


def test_properties():
    kepler = lv.Hamiltonian("x y", kinetic=lambda p: p @ p / 2, potential=lambda q: -1 / m.norm(q))
    assert kepler.separable and kepler.reversible and kepler.is_quadratic_in_p and kepler.conservative
    odd = oscillator()
    assert odd.separable and not odd.reversible and not odd.is_quadratic_in_p and odd.inverse_mass is None
    assert oscillator(e=0.0).reversible  # a question of numbers, not of form
    with pytest.raises(lv.ModelError, match="quadratic in the momenta"):
        odd.momenta([1.0], [0.0])
    general = lv.Hamiltonian("q", hamiltonian=lambda q, p: p[0] ** 2 / (1 + q[0] ** 2))
    assert not general.separable and general.is_quadratic_in_p and general.inverse_mass is None and general.T is None
    driven = lv.Hamiltonian("q", kinetic=lambda p: p[0] ** 2, potential=lambda q, t: q[0] * m.sin(t))
    assert not (driven.autonomous or driven.conservative or driven.reversible)
    damped = lv.Hamiltonian("q", kinetic=lambda p: p[0] ** 2, forces=lambda v: [-v[0]])
    assert damped.autonomous and not damped.conservative and not damped.reversible
    assert lv.Hamiltonian("q", kinetic=lambda p: p[0] ** 2, forces=lambda v: [-(v[0] ** 2)]).reversible


def test_parameters():
    model = oscillator()
    assert model.parameters == {"e": 0.01} and model.parameter_count == 1
    assert model.energy([1.0], [0.0]) == pytest.approx(1 + 1 / 81 + 0.01, rel=1e-15)
    assert model.energy([1.0], [0.0], e=0.0) == pytest.approx(1 + 1 / 81, rel=1e-15)
    with pytest.raises(lv.InputError, match="unknown parameter 'f'"):
        model.energy([1.0], [0.0], f=1)
    with pytest.raises(lv.InputError, match="q must be 1 numbers"):
        model.energy([1.0, 2.0], [0.0])
    assert "e = 0.01" in str(model) and repr(model) == "<livens.Hamiltonian: coordinates q>"


def test_symmetries_are_read():
    spin = dict(angular_momentum=lv.symmetry.rotations([[0, 1]]))
    model = lv.Hamiltonian("x y", kinetic=lambda p: p @ p / 2, symmetries=spin)
    assert np.array(model.symmetries["angular_momentum"]([1.0, 2.0])).ravel().tolist() == [-2.0, 1.0]


# -- forces by cost ---------------------------------------------------------------------------------------------------
@given(seeds)
@few
def test_forces_by_cost(seed):
    random = np.random.default_rng(seed)
    model = lv.Hamiltonian(
        "x y",
        kinetic=lambda p, k: p @ p / (2 * k.m),
        potential=lambda q: q[0] ** 2 * q[1],
        forces=[
            lv.Force(lambda q, k: k.c * (q[0] - q[1]) ** 4, expensive=True, conservative=True),
            lv.Force(lambda v, t: [-v[0], t], expensive=True),
            lambda v: [0, -3 * v[1] ** 3],
            lv.Force(lambda q: q[1] ** 2, conservative=True),
        ],
        parameters=dict(m=2.0, c=0.7),
    )
    (x, y), p = pair(random, 2)
    t, v = random.uniform(), p / 2
    A = [-2.8 * (x - y) ** 3 - v[0], 2.8 * (x - y) ** 3 + t]
    B = [-2 * x * y, -(x**2) - 3 * v[1] ** 3 - 2 * y]
    assert numbers(model, model.explicit_force, [x, y], p, t) == pytest.approx(A, abs=1e-13)
    assert numbers(model, model.implicit_force, [x, y], p, t) == pytest.approx(B, abs=1e-13)
    rate = numbers(model, model.momentum_rate, [x, y], p, t)
    assert rate == pytest.approx(np.add(A, B), abs=1e-13)
    energy = p @ p / 4 + x**2 * y + 0.7 * (x - y) ** 4 + y**2  # conservative forces belong to the energy
    assert model.energy([x, y], p) == pytest.approx(energy, rel=1e-13)


def test_forces_that_are_not_what_they_say():
    def model(force, **more):
        return lv.Hamiltonian("x y", **(dict(kinetic=lambda p: p @ p) | more), forces=force)

    with pytest.raises(lv.ModelError, match="potential of the conservative force must be one number"):
        model(lv.Force(lambda q: [q[0], 0], conservative=True))
    with pytest.raises(lv.ModelError, match=r"force must be an array of shape \(2,\)"):
        model(lambda q: q[0])
    with pytest.raises(lv.ModelError, match="has an argument 'v'"):
        model(lv.Force(lambda q, v: q[0], conservative=True))
    with pytest.raises(lv.ModelError, match="force must be a function, got 3"):
        model(3)
    mixed = dict(kinetic=None, hamiltonian=lambda q, p: p @ p * q[0])
    with pytest.raises(lv.ModelError, match="given as kinetic and potential"):
        assert model(lv.Force(lambda q: [q[0], 0], expensive=True), **mixed).implicit_force is None


def test_bad_energies():
    def energy(q):
        return q[0]

    for arguments, words in (
        (dict(), "give either kinetic"),
        (dict(potential=energy), "give either kinetic"),
        (dict(kinetic=lambda p: p[0], hamiltonian=lambda p: p[0]), "give either kinetic"),
        (dict(hamiltonian=lambda p: p[0], potential=energy), "give either kinetic"),
        (dict(kinetic=energy), "kinetic has an argument 'q'"),
        (dict(kinetic=lambda k: 1.0), "nothing moves"),
        (dict(kinetic=lambda p: p), "kinetic must be one number"),
        (dict(kinetic=lambda p: p[3]), "kinetic: IndexError"),
        (dict(kinetic=lambda p, k: p[0] * k.mass), "unknown parameter 'k.mass'"),
        (dict(kinetic=2.0), "kinetic must be a function, got 2.0"),
    ):
        with pytest.raises(lv.ModelError, match=words):
            lv.Hamiltonian("q", **arguments)
    with pytest.raises(lv.InputError, match="at least one coordinate"):
        lv.Hamiltonian("", kinetic=lambda p: 0)
    with pytest.raises(lv.InputError, match="'q' is named twice"):
        lv.Hamiltonian("q q", kinetic=lambda p: p[0])


# -- from and to Livens' form -----------------------------------------------------------------------------------------
def accelerations(system, q, v, t):
    """By the Livens form: M a = f."""
    d = equations_of_motion(system)
    matrix, right = (np.array(d.function(e)(q, v, 0, t, system.parameter_vector())) for e in d.kkt_system)
    return np.linalg.solve(matrix, right).ravel()


def accelerations_of(model, q, p, t):
    """By Hamilton's: the derivative of dH/dp along the motion."""
    e = ca.jtimes(model.velocity, model.q, model.velocity) + ca.jtimes(model.velocity, model.p, model.momentum_rate)
    return numbers(model, e, q, p, t)


@given(seeds)
@few
def test_same_motion_as_in_livens_form(seed):
    random = np.random.default_rng(seed)
    springs = lv.problems.load("spring-pendulum-spherical").model
    for system in (gyroscope(), springs):
        q, v = pair(random, 3)
        t = random.uniform()
        model = lv.Hamiltonian.from_system(system)
        assert not model.separable
        p = model.momenta(q, v, t)
        d = equations_of_motion(system)
        momenta, T, V = (d.function(e)(q, v, 0, t, system.parameter_vector()) for e in (d.fibre_derivative, d.T, d.V))
        assert p == pytest.approx(np.array(momenta).ravel(), rel=1e-12, abs=1e-12)
        assert model.energy(q, p, t) == pytest.approx(float(p @ v - T + V), rel=1e-12, abs=1e-12)
        assert numbers(model, model.velocity, q, p, t) == pytest.approx(v, rel=1e-12, abs=1e-12)
        there = accelerations(system, q, v, t)
        assert accelerations_of(model, q, p, t) == pytest.approx(there, rel=1e-10, abs=1e-10)
        back = model.to_system()
        assert accelerations(back, q, v, t) == pytest.approx(there, rel=1e-10, abs=1e-10)
        assert back.parameters == system.parameters


def test_constant_mass_is_separable():
    system = lv.System(
        "x y", mass=lambda k: [[k.a, 1], [1, 2]], parameters=dict(a=3.0), potential=lambda q: q[0] * q[1]
    )
    model = lv.Hamiltonian.from_system(system)
    assert model.separable and model.source_system is system
    assert numbers(model, ca.vec(model.inverse_mass), np.zeros(2), np.zeros(2)) == pytest.approx([0.4, -0.2, -0.2, 0.6])
    inverse = numbers(model, ca.vec(model.inverse_mass), np.zeros(2), np.zeros(2), a=1.0)
    assert inverse == pytest.approx([2, -1, -1, 1])


def test_elements_keep_their_parameters_and_cost():
    a, b = (bodies.particle(name, mass, dimension=2) for name, mass in (("a", 1.0), ("b", 4.0)))
    spring = bodies.spring((a, [0, 0]), (b, [0, 0]), stiffness=10.0)
    friction = bodies.damper((a, [0, 0]), [0, 0], damping=0.5, axial=False)
    system = lv.System(bodies.coordinates([a, b]), elements=[a, b, spring, friction, bodies.gravity(b)])
    model = lv.Hamiltonian.from_system(system, expensive=["spring a-b"])
    assert model.parameter_vector().tolist() == system.parameter_vector().tolist()
    q, p = np.array([1.0, 2, 3, 5]), np.array([1.0, 1, 4, 4])
    assert numbers(model, model.velocity, q, p) == pytest.approx([1, 1, 1, 1])
    assert numbers(model, model.explicit_force, q, p) == pytest.approx([20, 30, -20, -30])
    assert numbers(model, model.implicit_force, q, p) == pytest.approx([-0.5, -0.5, 0, -4 * 9.81])
    v, t = np.array([1.0, 1, 1, 1]), 0.0
    assert accelerations(model.to_system(), q, v, t) == pytest.approx(accelerations(system, q, v, t), rel=1e-13)
    with pytest.raises(lv.InputError, match="no element is named 'spring'; did you mean 'spring a-b'"):
        lv.Hamiltonian.from_system(system, expensive=["spring"])


def test_what_has_no_hamiltonian():
    with pytest.raises(lv.ModelError, match="without constraints; the system has 1"):
        lv.Hamiltonian.from_system(lv.problems.load("simple-pendulum").model)
    with pytest.raises(lv.ModelError, match="regular mass matrix; that of the system is singular"):
        lv.Hamiltonian.from_system(lv.System("x y", kinetic=lambda v: (v[0] + v[1]) ** 2))
    with pytest.raises(lv.ModelError, match="quadratic in v"):
        lv.Hamiltonian.from_system(lv.System("x", kinetic=lambda v: m.sqrt(1 + v[0] ** 2)))


def test_what_has_no_livens_form():
    with pytest.raises(lv.ModelError, match="quadratic in the momenta"):
        oscillator().to_system()
    with pytest.raises(lv.ModelError, match="d2H/dp2 is singular"):
        lv.Hamiltonian("x y", kinetic=lambda p: (p[0] + p[1]) ** 2).to_system()
    with pytest.raises(lv.ModelError, match="does not depend on time"):
        lv.Hamiltonian("x", hamiltonian=lambda p, t: p[0] ** 2 * (1 + t**2)).to_system()
