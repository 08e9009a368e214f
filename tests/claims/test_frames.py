"""Frame bodies: what lie-em and lie-ggl conserve, and that livens-em on them is the scheme with all directors."""

import casadi as ca
import numpy as np
import pytest
from conftest import measured_order

import livens as lv
from livens import bodies
from livens import math as m
from livens.models.element import of_invariants
from livens.problems import load

SCHEMES = ("lie-em", "lie-ggl", "livens-em")


def framed(system):
    """Return the system with its bodies as frames."""
    return lv.System(
        system.coordinates, elements=system.elements, parameters=system.model_parameters.values, frames=True
    )


def hinge(a, X, b, Y, axis):
    """Points coincide, and a director of b is normal to two of a: a revolute joint."""

    def constraints(q, k):
        pa, pb = q[:12], q[12:]
        gap = a.parametrisation.point(pa, k.X) - b.parametrisation.point(pb, k.Y)
        e = pb[3 + 3 * axis : 6 + 3 * axis]
        return [*gap, *(m.dot(pa[3 + 3 * i : 6 + 3 * i], e) for i in range(3) if i != axis)]

    return lv.Element(
        [*a.coordinates, *b.coordinates], constraints=constraints, parameters=dict(X=X, Y=Y), name="hinge"
    )


def chain(free=False, more=(), dissipative=False):
    """Three bodies, two revolute joints, an off-centre spring; hung up in a spherical joint with gravity or free."""
    inertia = bodies.Inertia(1.0, [[0.05, 0.01, 0.0], [0.01, 0.09, 0.0], [0.0, 0.0, 0.1]])
    parts = [bodies.director_body(f"b{i}", inertia) for i in range(3)]
    a, b, c = parts
    elements = [*parts, hinge(a, [0.5, 0, 0], b, [-0.5, 0, 0], 1), hinge(b, [0.5, 0, 0], c, [-0.5, 0, 0], 2)]
    elements.append(bodies.spring((a, [0.0, 0.1, 0.0]), (c, [0.2, 0.0, 0.1]), 30.0, 1.5))
    if not free:
        elements += [bodies.gravity(part) for part in parts]
        elements.append(bodies.spherical_joint((a, [-0.5, 0, 0]), [0.0, 0, 0]))
    if dissipative:
        elements += [
            bodies.damper((b, [0.1, 0.2, 0]), [0.0, 2.0, 1.0], 0.4),
            bodies.damper((a, [0.0, 0.1, 0.0]), (c, [0, 0, 0]), 0.2),
        ]
        elements.append(bodies.torque(c, lambda t: [5 * m.sin(3 * t), 0.0, 1.0]))
    names = bodies.coordinates(parts)
    about = bodies.angular_momentum(parts) if free else bodies.angular_momentum(parts, axis=[0, 0, 1])
    symmetries = dict(angular=about) | (dict(linear=bodies.linear_momentum(parts)) if free else {})
    omega, q, v = np.array([0.3, 0.5, 2.0]), [], []
    for i, part in enumerate(parts):
        at = np.array([0.5 + i, 0, 0])
        state = part.state(at, None, np.cross(omega, at) + free * np.array([0.3, 0.1, 0.2]), omega)
        q.append(state[0])
        v.append(state[1])
    system = lv.System(names, elements=elements, symmetries=None if dissipative else symmetries, frames=True)
    return system, np.concatenate(q), np.concatenate(v)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("free", [True, False])
def test_energy_and_momenta_with_revolute_joints_and_springs(scheme, free):
    """All at round-off; a midpoint scheme on the same bodies shows that the motion is not too tame for that to mean
    something."""
    system, q, v = chain(free)
    run = lv.simulate(system, q, v, scheme=scheme, h=0.01, t_end=5.0)
    assert run.summary.max_energy_drift < 1e-12
    assert run.summary.max_constraint < 1e-14
    assert max(run.summary.momentum_drift.values()) < 1e-12
    if scheme == "lie-ggl":
        assert run.summary.max_velocity_constraint < 1e-12
    else:
        assert run.summary.max_velocity_constraint > 1e-4
    other = lv.simulate(system, q, v, scheme="livens-midpoint", h=0.01, t_end=5.0)
    assert other.summary.max_energy_drift > 1e-7


@pytest.mark.parametrize("scheme", SCHEMES)
def test_through_singular_positions(scheme):
    problem = load("double-four-bar")
    run = lv.simulate(framed(problem.model), problem.q0, problem.v0, scheme=scheme, h=1e-3, t_end=5.0)
    assert run.summary.max_energy_drift < 1e-13 and run.summary.max_constraint < 2e-15
    assert run.statistics.reference_steps == 0 and run.statistics.repivots == 0
    assert np.abs(run.q[-1] - problem.reference(5.0)["q"]).max() < 1e-4
    assert (run.summary.max_velocity_constraint < 1e-13) == (scheme == "lie-ggl")


