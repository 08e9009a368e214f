"""Every scheme on problems it fits: its order, what it conserves, and what not, as it declares."""

import numpy as np
import pytest
from conftest import measured_order

import livens as lv

#: Schemes of Livens, GGL and Hamilton for any coordinates; the one for quaternions is tested with rigid bodies, other
#: discrete gradients with discrete gradients, and other families have tests of their own.
FAMILIES = ("livens-", "ggl-", "hamilton-", "symplectic-euler")
ALL = [
    s.name
    for s in lv.schemes.all()
    if s.name.startswith(FAMILIES) and s.traits.family is None and s.name != "livens-em-nullspace"
]
ENERGIES = {"generalized_energy", "total_energy", "hamiltonian"}
GGL = ["ggl-variational", "ggl-classic", "ggl-em"]


@pytest.mark.parametrize("name", ALL)
def test_order_on_a_constrained_system(name):
    """The pendulum in Cartesian coordinates against its exact motion, positions and velocities.

    Started in motion: from rest, symplectic Euler is a second-order scheme for v by accident.
    """
    scheme, problem = lv.schemes.get(name), lv.problems.load("simple-pendulum")
    steps = [0.01 / 2**i for i in range(5)]
    start, exact, errors = problem.reference(0.25), problem.reference(0.75), {"q": [], "v": []}
    for h in steps:
        run = lv.simulate(problem, start["q"], start["v"], scheme=name, h=h, t_end=0.5)
        for variable, values in errors.items():
            values.append(np.linalg.norm(getattr(run, variable)[-1] - exact[variable]))
    assert abs(measured_order(steps, errors["q"]) - scheme.order) < 0.1
    assert abs(measured_order(steps, errors["v"]) - scheme.order) < 0.1


@pytest.mark.parametrize("name", ALL)
def test_constraints_as_declared(name):
    """Position level at round-off for all; velocity level only where it is promised."""
    run = lv.simulate(lv.problems.load("double-four-bar"), scheme=name, h=1e-3, t_end=2.0)
    assert run.summary.max_constraint < 1e-13
    promised = "velocity_constraint" in lv.schemes.get(name).conserves
    if promised:
        assert run.summary.max_velocity_constraint < 1e-12
    elif name != "ggl-classic":  # there the intermediate point is nearly the end
        assert run.summary.max_velocity_constraint > 1e-9


@pytest.mark.parametrize("name", ALL)
def test_energy_as_declared(name):
    """At round-off where it is promised, else violated; without drift for the symplectic and the symmetric ones."""
    scheme = lv.schemes.get(name)
    run = lv.simulate(lv.problems.load("simple-pendulum"), scheme=name, h=1e-3, t_end=100.0, every=10)
    if ENERGIES & set(scheme.conserves) or "midpoint" in name:
        assert run.summary.max_energy_drift < 1e-12  # the midpoint rule conserves quadratic and linear energies
        return
    energy = run.observe("total_energy")
    assert run.summary.max_energy_drift > 1e-7
    drift = abs(np.polyfit(run.t, energy, 1)[0]) * 100.0
    if scheme.symplectic:
        assert drift < 0.05 * np.ptp(energy)
    else:
        assert drift > 0.5 * np.ptp(energy)


@pytest.mark.parametrize("name", ALL)
def test_momentum_maps_as_declared(name):
    """Angular momentum of a mass on an elastic string in space; the classical stabilisation is put to a rigid rod."""
    scheme = lv.schemes.get(name)
    run = lv.simulate(lv.problems.load("spring-pendulum"), scheme=name, t_end=5.0)
    assert run.summary.momentum_drift["angular_momentum"] < 1e-12
    if "momentum_maps" in scheme.conserves:
        rigid = lv.simulate(spherical_pendulum(), [1, 0, 0], [0, 1, 0.3], scheme=name, h=0.01, t_end=5.0)
        assert rigid.summary.momentum_drift["about z"] < 1e-12


def spherical_pendulum():
    """A point mass on a rigid rod in space: angular momentum about the vertical is conserved."""
    return lv.System(
        "x y z",
        kinetic=lambda v: 0.5 * (v @ v),
        potential=lambda q: 9.81 * q[2],
        constraints=lambda q: [0.5 * (q @ q - 1)],
        symmetries={"about z": lambda q: [-q[1], q[0], 0.0]},
    )


@pytest.mark.parametrize("name", GGL[:2])
def test_what_the_ggl_schemes_need(name):
    """Singular or configuration-dependent mass is refused, and the error says what is missing and what fits."""
    with pytest.raises(lv.InputError, match=r"needs a constant mass matrix; compatible schemes: .*livens-em"):
        lv.simulate(lv.problems.load("spring-pendulum-spherical"), scheme=name)
    with pytest.raises(lv.InputError, match="needs a regular mass matrix"):
        lv.simulate(lv.problems.load("mass-spring-redundant"), scheme=name)


@pytest.mark.parametrize("problem", ["mass-spring-redundant", "spring-pendulum-spherical", "double-four-bar"])
def test_full_and_reduced_are_the_same(problem):
    """Eliminating v1 and p1 changes nothing: the same trajectory to 1e-12."""
    full, reduced, em = (
        lv.simulate(lv.problems.load(problem), scheme=f"livens-em{suffix}", t_end=0.5)
        for suffix in ("-full", "-reduced", "")
    )
    assert np.array_equal(reduced.q, em.q) and np.array_equal(reduced.p, em.p)
    assert np.abs(full.q - em.q).max() < 1e-12
    assert np.abs(full.p - em.p).max() < 1e-10  # round-off over h in the momenta normal to the constraints


@pytest.mark.parametrize("problem", ["mass-spring-redundant", "spring-pendulum-spherical"])
def test_livens_variational_with_singular_and_varying_mass(problem, reference):
    """Order 2 where no Hamiltonian exists or M depends on q; p = M(q) v at every node; energy without drift."""
    if problem == "mass-spring-redundant":
        exact = next(s for s in reference("mass_spring_redundant")["V_quarter"]["solution"] if s["t"] == 1.0)
        end = [exact["x1"], exact["q2"], exact["x2"]]
        steps = [0.1 / 2**i for i in range(5)]
    else:
        exact = next(s for s in reference("spring_pendulum_3d")["solution"] if s["t"] == 1.0)
        end = [exact["r"], exact["theta"], exact["phi_mod_2pi"]]
        steps = [0.01 / 2**i for i in range(5)]
    errors = []
    for h in steps:
        run = lv.simulate(lv.problems.load(problem), scheme="livens-variational", h=h, t_end=1.0)
        errors.append(np.linalg.norm(run.q[-1] - end))
    assert abs(measured_order(steps, errors) - 2) < 0.1
    assert np.abs(run.observe("generalized_energy") - run.observe("total_energy")).max() < 1e-13
