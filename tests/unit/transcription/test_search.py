"""Search: derivatives, guesses, interruption, refinement, several starts, and what is reported."""

import signal
import subprocess
import sys
import time

import casadi as ca
import numpy as np
import pytest

import livens as lv
from livens import math as m
from livens.run.progress import Progress
from livens.transcription.control_problem import control_problem, mesh_fractions
from livens.transcription.energy_guess import _FeedbackModel
from livens.transcription.guess import initial_guess
from livens.transcription.stage import StageModel
from livens.transcription.transcription import Transcription


def cart_pole():
    return lv.problems.load("cart-pole-swing-up")


def test_derivatives_of_the_program():
    """Gathered gradient, Jacobian and Hessian equal those that CasADi derives from the whole program."""
    problem = cart_pole()
    arguments = dict.fromkeys(("periodic", "final", "free", "parameters", "scheme", "shape"))
    arguments |= {name: value for name, value in problem.control.items() if name != "steps"}
    arguments |= dict(scheme="gauss-2", t_end=(1.5, 2.5), free={"m": (0.1, 1.0)})
    parsed = control_problem(problem, minimise={"effort": 1.0, "time": 3.0}, guess=None, t0=0.0, **arguments)
    transcription = Transcription(StageModel(parsed), mesh_fractions(4, [1, 2, 1, 3]))
    w = initial_guess(transcription, None)
    w = w + 0.1 * np.random.default_rng(1).standard_normal(w.size)
    program = transcription.program.scaled(w)
    x, f, g = program._x, program._f, program._g
    lam = np.random.default_rng(2).standard_normal(program.n_constraints)
    scaled = w / program.scale
    gradient = ca.Function("gradient", [x], [ca.gradient(f, x)])(scaled)
    np.testing.assert_allclose(
        np.array(program.derivatives["grad_f"](scaled, [])[1]).ravel(), np.array(gradient).ravel(), atol=1e-10
    )
    jacobian = ca.Function("jacobian", [x], [ca.jacobian(g, x)])(scaled)
    np.testing.assert_allclose(
        np.array(ca.DM(program.derivatives["jac_g"](scaled, [])[1])), np.array(ca.DM(jacobian)), atol=1e-10
    )
    hessian = ca.Function("hessian", [x], [ca.hessian(1.7 * f + ca.dot(lam, g), x)[0]])(scaled)
    upper = np.array(ca.DM(program.derivatives["hess_lag"](scaled, [], 1.7, lam)))
    np.testing.assert_allclose(upper, np.triu(np.array(ca.DM(hessian))), atol=1e-8)


def test_a_motion_as_guess_continues_the_search():
    """An unfinished search is not converged; it continues from its motion to the same optimum."""
    whole = lv.optimal_control(cart_pole())
    part = lv.optimal_control(cart_pole(), ipopt=dict(max_iter=4))
    assert whole.converged
    assert not part.converged
    assert "Maximum_Iterations" in part.message
    resumed = lv.optimal_control(cart_pole(), guess=part)
    assert resumed.converged
    assert resumed.cost == pytest.approx(whole.cost, rel=1e-8)
    again = lv.optimal_control(cart_pole(), guess=whole)
    assert again.statistics["iterations"] <= whole.statistics["iterations"]


def test_ctrl_c_returns_the_best_iterate(monkeypatch):
    update = Progress.update

    def interrupting(self, done, note=""):
        if done == 5:
            signal.raise_signal(signal.SIGINT)
        update(self, done, note)

    monkeypatch.setattr(Progress, "update", interrupting)
    before = signal.getsignal(signal.SIGINT)
    motion = lv.optimal_control(cart_pole())
    assert signal.getsignal(signal.SIGINT) is before
    assert not motion.converged
    assert motion.statistics["status"] == "Interrupted"
    assert "guess=motion" in motion.message
    assert motion.statistics["violation"] <= motion.statistics["history"][:, 1].min() * (1 + 1e-6) + 1e-8
    monkeypatch.undo()
    resumed = lv.optimal_control(cart_pole(), guess=motion)
    whole = lv.optimal_control(cart_pole())
    assert resumed.converged
    assert resumed.cost == pytest.approx(whole.cost, rel=1e-8)
    np.testing.assert_allclose(resumed.q, whole.q, atol=1e-6)


