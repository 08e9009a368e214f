"""Schemes that the papers name, against NumPy code written from their equations: equal to round-off step by step."""

import itertools

import numpy as np
import pytest
from scipy.linalg import expm, logm

import livens as lv
from livens import math as m
from livens import port_hamiltonian as ph


def newton(residual, x, tolerance=1e-15, count=30):
    """Solve equations by Newton's method with a difference Jacobian."""
    x = np.array(x, dtype=float)
    for _ in range(count):
        scale = 1e-6 * (1 + np.abs(x))
        J = np.column_stack(
            [
                (residual(x + d) - residual(x - d)) / (2 * d.max())
                for d in (s * e for s, e in zip(scale, np.eye(len(x)), strict=True))
            ]
        )
        change = np.linalg.solve(J, residual(x))
        x = x - change
        if np.abs(change).max() <= tolerance * (1 + np.abs(x).max()):
            return x
    return x


def gradient(f, x, *others):
    """Return the gradient by complex steps."""
    return np.array([f(x + 1e-200j * e, *others).imag / 1e-200 for e in np.eye(len(x))])


def hessian(f, x):
    """Return second derivatives by differences of complex-step gradients."""
    return np.array([(gradient(f, x + 1e-6 * e) - gradient(f, x - 1e-6 * e)) / 2e-6 for e in np.eye(len(x))])


# -- variational schemes (Kinon and Betsch 2023, outlook) --------------------------------------------------------------
def lagrangian(q, v):
    """Singular mass that depends on q: `b` and `c` have inertia in their sum only."""
    kinetic = ((1 + 0.5 * np.cos(q[0])) * v[0] ** 2 + (1 + 0.2 * q[0] ** 2) * (v[1] + v[2]) ** 2) / 2
    return kinetic - 2 * np.cos(q[0]) - q[1] ** 2 / 2 - q[1] ** 4 / 4


def constraint(q):
    return q[2] - np.sin(q[0])


def singular_system():
    return lv.System(
        "a b c",
        kinetic=lambda q, v: ((1 + 0.5 * m.cos(q[0])) * v[0] ** 2 + (1 + 0.2 * q[0] ** 2) * (v[1] + v[2]) ** 2) / 2,
        potential=lambda q: 2 * m.cos(q[0]) + q[1] ** 2 / 2 + q[1] ** 4 / 4,
        constraints=lambda q: [q[2] - m.sin(q[0])],
    )  # fmt: skip


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_galerkin_variational_steps_from_their_discrete_action(degree):
    """The stationary action of polynomials with Lobatto quadrature, differentiated by complex steps."""
    s, h, n = degree, 0.1, 3
    nodes = {1: [0, 1], 2: [0, 0.5, 1], 3: [0, 0.5 - 0.1 * 5**0.5, 0.5 + 0.1 * 5**0.5, 1]}[s]
    weights = {1: [0.5, 0.5], 2: [1 / 6, 2 / 3, 1 / 6], 3: [1 / 12, 5 / 12, 5 / 12, 1 / 12]}[s]
    polynomials = [np.poly1d(np.poly([c for c in nodes if c != a])) for a in nodes]
    slopes = [[p.deriv()(c) / p(a) for p, a in zip(polynomials, nodes, strict=True)] for c in nodes]

    def action(flat, lam):
        Q = flat.reshape(s + 1, n)
        return h * sum(
            b * (lagrangian(x, np.array(d) @ Q / h) - constraint(x) * force)
            for b, x, d, force in zip(weights, Q, slopes, lam, strict=True)
        )

    q, v = np.array([0.2, 0.3, np.sin(0.2)]), np.array([0.4, -0.3, 0.4 * np.cos(0.2)])
    run = lv.simulate(singular_system(), q, v, scheme=f"galerkin-variational-{s}", h=h, t_end=1.0)
    p = gradient(lambda w: lagrangian(q, w), v)
    for i in range(10):

        def residual(x, q=q, p=p):
            Q, v1, lam = x[: s * n], x[s * n : s * n + n], x[s * n + n :]
            path = np.concatenate([q, Q])
            impulse = gradient(action, path, lam).reshape(s + 1, n)
            ends = path.reshape(s + 1, n)
            p1 = gradient(lambda w: lagrangian(ends[-1], w), v1)
            level = gradient(constraint, ends[-1]) @ v1
            return np.concatenate(
                [impulse[0] + p, *impulse[1:-1], p1 - impulse[-1], [constraint(x) for x in ends[1:]], [level]]
            )

        start = np.concatenate([*(q + c * h * v for c in nodes[1:]), v, np.zeros(s + 1)])
        x = newton(residual, start)
        q, v = x[(s - 1) * n : s * n], x[s * n : s * n + n]
        p = gradient(lambda w, q=q: lagrangian(q, w), v)
        assert np.abs(q - run.q[i + 1]).max() < 2e-13 and np.abs(p - run.p[i + 1]).max() < 2e-12


