"""Consistent initial values: the nearest state, initial multipliers, dependent constraints."""

import numpy as np
import pytest
from scipy.optimize import minimize

import livens as lv
from livens.models.equations_of_motion import equations_of_motion
from livens.models.initialization import dense
from livens.models.initialization.dense import _fast_path
from livens.models.initialization.dense import dependent_rows as dependent_constraints
from livens.models.initialization.redundancy import OFFSET, dependent_off_singularity
from livens.models.linalg import SOLVED_RTOL, dependent_rows, null_space_qr


def ellipse(**options):
    return lv.System(
        "x y",
        kinetic=lambda v: v @ v / 2,
        potential=lambda q: 9.81 * q[1],
        constraints=lambda q: [(q[0] / 2) ** 2 + q[1] ** 2 - 1],
        **options,
    )


@pytest.mark.parametrize("q0", [[1.0, 1.5], [2.5, 0.2], [-0.3, -0.4], [1.9, -0.9]])
def test_the_nearest_position(q0):
    """By an optimiser that knows nothing of us; and velocities lose what points out of the constraint."""
    run = lv.simulate(ellipse(), q0, [1.0, 2.0], h=1e-3, t_end=1e-3, project=True)
    there = [
        minimize(lambda a: np.hypot(2 * np.cos(a[0]) - q0[0], np.sin(a[0]) - q0[1]), [start]) for start in (0, 2, 4)
    ]
    best = min(there, key=lambda found: found.fun).x[0]
    assert run.q[0] == pytest.approx([2 * np.cos(best), np.sin(best)], abs=1e-6)
    normal = np.array([run.q[0, 0] / 2, 2 * run.q[0, 1]])
    assert abs(normal @ run.v[0]) < 1e-14
    moved = np.array([1.0, 2.0]) - run.v[0]
    assert abs(moved[0] * normal[1] - moved[1] * normal[0]) < 1e-13


def test_multipliers_of_the_first_moment():
    """A pendulum: the rod carries what gravity and the curvature of the path ask for."""
    model = lv.System(
        "x y",
        kinetic=lambda v: 3.0 * (v @ v) / 2,
        potential=lambda q: 3.0 * 9.81 * q[1],
        constraints=lambda q: [(q @ q - 4) / 2],
    )
    a, speed = 0.7, 1.3
    q0, v0 = 2 * np.array([np.sin(a), -np.cos(a)]), speed * np.array([np.cos(a), np.sin(a)])
    run = lv.simulate(model, q0, v0, h=1e-3, t_end=1e-3)
    tension = 3.0 * (speed**2 / 2 + 9.81 * np.cos(a))
    assert run.multipliers[0, 0] == pytest.approx(tension / 2, rel=1e-12)  # the slope of the constraint has length 2


@pytest.mark.parametrize("off", [1e-9, 1e-11])
def test_what_counts_as_rounding(off):
    """Values that are off by more than rounding are refused, with the constraint and by how much."""
    start = dict(q0=[2.0 + off, 0.0], v0=[0.0, 0.0], h=1e-3, t_end=1e-3)
    if off < 1e-10:
        assert lv.simulate(ellipse(), **start).status == "complete"
    else:
        with pytest.raises(lv.InputError, match="violated on position level by 1e-09"):
            lv.simulate(ellipse(), **start)


@pytest.mark.parametrize("redundant", ["remove", "auto"])
def test_constraints_that_follow_from_others(redundant):
    """A duplicated constraint in another form is removed and named, and the motion is unchanged."""

    def bead(constraints):
        return lv.System("x y z", kinetic=lambda v: v @ v / 2, potential=lambda q: 9.81 * q[2], constraints=constraints)

    once = bead(lambda q: [q[0] - q[1], q[2] - q[0] ** 2])
    twice = bead(lambda q: [q[0] - q[1], 3 * (q[1] - q[0]), q[2] - q[0] ** 2])
    start = dict(q0=[1.0, 1.0, 1.0], v0=[0.0, 0.0, 0.0], h=1e-2, t_end=0.2)
    with pytest.raises(lv.InputError, match=r"redundant constraints: 'g\[1\]' follows"):
        lv.simulate(twice, **start)
    run, plain = lv.simulate(twice, redundant=redundant, **start), lv.simulate(once, **start)
    assert len(run.info.dropped) == 1 and run.info.dropped[0] in (0, 1)
    assert run.q == pytest.approx(plain.q, abs=1e-12) and run.summary.max_constraint < 1e-13


