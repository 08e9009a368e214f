"""A woodpecker toy: a limit cycle of impact, stick and slip at three rigid contacts, with dimensions in common use."""

import numpy as np
from scipy.optimize import brentq

import livens as lv
from livens import contacts

POLE, BORE, HALF_LENGTH = 0.0025, 0.0031, 0.0058  # radii of pole and sleeve, half length of the sleeve
HINGE, CENTRE = 0.010, 0.015  # distances of the hinge from the sleeve, and of the bird from the hinge
BEAK = -0.0201, 0.02


def turn(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s], [s, c]])


def test_the_woodpecker_settles_on_its_limit_cycle():
    """The sequence of contacts of every period, and periods that converge geometrically."""
    bird_tilt = -0.2788
    tilt = brentq(lambda a: BORE * np.cos(a) + HALF_LENGTH * np.sin(a) - POLE, -0.3, 0) + 1e-6  # the lower edge touches
    hinge_at = turn(tilt) @ [HINGE, 0]
    centre = hinge_at + turn(bird_tilt) @ [CENTRE, 0]
    mb = lv.Multibody(planar=True, gravity=[0, -9.81])
    sleeve = mb.body("sleeve", mass=0.0003, inertia=5e-9, position=[0, 0], rotation=turn(tilt))
    bird = mb.body("bird", mass=0.0045, inertia=7e-7, position=centre, rotation=turn(bird_tilt))
    hinge = mb.revolute("hinge", sleeve, bird, at=hinge_at)
    mb.point_on_line("guide", mb.ground, sleeve, at=[0, 0], axis=[0, 1])
    mb.torsion_spring("spring", hinge, stiffness=0.0056, rest_angle=tilt - bird_tilt)
    pole = contacts.HalfSpace(mb.ground, at=[POLE, 0], normal=[1, 0])
    points = {
        "beak": (bird, centre + turn(bird_tilt) @ BEAK, 0.5),
        "lower": (sleeve, turn(tilt) @ [BORE, -HALF_LENGTH], 0.0),
        "upper": (sleeve, turn(tilt) @ [BORE, HALF_LENGTH], 0.0),
    }
    for name, (body, point, restitution) in points.items():
        edge = contacts.PointCloud(body, [point])
        mb.rigid_contact(edge, pole, restitution=restitution, friction=0.3, name=name)
    mb.initial(sleeve, velocity=[0, -0.3411], omega=0.0)
    mb.initial(bird, omega=-7.4583)
    run = mb.simulate(t_end=0.85, h=2e-4)
    names = [event.name for event in run.events]
    cycle = ["lower", "lower slip turns", "lower slips", "lower left", "beak", "upper", "upper left"]
    assert names[:35] == 5 * cycle
    start = np.array([event.t for event in run.events if event.name == "lower"])
    change = np.diff(np.diff(start))
    assert np.abs(change[-2:] / change[-3:-1]).max() < 0.6  # converges, alternating
    assert 0.142 < start[-1] - start[-2] < 0.144
    assert np.diff(run.dissipated_energy).min() > -1e-15 and run.summary.max_energy_drift < 1e-12