# -- GGL variational integrator and its compositions (Kinon et al. 2023, (41) and outlook) -----------------------------
MASS = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 1.5]])


def circle(q):
    return np.array([q @ q - 1.5, q[0] + 0.4 * q[1] ** 2 - q[2] - 0.3])


def circle_slopes(q):
    return np.array([2 * q, [1.0, 0.8 * q[1], -1.0]])


def circle_curvature(gam):
    return 2 * gam[0] * np.eye(3) + gam[1] * np.diag([0.0, 0.8, 0.0])


def force(q):
    return -np.array([4 * q[0] ** 3, 0.5, 3.0 + q[2]])


def circle_system():
    return lv.System(
        "x y z",
        mass=lambda: MASS,
        potential=lambda q: q[0] ** 4 + 0.5 * q[1] + 3 * q[2] + q[2] ** 2 / 2,
        constraints=lambda q: [q @ q - 1.5, q[0] + 0.4 * q[1] ** 2 - q[2] - 0.3],
    )


def ggl_step(q0, p0, h):
    """One step of (41), with the momentum at its end in (41b)."""

    def residual(x):
        v, p1, lam, gam = x[:3], x[3:6], x[6:8], x[8:]
        qb, u = q0 + h * v, np.linalg.solve(MASS, p1)
        q1 = qb + h * np.linalg.solve(MASS, circle_slopes(qb).T @ gam)
        bend = h * circle_curvature(gam) @ u
        return np.r_[
            p1 - p0 - h * force(q0) + h * circle_slopes(q0).T @ lam + bend,
            MASS @ v - p1 - bend,
            circle(q1) / h,
            circle_slopes(qb) @ u,
        ]

    x = newton(residual, np.r_[np.linalg.solve(MASS, p0), p0, np.zeros(4)])
    qb = q0 + h * x[:3]
    return qb + h * np.linalg.solve(MASS, circle_slopes(qb).T @ x[8:]), x[3:6]


def ggl_adjoint_step(q0, p0, h):
    """Inverse of (41) with -h, solved for its start; momenta are equal up to constraint forces."""

    def parts(x):
        q1, v, nu, gam, lam = x[:3], x[3:6], x[6:8], x[8:10], x[10:]
        p, qb = p0 - h * circle_slopes(q0).T @ nu, q1 - h * v
        bend = h * circle_curvature(gam) @ np.linalg.solve(MASS, p)
        p1 = p + h * force(q1) - h * circle_slopes(q1).T @ lam - bend
        return q1, v, gam, p, qb, bend, p1

    def residual(x):
        q1, v, gam, p, qb, bend, p1 = parts(x)
        return np.r_[
            q0 - qb + h * np.linalg.solve(MASS, circle_slopes(qb).T @ gam),
            MASS @ v - p + bend,
            circle_slopes(qb) @ np.linalg.solve(MASS, p),
            circle(q1) / h,
            circle_slopes(q1) @ np.linalg.solve(MASS, p1),
        ]

    v0 = np.linalg.solve(MASS, p0)
    q1, *_, p1 = parts(newton(residual, np.r_[q0 + h * v0, v0, np.zeros(6)]))
    return q1, p1


@pytest.mark.parametrize("scheme", ["ggl-variational", "ggl-variational-adjoint", "ggl-variational-symmetric"])
def test_ggl_variational_steps(scheme):
    model = circle_system()
    start = model.initial_state(
        dict(q0=[0.9, 0.6, 0.6], v0=[1.0, -1.0, 0.5]), model.parameter_vector(), 0.0, True, "remove"
    )
    h, q, p = 0.02, start["q"], MASS @ start["v"]
    run = lv.simulate(model, q, start["v"], scheme=scheme, h=h, t_end=20 * h)
    for i in range(20):
        if scheme == "ggl-variational-symmetric":
            q, p = ggl_adjoint_step(*ggl_step(q, p, h / 2), h / 2)
        else:
            q, p = (ggl_adjoint_step if scheme.endswith("adjoint") else ggl_step)(q, p, h)
        assert np.abs(q - run.q[i + 1]).max() < 1e-12 and np.abs(p - run.p[i + 1]).max() < 5e-12


# -- discrete Lagrangians (Modin 2009, 2.6.4) --------------------------------------------------------------------------
def action_of_a_step(path, h):
    """Two coordinates, weights of start and end, and a coupling of velocity and position."""
    q0, q1 = path[:2], path[2:]
    v, a = (q1 - q0) / h, 0.3
    q = (1 - a) * q0 + a * q1
    kinetic = (v[0] ** 2 + (2 + np.cos(q[0])) * v[1] ** 2) / 2
    return h * (kinetic - np.sin(q[0]) * q[1] - q1 @ q1 / 2 - q0[0] ** 4 / 4)


