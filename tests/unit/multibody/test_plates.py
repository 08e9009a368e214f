"""Plates as nets of beams against Kirchhoff's plate."""

import numpy as np
import pytest

import livens as lv
from livens.errors import InputError

A, T, E, NU, RHO, G = 1.0, 0.01, 70e9, 0.3, 2700.0, 9.81
D = E * T**3 / (12 * (1 - NU**2))
#: Largest deflection of a clamped square plate under an even load, ``w D/(p a^4)``, and its slowest frequency,
#: ``w a^2 sqrt(rho t/D)`` (Timoshenko and Woinowsky-Krieger; Leissa).
DEFLECTION, FREQUENCY = 1.26532e-3, 35.985


def plate(cells, gravity=True, **more):
    mb = lv.Multibody(gravity=[0, 0, -G] if gravity else None)
    given = dict(at=[0, 0, 0], size=[A, A], thickness=T, E=E, density=RHO, nu=NU, cells=cells, edges="clamped")
    return mb, mb.elastic_plate("plate", **{**given, **more})


def test_a_clamped_square_plate():
    """Deflection under its weight: of order two in the cells, and in the limit that of the books."""
    sizes, errors, deepest = np.array([4, 6, 8, 12]), [], {}
    exact = DEFLECTION * RHO * T * G * A**4 / D
    for cells in sizes.tolist():
        mb, _ = plate(cells)
        assert len(mb.bodies) == (cells - 1) ** 2
        rest = mb.equilibrium(load_steps=1).position.reshape(-1, 12)
        w = -rest[:, 2].min()
        at = np.flatnonzero(-rest[:, 2] == w)[0]
        assert np.abs(rest[at, :2]).max() < 1e-9  # in the middle
        errors.append(abs(w / exact - 1))
        deepest[cells] = w / exact
    assert -np.polyfit(np.log(sizes), np.log(errors), 1)[0] == pytest.approx(2.0, abs=0.1)
    assert (9 * deepest[12] - 4 * deepest[8]) / 5 == pytest.approx(1.0, abs=3e-3)


def test_it_has_the_mass_of_a_plate():
    """All of it where edges are free; turned about any direction."""
    mb, nodes = plate(4, edges="free", normal=[1, 2, 3])
    assert sum(body.element.mass for body in mb.bodies.values()) == pytest.approx(RHO * T * A * A, rel=1e-12)
    corners = nodes[0][0].reference_position - nodes[-1][-1].reference_position
    assert np.linalg.norm(corners) == pytest.approx(np.sqrt(2) * A) and abs(corners @ [1, 2, 3]) < 1e-12
    assert nodes[0][0].element.mass == pytest.approx(RHO * T * A * A / 64)


@pytest.mark.slow
def test_the_slowest_frequency_of_a_clamped_plate():
    """Extrapolated from nets of four and of five cells along an edge."""
    exact = FREQUENCY / (2 * np.pi) * np.sqrt(D / (RHO * T * A**4))
    found = []
    for cells in (4, 5):
        mb, _ = plate(cells, gravity=False)
        found.append(lv.linearise(mb.problem(), find=False).frequencies[0] / exact)
    assert (25 * found[1] - 16 * found[0]) / 9 == pytest.approx(1.0, abs=0.02) and found[1] < 1.1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(size=[1.0, 0.0]), "edges"),
        (dict(cells=1), "cells"),
        (dict(thickness=-1.0), "thickness"),
        (dict(nu=0.7), "nu"),
        (dict(edges="glued"), "edges"),
    ],
)
def test_plates_that_make_no_sense(change, words):
    with pytest.raises(InputError, match=words):
        plate(**{"cells": 4, **change})
    flat = lv.Multibody(planar=True)
    with pytest.raises(InputError, match="spatial model"):
        flat.elastic_plate("plate", at=[0, 0], size=[1, 1], thickness=T, E=E, density=RHO)
