"""Rigid-body examples of Kinon et al. 2023 and 2024: what they conserve, and their order against exact solutions."""

import itertools

import casadi as ca
import numpy as np
import pytest
from conftest import measured_order

import livens as lv
from livens import rotations as rot
from livens.engine.steppers.reference import ReferenceSolver
from livens.models.equations_of_motion import equations_of_motion

SCHEMES = ("livens-em", "livens-midpoint")


def deviation(values):
    """The largest deviation from the first value, relative to its size."""
    return np.abs(values - values[0]).max() / np.abs(values[0]).max()


def at(solution, t):
    return next(s for s in solution if s["t"] == t)


# -- free rigid body (Kinon, Betsch 2024 5.3) --------------------------------------------------------------------------
def test_free_rigid_body():
    """Generalised energy, unit length and spatial angular momentum at round-off; total energy not (Figs. 6-8)."""
    run = lv.simulate(lv.problems.load("free-rigid-body"), h=0.05)
    assert (run.info.h, run.t[-1]) == (0.05, 2.0)
    assert np.allclose(run.p[0], [0, 120, 320, 120])
    assert deviation(run.observe("generalized_energy")) < 1e-12
    assert deviation(run.observe("angular_momentum")) < 1e-12
    assert np.abs(run.observe("constraint")).max() < 1e-13
    assert run.observe("total_energy")[0] == 2500.0
    assert deviation(run.observe("total_energy")) > 1e-3
    assert not run.system.regular_mass and not run.system.constant_mass


def test_free_rigid_body_with_the_midpoint_rule():
    """Its momentum map is quadratic in (q, p) and conserved; the energy is not."""
    run = lv.simulate(lv.problems.load("free-rigid-body"), scheme="livens-midpoint", h=0.05)
    assert deviation(run.observe("angular_momentum")) < 1e-12
    assert np.abs(run.observe("constraint")).max() < 1e-13
    assert deviation(run.observe("generalized_energy")) > 1e-3


@pytest.mark.parametrize("scheme", SCHEMES)
def test_order_for_the_free_rigid_body(scheme, reference):
    """Positions, velocities and momenta against a solution of 40 digits."""
    exact = at(reference("free_rigid_body")["solution"], 0.5)
    steps = [0.0025 / 2**i for i in range(5)]
    errors = {"q": [], "v": [], "p": []}
    for h in steps:
        run = lv.simulate(lv.problems.load("free-rigid-body"), scheme=scheme, h=h, t_end=0.5)
        for name, found in errors.items():
            found.append(np.linalg.norm(getattr(run, name)[-1] - exact[name]) / np.linalg.norm(exact[name]))
    for name, found in errors.items():
        assert abs(measured_order(steps, found) - 2) < 0.1, name
        assert found[-1] < 1e-4


# -- heavy top (Kinon, Betsch 2024 5.4, Kinon et al. 2023 5.1) ---------------------------------------------------------
L = 0.075  # from the tip to the centre of mass


def centre_of(quaternion):
    return rot.rotate(quaternion, [0, 0, L])


def test_reference_solutions_of_the_top(reference):
    """The closed form that comes with both problems is the one given in the sources, and solves the equations."""
    exact = reference("heavy_top")
    top, gyroscope = lv.problems.load("heavy-top"), lv.problems.load("gyroscopic-top")
    body = top.model.elements[0]
    assert np.allclose(np.diag(body.parameters.values["inertia"]), [exact["J1"], exact["J2"], exact["J3"]], rtol=1e-14)
    for s in exact["solution"]:
        q = top.reference(s["t"])["q"]
        assert np.allclose(q, s["q"], atol=1e-11) or np.allclose(q, -np.array(s["q"]), atol=1e-11)
        assert np.allclose(centre_of(q), s["phi_cm"], atol=1e-13)
        Omega = rot.convective_velocity(q, top.reference(s["t"])["v"])
        assert np.allclose(Omega, s["Omega"], atol=1e-8)
        directors = gyroscope.reference(s["t"])["q"]
        assert np.allclose(directors, [*s["phi_cm"], *rot.to_matrix(q).T.ravel()], atol=1e-11)
    # the printed rate of spin
    assert exact["omega_s"] == pytest.approx(135.6, rel=1e-12)
    assert np.allclose(rot.spatial_velocity(top.q0, top.v0), exact["omega0_spatial"])


