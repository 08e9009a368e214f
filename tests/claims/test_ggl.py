"""The equations of the GGL schemes, written down once more in plain numbers and held against steps that were taken."""

import numpy as np
import pytest
from conftest import measured_order
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

import livens as lv
from livens import math as m
from livens.schemes.discretization.element_step import ElementEquations
from livens.schemes.energy_momentum.ggl_em import GGLEnergyMomentumVariableMass

M, G_ACC = np.diag([2.0, 1.0, 0.5]), 9.81
H = 0.05


def g(q):
    """A length, and a surface that is curved."""
    return np.array([(q @ q - 1.49) / 2, q[2] - 0.5 * q[0] * q[1] - 0.35])


def slopes(q):
    return np.array([q, [-0.5 * q[1], -0.5 * q[0], 1.0]])


def system():
    return lv.System(
        "x y z",
        mass=lambda: M,
        potential=lambda q: G_ACC * q[2] + q[0] ** 4 / 4,
        constraints=lambda q: [(q @ q - 1.49) / 2, q[2] - q[0] * q[1] / 2 - 0.35],
    )


def force(q):
    return -np.array([q[0] ** 3, 0.0, G_ACC])


def steps(scheme, count=6):
    run = lv.simulate(system(), [0.9, 0.6, 0.5], [1.0, -1.0, 0.5], scheme=scheme, h=H, t_end=count * H, project=True)
    return zip(run.q, run.p, run.q[1:], run.p[1:], strict=False)


def left_over(vector, rows):
    """Return the relative distance of a vector from the row space."""
    weights = np.linalg.lstsq(rows.T, vector, rcond=None)[0]
    return np.abs(vector - rows.T @ weights).max() / np.abs(vector).max()


def test_ggl_classic():
    """Kinon et al. 2023 (21): positions are corrected along G(qb), momenta along G(q0), and qb is not q0."""
    for q0, p0, q1, p1 in steps("ggl-classic"):
        v1 = np.linalg.solve(M, p1)
        qb = q0 + H * v1
        correction = (q1 - q0) / H - v1
        assert left_over(correction, slopes(qb)) < 1e-10 and left_over(correction, slopes(q0)) > 1e-4
        impulse = (p1 - p0) / H - force(q0)
        assert left_over(impulse, slopes(q0)) < 1e-10 and left_over(impulse, slopes(qb)) > 1e-4
        assert np.abs(g(q1)).max() < 1e-14 and np.abs(slopes(qb) @ v1).max() < 1e-12
        assert np.abs(slopes(q0) @ v1).max() > 1e-4, "the hidden constraints hold at qb and nowhere else"


def test_ggl_em():
    """docs/theory/ggl-em.md: both levels of constraints at the end, positions corrected along the mean slope."""
    for q0, p0, q1, p1 in steps("ggl-em"):
        u_m = np.linalg.solve(M, (p0 + p1) / 2)
        correction = M @ ((q1 - q0) / H - u_m)
        mean = (slopes(q0) + slopes(q1)) / 2
        assert left_over(correction, mean) < 1e-8 and left_over(correction, slopes(q1)) > 1e-4
        assert np.abs(g(q1)).max() < 1e-14 and np.abs(slopes(q1) @ np.linalg.solve(M, p1)).max() < 1e-12


def test_ggl_variational():
    """Kinon et al. 2023 (18): the same G(qb) on both sides makes it symplectic; constraints hold at the end."""
    for q0, _, q1, _ in steps("ggl-variational"):
        assert np.abs(g(q1)).max() < 1e-14 and np.abs(q1 - q0).max() > 1e-3


@pytest.mark.parametrize("scheme", ["ggl-classic", "ggl-em", "ggl-variational"])
def test_forces_and_friction_do_the_work_they_are_booked_with(scheme):
    """A force and a damper on a bead: what the accounts say is the integral of power, to the order of the scheme."""

    def bead(h):
        model = lv.System(
            "x y",
            kinetic=lambda v: v @ v / 2,
            forces=lambda t: [3.0 * lv.math.cos(t), 0.0],
            dissipation=lambda v: 0.2 * (v @ v),
            constraints=lambda q: [(q @ q - 1) / 2],
        )
        run = lv.simulate(model, [0.0, -1.0], [1.0, 0.0], scheme=scheme, h=h, t_end=2.0)
        power = 3.0 * np.cos(run.t) * run.v[:, 0]
        lost = 0.4 * (run.v**2).sum(axis=1)
        supplied = np.concatenate([[0], np.cumsum((power[1:] + power[:-1]) / 2 * h)])
        dissipated = np.concatenate([[0], np.cumsum((lost[1:] + lost[:-1]) / 2 * h)])
        return (
            abs(run.supplied_energy[-1] - supplied[-1]) + abs(run.dissipated_energy[-1] - dissipated[-1]),
            supplied[-1],
        )  # fmt: skip

    for h in (0.01, 0.005):
        gap, size = bead(h)
        assert gap < 3 * h * max(abs(size), 1.0)
    assert bead(0.005)[0] < 0.75 * bead(0.02)[0]


