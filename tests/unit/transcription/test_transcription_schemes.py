"""Optimal motions are motions of the simulator, for every scheme: replay, order of the cost, balances."""

import numpy as np
import pytest

import livens as lv
from livens import math as m

SCHEMES = [
    "livens-variational", "livens-midpoint", "livens-em", "ggl-em", "lobatto-iiia-iiib-2", "lobatto-iiia-iiib-3",
    "gauss-1", "gauss-2", "gauss-3", "murua-ggl-2", "radau-iia-2",
]  # fmt: skip
#: Cost of the cart-pole swing-up with gauss-3 and 240 steps.
CART_POLE_COST = 58.807667


@pytest.mark.parametrize("scheme", SCHEMES)
def test_replay_of_the_cart_pole(scheme):
    motion = lv.optimal_control(lv.problems.load("cart-pole-swing-up"), scheme=scheme)
    replay = motion.replay()
    assert motion.converged
    assert replay.one_step_defect < 1e-13
    assert replay.defect < 1e-11
    assert motion.cost == pytest.approx(CART_POLE_COST, rel=4e-2)
    np.testing.assert_allclose(motion.q[-1], [1.0, np.pi], atol=1e-9)
    if scheme in ("livens-em", "ggl-em"):
        assert motion.energy_imbalance() < 1e-13


def pendulum():
    return lv.System(
        "th",
        kinetic=lambda v: v[0] ** 2 / 2,
        potential=lambda q: -9.81 * m.cos(q[0]),
        forces=lambda k: [k.u],
        parameters=dict(u=0.0),
    )


SWING = dict(inputs={"u": None}, t_end=1.0, start=dict(q0=[0.0], v0=[0.0]), end=dict(q=[1.5], v=[0.0]))


def compatible_schemes(model):
    return [s.name for s in lv.schemes.all() if not (s.unmet_requirements(model) or s.fictive or s.selects_step_size)]


def oscillator(kind):
    """Return an oscillator with a cubic spring and an input, as a model of first order."""
    parameters = dict(f=0.0)
    if kind == "port-Hamiltonian":
        return lv.PortHamiltonian(
            "q p", H=lambda x: (x[0] ** 2 + x[1] ** 2) / 2 + x[0] ** 4 / 4, J=[[0, 1], [-1, 0]], B=[[0], [1]],
            u=lambda k: [k.f], parameters=parameters,
        )  # fmt: skip
    return lv.FirstOrder("q p", rhs=lambda x, k: [x[1], k.f - x[0] - x[0] ** 3], parameters=parameters)


OF_FIRST_ORDER = [
    (kind, scheme)
    for kind in ("port-Hamiltonian", "first order")
    for scheme in compatible_schemes(oscillator(kind))
]  # fmt: skip


def check_replay(motion):
    replay = motion.replay()
    assert motion.converged
    assert max(replay.defect, replay.one_step_defect) < 1e-10  # tolerance of the constraints


@pytest.mark.parametrize("scheme", compatible_schemes(pendulum()))
def test_replay_of_every_scheme_of_the_catalogue(scheme):
    """Every scheme with fixed steps that can simulate the model is transcribed, and replayed by the simulator."""
    check_replay(lv.optimal_control(pendulum(), steps=6, scheme=scheme, **{**SWING, "end": dict(q=[1.0], v=[0.0])}))


def driven_arm():
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    arm = mb.rod("arm", a=[0, 0, 0], b=[0, 0, -1], mass=1.0)
    hinge = mb.revolute("hinge", mb.ground, arm, at=arm.a, axis="y")
    mb.motor(hinge, torque=mb.input("torque"), name="motor")
    return mb


@pytest.mark.slow
@pytest.mark.parametrize("scheme", compatible_schemes(driven_arm().system))
def test_replay_of_every_scheme_of_bodies_with_frames(scheme):
    check_replay(lv.optimal_control(
        driven_arm(), inputs={"torque": (-30, 30)}, t_end=1.0, steps=6, scheme=scheme,
        end={"hinge.angle": 1.0, "hinge.rate": 0.0},
    ))  # fmt: skip


