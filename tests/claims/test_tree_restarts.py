"""Restarts and single steps of the tree tier, in space and in the plane: bit-equal to runs without interruption."""

from __future__ import annotations

import numpy as np
import pytest
from test_closures_on_trees import add_closure, closed_chain
from test_trees import feet_at_impact, legged_robot, planar_tree, tree

import livens as lv
from livens.engine.newton.step_size_control import initial_controller_state
from livens.engine.newton.time_loop import StepPolicy

IN_PLANE = ("revolute", "prismatic", "revolute", "fixed", "revolute")


def planar_loop():
    """Return a floating chain in the plane whose end is hinged to its base."""
    types = ("revolute", "revolute", "prismatic", "revolute", "revolute")
    mb = planar_tree(types, range(-1, 4), 4, floating=True, rates=False)
    add_closure(mb, "revolute", 4, mb.bodies["base"])
    return mb


#: Mechanisms, step sizes, and whether some steps are taken in absolute unknowns.
MECHANISMS = {
    "space": (lambda: tree(("revolute", "cylindrical", "spherical"), (-1, 0, 1), 2, laws=True), 0.01, False),
    "loop": (lambda: closed_chain("universal", floating=False), 0.01, False),
    "legs": (legged_robot, 2e-3, True),
    "plane": (lambda: planar_tree(IN_PLANE, (-1, 0, 1, 0, 3), 2, floating=True, laws=True), 0.01, False),
    "loop in the plane": (planar_loop, 0.01, False),
    "legs in the plane": (feet_at_impact, 2e-3, True),
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_restarts_bit_for_bit(tmp_path, name):
    """States, multipliers and energies after a restart from a file are those of the whole run."""
    mechanism, h, falls_back = MECHANISMS[name]
    mb = mechanism()
    whole = mb.simulate(t_end=40 * h, h=h, tier="tree")
    assert whole.info.tier == "tree" and (whole.statistics.reference_steps > 0) == falls_back
    for n_steps in (3, 20):
        path = tmp_path / f"{n_steps}.h5"
        mb.simulate(t_end=n_steps * h, h=h, tier="tree", out=path)
        resumed = lv.resume(path, t_end=40 * h, system=mb.system)
        for quantity in ("t", "q", "v", "p", "multipliers", "supplied_energy", "dissipated_energy"):
            assert np.array_equal(getattr(resumed, quantity), getattr(whole, quantity)), quantity


@pytest.mark.parametrize("name", ["space", "plane"])
def test_runs_across_tiers(name):
    """The motion is that of the fused tier."""
    mechanism, h, _ = MECHANISMS[name]
    mb = mechanism()
    whole = mb.simulate(t_end=40 * h, h=h, tier="tree")
    step = lv.prepare(mb.system, "lie-em", h=h, tier="fused")
    assert np.abs(step.run(*mb.initial_state, t_end=40 * h).q - whole.q).max() < 1e-11


@pytest.mark.parametrize("armature", [False, True])
def test_single_steps_are_those_of_a_chunk(armature):
    """Steps one by one are bit-equal to steps of one call: states, multipliers, predictor and energies."""
    mb = tree(("revolute", "spherical", "prismatic"), (-1, 0, 1), 3, laws=True)
    if armature:
        mb.armature(mb.joints["joint0"], inertia=0.2)
    q, v = mb.initial_state
    step = lv.prepare(mb.system, "lie-em", h=0.005, tier="tree")
    state = chunk = step.start(q, v)
    for _ in range(7):
        state = step.step(state)
    stepper, policy = chunk._session._stepper, StepPolicy(False, 0.005, 0.0, 0)
    final = stepper.advance(chunk._state, 7, policy, initial_controller_state(0.005)).final
    for name in ("t", "z", "unknown_history", "stepper_state"):
        assert np.array_equal(getattr(final, name), getattr(state._state, name)), name
