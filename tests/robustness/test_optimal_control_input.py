"""Bad input of optimal control: every error names the argument, the value and the remedy."""

import casadi as ca
import numpy as np
import pytest

import livens as lv


def cart(**changes):
    return lv.System(
        "x",
        kinetic=lambda v: v[0] ** 2 / 2,
        forces=lambda k: [k.force],
        parameters=dict(force=0.0, unused=1.0),
        **changes,
    )


GIVEN = dict(inputs={"force": (-9, 9)}, t_end=1.0, steps=4, start=dict(q0=[0.0], v0=[0.0]), end=dict(q=[1.0], v=[0.0]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(inputs={"forse": None}), "did you mean 'force'"),
        (dict(mesh="a"), "mesh must be positive relative lengths"),
        (dict(mesh=1j), "mesh must be positive relative lengths"),
        (dict(parameters=3.0), "parameters must map names to values"),
        (dict(ipopt="tol"), "ipopt must map names of options to values"),
        (dict(relaxation=np.array("a")), "sequence of factors"),
        (dict(inputs={"force": (1, -1)}), "lower bound 1 exceeds the upper bound -1"),
        (dict(inputs={"force": 3.0}), "pair"),
        (dict(inputs={"force": (-1, np.nan)}), "NaN"),
        (dict(inputs={"unused": (0, 1)}), "'unused' has no effect"),
        (dict(free={"unused": (0, 1)}), "'unused' has no effect"),
        (dict(inputs=["force"]), "inputs must map names"),
        (dict(inputs={"force": None}, free={"force": (0, 1)}), "in inputs and in free"),
        (dict(inputs={}), "nothing can be optimised"),
        (dict(end={"y": 1.0}), "unknown quantity 'y'"),
        (dict(end={"v_y": 1.0}), "did you mean 'v_x'"),
        (dict(end=dict(q=[1.0, 2.0])), "1 entries"),
        (dict(end={"x": (2.0, 1.0)}), "lower bound 2 exceeds"),
        (dict(end={"f": (lambda w: w, 0, 1)}), "argument 'w'"),
        (dict(along={"x": "far"}), "numbers expected"),
        (dict(minimise="fuel"), "minimise must be 'effort', 'time', 'supplied'"),
        (dict(minimise=lambda q, v: [q[0], v[0]]), "one number"),
        (dict(t_end=-1.0), "after t0"),
        (dict(t_end=(2.0, 1.0)), "earliest, latest"),
        (dict(t_end=None), "t_end is missing"),
        (dict(steps=0), "steps"),
        (dict(mesh=[1.0, -1.0]), "mesh must be positive"),
        (dict(shape="cubic"), "shape"),
        (dict(scheme="gaus-3"), "did you mean"),
        (dict(scheme="taylor"), "scheme"),
        (dict(start=None), "give q0 in start"),
        (dict(start=dict(q0=[0.0, 1.0], v0=[0.0])), "q0"),
        (dict(guess=dict(q=[[0.0, 1.0]])), "1 columns"),
        (dict(guess=dict(position=[[0.0]])), "unknown name 'position' in guess"),
        (dict(guess=dict(q=[[0.0], [np.inf]])), "finite"),
        (dict(guess="enrgy"), "guess"),
        (dict(guess="energy", end={"v_x": 0.0}), "needs the position at the end"),
        (dict(ipopt=dict(linear_solver="spral")), "linear_solver"),
        (dict(ipopt=dict(max_itr=3)), "option"),
        (dict(solver="snopt"), "solver"),
        (dict(starts=0), "starts"),
        (dict(n_workers=0), "n_workers"),
        (dict(relaxation=(-1,)), "relaxation"),
        (dict(relaxation={"steps": (2,)}), "relaxation applies to inputs and t_end, got 'steps'"),
        (dict(relaxation={"t_end": 2.0}), "relaxation of t_end must be a sequence"),
        (dict(relaxation={"t_end": (2.0,), "inputs": (3.0, 2.0)}), "as many factors of each"),
        (dict(periodic="yes"), "periodic must be"),
        (dict(end={"x": 1.0, "double": (lambda q: 2 * q[0], 2.0, 2.0)}), "'double' in end follows"),
        (dict(end={"x": 1.0, "time": (lambda t: 0 * t, 0.0, 0.0)}), "'time' in end follows"),
        (dict(steps=1), "more equations than variables"),
        (dict(steps=4, inputs={"force": (2, 2)}), "more equations than variables"),
        (dict(end=None), "conditions are missing"),
        (dict(end=None, t_end=(0.5, 2.0), minimise="time"), "conditions are missing"),
        (dict(end={"x": 5.0}, along={"x": (-2, 2)}), "'x' cannot be 5.0 at the end"),
        (dict(along={"x": (2, None)}), "contradict"),
        (dict(end=dict(q=[1.0], v=[3.0]), along={"v_x": (None, 2.0)}), "contradict"),
    ],
)  # fmt: skip
def test_messages(changes, message):
    with pytest.raises(lv.InputError, match=message.replace("(", r"\(")):
        lv.optimal_control(cart(), **{**GIVEN, **changes})