@pytest.mark.parametrize(("name", "h"), [("heavy-top", 0.01), ("gyroscopic-top", 0.002)])
def test_top(name, h, reference):
    """Energy and the angular momentum about the vertical at round-off, at the papers' step (Figs. 10, 11)."""
    run = lv.simulate(lv.problems.load(name), scheme="livens-em", h=h)
    exact = reference("heavy_top")
    energy, L3 = run.observe("generalized_energy"), run.observe("L3")
    assert energy[0] == pytest.approx(exact["H"], rel=1e-12) and deviation(energy) < 1e-12
    assert L3[0] == pytest.approx(exact["L3_spatial"], rel=1e-12) and deviation(L3) < 1e-12
    assert np.abs(run.observe("constraint")).max() < 1e-13
    # with a constant mass total and generalised energy are the same
    total = deviation(run.observe("total_energy"))
    assert total > 1e-3 if name == "heavy-top" else total < 1e-12


@pytest.mark.parametrize("name", ["heavy-top", "gyroscopic-top"])
def test_the_top_precesses_on_a_level(name):
    """The height of the centre of mass is constant (Kinon et al. 2023 Fig. 10): up to errors of second order."""
    steps, errors = [0.001 / 2**i for i in range(4)], []
    for h in steps:
        q = lv.simulate(lv.problems.load(name), scheme="livens-em", h=h, t_end=0.2).q
        height = q[:, 2] if name == "gyroscopic-top" else np.array([centre_of(one)[2] for one in q])
        errors.append(np.abs(height / (L * np.cos(np.pi / 3)) - 1).max())
    assert errors[-1] < 1e-3
    assert abs(measured_order(steps, errors) - 2) < 0.1


def test_gyroscopic_top_of_the_source():
    """Usually with the GGL principle: L3 and g at round-off, energy without drift (Kinon et al. 2023 Figs. 4-8)."""
    problem = lv.problems.load("gyroscopic-top")
    assert (problem.scheme, problem.t_end) == ("ggl-variational", 2.0)
    run = lv.simulate(problem, h=0.002)
    assert deviation(run.observe("L3")) < 1e-12
    assert np.abs(run.observe("constraint")).max() < 1e-13
    energy = run.observe("total_energy")
    assert deviation(energy) > 1e-6
    assert abs(np.polyfit(run.t, energy, 1)[0]) * run.t[-1] < 0.05 * np.ptp(energy)


def test_top_with_the_midpoint_rule():
    """L3 is conserved by the midpoint rule, energy is with the constant mass of the directors only."""
    top = lv.simulate(lv.problems.load("heavy-top"), scheme="livens-midpoint", h=0.01)
    gyroscope = lv.simulate(lv.problems.load("gyroscopic-top"), scheme="livens-midpoint", h=0.002)
    for run in (top, gyroscope):
        assert deviation(run.observe("L3")) < 1e-12
        assert np.abs(run.observe("constraint")).max() < 1e-13
    assert deviation(top.observe("generalized_energy")) > 1e-3
    assert deviation(gyroscope.observe("generalized_energy")) < 1e-12


@pytest.mark.parametrize("scheme", SCHEMES)
def test_order_for_the_heavy_top(scheme):
    """Order 2 of the centre of mass (121) and of all coordinates at t = 0.1."""
    problem = lv.problems.load("heavy-top")
    exact = problem.reference(0.1)
    steps = [0.0025 / 2**i for i in range(5)]
    centre, coordinates = [], []
    for h in steps:
        q = lv.simulate(problem, scheme=scheme, h=h, t_end=0.1).q[-1]
        centre.append(np.linalg.norm(centre_of(q) - centre_of(exact["q"])) / L)
        coordinates.append(np.linalg.norm(q - exact["q"]))
    assert abs(measured_order(steps, centre) - 2) < 0.1
    assert abs(measured_order(steps, coordinates) - 2) < 0.1
    assert centre[-1] < 1e-3


def test_livens_midpoint_is_the_more_accurate_for_the_top():
    """Kinon and Betsch 2024 Fig. 13: at small steps MPL has the smaller error."""
    problem = lv.problems.load("heavy-top")
    exact = centre_of(problem.reference(0.1)["q"])
    for h in (0.0025, 0.000625):
        em, midpoint = (
            np.linalg.norm(centre_of(lv.simulate(problem, scheme=scheme, h=h, t_end=0.1).q[-1]) - exact)
            for scheme in SCHEMES
        )
        assert midpoint < em


