"""Beams: closed forms of statics and vibration, conservation in free flight, and sentences for what makes no sense."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

import livens as lv
from livens import rotations as rot
from livens.multibody import beam_element
from livens.problems.flying_spaghetti import spaghetti_in_space

SLENDER = lv.Section.general(EA=1e4, GA=1e4, GJ=1.0, EI=1.0, mass=1.0, inertia=[0.02, 0.01, 0.01])


def cantilever(elements, section=SLENDER, planar=False, **options):
    mb = lv.Multibody(planar=planar)
    d = 2 if planar else 3
    points = [np.zeros(d), np.eye(d)[0]]
    return mb, mb.beam("boom", points=points, section=section, elements=elements, clamp_first=mb.ground, **options)


# -- strains ----------------------------------------------------------------------------------------------------------
@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6))
def test_strains_are_those_of_the_helix_that_joins_both_frames(seed):
    """Against the exponential of a motion, and whatever the place and attitude of the whole."""
    from scipy.linalg import expm

    random = np.random.default_rng(seed)
    strain, turn = random.uniform(-1, 1, 3), random.uniform(-0.45, 0.45, 3)
    hat = lambda w: np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])  # noqa: E731
    motion = expm(np.block([[hat(turn), strain[:, None]], [np.zeros((1, 4))]]))
    R = rot.to_matrix(rot.from_axis_angle(random.standard_normal(3), random.uniform(0, 3)))
    found = beam_element.reference_strain(R @ motion[:3, 3], R, R @ motion[:3, :3])
    assert np.abs(found - np.concatenate([strain, turn])).max() < 1e-9


# -- statics ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("planar", [False, True])
def test_a_moment_rolls_a_beam_up_to_a_circle(planar):
    """Exact with six elements, which turn by 60 degrees each: what is left is the error of the quotient for atan."""
    mb, beam = cantilever(6, planar=planar)
    mb.wrench("end", beam.b, torque=[2 * np.pi] if planar else [0, 0, 2 * np.pi])
    rest = mb.equilibrium(load_steps=10)
    assert rest.residual < 1e-9 and (rest.stable or not planar)
    places = rest.position.reshape(6, -1)[:, :2]
    angles = 2 * np.pi * np.arange(1, 7) / 6
    exact = np.column_stack([np.sin(angles), 1 - np.cos(angles)]) / (2 * np.pi)
    assert np.abs(places - exact).max() < 5e-7
    mb, beam = cantilever(20, planar=planar)
    mb.wrench("end", beam.b, torque=[2 * np.pi] if planar else [0, 0, 2 * np.pi])
    assert np.linalg.norm(mb.equilibrium(load_steps=10).position.reshape(20, -1)[-1, :2]) < 1e-11


def test_small_loads_bend_shear_stretch_and_twist_as_the_books_say():
    section = lv.Section.rectangular(0.02, 0.01, E=2e11, nu=0.3, density=7850)
    EA, GA2, GA3, GJ, EI2, EI3 = section.stiffness
    mb, beam = cantilever(16, section, section_axis="y")
    F, T = 1e-3, 1e-3
    mb.wrench("end", beam.b, force=[F, F, F], torque=[T, 0, 0])
    tip = mb.equilibrium(load_steps=1).position[-12:]
    moved = tip[:3] - [1, 0, 0]
    # the tip of a beam of n elements with one point each: 1/3 - 1/(12 n^2) instead of 1/3
    bent = 1 / 3 - 1 / (12 * 16**2)
    assert moved[1] == pytest.approx(F * (bent / EI3 + 1 / GA2), rel=1e-5)
    assert moved[2] == pytest.approx(F * (bent / EI2 + 1 / GA3), rel=1e-5)
    assert moved[0] == pytest.approx(F / EA, rel=0.02)  # bending shortens it by its square
    assert tip[8] == pytest.approx(T / GJ, rel=1e-5)  # the second axis turns towards the third


def test_a_general_section_couples_bending_and_torsion():
    """The compliance of the whole matrix, at small moments."""
    whole = np.diag(SLENDER.stiffness)
    whole[3, 5] = whole[5, 3] = 0.5
    section = lv.Section(whole, 1.0, [0.02, 0.01, 0.01], 0.02)
    mb, beam = cantilever(3, section)
    mb.wrench("end", beam.b, torque=[0, 0, 1e-5])
    tip = mb.equilibrium(load_steps=1).position[-12:]
    turned = np.linalg.inv(whole)[:, 5] * 1e-5
    assert tip[8] == pytest.approx(turned[3], rel=1e-4) and tip[4] == pytest.approx(turned[5], rel=1e-4)


def test_an_elastic_ring_is_pressed_together():
    """Two forces across a diameter: ``F r^3/EI (pi/4 - 2/pi)`` shorter (thin ring)."""
    r, EI, F = 1.0, 1.0, 1e-4
    section = lv.Section.general(EA=1e6, GA=1e6, GJ=1.0, EI=EI, mass=1.0, inertia=[0.02, 0.01, 0.01])
    sizes, errors, exact = np.array([8, 16, 32, 64]), [], np.pi / 4 - 2 / np.pi
    for n in sizes.tolist():
        mb = lv.Multibody(planar=True)
        ring = mb.elastic_ring("ring", at=[0, 0], radius=r, section=section, elements=n)
        mb.fixed("foot", mb.ground, ring.nodes[0])
        mb.wrench("press", ring.nodes[n // 2], force=[F, 0])
        rest = mb.equilibrium(load_steps=1)
        errors.append(abs((rest.position.reshape(n, 6)[n // 2, 0] + r) / F / exact - 1))
        assert ring.nodes[-1] is ring.nodes[0] and len(mb.bodies) == n
    assert -np.polyfit(np.log(sizes), np.log(errors), 1)[0] == pytest.approx(2.0, abs=0.1) and errors[-1] < 5e-3


def test_a_beam_without_support_has_no_equilibrium():
    mb = lv.Multibody()
    beam = mb.beam("boom", points=[[0, 0, 0], [1, 0, 0]], section=SLENDER, elements=2)
    mb.wrench("push", beam.b, force=[0, 0, 1.0])
    with pytest.raises(lv.InputError, match="no equilibrium found beyond a load factor of 0"):
        mb.equilibrium(load_steps=1)
    with pytest.raises(lv.InputError, match="load_steps"):
        mb.equilibrium(load_steps=0)


# -- vibration --------------------------------------------------------------------------------------------------------
def test_natural_frequencies_converge_with_order_two():
    """To those of a cantilever in bending; also ``pi/2 sqrt(EA/mass)`` along it."""
    stiff = lv.Section.general(EA=1e4, GA=1e8, GJ=1.0, EI=1.0, mass=1.0, inertia=[2e-6, 1e-6, 1e-6])
    exact = brentq(lambda x: np.cos(x) * np.cosh(x) + 1, 1.5, 2.2) ** 2
    along = np.pi / 2 * np.sqrt(1e4)
    sizes, errors, axial = np.array([4, 6, 8, 12]), [], []
    for n in sizes:
        mb, _ = cantilever(int(n), stiff, planar=True)
        found = 2 * np.pi * lv.linearise(mb.problem()).frequencies
        errors.append(abs(found[0] / exact - 1))
        axial.append(abs(found / along - 1).min())
    for some in (errors, axial):
        assert -np.polyfit(np.log(sizes), np.log(some), 1)[0] == pytest.approx(2.0, abs=0.1)
    assert errors[-1] < 5e-3


# -- motion -----------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def flight():
    """The flying spaghetti once it is let go: 10,000 steps."""
    pushed = lv.simulate(lv.problems.load("flying-spaghetti-3d", N=3, t_end=5.0))
    problem = spaghetti_in_space(3, loaded=False).problem(h=0.02, t_end=200.0)
    return lv.simulate(problem, q0=pushed.q[-1], v0=pushed.v[-1], every=10)


def test_free_flight_keeps_energy_momentum_and_angular_momentum(flight):
    assert flight.statistics.steps == 10_000 and flight.info.tier == "assembled"
    assert flight.summary.max_energy_drift < 1e-12
    drifts = flight.summary.momentum_drift
    assert set(drifts) == {"linear_momentum", "angular_momentum"} and max(map(np.max, drifts.values())) < 1e-12
    moments = flight["spaghetti.moment"]
    assert moments.shape == (1001, 3, 3) and np.ptp(moments) > 50  # it does bend


def test_damping_takes_energy_and_no_momentum():
    """Damping of a planar beam that is released in a bent state and then rotates as a rigid body."""
    mb = lv.Multibody(planar=True)
    beam = mb.beam("boom", points=[[0, 0], [1, 0]], section=SLENDER, elements=4, damping_time=0.05)
    problem = mb.problem(h=0.01, t_end=4.0)
    v = np.concatenate([node.parametrisation.from_twist(q, [0.1, x], 2.0 * x) for node, q, x in zip(
        beam.nodes, problem.q0.reshape(5, 6), (0.0, 1.0, 2.0, 1.0, 4.0), strict=True
    )])  # fmt: skip
    run = lv.simulate(problem, v0=v)
    energy = run.observe("total_energy")
    assert np.diff(energy).max() < 1e-12 and energy[-1] < 0.85 * energy[0]
    # a step is accepted where residuals are what rounding may make of them: 1e-14 of the energy for slender beams
    assert np.ptp(energy + run.dissipated_energy) < 1e-11 * energy[0]
    assert max(map(np.max, run.summary.momentum_drift.values())) < 1e-12
    assert np.abs(run["boom.moment"][-1]).max() < 0.05 * np.abs(run["boom.moment"]).max()


# -- how beams are put together ---------------------------------------------------------------------------------------
def test_nodes_are_where_they_are_asked_for():
    mb = lv.Multibody()
    beam = mb.beam("boom", points=[[0, 0, 0], [2, 0, 0]], section=SLENDER, elements=6, stations=[0.3, 1.1])
    assert beam.at(0.3).reference_position[0] == pytest.approx(0.3) and beam.at(1.1).name in mb.bodies
    assert len(beam.nodes) == 7 and beam.at(0) is beam.a and beam.at(2) is beam.b and beam.length == 2
    # even as far as that goes: none is longer than twice the shortest
    assert np.diff(beam.stations).max() < 2.5 * np.diff(beam.stations).min()
    total = sum(part.element.mass for part in mb.bodies.values())
    assert total == pytest.approx(2.0)
    assert beam.at(0.3 + 1.9e-6) is beam.at(0.3)  # near is a millionth of the length
    with pytest.raises(lv.InputError, match=r"no node at 0\.300002"):
        beam.at(0.3 + 2.1e-6)
    with pytest.raises(lv.InputError, match=r"no node at 0.6, the nearest is at .*; request one with stations=\[0.6\]"):
        beam.at(0.6)
    with pytest.raises(lv.InputError, match="3 is not on the beam, which is 2 long"):
        beam.at(3)


def test_a_curve_is_followed_and_is_relaxed():
    """A quarter of a circle, by a function and through points: arc length, tangents, no energy."""
    arc = lambda s: [np.sin(np.pi / 2 * s), 0.0, 1 - np.cos(np.pi / 2 * s)]  # noqa: E731
    for points in (arc, [arc(s) for s in np.linspace(0, 1, 41)]):
        mb = lv.Multibody()
        beam = mb.beam("bow", points=points, section=SLENDER, elements=4, clamp_first=mb.ground)
        assert beam.length == pytest.approx(np.pi / 2, abs=1e-6)
        assert np.abs(beam.b.reference_rotation[:, 0] - [0, 0, 1]).max() < 1e-4
        assert np.abs(beam.b.reference_position - [1, 0, 1]).max() < 1e-12
        q, _ = mb.assembly.state
        assert abs(mb.equilibrium(load_steps=1).position - q).max() < 1e-12


def test_a_beam_grows_from_a_body():
    """Half of its first element belongs to the body; a corner of two beams has one node."""
    mb = lv.Multibody()
    hub = mb.sphere("hub", at=[0, 0, 0], radius=0.1, mass=2.0)
    beam = mb.beam("boom", points=[hub.reference_position, [1, 0, 0]], section=SLENDER, elements=2, clamp_first=hub)
    assert hub.element.mass == pytest.approx(2.25) and beam.a is hub
    corner = mb.beam("mast", points=[[1, 0, 0], [1, 0, 1]], section=SLENDER, elements=2, clamp_first=beam.b)
    assert corner.a is beam.b and beam.b.element.mass == pytest.approx(0.5)
    values = beam.b.element.parameters.values
    tensor = np.trace(values["euler"]) * np.eye(3) - values["euler"]
    # that of the mast has its own axis along z, which is an axis of the section of the boom
    own = beam.b.reference_rotation @ tensor @ beam.b.reference_rotation.T
    assert np.allclose(own, np.diag([0.25 * 0.03, 0.25 * 0.02, 0.25 * 0.03]))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(elements=0), "elements must be a whole number"),
        (dict(points=[[0, 0, 0]]), "at least two points"),
        (dict(points=[[0, 0, 0], [0, 0, 0]]), "coincide"),
        (dict(points=[[0, 0], [1, 0]]), "must be 3 numbers or a named point"),
        (dict(section=3.0), "must be a livens.Section"),
        (dict(damping_time=-1.0), "damping_time must"),
        (dict(section_axis="x"), "must not be along the beam"),
        (dict(stations=[2.0]), "stations are arc lengths between 0 and the length 1"),
        (dict(stations=[0.2, 0.2]), "a station is given twice"),
        (dict(stations=[0.2, 0.4], elements=2), "need at least 3 elements"),
        (dict(clamp_first=3), "is not a body of this mechanism"),
    ],
)
def test_beams_that_make_no_sense(change, words):
    mb = lv.Multibody()
    given = dict(points=[[0, 0, 0], [1, 0, 0]], section=SLENDER, elements=2) | change
    with pytest.raises(lv.InputError, match=words):
        mb.beam("boom", **given)
    assert "boom" not in mb.beams


def test_a_beam_is_clamped_to_centres_only():
    mb = lv.Multibody()
    hub, point = mb.sphere("hub", at=[0, 0, 0], radius=0.1, mass=2.0), mb.particle("point", at=[1, 0, 0], mass=1.0)
    with pytest.raises(lv.InputError, match="centre of 'hub' is not at the end of the beam; use a joint"):
        mb.beam("boom", points=[[0.1, 0, 0], [1, 0, 0]], section=SLENDER, clamp_first=hub)
    with pytest.raises(lv.InputError, match="'point' is a particle"):
        mb.beam("boom", points=[[0, 0, 0], [1, 0, 0]], section=SLENDER, clamp_last=point)
    with pytest.raises(lv.InputError, match="use more elements"):
        mb.beam(
            "boom",
            points=[[0, 0, 0], [1, 0, 0]],
            section=SLENDER,
            elements=1,
            clamp_first=mb.ground,
            clamp_last=mb.ground,
        )


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: lv.Section.circular(0.01, E=-1.0, density=1.0), "E must be greater than 0"),
        (lambda: lv.Section.circular(0.01, E=1.0, density=1.0, inner=0.02), "inner must be at least 0 and below"),
        (lambda: lv.Section.rectangular(0.01, 0.02, E=1.0, density=1.0, nu=0.7), "nu must be above -1"),
        (lambda: lv.Section([1, 1, 1, 1, 1, -1], 1, [1, 1, 1], 1), "not positive definite"),
        (lambda: lv.Section(np.ones((6, 6)), 1, [1, 1, 1], 1), "must be positive definite"),
        (lambda: lv.Section([1, 2], 1, [1, 1, 1], 1), "six numbers or a 6x6 matrix"),
        (lambda: lv.Section(np.ones(6), 1, [1, 1, 3], 1), "no moment greater than the sum"),
    ],
)
def test_sections_that_make_no_sense(make, words):
    with pytest.raises(lv.InputError, match=words):
        make()


def test_sections_by_the_books():
    steel = dict(E=2e11, nu=0.3, density=7850)
    r = 0.01
    full = lv.Section.circular(r, **steel)
    G = 2e11 / 2.6
    assert full.stiffness == pytest.approx(
        [2e11 * np.pi * r**2, *[G * np.pi * r**2 * 7.8 / 8.8] * 2, G * np.pi * r**4 / 2, *[2e11 * np.pi * r**4 / 4] * 2]
    )
    tube = lv.Section.circular(r, inner=0.5 * r, **steel)
    assert tube.stiffness[4] == pytest.approx(full.stiffness[4] * 15 / 16) and tube.mass == pytest.approx(
        full.mass * 0.75
    )
    assert tube.stiffness[1:3] == pytest.approx([0.5 * G * np.pi * 0.75 * r**2] * 2)
    square = lv.Section.rectangular(1.0, 1.0, E=1.0, nu=0.0, density=1.0)
    assert square.stiffness[3] == pytest.approx(0.5 * 0.140577, rel=1e-5)  # Timoshenko's table
    flat = lv.Section.rectangular(10.0, 1.0, E=1.0, nu=0.0, density=1.0)
    assert flat.stiffness[3] == pytest.approx(0.5 * 10 * 0.312, rel=2e-3) and flat.stiffness[5] == pytest.approx(
        1000 / 12
    )
