"""Lifetime of machine code: steppers call functions by address, and the code is freed with its compiled step."""

import gc
import weakref

import numpy as np
import pytest

import livens as lv
from livens import schemes
from livens.engine import compiled_step
from livens.engine.codegen import jit
from livens.engine.newton.step_size_control import initial_controller_state
from livens.engine.newton.time_loop import StepPolicy
from livens.engine.stepper import IntegratorState

H = 1e-3


def clear_caches():
    compiled_step._compiled.clear()
    jit.clear_memory_cache()
    gc.collect()


def test_an_explicit_stepper_keeps_its_code():
    """A stepper outlives the caches of compiled steps, as in programs that compile many models."""
    problem, scheme = lv.problems.load("kepler"), schemes.get("stormer-verlet")
    system, k = problem.model, problem.model.parameter_vector()
    compiled = compiled_step.compiled_step(system, scheme)
    initial = system.initial_state({"q0": problem.q0, "v0": problem.v0}, k, 0.0, False, "error").values
    z = compiled.layout.pack({**initial, **scheme.initial_scheme_state(system, initial, k, 0.0, H)})
    stepper = compiled.make_stepper("fused", k)
    freed = weakref.ref(compiled)
    state = IntegratorState.initial(0.0, z, np.zeros(0))
    del compiled
    clear_caches()
    assert freed() is not None
    chunk = stepper.advance(state, 20, StepPolicy(False, H, 0.0, 0), initial_controller_state(H))
    assert chunk.failure is None and np.isfinite(chunk.final.z).all()


@pytest.mark.parametrize("scheme", ["stormer-verlet", "livens-midpoint", "gauss-2", "taylor", "step-density"])
def test_a_prepared_run_keeps_its_code(scheme):
    problem = lv.problems.load("kepler")
    prepared = lv.prepare(problem, scheme=scheme, h=1e-2)
    first = prepared.run(problem.q0, problem.v0, t_end=1.0).q[-1]
    clear_caches()
    np.testing.assert_array_equal(prepared.run(problem.q0, problem.v0, t_end=1.0).q[-1], first)