def test_discrete_euler_lagrange_equations_and_discrete_energy():
    def lagrangian_of_livens(q0, q1, h):
        v, q = (q1 - q0) / h, 0.7 * q0 + 0.3 * q1
        kinetic = (v[0] ** 2 + (2 + m.cos(q[0])) * v[1] ** 2) / 2
        return h * (kinetic - m.sin(q[0]) * q[1] - q1 @ q1 / 2 - q0[0] ** 4 / 4)

    h, q, p = 0.1, np.array([0.5, -0.2]), np.array([0.3, 0.8])
    run = lv.simulate(lv.DiscreteLagrangian("a b", lagrangian=lagrangian_of_livens), q0=q, p0=p, h=h, t_end=3.0)
    for i in range(30):
        q1 = newton(lambda x, q=q, p=p: gradient(action_of_a_step, np.r_[q, x], h)[:2] + p, q + h * p)
        path = np.r_[q, q1]
        energy = -action_of_a_step(path, h + 1e-200j).imag / 1e-200
        q, p = q1, gradient(action_of_a_step, path, h)[2:]
        assert np.abs(np.r_[q - run.q[i + 1], p - run.p[i + 1]]).max() < 1e-12
        assert run.discrete_energy[i + 1] == pytest.approx(energy, abs=1e-12)


# -- backward error, splittings (Modin 2009, 2.1, 2.5) -----------------------------------------------------------------
def test_modified_matrices():
    """log R(hA)/h from the stability functions of 2.1; growth h^3/8 and -h^3/4 at h = 0.2."""
    h, A = 0.2, np.array([[0.0, 1.0], [-1.0, 0.0]])
    one, Z = np.eye(2), h * A
    euler = np.linalg.inv(one - Z)
    stages = {
        "implicit-midpoint": np.linalg.solve(one - Z / 2, one + Z / 2),
        "heun": one + Z + Z @ Z / 2,
        "stormer-verlet": np.array([[1, h / 2], [0, 1]]) @ [[1, 0], [-h, 1]] @ [[1, h / 2], [0, 1]],
        "implicit-extrapolation": 2 * np.linalg.matrix_power(np.linalg.inv(one - Z / 2), 2) - euler,
    }
    stages["stormer-verlet"] = np.array([[1, 0], [-h / 2, 1]]) @ [[1, h], [0, 1]] @ [[1, 0], [-h / 2, 1]]
    swing = lv.Hamiltonian("q", kinetic=lambda p: p[0] ** 2 / 2, potential=lambda q: q[0] ** 2 / 2)
    for scheme, R in stages.items():
        assert np.abs(lv.study.modified_matrix(swing, scheme, h) - logm(R) / h).max() < 1e-13, scheme
    growth = {name: np.linalg.eigvals(logm(stages[name]) / h).real.max() for name in ("heun", "implicit-extrapolation")}
    assert growth["heun"] == pytest.approx(1.00e-3, rel=0.01)
    assert growth["implicit-extrapolation"] == pytest.approx(-1.90e-3, rel=0.01)


def test_modified_hamiltonian_of_verlet():
    """``H + h^2 ({T,{T,V}}/12 - ...)``: the known second term, for T with mass and any V of two coordinates."""
    mass, h = np.array([2.0, 0.5]), 0.1
    model = lv.Hamiltonian(
        "x y",
        kinetic=lambda p: p[0] ** 2 / 4 + p[1] ** 2,
        potential=lambda q: m.sin(q[0]) * q[1] ** 2 + q[0] ** 4 / 4,
    )

    def V(q):
        return np.sin(q[0]) * q[1] ** 2 + q[0] ** 4 / 4

    q, p = np.array([0.4, -0.7]), np.array([0.3, 0.5])
    slope, velocity = gradient(V, q), p / mass
    second = velocity @ hessian(V, q) @ velocity / 12 - slope @ (slope / mass) / 24
    found = lv.study.modified_hamiltonian(model, "stormer-verlet", 2).evaluate(q, p, h)
    assert found == pytest.approx(p @ velocity / 2 + V(q) + h**2 * second, abs=1e-11)


