"""Elastic rings by modes: closed forms of the thin ring, momenta, and the same ring made of beams."""

import functools

import numpy as np
import pytest

import livens as lv
from livens import math as m
from livens.errors import InputError
from livens.multibody.ring_modes import ModalRingParametrisation

STEEL = dict(E=206e9, density=7800)
RADIUS = 24e-3
SECTION = lv.Section.rectangular(3.5e-3, 15e-3, **STEEL)


def ring(modes, planar=True, held=True, **more):
    mb = lv.Multibody(planar=planar)
    made = mb.elastic_ring("ring", at=[0, 0, 0][: mb.dimension], radius=RADIUS, section=SECTION, modes=modes, **more)
    if held:
        mb.fixed("hold", mb.ground, made)
    return mb, made


@pytest.mark.parametrize("planar", [True, False])
def test_two_forces_change_the_diameter_as_theory_says(planar):
    """``(pi/4 - 2/pi) F R^3/(E I)`` along them, ``(2/pi - 1/2) F R^3/(E I)`` across: to 1e-6, wherever they press."""
    mb, made = ring(160, planar)
    F, angle = 1.0, 0.7
    a, b = made.at("a", angle), made.at("b", angle + np.pi)
    across = made.at("c", angle + np.pi / 2), made.at("d", angle - np.pi / 2)
    diameter = a.reference_position - b.reference_position
    inwards = -diameter / np.linalg.norm(diameter)
    mb.wrench("press", made, force=F * inwards, at=a)
    mb.wrench("back", made, force=-F * inwards, at=b)
    rest = mb.equilibrium(load_steps=1).position
    unit = F * RADIUS**3 / made.modes.EI

    def changed(one, other):
        return (
            np.linalg.norm(
                made.parametrisation.point(rest, one.local_position)
                - made.parametrisation.point(rest, other.local_position)
            )
            - 2 * RADIUS
        )

    assert changed(a, b) / unit == pytest.approx(-(np.pi / 4 - 2 / np.pi), rel=1e-6)
    assert changed(*across) / unit == pytest.approx(2 / np.pi - 1 / 2, rel=1e-5)


def test_natural_frequencies_are_those_of_a_ring():
    """``w^2 = E I/(rho A R^4) n^2 (n^2 - 1)^2/(n^2 + 1)``, each twice."""
    mb, _ = ring(8)
    found = lv.linearise(mb.problem()).frequencies
    n = np.arange(2, 9)
    EI, line = SECTION.stiffness[5], SECTION.mass
    exact = np.sqrt(EI / (line * RADIUS**4) * n**2 * (n**2 - 1) ** 2 / (n**2 + 1)) / (2 * np.pi)
    assert found == pytest.approx(np.repeat(exact, 2), rel=1e-9)
    assert exact[:3] == pytest.approx([3.85e3, 10.9e3, 20.9e3], rel=2e-3)


def test_a_ring_of_beams_tends_to_it():
    """With a section that neither stretches nor shears, and thin: frequencies of the two ways to build a ring agree."""
    thin = lv.Section.general(EA=1e4, GA=1e4, GJ=1.0, EI=1.0, mass=1.0, inertia=[2e-6, 1e-6, 1e-6])
    by_modes = lv.Multibody(planar=True)
    one = by_modes.elastic_ring("ring", at=[0, 0], radius=1.0, section=thin, modes=2)
    errors = []
    for elements in (12, 24):
        mb = lv.Multibody(planar=True)
        mb.elastic_ring("ring", at=[0, 0], radius=1.0, section=thin, elements=elements)
        found = lv.linearise(mb.problem(), find=False).frequencies
        errors.append(abs(found[found > 1e-3].min() / one.modes.frequency(2) - 1))
    assert 3.5 < errors[0] / errors[1] < 4.6 and errors[1] < 2e-2


@functools.cache
def free_flight():
    """A ring that is hit while it flies and turns: a spring that is stretched pulls at it and at a ball."""
    mb, made = ring(5, planar=False, held=False)
    ball = mb.sphere("ball", at=[0.03, 0.01, 0.002], radius=2e-3, mass=0.02)
    top = made.at("top", 0.4)
    mb.spring("pull", top, ball, stiffness=5e5, free_length=5e-3)
    mb.initial(made, velocity=[1.0, 0.5, -0.2], omega=[30.0, -20.0, 200.0])
    mb.initial(ball, velocity=[-1.0, 0, 0.3], omega=[0, 0, 0])
    return mb


