"""Prepared runs: found by content, compiled once, used from threads, freed when nobody needs them."""

import gc
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

import livens as lv
from livens.engine import compiled_step as compiled_module
from livens.engine.codegen import jit
from livens.engine.compiled_step import compiled_step


def pendulum(power=2, **changes):
    return lv.System(
        "x y",
        kinetic=lambda v, k: 0.5 * k.m * (v @ v),
        potential=lambda q, k: k.m * k.g * q[1],
        constraints=lambda q, k: [0.5 * (q @ q - k.l**power)],
        parameters=dict(m=1.0, l=1.0, g=9.81) | changes,
    )


def compiled_for(model, scheme="livens-em"):
    return compiled_step(model, lv.schemes.get(scheme))


def test_equal_models_share_one_compiled_step():
    """Built separately, with other values of parameters: the same content. Another function is another content."""
    one = compiled_for(pendulum())
    assert compiled_for(pendulum()) is one and compiled_for(pendulum(l=3.0, g=1.6)) is one
    assert compiled_for(pendulum(power=4)) is not one
    assert compiled_for(pendulum(), "livens-midpoint") is not one
    other = lv.System("a b", kinetic=lambda v: 0.5 * (v @ v), potential=lambda q: q[1])
    assert compiled_for(other) is not one


def test_what_a_function_closes_over_counts():
    """Equal code with another constant is a different function."""

    def model(stiffness):
        return lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: stiffness * q[0] ** 2 / 2)

    assert compiled_for(model(1.0)) is compiled_for(model(1.0))
    assert compiled_for(model(1.0)) is not compiled_for(model(2.0))
    runs = [lv.simulate(model(k), [1.0], [0.0], h=0.01, t_end=1.0).q[-1, 0] for k in (1.0, 4.0)]
    assert np.abs(np.array(runs) - np.cos([1.0, 2.0])).max() < 1e-4


def test_a_prepared_run_is_the_simulated_one_and_compiles_nothing():
    step = lv.prepare(pendulum(), scheme="livens-em", h=0.01)
    for _ in range(2):  # what was run before is run again by a loop of its own, which belongs to no model
        step.run([-1, 0], [0, 0], t_end=0.1)
    before = jit.compilations
    for l in (0.5, 1.0, 2.0):  # noqa: E741
        for h in (0.01, 0.003):
            run = step.run([-l, 0], [0, 0], parameters={"l": l}, h=h, t_end=1.0)
            same = lv.simulate(pendulum(l=l), [-l, 0], [0, 0], h=h, t_end=1.0)
            assert np.abs(run.q - same.q).max() < 1e-12 and run.status == "complete"
            assert run.summary.max_constraint < 1e-13
    assert jit.compilations == before


@pytest.fixture
def no_cached_code(monkeypatch, tmp_path):
    """Empty caches of machine code, in memory and on disk."""
    monkeypatch.setenv("LIVENS_CACHE_DIR", str(tmp_path))
    jit.clear_memory_cache()
    compiled_module._compiled.clear()


def oscillating(stiffness, **options):
    """A step of a model that nothing else has compiled."""
    model = lv.System(
        "x y",
        kinetic=lambda v: v @ v / 2,
        potential=lambda q: stiffness * q[1],
        constraints=lambda q: [(q @ q - 1) / 2],
    )
    return lv.prepare(model, "livens-em", h=0.01, t_end=0.1, **options)


def test_the_first_run_of_a_prepared_step_compiles_nothing(no_cached_code):
    problem = lv.problems.load("simple-pendulum")
    lv.prepare(problem, h=0.01, t_end=0.1).run()  # compiles the loops that belong to no model
    for stiffness, options in ((1.25, dict(q0=[1.0, 0.0], v0=[0.0, 0.0])), (2.25, dict(q0=[1.0, 0.0], v0=[0.0, 1.0]))):
        step = oscillating(stiffness, **options)
        before = jit.compilations
        assert step.run().status == "complete"
        assert jit.compilations == before


def test_a_prepared_step_without_initial_values_compiles_all_but_the_newton_kernel(no_cached_code):
    oscillating(1.25, q0=[1.0, 0.0], v0=[0.0, 0.0]).run()  # compiles the loops that belong to no model
    step, lazy = oscillating(3.25), oscillating(4.25, compile=False)
    before = jit.compilations
    step.run([1.0, 0.0], [0.0, 0.0])
    compiled_late = jit.compilations - before
    before = jit.compilations
    lazy.run([1.0, 0.0], [0.0, 0.0])
    assert 0 < compiled_late <= 4 < jit.compilations - before


def test_initial_values_of_prepare_are_defaults_of_its_runs():
    step = oscillating(1.25, q0=[1.0, 0.0], v0=[0.0, 0.0])
    plain = oscillating(1.25)
    for values in ((), ([0.0, 1.0],), ([0.0, 1.0], [1.0, 0.0])):
        given = dict(zip(("q0", "v0"), values, strict=False))
        expected = plain.run(**{**dict(q0=[1.0, 0.0], v0=[0.0, 0.0]), **given})
        assert np.array_equal(step.run(**given).q, expected.q)
        assert np.array_equal(step.start(**given).q, expected.q[0])


def test_prepare_leaves_errors_of_initial_values_to_the_run():
    step = oscillating(1.25, q0=[1.0, 0.5], v0=[0.0, 0.0])
    with pytest.raises(lv.InputError, match="inconsistent initial values"):
        step.run()
    assert step.run(q0=[1.0, 0.0]).status == "complete"


