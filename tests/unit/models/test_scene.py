"""Visuals of models: plain data that depends on the coordinates and does not change the motion."""

import json

import numpy as np
import pytest

import livens as lv
from livens import bodies
from livens import math as m
from livens import rotations as rot
from livens.multibody.visuals import inertia_box
from livens.scene import shapes
from livens.scene.scene import Scene


def pendulum(visual=None):
    return lv.System(
        "x y",
        kinetic=lambda v: v @ v / 2,
        potential=lambda q, k: k.g * q[1],
        constraints=lambda q, k: [(q @ q - k.l**2) / 2],
        parameters=dict(g=9.81, l=1.0),
        visual=visual,
    )


def swing(q, t, k):
    return [shapes.ground([0, 0]), shapes.rod([0, 0], q), shapes.sphere(q + [0, m.sin(t)], 0.1 * k.l, name="bob")]


@pytest.mark.parametrize("name", [entry.name for entry in lv.problems.all()])
def test_every_ready_problem_has_a_scene(name):
    problem = lv.problems.load(name)
    scene, start = problem.model.scene, problem.start_values
    pose = scene.evaluate(np.atleast_2d(start["q0"] if "q0" in start else start["x0"]), np.zeros(1))
    assert scene and all(np.isfinite(pose.points(shape)).all() for shape in scene.shapes)
    assert scene.traced or name in ("free-rigid-body", "euler-top"), "something must leave a path"
    plain = json.loads(json.dumps(scene.to_json()))
    assert json.loads(json.dumps(Scene.from_json(plain, len(problem.model.coordinates)).to_json())) == plain


def test_a_look_changes_neither_the_equations_nor_the_digest():
    assert pendulum().fingerprint == pendulum(swing).fingerprint


def test_places_follow_the_coordinates_the_time_and_the_parameters():
    system = pendulum(swing)
    run = lv.simulate(system, q0=[2.0, 0.0], v0=[0.0, 0.0], h=0.01, t_end=1.0, parameters=dict(l=2.0))
    pose = run.scene.evaluate(run.q, run.t)
    ground, rod, bob = run.scene.shapes
    assert np.array_equal(pose.points(rod)[:, 1, :2], run.q) and not pose.points(ground).any()
    assert np.allclose(pose.points(bob)[:, 0, 1], run.q[:, 1] + np.sin(run.t), atol=1e-15)
    assert pose.size(bob, "radius", 1.0) == pytest.approx(0.2)
    assert [shape.name for shape in run.scene.traced] == ["bob"] and run.scene.dimension == 2


def test_files_keep_the_scene(tmp_path):
    run = lv.simulate(pendulum(swing), q0=[1.0, 0.0], v0=[0.0, 0.0], h=0.01, t_end=0.1)
    loaded = lv.load(run.save(tmp_path / "run.h5"))
    assert json.dumps(loaded.scene.to_json()) == json.dumps(run.scene.to_json())


@pytest.mark.parametrize(
    "damage",
    [
        lambda plain: plain["tape"].append(["SYSTEM", 0]),
        lambda plain: plain["tape"].append(["ADD", 0, 10**6]),
        lambda plain: plain["tape"].append(["q", 2]),
        lambda plain: plain["shapes"].append(["bomb", "", [[0, 0, 0]], [], {}, None]),
        lambda plain: plain["shapes"].append(["rod", "", [[0, 0, -1]], [], {}, None]),
        lambda plain: plain.pop("shapes"),
    ],
)
def test_the_scene_of_a_damaged_file_is_refused(damage):
    plain = json.loads(json.dumps(pendulum(swing).scene.to_json()))
    damage(plain)
    with pytest.raises(ValueError, match="its scene cannot be read"):
        Scene.from_json(plain, 2)


def test_a_model_without_a_look_is_a_ball_where_x_and_y_are():
    (ball,) = pendulum().scene.shapes
    assert ball.shape_type == "sphere"
    assert not lv.System("theta", kinetic=lambda v: v[0] ** 2).scene


def test_bodies_look_like_their_inertia():
    tensor = np.diag([13.0, 10.0, 5.0])  # a box of mass 12 with sides 1, 2, 3
    turn = rot.to_matrix(rot.from_axis_angle([1.0, 2.0, 3.0], 0.3))
    (box,) = inertia_box(12.0, turn @ tensor @ turn.T, np.zeros(3))
    lengths = np.array([box.sizes[side] for side in ("length", "width", "depth")])
    assert np.allclose(lengths, [1, 2, 3]) and np.allclose(box.frame, turn)


@pytest.mark.parametrize("make", [bodies.quaternion_body, bodies.director_body])
def test_a_body_carries_its_shapes(make):
    inertia = bodies.Inertia(2.0, [1.0, 1.0, 1.0], centre=[0.0, 0.0, 0.5])
    body = make("rocket", inertia, visual=[shapes.cone([0, 0, 2], [0, 0, 0], 0.3), shapes.axes([0, 0, 0.5], np.eye(3))])
    system = lv.System(bodies.coordinates([body]), elements=[body])
    turn = rot.from_axis_angle([0, 1, 0], 0.7)
    q, _ = body.state(position=[1.0, 2.0, 3.0], orientation=turn)
    pose = system.scene.evaluate(q[None], np.zeros(1))
    cone, axes = system.scene.shapes
    expected = [[1, 2, 3] + rot.rotate(turn, np.array(X)) for X in ([0, 0, 1.5], [0, 0, -0.5])]
    assert np.allclose(pose.points(cone)[0], expected) and cone.name == "rocket"
    assert np.allclose(pose.frames(axes)[0], rot.to_matrix(turn)) and np.allclose(pose.points(axes)[0, 0], [1, 2, 3])


def test_what_acts_between_bodies_is_drawn():
    a, b = (bodies.particle(name, 1.0, dimension=2) for name in "ab")
    ends = (a, [0, 0]), (b, [0, 0])
    system = lv.System(
        bodies.coordinates([a, b]),
        elements=[
            a,
            b,
            bodies.spring(*ends, 3.0),
            bodies.damper(*ends, 0.1),
            bodies.spherical_joint((a, [0, 0]), [0, 0]),
            bodies.sphere_sphere((a, [0, 0]), 0.1, (b, [0, 0]), 0.2, stiffness=1e4),
            bodies.sphere_plane((b, [0, 0]), 0.2, [0, -1], [0, 1], stiffness=1e4),
            bodies.sphere_in_box((b, [0, 0]), 0.2, [-2, -2], [2, 2], stiffness=1e4),
        ],
    )
    scene = system.scene
    assert sorted(shape.shape_type for shape in scene.shapes) == sorted(
        "sphere sphere spring damper ground ground path".split()
    )
    pose = scene.evaluate(np.array([[0.0, 0, 1, 1]]), np.zeros(1))
    assert [pose.size(shape, "radius", 0.0) for shape in scene.shapes if shape.shape_type == "sphere"] == [0.1, 0.2]


def test_bad_looks_get_a_sentence():
    with pytest.raises(lv.ModelError, match="must return shapes"):
        _ = pendulum(lambda q: q).scene
    with pytest.raises(lv.ModelError, match="two or three components"):
        _ = pendulum(lambda q: shapes.sphere([q[0]])).scene
    with pytest.raises(lv.ModelError, match="visual must be a function"):
        pendulum(shapes.sphere([0, 0]))
