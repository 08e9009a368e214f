"""SymPy in and out: eleven models of the kinds in SymPy's documentation, beside SymPy's own equations and SciPy."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import fsolve

import livens as lv

sp = pytest.importorskip("sympy")
from sympy.physics import mechanics as me  # noqa: E402

t = me.dynamicsymbols._t
m, length, g, c, k = sp.symbols("m l g c k", positive=True)


def reference(mass, forcing, states, parameters, x0, t_end, specified=None):
    """Return the final state of ``mass x' = forcing`` by lambdify and SciPy; rows beyond the states are multipliers."""
    names, functions, n = list(parameters), list(specified or {}), len(states)
    evaluate = sp.lambdify([t, list(states), names, functions], [mass, forcing], cse=True)
    values = [parameters[name] for name in names]

    def rhs(time, x):
        M, f = evaluate(time, x, values, [(specified or {})[s](time) for s in functions])
        return np.linalg.solve(np.asarray(M, float), np.asarray(f, float)).ravel()[:n]

    return solve_ivp(rhs, (0, t_end), x0, rtol=1e-12, atol=1e-13, method="DOP853").y[:, -1]


def lagrange_reference(method, parameters, x0, t_end, specified=None):
    method.form_lagranges_equations()
    q, v = ([sp.Symbol(f"{kind}{i}_") for i in range(len(method.q))] for kind in "qv")
    plain = [{sp.Derivative(x, t): y for x, y in zip(method.q, v, strict=True)}, dict(zip(method.q, q, strict=True))]
    M, f = (part.subs(plain[0]).subs(plain[1]) for part in (method.mass_matrix_full, method.forcing_full))
    return reference(M, f, q + v, parameters, x0, t_end, specified)


def kane_reference(method, parameters, x0, t_end):
    states = [*method.q, *method.u]
    plain = {x: sp.Symbol(f"x{i}_") for i, x in enumerate(states)}
    M, f = (sp.Matrix(part).subs(plain) for part in (method.mass_matrix_full, method.forcing_full))
    return reference(M, f, list(plain.values()), parameters, x0, t_end)


def final(model, x0, t_end, scheme="taylor", h=None):
    if isinstance(model, lv.FirstOrder):
        return lv.simulate(model, x0=x0, scheme=scheme, h=h, t_end=t_end).x[-1]
    n = len(x0) // 2
    run = lv.simulate(model, q0=x0[:n], v0=x0[n:], scheme=scheme, h=h, t_end=t_end)
    return np.r_[run.q[-1], run.v[-1]]


def assert_close(got, expected, tolerance):
    assert np.max(np.abs(got - expected)) <= tolerance * max(1.0, np.max(np.abs(expected)))


def pendulum():
    angle = me.dynamicsymbols("theta")
    return m * length**2 * angle.diff(t) ** 2 / 2 + m * g * length * sp.cos(angle), angle


def test_pendulum_by_a_lagrangian():
    L, angle = pendulum()
    values, x0 = {m: 1.2, length: 0.7, g: 9.81}, [1.0, 0.3]
    method = me.LagrangesMethod(L, [angle])
    expected = lagrange_reference(method, values, x0, 5.0)
    model = lv.System.from_sympy(L, [angle], parameters=values)
    assert model.autonomous and model.coordinates == ("theta",)
    assert_close(final(model, x0, 5.0), expected, 1e-11)
    by_name = lv.from_sympy(method, parameters={"m": 1.2, "l": 0.7, "g": 9.81})
    assert_close(final(by_name, x0, 5.0), expected, 1e-11)


