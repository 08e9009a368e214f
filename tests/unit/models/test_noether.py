"""Symmetries are recognised where they hold: on the constraints, and not where a force or the weight breaks them."""

import pytest

import livens as lv
from livens.models.noether import is_symmetry


def test_joined_points_turn_together():
    """The joint q1 = q2 is kept by rotations only where it holds."""
    system = lv.System(
        "x y z a b c",
        kinetic=lambda v: v @ v / 2,
        constraints=lambda q: q[:3] - q[3:],
        symmetries=dict(L=lv.symmetry.rotations([[0, 1, 2], [3, 4, 5]]), half=lv.symmetry.rotations([[0, 1, 2]])),
    )
    assert is_symmetry(system, "L")
    assert not is_symmetry(system, "half")


@pytest.mark.parametrize("breaking", ["potential", "forces", "dissipation"])
def test_what_breaks_a_symmetry(breaking):
    """Weight, an applied force and friction break the rotations; that about the vertical survives the weight."""
    functions = dict(
        potential=lambda q: 9.81 * q[2], forces=lambda q: [1.0, 0.0, 0.0], dissipation=lambda v: 0.5 * (v @ v)
    )
    symmetries = dict(L=lv.symmetry.rotations([[0, 1, 2]]), about_z=lambda q: [-q[1], q[0], 0.0])
    system = lv.System("x y z", kinetic=lambda v: v @ v / 2, symmetries=symmetries, **{breaking: functions[breaking]})
    assert not is_symmetry(system, "L")
    assert is_symmetry(system, "about_z") == (breaking == "potential")


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
