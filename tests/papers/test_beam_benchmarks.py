"""Beams of the literature against independent solutions: values within 0.5 %, and how they converge."""

import numpy as np
import pytest

import livens as lv
from livens.problems.bend_45 import RAMP as BEND_RAMP
from livens.problems.bend_45 import bent_beam
from livens.problems.folded_cable import folded_cable_mechanism
from livens.problems.hanging_net import hanging_net_mechanism
from livens.problems.princeton_beam import princeton_cantilever
from livens.problems.roll_up import RAMP as ROLL_RAMP
from livens.problems.roll_up import rolled_beam
from livens.problems.rotating_shaft import critical_speed, shaft


@pytest.fixture
def beams(reference):
    return reference("beams")


def order(sizes, errors):
    return -np.polyfit(np.log(sizes), np.log(errors), 1)[0]


def test_roll_up():
    """A quarter, three quarters and two turns, exact to the error of the element's angle."""
    for turns, N in ((0.25, 4), (0.75, 10), (2.0, 20)):
        tip = rolled_beam(N, turns).equilibrium(load_steps=10, t=ROLL_RAMP).position[-6:-4]
        a = 2 * np.pi * turns
        assert np.abs(tip - [np.sin(a) / a, (1 - np.cos(a)) / a]).max() < 1e-8
    with pytest.raises(lv.InputError, match="'turns' must be below 2"):
        rolled_beam(4, 2.0)


def test_elastica(beams):
    """A force at the tip: four sizes, order two."""
    stiff = lv.Section.general(EA=1e9, GA=1e9, GJ=1.0, EI=1.0, mass=1.0, inertia=0.01)
    sizes = np.array([5, 10, 20, 40])
    for row in beams["elastica"][::3]:
        errors = []
        for n in sizes.tolist():
            mb = lv.Multibody(planar=True)
            beam = mb.beam("boom", points=[[0, 0], [1, 0]], section=stiff, elements=n, clamp_first=mb.ground)
            mb.wrench("end", beam.b, force=[0, row["force"]])
            tip = mb.equilibrium(load_steps=4).position[-6:-4]
            errors.append(np.abs(tip - [row["x"], row["w"]]).max())
        assert order(sizes, errors) == pytest.approx(2.0, abs=0.1) and errors[-1] < 5e-4


def test_45_degree_bend(beams):
    """Eight elements: the displacement of the tip within 0.5 % at all three loads."""
    clamped = np.array([100 * (1 - np.cos(np.pi / 4)), 100 * np.sin(np.pi / 4), 0.0])
    for row in beams["bend_45"]:
        exact = np.array(row["tip_position"])
        tip = bent_beam(8, row["F"]).equilibrium(load_steps=6, t=BEND_RAMP).position[-12:-9]
        assert np.linalg.norm(tip - exact) < 5e-3 * np.linalg.norm(exact - clamped)
    sizes, errors = np.array([4, 6, 8, 12]), []
    for n in sizes.tolist():
        tip = bent_beam(n, 600.0).equilibrium(load_steps=6, t=BEND_RAMP).position[-12:-9]
        errors.append(np.linalg.norm(tip - beams["bend_45"][2]["tip_position"]))
    assert order(sizes, errors) == pytest.approx(2.0, abs=0.1)


def test_princeton_beam(beams):
    """Ten elements: the displacement of the tip within 0.5 % at all loads and angles."""
    for row in beams["princeton"][::4]:
        exact = np.array(row["tip_displacement"])
        rest = princeton_cantilever(10, row["P"], row["theta_deg"]).equilibrium(load_steps=3, t=1.0)
        assert np.linalg.norm(rest.position[-12:-9] - [0.508, 0, 0] - exact) < 5e-3 * np.linalg.norm(exact)


def compared(name, rows, N, h, parts, **options):
    """The largest errors of the ends and the middle of a spaghetti, in lengths of the beam."""
    run = lv.simulate(lv.problems.load(name, N=N, h=h, t_end=rows[-1]["t"], **options))
    found = []
    for row in rows:
        places = run["spaghetti.position"][round(row["t"] / h)]
        found.append(max(np.linalg.norm(places[i] - row[part]) for part, i in parts.items()) / 10)
    return np.array(found), run


@pytest.mark.slow
def test_flying_spaghetti_in_space(beams):
    """24 elements: within 0.5 % of the length while it is pushed for 5 s; order two in the number of elements."""
    rows, parts = beams["spaghetti_3d"][:4], dict(free=0, loaded=-1)
    errors = {}
    for N in (5, 7, 10, 14, 20, 24):
        errors[N], run = compared("flying-spaghetti-3d", rows, N, 0.0125 if N < 20 else 0.01, parts)
    assert errors[24].max() < 5e-3 and errors[20][:3].max() < 3e-3
    sizes = list(errors)[1:-1]
    assert order(sizes, [errors[N][2] for N in sizes]) == pytest.approx(2.0, abs=0.1)
    energy = run.observe("total_energy")
    assert energy[-1] == pytest.approx(rows[-1]["energy"], rel=5e-3)


