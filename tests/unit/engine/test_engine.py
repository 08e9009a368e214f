"""Nothing is compiled twice, the pivot order follows the numbers, and chunks do not change a run."""

import numpy as np
import pytest

import livens as lv
from livens.engine.codegen import jit
from livens.engine.compiled_step import compiled_step
from livens.engine.lowering.function import lowered
from livens.engine.lowering.types import F64Array
from livens.engine.newton.adaptive_step import _predict_unknowns
from livens.engine.newton.error_estimate import compare_double_step, lu_solve_inplace
from livens.engine.newton.iteration import HISTORY, StepKernels, Workspace, kernel_names
from livens.engine.newton.step_size_control import (
    ERROR_LAST,
    H_LAST,
    N_EQUAL,
    NOT_ESTIMATED,
    StepSizeController,
    initial_controller_state,
    on_accept,
)
from livens.engine.newton.time_loop import StepPolicy
from livens.engine.newton.workspace_layout import newton_offsets
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


# -- control of the step size --------------------------------------------------------------------------------------
def doubling_controller(tolerance=1e-3):
    """Controller of one position whose error is estimated by a double step."""
    zero = np.zeros(1)
    return StepSizeController(0.0, np.inf, 0.5, 2.0, 1, zero + tolerance, zero, zero, 2, False, doubling_order=2,
                              scale_groups=np.zeros(1, dtype=np.int64))  # fmt: skip


def test_a_comparison_with_a_double_step_leaves_the_position_before_the_last_step():
    """The position to which the double step leads back is replaced by the position before the last step."""
    controller_state = initial_controller_state(1.0).view(float)
    controller_state[H_LAST] = 0.5
    z_double, estimate = np.array([0.9]), np.array([0.2, 0.0])
    compare_double_step(
        doubling_controller(), controller_state, estimate, z_double, np.array([1.0]), np.array([3.0]), 1.0
    )
    assert z_double == pytest.approx([0.2], abs=1e-15)
    assert estimate[0] == pytest.approx(0.7 / (1.5**3 - 1 - 0.5**3), rel=1e-14)


@pytest.mark.parametrize("h_last", [0.01, 10.0])
@pytest.mark.parametrize(("ratio", "n_equal"), [(1.0, 4.0), (1.2, 4.0), (0.8, 4.0), (1.3, 1.0), (0.7, 1.0)])
def test_sizes_that_change_slowly_are_counted_as_equal(h_last, ratio, n_equal):
    """The change of the size is relative to the last size, in any unit of time."""
    controller_state = initial_controller_state(h_last).view(float)
    controller_state[H_LAST], controller_state[N_EQUAL] = h_last, 3.0
    on_accept(doubling_controller(), controller_state, ratio * h_last, 0.5, False)
    assert controller_state[N_EQUAL] == n_equal


@lowered
def _accepted(x: F64Array, z: F64Array, c: F64Array, r: F64Array, out: F64Array) -> None:
    out[0] = 1.0


def test_adaptive_steps_predict_into_their_own_row_of_the_workspace():
    """The flag of a prediction changes nothing else in the workspace: neither Newton update nor round-off bounds."""
    n, offsets, memory = 3, newton_offsets(3), np.zeros(40)
    work = memory[10 : 10 + offsets.n_rows]
    w = Workspace(
        c=np.zeros(2),
        Z=np.zeros((2, n)),
        X=np.zeros((HISTORY + 1, n)),
        t=np.zeros(2),
        newton_iterations=np.zeros(1, dtype=np.int64),
        work=work,
        newton_update=np.zeros(n),
        inv_roundoff=np.ones(n),
        r=np.zeros(n + 1),
        estimate=np.zeros(0),
        group_sizes=np.array([n]),
    )
    kernels = StepKernels(**{name: _accepted.address if name == "predict" else 0 for name in kernel_names()})
    controller_state = initial_controller_state(0.1).view(float)
    controller_state[H_LAST], controller_state[N_EQUAL] = 0.1, HISTORY
    assert _predict_unknowns(kernels, controller_state, w, 0, 0.1, False)
    assert np.flatnonzero(memory).tolist() == [10 + offsets.predictor_ok]


@pytest.mark.parametrize(("error", "stored"), [(0.5, 0.5), (1.0, 1.0), (NOT_ESTIMATED, 0.0)])
def test_only_estimated_errors_are_stored(error, stored):
    """Every error from zero to the tolerance is an estimate; the mark of a step without one is none."""
    controller_state = initial_controller_state(1.0).view(float)
    on_accept(doubling_controller(), controller_state, 1.0, error, False)
    assert controller_state[ERROR_LAST] == stored


def test_adaptive_steps_at_negative_times_are_those_at_positive_times():
    """A run from -3 s to -1 s takes the steps of a run from 0 s to 2 s, and ends exactly at its end."""
    problem = lv.problems.load("simple-pendulum")
    early, late = (lv.simulate(problem, t0=t0, t_end=t0 + 2.0, tolerance=1e-4) for t0 in (-3.0, 0.0))
    assert early.t[-1] == -1.0 and late.t[-1] == 2.0 and len(early.t) > 5
    assert early.t + 3.0 == pytest.approx(late.t, abs=1e-9) and np.abs(early.q - late.q).max() < 1e-9