@pytest.mark.parametrize("scheme", ["semi-explicit:0.5,0.5", "lie-em"])
def test_momenta_are_kept(scheme):
    """Linear and angular momentum at round-off, energy with the order of the scheme or exactly."""
    mb = free_flight()
    run = mb.simulate(t_end=1e-3, h=2e-6, scheme=scheme, every=10)
    assert np.abs(run.q[:, 12:20]).max() > 1e-6  # it bends
    p, L, E = (run.observe(name) for name in ("linear_momentum", "angular_momentum", "total_energy"))
    assert np.abs(p - p[0]).max() < 1e-12 * np.abs(p).max()
    exact = scheme == "lie-em"
    assert np.abs(E - E[0]).max() < (1e-11 if exact else 1e-4) * E[0]
    if not exact:
        assert np.abs(L - L[0]).max() < 1e-4 * np.abs(L).max()


@pytest.mark.parametrize("dimension", [2, 3])
def test_points_velocities_and_forces_belong_together(dimension):
    """Velocities are slopes of points, and the power of a force is the same in space and in the coordinates."""
    placement, random = ModalRingParametrisation(dimension, dimension, (2, 3, 5)), np.random.default_rng(dimension)
    n = len(placement.names)
    q, v, X, f = (
        random.normal(size=n),
        random.normal(size=n),
        random.normal(size=dimension),
        random.normal(size=dimension),
    )
    e = 1e-6
    slope = (placement.point(q + e * v, X) - placement.point(q - e * v, X)) / (2 * e)
    velocity = placement.velocity(q, v, X)
    assert slope == pytest.approx(np.array(velocity, dtype=float), abs=1e-8)
    power = float(np.dot(np.array(placement.generalised_force(q, X, f), dtype=float), v))
    assert power == pytest.approx(float(m.dot(velocity, f)), rel=1e-12)
    centre = np.zeros(dimension)
    assert np.array_equal(np.array(placement.point(q, centre), dtype=float), q[:dimension])


def test_bending_goes_without_stretching():
    """The length of the line changes by the square of the deflection alone."""
    placement = ModalRingParametrisation(2, 2, (2, 3, 4))
    angles = np.linspace(0, 2 * np.pi, 4001)
    levers = np.column_stack([np.cos(angles), np.sin(angles)])
    lengths = []
    for size in (0.0, 1e-3, 1e-4):
        q = np.concatenate([[0, 0, 1, 0, 0, 1], size * np.array([1.0, -0.5, 0.3, 0.2, 0.1, -0.4])])
        points = np.array([np.array(placement.point(q, X), dtype=float) for X in levers])
        lengths.append(np.linalg.norm(np.diff(points, axis=0), axis=1).sum())
    longer = np.array(lengths[1:]) - lengths[0]
    assert longer[0] == pytest.approx(100 * longer[1], rel=0.05) and 0 < longer[1] < 1e-6


def test_a_ring_meets_a_wall():
    """Contacts take its points: pressed against a plane it flattens, and stays above by what its bending allows."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    soft = lv.Section.rectangular(2e-3, 10e-3, E=1e8, density=1200)
    hoop = mb.elastic_ring("hoop", at=[0, 0, 0.101], axis="x", radius=0.1, section=soft, modes=6, damping_time=1e-4)
    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    frame = hoop.reference_rotation
    points = [hoop.reference_position + 0.1 * frame @ [np.cos(a), np.sin(a), 0.0] for a in angles]
    mb.contact(lv.contacts.PointCloud(hoop, points), mb.ground, stiffness=2e3, dissipation=0.2, name="floor")
    run = mb.simulate(t_end=0.25, h=2e-4, scheme="semi-explicit-2:0.5", every=5)
    bent = np.abs(run.q[:, 12:14]).max()
    assert bent > 1e-3 and run["floor.normal_force"].max() > 0
    assert run["hoop.position"][:, 2].min() < 0.1 - bent / 2


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (dict(modes=1), "modes"),
        (dict(modes=4, elements=12), "not both"),
        (dict(modes=4, radius=-1.0), "radius"),
        (dict(modes=4, damping=-1.0), "damping"),
        (dict(modes=4, section=3.0), "section"),
    ],
)
def test_rings_that_make_no_sense(more, words):
    mb = lv.Multibody(planar=True)
    with pytest.raises(InputError, match=words):
        mb.elastic_ring("ring", **{"at": [0, 0], "radius": 1.0, "section": SECTION, **more})
