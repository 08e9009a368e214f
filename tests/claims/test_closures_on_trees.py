"""Loops, couplings and forces across the tree in the tree tier, compared with tiers of absolute unknowns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_trees import TYPES, assert_equal_runs, planar_tree, tree

import livens as lv
from livens.problems.bricard import bricard_mechanism

#: Joints that close loops, and other elements that connect bodies across the tree.
CLOSURES = (
    *("revolute", "spherical", "universal", "cylindrical", "prismatic", "screw"),
    *("coupling", "drive", "spring", "bushing", "motor"),
)


def end_of(mb, index):
    """Return the position of the end of a rod in the drawing."""
    return mb.bodies[f"rod{index}"].b.reference_position


def add_closure(mb, kind, first, second, name="closure"):
    """Connect the end of a rod with another body."""
    at, rod = end_of(mb, first), mb.bodies[f"rod{first}"]
    hinges = [joint for joint in mb.joints.values() if joint.type_name == "revolute"]
    if kind == "spring":
        mb.spring(name, second, rod.b, stiffness=200.0, free_length=0.2)
        mb.damper(f"{name} damper", second, rod.b, damping=2.0)
    elif kind == "bushing":
        mb.bushing(name, second, rod, at=at, stiffness=[800.0] * 3 + [20.0] * 3, damping=[3.0] * 3 + [0.1] * 3)
    elif kind == "coupling":
        mb.couple(name, (hinges[0], 1.0), (hinges[-1], -2.0))
    elif kind == "drive":
        mb.drive(hinges[-1], angle=lambda t: 0.3 * lv.math.sin(3 * t))
    elif kind == "motor":  # in the joint that closes the loop
        axes = dict(axis=[0.3, 1.0, 0.2]) if mb.dimension == 3 else {}
        mb.motor(mb.revolute(name, rod, second, at=at, **axes), torque=lambda t, angle, rate: 0.3 - angle)
    else:
        options = dict(lead=0.1) if kind == "screw" else {}
        axes = {} if kind == "spherical" or mb.dimension == 2 else dict(axis=[0.3, 1.0, 0.2])
        if kind == "universal":
            axes["second_axis"] = [0.2, 0.3, -1.8]
        getattr(mb, kind)(name, rod, second, at=at, **axes, **options)


def closed_chain(kind, *, floating):
    """Return a chain whose end is connected to its base."""
    types = ("revolute", "spherical", "universal", "revolute")
    mb = tree(types, range(-1, 3), 3, floating=floating, rates=False)
    add_closure(mb, kind, 3, mb.bodies["base"] if floating else mb.ground)
    return mb


@pytest.mark.parametrize("kind", CLOSURES)
def test_every_closure(kind):
    """Motion, multipliers, work and constraint residuals are those of the reference tier."""
    run = assert_equal_runs(closed_chain(kind, floating=True), n_steps=10)
    assert run.summary.max_constraint < 1e-13 and run.statistics.reference_steps == 0
    assert run.summary.max_energy_drift < 1e-11


def test_contact_between_bodies():
    """A ball on a link strikes a free ball: energy balance and motion as in the assembled tier."""
    mb = tree(("revolute", "revolute"), (-1, 0), 3, floating=True, rates=False)
    at = end_of(mb, 1)
    balls = [mb.sphere(f"ball{i}", at=at + [0, 0, 0.25 * i], radius=0.13, mass=0.2) for i in range(2)]
    mb.fixed("weld", mb.bodies["rod1"], balls[0], at=at)
    mb.contact(*balls, stiffness=300.0, dissipation=0.3, friction=0.4)
    runs = [mb.simulate(t_end=0.03, h=2e-3, tier=tier) for tier in ("tree", "assembled")]
    assert runs[0].summary.max_energy_drift < 1e-10 and runs[0].dissipated_energy[-1] > 1e-5
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-9  # contact amplifies round-off
    assert runs[0].dissipated_energy[-1] == pytest.approx(runs[1].dissipated_energy[-1], rel=1e-6)


@settings(max_examples=2, deadline=None, derandomize=True)
@given(data=st.data())
def test_random_trees_with_loops(data):
    """Random topologies with one or two elements across the tree."""
    n = data.draw(st.integers(4, 5))
    types = [data.draw(st.sampled_from(TYPES)) for _ in range(n)]
    types[0] = types[-1] = "revolute"
    parents = [data.draw(st.integers(max(-1, i - 2), i - 1)) for i in range(n)]
    mb = tree(types, parents, data.draw(st.integers(0, 100)), floating=True, rates=False)
    for i in range(data.draw(st.integers(1, 2))):
        kind = data.draw(st.sampled_from(("spring", "bushing", "spherical") if i else ("coupling", *CLOSURES[:2])))
        add_closure(mb, kind, n - 1 - i, mb.bodies["base"], f"closure{i}")
    assert_equal_runs(mb, n_steps=5)


def four_bars():
    """Return a floating body with two four-bar mechanisms of revolute joints, each with three redundant constraints."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    base = mb.box("base", at=[0, 0, 0], size=[0.5, 0.3, 0.1], mass=5.0)
    for i, x in enumerate((0.0, 0.4)):
        corners = [[x, 0, 0], [x, 0, -0.3], [x + 0.2, 0, -0.35], [x + 0.2, 0, 0]]
        rods = [mb.rod(f"rod{i}{j}", a=corners[j], b=corners[j + 1], mass=1.0, radius=0.03) for j in range(3)]
        for j, pair in enumerate(zip([base, *rods], [*rods, base], strict=True)):
            joint = mb.revolute(f"joint{i}{j}", *pair, at=corners[j], axis="y")
            if j == 0:
                mb.initial(joint, rate=1.0 + i)
    return mb


