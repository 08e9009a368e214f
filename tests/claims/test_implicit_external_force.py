"""External forces in implicit schemes: at the midpoint, with given Jacobians or difference quotients."""

import ctypes

import numpy as np
import pytest
from conftest import measured_order
from scipy.integrate import solve_ivp
from test_black_box import body, drag

import livens as lv
from livens.errors import InputError

DOUBLES = ctypes.POINTER(ctypes.c_double)
PROTOTYPE = ctypes.CFUNCTYPE(None, *[DOUBLES] * 5)
SCHEMES = ("livens-em", "livens-midpoint", "livens-em:mean-value", "livens-em-reduced")
ENERGIES = dict(
    kinetic=lambda v: v @ v / 2,
    potential=lambda q: 2 * (q[0] - q[1]) ** 2,
    parameters=dict(s=[4.0, 3.0]),
)
START = dict(q0=[1.0, 0.3], v0=[0.0, 0.2], t_end=2.0)
COUNTS = {"force": 0, "jacobian": 0}


@PROTOTYPE
def force(q, v, t, k, out):
    COUNTS["force"] += 1
    out[0] = -k[0] * q[0] - 0.1 * v[1] * v[1] + 0.2 * t[0]
    out[1] = -k[1] * q[1] * q[1] * q[1]


@PROTOTYPE
def jacobian(q, v, t, k, out):
    COUNTS["jacobian"] += 1
    out[0], out[3], out[5] = -k[0], -0.2 * v[1], -3 * k[1] * q[1] * q[1]


@PROTOTYPE
def wrong_jacobian(q, v, t, k, out):
    out[0], out[5] = 1e9, 1e9


def external(**options):
    return lv.System("x y", **ENERGIES, external_force=lv.ExternalForce(force, **options))


def symbolic():
    return lv.System(
        "x y", **ENERGIES, forces=lambda q, v, t, k: [-k.s[0] * q[0] - 0.1 * v[1] ** 2 + 0.2 * t, -k.s[1] * q[1] ** 3]
    )


def largest_differences(one, two, *names):
    return {name: np.abs(getattr(one, name) - getattr(two, name)).max() for name in names}


# -- the motion of the same force as an expression --------------------------------------------------------------------
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("options", [{}, {"jacobian": jacobian}], ids=["differences", "given"])
@pytest.mark.parametrize("tier", ["fused", "reference"])
def test_equals_the_symbolic_force(scheme, options, tier):
    """To round-off, in as many Newton iterations, also with other parameters."""
    for changed in ({}, dict(parameters={"s": [9.0, 1.0]})):
        given = dict(**START, scheme=scheme, h=0.05, tier=tier, **changed)
        one, two = lv.simulate(external(**options), **given), lv.simulate(symbolic(), **given)
        found = largest_differences(one, two, "q", "v", "p", "supplied_energy")
        assert max(found.values()) < 1e-13, found
        assert one.statistics.newton_iterations <= two.statistics.newton_iterations + 5


def test_given_jacobian_replaces_the_differences():
    """With differences, one call per coordinate and velocity for every Jacobian; with a Jacobian, none of these."""
    given = dict(**START, scheme="livens-em", h=0.05)
    calls = {}
    for name, options in (("differences", {}), ("given", {"jacobian": jacobian})):
        COUNTS.update(force=0, jacobian=0)
        lv.simulate(external(**options), **given)
        calls[name] = dict(COUNTS)
    assert calls["differences"]["jacobian"] == 0 < calls["given"]["jacobian"]
    assert calls["differences"]["force"] > 2 * calls["given"]["force"]


@pytest.mark.parametrize("options", [{}, {"jacobian": jacobian}], ids=["differences", "given"])
@pytest.mark.parametrize("tier", ["fused", "reference"])
def test_statistics_count_the_evaluations_of_the_force(options, tier, tmp_path):
    model = external(**options)
    given = dict(START, scheme="livens-em", h=0.05, tier=tier)
    for events in ((), [lv.Event(lambda q: q[0] - 10.0)]):  # short runs without events are compiled as a whole
        COUNTS.update(force=0, jacobian=0)
        statistics = lv.simulate(model, **given, events=events).statistics
        assert (statistics.force_evaluations, statistics.force_jacobians) == (COUNTS["force"], COUNTS["jacobian"])
    COUNTS.update(force=0, jacobian=0)
    lv.simulate(model, **given | dict(t_end=1.0), out=tmp_path / "run.h5")
    statistics = lv.resume(tmp_path / "run.h5", system=model, t_end=2.0).statistics
    assert (statistics.force_evaluations, statistics.force_jacobians) == (COUNTS["force"], COUNTS["jacobian"])


