"""Every element scheme there is gives the same in the assembled tier as in the others, to round-off.

Nothing here lists schemes: they are those of the registry, and one that is added takes part. Models are random systems
of several types of elements, with drag, forces that turn, springs and rods; unit quaternions; bodies with frames.
"""

import functools

import numpy as np
import pytest
from test_assembled import chain_of_points

import livens as lv
from livens import schemes
from livens.run.plan import Plan

#: Schemes that are no sum over elements, or have nothing to be solved in sums: forces that are told apart, and series.
NO_SUM = set("imex semi-explicit:0.5,0.5 semi-explicit:0.5,0.6 semi-explicit-2:0.5 taylor taylor:4 taylor:8".split())
#: For planets alone, whose steps no tier solves.
PLANETS = set("wisdom-holman wisdom-holman:10".split())
#: Schemes with fixed steps; those with a step density are one graph, fused.
ALL = [
    scheme.name
    for scheme in schemes.all()
    if "elements" in scheme.formulations and scheme.name not in PLANETS and not scheme.fictive
]
#: Compositions are families without end; one of each recipe they can be made of, with steps backwards.
COMPOSED = ["yoshida-4:livens-em", "suzuki-4:livens-midpoint", "triple-jump-4:rattle"]
H, STEPS = 0.01, 12


def quaternion():
    top = lv.problems.load("heavy-top")
    return top.model, top.q0, top.v0


def frames():
    two = lv.problems.load("chain", N=2)
    return two.model, two.q0, two.v0


@functools.cache
def models():
    """From the most to the least that a scheme may be able to take; sizes and numbers are random."""
    seed = 7
    return [chain_of_points(3, seed), chain_of_points(3, seed, constrained=False), quaternion(), frames()]


def taken(name):
    """The first model that a scheme takes."""
    scheme = schemes.get(name)
    return next(model for model in models() if not scheme.unmet_requirements(model[0]))


def differences(a, b):
    """Return the largest differences of positions, of velocities and momenta (amplified by 1/h), and of work."""
    gap = {name: np.abs(getattr(a, name) - getattr(b, name)).max() for name in ("q", "v", "p")}
    work = [np.abs(getattr(a, name) - getattr(b, name)).max() for name in ("supplied_energy", "dissipated_energy")]
    return gap["q"], max(gap["v"], gap["p"]), max(work)


@pytest.mark.parametrize("name", [name for name in [*ALL, *COMPOSED] if name not in NO_SUM])
def test_every_element_scheme_agrees_with_the_fused_and_the_reference_tier(name):
    system, q0, v0 = taken(name)
    h = 1e-3 if system.frames else H
    runs = [
        lv.simulate(system, q0, v0, scheme=name, h=h, t_end=STEPS * h, tier=tier)
        for tier in ("assembled", "fused", "reference")
    ]
    assert [run.info.tier for run in runs] == ["assembled", "fused", "reference"]
    assert np.abs(runs[0].q[-1] - runs[0].q[0]).max() > 1e-5  # something moves
    for other in runs[1:]:
        of_q, of_v, of_work = differences(runs[0], other)
        assert of_q < 1e-13 and of_v < 1e-10 and of_work < 1e-12, (name, other.info.tier)


def test_only_these_are_no_sum_over_elements():
    """They are not refused: a large model of theirs is fused, and asked for in so many words that is said."""
    small, large = chain_of_points(3, constrained=False), chain_of_points(160, constrained=False)
    for name in ALL:
        fits = [model for model in models() if not schemes.get(name).unmet_requirements(model[0])]
        sizes = [schemes.get(name).equations(model[0]).n_assembled_unknowns for model in fits]
        assert (not any(sizes)) == (name in NO_SUM), name
        assert all(sizes) or name in NO_SUM, name
    for name in NO_SUM:
        assert Plan.from_arguments(large[0], {}, h=H, t_end=1.0, scheme=name).tier == "fused"
        with pytest.raises(lv.InputError, match="cannot be assembled"):
            lv.simulate(*small, scheme=name, h=H, t_end=H, tier="assembled")


# -- bodies with frames -----------------------------------------------------------------------------------------------
def both(problem, steps, **options):
    end = problem.t0 + steps * problem.h
    return [lv.simulate(problem, t_end=end, tier=tier, **options) for tier in ("assembled", "fused")]


