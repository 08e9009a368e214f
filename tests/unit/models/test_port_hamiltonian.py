"""Port-Hamiltonian models: the power balance holds at every point, and what is no such model is refused by name."""

import casadi as ca
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import livens as lv
from livens import math as m
from livens.models.equations_of_motion import equations_of_motion
from livens.models.port_hamiltonian import (
    autonomous,
    check_initial_state,
    examples,
    from_system,
    interconnect,
    interconnect_all,
    state_from_system,
)

seeds = st.integers(0, 2**32 - 1)


def skew(random, n):
    a = random.standard_normal((n, n))
    return a - a.T


def well_conditioned(random, n):
    """A random regular matrix that amplifies rounding by no more than 4."""
    left, right = (np.linalg.qr(random.standard_normal((n, n)))[0] for _ in range(2))
    return left * random.uniform(0.5, 2.0, n) @ right


def random_model(random, n=3, ports=2, *, nonlinear=True, singular=0, time=False, feedthrough=True, u=None):
    """A random system: W of random rank, rows mixed by a regular matrix, so that E is no diagonal."""
    A = random.standard_normal((n, n))
    Q = A @ A.T + np.eye(n)
    U = well_conditioned(random, n)
    D = np.diag([*np.ones(n - singular), *np.zeros(singular)])
    K = random.standard_normal((n + ports, int(random.integers(0, n + ports + 1))))
    W = K @ K.T
    if not feedthrough:
        W[:, n:] = W[n:, :] = 0
    J0, J1, N = skew(random, n), skew(random, n), skew(random, ports) * feedthrough
    B0, B1 = random.standard_normal((2, n, ports))
    a = float(random.uniform(0.5, 2)) * nonlinear
    inner = np.linalg.inv(U).T

    def effort(x, t):
        differential = D @ x
        own = (1 + time * m.sin(t) ** 2) * (D @ (Q @ differential)) + a * differential**3
        return own + (np.eye(n) - D) @ x * (1 + a * x**2)

    def energy(x, t):
        y = D @ x
        return 0.5 * (1 + time * m.sin(t) ** 2) * (y @ Q @ y) + a * (y @ y**3) / 4

    def time_flow(x, t):  # z.r = dH/dt, along a direction in which z is not zero
        z, y = effort(x, t), D @ x
        return U @ (z * (time * m.sin(t) * m.cos(t) * (y @ Q @ y) / (z @ z)))

    return lv.PortHamiltonian(
        n,
        H=energy,
        z=lambda x, t: inner @ effort(x, t),
        E=U @ D,
        r=time_flow if time else None,
        J=lambda x: U @ (J0 + a * m.sin(x[0]) * J1) @ U.T,
        R=U @ W[:n, :n] @ U.T,
        B=lambda x: U @ (B0 + a * m.cos(x[0]) * B1),
        P=U @ W[:n, n:],
        S=W[n:, n:],
        N=N,
        u=u,
    )


def balance(model, random):
    """d/dt H - (supplied - dissipated), for any x': the residual's power z.F is what the equations leave over."""
    d, s = model.descriptor, model.structure
    left = ca.dot(ca.gradient(d.stored, d.x), d.xdot) + ca.gradient(d.stored, d.t) - ca.dot(s.z, d.residual)
    size = ca.dot(ca.fabs(s.z), ca.fabs(s.E) @ ca.fabs(d.xdot) + ca.fabs(s.J - s.R) @ ca.fabs(s.z))
    size += ca.dot(ca.fabs(s.z), ca.fabs(s.B) @ ca.fabs(d.u) + ca.fabs(s.P) @ ca.fabs(d.u) + ca.fabs(s.r))
    size += ca.fabs(d.dissipated) + ca.fabs(d.supplied) + ca.dot(ca.fabs(d.u), (s.S + ca.fabs(s.N)) @ ca.fabs(d.u))
    at = ca.Function("at", [d.x, d.xdot, d.t, d.k], [left - d.supplied + d.dissipated, size, d.dissipated])
    k = model.parameter_vector()
    values = [at(*random.uniform(-2, 2, (2, model.n)), random.uniform(0, 5), k) for _ in range(5)]
    assert all(float(lost) >= -1e-13 * float(size) for _, size, lost in values)
    return max(abs(float(gap)) / float(size) for gap, size, _ in values)


def rate(model, x, t=0.0):
    """x' of a model with regular E."""
    E = np.array(ca.Function("E", [model.structure.x, model.structure.t, model.structure.k], [model.structure.E])(
        x, t, model.parameter_vector()
    ))  # fmt: skip
    return -np.linalg.solve(E, np.array(model.residual(x, np.zeros(model.n), t, model.parameter_vector())).ravel())


# -- the power balance ------------------------------------------------------------------------------------------------


