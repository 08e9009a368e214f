"""Nothing is compiled twice, the pivot order follows the numbers, and chunks do not change a run."""

import numpy as np
import pytest

import livens as lv
from livens.engine.codegen import jit
from livens.engine.compiled_step import compiled_step
from livens.engine.newton.step_size_control import initial_controller_state, lu_solve_inplace
from livens.engine.newton.time_loop import StepPolicy
from livens.engine.stepper import IntegratorState
from livens.engine.steppers.fused import FusedStepper
from livens.engine.steppers.reference import ReferenceStepper


def equal(first):
    """Steps of 1e-3 from t = 0."""
    return StepPolicy(False, 1e-3, 0.0, first)


def test_parameters_and_step_do_not_recompile():
    """h, t and parameters are run-time inputs; only a new model compiles."""
    problem = lv.problems.load("mass-spring-redundant")
    lv.simulate(problem)
    before = jit.compilations
    for m2, h in [(0.5, 0.1), (3.0, 0.05), (1.0, 0.025)]:
        run = lv.simulate(problem, h=h, parameters=dict(m=[2.0, m2]))
        assert run.summary.max_energy_drift < 1e-13
    assert jit.compilations == before


def test_parameters_change_the_motion():
    """... and they are really used."""
    problem = lv.problems.load("mass-spring-redundant")
    light, heavy = (lv.simulate(problem, parameters=dict(m=[2.0, m2])).q[-1] for m2 in (1.0, 3.0))
    assert np.abs(light - heavy).max() > 1e-2
    again = lv.simulate(lv.problems.load("mass-spring-redundant", m=[2.0, 3.0]))
    assert np.array_equal(again.q[-1], heavy)


def test_pivot_order_is_chosen_anew():
    """A pivot that nearly vanishes on the way: the order is given up there, and the steps come out the same.

    The pendulum swings through its lowest point, x = 0 within 1e-9 at the end of the third step. The order that is
    forced here eliminates v_x with the constraint, whose entry there is x.
    """
    problem = lv.problems.load("simple-pendulum")
    compiled = compiled_step(problem.model, lv.schemes.get("livens-em"))
    k = problem.model.parameter_vector()
    c = np.concatenate([[1e-3, 0.0], k])
    lowest = lv.simulate(problem.model, [0.0, -1.0], [-1.0, 0.0], h=1e-3, t_end=3e-3)  # symmetric in time: turn back
    q, v = lowest.q[-1], -lowest.v[-1]
    z = np.concatenate([q, v, v, [0.0, 0.0, 0.0]])
    x = np.concatenate([v, lowest.multipliers[-1]])
    stepper = FusedStepper(compiled, k, compiled.pivot_order_for(x, z, c))
    forced = ((2, 1, 0), (0, 1, 2))
    stepper.order = forced
    steps = stepper.advance(IntegratorState.initial(0.0, z, x), 100, equal(0), initial_controller_state(1e-3))
    assert abs(steps.end_states[2, 0]) < 1e-9
    assert steps.failure is None and steps.n_steps == 100
    assert stepper.statistics.repivots >= 1 and stepper.order != forced
    Z = steps.end_states.copy()
    reference = ReferenceStepper(compiled.flat_equations, k).advance(
        IntegratorState.initial(0.0, z, x), 100, equal(0), initial_controller_state(1e-3)
    )
    assert np.abs(Z[:, :2] - reference.end_states[:, :2]).max() < 1e-13


def test_an_order_with_exactly_zero_pivot_is_given_up():
    """Division by zero in the elimination: infinities and NaN are noticed, not accepted."""
    problem = lv.problems.load("simple-pendulum")
    compiled = compiled_step(problem.model, lv.schemes.get("livens-midpoint"))
    k = problem.model.parameter_vector()
    c = np.concatenate([[1e-3, 0.0], k])
    z = np.concatenate([[0.0, -1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0, 0.0]])
    x = np.zeros(3)
    stepper = FusedStepper(compiled, k, compiled.pivot_order_for(x, z, c))
    stepper.order = ((2, 1, 0), (0, 1, 2))
    steps = stepper.advance(IntegratorState.initial(0.0, z, x), 10, equal(0), initial_controller_state(1e-3))
    assert steps.failure is None and steps.n_steps == 10
    assert stepper.statistics.repivots + stepper.statistics.fallback_steps >= 1
    assert np.all(np.isfinite(steps.end_states))


def test_chunks_do_not_change_the_run():
    """Bit for bit: the carried numbers are all there is."""
    problem = lv.problems.load("double-four-bar")
    compiled = compiled_step(problem.model, lv.schemes.get("livens-em"))
    run = lv.simulate(problem, t_end=0.3)
    k = problem.model.parameter_vector()
    c = np.concatenate([[1e-3, 0.0], k])
    z = np.concatenate([problem.q0, problem.v0, run.p[0], [0.0, 0.0], run.multipliers[0]])
    x = np.concatenate([problem.v0, run.multipliers[0]])
    stepper = FusedStepper(compiled, k, compiled.pivot_order_for(x, z, c))
    carry, done, random = IntegratorState.initial(0.0, z, x), 0, np.random.default_rng(1)
    while done < 300:
        count = min(int(random.integers(1, 60)), 300 - done)
        steps = stepper.advance(carry, count, equal(done), initial_controller_state(1e-3))
        assert np.array_equal(steps.end_states[:, :30], run.q[done + 1 : done + count + 1])
        carry, done = steps.final, done + count


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_dense_equations_are_solved_in_any_order_of_their_rows(n):
    """With zeros on the diagonal, and with rows of very different lengths: as LAPACK does."""
    random = np.random.default_rng(n)
    A = random.standard_normal((n, n)) + 3 * np.roll(np.eye(n), 1, axis=0)
    A[np.arange(n), np.arange(n)] *= n == 1
    A *= 10.0 ** random.integers(-6, 7, n)[:, None]
    b = random.standard_normal(n)
    x = b.copy()
    assert lu_solve_inplace(A.copy(), x, n, np.empty(n))
    assert x == pytest.approx(np.linalg.solve(A, b), rel=1e-9)


@pytest.mark.parametrize("A", [[[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [1.0, 1.0]], [[np.nan, 1.0], [1.0, 1.0]]])
def test_dense_equations_without_a_solution_are_refused(A):
    assert not lu_solve_inplace(np.array(A), np.ones(2), 2, np.empty(2))
