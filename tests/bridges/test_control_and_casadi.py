"""Linearisations as state spaces of python-control, and steps as CasADi functions."""

import casadi as ca
import numpy as np
import pytest

import livens as lv


def cart_pole(force=None):
    return lv.System(
        "x a",
        kinetic=lambda q, v, k: (
            0.5 * (k.M + k.m) * v[0] ** 2 + k.m * k.l * v[0] * v[1] * np.cos(q[1]) + 0.5 * k.m * k.l**2 * v[1] ** 2
        ),
        potential=lambda q, k: k.m * k.g * k.l * np.cos(q[1]),
        forces=force or (lambda k: [k.u, 0.0]),
        parameters=dict(M=1.0, m=0.1, l=0.5, g=9.81, u=0.0),
    )


OUTPUTS = ["x", "a", lambda v: v[0], lambda v: v[1]]


def test_state_space_of_cart_and_pole():
    about = lv.linearise(cart_pole(), q0=[0.0, 0.0], inputs=["u"], outputs=OUTPUTS)
    A, B = np.linalg.solve(about.E, about.A), np.linalg.solve(about.E, about.B)
    # textbook: M x'' + m l a'' ... = u with M = 1, m = 0.1, l = 0.5
    np.testing.assert_allclose(A[2:], [[0, -0.981, 0, 0], [0, 21.582, 0, 0]], atol=1e-12)
    np.testing.assert_allclose(B.ravel(), [0, 0, 1, -2], atol=1e-12)
    np.testing.assert_allclose(about.C, np.eye(4), atol=1e-12)
    assert about.inputs == ("u",) and about.outputs == ("x", "a", "y2", "y3") and not about.D.any()


def test_lqr_of_python_control_stabilises_the_nonlinear_model():
    control = pytest.importorskip("control")
    about = lv.linearise(cart_pole(), q0=[0.0, 0.0], inputs=["u"], outputs=OUTPUTS)
    system = about.to_control()
    assert system.input_labels == ["u"] and system.output_labels == ["x", "a", "y2", "y3"]
    K, _, poles = control.lqr(system, np.diag([1, 10, 1, 1]), [[0.1]])
    assert np.all(poles.real < 0)
    closed = cart_pole(lambda q, v: [-(K[0, 0] * q[0] + K[0, 1] * q[1] + K[0, 2] * v[0] + K[0, 3] * v[1]), 0.0])
    run = lv.simulate(closed, q0=[0.0, 0.3], v0=[0.0, 0.0], scheme="gauss-2", h=0.01, t_end=15.0)
    assert np.abs(run.q[-1]).max() < 1e-4
    free = lv.simulate(cart_pole(), q0=[0.0, 0.3], v0=[0.0, 0.0], scheme="gauss-2", h=0.01, t_end=1.0)
    assert abs(free.q[-1, 1]) > 1.0


def test_the_response_of_the_state_space_is_that_of_the_model():
    control = pytest.importorskip("control")
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    arm = mb.rod("arm", a=[0, 0, 0], b=[0, 0, -1], mass=1.0)
    hinge = mb.revolute("hinge", mb.ground, arm, at=arm.a, axis="y")
    mb.motor(hinge, torque=lambda t, angle, rate, k: k.u, parameters=dict(u=0.0), name="motor")
    mb.torsion_damper("oil", hinge, damping=0.2)
    system = mb.system
    about = lv.linearise(system, q0=mb.initial_state[0], inputs=["motor.u"], outputs=["hinge.angle", "hinge.rate"])
    space = about.to_control()
    assert space.nstates == 2 and space.input_labels == ["motor_u"]
    times = np.linspace(0, 3, 301)
    response = control.step_response(1e-4 * space, times)
    run = mb.simulate(h=0.01, t_end=3.0, parameters={"motor.u": 1e-4})
    expected = np.vstack([run["hinge.angle"], run["hinge.rate"]])
    np.testing.assert_allclose(response.y[:, 0], expected, atol=1e-3 * np.abs(expected).max())