_INTERRUPTED_SCRIPT = """
import pathlib, sys
import livens as lv
from livens.run.progress import Progress

update, started = Progress.update, pathlib.Path(sys.argv[1])

def signalling(self, done, note=""):
    started.touch()
    update(self, done, note)

Progress.update = signalling
problem = lv.problems.load("acrobot-swing-up")
motion = lv.optimal_control(problem, steps=400, scheme="gauss-3", ipopt={"tol": 1e-30, "max_iter": 100_000})
print(motion.statistics["status"], motion.converged)
motion.to_result().save(sys.argv[2])
"""


def test_ctrl_c_of_a_process_and_continuation_in_another(tmp_path):
    """A process that receives SIGINT ends with its best iterate, from whose file another search continues."""
    started, file = tmp_path / "started", tmp_path / "motion.h5"
    process = subprocess.Popen(
        [sys.executable, "-c", _INTERRUPTED_SCRIPT, str(started), str(file)], stdout=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while not started.exists() and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    assert output.split() == ["Interrupted", "False"]
    assert process.returncode == 0
    resumed = lv.optimal_control(lv.problems.load("acrobot-swing-up"), steps=40, guess=lv.load(file))
    assert resumed.converged


def test_progress_contains_iterations_and_infeasibility(monkeypatch):
    notes = []
    monkeypatch.setattr(Progress, "update", lambda self, done, note="": notes.append((done, note)))
    motion = lv.optimal_control(cart_pole(), steps=10)
    violations = motion.statistics["history"][:, 1]
    assert notes == [(i + 1, f"infeasibility {violation:.1e}") for i, violation in enumerate(violations)]


def test_guesses_from_runs_and_from_motions_with_other_schemes_and_meshes():
    coarse = lv.optimal_control(cart_pole(), steps=20)
    fine = lv.optimal_control(cart_pole(), scheme="gauss-3", steps=30, guess=coarse)
    assert fine.converged
    assert fine.cost == pytest.approx(58.8077, rel=1e-5)
    run = lv.simulate(cart_pole(), t_end=2.0, h=0.02)
    assert lv.optimal_control(cart_pole(), guess=run).converged
    replayed = lv.optimal_control(cart_pole(), guess=fine.replay().result, scheme="gauss-3")
    assert replayed.cost == pytest.approx(58.8077, rel=1e-5)


def test_refinement_follows_the_error():
    coarse = lv.optimal_control(cart_pole(), steps=20)
    fine = coarse.refined(1e-3)
    assert coarse.accuracy() > 1e-3
    assert fine.accuracy() <= 1e-3
    assert fine.converged
    assert len(fine.h) < 100
    assert fine.h.max() > 1.9 * fine.h.min()
    assert abs(fine.cost - 58.8077) < abs(coarse.cost - 58.8077)
    assert fine.replay().one_step_defect < 1e-13


def test_several_starts():
    motion = lv.optimal_control(cart_pole(), starts=4)
    costs = [other.cost for other in motion.alternatives if other.converged]
    assert len(motion.alternatives) == 4
    assert motion.cost == min(costs)
    assert motion.cost <= 59.9480


def test_several_starts_in_processes_have_the_same_solutions():
    serial = lv.optimal_control(cart_pole(), steps=20, starts=3)
    parallel = lv.optimal_control(cart_pole(), steps=20, starts=3, n_workers=2)
    assert len(parallel.alternatives) == 3
    for one, other in zip(serial.alternatives, parallel.alternatives, strict=True):
        np.testing.assert_array_equal(one.solution.w, other.solution.w)
    assert parallel.replay().defect < 1e-11


def test_an_interrupted_multi_start_returns_the_guess(monkeypatch):
    """Ctrl-C before the first solution: the guess is returned as a motion that did not converge."""

    def interrupt(pool, tasks):
        raise KeyboardInterrupt

    monkeypatch.setattr("livens.transcription.search.ProcessPool.map_unordered", interrupt)
    motion = lv.optimal_control(cart_pole(), steps=10, starts=3, n_workers=2)
    assert not motion.converged
    assert "interrupted" in motion.message


@pytest.mark.parametrize("t_end", [2.0, (1.0, 2.0)])
def test_homotopy_in_the_end_time(t_end):
    """Solved first with longer end times, the motion keeps the given end time and is an optimum."""
    relaxed = lv.optimal_control(
        cart_pole(), steps=20, t_end=t_end, relaxation={"t_end": (1.5, 1.2), "inputs": (2.0, 1.0)}
    )
    plain = lv.optimal_control(cart_pole(), steps=20, t_end=t_end, guess=relaxed)
    assert relaxed.converged
    assert relaxed.t_end == pytest.approx(2.0, abs=1e-6)
    assert np.abs(relaxed.u).max() <= 20 * (1 + 1e-7)
    assert plain.cost == pytest.approx(relaxed.cost, rel=1e-7)


@pytest.mark.parametrize(("name", "bound"), [("cart-pole-swing-up", 8.0), ("acrobot-swing-up", 6.0)])
@pytest.mark.parametrize("scheme", ["livens-variational", "livens-em"])
def test_energy_shaping_guess(name, bound, scheme):
    """Swing-ups with tight bounds of the input converge from a simulation with energy-shaping control."""
    problem = lv.problems.load(name, bound=bound)
    motion = lv.optimal_control(problem, guess="energy", scheme=scheme, steps=40)
    assert motion.converged
    assert np.abs(motion.u).max() <= bound * (1 + 1e-7)
    assert motion.replay().one_step_defect < 1e-10  # tolerance of the constraints


@pytest.mark.parametrize("name", ["cart-pole-swing-up", "acrobot-swing-up"])
def test_energy_shaping_raises_the_energy(name):
    """The feedback law of the guess brings the energy from that of the start to that of the end."""
    problem = lv.problems.load(name)
    motion = lv.optimal_control(problem, steps=4, ipopt=dict(max_iter=0))
    feedback = _FeedbackModel(motion.transcription.problem, problem.model)
    target = motion.transcription.problem.end_values("q")
    gap, direction = feedback.start(np.zeros(2), np.zeros(2), target, np.zeros(2))
    energy = ca.Function("energy", [feedback._q, feedback._v, feedback._t, feedback._u], [feedback._energy])
    step = feedback.step(0.01)
    gaps = []
    for frequency in (2.0, 4.0):
        gains = [1 / gap, 1.1 / feedback.mobility, 0.2 * frequency, frequency**2]
        state = np.concatenate([np.zeros(2), direction])
        for i in range(1500):
            state = np.array(step(state, 0.01 * i, np.concatenate([gains, target, np.zeros(2)]))[0]).ravel()
            difference = energy(state[:2], state[2:], 0.0, 0.0) - energy(target, np.zeros(2), 0.0, 0.0)
            gaps.append(abs(float(difference)) / gap)
    assert gaps[0] > 0.9
    assert min(gaps) < 0.05


@pytest.mark.skipif(not ca.has_nlpsol("fatrop"), reason="CasADi without fatrop")
@pytest.mark.parametrize("scheme", ["livens-variational", "livens-em", "gauss-3"])
def test_fatrop_finds_the_optimum_and_the_duals_of_ipopt(scheme):
    """The path condition on x is active, and the running cost depends on the nodes."""
    problem, cost = cart_pole(), (lambda q, u: u @ u + 5 * q[0] ** 2)
    options = dict(scheme=scheme, steps=20, minimise=cost, along={"x": (-0.1, 1.1)})
    by_ipopt, by_fatrop = (lv.optimal_control(problem, solver=solver, **options) for solver in ("ipopt", "fatrop"))
    assert by_ipopt.converged
    assert by_fatrop.converged
    assert np.abs(by_ipopt.duals["x"]).max() > 1e-3
    assert by_fatrop.cost == pytest.approx(by_ipopt.cost, rel=1e-8)
    np.testing.assert_allclose(by_fatrop.q, by_ipopt.q, atol=1e-6)
    assert by_fatrop.replay().one_step_defect < 1e-10
    for name, duals in by_ipopt.duals.items():
        np.testing.assert_allclose(by_fatrop.duals[name], duals, atol=1e-5 * max(1.0, np.abs(duals).max()))


def test_relaxed_bounds_lead_to_the_same_optimum():
    plain = lv.optimal_control(cart_pole())
    relaxed = lv.optimal_control(cart_pole(), relaxation=(4, 2))
    assert relaxed.converged
    assert np.abs(relaxed.u).max() <= 20 * (1 + 1e-7)
    assert relaxed.cost == pytest.approx(plain.cost, rel=0.1)


def test_free_start_and_named_conditions():
    """The initial velocity is found for which a thrown ball lands at 2 m after 0.5 s, without inputs."""
    ball = lv.System(
        "x y", kinetic=lambda v: (v @ v) / 2, potential=lambda q: 9.81 * q[1], forces=lambda k: [k.u, 0],
        parameters=dict(u=0.0),
    )  # fmt: skip
    motion = lv.optimal_control(
        ball, inputs={"u": (-1, 1)}, t_end=0.5, steps=10, start=dict(q0=[0.0, 0.0]), end={"x": 2.0, "y": 0.0}
    )
    assert motion.converged
    np.testing.assert_allclose(motion.v[0], [4.0, 9.81 / 4], rtol=1e-6)


def test_periodic_true():
    """A driven oscillator with a free start: least-effort motion of period 2 through a given amplitude."""
    oscillator = lv.System(
        "x", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: q[0] ** 2 / 2, forces=lambda k: [k.u],
        parameters=dict(u=0.0),
    )  # fmt: skip
    motion = lv.optimal_control(
        oscillator, inputs={"u": None}, t_end=2.0, steps=20, periodic=True, start={"x": 1.0},
        guess=dict(q=[[1.0], [-1.0], [1.0]]),
    )  # fmt: skip
    assert motion.converged
    np.testing.assert_allclose([motion.q[-1, 0], motion.p[-1, 0]], [motion.q[0, 0], motion.p[0, 0]], atol=1e-9)


def test_motion_as_result_and_text():
    motion = lv.optimal_control(cart_pole())
    result = motion.to_result()
    np.testing.assert_array_equal(result.q, motion.q)
    supplied = result.observe("energy_balance_defect")
    assert supplied.shape == (41,)
    assert motion.observe(lambda q, u: q[0] + u[0]).shape == (41,)
    assert "converged" in str(motion)
    assert "local error" in motion.summary()
    with pytest.raises(AttributeError, match="has no 'x'"):
        _ = motion.x
    with pytest.raises(lv.InputError, match="unknown input 'w'"):
        motion.input_at("w", 0.0)


def test_time_dependent_models_and_a_later_start():
    """A force with time-dependent gain, from t0 = 1: the inputs compensate the gain."""
    model = lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, forces=lambda t, k: [k.u * (1 + t)], parameters=dict(u=0.0))
    motion = lv.optimal_control(
        model, inputs={"u": None}, t0=1.0, t_end=2.0, steps=10, scheme="gauss-3",
        minimise=lambda u, t: (u[0] * (1 + t)) ** 2, start=dict(q0=[0.0], v0=[0.0]), end=dict(q=[1.0], v=[0.0]),
    )  # fmt: skip
    assert motion.cost == pytest.approx(12.0, rel=1e-6)
    assert motion.t[0] == 1.0
    assert motion.replay().defect < 1e-11


def test_smooth_functions_of_the_state_in_the_cost():
    motion = lv.optimal_control(
        cart_pole(), minimise={"effort": 1.0, "time": 0.0}, final=lambda q: m.sin(q[0]), steps=20
    )
    assert motion.converged


@pytest.mark.slow
@pytest.mark.parametrize(("name", "converged"), [("cart-pole-swing-up", 18), ("acrobot-swing-up", 17)])
def test_most_of_twenty_random_guesses_converge(name, converged):
    motion = lv.optimal_control(lv.problems.load(name), steps=40, starts=20, ipopt=dict(max_iter=500))
    assert sum(other.converged for other in motion.alternatives) >= converged
    assert motion.converged
