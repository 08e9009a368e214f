"""Default schemes and step sizes are stable; impossible choices are refused."""

import itertools

import numpy as np
import pytest

import livens as lv
from livens import bodies
from livens import rotations as rot

FORMULATIONS = ("index-3", "index-2", "ggl", "index-1")


def chain(count, ground=True, moments=(1 / 12, 1 / 100, 1 / 12), **options):
    """Rods with joints at their ends, anywhere in space and turning."""
    rod, random = bodies.Inertia(1.0, moments), np.random.default_rng(1)
    rods = [bodies.quaternion_body(f"rod{i}", rod, **options) for i in range(count)]
    elements = [*rods, *map(bodies.gravity, rods)]
    if ground:
        elements.append(bodies.spherical_joint((rods[0], [0, -0.5, 0]), [0, 0, 0]))
    ends = itertools.pairwise(rods)
    elements += [bodies.spherical_joint((a, [0, 0.5, 0]), (b, [0, -0.5, 0])) for a, b in ends]
    q, v, end = [], [], np.zeros(3)
    for body in rods:
        turn = random.normal(size=4)
        turn /= np.linalg.norm(turn)
        arm = rot.to_matrix(turn) @ [0, 0.5, 0]
        at, rates = body.state(end + arm, turn, omega=2 * random.normal(size=3))
        end = end + 2 * arm
        q, v = [*q, *at], [*v, *rates]
    return lv.System(bodies.coordinates(rods), elements=elements), q, v


@pytest.mark.parametrize(
    ("count", "ground", "h"), [(2, True, 1e-2), (2, True, 2e-3), (2, False, 1e-2), (2, False, 2e-3), (3, True, 2e-3)]
)
def test_jointed_quaternion_bodies_run_on(count, ground, h):
    """The body and the scheme one gets: what went wrong by t = 2.3 to 18.5 at these steps runs on to t = 20."""
    run = lv.simulate(*chain(count, ground), h=h, t_end=20.0, project=True, every=10)
    assert run.info.scheme == "livens-em" and run.summary.max_energy_drift < 1e-11
    speed = np.abs(run.v).max()
    assert run.summary.max_velocity_constraint < 0.1 * speed and speed < 250.0


@pytest.mark.parametrize("h", [1e-2, 2e-3])
def test_no_smaller_step_is_advised_where_it_does_not_help(h):
    with pytest.raises(lv.IntegrationError, match=r"a smaller step does not help.*equivariant=False") as caught:
        lv.simulate(*chain(2, equivariant=True), h=h, t_end=20.0, project=True)
    assert "Try a smaller step" not in str(caught.value)
    assert caught.value.result.summary.max_energy_drift < 1e-10, "energy says nothing"


def test_a_step_that_is_too_long_is_called_that():
    with pytest.raises(lv.IntegrationError, match="Try a smaller step than h = 5"):
        lv.simulate(lv.problems.load("double-four-bar"), h=5.0, t_end=500.0)


def test_quaternions_need_inertia_about_every_axis():
    thin = bodies.Inertia(1.0, [1 / 12, 0, 1 / 12])
    for make in (bodies.quaternion_body, bodies.fixed_point_body):
        with pytest.raises(lv.ModelError, match="no inertia about one of its axes"):
            make("rod", thin)
    assert bodies.director_body("rod", thin).name == "rod"
    off = bodies.Inertia(1.0, [1 / 12, 0, 1 / 12], centre=[0.5, 0, 0])
    assert bodies.fixed_point_body("rod", off).name == "rod", "seen from the fixed point it has inertia about all axes"


@pytest.mark.parametrize("scheme", ["murua-1", "murua-2", "murua-ggl-1", "murua-ggl-2"])
def test_murua_says_which_masses_it_takes(scheme):
    """Unit quaternions have a singular mass that depends on them; massless coordinates and regular masses are fine."""
    for name in ("heavy-top", "free-rigid-body"):
        with pytest.raises(lv.InputError, match="a mass matrix that is regular or constant"):
            lv.simulate(lv.problems.load(name), scheme=scheme, t_end=0.01)
    for name in ("vanishing-mass", "spherical-pendulum", "spring-pendulum-spherical"):
        assert lv.simulate(lv.problems.load(name), scheme=scheme, h=1e-3, t_end=0.01).status == "complete"


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_index_of_equations(formulation):
    """As the formulations are called; GGL has index 2."""
    model = lv.MultibodyEquations.from_system(lv.problems.load("double-pendulum").model).formulate(formulation)
    assert model.index == {"index-3": 3, "index-2": 2, "ggl": 2, "index-1": 1}[formulation]
    assert lv.FirstOrder("x", rhs=lambda x: [-x[0]]).index == 0


@pytest.mark.parametrize("scheme", ["gauss-1", "gauss-2", "gauss-3", "radau-ia-2", "lobatto-iiie-2"])
def test_methods_that_do_not_end_with_a_stage_are_refused_on_index_3(scheme):
    equations = lv.MultibodyEquations.from_system(lv.problems.load("simple-pendulum").model)
    start = dict(q0=[-1, 0], v0=[0, 0], scheme=scheme, h=0.01, t_end=0.02)
    with pytest.raises(lv.InputError, match=rf"'{scheme}' needs equations of an index below 3.*radau-iia-3"):
        lv.simulate(equations.formulate("index-3"), **start)
    assert scheme not in lv.schemes.compatible(equations.formulate("index-3"))
    written = lv.FirstOrder(
        "x y vx vy",
        rhs=lambda x, y: [x[2], x[3], -y[0] * x[0], -9.81 - y[0] * x[1]],
        algebraic="lam",
        constraints=lambda x: [x[0] ** 2 + x[1] ** 2 - 1],
    )
    assert written.index == 3 and "radau-iia-3" in lv.schemes.compatible(written)
    with pytest.raises(lv.InputError, match="an index below 3"):
        lv.simulate(written, x0=[1, 0, 0, 0], y0=[0.0], scheme=scheme, h=0.01, t_end=0.02)