def test_splitting_of_linear_and_nonlinear_parts():
    """Strang splitting with matrix exponentials, on a system that no built-in splitting has."""
    A, h = np.array([[0.0, 1.0, 0.2], [-1.0, -0.1, 0.0], [0.0, 0.3, -0.2]]), 0.1
    half = expm(A * h / 2)
    eigenvalues, vectors = np.linalg.eig(A)
    inverse = np.linalg.inv(vectors)

    def linear(x, h):
        i = int(np.argmin(np.abs(eigenvalues.imag)))
        j = int(np.argmax(eigenvalues.imag))
        real, (a, b) = eigenvalues[i].real, (eigenvalues[j].real, eigenvalues[j].imag)
        P = np.real(np.outer(vectors[:, i], inverse[i]))
        C = 2 * np.real(np.outer(vectors[:, j], inverse[j]))
        S = -2 * np.imag(np.outer(vectors[:, j], inverse[j]))
        return m.exp(real * h) * (P @ x) + m.exp(a * h) * (m.cos(b * h) * (C @ x) + m.sin(b * h) * (S @ x))

    def cubic(x, h):
        return [x[0] / m.sqrt(1 + 2 * h * x[0] ** 2), x[1], x[2]]

    model = lv.FirstOrder(3, rhs=lambda x: [a + b for a, b in zip(A @ x, [-(x[0] ** 3), 0, 0], strict=True)])
    scheme = lv.schemes.flow_splitting([linear, cubic], name="linear-and-cubic")
    run = lv.simulate(model, x0=[1.0, 0.5, -0.3], scheme=scheme, h=h, t_end=5.0)
    x = np.array([1.0, 0.5, -0.3])
    for row in run.x[1:]:
        x = half @ x
        x[0] /= np.sqrt(1 + 2 * h * x[0] ** 2)
        x = half @ x
        assert np.abs(x - row).max() < 1e-13


# -- Poisson systems (Modin 2009, 2.9.4, 2.10) -------------------------------------------------------------------------
def energy_of_spins(s):
    s = s.reshape(3, 3)
    return s[0] @ s[1] + 0.5 * s[1][0] * s[2][1] ** 2 + 0.3 * s[0][2] ** 4 + s[2] @ np.array([0.2, 0.1, 0.4])


def spin_system():
    return lv.Spins(
        3,
        hamiltonian=lambda s: (
            s[0] @ s[1] + 0.5 * s[1][0] * s[2][1] ** 2 + 0.3 * s[0][2] ** 4 + s[2] @ np.array([0.2, 0.1, 0.4])
        ),
    )


SPINS = np.array([[1.0, 0.2, 0.3], [-0.4, 0.8, 1.1], [0.2, -0.6, 0.5]])


def test_spherical_midpoint_steps():
    h, s = 0.1, SPINS
    run = lv.simulate(spin_system(), x0=SPINS, scheme="spherical-midpoint", h=h, t_end=3.0)
    lengths = np.linalg.norm(SPINS, axis=1)[:, None]

    def residual(x, s):
        new = x.reshape(3, 3)
        middle = lengths * (s + new) / np.linalg.norm(s + new, axis=1)[:, None]
        return (new - s - h * np.cross(middle, gradient(energy_of_spins, middle.ravel()).reshape(3, 3))).ravel()

    for row in run.x[1:]:
        s = newton(lambda x, s=s: residual(x, s), s.ravel()).reshape(3, 3)
        assert np.abs(s.ravel() - row).max() < 1e-12


@pytest.mark.parametrize("stages", [1, 2])
def test_collective_gauss_steps(stages):
    """Gauss methods on canonical equations of quaternions z, whose momentum maps ``z k z*/2`` are the spins."""
    h = 0.1
    A, b = {
        1: (np.array([[0.5]]), np.array([1.0])),
        2: (np.array([[0.25, 0.25 - 3**0.5 / 6], [0.25 + 3**0.5 / 6, 0.25]]), np.array([0.5, 0.5])),
    }[stages]

    def spin(z):
        w, x, y, u = z  # z k z*
        return np.array([2 * (x * u + w * y), 2 * (y * u - w * x), w * w - x * x - y * y + u * u])

    def lifted(z):
        return energy_of_spins(np.concatenate([spin(part) for part in z.reshape(3, 4)]))

    J = np.kron(np.eye(3), np.array([[0, 0, 0, 1], [0, 0, -1, 0], [0, 1, 0, 0], [-1, 0, 0, 0]]) / 4)

    def quaternion(s):
        length, (x, y, u) = np.linalg.norm(s), s
        axis = np.array([0.0, x, y, u + length])  # a half turn about the bisector takes k to s
        return axis / np.linalg.norm(axis) * length**0.5

    z = np.concatenate([quaternion(s) for s in SPINS])
    assert np.abs(np.concatenate([spin(part) for part in z.reshape(3, 4)]) - SPINS.ravel()).max() < 1e-15
    # the sign of J follows from the equations of the spins
    rate_of = lambda z: J @ gradient(lifted, z)  # noqa: E731
    derivative = np.concatenate(
        [
            np.array([gradient(lambda y, a=a: spin(y)[a], part) for a in range(3)]) @ rate
            for part, rate in zip(z.reshape(3, 4), rate_of(z).reshape(3, 4), strict=True)
        ]
    )
    exact = np.cross(SPINS, gradient(energy_of_spins, SPINS.ravel()).reshape(3, 3)).ravel()
    if derivative @ exact < 0:
        J = -J
    assert np.abs(np.abs(derivative) - np.abs(exact)).max() < 1e-13
    run = lv.simulate(spin_system(), x0=SPINS, scheme=f"collective-gauss-{stages}", h=h, t_end=2.0)
    for row in run.x[1:]:

        def residual(x, z=z):
            K = x.reshape(stages, 12)
            return np.concatenate([K[i] - J @ gradient(lifted, z + h * A[i] @ K) for i in range(stages)])

        K = newton(residual, np.zeros(12 * stages)).reshape(stages, 12)
        z = z + h * b @ K
        assert np.abs(np.concatenate([spin(part) for part in z.reshape(3, 4)]) - row).max() < 1e-12