def test_runs_do_not_depend_on_what_ran_before():
    """Bit for bit: what is remembered is never another answer."""
    first = lv.simulate(pendulum(), [-1, 0], [0, 0], h=0.01, t_end=2.0)
    lv.simulate(pendulum(l=7.0), [-7, 0], [0, 0], h=0.1, t_end=2.0)
    lv.simulate(pendulum(m=1e-6), [0, -1], [3, 0], h=0.02, t_end=2.0)
    again = lv.simulate(pendulum(), [-1, 0], [0, 0], h=0.01, t_end=2.0)
    assert np.array_equal(first.q, again.q) and np.array_equal(first.multipliers, again.multipliers)


@pytest.mark.parametrize("scheme", ["livens-em", "gauss-2", "stormer-verlet", "sundman"])
def test_one_step_at_a_time(scheme):
    """A loop of one's own takes the steps of a run, bit for bit."""
    problem = lv.problems.load("kepler" if scheme != "livens-em" else "simple-pendulum")
    step = lv.prepare(problem, scheme=scheme, h=0.01)
    run = step.run(t_end=0.205)
    state = step.start()
    for n in range(20):
        assert np.array_equal(state.q, run.q[n]) and np.array_equal(state.p, run.p[n])
        assert state.t == pytest.approx(run.t[n], abs=1e-15)
        old = state
        state = step.step(state)
        assert np.array_equal(old.q, run.q[n])  # states are values
    with pytest.raises(AttributeError, match="only t, q, v"):
        state.nothing  # noqa: B018
    with pytest.raises(lv.InputError, match="a state returned by `start` or `step`"):
        step.step([1.0])
    with pytest.raises(lv.InputError, match="h must be greater than 0"):
        step.step(state, h=-1.0)


def test_several_threads_at_once():
    """Each thread gets the run it would get alone, also where pivots are chosen anew in several of them."""
    step = lv.prepare(lv.problems.load("double-four-bar"), h=1e-3, t_end=1.5)
    speeds = (0.8, 1.0, 1.2, 1.4)
    starts = [(step.model, lv.problems.load("double-four-bar", speed=speed)) for speed in speeds]
    alone = [step.run(problem.q0, problem.v0) for _, problem in starts]
    found, errors = [None] * len(starts), []

    def work(i):
        try:
            found[i] = step.run(starts[i][1].q0, starts[i][1].v0)
        except Exception as error:  # shown below
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(starts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for one, other in zip(alone, found, strict=True):
        assert np.array_equal(one.q, other.q) and one.statistics.newton_iterations == other.statistics.newton_iterations


def test_code_is_freed_with_its_owner():
    """Compiled steps and their machine code go when nobody can find them any more."""
    model = lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: 0.123456789 * q[0] ** 2)
    lv.simulate(model, [1.0], [0.0], h=0.1, t_end=1.0)
    step = compiled_for(model)
    codes = [weakref.ref(code) for code in step._code.values()]
    owner = weakref.ref(step)
    assert all(code() is not None for code in codes)
    del step
    compiled_module._compiled.clear()
    jit.clear_memory_cache()
    gc.collect()
    assert owner() is None and all(code() is None for code in codes)


def test_what_is_kept_is_bounded():
    for i in range(3 * compiled_module._MAX_CACHED_STEPS):
        compiled_for(lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q, i=i: (1 + i) * q[0] ** 2))
    assert len(compiled_module._compiled) == compiled_module._MAX_CACHED_STEPS
    assert len(jit._recent) <= jit._MAX_RECENT


MEMORY = """
import gc, resource, sys
import livens as lv
def grown(first, last):
    for i in range(first, last):
        model = lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: (1 + i / 1000) * q[0] ** 2 / 2)
        lv.simulate(model, [1.0], [0.0], h=0.1, t_end=1.0)
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6
before = grown(0, 80)
print(grown(80, 200) - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_stays_flat(tmp_path):
    """Hundreds of different models in one process; `make bench` has two thousand.

    All of them are compiled: if only the last ones were, the compiler itself would be what has grown.
    """
    fresh = {**os.environ, "LIVENS_CACHE_DIR": str(tmp_path)}
    told = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True, env=fresh)
    assert float(told.stdout) < 10.0  # megabytes for 120 models; kept code and graphs of each take 0.3


def test_bad_input():
    with pytest.raises(lv.InputError, match="prepare needs a model"):
        lv.prepare("simple-pendulum")
    with pytest.raises(lv.InputError, match="unknown scheme"):
        lv.prepare(pendulum(), scheme="livens-emm")
    step = lv.prepare(pendulum(), h=0.01)
    with pytest.raises(lv.InputError, match="t_end is missing"):
        step.run([-1, 0], [0, 0])
    with pytest.raises(lv.InputError, match="unknown parameter 'll'"):
        step.run([-1, 0], [0, 0], parameters={"ll": 1.0}, t_end=1.0)
    with pytest.raises(lv.InputError, match="inconsistent initial values"):
        step.run([-1, 0.1], [0, 0], t_end=1.0)


@pytest.mark.parametrize("name", ["hinge-chain", "double-four-bar", "kepler"])
def test_every_tier_is_prepared(name):
    """The step that prepares is taken and monitored as the steps of a run."""
    problem = lv.problems.load(name)
    step = lv.prepare(problem, t_end=problem.t0 + 3 * problem.h)
    before = jit.compilations
    assert step.run().status == "complete"
    assert jit.compilations == before
