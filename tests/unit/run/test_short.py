"""Short runs, taken in one call of the loop: the same as any other run, or left to it."""

import dataclasses
import gc
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

import livens as lv
from livens.engine import compiled_step as compiled_module
from livens.engine.codegen import jit
from livens.engine.compiled_step import compiled_step
from livens.run import fast_path
from livens.run.plan import Plan
from livens.run.simulate import execute
from livens.run.stepping import split_interval


@pytest.fixture
def watched(monkeypatch):
    """Counts the runs that were taken in one call, and those that were tried and left to a `Run`."""
    seen, run = SimpleNamespace(taken=0, left=0), fast_path.FastRun.run

    def counting(self, *given):
        found = run(self, *given)
        seen.taken += found is not None
        seen.left += found is None
        return found

    monkeypatch.setattr(fast_path.FastRun, "run", counting)
    return seen


def _timeless(facts):
    """Without the second in which a run was made: it may be the next one for the other."""
    return dataclasses.replace(facts, made={name: said for name, said in facts.made.items() if name != "created"})


def same(one, other):
    assert one.stored == other.stored
    assert all(np.array_equal(getattr(one, name), getattr(other, name)) for name in one.stored)
    assert one.summary == other.summary and _timeless(one.info) == _timeless(other.info)
    assert (one.status, one.message, one.events) == (other.status, other.message, other.events)
    for name in ("steps", "newton_iterations", "repivots", "reference_steps"):
        assert getattr(one.statistics, name) == getattr(other.statistics, name)
    assert one.record.checkpoint.keys() == other.record.checkpoint.keys()
    for name, part in one.record.checkpoint.items():
        for key, value in part.items():
            assert np.array_equal(value, other.record.checkpoint[name][key]), (name, key)


@pytest.mark.parametrize(
    ("name", "scheme", "every", "store"),
    [
        ("simple-pendulum", "livens-em", 1, None),
        ("simple-pendulum", "ggl-variational", 5, None),
        ("simple-pendulum", "radau-iia-2", 1, ("multipliers",)),
        ("kepler", "livens-em", 1, None),
        ("kepler", "gauss-2", 2, ("p", "q")),
        ("rlc-circuit", "gauss-2", 1, None),
        ("spring-pendulum", "livens-midpoint", 10, "q"),
    ],
)
def test_it_is_the_run_step_by_step(name, scheme, every, store, watched):
    problem = lv.problems.load(name)
    plan = Plan.from_arguments(problem, scheme=scheme, t_end=problem.t0 + 50 * problem.h, every=every, store=store)
    whole = execute(plan)
    assert watched.taken == 0  # the first one compiles, and shows that nothing happens on the way
    same(execute(plan), whole)
    assert watched.taken == 1


def test_it_is_resumed_as_any_other(tmp_path, watched):
    problem = lv.problems.load("simple-pendulum")
    step = lv.prepare(problem, h=0.01)
    step.run(t_end=1.0)
    path = step.run(t_end=1.0).save(tmp_path / "short.h5")
    assert watched.taken == 1
    longer = lv.resume(path, t_end=2.0)
    assert np.array_equal(longer.q, lv.simulate(problem, h=0.01, t_end=2.0).q)


def test_what_does_not_go_smoothly_is_left_to_others(watched):
    problem = lv.problems.load("simple-pendulum")
    step, slow = lv.prepare(problem, h=0.01), lv.prepare(problem, h=0.01, tier="reference")
    for _ in range(2):
        step.run(t_end=0.105)  # its last step is shorter
        step.run(t_end=0.1, every=3)  # its last row is not regular
        step.run(t_end=0.2, events=[lv.Event(lambda q, v: q[0], "down")])
        step.run(t_end=100.0)  # it is not short
        slow.run(t_end=0.1)
    assert watched.taken + watched.left == 0


