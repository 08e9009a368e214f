"""Derivatives forth (`jvp`), back (`vjp`) and by differences agree, for every kind of model."""

import numpy as np
import pytest

import livens as lv
from livens.models.port_hamiltonian import examples
from livens.run.derivatives import tape
from livens.run.derivatives.initial_state import InitialStateDerivatives, InputTangent
from livens.run.derivatives.member_map import make_plan
from livens.run.startup import compile_and_start


def weightless():
    """The mass matrix is singular: y has none, and follows x by a constraint."""
    model = lv.System(
        "x y",
        kinetic=lambda v, k: k.m * v[0] ** 2 / 2,
        potential=lambda q, k: k.c * q[1] ** 2 / 2 + q[0] ** 2 / 2,
        constraints=lambda q, k: [q[1] - k.b * q[0] ** 2],
        parameters=dict(m=1.3, c=2.0, b=0.7),
    )
    return model, dict(q0=[1.0, 0.7], v0=[0.3, 0.42]), "livens-em"


def driven():
    """A pendulum whose support is moved, pushed by a force of time and slowed down."""
    model = lv.System(
        "x y",
        kinetic=lambda v, k: k.m * (v @ v) / 2,
        potential=lambda q, k: 9.81 * k.m * q[1],
        dissipation=lambda v, k: k.eta * (v @ v) / 2,
        forces=lambda t: [lv.math.sin(3 * t), 0],
        constraints=lambda q, t, k: [((q[0] - k.a * lv.math.sin(2 * t)) ** 2 + q[1] ** 2 - 1) / 2],
        parameters=dict(m=1.0, eta=0.2, a=0.1),
    )
    return model, dict(q0=[0.0, -1.0], v0=[1.0, 0.0]), "livens-midpoint"


def old_multipliers():
    """The multipliers at the end of a step of Murua's method depend on those at its beginning."""
    model, start, _ = driven()
    return model, start, "murua-2"


def circuit():
    """A port-Hamiltonian system with algebraic equations."""
    model, x0 = examples.circuit()
    return model, dict(x0=x0), "gauss-2"


def chain():
    """A damped and pushed port-Hamiltonian system."""
    model, x0 = examples.mass_spring_damper()
    return model, dict(x0=x0), "gauss-1"


def predator():
    model = lv.FirstOrder(
        "a b",
        algebraic="s",
        rhs=lambda x, y, k: [k.r * x[0] - y[0], y[0] - x[1]],
        constraints=lambda x, y, k: [y[0] + 0.1 * y[0] ** 3 - k.s * x[0] * x[1]],
        parameters=dict(r=1.1, s=0.9),
    )
    return model, dict(x0=[1.0, 0.8]), "radau-iia-2"


def phase_space():
    model = lv.Hamiltonian(
        "x y",
        hamiltonian=lambda q, p, k: (p @ p) / (2 * k.m) * (1 + 0.1 * q[0]) + (q @ q) / 2 + q[0] ** 2 * q[1],
        parameters=dict(m=1.2),
    )
    return model, dict(q0=[0.1, 0.3], p0=[0.2, -0.1]), "implicit-midpoint"


def top():
    """A rigid body that is turned by a Cayley map."""
    body = lv.bodies.director_body("top", lv.bodies.Inertia(2.0, [0.3, 0.4, 0.2]))
    pin = lv.bodies.spherical_joint((body, [0.0, 0.0, -0.5]), [0.0, 0.0, 0.0])
    model = lv.System(lv.bodies.coordinates([body]), elements=[body, pin, lv.bodies.gravity(body)], frames=True)
    omega, at = np.array([0.3, 0.2, 4.0]), np.array([0.0, 0.0, 0.5])
    q0, v0 = body.state(at, None, np.cross(omega, at), omega)
    return model, dict(q0=q0, v0=v0), "lie-em"


def both_levels():
    model, start, _ = top()
    return model, start, "lie-ggl"