@pytest.mark.parametrize(
    ("name", "h", "t_end"),
    [("double-four-bar", 1e-3, 1.0), ("closed-loop-bars-directors", 0.1, 5.0), ("gyroscopic-top", 1e-3, 0.2)],
)
def test_livens_em_is_the_scheme_with_all_directors(name, h, t_end):
    """The trajectories agree to round-off with less than half of the unknowns; that of lie-em differs."""
    problem = load(name)
    system = framed(problem.model)
    full, few, other = (
        lv.simulate(model, problem.q0, problem.v0, scheme=scheme, h=h, t_end=t_end)
        for model, scheme in ((problem.model, "livens-em"), (system, "livens-em"), (system, "lie-em"))
    )
    size = np.abs(full.v).max()
    assert np.abs(full.q - few.q).max() < 1e-11 and np.abs(full.v - few.v).max() < 1e-9 * size
    assert np.abs(full.v - other.v).max() > 1e-8 * size
    sizes = [lv.schemes.get("livens-em").equations(model).to_single_graph().size for model in (problem.model, system)]
    assert sizes[1] < sizes[0] / 2


@pytest.mark.parametrize(
    ("scheme", "order", "h"), [("lie-em", 2, 0.01), ("lie-ggl", 2, 0.01), ("suzuki-4:lie-em", 4, 0.04)]
)
def test_orders(scheme, order, h):
    system, q, v = chain()
    fine = lv.simulate(system, q, v, scheme="suzuki-4:lie-em", h=0.0025, t_end=0.8).q[-1]
    steps = [h, h / 2, h / 4, h / 8] if order == 2 else [h, h / 1.25, h / 2, h / 2.5]
    errors = [
        np.linalg.norm(lv.simulate(system, q, v, scheme=scheme, h=size, t_end=0.8).q[-1] - fine) for size in steps
    ]
    assert abs(measured_order(steps, errors) - order) < 0.1, errors


@pytest.mark.parametrize("scheme", SCHEMES)
def test_energy_balance_with_motor_and_dampers(scheme):
    """The energy is what was there, what motors supplied and what dampers took; much of both."""
    system, q, v = chain(dissipative=True)
    run = lv.simulate(system, q, v, scheme=scheme, h=0.01, t_end=5.0)
    energy = run.observe("total_energy") if scheme != "livens-em" else run.observe("generalized_energy")
    balance = energy - run.supplied_energy + run.dissipated_energy
    assert np.ptp(balance) < 1e-12 * np.abs(energy).max()
    assert run.dissipated_energy[-1] > 0.1 and np.ptp(run.supplied_energy) > 0.1


@pytest.mark.parametrize("scheme", ["lie-em", "lie-ggl", "suzuki-4:lie-em"])
def test_runs_resume_bit_for_bit(scheme, tmp_path):
    """The angular momenta are part of the state that a file holds."""
    problem = load("double-four-bar")
    system = framed(problem.model)
    given = dict(scheme=scheme, h=1e-2)
    whole = lv.simulate(system, problem.q0, problem.v0, t_end=0.4, **given)
    half = tmp_path / "half.h5"
    lv.simulate(system, problem.q0, problem.v0, t_end=0.2, out=half, **given)
    resumed = lv.resume(half, t_end=0.4, system=system)
    assert np.array_equal(resumed.q[-1], whole.q[-1]) and np.array_equal(resumed.v[-1], whole.v[-1])


def test_a_free_body_and_a_long_run():
    """Pi is stored: the energy of a spinning body shows no walk of rounding."""
    body = bodies.director_body("b", bodies.Inertia(1.0, [1.0, 2.0, 2.5]))
    system = lv.System(
        body.coordinates, elements=[body], symmetries=dict(L=bodies.angular_momentum([body])), frames=True
    )
    q, v = body.state([0, 0, 0], None, [1, 0.2, 0], [0.3, 2.0, 0.5])
    run = lv.simulate(system, q, v, h=0.05, t_end=2000.0, every=100)
    assert run.info.scheme == "lie-em"
    assert run.summary.max_energy_drift < 1e-12 and run.summary.momentum_drift["L"] < 1e-11
    assert np.abs(run.observe("constraint")).max() < 1e-14