@pytest.mark.parametrize(("kind", "scheme"), OF_FIRST_ORDER)
def test_replay_of_every_scheme_of_models_of_first_order(kind, scheme):
    check_replay(lv.optimal_control(
        oscillator(kind), inputs={"f": (-9, 9)}, t_end=1.0, steps=6, scheme=scheme, start=dict(x0=[0.0, 0.0]),
        end=dict(x=[1.0, 0.0]),
    ))  # fmt: skip


def test_all_other_schemes_are_refused():
    accepted = compatible_schemes(pendulum())
    assert len(accepted) > 50
    for scheme in lv.schemes.all():
        if scheme.name not in accepted:
            with pytest.raises(lv.InputError, match="scheme"):
                lv.optimal_control(pendulum(), steps=6, scheme=scheme, **SWING)


@pytest.fixture(scope="module")
def reference_cost():
    return lv.optimal_control(pendulum(), steps=40, scheme="gauss-4", **SWING).cost


@pytest.mark.parametrize(
    ("scheme", "shape", "order", "steps"),
    [
        ("livens-variational", "constant", 2, (8, 16, 32, 64)),
        ("livens-em", "constant", 2, (8, 16, 32, 64)),
        ("gauss-3", "constant", 2, (8, 16, 32, 64)),
        ("gauss-2", "stages", 4, (5, 7, 10, 14)),
        ("lobatto-iiia-iiib-3", "linear", 4, (5, 7, 10, 14)),
        ("gauss-3", "stages", 6, (5, 7, 10, 14)),
    ],
)
def test_order_of_the_cost(reference_cost, scheme, shape, order, steps):
    costs = [lv.optimal_control(pendulum(), steps=n, scheme=scheme, shape=shape, **SWING).cost for n in steps]
    errors = np.abs(np.array(costs) - reference_cost)
    slope = -np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert abs(slope - order) < 0.35, (slope, errors)


@pytest.mark.parametrize("scheme", ["livens-variational", "livens-em", "ggl-em", "murua-ggl-2", "lobatto-iiia-iiib-3"])
def test_redundant_coordinates(reference_cost, scheme):
    """End conditions on all redundant coordinates are reduced to the degree of freedom; the torque is the same."""
    system = lv.System(
        "x y",
        kinetic=lambda v: (v @ v) / 2,
        potential=lambda q: 9.81 * q[1],
        constraints=lambda q: [(q @ q - 1) / 2],
        forces=lambda q, k: [-q[1] * k.u, q[0] * k.u],
        parameters=dict(u=0.0),
    )
    end = [np.sin(1.5), -np.cos(1.5)]
    path = [[np.sin(a), -np.cos(a)] for a in np.linspace(0, 1.5, 11)]
    motion = lv.optimal_control(
        system, inputs={"u": None}, t_end=1.0, steps=20, scheme=scheme, guess=dict(q=path),
        start=dict(q0=[0.0, -1.0], v0=[0.0, 0.0]), end=dict(q=end, v=[0.0, 0.0]),
    )  # fmt: skip
    assert motion.converged
    assert motion.cost == pytest.approx(reference_cost, rel=2e-2)
    np.testing.assert_allclose(motion.q[-1], end, atol=1e-8)
    tangent = np.array([-end[1], end[0]])
    assert abs(tangent @ motion.p[-1]) < 1e-8
    assert motion.replay().defect < 1e-11


@pytest.mark.parametrize("scheme", ["livens-variational", "livens-midpoint", "livens-em"])
def test_rest_means_momenta(scheme):
    """Conditions on functions of velocities hold for the velocity that belongs to the momentum, not for a record."""
    problem = lv.problems.load("cart-pole-swing-up")
    by_vector = lv.optimal_control(problem, scheme=scheme)
    end = {"x": 1.0, "th": np.pi, "v_x": 0.0, "rate": (lambda v: v[1], 0.0, 0.0)}
    by_function = lv.optimal_control(problem, scheme=scheme, end=end)
    assert by_function.cost == pytest.approx(by_vector.cost, rel=1e-8)
    np.testing.assert_allclose(by_function.p[-1], 0.0, atol=1e-8)