def test_a_failure_says_what_a_run_would_say(watched):
    """The motion reaches the end of where its potential is defined."""
    system = lv.System(
        "a b", kinetic=lambda v: (v @ v) / 2, potential=lambda q: -lv.math.sqrt(1 - q[0]) + q[1] ** 2 / 2
    )
    step, told = lv.prepare(system, scheme="gauss-1", h=0.01, t_end=1.0), []
    for scheme_is_known in (False, True):
        if scheme_is_known:
            step.run([0, 1], [0.1, 0])
        with pytest.raises(lv.IntegrationError) as failure:
            step.run([0, 1], [3, 0])
        told.append(failure.value)
    assert watched.left == 1 and watched.taken == 0
    assert str(told[0]) == str(told[1]) and np.array_equal(told[0].result.q, told[1].result.q)


def test_results_do_not_keep_code(watched):
    """A result knows its plan and how to find a checkpoint; the machine code goes all the same."""
    model = lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: 0.987654321 * q[0] ** 2)
    step = lv.prepare(model, h=0.1, t_end=1.0)
    step.run([1.0], [0.0])
    kept = step.run([2.0], [0.0])
    assert watched.taken == 1
    owner = weakref.ref(compiled_step(model, lv.schemes.get("livens-em")))
    compiled_module._compiled.clear()
    jit.clear_memory_cache()
    gc.collect()
    assert owner() is None
    assert kept.record.checkpoint["march"]["step"] == 10


def test_angles_of_short_runs_are_evaluated_at_all_steps(watched, monkeypatch):
    """A force that depends on the angle of a joint: one row of angles for every step, and for the start."""
    shapes, wrapped_angles = [], fast_path.wrapped_angles

    def counting(compiled, t, Z, k):
        shapes.append((len(t), len(Z)))
        return wrapped_angles(compiled, t, Z, k)

    monkeypatch.setattr(fast_path, "wrapped_angles", counting)
    mb = lv.Multibody(gravity=[0, -9.81], planar=True)
    rod = mb.rod("rod", a=[0, 0], b=[0, -1], mass=1.0)
    hinge = mb.revolute("hinge", mb.ground, rod, at=rod.a)
    mb.torsion_spring("spring", hinge, stiffness=2.0, rest_angle=0.3)
    q, v = mb.initial_state
    for t_end in (0.2, 0.1):  # the second one uses the memory of the first one
        step = lv.prepare(mb.system, h=0.01, t_end=t_end)
        for _ in range(2):
            step.run(q, v)
    assert watched.taken == 2 and shapes == [(21, 21), (11, 11)]


def test_an_explosion_is_not_taken_for_a_run(watched):
    """All steps are solved, but with a step far too long for the spring the energy grows without bound."""
    system = lv.System(
        "x y z",
        kinetic=lambda v: (v @ v) / 2,
        potential=lambda q: 5e5 * q[2] ** 2 + q[1],
        constraints=lambda q: [(q[0] ** 2 + q[1] ** 2 - 1) / 2],
    )
    step = lv.prepare(system, scheme="rattle", h=0.01, t_end=0.5)
    step.run([1, 0, 0], [0, 0, 0])  # the spring is at rest, and stays so
    with pytest.raises(lv.IntegrationError, match="blew up"):
        step.run([1, 0, 1e-3], [0, 0, 0])
    assert watched.left == 1


@pytest.mark.parametrize(
    ("h", "begin", "end", "steps", "rest"),
    [
        (0.1, 0.0, 1.0, 10, 0.0),
        (0.1, 0.0, 0.3, 3, 0.0),  # though 3 times 0.1 is more than 0.3
        (0.1, 7.0, 8.0, 10, 0.0),
        (0.25, 0.0, 1.1, 4, 0.1),
        (4.0, 0.0, 3.0, 0, 3.0),
        (4.0, -1.0, 9.0, 2, 2.0),
        (1e-3, 0.0, 1e-3 * (1 + 1e-10), 1, 0.0),  # what is left is no step
        (1e-3, 0.0, 1e-3 * (1 - 1e-10), 1, 0.0),
        (1e-3, 0.0, 1e-3 * (1 + 1e-7), 1, 1e-10),
    ],
)
def test_how_many_steps_fit(h, begin, end, steps, rest):
    """And how long the last one is, if it is shorter than the others: in all they take the time that there is."""
    found, left = split_interval(h, begin, end)
    assert found == steps and left == pytest.approx(rest, rel=1e-5, abs=1e-14)
