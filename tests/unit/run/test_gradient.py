"""Gradients of runs: the way forth, the way back and differences say the same."""

import numpy as np
import pytest

import livens as lv
from livens.run.derivatives import tape
from livens.run.derivatives.gradient import record_run
from livens.run.plan import Plan

CASES = {
    "constrained": ("simple-pendulum", "livens-em", 2000),
    "damped": ("double-four-bar-damped", "livens-em", 1200),
    "stages": ("kepler", "gauss-2", 1000),
    "explicit": ("kepler", "stormer-verlet", 1000),
}


def in_chunks(monkeypatch, steps):
    """Chunks of so many steps, all of which are computed again."""
    for name, value in dict(MIN_SEGMENT_STEPS=steps, SEGMENT_BYTES=0, STORED_BYTES=0).items():
        monkeypatch.setattr(tape, name, value)


def loss(q, v, t):
    return q[0] + 0.3 * q[1] * q[1] + 0.1 * v[0] + t


def plan_of(case):
    name, scheme, steps = CASES[case]
    problem = lv.problems.load(name)
    return problem, Plan.from_arguments(problem, scheme=scheme, t_end=problem.t0 + steps * problem.h)


@pytest.mark.parametrize("case", CASES)
def test_forth_and_back_agree(case):
    """For every direction of state and parameters, the product with the adjoint is what the tangent says."""
    _, plan = plan_of(case)
    compiled, found, _ = record_run(plan)
    random, nz = np.random.default_rng(1), compiled.layout.size
    bars = np.zeros((1, nz))
    bars[0, compiled.layout["q"]] = random.standard_normal(compiled.layout.sizes["q"])
    a, g = found.adjoint(bars)
    # consistent directions: along the parameters that are no lengths, and along what does not move at all
    dc = np.zeros((2, 2 + plan.k.size))
    names = [name for name in ("g", "m", "eta", "mu") if name in plan.model.parameter_table.entries][:2]
    for row, name in enumerate(names):
        dc[row, 2 + plan.model.parameter_table.entries[name].slices[0].start] = 1.0
    dz = np.zeros((2, nz))
    forth = found.tangents(dz, dc)[0] @ bars[0]
    back = dz @ a + dc @ g
    np.testing.assert_allclose(forth, back, rtol=1e-8, atol=1e-10 * (1 + np.abs(back).max()))


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_differences(case):
    """By initial speed along its own direction, by every coordinate, and by the parameters that matter."""
    name, scheme, steps = CASES[case]
    problem = lv.problems.load(name)
    step = lv.prepare(problem, scheme=scheme)
    t_end = problem.t0 + steps * problem.h
    value, by = lv.value_and_gradient(loss)(step, t_end=t_end)
    start = problem.start_values

    def run(parameters=None, **changed):
        return lv.value_and_gradient(loss)(
            step, t_end=t_end, parameters=parameters, project=True, **{**start, **changed}
        )[0]

    assert run() == pytest.approx(value, rel=1e-12)
    for given in by.start:
        usual = np.asarray(start[given], dtype=float)
        for i in range(min(usual.size, 3)):
            # the nearest consistent start: differences along the constraints, which are curved
            move = 1e-5 * np.eye(usual.size)[i]
            difference = (run(**{given: usual + move}) - run(**{given: usual - move})) / 2e-5
            assert by.start[given][i] == pytest.approx(difference, rel=2e-5, abs=2e-6), (given, i)
    for parameter in ("g", "m", "eta", "mu"):
        if parameter in problem.model.parameters:
            size = 1e-5 * abs(problem.model.parameters[parameter]) or 1e-5
            here = problem.model.parameters[parameter]
            difference = (run({parameter: here + size}) - run({parameter: here - size})) / (2 * size)
            assert by.parameters[parameter] == pytest.approx(difference, rel=2e-5, abs=2e-6), parameter


def test_lengths_move_the_start_with_them():
    """A longer rod needs another start: the nearest one, as with project=True."""
    problem = lv.problems.load("simple-pendulum")
    step = lv.prepare(problem, h=1e-3, t_end=1.0)
    value = lv.value_and_gradient(loss)
    _, by = value(step)
    long, short = (value(step, parameters={"l": 1.0 + d}, project=True)[0] for d in (1e-6, -1e-6))
    assert by.parameters["l"] == pytest.approx((long - short) / 2e-6, rel=1e-6)
    assert abs(by.q0 @ problem.q0) < 1e-12  # nothing is gained by a step off the rod


@pytest.mark.parametrize("kept", [0, 2**40, 200_000])
@pytest.mark.parametrize("case", CASES)
def test_checkpoints_change_no_bit(case, kept, monkeypatch):
    """Gradients with all, no or the first steps recomputed, a shorter last step, and sums."""
    in_chunks(monkeypatch, 300)
    monkeypatch.setattr(tape, "STORED_BYTES", kept)
    again, advance = [], tape.Tape.replay
    monkeypatch.setattr(
        tape.Tape, "replay", lambda self, chunk: (again.append(chunk.Z is None), advance(self, chunk))[1]
    )
    name, scheme, _ = CASES[case]
    problem = lv.problems.load(name)
    step = lv.prepare(problem, scheme=scheme)
    t_end = problem.t0 + 700.4 * problem.h
    both = [lv.value_and_gradient(loss, every=70, keep=keep)(step, t_end=t_end) for keep in ("all", "checkpoints")]
    assert sum(again) == {0: 4, 2**40: 0}.get(kept, sum(again)) and len(again) == 8
    assert both[0][0] == both[1][0]
    for given in both[0][1].start:
        np.testing.assert_array_equal(both[0][1].start[given], both[1][1].start[given])
    assert both[0][1].parameters.keys() == both[1][1].parameters.keys()
    for parameter, by in both[0][1].parameters.items():
        np.testing.assert_array_equal(by, both[1][1].parameters[parameter])


