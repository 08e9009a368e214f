"""Models with equal equations have one digest, whatever their parameters are; types of elements are one object."""

import gc
import itertools

import numpy as np
import pytest

import livens as lv
from livens import bodies
from livens import math as m
from livens.models import element

PROBLEMS = [entry.name for entry in lv.problems.all()]


@pytest.mark.parametrize("name", PROBLEMS)
def test_built_again_it_is_the_same(name):
    assert lv.problems.load(name).model.fingerprint == lv.problems.load(name).model.fingerprint


def test_all_problems_differ():
    """But for those that differ in nothing but values and starts: their equations are the same."""
    found = {}
    for name in PROBLEMS:
        found.setdefault(lv.problems.load(name).model.fingerprint, set()).add(name)
    alike = [names for names in found.values() if len(names) > 1]
    assert alike == [{"mass-spring-damper", "vanishing-mass"}, {"pendulum", "simple-pendulum"}]


def pendulum(**changes):
    description = dict(
        coordinates="x y",
        kinetic=lambda v, k: 0.5 * k.m * (v @ v),
        potential=lambda q, k: k.m * k.g * q[1],
        constraints=lambda q, k: [0.5 * (q @ q - k.l**2)],
        parameters=dict(m=1.0, l=1.0, g=9.81),
    )
    return lv.System(**(description | changes))


def test_values_of_parameters_do_not_count():
    assert pendulum().fingerprint == pendulum(parameters=dict(m=2.0, l=3.0, g=1.0)).fingerprint


@pytest.mark.parametrize(
    "changes",
    [
        dict(coordinates="x z"),
        dict(kinetic=lambda v, k: 0.25 * k.m * (v @ v)),
        dict(potential=lambda q, k: k.m * k.g * q[0]),
        dict(constraints=lambda q, k: [0.5 * (q @ q - k.l)]),
        dict(constraint_names=["rod"]),
        dict(forces=lambda q: [0.0, 1.0]),
        dict(dissipation=lambda v: v @ v),
        dict(parameters=dict(m=1.0, l=1.0, g=9.81, c=1.0)),
        dict(parameters=dict(l=1.0, m=1.0, g=9.81)),
        dict(symmetries=dict(L=lambda q: [-q[1], q[0]])),
        dict(kinetic=lv.of_invariants(lambda v: [v @ v], lambda w, k: 0.5 * k.m * w[0])),
    ],
)
def test_everything_else_counts(changes):
    assert pendulum(**changes).fingerprint != pendulum().fingerprint


def test_constants_in_functions_count():
    """They are part of the equations."""

    def spring(c):
        return lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: c * q[0] ** 2)

    assert spring(1.0).fingerprint == spring(1.0).fingerprint != spring(1.0 + 1e-15).fingerprint


def chain(count=3, names="abcdefg", tie=True, order=1):
    balls = [bodies.particle(name, 1.0) for name in names[:count]]
    springs = [bodies.spring((a, [0, 0, 0]), (b, [0, 0, 0]), 3.0) for a, b in itertools.pairwise(balls)]
    weights = [bodies.gravity(ball) for ball in balls]
    if not tie:
        for weight in weights:
            weight.parameters.tied.clear()
    return lv.System(bodies.coordinates(balls), elements=[*balls, *springs[::order], *weights])


def test_where_elements_act_counts():
    assert chain().fingerprint == chain().fingerprint
    others = [chain(4), chain(names="xyz"), chain(tie=False), chain(order=-1)]
    assert len({chain().fingerprint, *(other.fingerprint for other in others)}) == 5


def test_forms_of_one_system():
    def spring(c=1.0):
        return lv.System(
            "x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q, k: k.c * q[0] ** 2, parameters=dict(c=c)
        )

    hamiltonian = lv.Hamiltonian.from_system(spring()).fingerprint
    assert hamiltonian == lv.Hamiltonian.from_system(spring(2.0)).fingerprint != spring().fingerprint
    index = {
        name: lv.MultibodyEquations.from_system(pendulum()).formulate(name).fingerprint
        for name in ("index-3", "index-2", "ggl")
    }
    assert len(set(index.values())) == 3
    assert index["ggl"] == lv.MultibodyEquations.from_system(pendulum()).formulate("ggl").fingerprint


def test_a_mass_of_zero_makes_other_equations():
    """Explicit equations and others have different error estimates."""

    def model(mass):
        return lv.FirstOrder(
            "x y", rhs=lambda x: [x[1], -x[0]], mass=lambda k: [[1, 0], [0, k.m]], parameters=dict(m=mass)
        )

    assert model(1.0).fingerprint == model(2.0).fingerprint != model(0.0).fingerprint


def test_hamiltonians_nambu_and_first_order():
    def top(power=2):
        return lv.Nambu(3, hamiltonians=[lambda x: x @ x, lambda x: x[0] ** power + x[1]])

    def decay(rate=1.0, **more):
        return lv.FirstOrder("x", rhs=lambda x: -rate * x, **more)

    def oscillator(sign=1):
        return lv.Hamiltonian("x", kinetic=lambda p: p @ p, potential=lambda q: sign * (q @ q))

    assert top().fingerprint == top().fingerprint != top(4).fingerprint
    assert decay().fingerprint == decay().fingerprint != decay(2.0).fingerprint
    assert decay().fingerprint != decay(invariants=dict(I=lambda x: x[0])).fingerprint
    assert oscillator().fingerprint == oscillator().fingerprint != oscillator(-1).fingerprint


def test_a_model_of_unknown_content_is_like_no_other():
    from livens.expressions.parameters import Parameters
    from livens.models.base import Model

    class Unknown(Model):
        coordinates, shared = ("x",), Parameters()

    one, other = Unknown(), Unknown()
    assert one.fingerprint == one.fingerprint != other.fingerprint


# -- types of elements ------------------------------------------------------------------------------------------------
def test_equal_types_are_one_object():
    first, second = pendulum(), pendulum(parameters=dict(m=5.0, l=1.0, g=9.81))
    assert first.element_types[0] is second.element_types[0]
    assert set(chain().element_types) == set(chain(5).element_types)
    assert pendulum(potential=lambda q, k: k.m * k.g * m.sin(q[1])).element_types[0] is not first.element_types[0]


def test_types_are_given_up_with_the_last_system():
    """In a sweep over thousands of models nothing may pile up."""
    gc.collect()
    before = len(element._types_by_fingerprint)
    for i in range(20):
        lv.System("x", kinetic=lambda v, i=i: (i + 1.0) * v[0] ** 2)
    gc.collect()
    assert len(element._types_by_fingerprint) <= before + 1


def test_what_a_function_closes_over_may_change():
    factor = [2.0]

    def energy(v):
        return factor[0] * v[0] ** 2

    first = lv.System("x", kinetic=energy)
    factor[0] = 3.0
    assert lv.System("x", kinetic=energy).fingerprint != first.fingerprint
    run = lv.simulate(lv.System("x", kinetic=energy), [0.0], [1.0], h=0.1, t_end=0.1)
    assert np.array_equal(run.p[0], [6.0])