CASES = dict(
    weightless=weightless,
    driven=driven,
    old_multipliers=old_multipliers,
    circuit=circuit,
    algebraic=predator,
    phase_space=phase_space,
    chain=chain,
    top=top,
    both_levels=both_levels,
)


def made(case):
    model, start, scheme = CASES[case]()
    return model, start, lv.prepare(model, scheme, h=0.01, t_end=0.4)


@pytest.mark.parametrize("case", CASES)
def test_forth_back_and_differences(case):
    model, start, step = made(case)
    run = step.run(**start, every=7)
    random = np.random.default_rng(4)
    names = list(model.view.symbols)
    weights = {name: random.standard_normal(getattr(run, name).shape) for name in names}
    by = run.vjp(weights)

    def value(parameters=None, h=0.01, **changed):
        other = step.run(**{**start, **changed}, parameters=parameters, h=h, t_end=40 * h, every=7, project=True)
        return sum(float((weights[name] * getattr(other, name)).sum()) for name in names)

    def check(forth, back, difference):
        total = sum(float((weights[name] * forth[name]).sum()) for name in names)
        assert total == pytest.approx(back, rel=1e-9, abs=1e-9)
        assert total == pytest.approx(difference, rel=2e-6, abs=2e-7)

    eps = 1e-5
    for given in by.start:
        usual = np.asarray(start[given], dtype=float)
        for i, unit in list(enumerate(np.eye(usual.size)))[:5]:
            ends = [value(**{given: usual + sign * eps * unit}) for sign in (1, -1)]
            check(run.jvp(**{given: unit}), by.start[given][i], (ends[0] - ends[1]) / (2 * eps))
    for name, number in list(model.parameters.items())[:5]:
        moved = np.ones_like(number, dtype=float) if np.ndim(number) < 2 else np.eye(len(number))
        ends = [value({name: np.asarray(number) + sign * eps * moved}) for sign in (1, -1)]
        back = float(np.sum(by.parameters[name] * moved))
        check(run.jvp(parameters={name: moved}), back, (ends[0] - ends[1]) / (2 * eps))
    ends = [value(h=0.01 + sign * 1e-6) for sign in (1, -1)]
    check(run.jvp(h=1.0), by.h, (ends[0] - ends[1]) / 2e-6)


@pytest.mark.parametrize("redundant", [False, True])
def test_initial_multipliers_have_derivatives(redundant):
    """Forth, back and second derivatives against differences of the initial state; a removed multiplier stays zero."""
    model = lv.System(
        "x y z",
        kinetic=lambda q, v, k: k.m * (v @ v) / 2 + q[0] ** 2 * v[1] ** 2,
        potential=lambda q, k: 9.81 * k.m * q[2],
        constraints=lambda q: [(q @ q - 1) / 2, *([2 * (q @ q) - 2] if redundant else [])],
        parameters=dict(m=1.3),
    )
    start = dict(q0=np.array([0.6, 0.0, -0.8]), v0=np.array([0.4, 0.5, 0.3]))

    step = lv.prepare(model, "murua-1", h=0.01, t_end=0.1, redundant="remove")

    def begin(**changed):
        plan = make_plan(step, {**start, **changed}, project=True)
        compiled, initial = compile_and_start(plan)
        return InitialStateDerivatives(plan, compiled, initial), compiled.layout, initial["multipliers"]

    def tangent(**moved):
        return InputTangent(moved, np.zeros(1))

    derivatives, layout, values = begin()
    part, eps = layout["multipliers"], 1e-5
    assert values.size == 1 + redundant and np.count_nonzero(values) == 1
    for name in start:
        for i, unit in enumerate(np.eye(3)):
            ahead, behind = (begin(**{name: start[name] + sign * eps * unit}) for sign in (1, -1))
            difference = (ahead[2] - behind[2]) / (2 * eps)
            np.testing.assert_allclose(derivatives.jvp(tangent(**{name: unit}))[part], difference, rtol=1e-8, atol=1e-8)
            weights = np.zeros(layout.size)
            weights[part] = 1.0
            back = derivatives.vjp(weights, np.zeros(1)).initial[name][i]
            assert back == pytest.approx(difference.sum(), rel=1e-8, abs=1e-8)
            gradients = [one.vjp(weights, np.zeros(1)).initial["v0"] for one in (ahead[0], behind[0])]
            _, second = derivatives.vjp_jvp(
                weights, 0 * weights, np.zeros(1), np.zeros(1), (0.0, 0.0), tangent(**{name: unit})
            )
            np.testing.assert_allclose(
                second.initial["v0"], (gradients[0] - gradients[1]) / (2 * eps), rtol=1e-7, atol=1e-6
            )


