"""Crowds: the compiled contacts against NumPy's, against contacts that are drawn, and what heaps are known to do."""

import functools

import numpy as np
import pytest
from conftest import measured_order

import livens as lv
from livens.engine.steppers.dem import contact_forces, dem_arrays
from livens.errors import InputError

BOX = dict(lower=[0, 0, 0], upper=[1, 1, 1])


@functools.cache
def heap(N=60):
    problem = lv.problems.load("balls-in-a-box", N=N)
    return problem, lv.simulate(problem, t_end=0.2, every=400)


def both(crowd, q, v):
    numbers = crowd.granular_parameters(crowd.parameter_vector())
    layout = lv.schemes.get("semi-explicit:0.5,0.5").equations(crowd).layout
    return numbers.contact_forces(q, v), contact_forces(dem_arrays(numbers, layout, 0.5, False), q, v)


def test_cells_find_what_a_tree_finds():
    """Forces, losses and stored energy of a heap, and of balls at random: in a wide box, and beyond its walls."""
    problem, run = heap()
    random = np.random.default_rng(3)
    for q, v in zip(run.q[1:], run.v[1:], strict=True):
        tree, cells = both(problem.model, q, v)
        assert np.abs(tree.forces - cells[0]).max() < 1e-12 * (1 + np.abs(tree.forces).max())
        assert (tree.dissipated_power, tree.stored_energy) == pytest.approx(cells[1:], rel=1e-11)
    sizes = random.uniform(0.02, 0.06, 80)
    grid = np.array(np.meshgrid(*[np.linspace(0.1, 0.9, 5)] * 3)).reshape(3, -1).T[:80]
    crowd = lv.GranularBox(grid, radius=sizes, mass=0.1, **BOX, stiffness=1e4, law="hertz", friction=0.3, damping=0.2)
    for _ in range(5):
        q, v = random.uniform(-0.05, 1.05, 480), random.normal(size=480)
        tree, cells = both(crowd, q, v)
        assert tree.stored_energy > 0
        assert np.abs(tree.forces - cells[0]).max() < 1e-12 * np.abs(tree.forces).max()


def test_two_balls_are_those_of_a_drawing():
    """The same oblique blow as contacts of a drawn mechanism, with friction and damping, by a fine energy scheme."""
    stiffness, dissipation = 2e4, 0.05
    crowd = lv.GranularBox([[0.3, 0.5, 0.5], [0.52, 0.53, 0.5]], radius=0.1, mass=[1.0, 2.0], **BOX,
                           stiffness=stiffness, damping=dissipation, friction=0.4, smooth=0.5,
                           gravity=[0, 0, 0])  # fmt: skip
    speed, spin = np.array([2.0, 0.1, 0.0]), np.array([1.0, -5.0, 3.0])
    v0 = np.concatenate([speed, spin, np.zeros(6)])
    errors, steps = [], [2e-4, 1e-4, 5e-5, 2.5e-5]
    mb = lv.Multibody()
    a, b = (mb.sphere(name, at=at, radius=0.1, mass=mass) for name, at, mass in
            (("a", [0.3, 0.5, 0.5], 1.0), ("b", [0.52, 0.53, 0.5], 2.0)))  # fmt: skip
    friction = lv.contacts.Friction(0.4, slip_tolerance=0.5)
    mb.contact(a, b, stiffness=stiffness, dissipation=dissipation, friction=friction, name="blow")
    mb.initial(a, velocity=speed, omega=spin)
    mb.initial(b, velocity=[0, 0, 0], omega=[0, 0, 0])
    fine = mb.simulate(t_end=0.04, h=5e-6, every=8000)
    expected = np.concatenate([fine[f"{name}.{what}"][-1] for name in "ab" for what in ("velocity", "omega")])
    for h in steps:
        run = lv.simulate(crowd, q0=crowd.q0, v0=v0, scheme="semi-explicit-2:0.5", h=h, t_end=0.04, every=10**6)
        errors.append(np.abs(run.v[-1] - expected).max())
    assert abs(expected[6]) > 0.5  # the second one has been hit
    assert errors[-1] < 2e-3 and errors[-1] < errors[0] / 8


def test_isolated_balls_keep_their_momenta():
    crowd = lv.GranularBox([[0.3, 0.5, 0.5], [0.52, 0.53, 0.5]], radius=0.1, mass=[1.0, 2.0], **BOX, stiffness=2e4,
                     friction=0.4, damping=0.1, gravity=[0, 0, 0])  # fmt: skip
    v0 = np.array([2.0, 0.1, 0.0, 1.0, -5.0, 3.0, 0, 0, 0, 0, 0, 0])
    run = lv.simulate(crowd, q0=crowd.q0, v0=v0, h=1e-4, t_end=0.05)
    numbers = crowd.granular_parameters(crowd.parameter_vector())
    x, p = run.q.reshape(-1, 2, 6)[:, :, :3], (run.v * numbers.masses).reshape(-1, 2, 6)
    assert np.abs(np.diff(p[:, :, :3].sum(axis=1), axis=0)).max() < 1e-14
    assert crowd.stored_energy(run).max() > 0.1 and np.diff(run.dissipated_energy).min() >= 0
    # where forces are evaluated and where they act differ by a part of themselves, which has no moment
    L = np.cross(x, p[:, :, :3]).sum(axis=1) + p[:, :, 3:].sum(axis=1)
    assert np.abs(L - L[0]).max() < 1e-12


