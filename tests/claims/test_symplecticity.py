"""The two-form dq ^ dp along one step, by exact derivatives: preserved where a scheme is symplectic, else not."""

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import livens as lv
from livens import math as m
from livens.engine.steppers.reference import ReferenceSolver
from livens.models.equations_of_motion import equations_of_motion
from livens.models.initialization.dense import initial_state


def random_system(seed, varying):
    """Four coordinates on two constraints, one not quadratic; a mass matrix that may depend on q."""
    random = np.random.default_rng(seed)
    root, a, b = random.standard_normal((4, 4)), random.standard_normal(4), random.standard_normal((4, 4))
    mass, quadric = root @ root.T + 4 * np.eye(4), b @ b.T + 4 * np.eye(4)
    system = lv.System(
        4,
        mass=lambda q: mass + np.outer(q, q) if varying else mass,
        potential=lambda q: sum(1 - m.cos(x) for x in q) + 0.1 * (q @ q) ** 2,
        constraints=lambda q: [0.5 * (q @ quadric @ q) - 1, a @ q + 0.1 * m.sin(q[0]) * q[1]],
    )
    return system, random.uniform(-1, 1, 4), random.uniform(-1, 1, 4)


def singular_system(seed):
    """A free rotation with a unit quaternion: 4 G^T J G is singular and depends on q."""
    random = np.random.default_rng(seed)
    inertia = random.uniform(1.0, 1.5, 3)

    def body_rate(q, v):
        a, b, c, d = q
        return 2 * (np.array([[-b, a, d, -c], [-c, -d, a, b], [-d, c, -b, a]]) @ v)

    system = lv.System(
        "q0 q1 q2 q3",
        kinetic=lambda q, v: 0.5 * (inertia * body_rate(q, v)) @ body_rate(q, v),
        potential=lambda q: q[0] * q[1] ** 3 + q[2] ** 2,
        constraints=lambda q: [0.5 * (q @ q - 1)],
    )
    return system, random.standard_normal(4), random.standard_normal(4)


def defect(system, scheme, q0, v0, h):
    """max |omega(DPsi a, DPsi b) - omega(a, b)| over tangent vectors a, b with G(q0) dq = 0, relative to omega."""
    start = initial_state(system, q0, v0, system.parameter_vector(), project=True)
    e, n = lv.schemes.get(scheme).equations(system).to_single_graph(), system.n
    c = np.concatenate([[h, 0.0], system.parameter_vector()])
    z = system.layout.pack(start.values)
    x = solution(e, z, c)
    derivatives = ca.Function(
        "d",
        e.arguments,
        [
            ca.jacobian(e.residual, e.x),
            ca.jacobian(e.residual, e.z),
            ca.jacobian(e.final_state, e.x),
            ca.jacobian(e.final_state, e.z),
        ],
    )
    r_x, r_z, end_x, end_z = (np.array(value) for value in derivatives(x, z, c))
    step = end_z - end_x @ np.linalg.solve(r_x, r_z)
    q, p = np.arange(n), np.arange(2 * n, 3 * n)
    G = np.array(ca.Function("G", [(d := equations_of_motion(system)).q, d.t, d.k], [d.G])(start["q"], 0, c[2:]))
    free = np.linalg.svd(G)[2][len(G) :].T
    tangent = np.zeros((len(z), free.shape[1] + n))
    tangent[np.ix_(q, range(free.shape[1]))] = free
    tangent[p, free.shape[1] + np.arange(n)] = 1.0
    after = step @ tangent

    def omega(t):
        return t[q].T @ t[p] - t[p].T @ t[q]

    return np.abs(omega(after) - omega(tangent)).max() / np.abs(omega(tangent)).max()


def solution(e, z, c):
    """The unknowns of the step, to round-off."""
    x, _, trouble, _, _ = ReferenceSolver(e).solve(e.initial_guess_function(z, c).full().ravel(), z, c)
    assert trouble is None
    return x


@given(seed=st.integers(0, 10**6))
@settings(max_examples=5, deadline=None)
def test_symplectic_schemes_on_random_constrained_systems(seed):
    """ggl-variational, livens-variational, symplectic Euler at round-off; the classical stabilisation clearly not."""
    system, q0, v0 = random_system(seed, varying=False)
    for name in ("ggl-variational", "livens-variational", "symplectic-euler"):
        assert lv.schemes.get(name).symplectic
        assert defect(system, name, q0, v0, 0.05) < 1e-11
    for name in ("ggl-classic", "livens-em", "ggl-em", "livens-midpoint"):
        assert not lv.schemes.get(name).symplectic
        assert defect(system, name, q0, v0, 0.05) > 1e-8