def test_momenta_follow_given_velocities():
    """Derivatives of a Hamiltonian with initial velocities are with respect to the velocities."""
    model, start, scheme = phase_space()
    step = lv.prepare(model, scheme, h=0.01, t_end=0.4)
    loss = lv.value_and_gradient(lambda q, p: q[0] + 0.3 * p[1])
    given = dict(q0=np.array(start["q0"]), v0=np.array([0.2, 0.1]))
    _, by = loss(step, **given)
    for name in given:
        for i, unit in enumerate(1e-5 * np.eye(2)):
            ends = [loss(step, **{**given, name: given[name] + sign * unit})[0] for sign in (1, -1)]
            assert by.start[name][i] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-7, abs=1e-9)


def test_the_end_stays_if_the_last_step_is_shortened():
    """With h, the last step changes its size: the sum over all of them is the time span."""
    step = lv.prepare(lv.problems.load("simple-pendulum"), h=0.01, t_end=0.5037)
    loss = lv.value_and_gradient(lambda q, v, t: q[0] + 0.3 * v[1] + t**2)
    _, by = loss(step)
    ends = [loss(step, h=0.01 + sign * 1e-6)[0] for sign in (1, -1)]
    assert by.h == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-3)
    run = step.run()
    assert run.jvp(h=1.0)["q"][-1] @ [1.0, 0.0] + 0.3 * run.jvp(h=1.0)["v"][-1, 1] == pytest.approx(by.h, rel=1e-9)


@pytest.mark.parametrize("scheme", ["gauss-2", "stormer-verlet"])
def test_the_adjoint_of_a_symplectic_scheme_is_symplectic(scheme):
    """``D^T J D = J`` for the tangents D of a run, and the way back takes J D to J."""
    problem = lv.problems.load("kepler")
    run = lv.prepare(problem, scheme, t_end=1000 * problem.h).run(every=1000)
    J = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.eye(2), np.zeros((2, 2))]])  # p = v here
    columns = []
    for i in range(4):
        moved = run.jvp(**{"q0" if i < 2 else "v0": np.eye(2)[i % 2]})
        columns.append(np.concatenate([moved["q"][-1], moved["p"][-1]]))
    D = np.array(columns).T
    size = np.abs(D).max() ** 2
    assert np.abs(D.T @ J @ D - J).max() < 1e-13 * size
    for i in range(4):
        rows = np.zeros((2, 4))
        rows[-1] = J @ D[:, i]
        by = run.vjp({"q": rows[:, :2], "p": rows[:, 2:]})
        np.testing.assert_allclose(np.concatenate([by.q0, by.v0]), J[:, i], atol=1e-12 * size)