def double_pendulum():
    q1, q2 = me.dynamicsymbols("q1 q2")
    l1, l2, m1, m2 = sp.symbols("l1 l2 m1 m2")
    x1, y1 = l1 * sp.sin(q1), -l1 * sp.cos(q1)
    x2, y2 = x1 + l2 * sp.sin(q2), y1 - l2 * sp.cos(q2)
    T = m1 * (x1.diff(t) ** 2 + y1.diff(t) ** 2) / 2 + m2 * (x2.diff(t) ** 2 + y2.diff(t) ** 2) / 2
    return T, g * (m1 * y1 + m2 * y2), [q1, q2], {l1: 1.0, l2: 0.8, m1: 1.0, m2: 0.5, g: 9.81}


def test_double_pendulum_by_energies_and_back():
    T, V, q, values = double_pendulum()
    x0 = [1.0, -0.5, 0, 0.2]
    model = lv.from_sympy((T, V), q, parameters=values)
    expected = lagrange_reference(me.LagrangesMethod(sp.simplify(T - V), q), values, x0, 3.0)
    assert_close(final(model, x0, 3.0), expected, 1e-10)
    back = model.to_sympy().lagrangian
    assert sp.simplify((back - (T - V).doit()).subs({sp.Symbol("g"): g})) == 0


def test_cart_and_pendulum_with_a_force_of_time_and_damping():
    x, a, F, M = *me.dynamicsymbols("x a F"), sp.symbols("M")
    N, O = me.ReferenceFrame("N"), me.Point("O")  # noqa: E741
    O.set_vel(N, 0)
    C = O.locatenew("C", x * N.x)
    C.set_vel(N, x.diff(t) * N.x)
    B = N.orientnew("B", "Axis", [a, N.z])
    E = C.locatenew("E", -length * B.y)
    E.v2pt_theory(C, N, B)
    cart, bob = me.Particle("c", C, M), me.Particle("e", E, m)
    bob.potential_energy = m * g * E.pos_from(O).dot(N.y)
    method = me.LagrangesMethod(
        me.Lagrangian(N, cart, bob), [x, a], forcelist=[(C, (F - c * x.diff(t)) * N.x)], frame=N
    )
    values, x0 = {m: 0.5, length: 0.6, g: 9.81, M: 2.0, c: 0.4}, [0, 0.4, 0, 0]
    expected = lagrange_reference(method, values, x0, 4.0, {F: lambda time: np.sin(2 * time)})
    model = lv.from_sympy(method, parameters=values, specified={F: lambda time: np.sin(2 * time)})
    assert_close(final(model, x0, 4.0), expected, 1e-10)


def test_pendulum_with_a_holonomic_constraint():
    X, Y = me.dynamicsymbols("X Y")
    L = m * (X.diff(t) ** 2 + Y.diff(t) ** 2) / 2 - m * g * Y
    method = me.LagrangesMethod(L, [X, Y], hol_coneqs=[(X**2 + Y**2 - length**2) / 2])
    values, x0 = {m: 1.0, length: 1.0, g: 9.81}, [0.6, -0.8, 0, 0]
    expected = lagrange_reference(method, values, x0, 2.0)
    got = final(lv.from_sympy(method, parameters=values), x0, 2.0, "lobatto-iiia-iiib-4", 0.01)
    assert_close(got, expected, 1e-10)
    assert abs(got[:2] @ got[:2] - 1) < 1e-14


