"""Symmetries are recognised where they hold: on the constraints, and not where a force or the weight breaks them."""

import gc

import pytest

import livens as lv
from livens.expressions.evaluate import Evaluator
from livens.models.sparse_symmetry_check import has_elementwise_symmetry
from livens.models.symmetry_check import has_symmetry


def test_joined_points_turn_together():
    """The joint q1 = q2 is kept by rotations only where it holds."""
    system = lv.System(
        "x y z a b c",
        kinetic=lambda v: v @ v / 2,
        constraints=lambda q: q[:3] - q[3:],
        symmetries=dict(L=lv.symmetry.rotations([[0, 1, 2], [3, 4, 5]]), half=lv.symmetry.rotations([[0, 1, 2]])),
    )
    assert has_symmetry(system, "L")
    assert not has_symmetry(system, "half")


@pytest.mark.parametrize("breaking", ["potential", "forces", "dissipation"])
def test_what_breaks_a_symmetry(breaking):
    """Weight, an applied force and friction break the rotations; that about the vertical survives the weight."""
    functions = dict(
        potential=lambda q: 9.81 * q[2], forces=lambda q: [1.0, 0.0, 0.0], dissipation=lambda v: 0.5 * (v @ v)
    )
    symmetries = dict(L=lv.symmetry.rotations([[0, 1, 2]]), about_z=lambda q: [-q[1], q[0], 0.0])
    system = lv.System("x y z", kinetic=lambda v: v @ v / 2, symmetries=symmetries, **{breaking: functions[breaking]})
    assert not has_symmetry(system, "L")
    assert has_symmetry(system, "about_z") == (breaking == "potential")


@pytest.mark.parametrize(
    ("problem", "names"),
    [
        ("gyroscopic-top", {"L3"}),
        ("four-particles", {"linear_momentum", "angular_momentum"}),
        ("closed-loop-bars", set()),  # loads act on it
    ],
)
def test_ready_problems(problem, names):
    """The monitor watches what is really conserved."""
    run = lv.simulate(lv.problems.load(problem), h=1e-3, t_end=5e-3)
    assert set(run.summary.momentum_drift) == names


@pytest.mark.parametrize(
    "problem", ["gyroscopic-top", "four-particles", "closed-loop-bars", "kepler", "spherical-pendulum"]
)
def test_elements_have_the_symmetries_of_their_sum(problem):
    """Elementwise checks of large systems agree with checks of the whole system."""
    system = lv.problems.load(problem).model
    for name in system.symmetries:
        assert has_elementwise_symmetry(system, name, system.parameter_vector()) == has_symmetry(system, name)


def test_elements_show_what_breaks_a_symmetry():
    """Points joined by springs, one of which pulls along x."""
    spring = lambda q, k: 0.5 * k.c * ((q[0] - q[2]) ** 2 + (q[1] - q[3]) ** 2)  # noqa: E731
    askew = lambda q: 0.5 * (q[0] - q[2]) ** 2  # noqa: E731
    for other, turns in ((spring, True), (askew, False)):
        points = [lv.Element([f"x{i}", f"y{i}"], kinetic=lambda v: v @ v / 2) for i in range(4)]
        springs = [
            lv.Element(
                [f"x{i}", f"y{i}", f"x{i + 1}", f"y{i + 1}"],
                potential=other if i == 1 else spring,
                parameters={} if i == 1 and other is askew else dict(c=1.0 + i),
            )
            for i in range(3)
        ]
        pairs = [[2 * i, 2 * i + 1] for i in range(4)]
        system = lv.System(
            [f"{axis}{i}" for i in range(4) for axis in "xy"],
            elements=points + springs,
            symmetries=dict(L=lv.symmetry.rotations(pairs), P=lv.symmetry.translations(pairs)),
        )
        assert has_elementwise_symmetry(system, "P", system.parameter_vector())
        assert has_elementwise_symmetry(system, "L", system.parameter_vector()) == turns


def test_evaluators_do_not_accumulate_with_parameters():
    """The symmetries of a mechanism are checked for every parameter vector, by functions that are made once."""
    mb = lv.Multibody(planar=True)
    mb.revolute("hinge", mb.ground, mb.rod("arm", a=[0, 0], b=[1, 0], mass=1.0), at=[0, 0])

    def evaluators():
        gc.collect()
        return sum(isinstance(thing, Evaluator) for thing in gc.get_objects())

    numbers = []
    for mass in (1.0, 2.0, 3.0):
        mb.simulate(h=0.01, t_end=0.1, parameters={"arm.mass": mass}).report(accuracy=False)
        numbers.append(evaluators())
    assert len(set(numbers)) == 1