@pytest.mark.parametrize("scheme", SCHEMES)
def test_directors_and_quaternions_move_alike(scheme):
    """Both go to the same motion with second order, frame and centre of mass."""
    top, gyroscope = lv.problems.load("heavy-top"), lv.problems.load("gyroscopic-top")
    steps, apart, error = [0.001 / 2**i for i in range(4)], [], []
    for h in steps:
        quaternion = lv.simulate(top, scheme=scheme, h=h, t_end=0.1).q[-1]
        directors = lv.simulate(gyroscope, scheme=scheme, h=h, t_end=0.1).q[-1]
        same = np.concatenate([centre_of(quaternion), *rot.directors(quaternion)])
        apart.append(np.linalg.norm(directors - same))
        error.append(np.linalg.norm(directors - gyroscope.reference(0.1)["q"]))
    assert abs(measured_order(steps, apart) - 2) < 0.1
    assert abs(measured_order(steps, error) - 2) < 0.1
    assert apart[-1] < 1e-2


# -- four bars in a ring (Kinon, Betsch 2024 5.5) ----------------------------------------------------------------------
RINGS = ("closed-loop-bars", "closed-loop-bars-directors")


@pytest.mark.parametrize("name", RINGS)
def test_closed_loop(name):
    """After the load, t = 1: energy and linear momentum at round-off; before, energy is the work of the load."""
    run = lv.simulate(lv.problems.load(name))
    assert (run.info.h, run.t[-1]) == (0.1, 10.0)
    free = run.t > 1 - 1e-9
    energy = run.observe("generalized_energy")
    assert energy[0] == 0.0 and energy[free][0] == pytest.approx(2096, rel=1e-2)
    assert deviation(energy[free]) < 1e-11
    assert deviation(run.observe("linear_momentum")[free]) < 1e-11
    assert np.allclose(run.observe("linear_momentum")[-1], [400, 0, 0], atol=1e-9)  # the impulse of the force
    assert np.abs(run.observe("energy_balance_defect")).max() < 1e-11 * energy.max()
    assert run.supplied_energy[-1] == pytest.approx(energy[-1], rel=1e-11)
    assert np.ptp(run.supplied_energy[free]) == 0.0
    assert np.abs(run.observe("constraint")).max() < 1e-12


def test_closed_loop_angular_momentum():
    """All three components at round-off with directors; with quaternions only to the order of the scheme.

    That is what theory says: a joint of two quaternion bodies is quadratic in q and turns with the bodies, so in the
    middle of a step, where its force acts, it is open by O(h^2). The discrete gradient of the kinetic energy is not
    invariant either.
    """
    run = lv.simulate(lv.problems.load("closed-loop-bars-directors"))
    assert deviation(run.observe("angular_momentum")[run.t > 1 - 1e-9]) < 1e-11
    steps, drift = [0.05 / 2**i for i in range(4)], []
    for h in steps:
        run = lv.simulate(lv.problems.load("closed-loop-bars"), h=h, t_end=5.0)
        drift.append(deviation(run.observe("angular_momentum")[run.t > 1 - 1e-9]))
    assert drift[-1] > 1e-9
    assert abs(measured_order(steps, drift) - 2) < 0.1


def test_half_of_the_change_of_angular_momentum_is_that_of_open_joints():
    """The moment of the joint forces at the midpoints of the steps, and the rest: 5.2e-3 and 5.3e-3 kg m^2/s."""
    h = 0.1
    run = lv.simulate(lv.problems.load("closed-loop-bars"), h=h, t_end=10.0)
    equations, k = equations_of_motion(run.system), run.system.parameter_vector()
    rotation = run.system.symmetry_generator("angular_momentum")(equations.q)
    opening = ca.Function("opening", [equations.q, equations.k], [equations.G @ rotation])
    start = int(np.searchsorted(run.t, 1 - 1e-9))
    moments = [
        -h * run.multipliers[i + 1] @ np.array(opening((run.q[i] + run.q[i + 1]) / 2, k))
        for i in range(start, len(run.t) - 1)
    ]
    change, joints = np.diff(run.observe("angular_momentum")[start:], axis=0).cumsum(axis=0), np.cumsum(moments, axis=0)
    assert np.abs(joints).max() == pytest.approx(5.18e-3, rel=0.01)
    assert np.abs(change - joints).max() == pytest.approx(5.26e-3, rel=0.01)