@pytest.mark.parametrize("options", [dict(name="chain", N=2), dict(name="n-four-bar", N=1, frames=1)])
def test_both_levels_of_frame_bodies(options):
    """Velocities at the end of a step are unknowns of the bodies; energy, and both levels, are at round-off."""
    problem = lv.problems.load(**options)
    runs = both(problem, 40, scheme="lie-ggl")
    of_q, of_v, _ = differences(*runs)
    assert of_q < 1e-14 and of_v < 1e-12
    assert runs[0].summary.max_energy_drift < 2e-15
    assert np.abs(runs[0].observe("constraint")).max() < 1e-14
    assert np.abs(runs[0].observe("velocity_constraint")).max() < 1e-13


@pytest.mark.parametrize("name", ["rolling-disc", "joint-gear"])
def test_constraints_on_velocity_level(name):
    """Rolling, and angles that are coupled: held for every step by itself, with nothing remembered."""
    runs = both(lv.problems.load(name), 30)
    of_q, of_v, _ = differences(*runs)
    assert of_q < 1e-13 and of_v < 1e-10
    assert runs[0].summary.max_energy_drift < 1e-14


def servo():
    """An arm with a sampled controller that has an integral in its state."""

    def law(t, measured, state):
        error = 0.3 - measured[0]
        integral = state[0] + 0.01 * error
        return 60 * error - 12 * measured[1] + 40 * integral, [integral]

    mb = lv.Multibody(gravity=[0, 0, -9.81])
    rod = mb.rod("arm", a=[0, 0, 0], b=[1, 0, 0], mass=1, radius=0.02)
    hinge = mb.revolute("hinge", mb.ground, rod, at=rod.a, axis="y")
    mb.sampled_controller("servo", hinge, period=0.01, law=law, inputs=["hinge.angle", "hinge.rate"], state=[0.0])
    return mb


def test_sampled_controllers():
    """Commands of controllers are part of the state and constant between samples."""
    runs = [servo().simulate(t_end=0.1, h=2e-3, tier=tier) for tier in ("assembled", "fused")]
    of_q, of_v, of_work = differences(*runs)
    assert of_q < 1e-14 and of_v < 1e-11 and of_work < 1e-12
    assert len(set(runs[0]["servo.command"])) >= 10
    assert np.abs(runs[0]["servo.command"] - runs[1]["servo.command"]).max() < 1e-10


def test_compositions_are_resumed_and_shortened(tmp_path):
    """The checkpoint contains the state of every substep; an event within a step shortens all substeps."""
    system, q0, v0 = chain_of_points(4)
    options = dict(scheme="suzuki-4:livens-em", h=0.02, tier="assembled")
    whole = lv.simulate(system, q0, v0, t_end=0.6, **options)
    path = tmp_path / "half.h5"
    lv.simulate(system, q0, v0, t_end=0.3, out=path, **options)
    later = lv.resume(path, t_end=0.6, system=system)
    assert np.array_equal(later.q, whole.q) and np.array_equal(later.multipliers, whole.multipliers)
    event = lv.Event(lambda q: q[1] + 0.05, name="low", terminal=True)
    runs = [
        lv.simulate(system, q0, v0, scheme="yoshida-4:livens-em", h=0.013, t_end=1.0, tier=tier, events=[event])
        for tier in ("assembled", "reference")
    ]
    assert runs[0].events[0].t == pytest.approx(runs[1].events[0].t, abs=1e-11)
    assert np.abs(runs[0].q[-1] - runs[1].q[-1]).max() < 1e-12


def test_compositions_have_their_order_here_too():
    """Order 2 of one step and order 4 of five substeps, measured with four step sizes."""
    problem = lv.problems.load("chain", N=2)
    exact = lv.simulate(problem, scheme="suzuki-4:lie-em", h=1e-3, t_end=0.4, tier="assembled").q[-1]
    sizes = [0.04, 0.02, 0.01, 0.005]
    for scheme, order in (("lie-em", 2), ("suzuki-4:lie-em", 4)):
        ends = [lv.simulate(problem, scheme=scheme, h=h, t_end=0.4, tier="assembled").q[-1] for h in sizes]
        errors = [np.abs(end - exact).max() for end in ends]
        slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
        assert slope == pytest.approx(order, abs=0.1), scheme
