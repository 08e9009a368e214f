"""Beams, contacts and singular positions in the assembled tier.

Rotors, rolling, gears and controllers are in `test_rotors` and `test_assembled_schemes`.
"""

import numpy as np
import pytest

import livens as lv


def differences(a, b):
    return [float(np.abs(getattr(a, name) - getattr(b, name)).max()) for name in ("q", "v", "dissipated_energy")]


def test_beams():
    """Elements whose energy is a function of strains, on bodies with frames, under a load."""
    problem = lv.problems.load("flying-spaghetti-3d", N=2)
    runs = [lv.simulate(problem, t_end=20 * problem.h, tier=tier) for tier in ("assembled", "fused")]
    of_q, of_v, _ = differences(*runs)
    assert np.abs(runs[0].q[-1] - runs[0].q[0]).max() > 1e-3
    assert of_q < 1e-13 and of_v < 1e-11


def sliding_balls(count, contacts_of_neighbours=False):
    """On a table, as deep in it as their weight presses them; neighbours keep their distance and do not touch."""
    mb, balls = lv.Multibody(gravity=[0, 0, -9.81]), []
    for i in range(count):
        ball = mb.sphere(f"ball{i}", at=[i, 0, 0.1 - 9.81e-7], radius=0.1, mass=1.0)
        mb.contact(ball, mb.ground, stiffness=1e7, friction=0.2)
        mb.initial(ball, velocity=[2.0, 0, 0])
        if contacts_of_neighbours and balls:
            mb.contact(balls[-1], ball, stiffness=1e3, friction=0.2)
        balls.append(ball)
    return mb


def test_contacts():
    """With friction, whose work is the same; many balls slide as one does in the assembled tier and in the tree tier.

    The automatic choice is the tree tier. Contacts between bodies exclude it; the choice is then the assembled tier.
    """
    one = [sliding_balls(1).simulate(t_end=0.03, h=1e-3, tier=tier) for tier in ("assembled", "fused")]
    of_q, of_v, of_work = differences(*one)
    assert of_q < 1e-13 and of_v < 1e-10 and of_work < 1e-11
    assert one[0].dissipated_energy[-1] > 0.1
    assembled = sliding_balls(18).simulate(t_end=0.03, h=1e-3, tier="assembled")
    tree = sliding_balls(18).simulate(t_end=0.03, h=1e-3)
    pairs = sliding_balls(18, contacts_of_neighbours=True).simulate(t_end=0.03, h=1e-3)
    assert [run.info.tier for run in (assembled, tree, pairs)] == ["assembled", "tree", "assembled"]
    for many in (assembled, tree, pairs):
        for name in ("ball0", "ball7", "ball17"):
            assert np.abs(many[f"{name}.velocity"] - one[1]["ball0.velocity"]).max() < 1e-10
        assert np.abs(many.dissipated_energy - 18 * one[1].dissipated_energy).max() < 1e-10


@pytest.mark.parametrize("frames", [0, 1])
def test_a_row_of_loops_goes_through_its_singular_position(frames):
    """Loops do not fold in the singular position, in which all bars lie in one line and constraints are dependent."""
    problem = lv.problems.load("n-four-bar", N=3, frames=frames)
    run = lv.simulate(problem, t_end=1.0, tier="assembled")
    angle = np.unwrap(np.arctan2(run.q[:, 3], run.q[:, 2]))  # of the first crank
    flat = int(np.argmin(np.abs(angle)))
    assert angle[0] > 1.5 and angle[-1] < -1.0 and 0 < flat < len(angle) - 1
    directors = run.q.reshape(len(angle), -1, 6)[:, :, 2:4]  # of four cranks, then of three couplers
    assert np.abs(directors[:, :4] - directors[:, :1]).max() < 1e-11
    assert np.abs(directors[:, 4:] - [1.0, 0.0]).max() < 1e-11
    assert run.statistics.reference_steps == 0
    assert run.summary.max_energy_drift < 1e-13 and run.summary.max_constraint < 1e-14
