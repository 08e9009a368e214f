"""Expensive and cheap forces of systems: bodies that turn, masses that change, constraints, betas; imex."""

import functools

import casadi as ca
import numpy as np
import pytest
from conftest import measured_order
from scipy.integrate import solve_ivp

import livens as lv
from livens import math as m
from livens.bodies import Inertia, director_body
from livens.errors import InputError, ModelError
from livens.models.equations_of_motion import equations_of_motion
from livens.schemes.discretization.quasi_velocities import quasi_velocities

STEPS = [0.01 / 2**i for i in range(4)]


def arm(q, v):
    """The kinetic energy of a mass that slides on a turning rod: it depends on the coordinates."""
    return 0.5 * (0.3 + q[1] ** 2) * v[0] ** 2 + 0.5 * v[1] ** 2 + 0.1 * v[0] * v[1] * m.cos(q[1])


@functools.cache
def sliding(friction=False):
    """M(q), a cheap spring, an expensive field, with friction in the expensive force or without."""
    push = dict(forces=lambda q, v: [-0.4 * v[0] * (1 + v[1] ** 2), -0.3 * v[1]]) if friction else {}
    elements = [
        lv.Element("ar", kinetic=arm, name="arm"),
        lv.Element("r", potential=lambda q: 3 * (q[0] - 1) ** 2, name="spring"),
        lv.Element(
            "ar", potential=lambda q: m.sin(q[0] + q[1]) + 0.2 * q[1] ** 4, expensive=True, name="field", **push
        ),
    ]
    return lv.System(["a", "r"], elements=elements)


@functools.cache
def pendulum(friction=False):
    """Two particles on rods, with multipliers; an expensive force between them."""
    push = dict(dissipation=lambda v: 0.4 * ((v[2] - v[0]) ** 2 + 2 * (v[3] - v[1]) ** 2)) if friction else {}
    elements = [
        lv.Element(
            [0, 1], kinetic=lambda v: 0.5 * (v @ v), potential=lambda q: 9.81 * q[1] + 4 * q[0] ** 2, name="one",
            constraints=lambda q: [(q @ q - 1) / 2],
        ),
        lv.Element(
            [2, 3], kinetic=lambda v: 0.4 * (v @ v), potential=lambda q: 7.0 * q[1], name="other",
            constraints=lambda q: [((q[0] - 1) ** 2 + q[1] ** 2 - 1) / 2],
        ),
        lv.Element(
            [0, 1, 2, 3], potential=lambda q: m.exp(-((q[0] - q[2]) ** 2) - (q[1] - q[3]) ** 2), expensive=True,
            name="field", **push,
        ),
    ]  # fmt: skip
    return lv.System(4, elements=elements)


@functools.cache
def body(friction=False):
    """A free body that is held by an expensive field at a point off its centre."""
    push = dict(forces=lambda v: -0.3 * v) if friction else {}
    cage = director_body("top", Inertia(1.3, [0.7, 1.1, 1.5]))
    field = lv.Element(
        cage.coordinates,
        potential=lambda q: m.dot(q[:3] + 0.4 * q[3:6], q[:3] + 0.4 * q[3:6]) + 0.5 * q[11] ** 2,
        expensive=True, name="field", **push,
    )  # fmt: skip
    return lv.System(cage.coordinates, elements=[cage, field], frames=True), cage.state(
        position=[0.1, 0.2, -0.3], orientation=[1, 0, 0, 0], velocity=[0.2, 0, 0.1], omega=[0.5, 1.5, -0.8]
    )


CASES = {
    "mass of q": (sliding, ([0.3, 1.1], [0.5, -0.2])),
    "multipliers": (pendulum, ([0.6, -0.8, 1.6, -0.8], [0.8, 0.6, -0.4, -0.3])),
    "frame": (lambda friction=False: body(friction)[0], body()[1]),
}


def by_dop853(model, q, v, t_end):
    """Accelerations from mass matrix and constraints, integrated by a method of order 8."""
    d, n = equations_of_motion(model), model.n
    f = ca.Function("a", [d.q, d.v], [ca.substitute(ca.solve(*d.kkt_system), d.k, model.parameter_vector())])

    def rate(t, y):
        return np.concatenate([y[n:], np.array(f(y[:n], y[n:])).ravel()[:n]])

    return solve_ivp(rate, (0, t_end), np.concatenate([q, v]), method="DOP853", rtol=1e-13, atol=1e-14).y[:, -1]