def test_algebraic_variables_are_eliminated():
    pytest.importorskip("control")
    dae = lv.FirstOrder(
        "x",
        algebraic="y",
        rhs=lambda x, y: [-x[0] + y[0]],
        constraints=lambda x, y, k: [y[0] - 2 * x[0] - k.u],
        parameters=dict(u=0.0),
    )
    space = lv.linearise(dae, x0=[0.0], inputs="u", outputs=["x", lambda y: y[0]]).to_control()
    transfer = space(1j)  # x = u / (s - 1), y = 2 x + u
    np.testing.assert_allclose(transfer.ravel(), [1 / (1j - 1), 2 / (1j - 1) + 1], atol=1e-12)


def test_hamiltonian_models_have_inputs():
    model = lv.Hamiltonian(
        "x",
        kinetic=lambda p: 0.5 * p[0] ** 2,
        potential=lambda q, k: 0.5 * q[0] ** 2 - k.u * q[0],
        parameters=dict(u=0.0),
    )
    about = lv.linearise(model, q0=[0.0], inputs="u", outputs=["x", lambda v: v[0], lambda p: p[0]])
    np.testing.assert_allclose(about.B.ravel(), [0, 1], atol=1e-14)
    np.testing.assert_allclose(about.C, [[1, 0], [0, 1], [0, 1]], atol=1e-14)


def test_unknown_inputs_and_outputs_are_named():
    with pytest.raises(lv.InputError, match="unknown input 'v'"):
        lv.linearise(cart_pole(), q0=[0.0, 0.0], inputs=["v"])
    with pytest.raises(lv.InputError, match="unknown output 'b'"):
        lv.linearise(cart_pole(), q0=[0.0, 0.0], outputs=["b"])
    rod = lv.System(
        "x y",
        kinetic=lambda v: 0.5 * (v @ v),
        potential=lambda q: 9.81 * q[1],
        constraints=lambda q, k: [q @ q - k.l**2],
        parameters=dict(l=1.0),
    )
    with pytest.raises(lv.InputError, match="constraints depend on an input"):
        lv.linearise(rod, q0=[0.0, -1.0], inputs=["l"])


# -- CasADi ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scheme", ["livens-em", "gauss-2", "stormer-verlet"])
def test_a_step_as_a_casadi_function(scheme):
    model = lv.System(
        "x a",
        kinetic=lambda v: 0.5 * (v @ v),
        potential=lambda q, k: k.c * (1 - np.cos(q[1])) + 0.25 * q[0] ** 4,
        parameters=dict(c=3.0),
    )
    step = lv.prepare(model, scheme=scheme, h=0.01)
    state, function = step.start([0.4, 0.3], [0.1, 0.0]), step.casadi_function()
    names = [name for name in function.name_in() if name not in ("t", "h", "k")]
    k = model.parameter_vector()
    values = {name: getattr(state, name) for name in names}
    for i in range(20):
        after = function(**values, t=0.01 * i, h=0.01, k=k)
        values = {name: after[f"{name}_next"] for name in names}
        state = step.step(state)
        for name in names:
            np.testing.assert_allclose(np.array(values[name]).ravel(), getattr(state, name), atol=1e-12)


def test_derivatives_of_a_casadi_step():
    oscillator = lv.System("x", kinetic=lambda v: 0.5 * v[0] ** 2, potential=lambda q: 0.25 * q[0] ** 4)
    function = lv.prepare(oscillator, scheme="livens-em", h=0.1).casadi_function()
    x, v = ca.MX.sym("x"), ca.MX.sym("v")
    after = function(q=x, v=v, p=v, h=0.1)["q_next"]
    jacobian = ca.Function("J", [x, v], [ca.jacobian(after, ca.vertcat(x, v))])
    value = ca.Function("q", [x, v], [after])
    eps = 1e-6
    differences = [
        float(value(0.7 + eps, 0.2) - value(0.7 - eps, 0.2)) / (2 * eps),
        float(value(0.7, 0.2 + eps) - value(0.7, 0.2 - eps)) / (2 * eps),
    ]
    np.testing.assert_allclose(np.array(jacobian(0.7, 0.2)).ravel(), differences, atol=1e-8)


def test_schemes_without_step_equations_are_refused():
    oscillator = lv.System("x", kinetic=lambda v: 0.5 * v[0] ** 2, potential=lambda q: 0.5 * q[0] ** 2)
    with pytest.raises(lv.InputError, match="scheme 'taylor' has no step equations"):
        lv.prepare(oscillator, scheme="taylor").casadi_function()