def test_a_singular_position_is_not_redundancy():
    """Two bars on one line: there the slopes depend on each other, and a step away they do not."""
    model = lv.System(
        "x y",
        kinetic=lambda v: v @ v / 2,
        constraints=lambda q: [(q[0] ** 2 + q[1] ** 2 - 1) / 2, q[1] * (q[0] - 1)],
    )
    with pytest.raises(lv.LivensError) as caught:
        lv.simulate(model, [1.0, 0.0], [0.0, 0.0], h=1e-2, t_end=0.1)
    assert "redundant" not in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "left", "free"),
    [
        ([[1.0, 1.0, 0.0]], 0, 2),
        ([[1e-6, 1e-6, 0.0]], 0, 2),
        ([[1e6, 0.0, 0.0], [1e6, 1e-8, 0.0]], 1, 2),
        ([[1.0, 0.0, 0.0], [0.0, 1e-13, 0.0]], 0, 1),  # short, and independent for all that
        ([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]], 1, 2),
        ([[1.0, 0.0, 0.0], [2.0, 1e-14, 0.0]], 1, 2),  # but for rounding
        ([[1.0, 0.0, 0.0], [0.0, 3.0, 0.0], [5.0, -7.0, 0.0]], 1, 1),
        ([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.5]], 0, 0),
    ],
)
def test_rows_that_follow_from_others(rows, left, free):
    """As few as there are; the others are independent of each other, and directions that change nothing do not."""
    rows = np.array(rows)
    found = dependent_rows(rows)
    assert len(found) == left
    others = np.delete(rows, found, axis=0)
    assert np.linalg.matrix_rank(others / np.linalg.norm(others, axis=1)[:, None]) == len(others)
    if not np.any((rows != 0) & (np.abs(rows) < 1e-12)) or left:
        still = null_space_qr(rows, SOLVED_RTOL)
        assert still.shape == (3, free) and np.abs(rows @ still).max(initial=0.0) < 1e-12 * np.abs(rows).max()
        assert still.T @ still == pytest.approx(np.eye(free), abs=1e-12)


@pytest.mark.parametrize(("angle", "dependent"), [(0.9e-9, [1]), (1.1e-9, []), (0.0, [1])])
def test_rows_that_follow_from_rows_before_them(angle, dependent):
    """But for a part in 1e9, whatever their lengths are."""
    for length in (1e-5, 1.0, 1e5):
        G = np.array([[2.0, 0.0, 0.0], [length, angle * length, 0.0], [0.0, 0.0, 1.0]])
        assert dependent_constraints(G) == dependent


def test_a_start_with_which_nothing_is_wrong_is_soon_known():
    """And the closer look, that others need, finds the same."""
    pendulum = lv.problems.load("simple-pendulum").model
    q, v, k = np.array([0.6, -0.8]), np.array([0.8, 0.6]), pendulum.parameter_vector()
    soon = _fast_path(pendulum, equations_of_motion(pendulum), q, v, 0.0, k)
    assert soon is not None and soon.values["multipliers"] == pytest.approx([1.0 + 9.81 * 0.8])
    assert _fast_path(pendulum, equations_of_motion(pendulum), 1.1 * q, v, 0.0, k) is None
    twice = lv.System(
        "x y", kinetic=lambda v: v @ v / 2, constraints=lambda q: [q @ q - 1, 2 * (q @ q - 1)], potential=lambda q: q[1]
    )
    assert _fast_path(twice, equations_of_motion(twice), q, v, 0.0, twice.parameter_vector()) is None