def test_redundant_constraints_of_loops():
    """Redundant constraints are those of the joints that close loops: all tiers remove the same ones."""
    mb = four_bars()
    run = assert_equal_runs(mb, ("tree", "assembled"))
    assert "4 multipliers" in run.info.tier_reason and len(run.info.dropped) == 6
    assert run.summary.max_energy_drift < 1e-12 and run.statistics.reference_steps == 0


def test_digits_near_singular_positions():
    """The Bricard mechanism passes a position with multipliers of 4e4 N: energy and constraints stay at round-off."""
    run = bricard_mechanism().simulate(t_end=9.0, h=1e-3, every=10, tier="tree")
    assert np.abs(run.multipliers).max() > 1e4 and len(run.info.dropped) == 1
    assert run.summary.max_energy_drift < 1e-12 and run.summary.max_constraint < 1e-13


@pytest.mark.parametrize("kind", ["revolute", "coupling", "drive", "spring", "motor"])
def test_closures_in_the_plane(kind):
    """Loops, gears, drives and springs between bodies in the plane, as in the reference tier."""
    types = ("revolute", "revolute", "prismatic", "revolute", "revolute")
    mb = planar_tree(types, range(-1, 4), 4, floating=True, rates=False)
    add_closure(mb, kind, 4, mb.bodies["base"])
    run = assert_equal_runs(mb, n_steps=10)
    assert run.summary.max_constraint < 1e-13


def test_loops_of_four_bars_in_the_plane():
    """A four-bar mechanism drawn in space moves as the same mechanism in the plane."""
    runs = []
    for planar in (False, True):
        mb = lv.Multibody(gravity=[0, -9.81] if planar else [0, -9.81, 0], planar=planar)
        corners = np.array([[0, 0, 0], [0, 0.3, 0], [0.5, 0.4, 0], [0.4, 0, 0]])[:, : 2 if planar else 3]
        rods = [mb.rod(f"rod{j}", a=corners[j], b=corners[j + 1], mass=1.0, radius=0.03) for j in range(3)]
        axis = {} if planar else dict(axis="z")
        for j, pair in enumerate(zip([mb.ground, *rods], [*rods, mb.ground], strict=True)):
            joint = mb.revolute(f"joint{j}", *pair, at=corners[j], **axis)
            if j == 0:
                mb.initial(joint, rate=3.0)
        runs.append(mb.simulate(t_end=0.3, h=0.005, tier="fused" if planar else "tree"))
    angles = [run["joint0.angle"] for run in runs]
    assert np.abs(angles[0]).max() > 0.4
    assert np.abs(angles[0] - angles[1]).max() < 1e-11


def test_large_models_with_few_loops_are_stepped_on_their_tree():
    mb = tree(("revolute",) * 12, range(-1, 11), 5, rates=False)
    add_closure(mb, "spherical", 11, mb.ground)
    run = mb.simulate(t_end=0.02, h=0.005)
    assert run.info.tier == "tree" and "3 multipliers" in run.info.tier_reason


@pytest.mark.slow
def test_equal_energies_after_a_hundred_thousand_steps():
    """A loop that swings: the tree tier and the assembled tier keep energy and closed joints over 1e5 steps."""
    mb = closed_chain("spherical", floating=False)
    runs = [mb.simulate(t_end=100.0, h=1e-3, every=10000, tier=tier) for tier in ("tree", "assembled")]
    for run in runs:
        assert run.statistics.steps == 100000
        assert run.summary.max_energy_drift < 1e-10 and run.summary.max_constraint < 1e-13