def test_the_work_of_damping_that_grows_with_time_has_the_order_of_ggl_em():
    """A bead on a circle in a fluid that thickens: motion and loss against those of its angle."""

    def pendulum(t, y):
        damping = 0.4 * (1 + t)
        return [y[1], -2.0 * np.sin(y[0]) - damping * y[1], damping * y[1] ** 2]

    angle, _, loss = solve_ivp(pendulum, (0, 1.0), [0, 2.0, 0], method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]
    model = lv.System(
        "x y",
        kinetic=lambda v: v @ v / 2,
        potential=lambda q: 2.0 * q[1],
        dissipation=lambda v, t: 0.2 * (1 + t) * (v @ v),
        constraints=lambda q: [(q @ q - 1) / 2],
    )
    steps, errors = [0.04, 0.02, 0.01, 0.005], []
    for h in steps:
        run = lv.simulate(model, [0.0, -1.0], [2.0, 0.0], scheme="ggl-em", h=h, t_end=1.0)
        errors.append([abs(run.q[-1] - [np.sin(angle), -np.cos(angle)]).max(), abs(run.dissipated_energy[-1] - loss)])
        assert run.summary.max_energy_drift < 1e-12
    assert all(abs(measured_order(steps, list(each)) - 2) < 0.1 for each in zip(*errors, strict=True))


# -- ggl-em where the mass is singular, or depends on the configuration -----------------------------------------------
def turning(a=0.5, b=0.2, c=0.1):
    """The mass of the second and third coordinate belongs to their sum, and changes with the first."""
    return lv.System(
        "a b c d",
        kinetic=lambda q, v, k: (
            (1 + k.a * m.cos(q[0])) * v[0] ** 2 + (1 + k.b * q[0] ** 2) * (v[1] + v[2]) ** 2 + v[3] ** 2
        ) / 2,
        potential=lambda q: 2 * m.cos(q[0]) + q[1] ** 2 / 2 + q[1] ** 4 / 4 + (q[3] - q[1]) ** 2 / 2,
        constraints=lambda q, k: [q[2] - m.sin(q[0]) + k.c * q[3] ** 3],
        parameters=dict(a=a, b=b, c=c),
    )  # fmt: skip


def consistent(a, b, d, va, vb, vd, c=0.1):
    """Positions and velocities that fulfil the constraint, from those of the other coordinates."""
    q0 = [a, b, np.sin(a) - c * d**3, d]
    return q0, [va, vb, np.cos(a) * va - 3 * c * d**2 * vd, vd]


def mass(q, a=0.5, b=0.2):
    M = np.diag([1 + a * np.cos(q[0]), 0.0, 0.0, 1.0])
    M[1:3, 1:3] = 1 + b * q[0] ** 2
    return M


def test_ggl_em_with_singular_turning_mass_is_of_second_order():
    """Positions, velocities and multipliers, against collocation with another formulation of high order."""
    q0, v0 = consistent(0.5, 0.2, 0.3, 0.4, -0.3, 0.5)
    end = lv.simulate(turning(), q0, v0, scheme="radau-iia-5", h=0.01, t_end=2.0)
    steps, errors = (0.04, 0.02, 0.01, 0.005), []
    for h in steps:
        run = lv.simulate(turning(), q0, v0, scheme="ggl-em", h=h, t_end=2.0)
        errors.append([np.abs(run.q[-1] - end.q[-1]).max(), np.abs(run.v[-1] - end.v[-1]).max()])
    slopes_seen = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert np.abs(slopes_seen - 2).max() < 0.05 and errors[-1][0] < 2e-5


def polar(**more):
    """A point on a curve, in polar coordinates."""
    return lv.System(
        "r angle",
        kinetic=lambda q, v: (v[0] ** 2 + q[0] ** 2 * v[1] ** 2) / 2,
        constraints=lambda q: [q[0] - 1 - 0.2 * m.sin(q[1])],
        **more,
    )