def test_long_steps_of_the_free_rigid_body_end():
    """1.5 rad per step: Newton's method fails after the 2 s of the source.

    Round-off decides at which of several long steps the null-space form fails: 9.6 s or 13.95 s have been seen.
    """
    ends = {"livens-em-full": (7.2, 9.2), "livens-em-reduced": (7.2, 9.2), "livens-em-nullspace": (8.6, 14.95)}
    for scheme, (earliest, latest) in ends.items():
        with pytest.raises(lv.IntegrationError) as error:
            lv.simulate(lv.problems.load("free-rigid-body"), scheme=scheme, h=0.05, t_end=20.0)
        assert earliest <= error.value.result.t[-1] <= latest


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", RINGS)
def test_order_for_the_closed_loop(name, scheme, reference):
    """Positions, velocities and orientations of all bars at t = 2 against a solution of 11 digits."""
    exact = at(reference("closed_loop_bars")["solution"], 2.0)["bodies"]
    problem = lv.problems.load(name)
    steps = [0.1 / 2**i for i in range(5)]
    position, velocity, frame = [], [], []
    for h in steps:
        run = lv.simulate(problem, scheme=scheme, h=h, t_end=2.0)
        q, v = run.q[-1].reshape(4, -1), run.v[-1].reshape(4, -1)
        position.append(max(np.abs(a[:3] - b["phi"]).max() for a, b in zip(q, exact, strict=True)))
        velocity.append(max(np.abs(a[:3] - b["v"]).max() for a, b in zip(v, exact, strict=True)))
        R = [a[3:].reshape(3, 3).T if len(a) == 12 else rot.to_matrix(a[3:]) for a in q]
        frame.append(max(np.abs(a - rot.to_matrix(b["q"])).max() for a, b in zip(R, exact, strict=True)))
    for errors in (position, velocity, frame):
        assert abs(measured_order(steps, errors) - 2) < 0.1
        assert errors[-1] < 1e-3


# -- double four-bar linkage, undamped and damped (Kinon et al. 2023 5.2) ----------------------------------------------
LINKAGES = ("double-four-bar", "double-four-bar-damped")
LINKAGE_SCHEMES = (
    "ggl-classic", "ggl-em", "ggl-variational", "hamilton-em", "hamilton-midpoint", "livens-em", "livens-em-full",
    "livens-midpoint", "livens-variational", "symplectic-euler",
)  # fmt: skip


def top(run):
    """P4, the upper end of the first lower bar."""
    return run.q[-1, :2] + 0.5 * run.q[-1, 2:4]


@pytest.mark.parametrize(
    ("name", "scheme"),
    [pair for pair in itertools.product(LINKAGES, LINKAGE_SCHEMES) if pair != (LINKAGES[1], "ggl-variational")],
)
def test_through_singular_positions(name, scheme):
    """Again and again for ten seconds, at the step of the source; the pair that is left out follows below."""
    run = lv.simulate(lv.problems.load(name), scheme=scheme, every=10)
    assert (run.info.h, run.t[-1]) == (1e-3, 10.0)
    assert run.summary.max_constraint < 1e-13


def test_step_control_takes_ggl_variational_through_with_dampers():
    """One step of 10 001 is tried in vain and shortened by a tenth: next to a step without a solution are some with."""
    control = lv.StepControl(largest=1e-3, decrease=0.9, increase=1.2, patience=1, smallest=1e-5)
    run = lv.simulate(lv.problems.load("double-four-bar-damped"), scheme="ggl-variational", h=1e-3, control=control)
    assert run.status == "complete" and 1 <= run.statistics.rejected < 10 and run.statistics.steps < 10_020
    assert run.summary.max_constraint < 1e-13 and run.summary.max_energy_drift < 1e-2


def test_ggl_variational_meets_a_gap():
    """Near a singular position its equations have no solution for steps in a gap of half a percent.

    From the state where the damped linkage stops at h = 1e-3, solutions exist below 0.998675 h and above 1.003194 h.
    Followed from both sides, they end in folds: the Jacobian gets singular, and no solution goes on.
    (docs/theory/known-limits.md)
    """
    problem, scheme = lv.problems.load("double-four-bar-damped"), lv.schemes.get("ggl-variational")
    with pytest.raises(lv.IntegrationError, match=r"from t = 1\.342") as stopped:
        lv.simulate(problem, scheme=scheme)
    last = stopped.value.result
    equations = scheme.equations(problem.model).to_single_graph()
    state = dict(q=last.q[-1], v=last.v[-1], p=last.p[-1], multipliers=last.multipliers[-1])
    z, stepper = equations.layout.pack(state), ReferenceSolver(equations)

    def solved(step, guess):
        c = np.concatenate([[step, last.t[-1]], problem.model.parameter_vector()])
        first = equations.initial_guess_function(z, c).full().ravel() if guess is None else guess
        x, _, trouble, *_ = stepper.solve(first, z, c)
        return None if trouble else x

    def followed(start, towards):
        """The last step size, in units of h, that a solution can be followed to, halving what is too far."""
        at, x, far = start, solved(start * 1e-3, None), (towards - start) / 4
        while abs(far) > 2e-6:
            there = solved((at + far) * 1e-3, x)
            if there is not None and np.abs(there - x).max() > 0.5 * np.abs(x).max():
                there = None  # Newton's method has jumped to another branch
            at, x, far = (at, x, far / 2) if there is None else (at + far, there, far)
        return at

    assert followed(0.95, 1.0) == pytest.approx(0.998675, abs=1e-5)
    assert followed(1.05, 1.0) == pytest.approx(1.003194, abs=1e-5)