def test_isospectral_midpoint_steps():
    h, a = 0.1, np.array([1.0, 2.0, 3.0, 4.0])
    problem = lv.problems.load("four-dimensional-body")
    W = problem.initial_values["x0"].reshape(4, 4)
    run = lv.simulate(problem, scheme="isospectral-midpoint", h=h, t_end=2.0)
    field = lambda X: (X / (a[:, None] + a)).T  # noqa: E731
    one = np.eye(4)
    for row in run.x[1:]:

        def residual(x, W=W):
            X = x.reshape(4, 4)
            B = h / 2 * field(X)
            return ((one - B) @ X @ (one + B) - W).ravel()

        X = newton(residual, W.ravel()).reshape(4, 4)
        B = h / 2 * field(X)
        W = (one + B) @ X @ (one - B)
        assert np.abs(W.ravel() - row).max() < 1e-12


def test_nambu_brackets_of_order_three_in_four_dimensions():
    """Two Hamiltonians and a Casimir: the field is a sum over permutations; steps of the classical method agree."""
    functions = [
        lambda x: x[0] ** 2 / 2 + x[1] * x[2],
        lambda x: np.cos(x[1]) + x[3] ** 2 / 2,
        lambda x: x[0] * x[3] + x[2] ** 2,
    ]
    model = lv.Nambu(
        4,
        hamiltonians=[lambda x: x[0] ** 2 / 2 + x[1] * x[2], lambda x: m.cos(x[1]) + x[3] ** 2 / 2],
        casimirs=[lambda x: x[0] * x[3] + x[2] ** 2],
    )

    def field(x):
        slopes = [gradient(f, x) for f in functions]
        total = np.zeros(4)
        for order in itertools.permutations(range(4)):
            sign = np.linalg.det(np.eye(4)[list(order)])
            total[order[0]] += sign * np.prod([slope[i] for slope, i in zip(slopes, order[1:], strict=True)])
        return total

    x, h = np.array([0.4, -0.3, 0.5, 0.2]), 0.05
    assert np.abs(np.ravel(model.evaluate(x)) - field(x)).max() < 1e-14
    A, b = [[0, 0, 0, 0], [0.5, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 1, 0]], [1 / 6, 1 / 3, 1 / 3, 1 / 6]
    classical = lv.schemes.runge_kutta(A, b, name="classical")
    run = lv.simulate(model, x0=x, scheme=classical, h=h, t_end=1.0)
    for row in run.x[1:]:
        k1 = field(x)
        k2 = field(x + h / 2 * k1)
        k3 = field(x + h / 2 * k2)
        x = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + field(x + h * k3))
        assert np.abs(x - row).max() < 1e-13


# -- Runge-Kutta methods on port-Hamiltonian systems (Symank 2025, 4.2, 5.3) -------------------------------------------
def interpolated(nodes, ends):
    """Return the matrix of integrals of the Lagrange polynomials of nodes from 0 to each end."""
    polynomials = [np.poly1d(np.poly([c for c in nodes if c != a])) for a in nodes]
    return np.array([[(p.integ()(end)) / p(a) for p, a in zip(polynomials, nodes, strict=True)] for end in ends])


GAUSS_2 = [0.5 - 3**0.5 / 6, 0.5 + 3**0.5 / 6]
RADAU_2 = [1 / 3, 1.0]


def collocation_steps(field, x, h, count, nodes=GAUSS_2):
    """Yield the stages, stage derivatives and end of steps of a collocation method on ``x' = f(x, t)``."""
    A, b = interpolated(nodes, nodes), interpolated(nodes, [1.0])[0]
    for i in range(count):

        def residual(flat, x=x, t=i * h):
            K = flat.reshape(len(nodes), len(x))
            return np.concatenate([k - field(x + h * a @ K, t + c * h) for k, a, c in zip(K, A, nodes, strict=True)])

        K = newton(residual, np.tile(field(x, i * h), len(nodes))).reshape(len(nodes), len(x))
        stages = x + h * A @ K
        x = x + h * b @ K
        yield stages, K, x