def test_ggl_em_fulfils_its_equations_where_the_mass_turns():
    """The step once more in plain numbers: the correction s of positions is along the mean of both slopes."""
    run = lv.simulate(polar(), [1.0, 0.0], [0.2, 1.0], scheme="ggl-em", h=2 * H, t_end=20 * H)
    for q, v, q1, v1 in zip(run.q, run.v, run.q[1:], run.v[1:], strict=False):
        G = [np.array([1.0, -0.2 * np.cos(x[1])]) for x in (q, q1)]
        s = (q1 - q) / (2 * H) - (v + v1) / 2
        pull = np.array([2.0, q[0] ** 2 + q1[0] ** 2]) * s
        assert np.abs(s).max() > 1e-5
        assert left_over(pull, (G[0] + G[1])[None]) < 1e-9 and left_over(pull, G[1][None]) > 1e-5


@settings(deadline=None, max_examples=25)
@given(
    st.tuples(*[st.floats(-1, 1)] * 6),
    st.floats(-0.8, 0.8),
    st.floats(0, 1),
    st.floats(-0.3, 0.3),
    st.sampled_from([0.01, 0.03, 0.1]),
)
def test_ggl_em_holds_everything_for_any_mass(start, a, b, c, h):
    """Total energy, both levels of constraints and p = M v at round-off, over the whole run, whatever the mass."""
    q0, v0 = consistent(*start, c=c)
    run = lv.simulate(turning(), q0, v0, scheme="ggl-em", h=h, t_end=40 * h, parameters=dict(a=a, b=b, c=c))
    energy = run.observe("total_energy")
    assert np.abs(energy - energy[0]).max() < 1e-13 * (1 + np.abs(energy[0]) + run.observe("kinetic_energy").max())
    assert np.abs(run.observe("constraint")).max() < 1e-14
    assert np.abs(run.observe("velocity_constraint")).max() < 1e-13
    gap = [np.abs(p - mass(q, a, b) @ v).max() for q, v, p in zip(run.q, run.v, run.p, strict=True)]
    assert max(gap) < 1e-13


def test_where_the_mass_is_constant_both_forms_of_ggl_em_are_the_same_scheme():
    """The equations for any mass, on a system for which `ggl-em` has simpler ones: the same trajectory."""

    equations = lv.schemes.get("ggl-em").equations(system())
    assert isinstance(equations, ElementEquations) and not isinstance(equations.scheme, GGLEnergyMomentumVariableMass)
    start = dict(q0=[0.9, 0.6, 0.5], v0=[1.0, -1.0, 0.5], h=H, t_end=20 * H, project=True)
    plain, general = (lv.simulate(system(), scheme=s, **start) for s in ("ggl-em", GGLEnergyMomentumVariableMass()))
    assert np.abs(plain.q - general.q).max() < 1e-12 and np.abs(plain.v - general.v).max() < 1e-11


@pytest.mark.parametrize("problem", ["heavy-top", "free-rigid-body", "mass-spring-redundant"])
def test_ggl_em_on_quaternions_and_redundant_coordinates(problem):
    run = lv.simulate(lv.problems.load(problem), scheme="ggl-em", t_end=0.5)
    assert run.summary.max_energy_drift < 1e-13 and run.summary.max_constraint < 1e-14
    assert run.summary.max_velocity_constraint < 1e-12


def test_work_is_booked_where_the_mass_turns():
    """Energy less what was supplied plus what was lost stays where it was, to round-off."""
    model = polar(
        potential=lambda q, t: (q[0] - 1) ** 2 * (2 + m.sin(t)),
        forces=lambda t: [0.0, 0.3 * m.cos(2 * t)],
        dissipation=lambda v: 0.05 * (v @ v),
    )
    run = lv.simulate(model, [1.0, 0.0], [0.2, 1.0], scheme="ggl-em", h=0.02, t_end=4.0)
    balance = run.observe("total_energy") - run.supplied_energy + run.dissipated_energy
    assert np.ptp(balance) < 1e-13 and run.dissipated_energy[-1] > 0.05 and np.ptp(run.supplied_energy) > 0.05


def test_what_ggl_em_needs():
    """Mass wherever something can move, and no kinetic energy but a quadratic form; sentences say so."""
    massless = lv.System("x y", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: (q[0] - q[1]) ** 2 + q[1] ** 2)
    with pytest.raises(lv.InputError, match="needs a mass matrix that is positive definite on the null space of G"):
        lv.simulate(massless, [1.0, 0.5], [0.0, 0.0], scheme="ggl-em", h=0.01, t_end=1.0)
    turning_table = lv.System("x y", kinetic=lambda q, v: (v @ v) / 2 + q[0] * v[1] - q[1] * v[0])
    with pytest.raises(lv.InputError, match="needs a kinetic energy that is a quadratic form"):
        lv.simulate(turning_table, [1.0, 0.5], [0.0, 0.0], scheme="ggl-em", h=0.01, t_end=1.0)