def test_a_wrong_jacobian_fails_and_says_so():
    """Convergence is judged by the residual: no step is accepted with a Newton matrix that does not fit the force."""
    with pytest.raises(lv.IntegrationError, match="converge"):
        lv.simulate(external(jacobian=wrong_jacobian), **START, scheme="livens-em", h=0.05)


def test_jacobian_in_python():
    q, v = np.array([0.7, -1.2]), np.array([0.4, 2.0])
    k = np.array([4.0, 3.0])
    exact = [[-4.0, 0, 0, -0.4], [0, -9 * 1.44, 0, 0]]
    assert np.allclose(lv.ExternalForce(force, jacobian=jacobian).jacobian(q, v, 0.3, k), exact, atol=1e-14)
    assert np.allclose(lv.ExternalForce(force).jacobian(q, v, 0.3, k), exact, atol=1e-6)
    assert not lv.ExternalForce(force, depends_on_velocity=False).jacobian(q, v, 0.3, k)[:, 2:].any()


# -- order and energy balance -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("scheme", ["livens-em", "livens-midpoint"])
def test_order_2(scheme):
    """Against DOP853 of the equations of motion, written down without livens."""

    def derivative(t, y):
        x, z, vx, vz = y
        return [vx, vz, -4 * (x - z) - 4 * x - 0.1 * vz**2 + 0.2 * t, 4 * (x - z) - 3 * z**3]

    exact = solve_ivp(derivative, (0, 2), [1.0, 0.3, 0.0, 0.2], method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    steps = [0.1, 0.05, 0.025, 0.0125]
    runs = [lv.simulate(external(), **START, scheme=scheme, h=h) for h in steps]
    for part, name in ((slice(2), "q"), (slice(2, 4), "v")):
        errors = [np.abs(getattr(run, name)[-1] - exact[part]).max() for run in runs]
        assert abs(measured_order(steps, errors) - 2) < 0.1, name


def test_energy_changes_by_the_work_of_the_force():
    """The energy, from the states alone, changes by the sum of ``F(midpoint) . (q1 - q0)`` in every step."""
    run = lv.simulate(external(), **START, scheme="livens-em", h=0.05)
    energy = (run.v**2).sum(1) / 2 + 2 * (run.q[:, 0] - run.q[:, 1]) ** 2
    q_m, v_m, t_m = (run.q[1:] + run.q[:-1]) / 2, np.diff(run.q, axis=0) / 0.05, (run.t[1:] + run.t[:-1]) / 2
    forces = np.column_stack([-4 * q_m[:, 0] - 0.1 * v_m[:, 1] ** 2 + 0.2 * t_m, -3 * q_m[:, 1] ** 3])
    work = np.cumsum((forces * np.diff(run.q, axis=0)).sum(1))
    assert np.abs(energy[1:] - energy[0] - work).max() < 1e-13 < 0.1 < np.abs(work).max()
    assert np.abs(run.supplied_energy[1:] - work).max() < 1e-13
    assert run.summary.max_energy_drift < 1e-13
    assert not external().conservative and "external force" in str(external())


# -- rigid bodies, joints, other steps --------------------------------------------------------------------------------
@pytest.mark.parametrize("scheme", ["lie-em", "livens-em", "livens-midpoint", "lie-ggl"])
def test_rigid_body_on_a_joint(scheme):
    """A turning body with a ball joint, pulled at its centre and its directors."""
    dragged = lv.Element(
        range(12),
        forces=lambda q, v, t: [
            *(3.0 * q[1] - 0.2 * v[i] + t for i in range(3)),
            *(0.4 * q[i] for i in range(3)),
            *[0.0] * 6,
        ],
    )
    (box, problem), (seen, _) = body(external_force=lv.ExternalForce(drag)), body(elements=[dragged])
    given = dict(q0=problem.q0, v0=problem.v0, scheme=scheme, h=1e-3, t_end=0.05)
    one, two = lv.simulate(box, **given), lv.simulate(seen, **given)
    assert one.info.tier == "fused"
    found = largest_differences(one, two, "q", "supplied_energy")
    assert max(found.values()) < 1e-13 and np.abs(one.v - two.v).max() < 1e-10, found
    assert np.abs(one.q - lv.simulate(problem.model, **given).q).max() > 1e-5
    if scheme != "livens-midpoint":
        assert one.summary.max_energy_drift < 1e-13


def test_mechanism_with_a_force_that_is_set_later():
    """Two rods on hinges: the same equations are not reused for the mechanism without the force."""
    n = 24

    @PROTOTYPE
    def pull(q, v, t, k, out):
        for i in range(n):
            out[i] = 0.0
        out[0], out[14] = 2.0 - 0.3 * v[0], 5.0 * t[0]

    mb = lv.Multibody(gravity=[0, 0, -9.81])
    upper = mb.rod("upper", a=[0, 0, 0], b=[1, 0, 0], mass=1)
    lower = mb.rod("lower", a=upper.b, b=[2, 0, 0], mass=1)
    mb.revolute("shoulder", mb.ground, upper, at=upper.a, axis="y")
    mb.revolute("elbow", upper, lower, at=upper.b, axis="y")
    free = mb.simulate(h=0.01, t_end=0.5)
    system = mb.system
    pulled = lv.Element(range(n), forces=lambda v, t: [2.0 - 0.3 * v[0], *[0] * 13, 5.0 * t, *[0] * 9])
    seen = lv.System(
        system.coordinates,
        elements=[*system.elements, pulled],
        parameters=system.model_parameters.values,
        frames=True,
    )
    mb.external_force(pull)
    run = mb.simulate(h=0.01, t_end=0.5)
    expected = lv.simulate(seen, q0=free.q[0], v0=free.v[0], h=0.01, t_end=0.5, tier="fused")
    assert np.abs(run.q - expected.q).max() < 1e-13 and np.abs(run.q - free.q).max() > 0.1
    assert run.summary.max_energy_drift < 1e-13 and not mb.system.conservative


def hanging_rod():
    """Return a rod on a hinge, pushed by a compiled force along x."""

    @PROTOTYPE
    def push(q, v, t, k, out):
        out[0] = 5.0

    mb = lv.Multibody(gravity=[0, 0, -9.81])
    rod = mb.rod("rod", a=[0, 0, 0], b=[0, 0, -1], mass=1)
    mb.revolute("hinge", mb.ground, rod, at=rod.a, axis="y")
    mb.external_force(push, depends_on_velocity=False)
    return mb, rod, push


@pytest.mark.parametrize(
    "compute",
    [
        lambda mb: mb.equilibrium(),
        lambda mb: mb.equilibrium(load_steps=4),
        lambda mb: mb.to_joint_coordinates(),
        lambda mb: lv.linearise(mb.problem()),
    ],
)
def test_computations_with_expressions_of_forces_refuse_compiled_forces(compute):
    with pytest.raises(InputError, match=r"needs forces as expressions.*external \(compiled\) force"):
        compute(hanging_rod()[0])


def test_one_external_force_of_a_mechanism(tmp_path):
    mb, rod, push = hanging_rod()
    assert "the external force is not in the file" in mb.to_mjcf(tmp_path / "rod.xml")
    with pytest.raises(InputError, match="has an external force already"):
        mb.external_force(push)
    with pytest.raises(InputError, match="takes no contact group"):
        mb.contact_group("contacts", [rod, mb.ground], stiffness=1e4)
    with pytest.raises(InputError, match="external \\(compiled\\) force; remove tier='tree'"):
        mb.simulate(h=0.01, t_end=0.1, tier="tree")
    with pytest.raises(InputError, match="give the Jacobian to"):
        lv.Multibody().external_force(lv.ExternalForce(push), jacobian=push)
    grouped = lv.Multibody()
    balls = [grouped.sphere(f"ball{i}", at=[0, 0, i], radius=0.1, mass=1) for i in range(2)]
    grouped.contact_group("contacts", balls, stiffness=1e4)
    with pytest.raises(InputError, match="takes no external force"):
        grouped.external_force(push)


def test_unit_quaternion():
    """The null space method has other unknowns: the Jacobian follows them."""
    problem = lv.problems.load("heavy-top")
    system = problem.model
    n = system.n

    @PROTOTYPE
    def push(q, v, t, k, out):
        for i in range(n):
            out[i] = 0.3 * q[(i + 1) % n] - 0.1 * v[i]

    given = dict(parameters=system.model_parameters.values)
    box = lv.System(system.coordinates, elements=system.elements, external_force=lv.ExternalForce(push), **given)
    pushed = lv.Element(range(n), forces=lambda q, v: [0.3 * q[(i + 1) % n] - 0.1 * v[i] for i in range(n)])
    seen = lv.System(system.coordinates, elements=[*system.elements, pushed], **given)
    for scheme in ("livens-em-nullspace", "livens-em"):
        start = dict(q0=problem.q0, v0=problem.v0, scheme=scheme, h=1e-3, t_end=0.05)
        one, two = lv.simulate(box, **start), lv.simulate(seen, **start)
        assert np.abs(one.q - two.q).max() < 1e-12


def test_single_steps_tolerances_and_resumed_runs(tmp_path):
    given = dict(scheme="livens-em", h=0.05)
    whole = lv.simulate(external(), **START, **given)
    step = lv.prepare(external(), **START, **given)
    state = step.start()
    for _ in range(40):
        state = step.step(state)
    assert np.array_equal(state.q, whole.q[-1]) and np.array_equal(step.run().q, whole.q)
    lv.simulate(external(), **{**START, "t_end": 1.0}, **given, out=tmp_path / "half.h5")
    assert np.array_equal(lv.resume(tmp_path / "half.h5", t_end=2.0, system=external()).q[-1], whole.q[-1])
    control = lv.StepControl(tolerance=1e-6)
    one, two = (lv.simulate(model, **START, scheme="livens-em", control=control) for model in (external(), symbolic()))
    assert one.statistics.steps == two.statistics.steps and np.abs(one.q[-1] - two.q[-1]).max() < 1e-10


# -- what does not work, and how it is said ---------------------------------------------------------------------------
def test_unsupported_tiers_schemes_and_derivatives():
    given = dict(**START, h=0.05)
    for scheme in ("gauss-2", "ggl-em", "livens-em-full", "suzuki-4:livens-em"):
        with pytest.raises(lv.InputError, match="not an external force"):
            lv.simulate(external(), **given, scheme=scheme)
    (box, problem) = body(external_force=lv.ExternalForce(drag))
    top = dict(q0=problem.q0, v0=problem.v0, h=1e-3, t_end=0.01, scheme="lie-em")
    with pytest.raises(lv.InputError, match=r"tree: it has an external \(compiled\) force"):
        lv.simulate(box, **top, tier="tree")
    with pytest.raises(lv.InputError, match="cannot be assembled"):
        lv.simulate(box, **top, tier="assembled")
    with pytest.raises(lv.InputError, match="not an external force"):
        lv.simulate(box, **top, adaptive="reversible", scaling=lv.scaling.speed(1.0))
    with pytest.raises(lv.InputError, match="requires symbolic forces"):
        lv.ensemble(external(), q0=[[1.0, 0.3]] * 4, v0=[0.0, 0.2], scheme="livens-em", h=0.05, t_end=1.0)
    with pytest.raises(lv.InputError, match="have no derivatives"):
        lv.prepare(external(), **given, scheme="livens-em").value_and_gradient(loss=lambda q: q[0])()
    with pytest.raises(lv.InputError, match="has no derivatives"):
        lv.study.symplecticity_defect(external(), "livens-em", [1.0, 0.3], v=[0.0, 0.2], h=0.05)
    with pytest.raises(lv.InputError, match="at most 60 coordinates"):
        many = lv.System(61, kinetic=lambda v: v @ v / 2, external_force=lv.ExternalForce(force))
        lv.simulate(many, q0=np.ones(61), v0=np.ones(61), scheme="livens-em", h=0.05, t_end=1.0)
    with pytest.raises(lv.InputError, match="an external force is a ctypes function"):
        lv.ExternalForce(force, jacobian=lambda q: q)


@pytest.mark.parametrize("number", [3, 0, -1, True])
def test_numbers_that_are_no_addresses_are_refused(number):
    with pytest.raises(lv.InputError, match="the address of a function"):
        lv.ExternalForce(number)
