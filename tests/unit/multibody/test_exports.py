"""`livens.bodies` has the names of `livens.multibody`, in whichever files they are defined."""

import inspect

import pytest

import livens as lv
from livens import bodies, multibody
from livens.multibody import point_constraints, point_forces

EXPORTS = (
    "BodyElement Inertia angular_momentum coordinates damper director_body fixed_point_body force gravity "
    "linear_momentum particle planar_body quaternion_body rigid_link sphere_in_box sphere_plane sphere_sphere "
    "spherical_joint spring torque torsion_spring"
).split()


def test_names():
    assert set(EXPORTS) <= set(bodies.__all__) == set(multibody.__all__)
    assert all(getattr(bodies, name) is getattr(multibody, name) for name in bodies.__all__)
    assert inspect.unwrap(bodies.spherical_joint) is inspect.unwrap(point_constraints.spherical_joint)
    assert inspect.unwrap(bodies.spring) is inspect.unwrap(point_forces.spring)


@pytest.mark.parametrize("make", [bodies.quaternion_body, bodies.director_body])
def test_the_weight_follows_the_mass(make):
    body = make("a", bodies.Inertia(2.0, [1, 1, 1]))
    system = lv.System(body.coordinates, elements=[body, bodies.gravity(body)])
    assert "a.mass" in system.parameters and "weight of a.mass" not in system.parameters
    heavier = make("a", bodies.Inertia(5.0, [1, 1, 1]))
    built = lv.System(body.coordinates, elements=[heavier, bodies.gravity(heavier)])
    changed = system.parameter_vector({"a.mass": 5.0})
    if make is bodies.quaternion_body:
        assert changed.tolist() == built.parameter_vector().tolist()
    assert (changed == 5.0).sum() == 2


def test_a_weight_alone_has_a_mass_of_its_own():
    body = bodies.particle("a", 2.0)
    stand_in = lv.Element(body.coordinates, kinetic=lambda v: v @ v)
    system = lv.System(body.coordinates, elements=[stand_in, bodies.gravity(body)])
    assert system.parameters["weight of a.mass"] == 2.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda a: bodies.spring((a, [0, 0, 0]), [0, 0, 0], 1.0, "long"),
            "spring a-ground: the length must be a number",
        ),
        (lambda a: bodies.rigid_link((a, [0, 0, 0]), [0, 0, 0], None), "link a-ground: the length is missing"),
        (lambda a: bodies.damper((a, [0, 0, 0]), [0, 0, 0], float("nan")), "the damping must be a finite number"),
        (lambda a: bodies.gravity(a, [0, 0, float("inf")]), "gravity on 'a' must be 3 numbers, all finite"),
        (lambda a: bodies.gravity(a, 9.81), "gravity on 'a' must be 3 numbers"),
        (lambda a: bodies.particle("b", "heavy"), "b: the mass must be a number"),
        (lambda a: bodies.spring((a, "tip"), [0, 0, 0], 1.0), "a point of 'a' must be"),
        (lambda a: bodies.spring((a, [0, 0, 0]), "there", 1.0), "a point must be"),
        (lambda a: bodies.Inertia("heavy", [1, 1, 1]), "inertia: the mass must be a number"),
    ],
)
def test_numbers_are_checked(call, words):
    with pytest.raises(lv.InputError) as error:
        call(bodies.particle("a", 1.0))
    assert words in str(error.value)