def structure_matrices(x):
    """J, R, B, P, S of a system with three states and one port, and its efforts."""
    J = np.array([[0, 1, x[1]], [-1, 0, -x[2]], [-x[1], x[2], 0]])
    R = np.diag([0.1, 0.2 + x[0] ** 2, 0.0])
    efforts = np.array([x[0] ** 3, np.sinh(x[1]), x[2]])
    return J, R, np.array([0, 1, 0.5]), np.array([0, 0.05, 0]), 0.3, efforts


def port_system():
    return lv.PortHamiltonian(
        "q p s",
        H=lambda x: x[0] ** 4 / 4 + m.cosh(x[1]) + x[2] ** 2 / 2,
        J=lambda x: [[0, 1, x[1]], [-1, 0, -x[2]], [-x[1], x[2], 0]],
        R=lambda x: [[0.1, 0, 0], [0, 0.2 + x[0] ** 2, 0], [0, 0, 0]],
        B=[[0], [1], [0.5]],
        P=[[0], [0.05], [0]],
        S=[[0.3]],
        u=lambda t: [m.sin(t)],
    )


def test_flows_and_efforts_of_the_discrete_dirac_structure():
    """Stages of the two-stage Gauss method: f_s, e_s, f_p, e_p, f_d and e_d, and monotone losses."""
    h, x0 = 0.1, np.array([0.7, -0.4, 1.1])

    def field(x, t):
        J, R, B, P, _, z = structure_matrices(x)
        return (J - R) @ z + (B - P) * np.sin(t)

    model = port_system()
    run = lv.simulate(model, x0=x0, scheme="gauss-2", h=h, t_end=2.0)
    found = ph.DiracStructure(model).at_stages(run)
    lost = 0.0
    for i, (stages, rates, end) in enumerate(collocation_steps(field, x0, h, 20)):
        for j, (x, rate) in enumerate(zip(stages, rates, strict=True)):
            u = np.sin((i + GAUSS_2[j]) * h)
            _, R, B, P, S, z = structure_matrices(x)
            W = np.block([[R, P[:, None]], [P[None], np.array([[S]])]])
            effort = np.append(z, u)
            expected = dict(f_s=-rate, e_s=z, f_p=[(B + P) @ z + S * u], e_p=[u], f_d=effort, e_d=-W @ effort)
            for name, value in expected.items():
                assert np.abs(getattr(found, name)[i, j] - value).max() < 1e-12, name
            lost += h / 2 * effort @ W @ effort
        assert np.abs(end - run.x[i + 1]).max() < 1e-13
        assert run.dissipated_energy[i + 1] == pytest.approx(lost, abs=1e-12)
    assert np.all(np.diff(run.dissipated_energy) > 0)


def test_matrices_of_transformed_systems():
    """E, J, R, B, P and z of a nonlinear change of variables with other rows (Symank 2025, 4.2.2)."""
    import casadi as ca

    phi = lambda w: np.array([w[0] + 0.2 * w[1] ** 2, w[1] + 0.3 * w[0] ** 3, 2 * w[2] + w[0] * w[1]])  # noqa: E731
    rows = lambda w: np.array([[1, 0.3, 0], [0, 2, w[0]], [0.1, 0, 1]])  # noqa: E731
    model = ph.transform(
        port_system(),
        "a b c",
        x_of=lambda x: [x[0] + 0.2 * x[1] ** 2, x[1] + 0.3 * x[0] ** 3, 2 * x[2] + x[0] * x[1]],
        rows=lambda x: [[1, 0.3, 0], [0, 2, x[0]], [0.1, 0, 1]],
    )
    w = np.array([0.4, -0.2, 0.6])
    U, x = rows(w), phi(w)
    J, R, B, P, _, z = structure_matrices(x)
    D = np.array([gradient(lambda y, i=i: phi(y)[i], w) for i in range(3)])
    expected = dict(E=U.T @ D, J=U.T @ J @ U, R=U.T @ R @ U, B=U.T @ B, P=U.T @ P, z=np.linalg.solve(U, z))
    s = model.structure
    for name, value in expected.items():
        found = np.array(ca.Function("f", [s.x, s.t, s.k], [ca.densify(getattr(s, name))])(w, 0.0, []))
        assert np.abs(np.squeeze(found) - value).max() < 1e-14, name


