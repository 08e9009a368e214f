"""Formulations and guarantees are properties of models, not of their classes."""

import types

import numpy as np
import pytest

import livens as lv
from livens import bodies

SYSTEM = lv.System("x y", kinetic=lambda v: v @ v / 2, potential=lambda q: q @ q)
PENDULUM = lv.problems.load("simple-pendulum").model


def conserving(*names):
    return types.SimpleNamespace(conserves=names)


@pytest.mark.parametrize(
    ("model", "forms", "errors"),
    [
        (SYSTEM, ("elements", "phase space"), ("q", "v")),
        (PENDULUM, ("elements",), ("q", "v")),
        (lv.System("x y", kinetic=lambda v: v[0] ** 2), ("elements",), ("q", "v")),
        (lv.System("x", kinetic=lambda v: v[0] ** 4), ("elements",), ("q", "v")),
        (lv.Hamiltonian.from_system(SYSTEM), ("phase space",), ("q", "p")),
        (lv.problems.load("euler-top").model, ("nambu", "descriptor"), ("x",)),
        (lv.problems.load("rlc-circuit").model, ("port-hamiltonian", "descriptor"), ("x",)),
        (lv.FirstOrder("x", rhs=lambda x: -x), ("descriptor",), ("x",)),
        (lv.MultibodyEquations.from_system(PENDULUM).formulate("ggl"), ("descriptor",), ("x",)),
    ],
)
def test_forms(model, forms, errors):
    assert model.formulations == forms and model.error_norm_variables == errors


def test_a_run_can_begin_anywhere():
    """The parts of a state become the arguments of a start."""
    values = {name: np.arange(2.0) for name in "qvp"}
    assert list(SYSTEM.initial_values_from(values)) == ["q0", "v0"]
    assert list(lv.Hamiltonian.from_system(SYSTEM).initial_values_from(values)) == ["q0", "p0"]
    assert list(lv.FirstOrder("x", rhs=lambda x: -x).initial_values_from({"x": np.ones(1)})) == ["x0"]
    formulation = lv.MultibodyEquations.from_system(PENDULUM).formulate("ggl")
    begun = formulation.initial_values_from({"x": np.arange(4.0), "y": np.ones(2)})
    assert begun["q0"].tolist() == [0.0, 1.0] and begun["v0"].tolist() == [2.0, 3.0]


def test_bodies():
    ball = bodies.particle("ball", 1.0, dimension=2)
    system = lv.System(bodies.coordinates([ball]), elements=[ball, bodies.gravity(ball)])
    assert system.bodies == {"ball": ["ball.x", "ball.y"]} and lv.Hamiltonian.from_system(system).bodies == {}


# -- promises ---------------------------------------------------------------------------------------------------------
def test_promised_by_name():
    assert SYSTEM.is_guaranteed_by(conserving("total_energy"), "total_energy")
    assert not SYSTEM.is_guaranteed_by(conserving("total_energy"), "constraint")


def test_nobody_knows_the_scheme():
    for model in (SYSTEM, lv.Hamiltonian.from_system(SYSTEM), lv.problems.load("euler-top").model):
        assert not any(model.is_guaranteed_by(None, name) for name in (*model.view.observable_names, "anything"))


def test_momentum_maps_with_linear_generators():
    """Translations and rotations; others are conserved by the scheme's own symmetry only by chance."""
    symmetries = dict(L=lambda q: [-q[1], q[0]], bent=lambda q: [q[0] ** 2, 0.0], drift=lambda q: [1.0, 0.0])
    system = lv.System("x y", kinetic=lambda v: v @ v / 2, symmetries=symmetries)
    scheme = conserving("momentum_maps")
    for model in (system, lv.Hamiltonian.from_system(system)):
        found = [name for name in (*symmetries, "total_energy") if model.is_guaranteed_by(scheme, name)]
        assert found == ["L", "drift"]


def test_quadratic_invariants():
    """Only what is quadratic, and conserved."""
    model = lv.FirstOrder(
        "x y",
        rhs=lambda x: [x[1], -x[0]],
        invariants=dict(energy=lambda x: x @ x, not_one=lambda x: x[0] ** 2, quartic=lambda x: (x @ x) ** 2),
    )
    scheme = conserving("quadratic_invariants")
    assert [name for name in model.symmetries if model.is_guaranteed_by(scheme, name)] == ["energy"]
    damped = lv.FirstOrder("x", rhs=lambda x, k: -k.d * x, invariants=dict(I=lambda x: x @ x), parameters=dict(d=1.0))
    undamped = damped.parameter_vector({"d": 0.0})
    assert not damped.is_guaranteed_by(scheme, "I") and damped.is_guaranteed_by(scheme, "I", undamped)


def test_the_balance_of_a_quadratic_hamiltonian():
    circuit, pendulum = (lv.problems.load(name).model for name in ("rlc-circuit", "viscous-pendulum"))
    assert circuit.is_guaranteed_by(conserving("quadratic_invariants"), "hamiltonian")
    assert pendulum.is_guaranteed_by(conserving("quadratic_invariants"), "hamiltonian")
    assert not circuit.is_guaranteed_by(conserving("momentum_maps"), "hamiltonian")


def test_the_first_hamiltonian_of_a_nambu_system():
    top = lv.problems.load("euler-top").model
    first, second = top.symmetries
    scheme = conserving("first Hamiltonian")
    assert top.is_guaranteed_by(scheme, first) and not top.is_guaranteed_by(scheme, second)


@pytest.mark.parametrize(
    ("formulation", "kept"),
    [
        ("index-3", ["constraint"]),
        ("index-2", ["velocity_constraint"]),
        ("index-1", []),
        ("ggl", ["constraint", "velocity_constraint"]),
    ],
)
def test_constraints_that_a_formulation_imposes(formulation, kept):
    model = lv.MultibodyEquations.from_system(PENDULUM).formulate(formulation)
    names = ("constraint", "velocity_constraint", "total_energy")
    assert [name for name in names if model.is_guaranteed_by(conserving("constraint"), name)] == kept


def test_the_summary_names_every_term_that_makes_a_system_nonconservative():
    """Prescribed motion and friction of constraints change the energy, too."""
    belt = lv.System("x", kinetic=lambda v: v[0] ** 2, velocity_constraints=lambda v: [v[0] - 1.0])
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    ball = mb.sphere("ball", at=[0, 0, 0.1], radius=0.1, mass=1.0)
    mb.rigid_contact(ball, mb.ground, restitution=0.5, friction=0.3)
    for system, term in ((belt, "prescribed motion"), (mb.system, "friction of constraints")):
        assert not system.conservative
        assert f"conservative     no ({term})" in str(system)
    assert "conservative     yes" in str(PENDULUM)