def test_a_coordinate_without_mass_that_is_held_needs_no_closer_look():
    """The matrix of accelerations and multipliers is regular as it is, though masses cannot be made alike."""
    hung = lv.System(
        "x y", kinetic=lambda v: v[0] ** 2 / 2, constraints=lambda q: [q[1] - q[0]], potential=lambda q: 3 * q[1]
    )
    both = np.array([0.5, 0.5])
    soon = _fast_path(hung, equations_of_motion(hung), both, both, 0.0, hung.parameter_vector())
    assert soon is not None and soon.values["multipliers"] == pytest.approx([-3.0])


def test_the_nearest_position_where_some_steps_lead_nowhere(monkeypatch):
    """As if the constraints were not defined where every second trial ends."""
    calls, onto = [], dense.gauss_newton_to_constraints

    def now_and_then(numbers, q):
        calls.append(q)
        return onto(numbers, q) if len(calls) % 2 else None

    model = ellipse()
    numbers = dense.DenseAssembly(equations_of_motion(model), 0.0, model.parameter_vector())
    expected = dense.project_position(numbers, np.array([1.9, -0.9]), model)
    monkeypatch.setattr(dense, "gauss_newton_to_constraints", now_and_then)
    assert dense.project_position(numbers, np.array([1.9, -0.9]), model) == pytest.approx(expected, abs=1e-7)
    assert len(calls) > 8


def test_equilibration_makes_masses_and_gradients_one():
    """Masses of a gram and a ton, constraints in millimetres and kilometres."""
    masses, G = np.array([1e-3, 1.0, 1e3]), np.array([[1e-3, 2e-3, 0.0], [0.0, 5e3, 1e3]])
    A = np.block([[np.diag(masses), G.T], [G, np.zeros((2, 2))]])
    weights = dense._equilibration(A, 3)
    scaled = weights[:, None] * A * weights
    assert np.diag(scaled)[:3] == pytest.approx(1.0)
    assert np.linalg.norm(scaled[3:, :3], axis=1) == pytest.approx(1.0)
    assert dense._equilibration(np.diag([0.0, 1.0]), 2) is None


def test_a_violation_is_relative_to_the_terms_of_its_constraint():
    """At coordinates of 1e8 a millimetre is rounding of both levels; near the origin a micrometre is an error."""
    system = lv.System("x y", kinetic=lambda v: v @ v / 2, constraints=lambda q: [q[0] - q[1]])
    kind = dict(h=0.01, t_end=0.02)
    run = lv.simulate(system, q0=[1e8, 1e8 + 1e-3], v0=[1e8, 1e8 + 1e-3], **kind)
    assert run.q[0, 1] - run.q[0, 0] < 2e-3
    for start in (dict(q0=[0, 1e-6], v0=[1, 1]), dict(q0=[0, 0], v0=[0, 1e-6])):
        with pytest.raises(lv.InputError, match="inconsistent initial values"):
            lv.simulate(system, **start, **kind)
    G, far, rest = np.array([[1.0, -1.0]]), np.array([1e8, 1e8 + 1e-3]), np.zeros(2)
    dense.check_consistent(system, None, np.array([-1e-3]), np.zeros(1), G, far, rest)
    dense.check_consistent(system, None, np.zeros(1), np.array([-1e-3]), G, rest, far)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_redundancy_is_judged_at_an_offset_relative_to_the_coordinates(size):
    """The first position besides the initial one is off by OFFSET times the largest coordinate, in the max norm."""
    system, q, offsets = lv.System("x y", kinetic=lambda v: v @ v / 2), np.array([size, -3 * size]), []

    def project(position):
        offsets.append(position - q)
        return position

    found = dependent_off_singularity(
        system, q, np.array([0.0, 7.0]), lambda u: u, project, lambda position: (0,) if position is q else ()
    )
    assert found == () and len(offsets) == 1
    assert offsets[0] == pytest.approx([0.0, OFFSET * (1 + 3 * size)], rel=1e-9)