def test_particles_and_planar_bodies():
    """Frames without directors, and in the plane, in one system each."""
    mass, bar = bodies.particle("m", 0.5, dimension=2), bodies.planar_body("bar", 1.0, 0.2)
    tie = bodies.rigid_link((mass, [0, 0]), (bar, [0.3, 0.0]), 0.5)
    system = lv.System(
        bodies.coordinates([mass, bar]),
        elements=[mass, bar, tie, bodies.spring((mass, [0, 0]), (bar, [-0.3, 0.1]), 20.0, 0.7)],
        symmetries=dict(L=bodies.angular_momentum([mass, bar]), P=bodies.linear_momentum([mass, bar])),
        frames=True,
    )
    q = np.concatenate([[0.8, 0.0], bar.state([0, 0])[0]])
    v = np.concatenate([[0.0, 0.6], bar.state(omega=2.0)[1]])
    for scheme in SCHEMES:
        run = lv.simulate(system, q, v, scheme=scheme, h=0.02, t_end=4.0)
        assert run.summary.max_energy_drift < 1e-12 and max(run.summary.momentum_drift.values()) < 1e-12


def test_what_is_no_frame_is_refused():
    top = bodies.fixed_point_body("top", bodies.Inertia(1.0, [1, 1, 1]))
    with pytest.raises(lv.ModelError, match=r"'top.q0' belongs to no frame"):
        lv.System(top.coordinates, elements=[top], frames=True)
    bent = lv.Element(
        "x y z".split(), kinetic=lambda v: v[0] ** 2 + v[1] ** 2 + 2 * v[2] ** 2, frames=[[range(3)]], name="bent"
    )
    with pytest.raises(lv.ModelError, match="'bent' has not the kinetic energy of a rigid body"):
        lv.System("x y z", elements=[bent], frames=True)
    body = bodies.director_body("b", bodies.Inertia(1.0, [1, 1, 1]))
    extra = lv.Element(body.coordinates[:3], kinetic=lambda v: v @ v, name="extra")
    with pytest.raises(lv.ModelError, match="'extra' has kinetic energy"):
        lv.System(body.coordinates, elements=[body, extra], frames=True)
    plain = lv.System(body.coordinates, elements=[body])
    with pytest.raises(lv.InputError, match="rigid bodies in director coordinates"):
        lv.simulate(plain, *body.state(), scheme="lie-em", h=0.1, t_end=1)


def test_a_rod_without_thickness_says_what_is_missing():
    rod = bodies.director_body("rod", bodies.Inertia(1.0, [1 / 12, 0, 1 / 12]))
    system = lv.System(rod.coordinates, elements=[rod], frames=True)
    with pytest.raises(lv.InputError, match="principal moments of inertia are all positive"):
        lv.simulate(system, *rod.state(omega=[0, 0, 1]), scheme="lie-em", h=0.1, t_end=1)


def held_and_damped():
    """A body whose one element has a potential of its coordinates and a damper through an invariant."""
    body = bodies.director_body("b", bodies.Inertia(1.0, [1.0, 2.0, 2.5]))
    held = lv.Element(
        body.coordinates,
        potential=lambda q: (q[0] - 2 * q[4]) ** 4 + m.sin(q[1] * q[5]),
        dissipation=of_invariants(lambda q: [m.dot(q[:3], q[3:6])], lambda w, u: 0.3 * (1 + w[0] ** 2) * u[0] ** 2),
        name="held",
    )
    system = lv.System(body.coordinates, elements=[body, held], frames=True)
    return system, body.state([0.3, 0.4, -0.2])[0], None


@pytest.mark.parametrize("made", [lambda: chain(dissipative=True), held_and_damped], ids=["chain", "one"])
@pytest.mark.parametrize("scheme", ["lie-em", "livens-em", "lie-ggl"])
def test_the_jacobian_is_that_of_the_residual(scheme, made):
    """Variations of the end of the step, taken to changes of the unknowns: the derivative by the unknowns."""
    system, q, _ = made()
    e = lv.schemes.get(scheme).equations(system).to_single_graph()
    random = np.random.default_rng(0)
    x, z = random.standard_normal(e.size), random.standard_normal(e.z.numel())
    z[: system.n], c = q, np.concatenate([[0.3, 0.1], system.parameter_vector()])
    values, turn = (np.array(part).ravel() for part in e.newton_function(x, z, c)[1:])
    found, turning = np.zeros((e.size, e.size)), np.eye(e.size)
    found[e.jac_rows, e.jac_cols], turning[e.update_matrix[1], e.update_matrix[2]] = values, turn
    exact = np.array(ca.Function("exact", e.arguments, [ca.jacobian(e.residual, e.x)])(x, z, c))
    assert np.abs(found - exact @ turning).max() < 1e-12 * np.abs(found).max()
    assert np.abs(found - exact).max() > 1e-2


def test_tiers_agree():
    """The reference tier turns its corrections as the fused one does."""
    system, q, v = chain()
    runs = [lv.simulate(system, q, v, h=0.02, t_end=0.2, tier=tier) for tier in ("fused", "reference")]
    assert np.abs(runs[0].q - runs[1].q).max() < 1e-13
