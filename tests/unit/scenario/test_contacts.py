"""Contacts in scenario files: the same model as in Python, and bad input with its place."""

import numpy as np
import pytest

import livens as lv
from livens import contacts
from livens.errors import InputError

BODIES = """
gravity: [0, 0, -9.81]
parameters: {k: 1e4}
bodies:
  ball: {shape: sphere, at: [0, 0, 0.2], radius: 0.1, mass: 1}
  box: {shape: box, at: [1, 0, 0.3], size: [0.2, 0.2, 0.2], mass: 1}
initial:
  ball: {velocity: [1, 0, 0]}
h: 1e-3
t_end: 0.2
contacts:
"""


def scenario(tmp_path, text):
    file = tmp_path / "model.yaml"
    file.write_text(BODIES + text)
    return lv.scenario.load(file)


def python():
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    ball = mb.sphere("ball", at=[0, 0, 0.2], radius=0.1, mass=1)
    box = mb.box("box", at=[1, 0, 0.3], size=[0.2, 0.2, 0.2], mass=1)
    mb.initial(ball, velocity=[1, 0, 0])
    return mb, ball, box


def test_pairs_and_shapes(tmp_path):
    loaded = scenario(
        tmp_path,
        """
  floor: {between: [ball, ground], stiffness: k, dissipation: 0.5, friction: {coefficient: 0.3, slip_tolerance: 0.01}}
  wall:
    type: contact
    between:
      - {shape: sphere, body: ball, radius: 0.12}
      - {shape: half_space, body: ground, at: [0.3, 0, 0], normal: [-1, 0, 0]}
    law: hertz
    stiffness: 1e5
""",
    )
    run = loaded.run()
    mb, ball, _ = python()
    friction = contacts.Friction(0.3, slip_tolerance=0.01)
    mb.contact(ball, mb.ground, name="floor", stiffness=1e4, dissipation=0.5, friction=friction)
    wall = contacts.HalfSpace(mb.ground, at=[0.3, 0, 0], normal=[-1, 0, 0])
    mb.contact(contacts.Sphere(ball, 0.12), wall, name="wall", law="hertz", stiffness=1e5)
    same = mb.simulate(t_end=0.2, h=1e-3)
    assert run["floor.normal_force"].max() > 10 and run["wall.normal_force"].max() > 10
    assert np.array_equal(run.q, same.q)


def test_groups_and_rigid_contacts(tmp_path):
    loaded = scenario(tmp_path, "\n  heap: {type: contact_group, bodies: [ball, box, ground], stiffness: k}\n")
    run = loaded.run()
    mb, ball, box = python()
    mb.contact_group("heap", [ball, box, mb.ground], stiffness=1e4)
    assert np.array_equal(run.q, mb.simulate(t_end=0.2, h=1e-3).q)
    loaded = scenario(
        tmp_path, "\n  hit: {type: rigid_contact, between: [ball, ground], restitution: 0.5, friction: 0.2}\n"
    )
    run = loaded.run()
    mb, ball, _ = python()
    mb.rigid_contact(ball, mb.ground, restitution=0.5, friction=0.2, name="hit")
    assert run["ball.velocity"][-1, 2] > 0
    assert np.array_equal(run.q, mb.simulate(t_end=0.2, h=1e-3).q)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\n  a: {between: [ball], stiffness: 1}\n", "a list of 2"),
        ("\n  a: {between: [ball, grund], stiffness: 1}\n", "ground"),
        ("\n  a: {type: contakt, between: [ball, ground]}\n", "contact"),
        ("\n  a: {between: [ball, ground], stifness: 1}\n", "stiffness"),
        ("\n  a: {between: [{shape: spere, body: ball}, ground], stiffness: 1}\n", "sphere"),
        ("\n  a: {between: [{shape: sphere, body: ball, radios: 1}, ground], stiffness: 1}\n", "radius"),
        ("\n  a: {between: [ball, ground], stiffness: 1, friction: {mu: 1}}\n", "no 'mu'"),
        ("\n  a: {between: [ball, ground], stiffness: 1, friction: -1}\n", "negative"),
        ("\n  a: {type: rigid_contact, between: [ball, ground], restitution: 2}\n", "between 0 and 1"),
        ("\n  a: {type: contact_group, bodies: [ball, ball], stiffness: 1}\n", "only once"),
    ],
)
def test_bad_contacts(tmp_path, text, words):
    with pytest.raises(InputError, match=words) as error:
        scenario(tmp_path, text)
    assert "model.yaml" in str(error.value) and "line" in str(error.value)