@functools.cache
def exact(case, friction):
    make, (q, v) = CASES[case]
    return by_dop853(make(friction), q, v, 0.5)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("scheme", "friction", "order"),
    [
        ("semi-explicit:0.5,0.5", False, 2),
        ("semi-explicit:0.5,0.5", True, 1),
        ("semi-explicit:0.5,0.8", False, 1),
        ("semi-explicit-2:0.5", False, 2),
        ("semi-explicit-2:0.5", True, 2),
    ],
)
def test_orders(case, scheme, friction, order):
    """Order 2 for a = b = 1/2 without friction in A; with it, order 2 by extrapolated velocities.

    Gyroscopic terms of what turns belong to the reversible part of a step, not to A.
    """
    make, (q, v) = CASES[case]
    if case == "frame" and scheme == "semi-explicit:0.5,0.8":  # beta belongs to cheap forces, of which there are none
        order = 2
    errors = []
    for h in STEPS:
        run = lv.simulate(make(friction), q0=q, v0=v, scheme=scheme, h=h, t_end=0.5, every=10**6)
        errors.append(np.linalg.norm(np.concatenate([run.q[-1], run.v[-1]]) - exact(case, friction)))
    assert abs(measured_order(STEPS, errors) - order) < 0.1
    if case != "mass of q":
        assert np.abs(run.observe("constraint")).max() < 1e-12


def spinning(expensive, pinned=False):
    """A body with three moments in a field at a point off its centre, which may be pinned."""
    cage = director_body("top", Inertia(1.3, [0.7, 1.1, 1.5]))
    elements = [cage, lv.Element(cage.coordinates, potential=_field, expensive=expensive, name="field")]
    w, arm = np.array([0.5, 1.5, -0.8]), np.array([0.0, 0.0, -0.5])
    if pinned:
        elements.append(lv.Element(cage.coordinates, constraints=lambda q: q[:3] + 0.5 * q[9:12], name="pin"))
    start = dict(position=arm, velocity=np.cross(w, arm)) if pinned else dict(position=[0.1, 0.2, -0.3])
    return lv.System(cage.coordinates, elements=elements, frames=True), cage.state(
        **start, orientation=[1, 0, 0, 0], omega=w
    )


def _field(q):
    return m.dot(q[:3] + 0.4 * q[3:6], q[:3] + 0.4 * q[3:6]) + 0.5 * q[11] ** 2


@pytest.mark.parametrize("expensive", [True, False])
def test_bodies_in_space_return_along_the_way_they_came_and_gain_no_energy(expensive):
    """Declared symmetric: there and back to round-off, energies without a trend, compositions of order 4."""
    model, (q, v) = spinning(expensive)
    there = lv.simulate(model, q0=q, v0=v, scheme="semi-explicit:0.5,0.5", h=0.05, t_end=20.0)
    back = lv.simulate(model, q0=there.q[-1], v0=-there.v[-1], scheme="semi-explicit:0.5,0.5", h=0.05, t_end=20.0)
    assert back.q[-1] == pytest.approx(q, abs=1e-11) and -back.v[-1] == pytest.approx(v, abs=1e-11)
    assert (there.statistics.newton_iterations == 0) == expensive
    energy = lv.simulate(model, q0=q, v0=v, scheme="semi-explicit:0.5,0.5", h=0.05, t_end=400.0).observe("total_energy")
    swing = np.ptp(energy)
    assert swing < 2e-3 * energy[0] and abs(energy[-2000:].mean() - energy[:2000].mean()) < 0.1 * swing
    end = by_dop853(model, q, v, 1)
    steps, errors = [0.1, 0.05, 0.025, 0.0125], []
    for h in steps:
        run = lv.simulate(model, q0=q, v0=v, scheme="suzuki-4:semi-explicit:0.5,0.5", h=h, t_end=1.0, every=10**6)
        errors.append(np.linalg.norm(np.concatenate([run.q[-1], run.v[-1]]) - end))
    assert abs(measured_order(steps, errors) - 4) < 0.1


def test_a_pinned_body_in_space_has_order_two():
    model, (q, v) = spinning(expensive=True, pinned=True)
    end = by_dop853(model, q, v, 0.5)
    errors = []
    for h in STEPS:
        run = lv.simulate(model, q0=q, v0=v, scheme="semi-explicit:0.5,0.5", h=h, t_end=0.5, every=10**6)
        errors.append(np.linalg.norm(np.concatenate([run.q[-1], run.v[-1]]) - end))
    assert abs(measured_order(STEPS, errors) - 2) < 0.1


# -- what is unknown, and what is evaluated ---------------------------------------------------------------------------
def count(function, name):
    code = getattr(ca, f"OP_{name}")
    return sum(function.instruction_id(i) == code for i in range(function.n_instructions()))


def chain_of_four(**spring):
    """Four masses, the last two on cheap springs; the only hyperbolic tangents are expensive."""
    elements = [lv.Element([i], kinetic=lambda v: 0.5 * v[0] ** 2, name=f"m{i}") for i in range(4)]
    elements += [
        lv.Element([i, i + 1], forces=lambda q: [m.tanh(q[1] - q[0]), 0.0], expensive=True, name=f"pull{i}")
        for i in range(3)
    ]
    elements += [
        lv.Element(
            [i], potential=lambda q: 5e3 * q[0] ** 2, dissipation=lambda v: 50 * v[0] ** 2, name=f"hold{i}", **spring
        )
        for i in (2, 3)
    ]
    return lv.System(4, elements=elements)