def test_skate_with_a_nonholonomic_constraint():
    x, y, angle = me.dynamicsymbols("x y phi")
    inertia, slope = sp.symbols("I alpha")
    L = m * (x.diff(t) ** 2 + y.diff(t) ** 2) / 2 + inertia * angle.diff(t) ** 2 / 2 + m * g * sp.sin(slope) * x
    blade = x.diff(t) * sp.sin(angle) - y.diff(t) * sp.cos(angle)
    method = me.LagrangesMethod(L, [x, y, angle], nonhol_coneqs=[blade])
    values, x0 = {m: 1.0, inertia: 0.5, g: 9.81, slope: 0.3}, [0, 0, 0, 0, 0, 1.0]
    expected = lagrange_reference(method, values, x0, 3.0)
    model = lv.from_sympy(method, parameters=values)
    errors = [np.max(np.abs(final(model, x0, 3.0, "livens-em", h) - expected)) for h in (8e-3, 4e-3, 2e-3, 1e-3)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(np.abs(orders - 2) < 0.1) and errors[-1] < 1e-6 * np.max(np.abs(expected))
    with pytest.raises(lv.InputError, match="velocity-level constraints"):
        model.to_sympy()


def test_ball_on_a_piecewise_spring():
    z = me.dynamicsymbols("z")
    V = sp.Piecewise((0, z > 0), (k * z**2 / 2, True)) + m * g * z
    values = {m: 1.0, g: 9.81, k: 1000.0}
    model = lv.from_sympy((m * z.diff(t) ** 2 / 2, V), [z], parameters=values)
    u, w = sp.symbols("u w")
    force = -g - sp.Piecewise((0, u > 0), (k * u / m, True))
    expected = reference(sp.eye(2), sp.Matrix([w, force]), [u, w], values, [0.5, 0], 0.8)
    assert_close(final(model, [0.5, 0.0], 0.8, "gauss-3", 1e-4), expected, 1e-6)


def test_spinning_top():
    phi, theta, psi, (I1, I3) = *me.dynamicsymbols("phi theta psi"), sp.symbols("I1 I3")
    spin = psi.diff(t) + phi.diff(t) * sp.cos(theta)
    T = I1 * (theta.diff(t) ** 2 + phi.diff(t) ** 2 * sp.sin(theta) ** 2) / 2 + I3 * spin**2 / 2
    method = me.LagrangesMethod(T - m * g * length * sp.cos(theta), [phi, theta, psi])
    values, x0 = {I1: 0.3, I3: 0.1, m: 1.0, g: 9.81, length: 0.2}, [0, 0.5, 0, 1.0, 0, 40.0]
    expected = lagrange_reference(method, values, x0, 2.0)
    assert_close(final(lv.from_sympy(method, parameters=values), x0, 2.0), expected, 1e-11)


def test_triple_pendulum_on_a_cart_by_kane():
    q, u = me.dynamicsymbols("q:4"), me.dynamicsymbols("u:4")
    masses, lengths = sp.symbols("m:4"), sp.symbols("l:3")
    N, O = me.ReferenceFrame("N"), me.Point("O")  # noqa: E741
    O.set_vel(N, 0)
    last = O.locatenew("P0", q[0] * N.x)
    last.set_vel(N, u[0] * N.x)
    particles, loads = [me.Particle("c", last, masses[0])], [(last, -masses[0] * g * N.y)]
    for i in range(3):
        frame = N.orientnew(f"B{i}", "Axis", [q[i + 1], N.z])
        frame.set_ang_vel(N, u[i + 1] * N.z)
        point = last.locatenew(f"P{i + 1}", lengths[i] * frame.x)
        point.v2pt_theory(last, N, frame)
        particles.append(me.Particle(f"p{i}", point, masses[i + 1]))
        loads.append((point, -masses[i + 1] * g * N.y))
        last = point
    method = me.KanesMethod(N, q, u, kd_eqs=[a.diff(t) - b for a, b in zip(q, u, strict=True)])
    method.kanes_equations(particles, loads)
    values = dict(zip(masses, [1.0, 0.4, 0.3, 0.2], strict=True)) | dict(zip(lengths, [0.5, 0.4, 0.3], strict=True))
    values[g] = 9.81
    x0 = [0, -1.2, -1.0, -1.8, 0, 0, 0, 0]
    energy = sum(p.kinetic_energy(N) for p in particles) + sum(
        mass * g * p.point.pos_from(O).dot(N.y) for mass, p in zip(masses, particles, strict=True)
    )
    model = lv.from_sympy(method, parameters=values, invariants={"energy": energy})
    assert_close(final(model, x0, 2.0), kane_reference(method, values, x0, 2.0), 1e-10)
    run = lv.simulate(model, x0=x0, scheme="taylor", t_end=2.0)
    assert run.summary.momentum_drift["energy"] < 1e-10


def test_rolling_disc_by_kane():
    q1, q2, q3, u1, u2, u3 = me.dynamicsymbols("q1 q2 q3 u1 u2 u3")
    radius = sp.symbols("r")
    N = me.ReferenceFrame("N")
    Y = N.orientnew("Y", "Axis", [q1, N.z])
    L = Y.orientnew("L", "Axis", [q2, Y.x])
    R = L.orientnew("R", "Axis", [q3, L.y])
    rotation, speeds = R.ang_vel_in(N), u1 * L.x + u2 * L.y + u3 * L.z
    R.set_ang_vel(N, speeds)
    contact = me.Point("C")
    contact.set_vel(N, 0)
    centre = contact.locatenew("Dm", radius * L.z)
    centre.v2pt_theory(contact, N, R)
    inertia = me.inertia(L, m * radius**2 / 4, m * radius**2 / 2, m * radius**2 / 4)
    kinematics = [(rotation - speeds).dot(axis) for axis in L]
    method = me.KanesMethod(N, q_ind=[q1, q2, q3], u_ind=[u1, u2, u3], kd_eqs=kinematics)
    method.kanes_equations([me.RigidBody("D", centre, R, m, (inertia, centre))], [(centre, -m * g * Y.z)])
    values, x0 = {radius: 0.5, m: 2.0, g: 9.81}, [0, 0.1, 0, 0.0, 5.0, 0.3]
    got = final(lv.from_sympy(method, parameters=values), x0, 2.0)
    assert_close(got, kane_reference(method, values, x0, 2.0), 1e-11)


def test_four_bar_linkage_by_kane():
    q, u = me.dynamicsymbols("q1:4"), me.dynamicsymbols("u1:4")
    la, lb, lc, ln, rho = sp.symbols("la lb lc ln rho")
    N = me.ReferenceFrame("N")
    frames, last = [], N
    for name, angle, speed in zip("ABC", q, u, strict=True):
        frame = last.orientnew(name, "Axis", [angle, last.z])
        frame.set_ang_vel(last, speed * N.z)
        frames.append(frame)
        last = frame
    points = [me.Point("P1")]
    points[0].set_vel(N, 0)
    for i, (frame, rod) in enumerate(zip(frames, (la, lb, lc), strict=True)):
        points.append(points[-1].locatenew(f"P{i + 2}", rod * frame.x))
        points[-1].v2pt_theory(points[-2], N, frame)
    loop = points[-1].pos_from(points[0]) - ln * N.x
    closure = [loop.dot(N.x), loop.dot(N.y)]
    rates = {a.diff(t): b for a, b in zip(q, u, strict=True)}
    method = me.KanesMethod(
        N, q_ind=q[:1], u_ind=u[:1], q_dependent=q[1:], u_dependent=u[1:],
        kd_eqs=[a.diff(t) - b for a, b in zip(q, u, strict=True)], configuration_constraints=closure,
        velocity_constraints=[e.diff(t).subs(rates) for e in closure],
    )  # fmt: skip
    bodies = [me.Particle("a", points[1], rho * la), me.Particle("b", points[2], rho * lb)]
    method.kanes_equations(bodies, [(body.point, -body.mass * g * N.y) for body in bodies])
    values = {la: 0.6, lb: 1.3, lc: 0.8, ln: 2.0, rho: 5.0, g: 9.81}
    residual = sp.lambdify(q, [e.subs(values) for e in closure])
    x0 = [0.5, *fsolve(lambda y: residual(0.5, *y), [-0.6, -0.9], xtol=1e-12), 0, 0, 0]
    got = final(lv.from_sympy(method, parameters=values), x0, 1.0)
    assert_close(got, kane_reference(method, values, x0, 1.0), 1e-10)


def test_double_pendulum_of_joints():
    a1, a2, w1, w2 = me.dynamicsymbols("a1 a2 w1 w2")
    mass, inertia, rod = sp.symbols("mb Ib lb")
    root = me.RigidBody("root")
    system = me.System.from_newtonian(root)
    frames, centres = [me.ReferenceFrame(n) for n in ("f1", "f2")], [me.Point(n) for n in ("c1", "c2")]
    links = [
        me.RigidBody(f"r{i}", p, f, mass, (me.inertia(f, 0, 0, inertia), p))
        for i, (f, p) in enumerate(zip(frames, centres, strict=True))
    ]
    upper = me.PinJoint(
        "j1", root, links[0], coordinates=a1, speeds=w1, child_point=rod / 2 * frames[0].y, joint_axis=root.frame.z
    )
    lower = me.PinJoint(
        "j2", links[0], links[1], coordinates=a2, speeds=w2, parent_point=-rod / 2 * frames[0].y,
        child_point=rod / 2 * frames[1].y, joint_axis=frames[0].z,
    )  # fmt: skip
    system.add_joints(upper, lower)
    system.apply_uniform_gravity(-g * root.frame.y)
    values, x0 = {mass: 1.0, inertia: 0.05, rod: 0.8, g: 9.81}, [0.8, 0.4, 0, 0]
    model = lv.from_sympy(system, parameters=values)
    assert_close(final(model, x0, 2.0), kane_reference(system.eom_method, values, x0, 2.0), 1e-10)


# -- export and errors -------------------------------------------------------------------------------------------------
def test_equations_in_latex():
    system = lv.System(
        "x y",
        kinetic=lambda v, k: 0.5 * k.m * (v @ v),
        potential=lambda q, k: k.m * k.g * q[1],
        constraints=lambda q, k: [0.5 * (q @ q - k.l**2)],
        parameters=dict(m=1.0, l=1.0, g=9.81),
    )
    exported = system.to_sympy()
    x, y = exported.coordinates
    lam, mass, gravity = sp.symbols("lambda_1 m g")
    assert sp.simplify(exported.equations[0].lhs - mass * x.diff(t, 2)) == 0
    assert sp.simplify(exported.equations[0].rhs + lam * x) == 0
    assert (
        sp.simplify(exported.equations[1].lhs - exported.equations[1].rhs - mass * (y.diff(t, 2) + gravity) - lam * y)
        == 0
    )
    latex = system._repr_latex_()
    assert latex.startswith("$") and r"\ddot{x}" in latex and r"\lambda_{1}" in latex and latex.count(r"\\") == 2
    large = lv.System(7, kinetic=lambda v: 0.5 * (v @ v))
    assert large._repr_latex_() is None


def test_names_that_are_not_identifiers():
    x, lam = me.dynamicsymbols("x_{1}"), sp.Symbol("lambda")
    model = lv.from_sympy((x.diff(t) ** 2 / 2, lam * x**2 / 2), [x], parameters={lam: 4.0})
    assert model.coordinates == ("x_1",) and model.parameters == {"lambda_": 4.0}


def test_errors_name_the_symbol():
    L, angle = pendulum()
    with pytest.raises(lv.ModelError, match="kinetic: the symbol 'l' has no value: pass it as a parameter"):
        lv.from_sympy(L, [angle], parameters={m: 1.0, g: 9.81})
    with pytest.raises(lv.ModelError, match="potential: the function 'besselj' of SymPy cannot be translated"):
        lv.from_sympy((angle.diff(t) ** 2, sp.besselj(0, angle)), [angle])
    with pytest.raises(lv.InputError, match="from_sympy needs coordinates"):
        lv.from_sympy(L)
    with pytest.raises(lv.ModelError, match="depends on time explicitly"):
        lv.from_sympy((t * angle.diff(t) ** 2, 0), [angle])