def test_path_conditions_on_velocities_hold_for_momenta():
    problem = lv.problems.load("cart-pole-swing-up")
    free = lv.optimal_control(problem, scheme="livens-em")
    fastest = np.abs(free.v[:, 0]).max()
    bound = 0.8 * fastest
    motion = lv.optimal_control(problem, scheme="livens-em", along={"x": (-2, 2), "v_x": (-bound, bound)})
    k = problem.model.parameters
    mass = [
        [[k["M"] + k["m"], k["m"] * k["l"] * np.cos(q[1])], [k["m"] * k["l"] * np.cos(q[1]), k["m"] * k["l"] ** 2]]
        for q in motion.q
    ]
    velocities = np.linalg.solve(np.array(mass), motion.p[..., None])[:, 0, 0]
    assert motion.converged
    assert np.abs(velocities).max() == pytest.approx(bound, rel=1e-6)


def test_port_hamiltonian_and_first_order_models_agree():
    """A mass with a spring as a port-Hamiltonian system, as a first-order system and as a mechanical system."""
    port = lv.PortHamiltonian(
        "q p", H=lambda x: (x[0] ** 2 + x[1] ** 2) / 2, J=[[0, 1], [-1, 0]], B=[[0], [1]], u=lambda k: [k.f],
        parameters=dict(f=0.0),
    )  # fmt: skip
    first = lv.FirstOrder("q p", rhs=lambda x, k: [x[1], k.f - x[0]], parameters=dict(f=0.0))
    mechanical = lv.System(
        "q", kinetic=lambda v: v[0] ** 2 / 2, potential=lambda q: q[0] ** 2 / 2, forces=lambda k: [k.f],
        parameters=dict(f=0.0),
    )  # fmt: skip
    common = dict(inputs={"f": (-9, 9)}, t_end=1.0, steps=10, scheme="gauss-2")
    end_x = dict(start=dict(x0=[0.0, 0.0]), end=dict(x=[1.0, 0.0]))
    motions = [
        lv.optimal_control(port, **common, **end_x),
        lv.optimal_control(first, **common, **end_x),
        lv.optimal_control(mechanical, **common, start=dict(q0=[0.0], v0=[0.0]), end=dict(q=[1.0], v=[0.0])),
    ]
    assert all(motion.converged and motion.replay().defect < 1e-12 for motion in motions)
    np.testing.assert_allclose([motion.cost for motion in motions], motions[0].cost, rtol=1e-9)
    assert motions[0].energy_imbalance() < 1e-12
    assert motions[0]["q"][-1] == pytest.approx(1.0)


def test_descriptor_model_with_algebraic_variables():
    """A DAE of index 1, ``y = u + x`` as algebraic variable, has the optimum of the ODE."""
    dae = lv.FirstOrder(
        "x w", rhs=lambda x, y: [x[1], y[0]], algebraic="y", constraints=lambda x, y, k: [y[0] - k.u + x[0]],
        parameters=dict(u=0.0),
    )  # fmt: skip
    ode = lv.FirstOrder("x w", rhs=lambda x, k: [x[1], k.u - x[0]], parameters=dict(u=0.0))
    common = dict(inputs={"u": None}, t_end=1.0, steps=10, scheme="radau-iia-3", end=dict(x=[1.0, 0.0]))
    motions = [lv.optimal_control(model, start=dict(x0=[0.0, 0.0]), **common) for model in (dae, ode)]
    assert all(motion.converged and motion.replay().defect < 1e-11 for motion in motions)
    assert motions[0].cost == pytest.approx(motions[1].cost, rel=1e-9)
    assert motions[0].y.shape == (11, 1)