def test_springs_on_single_coordinates_are_solved_in_closed_form():
    e = lv.schemes.get("semi-explicit:0.5,0.5").equations(chain_of_four(beta=0.8)).to_single_graph()
    assert e.size == 0 and count(e.final_state_function, "TANH") == 3
    same = lv.schemes.get("semi-explicit:0.5,0.8")
    given = dict(q0=[0.1, 0.2, 0.0, 0.0], v0=[1.0, 0.0, 0.5, 0.0], h=0.05, t_end=1.0)
    own = lv.simulate(chain_of_four(beta=0.8), scheme="semi-explicit:0.5,0.5", **given)
    whole = lv.simulate(chain_of_four(), scheme=same, **given)  # as a Hamiltonian, solved by Newton's method
    assert own.q == pytest.approx(whole.q, abs=1e-14) and own.v == pytest.approx(whole.v, abs=1e-13)
    assert own.statistics.newton_iterations == 0 < whole.statistics.newton_iterations


def test_only_what_cheap_forces_act_on_is_unknown_and_expensive_ones_are_evaluated_once():
    elements = list(chain_of_four().elements)
    elements.append(lv.Element([2, 3], potential=lambda q: m.cosh(q[0] - q[1]), beta=0.5, name="stiff"))
    e = lv.schemes.get("semi-explicit:0.5,0.8").equations(lv.System(4, elements=elements)).to_single_graph()
    assert e.size == 2
    assert count(e.newton_function, "TANH") == 0 and count(e.final_state_function, "TANH") == 3
    assert count(e.newton_function, "SINH") == 1 and count(e.residual_function, "COSH") == 0


def test_beta_belongs_to_a_force():
    """A stiff spring with beta 1/2 keeps its energy; with 0.8 it is damped, as penalties should be."""

    def left(beta):
        elements = [
            lv.Element("x", kinetic=lambda v: 0.5 * v[0] ** 2, name="mass"),
            lv.Element("x", potential=lambda q: 1e4 * q[0] ** 2, beta=beta, name="spring"),
        ]
        run = lv.simulate(
            lv.System("x", elements=elements), q0=[0.01], v0=[0.0], scheme="semi-explicit:0.5,0.6", h=0.01, t_end=1
        )
        return run.observe("total_energy")[-1] / run.observe("total_energy")[0]

    assert left(0.5) == pytest.approx(1, abs=1e-10) and left(0.8) < 1e-6
    for beta in (-0.1, 1.5):
        with pytest.raises(ModelError, match="beta"):
            lv.Element("x", potential=lambda q: q[0], beta=beta)
    for beta in ("much", np.nan):
        with pytest.raises(InputError, match="beta"):
            lv.Element("x", potential=lambda q: q[0], beta=beta)
    with pytest.raises(ModelError, match="expensive"):
        lv.Element("x", potential=lambda q: q[0], expensive="very")


def test_flags_of_elements():
    spring = lv.Element("x", potential=lambda q: q[0] ** 2)
    damper = lv.Element("x", dissipation=lambda v: v[0] ** 2, expensive=True)
    assert spring.conservative and not spring.expensive and damper.expensive and not damper.conservative
    mass = lv.Element("x", kinetic=lambda v: v[0] ** 2)
    digests = {
        lv.System("x", elements=[mass, lv.Element("x", potential=_square, beta=b)]).fingerprint
        for b in (None, 0.5, 0.8)
    }
    assert len(digests) == 3


def _square(q):
    return q[0] ** 2


# -- accounts, symmetry, composition ----------------------------------------------------------------------------------
def test_the_energy_account_closes_with_the_order_of_the_scheme():
    """Balance of dissipated work, supplied work and energy."""
    defects = []
    for h in STEPS:
        run = lv.simulate(pendulum(True), q0=CASES["multipliers"][1][0], v0=CASES["multipliers"][1][1],
                          scheme="semi-explicit-2:0.5", h=h, t_end=0.5)  # fmt: skip
        energy = run.observe("total_energy")
        assert run.dissipated_energy[-1] > 0.05
        defects.append(np.abs(energy - energy[0] + run.dissipated_energy - run.supplied_energy).max())
    assert abs(measured_order(STEPS, defects) - 2) < 0.15