def test_steps_with_quadratic_drag_in_port_hamiltonian_form():
    """Damping R(p, v) with the square of the speed (Symank 2025, 4.4.1), in momenta and velocities."""
    h = 0.05
    system = lv.System(
        "x y",
        kinetic=lambda v: (2 * v[0] ** 2 + v[1] ** 2) / 2,
        potential=lambda q: q[0] ** 2 * q[1] + q @ q / 2,
        dissipation=lambda v: 0.4 * (v @ v) ** 1.5 / 3,
    )

    def field(x, t):
        q, v = x[:2], x[2:]
        slope = np.array([2 * q[0] * q[1] + q[0], q[0] ** 2 + q[1]])
        return np.append(v, (-slope - 0.4 * np.sqrt(v @ v) * v) / [2, 1])

    x0 = np.array([0.5, 0.2, 0.3, -0.8])
    run = lv.simulate(ph.from_system(system), x0=x0, scheme="gauss-2", h=h, t_end=2.0)
    lost = 0.0
    for row, total, (stages, _, end) in zip(
        run.x[1:], run.dissipated_energy[1:], collocation_steps(field, x0, h, 40), strict=True
    ):
        lost += h / 2 * sum(0.4 * np.linalg.norm(v) ** 3 for v in stages[:, 2:])
        assert np.abs(end - row).max() < 1e-12 and total == pytest.approx(lost, abs=1e-12)


def test_steps_of_a_network_with_a_memoryless_resistor():
    """The stability function of the three-stage Gauss method, for the matrix of the circuit."""
    resistor = lv.PortHamiltonian(0, ports="r", S=[[2.0]])
    capacitor = lv.PortHamiltonian("q", H=lambda x: x[0] ** 2, B=[[1]], ports="i")
    coil = lv.PortHamiltonian("flux", H=lambda x: x[0] ** 2 / 2, B=[[1]], ports="v")
    circuit = ph.interconnect_all(
        dict(C=capacitor, L=coil, R=resistor),
        lambda y, u: [u["C.i"] - y["L.v"], u["R.r"] - y["L.v"], u["L.v"] + y["C.i"] + y["R.r"]],
    )
    run = lv.simulate(circuit, x0=[1.0, 0.0], scheme="gauss-3", h=0.1, t_end=5.0)
    Z, one = 0.1 * np.array([[0, 1], [-2, -2]]), np.eye(2)
    even, odd = one + Z @ Z / 10, Z / 2 + Z @ Z @ Z / 120
    R = np.linalg.solve(even - odd, even + odd)
    x = np.array([1.0, 0.0])
    for row in run.x[1:]:
        x = R @ x
        assert np.abs(x - row).max() < 1e-14


# -- partitioned methods (Symank 2025, 6) ------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("names", "nodes"),
    [("gauss-2,radau-iia-2", (GAUSS_2, RADAU_2)), ("radau-iia-2,gauss-2", (RADAU_2, GAUSS_2))],
)
def test_steps_of_pairs_with_different_nodes(names, nodes):
    """Prey by one method, predators by the other."""
    h = 0.1
    model = lv.FirstOrder("a b", rhs=lambda x: [x[0] * (1 - x[1]), x[1] * (x[0] - 2)], partition="b")
    run = lv.simulate(model, x0=[1.0, 0.5], scheme=f"partitioned:{names}", h=h, t_end=2.0)
    A = [interpolated(c, c) for c in nodes]
    b = [interpolated(c, [1.0])[0] for c in nodes]
    x = np.array([1.0, 0.5])
    assert np.ptp(run.x, axis=0).min() > 0.1
    for row in run.x[1:]:

        def residual(flat, x=x):
            K = flat.reshape(2, 2)  # rates of the parts, stage by stage
            first, second = (x[part] + h * A[part] @ K[part] for part in (0, 1))
            return np.concatenate([K[0] - first * (1 - second), K[1] - second * (first - 2)])

        K = newton(residual, np.zeros(4)).reshape(2, 2)
        x = x + h * np.array([b[0] @ K[0], b[1] @ K[1]])
        assert np.abs(x - row).max() < 1e-13