@given(seed=st.integers(0, 10**6))
@settings(max_examples=6, deadline=None)
def test_livens_variational_with_varying_and_singular_mass(seed):
    """No constant regular mass is needed."""
    system, q0, v0 = random_system(seed, varying=True)
    assert defect(system, "livens-variational", q0, v0, 0.05) < 1e-11
    system, q0, v0 = singular_system(seed)
    assert not system.regular_mass
    assert defect(system, "livens-variational", q0, v0, 0.02) < 1e-11


def test_the_misprinted_scheme_is_not_symplectic():
    """With p0 instead of p1 in (41b), as printed in Kinon et al. 2023, the form is lost: the misprint is a misprint."""
    from dataclasses import replace

    from livens.schemes.symplectic.ggl import GGLVariational, constraint_hessian_force

    class Misprinted(GGLVariational):
        def element_contribution(self, e, old, new, x, h, t):
            right = super().element_contribution(e, old, new, x, h, t)
            qb = old.q + h * x.v
            change = constraint_hessian_force(e, qb, old.v, x.gam) - constraint_hessian_force(e, qb, x.u, x.gam)
            return replace(right, residuals=[right.residuals[0] + h * change, *right.residuals[1:]])

    system, q0, v0 = random_system(5, varying=False)
    start = initial_state(system, q0, v0, system.parameter_vector(), project=True)
    good = defect(system, "ggl-variational", q0, v0, 0.05)
    bad = defect_of_step(system, Misprinted(), start["q"], start["v"], start["p"], start["multipliers"], 0.05)
    assert good < 1e-11 < 1e-8 < bad


def defect_of_step(system, scheme, q, v, p, lam, h):
    """As `defect`, for a scheme object and v0 = M^-1 p0 varied with p0."""
    e, n = scheme.equations(system).to_single_graph(), system.n
    c = np.concatenate([[h, 0.0], system.parameter_vector()])
    z = np.concatenate([q, v, p, [0.0, 0.0], lam])
    x = solution(e, z, c)
    r_x, r_z, end_x, end_z = (
        np.array(ca.Function("d", e.arguments, [ca.jacobian(*pair)])(x, z, c))
        for pair in ((e.residual, e.x), (e.residual, e.z), (e.final_state, e.x), (e.final_state, e.z))
    )
    step = end_z - end_x @ np.linalg.solve(r_x, r_z)
    d = equations_of_motion(system)
    mass = np.array(d.function(ca.jacobian(d.fibre_derivative, d.v))(q, v, p, 0, c[2:]))
    G = np.array(d.function(d.G)(q, v, p, 0, c[2:]))
    free = np.linalg.svd(G)[2][len(G) :].T
    tangent = np.zeros((len(z), free.shape[1] + n))
    tangent[:n, : free.shape[1]] = free
    tangent[2 * n : 3 * n, free.shape[1] :] = np.eye(n)
    tangent[n : 2 * n, free.shape[1] :] = np.linalg.inv(mass)
    after = step @ tangent
    omega = [t[:n].T @ t[2 * n : 3 * n] - t[2 * n : 3 * n].T @ t[:n] for t in (tangent, after)]
    return np.abs(omega[1] - omega[0]).max() / np.abs(omega[0]).max()


@pytest.mark.parametrize("h", [0.1, 0.01])
def test_implicit_midpoint_is_symplectic_without_constraints(h):
    """livens-midpoint without constraints is the implicit midpoint rule of Hamilton's equations."""
    system = lv.System(
        "x y",
        kinetic=lambda q, v: 0.5 * (1 + q[1] ** 2) * v[0] ** 2 + v[1] ** 2,
        potential=lambda q: m.cos(q[0]) + q[1] ** 4,
    )
    e, n = lv.schemes.get("livens-midpoint").equations(system).to_single_graph(), 2
    c = np.array([h, 0.0])
    z = np.array([0.3, 0.5, 1.0, -0.4, (1 + 0.25) * 1.0, -0.8, 0.0, 0.0])
    x = solution(e, z, c)
    r_x, r_z, end_x, end_z = (
        np.array(ca.Function("d", e.arguments, [ca.jacobian(*pair)])(x, z, c))
        for pair in ((e.residual, e.x), (e.residual, e.z), (e.final_state, e.x), (e.final_state, e.z))
    )
    step = (end_z - end_x @ np.linalg.solve(r_x, r_z))[np.ix_([0, 1, 4, 5], [0, 1, 4, 5])]
    J = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
    assert np.abs(step.T @ J @ step - J).max() < 1e-13