@functools.cache
def split(commuting):
    """Two potentials in the plane whose Hessians commute, or not."""
    tilt = 0.0 if commuting else 0.7
    cheap = lv.Force(lambda q: (q[0] ** 2 + 3 * q[1] ** 2) / 2, conservative=True)
    dear = lv.Force(lambda q: (2 * q[0] ** 2 + q[1] ** 2) / 2 + tilt * q[0] * q[1], expensive=True, conservative=True)
    return lv.Hamiltonian("x y", kinetic=lambda p: p @ p / 2, forces=[cheap, dear])


def test_imex_is_symplectic_and_scheme_5_is_not():
    defect = functools.partial(lv.study.symplecticity_defect, q=[0.4, -0.3], p=[0.5, 0.2], h=0.3)
    assert defect(split(False), "imex") < 1e-14
    assert defect(split(False), "semi-explicit:0.5,0.5") > 1e-4
    assert defect(split(True), "semi-explicit:0.5,0.5") < 1e-14
    assert (
        lv.study.reversibility_defect(split(False), "semi-explicit:0.5,0.5", [0.4, -0.3], p=[0.5, 0.2], h=0.3) < 1e-14
    )


@pytest.mark.parametrize("scheme", ["imex", "semi-explicit:0.5,0.5"])
def test_symmetric_schemes_compose_to_order_four(scheme):
    given = dict(q0=[0.4, -0.3], p0=[0.5, 0.2], t_end=2.0)
    model = nonlinear()
    best = lv.simulate(model, scheme="kahan-li-8:implicit-midpoint", h=0.01, **given)
    steps, errors = [0.1 / 1.5**i for i in range(4)], []
    for h in steps:
        run = lv.simulate(model, scheme=f"yoshida-4:{scheme}", h=h, **given)
        errors.append(np.linalg.norm(run.q[-1] - best.q[-1]))
    assert run.t[-1] == pytest.approx(2.0)
    assert abs(measured_order(steps, errors) - 4) < 0.2
    with pytest.raises(InputError, match="not symmetric"):
        lv.schemes.get("suzuki-4:semi-explicit:0.5,0.8")


@functools.cache
def nonlinear():
    dear = lv.Force(lambda q: m.cos(q[0] + 2 * q[1]), expensive=True, conservative=True)
    return lv.Hamiltonian(
        "x y", kinetic=lambda p: p[0] ** 2 / 2 + 0.8 * p[1] ** 2, potential=lambda q: (q[0] - q[1]) ** 2, forces=dear
    )


def test_imex_has_order_two_and_keeps_energy_for_long_times():
    given = dict(q0=[0.4, -0.3], p0=[0.5, 0.2])
    best = lv.simulate(nonlinear(), scheme="kahan-li-8:implicit-midpoint", h=0.01, t_end=1.0, **given)
    errors = [
        np.linalg.norm(lv.simulate(nonlinear(), scheme="imex", h=h, t_end=1.0, **given).q[-1] - best.q[-1])
        for h in STEPS
    ]
    assert abs(measured_order(STEPS, errors) - 2) < 0.1
    energy = lv.simulate(nonlinear(), scheme="imex", h=0.1, t_end=2000.0, **given).observe("total_energy")
    early, late = np.ptp(energy[:2000]), np.ptp(energy[-2000:])
    assert late < 1.2 * early < 0.1


def test_imex_on_a_body_that_turns():
    """Order 2, and the angular momentum of a free body to round-off."""
    model, (q, v) = body()
    errors = []
    for h in STEPS:
        run = lv.simulate(model, q0=q, v0=v, scheme="imex", h=h, t_end=0.5, every=10**6)
        errors.append(np.linalg.norm(np.concatenate([run.q[-1], run.v[-1]]) - exact("frame", False)))
    assert abs(measured_order(STEPS, errors) - 2) < 0.1
    cage = model.elements[0]
    free = lv.System(cage.coordinates, elements=[cage], frames=True)
    run = lv.simulate(free, q0=q, v0=v, scheme="imex", h=0.1, t_end=20.0)
    spin = np.cross(run.q[:, 3:].reshape(-1, 3, 3), run.p[:, 3:].reshape(-1, 3, 3)).sum(axis=1)
    assert np.abs(spin - spin[0]).max() < 1e-12
    with pytest.raises(InputError, match="without constraints"):
        lv.simulate(
            pendulum(), q0=CASES["multipliers"][1][0], v0=CASES["multipliers"][1][1], scheme="imex", h=0.1, t_end=1
        )


def test_masses_survive_that_the_dynamics_are_forgotten():
    """The cache of derived equations is bounded: equations derived again contain other symbols."""
    system = sliding()
    found, k = quasi_velocities(system), ca.DM(system.parameter_vector())
    before = found.mass_matrix([0.2, 1.1], [0.0, 0.0], k)
    equations_of_motion.cache_clear()
    assert np.array_equal(np.array(found.mass_matrix([0.2, 1.1], [0.0, 0.0], k)), np.array(before))
    assert np.isfinite(np.array(found.diagonal_mass(k))).all()