# -- the adjoint of ggl-variational and symmetric compositions --------------------------------------------------------
COMPOSED = ("ggl-variational", "ggl-variational-adjoint", "ggl-variational-symmetric")


def test_the_adjoint_inverts_the_scheme():
    """The equations of ggl-variational hold with -h from the end, for a momentum that differs by constraint forces."""
    for q0, p0, q1, p1 in steps("ggl-variational-adjoint"):

        def residual(x, q0=q0, p0=p0, q1=q1, p1=p1):
            p, v, gam, lam, nu = x[:3], x[3:6], x[6:8], x[8:10], x[10:]
            u, qb = np.linalg.solve(M, p), q1 - H * v
            bend = H * curvature(gam) @ u
            return np.r_[
                q0 - q1 + H * v + H * np.linalg.solve(M, slopes(qb).T @ gam),
                p - p1 + H * force(q1) - slopes(q1).T @ lam - bend,
                M @ v - p + bend,
                slopes(qb) @ u,
                p - p0 - slopes(q0).T @ nu,
            ]

        start = np.r_[p0, (q1 - q0) / H, np.zeros(6)]
        assert np.abs(least_squares(residual, start, xtol=1e-15, ftol=1e-15, gtol=1e-15).fun).max() < 1e-11
    symmetric = lv.study.reversibility_defect
    assert symmetric(system(), "ggl-variational-symmetric", *bead_on_a_circle(), H) < 1e-13
    assert symmetric(system(), "ggl-variational-adjoint", *bead_on_a_circle(), H) > 1e-4


def curvature(gam):
    """Return the weighted sum of the second derivatives of the constraints."""
    return gam[0] * np.eye(3) + gam[1] * np.array([[0.0, -0.5, 0.0], [-0.5, 0.0, 0.0], [0.0, 0.0, 0.0]])


def bead_on_a_circle():
    model = system()
    start = dict(q0=[0.9, 0.6, 0.5], v0=[1.0, -1.0, 0.5])
    state = model.initial_state(start, model.parameter_vector(), 0.0, True, "remove")
    return state["q"], state["v"]


@pytest.mark.parametrize("scheme", [*COMPOSED, "suzuki-4:ggl-variational-symmetric"])
def test_ggl_variational_and_its_compositions_are_symplectic(scheme):
    assert lv.study.symplecticity_defect(system(), scheme, *bead_on_a_circle(), H) < 1e-12


def test_orders_of_ggl_variational_compositions():
    """Orders 1, 1, 2 and 4 in coordinates and momenta, against Lobatto pairs of order 6."""
    q, v = bead_on_a_circle()
    exact = lv.simulate(system(), q, v, scheme="lobatto-iiia-iiib-4", h=1e-3, t_end=0.8)
    sizes = [0.02, 0.01, 0.005, 0.0025]
    for scheme, order in zip([*COMPOSED, "suzuki-4:ggl-variational-symmetric"], [1, 1, 2, 4], strict=True):
        runs = [lv.simulate(system(), q, v, scheme=scheme, h=h, t_end=0.8) for h in sizes]
        errors = [np.abs(np.r_[run.q[-1] - exact.q[-1], run.p[-1] - exact.p[-1]]).max() for run in runs]
        assert measured_order(sizes, errors) == pytest.approx(order, abs=0.06)


def test_symmetric_ggl_variational_keeps_both_levels_and_angular_momentum():
    """A spherical pendulum: both levels of constraints, angular momentum about the vertical, bounded energy."""
    model = lv.System(
        "x y z",
        kinetic=lambda v: v @ v / 2,
        potential=lambda q: G_ACC * q[2],
        constraints=lambda q: [(q @ q - 1) / 2],
        symmetries=dict(Lz=lambda q: [-q[1], q[0], 0.0]),
    )
    start = [0.8, 0.0, -0.6], [0.0, 1.5, 0.0]
    ranges = []
    for h in (0.02, 0.01):
        run = lv.simulate(model, *start, scheme="ggl-variational-symmetric", h=h, t_end=100.0)
        assert np.abs(run.observe("constraint")).max() < 1e-13
        assert np.abs(run.observe("velocity_constraint")).max() < 1e-13
        assert np.ptp(run.observe("Lz")) < 1e-12
        energy = run.observe("total_energy")
        ranges.append(np.ptp(energy[: len(energy) // 2]))
        assert np.ptp(energy[len(energy) // 2 :]) < 1.05 * ranges[-1]
    assert ranges[0] / ranges[1] == pytest.approx(4, abs=0.2)