@pytest.mark.parametrize("scheme", LINKAGE_SCHEMES)
def test_order_through_a_singular_position(scheme):
    """P4 against the exact motion, started in between: in the upright position some first-order errors vanish."""
    problem, order = lv.problems.load("double-four-bar"), lv.schemes.get(scheme).order
    start, exact = problem.reference(0.3), problem.reference(0.9)["q"]
    steps, errors = [2e-3 / 2**i for i in range(4)], []
    for h in steps:
        run = lv.simulate(problem, start["q"], start["v"], scheme=scheme, h=h, t_end=0.6)
        errors.append(np.hypot(*(top(run) - exact[:2] - 0.5 * exact[2:4])))
    assert abs(measured_order(steps, errors) - order) < 0.1
    assert errors[-1] < (1e-6 if order == 2 else 2e-3)


def test_damped_four_bar_loses_what_is_dissipated(reference):
    """Step by step, and over the whole run as the exact reduced equation says."""
    run = lv.simulate(lv.problems.load("double-four-bar-damped"))
    assert (run.info.h, run.t[-1]) == (1e-3, 10.0)
    energy = run.observe("generalized_energy")
    lost = np.diff(run.dissipated_energy)
    assert np.all(lost > 0) and not run.supplied_energy.any()
    assert np.abs(np.diff(energy) + lost).max() < 1e-13 * np.abs(energy).max()
    assert np.abs(run.observe("energy_balance_defect")).max() < 1e-12 * np.abs(energy).max()
    assert np.abs(run.observe("constraint")).max() < 1e-13
    for s in reference("double_four_bar")["damped"]["solution"]:
        n = int(np.argmin(np.abs(run.t - s["t"])))
        assert energy[n] == pytest.approx(s["H"], abs=1e-3)


@pytest.mark.parametrize("scheme", LINKAGE_SCHEMES)
def test_order_for_the_damped_four_bar(scheme, reference):
    """P4, and the balance of energy: at round-off for schemes that conserve quadratic energies, else of their order."""
    exact, order = at(reference("double_four_bar")["damped"]["solution"], 1.0), lv.schemes.get(scheme).order
    steps, errors, defects = [(4e-3 if order == 2 else 1e-3) / 2**i for i in range(4)], [], []
    for h in steps:
        run = lv.simulate(lv.problems.load("double-four-bar-damped"), scheme=scheme, h=h, t_end=1.0)
        errors.append(np.hypot(*(top(run) - [exact["x4"], exact["y4"]])))
        defects.append(np.abs(run.observe("energy_balance_defect")).max())
    assert abs(measured_order(steps, errors) - order) < 0.1
    assert errors[-1] < (5e-6 if order == 2 else 1e-3)
    if order == 2 and scheme != "livens-variational":
        assert max(defects) < 1e-11
    else:
        assert abs(measured_order(steps, defects) - order) < 0.1


# -- four particles ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("scheme", SCHEMES)
def test_four_particles(scheme):
    """Momenta at round-off with both schemes, the balance of energy with livens-em only."""
    run = lv.simulate(lv.problems.load("four-particles"), scheme=scheme, h=0.02)
    assert deviation(run.observe("linear_momentum")) < 1e-13
    assert deviation(run.observe("angular_momentum")) < 1e-12
    assert np.abs(run.observe("constraint")).max() < 1e-13
    assert run.dissipated_energy[-1] > 0.1
    balance = np.abs(run.observe("energy_balance_defect")).max()
    assert balance < 1e-12 if scheme == "livens-em" else balance > 1e-6


def test_four_particles_without_dampers():
    run = lv.simulate(lv.problems.load("four-particles", viscosity=0.0), h=0.02, t_end=50.0)
    assert run.summary.max_energy_drift < 1e-12
    assert max(run.summary.momentum_drift.values()) < 1e-12 and len(run.summary.momentum_drift) == 2