def test_the_energy_of_a_heap_is_accounted_for():
    """Kinetic, potential and stored energy and what was lost add up, with the order of the scheme."""
    positions = [[0.3 + 0.11 * i, 0.5 + 0.01 * i, 0.12 + 0.02 * i] for i in range(4)]
    crowd = lv.GranularBox(positions, radius=0.05, mass=0.1, **BOX, stiffness=5e3, law="hertz", damping=0.2,
                           friction=0.2, smooth=0.2)  # fmt: skip
    v0 = np.zeros((4, 6))
    v0[0, :3] = 1.0, 0.1, -0.5
    steps, defects = [2e-4, 1e-4, 5e-5, 2.5e-5], []
    for h in steps:
        run = lv.simulate(crowd, q0=crowd.q0, v0=v0.ravel(), h=h, t_end=0.12, every=round(2e-4 / h))
        energy = run.observe("total_energy") + crowd.stored_energy(run) + run.dissipated_energy
        defects.append(np.abs(energy - energy[0]).max())
    assert run.dissipated_energy[-1] > 1e-3
    assert abs(measured_order(steps, defects) - 2) < 0.3


def test_the_floor_carries_a_heap():
    """On the mean over time, also where balls still roll about; without friction walls carry nothing of it."""
    problem = lv.problems.load("balls-in-a-box", N=20, damping=5.0, friction=0.0)
    run = lv.simulate(problem, t_end=1.0, every=20)
    numbers = problem.model.granular_parameters(problem.model.parameter_vector())
    late = run.t >= 0.5
    x, v = (a[late].reshape(-1, 20, 6)[:, :, 2] for a in (run.q, run.v))
    depth = np.maximum(numbers.radii - x, 0.0)
    load = numbers.stiffness * depth * np.maximum(0.0, 1 - numbers.damping * v)
    gained = 0.01 * (v[-1] - v[0]).sum() / 0.5
    assert load.sum(axis=1).mean() == pytest.approx(20 * 0.01 * 9.81 + gained, rel=2e-3)
    assert run.summary.max_energy_drift < 1e-12
    slow = lv.simulate(lv.problems.load("balls-in-a-box", N=20, damping=5.0), t_end=1.0, every=10**6)
    assert np.abs(slow.v[-1].reshape(-1, 6)[:, :3]).max() < 5e-2  # with friction they come to rest


def test_runs_go_on_and_parameters_change(tmp_path):
    problem, _ = heap(10)
    whole = lv.simulate(problem, t_end=0.02, out=tmp_path / "whole.h5")
    lv.simulate(problem, t_end=0.01, out=tmp_path / "part.h5")
    more = lv.resume(tmp_path / "part.h5", t_end=0.02)
    assert np.array_equal(more.q[-1], whole.q[-1])
    light = lv.simulate(problem, t_end=0.02, parameters={"gravity": [0, 0, -1.0]})
    assert light.q[-1].reshape(-1, 6)[:, 2].sum() > whole.q[-1].reshape(-1, 6)[:, 2].sum()


def test_what_a_crowd_refuses():
    row = [[0.2, 0.2, 0.2], [0.6, 0.2, 0.2]]
    good = dict(radius=0.1, mass=1.0, **BOX, stiffness=1e4)
    crowd = lv.GranularBox(row, **good)
    with pytest.raises(InputError, match="needs"):
        lv.simulate(crowd, q0=crowd.q0, v0=0 * crowd.q0, scheme="lie-em", h=1e-3, t_end=0.01)
    with pytest.raises(InputError, match="overlap"):
        lv.GranularBox([[0.2, 0.2, 0.2], [0.3, 0.2, 0.2]], **good)
    with pytest.raises(InputError, match="wall"):
        lv.GranularBox([[0.2, 0.2, 2.0]], **good)
    for word, value in (("radius", -0.1), ("mass", 0.0), ("stiffness", 0.0), ("friction", -1.0), ("law", "soft")):
        with pytest.raises(InputError, match=word):
            lv.GranularBox(row, **{**good, word: value})
    with pytest.raises(InputError, match="fit"):
        lv.GranularBox(row, **{**good, "upper": [1, 1, 0.1]})
    with pytest.raises(InputError, match="graph"):
        lv.simulate(crowd, q0=crowd.q0, v0=0 * crowd.q0, h=1e-3, t_end=0.01, tier="reference")