def test_a_fit_finds_the_parameters():
    """The sum of squares against data has no gradient at the truth, and points back to it beside it."""
    problem = lv.problems.load("simple-pendulum")
    step = lv.prepare(problem, h=1e-3, t_end=1.0)
    data = lv.simulate(problem, h=1e-3, t_end=1.0, every=100, parameters={"g": 9.0}).q
    misfit = lv.value_and_gradient(lambda q, d: (q[0] - d[0]) ** 2 + (q[1] - d[1]) ** 2, every=100, data=data)
    value, by = misfit(step, parameters={"g": 9.0})
    assert value < 1e-24 and abs(by.parameters["g"]) < 1e-10
    assert (
        misfit(step, parameters={"g": 9.1})[1].parameters["g"]
        > 0
        > misfit(step, parameters={"g": 8.9})[1].parameters["g"]
    )


def test_a_loss_may_depend_on_parameters():
    problem = lv.problems.load("simple-pendulum")
    step = lv.prepare(problem, h=1e-3, t_end=0.1)
    _, by = lv.value_and_gradient(lambda k: k.m**2)(step)
    assert by.parameters["m"] == pytest.approx(2.0) and by.parameters["g"] == 0.0


def test_what_has_no_gradient_is_said():
    problem = lv.problems.load("simple-pendulum")
    step = lv.prepare(problem)
    with pytest.raises(lv.InputError, match="one row for each"):
        lv.value_and_gradient(lambda q, d: q[0] - d[0], data=[1.0, 2.0])(step, t_end=0.1)
    with pytest.raises(lv.ModelError, match="one number"):
        lv.value_and_gradient(lambda q: q)(step, t_end=0.1)
    with pytest.raises(lv.InputError, match="'all' or 'checkpoints'"):
        lv.value_and_gradient(loss, keep="nothing")


def test_a_loss_is_read_once_for_many_gradients():
    """An optimiser asks for the same one many times: with other parameters, and from elsewhere."""
    read = []

    def loss(q):
        read.append(q)
        return q[0] ** 2

    step = lv.prepare(lv.problems.load("simple-pendulum"), h=1e-2, t_end=0.1)
    asked = lv.value_and_gradient(loss)
    values = [asked(step, parameters={"g": g})[0] for g in (9.0, 10.0, 11.0)]
    once = len(read)
    assert len(set(values)) == 3 and asked(step, parameters={"g": 9.0})[0] == values[0]
    lv.value_and_gradient(loss)(step)
    assert len(read) == 2 * once


def test_a_run_that_may_be_thrown_back_has_no_gradient():
    """Impacts of stops are not differentiable; a limit without restitution is a spring, which is."""
    for restitution in (0.8, None):
        mb = lv.Multibody()
        box = mb.box("box", at=[0, 0, 0], size=[0.1, 0.1, 0.1], mass=2)
        rail = mb.prismatic("rail", mb.ground, box, axis="x")
        mb.limit("end", rail, upper=1.0, stiffness=100.0, restitution=restitution)
        asked = lv.value_and_gradient(lambda q: q[0])
        q, v = mb.assembly.state
        step = lv.prepare(mb.system, h=0.01, t_end=0.1)
        if restitution:
            with pytest.raises(lv.InputError, match="joint stops with restitution act between steps"):
                asked(step, q0=q, v0=v)
        else:
            assert asked(step, q0=q, v0=v)[0] == pytest.approx(0.0, abs=1e-12)


def test_gradients_of_many_runs():
    """Each is that of the run by itself; who fails stops no other, and threads change no bit."""
    problem = lv.problems.load("simple-pendulum")
    step = lv.prepare(problem, h=0.01, t_end=0.5)
    gradient = lv.value_and_gradient(loss)
    weights, speeds = np.array([9.0, 9.5, 10.0]), np.array([[0.0, 0.1], [0.0, 0.2], [0.5, 0.3]])
    many = gradient.many(step, v0=speeds, parameters={"g": weights})
    assert list(many.failures) == [2] and "inconsistent" in many.failures[2]
    assert np.isnan(many.values[2]) and np.isnan(many.gradient.v0[2]).all()
    for i in (0, 1):
        value, by = gradient(step, v0=speeds[i], parameters={"g": weights[i]})
        assert many.values[i] == value and many.gradient.parameters["g"][i] == by.parameters["g"]
        np.testing.assert_array_equal(many.gradient.q0[i], by.q0)
    again = gradient.many(step, v0=speeds, parameters={"g": weights}, threads=3)
    np.testing.assert_array_equal(again.values, many.values)
    np.testing.assert_array_equal(again.gradient.h, many.gradient.h)
