"""Fast path of prepared runs with step-size control: bit-equal to the driver, including statistics and limits."""

import dataclasses

import numpy as np
import pytest

import livens as lv
from livens.run import fast_path
from livens.run.simulate import execute

ORBIT = lv.FirstOrder(
    "x y u v",
    rhs=lambda x, k: [x[2], x[3], *(-k.mu * x[i] / (x[0] ** 2 + x[1] ** 2) ** 1.5 for i in (0, 1))],
    parameters=dict(mu=1.0),
    invariants=dict(momentum=lambda x: x[0] * x[3] - x[1] * x[2]),
)
PENDULUM = lv.System(
    "x y",
    kinetic=lambda v: 0.5 * (v @ v),
    potential=lambda q: 9.81 * q[1],
    constraints=lambda q: [0.5 * (q @ q - 1.0)],
)
SWITCHED = lv.FirstOrder("x", rhs=lambda t, x: [lv.math.where(t < 1.5, 1.0, -x[0])])
TOLERANCE = lv.StepControl(tolerance=1e-7)
CASES = {
    "taylor": (ORBIT, dict(x0=[1.0, 0.0, 0.0, 1.2]), TOLERANCE),
    "taylor with a limit": (ORBIT, dict(x0=[1.0, 0.0, 0.0, 1.2]), lv.StepControl(tolerance=1e-7, most_steps=7)),
    "radau-iia-3": (ORBIT, dict(x0=[1.0, 0.0, 0.0, 1.2]), TOLERANCE),
    "radau": (ORBIT, dict(x0=[1.0, 0.0, 0.0, 1.2]), TOLERANCE),
    "gauss-2": (SWITCHED, dict(x0=[0.0]), TOLERANCE),
    "radau-iia-2": (SWITCHED, dict(x0=[0.0]), TOLERANCE),
    "livens-em": (PENDULUM, dict(q0=[1.0, 0.0], v0=[0.0, 0.0], h=0.01), lv.StepControl(largest=0.02)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_fast_path_equals_the_driver_bit_for_bit(name, monkeypatch):
    model, start, control = CASES[name]
    step = lv.prepare(model, name.split()[0], t_end=4.0, control=control, **start)
    expected = step.run()
    used = []
    original = fast_path._run_adaptive
    monkeypatch.setattr(fast_path, "_run_adaptive", lambda *a: used.append(original(*a)) or used[-1])
    got = step.run()
    assert used and used[0] is got
    reference = execute(step._make_plan({}), events=(), allow_fast_path=False)
    for run in (expected, reference):
        assert got.status == run.status and got.message == run.message
        for variable in got.info.stored:
            np.testing.assert_array_equal(got[variable], run[variable], err_msg=variable)
        assert got.summary == run.summary
        times = ("wall_s", "compile_s")
        got_counts, counts = (dataclasses.asdict(r.statistics) for r in (got, run))
        assert {k: v for k, v in got_counts.items() if k not in times} == {
            k: v for k, v in counts.items() if k not in times
        }


def test_other_parameters_and_initial_values():
    step = lv.prepare(ORBIT, "taylor", t_end=2.0, control=TOLERANCE)
    step.run(x0=[1.0, 0.0, 0.0, 1.0])
    for mu in (0.5, 2.0):
        run = step.run(x0=[2.0, 0.0, 0.0, 0.5], parameters={"mu": mu})
        expected = lv.simulate(
            ORBIT, x0=[2.0, 0.0, 0.0, 0.5], parameters={"mu": mu}, scheme="taylor", t_end=2.0, control=TOLERANCE
        )
        np.testing.assert_array_equal(run.x, expected.x)
        assert run.info.parameters["mu"] == mu


def test_failures_are_those_of_the_driver():
    collapse = lv.FirstOrder("x", rhs=lambda x: [x[0] ** 2])  # infinite at t = 1
    step = lv.prepare(collapse, "taylor", x0=[1.0], control=TOLERANCE)
    step.run(t_end=0.5)
    for _ in range(2):
        with pytest.raises(lv.IntegrationError) as caught:
            step.run(t_end=2.0)
        assert caught.value.result.t[-1] == pytest.approx(1.0, abs=1e-6)


def test_a_run_of_the_fast_path_is_resumed(tmp_path):
    step = lv.prepare(ORBIT, "taylor", x0=[1.0, 0.0, 0.0, 1.2], control=TOLERANCE)
    step.run(t_end=2.0)
    step.run(t_end=2.0).save(tmp_path / "short.h5")
    resumed = lv.resume(tmp_path / "short.h5", t_end=4.0, system=ORBIT)
    np.testing.assert_array_equal(resumed.x, step.run(t_end=4.0).x)


def test_dense_output_and_long_runs():
    step = lv.prepare(ORBIT, "taylor", x0=[1.0, 0.0, 0.0, 1.2], control=TOLERANCE)
    step.run(t_end=2.0)
    np.testing.assert_allclose(step.run(t_end=2.0).at([1.0]).x, step.run(t_end=1.0).x[-1:], atol=1e-7)
    long = lv.prepare(
        ORBIT, "radau-iia-2", x0=[1.0, 0.0, 0.0, 1.2], control=lv.StepControl(tolerance=1e-6, largest=1e-3)
    )
    first, second = long.run(t_end=6.0), long.run(t_end=6.0)
    assert first.t.size > 4097
    np.testing.assert_array_equal(first.x, second.x)