@pytest.mark.parametrize("s", [1, 2, 3])
def test_murua_steps_of_a_network_with_losses_that_contain_multipliers(s):
    """``x' = f(x, y, z)``, ``0 = c(x, y, z)``, ``0 = g(x)``: Gauss and Lobatto nodes, and the multiplier at the end."""
    h = 0.05
    gauss = {1: [0.5], 2: GAUSS_2, 3: [0.5 - 0.15**0.5, 0.5, 0.5 + 0.15**0.5]}[s]
    lobatto = {1: [1.0], 2: [0.5, 1.0], 3: [0.5 - 0.05**0.5, 0.5 + 0.05**0.5, 1.0]}[s]
    A, A_bar = interpolated(gauss, gauss), interpolated(gauss, lobatto)
    through_start = [0.0, *gauss]

    def end_value(values):
        return np.polyval(np.polyfit(through_start, values, s), 1.0)

    def field(x, z):
        y = 0.1 * z + 0.05 * x[0]
        return np.array([x[2], x[3], -x[0] * z - y * x[2], -9.81 - x[1] * z - y * x[3]])

    network = lv.FirstOrder(
        "a b va vb",
        algebraic="loss rod",
        rhs=lambda x, y: [x[2], x[3], -x[0] * y[1] - y[0] * x[2], -9.81 - x[1] * y[1] - y[0] * x[3]],
        constraints=lambda x, y: [y[0] - 0.1 * y[1] - 0.05 * x[0], x[0] * x[2] + x[1] * x[3]],
    )
    x = np.array([0.8, -0.6, 0.6, 0.8])
    run = lv.simulate(network, x0=x, scheme=f"murua-{s}", h=h, t_end=0.5)
    z = run.y[0, 1]
    assert abs(z - newton(lambda w: np.atleast_1d(x[[2, 3, 0, 1]] @ field(x, w[0])), [1.0])[0]) < 1e-12
    for row, multipliers in zip(run.x[1:], run.y[1:], strict=True):

        def residual(flat, x=x):
            K, Z = flat[: 4 * s].reshape(s, 4), flat[4 * s :]
            ends = x + h * A_bar @ K
            rates = np.concatenate([K[i] - field(x + h * A[i] @ K, Z[i]) for i in range(s)])
            return np.append(rates, (ends[:, 0] * ends[:, 2] + ends[:, 1] * ends[:, 3]) / h)

        solution = newton(residual, np.concatenate([np.tile(field(x, z), s), np.full(s, z)]))
        K, Z = solution[: 4 * s].reshape(s, 4), solution[4 * s :]
        x, z = x + h * A_bar[-1] @ K, end_value([z, *Z])
        assert np.abs(x - row).max() < 1e-13 and abs(z - multipliers[1]) < 1e-11


# -- energy-momentum scheme (Kinon and Betsch 2023, (26), (28)) --------------------------------------------------------
def two_springs(q):
    return (q[0] ** 2 + q[0] ** 4) / 4 + 3 * (q[2] ** 2 + q[2] ** 4) / 4


@pytest.mark.parametrize(("scheme", "chosen"), [("livens-em", [0, 2]), ("livens-em:gonzalez-full", [0, 1, 2])])
def test_energy_momentum_steps_with_both_discrete_gradients(scheme, chosen):
    """(28) for the masses of 6.1: the correction of (26) along the whole increment, or along that of the springs."""
    h, mass = 0.1, np.diag([2.0, 1.0, 0.0])
    slopes = np.array([-1.0, 1.0, -1.0])
    problem = lv.System(
        "x1 x2 s",
        kinetic=lambda v: v[0] ** 2 + v[1] ** 2 / 2,
        potential=lambda q: (q[0] ** 2 + q[0] ** 4) / 4 + 3 * (q[2] ** 2 + q[2] ** 4) / 4,
        constraints=lambda q: [q[1] - q[0] - 1 - q[2]],
    )
    run = lv.simulate(problem, [0, 1, 0], [1, 0, -1], scheme=scheme, h=h, t_end=10.0)
    q, v = np.array([0.0, 1, 0]), np.array([1.0, 0, -1])

    def discrete_gradient(q0, w):
        middle = gradient(two_springs, q0 + w / 2)
        along = np.zeros(3)
        along[chosen] = w[chosen]
        defect = two_springs(q0 + w) - two_springs(q0) - middle @ w
        return middle + defect / max(along @ along, 1e-300) * along

    for row in run.q[1:]:

        def residual(x, q=q, v=v):
            middle, lam = x[:3], x[3]
            change = mass @ (2 * (middle - v)) + h * discrete_gradient(q, h * middle) + h * slopes * lam
            return np.append(change, slopes @ middle)

        x = newton(residual, np.append(v, 0.0))
        q, v = q + h * x[:3], 2 * x[:3] - v
        assert np.abs(q - row).max() < 1e-11


# -- multipliers of the index-1 formulation (Symank 2025, 2.2.1) -------------------------------------------------------
@pytest.mark.parametrize("scheme", ["gauss-1", "gauss-2", "gauss-3"])
def test_multipliers_of_the_index_1_formulation(scheme):
    """At the end of each step they solve the equations of accelerations, for Gauss methods as well."""
    equations = lv.MultibodyEquations(
        "x y",
        mass=lambda q: [[1.0, 0.0], [0.0, 1.0]],
        forces=lambda q, v: [0.0, -9.81],
        constraints=lambda q: [(q @ q - 1) / 2],
    )
    run = lv.simulate(equations.formulate("index-1"), q0=[0.8, -0.6], v0=[0.6, 0.8], scheme=scheme, h=0.1, t_end=1.0)
    q, v = run.x[1:, :2], run.x[1:, 2:]
    expected = (np.sum(v**2, axis=1) - 9.81 * q[:, 1]) / np.sum(q**2, axis=1)
    assert np.abs(run.y[1:, 0] - expected).max() < 1e-13
