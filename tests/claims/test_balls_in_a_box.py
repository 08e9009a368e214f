"""Balls in a box: the kernel of spheres against the general one, and what heaps are known to do."""

import numpy as np
import pytest

import livens as lv
from livens import contacts
from livens.engine.neighbour_list import NeighbourList
from livens.errors import LivensWarning


@pytest.mark.parametrize(
    ("law", "friction", "dissipation"), [("linear", 0.3, 0.4), ("hertz", 0.3, 0.0), ("hertz", 0, 5)]
)
def test_the_kernel_of_spheres_is_the_general_one(law, friction, dissipation):
    """Forces, torques and energy terms of different spheres, a floor and a wall, in states at random."""
    random, largest = np.random.default_rng(0), 0.0
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    balls = [
        mb.sphere(f"s{i}", at=[0.05 * i, 0.01 * i, 0.11 + 0.235 * i], radius=0.1 + 0.01 * i, mass=1.0 + i)
        for i in range(4)
    ]
    wall = contacts.HalfSpace(mb.ground, at=[-0.11, 0, 0], normal=[1, 0.2, 0])
    mb.contact_group(
        "heap", [*balls, mb.ground, wall], law=law, stiffness=2e4, dissipation=dissipation, friction=friction
    )
    detected, k, n = mb.system.external_force, mb.system.parameter_vector(), 48
    assert all(point.sphere is not None for points in detected.pair_points.values() for point in points)
    compiled = NeighbourList(detected, k)
    for _ in range(10):
        q, v = mb.initial_state[0].reshape(4, 12).copy(), random.normal(size=(4, 12))
        q[:, :3] += random.uniform(-0.04, 0.04, (4, 3))
        rotation = np.linalg.qr(random.normal(size=(3, 3)))[0]
        q[:, 3:] = (rotation * np.sign(np.linalg.det(rotation))).T.ravel()
        v[:, 3:] = np.cross(random.normal(size=(4, 1, 3)), q[:, 3:].reshape(4, 3, 3)).reshape(4, 9)
        general, special = detected(q.ravel(), v.ravel(), 0.0, k), compiled(q.ravel(), v.ravel())
        size = np.abs(general).max()
        directors = q[:, 3:].reshape(4, 3, 3)
        force, torque = (
            [values[:n].reshape(4, 4, 3)[:, 0] for values in (general, special)],
            [np.cross(directors, values[:n].reshape(4, 4, 3)[:, 1:]).sum(axis=1) for values in (general, special)],
        )
        assert np.abs(force[0] - force[1]).max() <= 1e-12 * size
        assert np.abs(torque[0] - torque[1]).max() <= 1e-12 * size
        assert np.abs(general[n:] - special[n:]).max() <= 1e-12 * size
        largest = max(largest, size)
    assert largest > 100


def test_spheres_are_stepped_like_bodies_with_nearly_equal_moments_of_inertia():
    """Steps of spheres need no iterations; those of all other bodies do, and have spheres as their limit."""
    ends = []
    for change in (0.0, 1e-9):
        mb = lv.Multibody(gravity=[0, 0, -9.81])
        J = 4e-3 * np.diag([1.0, 1.0 + change, 1.0])
        bodies = [mb.body(f"b{i}", mass=1.0, inertia=J, position=[0.25 * i, 0, 0.09]) for i in range(8)]
        for i, body in enumerate(bodies):
            mb.initial(body, velocity=[0.5 - 0.2 * i, 0.1, 0], omega=[1.0, 2.0 * i, -3.0])
        shapes = [contacts.Sphere(body, radius=0.1) for body in bodies]
        mb.contact_group("heap", [*shapes, mb.ground], stiffness=2e4, dissipation=0.4, friction=0.3)
        run = mb.simulate(t_end=0.2, h=2e-4, every=1000)
        ends.append(np.concatenate([run.q[-1], run.v[-1]]))
    assert 0 < np.abs(ends[0] - ends[1]).max() < 1e-7