@pytest.mark.skipif(not ca.has_nlpsol("fatrop"), reason="CasADi without fatrop")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(t_end=(0.5, 2.0)), "end time and parameters must be fixed"),
        (dict(start=dict(q0=[0.0])), "the start must be fixed"),
        (dict(shape="linear"), "inputs must be constant"),
        (dict(ipopt=dict(linear_solver="mumps")), "'linear_solver' is not available with solver='fatrop'"),
    ],
)
def test_problems_that_fatrop_cannot_solve(changes, message):
    with pytest.raises(lv.InputError, match=message):
        lv.optimal_control(cart(), **{**GIVEN, **changes}, solver="fatrop")


def test_casadi_without_fatrop(monkeypatch):
    monkeypatch.setattr("livens.transcription.fatrop_solver.ca.has_nlpsol", lambda name: False)
    with pytest.raises(lv.InputError, match="installed without fatrop: use solver='ipopt'"):
        lv.optimal_control(cart(), **GIVEN, solver="fatrop")


def test_a_start_off_the_constraints():
    pendulum = lv.System(
        "x y", kinetic=lambda v: (v @ v) / 2, constraints=lambda q: [(q @ q - 1) / 2], forces=lambda k: [k.u, 0],
        parameters=dict(u=0.0),
    )  # fmt: skip
    with pytest.raises(lv.InputError, match="constraint"):
        lv.optimal_control(pendulum, inputs={"u": None}, t_end=1.0, start=dict(q0=[1.0, 1.0], v0=[0, 0]))


def test_energy_shaping_needs_linear_inputs_and_no_constraints():
    with pytest.raises(lv.InputError, match="without constraints"):
        lv.optimal_control(lv.problems.load("five-bar-point-to-point"), guess="energy")
    squared = lv.System("x", kinetic=lambda v: v[0] ** 2 / 2, forces=lambda k: [k.u**2], parameters=dict(u=1.0))
    with pytest.raises(lv.InputError, match="linearly"):
        lv.optimal_control(squared, **{**GIVEN, "inputs": {"u": None}}, guess="energy")


def test_models_that_cannot_be_transcribed():
    hamiltonian = lv.Hamiltonian("q", hamiltonian=lambda q, p: (p @ p + q @ q) / 2)
    with pytest.raises(lv.InputError, match="supports System"):
        lv.optimal_control(hamiltonian, inputs={}, t_end=1.0)
    with pytest.raises(lv.InputError, match="needs a model"):
        lv.optimal_control("cart-pole", inputs={}, t_end=1.0)
    with pytest.raises(lv.InputError, match="has no control problem"):
        lv.optimal_control(lv.problems.load("simple-pendulum"))


def test_too_many_steps_are_refused_before_the_search(monkeypatch):
    monkeypatch.setattr("livens.transcription.transcription.MAX_NONZEROS", 100)
    with pytest.raises(lv.InputError, match="too many for this model"):
        lv.optimal_control(cart(), **{**GIVEN, "steps": 50})


def test_angles_need_both_bounds():
    problem = lv.problems.load("five-bar-point-to-point")
    with pytest.raises(lv.InputError, match="give both bounds"):
        lv.optimal_control(problem, along={"left_hinge.angle": (None, 1.0)})


def test_acceptable_level_is_not_converged():
    motion = lv.optimal_control(cart(), **GIVEN, ipopt=dict(tol=1e-300, acceptable_tol=1e-3, acceptable_iter=1))
    assert not motion.converged


@pytest.mark.parametrize(
    ("objectives", "weights", "changes", "message"),
    [
        (("effort",), [1.0], {}, "two or more objectives"),
        (("effort", "time"), [[1.0, 2.0, 3.0]], {}, "one weight each"),
        (("effort", "time"), [], {}, "Pareto front needs"),
        (("effort", "fuel"), [1.0], {}, "minimise must be"),
        (("effort", "time"), [1.0], dict(minimise="time"), "instead of minimise"),
        (("effort", "time"), [1.0, np.nan], {}, "weights"),
    ],
)
def test_wrong_pareto_fronts(objectives, weights, changes, message):
    with pytest.raises(lv.InputError, match=message):
        lv.pareto_front(cart(), objectives, weights, **{**GIVEN, **changes})


def test_unreachable_ends_are_named():
    motion = lv.optimal_control(cart(), **{**GIVEN, "end": {"x": 500.0}})
    assert not motion.converged
    assert "conditions that are not met: end: x" in motion.message
    assert "force are at their bounds" in motion.message


def test_switches_are_noted():
    stop = lv.System(
        "x", kinetic=lambda v: v[0] ** 2 / 2, forces=lambda q, k: [k.force - lv.math.where(q[0] > 0.5, q[0], 0.0)],
        parameters=dict(force=0.0),
    )  # fmt: skip
    assert "switches" in lv.optimal_control(stop, **{**GIVEN, "steps": 10}).summary()
    assert "switches" not in lv.optimal_control(cart(), **{**GIVEN, "steps": 10}).summary()