def test_second_derivatives_are_those_of_the_gradient():
    """By parameters, lengths among them, which move the start along, by initial values off the constraint, and by h."""
    problem = lv.problems.load("simple-pendulum")
    step = lv.prepare(problem, h=0.01, t_end=0.5, project=True)

    def loss(q, v, t, k, d):
        return (q[0] - d[0]) ** 2 + 0.1 * v[0] * q[1] + 0.01 * t**2 * k.g

    data = np.linspace(0, 1, 6)
    names = ["g", "l", "v0", "q0", "h"]
    _, first, found = lv.hessian(loss, names, every=10, data=data)(step)
    gradient = lv.value_and_gradient(loss, every=10, data=data)

    def numbers(**changed):
        by = gradient(step, **changed)[1]
        return np.array([by.parameters["g"], by.parameters["l"], *by.v0, *by.q0, by.h])

    np.testing.assert_allclose(
        numbers(), [first.parameters["g"], first.parameters["l"], *first.v0, *first.q0, first.h], rtol=1e-12
    )
    assert found.names == ("g", "l", "v0[0]", "v0[1]", "q0[0]", "q0[1]", "h")
    np.testing.assert_allclose(found.matrix, found.matrix.T, atol=1e-9)
    eps, units = 1e-5, np.eye(2)
    changes = [
        lambda e: dict(parameters={"g": 9.81 + e}),
        lambda e: dict(parameters={"l": 1.0 + e}),
        *(lambda e, u=u: dict(v0=np.asarray(problem.v0) + e * u) for u in units),
        *(lambda e, u=u: dict(q0=np.asarray(problem.q0) + e * u) for u in units),
        lambda e: dict(h=0.01 + e / 100, t_end=50 * (0.01 + e / 100)),
    ]
    for i, change in enumerate(changes):
        width = 2 * eps / (100 if found.names[i] == "h" else 1)
        column = (numbers(**change(eps)) - numbers(**change(-eps))) / width
        np.testing.assert_allclose(found.matrix[:, i], column, rtol=1e-5, atol=1e-6)


def test_second_derivatives_are_the_same_from_checkpoints(monkeypatch):
    for name, value in dict(MIN_SEGMENT_STEPS=30, SEGMENT_BYTES=0, STORED_BYTES=0).items():
        monkeypatch.setattr(tape, name, value)
    step = lv.prepare(lv.problems.load("double-four-bar-damped"), t_end=0.0804, h=1e-3)
    both = [lv.hessian(lambda q: q[0] ** 2, ["eta", "g"], keep=keep)(step)[2].matrix for keep in ("all", "checkpoints")]
    np.testing.assert_array_equal(*both)


def test_what_has_no_derivatives_is_said():
    problem = lv.problems.load("kepler")
    control = lv.StepControl(1e-6)
    with pytest.raises(lv.InputError, match="adaptive runs"):
        lv.value_and_gradient(lambda q: q[0])(lv.prepare(problem, "gauss-2", control=control), t_end=0.1)
    with pytest.raises(lv.InputError, match="fictive time"):
        lv.value_and_gradient(lambda q: q[0])(lv.prepare(problem, "sundman"), t_end=0.1)
    ended = lv.simulate(problem, t_end=0.5, events=[lv.Event(lambda t: t - 0.2, terminal=True)])
    with pytest.raises(lv.InputError, match="ended by an event"):
        ended.jvp(v0=[1.0, 0.0])
    short = lv.simulate(problem, t_end=0.1, store=["q"])
    with pytest.raises(lv.InputError, match="store v, p too"):
        short.vjp({"q": np.zeros_like(short.q)})
    run = lv.simulate(problem, t_end=0.1)
    with pytest.raises(lv.InputError, match="unknown parameter 'nu'"):
        run.jvp(parameters={"nu": 1.0})
    with pytest.raises(lv.InputError, match="not x0"):
        run.jvp(x0=[1.0])
    with pytest.raises(lv.InputError, match="allowed: q, v, p"):
        run.vjp({"t": 1.0})
    with pytest.raises(lv.InputError, match="cannot differentiate by 'nu'"):
        lv.hessian(lambda q: q[0], "nu")(lv.prepare(problem), t_end=0.1)
    with pytest.raises(lv.InputError, match="prepared step"):
        lv.value_and_gradient(lambda q: q[0])(problem)


def test_a_run_from_a_file_has_derivatives(tmp_path):
    run = lv.simulate(lv.problems.load("simple-pendulum"), h=0.01, t_end=0.2, every=3, out=tmp_path / "run.h5")
    again = lv.load(tmp_path / "run.h5")
    weights = np.ones_like(run.q)
    assert again.vjp({"q": weights}).parameters == run.vjp({"q": weights}).parameters