def test_moments_of_inertia_may_differ_in_a_run():
    """A sphere that has become another body in one run: as if it had been that body."""
    ends = []
    for other in (False, True):
        mb = lv.Multibody()
        J = 4e-3 * np.diag([1.0, 1.5, 1.2])
        bodies = [
            mb.body(f"b{i}", mass=1.0, inertia=J if other and not i else 4e-3 * np.eye(3), position=[0.3 * i, 0, 0])
            for i in range(8)
        ]
        mb.contact_group("heap", [contacts.Sphere(body, radius=0.1) for body in bodies], stiffness=1e4)
        mb.initial(bodies[0], omega=[1.0, 2.0, 3.0])
        changed = {} if other else {"b0.euler": (np.trace(J) / 2 * np.eye(3) - J)}
        run = mb.simulate(t_end=0.1, h=1e-3, scheme="semi-explicit-2:0.5", parameters=changed)
        ends.append(run.q[-1])
    assert np.abs(ends[0] - ends[1]).max() < 1e-14 and np.abs(ends[0][3:12] - np.eye(3).ravel()).max() > 0.1


def test_many_free_bodies_get_their_velocities_at_once():
    """Trajectories agree with the dense equations of a few bodies, in the plane and in space."""
    for d in (2, 3):
        results = []
        for with_joint in (False, True):
            mb = lv.Multibody(planar=d == 2)
            a = mb.body("a", mass=1.0, inertia=2.0 if d == 2 else [1, 2, 3], position=[0.5] * d)
            b = mb.particle("b", at=[3.0] * d, mass=1.0)
            mb.initial(a, velocity=np.arange(1.0, d + 1), omega=3.0 if d == 2 else [0.3, -0.2, 0.7])
            mb.initial(b, velocity=[1.0] * d)
            if with_joint:  # somewhere else: the equations of all bodies are solved
                c, e = (
                    mb.body(name, mass=1.0, inertia=1.0 if d == 2 else [1, 1, 1], position=[9.0] * d) for name in "ce"
                )
                mb.revolute("hinge", c, e, at=[9.0] * d, **({} if d == 2 else dict(axis="z")))
            q, v = mb.initial_state
            n = len(a.coordinates) + len(b.coordinates)
            results.append(np.concatenate([q[:n], v[:n]]))
        assert np.abs(results[0] - results[1]).max() < 1e-14


def test_the_floor_carries_a_heap():
    """On the mean over time, also where balls still roll about; without friction walls carry nothing of it."""
    problem = lv.problems.load("balls-in-a-box", N=20, damping=5.0, friction=0.0)
    run = lv.simulate(problem, t_end=0.6, every=10)
    late = run.t >= 0.3
    x, v = (a[late].reshape(-1, 20, 12)[:, :, 2] for a in (run.q, run.v))
    depth = np.maximum(0.01 - x, 0.0)
    load = 2e4 * depth * np.maximum(0.0, 1 - 5.0 * v)
    gained = 0.01 * (v[-1] - v[0]).sum() / (run.t[late][-1] - run.t[late][0])
    assert load.sum(axis=1).mean() == pytest.approx(20 * 0.01 * 9.81 + gained, rel=5e-3)
    assert run.summary.max_energy_drift < 1e-12


def test_runs_go_on_and_parameters_change(tmp_path):
    problem = lv.problems.load("balls-in-a-box", N=20)
    whole = lv.simulate(problem, t_end=0.02, out=tmp_path / "whole.h5")
    lv.simulate(problem, t_end=0.01, out=tmp_path / "part.h5")
    more = lv.resume(tmp_path / "part.h5", t_end=0.02)
    assert np.array_equal(more.q[-1], whole.q[-1])


@pytest.mark.parametrize("count", [2, 8])
def test_a_body_that_may_pass_through_others_is_reported(count):
    """It starts slowly and is accelerated: after some time it moves by more than its radius in a step."""
    mb = lv.Multibody(gravity=[0, 0, -9.81])
    balls = [mb.sphere(f"b{i}", at=[i, 0, 0], radius=0.1, mass=1.0) for i in range(count)]
    mb.contact_group("heap", balls, stiffness=1.0)
    run = mb.simulate(t_end=0.5, h=1e-2)
    assert run.t[-1] == 0.5
    with pytest.warns(LivensWarning, match="heap: a body moves at .* use smaller steps"):
        mb.simulate(t_end=2.0, h=1e-2)