@pytest.mark.slow
def test_flying_spaghetti_in_the_plane(beams):
    """The load ends at once, and waves run: within 0.5 % of the length for 4 s with 20 elements, for 10 s with 40."""
    for EI in (500.0, 100.0):
        rows = beams[f"spaghetti_2d_{EI:.0f}"]
        for N, h, until in ((20, 0.0125, 3), (40, 0.00625, 7)):
            parts = dict(free=0, middle=N // 2, loaded=-1)
            errors, _ = compared("flying-spaghetti-2d", rows[:until], N, h, parts, EI=EI)
            assert errors.max() < 5e-3 and len(errors) == until


@pytest.mark.slow
def test_right_angle_cantilever(beams):
    """Eight elements a leg, displacements in lengths of both legs; the energy of the push."""
    run = lv.simulate(lv.problems.load("right-angle-cantilever", N=8, h=0.025, t_end=5.0))
    for row in beams["right_angle_20"]:
        i = round(row["t"] / 0.025)
        elbow, tip = run["arm.position"][i, -1] - [10, 10, 0], run["leg.position"][i, -1] - [10, 0, 0]
        assert np.linalg.norm(elbow - row["elbow_displacement"]) < 5e-3 * 20
        assert np.linalg.norm(tip - row["tip_displacement"]) < 5e-3 * 20
    energy = run.observe("total_energy")[run.t > 2.01]
    assert np.ptp(energy) < 1e-11 * energy[0]
    assert energy[0] == pytest.approx(beams["right_angle_20"][-1]["energy"], rel=0.02)


def test_rotating_shaft():
    """Its slowest frequency is that of Jeffcott's disc with 17/35 of the mass of the shaft (Rayleigh)."""
    mb = shaft(8, 1e-9)
    beam = mb.beams["shaft"]
    found = 2 * np.pi * lv.linearise(mb.problem()).frequencies[:2]
    slower = np.sqrt(5.0 / (5.0 + 17 / 35 * beam.section.mass))
    assert found == pytest.approx(critical_speed() * slower, rel=0.01)


@pytest.mark.slow
def test_a_shaft_whirls_as_jeffcott_says():
    """Half its critical speed: ``m z'' + k z = m_disc W^2 e exp(i W t)`` in the middle, with the measured w^2 = k/m."""
    problem_mass = shaft(2).beams["shaft"].section.mass  # of which half is in the middle
    problem = lv.problems.load("rotating-shaft", N=2, speed=0.5, t_end=0.1)
    run = lv.simulate(problem)
    w, W, e = 2 * np.pi * lv.linearise(shaft(2, 1e-9).problem()).frequencies[0], 0.5 * critical_speed(), 1e-3
    y, z = run["shaft.position"][:, 1, 1:].T
    # seen from space, y + i z, started straight and turning: z = 0, z' = 0
    size = W**2 * e / (w**2 - W**2) * 5.0 / (5.0 + problem_mass / 2)
    exact = size * (np.exp(1j * W * run.t) - np.cos(w * run.t) - 1j * W / w * np.sin(w * run.t))
    assert np.abs(y + 1j * z - exact).max() < 0.03 * np.abs(exact).max()
    assert run.summary.max_energy_drift < 1e-10


@pytest.mark.slow
def test_a_folded_cable_falls_faster_than_a_stone():
    run = lv.simulate(lv.problems.load("cable-drop", N=60, t_end=0.35))
    x = -run["cable_59.position"][:, 1]
    v = -run["cable_59.velocity"][:, 1]
    inside = (x > 0.2) & (x < 0.7)
    assert inside.sum() > 50
    exact = np.sqrt(9.81 * x * (2 - x) / (1 - x))[inside]
    assert np.abs(v[inside] / exact - 1).max() < 0.03
    assert np.all(x[inside] > 9.81 / 2 * run.t[inside] ** 2) and run.summary.max_energy_drift < 1e-11
    with pytest.raises(lv.InputError, match="even number"):
        folded_cable_mechanism(5)


def test_a_net_hangs_on_its_corners():
    """As symmetric as it is drawn, deepest in its middle, and stable."""
    mb = hanging_net_mechanism(5)
    rest = mb.equilibrium(load_steps=5)
    assert rest.stable and rest.residual < 1e-10
    heights = {name: rest.position[3 * i + 2] for i, name in enumerate(mb.bodies)}
    assert heights["net_1"] == pytest.approx(heights["net_5"], abs=1e-10) and heights["net_12"] == min(heights.values())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(bars=[(0, 5)]), r"between two of the 3 points, got \(0, 5\)"),
        (dict(bars=[(0, 1)]), "no bar is attached to point 2"),
        (dict(bars=[0, 1]), "pairs of numbers"),
        (dict(EA=0.0), "EA must be greater than 0"),
        (dict(points=3), "must be a list of points"),
        (dict(fixed=[7]), "fixed must be"),
    ],
)
def test_trusses_that_make_no_sense(change, words):
    given = dict(points=[[0, 0], [1, 0], [2, 0]], bars=[(0, 1), (1, 2)], EA=1.0, mass_per_length=1.0) | change
    with pytest.raises(lv.InputError, match=words):
        lv.Multibody(planar=True).truss("truss", **given)


def test_beam_slider_crank():
    """Beams against a rod in two bending modes with linear elasticity (Simeon 1996), both from a straight rod: the
    deflection of its middle at t = 0.02, within one percent of the largest one with sixteen elements."""
    deflections, known = [], -8.590625334191063e-05
    for count in (4, 16):
        run = lv.simulate(lv.problems.load("beam-slider-crank", N=count), t_end=0.02)
        a, b, middle = (run["rod.position"][:, i] for i in (0, -1, count // 2))
        along = (b - a) / np.linalg.norm(b - a, axis=1, keepdims=True)
        deflections.append(along[:, 0] * (middle - a)[:, 1] - along[:, 1] * (middle - a)[:, 0])
        assert np.abs(run.observe("constraint")).max() < 1e-12
    largest = np.abs(deflections[-1]).max()
    coarse, fine = (abs(deflection[-1] - known) / largest for deflection in deflections)
    assert fine < 1e-2 and coarse > 5 * fine
    assert run["slider.position"][-1, 0] == pytest.approx(0.15072983333288617, abs=3e-5)
