"""Small motions of a four-bar linkage on a spring: `lv.linearise` against the linkage reduced to one angle."""

import numpy as np
import pytest
from scipy.optimize import brentq

import livens as lv
from livens.problems.spring_four_bar import CORNERS, FOOT

A, B, C, D = (np.array(corner) for corner in CORNERS)
CRANK, COUPLER, ROCKER = (float(np.linalg.norm(y - x)) for x, y in ((A, B), (B, C), (D, C)))
G, MASSES = 9.81, (1.0, 2.0, 1.5)


def reduced(angle):
    """Corners and the centres of the bars with the crank at an angle: two circles meet, on the side that is drawn."""
    b = CRANK * np.array([np.cos(angle), np.sin(angle)])
    gap = D - b
    d = np.linalg.norm(gap)
    along = (COUPLER**2 - ROCKER**2 + d**2) / (2 * d)
    across = np.sqrt(COUPLER**2 - along**2)
    c = b + along * gap / d + across * np.array([-gap[1], gap[0]]) / d
    return b, c, (b / 2, (b + c) / 2, (c + D) / 2)


def potential(angle, stiffness):
    _, _, centres = reduced(angle)
    weight = sum(mass * G * centre[1] for mass, centre in zip(MASSES, centres, strict=True))
    return weight + 0.5 * stiffness * (np.linalg.norm(centres[1] - FOOT) - 0.7) ** 2


def derivative(function, x, h=1e-4):
    """Return the central difference of order six."""
    weights = {1: 45, 2: -9, 3: 1}
    return sum(w * (function(x + i * h) - function(x - i * h)) for i, w in weights.items()) / (60 * h)


def inertia(angle):
    found = 0.0
    turns = {
        0: lambda x: x,
        1: lambda x: np.arctan2(*(reduced(x)[1] - reduced(x)[0])[::-1]),
        2: lambda x: np.arctan2(*(reduced(x)[1] - D)[::-1]),
    }
    for i, (mass, length) in enumerate(zip(MASSES, (CRANK, COUPLER, ROCKER), strict=True)):
        speed = derivative(lambda x, i=i: reduced(x)[2][i], angle)
        found += mass * speed @ speed + mass * (3 * 0.02**2 + 1) * length**2 / 12 * derivative(turns[i], angle) ** 2
    return found


@pytest.mark.parametrize("stiffness, viscosity", [(400.0, 3.0), (500.0, 0.0), (350.0, 90.0)])
def test_eigenvalues_are_those_of_the_reduced_linkage(stiffness, viscosity):
    problem = lv.problems.load("spring-four-bar", stiffness=stiffness, viscosity=viscosity)
    found = lv.linearise(problem)
    assert derivative(lambda x: potential(x, stiffness), 1.0) * derivative(lambda x: potential(x, stiffness), 1.7) < 0
    rest = brentq(lambda x: derivative(lambda y: potential(y, stiffness), x), 1.0, 1.7, xtol=1e-14)
    np.testing.assert_allclose(found.equilibrium[:2], reduced(rest)[2][0], atol=1e-8)
    slope = derivative(lambda x: derivative(lambda y: potential(y, stiffness), x), rest)
    stretch = derivative(lambda x: np.linalg.norm(reduced(x)[2][1] - FOOT), rest)
    expected = np.roots([inertia(rest), viscosity * stretch**2, slope])
    np.testing.assert_allclose(np.sort_complex(found.eigenvalues), np.sort_complex(expected), rtol=1e-6, atol=1e-7)
    assert found.stable


def test_the_linkage_swings_with_that_frequency():
    """The motion itself, a little off its equilibrium, without damping."""
    problem = lv.problems.load("spring-four-bar", viscosity=0.0)
    about = lv.linearise(problem)
    (frequency,) = about.frequencies
    mode = about.modes[:, 0]
    start = about.equilibrium + 1e-4 * np.real(mode / mode[np.argmax(np.abs(mode))])
    run = lv.simulate(problem, q0=start, v0=np.zeros(len(start)), project=True, h=2e-3, t_end=4.0)
    swing = run.q[:, 0] - about.equilibrium[0]
    crossings = np.flatnonzero(np.diff(np.sign(swing)))
    times = run.t[crossings] - swing[crossings] * 2e-3 / (swing[crossings + 1] - swing[crossings])
    assert len(times) > 4
    assert 0.5 / np.diff(times).mean() == pytest.approx(frequency, rel=1e-3)