@given(seeds, st.booleans(), st.integers(0, 2), st.booleans(), st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_power_balance_of_random_systems(seed, nonlinear, singular, time, ports):
    random = np.random.default_rng(seed)
    feedback = random.standard_normal((ports, 3))
    u = (lambda x, t: feedback @ x + m.sin(t)) if ports else None
    model = random_model(random, 3, ports, nonlinear=nonlinear, singular=singular, time=time, u=u)
    assert balance(model, random) < 1e-13


@given(seeds)
@settings(max_examples=15, deadline=None)
def test_power_balance_along_the_motion(seed):
    """With x' of the equations, dH/dt alone is supplied minus dissipated."""
    random = np.random.default_rng(seed)
    model = random_model(random, 4, 2, u=lambda t: [m.cos(t), 1.0])
    x, k, d = random.uniform(-1, 1, 4), model.parameter_vector(), model.descriptor
    flow = rate(model, x, 0.3)
    change = float(ca.Function("g", [d.x], [ca.gradient(d.stored, d.x)])(x).T @ flow)
    supplied, dissipated = float(model.supplied(x, 0.3, k)), float(model.dissipated(x, 0.3, k))
    assert change == pytest.approx(supplied - dissipated, rel=1e-11, abs=1e-11 * (abs(supplied) + dissipated))


def loop_condition(a, b, M, N):
    """Condition of the algebraic loop of the relations ``M y + N u = 0`` with the feedthrough of both systems."""
    feedthrough = np.zeros((4, 4))
    for system, ports in ((a, slice(0, 2)), (b, slice(2, 4))):
        feedthrough[ports, ports] = ca.evalf(system.structure.S - system.structure.N)
    return np.linalg.cond((M @ feedthrough + N) @ M.T)


def random_relations(random, ports, k):
    """Relations that create no power: a dissipative feedback of k ports, seen through an orthogonal change of ports."""
    L = random.standard_normal((k, k))
    K = skew(random, k) + (L @ L.T if random.uniform() < 0.5 else 0)
    turned = np.linalg.qr(random.standard_normal((ports, ports)))[0][:k]
    M, N = K @ turned, turned.copy()
    mixing = well_conditioned(random, k)
    return mixing @ M, mixing @ N


@given(seeds, st.integers(1, 4), st.booleans(), st.integers(0, 1))
@example(1966888, 4, True, 0)  # an algebraic loop of condition 2e9
@settings(max_examples=40, deadline=None)
def test_power_balance_of_random_interconnections(seed, k, feedthrough, singular):
    """Rounding grows with the condition of the algebraic loop, if it is solved; singular loops keep a multiplier."""
    random = np.random.default_rng(seed)
    a = random_model(random, 3, 2, singular=singular, feedthrough=feedthrough)
    b = random_model(random, 2, 2, feedthrough=feedthrough)
    M, N = random_relations(random, 4, k)
    joined = interconnect(a, b, M, N)
    assert joined.m == 4 - k
    if joined.m:
        joined = joined.with_input(lambda x, t: [m.sin(x[0] + i + t) for i in range(4 - k)])
    condition = loop_condition(a, b, M, N)
    is_solved = condition < 1e13
    assert balance(joined, random) < (max(1e-12, 1e-16 * condition) if is_solved else 1e-12)


@given(seeds, st.booleans(), st.integers(0, 4))
@settings(max_examples=30, deadline=None)
def test_interconnection_gives_the_motion_of_its_parts(seed, feedthrough, swaps):
    """Inputs computed from the relations and put into the two systems give the same x' as the joined system."""
    random = np.random.default_rng(seed)
    a, b = (random_model(random, n, 2, feedthrough=feedthrough) for n in (3, 2))
    M, N = random_relations(random, 4, 4)
    M[:, :swaps], N[:, :swaps] = N[:, :swaps].copy(), M[:, :swaps].copy()  # y and u change places: no power either
    joined = interconnect(a, b, M, N)
    x, t = random.uniform(-1, 1, 5), 0.7
    parts = [
        [np.array(value) for value in ca.Function("p", [s.x, s.t, s.k], s.matrices())(at, t, [])]
        for s, at in ((a.structure, x[:3]), (b.structure, x[3:]))
    ]
    z = np.concatenate([part[1].ravel() for part in parts])
    _, _, E, _, J, R, B, P, S, Nf = (
        np.block([[p, np.zeros((p.shape[0], q.shape[1]))], [np.zeros((q.shape[0], p.shape[1])), q]])
        for p, q in zip(*parts, strict=True)
    )
    solvable = M @ (S - Nf) + N
    if joined.n == 5:
        u = np.linalg.solve(solvable, -M @ (B + P).T @ z)
        expected = np.linalg.solve(E, (J - R) @ z + (B - P) @ u)
        scale = np.linalg.cond(solvable) * np.linalg.cond(E)
        assert rate(joined, x, t) == pytest.approx(expected, rel=1e-12 * scale, abs=1e-12 * scale)
        assert float(joined.supplied(x, t, [])) == 0
    else:  # combinations of relations without lam: as many as the equations for u leave open
        assert joined.n - 5 == 4 - np.linalg.matrix_rank(solvable, tol=1e-9)
        assert balance(joined, random) < 1e-12


@given(seeds, st.integers(0, 14).filter(lambda digits: digits != 12), st.booleans())
@example(17564446, 12, False)  # gains of just the size that counts as zero, one above and one below
@settings(max_examples=20, deadline=None)
def test_nearly_singular_relations_lose_no_power(seed, digits, feedthrough):
    """Gains from 1 down to 1e-14, skew but for rounding: the joined system is skew without being told.

    Except for 1e-12 with feedthrough, the very size that counts as zero: there it may also be called a loop.
    """
    random = np.random.default_rng(seed)
    a, b = (random_model(random, n, 2, feedthrough=feedthrough) for n in (3, 2))
    turned = np.linalg.qr(random.standard_normal((4, 4)))[0]
    gains = np.zeros((4, 4))
    gains[0, 1], gains[2, 3] = 1.0, 10.0**-digits
    joined = interconnect(a, b, turned @ (gains - gains.T) @ turned.T, np.eye(4))
    assert balance(joined, random) < 1e-12


def test_untouched_ports_keep_their_input():
    joined = interconnect(oscillator(ports="f g", B=[[0, 0], [1, 2]]), oscillator(), [[0, 0, 1], [-1, 0, 0]],
                          [[1, 0, 0], [0, 0, 1]])  # fmt: skip
    assert joined.ports == joined.open_ports == ("g",)
    assert joined.states == ("a_q", "a_p", "b_q", "b_p")
    x = np.array([0.1, 0.2, 0.3, 0.4])
    driven = joined.with_input(lambda t: [t])
    # a_p' = -a_q - b_p + 2 t, b_p' = -b_q + a_p
    assert rate(driven, x, 0.5) == pytest.approx([0.2, -0.1 - 0.4 + 1.0, 0.4, -0.3 + 0.2], abs=1e-15)
    assert not driven.open_ports
    with pytest.raises(lv.ModelError, match="the model has no open port"):
        driven.with_input([1.0])


def test_inputs_of_other_ports_survive_an_interconnection():
    """A load of the mechanism keeps acting, and keeps being supplied power, when its other port is joined."""
    cart = lv.System(
        "x", kinetic=lambda v: v @ v / 2, forces=lambda q, v, t, k: [k.f * m.cos(t) - q[0]], parameters=dict(f=3.0)
    )
    joined = interconnect(from_system(cart, inputs="x"), oscillator(), [[0, 1], [-1, 0]], [[1, 0], [0, 1]])
    assert joined.ports == ("F_x",) and not joined.open_ports
    x, t, k = np.array([0.1, 0.2, 0.3, 0.4]), 0.7, joined.parameter_vector()
    load = 3 * np.cos(t) - 0.1
    assert rate(joined, x, t) == pytest.approx([0.2, load - 0.4, 0.4, -0.3 + 0.2], abs=1e-15)
    assert float(joined.supplied(x, t, k)) == pytest.approx(load * 0.2)


def test_rigid_coupling_of_two_masses():
    """Equal velocities: the coupling force is a state; one force moves both."""

    def mass(name, value):
        return lv.PortHamiltonian([name], H=lambda x, k: k.m * x[0] ** 2 / 2, z=lambda x: x, E=lambda k: [[k.m]],
                                  B=[[1]], ports=[f"f_{name}"], parameters=dict(m=value))  # fmt: skip

    joined = interconnect(mass("v", 2.0), mass("w", 3.0), [[1, -1]], [[0, 0]]).with_input([10.0])
    assert joined.states == ("v", "w", "coupling_0") and joined.ports == ("f_v",)
    assert joined.parameters == {"a_m": 2.0, "b_m": 3.0}
    # 5 v' = 10, and 3 w' = -lam
    assert np.array(joined.residual([1, 1, -6], [2, 2, 0], 0, [2, 3])).ravel() == pytest.approx([0, 0, 0], abs=0)
    with pytest.raises(lv.InputError, match=r"algebraic equation 2 \(row of 'coupling_0'\) is violated by"):
        check_initial_state(joined, [1, 2, 0])
    assert check_initial_state(joined, [1, 2, 0], project=True) == pytest.approx([1.5, 1.5, 0])


def test_chain_of_interconnections_names_couplings_apart():
    def mass(name):
        return lv.PortHamiltonian([name], H=lambda x: x[0] ** 2 / 2, B=[[1, 1]], ports=[f"l_{name}", f"r_{name}"])

    two = interconnect(mass("a"), mass("b"), [[0, 1, -1, 0]], [[0, 0, 0, 0]])
    three = interconnect(two, mass("c"), [[0, 0, 1, -1, 0]], [[0, 0, 0, 0, 0]])
    assert three.states == ("a", "b", "coupling_0", "c", "coupling_1")
    assert balance(three, np.random.default_rng(3)) < 1e-14


def test_feedback_that_depends_on_a_parameter_keeps_its_variable():
    def resistor(name):
        return oscillator(S=lambda k: [[k.s]], parameters=dict(s=2.0), ports=[name])

    joined = interconnect(resistor("f"), resistor("g"), [[0, 1], [-1, 0]], [[1, 0], [0, 1]])
    assert joined.states[4:] == ("coupling_0", "coupling_1")
    assert balance(joined, np.random.default_rng(5)) < 1e-14
    x = check_initial_state(joined, [1, 2, 3, 4, 0, 0], project=True)
    assert x[:4] == pytest.approx([1, 2, 3, 4])
    # u_f = -(p_g + 2 u_g), u_g = p_f + 2 u_f
    u_f = -(4 + 2 * 2) / 5
    assert np.array(joined.residual(x, np.zeros(6), 0, [2, 2])).ravel()[:2] == pytest.approx([-2, 1 - u_f])


# -- time, mechanics, examples ----------------------------------------------------------------------------------------


@given(seeds, st.booleans())
@settings(max_examples=15, deadline=None)
def test_autonomous_extension(seed, time):
    random = np.random.default_rng(seed)
    model = random_model(random, 3, 1, time=time, u=lambda x, t: [m.sin(t) * x[0]])
    extended = autonomous(model)
    assert not ca.depends_on(extended.descriptor.residual, extended.structure.t)
    assert balance(extended, random) < 1e-13
    x, xdot, t = random.uniform(-1, 1, 3), random.uniform(-1, 1, 3), 0.4
    ours = np.array(extended.residual([*x, t], [*xdot, 1.0], 0.0, [])).ravel()
    assert ours == pytest.approx([*np.array(model.residual(x, xdot, t, [])).ravel(), 0.0], rel=1e-13, abs=1e-13)
    assert float(extended.supplied([*x, t], 0, [])) == pytest.approx(float(model.supplied(x, t, [])), rel=1e-13)


def mechanisms():
    spherical = lv.System(
        "r theta phi",
        kinetic=lambda q, v: 0.5 * (v[0] ** 2 + q[0] ** 2 * v[1] ** 2 + (q[0] * m.sin(q[1]) * v[2]) ** 2),
        potential=lambda q, k: k.c * (q[0] ** 2 - 1) ** 2,
        dissipation=lambda q, v, k: 0.5 * k.d * q[0] ** 2 * v[1] ** 2,
        parameters=dict(c=7.0, d=0.3),
    )
    singular = lv.System(
        "x y s",
        kinetic=lambda v: 0.5 * v[0] ** 2 + (v[1] + v[2]) ** 2,
        potential=lambda q: q @ q**3,
        constraints=lambda q: [0.5 * ((q[1] - q[0]) ** 2 - 1.21)],
    )
    driven = lv.System(
        "x y",
        kinetic=lambda v: v @ v / 2,
        potential=lambda q: 9.81 * q[1],
        constraints=lambda q, t: [0.5 * ((q[0] - m.sin(t)) ** 2 + q[1] ** 2 - 1)],
        forces=lambda q, v, t: [m.cos(t) - v[0] ** 3, 0],
    )
    gyroscopic = lv.System(
        "x y", kinetic=lambda q, v: v @ v / 2 + q[0] * v[1] - q[1] * v[0] + q @ q / 3, potential=lambda q: q @ q
    )
    return dict(spherical=spherical, singular=singular, driven=driven, gyroscopic=gyroscopic)


@pytest.mark.parametrize("name", mechanisms())
def test_mechanics_has_the_same_accelerations(name):
    """Accelerations and multipliers of the system solve the port-Hamiltonian equations, gyroscopic forces included."""
    system, random = mechanisms()[name], np.random.default_rng(17)
    model, d = from_system(system), equations_of_motion(system)
    assert balance(model, random) < 1e-14
    k = system.parameter_vector()
    matrix, right = (d.function(expression) for expression in d.kkt_system)
    for _ in range(5):
        q, v, t = random.uniform(0.5, 1.5, system.n), random.uniform(-1, 1, system.n), 0.3
        if system.m:  # the equation of the multiplier is the velocity constraint
            G = np.array(d.function(d.G)(q, v, v, t, k))
            v = v - np.linalg.pinv(G) @ np.array(d.function(d.velocity_constraint)(q, v, v, t, k)).ravel()
        A, b = (np.array(f(q, v, v, t, k)) for f in (matrix, right))
        solution = np.linalg.solve(A, b).ravel()
        a, lam = solution[: system.n], solution[system.n :]
        residual = model.residual([*q, *v, *lam], [*v, *a, *np.zeros(system.m)], t, k)
        assert np.abs(np.array(residual)).max() < 1e-12 * (1 + np.abs(solution).max())


def test_ports_of_mechanics():
    spring = lv.Element(["x"], potential=lambda q, k: k.c * q[0] ** 2, parameters=dict(c=2.0), name="left spring")
    body = lv.Element(["x", "y"], kinetic=lambda v, k: k.m * (v @ v), constraints=lambda q, t: [q[1] - t**2])
    system = lv.System("x y", elements=[spring, body], parameters=dict(m=1.0))
    model = from_system(system, inputs="x", outputs=lambda q: [[q[0]], [1.0]])
    assert model.ports == ("x", "y0", "drive_0") and model.open_ports == ("x",)
    assert model.parameters == {"m": 1.0, "left_spring_c": 2.0}
    x = state_from_system(system, [0.5, 1.0], [3.0, 2.0], t0=1.0)
    assert x == pytest.approx([0.5, 1.0, 3.0, 2.0, -4.0])  # m = 2 in T, y'' = 2
    k = model.parameter_vector()
    assert np.array(model.output(x, 1.0, k)).ravel() == pytest.approx([3.0, 0.5 * 3 + 2, -4.0])
    # the drive lifts: -lam y', y' = 2; the input is zero
    assert float(model.supplied(x, 1.0, k)) == pytest.approx(8.0)
    assert np.array_equal(check_initial_state(model, x, 1.0), x)


def test_both_pendulums_move_alike():
    (port, x0), (potential, y0) = examples.pendulum("port"), examples.pendulum("potential")
    assert np.array_equal(x0, y0)
    random, k = np.random.default_rng(1), port.parameter_vector()
    for _ in range(5):
        x, xdot = random.uniform(-1, 1, (2, 5))
        first, second = (np.array(model.residual(x, xdot, 0, k)) for model in (port, potential))
        assert np.abs(first - second).max() < 1e-14
        # the airflow's power alpha m u is supplied in one, a change of the Hamiltonian in the other
        assert float(port.supplied(x, 0, k)) == pytest.approx(2.0 * x[2])
        assert float(potential.supplied(x, 0, k)) == 0
        assert float(port.dissipated(x, 0, k)) == float(potential.dissipated(x, 0, k))


def test_pendulum_example_is_the_exported_system():
    system = lv.System(
        "x y",
        kinetic=lambda v, k: 0.5 * k.m * (v @ v),
        potential=lambda q, k: k.m * k.g * (q[1] + k.l),
        constraints=lambda q, k: [0.5 * (q @ q - k.l**2)],
        dissipation=lambda v, k: 0.5 * k.kappa * (v @ v),
        parameters=dict(m=1.0, l=1.0, g=9.81, kappa=0.1, alpha=2.0),
    )
    exported = from_system(system, inputs="x y").with_input(lambda k: [k.alpha * k.m, 0])
    ready, _ = examples.pendulum()
    random, k = np.random.default_rng(2), ready.parameter_vector()
    for _ in range(5):
        x, xdot = random.uniform(-1, 1, (2, 5))
        for ours, theirs in (
            (exported.residual(x, xdot, 0, k), ready.residual(x, xdot, 0, k)),
            *(
                (getattr(exported, f)(x, 0, k), getattr(ready, f)(x, 0, k))
                for f in ("stored", "dissipated", "supplied")
            ),
        ):
            assert np.array(ours) == pytest.approx(np.array(theirs), rel=1e-14, abs=1e-14)


EXAMPLES = {
    "pendulum": examples.pendulum,
    "pendulum, potential": lambda: examples.pendulum("potential"),
    "chain": examples.mass_spring_damper,
    "long chain": lambda: examples.mass_spring_damper(
        [1.0, 2.0, 0.0, 1.0], [1.0] * 5, [1.0] * 5, [0.1] * 4, 0.0, [1.0, 2.0, 3.0, 4.5]
    ),
    "circuit": examples.circuit,
    "motor": examples.motor_slider_crank,
    "loudspeaker": examples.loudspeaker,
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name):
    model, x0 = EXAMPLES[name]()
    assert balance(model, np.random.default_rng(4)) < 1e-14
    consistent = check_initial_state(model, x0, project=name == "long chain")
    assert np.array_equal(consistent, x0) or name == "long chain"
    assert not model.open_ports


def test_motor_equations():
    """L i' = V - R i - K phi', and the crank feels K i: the coil's equations as anybody would write them."""
    model, _ = examples.motor_slider_crank(motor_constant=0.3, voltage=2.0, L=0.05, R=0.5)
    x = np.array([4.0, 0.1, 0.2, 0.3, 5.0, 6.0, 7.0, 0.0, 0.0])
    residual = np.array(model.residual(x, np.zeros(9), 0, model.parameter_vector())).ravel()
    assert residual[0] == pytest.approx(-(2.0 - 0.5 * 4 - 0.3 * 5))
    assert residual[4] == pytest.approx(-0.3 * 4)
    k = model.parameter_vector()
    assert float(model.supplied(x, 0, k)) == pytest.approx(2.0 * 4)
    assert float(model.dissipated(x, 0, k)) == pytest.approx(0.5 * 4**2 + 0.05 * 7**2)


def test_chain_has_the_thesis_limit_start():
    """With a massless second body and d1 = 0, d2 = 1e-4 its equation is algebraic (Symank 2025 7.2.3)."""
    model, x0 = examples.mass_spring_damper((1.0, 0.0), damping=(0.0, 1e-4), alpha=0.0)
    with pytest.raises(lv.InputError, match=r"algebraic equation 3 \(row of 'v_2'\) is violated by -12"):
        check_initial_state(model, x0)
    x = check_initial_state(model, x0, project=True)
    assert x[:3] == pytest.approx(x0[:3]) and x[3] == pytest.approx(-12 / 1e-4)
    # a mass of 1e-24 is a mass: nothing is algebraic
    assert np.array_equal(check_initial_state(examples.mass_spring_damper((1.0, 1e-24))[0], x0), x0)


def test_null_space_that_moves_with_the_state():
    """A mass that acts along a direction that turns with q: the algebraic equation is a combination of rows."""
    system = lv.System(
        "x y", kinetic=lambda q, v: (m.cos(q[0]) * v[0] + m.sin(q[0]) * v[1]) ** 2 / 2, potential=lambda q: q @ q / 2
    )
    model, x0 = from_system(system), np.array([0.7, 0.2, 0.1, 0.4])
    with pytest.raises(lv.InputError, match="a combination of equations, mainly equation"):
        check_initial_state(model, x0)
    x = check_initial_state(model, x0, project=True)
    assert np.abs(x - x0).max() < 0.6
    assert np.array_equal(check_initial_state(model, x), x)


# -- bad structures ---------------------------------------------------------------------------------------------------


def oscillator(**changes):
    given = dict(H=lambda x: (x @ x) / 2, J=[[0, 1], [-1, 0]], B=[[0], [1]])
    return lv.PortHamiltonian(changes.pop("states", "q p"), **(given | changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (dict(J=[[0, 1], [1, 0]]), r"J is not skew: J\[0, 1\] \+ J\[1, 0\] is 2 instead of 0 at q = "),
        (dict(J=[[0.5, 1], [-1, 0]]), r"J\[0, 0\] \+ J\[0, 0\] is 1 instead of 0"),
        (dict(J=lambda x: [[0, 1 + 1e-9 * x[0]], [-1, 0]]), r"J is not skew: J\[0, 1\] \+ J\[1, 0\] is .*e-09 instead"),
        (dict(N=[[1]]), r"N is not skew: N\[0, 0\] \+ N\[0, 0\] is 2 instead of 0"),
        (dict(R=[[0, 1], [0, 1]]), r"R is not symmetric: R\[0, 1\] - R\[1, 0\] is 1 instead of 0 at q = "),
        (dict(R=[[0, 0], [0, -1]]), r"R is not positive semidefinite: R\[1, 1\] is -1 at q = "),
        (dict(R=[[1, 2], [2, 1]]), r"R is not positive semidefinite because of R\[0, 1\]: the power lost .* is -2"),
        (dict(R=[[0, 1], [1, 1]]), r"R is not positive semidefinite because of R\[0, 1\]"),
        (dict(R=lambda x: [[0, 0], [0, x[0]]]), r"R is not positive semidefinite: R\[1, 1\] is -0"),
        (dict(R=[[1e-9, 0], [0, -1e-9]]), r"R\[1, 1\] is -1e-09"),
        (dict(R=[[1e12, 0], [0, -1e-9]]), r"R\[1, 1\] is -1e-09"),
        (dict(P=[[0], [1]]), r"W = \[\[R, P\], \[P\^T, S\]\] is not positive semidefinite because of P\[1, 0\]"),
        (dict(S=[[-1]]), r"W = \[\[R, P\], \[P\^T, S\]\] is not positive semidefinite: S\[0, 0\] is -1"),
        (dict(z=lambda x: [x[0], 2 * x[1]]), r"gradient of H is not E\^T z: entry 1 \(dH/dp\) differs by .* at q = "),
        (dict(E=[[1, 0], [0, 2]], z=lambda x: x), r"entry 1 \(dH/dp\) differs"),
        (dict(H=lambda x, t: (x @ x) * t), r"dH/dt is not z.r: it differs by"),
        (dict(r=[1, 0]), r"dH/dt is not z.r: it differs by"),
        (dict(E=[[1, 0], [0, 2]]), "give the effort z together with E"),
        (dict(J=[[0, 1, 0], [-1, 0, 0]]), r"J must be an array of shape \(2, 2\), got an array of shape \(2, 3\)"),
        (dict(B=[0, 1]), r"B must be an array of shape \(2, any\), got an array of shape \(2,\)"),
        (dict(H=lambda x: x), r"H must be one number, got an array of shape \(2,\)"),
        (dict(H=lambda q: q[0]), "H has an argument 'q'; a H function may have the arguments x, t, k"),
        (dict(H=lambda x, k: k.m * x[0]), "H: unknown parameter 'k.m'"),
        (dict(H=lambda x: x[7]), "H: IndexError"),
        (dict(H=lambda x: m.log(-1 - x[0] ** 2)), "the model is not finite at any of 6 random states"),
        (dict(B=None, S=[[1]]), "give B, or the names of the ports, together with"),
        (dict(u=[1, 2]), r"u must be an array of shape \(1,\)"),
        (dict(u=lambda z: z), "u has an argument 'z'; a u function may have the arguments x, y, t, k"),
        (dict(S=[[1]], u=lambda y: -y), "algebraic loop: the input of port 'u0' asks for an output that depends"),
        (dict(states="q q"), "states: 'q' is named twice"),
        (dict(states=0), "needs at least one state"),
        (dict(ports="a b"), r"B must be an array of shape \(2, 2\)"),
    ],
)  # fmt: skip
def test_bad_structures_are_named(changes, words):
    with pytest.raises(lv.InputError, match=words):
        oscillator(**changes)


def test_points_are_checked_too():
    def risky(points=()):
        return oscillator(R=lambda x: [[0, 0], [0, m.where(x[0] > 10, -1, 1)]], points=points)

    model = risky()
    with pytest.raises(lv.ModelError, match=r"R\[1, 1\] is -1 at q = 11, p = 0, t = 2"):
        risky(points=[(2.0, [11, 0])])
    with pytest.raises(lv.ModelError, match=r"R\[1, 1\] is -1 at q = 20"):
        check_initial_state(model, [20, 0])
    with pytest.raises(lv.InputError, match="x0 must be 2 numbers"):
        check_initial_state(model, [20])
    with pytest.raises(lv.ModelError, match="cannot be evaluated at t = 0, q = 0, p = 1"):
        oscillator(R=lambda x: [[0, 0], [0, 1 / x[0] ** 2]], points=[(0.0, [0, 1])])


def test_round_off_is_no_violation():
    """Large terms that cancel, matrices symmetric but for rounding, zero eigenvalues that come out negative."""
    random = np.random.default_rng(0)
    for _ in range(20):
        k = random.standard_normal((4, 2))
        a = random.standard_normal((4, 4)) * 1e8
        model = lv.PortHamiltonian(
            4,
            H=lambda x: 1e9 * ((x[0] + 1e4) ** 2 + x @ x - 2e4 * x[0]),
            z=lambda x: 2e9 * x + np.array([2e9 * x[0], 0, 0, 0]),
            J=lambda x: a * m.sin(x[1]) - a.T * m.cos(m.pi / 2 - x[1]),
            R=k @ k.T * (1 / 3),
        )
        assert model.n == 4 and np.linalg.eigvalsh(k @ k.T * (1 / 3))[0] < 1e-15


@pytest.mark.parametrize(
    ("M", "N", "words"),
    [
        ([[0, -1], [-1, 0]], [[1, 0], [0, 1]], "the interconnection creates power at the ports 'a_u0', 'b_u0'"),
        ([[-1, 0]], [[1, 0]], "the interconnection creates power at the ports 'a_u0'"),
        ([[1, 0], [0, 0]], [[0, 0], [1, 0]], "the interconnection creates power"),
        ([[1, 0], [2, 0]], [[0, 0], [0, 0]], "relation 1 of the interconnection follows from those before it"),
        ([[1, 0, 0]], [[1, 0, 0]], "M must have 2 columns"),
        ([[1, 0]], [[1, 0], [0, 1]], "same shape"),
        ([[1, 0]] * 3, [[1, 0]] * 3, "1 to 2 relations"),
        ([[np.nan, 0]], [[1, 0]], "M must be finite"),
        ("no", [[1, 0]], "M must be a matrix of numbers"),
    ],
)
def test_bad_interconnections_are_named(M, N, words):
    with pytest.raises(lv.InputError, match=words):
        interconnect(oscillator(), oscillator(), M, N)


def test_algebraic_loops_are_named():
    through = oscillator(S=[[1]])
    with pytest.raises(
        lv.ModelError, match="algebraic loop: at the ports 'a_u0', 'b_u0' the feedthrough of the systems"
    ):
        interconnect(through, through, [[0, -1], [-1, 0]], [[1, 0], [0, 1]])  # u_a = y_b, u_b = y_a, with gain one
    gyrator = oscillator(B=np.eye(2), N=[[0, 1], [-1, 0]], ports="f g")
    other = oscillator(ports="w")
    with pytest.raises(lv.ModelError, match="algebraic loop: at the ports 'f', 'g'"):
        interconnect(gyrator, other, [[1, 0, 0], [0, 1, 0]], [[0, 1, 0], [-1, 0, 0]])  # y = -N u, once more
    deaf = oscillator(B=[[0], [0]], ports="deaf")
    with pytest.raises(lv.ModelError, match="algebraic loop: the relation between the ports 'deaf' does not restrict"):
        interconnect(deaf, other, [[1, 0]], [[0, 0]])
    # damping in the loop resolves it
    assert interconnect(through, other, [[0, 1], [-1, 0]], [[1, 0], [0, 1]]).n == 4


@pytest.mark.parametrize(
    ("changes", "inputs", "words"),
    [
        (dict(potential=lambda q, t: q[0] * t), None, "the potential depends on time"),
        (dict(dissipation=lambda v: v[0]), None, "the dissipation function has a force at rest"),
        (dict(), "z", "'inputs' of from_system acts on the coordinate 'z', which the system does not have"),
        (dict(), lambda q: [1, 0], r"inputs must be an array of shape \(2, any\)"),
        (dict(dissipation=lambda v: -v @ v), None, r"R is not positive semidefinite: R\[2, 2\] is -2"),
    ],
)
def test_mechanics_that_does_not_fit(changes, inputs, words):
    system = lv.System("x y", kinetic=lambda v: v @ v, **changes)
    with pytest.raises(lv.InputError, match=words):
        from_system(system, inputs=inputs)


def test_flows_and_efforts_are_observables():
    """The power of the flow in the effort is what is supplied less what is lost, at every row."""
    model = oscillator(u=lambda t: [m.sin(3 * t)])
    run = lv.simulate(model, x0=[1.0, 0.0], scheme="gauss-2", h=0.05, t_end=1.0)
    flow, effort = run.observe("flow"), run.observe("effort")
    power = run.observe("supplied_power") - run.observe("dissipated_power")
    assert flow.shape == effort.shape == run.x.shape
    assert np.abs((flow * effort).sum(axis=1) - power).max() < 1e-13 and np.ptp(power) > 0.01


# -- networks ---------------------------------------------------------------------------------------------------------
def cart(**more):
    given = dict(H=lambda x, k: x[0] ** 2 / (2 * k.m), B=[[1]], ports="f", parameters=dict(m=1.0)) | more
    return lv.PortHamiltonian("p", **given)


def spring():
    return lv.PortHamiltonian("s", H=lambda x, k: k.c * x[0] ** 2 / 2, B=[[1]], ports="v", parameters=dict(c=4.0))


def train(count):
    """Carts with springs between neighbours: relations by the names of ports."""
    parts = {f"cart{i}": cart() for i in range(count)} | {f"hook{i}": spring() for i in range(count - 1)}

    def relations(y, u):
        pulls = [u[f"hook{i}.v"] - y[f"cart{i + 1}.f"] + y[f"cart{i}.f"] for i in range(count - 1)]
        forces = []
        for i in range(count):
            ahead = y[f"hook{i}.v"] if i < count - 1 else 0.0
            behind = y[f"hook{i - 1}.v"] if i else 0.0
            forces.append(u[f"cart{i}.f"] - ahead + behind)
        return [*pulls, *forces]

    return interconnect_all(parts, relations)


def test_a_network_of_any_number_of_systems():
    """A chain of four carts as a network: energy and momentum stay, and it moves as the chain of masses it is."""
    model = train(4)
    assert model.states == (*(f"cart{i}.p" for i in range(4)), *(f"hook{i}.s" for i in range(3))) and not model.ports
    assert model.parameters["cart2_m"] == 1.0 and model.parameters["hook1_c"] == 4.0
    run = lv.simulate(
        model, x0=[1.0, 0, 0, 0, 0.2, 0, 0], scheme="gauss-3", h=0.02, t_end=2.0, parameters=dict(cart2_m=2.0)
    )
    masses = np.array([1.0, 1.0, 2.0, 1.0])
    chain = lv.System(
        "a b c d",
        kinetic=lambda v: sum(mass * v[i] ** 2 for i, mass in enumerate(masses)) / 2,
        potential=lambda q: 2 * ((q[1] - q[0]) ** 2 + (q[2] - q[1]) ** 2 + (q[3] - q[2]) ** 2),
    )
    same = lv.simulate(chain, [0.0, 0.2, 0.2, 0.2], [1.0, 0, 0, 0], scheme="gauss-3", h=0.02, t_end=2.0)
    assert np.abs(run.x[:, :4] - same.v * masses).max() < 1e-12
    assert np.abs(run.x[:, 4:] - np.diff(same.q, axis=1)).max() < 1e-12
    assert np.ptp(run.x[:, :4].sum(axis=1)) < 1e-13 and run.summary.max_energy_drift < 1e-13


def test_a_network_of_rigid_couplings_is_that_of_pairs():
    """Three carts with equal velocities and one force on all: a port stays open."""
    stiff = interconnect_all(
        {"a": cart(), "b": cart(parameters=dict(m=2.0)), "c": cart(parameters=dict(m=3.0))},
        lambda y: [y["a.f"] - y["b.f"], y["b.f"] - y["c.f"]],
    ).with_input([12.0])
    run = lv.simulate(stiff, x0=[0.0] * len(stiff.states), scheme="radau-iia-2", h=0.05, t_end=1.0, project=True)
    assert run.x[-1, :3] == pytest.approx([2.0, 4.0, 6.0], abs=1e-12)


@pytest.mark.parametrize(
    ("relations", "words"),
    [
        (lambda y, u: [u["a.f"] - y["a.f"]], "power"),
        (lambda y, u: [u["a.g"] - y["b.f"]], "there is no open port 'a.g'; did you mean 'a.f'"),
        (lambda y, u: [u["a.f"] * y["b.f"]], "sums of outputs and inputs with constant factors"),
        (lambda y, u: [u["a.f"] - 1.0], "sums of outputs and inputs with constant factors"),
        (lambda y, u: [], "at least one"),
        (lambda y, w: [y["a.f"]], "has an argument 'w'"),
        (3, "relations must be a function of y and u"),
    ],
)
def test_networks_that_are_refused(relations, words):
    with pytest.raises(lv.LivensError, match=words):
        interconnect_all({"a": cart(), "b": cart()}, relations)


@pytest.mark.parametrize("systems", [{}, {"a": cart()}, {"a": cart(), "b": 3}, {"a": cart(), "b c": cart()}, [1, 2]])
def test_what_is_no_network(systems):
    with pytest.raises(lv.InputError):
        interconnect_all(systems, lambda y, u: [u["a.f"]])
